"""Results as flat rows, for tables and CSV."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from plimsoll.api.operation import OperationSummary
from plimsoll.api.result import BenchmarkResult
from plimsoll.measure.line.summary import headline_text
from plimsoll.measure.summary import iops_of
from plimsoll.report.points import is_steady, longest_stall, verdict_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One operation of one point. Rates per second, latencies in nanoseconds; None if unknown.

    Attributes:
        verdict: as in the result, or `Unfinished`.
        iops_half_width: half the 95 % confidence interval of the mean.
        trials: passes that count, of the planned ones.
        attempts: all recorded attempts, including aborted and invalid ones.
        stall_seconds: time without any completed operation, in the worst trial that counts.
        line: the line of a search in words; the other fields of a line are loads of all clients.
        steady: whether the rate of this operation was in steady state in every trial that counts; None if not judged.

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
    line: str = ""
    line_vary: str = ""
    line_ending: str = ""
    line_estimate: float | None = None
    line_low: float | None = None
    line_high: float | None = None
    line_probes: int | None = None
    line_counted: int | None = None


def rows(results: Iterable[BenchmarkResult]) -> Iterator[Row]:
    """Yield a row per operation; a point without numbers has one row without any."""
    for result in results:
        summary = result.status.summary
        for operation in (summary.operations if summary else ()) or (None,):
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
        "trials": _trials(result),
        "verdict": verdict_text(result),
        "reasons": " ".join(dict.fromkeys(finding.reason for finding in status.findings)),
        **_line(result),
    }
    if operation is None:
        return Row(operation="", **base)  # type: ignore[arg-type]
    iops = iops_of(operation)
    return Row(
        **base,  # type: ignore[arg-type]
        operation=operation.operation.value,
        iops=iops.mean if iops else None,
        iops_half_width=iops.half_width if iops else None,
        iops_variation=iops.coefficient_of_variation if iops else None,
        bytes_per_second=operation.bytes_per_second.mean,
        latency_mean_nanoseconds=operation.mean_latency.mean if operation.mean_latency else None,
        latency_p50_nanoseconds=_percentile(operation, "50"),
        latency_p99_nanoseconds=_percentile(operation, "99"),
        latency_max_nanoseconds=operation.latency.max_nanoseconds,
        stall_seconds=longest_stall(result),
        steady=is_steady(result, operation.operation),
    )


def _trials(result: BenchmarkResult) -> int:
    status = result.status
    if status.line is not None:
        return status.line.counted
    return status.summary.trials if status.summary else 0


def _line(result: BenchmarkResult) -> dict[str, object]:
    search, line = result.spec.line, result.status.line
    if search is None or line is None:
        return {}
    return {
        "line": headline_text(line, search),
        "line_vary": search.vary.value,
        "line_ending": line.ending.value if line.ending else "",
        "line_estimate": line.estimate,
        "line_low": line.low,
        "line_high": line.high,
        "line_probes": line.probes,
        "line_counted": line.counted,
    }


def _percentile(operation: OperationSummary, name: str) -> float | None:
    statistic = operation.percentiles.get(name)
    return statistic.mean if statistic else None
