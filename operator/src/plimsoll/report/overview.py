"""The runs and their environments."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from plimsoll.api.caches import OsdCaches
from plimsoll.api.environment import Description, Environment, OsdsDescription
from plimsoll.api.numbers import format_numbers
from plimsoll.api.result import BenchmarkResult, Trial
from plimsoll.measure.summary import counted
from plimsoll.report.runs import ReportedRun
from plimsoll.report.searches import is_search, line_of
from plimsoll.report.text import NONE, count_text
from plimsoll.report.view import Cell, Section, Table

_CHARACTERS = 600
_GIBIBYTE = 2**30
_TO_THE_SECOND = len("12:00:00")
_NAMED_TWICE = re.compile(r"\b(\w+) \1-")
_SEPARATOR = " | "
"""Separates the values of points that differ."""


def overview_section(runs: Sequence[ReportedRun]) -> Section:
    """Return a table with a column per run and a row per known fact."""
    facts = [dict(_facts(run)) for run in runs]
    names = dict.fromkeys(name for found in facts for name in found)
    rows = [[Cell(text=name), *(Cell(text=found.get(name, NONE)) for found in facts)] for name in names]
    table = Table(
        caption="Runs and their environments",
        headings=("", *(run.label for run in runs)),
        rows=rows,
    )
    return Section(key="what", title="What was measured", blocks=[table])


def value_text(value: object) -> str:
    """Return a JSON value on one line, shortened."""
    text = _plain(value)
    return text if len(text) <= _CHARACTERS else text[: _CHARACTERS - 1] + "…"


def _plain(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_plain(one)}" for key, one in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(_plain, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return NONE if value is None else str(value)


def _facts(run: ReportedRun) -> Iterator[tuple[str, str]]:
    """Yield name and text of every known fact."""
    yield from _counts(run)
    for name, read in _FACTS.items():
        texts = dict.fromkeys(text for result in run.results if (text := read(_environment(result))))
        if texts:
            yield name, value_text(_SEPARATOR.join(texts))


def _counts(run: ReportedRun) -> Iterator[tuple[str, str]]:
    trials = [trial for result in run.results for trial in result.status.trials]
    yield "Run", run.place
    if trials:
        began, ended = min(trial.started_at for trial in trials), max(trial.finished_at for trial in trials)
        yield "Measured", f"{_time(began)} to {_time(ended)}"
    yield "Points", _points_text(run)
    yield "Attempts", f"{len(trials)} for {' and '.join(_purposes(run))}"
    seconds = sorted({(result.spec.ramp_seconds, result.spec.runtime_seconds) for result in run.results})
    yield "Each trial", "; ".join(f"{runtime} s after a ramp of {ramp} s" for ramp, runtime in seconds)
    yield "Clients", format_numbers({result.spec.clients for result in run.results})
    if dropped := _dropped_caches([one for result in run.results for one in counted(result.status.trials)]):
        yield "Caches", dropped


def _points_text(run: ReportedRun) -> str:
    """Return the number of points with how often each is measured."""
    passes = sorted({result.spec.repetitions for result in run.results if not is_search(result)})
    searches = sum(map(is_search, run.results))
    measured = f"{len(run.results) - searches}, each measured {' or '.join(map(str, passes))} times" if passes else ""
    searched = f"{searches} searched for the line" if searches else ""
    return "; ".join(filter(None, (measured, searched)))


def _purposes(run: ReportedRun) -> Iterator[str]:
    """Yield the planned trials, and the probes of the searches."""
    planned = sum(result.spec.repetitions for result in run.results if not is_search(result))
    probes = [line_of(result).probes for result in run.results if is_search(result)]
    if planned or not probes:
        yield f"{planned} planned trials"
    if probes:
        yield count_text(sum(probes), "probe")


def _dropped_caches(trials: Sequence[Trial]) -> str:
    """Return where caches were dropped before the trials; empty if nowhere."""
    dropped = [trial.caches for trial in trials if trial.caches is not None]
    if not dropped:
        return ""
    nodes = format_numbers({caches.node_count for caches in dropped})
    when = "every trial" if len(dropped) == len(trials) else f"{len(dropped)} of {len(trials)} trials"
    osds = dict.fromkeys(_osds(caches.osds) for caches in dropped)
    return value_text("; ".join([f"dropped before {when}: nodes with clients: {nodes}", *filter(None, osds)]))


def _osds(osds: OsdCaches | None) -> str:
    if osds is None:
        return ""
    return f"OSDs: none, because {osds.reason}" if osds.reason else f"OSDs: {osds.count}"


def _time(text: str) -> str:
    """Return a time to the second: 2026-01-31T12:00:00.123Z -> 2026-01-31 12:00:00 UTC."""
    date, _, rest = text.partition("T")
    return f"{date} {rest[:_TO_THE_SECOND]} UTC" if rest.endswith("Z") else text


def _environment(result: BenchmarkResult) -> Environment:
    """Return the environment of a result, with the settings in its fingerprint."""
    fingerprint = result.status.fingerprint
    parts = (fingerprint.identity, fingerprint.context) if fingerprint else ()
    environment = result.status.environment.document()
    return Environment.model_validate({key: value for part in (*parts, environment) for key, value in part.items()})


def _text(value: object) -> str:
    """Return a part of an environment as text; empty if it is unknown or empty."""
    known = value.document() if isinstance(value, Description) else value
    return "" if known is None or known in ({}, [], ()) else _plain(known)


def _other(known: Environment, name: str) -> str:
    """Return a setting that only the fingerprint has, as text; empty if unknown."""
    return _text((known.model_extra or {}).get(name))


def _joined(*texts: str) -> str:
    return ", ".join(filter(None, texts))


def _around(before: str, text: str, after: str = "") -> str:
    """Return a text with a prefix and a suffix; empty if the text is empty."""
    return f"{before}{text}{after}" if text else ""


def _nodes(known: Environment) -> str:
    return _around("", _text(known.node_count), ":") + _around(" ", _text(known.nodes))


def _machine(known: Environment) -> str:
    memory = known.memory_bytes
    return _joined(
        _text(known.cpu_model),
        _around("", _text(known.processors), " processors"),
        f"{memory / _GIBIBYTE:.1f} GiB" if isinstance(memory, int) else "",
        _text(known.architecture),
    )


def _ceph(known: Environment) -> str:
    if known.ceph is None:
        return ""
    osds = known.ceph.osds or OsdsDescription()
    return _joined(
        _text(known.ceph.versions),
        _around("", _text(osds.count), " OSDs"),
        _around("on ", _text(osds.hosts), " hosts"),
        _text(osds.device_classes),
        _around("fsid ", _text(known.ceph.fsid)),
    )


_FACTS: Mapping[str, Callable[[Environment], str]] = {
    "Nodes": _nodes,
    "StorageClass": lambda known: _text(known.storage_class),
    "Volume": lambda known: _other(known, "volume"),
    "Reached by": lambda known: _joined(
        _text(known.volume_access), _text(known.volume_file_system), _text(known.volume_source)
    ),
    "Pool": lambda known: _text(known.pool),
    "Ceph": _ceph,
    "Ceph options": lambda known: _text(known.ceph.options if known.ceph else None),
    "Rook": lambda known: _text(known.rook),
    # Some versions start with the name of the tool: `fio fio-3.39`.
    "Tools": lambda known: _NAMED_TWICE.sub(r"\1 ", _text(known.tools)),
    "Kubernetes": lambda known: _text(known.kubernetes),
    "Kernel": lambda known: _text(known.kernel),
    "Machine": _machine,
    "Runner image": lambda known: _other(known, "runnerImage"),
    "Plimsoll": lambda known: _other(known, "plimsoll"),
}
"""Name of a row -> its text for a result; empty if unknown."""
