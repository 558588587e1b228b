"""Numbers, names and foreign texts as messages show them."""

from collections.abc import Collection, Sequence
from typing import Literal

MAX_QUOTE_CHARACTERS = 300
_MAX_FINDING = 500
_FINDING_END = 240  # characters, enough for any remedy
_NAMED = 6
_WHOLE_FROM = 999.5


def quote(text: str, limit: int = MAX_QUOTE_CHARACTERS) -> str:
    """Return a text that Plimsoll did not write on one line, shortened to the limit."""
    line = " ".join(text[: 4 * limit].split())
    printable = "".join(character if character.isprintable() else "?" for character in line)
    return printable if len(printable) <= limit else printable[: limit - 1] + "…"


def quote_finding(text: str) -> str:
    """Return the message of a finding; beyond the limit its middle is left out, because its end is the remedy."""
    line = quote(text, len(text))
    return line if len(line) <= _MAX_FINDING else f"{line[: _MAX_FINDING - _FINDING_END - 3]} … {line[-_FINDING_END:]}"


def number_text(value: float, digits: int = 3) -> str:
    """Return a number with that many significant digits, from 1000 on as a whole number."""
    return f"{value:.{digits}g}" if abs(value) < _WHOLE_FROM else f"{value:.0f}"


def percent_text(value: float) -> str:
    """Return a number of percent: `24.9 %`."""
    return f"{number_text(value)} %"


def size_text(size: float) -> str:
    """Return a number of bytes: `1.5 GiB`."""
    return _scaled(size, 1024, ("bytes", "KiB", "MiB", "GiB", "TiB"))


def bits_text(rate: float) -> str:
    """Return a number of bits per second, in decimal units as for links: `937 Mbit/s`."""
    return _scaled(rate, 1000, ("bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"))


def _scaled(value: float, step: int, units: Sequence[str]) -> str:
    place = 0
    while value >= step and place < len(units) - 1:
        value, place = value / step, place + 1
    return f"{number_text(value)} {units[place]}"


def count_text(number: int, noun: str) -> str:
    """Return a number of things: `1 client`, `2 clients`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def are(number: int) -> str:
    """Return the verb for that many things."""
    return "is" if number == 1 else "are"


def first_few(texts: Sequence[str], named: int = _NAMED, separator: str = ", ") -> str:
    """Join the first few of many texts: `a, b and 3 more`."""
    more = f"{separator.rstrip(', ')} and {len(texts) - named} more" if len(texts) > named else ""
    return separator.join(texts[:named]) + more


def listed(texts: Sequence[str], last: Literal["and", "or"] = "and", named: int = 8) -> str:
    """Return `a`, `a and b`, or `a, b and c`; the first few of many."""
    if len(texts) > named:
        return first_few(texts, named)
    return f" {last} ".join(filter(None, (", ".join(texts[:-1]), *texts[-1:])))


def numbered(noun: str, numbers: Collection[int]) -> str:
    """Name things by their numbers, the first few of many: `client 3`, `passes 0, 1 and 2`; empty without numbers."""
    texts = [str(number) for number in sorted(numbers)]
    if len(texts) < 2:  # noqa: PLR2004  # a plural
        return " ".join([noun, *texts]) if texts else ""
    plural = f"{noun}{'es' if noun.endswith('s') else 's'}"
    return f"{plural} {first_few(texts, _NAMED - 1) if len(texts) > _NAMED else listed(texts)}"
