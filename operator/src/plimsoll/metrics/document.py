"""Reads the parts of stored objects that metrics need, and ignores all other fields.

The models of `plimsoll.api` reject unknown fields; a scrape must not fail because a later version wrote more.
"""

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import ValidationError

from plimsoll.api.model import Model

PartType = TypeVar("PartType", bound="Part")


class UnreadableError(ValueError):
    """A document is invalid; the message names the field."""


class Part(Model):
    """A part of a document; unknown fields are ignored."""

    model_config = Model.model_config | {"extra": "ignore"}


class Names(Part):
    """An object's metadata."""

    name: str
    namespace: str


def read(model: type[PartType], body: Mapping[str, Any]) -> PartType:
    """Return the parts of a document that the model names.

    Raises:
        UnreadableError: one of them is missing or invalid.

    """
    try:
        return model.model_validate(dict(body))
    except ValidationError as error:
        problem = error.errors(include_url=False, include_input=False)[0]
        raise UnreadableError(f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}") from error
