"""The metrics of a `BenchmarkRun`: its status, without its numbers."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from pydantic import AwareDatetime

from plimsoll.api.names import ConditionStatus
from plimsoll.api.suite_status import Cause, ComparisonVerdict, HypothesisOutcome, RoundVerdict
from plimsoll.metrics import catalogue
from plimsoll.metrics.catalogue import MetricFamily, Sample
from plimsoll.metrics.results import Names, Part, UnreadableError, read

UNREADABLE = "Unreadable"
"""The status of an object that this version cannot read."""

_VALUES = {ConditionStatus.TRUE: 1, ConditionStatus.FALSE: 0, ConditionStatus.UNKNOWN: -1}


class Condition(Part):
    """A condition."""

    type: str
    status: ConditionStatus
    reason: str


class Display(Part):
    """What `kubectl get` shows."""

    status: str | None = None
    verdict: str | None = None


class DatedNames(Names):
    """An object's metadata, with its creation."""

    creation_timestamp: AwareDatetime


class Stored(Part):
    """An object, without its status."""

    metadata: DatedNames


def values_of(conditions: Sequence[Condition]) -> tuple[tuple[str, str, int], ...]:
    """Return type, reason and value of each condition; of two of one type the last one."""
    by_type = {condition.type: condition for condition in conditions}
    return tuple((kind, entry.reason, _VALUES[entry.status]) for kind, entry in by_type.items())


def unix_seconds(moment: AwareDatetime | None) -> float | None:
    """Return a time in Unix seconds."""
    return None if moment is None else moment.timestamp()


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


def run_record_of(body: Mapping[str, Any]) -> RunRecord:
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


def run_samples_of(records: Sequence[RunRecord], limit: int = MAX_RUNS) -> Iterator[Sample]:
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


MAX_SUITES = 200
"""The most suites to expose: about 25 series each, and 6 for each comparison and hypothesis."""

_NOT_EVALUATED = frozenset({RoundVerdict.FAILED, RoundVerdict.SUPERSEDED})


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


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeRecord:
    """The outcome of a comparison or hypothesis.

    Attributes:
        variant: empty for a hypothesis that names its variants itself.
        estimate: a change as a part of the baseline, a ratio as a part of 1, or an exponent; None if unknown.
        low: lower end of its 95 % confidence interval.
        high: upper end of it.

    """

    name: str
    variant: str
    verdict: str
    estimate: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteRecord:
    """One suite. Times are Unix seconds, None if absent.

    Attributes:
        created: of two suites with one name, the older one was deleted.
        status: as `kubectl get bsuite` shows it; empty before the operator has seen the suite.
        verdict: likewise; empty before there is one.
        conditions: type, reason and value of each.
        active: None if no round is being measured.
        rounds: former rounds, newest first.

    """

    namespace: str
    name: str
    created: float = 0.0
    status: str = ""
    verdict: str = ""
    conditions: tuple[tuple[str, str, int], ...] = ()
    next_schedule: float | None = None
    last_schedule: float | None = None
    active: ActiveRecord | None = None
    rounds: tuple[RoundRecord, ...] = ()
    comparisons: tuple[OutcomeRecord, ...] = ()
    hypotheses: tuple[OutcomeRecord, ...] = ()

    @property
    def labels(self) -> tuple[str, str]:
        """The labels that all its samples have."""
        return (self.namespace, self.name)


def suite_record_of(body: Mapping[str, Any]) -> SuiteRecord:
    """Read a suite as the API server stores it; an unreadable status raises no error."""
    names = read(Stored, body).metadata
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
        conditions=values_of(status.conditions),
        next_schedule=unix_seconds(status.next_schedule_time),
        last_schedule=unix_seconds(status.last_schedule_time),
        active=_active(status.round) if status.round else None,
        rounds=tuple(map(_round, status.rounds)),
        comparisons=_outcomes(status.comparisons),
        hypotheses=_outcomes(status.hypotheses),
    )


def suite_samples_of(records: Sequence[SuiteRecord], limit: int = MAX_SUITES) -> Iterator[Sample]:
    """Yield the samples of suites, the oldest ones first, and their number by status.

    Many new suites hide no regression of an older one.

    A recreated suite may appear beside its deleted namesake: two values of one series would invalidate the whole
    scrape.
    """
    by_age = sorted(records, key=lambda record: (record.created, record.labels))
    by_name = {record.labels: record for record in by_age}
    shown = sorted(by_name.values(), key=lambda record: (record.created, record.labels))[:limit]
    for record in shown:
        yield from _suites_samples(record)
    yield Sample(catalogue.SUITES_OMITTED, (), len(records) - len(shown))
    for status, count in sorted(Counter(record.status for record in records).items()):
        yield Sample(catalogue.OPERATOR_SUITES, (status,), count)


def _suites_samples(record: SuiteRecord) -> Iterator[Sample]:
    labels = record.labels
    yield Sample(catalogue.SUITE_INFO, (*labels, record.status, record.verdict), 1)
    for kind, reason, value in record.conditions:
        yield Sample(catalogue.SUITE_CONDITION, (*labels, kind, reason), value)
    for metric, seconds in (
        (catalogue.SUITE_NEXT_SCHEDULE, record.next_schedule),
        (catalogue.SUITE_LAST_SCHEDULE, record.last_schedule),
    ):
        if seconds is not None:
            yield Sample(metric, labels, seconds)
    if record.active is not None:
        yield Sample(catalogue.SUITE_ROUND_START, (*labels, record.active.cause), record.active.start)
        yield Sample(catalogue.SUITE_ROUND_RUNS, (*labels, "planned"), record.active.planned)
        yield Sample(catalogue.SUITE_ROUND_RUNS, (*labels, "done"), record.active.done)
    if record.status != UNREADABLE:
        yield from _round_samples(labels, record.rounds)
    yield from _outcome_samples(labels, record.comparisons, _COMPARISON)
    yield from _outcome_samples(labels, record.hypotheses, _HYPOTHESIS)


def _round_samples(labels: tuple[str, str], rounds: Sequence[RoundRecord]) -> Iterator[Sample]:
    """Yield the samples of the former rounds of a suite, newest first."""
    counts = Counter(one.verdict for one in rounds)
    evaluated = [one for one in rounds if one.verdict not in _NOT_EVALUATED]
    since = list(takewhile(lambda one: one.verdict in _NOT_EVALUATED, rounds))
    for verdict in RoundVerdict:
        yield Sample(catalogue.SUITE_ROUNDS, (*labels, verdict), counts[verdict])
        if rounds:
            yield Sample(catalogue.SUITE_ROUND_VERDICT, (*labels, verdict), verdict is rounds[0].verdict)
    if evaluated:
        yield Sample(catalogue.SUITE_ROUND_COMPLETION, labels, evaluated[0].completion)
    failed = sum(one.verdict is RoundVerdict.FAILED for one in since)
    yield Sample(catalogue.SUITE_ROUNDS_FAILED, labels, failed)
    yield Sample(catalogue.SUITE_ROUNDS_ACCEPTED, labels, sum(one.accepted for one in rounds))


@dataclass(frozen=True, slots=True, kw_only=True)
class _OutcomeMetrics:
    """The metrics of one kind of outcome, and the verdicts that it can have."""

    verdict: MetricFamily
    estimate: MetricFamily
    bound: MetricFamily
    verdicts: tuple[str, ...]


_COMPARISON = _OutcomeMetrics(
    verdict=catalogue.SUITE_COMPARISON_VERDICT,
    estimate=catalogue.SUITE_COMPARISON_CHANGE,
    bound=catalogue.SUITE_COMPARISON_BOUND,
    verdicts=tuple(ComparisonVerdict),
)
_HYPOTHESIS = _OutcomeMetrics(
    verdict=catalogue.SUITE_HYPOTHESIS_VERDICT,
    estimate=catalogue.SUITE_HYPOTHESIS_ESTIMATE,
    bound=catalogue.SUITE_HYPOTHESIS_BOUND,
    verdicts=tuple(HypothesisOutcome),
)


def _outcome_samples(
    suite: tuple[str, str], outcomes: Sequence[OutcomeRecord], metrics: _OutcomeMetrics
) -> Iterator[Sample]:
    for one in outcomes:
        labels = (*suite, one.name, one.variant)
        for verdict in metrics.verdicts:
            yield Sample(metrics.verdict, (*labels, verdict), verdict == one.verdict)
        if one.estimate is not None:
            yield Sample(metrics.estimate, labels, one.estimate)
        for bound, value in (("low", one.low), ("high", one.high)):
            if value is not None:
                yield Sample(metrics.bound, (*labels, bound), value)


def _active(known: "_Active") -> ActiveRecord:
    return ActiveRecord(
        cause=known.cause,
        start=known.start_time.timestamp(),
        planned=known.children.total,
        done=known.children.done,
    )


def _round(known: "_Round") -> RoundRecord:
    return RoundRecord(verdict=known.verdict, completion=known.completion_time.timestamp(), accepted=known.accepted)


def _outcomes(known: Sequence["_Outcome"]) -> tuple[OutcomeRecord, ...]:
    """Return outcomes; of two with the same labels the first one."""
    found: dict[tuple[str, str], OutcomeRecord] = {}
    for one in known:
        record = OutcomeRecord(
            name=one.name,
            variant=one.variant or "",
            verdict=one.verdict,
            estimate=one.estimate,
            low=one.low,
            high=one.high,
        )
        found.setdefault((record.name, record.variant), record)
    return tuple(found.values())


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


class _Outcome(Part):
    name: str
    variant: str | None = None
    verdict: str
    estimate: float | None = None
    low: float | None = None
    high: float | None = None


class _SuitesStatus(Part):
    conditions: tuple[Condition, ...] = ()
    next_schedule_time: AwareDatetime | None = None
    last_schedule_time: AwareDatetime | None = None
    round: _Active | None = None
    rounds: tuple[_Round, ...] = ()
    comparisons: tuple[_Outcome, ...] = ()
    hypotheses: tuple[_Outcome, ...] = ()
    display: Display = Display()


class _Suite(Part):
    status: _SuitesStatus = _SuitesStatus()
