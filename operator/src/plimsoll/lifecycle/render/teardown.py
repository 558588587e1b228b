"""A run's objects in the namespace of teardowns, which clean up Ceph even if the run's namespace is deleted."""

from typing import Literal

from pydantic import ValidationError

from plimsoll.api.model import Model
from plimsoll.ceph.document import CONF_FILE, KEYRING_FILE, ceph_conf
from plimsoll.lifecycle import naming
from plimsoll.lifecycle.children import Object
from plimsoll.lifecycle.render import ceph, common, network
from plimsoll.lifecycle.render.common import Json, empty_secret, manifest
from plimsoll.lifecycle.run import Run, Settings
from plimsoll.plan.document import CephTarget, Plan, RunIdentity

RECORD_FILE = "record.json"

_RESTARTS = 60  # with pauses of up to six minutes, enough for a cluster that is down for hours


class TeardownRecord(Model):
    """What has to be undone after a run."""

    schema_version: Literal[1] = 1
    run: RunIdentity
    runner_image: str
    clients: int
    ceph: CephTarget


def record_of(plan: Plan) -> TeardownRecord | None:
    if plan.ceph is None:
        return None
    return TeardownRecord(run=plan.run, runner_image=plan.runner_image, clients=plan.clients, ceph=plan.ceph)


def read_record(config_map: Object) -> TeardownRecord | None:
    """Return the record in its ConfigMap; None if it is damaged or of another version."""
    try:
        return TeardownRecord.model_validate_json((config_map.get("data") or {}).get(RECORD_FILE, ""))
    except ValidationError:
        return None


def record_config_map(run: Run, record: TeardownRecord, monitors: tuple[str, ...], settings: Settings) -> Json:
    data = {RECORD_FILE: record.model_dump_json(indent=1), CONF_FILE: ceph_conf(monitors)}
    return manifest("ConfigMap", _metadata(run, settings), immutable=True, data=data)


def keyring_secret(run: Run, settings: Settings) -> Json:
    return empty_secret(_metadata(run, settings))


def renewal_secret(run: Run, settings: Settings) -> Json:
    """Return the empty Secret that marks the replacement of that one: its absence would mean that Ceph is clean."""
    return empty_secret({**_metadata(run, settings), "name": naming.key_renewal(run.uid)})


def network_policy(run: Run, record: TeardownRecord, settings: Settings) -> Json:
    """Return the policy that limits the Job to DNS and Ceph: the run's author may have named the monitors."""
    allowed = settings.network_policies
    egress = [network.dns(allowed), *network.to_ceph(record.ceph.monitors, allowed)]
    return network.policy(_metadata(run, settings), network.peer(run, naming.TEARDOWN), ingress=[], egress=egress)


def job(run: Run, record: TeardownRecord, settings: Settings, *, only_restores: bool = False) -> Json:
    """Return the Job that restores options, OSDs and flags and, unless it `only_restores`, removes objects."""
    name, target = naming.teardown(record.run.uid), record.ceph
    pools = [f"--pool={target.note_pool}", *(f"--other-pool={pool}" for pool in target.pools_by_note[1:])]
    if target.file_system is not None:
        pools += ["--no-images", *([f"--file-system={target.file_system.name}"] if target.file_system.made else [])]
    sources = [
        {"configMap": {"name": name, "items": [{"key": CONF_FILE, "path": CONF_FILE}]}},
        {"secret": {"name": name, "items": [{"key": KEYRING_FILE, "path": KEYRING_FILE}]}},
    ]
    container = {
        "name": naming.TEARDOWN,
        "image": record.runner_image,
        "imagePullPolicy": settings.image_pull_policy,
        "args": [
            "teardown",
            f"--uid={record.run.uid}",
            f"--clients={record.clients}",
            *pools,
            *(["--options"] if target.has_record else []),
            *(["--only-restore"] if only_restores else []),
            f"--user={target.conductor_user}",
            "--termination-log=/dev/termination-log",
        ],
        "env": common.environment(ceph.ENVIRONMENT, {}),
        "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}, "limits": {"memory": "512Mi"}},
        "securityContext": common.container_security(),
        "volumeMounts": [ceph.VOLUME_MOUNT, common.TMP_MOUNT],
    }
    volumes = [
        {"name": "ceph", "projected": {"defaultMode": common.READABLE, "sources": sources}},
        common.TMP_VOLUME,
    ]
    metadata = _metadata(run, settings)
    if only_restores:
        metadata["name"] = naming.restoration(record.run.uid)
    pod = common.pod_spec(settings, grace_seconds=30, containers=[container], volumes=volumes)
    template = common.pod_template(pod, settings, labels=metadata["labels"])
    replaced = {} if only_restores else {"podReplacementPolicy": "Failed"}
    spec = {"backoffLimit": _RESTARTS, **replaced, "template": template}
    return manifest("Job", metadata, spec=spec)


def _metadata(run: Run, settings: Settings) -> Json:
    name, namespace = naming.teardown(run.uid), settings.teardown_namespace
    return common.foreign_metadata(run, name, namespace=namespace, component=naming.TEARDOWN)
