"""The rates between pairs of clients; a part of a `BenchmarkResult`.

A matrix of 64 by 64 clients has 4096 cells, so that they are stored once per point and column by column.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Self, TypeVar

from pydantic import Field, model_validator

from plimsoll.api.model import Count, Model
from plimsoll.api.operation import Rate
from plimsoll.api.schema import ServerOnly

N = TypeVar("N", int, float)

_MAX_CELLS = ServerOnly(max_length=4096)

_Client = Annotated[Count, Field(description="Number of a client.")]
_Bytes = Annotated[Count, Field(description="One cell.")]
_Iops = Annotated[Rate, Field(description="One cell.")]
_Retransmits = Annotated[Count, Field(description="One cell.")]
_Outlier = Annotated[Count, Field(description="Position of a cell.")]


class MatrixMember(Model):
    """A client of the matrix with its node.

    Attributes:
        number: Number of the client.
        node: Node of the client in the last trial that counts.

    """

    number: Count
    node: Annotated[str, ServerOnly(max_length=253)]


_Member = Annotated[MatrixMember, Field(description="One client.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """One cell over the trials.

    Attributes:
        iops: None if the tool does not count operations.
        least_bytes_per_second: of the worst trial; None if it had no room in the result.
        least_iops: likewise.
        retransmits: mean over the trials; None if the tool does not report them.

    """

    client: int
    peer: int
    bytes_per_second: int
    least_bytes_per_second: int | None
    iops: float | None
    least_iops: float | None
    retransmits: int | None
    is_outlier: bool


class Matrix(Model):
    """Rates between pairs of a client and one that served it, over the trials that count.

    The lists with a value per cell have the same order.

    Attributes:
        trials: Number of trials that count.
        members: The clients of all cells with their nodes.
        clients: Client of each cell that generated the load.
        peers: Client of each cell that served it.
        bytes_per_second: Mean of each cell over the trials, in bytes per second.
        least_bytes_per_second: The lowest of each cell over the trials, in bytes per second; absent if the result would
            be too large.
        iops: Mean of each cell over the trials, in operations per second; absent if the tool does not count operations.
        least_iops: The lowest of each cell over the trials, in operations per second; likewise.
        retransmits: TCP segments that were sent again, mean of each cell over the trials; absent if the tool does not
            report them.
        outliers: Positions, from 0, of the cells whose rate was far below those of comparable cells in at least one of
            the trials; see the finding LinkOutlier.

    """

    trials: Count
    members: Annotated[tuple[_Member, ...], ServerOnly(max_length=2048)]
    clients: Annotated[tuple[_Client, ...], _MAX_CELLS]
    peers: Annotated[tuple[_Client, ...], _MAX_CELLS]
    bytes_per_second: Annotated[tuple[_Bytes, ...], _MAX_CELLS]
    least_bytes_per_second: Annotated[tuple[_Bytes, ...], _MAX_CELLS] | None = None
    iops: Annotated[tuple[_Iops, ...], _MAX_CELLS] | None = None
    least_iops: Annotated[tuple[_Iops, ...], _MAX_CELLS] | None = None
    retransmits: Annotated[tuple[_Retransmits, ...], _MAX_CELLS] | None = None
    outliers: Annotated[tuple[_Outlier, ...], _MAX_CELLS] = ()

    @model_validator(mode="after")
    def _check_lengths(self) -> Self:
        optional = (self.least_bytes_per_second, self.iops, self.least_iops, self.retransmits)
        lengths = {len(one) for one in (self.peers, self.bytes_per_second, *optional) if one is not None}
        if lengths != {len(self.clients)} or any(place >= len(self.clients) for place in self.outliers):
            message = "must have one value for each cell in every list"
            raise ValueError(message)
        return self

    @property
    def nodes(self) -> dict[int, str]:
        """Number of a client -> its node."""
        return {member.number: member.node for member in self.members}

    @property
    def counts_bytes(self) -> bool:
        """Whether cells are compared by bytes; otherwise by operations."""
        return any(self.bytes_per_second) or self.iops is None

    def pairs(self) -> Iterator[Pair]:
        """Yield the cells in their order."""
        outliers = set(self.outliers)
        for place, (client, peer) in enumerate(zip(self.clients, self.peers, strict=True)):
            yield Pair(
                client=client,
                peer=peer,
                bytes_per_second=self.bytes_per_second[place],
                least_bytes_per_second=_at(self.least_bytes_per_second, place),
                iops=_at(self.iops, place),
                least_iops=_at(self.least_iops, place),
                retransmits=_at(self.retransmits, place),
                is_outlier=place in outliers,
            )


def _at(values: Sequence[N] | None, place: int) -> N | None:
    return None if values is None else values[place]
