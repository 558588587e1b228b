"""The verdicts and all results, what was measured, its hosts and devices, and the provenance of its numbers."""

import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from statistics import median

from pydantic import JsonValue

from plimsoll.api.environment import Description, Environment, OsdsDescription
from plimsoll.api.names import Outcome, Verdict, format_numbers
from plimsoll.api.result import BenchmarkResult, Fingerprint
from plimsoll.api.surroundings import Hosts, Spread
from plimsoll.measure.attempts import counted
from plimsoll.measure.checks.check import verdict_of
from plimsoll.measure.rates import grouped, rate_text
from plimsoll.measure.summary import iops_of
from plimsoll.measure.text import count_text, first_few
from plimsoll.plan.fingerprint import leaves
from plimsoll.report.figure import (
    UNFINISHED,
    PlottedPoint,
    PlottedSweep,
    ReportedRun,
    SearchedWorkload,
    axis_number,
    axis_value,
    counting,
    is_search,
    line_of,
    results_of,
    verdict_text,
)
from plimsoll.report.line import headline_sentences
from plimsoll.report.points import RESULT_COLUMNS, result_rows
from plimsoll.report.view import (
    NONE,
    Block,
    Cell,
    Column,
    Counts,
    Details,
    Number,
    Reasons,
    Section,
    Table,
    Text,
    VerdictReason,
    bytes_rate_text,
    duration_text,
    page_table,
    ratio_text,
)
from plimsoll.suite.evaluation import Compared
from plimsoll.tools.registry import DEPTH_AXES

_CHARACTERS = 600
_DIGEST = 12
_VALUES = 8
_NAMED_TWICE = re.compile(r"\b(\w+) \1-")
_SEPARATOR = " | "  # separates the values of points that differ
_VERDICTS = (Verdict.VALID.value, Verdict.SUSPECT.value, Verdict.INVALID.value, UNFINISHED)
_MOST_SENTENCES = 6
_MOST_PEAKS = 12
_FLAT = 1.1
_STEEP = 1.5

_RESULTS_WORDS = (
    "Rates and latencies are means over the trials that count; ± is half the 95 % confidence interval (Student's "
    "t), CV the standard deviation divided by the mean. A percentile is the mean of the trials' own percentiles, "
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
    runs: Sequence[ReportedRun],
    sweeps: Sequence[PlottedSweep],
    compared: Sequence[Compared],
    searched: Sequence[SearchedWorkload] = (),
) -> Section:
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
    saturations = [sentence for sweep in sweeps for sentence in _saturations(sweep)]
    if (more := len(saturations) - _MOST_SENTENCES) > 0:
        saturations[_MOST_SENTENCES:] = [f"The same holds for {more} more series: see the response curves."]
    sentences = [
        *(_run_text(run) for run in runs),
        *comparisons,
        *headline_sentences(searched),
        *_longest_stall(runs),
        *saturations,
        *_peaks(sweeps),
    ]
    blocks: list[Block] = [Counts(counts=counts), Text(paragraphs=sentences), Reasons(reasons=[*verdict_reasons(runs)])]
    return Section(key="verdicts", title="Verdicts", blocks=blocks)


def verdict_reasons(runs: Sequence[ReportedRun]) -> Iterator[VerdictReason]:
    """Yield every reason of the report; the worst reasons first, then the most frequent."""
    several = len(runs) > 1
    reasons = worst_cases(
        (f"{run.label} {result.spec.point}" if several else result.spec.point, result)
        for run, result in results_of(runs)
    )
    yield from sorted(reasons, key=lambda reason: (-Verdict(reason.verdict).severity, -len(reason.points)))


def worst_cases(points: Iterable[tuple[str, BenchmarkResult]]) -> Iterator[VerdictReason]:
    """Yield every reason once, with the message of the first of its points with the worst verdict, and that first."""
    cases = ((name, finding) for name, result in points for finding in result.status.findings)
    for reason, findings in grouped(cases, lambda case: case[1].reason).items():
        verdict = verdict_of(finding for _, finding in findings)
        worst, finding = next(case for case in findings if case[1].verdict is verdict)
        names = [*dict.fromkeys([worst, *(name for name, _ in findings)])]
        yield VerdictReason(reason=reason, verdict=verdict, points=names, message=finding.message)


def _run_text(run: ReportedRun) -> str:
    verdicts = Counter(map(verdict_text, run.results))
    points = ", ".join(f"{verdicts[verdict]} {verdict}" for verdict in _VERDICTS if verdicts[verdict])
    aborted = sum(trial.outcome is Outcome.ABORTED for result in run.results for trial in result.status.trials)
    lost = f"; {count_text(aborted, 'aborted attempt')}" if aborted else ""
    counts: list[str] = []
    if repeated := [result for result in run.results if not is_search(result)]:
        good = sum(len(counted(result.status.trials)) for result in repeated)
        counts.append(f"{good} of {sum(result.spec.repetitions for result in repeated)} planned trials")
    if lines := [line_of(result) for result in run.results if is_search(result)]:
        probes = count_text(sum(line.probes for line in lines), "probe")
        counts.append(f"{sum(line.counted for line in lines)} of {probes}")
    return f"{run.label}: {points} of {len(run.results)} points. {' and '.join(counts)} count{lost}."


def _longest_stall(runs: Sequence[ReportedRun]) -> Iterator[str]:
    stalls = [
        (trial.stalls.seconds, f"{run.label} {result.spec.point}")
        for run, result in results_of(runs)
        for trial in counting(result)
        if trial.stalls and trial.stalls.seconds
    ]
    if stalls:
        seconds, place = max(stalls)
        yield f"{count_text(len(stalls), 'trial')} stalled; the longest stall is {seconds:g} s, at {place}."


def _peaks(sweeps: Sequence[PlottedSweep]) -> Iterator[str]:
    """Yield the peak of each workload, operation and run: most operations, and most bytes if at another point."""
    for sweep in sweeps[:_MOST_PEAKS]:
        for run in dict.fromkeys(point.run.label for point in sweep.measured):
            measured = [point for point in sweep.measured if point.run.label == run]
            most = max(measured, key=lambda point: point.operation.iops.mean)
            widest = max(measured, key=lambda point: point.operation.bytes_per_second.mean)
            name = f"{sweep.title} ({run})" if sweep.has_several_runs else sweep.title
            volume = bytes_rate_text(widest.operation.bytes_per_second.mean)
            if iops_of(most.operation) is None:
                yield f"{name}: at most {volume} at {_at(widest)}."
                continue
            p99 = most.operation.percentiles.get("99")
            latency = f" with a p99 of {duration_text(p99.mean)}" if p99 else ""
            rate = f"{name}: at most {rate_text(most.operation.iops.mean)} IOPS{latency} at {_at(most)}"
            yield f"{rate}, which are {volume}." if widest is most else f"{rate}; at most {volume} at {_at(widest)}."


def _at(point: PlottedPoint) -> str:
    """Return a point with its verdict, unless it is Valid."""
    mark = "" if point.is_valid else f" [{point.verdict}]"
    return f"{point.result.spec.label}, {count_text(point.result.spec.clients, 'client')}{mark}"


def _saturations(sweep: PlottedSweep) -> Iterator[str]:
    """Yield where a series saturates: more depth increases latency but hardly the rate."""
    axis = sweep.axis_among(DEPTH_AXES)
    if axis is None:
        return
    measured = [
        point
        for point in sweep.measured
        if axis_number(point.result, axis) and "99" in point.operation.percentiles
        # A limited rate does not grow with depth.
        if point.result.spec.parameters.get("rateIops") is None
    ]
    for label, points in grouped(measured, partial(sweep.series, axis=axis)).items():
        points.sort(key=lambda point: axis_number(point.result, axis) or 0)
        for before, after in itertools.pairwise(points):
            rate = _ratio(before.operation.iops.mean, after.operation.iops.mean)
            latency = _ratio(before.operation.percentiles["99"].mean, after.operation.percentiles["99"].mean)
            if rate <= _FLAT and latency >= _STEEP:
                marks = sorted({f" [{point.verdict}]" for point in (before, after) if not point.is_valid})
                depths = f"depth {axis_value(before.result, axis)} to {axis_value(after.result, axis)}"
                yield (
                    f"{sweep.title}{label and f', {label}'}: from {depths} the rate changes by {100 * (rate - 1):+.0f} "
                    f"% while p99 is {latency:.1f} times as long{''.join(marks)}."
                )
                break


def _ratio(before: float, after: float) -> float:
    return after / before if before else 0.0


def results_section(runs: Sequence[ReportedRun]) -> Section:
    """Return every operation of every point; a point without numbers has the reason."""
    # The verdict comes before the many numbers.
    columns = sorted(RESULT_COLUMNS, key=lambda column: column.heading not in {"Point", "Run", "Verdict"})
    rows = result_rows((run.label, result) for run, result in results_of(runs))
    table = page_table("All points", columns, rows, leave_out=() if len(runs) > 1 else {"Run"})
    return Section(key="results", title="Results", blocks=[Text(paragraphs=[_RESULTS_WORDS]), table])


def overview_section(runs: Sequence[ReportedRun]) -> Section:
    """Return a table with a column per run and a row per known fact."""
    facts = [dict(_facts(run)) for run in runs]
    names = dict.fromkeys(name for texts in facts for name in texts)
    rows = [[Cell(text=name), *(Cell(text=texts.get(name, NONE)) for texts in facts)] for name in names]
    table = Table(caption="Runs and their environments", headings=("", *(run.label for run in runs)), rows=rows)
    return Section(key="what", title="What was measured", blocks=[table])


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
    return NONE if value is None else str(value)


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
    planned = sum(result.spec.repetitions for result in run.results if not is_search(result))
    probes = [line_of(result).probes for result in run.results if is_search(result)]
    purposes = [
        *([f"{planned} planned trials"] if planned or not probes else []),
        *([count_text(sum(probes), "probe")] if probes else []),
    ]
    yield "Attempts", f"{len(trials)} for {' and '.join(purposes)}"
    seconds = sorted({(result.spec.ramp_seconds, result.spec.runtime_seconds) for result in run.results})
    yield "Each trial", "; ".join(f"{runtime} s after a ramp of {ramp} s" for ramp, runtime in seconds)
    yield "Clients", format_numbers({result.spec.clients for result in run.results})
    counted_trials = [trial for result in run.results for trial in counting(result)]
    if dropped := [trial.caches for trial in counted_trials if trial.caches is not None]:
        nodes = format_numbers({caches.node_count for caches in dropped})
        every = len(dropped) == len(counted_trials)
        when = "every trial" if every else f"{len(dropped)} of {len(counted_trials)} trials"
        osds = dict.fromkeys(
            f"OSDs: none, because {caches.osds.reason}" if caches.osds.reason else f"OSDs: {caches.osds.count}"
            for caches in dropped
            if caches.osds is not None
        )
        yield "Caches", value_text("; ".join([f"dropped before {when}: nodes with clients: {nodes}", *osds]))
    environments: list[Environment] = []
    for status in (result.status for result in run.results):
        # Some settings are only in the fingerprint.
        recorded = (status.fingerprint.identity, status.fingerprint.context) if status.fingerprint else ()
        parts = (*recorded, status.environment.document())
        environments.append(Environment.model_validate({key: value for part in parts for key, value in part.items()}))
    for name, read in _FACTS.items():
        if texts := dict.fromkeys(filter(None, map(read, environments))):
            yield name, value_text(_SEPARATOR.join(texts))


def _time(text: str) -> str:
    """Return a time to the second: 2026-01-31T12:00:00.123Z -> 2026-01-31 12:00:00 UTC."""
    date, _, rest = text.partition("T")
    return f"{date} {rest[:8]} UTC" if rest.endswith("Z") else text


def _text(value: object) -> str:
    """Return a part of an environment as text; empty if it is unknown or empty."""
    plain_value = value.document() if isinstance(value, Description) else value
    return "" if plain_value is None or plain_value in ({}, [], ()) else _plain(plain_value)


def _other(environment: Environment, name: str) -> str:
    return _text((environment.model_extra or {}).get(name))


def _joined(*texts: str) -> str:
    return ", ".join(filter(None, texts))


def _around(before: str, text: str, after: str = "") -> str:
    """Return a text with a prefix and a suffix; empty if the text is empty."""
    return f"{before}{text}{after}" if text else ""


def _ceph(environment: Environment) -> str:
    if environment.ceph is None:
        return ""
    osds = environment.ceph.osds or OsdsDescription()
    return _joined(
        _text(environment.ceph.versions),
        _around("", _text(osds.count), " OSDs"),
        _around("on ", _text(osds.hosts), " hosts"),
        _text(osds.device_classes),
        _around("fsid ", _text(environment.ceph.fsid)),
    )


_FACTS: Mapping[str, Callable[[Environment], str]] = {
    "Nodes": lambda environment: (
        _around("", _text(environment.node_count), ":") + _around(" ", _text(environment.nodes))
    ),
    "StorageClass": lambda environment: _text(environment.storage_class),
    "Volume": lambda environment: _other(environment, "volume"),
    "Reached by": lambda environment: _joined(
        _text(environment.volume_access), _text(environment.volume_file_system), _text(environment.volume_source)
    ),
    "Pool": lambda environment: _text(environment.pool),
    "Ceph": _ceph,
    "Ceph options": lambda environment: _text(environment.ceph.options if environment.ceph else None),
    "Rook": lambda environment: _text(environment.rook),
    # Some versions start with the name of the tool: `fio fio-3.39`.
    "Tools": lambda environment: _NAMED_TWICE.sub(r"\1 ", _text(environment.tools)),
    "Kubernetes": lambda environment: _text(environment.kubernetes),
    "Kernel": lambda environment: _text(environment.kernel),
    "Machine": lambda environment: _joined(
        _text(environment.cpu_model),
        _around("", _text(environment.processors), " processors"),
        f"{environment.memory_bytes / 2**30:.1f} GiB" if isinstance(environment.memory_bytes, int) else "",
        _text(environment.architecture),
    ),
    "Runner image": lambda environment: _other(environment, "runnerImage"),
    "Plimsoll": lambda environment: _other(environment, "plimsoll"),
}
"""Name of a row -> its text for a result; empty if unknown."""


def provenance_section(runs: Sequence[ReportedRun]) -> Section:
    """Return everything recorded about every run, collapsed."""
    blocks: list[Block] = []
    for run in runs:
        fingerprints = [result.status.fingerprint for result in run.results if result.status.fingerprint]
        documents = {
            "Fingerprint, identity: the specification and the storage": [each.identity for each in fingerprints],
            "Fingerprint, context: seed, versions and other possible causes of a difference": [
                each.context for each in fingerprints
            ],
            "Environment, as found": [result.status.environment.document() for result in run.results],
        }
        points = page_table("Points", _POINT_COLUMNS, run.results, sortable=False)
        tables = [points, *(_leaves(caption, found) for caption, found in documents.items())]
        blocks.append(Details(title=f"{run.label} ({run.place}, UID {run.uid})", blocks=tables))
    return Section(key="provenance", title="Provenance", blocks=blocks)


def _digest_column(heading: str, read: Callable[[Fingerprint], str]) -> Column[BenchmarkResult]:
    def digest(result: BenchmarkResult) -> str:
        return read(result.status.fingerprint) if result.status.fingerprint else ""

    return Column(heading, digest, text=lambda result: digest(result)[:_DIGEST] or NONE, title=digest)


_POINT_COLUMNS: Sequence[Column[BenchmarkResult]] = (
    Column("Point", lambda result: result.spec.point),
    Column("Tool", lambda result: result.spec.tool),
    Column(
        "Parameters",
        lambda result: {key: value for key, value in result.spec.parameters.items() if value is not None},
        show=value_text,
    ),
    Column(
        "Clients",
        lambda result: list(dict.fromkeys(", ".join(map(str, trial.clients)) for trial in result.status.trials)),
        show=value_text,
    ),
    _digest_column("Identity SHA-256", lambda fingerprint: fingerprint.identity_sha256),
    _digest_column("Context SHA-256", lambda fingerprint: fingerprint.context_sha256),
    Column(
        "Warnings",
        lambda result: list(dict.fromkeys(each for trial in result.status.trials for each in trial.warnings)) or None,
        show=value_text,
    ),
)


def _leaves(caption: str, documents: Sequence[Mapping[str, JsonValue]]) -> Table:
    settings: dict[str, dict[str, None]] = {}
    for document in documents:
        for key, value in leaves(document):
            settings.setdefault(key, {})[value_text(value)] = None
    rows = [
        [Cell(text=key), Cell(text=first_few([*values], _VALUES, _SEPARATOR))]
        for key, values in sorted(settings.items())
    ]
    return Table(caption=caption, headings=("What", "Value; | where points differ"), rows=rows)


_HostsRow = tuple[str, BenchmarkResult, Sequence[Hosts]]
"""The label of a run, a point of it, and the hosts of the point's trials."""


def _hosts_column(
    heading: str, read: Callable[[Hosts], Spread | None], show: Callable[[float], str] = "{:.2f}".format
) -> Number[_HostsRow]:
    def spreads(row: _HostsRow) -> list[Spread]:
        return [spread for hosts in row[2] if (spread := read(hosts)) is not None]

    def middle(row: _HostsRow) -> float | None:
        return median(spread.median for spread in spreads(row)) if spreads(row) else None

    def text(row: _HostsRow) -> str:
        value = middle(row)
        return NONE if value is None else f"{show(value)} ({show(max(spread.max for spread in spreads(row)))})"

    return Number(heading, middle, text=text)


def _kibibytes(value: float) -> str:
    return f"{value / 2**10:,.1f}"


_HOSTS_COLUMNS: Sequence[Column[_HostsRow]] = (
    Column("Run", lambda row: row[0]),
    Column("Point", lambda row: row[1].spec.point, title=lambda row: row[1].spec.label),
    _hosts_column("CPUs", lambda hosts: hosts.cpu),
    _hosts_column("Throttled, s", lambda hosts: hosts.throttled_seconds),
    _hosts_column("Node busy", lambda hosts: hosts.node_cpu_busy, ratio_text),
    _hosts_column("Device busy", lambda hosts: hosts.device_busy, ratio_text),
    _hosts_column("Queue", lambda hosts: hosts.device_queue),
    _hosts_column("Read request, KiB", lambda hosts: hosts.device_read_request_bytes, _kibibytes),
    _hosts_column("Write request, KiB", lambda hosts: hosts.device_write_request_bytes, _kibibytes),
)


def hosts_section(runs: Sequence[ReportedRun]) -> Section | None:
    """Return the hosts of all points; None if no host was observed."""
    rows = [
        (run.label, result, hosts)
        for run, result in results_of(runs)
        if (hosts := [trial.hosts for trial in counting(result) if trial.hosts is not None])
    ]
    if not rows:
        return None
    leave_out = () if len(runs) > 1 else {"Run"}
    table = page_table("Load of the clients' hosts", _HOSTS_COLUMNS, rows, leave_out=leave_out)
    return Section(key="hosts", title="Hosts and devices", blocks=[Text(paragraphs=[_HOSTS_WORDS]), table])
