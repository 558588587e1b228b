"""The base class of all document models: camelCase in JSON, closed, frozen."""

from typing import Annotated, ClassVar

from pydantic import BaseModel, ConfigDict, Strict
from pydantic.alias_generators import to_camel

from plimsoll.api.schema import Rule, ServerOnly

Integer = Annotated[int, Strict(), ServerOnly(format="int32")]
"""A whole number written by a user; like the API server, it rejects `"2"`, `2.0` and `true`."""

Flag = Annotated[bool, Strict()]
"""A boolean written by a user; like the API server, it rejects `"yes"` and `1`."""

Count = Annotated[int, ServerOnly(minimum=0)]
"""A whole number that only programs write; the API server rejects negative ones."""


class Model(BaseModel):
    """A JSON document or a part of one.

    Unknown fields are errors, so that a typo never results in a silent default. The API server checks `rules` in
    addition to the fields' bounds. `kubectl explain` shows the docstring of a model and the entries of its
    `Attributes:`. A model with `one_of` is a union: exactly one of these fields is set.
    """

    rules: ClassVar[tuple[Rule, ...]] = ()
    one_of: ClassVar[tuple[str, ...]] = ()

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=to_camel,
        validate_by_name=True,
        validate_by_alias=True,
        serialize_by_alias=True,
    )

    @property
    def has_one_choice(self) -> bool:
        """Whether exactly one of the fields in `one_of` is set."""
        return sum(getattr(self, name) is not None for name in self.one_of) == 1
