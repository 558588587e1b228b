"""Whether the clients' hosts were the limit, and whether the I/O went where it was meant to go.

What an agent could not observe is absent: a local process, for one, has no cgroup of its own. Such a check is not made;
what an agent always can observe, and did not, is a finding itself. `caches` looks at the memory that may hold the data,
`devices` at the storage below it.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator

from plimsoll.api.names import Operation
from plimsoll.api.result import Finding, HostSummary
from plimsoll.measure.checking import host_checks
from plimsoll.measure.checking.caches import Observed, by_node, cached, numbers_of
from plimsoll.measure.checking.check import Observation, evaluate
from plimsoll.measure.checking.devices import bypassed, direct_bytes, foreign_load, is_silent, unwitnessed
from plimsoll.measure.checking.evidence import Evidence
from plimsoll.measure.intake import Measured
from plimsoll.measure.sample import CpuUse, HostUse
from plimsoll.measure.series import add
from plimsoll.measure.window import Interval
from plimsoll.measure.wording import number_text, quote

_DATA = (Operation.READ, Operation.WRITE)
_NODE_CHARACTERS = 80
_WORDS_CHARACTERS = 200
_DECIMALS = 4
_PERCENT = 100
_PERIODS_PER_SECOND = 10
"""Of a CPU quota, unless somebody changed the kubelet's `cpuCFSQuotaPeriod`."""


def judge_hosts(evidence: Evidence) -> tuple[Finding, ...]:
    """Return what does not hold, in the order of the table of checks."""
    measured = evidence.measured
    known = [(item, host) for item in measured if (host := item.answer.host) is not None]
    return (
        *evaluate(host_checks.HOST_UNKNOWN, _unknown(measured)),
        *evaluate(host_checks.CLIENT_THROTTLED, _throttled(known)),
        *evaluate(host_checks.CLIENT_CPU_SATURATED, _processors(known)),
        *evaluate(host_checks.NODE_CPU_SATURATED, _busy_nodes(known)),
        *evaluate(host_checks.NODE_MEMORY_SHORT, _available_memory(known)),
        *evaluate(host_checks.NETWORK_BOUND, [*_links(known), *_carried(evidence)]),
        *evaluate(host_checks.FASTER_THAN_NETWORK, _parts_carried(evidence, Operation.READ)),
        *evaluate(host_checks.WRITES_FASTER_THAN_NETWORK, _parts_carried(evidence, Operation.WRITE)),
        *evaluate(host_checks.CACHE_SIZED, cached(known)),
        *evaluate(host_checks.WRONG_DEVICE, _foreign(measured)),
        *evaluate(host_checks.DEVICE_BYPASSED, bypassed(known)),
        *evaluate(host_checks.CACHE_NOT_EXCLUDED, unwitnessed(known)),
        *evaluate(host_checks.FOREIGN_DEVICE_LOAD, foreign_load(known)),
    )


def host_summary(host: HostUse) -> HostSummary:
    """Return what stands in the result."""
    device = host.device
    return HostSummary(
        cpu=_short(host.cpu.used),
        cpu_limit=_short(host.cpu.limit),
        throttled_seconds=_short(host.cpu.throttled_seconds),
        node_cpu_busy=round(host.cpu.node_busy, _DECIMALS),
        memory_bytes=host.memory.used,
        received_bytes_per_second=round(host.network.received),
        sent_bytes_per_second=round(host.network.sent),
        device_read_bytes_per_second=round(device.read) if device else None,
        device_written_bytes_per_second=round(device.written) if device else None,
        device_busy=min(1.0, round(device.busy, _DECIMALS)) if device else None,
        device_queue=round(device.queue, _DECIMALS) if device else None,
    )


def _short(value: float | None) -> float | None:
    return None if value is None else round(value, _DECIMALS)


def _unknown(measured: Iterable[Measured]) -> Iterator[Observation]:
    for item in measured:
        host = item.answer.host
        if host is None:
            yield Observation(clients=(item.client,), value=1, detail="its host was not observed")
        elif host.device is not None and is_silent(host.device) and direct_bytes(item):
            detail = f"the kernel keeps no statistics of its block device {quote(host.device.number, 20)}"
            yield Observation(clients=(item.client,), value=1, detail=detail)


def _throttled(known: Iterable[Observed]) -> Iterator[Observation]:
    for item, host in known:
        if host.cpu.throttled_seconds is not None:
            yield _throttling(item, host, host.cpu.throttled_seconds)


def _throttling(item: Measured, host: HostUse, seconds: float) -> Observation:
    """Look at the periods too: the kernel adds the time up over processors, so that it can be more than there was."""
    part, detail = _PERCENT * seconds / host.seconds, f"its CPU quota stopped it for {number_text(seconds)} s"
    if periods := host.cpu.throttled_periods:
        part = min(part, _PERCENT * periods / (host.seconds * _PERIODS_PER_SECOND))
        detail = f"{detail}, added up over processors, in {periods} periods"
    detail = f"{detail}, while it was observed for {number_text(host.seconds)} s: {part:.3g} %"
    return Observation(clients=(item.client,), value=part, detail=detail)


def _processors(known: Iterable[Observed]) -> Iterator[Observation]:
    for item, host in known:
        if host.cpu.used is not None:
            part = _PERCENT * host.cpu.used / _usable_processors(host.cpu)
            yield Observation(clients=(item.client,), value=part)


def _usable_processors(cpu: CpuUse) -> float:
    return min(cpu.limit or cpu.node_processors, cpu.node_processors)


def _busy_nodes(known: Iterable[Observed]) -> Iterator[Observation]:
    for node, clients in by_node(known).items():
        busy = _PERCENT * max(host.cpu.node_busy for _, host in clients)
        detail = f"the processors of {quote(node, _NODE_CHARACTERS)} were busy for {busy:.3g} % of the time"
        yield Observation(clients=numbers_of(clients), value=busy, detail=detail)


def _available_memory(known: Iterable[Observed]) -> Iterator[Observation]:
    for node, clients in by_node(known).items():
        part = _PERCENT * min(host.memory.node_available / host.memory.node_total for _, host in clients)
        detail = f"{quote(node, _NODE_CHARACTERS)} had {part:.3g} % of its memory available"
        yield Observation(clients=numbers_of(clients), value=part, detail=detail)


def _links(known: Iterable[Observed]) -> Iterator[Observation]:
    for item, host in known:
        if host.network.link is not None:
            busiest = max(host.network.received, host.network.sent)
            yield Observation(clients=(item.client,), value=_PERCENT * busiest / host.network.link)


def _carried(evidence: Evidence) -> Iterator[Observation]:
    """Compare with the user's figure; what the network cannot have carried says nothing about the network."""
    most = host_checks.FASTER_THAN_NETWORK.invalid
    for operation in _DATA:
        for observation in _parts_carried(evidence, operation):
            if most is None or observation.value <= most:
                yield observation


def _parts_carried(evidence: Evidence, operation: Operation) -> Iterator[Observation]:
    """Look at each node's bytes per second as a part of what the user says that its network can carry."""
    network, span = evidence.facts.network_bytes_per_second, evidence.span
    if network is None or span is None or not span.length:
        return
    nodes = defaultdict[str, list[Measured]](list)
    for item in evidence.measured:
        # What OSDs do by themselves goes through no client's network.
        if not item.measurement.osds:
            nodes[item.node].append(item)
    for node, clients in nodes.items():
        rate = _rate(clients, operation, span)
        part = _PERCENT * rate / network
        detail = (
            f"{operation} {number_text(rate)} bytes/s on {quote(node, _NODE_CHARACTERS)}, whose network can carry "
            f"{network}: {part:.3g} %"
        )
        yield Observation(clients=tuple(item.client for item in clients), value=part, detail=detail)


def _rate(clients: Iterable[Measured], operation: Operation, span: Interval) -> float:
    shares = [share for item in clients for share in item.shares if share.sample.operation is operation]
    return add([share.within(span) for share in shares]).per_second(span.length).bytes


def _foreign(measured: Iterable[Measured]) -> Iterator[Observation]:
    for item in measured:
        if words := item.answer.document.foreign_target:
            yield Observation(clients=(item.client,), value=1, detail=quote(words, _WORDS_CHARACTERS))
