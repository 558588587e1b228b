"""Copies of JSON values."""

from typing import TypeVar

T = TypeVar("T")


def copy_of(value: T) -> T:
    """Return a copy of a JSON value; `deepcopy`, which also serves other objects, takes several times as long."""
    if isinstance(value, dict):
        return {name: copy_of(part) for name, part in value.items()}  # type: ignore[return-value]
    if isinstance(value, list | tuple):
        return [copy_of(part) for part in value]  # type: ignore[return-value]
    return value
