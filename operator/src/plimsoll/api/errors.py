"""What a user is told about a bad document: the field, the value and the remedy, all problems at once."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from plimsoll.api.wording import remedy_of, shown

_WITHOUT_VALUE = ("missing", "extra_forbidden", "json_invalid")
"""Kinds of error of which the value says nothing: an unknown field is named by its path."""


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
    """A document cannot be used; `problems` says why, in the order of the document.

    A validator of a model raises it too, with fields relative to that model, where a plain ValueError would blame
    the model as a whole.
    """

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


def problems_of(error: ValidationError, *, prefix: Sequence[int | str] = ()) -> tuple[Problem, ...]:
    """Translate what the validation library says into problems a user can act on.

    `prefix` is the location of the validated part within the whole document.
    """
    found = error.errors(include_url=False)
    own = [details for details in found if not _follows_from_entries(details, found)]
    return tuple(problem for details in own for problem in _problems_from(details, prefix))


def _follows_from_entries(details: ErrorDetails, found: Sequence[ErrorDetails]) -> bool:
    """Tell whether a list is too short only because bad entries were not counted: those are reported themselves."""
    location = details["loc"]
    return details["type"] == "too_short" and any(
        len(other["loc"]) > len(location) and other["loc"][: len(location)] == location for other in found
    )


def _problems_from(details: ErrorDetails, prefix: Sequence[int | str]) -> tuple[Problem, ...]:
    path = field_path([*prefix, *details["loc"]])
    cause = details.get("ctx", {}).get("error")
    if isinstance(cause, SpecError):
        return tuple(replace(problem, field=_joined(path, problem.field)) for problem in cause.problems)
    value = "" if details["type"] in _WITHOUT_VALUE else shown(details["input"])
    return (Problem(field=path, value=value, remedy=remedy_of(details)),)


def _joined(path: str, field: str) -> str:
    return f"{path}.{field}" if path and field and not field.startswith("[") else path + field
