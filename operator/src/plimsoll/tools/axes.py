"""Types of axes that several tools have."""

from typing import Annotated, TypeAlias

from pydantic import Field

from plimsoll.api.model import Integer
from plimsoll.api.quantity import BlockSize

BlockBytes: TypeAlias = Annotated[
    BlockSize,
    Field(
        ge=512,
        le=64 * 2**20,
        multiple_of=512,
        description="A number of bytes such as 512 or 4096, or a quantity such as 4Ki or 1Mi.",
    ),
]
"""Size of an operation on a volume or an image."""

MAX_DEPTH = 1024

Depth: TypeAlias = Annotated[Integer, Field(ge=1, le=MAX_DEPTH, description="Operations in flight.")]
