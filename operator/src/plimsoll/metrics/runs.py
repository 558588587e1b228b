"""The metrics of a `BenchmarkRun`: its status, without its numbers."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import AwareDatetime

from plimsoll.metrics import catalogue
from plimsoll.metrics.document import Part, UnreadableError, read
from plimsoll.metrics.sample import Sample
from plimsoll.metrics.shown import UNREADABLE, Condition, Display, Stored, unix_seconds, values_of

MAX_RUNS = 2000
"""The most runs to expose, unfinished ones first: about 16 series each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """One run. Times are Unix seconds, None if absent.

    Attributes:
        created: of two runs with one name, the older one was deleted.
        status: as `kubectl get brun` shows it; empty before the operator has seen the run.
        verdict: likewise; empty before there is one.
        conditions: type, reason and value of each.
        points: state and number.

    """

    namespace: str
    name: str
    created: float = 0.0
    status: str = ""
    verdict: str = ""
    conditions: tuple[tuple[str, str, int], ...] = ()
    points: tuple[tuple[str, int], ...] = ()
    start: float | None = None
    completion: float | None = None
    estimate: float | None = None


def record_of(body: Mapping[str, Any]) -> RunRecord:
    """Read a run as the API server stores it; an unreadable status raises no error."""
    names = read(Stored, body).metadata
    created = names.creation_timestamp.timestamp()
    try:
        status = read(_Run, body).status
    except UnreadableError:
        return RunRecord(namespace=names.namespace, name=names.name, created=created, status=UNREADABLE)
    points = status.points
    counts = () if points is None else (points.total, points.completed, points.invalid)
    return RunRecord(
        namespace=names.namespace,
        name=names.name,
        created=created,
        status=status.display.status or "",
        verdict=status.display.verdict or "",
        conditions=values_of(status.conditions),
        points=tuple(zip(("planned", "completed", "invalid"), counts, strict=False)),
        start=unix_seconds(status.start_time),
        completion=unix_seconds(status.completion_time),
        estimate=unix_seconds(status.estimated_completion_time),
    )


def samples_of(records: Sequence[RunRecord], limit: int = MAX_RUNS) -> Iterator[Sample]:
    """Yield the samples of runs, and their number by status.

    A recreated run may appear beside its deleted namesake: two values of one series would invalidate the whole scrape.
    """
    by_name = {(record.namespace, record.name): record for record in sorted(records, key=lambda record: record.created)}
    shown = sorted(by_name.values(), key=_rank)[:limit]
    for record in shown:
        yield from _samples(record)
    yield Sample(catalogue.RUNS_OMITTED, (), len(records) - len(shown))
    for status, count in sorted(Counter(record.status for record in records).items()):
        yield Sample(catalogue.OPERATOR_RUNS, (status,), count)


def _rank(record: RunRecord) -> tuple[bool, float, str, str]:
    """Sort unfinished runs first, then finished ones from the newest on."""
    return record.completion is not None, -(record.completion or 0.0), record.namespace, record.name


def _samples(record: RunRecord) -> Iterator[Sample]:
    labels = (record.namespace, record.name)
    yield Sample(catalogue.RUN_INFO, (*labels, record.status, record.verdict), 1)
    for kind, reason, value in record.conditions:
        yield Sample(catalogue.RUN_CONDITION, (*labels, kind, reason), value)
    for state, count in record.points:
        yield Sample(catalogue.RUN_POINTS, (*labels, state), count)
    for metric, seconds in (
        (catalogue.RUN_START, record.start),
        (catalogue.RUN_COMPLETION, record.completion),
        (catalogue.RUN_ESTIMATE, record.estimate),
    ):
        if seconds is not None:
            yield Sample(metric, labels, seconds)


class _Points(Part):
    total: int
    completed: int
    invalid: int


class _Status(Part):
    conditions: tuple[Condition, ...] = ()
    points: _Points | None = None
    start_time: AwareDatetime | None = None
    completion_time: AwareDatetime | None = None
    estimated_completion_time: AwareDatetime | None = None
    display: Display = Display()


class _Run(Part):
    status: _Status = _Status()
