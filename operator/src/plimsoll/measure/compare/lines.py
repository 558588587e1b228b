"""The line of a search as an estimate with a 95 % interval, and the change from one to another.

The logarithm of an estimate is taken as normal, with the same error on both sides: half of the interval on its wider
side, in quantiles of Student's t with one degree of freedom less than probes. Two lines then change like two means, so
Welch's test applies. A search that ended beyond the loads that it may offer gives a bound, and so does a change.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from plimsoll.api.line import Ending, Line
from plimsoll.api.names import Operation, Verdict
from plimsoll.api.result import BenchmarkResult
from plimsoll.measure.compare.significance import BetweenVariance, LogChange
from plimsoll.measure.line.summary import unproven_side
from plimsoll.measure.statistics import CONFIDENCE, t_quantile
from plimsoll.measure.summary import operations_of

_UNRELIABLE = {
    Ending.PROBES_DO_NOT_COUNT: "search of the {name} gave up, because its probes did not count",
    Ending.NOT_MONOTONE: (
        "storage of the {name} breaks in a range of loads and holds at higher ones, so that it has no line"
    ),
    Ending.DRIFTING: "storage of the {name} became slower or faster during the search, so that its line moved",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """Where a line is."""

    value: float  # logarithm of the estimate, or of the only bound that is known
    error: float  # standard error of the estimate; 0 of a bound
    probes: int  # number of probes behind it
    may_be_lower: bool = False  # whether the value is an upper bound
    may_be_higher: bool = False  # whether the value is a lower bound

    @property
    def is_estimate(self) -> bool:
        """Whether the value is an estimate; otherwise the line is on one side of it."""
        return not (self.may_be_lower or self.may_be_higher)


def line_change(baseline: Position, candidate: Position, between: BetweenVariance | None = None) -> LogChange:
    """Return the change of the logarithm of a line; without `between`, the noise between runs is taken to be zero."""
    probes = (max(2, baseline.probes), max(2, candidate.probes))
    return LogChange(
        estimate=candidate.value - baseline.value,
        variances=(probes[0] * baseline.error**2, probes[1] * candidate.error**2),
        trials=probes,
        between=between,
        may_be_lower=candidate.may_be_lower or baseline.may_be_higher,
        may_be_higher=candidate.may_be_higher or baseline.may_be_lower,
    )


def position_of_result(result: BenchmarkResult) -> Position | None:
    """Return where the line of a result is; None if too little is known of it."""
    line, search = result.status.line, result.spec.line
    if line is None or search is None:
        return None
    if line.estimate and line.low and line.high:
        value = math.log(line.estimate)
        half = max(value - math.log(line.low), math.log(line.high) - value)
        error = half / t_quantile((1 + CONFIDENCE) / 2, max(1, line.counted - 1))
        return Position(value=value, error=error, probes=line.counted)
    if line.low and not (line.estimate or line.high):
        value = math.log(min(line.low, search.highest_load))
        return Position(value=value, error=0.0, probes=line.counted, may_be_higher=True)
    if line.high and not (line.estimate or line.low):
        return Position(value=math.log(line.high), error=0.0, probes=line.counted, may_be_lower=True)
    return None


def line_problem(name: str, result: BenchmarkResult) -> str:
    """Return why the line of a result cannot be used; empty if it can."""
    line = result.status.line
    if result.spec.line is None:
        return f"the {name} does not search for the line; compare runs that do"
    if result.status.verdict is Verdict.INVALID or (line is not None and not line.counted):
        return f"no probe of the {name} counts, so its line is unknown; find the cause, then measure again"
    if line is None or line.ending is None:
        return f"the search of the {name} is not finished"
    if line.ending in _UNRELIABLE:
        return f"the {_UNRELIABLE[line.ending].format(name=name)} ({line.ending}); measure again"
    if position_of_result(result) is None:
        return f"the line of the {name} is unknown; measure again"
    missing = unproven_side(line, result.status.trials)
    return f"the line of the {name} is only assumed: {missing}; find out why probes do not count" if missing else ""


def line_estimate(result: BenchmarkResult) -> float | None:
    """Return the line of a run as one value, an upper bound if it is below all loads; None if it has none."""
    return None if valueless(result) else _value(result.status.line)


def valueless(result: BenchmarkResult) -> str:
    """Return why the line of a run is not a single value; empty if it is one."""
    problem, line = line_problem("run", result), result.status.line
    if problem or _value(line):
        return problem
    bound = "a lower bound; increase limit" if line and line.low else "an upper bound; decrease start"
    return f"the line of the run has only {bound}"


def _value(line: Line | None) -> float | None:
    if line is None:
        return None
    return line.high if line.ending is Ending.BROKEN_AT_FIRST else line.estimate


def operation_of(results: Sequence[BenchmarkResult]) -> Operation:
    """Return the first operation of these searches; their line is one of all operations together."""
    return next(iter(operations_of(trial for result in results for trial in result.status.trials)), Operation.READ)
