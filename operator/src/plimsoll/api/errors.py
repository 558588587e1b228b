"""What is wrong with a document: the field, the value and the remedy, all problems at once."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from plimsoll.api.wording import remedy_of, shown, unknown_field

_WITHOUT_VALUE = ("missing", "extra_forbidden", "json_invalid")
"""Kinds of error that the value does not explain: the path names an unknown field."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One error in a document.

    Attributes:
        field: path such as `spec.workloads[0].fio.blockSize[1]`; empty for the document itself.
        value: the value found there, shortened; empty if there is none.
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
    """An invalid document; `problems` lists its errors in document order.

    Validators of a model raise it as well, with fields relative to the model; a plain ValueError would blame the whole
    model.
    """

    def __init__(self, problems: Sequence[Problem]) -> None:
        """Keep the problems; the message has one line for each."""
        self.problems = tuple(problems)
        super().__init__("\n".join(map(str, self.problems)))


def field_path(location: Iterable[int | str]) -> str:
    """Return a location as `kubectl` writes it: `spec.workloads[0].name`."""
    path = ""
    for part in location:
        if isinstance(part, int):
            path += f"[{part}]"
        else:
            path += f".{part}" if path else part
    return path


def problems_of(
    error: ValidationError, *, prefix: Sequence[int | str] = (), model: type[BaseModel] | None = None
) -> tuple[Problem, ...]:
    """Return the problems behind a validation error, each with its remedy.

    `prefix` is the location of the validated part within the document. With its `model`, an unknown field suggests the
    closest known one.
    """
    found = error.errors(include_url=False)
    own = [details for details in found if not _follows_from_others(details, found)]
    return tuple(problem for details in own for problem in _problems_from(details, prefix, model))


def _follows_from_others(details: ErrorDetails, found: Sequence[ErrorDetails]) -> bool:
    """Whether the error follows from others, which are reported themselves.

    A list is too short because its invalid entries do not count, or a default depends on invalid fields.
    """
    location = details["loc"]
    if details["type"] == "default_factory_not_called":
        return True
    return details["type"] == "too_short" and any(
        len(other["loc"]) > len(location) and other["loc"][: len(location)] == location for other in found
    )


def _problems_from(
    details: ErrorDetails, prefix: Sequence[int | str], model: type[BaseModel] | None
) -> tuple[Problem, ...]:
    path = field_path([*prefix, *details["loc"]])
    cause = details.get("ctx", {}).get("error")
    if isinstance(cause, SpecError):
        return tuple(replace(problem, field=_joined(path, problem.field)) for problem in cause.problems)
    if details["type"] == "extra_forbidden" and model is not None:
        return (Problem(field=path, remedy=unknown_field(str(details["loc"][-1]), _fields_beside(model, details))),)
    value = "" if details["type"] in _WITHOUT_VALUE else shown(details["input"])
    return (Problem(field=path, value=value, remedy=remedy_of(details)),)


def _fields_beside(model: type[BaseModel], details: ErrorDetails) -> list[str]:
    """Return the known fields of the model that an error is in."""
    models = [model]
    for part in details["loc"][:-1]:
        if isinstance(part, str):
            fields = [field for one in models for field in one.model_fields.values() if field.alias == part]
            models = [inner for field in fields for inner in models_in(field.annotation)]
    return [str(field.alias) for one in models for field in one.model_fields.values()]


def models_in(annotation: object) -> Iterator[type[BaseModel]]:
    """Yield the models in the annotation of a field."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from models_in(argument)


def _joined(path: str, field: str) -> str:
    return f"{path}.{field}" if path and field and not field.startswith("[") else path + field
