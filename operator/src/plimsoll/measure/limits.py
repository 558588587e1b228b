"""What a cluster can do at most, computed from its parts, and how much of that each layer gives.

    read limit  = min(clients * c, OSDs * d)
    write limit = min(clients * c, OSDs * j / amplification)
    efficiency  = measured / limit

with c what the network of one client carries, d what one OSD reads and j what one OSD writes, in bytes per second, and
an amplification of the number of replicas, or (k + m) / k for k data and m coding chunks. Source: Gudu, Hardt, Streit,
"Evaluating the Performance and Scalability of the Ceph Distributed Storage System" (IEEE Big Data 2014), table III,
where j is half of what the device writes if it holds the journal as well; BlueStore has no such journal.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from math import inf

from plimsoll.api.names import Operation, Verdict
from plimsoll.api.result import BenchmarkResult, OperationSummary
from plimsoll.measure.summary import counted

_DATA = (Operation.READ, Operation.WRITE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bytes per second, over all clients."""

    read: float
    write: float


class Layer(StrEnum):
    """From the bottom up."""

    OSD = "OSD"
    RADOS = "RADOS"
    RBD = "RBD"


LAYER_OF_TOOL = {"osdBench": Layer.OSD, "radosBench": Layer.RADOS, "rbdBench": Layer.RBD, "fio": Layer.RBD}


@dataclass(frozen=True, slots=True, kw_only=True)
class Best:
    """The best rate of a layer, for one quantity.

    Attributes:
        value: bytes or operations per second.
        point: whose mean it is; of the OSDs, whose trial it is.
        limit: what the layer below permits; None if that was not measured.

    """

    value: float
    point: str
    limit: float | None = None

    @property
    def efficiency(self) -> float | None:
        """Part of the limit; None without one."""
        return self.value / self.limit if self.limit else None


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerRow:
    """One operation at one layer. The best bytes and the best operations per second may be those of different points.

    Attributes:
        bytes_per_second: None if it was not measured.
        iops: likewise.

    """

    layer: Layer
    operation: Operation
    bytes_per_second: Best | None
    iops: Best | None


def amplification(*, replicas: int = 0, data_chunks: int = 0, coding_chunks: int = 0) -> float:
    """Return how many bytes the OSDs write for each byte of a client: replicas, or (k + m) / k.

    Raises:
        ValueError: neither replicas nor data chunks are given, or both, or one is negative.

    """
    if min(replicas, data_chunks, coding_chunks) < 0 or bool(replicas) == bool(data_chunks):
        message = f"needs replicas or data chunks, not {replicas} and {data_chunks} with {coding_chunks} coding chunks"
        raise ValueError(message)
    return float(replicas) if replicas else (data_chunks + coding_chunks) / data_chunks


def limits(  # the formula's own quantities
    *,
    clients: int,
    osds: int,
    disk_rate: float,
    write_rate: float,
    write_amplification: float,
    network_rate: float | None = None,
) -> Limits:
    """Return the most that all clients together can read and write: see above. Rates are bytes per second.

    Without a network rate the network is taken to be no limit.

    Raises:
        ValueError: there are no clients or OSDs, a rate is negative, or less is written than the clients write.

    """
    rates = (disk_rate, write_rate, 0.0 if network_rate is None else network_rate)
    if clients < 1 or osds < 1 or min(rates) < 0 or write_amplification < 1:
        raise ValueError("needs at least one client, one OSD and one written byte for each of a client's")
    network = inf if network_rate is None else clients * network_rate
    return Limits(read=min(network, osds * disk_rate), write=min(network, osds * write_rate / write_amplification))


def layers(
    results: Iterable[BenchmarkResult], *, write_amplification: float | None, network_rate: float | None = None
) -> tuple[LayerRow, ...]:
    """Return the best of each layer for reads and writes, bottom up, from the results of one run.

    A point counts if it is not Invalid and has a summary. The limit of RADOS is the rate of one OSD, on average, times
    the number of OSDs, for writes divided by the amplification; without that there is none. `osd bench` only writes:
    what OSDs read is not known from it. The limit of RBD is the best of RADOS. Neither can be more than the network of
    the clients carries, if `network_rate`, bytes per second of one client, is known. fio counts as RBD, so give results
    of runs on RBD only. A limit below what was measured is possible: then the layer below was not asked for its best.
    """
    believable = [result for result in results if _is_believable(result)]
    found = [*_osd_rows(believable)]
    below = _permitted(found, write_amplification)
    for layer in (Layer.RADOS, Layer.RBD):
        rows = [*_rows(layer, believable, below, network_rate)]
        found += rows
        below = {row.operation: (_value(row.bytes_per_second), _value(row.iops)) for row in rows}
    return tuple(found)


_Below = dict[Operation, tuple[float | None, float | None]]
"""What a layer permits: bytes and operations per second."""


def _is_believable(result: BenchmarkResult) -> bool:
    return result.status.summary is not None and result.status.verdict is not Verdict.INVALID


def _osd_rows(results: Collection[BenchmarkResult]) -> Iterator[LayerRow]:
    """Yield what all OSDs write, each alone, added up."""
    measured = [
        (result.spec.point, trial.osds)
        for result in results
        if LAYER_OF_TOOL.get(result.spec.tool) is Layer.OSD
        for trial in counted(result.status.trials)
        if trial.osds is not None
    ]
    if measured:
        yield LayerRow(
            layer=Layer.OSD,
            operation=Operation.WRITE,
            bytes_per_second=_best((osds.count * osds.mean_bytes_per_second, 1, name) for name, osds in measured),
            iops=_best((osds.count * osds.mean_iops, 1, name) for name, osds in measured),
        )


def _permitted(rows: Iterable[LayerRow], write_amplification: float | None) -> _Below:
    if not write_amplification:
        return {}
    return {
        row.operation: (
            _divided(_value(row.bytes_per_second), write_amplification),
            _divided(_value(row.iops), write_amplification),
        )
        for row in rows
    }


def _divided(value: float | None, by: float) -> float | None:
    return None if value is None else value / by


def _value(best: Best | None) -> float | None:
    return None if best is None else best.value


def _rows(
    layer: Layer, results: Collection[BenchmarkResult], below: _Below, network_rate: float | None
) -> Iterator[LayerRow]:
    for operation in _DATA:
        measured = [*_summaries(layer, operation, results)]
        if measured:
            volume, ios = below.get(operation, (None, None))
            rates = ((one.bytes_per_second.mean, clients, name) for name, clients, one in measured)
            yield LayerRow(
                layer=layer,
                operation=operation,
                bytes_per_second=_best(rates, volume, network_rate),
                iops=_best(((one.iops.mean, clients, name) for name, clients, one in measured), ios),
            )


def _summaries(
    layer: Layer, operation: Operation, results: Iterable[BenchmarkResult]
) -> Iterator[tuple[str, int, OperationSummary]]:
    """Yield every point of a layer that has the operation: its name, its clients, and what they did."""
    for result in results:
        spec, summary = result.spec, result.status.summary
        if summary is not None and LAYER_OF_TOOL.get(spec.tool) is layer:
            yield from ((spec.point, spec.clients, one) for one in summary.operations if one.operation is operation)


def _best(
    rates: Iterable[tuple[float, int, str]], below: float | None = None, network_rate: float | None = None
) -> Best | None:
    """Return the best of (rate, clients, point), and what the layer below and the network permit it."""
    value, clients, point = max(rates, default=(0.0, 1, ""))
    return Best(value=value, point=point, limit=_limit(clients, below, network_rate)) if value else None


def _limit(clients: int, below: float | None, network_rate: float | None) -> float | None:
    """Return what both permit: to the formula all that is below is one disk."""
    if below is None and network_rate is None:
        return None
    rate = inf if below is None else below
    return limits(
        clients=clients, osds=1, disk_rate=rate, write_rate=rate, write_amplification=1, network_rate=network_rate
    ).read
