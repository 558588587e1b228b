"""`BenchmarkRun`: the specification of a run. Parameters of tools are kept as written; `plan.sweep` decodes them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, Field, JsonValue, model_validator

from plimsoll.api.errors import (
    Problem,
    SpecError,
    decode_document,
    did_you_mean,
    field_path,
    load_document,
    place_of_field,
    shown,
)
from plimsoll.api.line import LineSearch
from plimsoll.api.model import Flag, Integer, Model, Rule, ServerOnly, Size
from plimsoll.api.names import DNS_LABEL_PATTERN, HEALTH_CHECK_PATTERN, RUN_KIND
from plimsoll.api.pods import NodeLabels, PodTemplate, Resources
from plimsoll.api.storage import DisturbedOsds, DnsLabel, ObjectName, Prepare, Storage

MAX_SERVERS = 64


class Servers(Model):
    """Pods that serve the clients of network tools such as iperf3, and never generate load themselves.

    Without servers, the clients serve each other. Servers have the image and the resources of clients, and no volumes.
    """

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            rule="(self.placement == 'Selected') == (has(self.nodeSelector) && self.nodeSelector.size() > 0)",
            holds=lambda servers: (servers.placement == "Selected") == bool(servers.node_selector),
            message="must be set with placement Selected, and only with it; write the labels of the nodes, or remove "
            "it and choose another placement",
            field_path=".nodeSelector",
        ),
    )

    placement: Literal["StorageNodes", "ClientNodes", "Selected"]
    """Nodes of the servers, over which they are spread: StorageNodes are nodes with OSDs of the Rook cluster in
    storage.rook, ClientNodes nodes with clients of the run, Selected the nodes of nodeSelector."""
    node_selector: NodeLabels = Field(default_factory=dict)
    """Labels that the nodes of servers must have. Required with placement Selected, and only allowed with it."""
    count: Annotated[Integer, Field(ge=1, le=MAX_SERVERS)]
    """Number of servers. It cannot depend on the number of nodes, which is unknown when the plan is created."""


MAX_CLIENTS = 1000
MAX_WORKLOADS = 32
MAX_AXIS_VALUES = 64
MAX_REPETITIONS = 10
MAX_RUNTIME_SECONDS = 24 * 3600
GENERIC_WORKLOAD_FIELDS = ("name", "clients", "runtimeSeconds", "rampSeconds", "caches", "line", "disturb")
"""The fields of a workload besides its tool."""
MAX_TIMEOUT_SECONDS = 30 * 24 * 3600

WorkloadName = Annotated[str, Field(pattern=DNS_LABEL_PATTERN, max_length=32)]
HealthCheck = Annotated[str, Field(pattern=HEALTH_CHECK_PATTERN, max_length=64)]
ClientCount = Annotated[Integer, Field(ge=1, le=MAX_CLIENTS)]


def repeated_names(names: Sequence[object], place: str) -> Iterator[Problem]:
    """Yield the entries of the list at that place that have the name of an earlier entry."""
    for index, name in enumerate(names):
        if isinstance(name, str) and names.index(name) != index:
            remedy = f"is already the name of {place}[{names.index(name)}]; choose unique names"
            yield Problem(field=f"{place}[{index}].name", value=shown(name), remedy=remedy)


def _unique(values: tuple[Any, ...]) -> tuple[Any, ...]:
    problems = [
        Problem(field=f"[{number}]", value=str(value), remedy="is already in the list; each value must be unique")
        for number, value in enumerate(values)
        if values.index(value) != number
    ]
    if problems:
        raise SpecError(problems)
    return values


_UNIQUE = (AfterValidator(_unique), ServerOnly(list_type="set"))
_HealthChecks = Annotated[tuple[HealthCheck, ...], Field(max_length=32), *_UNIQUE]
_ClientCounts = Annotated[tuple[ClientCount, ...], Field(min_length=1, max_length=MAX_AXIS_VALUES), *_UNIQUE]


class ObjectMeta(Model):
    """The metadata of a run; other fields are ignored."""

    model_config = Model.model_config | {"extra": "ignore"}

    name: ObjectName
    namespace: DnsLabel = "default"
    uid: str = ""

    @model_validator(mode="before")
    @classmethod
    def _check_has_name(cls, document: Any) -> Any:  # noqa: ANN401 - whatever the file holds
        """Refuse generated names: results and resuming need a known name."""
        if isinstance(document, dict) and "name" not in document and "generateName" in document:
            raise SpecError([Problem(field="generateName", remedy="is not supported; write metadata.name instead")])
        return document


class Clients(Model):
    """The load generators, each in its own pod."""

    count: Annotated[Integer, Field(ge=1, le=MAX_CLIENTS)] = 1
    """Number of clients."""
    spread: Literal["Required", "Preferred"] = "Required"
    """Required allows the numbers of clients on two nodes to differ by at most one; Preferred only tries to."""
    network_bytes_per_second: Annotated[Size, Field(ge=2**10, le=2**50)] | None = None
    """Capacity of the network between the storage and the node of a client, from 1Ki to 1Pi per second, such as 1250M
    for 10 Gbit/s. Faster reads come from a cache and are marked. Set it if a client cannot see the node's interfaces,
    as in a pod. Not checked if absent."""
    resources: Resources = Field(default_factory=dict)
    """Requests and limits of each client, as in a container; without cpu, 100m are requested. Choose enough CPU: a
    throttled client measures its own limit."""
    node_selector: NodeLabels = Field(default_factory=dict)
    """Labels that the nodes of clients must have."""


class Conductor(Model):
    """The pod that starts the clients at the same instant and judges their results."""

    resources: Resources = Field(default_factory=dict)
    """Requests and limits, as in a container; without them, 100m CPU and 128Mi are requested, and the memory is limited
    to what the largest trial needs, 1Gi or more."""
    node_selector: NodeLabels = Field(default_factory=dict)
    """Labels that its node must have. It may run on other nodes than the clients, to leave them their resources."""


LEAST_SECONDS_DOWN = 120
"""A trial that marks an OSD down takes at least so long: one that is marked down six times in ten minutes ends itself
(`osd_max_markdown_count`, `osd_max_markdown_period`)."""
LEAST_SECONDS_RECOVERING = 30  # by which a probe of a storm line outlasts its disturbance


class Disturbance(Model):
    """A disturbance of the Ceph cluster in every trial, which ends by itself."""

    after_seconds: Annotated[Integer, Field(ge=10, le=MAX_RUNTIME_SECONDS)] = 60
    """Seconds from the start of the measurement, after the ramp, to the start of the disturbance."""
    osds: DisturbedOsds
    """The OSDs that it takes away."""
    for_seconds: Annotated[Integer, Field(ge=10, le=MAX_RUNTIME_SECONDS)] = 120
    """Duration of the disturbance. The rest of runtimeSeconds shows the recovery."""

    @property
    def ends_after(self) -> int:
        return self.after_seconds + self.for_seconds


class Workload(Model):
    """One tool with its parameters."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            rule="self.rampSeconds < self.runtimeSeconds",
            holds=lambda workload: workload.ramp_seconds < workload.runtime_seconds,
            message="must be less than runtimeSeconds; decrease it (default 10), or increase runtimeSeconds",
            field_path=".rampSeconds",
        ),
        Rule(
            rule="!has(self.disturb) || self.disturb.afterSeconds + self.disturb.forSeconds + "
            f"(has(self.line) ? {LEAST_SECONDS_RECOVERING} : 1) <= self.runtimeSeconds",
            holds=lambda it: (
                not it.disturb
                or it.disturb.ends_after + (LEAST_SECONDS_RECOVERING if it.line else 1) <= it.runtime_seconds
            ),
            message="must end before the measurement, with line at least "
            f"{LEAST_SECONDS_RECOVERING} s before, since placement groups have to become clean; decrease afterSeconds "
            "or forSeconds, or increase runtimeSeconds",
            field_path=".disturb.forSeconds",
        ),
        Rule(
            rule="!has(self.disturb) || self.disturb.osds.action != 'Down' || "
            f"self.runtimeSeconds >= {LEAST_SECONDS_DOWN}",
            holds=lambda it: (
                not it.disturb or it.disturb.osds.action != "Down" or it.runtime_seconds >= LEAST_SECONDS_DOWN
            ),
            message=f"must be at least {LEAST_SECONDS_DOWN} with disturb and action Down, because an OSD that is "
            "marked down six times in ten minutes ends itself; increase it",
            field_path=".runtimeSeconds",
        ),
    )

    name: WorkloadName = "main"
    """Unique name of the workload. The names of points start with it. A suite requires it."""
    # In the document, one field with the tool's key contains the parameters. Lists among them are the axes of a sweep.
    tool: Annotated[str, ServerOnly(absent=True)]
    parameters: Annotated[Mapping[str, JsonValue], ServerOnly(absent=True)]
    clients: _ClientCounts | None = None
    """Axis: number of clients that generate load; the others are idle. All clients if absent."""
    runtime_seconds: Annotated[Integer, Field(ge=1, le=MAX_RUNTIME_SECONDS)] = 60
    """Duration of the measurement in each trial."""
    ramp_seconds: Annotated[Integer, Field(ge=0, le=3600)] = 10
    """Duration of the load before the measurement, until all clients reach full speed. Less than runtimeSeconds."""
    caches: Literal["Warm"] | None = None
    """Warm declares that reads are meant to be answered from the storage's own caches as far as these hold the data. If
    absent, reads are Suspect (ServerCacheSized) if the memory of the OSDs may have answered more than half of them:
    with a data set of less than twice that memory, or, if prepare.dropCaches drops it before every trial, one that the
    trial reads again and again."""
    line: LineSearch | None = None
    """Search for the load at which latency breaks, instead of measuring at one load. With disturb, search for it twice:
    without the disturbance in probes of afterSeconds, then in probes with it, which are judged from its start until all
    placement groups are clean (the storm line)."""
    disturb: Disturbance | None = None
    """Take OSDs away during every trial, and measure before, during and after that. The administrator must allow it."""

    @model_validator(mode="before")
    @classmethod
    def _split_tool(cls, document: Any) -> Any:  # noqa: ANN401 - whatever the file holds
        """Split `{name: w, fio: {...}}` into tool and parameters."""
        if not isinstance(document, dict):
            return document
        tools = [key for key in document if key not in GENERIC_WORKLOAD_FIELDS]
        if not tools:
            raise ValueError("has no tool; add one such as fio with a mapping of its parameters")
        generic_fields, tool = ", ".join(GENERIC_WORKLOAD_FIELDS), tools[0]
        if len(tools) > 1:
            elsewhere = {name: place for name in tools if (place := place_of_field(name, RunSpec, root="spec"))}
            if elsewhere:
                problems = elsewhere.items()
                raise SpecError(
                    [Problem(field=it, remedy=f"is not a known field; it belongs in {place}") for it, place in problems]
                )
            named = [name for name in tools if isinstance(document[name], dict)]
            strays = [
                name for name in tools if name not in named and not did_you_mean(name, GENERIC_WORKLOAD_FIELDS, 1)
            ]
            if len(named) == 1 and strays:
                remedy = f"is not a known field; if it is a parameter of {named[0]}, move it there"
                raise SpecError([Problem(field=name, remedy=remedy) for name in strays])
            suggestions = (did_you_mean(name, GENERIC_WORKLOAD_FIELDS, 1) for name in tools)
            remedy = next(filter(None, suggestions), "remove one or correct its spelling")
            raise ValueError(f"must have one tool besides {generic_fields}, but has {' and '.join(tools)}; {remedy}")
        parameters = {} if document[tool] is None else document[tool]
        if not isinstance(parameters, dict):
            remedy = f"is neither a tool with a mapping of parameters nor one of {generic_fields}"
            raise SpecError([Problem(field=tool, value=shown(parameters), remedy=remedy)])
        generic = {key: value for key, value in document.items() if key != tool}
        return {**generic, "tool": tool, "parameters": parameters}


class Gates(Model):
    """Conditions on the Ceph cluster that must hold before, during and after a trial."""

    ceph_health: Literal["Required", "Ignored"] = "Required"
    """Required measures only while the cluster is healthy; Ignored measures at any time."""
    accepted_health_checks: _HealthChecks = ()
    """Health checks in `ceph health detail` that are accepted with cephHealth Required, such as MON_DISK_LOW."""
    pause_scrub: Flag = True
    """Pause scrubbing of the measured pools during trials. It is always resumed afterwards."""
    stop_on: _HealthChecks = ()
    """Further health checks, such as SLOW_OPS, that end the run (ClusterAtRisk) if they appear while it loads the
    cluster. OSD_NEARFULL, OSD_BACKFILLFULL, OSD_FULL, POOL_FULL and MON_DOWN always do, unless they are muted."""


class Limits(Model):
    """Limits of the effect on the Ceph cluster. The capacity behind a StorageClass is unknown, and not checked."""

    fill_percent: Annotated[Integer, Field(ge=1, le=95)] = 70
    """How full an OSD may get, in percent. A run whose volumes would fill one further is refused (ClusterTooFull), and
    a pool that is created for the run gets a quota, which also bounds tools without volumes, such as rados bench."""


class Timeouts(Model):
    """Timeouts of the phases. They pause while a run is suspended."""

    provision_seconds: Annotated[Integer, Field(ge=1, le=MAX_TIMEOUT_SECONDS)] = 600
    """Timeout until the storage is ready and all pods are running, including the wait until an earlier run with this
    name is gone. The time in the queue does not count."""
    ready_seconds: Annotated[Integer, Field(ge=1, le=MAX_TIMEOUT_SECONDS)] = 300
    """Timeout until all clients have reported."""
    total_seconds: Annotated[Integer, Field(ge=1, le=MAX_TIMEOUT_SECONDS)] = 14400
    """Timeout of the whole run. A run that cannot finish in this time is refused."""


def _fixed(field: str, *, required: bool = False) -> Rule:
    """Return the rule that makes a field of the specification immutable."""
    equal = f"self.{field} == oldSelf.{field}"
    return Rule(
        rule=equal if required else f"has(self.{field}) == has(oldSelf.{field}) && (!has(self.{field}) || {equal})",
        message="cannot be changed, because numbers must belong to one specification; create a new run",
        field_path=f".{field}",
        reason="FieldValueForbidden",
    )


class RunSpec(Model):
    """The specification of the run.

    Only suspend, cleanup, results and ttlSecondsAfterFinished can be changed later, because numbers must belong to one
    specification. To measure something else, create a new run.
    """

    # The rules of tools are in plimsoll.plan.refusals.
    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            rule="self.workloads.all(w, !has(w.clients) || w.clients.all(c, c <= self.clients.count))",
            message=(
                "every value of a workload's clients must be at most spec.clients.count; increase that, or decrease "
                "the value"
            ),
            field_path=".workloads",
        ),
        Rule(
            rule="!has(self.servers) || self.servers.placement != 'StorageNodes' || has(self.storage) && "
            "has(self.storage.rook)",
            holds=lambda it: (
                not it.servers or it.servers.placement != "StorageNodes" or (it.storage and it.storage.rook)
            ),
            message="cannot be StorageNodes without storage.rook, whose cluster's OSDs are looked up; set it, or "
            "choose another placement",
            field_path=".servers.placement",
        ),
        Rule(
            rule="!self.workloads.exists(w, has(w.disturb)) || has(self.storage) && "
            "(has(self.storage.rook) || has(self.storage.ceph))",
            holds=lambda it: not it.disturbs or (it.storage and (it.storage.rook or it.storage.ceph)),
            message="must have rook or ceph, because a workload has disturb; name the cluster, or remove disturb",
            field_path=".storage",
        ),
        Rule(
            rule="!self.workloads.exists(w, has(w.disturb)) || self.gates.cephHealth == 'Required'",
            holds=lambda spec: not spec.disturbs or spec.gates.ceph_health == "Required",
            message="must be Required, because a workload has disturb, and the next trial waits until the cluster has "
            "recovered; set it, and accept tolerable checks in acceptedHealthChecks",
            field_path=".gates.cephHealth",
        ),
        _fixed("storage"),
        _fixed("clients"),
        _fixed("workloads", required=True),
        *map(_fixed, ("servers", "conductor", "podTemplate", "repetitions", "prepare", "gates", "limits", "timeouts")),
    )

    storage: Storage | None = None
    clients: Clients = Clients()
    servers: Servers | None = None
    conductor: Conductor = Conductor()
    pod_template: PodTemplate = PodTemplate()
    workloads: Annotated[
        tuple[Workload, ...], Field(min_length=1, max_length=MAX_WORKLOADS), ServerOnly(list_keys=("name",))
    ]
    """The workloads. Each one is a tool with its parameters. Parameters that are lists are axes: every combination of
    their values is a point, which is measured repetitions times. A run has at most 512 points."""
    repetitions: Annotated[Integer, Field(ge=1, le=MAX_REPETITIONS)] = 5
    """Trials of each point. At least 3 are needed to estimate how much trials differ, 5 for a good estimate."""
    prepare: Prepare = Prepare()
    gates: Gates = Gates()
    limits: Limits = Limits()
    timeouts: Timeouts = Timeouts()
    cleanup: Literal["Always", "OnSuccess", "Never"] = "Always"
    """When the storage created for this run is removed: Always, OnSuccess to keep it after a failure, or Never. Pods
    always stop. Can be changed at any time."""
    results: Literal["Delete", "Retain"] = "Delete"
    """What happens to the BenchmarkResults when the run is deleted: Delete removes them, Retain keeps them as a
    baseline. Takes effect when the results are created; later changes have no effect."""
    ttl_seconds_after_finished: Annotated[Integer, Field(ge=0, le=10 * 365 * 24 * 3600)] | None = None
    """Time after which a finished run is deleted; never if absent. Omit it under GitOps, which would create and start a
    deleted run again. Can be changed at any time."""
    suspend: Flag = False
    """Stop measuring and keep the storage. After resuming, the current trial is repeated and the volumes are prefilled
    again. Can be changed at any time."""

    @property
    def disturbs(self) -> bool:
        return any(workload.disturb for workload in self.workloads)

    @model_validator(mode="after")
    def _check_workloads(self) -> Self:
        problems = [*repeated_names([workload.name for workload in self.workloads], "workloads")]
        count = self.clients.count
        for index, workload in enumerate(self.workloads):
            for number, clients in enumerate(workload.clients or ()):
                if clients > count:
                    remedy = f"is more than spec.clients.count, which is {count}; increase that, or decrease the value"
                    field = field_path(["workloads", index, "clients", number])
                    problems.append(Problem(field=field, value=str(clients), remedy=remedy))
        if problems:
            raise SpecError(problems)
        return self


class WithoutStatus(Model):
    """An object as written by a user or stored by the API server, without its `status`."""

    @model_validator(mode="before")
    @classmethod
    def _without_status(cls, document: Any) -> Any:  # noqa: ANN401 - whatever the file holds
        if not isinstance(document, dict):
            return document
        return {key: value for key, value in document.items() if key != "status"}


class BenchmarkRun(WithoutStatus):
    """A run as written by a user or stored by the API server, without its `status`."""

    api_version: Literal["plimsoll.dev/v1alpha1"]
    kind: Literal["BenchmarkRun"]
    metadata: ObjectMeta
    spec: RunSpec


def load_run(text: str) -> BenchmarkRun:
    return load_document(text, BenchmarkRun, RUN_KIND)


def decode_run(document: JsonValue) -> BenchmarkRun:
    return decode_document(document, BenchmarkRun, RUN_KIND)
