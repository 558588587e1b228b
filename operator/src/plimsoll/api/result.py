"""`BenchmarkResult`: the numbers of one point. The spec identifies the point, the status has the numbers.

Bytes per second are whole numbers, latencies whole nanoseconds. All fields are bounded, so that an object is far
smaller than the API server's limit.
"""

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
    """The tools of the clients, their commands and their output; for an audit.

    Attributes:
        versions: The tools with their versions. More than one is a finding.
        argv: The command of one client. Empty for a replaced attempt, and if the result would be too large.
        argv_client: Number of that client. The commands of other clients differ in paths, offsets and seeds.
        raw_sha256: SHA-256 of the raw output of all clients' tools. Absent if a client does not report its digest.

    """

    versions: Annotated[
        tuple[Annotated[str, Field(description="A tool and its version."), ServerOnly(max_length=256)], ...],
        ServerOnly(max_length=8),
    ] = ()
    argv: Annotated[
        tuple[Annotated[str, Field(description="One argument."), ServerOnly(max_length=512)], ...],
        ServerOnly(max_length=128),
    ] = ()
    argv_client: Count
    raw_sha256: Sha256 | None = None  # docs/how-to/trust.md describes how to verify it


N = TypeVar("N", int, float)

_MAX_CELLS = ServerOnly(max_length=4096)

_Client = Annotated[Count, Field(description="Number of a client.")]
_Bytes = Annotated[Count, Field(description="One cell.")]
_Iops = Annotated[Rate, Field(description="One cell.")]
_Retransmits = Annotated[Count, Field(description="One cell.")]
_Outlier = Annotated[Count, Field(description="Position of a cell.")]


class MatrixMember(Model):
    """A client of the matrix with its node.

    Attributes:
        number: Number of the client.
        node: Node of the client in the last trial that counts.

    """

    number: Count
    node: Annotated[str, ServerOnly(max_length=253)]


_Member = Annotated[MatrixMember, Field(description="One client.")]


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

    Attributes:
        trials: Number of trials that count.
        members: The clients of all cells with their nodes.
        clients: Client of each cell that generated the load.
        peers: Client of each cell that served it.
        bytes_per_second: Mean of each cell over the trials, in bytes per second.
        least_bytes_per_second: The lowest of each cell over the trials, in bytes per second; absent if the result would
            be too large.
        iops: Mean of each cell over the trials, in operations per second; absent if the tool does not count operations.
        least_iops: The lowest of each cell over the trials, in operations per second; absent if the tool does not count
            operations, or the result would be too large.
        retransmits: TCP segments that were sent again, mean of each cell over the trials; absent if the tool does not
            report them.
        outliers: Positions, from 0, of the cells whose rate was far below the rates of comparable cells in at least one
            of the trials; see the finding LinkOutlier.

    """

    trials: Count
    members: Annotated[tuple[_Member, ...], ServerOnly(max_length=2048)]
    clients: Annotated[tuple[_Client, ...], _MAX_CELLS]
    peers: Annotated[tuple[_Client, ...], _MAX_CELLS]
    bytes_per_second: Annotated[tuple[_Bytes, ...], _MAX_CELLS]
    least_bytes_per_second: Annotated[tuple[_Bytes, ...], _MAX_CELLS] | None = None
    iops: Annotated[tuple[_Iops, ...], _MAX_CELLS] | None = None
    least_iops: Annotated[tuple[_Iops, ...], _MAX_CELLS] | None = None
    retransmits: Annotated[tuple[_Retransmits, ...], _MAX_CELLS] | None = None
    outliers: Annotated[tuple[_Outlier, ...], _MAX_CELLS] = ()

    @model_validator(mode="after")
    def _check_lengths(self) -> Self:
        optional = (self.least_bytes_per_second, self.iops, self.least_iops, self.retransmits)
        lengths = {len(values) for values in (self.peers, self.bytes_per_second, *optional) if values is not None}
        if lengths != {len(self.clients)} or any(place >= len(self.clients) for place in self.outliers):
            raise ValueError("must have one value for each cell in every list")
        return self

    @property
    def nodes(self) -> dict[int, str]:
        """Number of a client -> its node."""
        return {member.number: member.node for member in self.members}

    @property
    def counts_bytes(self) -> bool:
        """Whether cells are compared by bytes; otherwise by operations."""
        return any(self.bytes_per_second) or self.iops is None

    def pairs(self) -> Iterator[Pair]:
        """Yield the cells in their order."""
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

_Warning = Annotated[_Message, Field(description="One warning.")]
_AnyValues = Annotated[dict[str, JsonValue], ServerOnly(max_length=64)]


class Stalls(Model):
    """Seconds without a completed operation while all clients were measuring.

    Attributes:
        seconds: Seconds in which no client completed an operation.
        worst_client_seconds: The same for the client with the longest stall.
        worst_client: Number of that client; absent if no client stalled.

    """

    seconds: float
    worst_client_seconds: float
    worst_client: Count | None = None


class Window(Model):
    """The time in which the clients were measuring, by their clocks.

    Attributes:
        start_nanoseconds: The last client's start, in Unix nanoseconds.
        end_nanoseconds: The first client's end, in Unix nanoseconds; not after the start if they never ran at the same
            time.
        last_end_nanoseconds: The last client's end, in Unix nanoseconds.
        seconds: Duration for which all clients were measuring; 0 without such a time.
        whole_seconds: Duration from the first client's start to the last client's end.
        spread_seconds: Last start minus first start.
        overlap: Duration for which all clients were measuring, divided by the mean runtime of the clients.

    """

    start_nanoseconds: int
    end_nanoseconds: int
    last_end_nanoseconds: int
    seconds: float
    whole_seconds: float
    spread_seconds: float
    overlap: float


class Finding(Model):
    """A failed check.

    Attributes:
        reason: Name of the check, in CamelCase, for programs.
        verdict: Verdict that the check gives.
        message: The measured value, the limit, and the remedy.
        clients: Numbers of the affected clients; empty if it affects all of them.
        cause: What made the attempt Invalid, if the evidence of this attempt decides that; absent if the reason alone
            does, or if only other attempts show it.

    """

    reason: _Name  # of one of plimsoll.measure.checks
    verdict: Verdict
    message: _Message
    clients: Annotated[tuple[_Client, ...], ServerOnly(max_length=32)] = ()
    cause: Cause | None = None


_Findings = Annotated[tuple[Finding, ...], ServerOnly(max_length=64)]


class Abort(Model):
    """Why an attempt has no numbers.

    Attributes:
        reason: Reason in CamelCase, for programs.
        message: What happened, in words.
        after_start: True if the clients were about to start, so that their rates could be seen; absent otherwise.
        cause: What ended the attempt, if the evidence of this attempt decides that; absent if the reason alone does.

    """

    reason: AbortReason
    message: _Message
    after_start: bool | None = None
    cause: Cause | None = None


class ClientSummary(Model):
    """One client's part of the trial.

    Attributes:
        client: Number of the client.
        node: Node of the client.
        start_offset_seconds: Start of its measurement relative to the first client's.
        runtime_seconds: Duration of its measurement.
        iops: Its operations divided by its runtime.
        clock_offset_seconds: The conductor's clock minus the client's; absent if it could not be measured.
        clock_error_seconds: Maximum error of that difference.
        stall_seconds: Seconds in which it completed no operation while all clients were measuring; absent if it does
            not record operations over time.
        host: Load of its host during the measurement; absent if unknown.

    """

    client: Count
    node: Annotated[str, ServerOnly(max_length=253)]
    start_offset_seconds: float
    runtime_seconds: float
    iops: Rate
    clock_offset_seconds: float | None = None
    clock_error_seconds: float | None = None
    stall_seconds: float | None = None
    host: HostSummary | None = None


class ClientPlace(Model):
    """Where a client ran.

    Attributes:
        client: Number of the client.
        node: Node of the client.
        volume: What identifies the storage below its data set, such as the serial number of a disk, or its device
            number; absent if the host does not show it.

    """

    client: Count
    node: Annotated[str, ServerOnly(max_length=253)]
    volume: Annotated[str, ServerOnly(max_length=256)] | None = None


_Place = Annotated[ClientPlace, Field(description="One client.")]


class PlaceDigests(Model):
    """Where clients ran, shortened to what shows whether it changed.

    Attributes:
        clients: Numbers of the clients.
        digests: For each of them, in ascending order, the first four bytes of the SHA-256 of the name of its node, and
            of what identifies its volume, or four zero bytes if that is unknown; all of them in base64.

    """

    clients: ClientNumbers
    digests: Annotated[str, ServerOnly(max_length=65536)]


class PhaseOperation(Model):
    """One operation in a phase of a trial with a disturbance.

    Attributes:
        operation: The operation.
        iops: Operations per second.
        bytes_per_second: Bytes per second.
        percentiles: Percentiles of latency in nanoseconds, by name, such as "99.9"; empty if the tool does not record
            latencies over time.

    """

    operation: Operation
    iops: Rate
    bytes_per_second: Count
    percentiles: Annotated[
        dict[str, Annotated[Count, Field(description="One percentile.")]], ServerOnly(max_length=16)
    ] = Field(default_factory=dict)


PhaseName = Literal["Before", "During", "After", "Storm"]
PHASES: tuple[PhaseName, ...] = ("Before", "During", "After")


class Phase(Model):
    """A part of a trial: before, during or after its disturbance.

    Attributes:
        name: Before, During or After; or Storm, from the start of the disturbance until all placement groups are clean.
        seconds: Length of the phase.
        stall_seconds: Seconds in which no client completed an operation; absent if a client does not record operations
            over time.
        operations: Numbers of each operation.

    """

    name: PhaseName
    seconds: float
    stall_seconds: float | None = None
    operations: Annotated[
        tuple[Annotated[PhaseOperation, Field(description="One operation.")], ...],
        ServerOnly(max_length=len(Operation)),
    ]


class DisturbanceResult(Model):
    """What a trial with a disturbance showed.

    Attributes:
        action: Out or Down, as in the workload.
        osds: Numbers of the OSDs that were away.
        start_seconds: Start of the disturbance, after the start of the window.
        end_seconds: End of the disturbance, when the OSDs were given back.
        clean_seconds: Seconds from that end until all placement groups were active+clean, up to the polling interval of
            5 s more; absent if they were not within watchedSeconds.
        watched_seconds: Seconds from that end to the last poll.
        phases: Before, during and after the disturbance; in a search for the line, also until all groups are clean.

    """

    action: Literal["Out", "Down"]
    osds: Annotated[tuple[Annotated[Count, Field(description="One OSD.")], ...], ServerOnly(max_length=64)]
    start_seconds: float
    end_seconds: float
    clean_seconds: float | None = None
    watched_seconds: float
    phases: Annotated[tuple[Annotated[Phase, Field(description="One phase.")], ...], ServerOnly(max_length=4)]

    def phase(self, name: str) -> Phase | None:
        return next((phase for phase in self.phases if phase.name == name), None)


class Trial(Model):
    """One attempt at one repetition.

    Attributes:
        pass_number: Number of the repetition, or of the probe of a search for the line, from 0.
        attempt: Number of the attempt, from 0; a later attempt replaces an aborted or invalid one.
        epoch: Identity of the conductor process that ran it.
        clients: Numbers of the clients that took part, such as 0-7,12; servers included.
        places: Where the clients ran, as far as the trials recorded before do not show it. In the first trial these are
            all clients, and in later ones those that were replaced by one on another node or volume.
        place_digests: Digests of places that are left out because the result would be too large; absent otherwise.
        new_data_set: True if the clients' data sets were prepared for this attempt (prepare.perTrial); absent
            otherwise.
        probe: Load of the trial in a search for the line; absent otherwise.
        load: Rate that the workload offers, and what of it arrived; absent without a rate, and in a search.
        outcome: How the attempt ended.
        started_at: When the attempt began.
        finished_at: When the attempt ended.
        abort: Why the attempt has no numbers.
        verdict: Whether the numbers are trustworthy.
        findings: Failed checks.
        stalls: Seconds without a completed operation while all clients were measuring; absent if a client does not
            record operations over time.
        steadiness: Whether the rate of all operations together stayed the same over the window; absent if that was not
            judged: in a window shorter than ten intervals of the series, usually seconds, if a client does not record
            operations over time, in an open loop, and with until DataSetDone.
        operations: Numbers of each operation.
        hosts: Load of the hosts of all clients during the measurement; absent if unknown. A quantity that no host
            reported is absent.
        caches: Caches that were dropped before the trial; absent if none were.
        slowest: The clients with the lowest rates, slowest first.
        osds: Rates of all OSDs, each measured alone; absent for other tools.
        cluster: State and load of the Ceph cluster during the measurement; absent without one. A quantity that Ceph did
            not report is absent.
        disturbance: Numbers before, during and after the disturbance; absent without one.
        warnings: Distinct warnings of the clients' tools and parsers.

    """

    pass_number: Count
    attempt: Count
    epoch: Annotated[str, ServerOnly(max_length=128)]
    clients: ClientNumbers
    places: Annotated[tuple[_Place, ...], ServerOnly(max_length=2048)] = ()
    place_digests: PlaceDigests | None = None
    new_data_set: bool | None = None
    probe: Probe | None = None
    load: OfferedLoad | None = None
    outcome: Outcome
    started_at: _Time
    finished_at: _Time
    abort: Abort | None = None
    verdict: Verdict
    findings: _Findings = ()
    window: Window | None = None
    stalls: Stalls | None = None
    steadiness: Steadiness | None = None
    operations: Annotated[tuple[OperationResult, ...], ServerOnly(max_length=len(Operation))] = ()
    hosts: Hosts | None = None
    caches: DroppedCaches | None = None
    slowest: Annotated[tuple[ClientSummary, ...], ServerOnly(max_length=8)] = ()
    osds: Osds | None = None
    cluster: ClusterSummary | None = None
    disturbance: DisturbanceResult | None = None
    tool: ToolUse | None = None  # absent if no client delivered
    warnings: Annotated[tuple[_Warning, ...], ServerOnly(max_length=64)] = ()


class Summary(Model):
    """The numbers of the point over the trials that count.

    Attributes:
        trials: Number of trials that count.
        operations: Numbers of each operation over the trials.
        matrix: Rates between pairs of clients; absent for tools without servers.

    """

    trials: Count
    operations: Annotated[tuple[OperationSummary, ...], ServerOnly(max_length=len(Operation))]
    matrix: Matrix | None = None


class ResultMeta(Model):
    """Metadata of a result object."""

    name: str
    namespace: str
    labels: dict[str, str] = Field(default_factory=dict)


class ResultSpec(Model):
    """The identity of the point. It never changes.

    Attributes:
        run: Name of the BenchmarkRun.
        run_uid: UID of the BenchmarkRun.
        point: Name of the point within the run.
        workload: Name of the workload.
        tool: Tool of the workload.
        label: Parameters of the point in words, such as randwrite 4Ki qd16.
        parameters: Parameters of the tool, defaults included.
        clients: Number of clients.
        runtime_seconds: Duration of the measurement in each trial.
        ramp_seconds: Duration of the load before the measurement in each trial.
        repetitions: Number of planned trials; of a search for the line, the most that it may need.
        line: Search for the line; absent if the point is measured at one load.

    """

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            rule="self == oldSelf",
            message="cannot be changed, because it identifies the numbers",
            reason="FieldValueForbidden",
        ),
    )

    run: Annotated[str, ServerOnly(max_length=63)]
    run_uid: _Name
    point: _Name
    workload: _Name
    tool: _Name
    label: Annotated[str, ServerOnly(max_length=256)]
    parameters: _AnyValues
    clients: Count
    runtime_seconds: Count
    ramp_seconds: Count
    repetitions: Count
    line: LineSearch | None = None

    @property
    def calm(self) -> str | None:
        """Of a search for the storm line, the point that searches for the calm line; None of others."""
        calm = self.point.removesuffix(STORM_SUFFIX)
        return calm if self.line is not None and calm != self.point else None


class Fingerprint(Model):
    """Identity and context of the numbers, which decide whether two results are comparable.

    Attributes:
        identity: The specification and the storage. Results with equal identities are comparable.
        context: Other facts that may explain a difference.
        identity_sha256: SHA-256 of identity as JSON with sorted keys and without spaces.
        context_sha256: SHA-256 of context in the same form.

    """

    identity: _AnyValues
    context: _AnyValues
    identity_sha256: Sha256
    context_sha256: Sha256


class InFlight(Model):
    """The attempt that has begun and is not recorded yet. If its conductor dies, the next one records it as aborted.

    Attributes:
        pass_number: Number of the repetition, or of the probe of a search for the line, from 0.
        attempt: Number of the attempt, from 0.
        started_at: When the attempt began.
        t0_nanoseconds: When all clients of its first round were armed, in Unix nanoseconds; T0 is later. Absent before.

    """

    pass_number: Count
    attempt: Count
    started_at: _Time
    t0_nanoseconds: Count | None = None


class ResultStatus(Model):
    """The measured numbers. Only the run's conductor writes them.

    Attributes:
        trials: All attempts, in the order of recording.
        in_flight: The attempt that has begun and is not recorded yet; absent between attempts.
        line: Line as far as it is known; absent if the point is measured at one load, and before the first trial.
        first_line: Line as the first attempts show it: every probe whose first attempt the storage spoiled counts as
            broken. Absent if these are the attempts that count.
        verdict: Whether the numbers are trustworthy; absent without numbers.
        findings: Failed checks, each in its worst case over the trials.
        environment: Environment of the measurement, such as nodes, versions and the size of the data set.
        final: Whether every planned trial is recorded.

    """

    trials: Annotated[tuple[Trial, ...], ServerOnly(max_length=256)] = ()
    in_flight: InFlight | None = None
    summary: Summary | None = None
    line: Line | None = None
    first_line: Line | None = None
    verdict: Verdict | None = None
    findings: _Findings = ()
    environment: Annotated[Environment, ServerOnly(shape=_AnyValues)] = Field(default_factory=Environment)
    fingerprint: Fingerprint | None = None
    final: bool = False


class BenchmarkResult(Model):
    """The result object of one point."""

    api_version: Annotated[Literal["plimsoll.dev/v1alpha1"], Field()] = "plimsoll.dev/v1alpha1"
    kind: Annotated[Literal["BenchmarkResult"], Field()] = "BenchmarkResult"
    metadata: ResultMeta
    spec: ResultSpec
    status: Annotated[ResultStatus, Field(default_factory=ResultStatus)]
