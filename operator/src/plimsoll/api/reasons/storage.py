"""Reasons about volumes, and about the Ceph cluster that a run measures."""

from plimsoll.api.names import ConditionType
from plimsoll.api.reasons.reason import Explanation, Reason, ReasonEntry, Severity

_SUMMARY = (ConditionType.SUCCEEDED, ConditionType.RECONCILING)
_STORAGE = (ConditionType.STORAGE_READY, *_SUMMARY)
_CEPH_TIMED_OUT = Explanation(
    "the Ceph cluster, the pool or file system, its users or a key did not become usable within `provisionSeconds`",
    "as above; raise `timeouts.provisionSeconds` if Rook is slow",
)
_ROOK_IS_BUSY = Explanation(
    "Rook is creating the pool, the file system or the CephX users, or is stuck; the message has the newest "
    "`ReconcileFailed` event",
    "nothing for a minute or two. Then check Rook's operator: it handles one pool at a time, and a pool that it cannot "
    "delete blocks the others",
)
_ROOK_FAILED = Explanation(
    "Rook could not create it, and retries", "the message quotes Rook; the log of Rook's operator has the details"
)
_CHECK_USER = "check the CephClient and the log of Rook's operator"

STORAGE_REASONS = (
    ReasonEntry(
        Reason.NOT_NEEDED,
        conditions=(ConditionType.STORAGE_READY,),
        under_way=Explanation("no workload uses a volume"),
        severity=Severity.NORMAL,
    ),
    ReasonEntry(
        Reason.BOUND,
        conditions=(ConditionType.STORAGE_READY,),
        under_way=Explanation("all PVCs are bound"),
        severity=Severity.NORMAL,
    ),
    ReasonEntry(
        Reason.CLAIMS_NOT_BOUND,
        conditions=(ConditionType.STORAGE_READY, ConditionType.CLIENTS_READY, *_SUMMARY),
        under_way=Explanation(
            "a PVC is pending; the message has its last warning, or the reason for the wait: a CSI driver that is not "
            "installed reports nothing (`ExternalProvisioning`). For `ClientsReady`: pods are not scheduled because "
            "their PVCs, of a StorageClass with volumeBindingMode Immediate, are not bound",
            "check the StorageClass, its provisioner and its capacity. With WaitForFirstConsumer a PVC waits for its "
            "pod: check `ClientsReady`",
        ),
        ended=Explanation(
            "volumes were not provisioned within `provisionSeconds`",
            "as above; raise `timeouts.provisionSeconds` for slow storage",
        ),
        remedy="check the StorageClass, its provisioner and its capacity",
        severity=Severity.NORMAL,
    ),
    ReasonEntry(
        Reason.READY,
        conditions=(ConditionType.STORAGE_READY,),
        under_way=Explanation("the pool or file system exists; the conductor checks it again"),
        severity=Severity.NORMAL,
    ),
    ReasonEntry(
        Reason.KUBE_BURNER_NOT_READY,
        conditions=_STORAGE,
        under_way=Explanation(
            "the helper that runs kube-burner has not published its certificate",
            "check the pod in the namespace that the message names, and its log",
        ),
        ended=Explanation(
            "the helper that runs kube-burner did not publish its certificate within `provisionSeconds`", "as above"
        ),
        remedy="check the helper's pod, and create the run again when it is ready",
    ),
    ReasonEntry(
        Reason.CEPH_CLUSTER_NOT_READY,
        conditions=_STORAGE,
        under_way=Explanation(
            "the CephCluster has never been ready, is in `HEALTH_ERR` or in a `HEALTH_WARN` that the run does not "
            "accept, or is being upgraded; or the addresses of its monitors are unknown. The run waits for "
            "`provisionSeconds`, and other runs on the cluster overtake it",
            "repair it, or accept checks in `gates.acceptedHealthChecks`",
        ),
        ended=_CEPH_TIMED_OUT,
        remedy="check the CephCluster, and create the run again when it is healthy",
        is_passed_by=True,
    ),
    ReasonEntry(
        Reason.POOL_NOT_READY,
        conditions=_STORAGE,
        under_way=_ROOK_IS_BUSY,
        ended=_CEPH_TIMED_OUT,
        remedy="check the CephBlockPool and the log of Rook's operator, or raise timeouts.provisionSeconds",
        severity=Severity.NORMAL,
        is_passed_by=True,
    ),
    ReasonEntry(
        Reason.FILE_SYSTEM_NOT_READY,
        conditions=_STORAGE,
        under_way=_ROOK_IS_BUSY,
        ended=_CEPH_TIMED_OUT,
        remedy="check the CephFilesystem, its metadata servers and the log of Rook's operator, or raise "
        "timeouts.provisionSeconds",
        severity=Severity.NORMAL,
        is_passed_by=True,
    ),
    ReasonEntry(
        Reason.USER_NOT_READY,
        conditions=_STORAGE,
        under_way=_ROOK_IS_BUSY,
        ended=_CEPH_TIMED_OUT,
        remedy=_CHECK_USER,
        severity=Severity.NORMAL,
    ),
    ReasonEntry(
        Reason.POOL_FAILED,
        conditions=_STORAGE,
        under_way=_ROOK_FAILED,
        ended=_CEPH_TIMED_OUT,
        remedy="change spec.storage.rook.pool to a layout that the cluster can place",
    ),
    ReasonEntry(
        Reason.FILE_SYSTEM_FAILED,
        conditions=_STORAGE,
        under_way=_ROOK_FAILED,
        ended=_CEPH_TIMED_OUT,
        remedy="change spec.storage.rook.fileSystem to pools that the cluster can place",
    ),
    ReasonEntry(
        Reason.USER_FAILED, conditions=_STORAGE, under_way=_ROOK_FAILED, ended=_CEPH_TIMED_OUT, remedy=_CHECK_USER
    ),
    ReasonEntry(
        Reason.KEY_SECRETS_TAKEN,
        conditions=_STORAGE,
        under_way=Explanation(
            "runs of the namespace already use as many of the Secrets for keys as are free",
            "delete runs that keep their storage",
        ),
        ended=_CEPH_TIMED_OUT,
        remedy="delete runs that keep their storage",
    ),
    ReasonEntry(
        Reason.ROOK_NOT_FOUND,
        conditions=(ConditionType.STORAGE_READY, ConditionType.CLEANED_UP),
        under_way=Explanation(
            "the CephCluster or Rook's CRDs were deleted while the run has objects there",
            "reinstall Rook's CRDs: without them the operator cannot see the remaining objects",
        ),
        ended=Explanation(
            "Rook's CRDs or that CephCluster do not exist", "install Rook, or name another cluster, in a new run"
        ),
        remedy="install Rook, and create the run again",
    ),
    ReasonEntry(
        Reason.KEYRING_NOT_FOUND,
        conditions=_SUMMARY,
        under_way=Explanation(
            "the Secret with the key of a CephX user does not exist, or has no key of that user. If the operator may "
            "not read it, the reason is `ApiRefused`",
            "create it, with a keyring file that has a section `[client.USER]`; see [Ceph](#ceph)",
        ),
        ended=_CEPH_TIMED_OUT,
        remedy="create that Secret, with a keyring file of the CephX user in that field; with Rook, check Rook",
        is_refusal=True,
    ),
    ReasonEntry(
        Reason.KEYRING_NOT_ALLOWED,
        conditions=_SUMMARY,
        under_way=Explanation(
            'the Secret that `keyringSecret` names has no annotation `plimsoll.dev/allow-benchmarks: "true"`',
            "ask its owner to set it",
        ),
        ended=_CEPH_TIMED_OUT,
        remedy=(
            "its owner can allow it with `kubectl annotate secret NAME "
            'plimsoll.dev/allow-benchmarks="true"` in its namespace'
        ),
        is_refusal=True,
    ),
)


_CLEANED_UP = (ConditionType.CLEANED_UP,)
_NEXT_WAITS = "The next run on the cluster waits, for `PLIMSOLL_HOLD_SECONDS` at most"
_DELETION_BLOCKED = Explanation(
    f"Rook does not delete the pool, the file system or the user; the message quotes it. {_NEXT_WAITS}",
    "inspect the pool (`rbd ls`, `rbd trash ls --all`) or the file system (`ceph fs subvolume ls NAME csi`) and remove "
    "unneeded images or subvolumes. A VolumeSnapshot or a clone of a run's PVC keeps the pool until it is deleted; the "
    "chart's value `admission.runs` prevents users from creating one",
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
            "in Ceph, and Ceph's purge of the deleted volumes after these. The message names the next one",
            "if it persists, find the cause that blocks the deletion: the Node object of a dead node keeps its pods, "
            "a broken provisioner keeps a PersistentVolume, and the owners of the finalizers in the message keep a "
            "PVC. A purge takes as long as Ceph needs: wait while the number in the message falls",
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
            "a pool or file system that is not being deleted yet is kept, because its deletion would hang Rook's "
            f"controller for all of them. {_NEXT_WAITS}",
            "bring the OSDs back: cleanup continues automatically. If the groups belong only to other pools, delete "
            "the CephBlockPool or CephFilesystem that the message names",
        ),
    ),
    ReasonEntry(
        Reason.NODE_GONE,
        conditions=_CLEANED_UP,
        under_way=Explanation(
            "the last pods exceeded their deletion deadline by five minutes. They count as no longer loading the "
            "target, so its next run starts; this run waits for its pods",
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
            "them. Their storage in Ceph is kept until they are deleted; the next run starts",
            "have those PVCs deleted; the chart's value `admission.runs` prevents users from creating such PVCs",
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
