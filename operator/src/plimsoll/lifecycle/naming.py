"""Names and labels of a run's objects. Deterministic: creating one twice meets the first."""

from hashlib import sha256

from plimsoll.api.names import GROUP
from plimsoll.plan.ceph import base_name

MANAGED_BY = "plimsoll"

LABEL_MANAGED_BY = "app.kubernetes.io/managed-by"
LABEL_NAME = "app.kubernetes.io/name"
LABEL_COMPONENT = "app.kubernetes.io/component"
LABEL_RUN = f"{GROUP}/run"
LABEL_RUN_UID = f"{GROUP}/run-uid"
LABEL_RUN_NAMESPACE = f"{GROUP}/run-namespace"
LABEL_CLIENT = f"{GROUP}/client"
LABEL_ATTEMPT = f"{GROUP}/attempt"
LABEL_WORKLOAD = f"{GROUP}/workload"

CONDUCTOR = "conductor"
CLIENT = "client"
STORAGE = "storage"
TEARDOWN = "teardown"

ALLOW_BENCHMARKS = f"{GROUP}/allow-benchmarks"
"""Annotation with which the owner of an existing CephBlockPool, or of a Secret with a keyring, says `"true"`: runs may
use it."""

_MAX_NAME = 63
_DIGEST = 8


def child(run: str, suffix: str) -> str:
    """Return `<run>-<suffix>`, at most 63 characters: a longer run name is cut and told apart by a digest."""
    name = f"{run}-{suffix}"
    if len(name) <= _MAX_NAME:
        return name
    digest = sha256(run.encode()).hexdigest()[:_DIGEST]
    return f"{run[: _MAX_NAME - len(suffix) - _DIGEST - 2]}-{digest}-{suffix}"


def label_value(text: str) -> str:
    """Return a text as a label's value: cut to 63 characters, and told apart by a digest if it was longer."""
    if len(text) <= _MAX_NAME:
        return text
    return f"{text[: _MAX_NAME - _DIGEST - 1]}-{sha256(text.encode()).hexdigest()[:_DIGEST]}"


def plan_config_map(run: str) -> str:
    """Return the name of the frozen plan's ConfigMap."""
    return child(run, "plan")


def state_config_map(run: str) -> str:
    """Return the name of the ConfigMap in which the conductor says what it is doing."""
    return child(run, "state")


def session_secret(run: str, uid: str) -> str:
    """Return the name of the session secret.

    A part of the UID stands in it: the operator may not look at Secrets, and must not take the one of an earlier run
    of that name, which is about to be collected, for this run's.
    """
    return child(run, f"session-{sha256(uid.encode()).hexdigest()[:_DIGEST]}")


def conductor(run: str) -> str:
    """Return the name of everything that is the conductor's: Job, Service, ServiceAccount, Role, RoleBinding."""
    return child(run, CONDUCTOR)


def client_job(run: str, client: int, attempt: int) -> str:
    """Return the name of the Job of a client's process; a later process of the same client has a later attempt."""
    return child(run, f"{CLIENT}-{client}-{attempt}")


def client_claim(run: str, client: int) -> str:
    """Return the name of a client's volume claim, which outlives its processes."""
    return child(run, f"{CLIENT}-{client}")


def result(run: str, point: str) -> str:
    """Return the name of a point's result."""
    return f"{run}-{point}"


def ceph_config_map(run: str) -> str:
    """Return the name of the ConfigMap with the run's `ceph.conf`."""
    return child(run, "ceph")


def keyring_secret(run: str, uid: str, component: str) -> str:
    """Return the name of the Secret with the conductor's or the clients' keyring; a part of the UID as above."""
    return child(run, f"{component}-keyring-{sha256(uid.encode()).hexdigest()[:_DIGEST]}")


def storage_class(run: str, uid: str) -> str:
    """Return the name of the StorageClass that is made for a run. It has no namespace, so the UID tells runs apart."""
    return base_name(run, uid)


def teardown(uid: str) -> str:
    """Return the name of what the operator's namespace has of a run: record, keyring Secret, Job."""
    return f"{MANAGED_BY}-{TEARDOWN}-{uid}"
