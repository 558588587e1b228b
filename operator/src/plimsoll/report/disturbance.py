"""What disturbed trials show: a table of their phases, and when the cluster was clean again."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

from plimsoll.api.names import Operation, format_duration
from plimsoll.api.result import PHASES, BenchmarkResult, DisturbanceResult, PhaseName
from plimsoll.measure.rates import rate_text
from plimsoll.measure.text import first_few
from plimsoll.report.figure import counting
from plimsoll.report.view import NONE, Column


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseRow:
    """An operation in a phase: means over the trials that count; None is unknown."""

    point: str
    operation: Operation
    phase: PhaseName
    seconds: float
    iops: float
    bytes_per_second: float
    p50: float | None
    p99: float | None
    stall_seconds: float | None


def _latency(nanoseconds: float | None) -> str:
    return NONE if nanoseconds is None else format_duration(nanoseconds)


PHASE_COLUMNS: Sequence[Column[PhaseRow]] = (
    Column("Point", lambda row: row.point),
    Column("Operation", lambda row: row.operation),
    Column("Phase", lambda row: row.phase),
    Column("Length", lambda row: row.seconds, show=lambda seconds: f"{seconds:.0f} s", right=True),
    Column("IOPS", lambda row: row.iops, show=rate_text, right=True),
    Column("MiB/s", lambda row: row.bytes_per_second, show=lambda rate: f"{rate / 2**20:,.1f}", right=True),
    Column("p50", lambda row: row.p50, show=_latency, right=True),
    Column("p99", lambda row: row.p99, show=_latency, right=True),
    Column(
        "All stalled",
        lambda row: row.stall_seconds,
        show=lambda seconds: NONE if seconds is None else f"{seconds:.1f} s",
        right=True,
    ),
)


def disturbances_of(result: BenchmarkResult) -> list[DisturbanceResult]:
    """Return what each trial that counts showed; nothing of a point without a disturbance."""
    return [trial.disturbance for trial in counting(result) if trial.disturbance]


def phase_rows(results: Iterable[BenchmarkResult]) -> Iterator[PhaseRow]:
    for result in results:
        disturbances = disturbances_of(result)
        operations = dict.fromkeys(
            each.operation for trial in disturbances for phase in trial.phases for each in phase.operations
        )
        for operation in operations:
            for name in PHASES:
                phases = [phase for trial in disturbances if (phase := trial.phase(name)) is not None]
                parts = [each for phase in phases for each in phase.operations if each.operation is operation]
                if not parts:
                    continue
                yield PhaseRow(
                    point=result.spec.point,
                    operation=operation,
                    phase=name,
                    seconds=fmean(phase.seconds for phase in phases),
                    iops=fmean(part.iops for part in parts),
                    bytes_per_second=fmean(part.bytes_per_second for part in parts),
                    p50=_mean(part.percentiles.get("50") for part in parts),
                    p99=_mean(part.percentiles.get("99") for part in parts),
                    stall_seconds=_mean(phase.stall_seconds for phase in phases),
                )


def recovery_sentences(results: Iterable[BenchmarkResult]) -> Iterator[str]:
    """Yield which OSDs each point took away, and when all placement groups were clean again."""
    for result in results:
        disturbances = disturbances_of(result)
        if not disturbances:
            continue
        first, cleaned = disturbances[0], [trial.clean_seconds for trial in disturbances]
        known = [seconds for seconds in cleaned if seconds is not None]
        away = fmean(trial.end_seconds - trial.start_seconds for trial in disturbances)
        osds = first_few([f"osd.{number}" for number in first.osds])
        sentences = [f"{osds} {'was' if len(first.osds) == 1 else 'were'} {first.action.lower()} for {away:.0f} s"]
        if known:
            span = f"{min(known):.0f}" if min(known) == max(known) else f"{min(known):.0f} to {max(known):.0f}"
            sentences.append(f"all placement groups were clean {span} s later")
        if missing := len(cleaned) - len(known):
            watched = min(trial.watched_seconds for trial in disturbances if trial.clean_seconds is None)
            sentences.append(f"not within {watched:.0f} s in {missing} of {len(cleaned)} trials")
        yield f"{result.spec.point}: {', '.join(sentences)}."


def _mean(values: Iterable[float | None]) -> float | None:
    known = list(values)
    return None if not known or None in known else fmean(value for value in known if value is not None)
