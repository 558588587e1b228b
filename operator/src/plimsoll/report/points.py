"""The columns of results, of searches for the line and their probes, and of the phases of disturbed trials."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from operator import attrgetter
from statistics import fmean
from typing import TypeVar

from plimsoll.api.environment import STATIC
from plimsoll.api.line import LineSearch, Objective, Probe, Vary
from plimsoll.api.names import Metric, Operation, Outcome, Verdict
from plimsoll.api.operation import OperationResult, OperationSummary, Statistic
from plimsoll.api.result import (
    PHASES,
    BenchmarkResult,
    DisturbanceResult,
    Phase,
    PhaseName,
    PhaseOperation,
    Trial,
)
from plimsoll.measure.checks.judge import reasons_of
from plimsoll.measure.cluster import data_set_text
from plimsoll.measure.histogram import PERCENTILES
from plimsoll.measure.line import summary as lines
from plimsoll.measure.rates import rate_text
from plimsoll.measure.summary import iops_of, values_of
from plimsoll.measure.text import first_few
from plimsoll.report.figure import (
    PointRow,
    counting,
    is_search,
    judged_latencies,
    judged_latency,
    line_of,
    longest_stall,
    result_rows,
    verdict_text,
)
from plimsoll.report.view import NONE, Column, Number, duration_text, mebibytes

T = TypeVar("T")


def named(results: Iterable[BenchmarkResult]) -> Iterator[tuple[str, BenchmarkResult]]:
    return ((result.spec.run, result) for result in results)


def line_rows(results: Iterable[tuple[str, BenchmarkResult]]) -> Iterator[PointRow]:
    """Yield a row for each search; that of a calm line has the result with its storm line."""
    searches = [(run, result) for run, result in results if is_search(result)]
    storms = {(result.spec.run_uid, result.spec.calm): result for _, result in searches}
    for run, result in searches:
        yield PointRow(run=run, result=result, storm=storms.get((result.spec.run_uid, result.spec.point)))


def _of(read: Callable[[OperationSummary], T | None]) -> Callable[[PointRow], T | None]:
    return lambda row: None if row.operation is None else read(row.operation)


def _of_iops(read: Callable[[Statistic], T | None]) -> Callable[[PointRow], T | None]:
    return _of(lambda op: read(iops) if (iops := iops_of(op)) else None)


def _of_search(read: Callable[[PointRow], T | None]) -> Callable[[PointRow], T | None]:
    return lambda row: read(row) if is_search(row.result) else None


def _latency(
    heading: str, read: Callable[[OperationSummary], Statistic | None], *, key: str = "", priority: int | None = None
) -> Number[PointRow]:
    def bounds(row: PointRow) -> str:
        statistic = row.operation and read(row.operation)
        if not statistic or statistic.low is None:
            return ""
        return f"{duration_text(max(0, statistic.low))} to {duration_text(statistic.high)}"

    mean = _of(lambda op: statistic.mean if (statistic := read(op)) else None)
    return Number(heading, mean, key=key, show=duration_text, title=bounds, priority=priority)


def _percentile(name: str) -> Number[PointRow]:
    priority = {"50": 5, "99": 2}.get(name)
    key = "" if priority is None else f"latency_p{name}_nanoseconds"
    return _latency(f"p{name}", lambda op: op.percentiles.get(name), key=key, priority=priority)


def _trials(row: PointRow) -> int:
    summary = row.result.status.summary
    return row.line.counted if is_search(row.result) else summary.trials if summary else 0


def _trials_text(row: PointRow) -> str:
    return (
        lines.line_probes_text(row.line) if is_search(row.result) else f"{_trials(row)}/{row.result.spec.repetitions}"
    )


def reasons_text(row: PointRow) -> str:
    status = row.result.status
    return " ".join(reasons_of(status)) if status.final else ""


def no_numbers(result: BenchmarkResult) -> str:
    worst = next((finding for finding in result.status.findings if finding.verdict is Verdict.INVALID), None)
    if worst is not None:
        return f"{worst.reason}: {worst.message}"
    if is_search(result):
        return f"search for the line: {lines.probes_made(line_of(result))}"
    if not result.status.final:
        passes = {trial.pass_number for trial in result.status.trials}
        return f"not finished: {len(passes)} of {result.spec.repetitions} trials recorded"
    return "no trial counts, and no reason was recorded"


def _remarks_text(row: PointRow) -> str:
    if is_search(row.result):
        return " ".join(filter(None, (lines.headline_text(row.line, row.search), reasons_text(row))))
    return reasons_text(row) or ("" if row.operation else no_numbers(row.result))


def point_label(result: BenchmarkResult) -> str:
    """Return the label of a point; for reads from Ceph with the size of the data and the memory of the OSDs."""
    return f"{result.spec.label} {data_set_text(trial.cluster for trial in result.status.trials)}".strip()


_Column, _Number = Column[PointRow], Number[PointRow]
RUN = _Column("Run", lambda row: row.run, key="run", priority=None)
_POINT = _Column(
    "Point", lambda row: row.result.spec.point, key="point", title=lambda row: row.result.spec.label, priority=None
)
_WORKLOAD = _Column("Workload", lambda row: row.result.spec.workload, key="workload", stacked=True, in_page=False)
_PARAMETERS = _Column(
    "Parameters", lambda row: row.result.spec.label, key="label", text=lambda row: point_label(row.result), stacked=True
)
_CLIENTS = _Number("Clients", lambda row: row.result.spec.clients, key="clients", priority=3)
_VERDICT = _Column(
    "Verdict", lambda row: verdict_text(row.result), key="verdict", mark=lambda row: verdict_text(row.result)
)

RESULT_COLUMNS: Sequence[Column[PointRow]] = (
    _POINT,
    RUN,
    _WORKLOAD,
    _PARAMETERS,
    _CLIENTS,
    _Column("Op", _of(lambda op: op.operation.value), key="operation", priority=2),
    _Number(
        "IOPS ± 95 %",
        _of_iops(lambda iops: iops.mean),
        key="iops",
        text=lambda row: _of_iops(lambda iops: rate_text(iops.mean, iops.half_width))(row) or NONE,
    ),
    _Column("", _of_iops(lambda iops: iops.half_width), key="iops_half_width"),
    _Number("MiB/s", _of(lambda op: op.bytes_per_second.mean), key="bytes_per_second", show=mebibytes, priority=4),
    _latency("mean", lambda op: op.mean_latency, key="latency_mean_nanoseconds"),
    *(_percentile(str(percentile)) for percentile in PERCENTILES),
    _Number(
        "max",
        _of(lambda op: op.latency.max_nanoseconds),
        key="latency_max_nanoseconds",
        show=duration_text,
        priority=None,
    ),
    _Number(
        "stalled",
        lambda row: longest_stall(row.result) if row.operation else None,
        key="stall_seconds",
        show="{:g} s".format,
        priority=None,
    ),
    _Number(
        "Trials",
        _trials,
        key="trials",
        text=_trials_text,
        sort=lambda row: row.line.probes if is_search(row.result) else _trials(row) / row.result.spec.repetitions,
        priority=6,
    ),
    _Column("", lambda row: row.result.spec.repetitions, key="repetitions"),
    _Column("", lambda row: len(row.result.status.trials), key="attempts"),
    _VERDICT,
    _Column(
        "Reasons",
        reasons_text,
        key="reasons",
        text=_remarks_text,
        title=lambda row: "" if row.operation else no_numbers(row.result),
        stacked=True,
    ),
    _Column("", lambda row: while_disturbed(row.result, row.operation, Metric.DURING), key="iops_during"),
    _Column("", lambda row: while_disturbed(row.result, row.operation, Metric.RECOVERY), key="recovery_nanoseconds"),
    _Column("", _of_search(lambda row: lines.headline_text(row.line, row.search)), key="line"),
    _Column("", _of_search(lambda row: row.search.vary.value), key="line_vary"),
    _Column("", _of_search(lambda row: row.line.ending and row.line.ending.value), key="line_ending"),
    *(
        _Column("", _of_search(attrgetter(f"line.{name}")), key=f"line_{name}")
        for name in ("estimate", "low", "high", "probes", "counted")
    ),
)
"""Of the operations of points: rates per second, latencies in nanoseconds; in `line_*` loads of all clients."""


def ending_sentence_of(row: PointRow) -> str:
    return lines.ending_sentence(row.line, row.search, lines.uncounted_text(row.result.status.trials))


def headline_of(row: PointRow) -> str:
    """Return the line of a search in words, with the storm line that belongs to it."""
    return lines.headline_text(row.line, row.search, line_of(row.storm) if row.storm else None)


def leading_rows(rows: Iterable[PointRow]) -> Iterator[PointRow]:
    """Yield the rows of searches without storm lines that belong to the calm line of another row."""
    every = [*rows]
    storms = {id(row.storm) for row in every if row.storm is not None}
    return (row for row in every if id(row.result) not in storms)


def search_sentences(rows: Iterable[PointRow]) -> Iterator[tuple[PointRow, str, str]]:
    """Yield what each search found, and why it ended, after its row; a storm line follows its calm line."""
    for row in leading_rows(rows):
        storm = row.storm and PointRow(run=row.run, result=row.storm)
        of_storm = f" {storm.result.spec.point}: {ending_sentence_of(storm)}" if storm else ""
        yield row, headline_of(row), f"{ending_sentence_of(row)}{of_storm}"


LINE_COLUMNS: Sequence[Column[PointRow]] = (
    _POINT,
    RUN,
    _WORKLOAD,
    _PARAMETERS,
    _Column("Objectives", lambda row: lines.objectives_text(row.search.objectives), stacked=True),
    _Number("Clients", lambda row: row.result.spec.clients, priority=4),
    _Number("Line", lambda row: row.line.estimate, text=lambda row: lines.load_with_unit(row.line, row.search)),
    _Number(
        "95 % interval",
        lambda row: row.line.low,
        text=lambda row: lines.interval_text(row.line, row.search),
        priority=3,
    ),
    _Number("Width", lambda row: row.line.width_percent, text=lambda row: lines.width_text(row.line), priority=None),
    _Number("Probes", lambda row: row.line.probes, text=lambda row: lines.line_probes_text(row.line), priority=3),
    _Column("Ending", lambda row: lines.ending_text(row.line), title=ending_sentence_of, priority=2),
    _VERDICT,
    _Column("Reasons", reasons_text, stacked=True),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeRow:
    """An attempt of a probe; in CSV, one operation and one objective of it."""

    run: str
    result: BenchmarkResult
    trial: Trial
    operation: OperationResult | None = None
    objective: Objective | None = None


def probe_rows(results: Iterable[tuple[str, BenchmarkResult]]) -> Iterator[ProbeRow]:
    """Yield all attempts of searches by probe and attempt, also those without numbers."""
    for run, result in results:
        if is_search(result):
            for trial in sorted(result.status.trials, key=lambda trial: (trial.pass_number, trial.attempt)):
                yield ProbeRow(run=run, result=result, trial=trial)


def _of_probe(read: Callable[[Probe], T | None]) -> Callable[[ProbeRow], T | None]:
    return lambda row: None if row.trial.probe is None else read(row.trial.probe)


def _objective_column(objective: Objective) -> Number[ProbeRow]:
    return Number(
        lines.objective_text(objective),
        lambda row: judged_latency(row.trial, objective),
        text=lambda row: " / ".join(map(duration_text, judged_latencies(row.trial, objective).values())) or NONE,
        priority=2,
    )


def _outcome_text(row: ProbeRow) -> str:
    if row.trial.outcome is Outcome.ABORTED:
        return f"aborted ({row.trial.abort.reason})" if row.trial.abort else "aborted"
    return lines.outcome_text(row.trial.probe.outcome) if row.trial.probe else NONE


def _latency_of_objective(row: ProbeRow) -> int | None:
    if row.operation is None or row.objective is None:
        return None
    return judged_latencies(row.trial, row.objective).get(row.operation.operation)


def _why(row: ProbeRow) -> str:
    if row.trial.abort:
        return f"{row.trial.abort.reason}: {row.trial.abort.message}"
    return " ".join(dict.fromkeys(finding.reason for finding in row.trial.findings))


def _probe_iops(row: ProbeRow) -> float | None:
    operations = [row.operation] if row.operation else row.trial.operations
    return sum(operation.rates.iops for operation in operations) or None


def probe_columns(search: LineSearch | None = None) -> Sequence[Column[ProbeRow]]:
    """Return the columns of probes; without a search, the columns of CSV, where each row has one objective."""
    column, number, unit = Column[ProbeRow], Number[ProbeRow], lines.unit_text(search) if search else ""
    return (
        column("Point", lambda row: row.result.spec.point, key="point", priority=None),
        column("Run", lambda row: row.run, key="run", priority=None),
        number(
            "Probe",
            lambda row: row.trial.pass_number,
            key="probe",
            text=lambda row: f"{row.trial.pass_number}{f'.{row.trial.attempt}' if row.trial.attempt else ''}",
            sort=lambda row: row.trial.pass_number + row.trial.attempt / 100,
        ),
        column("", lambda row: row.trial.attempt, key="attempt"),
        number(f"Offered {unit}", _of_probe(lambda probe: probe.offered), key="offered", show=lines.rounded_load),
        number("Achieved", _of_probe(lambda probe: probe.achieved), key="achieved", show=lines.rounded_load),
        # Of a search by rate, it is what was achieved.
        *([] if search and search.vary is Vary.RATE else [number("IOPS", _probe_iops, key="iops", show=rate_text)]),
        number(
            "Depth full",
            _of_probe(lambda probe: probe.depth_full_percent),
            key="depth_full_percent",
            show="{:.2f} %".format,
            priority=2,
        ),
        *(map(_objective_column, search.objectives) if search else ()),
        column("", lambda row: row.operation and row.operation.operation.value, key="operation"),
        column("", lambda row: row.objective and row.objective.percentile, key="percentile"),
        column("", _latency_of_objective, key="latency_nanoseconds"),
        column("", lambda row: row.objective and row.objective.latency_nanoseconds, key="limit_nanoseconds"),
        column("", lambda row: row.trial.outcome.value, key="trial_outcome"),
        column("Outcome", _of_probe(lambda probe: probe.outcome.value), key="outcome", text=_outcome_text),
        column("Verdict", lambda row: row.trial.verdict.value, key="verdict", mark=lambda row: row.trial.verdict.value),
        column("Why", _why, priority=None),
    )


def objective_rows(rows: Iterable[ProbeRow]) -> Iterator[ProbeRow]:
    """Yield a row for each operation and objective of a probe; one for an attempt without numbers."""
    for row in rows:
        for operation in row.trial.operations or (None,):
            for objective in row.result.spec.line.objectives if operation and row.result.spec.line else (None,):
                yield ProbeRow(
                    run=row.run, result=row.result, trial=row.trial, operation=operation, objective=objective
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseRow:
    """An operation in a phase of the trials that count; its columns are means, None if one is unknown."""

    point: str
    name: PhaseName
    phases: Sequence[Phase]
    parts: Sequence[PhaseOperation]

    def percentile(self, name: str) -> float | None:
        return _mean_of(part.percentiles.get(name) for part in self.parts)


PHASE_COLUMNS: Sequence[Column[PhaseRow]] = (
    Column("Point", lambda row: row.point),
    Column("Operation", lambda row: row.parts[0].operation),
    Column("Phase", lambda row: row.name),
    Number("Length", lambda row: fmean(phase.seconds for phase in row.phases), show="{:.0f} s".format),
    Number("IOPS", lambda row: fmean(part.iops for part in row.parts), show=rate_text),
    Number("MiB/s", lambda row: fmean(part.bytes_per_second for part in row.parts), show=mebibytes),
    Number("p50", lambda row: row.percentile("50"), show=duration_text),
    Number("p99", lambda row: row.percentile("99"), show=duration_text),
    Number("All stalled", lambda row: _mean_of(phase.stall_seconds for phase in row.phases), show="{:.1f} s".format),
)


def missing_percentiles(results: Iterable[BenchmarkResult]) -> str:
    """Return which points lack a 99th percentile although latencies were recorded, and the remedy; usually empty."""
    points = dict.fromkeys(
        row.result.spec.point
        for row in result_rows(named(results))
        if row.operation and row.operation.percentiles.get("50") and not row.operation.percentiles.get("99")
    )
    if not points:
        return ""
    return (
        f"No p99 of {first_few([*points], 1)}: fewer than 10 operations took longer in a trial; raise runtimeSeconds."
    )


def unseen_caches(results: Iterable[BenchmarkResult]) -> str:
    """Return which reads from a StorageClass caches that Plimsoll does not see may have answered; usually empty."""
    points = [result.spec.point for result in results if _is_behind_class(result) and _reads(result)]
    if not points:
        return ""
    which = first_few(points, 1)
    return f"Caches behind the StorageClass are not seen: reads of {which} may come from memory if the PVC fits in it."


def _is_behind_class(result: BenchmarkResult) -> bool:
    identity = result.status.fingerprint.identity if result.status.fingerprint else {}
    described = identity.get("storageClass")
    is_a_disk = isinstance(described, dict) and described.get("provisioner") == STATIC
    # Only tools that measure a data set have one, and only Ceph has pools.
    return bool(described) and "dataSetBytes" in identity and not is_a_disk and not {"pool", "fileSystem"} & {*identity}


def _reads(result: BenchmarkResult) -> bool:
    return any(it.operation is Operation.READ for trial in result.status.trials for it in trial.operations)


def wide_intervals(results: Iterable[BenchmarkResult]) -> str:
    """Return which points have so few trials for their scatter that the mean is uncertain; usually empty."""
    points = dict.fromkeys(
        row.result.spec.point
        for row in result_rows(named(results))
        if row.operation
        and row.operation.iops.half_width
        and row.operation.iops.half_width > row.operation.iops.mean / 10
    )
    if not points:
        return ""
    which = first_few([*points], 1)
    return f"The mean of {which} is uncertain by more than 10 %; more repetitions or longer trials make ± smaller."


def disturbances_of(result: BenchmarkResult) -> list[DisturbanceResult]:
    """Return what each trial that counts showed; nothing of a point without one, or of a search, whose loads differ."""
    return [] if is_search(result) else [trial.disturbance for trial in counting(result) if trial.disturbance]


def while_disturbed(result: BenchmarkResult, operation: OperationSummary | None, metric: Metric) -> float | None:
    if operation is None:
        return None
    return _mean_of(values_of(counting(result), operation.operation, metric))


def phase_rows(results: Iterable[BenchmarkResult]) -> Iterator[PhaseRow]:
    for result in results:
        disturbances = disturbances_of(result)
        for operation, name in product(Operation, PHASES):
            phases = [phase for trial in disturbances if (phase := trial.phase(name)) is not None]
            parts = [part for phase in phases for part in phase.operations if part.operation is operation]
            if parts:
                yield PhaseRow(point=result.spec.point, name=name, phases=phases, parts=parts)


def recovery_sentences(results: Iterable[BenchmarkResult]) -> Iterator[str]:
    """Yield which OSDs each point took away, and when all placement groups were clean again."""
    for result in results:
        disturbances = disturbances_of(result)
        if not disturbances:
            continue
        first, cleaned = disturbances[0], [trial.clean_seconds for trial in disturbances]
        known = [seconds for seconds in cleaned if seconds is not None]
        away = fmean(trial.end_seconds - trial.start_seconds for trial in disturbances)
        # A later conductor may have chosen other OSDs, if the first ones were lost.
        chosen = dict.fromkeys(trial.osds for trial in disturbances)
        osds = " or ".join(first_few([f"osd.{number}" for number in numbers]) for numbers in chosen)
        sentences = [f"{osds} {'was' if len(first.osds) == 1 else 'were'} {first.action.lower()} for {away:.0f} s"]
        if known:
            span = f"{min(known):.0f}" if min(known) == max(known) else f"{min(known):.0f} to {max(known):.0f}"
            sentences.append(f"all placement groups were clean {span} s later")
        if missing := len(cleaned) - len(known):
            watched = min(trial.watched_seconds for trial in disturbances if trial.clean_seconds is None)
            sentences.append(f"not within {watched:.0f} s in {missing} of {len(cleaned)} trials")
        yield f"{result.spec.point}: {', '.join(sentences)}."


def _mean_of(values: Iterable[float | None]) -> float | None:
    known = list(values)
    return None if not known or None in known else fmean(value for value in known if value is not None)
