"""The values to compare of two results: every metric of every operation, trial by trial, or why there are none.

Only trials that count are used: neither Invalid ones, nor attempts that a later one replaced.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from plimsoll.api.model import Model
from plimsoll.api.names import LatencyKind, Operation
from plimsoll.api.result import Trial
from plimsoll.measure.compare.between import MINIMUM_RUNS, Floor, components_of
from plimsoll.measure.compare.family import Sample
from plimsoll.measure.compare.inference import MINIMUM_TRIALS, Between, log_deviation
from plimsoll.measure.compare.matching import Pair
from plimsoll.measure.compare.metrics import OF_TRIALS, Metric, RegressionRule, gates_of, values_of
from plimsoll.measure.compare.passes import Trials, series_of
from plimsoll.measure.compare.ranks import falls_into_two
from plimsoll.measure.latency import MINIMUM_BEYOND
from plimsoll.measure.summary import counted

UNGATEABLE_MARGIN = 1.5
"""A metric whose scatter exceeds its threshold divided by this gives random conclusions."""

UNKNOWN_NOISE = (
    f"its noise between runs is unknown: fewer than {MINIMUM_RUNS} of the --noise runs have this point with "
    f"{MINIMUM_TRIALS} trials that count and a value in each; pass other --noise runs, or none"
)

_BIMODAL_FROM = 8
_KINDS_WITH_PERCENTILES = {LatencyKind.FULL}
_KINDS_WITH_MEANS = {kind for kind in LatencyKind if kind.has_mean}


class Side(Model):
    """One quantity on one side: rates per second, latencies in nanoseconds.

    Attributes:
        trials: the number of trials that count.
        mean: arithmetic mean over them; absent if one has no value.
        deviation: standard deviation of the logarithms, which if small is the coefficient of variation; absent for
            fewer than two trials, and if a value is absent or 0.

    """

    trials: int
    mean: float | None = None
    deviation: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One metric of one operation on both sides.

    Attributes:
        between: the noise between repeated runs; None if no such runs were given.
        sample: the values of every trial that counts; None if they cannot be compared.
        problem: why they cannot be compared; empty if they can.
        noise: that the metric scatters too much to gate at this point alone; empty if it does not.
        notes: other remarks on the values.
        gates: whether the metric decides.

    """

    operation: Operation
    metric: Metric
    sides: tuple[Side, Side]
    between: Between | None
    sample: Sample | None
    problem: str
    noise: str
    notes: tuple[str, ...]
    gates: bool


def cases_of(pair: Pair, rule: RegressionRule, floor: Floor) -> Iterator[Case]:
    """Yield the cases that can be compared, and those that should be and cannot.

    Metrics that the tool does not measure are omitted, and so are those without any value unless they gate.
    """
    trials = _trials_of(pair)
    both = [*trials[0], *trials[1]]
    same = [counted(result.status.trials) for result in floor.results_of(pair)] if floor.runs else None
    done = {result.operation for trial in both for result in trial.operations}
    for operation in (one for one in Operation if one in done):
        gates = gates_of(rule, both, operation)
        for metric in OF_TRIALS:
            known = any(value is not None for value in values_of(both, operation, metric))
            if known or (metric in gates and _is_measured(both, operation, metric)):
                yield _case(pair, operation, metric, rule, same, gates=metric in gates)


def _trials_of(pair: Pair) -> tuple[list[Trial], list[Trial]]:
    """Return the trials that count, of baseline and candidate."""
    return counted(pair.baseline.status.trials), counted(pair.candidate.status.trials)


def side_of(values: Sequence[float | None]) -> Side:
    """Describe the values of one side."""
    known = [value for value in values if value is not None]
    whole = bool(known) and len(known) == len(values)
    return Side(
        trials=len(values),
        mean=math.fsum(known) / len(known) if whole else None,
        deviation=log_deviation(known) if whole and len(known) > 1 and min(known) > 0 else None,
    )


def noise_note(side: Side, metric: Metric, rule: RegressionRule) -> str:
    """Return the note that a metric scatters too much to gate; empty if it does not."""
    limit = rule.threshold(metric) / UNGATEABLE_MARGIN
    if side.deviation is None or side.deviation <= limit:
        return ""
    return (
        f"ungateable: it varies by {_percent(side.deviation)} between trials (limit {_percent(limit)}: the threshold / "
        f"{UNGATEABLE_MARGIN:g}); measure for longer, or find the source of the noise"
    )


def _case(
    pair: Pair,
    operation: Operation,
    metric: Metric,
    rule: RegressionRule,
    same: Sequence[Sequence[Trial]] | None,
    *,
    gates: bool,
) -> Case:
    trials = _trials_of(pair)
    values = (values_of(trials[0], operation, metric), values_of(trials[1], operation, metric))
    baseline, candidate = side_of(values[0]), side_of(values[1])
    notes = (_two_states(name, side) for name, side in _named(values))
    problem = _too_few(trials) or next(filter(None, (_gap(name, side) for name, side in _named(values))), "")
    between = _between(same, operation, metric) if same is not None else None
    if same is not None and between is None:
        problem = problem or UNKNOWN_NOISE
    sample = None if problem else _sample(pair, operation, metric, between, gates=gates)
    return Case(
        operation=operation,
        metric=metric,
        sides=(baseline, candidate),
        between=between,
        sample=sample,
        problem=problem,
        noise=noise_note(baseline, metric, rule),
        notes=tuple(filter(None, notes)),
        gates=gates,
    )


def _sample(pair: Pair, operation: Operation, metric: Metric, between: Between | None, *, gates: bool) -> Sample:
    baseline, candidate = (series_of(trials, operation, metric) for trials in _trials_of(pair))
    return Sample(
        workload=pair.baseline.spec.workload,
        point=pair.baseline.spec.point,
        operation=operation,
        metric=metric,
        gates=gates,
        trials=Trials(baseline=baseline, candidate=candidate, between=between),
    )


def _between(same: Sequence[Sequence[Trial]], operation: Operation, metric: Metric) -> Between | None:
    """Return the noise between repeated runs; None if it is unknown."""
    components = components_of([values_of(trials, operation, metric) for trials in same])
    return components.between if components else None


def _named(
    values: tuple[Sequence[float | None], Sequence[float | None]],
) -> tuple[tuple[str, Sequence[float | None]], ...]:
    return ("baseline", values[0]), ("candidate", values[1])


def _known(values: Sequence[float | None]) -> tuple[float, ...]:
    return tuple(value for value in values if value is not None)


def _too_few(trials: tuple[list[Trial], list[Trial]]) -> str:
    baseline, candidate = map(len, trials)
    if min(baseline, candidate) >= MINIMUM_TRIALS:
        return ""
    return (
        f"not enough trials: at least {MINIMUM_TRIALS} must count on each side, but {baseline} of the baseline and "
        f"{candidate} of the candidate do; measure with more repetitions"
    )


def _gap(name: str, values: Sequence[float | None]) -> str:
    """Return which values of a side cannot be compared; omitting them would make it look better."""
    absent = sum(value is None for value in values)
    if absent:
        return (
            f"{absent} of {len(values)} trials of the {name} have no value: they have no such operations, did them too "
            f"fast to be timed, or have fewer than {MINIMUM_BEYOND} beyond the percentile; measure for longer"
        )
    zeros = sum(value == 0 for value in values)
    if zeros:
        return f"0 in {zeros} of {len(values)} trials of the {name}, so there is no ratio; check these trials"
    return ""


def _two_states(name: str, values: Sequence[float | None]) -> str:
    known = _known(values)
    if len(known) < _BIMODAL_FROM or not falls_into_two(known):
        return ""
    return f"the trials of the {name} form two groups, and their mean describes neither; look for two system states"


def _is_measured(trials: Sequence[Trial], operation: Operation, metric: Metric) -> bool:
    """Whether the tool can measure this metric, as far as any trial shows."""
    if metric.is_rate:
        return True
    kinds = _KINDS_WITH_PERCENTILES if metric.percentile else _KINDS_WITH_MEANS
    results = (result for trial in trials for result in trial.operations)
    return any(result.latency.kind in kinds for result in results if result.operation is operation)


def _percent(part: float) -> str:
    return f"{100 * part:.1f} %"
