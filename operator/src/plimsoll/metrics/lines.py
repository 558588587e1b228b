"""The metrics of a search for the line: what it found, and nothing of the loads on the way there."""

from collections.abc import Iterator
from dataclasses import dataclass

from plimsoll.api.line import Ending, Objective, Vary
from plimsoll.measure.line.model import lower_bound
from plimsoll.measure.line.summary import UNKNOWN, objectives_text
from plimsoll.metrics import catalogue
from plimsoll.metrics.document import Part
from plimsoll.metrics.sample import Sample

_METRICS = {
    Vary.RATE: (catalogue.RESULT_LINE_RATE, catalogue.RESULT_LINE_RATE_BOUND),
    Vary.DEPTH: (catalogue.RESULT_LINE_DEPTH, catalogue.RESULT_LINE_DEPTH_BOUND),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LineRecord:
    """What a search found. Loads are operations per second or operations in flight of all clients together.

    Attributes:
        vary: what a load is.
        ending: why the search ended; a dash if that is not recorded.
        objectives: in words: `p99 <= 5 ms`.
        probes: number of probes, with those that do not count.
        estimate: the line; None if it is outside of the loads that may be offered, or unknown.
        low: lower end of its 95 % interval; likewise.
        high: upper end of it; likewise.

    """

    vary: Vary
    ending: str
    objectives: str
    probes: int
    estimate: float | None
    low: float | None
    high: float | None


class SearchPart(Part):
    """The part of a search in a spec that metrics describe."""

    vary: Vary
    limit: float
    objectives: tuple[Objective, ...]


class LinePart(Part):
    """The line in a status."""

    ending: Ending | None = None
    probes: int
    counted: int
    estimate: float | None = None
    low: float | None = None
    high: float | None = None


def line_record(search: SearchPart, line: LinePart) -> LineRecord:
    """Return what a search found."""
    return LineRecord(
        vary=search.vary,
        ending=line.ending or UNKNOWN,
        objectives=objectives_text(search.objectives),
        probes=line.probes,
        estimate=line.estimate,
        low=None if line.low is None else lower_bound(line.low, search.limit),
        high=line.high,
    )


def line_samples(labels: tuple[str, ...], record: LineRecord) -> Iterator[Sample]:
    """Yield the samples of a search; `labels` are those of its point."""
    metric, bound_metric = _METRICS[record.vary]
    yield Sample(catalogue.RESULT_LINE_INFO, (*labels, record.ending, record.objectives), 1)
    yield Sample(catalogue.RESULT_LINE_PROBES, labels, record.probes)
    if record.estimate is not None:
        yield Sample(metric, labels, record.estimate)
    for bound, value in (("low", record.low), ("high", record.high)):
        if value is not None:
            yield Sample(bound_metric, (*labels, bound), value)
