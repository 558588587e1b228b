"""The conductor: its rights, its address and its Job."""

from plimsoll.api.names import GROUP
from plimsoll.api.run import Clients
from plimsoll.lifecycle import naming
from plimsoll.lifecycle.render import ceph
from plimsoll.lifecycle.render.common import (
    NOT_EVICTED,
    PLAN_FILE,
    PLAN_MOUNT,
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
from plimsoll.protocol.secret import CERTIFICATE_FILE, KEY_FILE, TOKEN_FILE, TOKEN_KEY_FILE

_DEADLINE_SLACK_SECONDS = 3600
_PERMANENT_EXIT_CODES = [10, 11, 12, 13]
_INTERRUPTED_EXIT_CODE = 3

_OPERATIONS = 3
"""Of a client in one trial, at most."""

_BYTES_PER_ROW = 200
"""What one second of one operation of one client takes in the conductor until the trial is judged, with a margin."""


def service_account(run: Run) -> Json:
    """Return the identity under which the conductor talks to the API."""
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": metadata(run, naming.conductor(run.name), component=naming.CONDUCTOR),
        "automountServiceAccountToken": False,
    }


def role(run: Run, plan: Plan) -> Json:
    """Return all that the conductor may do: read and patch this run's own state and results."""
    results = [naming.result(run.name, point.name) for point in plan.points]
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": metadata(run, naming.conductor(run.name), component=naming.CONDUCTOR),
        "rules": [
            {
                "apiGroups": [""],
                "resources": ["configmaps"],
                "resourceNames": [naming.state_config_map(run.name)],
                "verbs": ["get", "patch"],
            },
            {
                "apiGroups": [GROUP],
                "resources": ["benchmarkresults"],
                "resourceNames": results,
                "verbs": ["get"],
            },
            {
                "apiGroups": [GROUP],
                "resources": ["benchmarkresults/status"],
                "resourceNames": results,
                "verbs": ["patch"],
            },
        ],
    }


def role_binding(run: Run) -> Json:
    """Return what gives the conductor its rights."""
    name = naming.conductor(run.name)
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": metadata(run, name, component=naming.CONDUCTOR),
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": run.namespace}],
    }


def service(run: Run, settings: Settings) -> Json:
    """Return the conductor's stable address. A conductor that is not ready yet is an address already."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(run, naming.conductor(run.name), component=naming.CONDUCTOR),
        "spec": {
            "selector": {naming.LABEL_RUN_UID: run.uid, naming.LABEL_COMPONENT: naming.CONDUCTOR},
            "publishNotReadyAddresses": True,
            "ports": [{"name": "rendezvous", "port": settings.port, "targetPort": "rendezvous", "protocol": "TCP"}],
        },
    }


def job(run: Run, plan: Plan, settings: Settings) -> Json:
    """Return the conductor's Job: replaced only when it is surely gone, and given up for failures that stay."""
    labels = {**run_labels(run), naming.LABEL_COMPONENT: naming.CONDUCTOR}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata(run, naming.conductor(run.name), component=naming.CONDUCTOR),
        "spec": {
            "backoffLimit": settings.conductor_restarts,
            "podReplacementPolicy": "Failed",
            "activeDeadlineSeconds": plan.timeouts.total_seconds + _DEADLINE_SLACK_SECONDS,
            "podFailurePolicy": {
                "rules": [
                    _on_exit("FailJob", _PERMANENT_EXIT_CODES),
                    {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]},
                    _on_exit("Ignore", [_INTERRUPTED_EXIT_CODE]),
                ]
            },
            "template": {
                "metadata": {"labels": labels, "annotations": dict(NOT_EVICTED)},
                "spec": _pod(run, plan, settings),
            },
        },
    }


def _on_exit(action: str, codes: list[int]) -> Json:
    return {
        "action": action,
        "onExitCodes": {"containerName": naming.CONDUCTOR, "operator": "In", "values": codes},
    }


def _pod(run: Run, plan: Plan, settings: Settings) -> Json:
    """Return the conductor's pod: it may run where clients may, but not only there.

    `clients.nodeSelector` names the machines that are to produce load: whatever else runs there takes from it.
    """
    clients = run.document.spec.clients if run.document else Clients()
    token_file = TOKEN_KEY_FILE if plan.client_tokens else TOKEN_FILE
    spec: Json = {
        "restartPolicy": "Never",
        "serviceAccountName": naming.conductor(run.name),
        "automountServiceAccountToken": True,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": 30,
        "securityContext": pod_security(),
        "tolerations": [dict(toleration) for toleration in clients.tolerations],
        "imagePullSecrets": [{"name": secret.name} for secret in clients.image_pull_secrets],
        "containers": [
            {
                "name": naming.CONDUCTOR,
                "image": plan.runner_image,
                "imagePullPolicy": settings.image_pull_policy,
                "args": [
                    "conductor",
                    f"--namespace={run.namespace}",
                    f"--plan={PLAN_MOUNT}/{PLAN_FILE}",
                    f"--secret={SECRET_MOUNT}",
                    "--host=",
                    f"--port={settings.port}",
                    "--termination-log=/dev/termination-log",
                ],
                "env": environment(
                    # No argument: the image is that of the plan, and one that is older would refuse it.
                    {"PLIMSOLL_METRICS_PORT": str(settings.metrics_port), **(ceph.ENVIRONMENT if plan.ceph else {})},
                    {"PLIMSOLL_EPOCH": "metadata.uid"},
                ),
                "ports": [
                    {"name": "rendezvous", "containerPort": settings.port},
                    {"name": "metrics", "containerPort": settings.metrics_port},
                ],
                "resources": {
                    "requests": {"cpu": "100m", "memory": "128Mi"},
                    "limits": {"memory": _memory_limit(plan)},
                },
                "securityContext": container_security(),
                "volumeMounts": [
                    {"name": "plan", "mountPath": PLAN_MOUNT, "readOnly": True},
                    {"name": "session", "mountPath": SECRET_MOUNT, "readOnly": True},
                    {"name": "tmp", "mountPath": "/tmp"},  # noqa: S108 - of the container
                    *(ceph.mounts() if plan.ceph else ()),
                ],
            }
        ],
        "volumes": [
            {"name": "plan", "configMap": {"name": naming.plan_config_map(run.name)}},
            {
                "name": "session",
                "secret": {
                    "secretName": naming.session_secret(run.name, run.uid),
                    "defaultMode": 0o440,
                    "items": [{"key": name, "path": name} for name in (CERTIFICATE_FILE, KEY_FILE, token_file)],
                },
            },
            {"name": "tmp", "emptyDir": {}},
            *(ceph.volumes(run, plan.ceph, naming.CONDUCTOR) if plan.ceph else ()),
        ],
    }
    if clients.priority_class_name:
        spec["priorityClassName"] = clients.priority_class_name
    return spec


def _memory_limit(plan: Plan) -> str:
    """Return what the documents of the largest trial may take: a gibibyte, and more for very long trials."""
    rows = max((point.clients * point.runtime_seconds for point in plan.points), default=0) * _OPERATIONS
    return f"{2**10 + rows * _BYTES_PER_ROW // 2**20}Mi"
