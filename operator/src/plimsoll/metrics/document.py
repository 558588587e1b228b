"""Reading what the API server stores for Prometheus: only the fields that it is told, whatever else stands there.

The models of `plimsoll.api` refuse what they do not know; a scrape shall not end because a later version wrote more.
"""

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import ValidationError

from plimsoll.api.model import Model

PartType = TypeVar("PartType", bound="Part")


class UnreadableError(ValueError):
    """A document is not what it should be; the message says where."""


class Part(Model):
    """A part of a document; what it does not name is left aside."""

    model_config = Model.model_config | {"extra": "ignore"}


class Names(Part):
    """An object's metadata."""

    name: str
    namespace: str


def read(model: type[PartType], body: Mapping[str, Any]) -> PartType:
    """Return the parts of a document that the model names.

    Raises:
        UnreadableError: if one of them is missing or is something else.

    """
    try:
        return model.model_validate(dict(body))
    except ValidationError as error:
        problem = error.errors(include_url=False, include_input=False)[0]
        raise UnreadableError(f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}") from error
