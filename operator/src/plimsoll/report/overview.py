"""What was measured on what, run by run."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from pydantic import JsonValue

from plimsoll.api.numbers import format_numbers
from plimsoll.api.result import BenchmarkResult
from plimsoll.report.figure import NONE
from plimsoll.report.runs import Run
from plimsoll.report.view import Cell, Column, Section, Table

_CHARACTERS = 600
_GIBIBYTE = 2**30
_TO_THE_SECOND = len("12:00:00")
_SEPARATOR = " | "
"""Between values where the points of a run differ."""


def overview_section(runs: Sequence[Run]) -> Section:
    """Return one column for each run, and one row for each fact that is known of any."""
    facts = [dict(_facts(run)) for run in runs]
    names = dict.fromkeys(name for found in facts for name in found)
    rows = [[Cell(text=name), *(Cell(text=found.get(name, NONE)) for found in facts)] for name in names]
    table = Table(
        caption="What was measured on what",
        columns=[Column(heading=""), *(Column(heading=run.label) for run in runs)],
        rows=rows,
    )
    return Section(key="what", title="What was measured", blocks=[table])


def value_text(value: object) -> str:
    """Return a JSON value on one line, as people write it; a long one is cut."""
    text = _plain(value)
    return text if len(text) <= _CHARACTERS else text[: _CHARACTERS - 1] + "…"


def _plain(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_plain(one)}" for key, one in value.items())
    if isinstance(value, list):
        return ", ".join(map(_plain, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return NONE if value is None else str(value)


def _facts(run: Run) -> Iterator[tuple[str, str]]:
    """Yield name and text of everything that is known."""
    yield from _counts(run)
    for name, read in _FACTS.items():
        texts = dict.fromkeys(text for result in run.results if (text := read(_known(result))))
        if texts:
            yield name, value_text(_SEPARATOR.join(texts))


def _counts(run: Run) -> Iterator[tuple[str, str]]:
    trials = [trial for result in run.results for trial in result.status.trials]
    yield "Run", run.place
    if trials:
        began, ended = min(trial.started_at for trial in trials), max(trial.finished_at for trial in trials)
        yield "Measured", f"{_time(began)} to {_time(ended)}"
    passes = sorted({result.spec.repetitions for result in run.results})
    yield "Points", f"{len(run.results)}, each measured {' or '.join(map(str, passes))} times"
    yield "Attempts", f"{len(trials)} for {sum(result.spec.repetitions for result in run.results)} planned trials"
    seconds = sorted({(result.spec.ramp_seconds, result.spec.runtime_seconds) for result in run.results})
    yield "Each trial", "; ".join(f"{runtime} s after a ramp of {ramp} s" for ramp, runtime in seconds)
    yield "Clients", format_numbers({result.spec.clients for result in run.results})


def _time(text: str) -> str:
    """Return a time without what nobody reads at this place: 2026-01-31T12:00:00.123Z -> 2026-01-31 12:00:00 UTC."""
    date, _, rest = text.partition("T")
    return f"{date} {rest[:_TO_THE_SECOND]} UTC" if rest.endswith("Z") else text


def _known(result: BenchmarkResult) -> Mapping[str, JsonValue]:
    """Return what a result knows of its surroundings: its fingerprint, and its environment."""
    fingerprint = result.status.fingerprint
    parts = (fingerprint.identity, fingerprint.context) if fingerprint else ()
    return {key: value for part in (*parts, result.status.environment) for key, value in part.items()}


def _at(known: object, *path: str) -> str:
    """Return what stands at a path, as text; empty if nothing does."""
    for step in path:
        known = known.get(step) if isinstance(known, Mapping) else None
    return "" if known is None or known in ({}, []) else _plain(known)


def _joined(*texts: str) -> str:
    return ", ".join(filter(None, texts))


def _said(before: str, text: str, after: str = "") -> str:
    """Return a text with words around it; empty if there is none."""
    return f"{before}{text}{after}" if text else ""


def _machine(known: Mapping[str, JsonValue]) -> str:
    memory = known.get("memoryBytes")
    return _joined(
        _at(known, "cpuModel"),
        _said("", _at(known, "processors"), " processors"),
        f"{memory / _GIBIBYTE:.1f} GiB" if isinstance(memory, int) else "",
        _at(known, "architecture"),
    )


def _ceph(known: Mapping[str, JsonValue]) -> str:
    return _joined(
        _at(known, "ceph", "versions"),
        _said("", _at(known, "ceph", "osds", "count"), " OSDs"),
        _said("on ", _at(known, "ceph", "osds", "hosts"), " hosts"),
        _at(known, "ceph", "osds", "deviceClasses"),
        _said("fsid ", _at(known, "ceph", "fsid")),
    )


_FACTS: Mapping[str, Callable[[Mapping[str, JsonValue]], str]] = {
    "Nodes": lambda known: _joined(_said("", _at(known, "nodeCount"), ":")) + _said(" ", _at(known, "nodes")),
    "StorageClass": lambda known: _at(known, "storageClass"),
    "Volume": lambda known: _at(known, "volume"),
    "Reached by": lambda known: _joined(
        _at(known, "volumeAccess"), _at(known, "volumeFileSystem"), _at(known, "volumeSource")
    ),
    "Pool": lambda known: _at(known, "pool"),
    "Ceph": _ceph,
    "Rook": lambda known: _at(known, "rook"),
    # fio's version begins with its name.
    "Tools": lambda known: _at(known, "tools").replace("fio fio-", "fio "),
    "Kubernetes": lambda known: _at(known, "kubernetes"),
    "Kernel": lambda known: _at(known, "kernel"),
    "Machine": _machine,
    "Runner image": lambda known: _at(known, "runnerImage"),
    "Plimsoll": lambda known: _at(known, "plimsoll"),
}
"""Name of a row -> what it says of a result; empty if that is not known."""
