"""What all objects of a run have in common."""

from collections.abc import Mapping
from typing import Any

from plimsoll.lifecycle import naming
from plimsoll.lifecycle.run import Run

PLAN_FILE = "plan.json"
STATE_FILE = "state.json"
PLAN_MOUNT = "/etc/plimsoll/plan"
SECRET_MOUNT = "/etc/plimsoll/session"  # noqa: S105 - a path
SCRATCH_MOUNT = "/var/lib/plimsoll"
RUN_AS_USER = 65532
NOT_EVICTED = {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}
"""Annotation of a pod whose node no autoscaler may empty: that would abort the trial."""

Json = dict[str, Any]


def metadata(
    run: Run, name: str, *, component: str, owned: bool = True, labels: Mapping[str, str] | None = None
) -> Json:
    """Return an object's metadata: in the run's namespace, with its labels, and going when the run goes."""
    found: Json = {
        "name": name,
        "namespace": run.namespace,
        "labels": {**run_labels(run), naming.LABEL_COMPONENT: component, **(labels or {})},
    }
    if owned:
        found["ownerReferences"] = [run.owner_reference]
    return found


def foreign_metadata(run: Run, name: str, *, namespace: str | None, component: str) -> Json:
    """Return the metadata of an object outside the run's namespace; None is for one that has no namespace.

    An owner has to be in the same namespace. So these go by the run's finalizer alone, and say where the run is.
    """
    place = {} if namespace is None else {"namespace": namespace}
    labels = {**run_labels(run), naming.LABEL_RUN_NAMESPACE: run.namespace, naming.LABEL_COMPONENT: component}
    return {"name": name, **place, "labels": labels}


def run_labels(run: Run) -> dict[str, str]:
    """Return the labels by which a run's objects are found; the UID decides, the name is for people."""
    return {
        naming.LABEL_MANAGED_BY: naming.MANAGED_BY,
        naming.LABEL_NAME: naming.MANAGED_BY,
        naming.LABEL_RUN: naming.label_value(run.name),
        naming.LABEL_RUN_UID: run.uid,
    }


def container_security(*, user: int = RUN_AS_USER) -> Json:
    """Return the restricted profile's container settings; as uid 0 the rest of them stays."""
    return {
        "runAsUser": user,
        "runAsGroup": user,
        "runAsNonRoot": user != 0,
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def pod_security(*, user: int = RUN_AS_USER) -> Json:
    """Return the restricted profile's pod settings; volumes belong to the user's group."""
    return {
        "runAsUser": user,
        "runAsGroup": user,
        "runAsNonRoot": user != 0,
        "fsGroup": user,
        "fsGroupChangePolicy": "OnRootMismatch",
        "seccompProfile": {"type": "RuntimeDefault"},
    }


def environment(values: Mapping[str, str], fields: Mapping[str, str]) -> list[Json]:
    """Return a container's environment: plain values, and fields of its own pod."""
    plain = [{"name": name, "value": value} for name, value in values.items()]
    downward = [{"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}} for name, path in fields.items()]
    return [*plain, *downward]
