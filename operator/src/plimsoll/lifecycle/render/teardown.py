"""What the operator's namespace has of a run on Ceph, so that nothing of the run is left even if its namespace goes.

The record is made before anything else. It holds all that the teardown Job needs.
"""

from typing import Literal

from pydantic import ValidationError

from plimsoll.api.errors import SpecError, problems_of
from plimsoll.api.model import Model
from plimsoll.ceph.conf import CONF_FILE, KEYRING_FILE, ceph_conf
from plimsoll.lifecycle import naming
from plimsoll.lifecycle.children import Object
from plimsoll.lifecycle.render import ceph, network
from plimsoll.lifecycle.render.common import Json, container_security, environment, foreign_metadata, pod_security
from plimsoll.lifecycle.run import Run
from plimsoll.lifecycle.settings import Settings
from plimsoll.plan.document import CephTarget, Plan, RunIdentity

RECORD_FILE = "record.json"

_RESTARTS = 60
"""After pauses that grow to six minutes: a cluster that is down for hours is waited for."""


class TeardownRecord(Model):
    """What has to be undone of a run."""

    schema_version: Literal[1] = 1
    run: RunIdentity
    runner_image: str
    clients: int
    ceph: CephTarget


def record_of(plan: Plan) -> TeardownRecord | None:
    """Return what will have to be undone of a run; None if it does not touch Ceph itself."""
    if plan.ceph is None:
        return None
    return TeardownRecord(run=plan.run, runner_image=plan.runner_image, clients=plan.clients, ceph=plan.ceph)


def read_record(config_map: Object) -> TeardownRecord:
    """Read the record out of its ConfigMap.

    Raises:
        SpecError: if it is damaged or of another version.

    """
    try:
        return TeardownRecord.model_validate_json((config_map.get("data") or {}).get(RECORD_FILE, ""))
    except ValidationError as error:
        raise SpecError(problems_of(error)) from error


def record_config_map(run: Run, record: TeardownRecord, monitors: tuple[str, ...], settings: Settings) -> Json:
    """Return the record, with the `ceph.conf` of the Job."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": _metadata(run, settings),
        "immutable": True,
        "data": {RECORD_FILE: record.model_dump_json(indent=1), CONF_FILE: ceph_conf(monitors)},
    }


def keyring_secret(run: Run, settings: Settings) -> Json:
    """Return the Secret for the keyring of the Job, which is the conductor's, without its content."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": _metadata(run, settings),
        "immutable": True,
        "type": "Opaque",
    }


def network_policy(run: Run, record: TeardownRecord, settings: Settings) -> Json:
    """Return what the Job may talk to: Ceph's ports and DNS. Where the monitors are, the run's author may have said."""
    metadata = _metadata(run, settings)
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": metadata,
        "spec": {
            "podSelector": {"matchLabels": {naming.LABEL_RUN_UID: run.uid, naming.LABEL_COMPONENT: naming.TEARDOWN}},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": [],
            "egress": [network.DNS, network.to_ceph(record.ceph.monitors)],
        },
    }


def job(run: Run, record: TeardownRecord, settings: Settings) -> Json:
    """Return the Job that restores flags and removes images and objects. It may run any number of times."""
    metadata = _metadata(run, settings)
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata,
        "spec": {
            "backoffLimit": _RESTARTS,
            "podReplacementPolicy": "Failed",
            "template": {"metadata": {"labels": metadata["labels"]}, "spec": _pod(record, settings)},
        },
    }


def _metadata(run: Run, settings: Settings) -> Json:
    return foreign_metadata(run, naming.teardown(run.uid), namespace=settings.namespace, component=naming.TEARDOWN)


def _pod(record: TeardownRecord, settings: Settings) -> Json:
    name = naming.teardown(record.run.uid)
    sources = [
        {"configMap": {"name": name, "items": [{"key": CONF_FILE, "path": CONF_FILE}]}},
        {"secret": {"name": name, "items": [{"key": KEYRING_FILE, "path": KEYRING_FILE}]}},
    ]
    return {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": 30,
        "securityContext": pod_security(),
        "containers": [
            {
                "name": naming.TEARDOWN,
                "image": record.runner_image,
                "imagePullPolicy": settings.image_pull_policy,
                "args": _arguments(record),
                "env": environment(ceph.ENVIRONMENT, {}),
                "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}, "limits": {"memory": "512Mi"}},
                "securityContext": container_security(),
                "volumeMounts": [
                    *ceph.mounts(),
                    {"name": "tmp", "mountPath": "/tmp"},  # noqa: S108 - of the container
                ],
            }
        ],
        "volumes": [
            {"name": "ceph", "projected": {"defaultMode": 0o440, "sources": sources}},
            {"name": "tmp", "emptyDir": {"sizeLimit": "64Mi"}},
        ],
    }


def _arguments(record: TeardownRecord) -> list[str]:
    target = record.ceph
    return [
        "teardown",
        f"--uid={record.run.uid}",
        f"--clients={record.clients}",
        f"--pool={target.pool}",
        *([f"--data-pool={target.data_pool}"] if target.data_pool is not None else []),
        f"--user={target.conductor_user}",
        "--termination-log=/dev/termination-log",
    ]
