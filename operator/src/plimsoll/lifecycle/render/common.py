"""Common parts of a run's manifests."""

from collections.abc import Mapping
from typing import Any

from plimsoll.api.names import API_VERSION, RESULT_KIND
from plimsoll.lifecycle import naming
from plimsoll.lifecycle.run import Run

PLAN_FILE = "plan.json"
STATE_FILE = "state.json"
PLAN_MOUNT = "/etc/plimsoll/plan"
SECRET_MOUNT = "/etc/plimsoll/session"  # noqa: S105 - a path
SCRATCH_MOUNT = "/var/lib/plimsoll"
RUN_AS_USER = 65532
NOT_EVICTED = {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}
"""Annotation that keeps the autoscaler from draining a pod's node, which would abort the trial."""

READABLE = 0o440
"""Mode of files that the pod's group may read."""

SESSION_MOUNT = {"name": "session", "mountPath": SECRET_MOUNT, "readOnly": True}
TMP_MOUNT = {"name": "tmp", "mountPath": "/tmp"}  # noqa: S108 - of the container

_RBAC = "rbac.authorization.k8s.io/v1"
_API_VERSIONS = {
    **dict.fromkeys(("ConfigMap", "Secret", "Service", "ServiceAccount", "PersistentVolumeClaim"), "v1"),
    "Job": "batch/v1",
    "NetworkPolicy": "networking.k8s.io/v1",
    "Role": _RBAC,
    "RoleBinding": _RBAC,
    "StorageClass": "storage.k8s.io/v1",
    RESULT_KIND: API_VERSION,
}

Json = dict[str, Any]


def metadata(
    run: Run, name: str, *, component: str, owned: bool = True, labels: Mapping[str, str] | None = None
) -> Json:
    """Return an object's metadata: in the run's namespace, with its labels, and garbage-collected with the run."""
    found: Json = {
        "name": name,
        "namespace": run.namespace,
        "labels": {**run_labels(run), naming.LABEL_COMPONENT: component, **(labels or {})},
    }
    if owned:
        found["ownerReferences"] = [run.owner_reference]
    return found


def foreign_metadata(run: Run, name: str, *, namespace: str | None, component: str) -> Json:
    """Return the metadata of an object outside the run's namespace; `namespace` None for a cluster-scoped one.

    Owner references do not cross namespaces, so the run's finalizer removes these, and a label names its namespace.
    """
    place = {} if namespace is None else {"namespace": namespace}
    labels = {**run_labels(run), naming.LABEL_RUN_NAMESPACE: run.namespace, naming.LABEL_COMPONENT: component}
    return {"name": name, **place, "labels": labels}


def run_labels(run: Run) -> dict[str, str]:
    """Return the labels of a run's objects. Programs select by UID; the name is for people."""
    return {
        naming.LABEL_MANAGED_BY: naming.MANAGED_BY,
        naming.LABEL_NAME: naming.MANAGED_BY,
        naming.LABEL_RUN: naming.label_value(run.name),
        naming.LABEL_RUN_UID: run.uid,
    }


def manifest(kind: str, metadata: Json, **content: object) -> Json:
    """Return an object of one of the kinds that runs consist of."""
    return {"apiVersion": _API_VERSIONS[kind], "kind": kind, "metadata": metadata, **content}


def empty_secret(metadata: Json) -> Json:
    """Return a Secret without data."""
    return manifest("Secret", metadata, immutable=True, type="Opaque")


def container_security(*, user: int = RUN_AS_USER) -> Json:
    """Return the container settings of the restricted profile, except for the user if that is root."""
    return {
        **_identity(user),
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


def pod_spec(*, grace_seconds: int, user: int = RUN_AS_USER, token: bool = False, **content: object) -> Json:
    """Return a pod that runs once, restricted as `container_security`; its volumes belong to the user's group."""
    return {
        "restartPolicy": "Never",
        "automountServiceAccountToken": token,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": grace_seconds,
        "securityContext": {**_identity(user), "fsGroup": user, "fsGroupChangePolicy": "OnRootMismatch"},
        **content,
    }


def session_volume(run: Run, items: Mapping[str, str]) -> Json:
    """Return the volume with some keys of the session secret, under these paths."""
    secret = {
        "secretName": naming.session_secret(run.name, run.uid),
        "defaultMode": READABLE,
        "items": [{"key": key, "path": path} for key, path in items.items()],
    }
    return {"name": "session", "secret": secret}


def _identity(user: int) -> Json:
    return {
        "runAsUser": user,
        "runAsGroup": user,
        "runAsNonRoot": user != 0,
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def environment(values: Mapping[str, str], fields: Mapping[str, str]) -> list[Json]:
    """Return a container's environment: plain values, and fields of its pod."""
    plain = [{"name": name, "value": value} for name, value in values.items()]
    downward = [{"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}} for name, path in fields.items()]
    return [*plain, *downward]
