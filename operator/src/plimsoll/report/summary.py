"""The verdicts, the numbers in sentences, and the table of all results."""

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence

from plimsoll.api.names import Outcome, Verdict
from plimsoll.api.result import Finding
from plimsoll.measure.attempts import counted
from plimsoll.measure.checks.check import verdict_of
from plimsoll.measure.rates import rate_text
from plimsoll.measure.summary import iops_of
from plimsoll.report.figure import (
    UNFINISHED,
    PlottedPoint,
    PlottedSweep,
    SearchedWorkload,
    axis_number,
    axis_value,
    counting,
    is_search,
    line_of,
    verdict_text,
)
from plimsoll.report.inputs import ReportedRun, results_of
from plimsoll.report.line import headline_sentences
from plimsoll.report.points import RESULT_COLUMNS, labelled, result_rows
from plimsoll.report.view import (
    Block,
    Counts,
    Reasons,
    Section,
    Text,
    VerdictReason,
    bytes_rate_text,
    count_text,
    duration_text,
    page_table,
)
from plimsoll.suite.evaluation import Compared
from plimsoll.tools.registry import DEPTH_AXES

_VERDICTS = (Verdict.VALID.value, Verdict.SUSPECT.value, Verdict.INVALID.value, UNFINISHED)
_SEVERITY = (Verdict.INVALID, Verdict.SUSPECT, Verdict.VALID)
_MOST_SENTENCES = 6
_MOST_PEAKS = 12
_FLAT = 1.1
_STEEP = 1.5

_WORDS = (
    "Rates and latencies are means over the trials that count; ± is half the 95 % confidence interval (Student's "
    "t), CV the standard deviation divided by the mean. A percentile is the mean of the trials' own percentiles, "
    "absent where a trial has fewer than ten operations beyond it. A search for the line has no means: its line is in "
    "the last column. Click a heading to sort."
)


def verdicts_section(
    runs: Sequence[ReportedRun],
    sweeps: Sequence[PlottedSweep],
    compared: Sequence[Compared],
    searched: Sequence[SearchedWorkload] = (),
) -> Section:
    """Return the verdicts with their reasons, and the summary."""
    points = Counter(verdict_text(result) for _, result in results_of(runs))
    counts = [(verdict, points[verdict]) for verdict in _VERDICTS if points[verdict] or verdict != UNFINISHED]
    saturations = [sentence for sweep in sweeps for sentence in _saturations(sweep)]
    if (more := len(saturations) - _MOST_SENTENCES) > 0:
        saturations[_MOST_SENTENCES:] = [f"The same holds for {more} more series: see the response curves."]
    sentences = [
        *(_run_text(run) for run in runs),
        *(_compared_text(pair) for pair in compared),
        *headline_sentences(searched),
        *_longest_stall(runs),
        *saturations,
        *_peaks(sweeps),
    ]
    blocks: list[Block] = [Counts(counts=counts), Text(paragraphs=sentences), Reasons(reasons=[*verdict_reasons(runs)])]
    return Section(key="verdicts", title="Verdicts", blocks=blocks)


def verdict_reasons(runs: Sequence[ReportedRun]) -> Iterator[VerdictReason]:
    """Yield every reason once with the message of a worst case; the worst reasons first, then the most frequent."""
    several = len(runs) > 1
    cases: dict[str, list[tuple[str, Finding]]] = {}
    for run, result in results_of(runs):
        name = f"{run.label} {result.spec.point}" if several else result.spec.point
        for finding in result.status.findings:
            cases.setdefault(finding.reason, []).append((name, finding))
    reasons: list[VerdictReason] = []
    for reason, findings in cases.items():
        verdict = verdict_of(finding for _, finding in findings)
        worst, finding = next(case for case in findings if case[1].verdict is verdict)
        points = [*dict.fromkeys([worst, *(name for name, _ in findings)])]
        reasons.append(VerdictReason(reason=reason, verdict=verdict, points=points, message=finding.message))
    yield from sorted(reasons, key=lambda reason: (_SEVERITY.index(Verdict(reason.verdict)), -len(reason.points)))


def _run_text(run: ReportedRun) -> str:
    """Return the verdicts of a run's points and the outcomes of its attempts."""
    verdicts = Counter(map(verdict_text, run.results))
    points = ", ".join(f"{verdicts[verdict]} {verdict}" for verdict in _VERDICTS if verdicts[verdict])
    aborted = sum(trial.outcome is Outcome.ABORTED for result in run.results for trial in result.status.trials)
    lost = f"; {count_text(aborted, 'aborted attempt')}" if aborted else ""
    counts: list[str] = []
    if repeated := [result for result in run.results if not is_search(result)]:
        good = sum(len(counted(result.status.trials)) for result in repeated)
        counts.append(f"{good} of {sum(result.spec.repetitions for result in repeated)} planned trials")
    if lines := [line_of(result) for result in run.results if is_search(result)]:
        probes = count_text(sum(line.probes for line in lines), "probe")
        counts.append(f"{sum(line.counted for line in lines)} of {probes}")
    return f"{run.label}: {points} of {len(run.results)} points. {' and '.join(counts)} count{lost}."


def _compared_text(compared: Compared) -> str:
    names = f"{compared.candidate} against {compared.baseline}"
    if compared.comparison is None:
        return f"{names}: not compared, because the runs have no point in common."
    different = "" if compared.likeness.is_same else " Their specifications differ or are unknown: see the comparison."
    return f"{names}: {compared.comparison.conclusion}: {'; '.join(compared.comparison.reasons)}.{different}"


def _longest_stall(runs: Sequence[ReportedRun]) -> Iterator[str]:
    stalls = [
        (trial.stalls.seconds, f"{run.label} {result.spec.point}")
        for run, result in results_of(runs)
        for trial in counting(result)
        if trial.stalls and trial.stalls.seconds
    ]
    if stalls:
        seconds, place = max(stalls)
        yield f"{count_text(len(stalls), 'trial')} stalled; the longest stall is {seconds:g} s, at {place}."


def _peaks(sweeps: Sequence[PlottedSweep]) -> Iterator[str]:
    """Yield the peak of each workload, operation and run: most operations, and most bytes if at another point."""
    for sweep in sweeps[:_MOST_PEAKS]:
        for run in dict.fromkeys(point.run.label for point in sweep.measured):
            measured = [point for point in sweep.measured if point.run.label == run]
            most = max(measured, key=lambda point: point.operation.iops.mean)
            widest = max(measured, key=lambda point: point.operation.bytes_per_second.mean)
            name = f"{sweep.title} ({run})" if sweep.has_several_runs else sweep.title
            volume = bytes_rate_text(widest.operation.bytes_per_second.mean)
            if iops_of(most.operation) is None:
                yield f"{name}: at most {volume} at {_at(widest)}."
                continue
            p99 = most.operation.percentiles.get("99")
            latency = f" with a p99 of {duration_text(p99.mean)}" if p99 else ""
            rate = f"{name}: at most {rate_text(most.operation.iops.mean)} IOPS{latency} at {_at(most)}"
            yield f"{rate}, which are {volume}." if widest is most else f"{rate}; at most {volume} at {_at(widest)}."


def _at(point: PlottedPoint) -> str:
    """Return a point with its verdict, unless it is Valid."""
    mark = "" if point.is_valid else f" [{point.verdict}]"
    return f"{point.result.spec.label}, {count_text(point.result.spec.clients, 'client')}{mark}"


def _saturations(sweep: PlottedSweep) -> Iterator[str]:
    """Yield where a series saturates: more depth increases latency but hardly the rate."""
    axis = sweep.axis_among(DEPTH_AXES)
    if axis is None:
        return
    others = sweep.without(axis)
    series: dict[str, list[PlottedPoint]] = {}
    for point in sweep.measured:
        # A limited rate does not grow with depth.
        limited = point.result.spec.parameters.get("rateIops") is not None
        if not limited and axis_number(point.result, axis) and "99" in point.operation.percentiles:
            series.setdefault(sweep.label(point, others) if others or sweep.has_several_runs else "", []).append(point)
    for label, points in series.items():
        points.sort(key=lambda point: axis_number(point.result, axis) or 0)
        for before, after in itertools.pairwise(points):
            rate = _ratio(before.operation.iops.mean, after.operation.iops.mean)
            latency = _ratio(before.operation.percentiles["99"].mean, after.operation.percentiles["99"].mean)
            if rate <= _FLAT and latency >= _STEEP:
                marks = sorted({f" [{point.verdict}]" for point in (before, after) if not point.is_valid})
                depths = f"depth {axis_value(before.result, axis)} to {axis_value(after.result, axis)}"
                yield (
                    f"{sweep.title}{label and f', {label}'}: from {depths} the rate changes by {100 * (rate - 1):+.0f} "
                    f"% while p99 is {latency:.1f} times as long{''.join(marks)}."
                )
                break


def _ratio(before: float, after: float) -> float:
    return after / before if before else 0.0


def results_section(runs: Sequence[ReportedRun]) -> Section:
    """Return every operation of every point; a point without numbers has the reason."""
    # The verdict comes before the numbers, of which there are many.
    columns = sorted(RESULT_COLUMNS, key=lambda column: column.heading not in {"Point", "Run", "Verdict"})
    rows = result_rows(labelled(runs))
    table = page_table("All points", columns, rows, leave_out=() if len(runs) > 1 else {"Run"})
    return Section(key="results", title="Results", blocks=[Text(paragraphs=[_WORDS]), table])
