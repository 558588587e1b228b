"""A client: its volume claim and the Job of its agent."""

from plimsoll.api.quantity import format_quantity
from plimsoll.api.run import Clients
from plimsoll.api.storage import Volume
from plimsoll.lifecycle import naming
from plimsoll.lifecycle.render import ceph
from plimsoll.lifecycle.render.common import (
    NOT_EVICTED,
    RUN_AS_USER,
    SCRATCH_MOUNT,
    SECRET_MOUNT,
    Json,
    container_security,
    environment,
    metadata,
    pod_security,
    run_labels,
)
from plimsoll.lifecycle.run import Run
from plimsoll.lifecycle.settings import Settings
from plimsoll.plan.document import Plan
from plimsoll.protocol.secret import CERTIFICATE_FILE, TOKEN_FILE, token_name

DATA_MOUNT = "/data"
DEVICE_PATH = "/dev/plimsoll-volume"
_CPU_REQUEST = "100m"
_NODE_GONE_SECONDS = 30
_NODE_TAINTS = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")


def claim(run: Run, volume: Volume, storage_class: str, client: int) -> Json:
    """Return a client's volume claim."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": metadata(
            run,
            naming.client_claim(run.name, client),
            component=naming.CLIENT,
            labels={naming.LABEL_CLIENT: str(client)},
        ),
        "spec": {
            "storageClassName": storage_class,
            "accessModes": ["ReadWriteOnce"],
            "volumeMode": volume.mode,
            "resources": {"requests": {"storage": format_quantity(volume.size)}},
        },
    }


def has_claim(plan: Plan) -> bool:
    """Tell whether each client has a volume by claim; an image is reached through librbd instead."""
    return plan.volume is not None and plan.volume.access == "PVC"


def job(run: Run, plan: Plan, settings: Settings, *, client: int, attempt: int) -> Json:
    """Return the Job of one process of a client. It runs once: a lost process gets a successor, not a restart."""
    identity = {naming.LABEL_CLIENT: str(client), naming.LABEL_ATTEMPT: str(attempt)}
    labels = {**run_labels(run), naming.LABEL_COMPONENT: naming.CLIENT, **identity}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata(
            run, naming.client_job(run.name, client, attempt), component=naming.CLIENT, labels=identity
        ),
        "spec": {
            "backoffLimit": 0,
            "template": {
                "metadata": {"labels": labels, "annotations": dict(NOT_EVICTED)},
                "spec": _pod(run, plan, settings, client=client, attempt=attempt),
            },
        },
    }


def _pod(run: Run, plan: Plan, settings: Settings, *, client: int, attempt: int) -> Json:
    wanted = run.document.spec.clients if run.document else Clients()
    # A raw device appears as root:root 0600; uid 0 without any capability may use it, others may not.
    user = 0 if has_device(plan) else RUN_AS_USER
    spec: Json = {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": 5,
        "securityContext": pod_security(user=user),
        "nodeSelector": dict(wanted.node_selector),
        "tolerations": [*_node_gone_tolerations(), *(dict(toleration) for toleration in wanted.tolerations)],
        "topologySpreadConstraints": [_spread(run, wanted)],
        "imagePullSecrets": [{"name": secret.name} for secret in wanted.image_pull_secrets],
        "containers": [_container(run, plan, settings, user=user, client=client, attempt=attempt)],
        "volumes": _volumes(run, plan, client),
    }
    if wanted.priority_class_name:
        spec["priorityClassName"] = wanted.priority_class_name
    return spec


def _container(run: Run, plan: Plan, settings: Settings, *, user: int, client: int, attempt: int) -> Json:
    # While pods are scheduled, images pulled and volumes bound there may be no conductor yet.
    silence = plan.timeouts.provision_seconds + plan.timeouts.ready_seconds
    container: Json = {
        "name": naming.CLIENT,
        "image": plan.runner_image,
        "imagePullPolicy": settings.image_pull_policy,
        "args": [
            "agent",
            f"--conductor=https://{naming.conductor(run.name)}.{run.namespace}.svc:{settings.port}",
            f"--secret={SECRET_MOUNT}",
            f"--client={client}",
            f"--attempt={attempt}",
            f"--work={SCRATCH_MOUNT}",
            f"--silence={silence}",
            "--termination-log=/dev/termination-log",
            *(f"--tool={tool}" for tool in ceph.tools_of(plan)),
            *_volume_arguments(plan),
            *ceph.client_arguments(plan, client),
        ],
        "env": environment(ceph.ENVIRONMENT if ceph.clients_use_ceph(plan) else {}, {"PLIMSOLL_NODE": "spec.nodeName"}),
        "resources": _resources(run),
        "securityContext": container_security(user=user),
        "volumeMounts": [
            {"name": "session", "mountPath": SECRET_MOUNT, "readOnly": True},
            {"name": "scratch", "mountPath": SCRATCH_MOUNT},
            {"name": "tmp", "mountPath": "/tmp"},  # noqa: S108 - of the container
            *ceph.client_mounts(plan, client),
        ],
    }
    if has_device(plan):
        container["volumeDevices"] = [{"name": "data", "devicePath": DEVICE_PATH}]
    elif has_claim(plan):
        container["volumeMounts"].append({"name": "data", "mountPath": DATA_MOUNT})
    return container


def _resources(run: Run) -> Json:
    """Return what the run asks for. A pod without a CPU request comes last on a busy node, and would measure that."""
    wanted: Json = dict(run.document.spec.clients.resources) if run.document else {}
    requests, limits = wanted.get("requests", {}), wanted.get("limits", {})
    if "cpu" not in {*requests, *limits}:
        wanted["requests"] = {"cpu": _CPU_REQUEST, **requests}
    return wanted


def has_device(plan: Plan) -> bool:
    """Whether clients open a block device, which only root may."""
    return has_claim(plan) and plan.volume is not None and plan.volume.mode == "Block"


def _volume_arguments(plan: Plan) -> list[str]:
    if plan.volume is None or not has_claim(plan):
        return []
    if plan.volume.mode == "Block":
        return [f"--device={DEVICE_PATH}"]
    # Some file systems show the whole of what is behind them: a directory of a node, an export of a server.
    return [f"--directory={DATA_MOUNT}", "--mounted", f"--capacity={plan.volume.size}"]


def _volumes(run: Run, plan: Plan, client: int) -> list[Json]:
    """Return the pod's volumes. An agent gets the certificate and its client's token, and no other key or token."""
    token = token_name(client) if plan.client_tokens else TOKEN_FILE
    items = {CERTIFICATE_FILE: CERTIFICATE_FILE, token: TOKEN_FILE}
    volumes: list[Json] = [
        {
            "name": "session",
            "secret": {
                "secretName": naming.session_secret(run.name, run.uid),
                "defaultMode": 0o440,
                "items": [{"key": key, "path": path} for key, path in items.items()],
            },
        },
        {"name": "scratch", "emptyDir": {"sizeLimit": "1Gi"}},
        {"name": "tmp", "emptyDir": {"sizeLimit": "64Mi"}},
        *ceph.client_volumes(run, plan, client),
    ]
    if has_claim(plan):
        claim_name = naming.client_claim(run.name, client)
        volumes.append({"name": "data", "persistentVolumeClaim": {"claimName": claim_name}})
    return volumes


def _spread(run: Run, wanted: Clients) -> Json:
    """Return the rule that puts at most one more client on any node than on another."""
    return {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "DoNotSchedule" if wanted.spread == "Required" else "ScheduleAnyway",
        "nodeTaintsPolicy": "Honor",
        "labelSelector": {"matchLabels": {naming.LABEL_RUN_UID: run.uid, naming.LABEL_COMPONENT: naming.CLIENT}},
    }


def _node_gone_tolerations() -> list[Json]:
    """Return tolerations that have a pod evicted soon after its node is gone, not after five minutes."""
    return [
        {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": _NODE_GONE_SECONDS}
        for key in _NODE_TAINTS
    ]
