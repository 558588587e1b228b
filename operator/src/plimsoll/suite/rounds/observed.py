"""What a decision about a suite depends on."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from plimsoll.api.names import SuiteConditionType
from plimsoll.api.status import SuiteCondition
from plimsoll.api.suite_status import ComparisonOutcome, HypothesisResult, RoundVerdict
from plimsoll.suite.rounds.specification import Specification
from plimsoll.suite.rounds.state import State


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """One suite.

    Attributes:
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
        minute: of its round.
        is_finished: whether its load is gone and its status final.
        succeeded: whether it finished with numbers that can be trusted.
        is_deleting: whether its deletion was requested.

    """

    name: str
    uid: str
    minute: int
    is_finished: bool = False
    succeeded: bool = False
    is_deleting: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """The API server refused to create a run.

    Attributes:
        name: of the run.
        time: of the request.
        message: the API server's answer.
        is_taken: whether an object of that name exists that the suite does not own.

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
        minute: identity of the round.
        verdict: one of those of an evaluated round.
        is_acceptable: whether later rounds may be compared with it.
        message: the verdict in a sentence.
        environment: versions that it was measured with, by name.
        counts: number of comparisons by verdict.
        comparisons: outcomes, the most important ones first.
        hypotheses: the same.

    """

    minute: int
    verdict: RoundVerdict
    is_acceptable: bool
    message: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)
    comparisons: tuple[ComparisonOutcome, ...] = ()
    hypotheses: tuple[HypothesisResult, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """Everything that a decision depends on.

    Attributes:
        runs: those that the suite owns.
        ceph_version: version of the cluster; empty if unknown, or while its daemons have several.
        judgement: the last one, if any.
        checked: the last dry run, if any.
        refusal: of the last request to create a run; None if it succeeded.

    """

    suite: Suite
    runs: tuple[OwnedRun, ...]
    now: datetime
    ceph_version: str = ""
    judgement: Judgement | None = None
    checked: Checked | None = None
    refusal: Refusal | None = None

    @property
    def unfinished(self) -> tuple[OwnedRun, ...]:
        """Return the runs that may load the storage."""
        return tuple(run for run in self.runs if not run.is_finished)
