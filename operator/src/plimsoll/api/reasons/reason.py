"""The reasons of a run's conditions: their meanings and remedies."""

from functools import partial
from typing import NewType

from plimsoll.api.names import ConditionType
from plimsoll.api.reasons.entry import ExplainedReason, Explanation, ReasonEntry, Severity

_SUMMARY = (ConditionType.SUCCEEDED, ConditionType.RECONCILING)
_STORAGE = (ConditionType.STORAGE_READY, *_SUMMARY)
_CLIENTS = (ConditionType.CLIENTS_READY, *_SUMMARY)
_REQUESTS = (*_SUMMARY, ConditionType.CLIENTS_READY)  # decided in `lifecycle.refusals`
_CLEANED_UP = (ConditionType.CLEANED_UP,)

_USE_NEWER_OPERATOR = "use that version of the operator, or a later one"
_SEE_SUCCEEDED = "see the reason of `Succeeded`"
_NEXT_WAITS = "The next run on the cluster waits, for `queue.holdSeconds` at most"
_CLIENTS_TIMED_OUT = Explanation("clients were not running within `provisionSeconds`", "as above")
_REFUSED_TOO_LONG = Explanation(
    "an object could not be created within `provisionSeconds`, or the pod of a conductor or lost client within "
    "`readySeconds`",
    "as above",
)
_CEPH_TIMED_OUT = Explanation(
    "the Ceph cluster, the pool or file system, its users or a key did not become usable within `provisionSeconds`",
    "as above; raise `timeouts.provisionSeconds` if Rook is slow",
)
_DELETION_BLOCKED = (
    f"Rook does not delete the pool, the file system or the user; the message quotes it. {_NEXT_WAITS}",
    (
        "inspect the pool (`rbd ls`, `rbd trash ls --all`) or the file system (`ceph fs subvolume ls NAME csi`) and "
        "remove unneeded images or subvolumes. A VolumeSnapshot or a clone of a run's PVC keeps the pool until it is "
        "deleted; the chart's value `admission.runs` prevents users from creating one"
    ),
)

_normal = partial(ReasonEntry, severity=Severity.NORMAL)
_waiting = partial(ReasonEntry, _SUMMARY)
_storage_problem = partial(ReasonEntry, _STORAGE, ended=_CEPH_TIMED_OUT)
_cleaning_up = partial(ReasonEntry, _CLEANED_UP)
_refusal = partial(ReasonEntry, ended=_REFUSED_TOO_LONG, is_refusal=True)


def _rook_is_busy(name: str, checked: str, *, is_passed_by: bool) -> ReasonEntry:
    return _normal(
        _STORAGE,
        name,
        "Rook is creating the pool, the file system or the CephX users, or is stuck; the message has the newest "
        "`ReconcileFailed` event",
        "nothing for a minute or two. Then check Rook's operator: it handles one pool at a time, and a pool that it "
        "cannot delete blocks the others",
        ended=_CEPH_TIMED_OUT,
        own_remedy=f"check {checked} and the log of Rook's operator, or raise timeouts.provisionSeconds",
        is_passed_by=is_passed_by,
    )


def _rook_failed(name: str, remedy: str) -> ReasonEntry:
    meaning = "Rook could not create it, and retries"
    advice = "the message quotes Rook; the log of Rook's operator has the details"
    return ReasonEntry(_STORAGE, name, meaning, advice, ended=_CEPH_TIMED_OUT, own_remedy=remedy)


def _client_problem(name: str, meaning: str, advice: str, own_remedy: str | None = None) -> ReasonEntry:
    return ReasonEntry(_CLIENTS, name, meaning, advice, ended=_CLIENTS_TIMED_OUT, own_remedy=own_remedy)


def _end(name: str, meaning: str, advice: str) -> ReasonEntry:
    return ReasonEntry((), name, ended=Explanation(meaning, advice))


class Reason(ExplainedReason):
    """Why a condition of a `BenchmarkRun` holds or does not: the closed vocabulary of this version."""

    PLANNING = _normal(_SUMMARY, "Planning", "the plan is being stored")
    FINALIZER_MISSING = _waiting(
        "FinalizerMissing",
        "the operator could not set the run's finalizer, without which a deletion could leave objects behind; the "
        "message has the cause. Until it is set, the operator creates nothing for the run; existing pods continue",
        "stop whatever keeps changing the run, or removes its finalizer",
        is_passed_by=True,
    )
    WAITING_FOR_TURN = _normal(
        (*_SUMMARY, ConditionType.ADMITTED),
        "WaitingForTurn",
        "other runs on the same target are ahead in the queue; the message has the position, and how many runs of "
        "each other namespace can start before this one",
        "wait; a run that is suspended, or has ended and is not cleaned up, loses its place after `queue.holdSeconds`",
    )
    WAITING_FOR_WINDOW = _normal(
        (*_SUMMARY, ConditionType.ADMITTED),
        "WaitingForWindow",
        "no trial may start now, because it would not end within a maintenance window; the message says until when",
        "wait, or ask the administrator for longer `maintenanceWindows`",
    )
    SUSPENDED_TOO_LONG = _normal(
        (ConditionType.ADMITTED, ConditionType.RECONCILING),
        "SuspendedTooLong",
        "the run has been suspended for more than `queue.holdSeconds` in total since its last measured trial; "
        "other runs on its target go first, as soon as its pods have stopped. Its volumes are kept",
        "resume it: it continues at the end of the queue",
    )
    WAITING_FOR_EARLIER_RUN = _waiting(
        "WaitingForEarlierRun",
        "an object of an earlier run with this name, or an object that is being deleted, still exists; the message "
        "names it. The operator checks every 15 s; meanwhile, other runs overtake a run that is not admitted yet, "
        "and it ends after `provisionSeconds`",
        "nothing has to be done; if it persists, check that object's finalizers",
        is_passed_by=True,
        is_refusal=True,
    )
    SPEC_UNREADABLE = _waiting(
        "SpecUnreadable",
        "another version of the operator started the run, and this version cannot read its specification. Its pods "
        "continue and may finish; the operator creates no more objects for it",
        _USE_NEWER_OPERATOR,
        is_passed_by=True,
    )
    RESULTS_UNREADABLE = _waiting(
        "ResultsUnreadable",
        "the conductor finished, but this version cannot read the status of the results that the message names",
        _USE_NEWER_OPERATOR,
    )
    ADMITTED = _normal((ConditionType.ADMITTED,), "Admitted", "it is this run's turn")
    MEASURING = _normal(_SUMMARY, "Measuring", "all clients have registered; the message shows what is being measured")
    SUSPENDED = _normal(
        (ConditionType.SUCCEEDED, ConditionType.SUSPENDED, ConditionType.CLIENTS_READY),
        "Suspended",
        "`spec.suspend` is true, and the clients are deleted",
        "set it to false to resume",
    )
    STOPPING = _normal((ConditionType.RECONCILING,), "Stopping", "the pods of a suspended run are stopping")
    NOT_SUSPENDED = _normal((ConditionType.SUSPENDED,), "NotSuspended", "the run is not suspended", event="Resumed")
    ENDED = _normal(
        (ConditionType.SUSPENDED, ConditionType.STORAGE_READY, ConditionType.CLIENTS_READY),
        "Ended",
        "the condition was True until the run ended",
        _SEE_SUCCEEDED,
    )
    ALL_FINAL = _normal((ConditionType.MEASURED,), "AllFinal", "all points have all their trials")
    INCOMPLETE = ReasonEntry(
        (ConditionType.MEASURED,),
        "Incomplete",
        "the run ended before all points had all their trials",
        _SEE_SUCCEEDED,
    )
    NOT_NEEDED = _normal((ConditionType.STORAGE_READY,), "NotNeeded", "no workload uses a volume")
    BOUND = _normal((ConditionType.STORAGE_READY,), "Bound", "all PVCs are bound")
    CLAIMS_NOT_BOUND = _normal(
        _STORAGE,
        "ClaimsNotBound",
        "a PVC is pending; the message has its last warning, or the reason for the wait: a CSI driver that is not "
        "installed reports nothing (`ExternalProvisioning`). Clients are created once all PVCs of a StorageClass with "
        "volumeBindingMode Immediate are bound",
        "check the StorageClass, its provisioner and its capacity. With WaitForFirstConsumer a PVC waits for its "
        "pod: check `ClientsReady`",
        ended=Explanation(
            "volumes were not provisioned within `provisionSeconds`",
            "as above; raise `timeouts.provisionSeconds` for slow storage",
        ),
        own_remedy="check the StorageClass, its provisioner and its capacity",
    )
    READY = _normal(
        (ConditionType.STORAGE_READY,), "Ready", "the pool or file system exists; the conductor checks it again"
    )
    KUBE_BURNER_NOT_READY = _storage_problem(
        "KubeBurnerNotReady",
        "the helper that runs kube-burner has not published its certificate",
        "check the pod in the namespace that the message names, and its log",
        ended=Explanation(
            "the helper that runs kube-burner did not publish its certificate within `provisionSeconds`", "as above"
        ),
        own_remedy="check the helper's pod, and create the run again when it is ready",
    )
    CEPH_CLUSTER_NOT_READY = _storage_problem(
        "CephClusterNotReady",
        "the CephCluster has never been ready, is in `HEALTH_ERR` or in a `HEALTH_WARN` that the run does not "
        "accept, or is being upgraded; or the addresses of its monitors are unknown. The run waits for "
        "`provisionSeconds`, and other runs on the cluster overtake it",
        "repair it, or wait for the upgrade; warnings (`HEALTH_WARN`) may be accepted in `gates.acceptedHealthChecks`",
        own_remedy="check the CephCluster, and create the run again when it is healthy",
        is_passed_by=True,
    )
    POOL_NOT_READY = _rook_is_busy("PoolNotReady", "the CephBlockPool", is_passed_by=True)
    FILE_SYSTEM_NOT_READY = _rook_is_busy(
        "FileSystemNotReady", "the CephFilesystem, its metadata servers", is_passed_by=True
    )
    USER_NOT_READY = _rook_is_busy("UserNotReady", "the CephClient", is_passed_by=False)
    POOL_FAILED = _rook_failed("PoolFailed", "change spec.storage.rook.pool to a layout that the cluster can place")
    FILE_SYSTEM_FAILED = _rook_failed(
        "FileSystemFailed", "change spec.storage.rook.fileSystem to pools that the cluster can place"
    )
    USER_FAILED = _rook_failed("UserFailed", "check the CephClient and the log of Rook's operator")
    KEY_SECRETS_TAKEN = _storage_problem(
        "KeySecretsTaken",
        "runs of the namespace already use their share of the Secrets for keys",
        "delete runs that keep their storage",
    )
    CSI_DRIVER_NOT_FOUND = _storage_problem(
        "CSIDriverNotFound",
        "no CSI driver of the Rook cluster is registered, or several are, and it is unclear which one to use; the "
        "message has the names. Until then, nothing is created in the cluster",
        "enable Rook's CSI drivers; if several are registered, create a StorageClass of the cluster that names one",
    )
    ROOK_NOT_FOUND = ReasonEntry(
        (ConditionType.STORAGE_READY, ConditionType.CLEANED_UP),
        "RookNotFound",
        "the CephCluster or Rook's CRDs were deleted while the run has objects there",
        "reinstall Rook's CRDs: without them the operator cannot see the remaining objects",
        ended=Explanation(
            "Rook's CRDs or that CephCluster do not exist", "install Rook, or name another cluster, in a new run"
        ),
        own_remedy="install Rook, and create the run again",
    )
    KEYRING_NOT_FOUND = _waiting(
        "KeyringNotFound",
        "the Secret with the key of a CephX user does not exist, or has no key of that user ([Ceph](allow.md#ceph)). "
        "If the operator may not read it, the reason is `ApiRefused`",
        "create that Secret, with a keyring file that has a section `[client.USER]`; with Rook, check Rook",
        ended=_CEPH_TIMED_OUT,
        is_refusal=True,
    )
    KEYRING_NOT_ALLOWED = _waiting(
        "KeyringNotAllowed",
        'the Secret that `keyringSecret` names has no annotation `plimsoll.dev/allow-benchmarks: "true"`',
        'have its owner run `kubectl annotate secret NAME plimsoll.dev/allow-benchmarks="true"` in its namespace',
        ended=_CEPH_TIMED_OUT,
        is_refusal=True,
    )
    STARTING = _normal(_CLIENTS, "Starting", "pods are being created, and no problem is known", event="ClientsStarting")
    CONDUCTOR_STARTING = _normal(
        _CLIENTS,
        "ConductorStarting",
        "the conductor, or its replacement, is not active yet; the message has the state of its pod",
        "nothing; if it persists, check the events of its Job and pod, and its log",
        own_remedy="check the events of the conductor's Job and pod, and its log",
    )
    REGISTERED = _normal((ConditionType.CLIENTS_READY,), "Registered", "all clients have registered")
    CLIENTS_MISSING = _client_problem(
        "ClientsMissing",
        "a client has no pod, or its running pod has not contacted the conductor",
        "check the client's log; another NetworkPolicy or the cluster's DNS may block it",
        "check the pods of the run",
    )
    UNSCHEDULABLE = _client_problem(
        "Unschedulable",
        "the scheduler finds no node for a client or the conductor",
        "free or add nodes, lower `clients.count` or `clients.resources`, set `clients.spread: Preferred`, or change "
        "`servers.placement`",
    )
    IMAGE_PULL_FAILED = _client_problem(
        "ImagePullFailed",
        "the runner image cannot be pulled",
        "check the image's name, `podTemplate.imagePullSecrets` and the registry",
    )
    CONTAINER_FAILED = _client_problem(
        "ContainerFailed",
        "the container cannot be created or started",
        "check the pod's events",
    )
    CLIENT_FAILED = _client_problem(
        "ClientFailed",
        "an agent exited; the message has its exit code and termination message",
        "see [exit codes](#exit-codes); it is replaced up to five times",
        "check the client's exit code and termination message",
    )
    QUOTA_EXCEEDED = _refusal(
        (*_REQUESTS, ConditionType.CLEANED_UP),
        "QuotaExceeded",
        "a ResourceQuota or LimitRange of the namespace blocks the creation of an object, or of a Job's pod; the "
        "message quotes it. A full pool of Ceph is `QuotaReached`, a limit of the chart `LimitExceeded`",
        "change the namespace's ResourceQuota or LimitRange, or `clients.count`, `volume.size` or `resources`; where a "
        "quota counts limits, these have to be set",
    )
    API_REFUSED = _refusal(
        (*_REQUESTS, ConditionType.CLEANED_UP),
        "ApiRefused",
        "the API server refuses a request of the operator, or a Job's pod: an admission policy or webhook, Pod "
        "Security, missing permissions; the message quotes it. The operator retries every 5 s",
        "change the run, or the policy that refuses it; "
        "[who may do what](../explanation/architecture.md#who-may-do-what) lists the operator's permissions. "
        "A run does not end because the operator cannot observe it",
        own_remedy=(
            "change the run, or the cause of the refusal: an admission policy or webhook, Pod Security, the "
            "operator's ClusterRole"
        ),
    )
    NAMESPACE_TERMINATING = _refusal(
        _REQUESTS,
        "NamespaceTerminating",
        "the namespace is being deleted and accepts no new objects. The operator creates no more objects for the run",
        "nothing has to be done: runs are deleted with their namespace, which is being deleted",
        severity=Severity.NORMAL,
    )
    API_UNAVAILABLE = _refusal(
        (*_SUMMARY, ConditionType.CLEANED_UP),
        "ApiUnavailable",
        "the request did not succeed within 20 s of retries",
        "check the API server and its admission webhooks",
    )
    CLEANING_UP = _normal(
        (ConditionType.RECONCILING,),
        "CleaningUp",
        "succeeded, and volumes are being deleted; or the run is being deleted",
    )
    IN_PROGRESS = _normal(
        _CLEANED_UP,
        "InProgress",
        "pods are stopping, or these are being deleted, in this order: namespaces of kube-burner, images and objects "
        "in Ceph, PVCs, the copied key, PersistentVolumes, the StorageClass, CephX users, pools, the teardown "
        "record. With a file system of the run's own, PVCs and PersistentVolumes come before the objects in Ceph, "
        "and Ceph's purge of the deleted volumes after these. The message names the next one",
        "if it persists, find the cause that blocks the deletion: the Node object of a dead node keeps its pods, a "
        "broken provisioner keeps a PersistentVolume, and the owners of the finalizers in the message keep a PVC. A "
        "purge takes as long as Ceph needs: wait while the number in the message falls",
        event="CleaningUp",
    )
    TEARDOWN_FAILING = _cleaning_up(
        "TeardownFailing",
        "the teardown Job has not yet removed the run's images, objects and flags, and is retried; the message has "
        f"its last error. {_NEXT_WAITS}",
        "check that Ceph responds, and that no client still has an image of the run open. If that cluster is gone "
        "for good, delete the Secret that the message names",
    )
    POOL_DELETION_BLOCKED = _cleaning_up("PoolDeletionBlocked", *_DELETION_BLOCKED)
    FILE_SYSTEM_DELETION_BLOCKED = _cleaning_up("FileSystemDeletionBlocked", *_DELETION_BLOCKED)
    USER_DELETION_BLOCKED = _cleaning_up("UserDeletionBlocked", *_DELETION_BLOCKED)
    PLACEMENT_GROUPS_INACTIVE = _cleaning_up(
        "PlacementGroupsInactive",
        "the `CephCluster` reports inactive placement groups (`PG_AVAILABILITY`). The teardown Job waits for them; a "
        "pool or file system that is not being deleted yet is kept, because its deletion would hang Rook's "
        f"controller for all of them. {_NEXT_WAITS}",
        "bring the OSDs back: cleanup continues automatically. If the groups belong only to other pools, delete the "
        "CephBlockPool or CephFilesystem that the message names",
    )
    NODE_GONE = _cleaning_up(
        "NodeGone",
        "the last pods exceeded their deletion deadline by five minutes. They count as no longer loading the target, "
        "so its next run starts; this run waits for its pods. A Job has restored the OSDs that it took away, and their "
        "options, or the message says why not",
        "delete the Node if it will not return, or taint it `node.kubernetes.io/out-of-service`; check the pods' "
        "finalizers",
        load_is_gone=True,
    )
    CLAIMED_BY_OTHERS = _cleaning_up(
        "ClaimedByOthers",
        "PVCs that do not belong to the run are bound to PersistentVolumes of its StorageClass; the message names "
        "them. Their storage in Ceph is kept until they are deleted; the next run starts",
        "have those PVCs deleted; the chart's value `admission.runs` prevents users from creating such PVCs",
        load_is_gone=True,
    )
    STORAGE_KEPT = _normal(
        _CLEANED_UP,
        "StorageKept",
        "`cleanup` keeps the PVCs; for a run on Ceph also pool, images, users and teardown record",
        "delete the run when they are no longer needed",
        load_is_gone=True,
    )
    REMOVED = _normal(
        _CLEANED_UP,
        "Removed",
        "only results, plan, state and session Secret remain, and for a run on Ceph the ConfigMap `<run>-ceph` and "
        "the Secrets with keyrings, whose users Rook has deleted. They are deleted with the run",
        load_is_gone=True,
    )
    NOTHING_CREATED = _normal(
        _CLEANED_UP, "NothingCreated", "the run was refused before anything was created for it", load_is_gone=True
    )
    VALID = ReasonEntry(
        (), "Valid", ended=Explanation("all points are Valid"), succeeded=True, severity=Severity.NORMAL
    )
    SUSPECT = ReasonEntry(
        (),
        "Suspect",
        ended=Explanation("some points are Suspect, the others Valid", "read the findings in the results"),
        succeeded=True,
        severity=Severity.NORMAL,
    )
    INVALID_RESULTS = _end(
        "InvalidResults",
        "measured, but points are Invalid",
        "read the findings of the Invalid points ([checks](../reference/checks.md))",
    )
    INVALID_SPEC = _end(
        "InvalidSpec",
        "the specification is invalid, has too many points or does not fit its deadline",
        "the message names the field and the remedy; `plimsoll plan` reports the same beforehand",
    )
    STORAGE_CLASS_NOT_FOUND = _end(
        "StorageClassNotFound",
        "the StorageClass in `storage.storageClass.name` does not exist, or belongs to another run; the message "
        "lists the ones that a run can use. Static volumes need one too (`provisioner: kubernetes.io/no-provisioner`)",
        "create it, or name another, in a new run",
    )
    POD_SECURITY_TOO_STRICT = _end(
        "PodSecurityTooStrict",
        "the run asks for raw devices (`volume.mode: Block`), whose clients run as root, and its namespace enforces "
        "the Pod Security profile `restricted`",
        "leave `volume.mode` out, or on Ceph use `access: LibRBD`, or use a namespace that enforces `baseline`",
    )
    ROOK_CLUSTER_NOT_ALLOWED = _end(
        "RookClusterNotAllowed",
        "runs in this namespace may not use that Rook cluster",
        "ask the administrator to add it to the chart's `rook.clusters`",
    )
    LIMIT_EXCEEDED = _end(
        "LimitExceeded",
        "the run has more clients or larger volumes than the administrator allows, or would write more",
        "lower what the message names, or ask the administrator to raise that limit of the chart's `limits`",
    )
    WINDOWS_TOO_SHORT = _end(
        "WindowsTooShort",
        "no maintenance window is as long as the run's longest trial and the preparation before it",
        "shorten the trials or lower `volume.size`, or ask for longer `maintenanceWindows`",
    )
    OSD_BENCH_NOT_ALLOWED = _end(
        "OsdBenchNotAllowed",
        "the administrator has not allowed `osdBench`",
        "remove it, or ask the administrator to set the chart's `osdBench.enabled`",
    )
    POOL_NOT_FEASIBLE = _end(
        "PoolNotFeasible",
        "Ceph could not place the pool on the existing OSDs: too few failure domains, none of that device class, or "
        "more placement groups than Ceph allows per OSD; or the CephCluster is external, or a stretch cluster whose "
        "pools must have four copies. The pool is not created, because deleting such a pool would block Rook's pool "
        "controller for all pools",
        "change `storage.rook.pool` or the pools of `storage.rook.fileSystem`, or add OSDs; on an external cluster, "
        "measure what exists",
    )
    POOL_NOT_FOUND = _end(
        "PoolNotFound",
        "the CephBlockPool in `existingPool` does not exist in that namespace; the message lists the existing ones",
        "name one of them",
    )
    POOL_NOT_ALLOWED = _end(
        "PoolNotAllowed",
        'the CephBlockPool has no annotation `plimsoll.dev/allow-benchmarks: "true"`',
        "ask its owner to set it",
    )
    FILE_SYSTEM_NOT_FOUND = _end(
        "FileSystemNotFound",
        "the CephFilesystem in `existingFileSystem` does not exist in that namespace, or has no pools of these "
        "names; the message lists the existing ones",
        "name one of them",
    )
    FILE_SYSTEM_NOT_ALLOWED = _end(
        "FileSystemNotAllowed",
        'the CephFilesystem has no annotation `plimsoll.dev/allow-benchmarks: "true"`',
        "ask its owner to set it",
    )
    GATE_CLOSED = _end(
        "GateClosed",
        "the Ceph cluster did not pass the gates before a trial within `readySeconds`, or the pool does not match "
        "the specification; the message has the details",
        "repair the cluster, wait for its recovery, or relax `gates`",
    )
    CEPH_OPTION_NOT_ALLOWED = _end(
        "CephOptionNotAllowed",
        "`storage.rook.config` names an option that the administrator has not allowed for that Rook cluster",
        "remove it, or ask the administrator to add it to the chart's `rook.options`",
    )
    CEPH_OPTION_REFUSED = _end(
        "CephOptionRefused",
        "Ceph does not know an option of `storage.rook.config`, does not accept its value, or applies it only after "
        "a restart of the OSDs; the message says which",
        "correct `storage.rook.config` in a new run",
    )
    DISTURBANCE_NOT_ALLOWED = _end(
        "DisturbanceNotAllowed",
        "a workload has `disturb`, which the administrator has not allowed for that Ceph cluster",
        "remove it, or ask the administrator to add the cluster to the chart's `disturb`",
    )
    DISTURBANCE_REFUSED = _end(
        "DisturbanceRefused",
        "the OSDs that `disturb` would take away are too few, hold pools of others without consent, or leave a pool "
        "inactive or the other OSDs too full; the message has the numbers. Nothing was taken away",
        "follow the message in a new run",
    )
    CEPH_CLIENT_TOO_OLD = _end(
        "CephClientTooOld",
        "the run's CephX key is of type `aes256k`, the default of Ceph 19.2.6, 20.2.4 and later, and the Ceph client "
        "of the runner image is too old to read it",
        "use a runner image with Ceph 20.2.4 or later in a new run. The old image cannot connect to clean up either: "
        "replace the key by one of type `aes` ([Keys](../reference/ceph.md#keys))",
    )
    CEPH_TOO_OLD = _end(
        "CephTooOld",
        "the Ceph cluster is older than any that Plimsoll measures, or than `erasureCoded.optimizations` needs; the "
        "message has both versions. Nothing was created in it if its `CephCluster` reports a version; otherwise the "
        "conductor asked Ceph before it changed anything, and what Rook created for the run is removed",
        "upgrade Ceph, or remove the field that the message names, in a new run",
    )
    CLUSTER_TOO_FULL = _end(
        "ClusterTooFull",
        "the run's volumes would fill an OSD beyond `limits.fillPercent`, or an OSD is already fuller; the message "
        "has the numbers. The conductor asks Ceph before anything is written; Rook's objects of the run are removed",
        "write less, free or add space, or raise `limits.fillPercent` in a new run",
    )
    CLUSTER_AT_RISK = _end(
        "ClusterAtRisk",
        "a health check appeared while the run loaded the cluster, and the run ended before Ceph stops all writes: "
        "`OSD_NEARFULL`, `OSD_BACKFILLFULL`, `OSD_FULL`, `POOL_FULL`, `MON_DOWN`, or one in `gates.stopOn`. The "
        "trial in flight has no numbers; the recorded trials remain in the results. Checks that are muted, or failed "
        "before the load began, do not end a run",
        "fix the cause that the message names; remove a check from `gates.stopOn` if the load may cause it",
    )
    QUOTA_REACHED = _end(
        "QuotaReached",
        "a pool of the run has reached its quota, so all writes to it hang. If the pool was created for the run, the "
        "conductor removes the quota, so that everything in the pool can be deleted",
        "write less in a new run, or raise `limits.fillPercent`; the owner of an existing pool can raise its quota",
    )
    ROOK_TOO_OLD = _end(
        "RookTooOld",
        "the CRDs of that Rook lack a field of the pool, or do not accept its value; the message has Rook's version "
        "and quotes the API server's answer to a dry run. Nothing was created",
        "upgrade Rook with its CRDs, or remove that field, in a new run",
    )
    CACHE_DROPPING_NOT_ALLOWED = _end(
        "CacheDroppingNotAllowed",
        "`prepare.dropCaches` is true, but the administrator has not enabled the helpers that drop caches, or not "
        "for runs in this namespace",
        "ask the administrator to set the chart's `caches.enabled` and to add the namespace to `caches.namespaces`, "
        "or set it to false and use volumes larger than the memory of the nodes",
    )
    KUBE_BURNER_NOT_ALLOWED = _end(
        "KubeBurnerNotAllowed",
        "the administrator has not enabled `kubeBurner`, or not for runs in this namespace, or allows fewer objects, "
        "requests per second or bytes of a PVC than the workload has; the message says which",
        "ask the administrator to set the chart's `kubeBurner.enabled`, to add the namespace to "
        "`kubeBurner.namespaces`, or to raise `kubeBurner.maxObjects`, `kubeBurner.maxQps` or "
        "`kubeBurner.maxVolumeSize`; or lower the numbers",
    )
    VOLUMES_RETAINED = _end(
        "VolumesRetained",
        "`kubeBurner` would leave the volume of each PVC behind, because the StorageClass has the reclaim policy "
        "`Retain`",
        "name a StorageClass with `reclaimPolicy: Delete`",
    )
    RESULTS_EXIST = _end(
        "ResultsExist",
        "the namespace has results of an earlier run with this name, which were retained or not deleted within "
        "`provisionSeconds`",
        "delete them and the run, or rename the run",
    )
    NAME_TAKEN = ReasonEntry(
        (),
        "NameTaken",
        ended=Explanation(
            "an object that does not belong to this run occupies a name that the run needs; the message names it. "
            "The operator neither uses nor changes it",
            "delete it and the run, or rename the run",
        ),
        own_remedy="delete that object and the run, or rename the run",
        is_refusal=True,
    )
    PLAN_MISSING = _end("PlanMissing", "the plan's ConfigMap was deleted", "create the run again")
    PLAN_DAMAGED = _end(
        "PlanDamaged",
        "the plan cannot be read (another version), or is not the one that the operator created: not immutable, of "
        "another run, or with a digest other than `status.planSha256`",
        "create the run again; if nothing was upgraded, find out who changed the plan",
    )
    CLIENTS_FAILED = _end(
        "ClientsFailed", "one client was lost six times", "the message has its exit code and termination message"
    )
    CONDUCTOR_NOT_READY = _end(
        "ConductorNotReady",
        "no conductor was active for `readySeconds`: at the start, after one died or lost its node, or after the run "
        "was resumed",
        "the message has the state of its pod or Job: image, free nodes, a lost node",
    )
    CONDUCTOR_FAILED = _end(
        "ConductorFailed",
        "the conductor's Job failed: too many restarts, or its deadline",
        "the message has its termination message; check its log",
    )
    RESULTS_INCOMPLETE = _end(
        "ResultsIncomplete",
        "a result, or the ConfigMap `<run>-state`, was deleted after the run's first conductor had started: trials "
        "may be missing; or the conductor finished, but results are not final",
        "create the run again, and do not delete either before it ends; to measure something again, create another run",
    )
    CLIENTS_NOT_READY = ReasonEntry(
        (),
        "ClientsNotReady",
        ended=Explanation(
            "clients did not register, or were lost and did not return, within `readySeconds`; or were not running "
            "within `provisionSeconds` for no known reason",
            "the message combines the conductor's report with the state of the pods; check the events of these Jobs "
            "and pods",
        ),
        own_remedy="check the events of these Jobs and pods",
    )
    PREPARATION_FAILED = _end(
        "PreparationFailed",
        "a client could not discard, write or verify its volume; the message quotes fio",
        "check the volume: full, read-only, compressing, gone",
    )
    DEADLINE_EXCEEDED = _end(
        "DeadlineExceeded",
        "not measured within `totalSeconds`",
        "raise it, or plan fewer trials; recorded trials remain in the results",
    )


UnknownReason = NewType("UnknownReason", str)  # a reason that only another version of the operator knows


def read_reason(text: str) -> Reason | UnknownReason:
    try:
        return Reason(text)
    except ValueError:
        return UnknownReason(text)
