"""Looking at everything that can make a trial's numbers untrue. What is too much stands in `checks`.

Here is what the documents and their times say; `load` looks at what the clients did, `hosts` at where they did
it, `cluster` and `osds` at what Ceph was like, `terms` at whether all of it is one measurement.
"""

import signal
from collections.abc import Collection, Iterable, Iterator

from plimsoll.api.names import LatencyKind, Operation, Verdict
from plimsoll.api.result import Finding, Window
from plimsoll.measure.checking import checks
from plimsoll.measure.checking.check import Observation, evaluate
from plimsoll.measure.checking.cluster import judge_cluster
from plimsoll.measure.checking.evidence import Evidence
from plimsoll.measure.checking.hosts import judge_hosts
from plimsoll.measure.checking.load import judge_load
from plimsoll.measure.checking.osds import judge_osds
from plimsoll.measure.checking.terms import judge_terms
from plimsoll.measure.intake import Answer, Intake, Measured, TrialFacts
from plimsoll.measure.latency import histogram_problem
from plimsoll.measure.sample import OperationSample
from plimsoll.measure.window import NANOSECONDS
from plimsoll.measure.wording import MAX_QUOTE_CHARACTERS, number_text, quote

_MILLISECONDS = 1000
_PERCENT = 100
_QUOTED_ERRORS = 3
_UNWRITTEN = {Operation.READ: "read", Operation.WRITE: "wrote to"}


def judge(evidence: Evidence) -> tuple[Finding, ...]:
    """Return what does not hold, in the order of the table of checks."""
    intake, facts = evidence.intake, evidence.facts
    measured = intake.measured
    return (
        *evaluate(checks.TOOL_FAILED, _tool_failures(intake.answers)),
        *evaluate(checks.OUTPUT_UNREADABLE, _unreadable(intake.answers)),
        *evaluate(checks.CLIENT_MISSING, _missing(intake)),
        *evaluate(checks.LATE_CLIENT, _lateness(facts, measured)),
        *evaluate(checks.EARLY_CLIENT, _earliness(facts, measured)),
        *evaluate(checks.SHORT_RUN, _runtime_differences(facts, measured)),
        *_judge_window(evidence.window, measured),
        *evaluate(checks.TOOL_TOO_OLD, _estimated_starts(measured)),
        *evaluate(checks.NOT_PREFILLED, _unwritten(measured)),
        *evaluate(checks.SHORT_IO, _short_ios(measured)),
        *evaluate(checks.DROPPED_IO, _dropped_ios(measured)),
        *evaluate(checks.LOST_IO, _lost_ios(measured)),
        *evaluate(checks.NO_IO, _completed(evidence)),
        *evaluate(checks.SERIES_INCOMPLETE, _missing_series(measured) if facts.windowed else ()),
        *evaluate(checks.CLOCK_UNKNOWN, _unknown_clocks(intake.answers)),
        *evaluate(checks.CLOCK_OFFSET, _clock_offsets(intake.answers)),
        *evaluate(checks.HISTOGRAM_MISMATCH, _histogram_mismatches(measured)),
        # A client that was throttled stalls: the cause is named first.
        *judge_hosts(evidence),
        *judge_load(evidence),
        *judge_cluster(evidence),
        *judge_osds(evidence),
        # Last: what makes clients uneven is named before that they are.
        *judge_terms(evidence),
    )


def _tool_failures(answers: Iterable[Answer]) -> Iterator[Observation]:
    for answer in answers:
        if answer.failed:
            errors = answer.measurement.errors if answer.measurement else ()
            words = "; ".join(errors[:_QUOTED_ERRORS]) or answer.document.stderr_tail[-MAX_QUOTE_CHARACTERS:]
            detail = f"{_ending(answer.document.exit_code)}: {quote(words) or 'it said nothing'}"
            yield Observation(clients=(answer.client,), value=max(1, len(errors)), detail=detail)


def _ending(exit_code: int) -> str:
    if exit_code >= 0:
        return f"exit code {quote(str(exit_code), 20)}"
    try:
        return f"ended by signal {-exit_code} ({signal.Signals(-exit_code).name})"
    except ValueError:
        return f"ended by signal {quote(str(-exit_code), 20)}"


def _unreadable(answers: Iterable[Answer]) -> Iterator[Observation]:
    for answer in answers:
        if answer.problem:
            detail = f"the tool's output cannot be read: {quote(answer.problem)}"
            yield Observation(clients=(answer.client,), value=1, detail=detail)


def _missing(intake: Intake) -> Iterator[Observation]:
    for client in intake.missing:
        yield Observation(clients=(client,), value=1, detail="sent no document")


def _lateness(facts: TrialFacts, measured: Collection[Measured]) -> Iterator[Observation]:
    """Leave out what long operations explain, since a ramp ends with a completion.

    They must be as long on every client: on a client that was stopped, operations in flight are long too.
    """
    longest = min(map(_longest, measured), default=0)
    for item in measured:
        started = item.interval.start - facts.planned_start
        launched = item.answer.document.launched_at - facts.t0_nanoseconds
        if not facts.windowed:
            # What such a tool does before it measures takes as long as it takes, and holds nobody up.
            started = launched
        late, beyond = max(started, launched), max(started - longest, launched)
        detail = (
            f"started {_seconds(late)} after the planned time; operations of all clients explain {_seconds(longest)}"
        )
        yield Observation(clients=(item.client,), value=beyond / NANOSECONDS, detail=detail)


def _longest(item: Measured) -> int:
    """Return the latency of the client's longest operation, in nanoseconds."""
    return max((sample.latency.max_nanoseconds for sample in item.measurement.operations), default=0)


def _seconds(nanoseconds: int) -> str:
    return f"{number_text(nanoseconds / NANOSECONDS)} s"


def _earliness(facts: TrialFacts, measured: Iterable[Measured]) -> Iterator[Observation]:
    """Look at both times on the client's own clock; how far that is off is another check's matter."""
    # A tool that does not run for a time has no ramp that it could cut.
    if facts.windowed:
        for item in measured:
            early = facts.planned_start - item.interval.start
            yield Observation(clients=(item.client,), value=early / NANOSECONDS)


def _runtime_differences(facts: TrialFacts, measured: Iterable[Measured]) -> Iterator[Observation]:
    requested = facts.runtime_seconds * NANOSECONDS
    if facts.windowed and requested:
        for item in measured:
            longest = _longest(item)
            excess = item.interval.length - requested
            # A tool waits at its end for what is in flight.
            beyond = _PERCENT * max(0, -excess, excess - longest) / requested
            detail = (
                f"ran for {_seconds(item.interval.length)} and not {facts.runtime_seconds} s; "
                f"the longest operation took {_seconds(longest)}: {beyond:.3g} % not explained by it"
            )
            yield Observation(clients=(item.client,), value=beyond, detail=detail)


def _judge_window(window: Window | None, measured: tuple[Measured, ...]) -> tuple[Finding, ...]:
    if window is None:
        return ()
    first = min(measured, key=lambda item: item.interval.start).client
    last = max(measured, key=lambda item: item.interval.start).client
    done = min(measured, key=lambda item: item.interval.end).client
    overlap = _overlap(window, tuple(sorted({last, done})))
    spread = Observation(clients=tuple(sorted({first, last})), value=window.spread_seconds)
    return (*evaluate(checks.LOW_OVERLAP, [overlap]), *evaluate(checks.WIDE_SPREAD, [spread]))


def _overlap(window: Window, clients: tuple[int, ...]) -> Observation:
    """Leave out what is little in seconds, unless it is so large a part that the numbers would be Invalid."""
    mean = window.seconds / window.overlap if window.overlap else 0.0
    missing = mean - window.seconds
    detail = (
        f"all measured together for {number_text(window.seconds)} s of a mean runtime of {number_text(mean)} s: "
        f"{number_text(window.overlap)}"
    )
    little = missing <= checks.MISSING_SECONDS and window.overlap >= checks.LOW_OVERLAP.limit(Verdict.INVALID)
    return Observation(clients=clients, value=1.0 if little else window.overlap, detail=detail if mean else "")


def _estimated_starts(measured: Iterable[Measured]) -> Iterator[Observation]:
    for item in measured:
        if item.measurement.start_is_estimated:
            tool = quote(f"{item.measurement.tool} {item.measurement.tool_version}", 80)
            detail = f"{tool} does not tell when it began to measure; its start was estimated"
            yield Observation(clients=(item.client,), value=1, detail=detail)


def _unwritten(measured: Iterable[Measured]) -> Iterator[Observation]:
    """Look at reads, which such extents answer at once, and at writes, the first of which has to allocate them."""
    for item, sample in _samples(measured):
        if sample.operation in _UNWRITTEN and not item.answer.document.prefilled:
            detail = f"{_UNWRITTEN[sample.operation]} a data set that was not written before, or was trimmed since"
            yield Observation(clients=(item.client,), value=1, detail=detail)


def _samples(measured: Iterable[Measured]) -> Iterator[tuple[Measured, OperationSample]]:
    for item in measured:
        for sample in item.measurement.operations:
            yield item, sample


def _short_ios(measured: Iterable[Measured]) -> Iterator[Observation]:
    for item, sample in _samples(measured):
        detail = f"{sample.short_ios} {sample.operation} operations transferred less than asked"
        yield Observation(clients=(item.client,), value=sample.short_ios, detail=detail)


def _dropped_ios(measured: Iterable[Measured]) -> Iterator[Observation]:
    for item, sample in _samples(measured):
        detail = f"the tool gave up {sample.dropped_ios} {sample.operation} operations"
        yield Observation(clients=(item.client,), value=sample.dropped_ios, detail=detail)


def _lost_ios(measured: Iterable[Measured]) -> Iterator[Observation]:
    for item, sample in _samples(measured):
        if sample.lost_ios:
            part = _PERCENT * sample.lost_ios / (sample.ios + sample.lost_ios)
            detail = f"{sample.lost_ios} {sample.operation} operations were begun and never completed: {part:.3g} %"
            yield Observation(clients=(item.client,), value=part, detail=detail)


def _completed(evidence: Evidence) -> Iterator[Observation]:
    """Look at what was measured at all; where nothing could be, other checks say why."""
    if not evidence.intake.measured or (evidence.window and not evidence.window.seconds):
        return
    if not evidence.rates:
        yield Observation(value=0, detail="no operation was measured")
    for operation, rates in evidence.rates.items():
        detail = f"{number_text(rates.measured.ios)} completed {operation} operations inside the window"
        yield Observation(value=rates.measured.ios, detail=detail)


def _missing_series(measured: Iterable[Measured]) -> Iterator[Observation]:
    for item in measured:
        for share in item.shares:
            # No tool keeps a series of its syncs. They follow the writes, whose series is checked.
            if share.sample.operation is not Operation.SYNC and share.lacks_series:
                detail = f"there is no complete series of {share.sample.operation} operations over time"
                yield Observation(clients=(item.client,), value=1, detail=detail)


def _unknown_clocks(answers: Iterable[Answer]) -> Iterator[Observation]:
    for answer in answers:
        if answer.clock is None:
            yield Observation(clients=(answer.client,), value=1, detail="its clock was not compared")
        elif abs(error := answer.clock.error * _MILLISECONDS) > checks.CLOCK_OFFSET.limit(Verdict.SUSPECT):
            detail = f"its clock was compared to within {number_text(abs(error))} ms only"
            yield Observation(clients=(answer.client,), value=1, detail=detail)


def _clock_offsets(answers: Iterable[Answer]) -> Iterator[Observation]:
    for answer in answers:
        if answer.clock is not None:
            certain = abs(answer.clock.offset) - abs(answer.clock.error)
            yield Observation(clients=(answer.client,), value=max(0.0, certain) * _MILLISECONDS)


def _histogram_mismatches(measured: Iterable[Measured]) -> Iterator[Observation]:
    for item, sample in _samples(measured):
        if sample.latency.kind is LatencyKind.FULL and (problem := _latency_problem(sample)):
            yield Observation(clients=(item.client,), value=1, detail=f"{sample.operation} latency: {quote(problem)}")


def _latency_problem(sample: OperationSample) -> str:
    if sample.latency.count != sample.ios:
        return f"{sample.latency.count} operations were timed, {sample.ios} were done"
    return histogram_problem(sample.latency)
