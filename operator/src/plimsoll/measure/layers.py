"""The most that a cluster can do, computed from its parts, and the part of it that each layer achieves.

    read limit  = min(clients * c, OSDs * d)
    write limit = min(clients * c, OSDs * j / amplification)
    efficiency  = measured / limit

with c the network rate of one client, d the read rate and j the write rate of one OSD, in bytes per second, and as
amplification the number of replicas, or (k + m) / k for k data and m coding chunks. Source: Gudu, Hardt, Streit,
"Evaluating the Performance and Scalability of the Ceph Distributed Storage System" (IEEE Big Data 2014), table III.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from statistics import fmean
from typing import NamedTuple

from plimsoll.api.names import Layer, Operation, Verdict
from plimsoll.api.result import BenchmarkResult
from plimsoll.measure.attempts import counted
from plimsoll.measure.checks.hosts import cache_sized
from plimsoll.measure.checks.load import phases_apart

TOO_HIGH = (cache_sized.reason, phases_apart.reason)  # findings on rates that may be higher than the storage's

_DATA = (Operation.READ, Operation.WRITE)
_FAST = 0.9  # the part of the fastest tool's rate from which on a tool shows the network rather than itself


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """What limits a layer."""

    below: float | None = None  # bytes or operations per second that the layer below permits; None if unknown
    layer: Layer | None = None  # the layer below; None without one
    client_rate: float | None = None  # bytes per second that the network carries for one client; None if unknown

    def at(self, clients: int) -> float | None:
        """Return the most that so many clients can do; None without a limit."""
        network = None if self.client_rate is None else clients * self.client_rate
        return min((rate for rate in (self.below, network) if rate is not None), default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Best:
    """The best rate of a layer, for one quantity."""

    value: float  # bytes or operations per second
    point: str  # the point with this mean
    clients: int  # how many clients share the load: all of the point, or the simultaneous senders of a network tool
    bound: Bound  # what limits it
    verdict: Verdict | None  # of the point; None while it is not finished

    @property
    def limit(self) -> float | None:
        """The rate that the layers below permit; None if that was not measured."""
        return self.bound.at(self.clients)

    @property
    def limited_by(self) -> Layer | None:
        """The layer that sets the limit; None without a limit."""
        if self.limit is None:
            return None
        return self.bound.layer if self.limit == self.bound.below else Layer.NETWORK

    @property
    def efficiency(self) -> float | None:
        return self.value / self.limit if self.limit else None


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerRow:
    """One operation at one layer; the best bytes and the best operations per second may come from different points."""

    layer: Layer
    operation: Operation
    bytes_per_second: Best | None  # None if not measured
    iops: Best | None


def layers(
    results: Collection[BenchmarkResult],
    layer_of: Mapping[str, Layer],
    *,
    write_amplification: float | None,
    network_rate: float | None = None,
    devices: Collection[BenchmarkResult] = (),
    at_once: Callable[[BenchmarkResult], int] = lambda result: result.spec.clients,
) -> tuple[LayerRow, ...]:
    """Return the best of each layer for reads and writes, bottom up, from the results of one run.

    `layer_of` maps tools to layers. `devices` are the results of another run, on block devices like the OSDs', each
    client on its own device: their mean rate times the number of OSDs limits the OSDs.

    A point counts if it is not Invalid, has a summary, and has no finding that its rates may be too high. The limit of
    RADOS is the mean rate of an OSD times the number of OSDs, for writes divided by the amplification; without an
    amplification writes have none. The best of RADOS limits RBD; the best of RBD, or of RADOS if RBD was not measured,
    limits a file system. No limit exceeds the network of the clients: what was measured for one client in this
    direction (`_carried_by_client`), or else `network_rate`, bytes per second as specified. `at_once` returns how many
    clients a tool of the network let send at the same time. fio counts as RBD or as a file system, so pass only results
    of runs on Ceph. A layer may exceed its limit: then the layer below was not measured at its best.
    """
    usable = defaultdict[Layer, list[BenchmarkResult]](list)
    for result in results:
        if result.spec.tool in layer_of and _is_usable(result):
            layer = layer_of[result.spec.tool]
            has_files = layer is Layer.RBD and result.status.environment.volume_file_system is not None
            usable[Layer.FILE_SYSTEM if has_files else layer].append(result)
    count, rows = osd_count(results), list[LayerRow]()
    for operation in _DATA:
        # Of as many devices as there are OSDs, or of the measured devices if that number is unknown.
        rates = [
            rate._replace(clients=1, bytes_per_second=rate.bytes_per_second * scale, iops=rate.iops * scale)
            for rate in _rates(operation, filter(_is_usable, devices))
            for scale in [(count or rate.clients) / rate.clients]
        ]
        rows += _row(Layer.DEVICE, operation, rates)
    below = {row.operation: row for row in rows} if count else {}
    # The sum of the write rates of all OSDs, each measured alone: the mean over the trials of a point.
    rates = []
    for result in usable[Layer.OSD]:
        if measured := [trial.osds for trial in counted(result.status.trials) if trial.osds is not None]:
            total = fmean(osds.count * osds.mean_bytes_per_second for osds in measured)
            iops = fmean(osds.count * osds.mean_iops for osds in measured)
            rates.append(_Rate(result, 1, total, iops))
    osds = [*_row(Layer.OSD, Operation.WRITE, rates, below.get(Operation.WRITE))]
    rows += osds
    below |= {row.operation: row for row in osds}
    writes = below.pop(Operation.WRITE, None)
    # What clients may write where OSDs may write that; unknown without the amplification.
    if writes is not None and write_amplification:
        volume, ios = (
            best and replace(best, value=best.value / write_amplification)
            for best in (writes.bytes_per_second, writes.iops)
        )
        below[Operation.WRITE] = replace(writes, bytes_per_second=volume, iops=ios)
    links = {
        operation: [rate._replace(clients=at_once(rate.result)) for rate in _rates(operation, usable[Layer.NETWORK])]
        for operation in _DATA
    }
    for operation, rates in links.items():
        rows += _row(Layer.NETWORK, operation, [rate._replace(iops=0.0) for rate in rates], client_rate=network_rate)
    carried = _carried_by_client(links, network_rate)
    for layer in (Layer.RADOS, Layer.RBD, Layer.FILE_SYSTEM):
        added = list[LayerRow]()
        for operation in _DATA:
            rates = _rates(operation, usable[layer])
            added += _row(layer, operation, rates, below.get(operation), carried[operation])
        rows += added
        below |= {row.operation: row for row in added}
    return tuple(rows)


def too_high(results: Iterable[BenchmarkResult]) -> tuple[str, ...]:
    """Return the points that do not count although they are not Invalid, because their rates may be too high."""
    return tuple(result.spec.point for result in results if _has_numbers(result) and not _is_usable(result))


def osd_count(results: Iterable[BenchmarkResult]) -> int | None:
    """Return the number of OSDs that hold the pool, of its device class if it has one; None if unknown.

    It is unknown for a pool with its own CRUSH root: the environment counts the OSDs of the whole cluster.
    """
    for result in results:
        pool, ceph = result.status.environment.pool, result.status.environment.ceph
        osds = ceph.osds if ceph else None
        counts = [trial.osds.count for trial in result.status.trials if trial.osds is not None]
        if osds is not None and pool and pool.device_class:
            counts.insert(0, (osds.device_classes or {}).get(pool.device_class, 0))
        elif osds is not None:
            counts.insert(0, osds.up or osds.count or 0)
        if not (pool and pool.crush_root is not None) and any(counts[:2]):
            return next(filter(None, counts))
    return None


class _Rate(NamedTuple):
    """The rates of a point, and the number of clients that loaded at the same time."""

    result: BenchmarkResult
    clients: int
    bytes_per_second: float
    iops: float


def _is_usable(result: BenchmarkResult) -> bool:
    return _has_numbers(result) and not any(finding.reason in TOO_HIGH for finding in result.status.findings)


def _has_numbers(result: BenchmarkResult) -> bool:
    return result.status.summary is not None and result.status.verdict is not Verdict.INVALID


def _carried_by_client(
    links: Mapping[Operation, Collection[_Rate]], network_rate: float | None
) -> Mapping[Operation, float | None]:
    """Return what the network carries for one client.

    The directions of a network can differ, but only a tool that measured both shows it. Otherwise the best rate counts
    for both: a lower one of another tool shows that tool. So does a tool far below another one in both directions.
    """
    shown = [
        (operation, rate.result.spec.tool, rate.bytes_per_second / rate.clients)
        for operation, rates in links.items()
        for rate in rates
    ]
    fastest = max((rate for _, _, rate in shown), default=network_rate)
    fast = {tool for _, tool, rate in shown if fastest is not None and rate >= _FAST * fastest}
    if not any({(operation, tool) for operation in _DATA} <= {link[:2] for link in shown} for tool in fast):
        return dict.fromkeys(_DATA, fastest)
    return {operation: max(rate for direction, _, rate in shown if direction is operation) for operation in _DATA}


def _rates(operation: Operation, results: Iterable[BenchmarkResult]) -> list[_Rate]:
    return [
        _Rate(result, result.spec.clients, numbers.bytes_per_second.mean, numbers.iops.mean)
        for result in results
        for numbers in (result.status.summary.operations if result.status.summary else ())
        if numbers.operation is operation
    ]


def _row(
    layer: Layer,
    operation: Operation,
    rates: Collection[_Rate],
    below: LayerRow | None = None,
    client_rate: float | None = None,
) -> Iterator[LayerRow]:
    if rates:
        volume = _best(rates, "bytes_per_second", below, client_rate)
        yield LayerRow(layer=layer, operation=operation, bytes_per_second=volume, iops=_best(rates, "iops", below))


def _best(
    rates: Iterable[_Rate], quantity: str, below: LayerRow | None, client_rate: float | None = None
) -> Best | None:
    """Return the greatest value, with its point; None if all are 0."""
    best = max(rates, key=lambda rate: (getattr(rate, quantity), rate.clients, rate.result.spec.point))
    if not (value := getattr(best, quantity)):
        return None
    lower: Best | None = getattr(below, quantity, None)
    limit, layer = lower.value if lower else None, below.layer if below else None
    bound = Bound(below=limit, layer=layer, client_rate=client_rate)
    point, verdict = best.result.spec.point, best.result.status.verdict
    return Best(value=value, point=point, clients=best.clients, bound=bound, verdict=verdict)
