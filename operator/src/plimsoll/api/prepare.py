"""How every volume is prepared before it is measured."""

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from plimsoll.api.errors import Problem, SpecError
from plimsoll.api.model import Flag, Integer, Model
from plimsoll.api.quantity import BlockSize
from plimsoll.api.schema import Rule

Percent = Annotated[Integer, Field(ge=1, le=100)]


class Precondition(Model):
    """Random overwrites of the prefilled data set, so that the storage is measured in a used state.

    Attributes:
        block_size: Size of each write, from 512 to 64Mi, a multiple of 512. Write bytes, whole Ki (at most 9999Ki) or
            whole Mi.
        seconds: Duration of the overwriting by each client.

    """

    block_size: Annotated[BlockSize, Field(ge=512, le=64 * 2**20, multiple_of=512)] = 65536
    seconds: Annotated[Integer, Field(ge=1, le=24 * 3600)] = 600


_PREFILL_REQUIRED = (
    "must be true, because precondition overwrites prefilled data; set it to true, or remove precondition"
)
_WRITTEN_OR_DISCARDED = (
    "must be absent unless prefill or discard is true, because nothing else renews the data set; set one of them to "
    "true, or remove perTrial"
)


class Prepare(Model):
    """Preparation of every volume before the first trial, in this order: discard, prefill, precondition, settle.

    Attributes:
        prefill: Write the whole data set once, because storage answers reads of unwritten extents without any I/O.
        precondition: Overwrite the data set at random after the prefill, so that the storage is measured in a used
            state. Not done if absent.
        discard: Discard the volume before it is written, if it supports that.
        drop_caches: Drop the page caches, dentries and inodes of the clients' nodes before every trial. Requires the
            administrator's permission; in local mode, root.
        settle_seconds: Time to wait after that, until background work of the storage is done.
        fill_percent: Part of a file system that the data set uses; the file system needs some space itself.
        per_trial: With NewDataSet, every attempt begins with this whole preparation, so that no trial depends on what
            earlier ones wrote. Requires prefill or discard; without prefill, the storage has to support discard. Done
            once, before the first trial, if absent.

    """

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            rule="self.prefill || !has(self.precondition)",
            message=_PREFILL_REQUIRED,
            field_path=".prefill",
        ),
        Rule(
            rule="!has(self.perTrial) || self.prefill || self.discard",
            message=_WRITTEN_OR_DISCARDED,
            field_path=".perTrial",
        ),
    )

    prefill: Flag = True
    precondition: Precondition | None = None
    discard: Flag = True
    drop_caches: Flag = False
    settle_seconds: Annotated[Integer, Field(ge=0, le=24 * 3600)] = 10
    fill_percent: Percent = 80
    per_trial: Literal["NewDataSet"] | None = None

    @model_validator(mode="after")
    def _check_precondition(self) -> Self:
        if self.precondition is not None and not self.prefill:
            raise SpecError([Problem(field="prefill", value="false", remedy=_PREFILL_REQUIRED)])
        return self

    @model_validator(mode="after")
    def _check_per_trial(self) -> Self:
        if self.per_trial and not (self.prefill or self.discard):
            raise SpecError([Problem(field="perTrial", value=self.per_trial, remedy=_WRITTEN_OR_DISCARDED)])
        return self
