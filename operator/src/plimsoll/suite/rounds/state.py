"""What a suite's status remembers from one look to the next."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from plimsoll.api.suite_status import Cause, ComparisonOutcome, HypothesisResult, RoundVerdict
from plimsoll.suite.rounds.outcomes import Outcomes

JUDGED = frozenset({RoundVerdict.NO_REGRESSION, RoundVerdict.REGRESSED, RoundVerdict.INCONCLUSIVE})
"""Verdicts of rounds whose results were evaluated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ActiveRound:
    """The round that is being measured.

    Attributes:
        minute: identity of the round: minutes since the epoch at its start, or more if another round had that minute.
        done: number of turns that are over, because their run finished or was deleted.
        total: number of turns.
        current: name of the run of the next turn, created or not; empty after the last one.
        uid: of that run once it has been seen; empty before.

    """

    minute: int
    seed: int
    cause: Cause
    started: datetime
    done: int = 0
    total: int
    current: str = ""
    uid: str = ""

    @property
    def is_measured(self) -> bool:
        """Whether all turns are over."""
        return self.done >= self.total


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedRound:
    """A former round.

    Attributes:
        complete: whether all of its runs have numbers, and were evaluated; no other round can be accepted.
        accepted: whether later rounds may be compared with it.
        pinned: whether it is kept to test for slow drift.
        former: whether it was a part of the baseline until another one replaced it, which is not established yet.
        digest: of what it measured.
        environment: versions that it was measured with, by name.
        counts: number of comparisons by verdict.

    """

    minute: int
    cause: Cause
    started: datetime
    ended: datetime
    verdict: RoundVerdict
    digest: str
    complete: bool = False
    accepted: bool = False
    pinned: bool = False
    former: bool = False
    environment: Mapping[str, str] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)

    @property
    def is_acceptable(self) -> bool:
        """Whether a user may accept it."""
        return self.complete and self.verdict in JUDGED


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """The memory of a suite.

    Attributes:
        digest: of what the last round measures; empty before the first one, and after a superseded one.
        requested: the last handled text of the annotation that requests a round.
        requested_minute: of the round that answered it, whatever its cause; 0 if none did, or if it is unknown.
        accepted: the last handled text of the annotation that accepts a round.
        next_time: next schedule time; in the past while its round cannot start yet. None without a schedule.
        last_time: last schedule time that a round answered.
        ceph_version: the version that the last round found, or the first one seen; empty if unknown.
        abandoned: name of a run of an abandoned round that may load the storage; empty if none may.
        ended: former rounds, newest first.
        first: minute of the round that a user accepted last; 0 if none was accepted.
        since: minute of the newest round when the present baseline replaced another one; 0 for the first baseline.
        dropped: minutes of rounds that are no longer kept, newest first; nothing else names runs to delete.
        comparisons: outcomes of the last evaluated round, as many as the status has.
        hypotheses: the same.

    """

    digest: str = ""
    requested: str = ""
    requested_minute: int = 0
    accepted: str = ""
    next_time: datetime | None = None
    last_time: datetime | None = None
    ceph_version: str = ""
    active: ActiveRound | None = None
    abandoned: str = ""
    ended: tuple[EndedRound, ...] = ()
    first: int = 0
    since: int = 0
    dropped: tuple[int, ...] = ()
    comparisons: Outcomes[ComparisonOutcome] = field(default_factory=Outcomes)
    hypotheses: Outcomes[HypothesisResult] = field(default_factory=Outcomes)
