"""Common parts of a run's manifests, its documents, and the placement of its clients."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from plimsoll.api.names import API_VERSION, RESULT_KIND
from plimsoll.api.pods import PodTemplate
from plimsoll.api.run import Clients
from plimsoll.api.status import STATE_FILE, RunState
from plimsoll.lifecycle import naming
from plimsoll.lifecycle.run import Run, Settings
from plimsoll.plan.document import PLAN_FILE, Plan, Point
from plimsoll.plan.expand import most_trials

PLAN_MOUNT = "/etc/plimsoll/plan"
SECRET_MOUNT = "/etc/plimsoll/session"  # noqa: S105 - a path
SCRATCH_MOUNT = "/var/lib/plimsoll"
NOT_EVICTED = {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}
"""Annotation that keeps the autoscaler from draining a pod's node, which would abort the trial."""

READABLE = 0o440  # mode of files that the pod's group may read
SESSION_MOUNT = {"name": "session", "mountPath": SECRET_MOUNT, "readOnly": True}
TMP_MOUNT = {"name": "tmp", "mountPath": "/tmp"}  # noqa: S108 - of the container
TMP_VOLUME = {"name": "tmp", "emptyDir": {"sizeLimit": "64Mi"}}

_NODE_GONE_TAINTS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_TOLERATED_SECONDS = 30  # after which a pod is evicted from a dead node, instead of Kubernetes' five minutes
_USER = 65532  # of the images too
_HOST = "kubernetes.io/hostname"
OSD_LABELS = {"app": "rook-ceph-osd"}  # of Deployments and pods (Rook, pkg/operator/ceph/cluster/osd)
_API_VERSIONS = {
    **dict.fromkeys(("ConfigMap", "Secret", "Service", "ServiceAccount", "PersistentVolumeClaim"), "v1"),
    "Job": "batch/v1",
    "NetworkPolicy": "networking.k8s.io/v1",
    **dict.fromkeys(("Role", "RoleBinding"), "rbac.authorization.k8s.io/v1"),
    "StorageClass": "storage.k8s.io/v1",
    RESULT_KIND: API_VERSION,
}

_NOTHING: Mapping[str, Any] = MappingProxyType({})
_LINUX = {"kubernetes.io/os": "linux"}
_NO_SIDECAR_LABELS = {"sidecar.istio.io/inject": "false"}
_NO_SIDECAR_ANNOTATIONS = {"linkerd.io/inject": "disabled"}

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Access:
    """What a pod needs to use Ceph or a helper; empty if it uses none."""

    volumes: tuple[Json, ...] = ()
    mounts: tuple[Json, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)


def run_labels(run: Run) -> dict[str, str]:
    """Return the labels of a run's objects. Programs select by UID; the name is for people."""
    return {
        naming.LABEL_MANAGED_BY: naming.MANAGED_BY,
        naming.LABEL_NAME: naming.MANAGED_BY,
        naming.LABEL_RUN: naming.label_value(run.name),
        naming.LABEL_RUN_UID: run.uid,
    }


def metadata(
    run: Run, name: str, *, component: str, owned: bool = True, labels: Mapping[str, str] | None = None
) -> Json:
    """Return an object's metadata: in the run's namespace, with its labels, and garbage-collected with the run."""
    all_labels = {**run_labels(run), naming.LABEL_COMPONENT: component, **(labels or {})}
    owners = {"ownerReferences": [run.owner_reference]} if owned else {}
    return {"name": name, "namespace": run.namespace, "labels": all_labels, **owners}


def foreign_metadata(run: Run, name: str, *, namespace: str | None, component: str) -> Json:
    """Return the metadata of an object elsewhere, or cluster-scoped (None), which the run's finalizer removes."""
    place = {} if namespace is None else {"namespace": namespace}
    labels = {**run_labels(run), naming.LABEL_RUN_NAMESPACE: run.namespace, naming.LABEL_COMPONENT: component}
    return {"name": name, **place, "labels": labels}


def manifest(kind: str, metadata: Json, **content: object) -> Json:
    return {"apiVersion": _API_VERSIONS[kind], "kind": kind, "metadata": metadata, **content}


def empty_secret(metadata: Json) -> Json:
    return manifest("Secret", metadata, immutable=True, type="Opaque")


def pod_spec(
    settings: Settings, *, grace_seconds: int, is_root: bool = False, token: bool = False, **content: object
) -> Json:
    """Return a pod that runs once, with containers of `container_security`; its volumes belong to its user's group."""
    user = 0 if is_root else None if settings.platform_assigns_user else _USER
    return {
        "restartPolicy": "Never",
        "automountServiceAccountToken": token,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": grace_seconds,
        "securityContext": {
            **({} if user is None else {"runAsUser": user, "runAsGroup": user, "fsGroup": user}),
            "seccompProfile": {"type": "RuntimeDefault"},
            "fsGroupChangePolicy": "OnRootMismatch",
        },
        "tolerations": [
            {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": _TOLERATED_SECONDS}
            for key in _NODE_GONE_TAINTS
        ],
        **content,
    }


def pod_template(
    spec: Json,
    settings: Settings,
    run: Run | None = None,
    *,
    labels: Mapping[str, str],
    annotations: Mapping[str, str] = _NOTHING,
    resources: Mapping[str, Any] = _NOTHING,
) -> Json:
    """Return the template of a Job's pod with one container.

    What the run sets (its pod template, `resources`, and the node selector in `spec`) overrides the administrator's
    defaults; `labels`, `annotations` and the operating system override both. Without `run`, only the defaults apply.
    """
    defaults = settings.pod_defaults
    template = run.document.spec.pod_template if run is not None and run.document is not None else PodTemplate()
    layers = (defaults, template)
    (container,) = spec["containers"]
    proxies = {variable.name: variable.value for layer in layers for variable in layer.env}
    container = {
        **container,
        "env": [*container["env"], *({"name": name, "value": value} for name, value in proxies.items())],
        "resources": _merged_resources((container["resources"], defaults.resources, resources)),
    }
    affinity = template.affinity or defaults.affinity
    to_nodes = affinity.model_dump(mode="json", by_alias=True, exclude_defaults=True) if affinity else {}
    optional = {
        "tolerations": [
            *spec.get("tolerations", ()),
            *(dict(given) for layer in layers for given in layer.tolerations),
        ],
        "affinity": {**spec.get("affinity", {}), **to_nodes},
        "imagePullSecrets": [{"name": secret.name} for layer in layers for secret in layer.image_pull_secrets],
        "priorityClassName": template.priority_class_name or defaults.priority_class_name,
        "runtimeClassName": template.runtime_class_name or defaults.runtime_class_name,
    }
    metadata = {
        "labels": {**_NO_SIDECAR_LABELS, **defaults.labels, **template.labels, **labels},
        "annotations": {**_NO_SIDECAR_ANNOTATIONS, **defaults.annotations, **template.annotations, **annotations},
    }
    complete = {
        **spec,
        "nodeSelector": {**defaults.node_selector, **spec.get("nodeSelector", {}), **_LINUX},
        **optional,
        "containers": [container],
    }
    return {
        "metadata": metadata,
        "spec": {name: value for name, value in complete.items() if value not in ([], {}, None, "")},
    }


def _merged_resources(layers: Iterable[Mapping[str, Any]]) -> Json:
    """Return requests and limits. A layer that names a resource replaces both its request and its limit."""
    merged: Json = {"requests": {}, "limits": {}}
    for layer in layers:
        named = {name for values in layer.values() for name in values or ()}
        for kind, values in merged.items():
            others = {name: value for name, value in values.items() if name not in named}
            merged[kind] = {**others, **(layer.get(kind) or {})}
    return {kind: values for kind, values in merged.items() if values}


def container_security(*, is_root: bool = False) -> Json:
    """Return the settings that make a container satisfy the restricted profile, unless it is root."""
    return {
        "runAsNonRoot": not is_root,
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


def secret_volume(name: str, secret: str, items: Mapping[str, str]) -> Json:
    files = [{"key": key, "path": path} for key, path in items.items()]
    return {"name": name, "secret": {"secretName": secret, "defaultMode": READABLE, "items": files}}


def session_volume(run: Run, items: Mapping[str, str]) -> Json:
    return secret_volume("session", naming.session_secret(run.uid), items)


def environment(values: Mapping[str, str], fields: Mapping[str, str]) -> list[Json]:
    return [
        *({"name": name, "value": value} for name, value in values.items()),
        *({"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}} for name, path in fields.items()),
    ]


def plan_config_map(run: Run, plan: Plan) -> Json:
    """Return the frozen plan. It is immutable: an upgrade of the operator cannot change a running plan."""
    described = metadata(run, naming.plan_config_map(run.name), component="plan")
    return manifest("ConfigMap", described, immutable=True, data={PLAN_FILE: plan.model_dump_json(indent=1)})


def state_config_map(run: Run) -> Json:
    state = metadata(run, naming.state_config_map(run.name), component="state")
    return manifest("ConfigMap", state, data={STATE_FILE: RunState().model_dump_json()})


def session_secret(run: Run) -> Json:
    return empty_secret(metadata(run, naming.session_secret(run.uid), component="session"))


def result(run: Run, plan: Plan, point: Point) -> Json:
    is_owned = run.document is None or run.document.spec.results != "Retain"
    name, labels = naming.result(run.name, point.name), {naming.LABEL_WORKLOAD: point.workload}
    spec = {
        "run": run.name,
        "runUid": run.uid,
        "point": point.name,
        "workload": point.workload,
        "tool": point.tool,
        "label": point.label,
        "parameters": point.parameters,
        "clients": point.clients,
        "runtimeSeconds": point.runtime_seconds,
        "rampSeconds": point.ramp_seconds,
        "repetitions": most_trials(plan, point),
    }
    if point.line is not None:
        spec["line"] = point.line.model_dump(mode="json", by_alias=True)
    return manifest(RESULT_KIND, metadata(run, name, component="result", owned=is_owned, labels=labels), spec=spec)


def placement(run: Run, plan: Plan, clients: Clients, number: int) -> Json:
    """Return the parts of a pod's specification that choose its node.

    Servers have either a required spread or an affinity to other pods: nodes that the affinity excludes would always
    have the fewest servers, so that no node could ever have a second one.
    """
    members = {naming.LABEL_RUN_UID: run.uid, naming.LABEL_COMPONENT: naming.CLIENT}
    not_a_server = [{"key": naming.LABEL_ROLE, "operator": "DoesNotExist"}]
    clients_only: Json = {"matchLabels": members, **({"matchExpressions": not_a_server} if plan.servers else {})}
    if plan.servers is None or not plan.is_server(number):
        spread = _spread(clients_only, is_required=clients.spread == "Required")
        return {"nodeSelector": dict(clients.node_selector), "topologySpreadConstraints": [spread]}
    where = plan.servers.placement
    servers_only = {"matchLabels": {**members, naming.LABEL_ROLE: naming.SERVER}}
    placed: Json = {
        "nodeSelector": dict(plan.servers.node_selector),
        "topologySpreadConstraints": [_spread(servers_only, is_required=where == "Selected")],
    }
    if where == "Selected":
        return placed
    term: Json = {"labelSelector": clients_only}
    if where == "StorageNodes":
        # The specification is refused without a Rook cluster.
        namespaces = [plan.ceph.rook.namespace] if plan.ceph is not None and plan.ceph.rook is not None else []
        term = {"labelSelector": {"matchLabels": dict(OSD_LABELS)}, "namespaces": namespaces}
    required = [{**term, "topologyKey": _HOST}]
    return {**placed, "affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}}


def _spread(selector: Json, *, is_required: bool) -> Json:
    return {
        "maxSkew": 1,
        "topologyKey": _HOST,
        "whenUnsatisfiable": "DoNotSchedule" if is_required else "ScheduleAnyway",
        "nodeTaintsPolicy": "Honor",
        "labelSelector": selector,
    }
