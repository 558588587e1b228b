"""The status of a `BenchmarkRun`, derived from its results by the operator, with the texts that `kubectl get` shows."""

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, Field

from plimsoll.api import names
from plimsoll.api.line import Ending, Vary
from plimsoll.api.model import Model, ServerOnly
from plimsoll.api.operation import Rate
from plimsoll.api.run import MAX_CLIENTS, MAX_SERVERS
from plimsoll.api.storage import NamespacedName

MAX_HEADLINES = 32
STATE_FILE = "state.json"  # name of a `RunState` in a ConfigMap, and in a results directory
_DisplayText = Annotated[str, Field(max_length=256)]
_ShortText = Annotated[str, Field(max_length=64)]
_Time = Annotated[str, Field(max_length=64), ServerOnly(format="date-time")]
_Count = Annotated[int, Field(ge=0)]
_Setting = Annotated[str, Field(max_length=1024)]
_SmallCount = Annotated[_Count, ServerOnly(format="int32")]

# Of a state, which any user who may edit ConfigMaps can change: arithmetic on these numbers never overflows.
_LATEST_SECONDS = 1e11
_Number = Annotated[int, Field(ge=0, lt=2**31)]
_Bytes = Annotated[int, Field(ge=0, lt=2**63)]
_UnixSeconds = Annotated[float, Field(ge=0, le=_LATEST_SECONDS, allow_inf_nan=False)]
_Members = Annotated[tuple[_Number, ...], Field(max_length=MAX_CLIENTS + MAX_SERVERS)]


def moment_of(text: str) -> datetime:
    """Return a time of a state or a result; ValueError if arithmetic with it and other times could fail."""
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"{text} has no time zone")
    if not 0 <= moment.timestamp() <= _LATEST_SECONDS:
        raise ValueError(f"{text} is before 1970, or too far in the future")
    return moment


def _checked_moment(text: str) -> str:
    if text:
        moment_of(text)
    return text


class AnyCondition(Model):
    """One aspect of the state."""

    # As in metav1.Condition, the maximum length of the message too.
    type: Any  # a member of the vocabulary that the kind of object has
    """Aspect of the condition."""
    status: names.ConditionStatus
    """Whether the condition holds."""
    observed_generation: _Count = 0
    """Generation of the specification that the condition refers to."""
    last_transition_time: Annotated[_Time, ServerOnly(required=True)] = ""  # set_condition sets it
    """When status last changed."""
    reason: Annotated[str, Field(min_length=1, max_length=1024, pattern=r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$")]
    """Reason in CamelCase, for programs."""
    message: Annotated[str, Field(max_length=32768)] = ""
    """Explanation and next step, for people."""


class Condition(AnyCondition):
    """One aspect of the state."""

    type: names.ConditionType


class SuiteCondition(AnyCondition):
    """One aspect of a suite's state."""

    type: names.SuiteConditionType


C = TypeVar("C", bound=AnyCondition)


class Hold(Model):
    """How long a run has kept its queue place without measuring."""

    seconds: _SmallCount
    """Accumulated time before since, in seconds."""
    since: _Time | None = None
    """Start of the current hold, by a suspension; absent while all clients are ready."""
    measured_trials: _SmallCount
    """Number of measured trials when the sum started. A further measured trial resets the sum."""


class Points(Model):
    """Progress of the run."""

    total: _SmallCount = 0
    """Number of points."""
    completed: _SmallCount = 0
    """Points with all trials recorded."""
    invalid: _SmallCount = 0
    """Completed points with Invalid numbers."""


class HeadlineLatency(Model):
    """Percentiles of latency, from submission to completion; absent if the tool does not report them."""

    p50: _Count | None = None
    """Median."""
    p99: _Count | None = None
    """99th percentile."""


class HeadlineLine(Model):
    """The line of a search. Loads are operations per second or operations in flight of all clients together."""

    text: _DisplayText
    """The line in words, such as carries 12,400 ± 600 IOPS at p99 <= 5 ms; of a calm line with the storm line."""
    vary: Vary
    """Kind of load that the search varied."""
    ending: Ending | None = None
    """Why the search ended; absent while it goes on."""
    estimate: Rate | None = None
    """Load at which half of the trials meet all objectives; absent if outside of the permitted loads, or unknown."""
    low: Rate | None = None
    """Lower end of its 95 % interval; absent if it is below the lowest load, or unknown."""
    high: Rate | None = None
    """Upper end of its 95 % interval; absent if it is above the highest load, or unknown."""


class Headline(Model):
    """The numbers of one operation of one point, or the line that a search found."""

    workload: _ShortText
    """Name of the workload."""
    point: _ShortText
    """Name of the point; the BenchmarkResult has the name of the run, a hyphen and this."""
    label: _DisplayText
    """Parameters of the point in words, such as randwrite 4Ki qd16."""
    operation: names.Operation | None = None
    """The operation; absent for a search."""
    iops: _Count | None = None
    """Operations per second of all clients, in the time in which all of them were measuring; absent for a search."""
    bytes_per_second: _Count | None = None
    """Bytes per second of all clients, in the time in which all of them were measuring; absent for a search."""
    latency_nanoseconds: HeadlineLatency | None = None
    line: HeadlineLine | None = None
    """The line; absent if the point is measured at one load."""
    verdict: names.Verdict
    """Whether the numbers are trustworthy."""


class Display(Model):
    """Texts for kubectl get. Programs read the other fields."""

    workloads: _DisplayText | None = None
    """Names of the workloads."""
    progress: _ShortText | None = None
    """Completed trials, of all trials, such as 7/24."""
    status: _ShortText | None = None
    """Current activity of the run, or how it ended."""
    message: Annotated[str, Field(max_length=1024)] | None = None
    """What the run waits for, or why it ended, with the remedy."""
    iops: _ShortText | None = None
    """Best rate among the headline numbers."""
    p99: _ShortText | None = None
    """99th percentile of latency at that rate."""
    line: _ShortText | None = None
    """Line of the first search with its storm line, and the number of others: 12,400 ± 600 at p99 <= 5 ms +2."""
    verdict: _ShortText | None = None
    """Worst verdict among the points."""


class ResultDisplay(Model):
    """Texts for kubectl get. Programs read the other fields."""

    operation: _ShortText | None = None
    """Operation of the numbers."""
    iops: _ShortText | None = None
    """Mean rate over the trials that count, with its 95 % confidence interval."""
    bytes_per_second: _ShortText | None = None
    """Mean rate in bytes per second over the trials that count."""
    p99: _ShortText | None = None
    """99th percentile of latency."""
    line: _ShortText | None = None
    """Line as far as it is known, such as 12,400 ± 600 at p99 <= 5 ms; absent if the point is measured at one load."""
    trials: _ShortText | None = None
    """Trials that count, of all planned ones, such as 4/5; of a search, its probes so far, such as 12 of at most 40,
    and after its end those that count, such as 16 of 17, or 17 if all do."""
    reason: _ShortText | None = None
    """The check that decides the verdict, and the number of other failed checks, such as ClientThrottled +2. While
    trials are missing, the problem of the last attempt."""


class BenchmarkRunStatus(Model):
    """The observed state of the run. Only the operator writes it."""

    observed_generation: Annotated[int, Field(ge=-1)] = -1
    """Generation of the specification that this status refers to; -1 before the operator has observed the run."""
    conditions: Annotated[
        tuple[Condition, ...], Field(max_length=len(names.ConditionType)), ServerOnly(list_keys=("type",))
    ] = ()
    """Aspects of the run's state. Succeeded summarizes them and is Unknown while the run is active; Reconciling and
    Stalled exist only while they are True."""
    start_time: _Time | None = None
    """When the run was admitted."""
    conductor_start_time: _Time | None = None
    """When the first conductor was created. From then on the run ends if a result or its state is deleted."""
    completion_time: _Time | None = None
    """When the run ended, successfully or not."""
    estimated_completion_time: _Time | None = None
    """When the last trial ends if none has to be repeated."""
    rook_cluster: NamespacedName | None = None
    """The CephCluster of a run whose spec.storage.rook names none: the only one that its namespace could use when the
    operator first observed the run. It does not change afterwards."""
    plan_sha256: Annotated[str, Field(max_length=64)] | None = None
    """SHA-256 of the frozen plan as the operator created it. A plan with another digest is not used."""
    hold: Hold | None = None
    """How long the run has kept its queue place without measuring, summed over its suspensions. Absent before the first
    suspension, and after a trial measured since the last one."""
    namespace_served_time: _Time | None = None
    """When a run of the same namespace was last admitted on the target that this run waits for: namespaces take turns.
    Absent if none was, and once this run is admitted."""
    points: Points | None = None
    headline: Annotated[tuple[Headline, ...], Field(max_length=MAX_HEADLINES)] = ()
    """The first 32 numbers, in the order of the specification, as means over the trials that count, without Invalid
    points. The BenchmarkResults have all numbers."""
    environment: Annotated[dict[str, _Setting], Field(max_length=64)] = Field(default_factory=dict)
    """Versions and settings that affect the numbers, such as the version of Ceph."""
    display: Display | None = None


def set_condition(conditions: Sequence[C], new: C, now: datetime) -> tuple[C, ...]:
    """Return the conditions, with `new` in place of the old one of its type, in the order of the types.

    `last_transition_time` becomes `now` if the status has changed, and is kept otherwise; its value in `new` is
    ignored. `Reconciling` and `Stalled` are removed unless they are True.
    """
    old = {condition.type: condition for condition in conditions}
    before = old.pop(new.type, None)
    if (
        new.type not in (names.ConditionType.RECONCILING, names.ConditionType.STALLED)
        or new.status is names.ConditionStatus.TRUE
    ):
        unchanged = before is not None and before.status is new.status
        time = before.last_transition_time if before is not None and unchanged else format_time(now)
        old[new.type] = new.model_copy(update={"last_transition_time": time})
    return tuple(old[kind] for kind in type(new.type) if kind in old)


@lru_cache(maxsize=1024)
def format_time(moment: datetime) -> str:
    """Return a time with a time zone in Kubernetes' format, in whole seconds: `2026-01-31T12:00:00Z`."""
    if moment.tzinfo is None:
        raise ValueError("a time needs a time zone")
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class TrialKey(Model):
    """Identity of one attempt; as text, `random-write-003 pass 1`, or with a later attempt `..., attempt 1`."""

    point: Annotated[str, Field(max_length=253)]
    pass_number: Annotated[int, Field(ge=0, lt=2**31)]
    attempt: Annotated[int, Field(ge=0, lt=2**31)]

    def __str__(self) -> str:
        again = f", attempt {self.attempt}" if self.attempt else ""
        return f"{self.point} pass {self.pass_number}{again}"


class CurrentTrial(Model):
    """The current trial; times in Unix seconds."""

    key: TrialKey
    label: str
    clients: _Members
    starts_at: _UnixSeconds
    ends_at: _UnixSeconds


class Prefill(Model):
    """Progress of the prefill over all clients."""

    done_bytes: _Bytes = 0
    total_bytes: _Bytes = 0


class LiveRate(Model):
    """The current rates of one operation as reported by the running tool; for display only."""

    operation: names.Operation
    iops: Annotated[float, Field(ge=0, lt=2**63, allow_inf_nan=False)]
    bytes_per_second: Annotated[int, Field(ge=0, lt=2**63)]


class Live(Model):
    """The sum of the current rates in a trial."""

    clients: int  # number of clients in the sum; the others have not reported recently
    rates: tuple[LiveRate, ...]


class Failure(Model):
    """Why the run could not be measured."""

    reason: names.FailureReason
    message: str


class OsdsSeen(Model):
    """The most OSDs that polls showed up, and in: which OSDs are missing is a change only in comparison with it."""

    up: int = 0
    members: int = 0  # OSDs that were in

    def most(self, other: "OsdsSeen") -> "OsdsSeen":
        return OsdsSeen(up=max(self.up, other.up), members=max(self.members, other.members))


NO_OSDS = OsdsSeen()  # before the first poll


class RunState(Model):
    """The state of the conductor."""

    schema_version: Literal[1] = 1
    epoch: str = ""  # identity of the conductor process
    phase: names.RunPhase = names.RunPhase.GATHERING
    message: str = ""
    registered: _Members = ()
    missing: _Members = ()
    gathered: str = ""  # UID of the conductor's Job once all clients have registered with a conductor of that Job
    prefill: Prefill = Prefill()
    current: CurrentTrial | None = None
    live: Live | None = None  # current rates; absent unless a running tool has reported any
    # The attempt that has started and is not recorded yet; a later conductor records it as aborted
    in_flight: TrialKey | None = None
    in_flight_since: Annotated[str, AfterValidator(_checked_moment)] = ""
    in_flight_t0_nanoseconds: _Bytes = 0  # earliest T0 of its first round, Unix time; 0 until all clients are armed
    osds: OsdsSeen = NO_OSDS  # the most OSDs that the run's conductors have seen
    elapsed_seconds: _UnixSeconds = 0.0  # how long the run has been active, without suspensions and interruptions
    # Number of (point, pass) pairs that need no further attempt; a search for the line is one pair
    trials_done: _Number = 0
    trials_total: _Number = 0
    # Number of probes of the search to which the next trial belongs that need no further attempt
    probes_done: _Number = 0
    failure: Failure | None = None
