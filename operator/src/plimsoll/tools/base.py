"""The seam every tool fits.

A tool says what it runs against (`target`), who takes part (`roles`), in which `steps`, whether its clients overlap
in time (`windowed`) and what it knows of latency. It turns typed parameters into a command and the command's output
into a `Measurement`; it never runs anything itself.

How the tools of the published Ceph studies fit:

| tool | target | roles | steps | windowed | latency |
|---|---|---|---|---|---|
| fio on a volume | volume | each | measure | yes | full |
| fio through librbd | image | each | measure | yes | full |
| ioping | volume | each | measure | yes | full |
| rados bench write | pool | each | measure, clean up | yes | meanOnly |
| rados bench seq, rand | pool | each | prepare (write), measure, clean up | yes | meanOnly |
| rbd bench | image | each | measure | yes | none |
| iperf3, netperf | peer | server and client | measure | yes | none |
| ceph tell osd bench | OSDs | one actor | measure | no | none |
| bonnie++, IOR | volume | each | measure | no | meanOnly |
| dd | volume | each | measure | no | none |
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar, Protocol

from plimsoll.api.model import Model
from plimsoll.api.names import LatencyKind
from plimsoll.api.state import LiveRate
from plimsoll.measure.sample import Measurement


class TargetKind(StrEnum):
    """What a tool does its I/O against.

    `volume` is whatever the client's data set is: a file, a block device, an RBD image; `image` is an RBD image only.
    """

    VOLUME = "volume"
    IMAGE = "image"
    POOL = "pool"
    PEER = "peer"
    OSDS = "osds"


class Roles(StrEnum):
    """Who takes part."""

    EACH = "each"
    SERVER_AND_CLIENT = "serverAndClient"
    ACTOR = "actor"


ACTOR_CLIENT = 0
"""Which client runs the tools of one actor: no other gets what only these need, such as an administrator's key."""


class StepKind(StrEnum):
    """What a step is for. Only `measure` is timed and judged."""

    PREPARE = "prepare"
    MEASURE = "measure"
    CLEAN_UP = "cleanUp"


class ToolParameters(Model):
    """The parameters of one point: scalars, and names of objects.

    Attributes:
        axes: JSON names of the fields that a workload writes as a list of values to sweep over.
        credentials: JSON names of the fields that say by what right something is measured, not what.

    """

    axes: ClassVar[frozenset[str]]
    credentials: ClassVar[frozenset[str]] = frozenset()

    @property
    def reads_data(self) -> bool:
        """Whether the measurement reads what an earlier step must have written."""
        return False

    @property
    def removes_data(self) -> bool:
        """Whether what the data set held is gone afterwards, so that extents are unwritten again."""
        return False

    def preparation_seconds(self, timing: "Timing") -> int:  # noqa: ARG002 - for the tools that do prepare
        """Return how long the `prepare` step of every trial takes, if the tool has one."""
        return 0

    def label(self) -> str:
        """Return the parameters as people say them: `randwrite 4Ki depth 16`."""
        raise NotImplementedError


class VolumeKind(StrEnum):
    """How a volume appears to a client."""

    FILE = "file"
    DEVICE = "device"


@dataclass(frozen=True, slots=True, kw_only=True)
class VolumeTarget:
    """The client's data set: `size` bytes from `offset` of a file or block device.

    Both are multiples of 1 MiB: direct I/O needs alignment, and a prefill of whole MiB then misses no byte.
    """

    kind: VolumeKind
    path: str
    size: int
    offset: int = 0

    @property
    def name(self) -> str:
        """Return what people call it."""
        return self.path


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageTarget:
    """The client's RBD image, reached through librbd as the CephX user `user` (without `client.`).

    `cache` is whether librbd's writeback cache is on. The size is a multiple of 1 MiB.
    """

    pool: str
    image: str
    user: str
    size: int
    cache: bool = False

    @property
    def name(self) -> str:
        """Return what people call it."""
        return f"{self.pool}/{self.image}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolTarget:
    """The client's own part of a RADOS pool: a namespace, and a run name that its objects carry."""

    pool: str
    namespace: str
    run_name: str
    user: str

    @property
    def name(self) -> str:
        """Return what people call it."""
        return f"{self.pool}/{self.namespace}"


@dataclass(frozen=True, slots=True, kw_only=True)
class OsdsTarget:
    """All OSDs of a cluster, reached with an administrator's key: `keyring` is the path of its file."""

    keyring: str

    @property
    def name(self) -> str:
        """Return what people call it."""
        return "all OSDs"


DataSet = VolumeTarget | ImageTarget
"""What is prefilled, and read and written afterwards."""

Target = VolumeTarget | ImageTarget | PoolTarget | OsdsTarget


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Seconds of warm-up that do not count, then seconds that do."""

    ramp_seconds: int
    runtime_seconds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StepContext:
    """Everything a command depends on besides the parameters.

    Attributes:
        step: which of the tool's steps.
        target: what the I/O is done against, of the kind that the tool's `target` names.
        timing: how long to run.
        seed: of the random generator; differs between clients, passes and points.
        work_directory: empty directory of this step, for the tool's own output files.

    """

    step: StepKind
    target: Target
    timing: Timing
    seed: int
    work_directory: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """What to run. `argv[0]` is the tool's name, which the agent resolves, or `timeout` in front of it."""

    argv: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """What a command left behind.

    Attributes:
        exit_code: negative is the signal that ended it.
        stdout: text, bounded by the agent.
        stderr: text, bounded by the agent.
        files: name -> text of every file in the work directory.
        launched_at: when the command was started; Unix nanoseconds, 0 if unknown.
        finished_at: when it had ended; likewise.

    """

    exit_code: int
    stdout: str
    stderr: str
    files: Mapping[str, str]
    launched_at: int = 0
    finished_at: int = 0


class OutputError(ValueError):
    """A tool's output cannot be read; the message names the missing field or the broken place."""


class Tool(Protocol):
    """One tool.

    Attributes:
        program: what it is called on the command line; it answers to `--version`.
        least_runtime_seconds: three intervals of its series over time, of which the first and the last may be cut; what
            is shorter has no time within it that was measured as a whole. 0 for a tool that does not run for a time.

    """

    key: ClassVar[str]
    program: ClassVar[str]
    parameters: ClassVar[type[ToolParameters]]
    target: ClassVar[TargetKind]
    roles: ClassVar[Roles]
    windowed: ClassVar[bool]
    latency: ClassVar[LatencyKind]
    least_runtime_seconds: ClassVar[int]

    def steps(self, parameters: ToolParameters) -> Sequence[StepKind]:
        """Return the steps of one trial, in order."""
        ...

    def command(self, parameters: ToolParameters, context: StepContext) -> Command:
        """Return the command of a step.

        Raises:
            ValueError: the parameters do not fit the target, as when it is smaller than one block.

        """
        ...

    def live(self, parameters: ToolParameters, said: str) -> tuple[LiveRate, ...]:
        """Return the newest rates in the end of what a tool has printed until now, while it measures.

        The text may begin and break off anywhere. Empty if the tool says nothing of its rates, or has not yet.
        """
        ...

    def parse(self, parameters: ToolParameters, context: StepContext, output: Output) -> Measurement:
        """Read the output of the measuring step.

        Raises:
            OutputError: naming what is missing or broken. A field that is merely unknown becomes a warning.

        """
        ...
