"""The change of the line between two runs, from one estimate with a 95 % interval of each.

The logarithm of an estimate is taken as normal, with an error of its own on each side, because intervals need not be
symmetric. The interval of the ratio combines the errors that point the same way: its lower end the upper one of the
baseline and the lower one of the candidate. Source: Zou and Donner, Construction of Confidence Limits about Effect
Measures, 2008 (MOVER). Tails are those of Student's t with one degree of freedom less than probes, since the scatter of
the storage is known only from these.

A search that ended beyond the loads that it may offer gives a bound: one of its errors is infinite, and so is that of a
change that it says nothing about.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from plimsoll.api.line import Ending, Line, LineSearch
from plimsoll.api.names import Operation, Verdict
from plimsoll.api.result import BenchmarkResult, Trial
from plimsoll.measure.compare.sides import MetricComparison, Side, deviation_of, finite_exp
from plimsoll.measure.compare.tests import MINIMUM_RUNS, Between, Conclusion, Floor, holm, moments
from plimsoll.measure.compare.values import Metric, Pair, RegressionRule
from plimsoll.measure.line.model import lower_bound
from plimsoll.measure.line.summary import rounded_load, unproven_side
from plimsoll.measure.statistics import CONFIDENCE, t_quantile, two_sided_tail

_QUANTILE = (1 + CONFIDENCE) / 2
_UNRELIABLE = {
    Ending.PROBES_DO_NOT_COUNT: "search of the {name} gave up, because its probes did not count",
    Ending.NOT_MONOTONE: (
        "storage of the {name} breaks in a range of loads and holds at higher ones, so that it has no line"
    ),
    Ending.DRIFTING: "storage of the {name} became slower or faster during the search, so that its line moved",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """Where a line is.

    Attributes:
        value: logarithm of the estimate, or of the only bound that is known.
        down: standard error towards lower loads; infinite if nothing limits the line there.
        up: the same towards higher loads.
        probes: number of probes behind it.
        is_estimate: whether the value is an estimate; otherwise the line is on one side of it.

    """

    value: float
    down: float
    up: float
    probes: int
    is_estimate: bool = True

    @property
    def has_interval(self) -> bool:
        """Whether it is an estimate with both ends of its interval."""
        return self.is_estimate and math.isfinite(self.down) and math.isfinite(self.up)


@dataclass(frozen=True, slots=True, kw_only=True)
class LineChange:
    """The change of the logarithm of a line.

    Attributes:
        between: the noise between runs; None if it is unknown, and then assumed to be zero.

    """

    baseline: Position
    candidate: Position
    between: Between | None = None

    @property
    def estimate(self) -> float:
        """The difference of the logarithms; of a bound, how large the change is at least or at most."""
        return self.candidate.value - self.baseline.value

    @property
    def is_estimate(self) -> bool:
        """Whether both sides have an estimate."""
        return self.baseline.is_estimate and self.candidate.is_estimate

    @property
    def error_below(self) -> float:
        """The standard error of how much lower the change could be."""
        return math.hypot(self.baseline.up, self.candidate.down, self._apart)

    @property
    def error_above(self) -> float:
        """The standard error of how much higher the change could be."""
        return math.hypot(self.baseline.down, self.candidate.up, self._apart)

    @property
    def freedom(self) -> float:
        """The degrees of freedom of the errors."""
        found = max(1, min(self.baseline.probes, self.candidate.probes) - 1)
        return min(found, self.between.runs - 1) if self.between else found

    def interval(self, confidence: float = CONFIDENCE) -> tuple[float, float]:
        """Return the confidence interval of the change; an end may be infinite."""
        factor = t_quantile((1 + confidence) / 2, self.freedom)
        return self.estimate - factor * self.error_below, self.estimate + factor * self.error_above

    def p_lower(self, change: float = 0.0) -> float:
        """Return the one-sided probability of an estimate at most this low if the truth is `change`."""
        return self._tail(change - self.estimate, self.error_above)

    def p_higher(self, change: float = 0.0) -> float:
        """Return the one-sided probability of an estimate at least this high if the truth is `change`."""
        return self._tail(self.estimate - change, self.error_below)

    @property
    def _apart(self) -> float:
        return math.sqrt(2 * self.between.variance) if self.between else 0.0

    def _tail(self, distance: float, error: float) -> float:
        """Return the probability of at least this distance; 1 if the error is not known."""
        if math.isinf(error):
            return 1.0
        if not error:
            return 0.0 if distance > 0 else 1.0
        half = two_sided_tail(distance / error, self.freedom) / 2
        return half if distance > 0 else 1 - half


def position_of(line: Line, search: LineSearch) -> Position | None:
    """Return where a line is; None if nothing is known of it."""
    factor = t_quantile(_QUANTILE, max(1, line.counted - 1))
    if line.estimate:
        return Position(
            value=math.log(line.estimate),
            down=(math.log(line.estimate) - math.log(line.low)) / factor if line.low else math.inf,
            up=(math.log(line.high) - math.log(line.estimate)) / factor if line.high else math.inf,
            probes=line.counted,
        )
    if line.low and not line.high:
        return _bound(lower_bound(line.low, search.limit), 0.0, math.inf, line.counted)
    if line.high and not line.low:
        return _bound(line.high, math.inf, 0.0, line.counted)
    return None


def _bound(load: float, down: float, up: float, probes: int) -> Position:
    return Position(value=math.log(load), down=down, up=up, probes=probes, is_estimate=False)


def line_problem(name: str, result: BenchmarkResult) -> str:
    """Return why the line of a result cannot be used; empty if it can."""
    line = result.status.line
    if result.spec.line is None:
        return f"the {name} does not search for the line; compare runs that do"
    if result.status.verdict is Verdict.INVALID or (line is not None and not line.counted):
        return f"no probe of the {name} counts, so its line is unknown; find the cause, then measure again"
    if line is None or line.ending is None:
        return f"the search of the {name} is not finished"
    return _doubt(name, line, result.spec.line, result.status.trials)


def _doubt(name: str, line: Line, search: LineSearch, trials: Sequence[Trial]) -> str:
    """Return why the line of a search that ended cannot be used; empty if it can."""
    if line.ending in _UNRELIABLE:
        return f"the {_UNRELIABLE[line.ending].format(name=name)} ({line.ending}); measure again"
    if position_of(line, search) is None:
        return f"the line of the {name} is unknown; measure again"
    if not _is_ordered(line):
        return f"the line of the {name} is outside of its own interval, so its result was changed; measure again"
    if missing := unproven_side(line, trials):
        return f"the line of the {name} is only assumed: {missing}; find out why probes do not count"
    return ""


def line_estimate(result: BenchmarkResult) -> float | None:
    """Return the line of a run as one value, from which the noise between runs follows; None if it has none.

    Of a line below all loads that may be offered it is the upper bound: the line is no higher.
    """
    return None if valueless(result) else _value(result.status.line)


def valueless(result: BenchmarkResult) -> str:
    """Return why the line of a run is not a single value; empty if it is one."""
    if problem := line_problem("run", result):
        return problem
    line = result.status.line
    if _value(line):
        return ""
    is_above = line is not None and line.low
    bound = "a lower bound; increase limit" if is_above else "an upper bound; decrease start"
    return f"the line of the run has only {bound}"


def _value(line: Line | None) -> float | None:
    if line is None:
        return None
    return line.high if line.ending is Ending.BROKEN_AT_FIRST else line.estimate


def _is_ordered(line: Line) -> bool:
    known = [load for load in (line.low, line.estimate, line.high) if load is not None]
    return known == sorted(known)


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
