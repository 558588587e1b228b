"""The provenance of the numbers: specifications, seeds and environments."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from pydantic import JsonValue

from plimsoll.api.result import BenchmarkResult
from plimsoll.plan.fingerprint import leaves
from plimsoll.report.overview import value_text
from plimsoll.report.runs import ReportedRun
from plimsoll.report.text import NONE
from plimsoll.report.view import Block, Cell, Details, Section, Table

_DIGEST = 12
_VALUES = 8


def provenance_section(runs: Sequence[ReportedRun]) -> Section:
    """Return everything recorded about every run, collapsed."""
    blocks: list[Block] = [
        Details(title=f"{run.label} ({run.place}, UID {run.uid})", blocks=[*_of(run)]) for run in runs
    ]
    return Section(key="provenance", title="Provenance", blocks=blocks)


def _of(run: ReportedRun) -> Iterator[Block]:
    yield _points(run)
    yield _leaves("Fingerprint, identity: the specification and the storage", run, _identity)
    yield _leaves("Fingerprint, context: seed, versions and other possible causes of a difference", run, _context)
    yield _leaves("Environment, as found", run, lambda result: result.status.environment.document())


def _identity(result: BenchmarkResult) -> Mapping[str, JsonValue]:
    return result.status.fingerprint.identity if result.status.fingerprint else {}


def _context(result: BenchmarkResult) -> Mapping[str, JsonValue]:
    return result.status.fingerprint.context if result.status.fingerprint else {}


def _points(run: ReportedRun) -> Table:
    return Table(
        caption="Points",
        headings=("Point", "Tool", "Parameters", "Clients", "Identity SHA-256", "Context SHA-256", "Warnings"),
        rows=[_row(result) for result in run.results],
    )


def _row(result: BenchmarkResult) -> list[Cell]:
    spec, fingerprint = result.spec, result.status.fingerprint
    identity, context = (fingerprint.identity_sha256, fingerprint.context_sha256) if fingerprint else ("", "")
    clients = dict.fromkeys(", ".join(map(str, trial.clients)) for trial in result.status.trials)
    warnings = dict.fromkeys(warning for trial in result.status.trials for warning in trial.warnings)
    parameters = {key: value for key, value in spec.parameters.items() if value is not None}
    return [
        Cell(text=spec.point),
        Cell(text=spec.tool),
        Cell(text=value_text(parameters)),
        Cell(text=value_text([*clients])),
        Cell(text=identity[:_DIGEST] or NONE, title=identity),
        Cell(text=context[:_DIGEST] or NONE, title=context),
        Cell(text=value_text([*warnings]) or NONE),
    ]


def _leaves(caption: str, run: ReportedRun, part: Callable[[BenchmarkResult], Mapping[str, JsonValue]]) -> Table:
    """Return every setting with its distinct values over the points, up to a limit."""
    found: dict[str, dict[str, None]] = {}
    for result in run.results:
        for key, value in leaves(part(result)):
            found.setdefault(key, {})[value_text(value)] = None
    return Table(
        caption=caption,
        headings=("What", "Value; | where points differ"),
        rows=[[Cell(text=key), Cell(text=_several([*values]))] for key, values in sorted(found.items())],
    )


def _several(values: Sequence[str]) -> str:
    more = f" | and {len(values) - _VALUES} more" if len(values) > _VALUES else ""
    return " | ".join(values[:_VALUES]) + more
