"""`BenchmarkResult`: the numbers of one point, in whole bytes per second and nanoseconds; all fields are bounded."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal, Self, TypeVar

from pydantic import Field, JsonValue, model_validator

from plimsoll.api.environment import Environment
from plimsoll.api.line import STORM_SUFFIX, Line, LineSearch, OfferedLoad, Probe
from plimsoll.api.model import ClientNumbers, Count, Model, Rule, ServerOnly
from plimsoll.api.names import AbortReason, Cause, Operation, Outcome, Verdict
from plimsoll.api.operation import OperationResult, OperationSummary, Rate, Steadiness
from plimsoll.api.surroundings import ClusterSummary, DroppedCaches, Hosts, HostSummary, Osds

Sha256 = Annotated[str, ServerOnly(max_length=64, pattern=r"^[0-9a-f]{64}$")]


class ToolUse(Model):
    """The tools of the clients, their commands and their output; for an audit."""

    versions: Annotated[tuple[Annotated[str, ServerOnly(max_length=256)], ...], ServerOnly(max_length=8)] = ()
    """The tools with their versions. More than one is a finding."""
    argv: Annotated[tuple[Annotated[str, ServerOnly(max_length=512)], ...], ServerOnly(max_length=128)] = ()
    """The command of one client. Empty for a replaced attempt, and if the result would be too large."""
    argv_client: Count
    """Number of that client. The commands of other clients differ in paths, offsets and seeds."""
    raw_sha256: Sha256 | None = None  # docs/how-to/trust.md describes how to verify it
    """SHA-256 of the raw output of all clients' tools. Absent if a client does not report its digest."""


N = TypeVar("N", int, float)

_MAX_CELLS = ServerOnly(max_length=4096)


class MatrixMember(Model):
    """A client of the matrix with its node."""

    number: Count
    """Number of the client."""
    node: Annotated[str, ServerOnly(max_length=253)]
    """Node of the client in the last trial that counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """One cell over the trials."""

    client: int
    peer: int
    bytes_per_second: int
    least_bytes_per_second: int | None  # of the worst trial; None if it had no room in the result
    iops: float | None  # None if the tool does not count operations
    least_iops: float | None  # of the worst trial; None if it had no room, or the tool does not count operations
    retransmits: int | None  # mean over the trials; None if the tool does not report them
    is_outlier: bool


class Matrix(Model):
    """Rates between pairs of a client and one that served it, over the trials that count.

    The lists with a value per cell have the same order.
    """

    trials: Count
    """Number of trials that count."""
    members: Annotated[tuple[MatrixMember, ...], ServerOnly(max_length=2048)]
    """The clients of all cells with their nodes."""
    clients: Annotated[tuple[Count, ...], _MAX_CELLS]
    """Client of each cell that generated the load."""
    peers: Annotated[tuple[Count, ...], _MAX_CELLS]
    """Client of each cell that served it."""
    bytes_per_second: Annotated[tuple[Count, ...], _MAX_CELLS]
    """Mean of each cell over the trials, in bytes per second."""
    least_bytes_per_second: Annotated[tuple[Count, ...], _MAX_CELLS] | None = None
    """The lowest of each cell over the trials, in bytes per second; absent if the result would be too large."""
    iops: Annotated[tuple[Rate, ...], _MAX_CELLS] | None = None
    """Mean of each cell over the trials, in operations per second; absent if the tool does not count operations."""
    least_iops: Annotated[tuple[Rate, ...], _MAX_CELLS] | None = None
    """The lowest of each cell over the trials, in operations per second; absent if the tool does not count operations,
    or the result would be too large."""
    retransmits: Annotated[tuple[Count, ...], _MAX_CELLS] | None = None
    """TCP segments that were sent again, mean of each cell over the trials; absent if the tool does not report them."""
    outliers: Annotated[tuple[Count, ...], _MAX_CELLS] = ()
    """Positions, from 0, of the cells whose rate was far below the rates of comparable cells in at least one of the
    trials; see the finding LinkOutlier."""

    @model_validator(mode="after")
    def _check_lengths(self) -> Self:
        optional = (self.least_bytes_per_second, self.iops, self.least_iops, self.retransmits)
        lengths = {len(values) for values in (self.peers, self.bytes_per_second, *optional) if values is not None}
        if lengths != {len(self.clients)} or any(place >= len(self.clients) for place in self.outliers):
            raise ValueError("must have one value for each cell in every list")
        return self

    @property
    def nodes(self) -> dict[int, str]:
        return {member.number: member.node for member in self.members}

    @property
    def counts_bytes(self) -> bool:
        """Whether cells are compared by bytes; otherwise by operations."""
        return any(self.bytes_per_second) or self.iops is None

    def pairs(self) -> Iterator[Pair]:
        outliers = set(self.outliers)
        for place, (client, peer) in enumerate(zip(self.clients, self.peers, strict=True)):
            yield Pair(
                client=client,
                peer=peer,
                bytes_per_second=self.bytes_per_second[place],
                least_bytes_per_second=_at(self.least_bytes_per_second, place),
                iops=_at(self.iops, place),
                least_iops=_at(self.least_iops, place),
                retransmits=_at(self.retransmits, place),
                is_outlier=place in outliers,
            )


def _at(values: Sequence[N] | None, place: int) -> N | None:
    return None if values is None else values[place]


_Name = Annotated[str, ServerOnly(max_length=64)]
_Time = Annotated[str, ServerOnly(max_length=64)]
_Message = Annotated[str, ServerOnly(max_length=4096)]

_AnyValues = Annotated[dict[str, JsonValue], ServerOnly(max_length=64)]


class Stalls(Model):
    """Seconds without a completed operation while all clients were measuring."""

    seconds: float
    """Seconds in which no client completed an operation."""
    worst_client_seconds: float
    """The same for the client with the most such seconds, including stalls that do not count."""
    worst_client: Count | None = None
    """Number of that client; absent if no client stalled."""


class Window(Model):
    """The time in which the clients were measuring, by their clocks."""

    start_nanoseconds: int
    """The last client's start, in Unix nanoseconds."""
    end_nanoseconds: int
    """The first client's end, in Unix nanoseconds; not after the start if they never ran at the same time."""
    last_end_nanoseconds: int
    """The last client's end, in Unix nanoseconds."""
    seconds: float
    """Duration for which all clients were measuring; 0 without such a time."""
    whole_seconds: float
    """Duration from the first client's start to the last client's end."""
    spread_seconds: float
    """Last start minus first start."""
    overlap: float
    """Duration for which all clients were measuring, divided by the mean runtime of the clients."""


class Finding(Model):
    """A failed check."""

    reason: _Name  # of one of plimsoll.measure.checks
    """Name of the check, in CamelCase, for programs."""
    verdict: Verdict
    """Verdict that the check gives."""
    message: _Message
    """The measured value, the limit, and the remedy."""
    clients: Annotated[tuple[Count, ...], ServerOnly(max_length=32)] = ()
    """Numbers of the affected clients; empty if it affects all of them."""
    cause: Cause | None = None
    """What made the attempt Invalid, if the evidence of this attempt decides that; absent if the reason alone does, or
    if only other attempts show it."""


_Findings = Annotated[tuple[Finding, ...], ServerOnly(max_length=64)]


class Abort(Model):
    """Why an attempt has no numbers."""

    reason: AbortReason
    """Reason in CamelCase, for programs."""
    message: _Message
    """What happened, in words."""
    after_start: bool | None = None
    """True if the clients were about to start, so that their rates could be seen; absent otherwise."""
    cause: Cause | None = None
    """What ended the attempt, if the evidence of this attempt decides that; absent if the reason alone does."""


class ClientSummary(Model):
    """One client's part of the trial."""

    client: Count
    """Number of the client."""
    node: Annotated[str, ServerOnly(max_length=253)]
    """Node of the client."""
    start_offset_seconds: float
    """Start of its measurement relative to the first client's."""
    runtime_seconds: float
    """Duration of its measurement."""
    iops: Rate
    """Its operations divided by its runtime."""
    clock_offset_seconds: float | None = None
    """The conductor's clock minus the client's; absent if it could not be measured."""
    clock_error_seconds: float | None = None
    """Maximum error of that difference."""
    stall_seconds: float | None = None
    """Seconds without a completed operation while all clients were measuring; absent if it records none over time."""
    host: HostSummary | None = None
    """Load of its host during the measurement; absent if unknown."""


class ClientPlace(Model):
    """Where a client ran."""

    client: Count
    """Number of the client."""
    node: Annotated[str, ServerOnly(max_length=253)]
    """Node of the client."""
    volume: Annotated[str, ServerOnly(max_length=256)] | None = None
    """What identifies the storage below its data set, such as a disk's serial number; absent if the host hides it."""


class PlaceDigests(Model):
    """Where clients ran, shortened to what shows whether it changed."""

    clients: ClientNumbers
    """Numbers of the clients."""
    digests: Annotated[str, ServerOnly(max_length=65536)]
    """For each of them, in ascending order, the first four bytes of the SHA-256 of the name of its node, and of what
    identifies its volume, or four zero bytes if that is unknown; all of them in base64."""


class PhaseOperation(Model):
    """One operation in a phase of a trial with a disturbance."""

    operation: Operation
    """The operation."""
    iops: Rate
    """Operations per second."""
    bytes_per_second: Count
    """Bytes per second."""
    percentiles: Annotated[dict[str, Count], ServerOnly(max_length=16)] = Field(default_factory=dict)
    """Percentiles of latency in nanoseconds by name, such as "99.9"; empty if the tool records none over time."""


PhaseName = Literal["Before", "During", "After", "Storm"]
PHASES: tuple[PhaseName, ...] = ("Before", "During", "After")


class Phase(Model):
    """A part of a trial: before, during or after its disturbance."""

    name: PhaseName
    """Before, During or After; or Storm, from the start of the disturbance until all placement groups are clean."""
    seconds: float
    """Length of the phase."""
    stall_seconds: float | None = None
    """Seconds in which no client completed an operation; absent if a client does not record operations over time."""
    operations: Annotated[tuple[PhaseOperation, ...], ServerOnly(max_length=len(Operation))]
    """Numbers of each operation."""


class DisturbanceResult(Model):
    """What a trial with a disturbance showed."""

    action: Literal["Out", "Down"]
    """Out or Down, as in the workload."""
    osds: Annotated[tuple[Count, ...], ServerOnly(max_length=64)]
    """Numbers of the OSDs that were away."""
    start_seconds: float
    """Start of the disturbance, after the start of the window."""
    end_seconds: float
    """End of the disturbance, when the OSDs were given back."""
    clean_seconds: float | None = None
    """Seconds from that end until all placement groups were active+clean, up to the polling interval of 5 s more;
    absent if they were not within watchedSeconds."""
    watched_seconds: float
    """Seconds from that end to the last poll."""
    phases: Annotated[tuple[Phase, ...], ServerOnly(max_length=4)]
    """Before, during and after the disturbance; in a search for the line, also until all groups are clean."""

    def phase(self, name: str) -> Phase | None:
        return next((phase for phase in self.phases if phase.name == name), None)


class Trial(Model):
    """One attempt at one repetition."""

    pass_number: Count
    """Number of the repetition, or of the probe of a search for the line, from 0."""
    attempt: Count
    """Number of the attempt, from 0; a later attempt replaces an aborted or invalid one."""
    epoch: Annotated[str, ServerOnly(max_length=128)]
    """Identity of the conductor process that ran it."""
    clients: ClientNumbers
    """Numbers of the clients that took part, such as 0-7,12; servers included."""
    places: Annotated[tuple[ClientPlace, ...], ServerOnly(max_length=2048)] = ()
    """Where the clients ran, unless earlier trials show it: all clients in the first trial, and in later trials those
    that moved to another node or volume."""
    place_digests: PlaceDigests | None = None
    """Digests of places that are left out because the result would be too large; absent otherwise."""
    new_data_set: bool | None = None
    """True if the clients' data sets were prepared for this attempt (prepare.perTrial); absent otherwise."""
    probe: Probe | None = None
    """Load of the trial in a search for the line; absent otherwise."""
    load: OfferedLoad | None = None
    """Rate that the workload offers, and what of it arrived; absent without a rate, and in a search."""
    outcome: Outcome
    """How the attempt ended."""
    started_at: _Time
    """When the attempt began."""
    finished_at: _Time
    """When the attempt ended."""
    abort: Abort | None = None
    """Why the attempt has no numbers."""
    verdict: Verdict
    """Whether the numbers are trustworthy."""
    findings: _Findings = ()
    """Failed checks."""
    window: Window | None = None
    stalls: Stalls | None = None
    """Seconds without a completed operation while all clients were measuring; absent if unknown."""
    steadiness: Steadiness | None = None
    """Whether the rate of all operations together stayed the same over the window; absent if that was not judged: in a
    window shorter than ten intervals of the series, usually seconds, if a client does not record operations over time,
    in an open loop, and with until DataSetDone."""
    operations: Annotated[tuple[OperationResult, ...], ServerOnly(max_length=len(Operation))] = ()
    """Numbers of each operation."""
    hosts: Hosts | None = None
    """Load of all clients' hosts during the measurement, as far as they reported it; absent if none did."""
    caches: DroppedCaches | None = None
    """Caches that were dropped before the trial; absent if none were."""
    slowest: Annotated[tuple[ClientSummary, ...], ServerOnly(max_length=8)] = ()
    """The clients with the lowest rates, slowest first."""
    osds: Osds | None = None
    """Rates of all OSDs, each measured alone; absent for other tools."""
    cluster: ClusterSummary | None = None
    """State and load of the Ceph cluster during the measurement, as far as Ceph reported them; absent without one."""
    disturbance: DisturbanceResult | None = None
    """Numbers before, during and after the disturbance; absent without one."""
    tool: ToolUse | None = None  # absent if no client delivered
    warnings: Annotated[tuple[_Message, ...], ServerOnly(max_length=64)] = ()
    """Distinct warnings of the clients' tools and parsers."""


class Summary(Model):
    """The numbers of the point over the trials that count."""

    trials: Count
    """Number of trials that count."""
    operations: Annotated[tuple[OperationSummary, ...], ServerOnly(max_length=len(Operation))]
    """Numbers of each operation over the trials."""
    matrix: Matrix | None = None
    """Rates between pairs of clients; absent for tools without servers."""


class ResultMeta(Model):
    """Metadata of a result object."""

    name: str
    namespace: str
    labels: dict[str, str] = Field(default_factory=dict)


class ResultSpec(Model):
    """The identity of the point. It never changes."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            rule="self == oldSelf",
            message="cannot be changed, because it identifies the numbers",
            reason="FieldValueForbidden",
        ),
    )

    run: Annotated[str, ServerOnly(max_length=63)]
    """Name of the BenchmarkRun."""
    run_uid: _Name
    """UID of the BenchmarkRun."""
    point: _Name
    """Name of the point within the run."""
    workload: _Name
    """Name of the workload."""
    tool: _Name
    """Tool of the workload."""
    label: Annotated[str, ServerOnly(max_length=256)]
    """Parameters of the point in words, such as randwrite 4Ki qd16."""
    parameters: _AnyValues
    """Parameters of the tool, defaults included."""
    clients: Count
    """Number of clients."""
    runtime_seconds: Count
    """Duration of the measurement in each trial."""
    ramp_seconds: Count
    """Duration of the load before the measurement in each trial."""
    repetitions: Count
    """Number of planned trials; of a search for the line, the most that it may need."""
    line: LineSearch | None = None
    """Search for the line; absent if the point is measured at one load."""

    @property
    def calm(self) -> str | None:
        """Of a search for the storm line, the point that searches for the calm line; None of others."""
        calm = self.point.removesuffix(STORM_SUFFIX)
        return calm if self.line is not None and calm != self.point else None


class Fingerprint(Model):
    """Identity and context of the numbers, which decide whether two results are comparable."""

    identity: _AnyValues
    """The specification and the storage. Results with equal identities are comparable."""
    context: _AnyValues
    """Other facts that may explain a difference."""
    identity_sha256: Sha256
    """SHA-256 of identity as JSON with sorted keys and without spaces."""
    context_sha256: Sha256
    """SHA-256 of context in the same form."""


class InFlight(Model):
    """The attempt that has begun and is not recorded yet. If its conductor dies, the next one records it as aborted."""

    pass_number: Count
    """Number of the repetition, or of the probe of a search for the line, from 0."""
    attempt: Count
    """Number of the attempt, from 0."""
    started_at: _Time
    """When the attempt began."""
    t0_nanoseconds: Count | None = None
    """When all clients of its first round were armed, in Unix nanoseconds; T0 is later. Absent before."""


class ResultStatus(Model):
    """The measured numbers. Only the run's conductor writes them."""

    trials: Annotated[tuple[Trial, ...], ServerOnly(max_length=256)] = ()
    """All attempts, in the order of recording."""
    in_flight: InFlight | None = None
    """The attempt that has begun and is not recorded yet; absent between attempts."""
    summary: Summary | None = None
    line: Line | None = None
    """Line as far as it is known; absent if the point is measured at one load, and before the first trial."""
    first_line: Line | None = None
    """Line according to the first attempts: a probe counts as broken if the storage spoiled its first attempt. Absent
    if the first attempts are the ones that count."""
    verdict: Verdict | None = None
    """Whether the numbers are trustworthy; absent without numbers."""
    findings: _Findings = ()
    """Failed checks, each in its worst case over the trials."""
    environment: Annotated[Environment, ServerOnly(shape=_AnyValues)] = Field(default_factory=Environment)
    """Environment of the measurement, such as nodes, versions and the size of the data set."""
    fingerprint: Fingerprint | None = None
    final: bool = False
    """Whether every planned trial is recorded."""


class BenchmarkResult(Model):
    """The result object of one point."""

    api_version: Annotated[Literal["plimsoll.dev/v1alpha1"], Field()] = "plimsoll.dev/v1alpha1"
    kind: Annotated[Literal["BenchmarkResult"], Field()] = "BenchmarkResult"
    metadata: ResultMeta
    spec: ResultSpec
    status: Annotated[ResultStatus, Field(default_factory=ResultStatus)]
