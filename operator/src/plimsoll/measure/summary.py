"""The numbers of a point over its trials, and their verdict.

The unit of statistics is the trial: all trials have the same weight, and histograms are merged over trials for display
only, since pooling hides how much trials differ. Values are not missing by chance: fast trials lack rates, because a
tool could not time them, and slow ones percentiles, because too few operations completed. The others would be a
selection, so a metric has a value at a point only if every trial that counts has one, also in comparisons.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from plimsoll.api.names import LatencyKind, Metric, Operation, Outcome, Verdict
from plimsoll.api.operation import OperationResult, OperationSummary, Statistic
from plimsoll.api.result import Finding, Matrix, Summary, Trial
from plimsoll.measure.attempts import counted, counts, judge_replaced, last_attempts, reasons_text, why_not_counted
from plimsoll.measure.checks.check import CheckedValue, evaluate, rolled_up, verdict_of
from plimsoll.measure.checks.judge import NO_TRIAL_COUNTS, PASSES_MISSING, UNREPLICATED, VERSIONS_CHANGED, in_order
from plimsoll.measure.checks.repetitions import judge_agreement, judge_clients
from plimsoll.measure.histogram import MINIMUM_BEYOND, PERCENTILES, merge_latencies
from plimsoll.measure.rates import counts_operations, grouped
from plimsoll.measure.statistics import describe
from plimsoll.measure.text import numbered

MINIMUM_TRIALS = 3  # trials, or runs, on each side; the deviation of two is nearly meaningless
OF_DISTURBANCES = frozenset({Metric.DURING, Metric.RECOVERY})
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class PointNumbers:
    """The numbers of a point; no summary of a search, or if none of its trials counts."""

    summary: Summary | None
    verdict: Verdict
    findings: tuple[Finding, ...]


def iops_of(operation: OperationSummary) -> Statistic | None:
    """Return the operations per second; None if the tool does not count operations."""
    return operation.iops if counts_operations(operation.iops.mean, operation.bytes_per_second.mean) else None


def summarise(trials: Sequence[Trial], repetitions: int, matrix: Matrix | None = None) -> PointNumbers:
    """Summarise a point with `repetitions` planned trials, and the `matrix` of the trials that count."""
    last, good = last_attempts(trials), counted(trials)
    missing = [(number, "not recorded") for number in range(repetitions) if number not in last] + [
        (number, f"{Outcome.ABORTED if trial.abort else trial.verdict} ({', '.join(why_not_counted(trial))})")
        for number, trial in last.items()
        if not counts(trial)
    ]
    causes = _listed(sorted(missing))
    if good:
        absent = CheckedValue(value=len(missing), detail=f"planned repetitions do not count: {causes}")
        replication = (
            *evaluate(PASSES_MISSING, [absent]),
            *judge_replaced(trials),
            *evaluate(UNREPLICATED, [CheckedValue(value=len(good))]),
        )
    else:
        tried = f"; {len(trials)} attempts: {reasons_text(trials)}" if len(trials) > len(last) else ""
        detail = f"no repetition counts: {causes or 'none is planned'}{tried}"
        replication = evaluate(NO_TRIAL_COUNTS, [CheckedValue(value=0, detail=detail)])
    agreement = (*judge_versions(good), *judge_clients(trials, good), *_agreement_findings(good))
    of_trials = ((trial.pass_number, trial.findings) for trial in good or last.values())
    findings = in_order([*rolled_up(of_trials, "pass"), *agreement, *replication])
    results = {operation: complete(results_of(good, operation)) for operation in operations_of(good)}
    operations = tuple(_operation(operation, of_all) for operation, of_all in results.items() if of_all)
    return PointNumbers(
        summary=Summary(trials=len(good), operations=operations, matrix=matrix) if good else None,
        verdict=verdict_of(findings),
        findings=findings,
    )


def judge_versions(good: Sequence[Trial]) -> tuple[Finding, ...]:
    """Compare the versions of the repetitions; different versions within one are a finding of that trial."""
    versions = [(it.pass_number, ", ".join(it.tool.versions)) for it in good if it.tool and it.tool.versions]
    detail = f"the version of the tool differs between repetitions: {_listed(versions)}"
    return evaluate(VERSIONS_CHANGED, [CheckedValue(value=len({text for _, text in versions}), detail=detail)])


def _agreement_findings(good: Iterable[Trial]) -> tuple[Finding, ...]:
    """Judge whether trials agree: in their rates, which are operations per second or else bytes, and latencies."""
    ordered = sorted(good, key=lambda trial: trial.started_at)
    rates, latencies = dict[str, list[float]](), dict[str, list[float]]()
    for operation in operations_of(ordered):
        iops = complete(values_of(ordered, operation, Metric.IOPS))
        volume = complete(values_of(ordered, operation, Metric.BYTES))
        if values := iops or volume:
            rates[f"{operation} {'operations' if iops else 'bytes'}/s"] = values
        for metric in (Metric.P50, Metric.P99):
            if values := complete(values_of(ordered, operation, metric)):
                latencies[f"{operation} {metric}"] = values
    return judge_agreement(rates, latencies, offers_load=all(trial.load for trial in ordered))


def _listed(causes: Iterable[tuple[int, str]]) -> str:
    by_cause = grouped(causes, lambda case: case[1])
    texts = [f"{numbered('pass', {number for number, _ in cases})} {cause}" for cause, cases in by_cause.items()]
    return "; ".join(texts[:8])


def _operation(operation: Operation, results: Sequence[OperationResult]) -> OperationSummary:
    latencies = [result.latency for result in results]
    percentiles = {p: complete([latency.percentiles.get(p) for latency in latencies]) for p in map(str, PERCENTILES)}
    means = complete([latency.mean_nanoseconds for latency in latencies])
    return OperationSummary(
        operation=operation,
        iops=describe([result.rates.iops for result in results]),
        bytes_per_second=describe([result.rates.bytes_per_second for result in results]),
        mean_latency=describe(means) if means else None,
        percentiles={p: describe(values) for p, values in percentiles.items() if values},
        latency=merge_latencies(latencies),
    )


class PartialOperation(OperationResult):
    """An operation that only some trials of a run have, in the trial that stands for the run: it has no values."""


def operations_of(trials: Iterable[Trial]) -> list[Operation]:
    """Return the operations that any trial has, in the order of `Operation`."""
    done = {result.operation for trial in trials for result in trial.operations}
    return [operation for operation in Operation if operation in done]


def results_of(trials: Iterable[Trial], operation: Operation) -> list[OperationResult | None]:
    """Return the result of each trial; None for a trial without this operation."""
    of_trials = ([result for result in trial.operations if result.operation is operation] for trial in trials)
    return [results[0] if results and not isinstance(results[0], PartialOperation) else None for results in of_trials]


def values_of(trials: Iterable[Trial], operation: Operation, metric: Metric) -> list[float | None]:
    """Return the value of each trial; None where it is missing."""
    if metric in OF_DISTURBANCES:
        return [_while_disturbed(trial, operation, metric) for trial in trials]
    return [None if result is None else _value(result, metric) for result in results_of(trials, operation)]


def _value(result: OperationResult, metric: Metric) -> float | None:
    if metric.is_rate:
        rate = result.rates.bytes_per_second if metric is Metric.BYTES else result.rates.iops
        return rate if is_reported([result], metric) else None
    return result.latency.percentiles.get(metric.percentile) if metric.percentile else result.latency.mean_nanoseconds


def _while_disturbed(trial: Trial, operation: Operation, metric: Metric) -> float | None:
    disturbance = trial.disturbance
    if disturbance is None or (during := disturbance.phase("During")) is None:
        return None
    if metric is Metric.RECOVERY:
        is_first = bool(during.operations) and during.operations[0].operation is operation
        return disturbance.clean_seconds * 10**9 if is_first and disturbance.clean_seconds is not None else None
    return next((each.iops for each in during.operations if each.operation is operation), None)


def is_reported(results: Iterable[OperationResult], metric: Metric) -> bool:
    """Whether the tool reports a metric, as far as any of these results shows; none shows what a disturbance did."""
    if metric in OF_DISTURBANCES:
        return False
    if metric.percentile:
        return any(result.latency.kind is LatencyKind.FULL for result in results)
    if metric is Metric.MEAN:
        return any(result.latency.kind.has_mean for result in results)
    if metric is Metric.BYTES:
        return any(result.bytes or not result.ios for result in results)
    return any(counts_operations(result.rates.iops, result.rates.bytes_per_second) for result in results)


def complete(values: Sequence[T | None]) -> list[T] | None:
    """Return the values of all trials; None if a trial lacks its value, or there are no trials."""
    present = [value for value in values if value is not None]
    return present if present and len(present) == len(values) else None


def problem_of(values: Sequence[float | None], metric: Metric, where: str) -> str:
    """Return why the values of trials, `of the candidate`, have no geometric mean; empty if they have one."""
    present = [value for value in values if value is not None]
    if missing := len(values) - len(present):
        beyond = f", or has fewer than {MINIMUM_BEYOND} results beyond the percentile" if metric.percentile else ""
        why = f"its operation is absent, was too fast to be timed, ended without numbers{beyond}"
        return f"{metric} is missing in {missing} of {len(values)} trials {where}: {why}; measure for longer"
    if odd := sum(not math.isfinite(value) for value in present):
        return f"{metric} is not a finite number in {odd} of {len(values)} trials {where}; check these trials"
    if low := sum(value <= 0 for value in present):
        what = f"{'0 or less' if min(present) < 0 else '0'} in {low} of {len(values)} trials {where}"
        return f"{metric} is {what}, so it has no logarithm; check these trials"
    return ""
