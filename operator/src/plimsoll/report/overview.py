"""The verdicts and all results, what was measured, its hosts and devices, and the provenance of its numbers."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from statistics import median

from pydantic import JsonValue

from plimsoll.api.names import Verdict, format_numbers
from plimsoll.api.result import BenchmarkResult
from plimsoll.api.surroundings import Hosts, Spread
from plimsoll.measure.checks.check import verdict_of
from plimsoll.measure.rates import grouped, rate_text
from plimsoll.measure.summary import iops_of
from plimsoll.measure.text import count_text, first_few, size_text
from plimsoll.plan.fingerprint import leaves
from plimsoll.report import view
from plimsoll.report.figure import (
    UNFINISHED,
    PlottedSweep,
    ReportedRun,
    counting,
    is_search,
    result_rows,
    results_of,
    verdict_text,
)
from plimsoll.report.line import headline_sentences
from plimsoll.report.points import RESULT_COLUMNS
from plimsoll.suite.evaluation import Compared

_CHARACTERS = 600
_DIGEST = 12
_VALUES = 8
_SEPARATOR = " | "  # separates the values of points that differ
_VERDICTS = (Verdict.VALID.value, Verdict.SUSPECT.value, Verdict.INVALID.value, UNFINISHED)
_MOST_PEAKS = 12

_RESULTS_WORDS = (
    "Rates and latencies are means over the trials that count; ± is half the 95 % confidence interval (Student's "
    "t). A percentile is the mean of the trials' own percentiles, "
    "absent where a trial has fewer than ten operations beyond it. A search for the line has no means: its line is in "
    "the last column. Click a heading to sort."
)

_HOSTS_WORDS = (
    "The median over clients and over the trials that count, and in parentheses the highest value of a client. "
    "Device numbers describe the block device below the data set on the client's node, including its other users. "
    "They are absent if a node shows no such device, as with librbd and network file systems. A request may be "
    "larger than the tool's blocks where the kernel merges them, and smaller where the device cannot take them whole."
)


def verdicts_section(
    runs: Sequence[ReportedRun], sweeps: Sequence[PlottedSweep], compared: Sequence[Compared]
) -> view.Section:
    points = Counter(verdict_text(result) for _, result in results_of(runs))
    counts = [(verdict, points[verdict]) for verdict in _VERDICTS if points[verdict] or verdict != UNFINISHED]
    comparisons: list[str] = []
    for pair in compared:
        words = "not compared, because the runs have no point in common."
        if pair.comparison is not None:
            different = " Their specifications differ or are unknown: see the comparison."
            reasons = "; ".join(pair.comparison.reasons)
            words = f"{pair.comparison.conclusion}: {reasons}.{'' if pair.likeness.is_same else different}"
        comparisons.append(f"{pair.candidate} against {pair.baseline}: {words}")
    sentences = [*map(_run_text, runs), *comparisons, *headline_sentences(runs), *_peaks(sweeps)]
    blocks: list[view.Block] = [
        view.Counts(counts=counts),
        view.Text(paragraphs=sentences),
        view.Reasons(reasons=[*verdict_reasons(runs)]),
    ]
    return view.Section(key="verdicts", title="Verdicts", blocks=blocks)


def verdict_reasons(runs: Sequence[ReportedRun]) -> Iterator[view.VerdictReason]:
    """Yield every reason of the report; the worst reasons first, then the most frequent."""
    several = len(runs) > 1
    reasons = worst_cases(
        (f"{run.label} {result.spec.point}" if several else result.spec.point, result)
        for run, result in results_of(runs)
    )
    yield from sorted(reasons, key=lambda reason: (-Verdict(reason.verdict).severity, -len(reason.points)))


def worst_cases(points: Iterable[tuple[str, BenchmarkResult]]) -> Iterator[view.VerdictReason]:
    """Yield every reason once, with the message of the first of its points with the worst verdict, and that first."""
    cases = ((name, finding) for name, result in points for finding in result.status.findings)
    for reason, findings in grouped(cases, lambda case: case[1].reason).items():
        verdict = verdict_of(finding for _, finding in findings)
        worst, finding = next(case for case in findings if case[1].verdict is verdict)
        names = [*dict.fromkeys([worst, *(name for name, _ in findings)])]
        yield view.VerdictReason(reason=reason, verdict=verdict, points=names, message=finding.message)


def _run_text(run: ReportedRun) -> str:
    verdicts = Counter(map(verdict_text, run.results))
    points = ", ".join(f"{verdicts[verdict]} {verdict}" for verdict in _VERDICTS if verdicts[verdict])
    return f"{run.label}: {points} of {len(run.results)} points."


def _peaks(sweeps: Sequence[PlottedSweep]) -> Iterator[str]:
    """Yield the highest rate of each workload, operation and run; in bytes of tools that do not count operations."""
    for sweep in sweeps[:_MOST_PEAKS]:
        for run, measured in grouped(sweep.measured, lambda point: point.run).items():
            most = max(measured, key=lambda point: (point.measured.iops.mean, point.measured.bytes_per_second.mean))
            rate, p99 = view.bytes_rate_text(most.measured.bytes_per_second.mean), most.measured.percentiles.get("99")
            if iops_of(most.measured):
                rate = f"{rate_text(most.measured.iops.mean)} IOPS, {rate}"
            name = f"{sweep.title} ({run})" if sweep.has_several_runs else sweep.title
            latency = f", p99 {view.duration_text(p99.mean)}" if p99 else ""
            place = f"{most.result.spec.label}, {count_text(most.result.spec.clients, 'client')}"
            yield f"{name}: at most {rate}{latency}, at {place}{most.mark}."


def results_section(runs: Sequence[ReportedRun]) -> view.Section:
    """Return every operation of every point; a point without numbers has the reason."""
    # The verdict comes before the many numbers.
    columns = sorted(RESULT_COLUMNS, key=lambda column: column.heading not in {"Point", "Run", "Verdict"})
    # The same point of several runs is in neighbouring rows.
    points = grouped(results_of(runs), lambda case: case[1].spec.point).values()
    rows = result_rows((run.label, result) for cases in points for run, result in cases)
    table = view.page_table("All points", columns, rows, leave_out=() if len(runs) > 1 else {"Run"})
    return view.Section(key="results", title="Results", blocks=[view.Text(paragraphs=[_RESULTS_WORDS]), table])


def overview_section(runs: Sequence[ReportedRun]) -> view.Section:
    facts = [dict(_facts(run)) for run in runs]
    names = dict.fromkeys(name for texts in facts for name in texts)
    rows = [[view.Cell(text=name), *(view.Cell(text=texts.get(name, view.NONE)) for texts in facts)] for name in names]
    table = view.Table(caption="Runs and their environments", headings=("", *(run.label for run in runs)), rows=rows)
    return view.Section(key="what", title="What was measured", blocks=[table])


def value_text(value: object) -> str:
    """Return a JSON value on one line, shortened."""
    text = _plain(value)
    return text if len(text) <= _CHARACTERS else text[: _CHARACTERS - 1] + "…"


def _plain(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_plain(part)}" for key, part in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(_plain, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return view.NONE if value is None else str(value)


def _facts(run: ReportedRun) -> Iterator[tuple[str, str]]:
    trials = [trial for result in run.results for trial in result.status.trials]
    yield "Run", run.place
    if trials:
        began, ended = min(trial.started_at for trial in trials), max(trial.finished_at for trial in trials)
        yield "Measured", f"{_time(began)} to {_time(ended)}"
    passes = sorted({result.spec.repetitions for result in run.results if not is_search(result)})
    searches = sum(map(is_search, run.results))
    measured = f"{len(run.results) - searches}, each measured {' or '.join(map(str, passes))} times" if passes else ""
    searched = f"{searches} searched for the line" if searches else ""
    yield "Points", "; ".join(filter(None, (measured, searched)))
    yield "Attempts", str(len(trials))
    seconds = sorted({(result.spec.ramp_seconds, result.spec.runtime_seconds) for result in run.results})
    yield "Each trial", "; ".join(f"{runtime} s after a ramp of {ramp} s" for ramp, runtime in seconds)
    yield "Clients", format_numbers({result.spec.clients for result in run.results})
    counted_trials = [trial for result in run.results for trial in counting(result)]
    if dropped := sum(trial.caches is not None for trial in counted_trials):
        yield "Caches", f"dropped before {dropped} of {len(counted_trials)} trials"
    documents: list[Mapping[str, JsonValue]] = []
    for status in (result.status for result in run.results):
        # Some settings are only in the fingerprint.
        recorded = status.fingerprint.identity | status.fingerprint.context if status.fingerprint else {}
        documents.append({**recorded, **status.environment.document()})
    for name, parts in _FACTS.items():
        texts = [
            ", ".join(text.format(part) for text, path in parts if (part := _part_text(document, path)))
            for document in documents
        ]
        if known := dict.fromkeys(filter(None, texts)):
            yield name, value_text(_SEPARATOR.join(known))


def _time(text: str) -> str:
    """Return a time to the second: 2026-01-31T12:00:00.123Z -> 2026-01-31 12:00:00 UTC."""
    date, _, rest = text.partition("T")
    return f"{date} {rest[:8]} UTC" if rest.endswith("Z") else text


def _part_text(document: Mapping[str, JsonValue], path: str) -> str:
    value: JsonValue = {**document}
    for key in path.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    if path.endswith("Bytes") and isinstance(value, int):
        return size_text(value)
    return "" if value is None or value in ({}, []) else _plain(value)


_FACTS: Mapping[str, Sequence[tuple[str, str]]] = {
    "Nodes": (("{}", "nodeCount"), ("{}", "nodes")),
    "StorageClass": (("{}", "storageClass"),),
    "Volume": (("{}", "volume"),),
    "Reached by": (("{}", "volumeAccess"), ("{}", "volumeFileSystem"), ("{}", "volumeSource")),
    "Pool": (("{}", "pool"),),
    "Ceph": (
        ("{}", "ceph.versions"),
        ("{} OSDs", "ceph.osds.count"),
        ("on {} hosts", "ceph.osds.hosts"),
        ("{}", "ceph.osds.deviceClasses"),
        ("fsid {}", "ceph.fsid"),
    ),
    "Ceph options": (("{}", "ceph.options"),),
    "OSD caches": (("{}", "osdCaches"),),
    "Rook": (("{}", "rook"),),
    "Tools": (("{}", "tools"),),
    "Kubernetes": (("{}", "kubernetes"),),
    "Kernel": (("{}", "kernel"),),
    "Machine": (("{}", "cpuModel"), ("{} processors", "processors"), ("{}", "memoryBytes"), ("{}", "architecture")),
    "Runner image": (("{}", "runnerImage"),),
    "Plimsoll": (("{}", "plimsoll"),),
}
"""Name of a row -> the formats of its parts, and where a recorded environment has them."""


def provenance_section(runs: Sequence[ReportedRun]) -> view.Section:
    blocks: list[view.Block] = []
    for run in runs:
        fingerprints = [result.status.fingerprint for result in run.results if result.status.fingerprint]
        tables = [
            view.page_table("Points", _POINT_COLUMNS, run.results, sortable=False),
            _leaves(
                "Fingerprint, identity: the specification and the storage", [each.identity for each in fingerprints]
            ),
            _leaves(
                "Fingerprint, context: seed, versions and other possible causes of a difference",
                [each.context for each in fingerprints],
            ),
        ]
        blocks.append(view.Details(title=f"{run.label} ({run.place}, UID {run.uid})", blocks=tables))
    return view.Section(key="provenance", title="Provenance", blocks=blocks)


_POINT_COLUMNS: Sequence[view.Column[BenchmarkResult]] = (
    view.Column("Point", lambda result: result.spec.point),
    view.Column("Tool", lambda result: result.spec.tool),
    view.Column(
        "Parameters",
        lambda result: {key: value for key, value in result.spec.parameters.items() if value is not None},
        show=value_text,
    ),
    view.Column(
        "Warnings",
        lambda result: list(dict.fromkeys(each for trial in result.status.trials for each in trial.warnings)) or None,
        show=value_text,
    ),
)


def _leaves(caption: str, documents: Sequence[Mapping[str, JsonValue]]) -> view.Table:
    settings: dict[str, dict[str, None]] = {}
    for document in documents:
        for key, value in leaves(document):
            settings.setdefault(key, {})[value_text(value)] = None
    rows = [
        [view.Cell(text=key), view.Cell(text=first_few([*values], _VALUES, _SEPARATOR))]
        for key, values in sorted(settings.items())
    ]
    return view.Table(caption=caption, headings=("What", "Value; | where points differ"), rows=rows)


_HostsRow = tuple[str, BenchmarkResult, Sequence[Hosts]]
"""The label of a run, a point of it, and the hosts of the point's trials."""


def _hosts_column(
    heading: str, read: Callable[[Hosts], Spread | None], show: Callable[[float], str] = "{:.2f}".format
) -> view.Number[_HostsRow]:
    def spreads(row: _HostsRow) -> list[Spread]:
        return [spread for hosts in row[2] if (spread := read(hosts)) is not None]

    def middle(row: _HostsRow) -> float | None:
        return median(spread.median for spread in spreads(row)) if spreads(row) else None

    def text(row: _HostsRow) -> str:
        value = middle(row)
        return view.NONE if value is None else f"{show(value)} ({show(max(spread.max for spread in spreads(row)))})"

    return view.Number(heading, middle, text=text)


def _kibibytes(value: float) -> str:
    return f"{value / 2**10:,.1f}"


_HOSTS_COLUMNS: Sequence[view.Column[_HostsRow]] = (
    view.Column("Run", lambda row: row[0]),
    view.Column("Point", lambda row: row[1].spec.point, title=lambda row: row[1].spec.label),
    _hosts_column("CPUs", lambda hosts: hosts.cpu),
    _hosts_column("Throttled, s", lambda hosts: hosts.throttled_seconds),
    _hosts_column("Node busy", lambda hosts: hosts.node_cpu_busy, view.ratio_text),
    _hosts_column("Device busy", lambda hosts: hosts.device_busy, view.ratio_text),
    _hosts_column("Queue", lambda hosts: hosts.device_queue),
    _hosts_column("Read request, KiB", lambda hosts: hosts.device_read_request_bytes, _kibibytes),
    _hosts_column("Write request, KiB", lambda hosts: hosts.device_write_request_bytes, _kibibytes),
)


def hosts_section(runs: Sequence[ReportedRun]) -> view.Section | None:
    rows = [
        (run.label, result, hosts)
        for run, result in results_of(runs)
        if (hosts := [trial.hosts for trial in counting(result) if trial.hosts is not None])
    ]
    if not rows:
        return None
    leave_out = () if len(runs) > 1 else {"Run"}
    table = view.page_table("Load of the clients' hosts", _HOSTS_COLUMNS, rows, leave_out=leave_out)
    return view.Section(key="hosts", title="Hosts and devices", blocks=[view.Text(paragraphs=[_HOSTS_WORDS]), table])
