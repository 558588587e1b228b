"""The findings on a trial: what makes its numbers untrustworthy. The limits are in `checks`.

This module checks what the documents and their times show; `hosts` checks the clients' machines, `load` the clients'
I/O, `cluster` the state of Ceph, and `terms` whether all of it is one measurement.
"""

import signal
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence

from plimsoll.api.names import LatencyKind, Operation, Verdict
from plimsoll.api.result import Finding, ResultStatus, Trial, Window
from plimsoll.measure.checks import registry
from plimsoll.measure.checks.check import (
    MAX_QUOTE_CHARACTERS,
    CheckedValue,
    evaluate,
    first_few,
    number_text,
    percent_text,
    quote,
)
from plimsoll.measure.checks.cluster import judge_cluster, judge_osds
from plimsoll.measure.checks.evidence import Evidence
from plimsoll.measure.checks.hosts import judge_hosts
from plimsoll.measure.checks.load import judge_load, judge_terms
from plimsoll.measure.checks.registry import NO_TRIAL_COUNTS
from plimsoll.measure.histogram import histogram_problem
from plimsoll.measure.intake import ClientAnswer, ClientMeasurement, Intake, TrialFacts
from plimsoll.measure.sample import OperationSample
from plimsoll.measure.timeline import NANOSECONDS

_MILLISECONDS = 1000
_QUOTED_ERRORS = 3
_USES_EXTENTS = {Operation.READ: "read", Operation.WRITE: "wrote to"}


def judge(evidence: Evidence) -> tuple[Finding, ...]:
    """Return the findings, in the order of the table of checks."""
    intake, facts = evidence.intake, evidence.facts
    measured = intake.measured
    return (
        *evaluate(registry.TOOL_FAILED, _tool_failures(intake.answers)),
        *evaluate(registry.OUTPUT_UNREADABLE, _unreadable(intake.answers)),
        *evaluate(registry.CLIENT_MISSING, _missing(intake)),
        *evaluate(registry.LATE_CLIENT, _lateness(facts, measured)),
        *evaluate(registry.EARLY_CLIENT, _earliness(facts, measured)),
        *evaluate(registry.SHORT_RUN, _runtime_differences(facts, measured)),
        *evaluate(registry.DATA_SET_UNFINISHED, _work_done(measured) if facts.ends_when_done else ()),
        *evaluate(registry.REQUESTS_SLOWED, _paces(measured)),
        *_judge_window(evidence.window, measured),
        *evaluate(registry.TOOL_TOO_OLD, _estimated_starts(measured)),
        *evaluate(registry.NOT_PREFILLED, _unwritten(facts, measured)),
        *evaluate(registry.SHORT_IO, _short_ios(measured)),
        *evaluate(registry.DROPPED_IO, _dropped_ios(measured)),
        *evaluate(registry.LOST_IO, _lost_ios(measured)),
        *evaluate(registry.NO_IO, _completed(evidence)),
        *evaluate(registry.SERIES_INCOMPLETE, _missing_series(measured) if facts.windowed else ()),
        *evaluate(registry.UNTIMED, _untimed(measured)),
        *evaluate(registry.TIMES_INEXACT, _inexact(measured)),
        *evaluate(registry.CLOCK_UNKNOWN, _unknown_clocks(intake.answers)),
        *evaluate(registry.CLOCK_OFFSET, _clock_offsets(intake.answers)),
        *evaluate(registry.HISTOGRAM_MISMATCH, _histogram_mismatches(measured)),
        # Causes before effects: a throttled client stalls, and both make clients uneven.
        *judge_hosts(evidence),
        *judge_load(evidence),
        *judge_cluster(evidence),
        *judge_osds(evidence),
        *judge_terms(evidence),
    )


def _tool_failures(answers: Iterable[ClientAnswer]) -> Iterator[CheckedValue]:
    for answer in answers:
        if answer.failed:
            errors = answer.measurement.errors if answer.measurement else ()
            words = "; ".join(errors[:_QUOTED_ERRORS]) or answer.document.stderr_tail[-MAX_QUOTE_CHARACTERS:]
            detail = f"{_ending(answer.document.exit_code)}: {quote(words) or 'no error message'}"
            yield CheckedValue(clients=(answer.client,), value=max(1, len(errors)), detail=detail)


def _ending(exit_code: int) -> str:
    if exit_code >= 0:
        return f"exit code {quote(str(exit_code), 20)}"
    try:
        return f"ended by signal {-exit_code} ({signal.Signals(-exit_code).name})"
    except ValueError:
        return f"ended by signal {quote(str(-exit_code), 20)}"


def _unreadable(answers: Iterable[ClientAnswer]) -> Iterator[CheckedValue]:
    for answer in answers:
        if answer.problem:
            detail = f"the tool's output cannot be parsed: {quote(answer.problem)}"
            yield CheckedValue(clients=(answer.client,), value=1, detail=detail)


def _missing(intake: Intake) -> Iterator[CheckedValue]:
    for client in intake.missing:
        yield CheckedValue(clients=(client,), value=1, detail="sent no result")


def _lateness(facts: TrialFacts, measured: Collection[ClientMeasurement]) -> Iterator[CheckedValue]:
    """Yield each client's lateness, without what long operations explain, since a ramp ends with a completion.

    They must be as long on every client: on a client that was stopped, operations in flight are long too.
    """
    longest = min(map(_longest, measured), default=0)
    for item in measured:
        launched = item.answer.document.launched_at - facts.t0_nanoseconds
        # What a tool without a window does before it measures takes as long as it takes, and delays no other client.
        started = item.interval.start - facts.planned_start if facts.windowed else launched
        late, beyond = max(started, launched), max(started - longest, launched)
        detail = (
            f"started {_seconds(late)} after the planned time; operations of all clients explain {_seconds(longest)}"
        )
        yield CheckedValue(clients=(item.client,), value=beyond / NANOSECONDS, detail=detail)


def _longest(item: ClientMeasurement) -> int:
    """Return the latency of the client's longest operation, in nanoseconds."""
    return max((sample.latency.max_nanoseconds for sample in item.measurement.operations), default=0)


def _seconds(nanoseconds: int) -> str:
    return f"{number_text(nanoseconds / NANOSECONDS)} s"


def _earliness(facts: TrialFacts, measured: Iterable[ClientMeasurement]) -> Iterator[CheckedValue]:
    """Compare both times on the client's own clock; its offset is another check."""
    # A tool without a window has no ramp to cut short.
    if facts.windowed:
        for item in measured:
            early = facts.planned_start - item.interval.start
            yield CheckedValue(clients=(item.client,), value=early / NANOSECONDS)


def _runtime_differences(facts: TrialFacts, measured: Iterable[ClientMeasurement]) -> Iterator[CheckedValue]:
    requested = facts.runtime_seconds * NANOSECONDS
    if facts.windowed and requested and not facts.ends_when_done:
        for item in measured:
            longest = _longest(item)
            excess = item.interval.length - requested
            # At its end a tool waits for the operations in flight.
            beyond = 100 * max(0, -excess, excess - longest) / requested
            detail = (
                f"ran for {_seconds(item.interval.length)} instead of {facts.runtime_seconds} s; the longest "
                f"operation took {_seconds(longest)}, which leaves {percent_text(beyond)} unexplained"
            )
            yield CheckedValue(clients=(item.client,), value=beyond, detail=detail)


def _work_done(measured: Iterable[ClientMeasurement]) -> Iterator[CheckedValue]:
    for item in measured:
        work = item.measurement.work_bytes or 0
        done = sum(sample.bytes for sample in item.measurement.operations)
        part = 100 * done / work if work else 0.0
        detail = f"{done} of {work} bytes were done in {_seconds(item.interval.length)}"
        yield CheckedValue(clients=(item.client,), value=part, detail=detail)


def _paces(measured: Iterable[ClientMeasurement]) -> Iterator[CheckedValue]:
    for item in measured:
        if item.measurement.pace is not None:
            part = 100 * item.measurement.pace
            detail = f"requests were submitted at {percent_text(part)} of the requested rate"
            yield CheckedValue(clients=(item.client,), value=part, detail=detail)


def _judge_window(window: Window | None, measured: tuple[ClientMeasurement, ...]) -> tuple[Finding, ...]:
    if window is None:
        return ()
    first = min(measured, key=lambda item: item.interval.start).client
    last = max(measured, key=lambda item: item.interval.start).client
    done = min(measured, key=lambda item: item.interval.end).client
    overlap = _overlap(window, tuple(sorted({last, done})))
    spread = CheckedValue(clients=tuple(sorted({first, last})), value=window.spread_seconds)
    return (*evaluate(registry.LOW_OVERLAP, [overlap]), *evaluate(registry.WIDE_SPREAD, [spread]))


def _overlap(window: Window, clients: tuple[int, ...]) -> CheckedValue:
    """Return the overlap; a gap of little time passes unless the numbers would be Invalid."""
    mean = window.seconds / window.overlap if window.overlap else 0.0
    detail = (
        f"all clients measured together for {number_text(window.seconds)} s of a mean runtime of {number_text(mean)} "
        f"s: {number_text(window.overlap)}"
    )
    is_short = mean - window.seconds <= registry.MISSING_SECONDS
    passes = is_short and window.overlap >= registry.LOW_OVERLAP.limit(Verdict.INVALID)
    return CheckedValue(clients=clients, value=1.0 if passes else window.overlap, detail=detail if mean else "")


def _estimated_starts(measured: Iterable[ClientMeasurement]) -> Iterator[CheckedValue]:
    for item in measured:
        if item.measurement.start_is_estimated:
            tool = quote(f"{item.measurement.tool} {item.measurement.tool_version}", 80)
            detail = f"{tool} does not report when it began to measure; its start was estimated"
            yield CheckedValue(clients=(item.client,), value=1, detail=detail)


def _unwritten(facts: TrialFacts, measured: Iterable[ClientMeasurement]) -> Iterator[CheckedValue]:
    for item, sample in _samples(measured):
        # All of them are first writes, as planned: the same kind of work in every trial.
        is_intended = sample.operation is Operation.WRITE and facts.writes_blocks_once
        if sample.operation in _USES_EXTENTS and not item.answer.document.prefilled and not is_intended:
            detail = f"{_USES_EXTENTS[sample.operation]} a data set that was never written, or was trimmed since"
            yield CheckedValue(clients=(item.client,), value=1, detail=detail)


def _samples(measured: Iterable[ClientMeasurement]) -> Iterator[tuple[ClientMeasurement, OperationSample]]:
    for item in measured:
        for sample in item.measurement.operations:
            yield item, sample


def _short_ios(measured: Iterable[ClientMeasurement]) -> Iterator[CheckedValue]:
    for item, sample in _samples(measured):
        detail = f"{sample.short_ios} {sample.operation} operations transferred less than requested"
        yield CheckedValue(clients=(item.client,), value=sample.short_ios, detail=detail)


def _dropped_ios(measured: Iterable[ClientMeasurement]) -> Iterator[CheckedValue]:
    for item, sample in _samples(measured):
        detail = f"the tool dropped {sample.dropped_ios} {sample.operation} operations"
        yield CheckedValue(clients=(item.client,), value=sample.dropped_ios, detail=detail)


def _lost_ios(measured: Iterable[ClientMeasurement]) -> Iterator[CheckedValue]:
    for item, sample in _samples(measured):
        if sample.lost_ios:
            part = 100 * sample.lost_ios / (sample.ios + sample.lost_ios)
            detail = f"{sample.lost_ios} {sample.operation} operations never completed: {percent_text(part)}"
            yield CheckedValue(clients=(item.client,), value=part, detail=detail)


def _completed(evidence: Evidence) -> Iterator[CheckedValue]:
    """Yield what was completed; without a measurement or a window, other checks give the reason."""
    if not evidence.intake.measured or (evidence.window and not evidence.window.seconds):
        return
    if not evidence.rates:
        yield CheckedValue(value=0, detail="no operation was measured")
    quantities = evidence.facts.quantities
    amounts = {name: quantities.amount(one.measured.ios, one.measured.bytes) for name, one in evidence.rates.items()}
    for operation, done in amounts.items():
        # Writes that never complete while reads do are a load that was not achieved.
        if evidence.is_broken and any(amounts.values()):
            continue
        detail = f"{number_text(done)} {operation} {quantities.unit} completed in the window"
        yield CheckedValue(value=done, detail=detail)
    # Other pairs of the round hide it in the sum.
    for item in evidence.intake.measured:
        for rate in item.measurement.peers:
            if not (rate.ios or rate.bytes):
                detail = f"nothing arrived from or at client {rate.peer}"
                yield CheckedValue(clients=(item.client,), value=0, detail=detail)


def _missing_series(measured: Iterable[ClientMeasurement]) -> Iterator[CheckedValue]:
    for item in measured:
        for share in item.shares:
            # No tool keeps a series of its syncs. They follow the writes, whose series is checked.
            if share.sample.operation is not Operation.SYNC and share.lacks_series:
                detail = f"the series of {share.sample.operation} operations over time is missing or incomplete"
                yield CheckedValue(clients=(item.client,), value=1, detail=detail)


def _untimed(measured: Iterable[ClientMeasurement]) -> Iterator[CheckedValue]:
    for item in measured:
        names = item.measurement.untimed
        detail = f"too fast to be timed: {', '.join(names)}"
        yield CheckedValue(clients=(item.client,), value=len(names), detail=detail)


def _inexact(measured: Iterable[ClientMeasurement]) -> Iterator[CheckedValue]:
    for item in measured:
        if item.measurement.inexact is not None:
            part = 100 * item.measurement.inexact
            detail = f"{percent_text(part)} of the timed operations have times that may be too long"
            yield CheckedValue(clients=(item.client,), value=part, detail=detail)


def _unknown_clocks(answers: Iterable[ClientAnswer]) -> Iterator[CheckedValue]:
    for answer in answers:
        if answer.clock is None:
            yield CheckedValue(clients=(answer.client,), value=1, detail="its clock was not compared")
        elif abs(error := answer.clock.error * _MILLISECONDS) > registry.CLOCK_OFFSET.limit(Verdict.SUSPECT):
            detail = f"its clock was compared only to within {number_text(abs(error))} ms"
            yield CheckedValue(clients=(answer.client,), value=1, detail=detail)


def _clock_offsets(answers: Iterable[ClientAnswer]) -> Iterator[CheckedValue]:
    for answer in answers:
        if answer.clock is not None:
            certain = abs(answer.clock.offset) - abs(answer.clock.error)
            yield CheckedValue(clients=(answer.client,), value=max(0.0, certain) * _MILLISECONDS)


def _histogram_mismatches(measured: Iterable[ClientMeasurement]) -> Iterator[CheckedValue]:
    for item, sample in _samples(measured):
        if sample.latency.kind is LatencyKind.FULL and (problem := _latency_problem(sample)):
            yield CheckedValue(clients=(item.client,), value=1, detail=f"{sample.operation} latency: {quote(problem)}")


def _latency_problem(sample: OperationSample) -> str:
    if sample.latency.count != sample.ios:
        return f"{sample.latency.count} operations were timed, but {sample.ios} completed"
    return histogram_problem(sample.latency)


_NAMED = 3
_WORST_FIRST = (Verdict.INVALID, Verdict.SUSPECT)


def reasons_of(status: ResultStatus) -> tuple[str, ...]:
    """Return the reasons of a point's verdict, those of the worst verdict first; empty if it is Valid.

    Before there is a verdict they are those of the last attempt. `NoTrialCounts` is a consequence: in its place appear
    the reasons of all attempts, those first that most of them have.
    """
    if not status.final:
        return _attempt_reasons(status.trials[-1]) if status.trials else ()
    causes = [finding for finding in status.findings if finding.reason != NO_TRIAL_COUNTS.reason]
    if causes or not status.findings:
        return _ordered(causes)
    return _most_frequent_first(status.trials) or (NO_TRIAL_COUNTS.reason,)


def main_reasons(reasons: Iterable[str]) -> str:
    """Return the reasons of points, the most frequent first: `ClientStalled, LateClient (2 points)`."""
    counts = Counter(reason for reason in reasons if reason)
    texts = [f"{reason} ({count} points)" if count > 1 else reason for reason, count in counts.most_common()]
    return first_few(texts, _NAMED)


def _most_frequent_first(trials: Sequence[Trial]) -> tuple[str, ...]:
    """Return what made attempts not count, then what made them Suspect; of equally frequent ones, the latest first."""
    against = Counter[str]()
    doubts = Counter[str]()
    for trial in reversed(trials):
        against.update([trial.abort.reason.value] if trial.abort else _of(Verdict.INVALID, trial.findings))
        doubts.update(() if trial.abort else _of(Verdict.SUSPECT, trial.findings))
    ranked = [reason for counts in (against, doubts) for reason, _ in counts.most_common()]
    return tuple(dict.fromkeys(ranked))


def _attempt_reasons(trial: Trial) -> tuple[str, ...]:
    return (trial.abort.reason.value,) if trial.abort else _ordered(trial.findings)


def _ordered(findings: Sequence[Finding]) -> tuple[str, ...]:
    return tuple(reason for verdict in _WORST_FIRST for reason in _of(verdict, findings))


def _of(verdict: Verdict, findings: Sequence[Finding]) -> tuple[str, ...]:
    return tuple(finding.reason for finding in findings if finding.verdict is verdict)
