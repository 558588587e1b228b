"""Reasons about volumes, and about the Ceph cluster that a run measures."""

from plimsoll.api.names import ConditionType
from plimsoll.api.reasons.entry import Explanation, ReasonEntry, Severity
from plimsoll.api.reasons.reason import Reason

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
    "Rook could not create it, and retries",
    "the message quotes Rook; the log of Rook's operator has the details",
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
            "a PVC is pending; the message has its last warning, or what it waits for: a CSI driver that is not "
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
        Reason.CEPH_CLUSTER_NOT_READY,
        conditions=_STORAGE,
        under_way=Explanation(
            "the CephCluster has never been ready, is in `HEALTH_ERR`, in a `HEALTH_WARN` that the run does not "
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
        Reason.USER_FAILED,
        conditions=_STORAGE,
        under_way=_ROOK_FAILED,
        ended=_CEPH_TIMED_OUT,
        remedy=_CHECK_USER,
    ),
    ReasonEntry(
        Reason.KEY_SECRETS_TAKEN,
        conditions=_STORAGE,
        under_way=Explanation("CephClients use all Secrets for keys", "delete runs that keep their storage"),
        ended=_CEPH_TIMED_OUT,
        remedy="delete runs that keep their storage",
    ),
    ReasonEntry(
        Reason.ROOK_NOT_FOUND,
        conditions=(ConditionType.STORAGE_READY, ConditionType.CLEANED_UP),
        under_way=Explanation(
            "the CephCluster or Rook's CRDs were deleted while the run has objects there",
            "reinstall Rook's CRDs: without them the operator cannot see what is left",
        ),
        ended=Explanation(
            "Rook's CRDs or that CephCluster do not exist",
            "install Rook, or name another cluster, in a new run",
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
