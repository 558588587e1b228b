"""The bounded status of a `BenchmarkSuite`, written by the operator, with the texts that `kubectl get` shows."""

from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated

from pydantic import Field

from plimsoll.api.hypothesis import MAX_VARIANT_CHARACTERS
from plimsoll.api.model import Count, Model, ServerOnly
from plimsoll.api.names import SuiteConditionType
from plimsoll.api.status import SuiteCondition

MAX_KEEP = 50
PINNED_ROUNDS = 5  # accepted rounds kept beyond `keep`, because slow drift is tested against them
UNUSABLE_ROUNDS = 5  # failed and superseded rounds that are kept; they do not count for `keep`
MAX_ROUNDS = MAX_KEEP + 2 * PINNED_ROUNDS + UNUSABLE_ROUNDS + 1
"""Rounds in the status, including the former baseline and the round that decides whether there is a regression."""

MAX_DROPPED = 128  # dropped rounds that the status names
MAX_OUTCOMES = 128  # entries of `comparisons` and of `hypotheses`: more would make the object too large
MAX_OUTCOME_CHARACTERS = 512
MAX_ANNOTATION_CHARACTERS = 256  # of the text of an annotation that the status remembers
MAX_VERSION_CHARACTERS = 256
MAX_ENVIRONMENT = 16

_Name = Annotated[str, Field(max_length=63)]
_VariantName = Annotated[str, Field(max_length=MAX_VARIANT_CHARACTERS)]
_Text = Annotated[str, Field(max_length=64)]
_Message = Annotated[str, Field(max_length=MAX_OUTCOME_CHARACTERS)]
_Annotation = Annotated[str, Field(max_length=MAX_ANNOTATION_CHARACTERS)]
_Version = Annotated[str, Field(max_length=MAX_VERSION_CHARACTERS)]
_Digest = Annotated[str, Field(max_length=64)]
_Time = Annotated[str, Field(max_length=64), ServerOnly(format="date-time")]
_SmallCount = Annotated[Count, ServerOnly(format="int32")]


class Cause(StrEnum):
    """Why a round started; the first one that applies."""

    CHANGE = "Change"
    REQUESTED = "Requested"
    SCHEDULED = "Scheduled"
    CEPH_VERSION = "CephVersion"


def round_name(minute: int) -> str:
    """Return the name of a round for people: the minute of its start, such as 2026-03-01T03:00Z."""
    return datetime.fromtimestamp(minute * 60, UTC).strftime("%Y-%m-%dT%H:%MZ")


def round_label(minute: int) -> str:
    """Return the name of a round as the value of a label, which has no colons: 20260301T0300Z."""
    return round_name(minute).replace("-", "").replace(":", "")


def minute_of_round(text: str) -> int | None:
    """Return the minute of the round that a user names by its start; None unless it is a time with a time zone."""
    try:
        start = datetime.fromisoformat(text)
    except ValueError:
        return None
    return int(start.timestamp()) // 60 if start.tzinfo else None


class RoundVerdict(StrEnum):
    """How a round ended."""

    NO_REGRESSION = "NoRegression"
    REGRESSED = "Regressed"
    INCONCLUSIVE = "Inconclusive"
    FAILED = "Failed"
    SUPERSEDED = "Superseded"


class Conclusion(StrEnum):
    """What a comparison shows.

    A suite becomes Regressed in these steps, from the last one to the first:

    - The condition Regressed is True while a round that regressed is open (`rounds.turns.open_regression`).
    - A round regressed (`RoundVerdict`) if its worst comparison with earlier rounds is a Regression. Comparisons
      between variants do not count (`suite.evaluation.evaluate_round`).
    - A comparison is a Regression for a variant that is worse than the accepted rounds, or has drifted from the pinned
      ones (`suite.judging.VariantJudgement`).
    - One mean of a workload, or one point, that is a Regression decides (`measure.compare.comparison.overall`).
    - When a change is a Regression: `suite.judging.judge_changes`, `measure.compare.significance.conclude`.
    """

    REGRESSION = "Regression"
    NO_REGRESSION = "NoRegression"
    INCONCLUSIVE = "Inconclusive"


WORST_FIRST = (Conclusion.REGRESSION, Conclusion.INCONCLUSIVE, Conclusion.NO_REGRESSION)


class HypothesisVerdict(StrEnum):
    """Whether results show what was expected."""

    HELD = "Held"
    REFUTED = "Refuted"
    UNDECIDED = "Undecided"


class RoundChildren(Model):
    """The runs of a round."""

    done: _SmallCount
    """Number of runs that ended."""
    total: _SmallCount
    """Number of runs of the round."""


class Round(Model):
    """A round."""

    minute: Count
    """Identity of the round: the minute of its start, counted from 1970. The names of its runs contain it."""
    cause: Cause
    """Why it started, the first one that applies of Change, Requested, Scheduled and CephVersion."""
    start_time: _Time
    """When the round started."""

    @property
    def name(self) -> str:
        return round_name(self.minute)


class ActiveRound(Round):
    """The round that is being measured."""

    seed: Count
    """Seed of the order of its runs."""
    children: RoundChildren
    current: _Name | None = None
    """Name of the run that is being measured or is created next; absent when all runs ended."""
    current_uid: _Text | None = None
    """UID of that run once it exists."""

    @property
    def is_measured(self) -> bool:
        return self.children.done >= self.children.total


class EndedRound(Round):
    """A former round."""

    completion_time: _Time
    """When the round ended."""
    verdict: RoundVerdict
    """Conclusion of its comparisons; Failed if too little was measured, Superseded if the suite was changed."""
    complete: bool = False
    """Whether all of its runs have numbers, and were evaluated. No other round can be accepted."""
    accepted: bool = False
    """Whether later rounds are compared with this one."""
    pinned: bool = False
    """Whether the round is kept beyond spec.keep, because slow drift is tested against it."""
    former: bool = False
    """Whether the round was a part of the baseline until another one replaced it. Such rounds can be accepted again;
    they are kept until three rounds of the current baseline have been accepted."""
    digest: _Digest
    """SHA-256 of the run, the variants and repeat that it measured."""
    environment: Annotated[dict[str, _Version], Field(max_length=MAX_ENVIRONMENT)] = Field(default_factory=dict)
    """Versions that it was measured with, such as the versions of the kernel, Ceph and Kubernetes."""
    comparisons: Annotated[dict[str, _SmallCount], Field(max_length=8)] = Field(default_factory=dict)
    """Number of comparisons with accepted rounds, by verdict. Only these decide the verdict."""

    @property
    def compares_none(self) -> bool:
        """Whether it was only measured, and evaluated without any comparison with accepted rounds."""
        return self.verdict is RoundVerdict.NO_REGRESSION and not self.comparisons

    @property
    def ending(self) -> str:
        if self.compares_none:
            return "measured; the suite compares no rounds"
        return f"{self.verdict}, accepted" if self.accepted else self.verdict


class ComparisonOutcome(Model):
    """What a comparison showed."""

    name: _Name
    """Name of the comparison."""
    variant: _VariantName
    """The variant that was judged."""
    verdict: Conclusion
    """Its conclusion."""
    drift: bool | None = None
    """Whether a regression is slow drift, so that the round is worse than the pinned rounds, but not than all accepted
    ones; absent without a regression, and if rounds are not compared."""
    message: _Message = ""
    """The result in words."""
    estimate: float | None = None
    """Mean change, as a part of the baseline; absent if it cannot be computed. Less than 0 is worse."""
    low: float | None = None
    """Lower end of its 95 % confidence interval."""
    high: float | None = None
    """Upper end of it."""


class HypothesisResult(Model):
    """The result of a hypothesis."""

    name: _Name
    """Name of the hypothesis."""
    variant: _VariantName | None = None
    """The variant that it was decided in, if it is decided in each variant by itself."""
    verdict: HypothesisVerdict
    """Whether the results show what was expected."""
    message: _Message = ""
    """The decision in words."""
    estimate: float | None = None
    """The ratio as a part of 1, or the exponent; absent if it cannot be computed."""
    low: float | None = None
    """Lower end of its 95 % confidence interval."""
    high: float | None = None
    """Upper end of it."""


class Baseline(Model):
    """The baseline of comparisons with earlier rounds."""

    first: Count | None = None
    """Minute of the round that a user accepted last, where the baseline starts; absent if none was accepted."""
    since: Count | None = None
    """Minute of the newest round when this baseline replaced another one; absent for the first baseline."""


class SuiteDisplay(Model):
    """Texts for kubectl get. Programs read the other fields."""

    status: _Text | None = None
    """Current activity of the suite, or what keeps it from measuring."""
    progress: _Text | None = None
    """Runs of the active round that ended, of all its runs, such as 3/9."""
    verdict: _Text | None = None
    """Verdict of the last round that ended; Measured in place of NoRegression if it was compared with no round."""
    message: Annotated[str, Field(max_length=1024)] | None = None
    """What the suite waits for, or what keeps it from measuring, with the remedy."""


class BenchmarkSuiteStatus(Model):
    """The observed state of the suite. Only the operator writes it."""

    observed_generation: Annotated[int, Field(ge=-1)] = -1
    """Generation of the specification that this status refers to; -1 before the operator has observed the suite."""
    conditions: Annotated[
        tuple[SuiteCondition, ...], Field(max_length=len(SuiteConditionType)), ServerOnly(list_keys=("type",))
    ] = ()
    """Aspects of the suite's state. Ready summarizes them; Reconciling and Stalled exist only while they are True."""
    digest: _Digest | None = None
    """SHA-256 of the run, the variants and repeat that the last round measures; absent after a superseded one."""
    requested_round: _Annotation | None = None
    """Text of the annotation plimsoll.dev/request-round that was handled last, at most its first 256 characters."""
    requested_minute: Count | None = None
    """Identity of the round that answered that text, whatever its cause; absent if none did."""
    accepted_round: _Annotation | None = None
    """Text of the annotation plimsoll.dev/accept-round that was handled last, at most its first 256 characters."""
    next_schedule_time: _Time | None = None
    """When the next scheduled round starts."""
    last_schedule_time: _Time | None = None
    """Last scheduled time for which a round started."""
    ceph_version: _Version | None = None
    """Version of Ceph seen last."""
    round: ActiveRound | None = None
    abandoned_run: _Name | None = None
    """Name of a run of an abandoned round that may be unfinished; the next round waits for its end."""
    rounds: Annotated[tuple[EndedRound, ...], Field(max_length=MAX_ROUNDS)] = ()
    """Former rounds, newest first."""
    baseline: Baseline | None = None
    """The accepted rounds that later ones are compared with."""
    dropped: Annotated[tuple[Count, ...], Field(max_length=MAX_DROPPED), ServerOnly(list_type="set")] = ()
    """Minutes of rounds that are no longer kept, newest first, at most 128. Only their runs are deleted."""
    comparisons: Annotated[tuple[ComparisonOutcome, ...], Field(max_length=MAX_OUTCOMES)] = ()
    """Results of the comparisons of the last complete round, the worst first, at most 128."""
    comparisons_left_out: _SmallCount | None = None
    """Number of further results, none of them worse than the listed ones; absent if there are none."""
    hypotheses: Annotated[tuple[HypothesisResult, ...], Field(max_length=MAX_OUTCOMES)] = ()
    """Results of the hypotheses of the last complete round, those that were refuted first, at most 128."""
    hypotheses_left_out: _SmallCount | None = None
    """Number of further results, none of them worse than the listed ones; absent if there are none."""
    display: SuiteDisplay | None = None
