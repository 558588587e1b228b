"""Whether the clients' hosts were the limit, and whether the I/O reached the intended storage.

What an agent cannot observe is absent: a local process, for example, has no cgroup of its own. Its check is skipped.
What an agent can always observe, and did not, is a finding of its own. `caches` checks the memory that may hold the
data, `devices` the storage below it.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from plimsoll.api.names import Operation
from plimsoll.api.result import Finding
from plimsoll.measure.checking import host_checks
from plimsoll.measure.checking.caches import ObservedClient, by_node, cached, numbers_of
from plimsoll.measure.checking.check import CheckedValue, evaluate
from plimsoll.measure.checking.devices import bypassed, direct_bytes, foreign_load, is_silent, unwitnessed
from plimsoll.measure.checking.evidence import Evidence
from plimsoll.measure.cluster import pool_io_within
from plimsoll.measure.intake import ClientMeasurement
from plimsoll.measure.sample import CpuUse, HostUse
from plimsoll.measure.series import Amount, Share, add
from plimsoll.measure.window import Interval
from plimsoll.measure.wording import number_text, percent_text, quote, size_text

_DATA = (Operation.READ, Operation.WRITE)
_NODE_CHARACTERS = 80
_WORDS_CHARACTERS = 200
_PERIODS_PER_SECOND = 10
"""Of a CPU quota, unless the kubelet's `cpuCFSQuotaPeriod` was changed."""


def judge_hosts(evidence: Evidence) -> tuple[Finding, ...]:
    """Return the findings, in the order of the table of checks."""
    measured = evidence.measured
    known = [(item, host) for item in measured if (host := item.answer.host) is not None]
    return (
        *evaluate(host_checks.HOST_UNKNOWN, _unknown(measured)),
        *evaluate(host_checks.CLIENT_THROTTLED, _throttled(known)),
        *evaluate(host_checks.CLIENT_CPU_SATURATED, _cpu_use(known)),
        *evaluate(host_checks.NODE_CPU_SATURATED, _busy_nodes(known)),
        *evaluate(host_checks.NODE_MEMORY_SHORT, _available_memory(known)),
        *(() if evidence.facts.measures_network else _judge_network(evidence, known)),
        *evaluate(host_checks.CACHE_SIZED, cached(known)),
        *evaluate(host_checks.WRONG_DEVICE, _foreign_targets(measured)),
        *evaluate(host_checks.DEVICE_BYPASSED, bypassed(known)),
        *evaluate(host_checks.CACHE_NOT_EXCLUDED, () if _is_counted_by_pools(evidence) else unwitnessed(known)),
        *evaluate(host_checks.FOREIGN_DEVICE_LOAD, foreign_load(known)),
    )


def _judge_network(evidence: Evidence, known: Sequence[ObservedClient]) -> tuple[Finding, ...]:
    return (
        *evaluate(host_checks.NETWORK_BOUND, [*_links(known), *_within_capacity(evidence)]),
        *evaluate(host_checks.FASTER_THAN_NETWORK, _parts_of_capacity(evidence, Operation.READ)),
        *evaluate(host_checks.WRITES_FASTER_THAN_NETWORK, _parts_of_capacity(evidence, Operation.WRITE)),
    )


def _is_counted_by_pools(evidence: Evidence) -> bool:
    """Whether the pools' counters show what reached Ceph: then `PoolCountersDisagree` judges caches, in a window.

    The kernel's client of CephFS has no block device and does not count direct I/O as the tool's.
    """
    watch, span = evidence.facts.cluster, evidence.span if evidence.window else None
    return bool(watch and watch.owns_file_system and span and pool_io_within(watch, span))


def _unknown(measured: Iterable[ClientMeasurement]) -> Iterator[CheckedValue]:
    for item in measured:
        host = item.answer.host
        if host is None:
            yield CheckedValue(clients=(item.client,), value=1, detail="its host was not observed")
        elif host.device is not None and is_silent(host.device) and direct_bytes(item):
            detail = f"the kernel keeps no statistics of its block device {quote(host.device.number, 20)}"
            yield CheckedValue(clients=(item.client,), value=1, detail=detail)


def _throttled(known: Iterable[ObservedClient]) -> Iterator[CheckedValue]:
    for item, host in known:
        if host.cpu.throttled_seconds is not None:
            yield _throttling(item, host, host.cpu.throttled_seconds)


def _throttling(item: ClientMeasurement, host: HostUse, seconds: float) -> CheckedValue:
    """Use the periods too: the kernel sums the time over CPUs, so it can exceed the observed time."""
    part, detail = 100 * seconds / host.seconds, f"its CPU quota stopped it for {number_text(seconds)} s"
    if periods := host.cpu.throttled_periods:
        part = min(part, 100 * periods / (host.seconds * _PERIODS_PER_SECOND))
        detail = f"{detail}, summed over CPUs, in {periods} periods"
    detail = f"{detail}, in {number_text(host.seconds)} s of observation: {percent_text(part)}"
    return CheckedValue(clients=(item.client,), value=part, detail=detail)


def _cpu_use(known: Iterable[ObservedClient]) -> Iterator[CheckedValue]:
    for item, host in known:
        if host.cpu.used is not None:
            yield CheckedValue(clients=(item.client,), value=100 * host.cpu.used / _usable_cpus(host.cpu))


def _usable_cpus(cpu: CpuUse) -> float:
    return min(cpu.limit or cpu.node_processors, cpu.node_processors)


def _busy_nodes(known: Iterable[ObservedClient]) -> Iterator[CheckedValue]:
    for node, clients in by_node(known).items():
        busy = 100 * max(host.cpu.node_busy for _, host in clients)
        detail = f"the CPUs of {quote(node, _NODE_CHARACTERS)} were busy for {percent_text(busy)} of the time"
        yield CheckedValue(clients=numbers_of(clients), value=busy, detail=detail)


def _available_memory(known: Iterable[ObservedClient]) -> Iterator[CheckedValue]:
    for node, clients in by_node(known).items():
        part = 100 * min(host.memory.node_available / host.memory.node_total for _, host in clients)
        detail = f"{quote(node, _NODE_CHARACTERS)} had {percent_text(part)} of its memory available"
        yield CheckedValue(clients=numbers_of(clients), value=part, detail=detail)


def _links(known: Iterable[ObservedClient]) -> Iterator[CheckedValue]:
    for item, host in known:
        if host.network.link is not None:
            busiest = max(host.network.received, host.network.sent)
            yield CheckedValue(clients=(item.client,), value=100 * busiest / host.network.link)


def _within_capacity(evidence: Evidence) -> Iterator[CheckedValue]:
    """Yield rates that the network can have carried: faster ones show nothing about the network."""
    most = host_checks.FASTER_THAN_NETWORK.invalid
    for operation in _DATA:
        for found in _parts_of_capacity(evidence, operation):
            if most is None or found.value <= most:
                yield found


def _parts_of_capacity(evidence: Evidence, operation: Operation) -> Iterator[CheckedValue]:
    """Yield each node's rate as a part of what the user says that its network can carry."""
    network, span = evidence.facts.network_bytes_per_second, evidence.span
    if network is None or span is None or not span.length:
        return
    nodes = defaultdict[str, list[ClientMeasurement]](list)
    for item in evidence.measured:
        # Benchmarks that OSDs run themselves use no client's network.
        if not item.measurement.osds:
            nodes[item.node].append(item)
    for node, clients in nodes.items():
        rate = _rate(clients, operation, span)
        part = 100 * rate / network
        detail = (
            f"{operation} {size_text(rate)}/s on {quote(node, _NODE_CHARACTERS)}, whose network can carry "
            f"{size_text(network)}/s: {percent_text(part)}"
        )
        yield CheckedValue(clients=tuple(item.client for item in clients), value=part, detail=detail)


def _rate(clients: Iterable[ClientMeasurement], operation: Operation, span: Interval) -> float:
    shares = [share for item in clients for share in item.shares if share.sample.operation is operation]
    return add([_share_rate(share, span) for share in shares]).bytes


def _share_rate(share: Share, span: Interval) -> Amount:
    """Return a client's rate in the window, or in the operation's own phase."""
    time = share.interval if share.is_phase else span
    return share.within(time).per_second(time.length)


def _foreign_targets(measured: Iterable[ClientMeasurement]) -> Iterator[CheckedValue]:
    for item in measured:
        if words := item.answer.document.foreign_target:
            yield CheckedValue(clients=(item.client,), value=1, detail=quote(words, _WORDS_CHARACTERS))
