"""`BenchmarkRun`: what a user asks for.

The tool parameters of a workload stay as they were written here; `tools.decode` gives them their types. That
keeps this layer free of tools, and makes a sweep the same thing for all of them.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

import yaml
from pydantic import AfterValidator, Field, JsonValue, ValidationError, model_validator

from plimsoll.api.errors import Problem, SpecError, problems_of
from plimsoll.api.model import Model
from plimsoll.api.names import API_VERSION, RUN_KIND
from plimsoll.api.quantity import Size

MAX_CLIENTS = 1000
MAX_WORKLOADS = 32
MAX_AXIS_VALUES = 64
MAX_REPETITIONS = 20
_MAX_SECONDS = 30 * 24 * 3600
_GENERIC_WORKLOAD_FIELDS = frozenset({"name", "clients", "runtimeSeconds", "rampSeconds"})

DnsLabel = Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", max_length=63)]
WorkloadName = Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", max_length=32)]
Percent = Annotated[int, Field(ge=1, le=100)]


def _unique(values: tuple[int, ...]) -> tuple[int, ...]:
    if len(set(values)) != len(values):
        message = "lists a value twice; every value of an axis must occur once"
        raise ValueError(message)
    return values


class ObjectMeta(Model):
    """The part of a Kubernetes object's metadata that a run needs; the rest is kept out of the way."""

    model_config = Model.model_config | {"extra": "ignore"}

    name: DnsLabel
    namespace: DnsLabel = "default"
    uid: str = ""


class NamespacedName(Model):
    """A reference to an object in a namespace."""

    namespace: DnsLabel
    name: DnsLabel


class Replicated(Model):
    """A replicated pool."""

    size: Annotated[int, Field(ge=1, le=10)]


class ErasureCoded(Model):
    """An erasure-coded pool of k data and m coding chunks."""

    data_chunks: Annotated[int, Field(ge=2, le=32)]
    coding_chunks: Annotated[int, Field(ge=1, le=32)]


class Pool(Model):
    """The Ceph pool that is made for a run."""

    replicated: Replicated | None = None
    erasure_coded: ErasureCoded | None = None
    failure_domain: DnsLabel = "host"
    device_class: DnsLabel | None = None
    placement_groups: Annotated[int, Field(ge=1, le=32768)] | None = None

    @model_validator(mode="after")
    def _one_layout(self) -> Self:
        if (self.replicated is None) == (self.erasure_coded is None):
            message = "needs exactly one of replicated and erasureCoded"
            raise ValueError(message)
        return self


class RookStorage(Model):
    """Pool and StorageClass made for this run in a Rook-Ceph cluster, and removed afterwards."""

    cluster: NamespacedName
    pool: Pool


class SecretReference(Model):
    """A Secret in the namespace of the run."""

    name: DnsLabel


class ExistingPool(Model):
    """A pool that is there already."""

    name: Annotated[str, Field(min_length=1, max_length=128)]


class CephStorage(Model):
    """Any Ceph cluster, without Rook."""

    monitors: Annotated[tuple[str, ...], Field(min_length=1, max_length=15)]
    user: Annotated[str, Field(min_length=1, max_length=128)]
    keyring_secret: SecretReference
    pool: ExistingPool


class StorageClassStorage(Model):
    """Any StorageClass: NFS, iSCSI, local, cloud."""

    name: Annotated[str, Field(min_length=1, max_length=253)]


class Volume(Model):
    """The volume that each client gets."""

    size: Size
    mode: Literal["Block", "Filesystem"] = "Block"
    access: Literal["PVC", "LibRBD"] = "PVC"


class Storage(Model):
    """Where the volumes come from: exactly one of `rook`, `ceph` and `storageClass`."""

    rook: RookStorage | None = None
    ceph: CephStorage | None = None
    storage_class: StorageClassStorage | None = None
    volume: Volume

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if sum(source is not None for source in (self.rook, self.ceph, self.storage_class)) != 1:
            message = "needs exactly one of rook, ceph and storageClass"
            raise ValueError(message)
        return self


class Clients(Model):
    """The load generators."""

    count: Annotated[int, Field(ge=1, le=MAX_CLIENTS)] = 1
    spread: Literal["Required", "Preferred"] = "Required"
    resources: Mapping[str, JsonValue] = Field(default_factory=dict)
    node_selector: Mapping[str, str] = Field(default_factory=dict)
    tolerations: tuple[Mapping[str, JsonValue], ...] = ()
    priority_class_name: str | None = None
    image_pull_secrets: tuple[SecretReference, ...] = ()


class Workload(Model):
    """One tool with its parameters, some of which are lists (sweep axes)."""

    name: WorkloadName
    tool: str
    parameters: Mapping[str, JsonValue]
    clients: (
        Annotated[
            tuple[Annotated[int, Field(ge=1, le=MAX_CLIENTS)], ...],
            Field(min_length=1, max_length=MAX_AXIS_VALUES),
            AfterValidator(_unique),
        ]
        | None
    ) = None
    runtime_seconds: Annotated[int, Field(ge=1, le=24 * 3600)] = 60
    ramp_seconds: Annotated[int, Field(ge=0, le=3600)] = 10

    @model_validator(mode="before")
    @classmethod
    def _name_the_tool(cls, document: Any) -> Any:  # noqa: ANN401 - whatever the file holds
        """Take `{name: w, fio: {...}}` apart into tool and parameters."""
        if not isinstance(document, dict) or "tool" in document:
            return document
        tools = [key for key in document if key not in _GENERIC_WORKLOAD_FIELDS]
        if len(tools) != 1:
            found = f"it has {', '.join(tools)}" if tools else "it has none"
            message = f"needs exactly one tool such as fio ({found})"
            raise ValueError(message)
        (tool,) = tools
        generic = {key: value for key, value in document.items() if key != tool}
        return {**generic, "tool": tool, "parameters": document[tool] if document[tool] is not None else {}}

    @model_validator(mode="after")
    def _ramp_is_shorter_than_runtime(self) -> Self:
        if self.ramp_seconds >= self.runtime_seconds:
            message = (
                f"has rampSeconds {self.ramp_seconds}, which must be less than runtimeSeconds {self.runtime_seconds}"
            )
            raise ValueError(message)
        return self


class Prepare(Model):
    """What is done to every volume before the first trial."""

    prefill: bool = True
    discard: bool = True
    drop_caches: bool = False
    settle_seconds: Annotated[int, Field(ge=0, le=24 * 3600)] = 10
    fill_percent: Percent = 80


class Gates(Model):
    """Conditions on the cluster that must hold before, during and after a trial."""

    ceph_health: Literal["Required", "Ignored"] = "Required"
    pause_scrub: bool = True


class Timeouts(Model):
    """No wait is without an end."""

    provision_seconds: Annotated[int, Field(ge=1, le=_MAX_SECONDS)] = 600
    ready_seconds: Annotated[int, Field(ge=1, le=_MAX_SECONDS)] = 300
    total_seconds: Annotated[int, Field(ge=1, le=_MAX_SECONDS)] = 14400


class RunSpec(Model):
    """The specification of a run."""

    storage: Storage | None = None
    clients: Clients = Clients()
    workloads: Annotated[tuple[Workload, ...], Field(min_length=1, max_length=MAX_WORKLOADS)]
    repetitions: Annotated[int, Field(ge=1, le=MAX_REPETITIONS)] = 5
    prepare: Prepare = Prepare()
    gates: Gates = Gates()
    timeouts: Timeouts = Timeouts()
    cleanup: Literal["Always", "OnSuccess", "Never"] = "Always"
    results: Literal["Delete", "Retain"] = "Delete"
    ttl_seconds_after_finished: Annotated[int, Field(ge=0)] | None = None
    suspend: bool = False

    @model_validator(mode="after")
    def _workload_names_differ(self) -> Self:
        names = [workload.name for workload in self.workloads]
        if len(set(names)) != len(names):
            message = f"has workloads of the same name ({', '.join(names)}); give each its own"
            raise ValueError(message)
        return self

    @model_validator(mode="after")
    def _enough_clients(self) -> Self:
        for workload in self.workloads:
            if max(workload.clients or (1,)) > self.clients.count:
                message = (
                    f"has workload {workload.name} with clients {list(workload.clients or ())}, but clients.count is "
                    f"{self.clients.count}; raise clients.count or lower the axis"
                )
                raise ValueError(message)
        return self


class BenchmarkRun(Model):
    """A run as a user writes it or as the API server stores it; `status` is not read from here."""

    model_config = Model.model_config | {"extra": "ignore"}

    api_version: Literal["plimsoll.dev/v1alpha1"]
    kind: Literal["BenchmarkRun"]
    metadata: ObjectMeta
    spec: RunSpec


def load_run(text: str) -> BenchmarkRun:
    """Read one `BenchmarkRun` from YAML or JSON text.

    Raises:
        SpecError: naming every field that is wrong, its value and the remedy.

    """
    try:
        document = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise SpecError([Problem(field="", remedy=f"is not YAML: {error}")]) from error
    if not isinstance(document, dict):
        remedy = f"is not a mapping; write one {RUN_KIND} of {API_VERSION}"
        raise SpecError([Problem(field="", remedy=remedy)])
    try:
        return BenchmarkRun.model_validate(document)
    except ValidationError as error:
        raise SpecError(problems_of(error)) from error
