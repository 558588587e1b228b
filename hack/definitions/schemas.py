"""Models as structural schemas: OpenAPI v3 as a kube-apiserver accepts it in a CustomResourceDefinition."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from annotated_types import Ge, Le, MaxLen, MinLen, MultipleOf
from pydantic import JsonValue
from pydantic.fields import FieldInfo

from definitions.descriptions import attributes, of_type, summary
from definitions.parts import Schema, part_of
from plimsoll.api.model import Model, Rule, ServerOnly, size_rules
from plimsoll.api.quantity import QUANTITY_PATTERN, format_quantity
from plimsoll.api.run import MAX_AXIS_VALUES, RunSpec, Workload
from plimsoll.plan.refusals import run_rules, workload_rules
from plimsoll.tools.base import ToolParameters
from plimsoll.tools.registry import TOOLS

_SCALARS = {
    int: {"type": "integer", "format": "int64"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    str: {"type": "string"},
}
_LENGTHS = {"string": "Length", "array": "Items", "object": "Properties"}
_INSIDE = ("properties", "additionalProperties", "items")


def described(model: type[Model], *, defaults: bool) -> Schema:
    """Return the schema of a model with its description; with the defaults of its fields, or without."""
    return {"description": summary(model), **_object(model, defaults=defaults)}


def with_default(schema: Schema, default: JsonValue) -> Schema:
    """Return the schema with a default, placed before nested schemas."""
    inside = {key: schema[key] for key in _INSIDE if key in schema}
    return {key: value for key, value in schema.items() if key not in inside} | {"default": default} | inside


def validations(rules: Iterable[Rule]) -> Schema:
    """Return the rules as a part of a schema."""
    found = [
        {"rule": rule.rule, "message": rule.message}
        | ({"reason": rule.reason} if rule.reason else {})
        | ({"fieldPath": rule.field_path} if rule.field_path else {})
        for rule in rules
    ]
    return {"x-kubernetes-validations": found} if found else {}


# -- objects


def _object(model: type[Model], *, defaults: bool) -> Schema:
    fields = {info.alias or name: (name, info) for name, info in model.model_fields.items() if not _is_absent(info)}
    required = sorted(alias for alias, (_, info) in fields.items() if _is_required(info))
    properties = {
        alias: {"description": _description(model, name, info), **_field(model, info, defaults=defaults)}
        for alias, (name, info) in fields.items()
    }
    if issubclass(model, Workload):
        properties |= {key: described(tool.parameters, defaults=defaults) for key, tool in TOOLS.items()}
    return {
        "type": "object",
        **({"required": required} if required else {}),
        **validations(_rules(model)),
        "properties": properties,
    }


def _rules(model: type[Model]) -> tuple[Rule, ...]:
    """Return the rules of a model, including those that follow from the tools."""
    if issubclass(model, Workload):
        return (*workload_rules(TOOLS), *model.rules)
    return (*run_rules(TOOLS), *model.rules) if issubclass(model, RunSpec) else model.rules


def _description(model: type[Model], name: str, info: FieldInfo) -> str:
    found = attributes(model).get(name) or of_type(*_unwrapped(info.annotation, [*info.metadata, info]))
    if not found:
        message = f"{model.__name__}.{name} has no description; add it below the field"
        raise ValueError(message)
    return found


def _field(model: type[Model], info: FieldInfo, *, defaults: bool) -> Schema:
    schema = _value(info.annotation, info.metadata, defaults=defaults)
    default = _default(info) if defaults and not _is_required(info) else None
    if issubclass(model, ToolParameters) and info.alias in model.axes:
        limits = {"minItems": 1, "maxItems": MAX_AXIS_VALUES}
        items = {"description": info.description, **schema}
        schema = {"type": "array", "x-kubernetes-list-type": "set", **limits, "items": items}
        default = None if default is None else (default,)
    is_quantity = schema.get("items", schema).get("x-kubernetes-int-or-string", False)
    return schema if default is None else with_default(schema, _plain_default(default, is_quantity=is_quantity))


def _default(info: FieldInfo) -> Any:  # noqa: ANN401 - any value
    """Return the default of a field; None if there is none, or if it depends on other fields."""
    return None if info.default_factory_takes_validated_data else info.get_default(call_default_factory=True)


def _plain_default(value: Any, *, is_quantity: bool) -> Any:  # noqa: ANN401 - JSON
    """Return a default as JSON, empty for a model, because the API server adds the defaults of its fields."""
    if isinstance(value, Model):
        if value != type(value)():
            message = f"the default of a {type(value).__name__} must be that of its fields"
            raise ValueError(message)
        return {}
    if isinstance(value, tuple):
        return [_plain_default(entry, is_quantity=is_quantity) for entry in value]
    if isinstance(value, Enum):
        return value.value
    return format_quantity(value) if is_quantity else value


def _is_absent(info: FieldInfo) -> bool:
    return any(isinstance(note, ServerOnly) and note.absent for note in info.metadata)


def _is_required(info: FieldInfo) -> bool:
    return info.is_required() or any(isinstance(note, ServerOnly) and note.required for note in info.metadata)


# -- values


def _value(annotation: Any, metadata: Sequence[object] = (), *, defaults: bool) -> Schema:  # noqa: ANN401 - any type
    """Return the schema of a type, without its description."""
    plain, notes = _unwrapped(annotation, metadata)
    if isinstance(plain, type) and issubclass(plain, Model):
        parts = [note for note in notes if isinstance(note, ServerOnly) and note.part]
        return _part(plain, parts[-1]) if parts else _object(plain, defaults=defaults)
    if get_origin(plain) is tuple:
        items = _inner(get_args(plain)[0], defaults=defaults)
        return {"type": "array", **_list_type(notes), **_bounds(notes, "array"), "items": items}
    if get_origin(plain) in (dict, Mapping):
        value = get_args(plain)[1]
        if value is JsonValue:
            return {"type": "object", **_bounds(notes, "object"), "x-kubernetes-preserve-unknown-fields": True}
        values = _inner(value, defaults=defaults)
        return {"type": "object", **_bounds(notes, "object"), "additionalProperties": values}
    return _scalar(plain, notes)


def _part(model: type[Model], note: ServerOnly) -> Schema:
    return part_of(_object(model, defaults=False), note.part_without)


def _inner(annotation: Any, *, defaults: bool) -> Schema:  # noqa: ANN401 - any type
    """Return the schema of the entries of a list or mapping; the description of the field may be enough."""
    description = of_type(*_unwrapped(annotation))
    return {**({"description": description} if description else {}), **_value(annotation, defaults=defaults)}


def _scalar(plain: Any, notes: Sequence[object]) -> Schema:  # noqa: ANN401 - any type
    if plain is JsonValue:
        return {"x-kubernetes-preserve-unknown-fields": True}
    bounds = _bounds(notes, "string")
    rules = [note for note in notes if isinstance(note, Rule)]
    if any(isinstance(note, ServerOnly) and note.int_or_string for note in notes):
        if bounds["pattern"] == QUANTITY_PATTERN and "minimum" in bounds:
            rules += size_rules(bounds.pop("minimum"), bounds.pop("maximum"))
        return {"x-kubernetes-int-or-string": True, **validations(rules), **bounds}
    if get_origin(plain) is Literal:
        return {"type": "string", "enum": list(get_args(plain))}
    if issubclass(plain, Enum):
        return {"type": "string", "enum": [member.value for member in plain]}
    return _SCALARS[plain] | validations(rules) | bounds


def _list_type(notes: Iterable[object]) -> Schema:
    found: Schema = {"x-kubernetes-list-type": "atomic"}
    for note in notes:
        if isinstance(note, ServerOnly) and note.list_keys:
            found = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(note.list_keys)}
        elif isinstance(note, ServerOnly) and note.list_type:
            found = {"x-kubernetes-list-type": note.list_type}
    return found


def _bounds(notes: Iterable[object], kind: str) -> Schema:
    """Return the bounds of a value; a later one overrides an earlier one."""
    least, most = f"min{_LENGTHS[kind]}", f"max{_LENGTHS[kind]}"
    found: Schema = {}
    for note in notes:
        match note:
            case Ge(ge=bound):
                found["minimum"] = bound
            case Le(le=bound):
                found["maximum"] = bound
            case MultipleOf(multiple_of=bound):
                found["multipleOf"] = bound
            case MinLen(min_length=bound):
                found[least] = bound
            case MaxLen(max_length=bound):
                found[most] = bound
            case ServerOnly():
                own = {"format": note.format, "minimum": note.minimum, most: note.max_length}
                found |= {name: bound for name, bound in own.items() if bound is not None}
                found |= {"exclusiveMinimum": True} if note.above_minimum else {}
        # Pydantic's class for patterns is not public.
        pattern = getattr(note, "pattern", None)
        found |= {} if pattern is None else {"pattern": pattern}
    return found


# -- annotations


def _unwrapped(annotation: Any, metadata: Sequence[object] = ()) -> tuple[Any, list[object]]:  # noqa: ANN401 - any type
    """Return a type without None and annotations, and its annotations, the innermost first."""
    if get_origin(annotation) is Annotated:
        inner, *own = get_args(annotation)
        return _unwrapped(inner, [*own, *metadata])
    if get_origin(annotation) in (Union, UnionType):
        (inner,) = (choice for choice in get_args(annotation) if choice is not NoneType)
        return _unwrapped(inner, metadata)
    notes = list(_one_by_one(metadata))
    shapes = [note.shape for note in notes if isinstance(note, ServerOnly) and note.shape is not None]
    if not shapes:
        return annotation, notes
    plain, inner_notes = _unwrapped(shapes[-1])
    return plain, [*inner_notes, *notes]


def _one_by_one(metadata: Iterable[object]) -> Iterator[object]:
    """Yield the annotations of a type, and the bounds of every `Field()`."""
    for note in metadata:
        if isinstance(note, FieldInfo):
            yield from note.metadata
        yield note
