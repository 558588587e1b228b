"""The environment of a result, as far as known: unknown facts are absent, and unreadable ones are kept as they are."""

from collections.abc import Iterable, Mapping
from typing import Annotated, Self

from pydantic import (
    Field,
    JsonValue,
    ModelWrapValidatorHandler,
    SerializerFunctionWrapHandler,
    Strict,
    ValidationError,
    model_serializer,
    model_validator,
)

from plimsoll.api.model import Flag, Integer, Model

Number = Integer | Annotated[float, Strict()]  # keeps whole numbers whole: digests of fingerprints depend on their form
Counts = dict[str, Integer]  # number of occurrences by name; `others` sums up unnamed ones
TextFact = str | tuple[str, ...]
"""A fact reported by clients: its value, or all values if the clients differ. The other facts have the same form."""

CountFact = Integer | tuple[Integer, ...]
FlagFact = Flag | tuple[Flag, ...]
ToolsFact = dict[str, str] | tuple[dict[str, str], ...]


class Description(Model):
    """A part of an environment."""

    model_config = Model.model_config | {"extra": "allow"}

    def document(self) -> dict[str, JsonValue]:
        return self.model_dump(mode="json")

    @model_validator(mode="wrap")
    @classmethod
    def _keep_unreadable_fields(cls, value: object, handler: ModelWrapValidatorHandler[Self]) -> Self:
        try:
            return handler(value)
        except ValidationError as error:
            # Nested descriptions handle their own errors, so the fields named here are unreadable as a whole.
            unreadable = {problem["loc"][0] for problem in error.errors(include_url=False) if problem["loc"]}
            if not isinstance(value, Mapping) or not unreadable & value.keys():
                raise
            description = handler({name: part for name, part in value.items() if name not in unreadable})
            if description.model_extra is not None:
                description.model_extra.update({name: part for name, part in value.items() if name in unreadable})
            return description

    @model_serializer(mode="wrap")
    def _omit_unknown_facts(self, handler: SerializerFunctionWrapHandler) -> dict[str, JsonValue]:
        """Return the known fields sorted by name, as an API server returns them."""
        fields = {**handler(self), **(self.model_extra or {})}
        return {name: fields[name] for name in sorted(fields) if fields[name] is not None}


class Extremes(Description):
    """The smallest and the largest value."""

    min: Integer
    max: Integer


class Quantiles(Description):
    """The distribution of one quantity."""

    min: Number
    median: Number
    max: Number


STATIC = "kubernetes.io/no-provisioner"
"""The provisioner of a StorageClass whose PersistentVolumes an administrator creates."""


class StorageClassDescription(Description):
    """A StorageClass, with Kubernetes' field names."""

    name: str | None = None
    provisioner: str | None = None
    parameters: dict[str, str] | None = None
    mount_options: tuple[str, ...] | None = None
    reclaim_policy: str | None = None
    volume_binding_mode: str | None = None
    allow_volume_expansion: Flag | None = None


class RookDescription(Description):
    """A Rook cluster."""

    ceph_version: str | None = None


class CapacityDescription(Quantiles):
    """The IOPS capacity that mClock assumes for the OSDs of one device class."""

    equal: Flag  # whether all OSDs have the same capacity
    osds: Integer  # number of OSDs with a known capacity


class OsdSettingsDescription(Description):
    """The settings of the OSDs: how many have which value."""

    mclock_profiles: Counts | None = None
    queues: Counts | None = None
    cluster_modes: Counts | None = None
    service_modes: Counts | None = None
    capacity_iops: dict[str, CapacityDescription] | None = None
    memory_target_bytes: Quantiles | None = None


class OsdsDescription(Description):
    """All OSDs of a cluster: counts, and distributions of quantities."""

    count: Integer | None = None
    up: Integer | None = None
    members: Annotated[Integer | None, Field(alias="in")] = None
    hosts: Integer | None = None
    failure_hosts: Integer | None = None
    device_classes: Counts | None = None
    devices: Counts | None = None
    rotational: Integer | None = None
    object_stores: Counts | None = None
    kernels: Counts | None = None
    processors: Counts | None = None
    size_bytes: Quantiles | None = None
    utilisation: Quantiles | None = None
    placement_groups: Quantiles | None = None


class PoolLayout(Description):
    """The data layout of a pool, without any names."""

    type: str | None = None
    size: Integer | None = None
    data_chunks: Integer | None = None
    coding_chunks: Integer | None = None
    plugin: str | None = None  # of the erasure code, as its technique
    technique: str | None = None
    stripe_unit: Integer | None = None  # bytes of a stripe that one chunk holds
    # Whether writes and reads touch only the chunks that they need (`allow_ec_optimizations`); absent if not
    ec_optimizations: Flag | None = None
    failure_domain: str | None = None
    device_class: str | None = None
    crush_root: str | None = None  # absent if it is `default`
    pg_num: Integer | None = None
    compression: str | None = None
    metadata: "PoolLayout | None" = None  # the layout of the separate pool for image headers, if there is one


class PoolDescription(PoolLayout):
    """A pool with its settings."""

    name: str | None = None
    min_size: Integer | None = None
    pg_num_target: Integer | None = None
    pgp_num: Integer | None = None
    autoscale_mode: str | None = None
    flags: tuple[str, ...] | None = None
    options: dict[str, str] | None = None
    applications: tuple[str, ...] | None = None


class ImageDescription(Description):
    """An RBD image."""

    object_size: Integer | None = None
    features: tuple[str, ...] | None = None


class FileSystemDescription(Description):
    """A CephFS file system."""

    name: str | None = None
    metadata_servers: Integer | None = None  # number of metadata servers that should be active
    data_pools: Integer | None = None  # number of its data pools


class CephDescription(Description):
    """A Ceph cluster."""

    fsid: str | None = None
    # The version of the daemons that numbers depend on; if they have several, the number of each by kind of daemon
    versions: str | dict[str, Counts] | None = None
    osds: OsdsDescription | None = None
    settings: OsdSettingsDescription | None = None
    cluster_flags: tuple[str, ...] | None = None
    # Failing health checks, even if they are muted, and their severities
    health_checks: dict[str, str] | None = None
    used_ratio: Number | None = None
    pools: tuple[PoolDescription, ...] | None = None
    client_path: str | None = None  # how clients access a pool: `librbd`, `PVC`, `CephFS` or `rados`
    image: ImageDescription | None = None
    file_system: FileSystemDescription | None = None
    # Options of the OSDs that were set for the run: whose they are -> name -> value
    options: dict[str, dict[str, str]] | None = None
    unread: tuple[str, ...] | None = None  # reasons why the output of commands could not be read


class PlatformEnvironment(Description):
    """The environment that a plan knows."""

    kubernetes: str | None = None  # version of the cluster
    # StorageClass of the volumes; only its name if nothing else is known
    storage_class: StorageClassDescription | str | None = None
    rook: RookDescription | None = None


class Environment(PlatformEnvironment):
    """The complete environment of a result."""

    nodes: tuple[str, ...] | None = None  # nodes of the clients, up to a limit
    node_count: Integer | None = None  # number of all nodes with clients
    data_set_bytes: Extremes | None = None  # size of the clients' data sets
    kernel: TextFact | None = None
    architecture: TextFact | None = None
    processors: CountFact | None = None
    memory_bytes: CountFact | None = None
    cpu_model: TextFact | None = None
    cpu_governor: TextFact | None = None
    clock_source: TextFact | None = None
    volume_file_system: TextFact | None = None
    volume_source: TextFact | None = None
    volume_device: TextFact | None = None
    volume_discards: FlagFact | None = None
    volume_access: TextFact | None = None
    tools: ToolsFact | None = None  # versions, by tool
    ceph: CephDescription | None = None
    pool: PoolLayout | None = None  # layout of the measured pool; results of different layouts are not comparable

    def merged(self, other: PlatformEnvironment) -> "Environment":
        return Environment.model_validate({**self.document(), **other.document()})

    def tool_versions(self) -> dict[str, JsonValue]:
        by_tool: dict[str, set[str]] = {}
        for tools in self.tools if isinstance(self.tools, tuple) else (self.tools or {},):
            for name, version in tools.items():
                by_tool.setdefault(name, set()).add(version)
        return {name: [*sorted(versions)] for name, versions in by_tool.items()}


OPTION_NAME_PATTERN = r"^[a-z][a-z0-9_]*$"

_CLASS_MARK = "/class:"


class CephOption(Model):
    """An option of the OSDs in the cluster's configuration database."""

    # All OSDs, one OSD, or a device class. Options of other daemons would affect more than the storage.
    who: Annotated[
        str, Field(pattern=r"^osd(\.(0|[1-9][0-9]{0,5})|/class:[a-z0-9]([-_a-z0-9]*[a-z0-9])?)?$", max_length=63)
    ]
    """The OSDs, as in "ceph config set": osd for all, osd.3 for one, osd/class:hdd for a device class. An option of one
    OSD takes precedence over an option of its class, and this over an option of all OSDs."""
    name: Annotated[str, Field(pattern=OPTION_NAME_PATTERN, max_length=100)]
    """Name of the option, such as osd_mclock_profile. The administrator decides which ones runs may set. One that takes
    effect only after a restart of the OSDs is refused."""
    # Printable, without spaces around it; only a number may be negative.
    value: Annotated[str, Field(pattern=r"^(-[0-9]|[!-,.-~])([ -~]*[!-~])?$", max_length=256)]
    """Value, as in "ceph config set"."""

    @property
    def key(self) -> tuple[str, str]:
        return self.who, self.name

    @property
    def precedence(self) -> int:
        """Of several options with the same name, an OSD uses the one with the highest number."""
        return 2 if self.who.startswith("osd.") else int(_CLASS_MARK in self.who)

    def applies_to(self, osd: int, device_class: str) -> bool:
        _, mark, wanted = self.who.partition(_CLASS_MARK)
        return wanted == device_class if mark else self.who in {"osd", f"osd.{osd}"}


def by_osds(options: Iterable[CephOption]) -> dict[str, dict[str, str]]:
    """Return options by whose they are: `osd` -> name -> value."""
    by_owner: dict[str, dict[str, str]] = {}
    for option in options:
        by_owner.setdefault(option.who, {})[option.name] = option.value
    return by_owner
