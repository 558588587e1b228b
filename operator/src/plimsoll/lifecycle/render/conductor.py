"""The conductor: its permissions, its address and its Job."""

from plimsoll.api.names import GROUP
from plimsoll.api.run import Conductor
from plimsoll.lifecycle import naming
from plimsoll.lifecycle.render import ceph, common, network
from plimsoll.lifecycle.render.common import Json, manifest
from plimsoll.lifecycle.run import Run, Settings
from plimsoll.plan.document import PLAN_FILE, Plan
from plimsoll.plan.windows import WINDOWS
from plimsoll.protocol.assignment import CERTIFICATE_FILE, KEY_FILE, TOKEN_KEY_FILE

_PERMANENT_EXIT_CODES = list(range(10, 21))
_INTERRUPTED_EXIT_CODE = 3

_JOB_UID = "metadata.labels['batch.kubernetes.io/controller-uid']"
"""The UID of a pod's Job: the same for all pods of the Job, and another one after a suspension."""

_YEAR = 365 * 24 * 3600  # within which a run with maintenance windows has to end
_OPERATIONS = 3  # maximum number of a client's operations in one trial
_BYTES_PER_ROW = 200  # memory for one second of one operation of one client until the trial is judged


def service_account(run: Run) -> Json:
    metadata = _metadata(run, naming.conductor_account(run.name))
    return manifest("ServiceAccount", metadata, automountServiceAccountToken=False)


def role(run: Run, plan: Plan) -> Json:
    """Return the conductor's Role: read and patch only this run's state and results."""
    results = [naming.result(run.name, point.name) for point in plan.points]
    allowed = [
        ("", "configmaps", [naming.state_config_map(run.name)], ["get", "patch"]),
        (GROUP, "benchmarkresults", results, ["get"]),
        (GROUP, "benchmarkresults/status", results, ["patch"]),
    ]
    rules = [
        {"apiGroups": [group], "resources": [resource], "resourceNames": names, "verbs": verbs}
        for group, resource, names, verbs in allowed
    ]
    return manifest("Role", _metadata(run, naming.conductor_account(run.name)), rules=rules)


def role_binding(run: Run) -> Json:
    name = naming.conductor_account(run.name)
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name}
    account = {"kind": "ServiceAccount", "name": name, "namespace": run.namespace}
    return manifest("RoleBinding", _metadata(run, name), roleRef=role, subjects=[account])


def service(run: Run, settings: Settings) -> Json:
    """Return the conductor's stable address, published before the conductor is ready."""
    spec = {
        "selector": {naming.LABEL_RUN_UID: run.uid, naming.LABEL_COMPONENT: naming.CONDUCTOR},
        "publishNotReadyAddresses": True,
        "ports": [{"name": "rendezvous", "port": settings.port, "targetPort": "rendezvous", "protocol": "TCP"}],
    }
    return manifest("Service", _metadata(run, naming.conductor(run.name)), spec=spec)


def job(run: Run, plan: Plan, settings: Settings) -> Json:
    """Return the conductor's Job. Its pod is replaced only once it is gone; permanent failures fail the Job."""
    labels = {**common.run_labels(run), naming.LABEL_COMPONENT: naming.CONDUCTOR}
    exits = {"containerName": naming.CONDUCTOR, "operator": "In"}
    rules = [
        {"action": "FailJob", "onExitCodes": {**exits, "values": _PERMANENT_EXIT_CODES}},
        {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]},
        {"action": "Ignore", "onExitCodes": {**exits, "values": [_INTERRUPTED_EXIT_CODE]}},
    ]
    wanted = run.document.spec.conductor if run.document else Conductor()
    pod = {**_pod(run, plan, settings), "nodeSelector": wanted.node_selector}
    annotations, resources = common.NOT_EVICTED, wanted.resources
    template = common.pod_template(pod, settings, run, labels=labels, annotations=annotations, resources=resources)
    # The run's own time does not count before its clients have registered, and while it waits for a maintenance window;
    # and an hour of slack.
    starting_seconds = plan.timeouts.provision_seconds + plan.timeouts.ready_seconds
    spec = {
        "backoffLimit": settings.conductor_restarts,
        "podReplacementPolicy": "Failed",
        "activeDeadlineSeconds": starting_seconds + plan.timeouts.total_seconds + (_YEAR if settings.windows else 3600),
        "podFailurePolicy": {"rules": rules},
        "template": template,
    }
    return manifest("Job", _metadata(run, naming.conductor(run.name)), spec=spec)


def _metadata(run: Run, name: str) -> Json:
    return common.metadata(run, name, component=naming.CONDUCTOR)


def _pod(run: Run, plan: Plan, settings: Settings) -> Json:
    # For the documents of the largest trial: 1 GiB, and more for very long trials.
    rows = max((point.clients * point.runtime_seconds for point in plan.points), default=0) * _OPERATIONS
    windows = WINDOWS.dump_json(settings.windows).decode()
    caches, memory = network.caches_access(plan), f"{2**10 + rows * _BYTES_PER_ROW // 2**20}Mi"
    container = {
        "name": naming.CONDUCTOR,
        "image": plan.runner_image,
        "imagePullPolicy": settings.image_pull_policy,
        "args": [
            "conductor",
            f"--namespace={run.namespace}",
            f"--plan={common.PLAN_MOUNT}/{PLAN_FILE}",
            f"--secret={common.SECRET_MOUNT}",
            "--host=",
            f"--port={settings.port}",
            "--termination-log=/dev/termination-log",
        ],
        "env": common.environment(
            {
                "PLIMSOLL_METRICS_PORT": str(settings.metrics_port),
                **(ceph.ENVIRONMENT if plan.ceph else {}),
                **caches.environment,
                **({"PLIMSOLL_MAINTENANCE_WINDOWS": windows} if settings.windows else {}),
            },
            {"PLIMSOLL_EPOCH": "metadata.uid", "PLIMSOLL_JOB": _JOB_UID},
        ),
        "ports": [
            {"name": "rendezvous", "containerPort": settings.port},
            {"name": "metrics", "containerPort": settings.metrics_port},
        ],
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": memory}},
        "securityContext": common.container_security(),
        "volumeMounts": [
            {"name": "plan", "mountPath": common.PLAN_MOUNT, "readOnly": True},
            common.SESSION_MOUNT,
            common.TMP_MOUNT,
            *([ceph.VOLUME_MOUNT] if plan.ceph else ()),
            *caches.mounts,
        ],
    }
    return common.pod_spec(
        settings,
        grace_seconds=30,
        token=True,
        serviceAccountName=naming.conductor_account(run.name),
        containers=[container],
        volumes=[
            {"name": "plan", "configMap": {"name": naming.plan_config_map(run.name)}},
            common.session_volume(run, {name: name for name in (CERTIFICATE_FILE, KEY_FILE, TOKEN_KEY_FILE)}),
            common.TMP_VOLUME,
            *(ceph.volumes(run, plan.ceph, naming.CONDUCTOR) if plan.ceph else ()),
            *caches.volumes,
        ],
    )
