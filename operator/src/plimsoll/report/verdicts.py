"""The verdicts, and what follows from the numbers in plain words."""

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence

from plimsoll.api.names import Outcome, Verdict
from plimsoll.api.result import BenchmarkResult, Finding
from plimsoll.measure.checking.check import verdict_of
from plimsoll.measure.rates import rate_text
from plimsoll.measure.summary import counted
from plimsoll.report.figure import duration_text, rate_of_bytes
from plimsoll.report.points import DEPTHS, UNFINISHED, Measured, Sweep, axis_number, axis_value, verdict_text
from plimsoll.report.runs import Compared, Run
from plimsoll.report.view import Block, Counts, Reason, Reasons, Section, Text

_VERDICTS = (Verdict.VALID.value, Verdict.SUSPECT.value, Verdict.INVALID.value, UNFINISHED)
_SEVERITY = (Verdict.INVALID, Verdict.SUSPECT, Verdict.VALID)
_MOST_SENTENCES = 6
_MOST_PEAKS = 12
_FLAT = 1.1
_STEEP = 1.5


def verdicts_section(runs: Sequence[Run], sweeps: Sequence[Sweep], compared: Sequence[Compared]) -> Section:
    """Return what a reader must know before any number."""
    results = [result for run in runs for result in run.results]
    found = Counter(verdict_text(result) for result in results)
    counts = [(verdict, found[verdict], "points") for verdict in _VERDICTS if found[verdict] or verdict != UNFINISHED]
    sentences = [
        *(_run_text(run) for run in runs),
        *(_compared_text(one) for one in compared),
        *_standstill(runs),
        *_saturations(sweeps),
        *_peaks(sweeps),
    ]
    blocks: list[Block] = [Counts(counts=counts), Text(paragraphs=sentences), Reasons(reasons=[*reasons_of(runs)])]
    return Section(key="verdicts", title="Verdicts", blocks=blocks)


def reasons_of(runs: Sequence[Run]) -> Iterator[Reason]:
    """Yield every reason once, the worst first and then the most frequent, in the words of a point at its worst."""
    several = len(runs) > 1
    found: dict[str, list[tuple[str, Finding]]] = {}
    for run in runs:
        for result in run.results:
            name = f"{run.label} {result.spec.point}" if several else result.spec.point
            for finding in result.status.findings:
                found.setdefault(finding.reason, []).append((name, finding))
    reasons = [_reason(reason, cases) for reason, cases in found.items()]
    yield from sorted(reasons, key=lambda one: (_SEVERITY.index(Verdict(one.verdict)), -len(one.points)))


def _reason(reason: str, cases: Sequence[tuple[str, Finding]]) -> Reason:
    verdict = verdict_of(finding for _, finding in cases)
    worst, finding = next(case for case in cases if case[1].verdict is verdict)
    points = [worst, *(name for name, _ in cases)]
    return Reason(reason=reason, verdict=verdict, points=[*dict.fromkeys(points)], message=finding.message)


def _run_text(run: Run) -> str:
    """Return how many points of a run may be believed, and what became of its attempts."""
    found = Counter(verdict_text(result) for result in run.results)
    points = ", ".join(f"{found[verdict]} {verdict}" for verdict in _VERDICTS if found[verdict])
    trials = [trial for result in run.results for trial in result.status.trials]
    good = sum(len(counted(result.status.trials)) for result in run.results)
    planned = sum(result.spec.repetitions for result in run.results)
    aborted = sum(trial.outcome is Outcome.ABORTED for trial in trials)
    lost = f"; {aborted} attempt{' was' if aborted == 1 else 's were'} aborted" if aborted else ""
    return f"{run.label}: {points} of {len(run.results)} points. {good} of {planned} planned trials count{lost}."


def _compared_text(one: Compared) -> str:
    names = f"{one.candidate} against {one.baseline}"
    if one.comparison is None:
        return f"{names}: not compared, the runs have no point in common."
    unlike = "" if one.is_of_the_same else " They are not known to be of the same thing: see the comparison."
    return f"{names}: {one.comparison.conclusion}: {'; '.join(one.comparison.reasons)}.{unlike}"


def _standstill(runs: Sequence[Run]) -> Iterator[str]:
    """Yield the longest time without any completed operation, if there was one."""
    found = [
        (trial.stalls.seconds, f"{run.label} {result.spec.point}")
        for run in runs
        for result in run.results
        for trial in counted(result.status.trials)
        if trial.stalls and trial.stalls.seconds
    ]
    if found:
        seconds, place = max(found)
        yield f"In {len(found)} trials nothing completed for some time, for {seconds:g} s in the worst, at {place}."


def _peaks(sweeps: Sequence[Sweep]) -> Iterator[str]:
    """Yield the best of each workload and operation of each run: most operations, and most bytes if elsewhere."""
    for sweep in sweeps[:_MOST_PEAKS]:
        for label in dict.fromkeys(one.run.label for one in sweep.measured):
            yield _peak(sweep, label, [one for one in sweep.measured if one.run.label == label])


def _peak(sweep: Sweep, run: str, measured: Sequence[Measured]) -> str:
    most = max(measured, key=lambda one: one.operation.iops.mean)
    widest = max(measured, key=lambda one: one.operation.bytes_per_second.mean)
    name = f"{sweep.title} ({run})" if sweep.runs > 1 else sweep.title
    p99 = most.operation.percentiles.get("99")
    latency = f" with a p99 of {duration_text(p99.mean)}" if p99 else ""
    text = f"{name}: at most {rate_text(most.operation.iops.mean)} IOPS{latency} at {_at(most)}"
    if widest is most:
        return f"{text}, which are {rate_of_bytes(most.operation.bytes_per_second.mean)}."
    return f"{text}; at most {rate_of_bytes(widest.operation.bytes_per_second.mean)} at {_at(widest)}."


def _at(one: Measured) -> str:
    """Return the place of a point, with its mark."""
    mark = "" if one.is_valid else f" [{one.verdict}]"
    clients = one.result.spec.clients
    return f"{one.result.spec.label}, {clients} client{'' if clients == 1 else 's'}{mark}"


def _saturations(sweeps: Sequence[Sweep]) -> Iterator[str]:
    """Yield where more depth only makes operations wait: the rate hardly grows, latency does."""
    found = [text for sweep in sweeps if (axis := sweep.axis_among(DEPTHS)) for text in _saturated(sweep, axis)]
    yield from found[:_MOST_SENTENCES]
    if len(found) > _MOST_SENTENCES:
        yield f"The same holds for {len(found) - _MOST_SENTENCES} more series: see the response curves."


def _saturated(sweep: Sweep, axis: str) -> Iterator[str]:
    others = sweep.without(axis)
    series: dict[str, list[Measured]] = {}
    for one in sweep.measured:
        # Of a limited rate it is no wonder that it does not grow.
        limited = one.result.spec.parameters.get("rateIops") is not None
        if not limited and axis_number(one.result, axis) and "99" in one.operation.percentiles:
            series.setdefault(sweep.label(one, others) if others or sweep.runs > 1 else "", []).append(one)
    for label, points in series.items():
        points.sort(key=lambda one: axis_number(one.result, axis) or 0)
        for before, after in itertools.pairwise(points):
            rate = _ratio(before.operation.iops.mean, after.operation.iops.mean)
            latency = _ratio(before.operation.percentiles["99"].mean, after.operation.percentiles["99"].mean)
            if rate <= _FLAT and latency >= _STEEP:
                yield _saturation(sweep, axis, label, before, after, rate=rate, latency=latency)
                break


def _ratio(before: float, after: float) -> float:
    return after / before if before else 0.0


def _saturation(
    sweep: Sweep, axis: str, label: str, before: Measured, after: Measured, *, rate: float, latency: float
) -> str:
    marks = sorted({f" [{one.verdict}]" for one in (before, after) if not one.is_valid})
    where = f"{sweep.title}, {label}" if label else sweep.title
    depths = f"depth {axis_value(before.result, axis)} to {axis_value(after.result, axis)}"
    change = f"changes by {100 * (rate - 1):+.0f} %"
    return f"{where}: from {depths} the rate {change} while p99 is {latency:.1f} times as long{''.join(marks)}."


def no_numbers(result: BenchmarkResult) -> str:
    """Return why a point has no numbers."""
    worst = next((one for one in result.status.findings if one.verdict is Verdict.INVALID), None)
    if worst is not None:
        return f"{worst.reason}: {worst.message}"
    if not result.status.final:
        passes = {trial.pass_number for trial in result.status.trials}
        return f"not finished: {len(passes)} of {result.spec.repetitions} trials are recorded"
    return "no trial counts, and no reason was recorded"
