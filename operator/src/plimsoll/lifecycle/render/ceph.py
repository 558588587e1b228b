"""What a run's pods need to reach Ceph: configuration, keyring, and their mounts."""

from collections.abc import Iterable
from dataclasses import replace

from plimsoll.api.storage import KeyringReference
from plimsoll.ceph.document import CONF_FILE, CONF_PATH, KEYRING_FILE, MOUNT, OSD_BENCH_MOUNT, ceph_conf
from plimsoll.lifecycle import naming
from plimsoll.lifecycle.render.common import READABLE, Access, Json, empty_secret, manifest, metadata, secret_volume
from plimsoll.lifecycle.run import Run
from plimsoll.plan.document import CephTarget, Plan, image_name, rados_namespace
from plimsoll.protocol.assignment import RadosNamespace, RbdImage
from plimsoll.tools.cast import ACTOR_CLIENT
from plimsoll.tools.registry import DATA_SET_TOOL, TOOLS
from plimsoll.tools.target import TargetKind

ENVIRONMENT = {"CEPH_CONF": CONF_PATH}
VOLUME_MOUNT = {"name": "ceph", "mountPath": MOUNT, "readOnly": True}  # of `ceph.conf` and keyring


def config_map(run: Run, monitors: Iterable[str]) -> Json:
    name = naming.ceph_config_map(run.name)
    data = {CONF_FILE: ceph_conf(monitors)}
    return manifest("ConfigMap", metadata(run, name, component=naming.STORAGE), immutable=True, data=data)


def keyring_secret(run: Run, component: str) -> Json:
    """Return the Secret, without data, for the keyring of conductor or clients that is copied from Rook's."""
    return empty_secret(metadata(run, naming.keyring_secret(run.uid, component), component=component))


def clients_use_ceph(plan: Plan) -> bool:
    """Whether clients connect to Ceph themselves: for an image, a pool or the OSDs. Others get no key."""
    return plan.ceph is not None and (plan.has_images or any(kind.is_of_ceph for kind in _targets(plan)))


def volumes(run: Run, target: CephTarget, component: str) -> list[Json]:
    """Return the pod's volume with `ceph.conf` and keyring, readable by the pod's group."""
    name, key = naming.keyring_secret(run.uid, component), KEYRING_FILE
    if target.keyring is not None:
        name, key = target.keyring.name, target.keyring.key
    secret = {"name": name, "items": [{"key": key, "path": KEYRING_FILE}]}
    conf = {"name": naming.ceph_config_map(run.name), "items": [{"key": CONF_FILE, "path": CONF_FILE}]}
    sources = [{"configMap": conf}, {"secret": secret}]
    return [{"name": "ceph", "projected": {"defaultMode": READABLE, "sources": sources}}]


def client_access(run: Run, plan: Plan, client: int) -> Access:
    """Return a client's access to Ceph, which servers have not, and the administrator's keyring if it needs that."""
    access = Access()
    if plan.ceph is not None and clients_use_ceph(plan) and not plan.is_server(client):
        access = Access(tuple(volumes(run, plan.ceph, naming.CLIENT)), (VOLUME_MOUNT,), ENVIRONMENT)
    administrators = administrator_keyring(plan, client)
    if administrators is None:
        return access
    mount = {"name": "osd-bench", "mountPath": OSD_BENCH_MOUNT, "readOnly": True}
    volume = secret_volume("osd-bench", administrators.name, {administrators.key: KEYRING_FILE})
    return replace(access, volumes=(*access.volumes, volume), mounts=(*access.mounts, mount))


def image(plan: Plan, client: int) -> RbdImage | None:
    target, volume = plan.ceph, plan.volume
    if target is None or volume is None or not plan.has_images or plan.is_server(client):
        return None
    name = image_name(plan.run.uid, client)
    return RbdImage(pool=target.pool, image=name, user=target.agent_user, size=volume.size, cache=volume.rbd_cache)


def rados(plan: Plan, client: int) -> RadosNamespace | None:
    """Return a client's part of the pool that holds the images' data; None if no tool writes objects."""
    target = plan.ceph
    if target is None or TargetKind.POOL not in _targets(plan) or plan.is_server(client):
        return None
    namespace = rados_namespace(plan.run.uid, client)
    return RadosNamespace(pool=target.pools[-1], namespace=namespace, user=target.agent_user)


def osd_keyring(plan: Plan, client: int) -> str | None:
    return None if administrator_keyring(plan, client) is None else f"{OSD_BENCH_MOUNT}/{KEYRING_FILE}"


def tools_of(plan: Plan) -> tuple[str, ...]:
    """Return the sorted keys of the tools that a plan needs, including the tool that writes data sets."""
    prefilled = {DATA_SET_TOOL} if plan.volume is not None else set()
    return tuple(sorted({point.tool for point in plan.points} | prefilled))


def administrator_keyring(plan: Plan, client: int = ACTOR_CLIENT) -> KeyringReference | None:
    """Return the Secret with the administrator's keyring, one for all workloads; None if that client needs none."""
    points = plan.points if client == ACTOR_CLIENT else ()
    point = next((point for point in points if TOOLS[point.tool].target is TargetKind.OSDS), None)
    return None if point is None else point.typed_parameters.administrator_keyring


def _targets(plan: Plan) -> set[TargetKind]:
    return {TOOLS[point.tool].target for point in plan.points}
