"""What a user is told about a bad document: the field, the value and the remedy, all problems at once."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

_SHOWN_VALUE_CHARACTERS = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing that is wrong with a document.

    Attributes:
        field: path as in `spec.workloads[0].fio.blockSize[1]`; empty for the document itself.
        value: what stands there, shortened; empty if nothing does.
        remedy: what is wrong and what to write instead, as a clause after the field and value.

    """

    field: str
    remedy: str
    value: str = ""

    def __str__(self) -> str:
        """Return one line for a terminal or a condition message."""
        where = self.field or "document"
        return f"{where}: {self.value} {self.remedy}" if self.value else f"{where}: {self.remedy}"


class SpecError(ValueError):
    """A document cannot be used; `problems` says why, in the order of the document."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        """Keep the problems; the message is one line for each."""
        self.problems = tuple(problems)
        super().__init__("\n".join(map(str, self.problems)))


def field_path(location: Iterable[int | str]) -> str:
    """Write a location the way `kubectl` does: `spec.workloads[0].name`."""
    path = ""
    for part in location:
        if isinstance(part, int):
            path += f"[{part}]"
        else:
            path += f".{part}" if path else part
    return path


def shown(value: object) -> str:
    """Return a value as a user would recognise it, shortened."""
    if isinstance(value, dict | list | tuple):
        return ""
    text = f'"{value}"' if isinstance(value, str) else str(value)
    return text if len(text) <= _SHOWN_VALUE_CHARACTERS else text[: _SHOWN_VALUE_CHARACTERS - 1] + "…"


def problems_of(error: ValidationError, *, prefix: Sequence[int | str] = ()) -> tuple[Problem, ...]:
    """Translate what the validation library says into problems a user can act on.

    `prefix` is the location of the validated part within the whole document.
    """
    return tuple(_problem(details, prefix) for details in error.errors(include_url=False))


def _problem(details: ErrorDetails, prefix: Sequence[int | str]) -> Problem:
    path = field_path([*prefix, *details["loc"]])
    match details["type"]:
        case "missing":
            return Problem(field=path, remedy="is required; add it")
        case "extra_forbidden":
            return Problem(field=path, remedy="is not a known field; remove it or correct its spelling")
        case "value_error":
            return Problem(field=path, value=shown(details["input"]), remedy=_own_message(details))
        case _:
            return Problem(field=path, value=shown(details["input"]), remedy=_as_clause(details["msg"]))


def _own_message(details: ErrorDetails) -> str:
    context: dict[str, Any] = details.get("ctx", {})
    return str(context.get("error", details["msg"]))


def _as_clause(message: str) -> str:
    """Turn 'Input should be ...' into the clause 'should be ...'."""
    text = message.removeprefix("Input ").removeprefix("Value ")
    return text if text[:1].islower() else text[:1].lower() + text[1:]
