"""The status of a `BenchmarkSuite`, written by the operator, with the texts that `kubectl get` shows.

Lists are bounded, so that a suite stays far below the size limit of the API server. The results of a round's runs have
the numbers.
"""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from plimsoll.api.hypothesis import MAX_VARIANT_CHARACTERS
from plimsoll.api.model import Count, Model
from plimsoll.api.names import SuiteConditionType
from plimsoll.api.schema import ServerOnly
from plimsoll.api.status import SuiteCondition

MAX_KEEP = 50
PINNED_ROUNDS = 5
"""Accepted rounds that are kept beyond `keep`, because slow drift is tested against them."""

MAX_OUTCOMES = 128
"""Entries of `comparisons` and of `hypotheses`; more would make the object too large."""

MAX_OUTCOME_CHARACTERS = 512
MAX_ANNOTATION_CHARACTERS = 256
"""Of the text of an annotation that the status remembers."""

_Name = Annotated[str, Field(max_length=63)]
_VariantName = Annotated[str, Field(max_length=MAX_VARIANT_CHARACTERS)]
_Text = Annotated[str, Field(max_length=64)]
_Message = Annotated[str, Field(max_length=MAX_OUTCOME_CHARACTERS)]
_Annotation = Annotated[str, Field(max_length=MAX_ANNOTATION_CHARACTERS)]
_Version = Annotated[str, Field(max_length=256)]
_Setting = Annotated[str, Field(max_length=256, description="Version.")]
_Digest = Annotated[str, Field(max_length=64)]
_Time = Annotated[str, Field(max_length=64), ServerOnly(format="date-time")]
_SmallCount = Annotated[Count, ServerOnly(format="int32")]
_Counted = Annotated[_SmallCount, Field(description="Number of comparisons with that verdict.")]


class Cause(StrEnum):
    """Why a round started; the first one that applies."""

    CHANGE = "Change"
    REQUESTED = "Requested"
    SCHEDULED = "Scheduled"
    CEPH_VERSION = "CephVersion"


class RoundVerdict(StrEnum):
    """How a round ended."""

    NO_REGRESSION = "NoRegression"
    REGRESSED = "Regressed"
    INCONCLUSIVE = "Inconclusive"
    FAILED = "Failed"
    SUPERSEDED = "Superseded"


class ComparisonVerdict(StrEnum):
    """What a comparison shows."""

    REGRESSION = "Regression"
    NO_REGRESSION = "NoRegression"
    INCONCLUSIVE = "Inconclusive"


class HypothesisOutcome(StrEnum):
    """Whether results show what was expected."""

    HELD = "Held"
    REFUTED = "Refuted"
    UNDECIDED = "Undecided"


class RoundChildren(Model):
    """The runs of a round.

    Attributes:
        done: Number of runs that ended.
        total: Number of runs of the round.

    """

    done: _SmallCount
    total: _SmallCount


class ActiveRound(Model):
    """The round that is being measured.

    Attributes:
        minute: Identity of the round, the minute of its start since 1970. The names of its runs contain it.
        seed: Seed of the order of its runs.
        cause: Why it started, the first one that applies of Change, Requested, Scheduled and CephVersion.
        start_time: When the round started.
        current: Name of the run that is being measured; absent before its creation.

    """

    minute: Count
    seed: Count
    cause: Cause
    start_time: _Time
    children: RoundChildren
    current: _Name | None = None


class EndedRound(Model):
    """A former round.

    Attributes:
        minute: Identity of the round, the minute of its start since 1970. The names of its runs contain it.
        cause: Why it started, the first one that applies of Change, Requested, Scheduled and CephVersion.
        start_time: When the round started.
        completion_time: When the round ended.
        verdict: What its comparisons show; Failed if too little was measured for that, Superseded if the round was
            abandoned because the suite was changed.
        accepted: Whether later rounds are compared with this one.
        pinned: Whether the round is kept beyond spec.keep, because slow drift is tested against it.
        digest: SHA-256 of the run, the variants and repeat that it measured.
        environment: Versions that it was measured with, such as those of the kernel, Ceph and Kubernetes.
        comparisons: Number of comparisons by verdict.

    """

    minute: Count
    cause: Cause
    start_time: _Time
    completion_time: _Time
    verdict: RoundVerdict
    accepted: bool = False
    pinned: bool = False
    digest: _Digest
    environment: Annotated[dict[str, _Setting], Field(max_length=16)] = Field(default_factory=dict)
    comparisons: Annotated[dict[str, _Counted], Field(max_length=8)] = Field(default_factory=dict)


class ComparisonOutcome(Model):
    """What a comparison showed.

    Attributes:
        name: Name of the comparison.
        variant: The variant that was judged.
        verdict: What the comparison shows.
        drift: Whether a regression is slow drift, so that the round is worse than the pinned rounds, but not than all
            accepted ones; absent without a regression, and if rounds are not compared.
        message: The result in words.
        estimate: Mean change, as a part of the baseline; absent if it cannot be computed. Less than 0 is worse.
        low: Lower end of its 95 % confidence interval.
        high: Upper end of it.

    """

    name: _Name
    variant: _VariantName
    verdict: ComparisonVerdict
    drift: bool | None = None
    message: _Message = ""
    estimate: float | None = None
    low: float | None = None
    high: float | None = None


class HypothesisResult(Model):
    """What the results say about a hypothesis.

    Attributes:
        name: Name of the hypothesis.
        variant: The variant that it was decided in, if it is decided in each variant by itself.
        verdict: Whether the results show what was expected.
        message: The decision in words.
        estimate: The ratio as a part of 1, or the exponent; absent if it cannot be computed.
        low: Lower end of its 95 % confidence interval.
        high: Upper end of it.

    """

    name: _Name
    variant: _VariantName | None = None
    verdict: HypothesisOutcome
    message: _Message = ""
    estimate: float | None = None
    low: float | None = None
    high: float | None = None


class SuiteDisplay(Model):
    """Texts for kubectl get. Programs read the other fields.

    Attributes:
        status: Current activity of the suite, or what keeps it from measuring.
        progress: Runs of the active round that ended, of all its runs, such as 3/9.
        verdict: Verdict of the last complete round.
        message: What the suite waits for, or what keeps it from measuring, with the remedy.

    """

    status: _Text | None = None
    progress: _Text | None = None
    verdict: _Text | None = None
    message: Annotated[str, Field(max_length=1024)] | None = None


class BenchmarkSuiteStatus(Model):
    """The observed state of the suite. Only the operator writes it.

    Attributes:
        observed_generation: Generation of the specification that this status refers to; -1 before the operator has
            observed the suite.
        conditions: Aspects of the suite's state. Ready summarizes them; Reconciling and Stalled exist only while they
            are True.
        digest: SHA-256 of the run, the variants and repeat that the last round measures.
        requested_round: Text of the annotation plimsoll.dev/request-round that was handled last, at most its first 256
            characters.
        accepted_round: Text of the annotation plimsoll.dev/accept-round that was handled last, at most its first 256
            characters.
        next_schedule_time: When the next scheduled round starts.
        last_schedule_time: Last scheduled time for which a round started.
        ceph_version: Version of Ceph seen last.
        rounds: Former rounds, newest first.
        comparisons: Results of the comparisons of the last complete round, regressions first, at most 128.
        hypotheses: Results of the hypotheses of the last complete round, those that were refuted first, at most 128.

    """

    observed_generation: Annotated[int, Field(ge=-1)] = -1
    conditions: Annotated[
        tuple[SuiteCondition, ...], Field(max_length=len(SuiteConditionType)), ServerOnly(list_keys=("type",))
    ] = ()
    digest: _Digest | None = None
    requested_round: _Annotation | None = None
    accepted_round: _Annotation | None = None
    next_schedule_time: _Time | None = None
    last_schedule_time: _Time | None = None
    ceph_version: _Version | None = None
    round: ActiveRound | None = None
    rounds: Annotated[tuple[EndedRound, ...], Field(max_length=MAX_KEEP + PINNED_ROUNDS)] = ()
    comparisons: Annotated[tuple[ComparisonOutcome, ...], Field(max_length=MAX_OUTCOMES)] = ()
    hypotheses: Annotated[tuple[HypothesisResult, ...], Field(max_length=MAX_OUTCOMES)] = ()
    display: SuiteDisplay | None = None
