"""The rates between pairs of clients: the cells of a trial, and their means over the trials of a point.

A point's matrix is extended trial by trial, because the cells of all trials would not fit into a result.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from plimsoll.api.result import Matrix, MatrixMember
from plimsoll.measure.intake import ClientMeasurement
from plimsoll.measure.timeline import rounded_iops


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
    nodes = {cell.client: cell.client_node for cell in ordered} | {cell.peer: cell.peer_node for cell in ordered}
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
    """Return a point's matrix with another trial that counts; with other pairs or nodes it starts again."""
    links = (trial.clients, trial.peers, trial.members)
    if before is None or (before.clients, before.peers, before.members) != links:
        return trial
    count = before.trials

    def mean(old: float, new: float) -> float:
        return (old * count + new) / (count + 1)

    merges: dict[str, Callable[[float, float], float]] = {
        "bytes_per_second": lambda old, new: round(mean(old, new)),
        "least_bytes_per_second": min,
        "iops": lambda old, new: rounded_iops(mean(old, new)),
        "least_iops": min,
        "retransmits": lambda old, new: round(mean(old, new)),
    }
    values = {name: (getattr(before, name), getattr(trial, name)) for name in merges}
    # A quantity that one matrix lacks is absent.
    merged = {name: None if None in pair else tuple(map(merges[name], *pair)) for name, pair in values.items()}
    outliers = tuple(sorted({*before.outliers, *trial.outliers}))
    return trial.model_copy(update={**merged, "trials": count + 1, "outliers": outliers})
