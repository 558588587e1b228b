"""The frozen plan: everything about a run that operator, conductor and agents need, fixed before it starts."""

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Annotated, Literal, Self

from pydantic import Field, JsonValue, ValidationError, model_validator

from plimsoll.api.environment import CephOption, PlatformEnvironment
from plimsoll.api.errors import Problem, SpecError, problems_of
from plimsoll.api.line import LineSearch
from plimsoll.api.model import Model
from plimsoll.api.run import BenchmarkRun, Disturbance, Gates, Limits, Servers, Timeouts
from plimsoll.api.storage import (
    RANDOM_DATA,
    DataContent,
    FileSystem,
    KeyringReference,
    NamespacedName,
    Pool,
    Prepare,
    Volume,
)
from plimsoll.tools.base import Timing, ToolParameters
from plimsoll.tools.registry import TOOLS

MAX_POINTS = 512
PLAN_FILE = "plan.json"  # name of a plan in a ConfigMap, and in a results directory
_SCHEMA_VERSION = 1
_MAX_PARTS = 2**17  # fields, entries, mappings and lists
_PREFIX = "plimsoll"


class RunIdentity(Model):
    """The identity of the plan's run."""

    name: str
    namespace: str
    uid: str


class Point(Model):
    """One combination of axis values of one workload."""

    name: str  # unique within the run: `<workload>-<number>`
    workload: str
    tool: str
    parameters: dict[str, JsonValue]  # the tool's scalar parameters, defaults included
    label: str  # a short description of the parameters
    clients: int  # number of the run's clients that take part
    runtime_seconds: int
    ramp_seconds: int
    shares_file: bool = False  # whether all clients work on one file of a shared volume
    reads_next_client: bool = False  # whether each client reads the data set of the next one
    warm_caches: bool = False  # whether the storage's own caches are meant to answer reads
    line: LineSearch | None = None  # the search for the line, whose trials have other loads; None without one
    disturb: Disturbance | None = None  # the OSDs that each trial takes away; None if it takes none
    # Of a search for the storm line, the search without the disturbance, whose line is an upper bound; None of others.
    calm: str | None = None

    @property
    def timing(self) -> Timing:
        return Timing(ramp_seconds=self.ramp_seconds, runtime_seconds=self.runtime_seconds)

    @property
    def typed_parameters(self) -> ToolParameters:
        """The parameters in the model of the tool; ValidationError if this version of the tool has others."""
        parameters: ToolParameters = TOOLS[self.tool].parameters.model_validate(self.parameters)
        return parameters


class FileSystemTarget(Model):
    """The CephFS file system that a run measures."""

    name: str  # in Ceph, and of the CephFilesystem
    made: FileSystem | None = None  # specification, if it is created for this run


class CephTarget(Model):
    """The Ceph cluster that a run measures, and the run's objects in it, by their names in Ceph."""

    rook: NamespacedName | None = None  # the CephCluster object; absent without Rook
    monitors: tuple[str, ...] = ()  # addresses; empty with Rook, where they are looked up when the run begins
    pool: str  # pool of images and objects; of a file system, the pool of its metadata
    data_pool: str | None = None  # pool of the images' or files' data; absent if it is the same
    default_data_pool: str | None = None  # the default data pool of a file system; absent if it is `data_pool`
    made: Pool | None = None  # specification of the pool for data, if it is created for this run
    file_system: FileSystemTarget | None = None  # the file system; absent if the run measures a pool
    conductor_user: str  # CephX user of the conductor, without `client.`
    agent_user: str  # CephX user of the agents
    keyring: KeyringReference | None = None  # Secret with the keys of both users; absent with Rook
    options: tuple[CephOption, ...] = ()  # options of the OSDs that the conductor sets while the run measures
    actions: tuple[str, ...] = ()  # how the conductor takes OSDs away in trials: `Down`, `Out`; empty if it does not
    neighbours: tuple[str, ...] = ()  # pools of others that may suffer from that, or `*`

    @property
    def has_record(self) -> bool:
        """Whether the conductor changes what the monitors' store has a record of: options, or OSDs."""
        return bool(self.options or self.actions)

    @property
    def pools(self) -> tuple[str, ...]:
        """All pools of the run's I/O, the data's last."""
        pools = (self.pool, self.default_data_pool, self.data_pool)
        return tuple(pool for pool in pools if pool is not None)

    @property
    def metadata_pools(self) -> tuple[str, ...]:
        """The pools that only metadata servers read and write."""
        return (self.pool,) if self.file_system else ()

    @property
    def note_pool(self) -> str:
        """The pool in which the conductor records its changes; for a file system, its data pool."""
        return self.pools[-1] if self.file_system else self.pool

    @property
    def pools_by_note(self) -> tuple[str, ...]:
        """All pools, the note's first."""
        return (self.note_pool, *(pool for pool in self.pools if pool != self.note_pool))

    @property
    def made_pools(self) -> Mapping[str, Pool]:
        """Name -> specification of the pools that are created as requested."""
        made = self.file_system.made if self.file_system else None
        if made is not None:
            return dict(zip(self.pools, (made.metadata_pool, *made.data_pools), strict=True))
        return {} if self.made is None else {self.pools[-1]: self.made}


class ControlPlane(Model):
    """How a run loads the control plane."""

    helper: NamespacedName  # Service of the helper that runs kube-burner
    certificate: str  # of the helper, PEM: the client trusts only this one
    storage_class: str  # of the PVCs that it creates


class Plan(Model):
    """A frozen run."""

    schema_version: Literal[1] = 1
    run: RunIdentity
    runner_image: str = ""
    seed: int  # determines the order and every client's random numbers
    clients: int  # number of the run's clients, without servers
    servers: Servers | None = None  # members after the clients that serve them; None without any
    repetitions: int
    points: Annotated[tuple[Point, ...], Field(min_length=1, max_length=MAX_POINTS)]
    order: tuple[tuple[int, ...], ...]  # for each pass, the indices of `points` in the order of measurement
    volume: Volume | None  # the volume of each client; None if no workload uses one
    ceph: CephTarget | None = None  # None if the storage is not known to be Ceph
    network_bytes_per_second: int | None = None  # from the specification; None if absent
    cache_helper: NamespacedName | None = None  # Service of the helpers that drop the caches of nodes, if there are any
    control_plane: ControlPlane | None = None  # None if no tool creates PVCs itself
    environment: PlatformEnvironment = PlatformEnvironment()  # known facts of the platform before the run
    prepare: Prepare
    gates: Gates
    limits: Limits = Limits()
    timeouts: Timeouts

    @model_validator(mode="after")
    def _check_consistency(self) -> Self:
        every_point = list(range(len(self.points)))
        if len(self.order) != self.repetitions or any(sorted(indices) != every_point for indices in self.order):
            remedy = f"must contain each of the {len(self.points)} points once in each of {self.repetitions} passes"
            raise SpecError([Problem(field="order", remedy=f"{remedy}; the plan is damaged")])
        if len({point.name for point in self.points}) != len(self.points):
            raise SpecError([Problem(field="points", remedy="must have unique names; the plan is damaged")])
        return self

    @property
    def has_images(self) -> bool:
        """Whether each client has an RBD image, which it opens through librbd."""
        return self.volume is not None and self.volume.access == "LibRBD"

    @property
    def has_claims(self) -> bool:
        """Whether clients mount or map PVCs rather than open images through librbd."""
        return self.volume is not None and self.volume.access == "PVC"

    @property
    def renews_data_sets(self) -> bool:
        """Whether every attempt begins with a new data set."""
        return self.volume is not None and self.prepare.per_trial is not None

    @property
    def has_shared_file(self) -> bool:
        return any(point.shares_file for point in self.points)

    @property
    def data_content(self) -> DataContent:
        """The content of the data sets, on which all workloads agree."""
        contents = (point.typed_parameters.content for point in self.points)
        return next((content for content in contents if content != RANDOM_DATA), RANDOM_DATA)

    @property
    def server_count(self) -> int:
        return self.servers.count if self.servers else 0

    @property
    def members(self) -> int:
        """The number of clients and servers, which are numbered in this order. Each has a pod."""
        return self.clients + self.server_count

    def is_server(self, number: int) -> bool:
        return number >= self.clients

    @property
    def pairs(self) -> Sequence[tuple[int, Point]]:
        """The (pass, point) pairs in the order of measurement; a search for the line is one pair of the first pass."""
        return [
            (number, self.points[index])
            for number, order in enumerate(self.order)
            for index in order
            if number == 0 or self.points[index].line is None
        ]

    def point(self, name: str) -> Point:
        return {point.name: point for point in self.points}[name]


class _Versioned(Model):
    """Any version of the document; other versions may have any other fields."""

    model_config = Model.model_config | {"extra": "ignore"}

    schema_version: int


def load_plan(text: str) -> Plan:
    """Read a frozen plan; SpecError if it has another schema version, too many parts, or is damaged."""
    # Before it is parsed: an error for each part would take many times the memory of its text.
    if (parts := sum(map(text.count, ",:[{"))) > _MAX_PARTS:
        raise SpecError([Problem(field="", remedy=f"has {parts} parts, but at most {_MAX_PARTS} are allowed")])
    try:
        version = _Versioned.model_validate_json(text).schema_version
        if version != _SCHEMA_VERSION:
            text = f"is not supported by this Plimsoll, only {_SCHEMA_VERSION}; use the Plimsoll that created the plan"
            raise SpecError([Problem(field="schemaVersion", value=str(version), remedy=text)])
        return Plan.model_validate_json(text, by_alias=True, by_name=False)
    except ValidationError as error:
        raise SpecError(problems_of(error)) from error


def ceph_target(run: BenchmarkRun) -> CephTarget | None:
    storage = run.spec.storage
    actions = tuple(sorted({workload.disturb.osds.action for workload in run.spec.workloads if workload.disturb}))
    if storage is not None and storage.ceph is not None:
        ceph = storage.ceph
        return CephTarget(
            monitors=tuple(sorted(ceph.monitors)),
            pool=ceph.pool.name,
            data_pool=ceph.pool.data_pool,
            conductor_user=ceph.user,
            agent_user=ceph.user,
            keyring=ceph.keyring_secret,
            actions=actions,
        )
    if storage is None or storage.rook is None:
        return None
    rook, base = storage.rook, base_name(run.metadata.name, run.metadata.uid)
    pool, made, data_pool, default_data_pool, file_system = base, rook.pool, None, None, None
    if rook.file_system is not None:
        name = file_system_name(run.metadata.name, run.metadata.uid)
        # Rook derives the names of the pools in Ceph.
        *others, data_pool = (f"{name}-data{number}" for number in range(len(rook.file_system.data_pools)))
        pool, default_data_pool = f"{name}-metadata", others[0] if others else None
        made = rook.file_system.data_pools[-1]
        file_system = FileSystemTarget(name=name, made=rook.file_system)
    elif rook.existing_file_system is not None:
        existing = rook.existing_file_system
        pool = existing.metadata_pool or f"{existing.name}-metadata"
        data_pool = existing.data_pool or f"{existing.name}-data0"
        file_system = FileSystemTarget(name=existing.name)
    elif rook.existing_pool is not None:
        pool, data_pool = rook.existing_pool.name, rook.existing_pool.data_pool
    elif rook.pool is not None and rook.pool.erasure_coded is not None:
        data_pool = f"{base}-data"
    return CephTarget(
        rook=rook.cluster,
        pool=pool,
        data_pool=data_pool,
        default_data_pool=default_data_pool,
        made=made,
        file_system=file_system,
        conductor_user=f"{base}-conductor",
        agent_user=f"{base}-agent",
        options=rook.config,
        actions=actions,
    )


def base_name(name: str, uid: str) -> str:
    """Return `plimsoll-<run>-<digest of the UID>`, the name of a run's objects in Ceph and in Rook's namespace."""
    return f"{_PREFIX}-{name[:30].rstrip('-')}-{sha256(uid.encode()).hexdigest()[:8]}"


def file_system_name(name: str, uid: str) -> str:
    """Return the same in at most 40 characters, the limit of Rook for the name of a CephFilesystem."""
    return base_name(name[:22], uid)


def image_name(uid: str, client: int) -> str:
    return f"{image_prefix(uid)}{client}"


def image_prefix(uid: str) -> str:
    """Return the common prefix of the names of a run's RBD images, which no other run has."""
    return f"{_PREFIX}-{uid}-"


def rados_namespace(uid: str, client: int) -> str:
    """Return the RADOS namespace of a client's objects, which is also their run name."""
    return f"{_PREFIX}-{uid}-{client}"


def flags_object(uid: str) -> str:
    """Return the RADOS object in which the conductor records the flags that it sets on the pool."""
    return f"{_PREFIX}-{uid}.flags"


def options_key(uid: str) -> str:
    """Return the key, in the monitors' store, of the record of the options that the conductor sets, and of OSDs."""
    return f"{_PREFIX}/{uid}/options"


def owner_of_options(key: str) -> str | None:
    """Return the UID of the run whose options are recorded under a key; None for other keys."""
    uid = key.removeprefix(f"{_PREFIX}/").removesuffix("/options")
    return uid if key == options_key(uid) else None
