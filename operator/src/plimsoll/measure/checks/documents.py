"""Whether the clients' documents form one complete measurement: answers, times, outputs and operations."""

import math
import signal
from collections.abc import Iterator

from plimsoll.api.names import Cause, LatencyKind, Operation, Verdict
from plimsoll.measure.checks.check import CheckedValue, CheckedValues, Evidence, TrialCheck, client_value
from plimsoll.measure.histogram import HistogramError, histogram_of
from plimsoll.measure.intake import ClientMeasurement
from plimsoll.measure.text import MAX_QUOTE_CHARACTERS, number_text, percent_text, quote, size_text
from plimsoll.measure.timeline import NANOSECONDS, Interval, Share, add, window_of

FIO_REPORTS_START = (3, 36)  # the first version of fio that reports when it began to measure

_MILLISECONDS = 1000
_MISSING_SECONDS = 0.25  # starting processes takes this long on a loaded node, however short the runtime is


@TrialCheck(
    reason="ToolFailed",
    what="errors that the tool reported",
    invalid=0,
    remedy="read the tool's message; the tool did not do the requested work",
)
def tool_failed(evidence: Evidence) -> CheckedValues:
    for answer in evidence.intake.answers:
        if answer.failed:
            errors = answer.document.measurement.errors if answer.document.measurement else ()
            message = "; ".join(errors[:3]) or answer.document.stderr_tail[-MAX_QUOTE_CHARACTERS:]
            code, names = answer.document.exit_code, {it.value: f" ({it.name})" for it in signal.Signals}
            how = f"{'ended by signal' if code < 0 else 'exit code'} {quote(str(abs(code)), 20)}{names.get(-code, '')}"
            yield client_value(answer.client, max(1, len(errors)), f"{how}: {quote(message) or 'no error message'}")


@TrialCheck(
    reason="OutputUnreadable",
    cause=None,
    what="outputs of the tool that cannot be parsed",
    invalid=0,
    remedy="free space on the disk of the client's temporary files; if the tool's version is supported, report a bug",
)
def output_unreadable(evidence: Evidence) -> CheckedValues:
    for answer in evidence.intake.answers:
        if answer.problem:
            # A tool whose storage hung from the beginning may have measured nothing.
            cause = Cause.HARNESS if answer.document.parse_error or answer.implausible else Cause.STORAGE
            yield client_value(answer.client, 1, f"the tool's output cannot be parsed: {quote(answer.problem)}", cause)


@TrialCheck(
    reason="ClientMissing",
    cause=Cause.HARNESS,
    what="planned clients that sent no result",
    invalid=0,
    remedy="check the client's pod and node; the load of the others is not the requested one",
)
def client_missing(evidence: Evidence) -> CheckedValues:
    for client in evidence.intake.missing:
        yield client_value(client, 1, "sent no result")


@TrialCheck(
    reason="LateClient",
    cause=None,
    what="delay of the start beyond the planned time, less the longest operation and the tool's step of the ramp",
    unit="s",
    suspect=1,
    invalid=5,
    remedy="lengthen the ramp, and look for other load on the client's node",
)
def late_client(evidence: Evidence) -> CheckedValues:
    """Yield each client's delay on its own clock, without what long operations of all clients and the tool explain.

    A late launch is the client's fault; a tool that was launched in time may have waited for the storage.
    """
    facts, measured = evidence.facts, evidence.measured
    longest = min(map(_longest_operation, measured), default=0)
    for item in measured:
        launched = item.answer.document.launched_at - facts.t0_nanoseconds
        # A tool without a window has no ramp to cut short, and its preparations delay no other client.
        started = item.interval.start - facts.planned_start if facts.windowed else launched
        step = item.measurement.ramp_step
        late, unexplained = max(started, launched), max(started - longest - step, launched)
        detail = (
            f"started {_seconds(late)} after the planned time; operations of all clients explain {_seconds(longest)}"
            f"{f', and the step of the ramp {_seconds(step)}' if step else ''}"
        )
        limit = late_client.limit(Verdict.INVALID) * NANOSECONDS
        explains = launched > limit and unexplained - launched <= limit
        cause = Cause.HARNESS if explains else Cause.STORAGE
        yield client_value(item.client, unexplained / NANOSECONDS, detail, cause)


def _longest_operation(item: ClientMeasurement) -> int:
    return max((sample.latency.max_nanoseconds for sample in item.measurement.operations), default=0)


def _seconds(nanoseconds: int) -> str:
    return f"{number_text(nanoseconds / NANOSECONDS)} s"


@TrialCheck(
    reason="EarlyClient",
    cause=Cause.HARNESS,
    what="start before the planned time",
    unit="s",
    suspect=1,
    invalid=5,
    remedy="find out why the tool cut its ramp short, or what set the client's clock; it measured part of the warm-up",
)
def early_client(evidence: Evidence) -> CheckedValues:
    if evidence.facts.windowed:
        for item in evidence.measured:
            early = evidence.facts.planned_start - item.interval.start
            yield client_value(item.client, early / NANOSECONDS)


@TrialCheck(
    reason="ShortRun",
    what="difference between actual and requested runtime, without the longest operation",
    unit="%",
    suspect=1,
    invalid=10,
    remedy="find out why the tool ended early or overran: an error, a signal, or a stall at the end",
)
def short_run(evidence: Evidence) -> CheckedValues:
    facts = evidence.facts
    requested = facts.runtime_seconds * NANOSECONDS
    if facts.ends_when_done or not facts.windowed or not requested:
        return
    for item in evidence.measured:
        length, longest = item.interval.length, _longest_operation(item)
        excess = length - requested
        # At its end a tool waits for the operations in flight.
        unexplained = 100 * max(0, -excess, excess - longest) / requested
        detail = (
            f"ran for {_seconds(length)} instead of {facts.runtime_seconds} s; the longest operation took "
            f"{_seconds(longest)}, which leaves {percent_text(unexplained)} unexplained"
        )
        yield client_value(item.client, unexplained, detail)


@TrialCheck(
    reason="DataSetUnfinished",
    what="part of the data set that a client processed, if the measurement ends when all of it is done",
    unit="%",
    invalid=100,
    is_low_bad=True,
    remedy="raise runtimeSeconds, which limits the time, or use a smaller volume",
)
def data_set_unfinished(evidence: Evidence) -> CheckedValues:
    for item in evidence.measured if evidence.facts.ends_when_done else ():
        work = item.measurement.work_bytes or 0
        done = sum(sample.bytes for sample in item.measurement.operations)
        detail = f"{done} of {work} bytes were done in {_seconds(item.interval.length)}"
        yield client_value(item.client, 100 * done / work if work else 0.0, detail)


@TrialCheck(
    reason="RequestsSlowed",
    what="rate at which the tool could submit its requests or datagrams, as a part of the requested rate",
    unit="%",
    suspect=80,
    is_low_bad=True,
    remedy="lower the requested rate, give the client more CPU, or look for a slow or throttling API server",
)
def requests_slowed(evidence: Evidence) -> CheckedValues:
    for item in evidence.measured:
        if item.measurement.pace is not None:
            part = 100 * item.measurement.pace
            detail = f"requests were submitted at {percent_text(part)} of the requested rate"
            yield client_value(item.client, part, detail)


@TrialCheck(
    reason="LowOverlap",
    load_explains=True,
    cause=None,
    what=f"time in which all clients measured, as a part of their mean runtime; {_MISSING_SECONDS} s may be missing",
    suspect=0.98,
    invalid=0.90,
    is_low_bad=True,
    remedy="lengthen ramp and runtime, or find what delays the clients; latencies cover each client's whole run",
)
def low_overlap(evidence: Evidence) -> CheckedValues:
    """Yield the overlap. The harness explains it if the clients would have overlapped, had each been launched at T0."""
    window, measured = evidence.window, evidence.measured
    if window is None:
        return
    last = max(measured, key=lambda item: item.interval.start)
    done = min(measured, key=lambda item: item.interval.end)
    mean = window.seconds / window.overlap if window.overlap else 0.0
    detail = (
        f"all clients measured together for {number_text(window.seconds)} s of a mean runtime of {number_text(mean)} "
        f"s: {number_text(window.overlap)}"
    )
    step = max(item.measurement.ramp_step for item in measured) / NANOSECONDS
    is_short = mean - window.seconds <= _MISSING_SECONDS + step
    passes = is_short and window.overlap >= low_overlap.limit(Verdict.INVALID)
    lateness = [(item.interval, item.answer.document.launched_at - evidence.facts.t0_nanoseconds) for item in measured]
    if_launched_at_t0 = window_of([Interval(start=it.start - late, end=it.end - late) for it, late in lateness])
    explains = if_launched_at_t0 is not None and low_overlap.verdict(if_launched_at_t0.overlap) is not Verdict.INVALID
    yield CheckedValue(
        clients=tuple(sorted({last.client, done.client})),
        value=1.0 if passes else window.overlap,
        detail=detail if mean else "",
        cause=Cause.HARNESS if explains else Cause.STORAGE,
    )


@TrialCheck(
    reason="WideSpread",
    what="time between the first and the last client's start, without the step in which the tool ends its ramp",
    unit="s",
    suspect=1,
    remedy="lengthen the ramp, and look for other load on the late clients' nodes",
)
def wide_spread(evidence: Evidence) -> CheckedValues:
    if evidence.window is not None:
        first, last = (end(evidence.measured, key=lambda item: item.interval.start) for end in (min, max))
        spread, step = evidence.window.spread_seconds, last.measurement.ramp_step
        explained = f", of which the step of the ramp explains {_seconds(step)}" if step else ""
        detail = f"the first and the last client's start were {number_text(spread)} s apart{explained}"
        clients = tuple(sorted({first.client, last.client}))
        yield CheckedValue(clients=clients, value=spread - step / NANOSECONDS, detail=detail)


@TrialCheck(
    reason="ToolTooOld",
    what="starts that were estimated because the tool does not report them exactly",
    suspect=0,
    remedy="use a version of the tool that reports its start, or find what delays it on the client's node",
)
def tool_too_old(evidence: Evidence) -> CheckedValues:
    for item in evidence.measured:
        if item.measurement.start_is_estimated:
            tool = quote(f"{item.measurement.tool} {item.measurement.tool_version}", 80)
            detail = f"{tool} does not report exactly when it began to measure; its start was estimated"
            if item.measurement.tool == "fio":
                detail += f" (fio {'.'.join(map(str, FIO_REPORTS_START))} and later report it)"
            yield client_value(item.client, 1, detail)


def _shares(evidence: Evidence) -> Iterator[tuple[ClientMeasurement, Share, Operation]]:
    for item in evidence.measured:
        for share in item.shares:
            yield item, share, share.sample.operation


@TrialCheck(
    reason="NotPrefilled",
    what="clients that read or overwrote a data set that was never written, or was trimmed since",
    suspect=0,
    remedy="set prepare.prefill: true and trim in a separate run; reads of unwritten extents access no storage",
)
def not_prefilled(evidence: Evidence) -> CheckedValues:
    uses = {Operation.READ: "read", Operation.WRITE: "wrote to"}
    # Then all writes are first writes, as planned: the same kind of work in every trial.
    if evidence.facts.new_data_set and evidence.facts.ends_when_done:
        del uses[Operation.WRITE]
    for item, _, operation in _shares(evidence):
        if operation in uses and not item.answer.document.prefilled:
            detail = f"{uses[operation]} a data set that was never written, or was trimmed since"
            yield client_value(item.client, 1, detail)


@TrialCheck(
    reason="NothingTrimmed",
    what="trims of blocks that were never written, or already trimmed (a lower bound)",
    unit="%",
    suspect=10,
    remedy="set prepare.prefill: true and prepare.perTrial: NewDataSet, and use a volume larger than what is trimmed",
)
def nothing_trimmed(evidence: Evidence) -> CheckedValues:
    for item in evidence.measured:
        trimmed = item.bytes(Operation.TRIM)
        if trimmed and not item.answer.document.prefilled:
            yield client_value(item.client, 100, "trimmed a data set that was never written, or was trimmed since")
        elif trimmed and item.data_bytes:
            part = 100 * max(0.0, 1 - item.data_bytes / trimmed)
            detail = (
                f"trimmed {size_text(trimmed)} of a data set of {size_text(item.data_bytes)}: {percent_text(part)} "
                "or more were already trimmed"
            )
            yield client_value(item.client, part, detail)


@TrialCheck(
    reason="ShortIo",
    what="operations that transferred less than requested",
    suspect=0,
    remedy="check that the data set is fully written and not smaller than the size that the tool was given",
)
def short_io(evidence: Evidence) -> CheckedValues:
    for item, share, operation in _shares(evidence):
        detail = f"{share.sample.short_ios} {operation} operations transferred less than requested"
        yield client_value(item.client, share.sample.short_ios, detail)


@TrialCheck(
    reason="DroppedIo",
    what="operations that the tool dropped",
    invalid=0,
    remedy="look for storage errors in the client's kernel log",
)
def dropped_io(evidence: Evidence) -> CheckedValues:
    for item, share, operation in _shares(evidence):
        detail = f"the tool dropped {share.sample.dropped_ios} {operation} operations"
        yield client_value(item.client, share.sample.dropped_ios, detail)


@TrialCheck(
    reason="LostIo",
    load_explains=True,
    what="operations that never completed and were not in flight at the end, as a part of all",
    unit="%",
    suspect=0,
    invalid=0.01,
    remedy="look for errors in the client's kernel log, or a lossy network; no latency includes lost operations",
)
def lost_io(evidence: Evidence) -> CheckedValues:
    for item, share, operation in _shares(evidence):
        if lost := share.sample.lost_ios:
            part = 100 * lost / (share.sample.ios + lost)
            detail = f"{lost} {operation} operations never completed: {percent_text(part)}"
            yield client_value(item.client, part, detail)


@TrialCheck(
    reason="NoIo",
    what="operations completed in the window",
    invalid=1,
    is_low_bad=True,
    remedy="look for a stalled cluster, or a tool that did something else; very slow storage needs a longer runtime",
)
def no_io(evidence: Evidence) -> CheckedValues:
    span, quantities = evidence.span, evidence.facts.quantities
    # Without a measurement or a window, other checks give the reason.
    if span is None or (evidence.window and not evidence.window.seconds):
        return
    if not evidence.operations:
        yield CheckedValue(value=0, detail="no operation was measured")
    amounts = dict[Operation, float]()
    for operation in (result.operation for result in evidence.operations):
        done = add([share.within(span) for share in evidence.shares[operation]])
        amounts[operation] = quantities.amount(done.ios, done.bytes)
    # Writes that never complete while reads do are a load that was not achieved.
    for operation, amount in () if evidence.is_broken and any(amounts.values()) else amounts.items():
        detail = f"{number_text(amount)} {operation} {quantities.unit} completed in the window"
        yield CheckedValue(value=amount, detail=detail)
    # Other pairs of the round hide it in the sum.
    for item in evidence.measured:
        for rate in item.measurement.peers:
            if not (rate.ios or rate.bytes):
                yield client_value(item.client, 0, f"no data arrived from or at client {rate.peer}")


@TrialCheck(
    reason="SeriesIncomplete",
    what="operations without a complete series over time",
    suspect=0,
    remedy="check the tool's logs; rates in the window use the client's mean rate, which hides stalls",
)
def series_incomplete(evidence: Evidence) -> CheckedValues:
    for item, share, operation in _shares(evidence) if evidence.facts.windowed else ():
        # No tool keeps a series of its syncs. They follow the writes, whose series is checked.
        if operation is not Operation.SYNC and share.lacks_series:
            detail = f"the series of {operation} operations over time is missing or incomplete"
            yield client_value(item.client, 1, detail)


@TrialCheck(
    reason="Untimed",
    what="operations that were too short for the tool to time",
    suspect=0,
    remedy="give the tool more to do, such as a larger size or more files; their rates are unknown",
)
def untimed(evidence: Evidence) -> CheckedValues:
    for item in evidence.measured:
        names = item.measurement.untimed
        yield client_value(item.client, len(names), f"too fast to be timed: {', '.join(names)}")


@TrialCheck(
    reason="TimesInexact",
    what="operations whose times are less exact than the others, because the tool lost their ends",
    unit="%",
    # Above this part, even the p90 may consist of inexact times, because the slowest operations lose their ends.
    suspect=10,
    remedy="look for what delays or drops events, such as the kubelets' eventRecordQPS, and lower the rate",
)
def times_inexact(evidence: Evidence) -> CheckedValues:
    for item in evidence.measured:
        if item.measurement.inexact is not None:
            part = 100 * item.measurement.inexact
            detail = f"{percent_text(part)} of the timed operations have times that may be too long"
            yield client_value(item.client, part, detail)


@TrialCheck(
    reason="ClockUnknown",
    what="clients whose clock was not compared to within 10 ms, the limit of ClockOffset",
    suspect=0,
    remedy="check the connection and the CPU load of conductor and client; the window is unverified",
)
def clock_unknown(evidence: Evidence) -> CheckedValues:
    for answer in evidence.intake.answers:
        error = abs(answer.clock.error) * _MILLISECONDS if answer.clock else math.inf
        if error > clock_offset.limit(Verdict.SUSPECT):
            how = f"compared only to within {number_text(error)} ms" if answer.clock else "not compared"
            yield client_value(answer.client, 1, f"its clock was {how}")


@TrialCheck(
    reason="ClockOffset",
    cause=Cause.HARNESS,
    what="certain difference between the client's clock and the conductor's",
    unit="ms",
    suspect=10,
    invalid=50,
    remedy="synchronise the nodes' clocks (chrony, ntp)",
)
def clock_offset(evidence: Evidence) -> CheckedValues:
    for answer in evidence.intake.answers:
        if clock := answer.clock:
            certain = max(0.0, abs(clock.offset) - abs(clock.error))
            yield client_value(answer.client, certain * _MILLISECONDS)


@TrialCheck(
    reason="HistogramMismatch",
    cause=Cause.HARNESS,
    what="operations whose latency histogram does not contain exactly the completed operations",
    invalid=0,
    remedy="check the tool's version and its raw output; the percentiles would describe other operations",
)
def histogram_mismatch(evidence: Evidence) -> CheckedValues:
    for item, share, operation in _shares(evidence):
        latency, ios = share.sample.latency, share.sample.ios
        if latency.kind is LatencyKind.FULL:
            problem = "" if latency.count == ios else f"{latency.count} operations were timed, but {ios} completed"
            try:
                histogram_of(latency)
            except HistogramError as error:
                problem = problem or str(error)
            if problem:
                yield client_value(item.client, 1, f"{operation} latency: {quote(problem)}")
