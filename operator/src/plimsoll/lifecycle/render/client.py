"""A client: its PVC and the Job of its agent. A server is a client without PVC, with a placement of its own."""

from collections.abc import Iterator

from plimsoll.api.quantity import format_quantity
from plimsoll.api.run import Clients
from plimsoll.api.storage import Volume
from plimsoll.lifecycle import naming
from plimsoll.lifecycle.render import ceph, common, network
from plimsoll.lifecycle.render.common import Json, manifest, metadata
from plimsoll.lifecycle.run import Run, Settings
from plimsoll.plan.document import Plan
from plimsoll.protocol.assignment import (
    CERTIFICATE_FILE,
    TOKEN_FILE,
    AssignedVolume,
    Assignment,
    BlockDevice,
    DataFile,
    SharedDirectory,
    token_name,
)
from plimsoll.tools.registry import TOOLS

DATA_MOUNT = "/data"
DEVICE_PATH = "/dev/plimsoll-volume"
ASSIGNMENT_MOUNT = "/etc/plimsoll/assignment"
ASSIGNMENT_FILE = "assignment.json"


def claims(run: Run, plan: Plan, storage_class: str) -> Iterator[Json]:
    """Yield the PVCs: one for each client, or one that all clients share; none without claims."""
    volume = plan.volume
    if volume is None or not plan.has_claims:
        return
    size = volume.size * (plan.clients if volume.is_shared else 1)
    spec = {
        "storageClassName": storage_class,
        "accessModes": ["ReadWriteMany" if volume.is_shared else "ReadWriteOnce"],
        "volumeMode": volume.mode,
        "resources": {"requests": {"storage": format_quantity(size)}},
    }
    for client in (0,) if volume.is_shared else range(plan.clients):
        labels = {} if volume.is_shared else {naming.LABEL_CLIENT: str(client)}
        described = metadata(run, _claim_name(run, volume, client), component=naming.CLIENT, labels=labels)
        yield manifest("PersistentVolumeClaim", described, spec=spec)


def has_device(plan: Plan, client: int) -> bool:
    """Whether a client opens a raw device, which requires root."""
    return plan.volume is not None and plan.volume.maps_device and not plan.is_server(client)


def job(run: Run, plan: Plan, settings: Settings, *, client: int, attempt: int) -> Json:
    """Return the Job of one process of a client. It runs once: a lost process gets a new Job, not a restart."""
    identity = {naming.LABEL_CLIENT: str(client), naming.LABEL_ATTEMPT: str(attempt)}
    if plan.is_server(client):
        identity[naming.LABEL_ROLE] = naming.SERVER
    labels = {**common.run_labels(run), naming.LABEL_COMPONENT: naming.CLIENT, **identity}
    assigned = assignment(run, plan, settings, client=client, attempt=attempt)
    annotations = {**common.NOT_EVICTED, naming.ANNOTATION_ASSIGNMENT: assigned.model_dump_json(exclude_none=True)}
    pod, resources = _pod(run, plan, settings, assigned), run.document.spec.clients.resources if run.document else {}
    template = common.pod_template(pod, settings, run, labels=labels, annotations=annotations, resources=resources)
    name = naming.client_job(run.name, client, attempt)
    described = metadata(run, name, component=naming.CLIENT, labels=identity)
    return manifest("Job", described, spec={"backoffLimit": 0, "template": template})


def assignment(run: Run, plan: Plan, settings: Settings, *, client: int, attempt: int) -> Assignment:
    volume = plan.volume
    assigned: AssignedVolume | None = ceph.image(plan, client)
    if volume is not None and _mounts_claim(plan, client):
        # Some file systems report the capacity of the whole backing store: a node's directory, a server's export.
        assigned = DataFile(path=f"{DATA_MOUNT}/plimsoll.data", mounted=True, capacity=volume.size)
        if volume.maps_device:
            assigned = BlockDevice(path=DEVICE_PATH)
        elif volume.is_shared:
            part, clients, one_file = volume.size, plan.clients, plan.has_shared_file
            assigned = SharedDirectory(path=DATA_MOUNT, mounted=True, part=part, clients=clients, one_file=one_file)
    return Assignment(
        conductor=f"https://{naming.conductor(run.name)}.{run.namespace}.svc:{settings.port}",
        client=client,
        attempt=attempt,
        work=common.SCRATCH_MOUNT,
        # The conductor may not exist yet while pods are scheduled, images pulled and volumes bound.
        silence_seconds=plan.timeouts.provision_seconds + plan.timeouts.ready_seconds,
        tools=ceph.tools_of(plan),
        volume=assigned,
        rados=ceph.rados(plan, client),
        osd_keyring=ceph.osd_keyring(plan, client),
        caches=None if plan.cache_helper is None else True,
        termination_log="/dev/termination-log",
    )


def _claim_name(run: Run, volume: Volume, client: int) -> str:
    return naming.shared_claim(run.name) if volume.is_shared else naming.client_claim(run.name, client)


def _pod(run: Run, plan: Plan, settings: Settings, assigned: Assignment) -> Json:
    client = assigned.client
    wanted = run.document.spec.clients if run.document else Clients()
    field = {"fieldPath": f"metadata.annotations['{naming.ANNOTATION_ASSIGNMENT}']"}
    volumes: list[Json] = [
        # Only its own client's token.
        common.session_volume(run, {CERTIFICATE_FILE: CERTIFICATE_FILE, token_name(client): TOKEN_FILE}),
        {"name": "assignment", "downwardAPI": {"items": [{"path": ASSIGNMENT_FILE, "fieldRef": field}]}},
        {"name": "scratch", "emptyDir": {"sizeLimit": "1Gi"}},
        common.TMP_VOLUME,
        *ceph.client_access(run, plan, client).volumes,
        *network.burner_access(run, plan, client).volumes,
    ]
    if _mounts_claim(plan, client) and plan.volume is not None:
        volumes.append({"name": "data", "persistentVolumeClaim": {"claimName": _claim_name(run, plan.volume, client)}})
    spec = common.pod_spec(
        settings,
        grace_seconds=5,
        # A raw device is root:root 0600, so only uid 0 may open it, even without any capability.
        is_root=has_device(plan, client),
        **common.placement(run, plan, wanted, client),
        containers=[_container(run, plan, settings, assigned)],
        volumes=volumes,
    )
    # All are safe ones, which the restricted profile permits.
    if sysctls := {name: value for point in plan.points for name, value in TOOLS[point.tool].sysctls.items()}:
        spec["securityContext"]["sysctls"] = [{"name": name, "value": value} for name, value in sorted(sysctls.items())]
    return spec


def _container(run: Run, plan: Plan, settings: Settings, assigned: Assignment) -> Json:
    client = assigned.client
    to_ceph, burner = ceph.client_access(run, plan, client), network.burner_access(run, plan, client)
    values = {**to_ceph.environment, **burner.environment, **network.caches_helper(plan)}
    container: Json = {
        "name": naming.CLIENT,
        "image": plan.runner_image,
        "imagePullPolicy": settings.image_pull_policy,
        "args": ["agent", f"--assignment={ASSIGNMENT_MOUNT}/{ASSIGNMENT_FILE}", f"--secret={common.SECRET_MOUNT}"],
        "env": common.environment(values, {"PLIMSOLL_NODE": "spec.nodeName"}),
        # Without a CPU request a busy node would starve the pod.
        "resources": {"requests": {"cpu": "100m"}},
        "securityContext": common.container_security(is_root=has_device(plan, client)),
        "volumeMounts": [
            common.SESSION_MOUNT,
            {"name": "assignment", "mountPath": ASSIGNMENT_MOUNT, "readOnly": True},
            {"name": "scratch", "mountPath": common.SCRATCH_MOUNT},
            common.TMP_MOUNT,
            *to_ceph.mounts,
            *burner.mounts,
        ],
    }
    if has_device(plan, client):
        container["volumeDevices"] = [{"name": "data", "devicePath": DEVICE_PATH}]
    elif _mounts_claim(plan, client):
        container["volumeMounts"].append({"name": "data", "mountPath": DATA_MOUNT})
    return container


def _mounts_claim(plan: Plan, client: int) -> bool:
    return plan.has_claims and not plan.is_server(client)
