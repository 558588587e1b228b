"""The metrics of a `BenchmarkResult`: read once when it changes, and kept small for every scrape."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, TypeVar

from pydantic import AwareDatetime, Field, ValidationError

from plimsoll.api.line import Ending, Objective, Vary
from plimsoll.api.model import Model
from plimsoll.api.names import Outcome, Verdict
from plimsoll.measure.line.model import lower_bound
from plimsoll.measure.line.summary import UNKNOWN, objectives_text
from plimsoll.measure.summary import counted
from plimsoll.metrics import catalogue
from plimsoll.metrics.catalogue import Sample, bound_samples, known_samples

PartType = TypeVar("PartType", bound="Part")


class UnreadableError(ValueError):
    """A document is invalid; the message names the field."""


class Part(Model):
    """A part of a document; unknown fields are ignored."""

    model_config = Model.model_config | {"extra": "ignore"}


class Names(Part):
    """An object's metadata."""

    name: str
    namespace: str


def read(model: type[PartType], body: Mapping[str, Any]) -> PartType:
    """Return the parts of a document that the model names; UnreadableError if one is missing or invalid."""
    try:
        return model.model_validate(dict(body))
    except ValidationError as error:
        problem = error.errors(include_url=False, include_input=False)[0]
        raise UnreadableError(f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}") from error


_LINE_METRICS = {
    Vary.RATE: (catalogue.RESULT_LINE_RATE, catalogue.RESULT_LINE_RATE_BOUND),
    Vary.DEPTH: (catalogue.RESULT_LINE_DEPTH, catalogue.RESULT_LINE_DEPTH_BOUND),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LineRecord:
    """What a search found. Loads are operations per second or in flight; None outside the loads that may be offered."""

    vary: Vary
    ending: str  # why the search ended; a dash if that is not recorded
    objectives: str  # in words: `p99 <= 5 ms`
    probes: int  # number of probes, with those that do not count
    estimate: float | None
    low: float | None
    high: float | None


MAX_RESULTS = 2000
"""The most results to expose, the newest ones: 18 series with one operation, 9 more for each further one, 2 more for
pairs of clients; 14 of a search for the line."""

_NANOSECONDS = 1e9


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationRecord:
    """One operation of a point: mean rates over its counted trials, the 95 % interval of `iops`, and latencies."""

    operation: str
    iops: float
    low: float | None
    high: float | None
    bytes_per_second: float
    quantiles: tuple[tuple[str, float], ...]  # value of the label `quantile` and seconds
    mean_latency: float | None  # seconds; None if the tool does not time operations


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers:
    """The numbers of a point, over the trials that count, as the help of their metrics says; None if unknown."""

    trials: int
    operations: tuple[OperationRecord, ...]
    finished: float | None  # when the last of these trials ended, Unix seconds
    stall: float | None
    overlap: float | None
    spread: float | None
    median_link: float | None
    least_link: float | None
    line: LineRecord | None  # what a search found; None if the point was measured at one load


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultRecord:
    """One result."""

    namespace: str
    run: str
    workload: str
    point: str
    tool: str
    parameters: str  # the label of the point's parameters: `randwrite 4Ki qd16`
    clients: int
    verdict: Verdict
    finished: float  # when the last trial ended, Unix seconds; 0 if unknown
    numbers: Numbers | None  # None if they are Invalid or absent

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels that all its samples have."""
        return self.namespace, self.run, self.workload, self.point


def record_of(body: Mapping[str, Any]) -> ResultRecord | None:
    """Read a result as the API server stores it; None if it has no verdict yet.

    Raises:
        UnreadableError: this version cannot read it.

    """
    result = read(_Result, body)
    spec, status = result.spec, result.status
    if status.verdict is None:
        return None
    return ResultRecord(
        namespace=result.metadata.namespace,
        run=spec.run,
        workload=spec.workload,
        point=spec.point,
        tool=spec.tool,
        parameters=spec.label,
        clients=spec.clients,
        verdict=status.verdict,
        finished=_latest(status.trials) or 0.0,
        numbers=_numbers(status, spec.line),
    )


def samples_of(records: Sequence[ResultRecord | None], limit: int = MAX_RESULTS) -> Iterator[Sample]:
    """Yield the samples of the newest results; None is an unreadable one.

    A recreated result may appear beside its deleted namesake: two values of one series would invalidate the whole
    scrape, so only the newer one is exposed.
    """
    known = [record for record in records if record is not None]
    newest = {record.labels: record for record in sorted(known, key=_age)}
    shown = sorted(newest.values(), key=_age, reverse=True)[:limit]
    for record in shown:
        yield from _samples(record)
    yield Sample(catalogue.RESULTS_OMITTED, (), len(known) - len(shown))
    yield Sample(catalogue.RESULTS_UNREADABLE, (), len(records) - len(known))


def _age(record: ResultRecord) -> tuple[float, tuple[str, ...]]:
    return record.finished, record.labels


def _samples(record: ResultRecord) -> Iterator[Sample]:
    labels = record.labels
    yield Sample(catalogue.RESULT_INFO, (*labels, record.tool, record.parameters, str(record.clients)), 1)
    for verdict in Verdict:
        yield Sample(catalogue.RESULT_VERDICT, (*labels, verdict.value), verdict is record.verdict)
    numbers = record.numbers
    if numbers is None:
        return
    yield Sample(catalogue.RESULT_TRIALS, labels, numbers.trials)
    yield from known_samples(
        labels,
        (catalogue.RESULT_STALL, numbers.stall),
        (catalogue.RESULT_OVERLAP, numbers.overlap),
        (catalogue.RESULT_SPREAD, numbers.spread),
        (catalogue.RESULT_LINK_MEDIAN, numbers.median_link),
        (catalogue.RESULT_LINK_LEAST, numbers.least_link),
        (catalogue.RESULT_TIME, numbers.finished),
    )
    for operation in numbers.operations:
        of_operation = (*labels, operation.operation)
        yield Sample(catalogue.RESULT_IOPS, of_operation, operation.iops)
        yield Sample(catalogue.RESULT_BYTES, of_operation, operation.bytes_per_second)
        yield from bound_samples(catalogue.RESULT_IOPS_BOUND, of_operation, operation.low, operation.high)
        for quantile, seconds in operation.quantiles:
            yield Sample(catalogue.RESULT_LATENCY, (*of_operation, quantile), seconds)
        yield from known_samples(of_operation, (catalogue.RESULT_LATENCY_MEAN, operation.mean_latency))
    if (line := numbers.line) is not None:
        metric, bound_metric = _LINE_METRICS[line.vary]
        yield Sample(catalogue.RESULT_LINE_INFO, (*labels, line.ending, line.objectives), 1)
        yield Sample(catalogue.RESULT_LINE_PROBES, labels, line.probes)
        yield from known_samples(labels, (metric, line.estimate))
        yield from bound_samples(bound_metric, labels, line.low, line.high)


def _numbers(status: "_Status", search: "_Search | None") -> Numbers | None:
    summary, found = status.summary, status.line
    if summary is None and found is not None:
        # A search has no operations of its own, because its trials had different loads.
        summary = _Summary(trials=found.counted, operations=())
    if summary is None or status.verdict is Verdict.INVALID:
        return None
    line = None
    if search is not None and found is not None:
        line = LineRecord(
            vary=search.vary,
            ending=found.ending or UNKNOWN,
            objectives=objectives_text(search.objectives),
            probes=found.probes,
            estimate=found.estimate,
            low=None if found.low is None else lower_bound(found.low, search.limit),
            high=found.high,
        )
    trials = counted(status.trials)
    links = summary.matrix.bytes_per_second if summary.matrix else ()
    windows = [trial.window for trial in trials if trial.window is not None]
    # A document that repeats an operation still has one series of it.
    operations = {operation.operation: operation for operation in map(_operation, summary.operations)}
    return Numbers(
        trials=summary.trials,
        operations=tuple(operations.values()),
        finished=_latest(trials),
        stall=max((trial.stalls.seconds for trial in trials if trial.stalls is not None), default=None),
        overlap=min((window.overlap for window in windows), default=None),
        spread=max((window.spread_seconds for window in windows), default=None),
        median_link=median(links) if links else None,
        least_link=min(links, default=None),
        line=line,
    )


def _operation(summary: "_Operation") -> OperationRecord:
    latency = summary.latency
    mean = latency.mean_nanoseconds
    return OperationRecord(
        operation=summary.operation,
        iops=summary.iops.mean,
        low=summary.iops.low,
        high=summary.iops.high,
        bytes_per_second=summary.bytes_per_second.mean,
        quantiles=tuple(
            (quantile, latency.percentiles[percentile] / _NANOSECONDS)
            for percentile, quantile in catalogue.QUANTILES.items()
            if percentile in latency.percentiles
        ),
        mean_latency=None if mean is None else mean / _NANOSECONDS,
    )


def _latest(trials: Iterable["_Trial"]) -> float | None:
    return max((trial.finished_at.timestamp() for trial in trials), default=None)


class _Search(Part):
    vary: Vary
    limit: float
    objectives: tuple[Objective, ...]


class _Spec(Part):
    run: str
    point: str
    workload: str
    tool: str
    label: str
    clients: int
    line: _Search | None = None


class _Window(Part):
    overlap: float
    spread_seconds: float


class _Stalls(Part):
    seconds: float


class _Trial(Part):
    pass_number: int
    attempt: int
    outcome: Outcome
    verdict: Verdict
    finished_at: AwareDatetime
    window: _Window | None = None
    stalls: _Stalls | None = None


class _Statistic(Part):
    mean: float
    low: float | None = None
    high: float | None = None


class _Latency(Part):
    mean_nanoseconds: float | None = None
    percentiles: dict[str, float] = Field(default_factory=dict)


class _Operation(Part):
    operation: str
    iops: _Statistic
    bytes_per_second: _Statistic
    latency: _Latency = _Latency()


class _Matrix(Part):
    bytes_per_second: tuple[float, ...]


class _Summary(Part):
    trials: int
    operations: tuple[_Operation, ...]
    matrix: _Matrix | None = None


class _Line(Part):
    ending: Ending | None = None
    probes: int
    counted: int
    estimate: float | None = None
    low: float | None = None
    high: float | None = None


class _Status(Part):
    trials: tuple[_Trial, ...] = ()
    summary: _Summary | None = None
    line: _Line | None = None
    verdict: Verdict | None = None


class _Result(Part):
    metadata: Names
    spec: _Spec
    status: _Status = _Status()
