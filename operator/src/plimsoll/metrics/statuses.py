"""The metrics of runs and suites, from their status."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from pydantic import AwareDatetime

from plimsoll.api.names import ConditionStatus
from plimsoll.api.suite_status import Cause, Conclusion, HypothesisVerdict, RoundVerdict
from plimsoll.metrics import catalogue
from plimsoll.metrics.catalogue import MetricFamily, Sample, bound_samples, known_samples
from plimsoll.metrics.results import Names, Part, UnreadableError, read

UNREADABLE = "Unreadable"
"""The status of an object that this version cannot read."""

_CONDITION_VALUES = {ConditionStatus.TRUE: 1, ConditionStatus.FALSE: 0, ConditionStatus.UNKNOWN: -1}


class _Condition(Part):
    type: str
    status: ConditionStatus
    reason: str


class _Display(Part):
    status: str | None = None
    verdict: str | None = None


class _DatedNames(Names):
    creation_timestamp: AwareDatetime


class _Stored(Part):
    metadata: _DatedNames


def _values(conditions: Sequence[_Condition]) -> tuple[tuple[str, str, int], ...]:
    """Return type, reason and value of each condition; of two of one type the last one."""
    by_type = {condition.type: condition for condition in conditions}
    return tuple((kind, entry.reason, _CONDITION_VALUES[entry.status]) for kind, entry in by_type.items())


def _seconds(moment: AwareDatetime | None) -> float | None:
    return None if moment is None else moment.timestamp()


MAX_RUNS = 2000
"""The most runs to expose, unfinished ones first: about 16 series each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """One run. Times are Unix seconds, None if absent."""

    namespace: str
    name: str
    created: float = 0.0  # of two runs with one name, the older one was deleted
    status: str = ""  # as `kubectl get brun` shows it, like the verdict; empty before the operator has seen the run
    verdict: str = ""
    conditions: tuple[tuple[str, str, int], ...] = ()  # type, reason and value of each
    points: tuple[tuple[str, int], ...] = ()  # state and number
    start: float | None = None
    completion: float | None = None
    estimate: float | None = None


def run_record_of(body: Mapping[str, Any]) -> RunRecord:
    """Read a run as the API server stores it; an unreadable status raises no error."""
    names = read(_Stored, body).metadata
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
        conditions=_values(status.conditions),
        points=tuple(zip(("planned", "completed", "invalid"), counts, strict=False)),
        start=_seconds(status.start_time),
        completion=_seconds(status.completion_time),
        estimate=_seconds(status.estimated_completion_time),
    )


def run_samples_of(records: Sequence[RunRecord], limit: int = MAX_RUNS) -> Iterator[Sample]:
    """Yield the samples of runs, and their number by status.

    A recreated run may appear beside its deleted namesake: two values of one series would invalidate the whole scrape.
    """
    by_name = {(record.namespace, record.name): record for record in sorted(records, key=lambda record: record.created)}
    shown = sorted(by_name.values(), key=_rank)[:limit]
    for record in shown:
        labels = (record.namespace, record.name)
        yield Sample(catalogue.RUN_INFO, (*labels, record.status, record.verdict), 1)
        for kind, reason, value in record.conditions:
            yield Sample(catalogue.RUN_CONDITION, (*labels, kind, reason), value)
        for state, count in record.points:
            yield Sample(catalogue.RUN_POINTS, (*labels, state), count)
        yield from known_samples(
            labels,
            (catalogue.RUN_START, record.start),
            (catalogue.RUN_COMPLETION, record.completion),
            (catalogue.RUN_ESTIMATE, record.estimate),
        )
    yield Sample(catalogue.RUNS_OMITTED, (), len(records) - len(shown))
    for status, count in sorted(Counter(record.status for record in records).items()):
        yield Sample(catalogue.OPERATOR_RUNS, (status,), count)


def _rank(record: RunRecord) -> tuple[bool, float, str, str]:
    """Sort unfinished runs first, then finished ones from the newest on."""
    return record.completion is not None, -(record.completion or 0.0), record.namespace, record.name


class _Points(Part):
    total: int
    completed: int
    invalid: int


class _RunStatus(Part):
    conditions: tuple[_Condition, ...] = ()
    points: _Points | None = None
    start_time: AwareDatetime | None = None
    completion_time: AwareDatetime | None = None
    estimated_completion_time: AwareDatetime | None = None
    display: _Display = _Display()


class _Run(Part):
    status: _RunStatus = _RunStatus()


MAX_SUITES = 200
"""The most suites to expose: about 25 series each, and 6 for each comparison and hypothesis."""

_NOT_EVALUATED = frozenset({RoundVerdict.FAILED, RoundVerdict.SUPERSEDED})
_COMPARISON_METRICS = (
    catalogue.SUITE_COMPARISON_VERDICT,
    catalogue.SUITE_COMPARISON_CHANGE,
    catalogue.SUITE_COMPARISON_BOUND,
)
_HYPOTHESIS_METRICS = (
    catalogue.SUITE_HYPOTHESIS_VERDICT,
    catalogue.SUITE_HYPOTHESIS_ESTIMATE,
    catalogue.SUITE_HYPOTHESIS_BOUND,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ActiveRecord:
    """The active round. `start` is in Unix seconds; `planned` and `done` are numbers of its runs."""

    cause: Cause
    start: float
    planned: int
    done: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundRecord:
    """A former round. `completion` is in Unix seconds."""

    verdict: RoundVerdict
    completion: float
    accepted: bool


class OutcomeRecord(Part):
    """The outcome of a comparison or hypothesis.

    Attributes:
        variant: empty or absent for a hypothesis that names its variants itself.
        estimate: a change as a part of the baseline, a ratio as a part of 1, or an exponent, with the ends of its 95 %
            confidence interval; None if unknown.

    """

    name: str
    variant: str | None = None
    verdict: str
    estimate: float | None = None
    low: float | None = None
    high: float | None = None

    @property
    def labels(self) -> tuple[str, str]:
        """The labels that all its samples have, after those of the suite."""
        return self.name, self.variant or ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteRecord:
    """One suite. Times are Unix seconds, None if absent."""

    namespace: str
    name: str
    created: float = 0.0  # of two suites with one name, the older one was deleted
    status: str = ""  # as `kubectl get bsuite` shows it, like the verdict; empty before the operator has seen the suite
    verdict: str = ""
    conditions: tuple[tuple[str, str, int], ...] = ()  # type, reason and value of each
    next_schedule: float | None = None
    last_schedule: float | None = None
    active: ActiveRecord | None = None  # None if no round is being measured
    rounds: tuple[RoundRecord, ...] = ()  # former rounds, newest first
    comparisons: tuple[OutcomeRecord, ...] = ()
    hypotheses: tuple[OutcomeRecord, ...] = ()

    @property
    def labels(self) -> tuple[str, str]:
        """The labels that all its samples have."""
        return (self.namespace, self.name)


def suite_record_of(body: Mapping[str, Any]) -> SuiteRecord:
    """Read a suite as the API server stores it; an unreadable status raises no error."""
    names = read(_Stored, body).metadata
    created = names.creation_timestamp.timestamp()
    try:
        status = read(_Suite, body).status
    except UnreadableError:
        return SuiteRecord(namespace=names.namespace, name=names.name, created=created, status=UNREADABLE)
    return SuiteRecord(
        namespace=names.namespace,
        name=names.name,
        created=created,
        status=status.display.status or "",
        verdict=status.display.verdict or "",
        conditions=_values(status.conditions),
        next_schedule=_seconds(status.next_schedule_time),
        last_schedule=_seconds(status.last_schedule_time),
        active=None
        if status.round is None
        else ActiveRecord(
            cause=status.round.cause,
            start=status.round.start_time.timestamp(),
            planned=status.round.children.total,
            done=status.round.children.done,
        ),
        rounds=tuple(
            RoundRecord(verdict=ended.verdict, completion=ended.completion_time.timestamp(), accepted=ended.accepted)
            for ended in status.rounds
        ),
        comparisons=_outcomes(status.comparisons),
        hypotheses=_outcomes(status.hypotheses),
    )


def suite_samples_of(records: Sequence[SuiteRecord], limit: int = MAX_SUITES) -> Iterator[Sample]:
    """Yield the samples of suites, and their number by status; the oldest first: new ones hide no regression of these.

    Of suites with one name, only the newest counts, as of runs.
    """
    by_name = {record.labels: record for record in sorted(records, key=_age)}
    shown = sorted(by_name.values(), key=_age)[:limit]
    for record in shown:
        yield from _suite_samples(record)
    yield Sample(catalogue.SUITES_OMITTED, (), len(records) - len(shown))
    for status, count in sorted(Counter(record.status for record in records).items()):
        yield Sample(catalogue.OPERATOR_SUITES, (status,), count)


def _age(record: SuiteRecord) -> tuple[float, tuple[str, str]]:
    return record.created, record.labels


def _suite_samples(record: SuiteRecord) -> Iterator[Sample]:
    labels = record.labels
    yield Sample(catalogue.SUITE_INFO, (*labels, record.status, record.verdict), 1)
    for kind, reason, value in record.conditions:
        yield Sample(catalogue.SUITE_CONDITION, (*labels, kind, reason), value)
    yield from known_samples(
        labels,
        (catalogue.SUITE_NEXT_SCHEDULE, record.next_schedule),
        (catalogue.SUITE_LAST_SCHEDULE, record.last_schedule),
    )
    if record.active is not None:
        yield Sample(catalogue.SUITE_ROUND_START, (*labels, record.active.cause), record.active.start)
        yield Sample(catalogue.SUITE_ROUND_RUNS, (*labels, "planned"), record.active.planned)
        yield Sample(catalogue.SUITE_ROUND_RUNS, (*labels, "done"), record.active.done)
    if record.status != UNREADABLE:
        yield from _round_samples(labels, record.rounds)
    yield from _outcome_samples(labels, record.comparisons, Conclusion, _COMPARISON_METRICS)
    yield from _outcome_samples(labels, record.hypotheses, HypothesisVerdict, _HYPOTHESIS_METRICS)


def _round_samples(labels: tuple[str, str], rounds: Sequence[RoundRecord]) -> Iterator[Sample]:
    """Yield the samples of the former rounds of a suite, newest first."""
    counts = Counter(ended.verdict for ended in rounds)
    for verdict in RoundVerdict:
        yield Sample(catalogue.SUITE_ROUNDS, (*labels, verdict), counts[verdict])
        if rounds:
            yield Sample(catalogue.SUITE_ROUND_VERDICT, (*labels, verdict), verdict is rounds[0].verdict)
    since_evaluated = list(takewhile(lambda ended: ended.verdict in _NOT_EVALUATED, rounds))
    if len(since_evaluated) < len(rounds):
        yield Sample(catalogue.SUITE_ROUND_COMPLETION, labels, rounds[len(since_evaluated)].completion)
    failed = sum(ended.verdict is RoundVerdict.FAILED for ended in since_evaluated)
    yield Sample(catalogue.SUITE_ROUNDS_FAILED, labels, failed)
    yield Sample(catalogue.SUITE_ROUNDS_ACCEPTED, labels, sum(ended.accepted for ended in rounds))


def _outcome_samples(
    suite: tuple[str, str],
    outcomes: Sequence[OutcomeRecord],
    verdicts: Iterable[str],
    metrics: tuple[MetricFamily, MetricFamily, MetricFamily],
) -> Iterator[Sample]:
    """Yield the samples of outcomes; `metrics` are those of the verdict, the estimate and its bounds."""
    verdict_metric, estimate_metric, bound_metric = metrics
    for outcome in outcomes:
        labels = (*suite, *outcome.labels)
        for verdict in verdicts:
            yield Sample(verdict_metric, (*labels, verdict), verdict == outcome.verdict)
        yield from known_samples(labels, (estimate_metric, outcome.estimate))
        yield from bound_samples(bound_metric, labels, outcome.low, outcome.high)


def _outcomes(outcomes: Sequence[OutcomeRecord]) -> tuple[OutcomeRecord, ...]:
    """Return outcomes; of two with the same labels the first one."""
    by_labels: dict[tuple[str, str], OutcomeRecord] = {}
    for outcome in outcomes:
        by_labels.setdefault(outcome.labels, outcome)
    return tuple(by_labels.values())


class _Children(Part):
    done: int
    total: int


class _Active(Part):
    cause: Cause
    start_time: AwareDatetime
    children: _Children


class _Round(Part):
    verdict: RoundVerdict
    completion_time: AwareDatetime
    accepted: bool = False


class _SuiteStatus(Part):
    conditions: tuple[_Condition, ...] = ()
    next_schedule_time: AwareDatetime | None = None
    last_schedule_time: AwareDatetime | None = None
    round: _Active | None = None
    rounds: tuple[_Round, ...] = ()
    comparisons: tuple[OutcomeRecord, ...] = ()
    hypotheses: tuple[OutcomeRecord, ...] = ()
    display: _Display = _Display()


class _Suite(Part):
    status: _SuiteStatus = _SuiteStatus()
