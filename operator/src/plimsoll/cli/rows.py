"""Results as flat rows, for tables and CSV."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from plimsoll.api.names import Operation
from plimsoll.api.result import BenchmarkResult, OperationSummary, Statistic, Trial
from plimsoll.measure.summary import counted

UNFINISHED = "Unfinished"
"""Shown as the verdict of a point that still lacks trials: there is none yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One operation of one point. Rates per second, latencies in nanoseconds; None is not known.

    Attributes:
        verdict: as in the result, or `Unfinished`.
        iops_half_width: half the 95 % confidence interval of the mean.
        trials: passes that count, of the planned ones.
        attempts: everything that was recorded, aborted and invalid attempts included.
        stall_seconds: without any completed operation, in the trial that stood still longest of those that count.
        steady: whether every trial that counts had come to rest by the rate of this operation; None if not judged.

    """

    run: str
    workload: str
    point: str
    label: str
    clients: int
    operation: str
    verdict: str
    trials: int
    repetitions: int
    attempts: int
    iops: float | None = None
    iops_half_width: float | None = None
    iops_variation: float | None = None
    bytes_per_second: float | None = None
    latency_mean_nanoseconds: float | None = None
    latency_p50_nanoseconds: float | None = None
    latency_p99_nanoseconds: float | None = None
    latency_max_nanoseconds: int | None = None
    stall_seconds: float | None = None
    steady: bool | None = None
    reasons: str = ""


def rows(results: Iterable[BenchmarkResult]) -> Iterator[Row]:
    """Yield a row per operation; a point without believable numbers has one row without any."""
    for result in results:
        summary = result.status.summary
        operations = summary.operations if summary else ()
        if not operations:
            yield _row(result, None)
        for operation in operations:
            yield _row(result, operation)


def _row(result: BenchmarkResult, operation: OperationSummary | None) -> Row:
    spec, status = result.spec, result.status
    base = {
        "run": spec.run,
        "workload": spec.workload,
        "point": spec.point,
        "label": spec.label,
        "clients": spec.clients,
        "repetitions": spec.repetitions,
        "attempts": len(status.trials),
        "trials": status.summary.trials if status.summary else 0,
        "verdict": status.verdict.value if status.verdict else UNFINISHED,
        "reasons": " ".join(dict.fromkeys(finding.reason for finding in status.findings)),
    }
    if operation is None:
        return Row(operation="", **base)  # type: ignore[arg-type]
    good = counted(status.trials)
    return Row(
        **base,  # type: ignore[arg-type]
        operation=operation.operation.value,
        iops=operation.iops.mean,
        iops_half_width=half_width(operation.iops),
        iops_variation=operation.iops.coefficient_of_variation,
        bytes_per_second=operation.bytes_per_second.mean,
        latency_mean_nanoseconds=operation.mean_latency.mean if operation.mean_latency else None,
        latency_p50_nanoseconds=_percentile(operation, "50"),
        latency_p99_nanoseconds=_percentile(operation, "99"),
        latency_max_nanoseconds=operation.latency.max_nanoseconds,
        stall_seconds=_longest_stall(good),
        steady=_is_steady(good, operation.operation),
    )


def half_width(statistic: Statistic) -> float | None:
    """Return half the confidence interval; None for a single trial."""
    if statistic.low is None or statistic.high is None:
        return None
    return (statistic.high - statistic.low) / 2


def _percentile(operation: OperationSummary, name: str) -> float | None:
    statistic = operation.percentiles.get(name)
    return statistic.mean if statistic else None


def _longest_stall(trials: Sequence[Trial]) -> float | None:
    return max((trial.stalls.seconds for trial in trials if trial.stalls), default=None)


def _is_steady(trials: Sequence[Trial], operation: Operation) -> bool | None:
    judged = [
        result.steady_state.rate.attained
        for trial in trials
        for result in trial.operations
        if result.operation is operation and result.steady_state
    ]
    return all(judged) if judged else None
