"""Names and labels of a run's objects: functions return names. Deterministic: a second creation finds the first."""

from hashlib import sha256

from plimsoll.api.names import GROUP
from plimsoll.plan.document import base_name

MANAGED_BY = "plimsoll"

FINALIZER = f"{GROUP}/teardown"  # keeps a deleted run until everything that was created for it is removed
LABEL_MANAGED_BY = "app.kubernetes.io/managed-by"
LABEL_NAME = "app.kubernetes.io/name"
LABEL_COMPONENT = "app.kubernetes.io/component"
LABEL_RUN = f"{GROUP}/run"
LABEL_RUN_UID = f"{GROUP}/run-uid"
LABEL_RUN_NAMESPACE = f"{GROUP}/run-namespace"
LABEL_CLIENT = f"{GROUP}/client"
LABEL_ATTEMPT = f"{GROUP}/attempt"
LABEL_ROLE = f"{GROUP}/role"
LABEL_WORKLOAD = f"{GROUP}/workload"

ANNOTATION_ASSIGNMENT = f"{GROUP}/assignment"  # of a client's pod: the assignment, which its agent reads as a file
CONDUCTOR = "conductor"
CLIENT = "client"
SERVER = "server"  # role of a client that only serves others; its component is CLIENT too
STORAGE = "storage"
TEARDOWN = "teardown"
CONTAINERS = frozenset({CONDUCTOR, CLIENT, TEARDOWN})  # Plimsoll's, one in each pod, besides sidecars
ALLOW_BENCHMARKS = f"{GROUP}/allow-benchmarks"  # "true" lets runs use a CephBlockPool, CephFilesystem or Secret
ANNOTATION_KEY_GENERATION = f"{GROUP}/key-generation"  # Rook's number of a copied key, which rises with rotation
_MAX_NAME = 63
_DIGEST = 8


def child(run: str, suffix: str) -> str:
    """Return `<run>-<suffix>` in at most 63 characters: a longer run name is truncated and gets a digest."""
    return f"{label_value(run, _MAX_NAME - len(suffix) - 1)}-{suffix}"


def label_value(text: str, longest: int = _MAX_NAME) -> str:
    """Return a text as a label value: one with more characters is truncated and gets a digest."""
    if len(text) <= longest:
        return text
    return f"{text[: longest - _DIGEST - 1]}-{sha256(text.encode()).hexdigest()[:_DIGEST]}"


def plan_config_map(run: str) -> str:
    return child(run, "plan")


def state_config_map(run: str) -> str:
    return child(run, "state")


def session_secret(uid: str) -> str:
    """Return a name with the UID: the operator cannot read Secrets, and must not use that of an earlier run."""
    return f"{MANAGED_BY}-session-{uid}"


def conductor(run: str) -> str:
    return child(run, CONDUCTOR)


def conductor_account(run: str) -> str:
    """Return the name of the ServiceAccount, Role and RoleBinding; only the operator may create such an account."""
    return f"{MANAGED_BY}-{conductor(run)}"


def network_policy(run: str, component: str) -> str:
    return child(run, f"{component}-network")


def client_job(run: str, client: int, attempt: int) -> str:
    """Return the name of the Job of a client's process; a replacement has a higher attempt number."""
    return child(run, f"{CLIENT}-{client}-{attempt}")


def client_claim(run: str, client: int) -> str:
    """Return the name of a client's PVC, which outlives its processes. Only the operator may create such a PVC."""
    return child(f"{MANAGED_BY}-{run}", f"{CLIENT}-{client}")


def shared_claim(run: str) -> str:
    return child(f"{MANAGED_BY}-{run}", "shared")


def result(run: str, point: str) -> str:
    return f"{run}-{point}"


def ceph_config_map(run: str) -> str:
    return child(run, "ceph")


def keyring_secret(uid: str, component: str) -> str:
    return f"{MANAGED_BY}-{component}-keyring-{uid}"


def storage_class(run: str, uid: str) -> str:
    """Return the name of a run's own StorageClass. It has no namespace, so the UID makes it unique."""
    return base_name(run, uid)


def teardown(uid: str) -> str:
    """Return the name of a run's record, keyring Secret, NetworkPolicy and Job in the namespace of teardowns."""
    return f"{MANAGED_BY}-{TEARDOWN}-{uid}"


def restoration(uid: str) -> str:
    """Return the name of the Job in the namespace of teardowns that restores what a lost conductor changed."""
    return f"{teardown(uid)}-restore"


def key_renewal(uid: str) -> str:
    """Return the name of the empty Secret that exists while the keyring Secret `teardown` is replaced."""
    return f"{teardown(uid)}-renewal"
