"""The base of every document model: camelCase on the wire, closed, frozen."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Strict
from pydantic.alias_generators import to_camel

Integer = Annotated[int, Strict()]
"""A whole number that a user writes. As at the API server, `"2"`, `2.0` and `true` are none."""

Flag = Annotated[bool, Strict()]
"""A truth value that a user writes. As at the API server, `"yes"` and `1` are none."""


class Model(BaseModel):
    """A JSON document or a part of one.

    Unknown fields are refused: a typo must never become a silent default.
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
    )
