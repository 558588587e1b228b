"""The base class of all document models (camelCase in JSON, closed, frozen), its rules, and types of fields."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, Self
from zoneinfo import ZoneInfo

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    PlainSerializer,
    Strict,
    model_validator,
)
from pydantic.alias_generators import to_camel

from plimsoll.api.errors import Problem, SpecError, shown
from plimsoll.api.names import format_numbers, parse_numbers
from plimsoll.api.quantity import QUANTITY_PATTERN, format_quantity, parse_quantity


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A condition on several fields, in CEL for the API server and in Python for documents that come from a file."""

    rule: str  # condition in CEL; `self` is the object or value with the rule
    message: str  # error and remedy, as a clause after the name of the field
    field_path: str = ""  # the field to change, within the object, such as `.volume.access`
    # Kubernetes' reason of the error, if it is not an invalid value
    reason: Literal["", "FieldValueForbidden", "FieldValueRequired"] = ""
    # The same condition in Python, on the valid model; None if a validator checks it, because its message depends on
    # the values, or if only the API server can, because it compares with the previous object.
    holds: Callable[[Any], bool] | None = None
    remedy: Callable[[Any], str] | None = None  # the message in Python, if it can name values

    def problem(self, checked: Any, document: JsonValue, place: str = "") -> Problem:  # noqa: ANN401 - as `holds`
        """Return the violation by what `holds` was asked about; `document` is that in JSON, `place` its path."""
        value = document
        for name in filter(None, self.field_path.split(".")):
            value = value.get(name) if isinstance(value, dict) else None
        return Problem(
            field=f"{place}{self.field_path}".removeprefix("."),
            value=shown(value).strip('"'),
            remedy=self.remedy(checked) if self.remedy else self.message,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerOnly:
    """Constraints of a field that only the API server checks; later annotations override earlier ones."""

    minimum: int | None = None  # smallest number
    above_minimum: bool = False  # whether the minimum itself is refused too
    max_length: int | None = None  # maximum number of characters, or of entries of a list or mapping
    pattern: str | None = None  # regular expression that the text must match
    format: str | None = None  # OpenAPI format, such as `date-time`
    int_or_string: bool = False  # whether both a number and text are accepted
    # How server-side apply merges a list; `set` also rejects duplicates. `atomic` if absent.
    list_type: Literal["set"] | None = None
    list_keys: tuple[str, ...] = ()  # fields that identify the entries of a list
    shape: Any = None  # type whose schema replaces the annotated one
    required: bool = False  # whether the field is required although the model has a default
    absent: bool = False  # whether the schema omits the field
    # Whether the value is a part of one of that shape, without defaults, rules and required fields, but for the keys of
    # lists
    part: bool = False
    part_without: tuple[str, ...] = ()  # fields that such a part cannot have


Integer = Annotated[int, Strict(), ServerOnly(format="int32")]
"""A whole number written by a user; like the API server, it rejects `"2"`, `2.0` and `true`."""

Flag = Annotated[bool, Strict()]  # written by a user; like the API server, it rejects `"yes"` and `1`
Count = Annotated[int, ServerOnly(minimum=0)]  # written by programs only; the API server rejects negative ones


ClientNumbers = Annotated[
    tuple[int, ...],
    BeforeValidator(parse_numbers),
    PlainSerializer(format_numbers, return_type=str),
    ServerOnly(shape=str, max_length=8192, pattern=r"^([0-9]{1,6}(-[0-9]{1,6})?(,[0-9]{1,6}(-[0-9]{1,6})?)*)?$"),
]
"""Numbers of clients, in JSON as ranges: `0-7,12`."""


def size_rules(low: int, high: int) -> tuple[Rule, ...]:
    """Return rules for the bounds of a quantity, which the API server cannot compare; in lists, patterns bound it."""
    least, most = format_quantity(low), format_quantity(high)
    in_bounds = Rule(
        rule=(
            f"type(self) == int ? self >= {low} && self <= {high} : "
            f"quantity(self).compareTo(quantity('{least}')) >= 0 && quantity(self).compareTo(quantity('{most}')) <= 0"
        ),
        message=f"must be from {least} to {most}",
    )
    whole = Rule(
        rule=(
            f"type(self) == int || quantity(self).compareTo(quantity('{most}')) > 0 || "
            "[quantity(self).asApproximateFloat()].all(bytes, "
            "bytes - double(int(bytes + 0.5)) <= bytes * 1e-15 && double(int(bytes + 0.5)) - bytes <= bytes * 1e-15)"
        ),
        message="must be a whole number of bytes",
    )
    return in_bounds, whole


Size = Annotated[
    int,
    BeforeValidator(parse_quantity),
    PlainSerializer(format_quantity, return_type=str),
    ServerOnly(int_or_string=True, max_length=32, pattern=QUANTITY_PATTERN),
]


def _check_time_zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        raise ValueError(
            "is not a known time zone; write a name of the time zone database, such as Europe/Berlin"
        ) from error
    return name


TimeZone = Annotated[
    str,
    Field(max_length=64),
    AfterValidator(_check_time_zone),
    ServerOnly(pattern=r"^[A-Za-z0-9+_-]+(/[A-Za-z0-9+_-]+)*$"),
]

BlockSize = Annotated[Size, ServerOnly(pattern=r"^([1-9][0-9]{0,3}Ki|([1-9]|[1-5][0-9]|6[0-4])Mi)$")]
"""A size of at most 64Mi; the API server accepts bytes, whole Ki and whole Mi."""


class Model(BaseModel):
    """A JSON document or a part of one.

    Unknown fields are errors, so that a typo never results in a silent default. The API server checks `rules` in
    addition to the fields' bounds. `kubectl explain` shows the docstring of a model and the texts below its
    fields. A model with `one_of` is a `Choice`.
    """

    rules: ClassVar[tuple[Rule, ...]] = ()
    one_of: ClassVar[tuple[str, ...]] = ()

    @model_validator(mode="after")
    def _check_rules(self) -> Self:
        broken = [rule for rule in self.rules if rule.holds and not rule.holds(self)]
        if broken:
            document = self.model_dump(mode="json")
            raise SpecError([rule.problem(self, document) for rule in broken])
        return self

    model_config = ConfigDict(
        defer_build=True,
        frozen=True,
        extra="forbid",
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
    )


class Choice(Model):
    """A union: exactly one of the fields in `one_of` is set, as the first of `rules` says."""

    @classmethod
    def __pydantic_init_subclass__(cls, **_: Any) -> None:  # noqa: ANN401 - the signature is pydantic's
        *others, last = names = [to_camel(name) for name in cls.one_of]
        present = ", ".join(f"has(self.{name})" for name in names)
        rule = Rule(
            rule=f"[{present}].filter(present, present).size() == 1",
            holds=lambda it: sum(getattr(it, name) is not None for name in it.one_of) == 1,
            message=f"must have exactly one of {', '.join(others)} and {last}",
        )
        cls.rules = (rule, *cls.rules)


Json = dict[str, JsonValue]


def without_field(document: Mapping[str, JsonValue], path: str) -> Json | None:
    """Return a copy of a document without the field at a path, which may name entries of lists; None if it has none."""
    if path in document:
        return {key: value for key, value in document.items() if key != path}
    for key, value in document.items():
        if not path.startswith(f"{key}."):
            continue
        fields: Mapping[str, JsonValue] = value if isinstance(value, dict) else {}
        if isinstance(value, list):
            named = {str(entry["name"]): entry for entry in value if isinstance(entry, dict) and "name" in entry}
            fields = named if len(named) == len(value) else {}
        if (rest := without_field(fields, path.removeprefix(f"{key}."))) is not None:
            return {**document, key: list(rest.values()) if isinstance(value, list) else rest}
    return None
