"""What a decision about a suite depends on."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

from plimsoll.api.names import SuiteConditionType
from plimsoll.api.status import SuiteCondition
from plimsoll.api.suite_status import ComparisonOutcome, HypothesisResult, RoundVerdict
from plimsoll.suite.rounds.actions import Judge
from plimsoll.suite.rounds.specification import Specification
from plimsoll.suite.rounds.state import State

_LARGEST_CORRECTION = timedelta(days=1)
"""The minute of a round is later than the clock by at most this much, after the clock was set back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """One suite.

    Attributes:
        resource_version: of the suite as read.
        is_deleted: whether its deletion was requested.
        annotations: by their full names.
        status: as stored.
        state: what the status remembers.
        conditions: those of the status, by type.

    """

    name: str
    namespace: str
    uid: str
    generation: int
    resource_version: str
    is_deleted: bool
    annotations: Mapping[str, str]
    specification: Specification
    status: Mapping[str, Any]
    state: State
    conditions: Mapping[SuiteConditionType, SuiteCondition]


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnedRun:
    """A run that the suite owns and that has the name of a turn.

    Attributes:
        variant: that it measures; see `suite.children.turn_in_name`.
        minute: of its round.
        resource_version: as read.
        measures: digest of what it measures; empty if this version cannot read that.
        created: when the API server created it; users cannot set that time.
        is_finished: whether its load is gone and its status final.
        succeeded: whether it finished with numbers that can be trusted.
        is_deleting: whether its deletion was requested.

    """

    name: str
    uid: str
    variant: str
    minute: int
    resource_version: str
    created: datetime
    measures: str
    is_finished: bool = False
    succeeded: bool = False
    is_deleting: bool = False

    @property
    def is_ahead(self) -> bool:
        """Whether it was created long before the minute of its round, as no run of a round that starts by the clock."""
        return self.minute * 60 > (self.created + _LARGEST_CORRECTION).timestamp()


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """The API server refused to create a run, definitely (see `REFUSAL_CODES`), or another run has its name.

    Attributes:
        name: of the run.
        time: of the request.
        message: the API server's answer; what is wrong with the run that has the name if it is taken.
        is_taken: whether a run of that name exists that is not the one that the suite needs.

    """

    name: str
    time: datetime
    message: str
    is_taken: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """The outcome of a dry run of all variants.

    Attributes:
        digest: of what the suite would measure.
        time: when it was performed.
        variant: the refused one; empty if none was.
        message: the API server's answer if it refused one.

    """

    digest: str
    time: datetime
    variant: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """The evaluation of a round's results.

    Attributes:
        request: what was evaluated. A judgement of other data is not used.
        verdict: one of those of an evaluated round.
        is_acceptable: whether later rounds may be compared with it: `comparable` of every comparison with rounds.
        message: the verdict in a sentence.
        environment: versions that it was measured with, by name.
        counts: number of comparisons by verdict.
        comparisons: outcomes, in any order and number.
        hypotheses: the same.

    """

    request: Judge
    verdict: RoundVerdict
    is_acceptable: bool
    message: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)
    comparisons: tuple[ComparisonOutcome, ...] = ()
    hypotheses: tuple[HypothesisResult, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A run that exists, as the API server returned it after `GetRun` or `CreateRun`."""

    run: OwnedRun


@dataclass(frozen=True, slots=True, kw_only=True)
class Absent:
    """The API server answered `GetRun` with NotFound."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Deleted:
    """The API server accepted the deletion of a run, or the run was gone."""

    uid: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Unanswered:
    """It is unknown whether the request was performed: a timeout, a conflict, throttling, or an error of the server.

    The shell looks again after a pause, which grows with every failure.
    """


Outcome = Found | Absent | Deleted | Refusal | Checked | Judgement | Unanswered

REFUSAL_CODES = frozenset({400, 403, 404, 405, 413, 422})
"""HTTP status of definite refusals. A 409 of `CreateRun` needs `GetRun`'s answer: whose run has the name?"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """What the operator has learnt from outcomes. Nothing is lost that a restart cannot find out again.

    Attributes:
        judgement: the last one, if any.
        checked: the last dry run, if any.
        refusal: of the last request to create or to get a run; None if it succeeded.
        found: runs that the API server returned since the operator was woken, by name.
        absent: names of runs that it did not find since then.
        deleting: UIDs of runs whose deletion it accepted.

    """

    judgement: Judgement | None = None
    checked: Checked | None = None
    refusal: Refusal | None = None
    found: Mapping[str, OwnedRun] = field(default_factory=dict)
    absent: frozenset[str] = frozenset()
    deleting: frozenset[str] = frozenset()

    def after(self, outcome: Outcome) -> "Memory":
        """Return the memory after the outcome of a request; the next look needs it at once."""
        match outcome:
            case Found(run=run):
                refusal = None if self.refusal and self.refusal.name == run.name else self.refusal
                found = {**self.found, run.name: run}
                return replace(self, found=found, absent=self.absent - {run.name}, refusal=refusal)
            case Absent(name=name):
                refusal = None if self.refusal and self.refusal.name == name else self.refusal
                return replace(self, absent=self.absent | {name}, refusal=refusal)
            case Deleted(uid=uid):
                return replace(self, deleting=self.deleting | {uid})
            case Unanswered():
                return self
        return self._with_answer(outcome)

    def _with_answer(self, outcome: Refusal | Checked | Judgement) -> "Memory":
        match outcome:
            case Refusal():
                return replace(self, refusal=outcome)
            case Checked():
                return replace(self, checked=outcome)
            case Judgement():
                return replace(self, judgement=outcome)

    def woken(self, listed: Iterable[OwnedRun]) -> "Memory":
        """Return the memory after a pause, in which runs may have changed."""
        uids = {run.uid for run in listed}
        return replace(self, found={}, absent=frozenset(), deleting=self.deleting & uids)


@dataclass(frozen=True, kw_only=True)
class Observed:
    """Everything that a decision depends on.

    Attributes:
        listed: runs that the suite owns, from a list that may be old.
        ceph_version: version of the cluster; empty if unknown, or while its daemons have several.
        memory: from outcomes.

    """

    suite: Suite
    listed: tuple[OwnedRun, ...]
    now: datetime
    ceph_version: str = ""
    memory: Memory = field(default_factory=Memory)

    @cached_property
    def runs(self) -> tuple[OwnedRun, ...]:
        """The runs that the suite owns. What the API server returned by name is newer than a list."""
        known = {run.name: run for run in self.listed} | dict(self.memory.found)
        return tuple(
            replace(run, is_deleting=True) if run.uid in self.memory.deleting else run
            for name, run in known.items()
            if name not in self.memory.absent
        )

    @property
    def unfinished(self) -> tuple[OwnedRun, ...]:
        """Return the runs that may load the storage."""
        return tuple(run for run in self.runs if not run.is_finished)
