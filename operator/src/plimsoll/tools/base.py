"""The interface of a tool, which turns typed parameters into a command, and its output into a `Measurement`."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import PurePosixPath
from typing import Annotated, Any, ClassVar, Generic, Self, TypeAlias, TypeVar

from pydantic import Field

from plimsoll.api.json_reader import OutputError
from plimsoll.api.line import Vary
from plimsoll.api.model import BlockSize, Integer, Model, Rule, ServerOnly, Size
from plimsoll.api.names import Layer, Operation
from plimsoll.api.run import RunSpec, Workload
from plimsoll.api.status import LiveRate
from plimsoll.api.storage import RANDOM_DATA, DataContent, KeyringReference, Volume
from plimsoll.measure.intake import Skew
from plimsoll.measure.rates import ALL_QUANTITIES, Quantities
from plimsoll.measure.sample import Measurement
from plimsoll.tools.cast import (
    ACTOR_CLIENT,
    Cast,
    CastSize,
    Pairing,
    RosterMember,
    all_at_once,
    choose_clients,
    paired,
    paired_size,
    serving_port,
)
from plimsoll.tools.target import PeerTarget, Target, TargetKind, VolumeTarget

ASSUMED_WRITE_BYTES_PER_SECOND = 100 * 2**20  # a guess for one client; the real rate is unknown before the run
DIE_WITH_PARENT = ("setpriv", "--pdeathsig", "KILL", "--")
"""In front of a command: the kernel kills it when its parent dies, for whatever reason, but not its own children."""


def ended_by_signal(seconds: int, signal: str, *argv: str) -> tuple[str, ...]:
    """Return a command line that `timeout` ends with a signal, and the kernel if `timeout` dies, as with the agent."""
    limit = ("timeout", "--foreground", "--preserve-status", f"--signal={signal}", str(seconds))
    return (*limit, *DIE_WITH_PARENT, *argv)


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldInput:
    """How a slow command is started before it may begin: it waits for the rest of its standard input."""

    arguments: tuple[str, ...]  # with which the command reads its input
    unfinished: str  # written while arming; the command reads it once it is ready to begin
    rest: str  # written at T0; without it, the command must not begin, because the input also ends if the agent dies


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command line, and others that run at the same time. It runs in the empty `StepContext.work_directory`."""

    # It begins with a program of the image, which the agent resolves. Empty for a step that only writes `inputs`.
    argv: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    stdin: str = "/dev/null"  # path of its standard input
    # Name -> lines, with their ends, of files that the agent writes in the work directory before the start
    inputs: Mapping[str, Iterable[str]] = field(default_factory=dict)
    # If set, the agent ends the command after this time, which is its success. Instead of its standard output, the
    # agent prints a line every second and at the end: Unix nanoseconds, and the bytes that it has read so far (`rchar`
    # of `proc_pid_io(5)`).
    metered_seconds: int = 0
    # The address of the only peer that it serves; empty for no such limit. `PeerTool` sets it, and the agent preloads a
    # library, which prints `accepting only ADDRESS` when the command listens.
    accepts_only: str = ""
    held: HeldInput | None = None  # how it can be started before it may begin, if it can, without companions
    parallel: "tuple[Command, ...]" = ()  # commands that start with it. If one of them fails, all are ended.

    @property
    def all(self) -> "tuple[Command, ...]":
        """The command and the others that start with it."""
        return (self, *self.parallel)


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """The output of a command."""

    exit_code: int  # negative for the signal that ended it
    stdout: str  # bounded by the agent, like `stderr`
    stderr: str
    files: Mapping[str, str]  # name -> text of every other file in the work directory
    # Start of the command, or the completion of its input if it was held, in Unix nanoseconds; 0 if unknown.
    launched_at: int = 0
    finished_at: int = 0  # its end, in Unix nanoseconds; 0 if unknown
    parallel: "tuple[Output, ...]" = ()  # outputs of the commands that started with it; empty if a command failed

    @property
    def all(self) -> "tuple[Output, ...]":
        """The output and the outputs of the commands that started with it."""
        return (self, *self.parallel)


T = TypeVar("T")


class StepKind(StrEnum):
    """The purpose of a step. Only `measure` is timed and judged; a serving client runs only `serve`."""

    PREPARE = "prepare"
    SERVE = "serve"
    MEASURE = "measure"
    CLEAN_UP = "cleanUp"


class ToolParameters(Model):
    """The parameters of one point: scalars, and names of objects."""

    axes: ClassVar[frozenset[str]] = frozenset()  # JSON names of the fields that are lists of values to sweep over
    depth_axis: ClassVar[str] = ""  # the axis with the operations in flight of a client; empty if there is none
    size_axis: ClassVar[str] = ""  # the axis with the size of an operation; empty if there is none
    # JSON names of the fields that grant access and do not change what is measured
    credentials: ClassVar[frozenset[str]] = frozenset()
    workload_rules: ClassVar[tuple[Rule, ...]] = ()  # for a workload with this tool; `holds` gets a `WorkloadPoint`
    run_rules: ClassVar[tuple[Rule, ...]] = ()  # for its run, which `command` relies on; `holds` gets an `ExpandedRun`
    # What a search for the line can vary -> JSON names of the fields that then hold the load
    load_fields: ClassVar[Mapping[Vary, tuple[str, ...]]] = {}
    reads_when: ClassVar[str] = ""  # `reads_data` as a CEL condition, of a tool whose data the prefill writes

    @property
    def reads_data(self) -> bool:
        """Whether the measurement reads what the prefill or the step `prepare` wrote; False with `own_files`."""
        return False

    @property
    def at_random(self) -> bool:
        """Whether operations visit random places, some again before all were visited."""
        return False

    @property
    def skew(self) -> Skew | None:
        """How operations at random places prefer some blocks; None if all are equally likely."""
        return None

    @property
    def content(self) -> DataContent:
        """The content of the written data, and of the data set before."""
        return RANDOM_DATA

    @property
    def removes_data(self) -> bool:
        """Whether the measurement leaves unwritten extents in the data set."""
        return False

    @property
    def shares_file(self) -> bool:
        """Whether all clients work on one file of a shared volume, each on its own region."""
        return False

    @property
    def reads_next_client(self) -> bool:
        """Whether each client reads the data set of the next client that takes part."""
        return False

    @property
    def administrator_keyring(self) -> KeyringReference | None:
        """The Secret with the administrator's key, if the measurement needs one."""
        return None

    @property
    def limited(self) -> Mapping[str, int]:
        """JSON names of the numbers that an administrator limits -> their values."""
        return {}

    def writing_seconds(self, timing: "Timing") -> int:
        """Return for how long a client may write data in each trial, in the step `prepare` too."""
        return 0 if self.reads_data else timing.total_seconds

    @property
    def most_written_per_second(self) -> float | None:
        """The bytes that a client writes per second; None if only the storage limits them."""
        return None

    def preparation_seconds(self, timing: "Timing") -> int:
        """Return how long the step `prepare` of each trial writes data: the plan's estimate, and time to stage it."""
        return 0

    def load_step(self, vary: Vary) -> int:
        """Return the step between loads of one client in a search for the line; 0 if the tool cannot vary that."""
        return 0

    def at_load(self, vary: Vary, load: int) -> Self:
        """Return the parameters with which each client offers this load, a multiple of `load_step`."""
        raise NotImplementedError

    def most_load(self, vary: Vary, timing: "Timing") -> int:
        """Return the highest load that one client can offer in one trial; 0 if the tool cannot vary that."""
        return 0

    @property
    def offered_rates(self) -> Mapping[Operation, float]:
        """Operation -> operations per second that are due on each client; empty if nothing limits their rate."""
        return {}

    @property
    def is_open_loop(self) -> bool:
        """Whether operations are due at random times, which do not depend on the storage."""
        return False

    @property
    def shares(self) -> Mapping[Operation, int]:
        """Operation -> percent of all operations; empty if the tool does not set them."""
        return {}

    @property
    def most_in_flight(self) -> int | None:
        """Operations that one client can have in flight, however many are due; None if nothing limits them."""
        return None

    def search_label(self, vary: Vary) -> str:
        """Return the label of the parameters without the load that a search varies."""
        return self.label()

    def label(self) -> str:
        """Return a short description of the parameters: `randwrite 4Ki depth 16`."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """The unmeasured warm-up, and the measured time after it."""

    ramp_seconds: int
    runtime_seconds: int

    @property
    def total_seconds(self) -> int:
        """Both together: how long a tool that ends by time runs."""
        return self.ramp_seconds + self.runtime_seconds

    @property
    def slice_seconds(self) -> int:
        """Width of a slice of latency over time: a twentieth of the runtime, at most 5 s, but at most 120 slices."""
        return max(1, min(5, self.runtime_seconds // 20), -(-self.runtime_seconds // 120))


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadPoint:
    """One point of a workload, about which `workload_rules` are asked."""

    workload: Workload
    parameters: ToolParameters

    @property
    def vary(self) -> Vary | None:
        """What a search for the line varies; None without a search."""
        return self.workload.line.vary if self.workload.line else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpandedRun:
    """A run with the points of all its workloads, about which `run_rules` are asked."""

    spec: RunSpec
    points: Sequence[WorkloadPoint]

    @property
    def volume(self) -> Volume | None:
        """The volume of each client."""
        return self.spec.storage.volume if self.spec.storage else None

    @property
    def opens_images(self) -> bool:
        """Whether clients open RBD images through librbd."""
        return self.volume is not None and self.volume.access == "LibRBD"

    def points_of(self, *keys: str) -> list[WorkloadPoint]:
        """Return the points of the tools with these keys."""
        return [point for point in self.points if point.workload.tool in keys]


@dataclass(frozen=True, slots=True, kw_only=True)
class StepContext:
    """Everything that a command depends on, except the parameters."""

    step: StepKind
    target: Target  # of the kind that the tool declares
    timing: Timing
    seed: int  # for the random generator; differs between clients, passes and points
    # An empty directory for the tool's output files, which the agent reads, hashes and archives
    work_directory: str
    client: int = 0  # number of the client that runs the command
    as_root: bool = False  # whether root runs the command, for which some programs need an option

    @property
    def prepared_directory(self) -> str:
        """The work directory of the step `prepare`, whose files are kept until the next trial is staged."""
        return str(PurePosixPath(self.work_directory).with_name(StepKind.PREPARE.value))

    @property
    def own_directory(self) -> str:
        """The directory for the files of a tool with `own_files`, next to the data set; no other client uses it."""
        return f"{self.target_of(VolumeTarget).path}.{self.client}.files"

    def target_of(self, kind: type[T]) -> T:
        """Return the target as the kind that the tool works on; TypeError if it is another."""
        if not isinstance(self.target, kind):
            raise TypeError(f"the tool needs a {kind.__name__}, not a {type(self.target).__name__}")
        return self.target


P = TypeVar("P", bound=ToolParameters)


class Tool(ABC, Generic[P]):
    """One tool and its declarations."""

    key: ClassVar[str]  # its name in a workload
    program: ClassVar[str]  # its executable, which prints its version with `version_argument`; see `version`
    version_argument: ClassVar[str] = "--version"
    layer: ClassVar[Layer]  # what it loads; its results are compared with the results of the layer below
    quantities: ClassVar[Quantities] = ALL_QUANTITIES  # whether it counts operations, and measures pairs of clients
    target: ClassVar[TargetKind]  # where it does its I/O
    runs_alone: ClassVar[bool] = False  # whether one client runs it for all
    opens_images: ClassVar[bool] = False  # whether it also opens the RBD image of a volume with access LibRBD
    # Whether it writes files of its own in `StepContext.own_directory`, in place of the data set, on a file system
    own_files: ClassVar[bool] = False
    windowed: ClassVar[bool] = True  # whether it runs for a given time, so that its clients overlap
    has_server: ClassVar[bool] = True  # whether serving clients run the step `serve`; otherwise their kernels answer
    # Whether the end of the client's connection ends the server, with any exit code
    server_ends_with_client: ClassVar[bool] = False
    sysctls: ClassVar[Mapping[str, str]] = {}  # safe sysctls that the pods of its clients need
    creates_claims: ClassVar[bool] = False  # whether it creates PVCs itself, through the helper for that
    # Three intervals of its time series, since the first and the last may be incomplete; a tenth of the least time of
    # its work if it is not windowed; 0 without such a limit
    least_runtime_seconds: ClassVar[int] = 0
    parameters: type[P]  # the model that validates its parameters

    def steps(self, parameters: P) -> Sequence[StepKind]:
        """Return the steps of one trial in order, without `serve`."""
        return (StepKind.PREPARE, StepKind.MEASURE, StepKind.CLEAN_UP) if self.own_files else (StepKind.MEASURE,)

    def cast(self, parameters: P, roster: Sequence[RosterMember], clients: int) -> Cast:
        """Return who takes part in a trial with that number of clients, chosen from the roster."""
        return all_at_once((ACTOR_CLIENT,) if self.runs_alone else choose_clients(roster, clients))

    def cast_size(self, parameters: P, clients: int, servers: int) -> CastSize:
        """Return the size of that cast with the run's servers; one without rounds, or too large, is refused."""
        return CastSize(rounds=1, pairs=0, loading=1 if self.runs_alone else clients)

    def version(self, output: Output) -> str | None:
        """Return the version from what the program prints with `version_argument`; None if it cannot be run."""
        return (output.stdout or output.stderr).strip().partition("\n")[0] if output.exit_code == 0 else None

    @abstractmethod
    def command(self, parameters: P, context: StepContext) -> Command:
        """Return the command of a step; ValueError if the parameters do not fit the target, as too large a block."""

    def written_by_prepare(self, parameters: P, output: Output) -> int | None:
        """Return the bytes that the step `prepare` wrote, which replace `Measurement.data_bytes`; None if unknown."""
        return None

    def ends_when_done(self, parameters: P) -> bool:
        """Whether the load ends when its work is done, and the runtime only limits it."""
        return False

    def is_serving(self, parameters: P, printed: str) -> bool:
        """Whether clients can connect, according to the last output of a serving command."""
        return True

    def live(self, parameters: P, printed: str) -> tuple[LiveRate, ...]:
        """Return the current rates from the last output of a running measurement, which may be cut at both ends."""
        return ()

    @abstractmethod
    def parse(self, parameters: P, context: StepContext, output: Output) -> Measurement:
        """Read the output of the measuring step; OutputError if it is malformed. Unknown fields are ignored."""

    def read(self, parameters: P, context: StepContext, output: Output, *, version: str = "") -> Measurement:
        """Return what `parse` reads, with the tool's key, and with its program's version if the output has none."""
        measurement = self.parse(parameters, context, output)
        version = measurement.tool_version or version.removeprefix(f"{self.key} ")
        return measurement.model_copy(update={"tool": self.key, "tool_version": version})


class PeerParameters(ToolParameters):
    """The parameters of a tool between two clients."""

    pairing: Annotated[
        Pairing,
        Field(
            description="EachPair loads one pair at a time, until every client has loaded every server; OneToAll lets "
            "one client at a time load all servers; AllAtOnce lets all clients load one server each at the same time."
        ),
    ] = Pairing.EACH_PAIR


class PeerTool(Tool[P]):
    """A tool between two clients; its parameters are `PeerParameters`."""

    layer: ClassVar[Layer] = Layer.NETWORK
    target: ClassVar[TargetKind] = TargetKind.PEER
    least_runtime_seconds: ClassVar[int] = 3

    @abstractmethod
    def peer_command(self, parameters: P, context: StepContext, address: str, port: int) -> Command:
        """Return the command that loads a peer, or serves it in the step `serve`, on the port of the pair."""

    def command(self, parameters: P, context: StepContext) -> Command:
        serves, commands = context.step is StepKind.SERVE, []
        for peer, address in context.target_of(PeerTarget).addresses.items():
            port = serving_port(context.client, peer) if serves else serving_port(peer, context.client)
            command = self.peer_command(parameters, context, address, port)
            commands.append(replace(command, accepts_only=address if serves else ""))
        first, *others = commands
        return replace(first, parallel=tuple(others))

    def is_serving(self, parameters: P, printed: str) -> bool:
        return "accepting only " in printed

    def outputs(self, context: StepContext, output: Output) -> Mapping[int, Output]:
        """Return peer -> the output of its command; OutputError if commands or peers are missing."""
        peers = context.target_of(PeerTarget).addresses
        if len(output.all) != len(peers):
            raise OutputError(f"{len(output.all)} commands of {self.program} ended for {len(peers)} peers")
        return dict(zip(peers, output.all, strict=True))

    def cast(self, parameters: Any, roster: Sequence[RosterMember], clients: int) -> Cast:  # noqa: ANN401 - as above
        return paired(parameters.pairing, roster, clients)

    def cast_size(self, parameters: Any, clients: int, servers: int) -> CastSize:  # noqa: ANN401 - as above
        return paired_size(parameters.pairing, clients, servers)


AnyTool: TypeAlias = Tool[Any]  # a tool of the registry, whose parameters its own model has validated
BLOCK_DESCRIPTION = "A number of bytes such as 512 or 4096, or a quantity such as 4Ki or 1Mi."
BlockBytes: TypeAlias = Annotated[
    BlockSize, Field(ge=512, le=64 * 2**20, multiple_of=512, description=BLOCK_DESCRIPTION)
]
"""Size of an operation on a volume or an image."""
MAX_DEPTH = 1024
Depth: TypeAlias = Annotated[Integer, Field(ge=1, le=MAX_DEPTH, description="Operations in flight.")]

MebiBytes: TypeAlias = Annotated[
    Size,
    Field(
        ge=2**20,
        le=2**44,
        multiple_of=2**20,
        description="A number of bytes such as 1048576, or a quantity such as 64Mi or 32Gi.",
    ),
    ServerOnly(pattern=r"^([1-9][0-9]{0,3}(Mi|Gi)|([1-9]|1[0-6])Ti)$"),
]
"""Size of files, from 1Mi to 16Ti."""
