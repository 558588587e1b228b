"""The StorageClass through which a run's claims come from its pool."""

from plimsoll.lifecycle import naming
from plimsoll.lifecycle.render.common import Json, foreign_metadata
from plimsoll.lifecycle.run import Run
from plimsoll.plan.document import CephTarget, Plan

_PROVISIONER_SECRET = "rook-csi-rbd-provisioner"  # noqa: S105 - a name
_NODE_SECRET = "rook-csi-rbd-node"  # noqa: S105 - a name


def needs_storage_class(plan: Plan) -> bool:
    """Tell whether a run's volumes are claims of a StorageClass of its own: with Rook, and not through librbd."""
    rook = plan.ceph is not None and plan.ceph.rook is not None
    return rook and plan.volume is not None and plan.volume.access == "PVC"


def storage_class(run: Run, plan: Plan, operator_namespace: str) -> Json:
    """Return the run's StorageClass. `operator_namespace` is that of Rook's operator, after which the driver is named.

    Raises:
        ValueError: the run has no volume by claim from a pool of Rook's.

    """
    target, volume = plan.ceph, plan.volume
    if target is None or target.rook is None or volume is None or volume.access != "PVC":
        raise ValueError(f"run {run.name} needs no StorageClass of its own")
    parameters = _parameters(target, target.rook.namespace)
    if volume.mode == "Filesystem":
        parameters["csi.storage.k8s.io/fstype"] = "ext4"
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": foreign_metadata(
            run, naming.storage_class(run.name, run.uid), namespace=None, component=naming.STORAGE
        ),
        "provisioner": f"{operator_namespace}.rbd.csi.ceph.com",
        "parameters": parameters,
        "reclaimPolicy": "Delete",
        "volumeBindingMode": "Immediate",
    }


def _parameters(target: CephTarget, namespace: str) -> dict[str, str]:
    """Return where images are made, and with which users' keys the driver does that."""
    found = {"clusterID": namespace, "pool": target.pool}
    if target.data_pool is not None:
        found["dataPool"] = target.data_pool
    # Layering alone: every kernel knows it, and object maps and journals would be measured along.
    found |= {"imageFormat": "2", "imageFeatures": "layering"}
    for purpose, secret in (("provisioner", _PROVISIONER_SECRET), ("node-stage", _NODE_SECRET)):
        found[f"csi.storage.k8s.io/{purpose}-secret-name"] = secret
        found[f"csi.storage.k8s.io/{purpose}-secret-namespace"] = namespace
    return found
