"""What a run's pods need to talk to Ceph: a configuration, a key, and where both are seen."""

from collections.abc import Iterable

from plimsoll.api.storage import KeyringReference
from plimsoll.ceph.conf import CONF_FILE, CONF_PATH, KEYRING_FILE, MOUNT, OSD_BENCH_MOUNT, ceph_conf
from plimsoll.lifecycle import naming
from plimsoll.lifecycle.render.common import Json, metadata
from plimsoll.lifecycle.run import Run
from plimsoll.plan.ceph import image_name, rados_namespace
from plimsoll.plan.document import CephTarget, Plan
from plimsoll.tools.base import ACTOR_CLIENT, TargetKind
from plimsoll.tools.osd_bench import OSD_BENCH, OsdBenchParameters
from plimsoll.tools.registry import TOOLS

ENVIRONMENT = {"CEPH_CONF": CONF_PATH}

_READABLE = 0o440
_CEPH_TARGETS = {TargetKind.IMAGE, TargetKind.POOL, TargetKind.OSDS}


def config_map(run: Run, monitors: Iterable[str]) -> Json:
    """Return the run's `ceph.conf`, which conductor and clients share."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata(run, naming.ceph_config_map(run.name), component=naming.STORAGE),
        "immutable": True,
        "data": {CONF_FILE: ceph_conf(monitors)},
    }


def keyring_secret(run: Run, component: str) -> Json:
    """Return the Secret for the keyring of the conductor or the clients, without its content.

    Whoever creates it copies that from where Rook put the key. With a Ceph cluster without Rook there is none: the
    Secret that the user names is used as it is.
    """
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": metadata(run, naming.keyring_secret(run.name, run.uid, component), component=component),
        "immutable": True,
        "type": "Opaque",
    }


def clients_use_ceph(plan: Plan) -> bool:
    """Tell whether clients talk to Ceph themselves: for an image, a pool or the OSDs. The rest get no key."""
    if plan.ceph is None:
        return False
    librbd = plan.volume is not None and plan.volume.access == "LibRBD"
    return librbd or any(kind in _CEPH_TARGETS for kind in _targets(plan))


def volumes(run: Run, target: CephTarget, component: str) -> list[Json]:
    """Return the pod's volume with `ceph.conf` and keyring, readable by its group."""
    keyring = target.keyring
    secret = (
        {
            "name": naming.keyring_secret(run.name, run.uid, component),
            "items": [{"key": KEYRING_FILE, "path": KEYRING_FILE}],
        }
        if keyring is None
        else {"name": keyring.name, "items": [{"key": keyring.key, "path": KEYRING_FILE}]}
    )
    conf = {"name": naming.ceph_config_map(run.name), "items": [{"key": CONF_FILE, "path": CONF_FILE}]}
    sources = [{"configMap": conf}, {"secret": secret}]
    return [{"name": "ceph", "projected": {"defaultMode": _READABLE, "sources": sources}}]


def mounts() -> list[Json]:
    """Return where a container sees that volume."""
    return [{"name": "ceph", "mountPath": MOUNT, "readOnly": True}]


def client_volumes(run: Run, plan: Plan, client: int) -> list[Json]:
    """Return the volumes of a client's pod; also the administrator's keyring if it is the one that needs it."""
    found = volumes(run, plan.ceph, naming.CLIENT) if plan.ceph is not None and clients_use_ceph(plan) else []
    administrators = _keyring_of(plan, client)
    if administrators is not None:
        items = [{"key": administrators.key, "path": KEYRING_FILE}]
        secret = {"secretName": administrators.name, "defaultMode": _READABLE, "items": items}
        found.append({"name": "osd-bench", "secret": secret})
    return found


def client_mounts(plan: Plan, client: int) -> list[Json]:
    """Return where a client's container sees them."""
    found = mounts() if clients_use_ceph(plan) else []
    if _keyring_of(plan, client) is not None:
        found.append({"name": "osd-bench", "mountPath": OSD_BENCH_MOUNT, "readOnly": True})
    return found


def client_arguments(plan: Plan, client: int) -> list[str]:
    """Return what an agent is told of Ceph: its image, its part of the pool, and who it is."""
    target, volume, found = plan.ceph, plan.volume, []
    if target is None or not clients_use_ceph(plan):
        return []
    found.append(f"--ceph-user={target.agent_user}")
    if volume is not None and volume.access == "LibRBD":
        found += [f"--image={target.pool}/{image_name(plan.run.uid, client)}", f"--size={volume.size}"]
        found += ["--rbd-cache"] if volume.rbd_cache else []
    if TargetKind.POOL in _targets(plan):
        # Objects go where the data of images goes: that is the pool whose layout is measured.
        found += [f"--rados-pool={target.pools[-1]}", f"--rados-namespace={rados_namespace(plan.run.uid, client)}"]
    if _keyring_of(plan, client) is not None:
        found.append(f"--osd-keyring={OSD_BENCH_MOUNT}/{KEYRING_FILE}")
    return found


def tools_of(plan: Plan) -> tuple[str, ...]:
    """Return the keys of the tools that a plan needs, in order. Data sets are written by fio."""
    prefilled = {"fio"} if plan.volume is not None else set()
    return tuple(sorted({point.tool for point in plan.points} | prefilled))


def osd_bench_keyring(plan: Plan) -> KeyringReference | None:
    """Return the Secret with the administrator's keyring, the same for all workloads; None if none needs it."""
    loads = (point.parameters for point in plan.points if point.tool == OSD_BENCH.key)
    return next((OsdBenchParameters.model_validate(parameters).keyring_secret for parameters in loads), None)


def _keyring_of(plan: Plan, client: int) -> KeyringReference | None:
    """Return the same for the client that loads the OSDs, None for all others."""
    return osd_bench_keyring(plan) if client == ACTOR_CLIENT else None


def _targets(plan: Plan) -> set[TargetKind]:
    return {TOOLS[point.tool].target for point in plan.points}
