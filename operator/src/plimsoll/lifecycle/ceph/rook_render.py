"""What a run creates in a Rook cluster: pools, CephX users, a StorageClass. Each is created once and never updated.

Rook rewrites a pool's specification when it first reconciles it; an update would only cost another reconcile.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain

from plimsoll.api.storage import FileSystem, NamespacedName, Pool, Volume
from plimsoll.lifecycle import naming
from plimsoll.lifecycle.children import Object
from plimsoll.lifecycle.render.common import Json, foreign_metadata, manifest
from plimsoll.lifecycle.run import Run
from plimsoll.plan.document import CephTarget, Plan, options_key


def pool_spec(pool: Pool, layout: Json | None = None) -> Json:
    """Return the specification of a pool; `layout` replaces its own."""
    spec: Json = {"failureDomain": pool.failure_domain, **(layout or _layout(pool))}
    if pool.device_class is not None:
        spec["deviceClass"] = pool.device_class
    if pool.crush_root is not None:
        spec["crushRoot"] = pool.crush_root
    if parameters := _parameters(pool):
        spec["parameters"] = parameters
    return spec


def replicated(size: int) -> Json:
    """Return the layout of a replicated pool."""
    # Rook rejects a single copy unless requireSafeReplicaSize is false.
    return {"replicated": {"size": size, **({"requireSafeReplicaSize": False} if size == 1 else {})}}


def _layout(pool: Pool) -> Json:
    if pool.erasure_coded is not None:
        chunks = pool.erasure_coded
        return {"erasureCoded": {"dataChunks": chunks.data_chunks, "codingChunks": chunks.coding_chunks}}
    return replicated(pool.replicated.size if pool.replicated else 1)


def _parameters(pool: Pool) -> dict[str, str]:
    """Return the pool's parameters, which Rook passes to Ceph unchanged."""
    found: dict[str, str] = {}
    if pool.placement_groups is not None:
        count = str(pool.placement_groups)
        found = {"pg_num": count, "pgp_num": count, "pg_autoscale_mode": "off"}
    if pool.compression_mode is not None:
        found["compression_mode"] = pool.compression_mode
    return found


FILE_SYSTEM = "CephFilesystem"

_DEFAULT_NAME = "data"
_FILE_SYSTEM_CSI_SECRETS = {
    "provisioner": "rook-csi-cephfs-provisioner",
    "controller-expand": "rook-csi-cephfs-provisioner",
    "node-stage": "rook-csi-cephfs-node",
}


def file_system_manifest(run: Run, target: CephTarget, api_version: str) -> Iterator[Json]:
    """Yield the CephFilesystem of a run; nothing if it uses an existing one."""
    wanted, cluster = target.file_system, target.rook
    if wanted is None or wanted.made is None or cluster is None:
        return
    yield {
        "apiVersion": api_version,
        "kind": FILE_SYSTEM,
        "metadata": foreign_metadata(run, wanted.name, namespace=cluster.namespace, component=naming.STORAGE),
        "spec": _spec(wanted.made),
    }


def _spec(made: FileSystem) -> Json:
    data_pools = [
        {"name": f"{_DEFAULT_NAME}{number}", **pool_spec(pool)} for number, pool in enumerate(made.data_pools)
    ]
    return {
        "metadataPool": pool_spec(made.metadata_pool),
        "dataPools": data_pools,
        # Deleted with its pools: Rook keeps them otherwise.
        "preserveFilesystemOnDelete": False,
        "metadataServer": {"activeCount": made.metadata_servers, "activeStandby": False},
    }


def class_parameters(target: CephTarget, namespace: str) -> dict[str, str]:
    """Return where the driver creates subvolumes, and with which users' keys."""
    name = target.file_system.name if target.file_system else ""
    found = {"clusterID": namespace, "fsName": name, "pool": target.pools[-1]}
    for purpose, secret in _FILE_SYSTEM_CSI_SECRETS.items():
        found[f"csi.storage.k8s.io/{purpose}-secret-name"] = secret
        found[f"csi.storage.k8s.io/{purpose}-secret-namespace"] = namespace
    return found


def pools_of(file_system: Object) -> Mapping[str, Json]:
    """Return the pools of a CephFilesystem: name in Ceph -> specification, the metadata pool first."""
    spec, name = file_system.get("spec") or {}, file_system["metadata"]["name"]
    keeps_names = bool(spec.get("preservePoolNames"))

    def in_ceph(pool: Json, default: str) -> str:
        own = str(pool.get("name") or "")
        return own if own and keeps_names else f"{name}-{own or default}"

    metadata: Json = spec.get("metadataPool") or {}
    data: list[Json] = spec.get("dataPools") or []
    named = {in_ceph(pool, f"{_DEFAULT_NAME}{number}"): pool for number, pool in enumerate(data)}
    return {in_ceph(metadata, "metadata"): metadata} | named


def specifications(file_systems: Iterable[Object]) -> Iterator[Object]:
    """Yield the pools of CephFilesystems in the form of CephBlockPools, to count their placement groups."""
    for pool in chain.from_iterable(pools_of(found).values() for found in file_systems):
        yield {"spec": pool}


def requested(made: FileSystem) -> Iterator[tuple[str, Pool]]:
    """Yield the field and the specification of each pool of a file system."""
    yield "metadataPool", made.metadata_pool
    for number, pool in enumerate(made.data_pools):
        yield f"dataPools[{number}]", pool


API_VERSION = "ceph.rook.io/v1"
BLOCK_POOL = "CephBlockPool"
CEPH_CLIENT = "CephClient"
CEPH_CLUSTER = "CephCluster"

KEY_SECRETS = tuple(f"plimsoll-{number}" for number in range(16))
"""The only Secrets in Rook's namespace that the operator may read: that namespace holds the administrator's key."""

_MAX_METADATA_SIZE = 3
_CSI_SECRETS = {"provisioner": "rook-csi-rbd-provisioner", "node-stage": "rook-csi-rbd-node"}


def pools(run: Run, target: CephTarget) -> Iterator[Json]:
    """Yield the pools of a run in order of creation, or its file system; nothing if it uses existing ones.

    They are deleted in the same order: the one with the images' headers before the one with their data.
    """
    made, cluster = target.made, target.rook
    if made is None or cluster is None:
        return
    if target.file_system is not None:
        yield from file_system_manifest(run, target, API_VERSION)
    elif target.data_pool is None:
        yield _pool(run, cluster, target.pool, pool_spec(made))
    else:
        headers = made.model_copy(update={"compression_mode": None})
        yield _pool(run, cluster, target.pool, pool_spec(headers, _metadata_layout(made)))
        yield _pool(run, cluster, target.data_pool, pool_spec(made))


def users(run: Run, target: CephTarget, secrets: tuple[str, str]) -> Iterator[Json]:
    """Yield the CephX users of the conductor and the agents, whose keys Rook stores in these Secrets."""
    if target.rook is None:
        return
    wanted = ((target.conductor_user, _conductor_caps(run, target)), (target.agent_user, _agent_caps(target)))
    for (name, caps), secret in zip(wanted, secrets, strict=True):
        yield {
            "apiVersion": API_VERSION,
            "kind": CEPH_CLIENT,
            "metadata": foreign_metadata(run, name, namespace=target.rook.namespace, component=naming.STORAGE),
            "spec": {"caps": caps, "secretName": secret},
        }


def key_secrets(target: CephTarget, found: Iterable[Object]) -> tuple[str, str] | None:
    """Return the Secrets for the keys of conductor and agents, given all CephClients in Rook's namespace.

    These are the run's Secrets, or else the first free ones; None if too few are free.
    """
    taken = {obj["metadata"]["name"]: str(obj.get("spec", {}).get("secretName", "")) for obj in found}
    free = (name for name in KEY_SECRETS if name not in taken.values())
    conductor = taken.get(target.conductor_user) or next(free, None)
    agent = taken.get(target.agent_user) or next(free, None)
    return None if conductor is None or agent is None else (conductor, agent)


def metadata_size(coding_chunks: int) -> int:
    """Return the number of copies in the metadata pool of an erasure-coded pool.

    One more than coding chunks, so that it survives the loss of as many failure domains as the data; at most three,
    Ceph's default, because the data is what is measured. With at least two data chunks there are always fewer copies
    than chunks, so failure domains that suffice for the data suffice for the metadata.
    """
    return min(coding_chunks + 1, _MAX_METADATA_SIZE)


def _pool(run: Run, cluster: NamespacedName, name: str, spec: Json) -> Json:
    return {
        "apiVersion": API_VERSION,
        "kind": BLOCK_POOL,
        "metadata": foreign_metadata(run, name, namespace=cluster.namespace, component=naming.STORAGE),
        "spec": spec,
    }


def _metadata_layout(pool: Pool) -> Json:
    return replicated(metadata_size(pool.erasure_coded.coding_chunks if pool.erasure_coded else 1))


def _agent_caps(target: CephTarget) -> dict[str, str]:
    """Return the capabilities for images and objects in the run's pools; of a file system, only for objects of tools.

    The monitors' profile `rbd` would also allow blocklisting other clients, which librbd needs only to break a dead
    client's lock; `ceph.conf` disables that.
    """
    if target.file_system is not None:
        return {"mon": "profile simple-rados-client", "osd": f"allow rw pool={target.note_pool}"}
    return {"mon": "profile simple-rados-client", "osd": ", ".join(f"profile rbd pool={pool}" for pool in target.pools)}


_LIST_KEYS = 'allow command "config-key ls"'
"""Shows whether another run has left options. Names of keys only: `allow r` includes no keys of the monitors' store."""


def _conductor_caps(run: Run, target: CephTarget) -> dict[str, str]:
    """Return those of an agent, and reading the cluster's state, setting two flags of the run's pools, and its options.

    The teardown lists the objects in all pools, which shows that their placement groups respond.
    """
    others = target.pools_by_note[1:] if target.file_system else ()
    osd = ", ".join((_agent_caps(target)["osd"], *(f"allow r pool={pool}" for pool in others)))
    flags = [
        f'allow command "osd pool set" with pool={pool} var={flag}'
        for pool in target.pools
        for flag in ("noscrub", "nodeep-scrub")
    ]
    return {"mon": ", ".join(("allow r", _LIST_KEYS, *flags, *_option_caps(run, target))), "mgr": "allow r", "osd": osd}


def _option_caps(run: Run, target: CephTarget) -> Iterator[str]:
    """Yield the capabilities to set exactly the run's options, and to record their previous values."""
    if not target.options:
        return
    for command in ("set", "get", "rm"):
        yield f'allow command "config-key {command}" with key="{options_key(run.uid)}"'
    for option in target.options:
        for command in ("set", "rm"):
            yield f'allow command "config {command}" with who="{option.who}" name="{option.name}"'


def needs_storage_class(plan: Plan) -> bool:
    """Whether a run has a StorageClass of its own: with Rook, and PVCs of its clients or of a tool."""
    rook = plan.ceph is not None and plan.ceph.rook is not None
    has_claims = plan.volume is not None and plan.volume.access == "PVC"
    return rook and (has_claims or plan.control_plane is not None)


def storage_class(run: Run, plan: Plan, operator_namespace: str) -> Json:
    """Return the run's StorageClass. The CSI driver is named after the namespace of Rook's operator.

    Raises:
        ValueError: the run has no PVCs in Rook's cluster.

    """
    target, volume = plan.ceph, plan.volume
    if target is None or target.rook is None or not needs_storage_class(plan):
        raise ValueError(f"run {run.name} needs no StorageClass of its own")
    driver, parameters = _driver(target, volume, target.rook.namespace)
    name = naming.storage_class(run.name, run.uid)
    return manifest(
        "StorageClass",
        foreign_metadata(run, name, namespace=None, component=naming.STORAGE),
        provisioner=f"{operator_namespace}.{driver}.csi.ceph.com",
        parameters=parameters,
        reclaimPolicy="Delete",
        volumeBindingMode="Immediate",
    )


def _driver(target: CephTarget, volume: Volume | None, namespace: str) -> tuple[str, dict[str, str]]:
    """Return the driver for a run's volumes, and the parameters of its StorageClass."""
    if target.file_system is not None:
        return "cephfs", class_parameters(target, namespace)
    parameters = _class_parameters(target, namespace)
    if volume is None or volume.mode == "Filesystem":
        parameters["csi.storage.k8s.io/fstype"] = "ext4"
    return "rbd", parameters


def _class_parameters(target: CephTarget, namespace: str) -> dict[str, str]:
    """Return where the driver creates images, and with which users' keys."""
    found = {"clusterID": namespace, "pool": target.pool}
    if target.data_pool is not None:
        found["dataPool"] = target.data_pool
    # Only layering: every kernel supports it, and object maps and journals would add to what is measured.
    found |= {"imageFormat": "2", "imageFeatures": "layering"}
    for purpose, secret in _CSI_SECRETS.items():
        found[f"csi.storage.k8s.io/{purpose}-secret-name"] = secret
        found[f"csi.storage.k8s.io/{purpose}-secret-namespace"] = namespace
    return found
