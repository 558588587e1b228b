"""The status of a `BenchmarkRun`: what the operator says about a run, and what `kubectl get` shows of it.

The numbers are in the results; what stands here is derived from them and bounded.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated

from pydantic import Field

from plimsoll.api.model import Model
from plimsoll.api.names import ConditionStatus, ConditionType, Operation, Verdict

MAX_HEADLINES = 32
MAX_MESSAGE_CHARACTERS = 32768
"""Of a condition. Source: Kubernetes, `metav1.Condition`."""

_ABNORMAL = (ConditionType.RECONCILING, ConditionType.STALLED)

_DisplayText = Annotated[str, Field(max_length=256)]
_ShortText = Annotated[str, Field(max_length=64)]
_Time = Annotated[str, Field(max_length=64)]
_Count = Annotated[int, Field(ge=0)]


class Condition(Model):
    """One aspect of a run's state, in the shape of `metav1.Condition`.

    Attributes:
        type: what it is about.
        status: whether it holds.
        observed_generation: `metadata.generation` of the specification that it speaks of.
        last_transition_time: when `status` last changed, RFC 3339.
        reason: CamelCase, for programs.
        message: for people: what is the case and what to do next.

    """

    type: ConditionType
    status: ConditionStatus
    observed_generation: Annotated[int, Field(ge=0)] = 0
    last_transition_time: _Time = ""
    reason: Annotated[str, Field(min_length=1, max_length=1024, pattern=r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$")]
    message: Annotated[str, Field(max_length=MAX_MESSAGE_CHARACTERS)] = ""


class Hold(Model):
    """How long a run has kept its place in the queue without measuring.

    Attributes:
        seconds: the sum of what was counted before `since`.
        since: since when the clock runs, RFC 3339; absent while all clients are there.
        measured_trials: trials that were measured when the sum began; one more resets it.

    """

    seconds: _Count
    since: _Time | None = None
    measured_trials: _Count


class Points(Model):
    """How far a run is.

    Attributes:
        total: points of the frozen plan.
        completed: those whose every trial is recorded.
        invalid: those of the completed ones whose verdict is Invalid.

    """

    total: _Count = 0
    completed: _Count = 0
    invalid: _Count = 0


class HeadlineLatency(Model):
    """Percentiles of submission to completion; absent if the tool does not know them."""

    p50: _Count | None = None
    p99: _Count | None = None


class Headline(Model):
    """The numbers of one operation of one point, as means over the trials that count. Never of an Invalid point."""

    workload: _ShortText
    point: _ShortText
    label: _DisplayText
    operation: Operation
    iops: _Count
    bytes_per_second: _Count
    latency_nanoseconds: HeadlineLatency | None = None
    verdict: Verdict


class Display(Model):
    """What `kubectl get benchmarkruns` shows: text for people, not an interface for programs."""

    workloads: _DisplayText | None = None
    progress: _ShortText | None = None
    status: _ShortText | None = None
    message: Annotated[str, Field(max_length=1024)] | None = None
    iops: _ShortText | None = None
    p99: _ShortText | None = None
    verdict: _ShortText | None = None


class ResultDisplay(Model):
    """What `kubectl get benchmarkresults` shows: text for people, not an interface for programs."""

    operation: _ShortText | None = None
    iops: _ShortText | None = None
    bytes_per_second: _ShortText | None = None
    p99: _ShortText | None = None
    trials: _ShortText | None = None
    reason: _ShortText | None = None


class BenchmarkRunStatus(Model):
    """What is the case with a run.

    Attributes:
        observed_generation: of the specification that this status speaks of; -1 before the operator saw the run.
        start_time: when the run was admitted, RFC 3339.
        completion_time: when it ended, whatever the end, RFC 3339.
        estimated_completion_time: when the last trial should be over if nothing has to be repeated, RFC 3339.
        plan_sha256: digest of the frozen plan; a plan with another one is not the operator's.
        hold: how long it has kept its place in the queue without measuring; absent if it did not since a trial.
        headline: the first 32 of the numbers, in the order of the plan.
        environment: versions and settings that the numbers depend on.

    """

    observed_generation: Annotated[int, Field(ge=-1)] = -1
    conditions: Annotated[tuple[Condition, ...], Field(max_length=len(ConditionType))] = ()
    start_time: _Time | None = None
    completion_time: _Time | None = None
    estimated_completion_time: _Time | None = None
    plan_sha256: Annotated[str, Field(max_length=64)] | None = None
    hold: Hold | None = None
    points: Points | None = None
    headline: Annotated[tuple[Headline, ...], Field(max_length=MAX_HEADLINES)] = ()
    environment: Annotated[dict[str, Annotated[str, Field(max_length=1024)]], Field(max_length=64)] = Field(
        default_factory=dict
    )
    display: Display | None = None


def set_condition(conditions: Sequence[Condition], new: Condition, now: datetime) -> tuple[Condition, ...]:
    """Return the conditions with `new` in place of the one of its type, in the order of `ConditionType`.

    `last_transition_time` becomes `now` if the status is another than before, and stays otherwise; what `new` says
    of it does not count. `Reconciling` and `Stalled` are removed when they are not True.

    Raises:
        ValueError: if `now` has no time zone.

    """
    old = {condition.type: condition for condition in conditions}
    before = old.pop(new.type, None)
    if new.type not in _ABNORMAL or new.status is ConditionStatus.TRUE:
        unchanged = before is not None and before.status is new.status
        time = before.last_transition_time if before is not None and unchanged else format_time(now)
        old[new.type] = new.model_copy(update={"last_transition_time": time})
    return tuple(old[kind] for kind in ConditionType if kind in old)


def format_time(moment: datetime) -> str:
    """Return a moment as Kubernetes writes it, in whole seconds: `2026-01-31T12:00:00Z`.

    Raises:
        ValueError: if it has no time zone.

    """
    if moment.tzinfo is None:
        raise ValueError("a time without a time zone is no moment")
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
