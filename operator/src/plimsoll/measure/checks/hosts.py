"""Whether the clients, their nodes or the network between them and the storage were the limit."""

from plimsoll.api.names import Cause, Operation, Verdict
from plimsoll.measure.checks.activities import judged, throttling
from plimsoll.measure.checks.check import CheckedValue, CheckedValues, Direction, client_value
from plimsoll.measure.checks.devices import direct_bytes, has_statistics
from plimsoll.measure.checks.effect import NEGLIGIBLE_TIME
from plimsoll.measure.checks.evidence import Evidence, TrialCheck, by_node, value_of_clients
from plimsoll.measure.rates import grouped
from plimsoll.measure.text import number_text, percent_text, quote, size_text
from plimsoll.measure.timeline import add


@TrialCheck(
    reason="HostUnknown",
    what="clients whose host or block device could not be observed",
    suspect=0,
    remedy="see the agent's log and check that its /proc shows the node; whether the client was the limit is unknown",
)
def host_unknown(evidence: Evidence) -> CheckedValues:
    for item in evidence.measured:
        host = item.answer.host
        if host is None:
            yield client_value(item.client, 1, "its host was not observed")
        elif host.device is not None and not has_statistics(host.device) and direct_bytes(item):
            detail = f"the kernel keeps no statistics of its block device {quote(host.device.number, 20)}"
            yield client_value(item.client, 1, detail)


@TrialCheck(
    reason="ClientThrottled",
    cause=Cause.HARNESS,
    what=(
        "periods in which the CPU quota stopped the client, as a part of all periods, or stopped time, as a "
        "part of the measured time, if that is less; Suspect unless the client's rate, median and 99th percentile were "
        "no worse in the seconds with such periods"
    ),
    unit="%",
    suspect=0,
    invalid=10,
    remedy="raise or remove the CPU limit in spec.clients.resources; for a local run, that of its cgroup",
)
def client_throttled(evidence: Evidence) -> CheckedValues:
    for item, host in evidence.observed:
        activity, seconds = throttling((item, host)), host.cpu.throttled_seconds
        if activity is None or not seconds:
            continue
        part, detail = 100 * activity.part, f"its CPU quota stopped it for {number_text(seconds)} s"
        if host.cpu.throttled_periods:
            detail = f"{detail}, summed over CPUs, in {host.cpu.throttled_periods} periods"
        detail = f"{detail}, in {number_text(host.seconds)} s of observation: {percent_text(part)}"
        effect = judged(evidence, activity)
        is_harmless = activity.part < NEGLIGIBLE_TIME or effect.is_harmless
        passes = is_harmless and client_throttled.verdict(part) is not Verdict.INVALID
        yield client_value(item.client, 0 if passes else part, f"{detail}; {effect.text}")


@TrialCheck(
    reason="ClientCpuSaturated",
    what="CPU time that the client used, as a part of what it may use",
    unit="%",
    suspect=90,
    remedy="give the clients more CPU, or share the load among more clients",
)
def client_cpu_saturated(evidence: Evidence) -> CheckedValues:
    for item, host in evidence.observed:
        cpu = host.cpu
        if cpu.used is not None:
            usable = min(cpu.limit or cpu.node_processors, cpu.node_processors)
            yield client_value(item.client, 100 * cpu.used / usable)


@TrialCheck(
    reason="NodeCpuSaturated",
    what="part of the time in which the node's CPUs were busy",
    unit="%",
    suspect=90,
    remedy="spread the clients over more nodes or remove other load; latencies include waiting for a CPU",
)
def node_cpu_saturated(evidence: Evidence) -> CheckedValues:
    for node, clients in by_node(evidence.observed).items():
        busy = 100 * max(host.cpu.node_busy for _, host in clients)
        yield value_of_clients(
            clients, busy, f"the CPUs of {quote(node, 80)} were busy for {percent_text(busy)} of the time"
        )


@TrialCheck(
    reason="NodeMemoryShort",
    what="part of the node's memory that was available",
    unit="%",
    suspect=5,
    direction=Direction.BELOW,
    remedy="free memory on the node or use another node; reclaiming memory delays I/O",
)
def node_memory_short(evidence: Evidence) -> CheckedValues:
    for node, clients in by_node(evidence.observed).items():
        part = 100 * min(host.memory.node_available / host.memory.node_total for _, host in clients)
        yield value_of_clients(clients, part, f"{quote(node, 80)} had {percent_text(part)} of its memory available")


@TrialCheck(
    reason="NetworkBound",
    what="traffic in one direction, as a part of what the network can carry",
    unit="%",
    suspect=90,
    remedy="spread the clients over more nodes or use a faster network; the rate is the network's, not the storage's",
)
def network_bound(evidence: Evidence) -> CheckedValues:
    if evidence.facts.measures_network:
        return
    for item, host in evidence.observed:
        if host.network.link is not None:
            busiest = max(host.network.received, host.network.sent)
            yield client_value(item.client, 100 * busiest / host.network.link)
    for value in _parts_of_capacity(evidence, Operation.READ, Operation.WRITE):
        # Faster rates than the network can have carried show nothing about the network.
        if value.value <= faster_than_network.limit(Verdict.INVALID):
            yield value


@TrialCheck(
    reason="FasterThanNetwork",
    cause=Cause.HARNESS,
    what="reads of the clients of one node, as a part of spec.clients.networkBytesPerSecond",
    unit="%",
    invalid=105,
    remedy="use direct I/O, prefill, and data sets larger than any cache; or correct networkBytesPerSecond",
)
def faster_than_network(evidence: Evidence) -> CheckedValues:
    yield from _parts_of_capacity(evidence, Operation.READ)


@TrialCheck(
    reason="WritesFasterThanNetwork",
    what="writes of the clients of one node, as a part of spec.clients.networkBytesPerSecond",
    unit="%",
    suspect=105,
    remedy="use direct I/O, or lengthen the runtime until any cache is full; or correct networkBytesPerSecond",
)
def writes_faster_than_network(evidence: Evidence) -> CheckedValues:
    yield from _parts_of_capacity(evidence, Operation.WRITE)


def _parts_of_capacity(evidence: Evidence, *operations: Operation) -> CheckedValues:
    """Yield each node's rate as a part of what the user says that its network can carry.

    The rate is that in the window, or in the operation's own phase. Benchmarks that OSDs run themselves use no client's
    network.
    """
    network, span = evidence.facts.network_bytes_per_second, evidence.span
    if evidence.facts.measures_network or network is None or span is None or not span.length:
        return
    nodes = grouped((item for item in evidence.measured if not item.measurement.osds), lambda item: item.node)
    for operation in operations:
        for node, clients in nodes.items():
            shares = [share for item in clients for share in item.shares if share.sample.operation is operation]
            times = [(share, share.interval if share.is_phase else span) for share in shares]
            rate = add([share.within(time).per_second(time.length) for share, time in times]).bytes
            part = 100 * rate / network
            detail = (
                f"{operation} {size_text(rate)}/s on {quote(node, 80)}, whose network can carry "
                f"{size_text(network)}/s: {percent_text(part)}"
            )
            yield CheckedValue(clients=tuple(item.client for item in clients), value=part, detail=detail)
