"""The inputs of a decision about a suite, and its outputs: requests and events, as data."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any
from zoneinfo import ZoneInfo

from cronsim import CronSim
from pydantic import JsonValue

from plimsoll.api.errors import Problem, SpecError
from plimsoll.api.names import SuiteConditionType
from plimsoll.api.reasons.entry import Event
from plimsoll.api.status import SuiteCondition
from plimsoll.api.suite import BenchmarkSuite, Schedule, SuiteSpec, decode_suite
from plimsoll.api.suite_status import (
    PINNED_ROUNDS,
    BenchmarkSuiteStatus,
    ComparisonOutcome,
    HypothesisResult,
    RoundVerdict,
)
from plimsoll.measure.text import count_text
from plimsoll.plan.document import Plan
from plimsoll.plan.expand import estimate
from plimsoll.suite.children import measured_digest, questions_digest, suite_digest, variant_plans, variant_spec

JUDGED = frozenset({RoundVerdict.NO_REGRESSION, RoundVerdict.REGRESSED, RoundVerdict.INCONCLUSIVE})
"""Verdicts of rounds whose results were evaluated."""

State = BenchmarkSuiteStatus  # a suite's only memory

_LARGEST_CLOCK_CHANGE = timedelta(hours=25)  # source: time zone database; Samoa skipped a whole day in 2011


def first_time_after(schedule: Schedule, moment: datetime) -> datetime:
    """Return the first time of a schedule after a moment, in UTC."""
    times = CronSim(schedule.cron, moment.astimezone(ZoneInfo(schedule.time_zone)))
    return next(time.astimezone(UTC) for time in times if time > moment)


def last_time_until(schedule: Schedule, moment: datetime) -> datetime:
    """Return the last time of a schedule that is not after a moment, in UTC."""
    # CronSim calculates in local time: it starts behind a possible clock change, as it might skip a time otherwise.
    start = (moment + _LARGEST_CLOCK_CHANGE).astimezone(ZoneInfo(schedule.time_zone))
    return next(time.astimezone(UTC) for time in CronSim(schedule.cron, start, reverse=True) if time <= moment)


MAX_TRIALS = 10_000
"""Planned trials of a round: evaluating more could take more memory than the chart gives to the operator by default."""
MAX_KEPT_POINTS = 20_000
"""Points of all accepted rounds that a round is compared with, for the same reason: 3 to 7 KiB each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Specification:
    """What a suite asks for."""

    suite: BenchmarkSuite | None  # the decoded suite; None if it is invalid
    digest: str = ""  # of run, variants and repeat; empty if it is invalid
    questions: str = ""  # digest of comparisons and hypotheses; empty if it is invalid
    # Digest of what the run of each variant measures, by the variant's name; empty if it is invalid
    measures: Mapping[str, str] = field(default_factory=dict)
    problem: str = ""  # why it is invalid, one line for each field; empty if it is valid


def read_specification(document: JsonValue) -> Specification:
    """Return the specification of a suite as stored, after planning every variant. It plans for tens of ms."""
    try:
        suite = decode_suite(document)
        problem = size_problem(suite.spec, [*variant_plans(suite, seed=0).values()])
    except SpecError as error:
        return Specification(suite=None, problem=str(error))
    if problem:
        return Specification(suite=None, problem=str(Problem(field="spec", remedy=problem)))
    return Specification(
        suite=suite,
        digest=suite_digest(suite.spec),
        questions=questions_digest(suite.spec),
        measures={
            variant.name: measured_digest(variant_spec(suite.spec.run, variant)) for variant in suite.spec.variants
        },
    )


def size_problem(spec: SuiteSpec, plans: Sequence[Plan]) -> str:
    """Return why the operator cannot evaluate rounds of these variants, and the remedy; empty if it can."""
    variants, repeat = count_text(len(plans), "variant"), spec.repeat
    of_variants = sum(estimate(plan).trials for plan in plans)
    if (trials := of_variants * repeat) > MAX_TRIALS:
        return (
            f"a round would have {trials:,} trials: {of_variants:,} in {variants} (points times repetitions), times "
            f"repeat {repeat}; the operator evaluates at most {MAX_TRIALS:,}: lower repeat or repetitions, measure "
            "fewer points, or divide the suite"
        )
    points = sum(len(plan.points) for plan in plans)
    if (kept := points * (spec.keep + PINNED_ROUNDS)) > MAX_KEPT_POINTS:
        return (
            f"a round would be compared with {kept:,} points of earlier ones: {points:,} in {variants}, times keep "
            f"{spec.keep} and {PINNED_ROUNDS} for slow drift; the operator keeps at most {MAX_KEPT_POINTS:,}: lower "
            "keep, which deletes older rounds with their results, measure fewer points, or divide the suite"
        )
    return ""


Object = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchStatus:
    """Write the whole status; a conflict, and so a failed action, if the suite has changed since it was read."""

    status: Mapping[str, Any]  # the fields; one that is None is removed
    resource_version: str  # of the suite as read; the API server refuses the request with 409 if it has another one


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateRun:
    """Create a run. Outcome: the `OwnedRun`, also an earlier one that measures the same; or `RunRefusal`."""

    run: Object

    @property
    def name(self) -> str:
        return str(self.run["metadata"]["name"])


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteRun:
    """Delete a run if it still has that UID. Outcome: `Deleted`, also for one that is gone or has another UID."""

    name: str
    uid: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GetRun:
    """Get a run by its name from the API server, not from a cache. Outcome: `Absent` if there is none.

    The `OwnedRun` if it has the UID, or if the suite owns it and it measures this; else `RunRefusal` with `is_taken`.
    """

    name: str
    uid: str = ""  # of the run that was seen before; empty if it is unknown
    measures: str = ""  # digest of what the run measures (`suite.children.measured_digest`); empty if unknown


@dataclass(frozen=True, slots=True, kw_only=True)
class DryRun:
    """Have the API server check the run of every variant, until it refuses one. Outcome: `Checked`."""

    digest: str  # of what the suite measures; the outcome is about it
    runs: Mapping[str, Object]  # by the variant's name


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundRuns:
    """The data of a round."""

    minute: int  # identity of the round
    digest: str  # of run, variants and repeat
    # Variant -> name -> UID of the finished runs with valid numbers; contains every variant that the suite has now
    runs: Mapping[str, Mapping[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Judge:
    """Evaluate the results of a round. Outcome: a `RecordedEvaluation` of exactly this request."""

    round: RoundRuns  # the round to judge
    baseline: tuple[RoundRuns, ...]  # the accepted rounds, oldest first
    pinned: tuple[int, ...]  # minutes of those that slow drift is tested against, oldest first
    questions: str  # digest of the comparisons and hypotheses of the suite


Request = CreateRun | DeleteRun | GetRun | DryRun | Judge
Action = PatchStatus | Event | Request

LONGEST_WAIT_SECONDS = 300.0  # until the next look, so that a lost event delays nothing for longer


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What to do, in this order. After a failed action, the others are not performed."""

    # The status if it changed or a run is to be created, events about it, and at most one request, the last
    actions: tuple[Action, ...] = ()
    # Seconds until the next look if nothing happens before; None if nothing is left to do
    again_after: float | None = None

    @property
    def request(self) -> Request | None:
        """The request, whose outcome the next look needs at once; None if there is none."""
        last = self.actions[-1] if self.actions else None
        return None if last is None or isinstance(last, PatchStatus | Event) else last


LARGEST_CORRECTION = timedelta(days=1)  # a clock that is set back by less repeats no round


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """One suite."""

    name: str
    namespace: str
    uid: str
    generation: int
    resource_version: str  # of the suite as read
    is_deleted: bool  # whether its deletion was requested
    annotations: Mapping[str, str]  # by their full names
    specification: Specification
    status: State

    @property
    def conditions(self) -> Mapping[SuiteConditionType, SuiteCondition]:
        """The conditions of the status by type."""
        return {condition.type: condition for condition in self.status.conditions}


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnedRun:
    """A run that the suite owns and that has the name of a turn."""

    name: str
    uid: str
    variant: str  # that it measures; see `suite.children.turn_in_name`
    minute: int  # of its round
    created: datetime  # when the API server created it; users cannot set that time
    measures: str  # digest of what it measures; empty if this version cannot read that
    is_finished: bool = False  # whether its load is gone and its status final
    has_numbers: bool = False  # whether it ended with numbers; see `suite.children.has_numbers`
    is_deleting: bool = False  # whether its deletion was requested

    @property
    def is_ahead(self) -> bool:
        """Whether it was created long before the minute of its round, as no run of a round that starts by the clock."""
        return self.minute * 60 > (self.created + LARGEST_CORRECTION).timestamp()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRefusal:
    """The API server refused to create a run, definitely, or another run has its name."""

    name: str
    time: datetime  # of the request
    message: str  # the API server's answer; what is wrong with the run that has the name if it is taken
    is_taken: bool = False  # whether another run has that name


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """The outcome of a dry run of all variants."""

    digest: str  # of what the suite would measure
    time: datetime  # when it was performed
    variant: str = ""  # the refused one; empty if none was
    message: str = ""  # the API server's answer if it refused one


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedEvaluation:
    """The evaluation of a round's results."""

    request: Judge  # what was evaluated. A judgement of other data is not used.
    verdict: RoundVerdict  # Regressed, Inconclusive or NoRegression
    is_acceptable: bool  # whether later rounds may be compared with it: `comparable` of every comparison with rounds
    message: str = ""  # the verdict in a sentence
    environment: Mapping[str, str] = field(default_factory=dict)  # versions that it was measured with, by name
    counts: Mapping[str, int] = field(default_factory=dict)  # number of comparisons by verdict
    comparisons: tuple[ComparisonOutcome, ...] = ()  # outcomes, in any order and number
    hypotheses: tuple[HypothesisResult, ...] = ()  # the same


@dataclass(frozen=True, slots=True, kw_only=True)
class Absent:
    """The API server answered `GetRun` with NotFound."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Deleted:
    """The API server accepted the deletion of a run, or the run was gone."""

    uid: str


Outcome = OwnedRun | Absent | Deleted | RunRefusal | Checked | RecordedEvaluation


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """What the operator has learnt from outcomes. A restarted operator can learn all of it again."""

    judgement: RecordedEvaluation | None = None  # the last one, if any
    checked: Checked | None = None  # the last dry run, if any
    refusal: RunRefusal | None = None  # of the last request to create or to get a run; None if it succeeded
    # Runs that the API server returned since the operator was woken, by name
    found: Mapping[str, OwnedRun] = field(default_factory=dict)
    absent: frozenset[str] = frozenset()  # names of runs that it did not find since then
    deleting: frozenset[str] = frozenset()  # UIDs of runs whose deletion it accepted

    def after(self, outcome: Outcome) -> "Memory":
        """Return the memory after the outcome of a request; the next look needs it at once."""
        match outcome:
            case OwnedRun(name=name) | Absent(name=name):
                refusal = None if self.refusal and self.refusal.name == name else self.refusal
                if isinstance(outcome, Absent):
                    return replace(self, absent=self.absent | {name}, refusal=refusal)
                return replace(self, found={**self.found, name: outcome}, absent=self.absent - {name}, refusal=refusal)
            case Deleted(uid=uid):
                return replace(self, deleting=self.deleting | {uid})
            case RunRefusal():
                return replace(self, refusal=outcome)
            case Checked():
                return replace(self, checked=outcome)
            case RecordedEvaluation():
                return replace(self, judgement=outcome)

    def woken(self, listed: Iterable[OwnedRun]) -> "Memory":
        """Return the memory after a pause, in which runs may have changed."""
        uids = {run.uid for run in listed}
        return replace(self, found={}, absent=frozenset(), deleting=self.deleting & uids)


@dataclass(frozen=True, kw_only=True)
class Observed:
    """Everything that a decision depends on."""

    suite: Suite
    listed: tuple[OwnedRun, ...]  # runs that the suite owns, from a list that may be old
    now: datetime
    ceph_version: str = ""  # version of the cluster; empty if unknown, or while its daemons have several
    memory: Memory = field(default_factory=Memory)  # from outcomes

    @cached_property
    def runs(self) -> tuple[OwnedRun, ...]:
        """The runs that the suite owns. A run that was read by name is newer than the list."""
        runs = {run.name: run for run in self.listed} | dict(self.memory.found)
        return tuple(
            replace(run, is_deleting=True) if run.uid in self.memory.deleting else run
            for name, run in runs.items()
            if name not in self.memory.absent
        )

    def unfinished(self, but: str | None = None) -> list[OwnedRun]:
        """Return the runs that may load the storage, without the one with this name."""
        return [run for run in self.runs if not run.is_finished and run.name != but]

    def measures_as(self, state: State) -> bool:
        """Whether the active round, if any, or else the last one measures what the suite asks for now."""
        return self.suite.specification.digest == state.digest
