"""The objects of a run in a Rook cluster: pools, CephX users, a StorageClass. They are created and never updated."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from plimsoll.api.storage import Pool, Replicated
from plimsoll.ceph.rights import Rights
from plimsoll.lifecycle import naming
from plimsoll.lifecycle.children import Object, label
from plimsoll.lifecycle.render.common import Json, foreign_metadata, manifest
from plimsoll.lifecycle.run import Run
from plimsoll.plan.document import CephTarget, Plan, options_key

API_VERSION = "ceph.rook.io/v1"
BLOCK_POOL = "CephBlockPool"
CEPH_CLIENT = "CephClient"
CEPH_CLUSTER = "CephCluster"
FILE_SYSTEM = "CephFilesystem"

KEY_SECRETS = tuple(f"plimsoll-{number}" for number in range(32))
"""The only Secrets in Rook's namespace that the operator may read: that namespace holds the administrator's key."""

_MAX_METADATA_SIZE = 3
_DEFAULT_NAME = "data"  # prefix of a file system's data pools without a name
_CSI_SECRETS = {
    "rbd": {"provisioner": "rook-csi-rbd-provisioner", "node-stage": "rook-csi-rbd-node"},
    "cephfs": {
        "provisioner": "rook-csi-cephfs-provisioner",
        "controller-expand": "rook-csi-cephfs-provisioner",
        "node-stage": "rook-csi-cephfs-node",
    },
}


def pools(run: Run, target: CephTarget) -> Iterator[Json]:
    """Yield the pools, or the file system, of a run in order of creation and deletion: images' headers before data."""
    made, cluster = target.made, target.rook
    if made is None or cluster is None:
        return
    if target.file_system is not None:
        if (file_system := target.file_system.made) is None:
            return
        spec = {
            "metadataPool": pool_spec(file_system.metadata_pool),
            "dataPools": [
                {"name": f"{_DEFAULT_NAME}{number}", **pool_spec(pool)}
                for number, pool in enumerate(file_system.data_pools)
            ],
            # Deleted with its pools: Rook keeps them otherwise.
            "preserveFilesystemOnDelete": False,
            "metadataServer": {"activeCount": file_system.metadata_servers, "activeStandby": False},
        }
        yield _rook_object(run, FILE_SYSTEM, cluster.namespace, target.file_system.name, spec)
        return
    if target.data_pool is not None:
        headers = made.model_copy(update={"compression_mode": None})
        size = metadata_size(made.erasure_coded.coding_chunks if made.erasure_coded else 1)
        spec = pool_spec(headers, _replicated(Replicated(size=size)))
        yield _rook_object(run, BLOCK_POOL, cluster.namespace, target.pool, spec)
    yield _rook_object(run, BLOCK_POOL, cluster.namespace, target.data_pool or target.pool, pool_spec(made))


def pool_spec(pool: Pool, layout: Json | None = None) -> Json:
    # Rook passes these to Ceph unchanged.
    parameters: dict[str, str] = {}
    if layout is None and (chunks := pool.erasure_coded) is not None:
        coded: Json = {"dataChunks": chunks.data_chunks, "codingChunks": chunks.coding_chunks}
        if chunks.stripe_unit is not None:
            coded["stripeUnit"] = chunks.stripe_unit
        if chunks.optimizations:
            # Nothing turns them off again, even if the cluster's default has them.
            parameters["allow_ec_optimizations"] = "true"
        layout = {"erasureCoded": coded}
    elif layout is None:
        layout = _replicated(pool.replicated or Replicated(size=1))
    spec: Json = {"failureDomain": pool.failure_domain, **layout}
    if pool.device_class is not None:
        spec["deviceClass"] = pool.device_class
    if pool.crush_root is not None:
        spec["crushRoot"] = pool.crush_root
    if pool.placement_groups is not None:
        count = str(pool.placement_groups)
        parameters |= {"pg_num": count, "pgp_num": count, "pg_autoscale_mode": "off"}
    if pool.compression_mode is not None:
        parameters["compression_mode"] = pool.compression_mode
    return {**spec, "parameters": parameters} if parameters else spec


def has_stripe_unit(pool: Json) -> bool:
    """Whether a pool, or one of a file system's, has a stripe unit, a field that Rook 1.18 does not know."""
    spec = pool["spec"]
    return any("stripeUnit" in layout.get("erasureCoded", {}) for layout in (spec, *spec.get("dataPools", ())))


def pools_of(file_system: Object) -> Mapping[str, Json]:
    """Return the pools of a CephFilesystem: name in Ceph -> specification, the metadata pool first."""
    spec, name = file_system.get("spec") or {}, file_system["metadata"]["name"]
    keeps_names = bool(spec.get("preservePoolNames"))

    def in_ceph(pool: Json, default: str) -> str:
        pool_name = str(pool.get("name") or "")
        return pool_name if pool_name and keeps_names else f"{name}-{pool_name or default}"

    metadata: Json = spec.get("metadataPool") or {}
    data: list[Json] = spec.get("dataPools") or []
    named = {in_ceph(pool, f"{_DEFAULT_NAME}{number}"): pool for number, pool in enumerate(data)}
    return {in_ceph(metadata, "metadata"): metadata} | named


def rights_of(uid: str, target: CephTarget, version: str) -> Rights:
    return Rights(
        pools=target.pools_by_note,
        quota_pool=target.pools[-1] if target.made else "",
        file_system=target.file_system.name if target.file_system else "",
        options=target.options,
        actions=target.actions,
        record=options_key(uid) if target.rook or target.has_record else "",
        version=version,
    )


def users(run: Run, target: CephTarget, secrets: tuple[str, str], *, version: str) -> Iterator[Json]:
    if target.rook is None:
        return
    rights = rights_of(run.uid, target, version)
    wanted = ((target.conductor_user, rights.conductor()), (target.agent_user, rights.agent()))
    for (name, caps), secret in zip(wanted, secrets, strict=True):
        yield _rook_object(run, CEPH_CLIENT, target.rook.namespace, name, {"caps": caps, "secretName": secret})


@dataclass(frozen=True, slots=True)
class KeySecrets:
    """Which of these Secrets are used, given all CephClients in Rook's namespace."""

    by_user: dict[str, str]  # CephClient -> Secret
    free: Sequence[str]
    held: int  # how many the runs of a namespace use

    def of_run(self, target: CephTarget) -> tuple[str, str] | None:
        """Return the Secrets for the keys of conductor and agents; None if the run may not have them yet.

        These are the run's Secrets, or else the first free ones. A namespace may use as many as are free when it takes
        one, which leaves half of what was free to the others: the dynamic threshold of Choudhury and Hahne, 1998.
        """
        users = (target.conductor_user, target.agent_user)
        missing = [user for user in users if user not in self.by_user]
        if missing and self.held + len(missing) > len(self.free):
            return None
        secrets = self.by_user | dict(zip(missing, self.free, strict=False))
        return secrets[users[0]], secrets[users[1]]


def key_secrets(namespace: str, ceph_clients: Iterable[Object]) -> KeySecrets:
    clients = list(ceph_clients)
    by_user = {obj["metadata"]["name"]: str((obj.get("spec") or {}).get("secretName", "")) for obj in clients}
    own = [obj["metadata"]["name"] for obj in clients if label(obj, naming.LABEL_RUN_NAMESPACE) == namespace]
    return KeySecrets(
        by_user={user: secret for user, secret in by_user.items() if secret},
        free=[secret for secret in KEY_SECRETS if secret not in by_user.values()],
        held=sum(by_user[user] in KEY_SECRETS for user in own),
    )


def metadata_size(coding_chunks: int) -> int:
    """Return the copies in the metadata pool of erasure-coded data, at most 3: it survives what the data survives."""
    return min(coding_chunks + 1, _MAX_METADATA_SIZE)


def needs_storage_class(plan: Plan) -> bool:
    """Whether a run has a StorageClass of its own: with Rook, and PVCs of its clients or of a tool."""
    rook = plan.ceph is not None and plan.ceph.rook is not None
    return rook and (plan.has_claims or plan.control_plane is not None)


def csi_driver(*, file_system: bool) -> str:
    """Return the last part of the names of Rook's CSI drivers for volumes of a file system, or of a pool."""
    return "cephfs" if file_system else "rbd"


def storage_class(run: Run, plan: Plan, provisioner: str) -> Json:
    """Return the run's StorageClass. Raises ValueError if the run has no PVCs in Rook's cluster."""
    target = plan.ceph
    if target is None or target.rook is None or not needs_storage_class(plan):
        raise ValueError(f"run {run.name} needs no StorageClass of its own")
    namespace, options = target.rook.namespace, {}
    parameters, driver = {"clusterID": namespace}, csi_driver(file_system=target.file_system is not None)
    if target.file_system is not None:
        parameters |= {"fsName": target.file_system.name, "pool": target.pools[-1]}
    else:
        parameters["pool"] = target.pool
        if target.data_pool is not None:
            parameters["dataPool"] = target.data_pool
        # Only layering: every kernel supports it, and object maps and journals would add to what is measured.
        parameters |= {"imageFormat": "2", "imageFeatures": "layering"}
    for purpose, secret in _CSI_SECRETS[driver].items():
        parameters[f"csi.storage.k8s.io/{purpose}-secret-name"] = secret
        parameters[f"csi.storage.k8s.io/{purpose}-secret-namespace"] = namespace
    if driver == "rbd" and (plan.volume is None or plan.volume.mode == "Filesystem"):
        parameters["csi.storage.k8s.io/fstype"] = "ext4"
        # Otherwise the kernel writes the inode tables of the new file system in the background, during the measurement.
        options = {"mountOptions": ["noinit_itable"]}
    name = naming.storage_class(run.name, run.uid)
    return manifest(
        "StorageClass",
        foreign_metadata(run, name, namespace=None, component=naming.STORAGE),
        provisioner=provisioner,
        parameters=parameters,
        **options,
        reclaimPolicy="Delete",
        volumeBindingMode="Immediate",
    )


def _rook_object(run: Run, kind: str, namespace: str, name: str, spec: Json) -> Json:
    metadata = foreign_metadata(run, name, namespace=namespace, component=naming.STORAGE)
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": metadata, "spec": spec}


def _replicated(layout: Replicated) -> Json:
    # Rook rejects a single copy unless requireSafeReplicaSize is false.
    unsafe = {"requireSafeReplicaSize": False} if layout.size == 1 else {}
    return {"replicated": layout.model_dump(exclude_none=True) | unsafe}
