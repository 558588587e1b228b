"""The findings on a trial: what makes its numbers untrustworthy. The limits are in `registry`.

This module checks what the documents and their times show; `hosts` checks the clients' machines, `load` the clients'
I/O and whether all of it is one measurement, and `cluster` the state of Ceph.
"""

import signal
from collections import Counter
from collections.abc import Collection, Iterable, Sequence

from plimsoll.api.names import LatencyKind, Operation, Verdict
from plimsoll.api.result import Finding, ResultStatus, Trial
from plimsoll.measure.checks import registry as checks
from plimsoll.measure.checks.check import (
    MAX_QUOTE_CHARACTERS,
    CheckedValue,
    CheckedValues,
    client_value,
    first_few,
    number_text,
    percent_text,
    quote,
)
from plimsoll.measure.checks.cluster import judge_cluster, judge_osds
from plimsoll.measure.checks.evidence import Evidence
from plimsoll.measure.checks.hosts import judge_hosts
from plimsoll.measure.checks.load import judge_load, judge_terms
from plimsoll.measure.histogram import histogram_problem
from plimsoll.measure.intake import ClientMeasurement, Intake, TrialFacts
from plimsoll.measure.timeline import NANOSECONDS

_MILLISECONDS = 1000
_QUOTED_ERRORS = 3
_USES_EXTENTS = {Operation.READ: "read", Operation.WRITE: "wrote to"}
_NAMED = 3
_WORST_FIRST = (Verdict.INVALID, Verdict.SUSPECT)


def judge(evidence: Evidence) -> tuple[Finding, ...]:
    """Return the findings, in the order of the table of checks."""
    facts, measured = evidence.facts, evidence.measured
    documents = [
        *_answers(evidence.intake),
        *(_starts(facts, measured) if measured else ()),
        *_runtimes(facts, measured),
        *_window(evidence),
        *_outputs(measured),
        *_operations(facts, measured),
        *_completed(evidence),
    ]
    # Causes before effects: a throttled client stalls, and both make clients uneven.
    return (
        *checks.findings_of(documents),
        *judge_hosts(evidence),
        *judge_load(evidence),
        *judge_cluster(evidence),
        *judge_osds(evidence),
        *judge_terms(evidence),
    )


def reasons_of(status: ResultStatus) -> tuple[str, ...]:
    """Return the reasons of a point's verdict, those of the worst verdict first; empty if it is Valid.

    Before there is a verdict they are those of the last attempt. `NoTrialCounts` is a consequence: in its place appear
    the reasons of all attempts, those first that most of them have.
    """
    if not status.final:
        last = status.trials[-1] if status.trials else None
        if last is not None and last.abort:
            return (last.abort.reason.value,)
        return _ordered(last.findings) if last is not None else ()
    causes = [finding for finding in status.findings if finding.reason != checks.NO_TRIAL_COUNTS.reason]
    if causes or not status.findings:
        return _ordered(causes)
    return _most_frequent_first(status.trials) or (checks.NO_TRIAL_COUNTS.reason,)


def main_reasons(reasons: Iterable[str]) -> str:
    """Return the reasons of points, the most frequent first: `ClientStalled, LateClient (2 points)`."""
    counts = Counter(reason for reason in reasons if reason)
    texts = [f"{reason} ({count} points)" if count > 1 else reason for reason, count in counts.most_common()]
    return first_few(texts, _NAMED)


def _answers(intake: Intake) -> CheckedValues:
    for client in intake.missing:
        yield checks.CLIENT_MISSING, client_value(client, 1, "sent no result")
    for answer in intake.answers:
        client, clock = answer.client, answer.clock
        if answer.failed:
            errors = answer.measurement.errors if answer.measurement else ()
            words = "; ".join(errors[:_QUOTED_ERRORS]) or answer.document.stderr_tail[-MAX_QUOTE_CHARACTERS:]
            detail = f"{_ending(answer.document.exit_code)}: {quote(words) or 'no error message'}"
            yield checks.TOOL_FAILED, client_value(client, max(1, len(errors)), detail)
        if answer.problem:
            detail = f"the tool's output cannot be parsed: {quote(answer.problem)}"
            yield checks.OUTPUT_UNREADABLE, client_value(client, 1, detail)
        if clock is None:
            yield checks.CLOCK_UNKNOWN, client_value(client, 1, "its clock was not compared")
            continue
        error, certain = abs(clock.error) * _MILLISECONDS, abs(clock.offset) - abs(clock.error)
        if error > checks.CLOCK_OFFSET.limit(Verdict.SUSPECT):
            detail = f"its clock was compared only to within {number_text(error)} ms"
            yield checks.CLOCK_UNKNOWN, client_value(client, 1, detail)
        yield checks.CLOCK_OFFSET, client_value(client, max(0.0, certain) * _MILLISECONDS)


def _ending(exit_code: int) -> str:
    if exit_code >= 0:
        return f"exit code {quote(str(exit_code), 20)}"
    try:
        return f"ended by signal {-exit_code} ({signal.Signals(-exit_code).name})"
    except ValueError:
        return f"ended by signal {quote(str(-exit_code), 20)}"


def _starts(facts: TrialFacts, measured: Collection[ClientMeasurement]) -> CheckedValues:
    """Yield each client's lateness, without what long operations explain, since a ramp ends with a completion.

    They must be as long on every client: on a client that was stopped, operations in flight are long too. Times are
    compared on the client's own clock; its offset is another check.
    """
    longest = min(map(_longest, measured))
    for item in measured:
        launched = item.answer.document.launched_at - facts.t0_nanoseconds
        # What a tool without a window does before it measures takes as long as it takes, and delays no other client.
        # It has no ramp to cut short either.
        started = item.interval.start - facts.planned_start if facts.windowed else launched
        late, beyond = max(started, launched), max(started - longest, launched)
        detail = (
            f"started {_seconds(late)} after the planned time; operations of all clients explain {_seconds(longest)}"
        )
        yield checks.LATE_CLIENT, client_value(item.client, beyond / NANOSECONDS, detail)
        if facts.windowed:
            yield checks.EARLY_CLIENT, client_value(item.client, -started / NANOSECONDS)


def _longest(item: ClientMeasurement) -> int:
    """Return the latency of the client's longest operation, in nanoseconds."""
    return max((sample.latency.max_nanoseconds for sample in item.measurement.operations), default=0)


def _seconds(nanoseconds: int) -> str:
    return f"{number_text(nanoseconds / NANOSECONDS)} s"


def _runtimes(facts: TrialFacts, measured: Iterable[ClientMeasurement]) -> CheckedValues:
    requested = facts.runtime_seconds * NANOSECONDS
    for item in measured:
        length = item.interval.length
        if facts.ends_when_done:
            work = item.measurement.work_bytes or 0
            done = sum(sample.bytes for sample in item.measurement.operations)
            detail = f"{done} of {work} bytes were done in {_seconds(length)}"
            yield checks.DATA_SET_UNFINISHED, client_value(item.client, 100 * done / work if work else 0.0, detail)
        elif facts.windowed and requested:
            longest, excess = _longest(item), length - requested
            # At its end a tool waits for the operations in flight.
            beyond = 100 * max(0, -excess, excess - longest) / requested
            detail = (
                f"ran for {_seconds(length)} instead of {facts.runtime_seconds} s; the longest operation took "
                f"{_seconds(longest)}, which leaves {percent_text(beyond)} unexplained"
            )
            yield checks.SHORT_RUN, client_value(item.client, beyond, detail)


def _window(evidence: Evidence) -> CheckedValues:
    """Yield overlap and spread; a gap of little time passes unless the numbers would be Invalid."""
    window, measured = evidence.window, evidence.measured
    if window is None:
        return
    first = min(measured, key=lambda item: item.interval.start).client
    last = max(measured, key=lambda item: item.interval.start).client
    done = min(measured, key=lambda item: item.interval.end).client
    mean = window.seconds / window.overlap if window.overlap else 0.0
    detail = (
        f"all clients measured together for {number_text(window.seconds)} s of a mean runtime of {number_text(mean)} "
        f"s: {number_text(window.overlap)}"
    )
    is_short = mean - window.seconds <= checks.MISSING_SECONDS
    passes = is_short and window.overlap >= checks.LOW_OVERLAP.limit(Verdict.INVALID)
    value = 1.0 if passes else window.overlap
    clients = tuple(sorted({last, done}))
    yield checks.LOW_OVERLAP, CheckedValue(clients=clients, value=value, detail=detail if mean else "")
    yield checks.WIDE_SPREAD, CheckedValue(clients=tuple(sorted({first, last})), value=window.spread_seconds)


def _outputs(measured: Iterable[ClientMeasurement]) -> CheckedValues:
    for item in measured:
        client, measurement = item.client, item.measurement
        if measurement.pace is not None:
            part = 100 * measurement.pace
            detail = f"requests were submitted at {percent_text(part)} of the requested rate"
            yield checks.REQUESTS_SLOWED, client_value(client, part, detail)
        if measurement.start_is_estimated:
            tool = quote(f"{measurement.tool} {measurement.tool_version}", 80)
            detail = f"{tool} does not report when it began to measure; its start was estimated"
            yield checks.TOOL_TOO_OLD, client_value(client, 1, detail)
        names = measurement.untimed
        yield checks.UNTIMED, client_value(client, len(names), f"too fast to be timed: {', '.join(names)}")
        if measurement.inexact is not None:
            part = 100 * measurement.inexact
            detail = f"{percent_text(part)} of the timed operations have times that may be too long"
            yield checks.TIMES_INEXACT, client_value(client, part, detail)


def _operations(facts: TrialFacts, measured: Iterable[ClientMeasurement]) -> CheckedValues:
    clients = [(item.client, item.answer.document.prefilled, share) for item in measured for share in item.shares]
    for client, is_prefilled, share in clients:
        sample, operation = share.sample, share.sample.operation
        # All of them are first writes, as planned: the same kind of work in every trial.
        is_intended = operation is Operation.WRITE and facts.writes_blocks_once
        if operation in _USES_EXTENTS and not is_prefilled and not is_intended:
            detail = f"{_USES_EXTENTS[operation]} a data set that was never written, or was trimmed since"
            yield checks.NOT_PREFILLED, client_value(client, 1, detail)
        detail = f"{sample.short_ios} {operation} operations transferred less than requested"
        yield checks.SHORT_IO, client_value(client, sample.short_ios, detail)
        detail = f"the tool dropped {sample.dropped_ios} {operation} operations"
        yield checks.DROPPED_IO, client_value(client, sample.dropped_ios, detail)
        if sample.lost_ios:
            part = 100 * sample.lost_ios / (sample.ios + sample.lost_ios)
            detail = f"{sample.lost_ios} {operation} operations never completed: {percent_text(part)}"
            yield checks.LOST_IO, client_value(client, part, detail)
        # No tool keeps a series of its syncs. They follow the writes, whose series is checked.
        if facts.windowed and operation is not Operation.SYNC and share.lacks_series:
            detail = f"the series of {operation} operations over time is missing or incomplete"
            yield checks.SERIES_INCOMPLETE, client_value(client, 1, detail)
        if sample.latency.kind is LatencyKind.FULL:
            timed = f"{sample.latency.count} operations were timed, but {sample.ios} completed"
            problem = histogram_problem(sample.latency) if sample.latency.count == sample.ios else timed
            if problem:
                yield checks.HISTOGRAM_MISMATCH, client_value(client, 1, f"{operation} latency: {quote(problem)}")


def _completed(evidence: Evidence) -> CheckedValues:
    """Yield what was completed; without a measurement or a window, other checks give the reason."""
    if not evidence.measured or (evidence.window and not evidence.window.seconds):
        return
    if not evidence.rates:
        yield checks.NO_IO, CheckedValue(value=0, detail="no operation was measured")
    quantities = evidence.facts.quantities
    amounts = {name: quantities.amount(one.measured.ios, one.measured.bytes) for name, one in evidence.rates.items()}
    # Writes that never complete while reads do are a load that was not achieved.
    for operation, done in () if evidence.is_broken and any(amounts.values()) else amounts.items():
        detail = f"{number_text(done)} {operation} {quantities.unit} completed in the window"
        yield checks.NO_IO, CheckedValue(value=done, detail=detail)
    # Other pairs of the round hide it in the sum.
    for item in evidence.measured:
        for rate in item.measurement.peers:
            if not (rate.ios or rate.bytes):
                yield checks.NO_IO, client_value(item.client, 0, f"nothing arrived from or at client {rate.peer}")


def _most_frequent_first(trials: Sequence[Trial]) -> tuple[str, ...]:
    """Return what made attempts not count, then what made them Suspect; of equally frequent ones, the latest first."""
    against, doubts = Counter[str](), Counter[str]()
    for trial in reversed(trials):
        against.update([trial.abort.reason.value] if trial.abort else _of(Verdict.INVALID, trial.findings))
        doubts.update(() if trial.abort else _of(Verdict.SUSPECT, trial.findings))
    return tuple(dict.fromkeys(reason for counts in (against, doubts) for reason, _ in counts.most_common()))


def _ordered(findings: Sequence[Finding]) -> tuple[str, ...]:
    return tuple(reason for verdict in _WORST_FIRST for reason in _of(verdict, findings))


def _of(verdict: Verdict, findings: Sequence[Finding]) -> tuple[str, ...]:
    return tuple(finding.reason for finding in findings if finding.verdict is verdict)
