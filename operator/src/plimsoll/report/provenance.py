"""Where the numbers come from: what was asked for, with which seeds, in which surroundings."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from pydantic import JsonValue

from plimsoll.api.result import BenchmarkResult
from plimsoll.plan.fingerprint import leaves
from plimsoll.report.figure import NONE
from plimsoll.report.overview import value_text
from plimsoll.report.runs import Run
from plimsoll.report.view import Block, Cell, Column, Details, Section, Table

_DIGEST = 12
_VALUES = 8


def provenance_section(runs: Sequence[Run]) -> Section:
    """Return everything that was recorded of every run, folded away."""
    blocks: list[Block] = [
        Details(title=f"{run.label} ({run.place}, UID {run.uid})", blocks=[*_of(run)]) for run in runs
    ]
    return Section(key="provenance", title="Provenance", blocks=blocks)


def _of(run: Run) -> Iterator[Block]:
    yield _points(run)
    yield _leaves("Fingerprint, identity: what was asked for, and of what", run, _identity)
    yield _leaves("Fingerprint, context: seed, versions, and what else may explain a difference", run, _context)
    yield _leaves("Environment, as it was found", run, lambda result: result.status.environment)


def _identity(result: BenchmarkResult) -> Mapping[str, JsonValue]:
    return result.status.fingerprint.identity if result.status.fingerprint else {}


def _context(result: BenchmarkResult) -> Mapping[str, JsonValue]:
    return result.status.fingerprint.context if result.status.fingerprint else {}


def _points(run: Run) -> Table:
    headings = (
        "Point",
        "Tool",
        "Parameters",
        "Clients that took part",
        "Identity SHA-256",
        "Context SHA-256",
        "Warnings",
    )
    return Table(
        caption="Points",
        columns=[Column(heading=heading) for heading in headings],
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


def _leaves(caption: str, run: Run, part: Callable[[BenchmarkResult], Mapping[str, JsonValue]]) -> Table:
    """Return every recorded value once; what differs between points has all its values, up to a number of them."""
    found: dict[str, dict[str, None]] = {}
    for result in run.results:
        for key, value in leaves(part(result)):
            found.setdefault(key, {})[value_text(value)] = None
    return Table(
        caption=caption,
        columns=[Column(heading="What"), Column(heading="Value; | where points differ")],
        rows=[[Cell(text=key), Cell(text=_several([*values]))] for key, values in sorted(found.items())],
    )


def _several(values: Sequence[str]) -> str:
    more = f" | and {len(values) - _VALUES} more" if len(values) > _VALUES else ""
    return " | ".join(values[:_VALUES]) + more
