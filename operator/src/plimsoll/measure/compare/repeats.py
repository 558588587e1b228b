"""Repeated runs as one result, in which each run counts like a trial."""

import math
from collections.abc import Iterable, Sequence
from statistics import fmean

from plimsoll.api.line import Ending, Line
from plimsoll.api.names import Metric, Operation, Outcome, Verdict
from plimsoll.api.operation import Latency, OperationResult
from plimsoll.api.result import BenchmarkResult, DisturbanceResult, ResultStatus, Trial
from plimsoll.measure.attempts import counted
from plimsoll.measure.checks.judge import in_order
from plimsoll.measure.compare.lines import line_estimate
from plimsoll.measure.compare.values import RepeatsError, by_identity, check_distinct
from plimsoll.measure.rates import mean_rates
from plimsoll.measure.statistics import half_width, mean_and_variance
from plimsoll.measure.summary import PartialOperation, complete, operations_of, results_of, summarise, values_of


def as_one_run(runs: Sequence[Sequence[BenchmarkResult]]) -> list[BenchmarkResult]:
    """Return a result for each point with a trial for each run; RepeatsError if runs differ, or one is given twice."""
    check_distinct(runs)
    points_of_runs = [by_identity(run) for run in runs]
    identities = dict.fromkeys(identity for points in points_of_runs for identity in points)
    return [_combined([points.get(identity) for points in points_of_runs]) for identity in identities]


def _combined(results: Sequence[BenchmarkResult | None]) -> BenchmarkResult:
    measured = [result for result in results if result is not None]
    first = measured[0]
    if first.spec.line is not None and len(results) == 1:
        return first
    for result in measured[1:]:
        ours, theirs = first.status.fingerprint, result.status.fingerprint
        if ours is not None and theirs is not None and ours.identity_sha256 != theirs.identity_sha256:
            names = f"{first.spec.point}: {first.spec.run} and {result.spec.run}"
            raise RepeatsError(f"{names} are not repetitions of the same; compare them to see the difference")
    trials = tuple(
        _run_as_trial(number, result, counted_trials)
        for number, result in enumerate(results)
        if result is not None and (counted_trials := counted(result.status.trials))
    )
    # Of each reason the first finding.
    findings = {
        finding.reason: finding for result in reversed(measured) for finding in reversed(result.status.findings)
    }
    status = ResultStatus(
        trials=trials,
        summary=summarise(trials, len(results)).summary if first.spec.line is None else None,
        line=_line(measured),
        verdict=_worst(result.status.verdict for result in measured),
        findings=in_order(findings.values()),
        environment=first.status.environment,
        fingerprint=first.status.fingerprint,
        final=len(measured) == len(results) and all(result.status.final for result in measured),
    )
    spec = first.spec.model_copy(update={"repetitions": len(results)})
    return first.model_copy(update={"spec": spec, "status": status})


def _run_as_trial(number: int, result: BenchmarkResult, trials: Sequence[Trial]) -> Trial:
    """Return the trial that represents a run: the means of its trials that count; of a search the last of them."""
    if result.spec.line is not None:
        return trials[-1].model_copy(update={"pass_number": number, "attempt": 0, "probe": None})
    return Trial(
        pass_number=number,
        attempt=0,
        epoch=result.spec.run_uid,
        clients=trials[-1].clients,
        outcome=Outcome.MEASURED,
        started_at=trials[0].started_at,
        finished_at=trials[-1].finished_at,
        verdict=_worst(trial.verdict for trial in trials) or Verdict.VALID,
        operations=tuple(_mean(operation, trials) for operation in operations_of(trials)),
        load=trials[-1].load if all(trial.load for trial in trials) else None,
        disturbance=_mean_disturbance(trials),
    )


def _mean_disturbance(trials: Sequence[Trial]) -> DisturbanceResult | None:
    last = trials[-1].disturbance
    during = last.phase("During") if last else None
    if last is None or during is None or not during.operations:
        return None
    operations = tuple(
        part.model_copy(update={"iops": fmean(rates)})
        for part in during.operations
        if (rates := complete(values_of(trials, part.operation, Metric.DURING)))
    )
    recoveries = complete([trial.disturbance.clean_seconds if trial.disturbance else None for trial in trials])
    phase = during.model_copy(update={"operations": operations})
    return last.model_copy(update={"phases": (phase,), "clean_seconds": fmean(recoveries) if recoveries else None})


def _line(results: Sequence[BenchmarkResult]) -> Line | None:
    """Return the line of all runs, in which each run counts like a probe, with the interval of the geometric mean.

    If a run has no estimate, there is no interval: the others would be a selection. None if no run searched for it.
    """
    lines = [line for result in results if (line := result.status.line) is not None]
    if not lines or len(results) == 1:
        return lines[0] if lines else None
    endings = [line.ending for line in lines]
    # The worst ending represents all; there is none while a search continues.
    ending = None if None in endings else max(filter(None, endings), key=[*Ending].index)
    values = [value for value in map(line_estimate, results) if value is not None]
    combined = Line(ending=ending, probes=sum(line.probes for line in lines), counted=len(lines), storm=lines[0].storm)
    if len(values) < len(results):
        return combined
    mean, variance = mean_and_variance([*map(math.log, values)])
    half = half_width(math.sqrt(variance / len(values)), len(values) - 1)
    low, estimate, high = map(math.exp, (mean - half, mean, mean + half))
    return combined.model_copy(update={"estimate": estimate, "low": low, "high": high})


def _mean(operation: Operation, trials: Sequence[Trial]) -> OperationResult:
    results = results_of(trials, operation)
    present = [result for result in results if result is not None]
    latencies = [result.latency for result in present]
    names = sorted(set.intersection(*(set(latency.percentiles) for latency in latencies)))
    means = complete([latency.mean_nanoseconds for latency in latencies])
    return (OperationResult if complete(results) else PartialOperation)(
        operation=operation,
        ios=sum(result.ios for result in present),
        bytes=sum(result.bytes for result in present),
        rates=mean_rates([result.rates for result in present]),
        whole_run=mean_rates([result.whole_run for result in present]),
        sum_of_rates=mean_rates([result.sum_of_rates for result in present]),
        latency=Latency(
            kind=latencies[0].kind,
            count=sum(latency.count for latency in latencies),
            mean_nanoseconds=fmean(means) if means else None,
            percentiles={name: round(fmean(latency.percentiles[name] for latency in latencies)) for name in names},
        ),
    )


def _worst(verdicts: Iterable[Verdict | None]) -> Verdict | None:
    return max((verdict for verdict in verdicts if verdict is not None), key=lambda it: it.severity, default=None)
