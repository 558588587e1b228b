"""What decisions start from: a `BenchmarkRun` as the operator sees it, its cluster, and the operator's settings."""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from ipaddress import ip_network
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints, ValidationError

from plimsoll.api.environment import PlatformEnvironment, StorageClassDescription
from plimsoll.api.errors import SpecError
from plimsoll.api.model import Model, Size
from plimsoll.api.names import API_VERSION, RUN_KIND, ConditionStatus, ConditionType
from plimsoll.api.pods import NodeLabels, PodTemplate, Resources
from plimsoll.api.reasons.reason import Reason
from plimsoll.api.run import BenchmarkRun, decode_run
from plimsoll.api.status import Condition
from plimsoll.api.storage import NamespacedName, Storage
from plimsoll.lifecycle.children import Object, belongs_to_a_run, label, time_of
from plimsoll.lifecycle.naming import FINALIZER
from plimsoll.plan.document import RunIdentity
from plimsoll.plan.windows import Windows
from plimsoll.protocol.assignment import CERTIFICATE_FILE

ANY_NAMESPACE = "*"
ENFORCED_PROFILE = "pod-security.kubernetes.io/enforce"  # label of a namespace
_MAX_PARAMETERS = 32
MAX_DESCRIPTION_CHARACTERS = 256  # maximum length of a text in a plan's environment


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run."""

    name: str
    namespace: str
    uid: str
    generation: int
    created: datetime
    deleted: datetime | None  # when its deletion was requested; None if it was not
    is_protected: bool  # whether its finalizer is stored, so that it cannot be gone before its teardown
    document: BenchmarkRun | None  # the decoded specification; None if it is invalid
    written: Mapping[str, Any]  # the specification as read; this version may know only a part of it
    spec_problem: str  # why the specification is invalid; empty if it is valid
    status: Mapping[str, Any]  # as stored
    conditions: Mapping[ConditionType, Condition]  # from the status, by type
    # The CephCluster that it uses without naming it, which `document` and `written` contain; None if there is none.
    default_cluster: NamespacedName | None = None

    @property
    def identity(self) -> RunIdentity:
        return RunIdentity(name=self.name, namespace=self.namespace, uid=self.uid)

    @property
    def is_suspended(self) -> bool:
        return self.written.get("suspend") is True

    @property
    def start_time(self) -> datetime | None:
        return time_of(self.status.get("startTime"))

    @property
    def completion_time(self) -> datetime | None:
        return time_of(self.status.get("completionTime"))

    @property
    def end_time(self) -> datetime | None:
        """Return when the run ended or was deleted, whichever was later; None while it is active."""
        return max((time for time in (self.deleted, self.completion_time) if time is not None), default=None)

    @property
    def owner_reference(self) -> dict[str, Any]:
        """Return the owner reference that has an object garbage-collected with the run."""
        return {
            "apiVersion": API_VERSION,
            "kind": RUN_KIND,
            "name": self.name,
            "uid": self.uid,
            "controller": True,
            "blockOwnerDeletion": True,
        }

    def holds(self, kind: ConditionType) -> bool:
        return kind in self.conditions and self.conditions[kind].status is ConditionStatus.TRUE

    def last_transition(self, kind: ConditionType) -> datetime:
        return datetime.fromisoformat(self.conditions[kind].last_transition_time)

    def has_reason(self, kind: ConditionType, reason: Reason) -> bool:
        return kind in self.conditions and self.conditions[kind].reason == reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Platform:
    """A cluster."""

    kubernetes: str  # its version: `v1.34.0`
    storage_classes: Mapping[str, Object]  # by name, without those that Plimsoll created for a run
    storage: object | None = None  # what the provider of the run's storage found; None if it has no survey
    pod_security: str = ""  # the level that the run's namespace enforces; empty if it has no label
    burner_certificate: str = ""  # of the helper that runs kube-burner, PEM; empty if there is none yet


def resolved(body: Mapping[str, Any], settings: "Settings") -> Mapping[str, Any]:
    """Return a run, as stored, with its default CephCluster if it names none: by its status, or else its namespace."""
    spec = body.get("spec") or {}
    rook = (spec.get("storage") or {}).get("rook")
    if not rook or rook.get("cluster"):
        return body
    recorded = (body.get("status") or {}).get("rookCluster")
    cluster = recorded or settings.default_cluster(body["metadata"]["namespace"])
    if not cluster:
        return body
    return {**body, "spec": {**spec, "storage": {**spec["storage"], "rook": {**rook, "cluster": cluster}}}}


def run_of(body: Mapping[str, Any], settings: "Settings") -> Run:
    """Read a run as the API server stores it. An invalid specification does not raise, but sets `spec_problem`."""
    stored, body = body, resolved(body, settings)
    metadata, status = body["metadata"], body.get("status") or {}
    document, problem = None, ""
    try:
        document = decode_run(dict(body))
    except SpecError as error:
        problem = str(error)
    conditions = {}
    for entry in status.get("conditions", []):
        # Conditions of a later version are ignored.
        with suppress(ValidationError):
            condition = Condition.model_validate(entry)
            conditions[condition.type] = condition
    return Run(
        name=metadata["name"],
        namespace=metadata["namespace"],
        uid=metadata["uid"],
        generation=metadata.get("generation", 1),
        created=datetime.fromisoformat(metadata["creationTimestamp"]),
        deleted=time_of(metadata.get("deletionTimestamp")),
        is_protected=is_protected(body),
        document=document,
        written=body.get("spec") or {},
        spec_problem=problem,
        default_cluster=None if body is stored else NamespacedName(**body["spec"]["storage"]["rook"]["cluster"]),
        status=status,
        conditions=conditions,
    )


def is_protected(body: Mapping[str, Any]) -> bool:
    return FINALIZER in (body["metadata"].get("finalizers") or ())


def is_over(body: Mapping[str, Any]) -> bool:
    """Whether a run, as the API server stores it, is terminal and clean: it never loads the storage again."""
    conditions = {condition["type"]: condition for condition in (body.get("status") or {}).get("conditions", [])}
    terminal = conditions.get("Succeeded", {}).get("status") in {"True", "False"}
    return terminal and conditions.get("CleanedUp", {}).get("reason") in {Reason.REMOVED, Reason.NOTHING_CREATED}


def needs_attention(body: Mapping[str, Any]) -> bool:
    """Whether a run, as the API server stores it, is not terminal, not clean, changed, or expires after its end."""
    metadata, status = body["metadata"], body.get("status") or {}
    expires = (body.get("spec") or {}).get("ttlSecondsAfterFinished") is not None
    # A deletion increments the generation too, but changes nothing in the specification.
    changed = "deletionTimestamp" not in metadata and status.get("observedGeneration") != metadata.get("generation")
    return not is_over(body) or expires or changed


def platform_of(
    kubernetes: str,
    storage_classes: Iterable[Object],
    storage: object | None = None,
    namespace: Object | None = None,
    burner: Object | None = None,
) -> Platform:
    """Return the facts about a cluster; `burner` is the ConfigMap of the helper that runs kube-burner."""
    return Platform(
        kubernetes=kubernetes,
        storage_classes={obj["metadata"]["name"]: obj for obj in storage_classes if not belongs_to_a_run(obj)},
        storage=storage,
        pod_security=label(namespace, ENFORCED_PROFILE) if namespace else "",
        burner_certificate=((burner or {}).get("data") or {}).get(CERTIFICATE_FILE, ""),
    )


def environment_of(platform: Platform, storage_class: str | None) -> PlatformEnvironment:
    """Return what a plan records about a cluster and the run's StorageClass, bounded in size."""
    kubernetes, described = platform.kubernetes[:MAX_DESCRIPTION_CHARACTERS], None
    if storage_class is not None:
        obj = platform.storage_classes[storage_class]
        parameters = sorted((obj.get("parameters") or {}).items())[:_MAX_PARAMETERS]
        described = StorageClassDescription(
            name=obj["metadata"]["name"],
            provisioner=obj.get("provisioner"),
            parameters={key: str(value)[:MAX_DESCRIPTION_CHARACTERS] for key, value in parameters},
            reclaim_policy=obj.get("reclaimPolicy"),
            volume_binding_mode=obj.get("volumeBindingMode"),
            allow_volume_expansion=obj.get("allowVolumeExpansion"),
        )
    return PlatformEnvironment(kubernetes=kubernetes, storage_class=described)


def _read_name(value: object) -> object:
    return dict(zip(("namespace", "name"), value.split("/", 1), strict=False)) if isinstance(value, str) else value


class Helper(Model):
    """The Service of a helper, and the namespaces whose runs may use it, or `*` for all."""

    service: Annotated[NamespacedName, BeforeValidator(_read_name)]
    namespaces: tuple[str, ...]


class Burning(Helper):
    """The helper that runs kube-burner, and how much a run may do with it."""

    max_objects: Annotated[int, Field(ge=1)]  # PVCs of a run at the same time
    max_qps: Annotated[int, Field(ge=1)]  # requests per second, and at once
    max_volume_size: Annotated[Size, Field(ge=1)]  # bytes of a PVC


class Limits(Model):
    """How much one run may do; None for no limit. `plimsoll.lifecycle.provisioning` checks it."""

    max_clients: Annotated[int, Field(ge=1)] | None = None
    max_volume_size: Annotated[Size, Field(ge=1)] | None = None  # bytes of one client's volume
    max_written_bytes: Annotated[Size, Field(ge=1)] | None = None  # as `plimsoll plan` estimates them


_PeerField = Annotated[str, StringConstraints(pattern="^(ipBlock|namespaceSelector|podSelector)$")]
_Peer = Annotated[dict[_PeerField, dict[str, Any]], Field(min_length=1)]
_Network = Annotated[str, AfterValidator(lambda text: str(ip_network(text)))]


class NetworkPolicies(Model):
    """What the NetworkPolicies of runs and teardowns allow; `plimsoll.lifecycle.render.network` renders them."""

    enabled: bool = True  # whether there are any
    dns_ports: Annotated[tuple[Annotated[int, Field(ge=1, le=65535)], ...], Field(min_length=1)] = (53,)  # of its pods
    # Networks of Ceph's daemons, with all TCP ports open, instead of a range, whose end some network plugins ignore.
    ceph_networks: tuple[_Network, ...] = ()
    conductor_metrics_from: tuple[_Peer, ...] = ()  # who may scrape conductors; empty for none


class PodDefaults(PodTemplate):
    """What the pods of all runs, and their teardown Jobs, have unless a run sets it."""

    node_selector: NodeLabels = Field(default_factory=dict)
    resources: Resources = Field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings that decisions depend on, which an administrator makes for all runs."""

    runner_image: str  # image of conductor and agents; frozen into the plan of each run
    teardown_namespace: str = "plimsoll-teardown"  # of the runs' teardown records, with their keyrings and Jobs
    # `namespace/name` of a CephCluster -> namespaces whose runs may use it, or `*` for all.
    rook_clusters: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    # `namespace/name` of a CephCluster -> options of its OSDs that runs may set.
    rook_options: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    # `namespace/name` of a CephCluster, or of a keyring's Secret -> pools of others on OSDs that runs may take away.
    disturb: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    caches: Helper | None = None  # the helpers that drop the caches of nodes; None if there are none
    burning: Burning | None = None  # None if no run may use kube-burner
    platform_assigns_user: bool = False  # whether pods leave user and group to the platform, as OpenShift requires
    pod_defaults: PodDefaults = field(default_factory=PodDefaults)
    osd_bench: bool = False  # whether runs may load OSDs directly, bypassing pools
    limits: Limits = field(default_factory=Limits)
    windows: Windows = ()  # the maintenance windows in which trials may load; empty for any time
    # How long a run may block others while it does not measure: suspended between two trials, or being cleaned up.
    hold_seconds: int = 3600
    image_pull_policy: str = "IfNotPresent"  # of conductor and agents
    port: int = 8443  # of a conductor
    metrics_port: int = 8081  # of a conductor, for Prometheus
    network_policies: NetworkPolicies = field(default_factory=NetworkPolicies)
    max_client_restarts: int = 5  # processes that a client may lose before the run fails
    conductor_restarts: int = 6  # pods that a conductor may lose

    def allows(self, cluster: NamespacedName, namespace: str) -> bool:
        return f"{cluster.namespace}/{cluster.name}" in self.clusters_of(namespace)

    def clusters_of(self, namespace: str) -> list[str]:
        return sorted(place for place, allowed in self.rook_clusters.items() if {namespace, ANY_NAMESPACE} & {*allowed})

    def default_cluster(self, namespace: str) -> Mapping[str, str] | None:
        """Return the only Rook cluster that runs in a namespace may use; None if they may use none or several."""
        places = [place.split("/", 1) for place in self.clusters_of(namespace)]
        return {"namespace": places[0][0], "name": places[0][1]} if len(places) == 1 else None

    def rook_problem(self, cluster: NamespacedName | None, namespace: str) -> str:
        places = self.clusters_of(namespace)
        if cluster is None and places:
            return f"must be set, because runs in namespace {namespace} may use several: {', '.join(places)}"
        place = "a Rook cluster" if cluster is None else f"CephCluster {cluster.namespace}/{cluster.name}"
        if cluster is not None and self.allows(cluster, namespace):
            return ""
        remedy = "ask the administrator to add the namespace to the chart's rook.clusters"
        return f"runs in namespace {namespace} may not use {place}; {remedy}"

    def allows_option(self, cluster: NamespacedName, name: str) -> bool:
        return name in self.rook_options.get(f"{cluster.namespace}/{cluster.name}", ())

    def neighbours(self, storage: Storage, namespace: str) -> tuple[str, ...] | None:
        """Return the pools of others that may suffer if a run takes OSDs away; None if it may not take any away."""
        if storage.ceph is not None:
            return self.disturb.get(f"{namespace}/{storage.ceph.keyring_secret.name}")
        cluster = storage.rook.used_cluster if storage.rook else None
        return self.disturb.get(f"{cluster.namespace}/{cluster.name}") if cluster else None

    def caches_problem(self, namespace: str) -> str:
        return _problem("dropping caches", "drop caches", "caches", self.caches, namespace)

    def burning_problem(self, namespace: str) -> str:
        return _problem("kube-burner", "use kube-burner", "kubeBurner", self.burning, namespace)


def _problem(feature: str, use: str, chart_value: str, helper: Helper | None, namespace: str) -> str:
    ask = "ask the operator's administrator to"
    if helper is None:
        return f"{feature} is not enabled; {ask} set the chart's {chart_value}.enabled"
    if {namespace, ANY_NAMESPACE} & {*helper.namespaces}:
        return ""
    return f"runs in namespace {namespace} may not {use}; {ask} add it to the chart's {chart_value}.namespaces"
