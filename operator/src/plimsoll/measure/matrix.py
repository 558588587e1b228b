"""The rates between pairs of clients: the cells of a trial, and their means over the trials of a point.

A point's matrix is extended trial by trial, because the cells of all trials would not fit into a result.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from plimsoll.api.result import Matrix, MatrixMember
from plimsoll.measure.intake import ClientMeasurement
from plimsoll.measure.timeline import rounded_iops

N = TypeVar("N", int, float)


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixCell:
    """The rates between a client and one that served it."""

    client: int
    peer: int
    client_node: str = ""  # empty if unknown
    peer_node: str = ""
    iops: float
    bytes_per_second: float
    retransmits: int | None = None  # TCP segments that were sent again; None if the tool does not report them
    round_trip_nanoseconds: float | None = None  # the median; None if the tool does not measure it
    is_outlier: bool = False  # whether its rate is far below the rates of comparable cells

    @property
    def is_local(self) -> bool:
        """Whether both are on one node, so that the traffic does not use the network between nodes."""
        return bool(self.client_node) and self.client_node == self.peer_node


def cells_of(measured: Iterable[ClientMeasurement], nodes: Mapping[int, str]) -> Iterator[MatrixCell]:
    """Yield the cells of a round; `nodes`: client -> its node."""
    for item in measured:
        for rate in sorted(item.measurement.peers, key=lambda rate: rate.peer):
            yield MatrixCell(
                client=item.client,
                peer=rate.peer,
                client_node=nodes.get(item.client, item.node),
                peer_node=nodes.get(rate.peer, ""),
                iops=rate.ios / rate.seconds,
                bytes_per_second=rate.bytes / rate.seconds,
                retransmits=rate.retransmits,
                round_trip_nanoseconds=rate.round_trip_nanoseconds,
            )


def matrix_of(cells: Iterable[MatrixCell]) -> Matrix | None:
    """Return the matrix of one trial; None without cells."""
    ordered = sorted(cells, key=lambda cell: (cell.client, cell.peer))
    if not ordered:
        return None
    nodes: dict[int, str] = {}
    for cell in ordered:
        nodes[cell.client], nodes[cell.peer] = cell.client_node, cell.peer_node
    volumes = tuple(round(cell.bytes_per_second) for cell in ordered)
    rates = tuple(rounded_iops(cell.iops) for cell in ordered) if any(cell.iops for cell in ordered) else None
    again = tuple(cell.retransmits for cell in ordered if cell.retransmits is not None)
    return Matrix(
        trials=1,
        members=tuple(MatrixMember(number=number, node=nodes[number]) for number in sorted(nodes)),
        clients=tuple(cell.client for cell in ordered),
        peers=tuple(cell.peer for cell in ordered),
        bytes_per_second=volumes,
        least_bytes_per_second=volumes,
        iops=rates,
        least_iops=rates,
        retransmits=again if len(again) == len(ordered) else None,
        outliers=tuple(place for place, cell in enumerate(ordered) if cell.is_outlier),
    )


def extended(before: Matrix | None, trial: Matrix) -> Matrix:
    """Return a point's matrix with another trial that counts.

    It starts again with a trial of other pairs or on other nodes, as after the replacement of a client: a mean of
    different links has no meaning.
    """
    links = (trial.clients, trial.peers, trial.members)
    if before is None or (before.clients, before.peers, before.members) != links:
        return trial
    count = before.trials
    iops = _means(before.iops, trial.iops, count)
    return trial.model_copy(
        update={
            "trials": count + 1,
            "bytes_per_second": _rounded(_means(before.bytes_per_second, trial.bytes_per_second, count)),
            "least_bytes_per_second": _least(before.least_bytes_per_second, trial.least_bytes_per_second),
            "iops": None if iops is None else tuple(map(rounded_iops, iops)),
            "least_iops": _least(before.least_iops, trial.least_iops),
            "retransmits": _rounded(_means(before.retransmits, trial.retransmits, count)),
            "outliers": tuple(sorted({*before.outliers, *trial.outliers})),
        }
    )


def _means(before: Sequence[float] | None, new: Sequence[float] | None, count: int) -> Sequence[float] | None:
    """Return the means over `count` trials and a new one; None if one of them lacks the quantity."""
    if before is None or new is None:
        return None
    return [(old * count + value) / (count + 1) for old, value in zip(before, new, strict=True)]


def _least(before: Sequence[N] | None, new: Sequence[N] | None) -> tuple[N, ...] | None:
    if before is None or new is None:
        return None
    return tuple(min(old, value) for old, value in zip(before, new, strict=True))


def _rounded(values: Sequence[float] | None) -> tuple[int, ...] | None:
    return None if values is None else tuple(round(value) for value in values)
