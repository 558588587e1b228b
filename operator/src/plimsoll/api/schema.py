"""Annotations for CRDs: rules in CEL, and bounds that only the API server checks. They do not affect the models.

`hack/crds.py` generates crds/ from the models. The descriptions come from the docstring of a model and the entries of
its `Attributes:`.
"""

from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A rule of the API server: in `rules` of a model, or in the annotation of a field.

    The model checks the same in Python, for runs that are read from a file.

    Attributes:
        rule: condition in CEL; `self` is the object or value with the rule.
        message: error and remedy, as a clause after the name of the field.
        field_path: the field to change, within the object, such as `.volume.access`.
        reason: Kubernetes' reason of the error, if it is not an invalid value.

    """

    rule: str
    message: str
    field_path: str = ""
    reason: Literal["", "FieldValueForbidden", "FieldValueRequired"] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerOnly:
    """Constraints of a field that only the API server checks.

    They are bounds of fields that only programs write, and constraints that Kubernetes checks anyway. With several
    annotations, later ones override earlier ones.

    Attributes:
        minimum: smallest number.
        above_minimum: whether the minimum itself is refused too.
        max_length: maximum number of characters, or of entries of a list or mapping.
        pattern: regular expression that the text must match.
        format: OpenAPI format, such as `date-time`.
        int_or_string: whether both a number and text are accepted.
        list_type: how server-side apply merges a list; `set` also rejects duplicates. `atomic` if absent.
        list_keys: fields that identify the entries of a list.
        shape: type whose schema replaces the annotated one.
        required: whether the field is required although the model has a default.
        absent: whether the schema omits the field.
        part: whether the value is a part of one of that shape, without defaults, rules and required fields, but for
            the keys of lists.
        part_without: fields that such a part cannot have.

    """

    minimum: int | None = None
    above_minimum: bool = False
    max_length: int | None = None
    pattern: str | None = None
    format: str | None = None
    int_or_string: bool = False
    list_type: Literal["set"] | None = None
    list_keys: tuple[str, ...] = ()
    shape: Any = None
    required: bool = False
    absent: bool = False
    part: bool = False
    part_without: tuple[str, ...] = ()
