"""How findings and warnings are worded: bounded, on one line, naming clients and passes."""

from collections.abc import Collection, Sequence

MAX_QUOTE_CHARACTERS = 300
_NAMED = 6


def quote(text: str, limit: int = MAX_QUOTE_CHARACTERS) -> str:
    """Return somebody else's words on one line and shortened."""
    line = " ".join(text[: 4 * limit].split())
    printable = "".join(character if character.isprintable() else "?" for character in line)
    return printable if len(printable) <= limit else printable[: limit - 1] + "…"


def number_text(value: float) -> str:
    """Return a number with six digits, and never with an exponent if it is a large one."""
    return f"{value:.6g}" if abs(value) < 1e6 else f"{value:.0f}"  # noqa: PLR2004  # where `g` begins to write e+06


def clients_text(clients: Collection[int]) -> str:
    """Name clients, the first few of many: `client 3`, `clients 0, 1 and 2`; empty without clients."""
    return _numbered("client", "clients", clients)


def passes_text(passes: Collection[int]) -> str:
    """Name passes in the same way."""
    return _numbered("pass", "passes", passes)


def sentence(*, subject: str, value: str, limit: str, others: str, remedy: str) -> str:
    """Return the message of a finding."""
    return (
        (f"{subject}: " if subject else "")
        + value
        + (f" (limit {limit})" if limit else "")
        + (f"; also {others}" if others else "")
        + f"; {remedy}"
    )


def _numbered(singular: str, plural: str, numbers: Collection[int]) -> str:
    """Name numbered things in ascending order, the first few of many."""
    ordered = sorted(numbers)
    if not ordered:
        return ""
    if len(ordered) == 1:
        return f"{singular} {ordered[0]}"
    named, rest = (ordered[:-1], str(ordered[-1])) if len(ordered) <= _NAMED else _first_few(ordered)
    return f"{plural} {', '.join(map(str, named))} and {rest}"


def _first_few(ordered: Sequence[int]) -> tuple[Sequence[int], str]:
    return ordered[: _NAMED - 1], f"{len(ordered) - _NAMED + 1} more"
