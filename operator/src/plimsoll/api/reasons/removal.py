"""Reasons about the removal of a run's objects."""

from plimsoll.api.names import ConditionType
from plimsoll.api.reasons.entry import Explanation, ReasonEntry, Severity
from plimsoll.api.reasons.reason import Reason

_CLEANED_UP = (ConditionType.CLEANED_UP,)
_NEXT_WAITS = "The next run on the cluster waits, for `PLIMSOLL_HOLD_SECONDS` at most"
_DELETION_BLOCKED = Explanation(
    f"Rook does not delete the pool, the file system or the user; the message quotes it. {_NEXT_WAITS}",
    "inspect the pool (`rbd ls`, `rbd trash ls --all`) or the file system (`ceph fs subvolume ls NAME csi`) and remove "
    "what is not needed. A VolumeSnapshot or a clone of a run's PVC holds it until it is deleted; the chart's value "
    "`admission.claims` keeps others from creating one",
)

REMOVAL_REASONS = (
    ReasonEntry(
        Reason.CLEANING_UP,
        conditions=(ConditionType.RECONCILING,),
        under_way=Explanation("succeeded, and volumes are being deleted; or the run is being deleted"),
        severity=Severity.NORMAL,
    ),
    ReasonEntry(
        Reason.IN_PROGRESS,
        conditions=_CLEANED_UP,
        under_way=Explanation(
            "pods are stopping, or these are being deleted, in this order: namespaces of kube-burner, images and "
            "objects in Ceph, PVCs, the copied key, PersistentVolumes, the StorageClass, CephX users, pools, the "
            "teardown record. With a file system of the run's own, PVCs and PersistentVolumes come before the objects "
            "in Ceph, and Ceph's purge of the deleted volumes after these. The message names what is next",
            "if it persists, find what blocks the deletion: the Node object of a dead node keeps its pods, a broken "
            "provisioner keeps a PersistentVolume, and the owners of the finalizers in the message keep a PVC. A purge "
            "takes as long as Ceph needs: wait while the number in the message falls",
        ),
        severity=Severity.NORMAL,
        event="CleaningUp",
    ),
    ReasonEntry(
        Reason.TEARDOWN_FAILING,
        conditions=_CLEANED_UP,
        under_way=Explanation(
            "the teardown Job has failed to remove the run's images, objects and flags so far, and is retried; the "
            f"message has its last error. {_NEXT_WAITS}",
            "check that Ceph responds, and that no client still has an image of the run open. If that cluster is gone "
            "for good, delete the Secret that the message names",
        ),
    ),
    ReasonEntry(Reason.POOL_DELETION_BLOCKED, conditions=_CLEANED_UP, under_way=_DELETION_BLOCKED),
    ReasonEntry(Reason.FILE_SYSTEM_DELETION_BLOCKED, conditions=_CLEANED_UP, under_way=_DELETION_BLOCKED),
    ReasonEntry(Reason.USER_DELETION_BLOCKED, conditions=_CLEANED_UP, under_way=_DELETION_BLOCKED),
    ReasonEntry(
        Reason.PLACEMENT_GROUPS_INACTIVE,
        conditions=_CLEANED_UP,
        under_way=Explanation(
            "the `CephCluster` reports inactive placement groups (`PG_AVAILABILITY`). The teardown Job waits for them; "
            "a pool or file system that is not being deleted yet stays, because its deletion would hang Rook's "
            f"controller for all of them. {_NEXT_WAITS}",
            "bring the OSDs back: the rest continues by itself. If the groups belong only to other pools, delete the "
            "CephBlockPool or CephFilesystem that the message names",
        ),
    ),
    ReasonEntry(
        Reason.NODE_GONE,
        conditions=_CLEANED_UP,
        under_way=Explanation(
            "the last pods exceeded their deletion deadline by five minutes. Whatever happened to their node, they no "
            "longer load the target, so its next run starts; this run waits for its pods",
            "delete the Node if it will not return, or taint it `node.kubernetes.io/out-of-service`; check the pods' "
            "finalizers",
        ),
        load_is_gone=True,
    ),
    ReasonEntry(
        Reason.CLAIMED_BY_OTHERS,
        conditions=_CLEANED_UP,
        under_way=Explanation(
            "PVCs that do not belong to the run are bound to PersistentVolumes of its StorageClass; the message names "
            "them. What these need in Ceph stays until they are deleted; the next run starts",
            "have those PVCs deleted; the chart's value `admission.claims` keeps others from creating such PVCs",
        ),
        load_is_gone=True,
    ),
    ReasonEntry(
        Reason.STORAGE_KEPT,
        conditions=_CLEANED_UP,
        under_way=Explanation(
            "`cleanup` keeps the PVCs; for a run on Ceph also pool, images, users and teardown record",
            "delete the run when they are no longer needed",
        ),
        severity=Severity.NORMAL,
        load_is_gone=True,
    ),
    ReasonEntry(
        Reason.REMOVED,
        conditions=_CLEANED_UP,
        under_way=Explanation(
            "only results, plan, state and session Secret remain, and for a run on Ceph the ConfigMap `<run>-ceph` and "
            "the Secrets with keyrings, whose users Rook has deleted. They are deleted with the run"
        ),
        severity=Severity.NORMAL,
        load_is_gone=True,
    ),
    ReasonEntry(
        Reason.NOTHING_MADE,
        conditions=_CLEANED_UP,
        under_way=Explanation("the run was refused before anything was created for it"),
        severity=Severity.NORMAL,
        load_is_gone=True,
    ),
)
