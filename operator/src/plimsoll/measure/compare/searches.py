"""Compares the lines of two runs: a lower line is a regression.

Each side has one estimate with an interval, instead of trials that repeat a load, so `LineChange` decides. The rates
of error that follow from the levels are in `docs/comparing.md`.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from plimsoll.api.names import Operation
from plimsoll.api.result import BenchmarkResult
from plimsoll.measure.compare.between import MINIMUM_RUNS, Floor
from plimsoll.measure.compare.conclusion import Conclusion
from plimsoll.measure.compare.inference import Between, holm, moments
from plimsoll.measure.compare.lines import LineChange, Position, line_problem, position_of
from plimsoll.measure.compare.matching import Pair
from plimsoll.measure.compare.metrics import Metric, RegressionRule
from plimsoll.measure.compare.results import MetricComparison, deviation_of, finite_exp
from plimsoll.measure.compare.sides import Side
from plimsoll.measure.line.wording import rounded_load
from plimsoll.measure.statistics import CONFIDENCE

LINES = 0.006
"""One-sided, of all lines of a comparison that tests nothing else."""

LINES_AMONG = 0.0005
"""The same if it also tests metrics of points."""

_ONE_SIDED = 1 - CONFIDENCE
_UNKNOWN_NOISE = (
    f"its noise between runs is unknown: fewer than {MINIMUM_RUNS} of the --noise runs have an estimate of this line; "
    "pass other --noise runs, or none"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Case:
    """The lines of a pair, or why they cannot be compared."""

    pair: Pair
    change: LineChange | None = None
    between: Between | None = None
    problem: str = ""


def is_search(pair: Pair) -> bool:
    """Whether either result comes from a search for the line, whose trials have different loads."""
    return any(result.spec.line is not None for result in (pair.baseline, pair.candidate))


def compare_lines(
    pairs: Sequence[Pair], rule: RegressionRule, floor: Floor, *, alone: bool
) -> tuple[MetricComparison, ...]:
    """Compare the line of each pair; `alone` means that the comparison tests nothing else."""
    cases = [_case(pair, floor) for pair in pairs]
    changes = [case.change for case in cases if case.change is not None]
    adjusted = zip(
        changes,
        holm([change.p_lower() for change in changes]),
        holm([min(1.0, 2 * min(change.p_lower(), change.p_higher())) for change in changes]),
        strict=True,
    )
    level = LINES if alone else LINES_AMONG
    return tuple(
        _incomparable(case) if case.change is None else _compared(case, *next(adjusted), level, rule) for case in cases
    )


def _case(pair: Pair, floor: Floor) -> _Case:
    problem = line_problem("baseline", pair.baseline) or line_problem("candidate", pair.candidate) or _unlike(pair)
    baseline, candidate = _position(pair.baseline), _position(pair.candidate)
    between = lines_between(floor.results_of(pair)) if floor.runs else None
    if floor.runs and between is None:
        problem = problem or _UNKNOWN_NOISE
    if problem or baseline is None or candidate is None:
        return _Case(pair=pair, between=between, problem=problem)
    change = LineChange(baseline=baseline, candidate=candidate, between=between)
    return _Case(pair=pair, change=change, between=between)


def _unlike(pair: Pair) -> str:
    ours, theirs = pair.baseline.spec.line, pair.candidate.spec.line
    if ours and theirs and (ours.vary is not theirs.vary or _objectives(pair.baseline) != _objectives(pair.candidate)):
        return "the searches have different objectives or vary different loads, so their lines cannot be compared"
    return ""


def _objectives(result: BenchmarkResult) -> dict[str, int]:
    search = result.spec.line
    return {one.percentile: one.latency_microseconds for one in search.objectives} if search else {}


def _position(result: BenchmarkResult) -> Position | None:
    line, search = result.status.line, result.spec.line
    return position_of(line, search) if line is not None and search is not None else None


def lines_between(results: Sequence[BenchmarkResult]) -> Between | None:
    """Return the variance of the runs' lines beyond their own errors; None if it is unknown."""
    known = [one for one in map(_position, filter(_is_usable, results)) if one is not None and one.has_interval]
    if len(known) < MINIMUM_RUNS:
        return None
    _, spread = moments([one.value for one in known])
    explained = math.fsum(((one.down + one.up) / 2) ** 2 for one in known) / len(known)
    return Between(variance=max(0.0, spread - explained), runs=len(known))


def _is_usable(result: BenchmarkResult) -> bool:
    return not line_problem("run", result)


def _compared(
    case: _Case, change: LineChange, p_worse: float, p_value: float, level: float, rule: RegressionRule
) -> MetricComparison:
    threshold = -rule.log_threshold(Metric.LINE)
    low, high = change.interval()
    bound, _ = change.interval(1 - 2 * _ONE_SIDED)
    conclusion = _conclusion(change, threshold, bound, worse=p_worse < level)
    return _incomparable(case).model_copy(
        update={
            "ratio": finite_exp(change.estimate) if change.is_estimate else None,
            "low": finite_exp(low),
            "high": finite_exp(high),
            "bound": finite_exp(bound),
            "p_value": p_value,
            "p_worse": p_worse,
            "level": level,
            "conclusion": conclusion,
            "confirmed": conclusion is Conclusion.REGRESSION and high < threshold,
            "improved": conclusion is Conclusion.NO_REGRESSION and p_value < 2 * level and change.estimate > -threshold,
            "notes": tuple(_notes(change, threshold, bound, conclusion)),
        }
    )


def _conclusion(change: LineChange, threshold: float, bound: float, *, worse: bool) -> Conclusion:
    """Return the conclusion; `threshold` and `bound` are changes of the logarithm."""
    if worse and change.estimate < threshold:
        return Conclusion.REGRESSION
    return Conclusion.NO_REGRESSION if bound > threshold else Conclusion.INCONCLUSIVE


def _incomparable(case: _Case) -> MetricComparison:
    return MetricComparison(
        operation=operation_of([case.pair.baseline, case.pair.candidate]),
        metric=Metric.LINE,
        gates=True,
        baseline=side_of_line(case.pair.baseline),
        candidate=side_of_line(case.pair.candidate),
        between=deviation_of(case.between),
        conclusion=Conclusion.INCONCLUSIVE,
        notes=tuple(filter(None, [case.problem])),
    )


def operation_of(results: Sequence[BenchmarkResult]) -> Operation:
    """Return the first operation of these searches; their line is one of all operations together."""
    trials = [trial for result in results for trial in result.status.trials]
    done = {result.operation for trial in trials for result in trial.operations}
    return next((one for one in Operation if one in done), Operation.READ)


def side_of_line(result: BenchmarkResult) -> Side:
    """Describe the line of a result: its trials are probes, its deviation is the standard error."""
    line, position = result.status.line, _position(result)
    if line is None:
        return Side(trials=0)
    deviation = (position.down + position.up) / 2 if position and position.has_interval else None
    return Side(trials=line.counted, mean=line.estimate, deviation=deviation)


def _notes(change: LineChange, threshold: float, bound: float, conclusion: Conclusion) -> Iterator[str]:
    yield from _bounds("baseline", change.baseline)
    yield from _bounds("candidate", change.candidate)
    if conclusion is not Conclusion.INCONCLUSIVE or not change.is_estimate:
        return
    if change.estimate > threshold and math.isfinite(bound):
        part = (change.estimate - threshold) / (change.estimate - bound)
        yield (
            f"the intervals of the lines are too wide to show that nothing is worse: {100 * part:.0f} % of their width "
            "would do at this change; decrease precisionPercent, or tolerate more"
        )


def _bounds(name: str, position: Position) -> Iterator[str]:
    """Yield on which side of the loads a line is."""
    if position.is_estimate:
        return
    side = "above" if math.isinf(position.up) else "below"
    yield f"the line of the {name} is {side} {rounded_load(math.exp(position.value))}; how far is unknown"
