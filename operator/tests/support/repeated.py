"""Results of a point whose trials gave what a test says."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from plimsoll.api.names import AbortReason, LatencyKind, Operation, Outcome, Verdict
from plimsoll.api.operation import Latency, OperationResult, Rates
from plimsoll.api.result import (
    Abort,
    BenchmarkResult,
    Finding,
    Fingerprint,
    Matrix,
    ResultMeta,
    ResultSpec,
    ResultStatus,
    Trial,
)
from plimsoll.measure.summary import summarise

BLOCK = 4096
MILLISECOND = 10**6


def measured(
    iops: float,
    *,
    p99: int | None = 5 * MILLISECOND,
    operation: Operation = Operation.READ,
    kind: LatencyKind = LatencyKind.FULL,
    histogram: str | None = None,
) -> OperationResult:
    """Return an operation whose percentiles other than p99 never change."""
    rates = Rates(iops=round(iops), bytes_per_second=round(iops) * BLOCK)
    percentiles = {"50": MILLISECOND} | ({} if p99 is None else {"99": p99})
    latency = Latency(
        kind=kind,
        count=round(iops) * 10,
        mean_nanoseconds=None if kind is LatencyKind.NONE else 1.5 * MILLISECOND,
        max_nanoseconds=50 * MILLISECOND,
        percentiles=percentiles if kind is LatencyKind.FULL else {},
        histogram=histogram,
    )
    return OperationResult(
        operation=operation,
        ios=round(iops) * 10,
        bytes=round(iops) * 10 * BLOCK,
        rates=rates,
        whole_run=rates,
        sum_of_rates=rates,
        latency=latency,
    )


def trial(number: int, *operations: OperationResult, attempt: int = 0, verdict: Verdict = Verdict.VALID) -> Trial:
    """Return a measured attempt."""
    return Trial(
        pass_number=number,
        attempt=attempt,
        epoch="e",
        clients=(0, 1),
        outcome=Outcome.MEASURED,
        started_at="2026-01-01T00:00:00.000Z",
        finished_at="2026-01-01T00:00:04.000Z",
        verdict=verdict,
        operations=operations,
    )


def aborted(number: int, *, attempt: int = 0, reason: AbortReason = AbortReason.CLIENT_LOST) -> Trial:
    """Return an attempt that gave no numbers."""
    return trial(number, attempt=attempt, verdict=Verdict.INVALID).model_copy(
        update={"outcome": Outcome.ABORTED, "abort": Abort(reason=reason, message="m")}
    )


def trials_of(rates: Iterable[float]) -> list[Trial]:
    """Return one trial of each rate."""
    return [trial(number, measured(rate)) for number, rate in enumerate(rates)]


def steady(mean: float, trials: int = 5) -> list[float]:
    """Return rates that scatter by about 1 %."""
    return [mean * (1 + 0.01 * ((number % 3) - 1)) for number in range(trials)]


def result(
    trials: Sequence[Trial],
    *,
    run: str = "baseline",
    point: str = "w-000",
    parameters: Mapping[str, Any] | None = None,
    identity: Mapping[str, Any] | None = None,
    context: Mapping[str, Any] | None = None,
    final: bool = True,
    repetitions: int | None = None,
    findings: tuple[Finding, ...] = (),
    matrix: Matrix | None = None,
) -> BenchmarkResult:
    """Return the result of a point with these trials."""
    planned = len({one.pass_number for one in trials}) if repetitions is None else repetitions
    numbers = summarise(trials, planned, matrix)
    return BenchmarkResult(
        metadata=ResultMeta(name=f"{run}-{point}", namespace="default"),
        spec=ResultSpec(
            run=run,
            run_uid=f"uid of {run}",
            point=point,
            workload=point.rpartition("-")[0],
            tool="fio",
            label="randread 4Ki qd1",
            parameters={"ioDepth": 1} | dict(parameters or {}),
            clients=2,
            runtime_seconds=10,
            ramp_seconds=1,
            repetitions=planned,
        ),
        status=ResultStatus(
            trials=tuple(trials),
            summary=numbers.summary,
            verdict=numbers.verdict if final else None,
            findings=(*numbers.findings, *findings) if final else (),
            fingerprint=Fingerprint(
                identity={"tool": "fio"} | dict(identity or {}),
                context={"seed": 1} | dict(context or {}),
                identity_sha256="",
                context_sha256="",
            ),
            final=final,
        ),
    )
