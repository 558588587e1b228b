"""A run's CephFS file system in a Rook cluster: its object, its pools, and its StorageClass's parameters."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain

from plimsoll.api.file_system import FileSystem
from plimsoll.api.pools import Pool
from plimsoll.lifecycle import naming
from plimsoll.lifecycle.children import Object
from plimsoll.lifecycle.render.common import Json, foreign_metadata
from plimsoll.lifecycle.rook.pool_spec import pool_spec
from plimsoll.lifecycle.run import Run
from plimsoll.plan.document import CephTarget

FILE_SYSTEM = "CephFilesystem"

_DEFAULT_NAME = "data"
_CSI_SECRETS = {
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
    for purpose, secret in _CSI_SECRETS.items():
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
