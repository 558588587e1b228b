"""Validation errors in the terms of a YAML author.

Every kind of error that a document can cause has its wording here. Other kinds keep the wording of pydantic.
"""

import difflib
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from pydantic_core import ErrorDetails

from plimsoll.api.names import (
    CEPH_NAME_PATTERN,
    DATA_KEY_PATTERN,
    DECIMAL_PATTERN,
    DNS_LABEL_PATTERN,
    HEALTH_CHECK_PATTERN,
    MONITOR_PATTERN,
    PARAMETER_PATTERN,
)
from plimsoll.api.quantity import format_quantity

_SHOWN_VALUE_CHARACTERS = 80
_LONG = 2**20
_SUGGESTIONS = 3

_FORMS = {
    DNS_LABEL_PATTERN: "must consist of lower-case letters, digits and '-', and begin and end with a letter or digit",
    CEPH_NAME_PATTERN: "must consist of letters, digits, '-', '_' and '.', and begin with a letter or digit",
    MONITOR_PATTERN: "must be an address such as 192.0.2.1:6789 or [v2:192.0.2.1:3300]",
    DATA_KEY_PATTERN: "must consist of letters, digits, '-', '_' and '.'",
    HEALTH_CHECK_PATTERN: "must be the name of a health check such as MON_DISK_LOW",
    DECIMAL_PATTERN: 'must be a decimal number such as "0.8"',
    PARAMETER_PATTERN: "must be clients, or a parameter of the tool such as ioDepth",
}
"""Pattern -> the form that it requires, in words."""

_KINDS = {
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "string_type": "text",
    "tuple_type": "a list",
    "list_type": "a list",
    "dict_type": "a mapping of fields",
    "mapping_type": "a mapping of fields",
    "model_type": "a mapping of fields",
    "model_attributes_type": "a mapping of fields",
}
"""Kind of error -> the expected type."""


def shown(value: object) -> str:
    """Return a value as the user wrote it, shortened; empty for an absent value, a list or a mapping."""
    if value is None or isinstance(value, dict | list | tuple):
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    text = json.dumps(value, ensure_ascii=False) if isinstance(value, str) else str(value)
    return text if len(text) <= _SHOWN_VALUE_CHARACTERS else text[: _SHOWN_VALUE_CHARACTERS - 1] + "…"


def unknown_field(name: str, known: Iterable[str]) -> str:
    """Return the remedy for an unknown field: the closest known one if there is one."""
    return f"is not a known field; {did_you_mean(name, known, 1) or 'remove it or correct its spelling'}"


def did_you_mean(name: str, known: Iterable[str], most: int = _SUGGESTIONS) -> str:
    """Return a question with the known names closest to a misspelled one; empty if none is close."""
    near = difflib.get_close_matches(name, known, n=most)
    return f"did you mean {' or '.join(near)}?" if near else ""


def remedy_of(details: ErrorDetails) -> str:
    """Return the error and its remedy as a clause that follows the field and its value."""
    kind, value, context = details["type"], details["input"], details.get("ctx", {})
    if kind in _KINDS or (value is None and kind != "value_error"):
        return _wrong_kind(_KINDS.get(kind, ""), value)
    wording = _WORDINGS.get(kind)
    return wording(context, value) if wording else _as_clause(details["msg"])


def _wrong_kind(expected: str, value: object) -> str:
    if value is None:
        return "is empty; give it a value, or remove it"
    if expected == "a list":
        example = f", such as [{value}]" if isinstance(value, str | int | float) else ""
        return f"must be a list{example}"
    if isinstance(value, list | tuple):
        return f"must be {expected}, not a list"
    if isinstance(value, dict):
        return f"must be {expected}, not a mapping"
    if expected == "text":
        return "must be text; put it in quotes"
    return f"must be {expected}"


def _bound(words: str, key: str) -> Callable[[Mapping[str, Any], object], str]:
    def wording(context: Mapping[str, Any], value: object) -> str:
        limit = context[key]
        # If the user wrote a quantity, or the number is too long to read, the limit is shown as a quantity as well.
        is_size = isinstance(limit, int) and (isinstance(value, str) or limit >= _LONG)
        quantity = format_quantity(limit) if is_size else str(limit)
        return f"must be {words} {limit}" + (f" ({quantity})" if quantity != str(limit) else "")

    return wording


def _pattern(context: Mapping[str, Any], _: object) -> str:
    pattern = str(context["pattern"])
    return _FORMS.get(pattern, f"must match the pattern {pattern}")


def _choice(context: Mapping[str, Any], value: object) -> str:
    expected = str(context["expected"]).replace("'", "")
    return _wrong_kind(expected, value)


def _count(words: str, key: str, one: str, many: str) -> Callable[[Mapping[str, Any], object], str]:
    def wording(context: Mapping[str, Any], _: object) -> str:
        count = context[key]
        return f"must have at {words} {count} {one if count == 1 else many}"

    return wording


def _as_clause(message: str) -> str:
    """Return the clause 'should be ...' of 'Input should be ...'."""
    text = message.removeprefix("Input ").removeprefix("Value ")
    return text[:1].lower() + text[1:]


_WORDINGS: Mapping[str, Callable[[Mapping[str, Any], object], str]] = {
    "missing": lambda _, __: "is required; add it",
    "extra_forbidden": lambda _, __: unknown_field("", ()),
    "value_error": lambda context, _: str(context["error"]),
    "json_invalid": lambda context, _: f"is not JSON: {context['error']}",
    "literal_error": _choice,
    "enum": _choice,
    "string_pattern_mismatch": _pattern,
    "greater_than_equal": _bound("at least", "ge"),
    "less_than_equal": _bound("at most", "le"),
    "greater_than": _bound("more than", "gt"),
    "less_than": _bound("less than", "lt"),
    "multiple_of": _bound("a multiple of", "multiple_of"),
    "too_short": _count("least", "min_length", "entry", "entries"),
    "too_long": _count("most", "max_length", "entry", "entries"),
    "string_too_short": _count("least", "min_length", "character", "characters"),
    "string_too_long": _count("most", "max_length", "character", "characters"),
}
