"""Whether the load was the requested one, all the time, for long enough, and of one tool."""

from collections import defaultdict
from collections.abc import Callable

from plimsoll.api.names import LatencyKind, Operation, format_duration
from plimsoll.api.operation import Steadiness, SteadinessState
from plimsoll.measure import steadiness
from plimsoll.measure.checks.check import CheckedValue, CheckedValues, Evidence, TrialCheck, client_value
from plimsoll.measure.checks.effect import NEGLIGIBLE_TIME
from plimsoll.measure.histogram import merge_latencies
from plimsoll.measure.intake import clients_by_version
from plimsoll.measure.lateness import MUCH_LONGER, lateness_of
from plimsoll.measure.line import observe
from plimsoll.measure.text import number_text, numbered, percent_text
from plimsoll.measure.timeline import NANOSECONDS, Interval, common_interval

_MILLISECONDS = 1000
_LONG_PAUSE = 1.0  # seconds
_TYPICAL = 10  # mean operations that a pause takes at least: a slow operation is not a pause
_WITHOUT_RAMP = 10  # without a ramp the first second, which fills queues and caches, may be a thirtieth of the whole


@TrialCheck(
    reason="Stalled",
    load_explains=True,
    what="part of the window in which no client completed anything",
    unit="%",
    suspect=0.5,
    invalid=10,
    remedy="if there is NodeCpuSaturated, remedy that first; otherwise look for what stopped the storage at that time: "
    "peering, slow operations, a full device, a lost path",
)
def stalled(evidence: Evidence) -> CheckedValues:
    if (standstill := evidence.standstill) is not None:
        yield _stall("no client completed anything", standstill.counted, standstill.window)


@TrialCheck(
    reason="ClientStalled",
    load_explains=True,
    what="part of the window in which one client completed nothing while others did",
    unit="%",
    suspect=0.5,
    invalid=10,
    remedy="if there is NodeCpuSaturated, remedy that first; otherwise check the client's node and everything that "
    "only its volume depends on",
)
def client_stalled(evidence: Evidence) -> CheckedValues:
    """Judge the idle time of each client that counts (`stalls`) while another client worked."""
    if (standstill := evidence.standstill) is not None:
        for client, seconds in standstill.alone.items():
            yield _stall("completed nothing while others did", seconds, standstill.window, (client,))


def _stall(what: str, seconds: float, window: float, clients: tuple[int, ...] = ()) -> CheckedValue:
    part = 100 * seconds / window
    detail = f"{what} for {number_text(seconds)} s of a window of {number_text(window)} s: {percent_text(part)}"
    return CheckedValue(clients=clients, value=part, detail=detail)


@TrialCheck(
    reason="LongPause",
    what=f"pauses of {_LONG_PAUSE:g} s and ten operations or more, as a part of the time of tools without a window",
    unit="%",
    suspect=5,
    remedy="look for what stopped the storage or the client; the tool's mean rate includes the pause",
)
def long_pause(evidence: Evidence) -> CheckedValues:
    for item in () if evidence.facts.windowed else evidence.measured:
        gaps = item.measurement.gaps
        lengths = [length / _MILLISECONDS for length in gaps.lengths] if gaps else []
        for share in item.shares:
            sample, seconds, pauses = share.sample, share.interval.length / NANOSECONDS, lengths
            if sample.latency.kind is LatencyKind.MAX_ONLY:
                pauses = [sample.latency.max_nanoseconds / NANOSECONDS]
            least = max(_LONG_PAUSE, _TYPICAL * seconds / max(1, sample.ios))
            paused = sum(length for length in pauses if length >= least)
            if paused and sample.operation is not Operation.SYNC:
                part, times = 100 * paused / seconds, f"{number_text(paused)} s of {number_text(seconds)} s"
                detail = f"completed no {sample.operation} for {times}: {percent_text(part)}"
                yield client_value(item.client, part, detail)


@TrialCheck(
    reason="PhasesApart",
    what="time in which all clients were in the same phase, as a part of its mean length, estimated from lengths",
    unit="%",
    suspect=90,
    is_low_bad=True,
    remedy="measure with one client, or with clients of equal speed; the rate of the phase is too high",
)
def phases_apart(evidence: Evidence) -> CheckedValues:
    phases = defaultdict[Operation, list[Interval]](list)
    for item in () if evidence.facts.windowed else evidence.measured:
        start = item.interval.start
        for share in (share for share in item.shares if share.is_phase):
            phase = Interval(start=start, end=start + share.interval.length)
            phases[share.sample.operation].append(phase)
            start = phase.end
    for operation, intervals in phases.items():
        common = common_interval(intervals)
        if common is not None and len(intervals) > 1:
            mean = sum(interval.length for interval in intervals) / len(intervals)
            part = 100 * common.length / mean
            times = " s of a mean of ".join(number_text(length / NANOSECONDS) for length in (common.length, mean))
            detail = f"all clients were in the phase {operation} for {times} s: {percent_text(part)}"
            yield CheckedValue(value=part, detail=detail)


@TrialCheck(
    reason="NotSteady",
    what=(
        "standard deviations of chance by which a part of the window differs from the rest, beyond "
        f"{100 * steadiness.MAX_RATE_CHANGE:g} % of the mean (of a 99th percentile, or a median at a set rate, "
        f"{100 * steadiness.MAX_LATENCY_CHANGE:g} %). Parts below a fifth of the window (in its middle a third), and "
        "all parts of a window of fewer than ten intervals, count only as a burst whose rate is above the rest by "
        f"{100 * steadiness.MAX_SHIFT:g} % of the mean ({100 * steadiness.MAX_SHIFT_OF_FEW:g} % in such a window). Not "
        "with until DataSetDone, or a search by rate"
    ),
    suspect=steadiness.LEAST_DEVIATIONS,
    remedy="measure for longer (runtimeSeconds, rampSeconds); if it remains, look for what happens at that time, and "
    "set prepare.precondition for flash",
)
def not_steady(evidence: Evidence) -> CheckedValues:
    """Judge the rate of all operations, and if that is steady, the percentiles of each (`steadiness`)."""
    rate, calm = evidence.steadiness, evidence.calm
    judged: list[tuple[Steadiness | None, str, Callable[[float], str]]] = [
        (rate, f"{evidence.facts.quantities.unit}/s", number_text)
    ]
    if rate is None or rate.state is not SteadinessState.NOT_STEADY:
        for result in evidence.operations:
            judged.append((result.p50_steadiness, f"{result.operation} p50", format_duration))
            judged.append((result.p99_steadiness, f"{result.operation} p99", format_duration))
    for measured, quantity, show in judged:
        if measured is not None and calm is not None:
            text = steadiness.steadiness_text(measured, quantity, show, calm.length / NANOSECONDS)
            value = steadiness.deviations_of(measured)
            yield CheckedValue(value=value, detail=f"{text} and {number_text(value)} standard deviations of chance")


@TrialCheck(
    reason="NotAchieved",
    outage_explains=True,
    what=(
        "part of an offered rate, of all clients, one client or kind of operation, that did not arrive, if more than "
        f"{100 * observe.LEAST_SHORTFALL:g} %, or arrived beyond it, if more than {100 * observe.LEAST_EXCESS:g} %; "
        "with random arrivals beyond chance; not in a search"
    ),
    unit="%",
    suspect=0,
    remedy="offer a load that storage and clients can handle, or lengthen the ramp; late operations have no latency",
)
def not_achieved(evidence: Evidence) -> CheckedValues:
    observation, facts = evidence.observation, evidence.facts
    # The rate was offered by all clients; those that measured nothing are named by other checks.
    if observation is None or facts.search is not None or len(evidence.measured) < len(facts.clients):
        return
    parts = observation.parts
    for part, among in ((observation.whole, 1), *((part, len(parts)) for part in parts)):
        arrived, least, most = (
            100 * share for share in (part.achieved / part.offered, part.least(among), part.most(among))
        )
        bound = f"at most {percent_text(most)}" if arrived > most else f"at least {percent_text(least)}"
        detail = (
            f"{number_text(part.achieved)} of {number_text(part.offered)} {part.operation or 'operation'}s per second "
            f"that were due completed: {percent_text(arrived)} ({bound}{' but for chance' * (part.pending is None)})"
        )
        value = abs(100 - arrived) if arrived > most or not part.is_achieved(among) else 0.0
        yield CheckedValue(clients=() if part.client is None else (part.client,), value=value, detail=detail)


@TrialCheck(
    reason="DepthFull",
    outage_explains=True,
    what=(
        "submissions that filled ioDepth, with random arrivals (of an ioDepth of 1: time with an operation in flight), "
        "or operations above the highest published percentile up to the 99th, if it is more than "
        f"{MUCH_LONGER:g} times as long from when they were due, and not by chance; not in a search"
    ),
    unit="%",
    suspect=100 * observe.MOST_DEPTH_FULL,
    remedy="look for what stops the storage at times, lower the rate, or use more clients or a larger ioDepth",
)
def depth_full(evidence: Evidence) -> CheckedValues:
    offer, observation = evidence.facts.offer, evidence.observation
    if offer is None or observation is None or offer.search is not None:
        return
    share, depth, late = observation.depth_full_share, offer.depth, None
    # The rate is divided among all clients.
    if len(evidence.measured) >= len(evidence.facts.clients):
        latencies = [result.latency for result in evidence.operations if result.operation is not Operation.SYNC]
        gaps = [item.measurement.gaps for item in evidence.measured]
        late = lateness_of(offer, merge_latencies(latencies), gaps, evidence.measured[0].measurement.submitters)
    if late is not None and late.waited >= NEGLIGIBLE_TIME:
        detail = (
            f"about {percent_text(100 * late.waited)} of the operations were due while ioDepth, {depth} on each "
            f"client, was full: counted from when they were due, p{late.percentile} is {format_duration(late.from_due)}"
            f" instead of {format_duration(late.published)}"
        )
        value = 100 * late.late if late.from_due > late.longest else 0.0
        yield CheckedValue(value=value, detail=detail, limit=format_duration(late.longest))
    if offer.is_open_loop:
        detail = f"how often ioDepth, {depth} on each client, was full is unknown"
        if share is not None:
            filled = f"of the submissions filled ioDepth, {depth} on each client"
            what = "of the time an operation was in flight, and ioDepth is 1" if depth == 1 else filled
            detail = f"{percent_text(100 * share)} {what}"
        value, limit = (100, "") if share is None else (100 * share, None)
        yield CheckedValue(value=value, detail=detail, limit=limit)


@TrialCheck(
    reason="SubmissionBound",
    what="part of the time that the tool's threads spent submitting",
    unit="%",
    suspect=90,
    remedy="use direct I/O, more jobs or more clients; submissions that block keep the queue shallower than requested",
)
def submission_bound(evidence: Evidence) -> CheckedValues:
    for item in evidence.measured:
        measurement = item.measurement
        spent = sum(sample.ios * (sample.submission_nanoseconds or 0.0) for sample in measurement.operations)
        yield client_value(item.client, 100 * spent / (measurement.runtime * measurement.submitters))


@TrialCheck(
    reason="ToolCpuBound",
    what="CPU time of the threads that move data, as a part of their time, at the busier end; of fio its busiest job",
    unit="%",
    suspect=90,
    remedy="use more jobs, clients, or streams of an iperf3 from 3.16 on; the tool limits the rate, not the storage",
)
def tool_cpu_bound(evidence: Evidence) -> CheckedValues:
    for item in evidence.measured:
        if item.measurement.thread_percent is not None:
            yield client_value(item.client, item.measurement.thread_percent)


@TrialCheck(
    reason="PacketsLost",
    what="datagrams that did not arrive, of all that a client sent to or received from a peer",
    unit="%",
    suspect=1,
    invalid=50,
    remedy="lower the bitrate until hardly any are lost, and check drops at interfaces and switches",
)
def packets_lost(evidence: Evidence) -> CheckedValues:
    for item in evidence.measured:
        for rate in item.measurement.peers:
            if (lost := rate.lost_percent) is not None:
                detail = f"{percent_text(lost)} of the datagrams between it and client {rate.peer} were lost"
                yield client_value(item.client, lost, detail)


@TrialCheck(
    reason="LittlesLaw",
    what="difference of the operations in flight, by rate and latency, from the requested, beyond the explained part",
    unit="%",
    suspect=5,
    remedy="give the client more CPU, or use more jobs or clients; the load was not the requested one",
)
def littles_law(evidence: Evidence) -> CheckedValues:
    for item in evidence.measured:
        requested, runtime = item.measurement.in_flight, item.measurement.runtime
        samples = [it for it in item.measurement.operations if it.ios and it.operation is not Operation.SYNC]
        if requested is None or not samples or any(not sample.latency.kind.has_mean for sample in samples):
            continue
        in_flight = sum(sample.ios * sample.latency.mean_nanoseconds for sample in samples) / runtime
        thinking = sum(sample.ios for sample in samples) * observe.THINKING_SECONDS * NANOSECONDS / runtime
        at_edges = max(sample.latency.max_nanoseconds for sample in samples) / runtime
        excess = in_flight / requested - 1
        explained = at_edges if excess > 0 else min(thinking / requested, observe.THINKING_SHARE) + at_edges
        beyond = 100 * max(0.0, abs(excess) - min(explained, observe.EDGE_SHARE))
        detail = (
            f"rate and latency give {number_text(in_flight)} operations in flight instead of {requested}: "
            f"{percent_text(beyond)} beyond the tolerance"
        )
        yield client_value(item.client, beyond, detail)


@TrialCheck(
    reason="RuntimeTooShort",
    what=(
        "runtimeSeconds, or the time until the work ended, as a part of the tool's minimum: three intervals of its "
        "series, usually 3 s, and ten times as long without a ramp; of dd and osdBench, 10 s of timed work"
    ),
    unit="%",
    suspect=100,
    is_low_bad=True,
    remedy="raise runtimeSeconds, with a rampSeconds of 1 or more, or give the work a larger volume or totalSize",
)
def runtime_too_short(evidence: Evidence) -> CheckedValues:
    # Whether the work was all done is another check.
    facts = evidence.facts
    has_ramp = facts.windowed and facts.ramp_seconds
    least = facts.least_runtime_seconds * (1 if has_ramp else _WITHOUT_RAMP)
    # An OSD writes immediately what its device's write cache holds.
    osds = [rate for item in evidence.measured for rate in item.measurement.osds]
    worked = [item.interval.length for item in evidence.measured] if facts.ends_when_done else []
    if not least or not (facts.windowed or facts.ends_when_done or osds):
        return
    seconds: float = facts.runtime_seconds
    runtime = f"the requested runtime is {facts.runtime_seconds} s after a ramp of {facts.ramp_seconds} s"
    if osds:
        first = min(osds, key=lambda rate: rate.seconds)
        seconds, runtime = first.seconds, f"osd.{first.osd} wrote for {number_text(first.seconds)} s"
    elif worked:
        seconds = min(worked) / NANOSECONDS
        runtime = f"the first client ended after {number_text(seconds)} s"
    part = 100 * seconds / least
    yield CheckedValue(value=part, detail=f"{runtime}, {percent_text(part)} of the minimum of {least} s")


@TrialCheck(
    reason="MixedVersions",
    what="versions of the tool that the clients ran",
    suspect=1,
    remedy="give all clients one image or one version of the tool; the sum mixes two different load generators",
)
def mixed_versions(evidence: Evidence) -> CheckedValues:
    versions = clients_by_version(evidence.measured)
    if len(versions) > 1:
        ordered = sorted(versions.items(), key=lambda item: (-len(item[1]), item[0]))
        named = "; ".join(f"{version}: {numbered('client', clients)}" for version, clients in ordered[:4])
        # The clients of all versions but the most frequent.
        others = tuple(client for _, clients in ordered[1:] for client in clients)
        detail = f"{len(versions)} versions of the tool ({named})"
        yield CheckedValue(clients=others, value=len(versions), detail=detail)
