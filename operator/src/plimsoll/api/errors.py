"""Problems of a document, all at once: the field, the value and the remedy."""

import difflib
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar, get_args, get_origin

from pydantic import BaseModel, JsonValue, ValidationError
from pydantic_core import ErrorDetails

from plimsoll.api.json_reader import printable, printable_text
from plimsoll.api.names import API_VERSION, FORMS, RESULT_KIND, RUN_KIND, SUITE_KIND
from plimsoll.api.quantity import format_quantity, parse_quantity

_SHOWN_VALUE_CHARACTERS = 80
_MAX_PROBLEMS = 1000  # more errors are only counted: each takes a KiB, and a document may have one for every other byte

_WRONG_TYPE = re.compile(
    r"(int|float|bool|string|tuple|list|dict|mapping|model)(_attributes)?_(type|parsing|from_float)"
)
_TYPES = {"int": "a whole number", "float": "a number", "bool": "true or false", "string": "text"}
_TYPES |= {"tuple": "a list", "list": "a list"} | dict.fromkeys(("dict", "mapping", "model"), "a mapping of fields")
"""What an error of the wrong type begins with -> the expected type."""

_BOUNDS = {
    "greater_than_equal": ("at least", "ge"),
    "less_than_equal": ("at most", "le"),
    "greater_than": ("more than", "gt"),
    "less_than": ("less than", "lt"),
    "multiple_of": ("a multiple of", "multiple_of"),
}
"""Kind of error -> the bound in words, and the key of its limit."""

_LENGTHS = {
    "too_short": ("at least", "min_length", "entry", "entries"),
    "too_long": ("at most", "max_length", "entry", "entries"),
    "string_too_short": ("at least", "min_length", "character", "characters"),
    "string_too_long": ("at most", "max_length", "character", "characters"),
}
"""Kind of error -> the bound in words, the key of its limit, and what it counts."""

_UNKNOWN = "is not a known field; remove it or correct its spelling"
_FIO_OPTIONS = {
    "bs": "blockSize",
    "bssplit": "blockSizeMix",
    "fsync": "fsyncEvery",
    "rw": "pattern",
    "rwmixread": "readPercent",
    "runtime": "runtimeSeconds",
}
"""Options of fio with another name here -> that name."""

_TEXTS = {
    "missing": "is required; add it",
    "extra_forbidden": _UNKNOWN,
    "value_error": "{error}",
    "json_invalid": "is not JSON: {error}",
}
"""Kind of error -> the error and its remedy."""


def shown(value: object) -> str:
    """Return a value as the user wrote it, shortened and printable; empty for an absent value, a list or a mapping."""
    if value is None or isinstance(value, dict | list | tuple):
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    text = printable_text(json.dumps(value, ensure_ascii=False) if isinstance(value, str) else str(value))
    return text if len(text) <= _SHOWN_VALUE_CHARACTERS else text[: _SHOWN_VALUE_CHARACTERS - 1] + "…"


def did_you_mean(name: str, known: Iterable[str], most: int = 3) -> str:
    """Return a question with the known names closest to a misspelled one; empty if none is close."""
    near = difflib.get_close_matches(name, known, n=most)
    return f"did you mean {' or '.join(near)}?" if near else ""


def remedy_of(details: ErrorDetails) -> str:
    """Return the error and its remedy as a clause that follows the field and its value."""
    kind, value, context = details["type"], details["input"], details.get("ctx", {})
    is_choice = kind in {"literal_error", "enum"}
    wrong_type = _WRONG_TYPE.fullmatch(kind)
    expected = str(context["expected"]).replace("'", "") if is_choice else _TYPES[wrong_type[1]] if wrong_type else ""
    if expected or (value is None and kind != "value_error"):
        return _wrong_kind(expected, value, of=context.get("class_name", ""))
    if kind in _BOUNDS:
        words, key = _BOUNDS[kind]
        limit = context[key]
        # Also as a quantity if the user wrote one, or if the number is too long to read.
        is_long = isinstance(value, str) or limit >= 2**20
        quantity = format_quantity(limit) if isinstance(limit, int) and is_long else str(limit)
        text = f"must be {words} {limit}" + ("" if quantity == str(limit) else f" ({quantity})")
        # `4k` is 4000 bytes.
        if kind == "multiple_of" and isinstance(value, str) and value.endswith(tuple("kMG")):
            text += f", but is {parse_quantity(value)}; did you mean {value[:-1]}{value[-1].upper()}i?"
        return text
    if kind in _LENGTHS:
        words, key, singular, plural = _LENGTHS[kind]
        return f"must have {words} {context[key]} {singular if context[key] == 1 else plural}"
    if kind in _TEXTS:
        return _TEXTS[kind].format_map(context)
    if kind == "string_pattern_mismatch":
        return FORMS.get(context["pattern"], f"must match the pattern {context['pattern']}")
    # The clause 'should be ...' of 'Input should be ...'.
    text = details["msg"].removeprefix("Input ").removeprefix("Value ")
    return text[:1].lower() + text[1:]


def _wrong_kind(expected: str, value: object, *, of: str = "") -> str:
    if value is None:
        return "is empty; give it a value, or remove it"
    if isinstance(value, dict | list | tuple):
        return f"must be {expected}, not {'a mapping' if isinstance(value, dict) else 'a list'}"
    examples = {"a list": f", such as [{value}]", "text": "; put it in quotes"}
    if of == "NamespacedName" and re.fullmatch("[-.a-z0-9]+/[-.a-z0-9]+", str(value)):
        namespace, name = str(value).split("/")
        examples = {expected: f", such as {{namespace: {namespace}, name: {name}}}"}
    return f"must be {expected}{examples.get(expected, '')}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One error in a document."""

    field: str  # path such as `spec.workloads[0].fio.blockSize[1]`; empty for the document itself
    remedy: str  # what is wrong and what to write instead, as a clause after the field and value
    value: str = ""  # the value found there, shortened; empty if there is none

    def __str__(self) -> str:
        where = self.field or "document"
        return f"{where}: {self.value} {self.remedy}" if self.value else f"{where}: {self.remedy}"


class SpecError(ValueError):
    """An invalid document, with its `problems` in order. A model's validator names fields relative to the model."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(map(str, self.problems)))


def field_path(location: Iterable[int | str]) -> str:
    """Return a location as `kubectl` writes it: `spec.workloads[0].name`. Names may be a stranger's."""
    path = ""
    for part in location:
        if isinstance(part, int):
            path += f"[{part}]"
        else:
            path += f".{printable(part)}" if path else printable(part)
    return path


def problems_of(
    error: ValidationError,
    *,
    prefix: Sequence[int | str] = (),
    model: type[BaseModel] | None = None,
    whole: type[BaseModel] | None = None,
) -> tuple[Problem, ...]:
    """Return the problems behind a validation error of the part at `prefix`.

    With `model`, that of the part, unknown fields get the closest known ones; `whole` is the model with the part, to
    which a field in the wrong place may belong, if there is another.
    """
    if error.error_count() > _MAX_PROBLEMS:
        remedy = f"has {error.error_count()} errors, too many to list; is it the right document?"
        return (Problem(field=field_path(prefix), remedy=remedy),)
    errors = error.errors(include_url=False)
    problems = []
    for details in errors:
        kind, location = details["type"], details["loc"]
        # These follow from other errors: a default depends on invalid fields, or invalid entries do not count.
        if kind == "default_factory_not_called":
            continue
        if kind == "too_short" and any(other["loc"][: len(location)] == location != other["loc"] for other in errors):
            continue
        path = field_path([*prefix, *location])
        cause = details.get("ctx", {}).get("error")
        if isinstance(cause, SpecError):
            for problem in cause.problems:
                separator = "." if path and problem.field and not problem.field.startswith("[") else ""
                problems.append(replace(problem, field=f"{path}{separator}{problem.field}"))
        elif kind == "extra_forbidden" and model is not None:
            name, known = _FIO_OPTIONS.get(str(location[-1]), str(location[-1])), _sibling_fields(model, details)
            place = "" if name in known else place_of_field(name, whole or model)
            what = "it" if name == location[-1] else name
            closest = f"{what} belongs in {place}" if place else did_you_mean(name, known, 1)
            nearest = difflib.get_close_matches(name, known, cutoff=0)
            remedy = f"is not a known field; {closest}" if closest else f"{_UNKNOWN} (nearest: {', '.join(nearest)})"
            problems.append(Problem(field=path, remedy=remedy))
        else:
            # The value does not explain these, and the path names an unknown field.
            is_needless = kind in {"missing", "extra_forbidden", "json_invalid"}
            value = "" if is_needless else shown(details["input"])
            problems.append(Problem(field=path, value=value, remedy=remedy_of(details)))
    return tuple(problems)


def _sibling_fields(model: type[BaseModel], details: ErrorDetails) -> list[str]:
    models = [model]
    for part in details["loc"][:-1]:
        if isinstance(part, str):
            fields = [field for outer in models for field in outer.model_fields.values() if field.alias == part]
            models = [inner for field in fields for inner in models_in(field.annotation)]
    return [str(field.alias) for outer in models for field in outer.model_fields.values()]


_RARE = {"precondition", "podTemplate", "affinity"}
"""Mappings that are seldom meant, although their fields have common names."""


def place_of_field(name: str, model: type[BaseModel], *, root: str = "") -> str:
    """Return the mapping that a field belongs in, such as `prepare`; empty if no or several mappings have it.

    `root` names the model itself, if its own fields count.
    """
    own = ((root, str(field.alias)) for field in model.model_fields.values() if root)
    places = {place for place, field in (*own, *_nested_fields(model)) if field == name}
    return places.pop() if len(places) == 1 else ""


def _nested_fields(model: type[BaseModel]) -> Iterator[tuple[str, str]]:
    """Yield the name of each mapping in a model, such as `prepare` or `workloads[]`, with each of its fields."""
    for field in model.model_fields.values():
        for inner in () if field.alias in _RARE else models_in(field.annotation):
            place = f"{field.alias}[]" if get_origin(field.annotation) in {list, tuple} else str(field.alias)
            # Some fields are derived when a document is read, and nobody writes them.
            fields = inner.model_fields.values()
            written = (it for it in fields if not any(getattr(mark, "absent", False) for mark in it.metadata))
            yield from ((place, str(other.alias)) for other in written)
            yield from _nested_fields(inner)


def models_in(annotation: object) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from models_in(argument)


M = TypeVar("M", bound=BaseModel)


def decode_document(document: JsonValue, model: type[M], kind: str) -> M:
    """Read plain JSON values as a model of that kind, or raise SpecError with every invalid field."""
    if not isinstance(document, dict):
        what = "is empty" if document is None else "is not a mapping"
        raise SpecError([Problem(field="", remedy=f"{what}; write one {kind} of {API_VERSION}")])
    actual = document.get("kind")
    if actual in (RUN_KIND, RESULT_KIND, SUITE_KIND) and actual != kind:
        # Nothing else in it is of interest.
        raise SpecError([Problem(field="kind", value=shown(actual), remedy=f"must be {kind}")])
    try:
        # By alias only: the API server does not know `settle_seconds`.
        return model.model_validate(document, by_alias=True, by_name=False)
    except ValidationError as error:
        raise SpecError(problems_of(error, model=model)) from error


def load_document(text: str, model: type[M], kind: str) -> M:
    """Read YAML or JSON text as a model of that kind, or raise SpecError with every invalid field."""
    # Only here: agents and conductors read no manifest, and do without YAML.
    from plimsoll.api.manifest import read_manifest  # noqa: PLC0415

    return decode_document(read_manifest(text), model, kind)
