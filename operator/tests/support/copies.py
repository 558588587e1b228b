"""Copies of JSON values."""

from typing import TypeVar

import msgspec

T = TypeVar("T")

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


def copy_of(value: T) -> T:
    """Return a copy of a JSON value, as an API server sends it; several times as fast as `deepcopy`."""
    return _decode(_encode(value))  # type: ignore[no-any-return] # a JSON value is one again
