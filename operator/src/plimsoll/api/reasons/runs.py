"""Reasons about clients, the conductor, and requests that the API server refuses."""

from collections.abc import Mapping

from plimsoll.api.names import AbortReason, Cause, ConditionType
from plimsoll.api.reasons.reason import AttemptExplanation, Explanation, Reason, ReasonEntry, Severity

_CLIENTS = (ConditionType.CLIENTS_READY, ConditionType.SUCCEEDED, ConditionType.RECONCILING)
_REQUESTS = (ConditionType.SUCCEEDED, ConditionType.RECONCILING, ConditionType.CLIENTS_READY)
_CLIENTS_TIMED_OUT = Explanation("clients were not running within `provisionSeconds`", "as above")
_REFUSED_TOO_LONG = Explanation("an object could not be created within `provisionSeconds`", "as above")

CLIENT_REASONS = (
    ReasonEntry(
        Reason.STARTING,
        conditions=_CLIENTS,
        under_way=Explanation("pods are being created, and no problem is known"),
        severity=Severity.NORMAL,
        event="ClientsStarting",
    ),
    ReasonEntry(
        Reason.CONDUCTOR_STARTING,
        conditions=_CLIENTS,
        under_way=Explanation(
            "the conductor, or its replacement, is not active yet; the message has the state of its pod",
            "nothing; if it persists, check the events of its Job and pod, and its log",
        ),
        remedy="check the events of the conductor's Job and pod, and its log",
        severity=Severity.NORMAL,
    ),
    ReasonEntry(
        Reason.REGISTERED,
        conditions=(ConditionType.CLIENTS_READY,),
        under_way=Explanation("all clients have registered"),
        severity=Severity.NORMAL,
    ),
    ReasonEntry(
        Reason.CLIENTS_MISSING,
        conditions=_CLIENTS,
        under_way=Explanation(
            "a client has no pod, or its running pod has not contacted the conductor",
            "check the client's log; another NetworkPolicy or the cluster's DNS may block it",
        ),
        ended=_CLIENTS_TIMED_OUT,
        remedy="check the pods of the run",
    ),
    ReasonEntry(
        Reason.UNSCHEDULABLE,
        conditions=_CLIENTS,
        under_way=Explanation(
            "the scheduler finds no node for a client or the conductor",
            "free or add nodes, lower `clients.count` or `clients.resources`, set `clients.spread: Preferred`, or "
            "change `servers.placement`",
        ),
        ended=_CLIENTS_TIMED_OUT,
        remedy=(
            "free or add nodes, lower clients.count or clients.resources, set clients.spread: Preferred, or change "
            "servers.placement"
        ),
    ),
    ReasonEntry(
        Reason.IMAGE_PULL_FAILED,
        conditions=_CLIENTS,
        under_way=Explanation(
            "the runner image cannot be pulled", "check the image's name, `clients.imagePullSecrets` and the registry"
        ),
        ended=_CLIENTS_TIMED_OUT,
        remedy="check the runner image and imagePullSecrets",
    ),
    ReasonEntry(
        Reason.CONTAINER_FAILED,
        conditions=_CLIENTS,
        under_way=Explanation("the container cannot be created or started", "check the pod's events"),
        ended=_CLIENTS_TIMED_OUT,
        remedy="check the pod's events",
    ),
    ReasonEntry(
        Reason.CLIENT_FAILED,
        conditions=_CLIENTS,
        under_way=Explanation(
            "an agent exited; the message has its exit code and termination message",
            "see [exit codes](#exit-codes); it is replaced up to five times",
        ),
        ended=_CLIENTS_TIMED_OUT,
        remedy="check the client's exit code and termination message",
    ),
    ReasonEntry(
        Reason.QUOTA_EXCEEDED,
        conditions=_REQUESTS,
        under_way=Explanation(
            "a ResourceQuota blocks the creation of an object, or of a Job's pod; the message quotes the API server or "
            "the Job controller",
            "raise the quota, or lower `clients.count`, `clients.resources` or `volume.size`",
        ),
        ended=_REFUSED_TOO_LONG,
        remedy="raise the namespace's ResourceQuota, or lower clients.count, clients.resources or volume.size",
        is_refusal=True,
    ),
    ReasonEntry(
        Reason.API_REFUSED,
        conditions=(*_REQUESTS, ConditionType.CLEANED_UP),
        under_way=Explanation(
            "the API server refuses a request of the operator: an admission policy, a LimitRange, Pod Security, "
            "missing permissions. The operator retries every 5 s",
            "change the run, or the policy that refuses it; [who may do what](architecture.md#who-may-do-what) lists "
            "the operator's permissions. A run does not end because the operator cannot observe it",
        ),
        ended=_REFUSED_TOO_LONG,
        remedy=(
            "change the run, or what refuses it: an admission policy, LimitRange, Pod Security, the operator's "
            "ClusterRole"
        ),
        is_refusal=True,
    ),
    ReasonEntry(
        Reason.NAMESPACE_TERMINATING,
        conditions=_REQUESTS,
        under_way=Explanation(
            "the namespace is being deleted and accepts no new objects. The operator creates no more objects for the "
            "run",
            "nothing: the run is deleted with its namespace",
        ),
        ended=_REFUSED_TOO_LONG,
        remedy=(
            "a namespace that is being deleted accepts no new objects; its runs are deleted with it, so nothing has "
            "to be done"
        ),
        severity=Severity.NORMAL,
        is_refusal=True,
    ),
    ReasonEntry(
        Reason.API_UNAVAILABLE,
        conditions=(ConditionType.SUCCEEDED, ConditionType.RECONCILING, ConditionType.CLEANED_UP),
        under_way=Explanation(
            "the request did not succeed within 20 s of retries", "check the API server and its admission webhooks"
        ),
        ended=_REFUSED_TOO_LONG,
        remedy="check the API server and its admission webhooks",
        is_refusal=True,
    ),
)


_SUMMARY = (ConditionType.SUCCEEDED, ConditionType.RECONCILING)
_USE_NEWER_OPERATOR = "use that version of the operator, or a later one"
_SEE_SUCCEEDED = "see the reason of `Succeeded`"

WAITING_REASONS = (
    ReasonEntry(
        Reason.PLANNING,
        conditions=_SUMMARY,
        under_way=Explanation("the plan is being stored"),
        severity=Severity.NORMAL,
    ),
    ReasonEntry(
        Reason.WAITING_FOR_TURN,
        conditions=(*_SUMMARY, ConditionType.ADMITTED),
        under_way=Explanation(
            "other runs on the same target are ahead in the queue; the message has the position, and how many runs of "
            "each other namespace can start before this one",
            "wait; a run that is suspended, or has ended and is not cleaned up, loses its place after "
            "`PLIMSOLL_HOLD_SECONDS`",
        ),
        severity=Severity.NORMAL,
    ),
    ReasonEntry(
        Reason.SUSPENDED_TOO_LONG,
        conditions=(ConditionType.ADMITTED, ConditionType.RECONCILING),
        under_way=Explanation(
            "the run has been suspended for more than `PLIMSOLL_HOLD_SECONDS` in total since its last measured trial; "
            "other runs on its target go first, as soon as its pods have stopped. Its volumes are kept",
            "resume it: it continues at the end of the queue",
        ),
        severity=Severity.NORMAL,
    ),
    ReasonEntry(
        Reason.WAITING_FOR_EARLIER_RUN,
        conditions=_SUMMARY,
        under_way=Explanation(
            "an object of an earlier run with this name, or an object that is being deleted, still exists; the message "
            "names it. The operator checks every 15 s; meanwhile, other runs overtake a run that is not admitted yet, "
            "and it ends after `provisionSeconds`",
            "nothing; if it persists, check that object's finalizers",
        ),
        remedy="nothing has to be done; if it persists, check that object's finalizers",
        is_passed_by=True,
        is_refusal=True,
    ),
    ReasonEntry(
        Reason.SPEC_UNREADABLE,
        conditions=_SUMMARY,
        under_way=Explanation(
            "another version of the operator started the run, and this version cannot read its specification. Its "
            "pods continue and may finish; the operator creates no more objects for it",
            _USE_NEWER_OPERATOR,
        ),
        is_passed_by=True,
    ),
    ReasonEntry(
        Reason.RESULTS_UNREADABLE,
        conditions=_SUMMARY,
        under_way=Explanation(
            "the conductor finished, but this version cannot read the status of the results that the message names",
            _USE_NEWER_OPERATOR,
        ),
    ),
    ReasonEntry(
        Reason.ADMITTED,
        conditions=(ConditionType.ADMITTED,),
        under_way=Explanation("it is this run's turn"),
        severity=Severity.NORMAL,
    ),
    ReasonEntry(
        Reason.MEASURING,
        conditions=_SUMMARY,
        under_way=Explanation("all clients have registered; the message shows what is being measured"),
        severity=Severity.NORMAL,
    ),
    ReasonEntry(
        Reason.SUSPENDED,
        conditions=(ConditionType.SUCCEEDED, ConditionType.SUSPENDED, ConditionType.CLIENTS_READY),
        under_way=Explanation("`spec.suspend` is true, and the clients are deleted", "set it to false to resume"),
        severity=Severity.NORMAL,
    ),
    ReasonEntry(
        Reason.STOPPING,
        conditions=(ConditionType.RECONCILING,),
        under_way=Explanation("the pods of a suspended run are stopping"),
        severity=Severity.NORMAL,
    ),
    ReasonEntry(
        Reason.NOT_SUSPENDED,
        conditions=(ConditionType.SUSPENDED,),
        under_way=Explanation("the run is not suspended"),
        severity=Severity.NORMAL,
        event="Resumed",
    ),
    ReasonEntry(
        Reason.ENDED,
        conditions=(ConditionType.SUSPENDED, ConditionType.STORAGE_READY, ConditionType.CLIENTS_READY),
        under_way=Explanation("the condition was True until the run ended", _SEE_SUCCEEDED),
        severity=Severity.NORMAL,
    ),
    ReasonEntry(
        Reason.ALL_FINAL,
        conditions=(ConditionType.MEASURED,),
        under_way=Explanation("all points have all their trials"),
        severity=Severity.NORMAL,
    ),
    ReasonEntry(
        Reason.INCOMPLETE,
        conditions=(ConditionType.MEASURED,),
        under_way=Explanation("the run ended before all points had all their trials", _SEE_SUCCEEDED),
    ),
)


ENDING_REASONS = (
    ReasonEntry(Reason.VALID, ended=Explanation("all points are Valid"), succeeded=True, severity=Severity.NORMAL),
    ReasonEntry(
        Reason.SUSPECT,
        ended=Explanation("some points are Suspect, the others Valid", "read the findings in the results"),
        succeeded=True,
        severity=Severity.NORMAL,
    ),
    ReasonEntry(
        Reason.INVALID_RESULTS,
        ended=Explanation(
            "measured, but points are Invalid", "read the findings of the Invalid points ([trust.md](trust.md#checks))"
        ),
    ),
    ReasonEntry(
        Reason.INVALID_SPEC,
        ended=Explanation(
            "the specification is invalid, has too many points or does not fit its deadline",
            "the message names the field and the remedy; `plimsoll plan` reports the same beforehand",
        ),
    ),
    ReasonEntry(
        Reason.STORAGE_CLASS_NOT_FOUND,
        ended=Explanation(
            "the StorageClass in `storage.storageClass.name` does not exist, or belongs to another run; the message "
            "lists those that a run can use. Static volumes need one too (`provisioner: kubernetes.io/no-provisioner`)",
            "create it, or name another, in a new run",
        ),
    ),
    ReasonEntry(
        Reason.POD_SECURITY_TOO_STRICT,
        ended=Explanation(
            "the run asks for raw devices (`volume.mode: Block`), whose clients run as root, and its namespace "
            "enforces the Pod Security profile `restricted`",
            "leave `volume.mode` out, or on Ceph use `access: LibRBD`, or use a namespace that enforces `baseline`",
        ),
    ),
    ReasonEntry(
        Reason.ROOK_CLUSTER_NOT_ALLOWED,
        ended=Explanation(
            "runs in this namespace may not use that Rook cluster",
            "ask an administrator to allow it in `PLIMSOLL_ROOK_CLUSTERS`",
        ),
    ),
    ReasonEntry(
        Reason.OSD_BENCH_NOT_ALLOWED,
        ended=Explanation(
            "the administrator has not allowed `osdBench`", "remove it, or ask for `PLIMSOLL_OSD_BENCH=true`"
        ),
    ),
    ReasonEntry(
        Reason.POOL_NOT_FEASIBLE,
        ended=Explanation(
            "Ceph could not place the pool on the existing OSDs: too few failure domains, none of that device class, "
            "or more placement groups than Ceph allows per OSD. The pool is not created, because deleting such a pool "
            "would block Rook's pool controller for all pools",
            "change `storage.rook.pool` or the pools of `storage.rook.fileSystem`, or add OSDs",
        ),
    ),
    ReasonEntry(
        Reason.POOL_NOT_FOUND,
        ended=Explanation(
            "the CephBlockPool in `existingPool` does not exist in that namespace; the message lists those that do",
            "name one of them",
        ),
    ),
    ReasonEntry(
        Reason.POOL_NOT_ALLOWED,
        ended=Explanation(
            'the CephBlockPool has no annotation `plimsoll.dev/allow-benchmarks: "true"`', "ask its owner to set it"
        ),
    ),
    ReasonEntry(
        Reason.FILE_SYSTEM_NOT_FOUND,
        ended=Explanation(
            "the CephFilesystem in `existingFileSystem` does not exist in that namespace, or has no pools of these "
            "names; the message lists those that do",
            "name one of them",
        ),
    ),
    ReasonEntry(
        Reason.FILE_SYSTEM_NOT_ALLOWED,
        ended=Explanation(
            'the CephFilesystem has no annotation `plimsoll.dev/allow-benchmarks: "true"`', "ask its owner to set it"
        ),
    ),
    ReasonEntry(
        Reason.CLUSTER_NOT_READY,
        ended=Explanation(
            "the Ceph cluster did not pass the gates before a trial within `readySeconds`, or the pool does not match "
            "the specification; the message has the details",
            "repair the cluster, wait for its recovery, or relax `gates`",
        ),
    ),
    ReasonEntry(
        Reason.CEPH_OPTION_NOT_ALLOWED,
        ended=Explanation(
            "`storage.rook.config` names an option that the administrator has not allowed for that Rook cluster",
            "remove it, or ask the administrator to add it to the chart's `rook.options`",
        ),
    ),
    ReasonEntry(
        Reason.CEPH_OPTION_REFUSED,
        ended=Explanation(
            "Ceph does not know an option of `storage.rook.config`, does not accept its value, or applies it only "
            "after a restart of the OSDs; the message says which",
            "correct `storage.rook.config` in a new run",
        ),
    ),
    ReasonEntry(
        Reason.CEPH_CLIENT_TOO_OLD,
        ended=Explanation(
            "the run's CephX key is of type `aes256k`, the default of Ceph 19.2.6, 20.2.4 and later, and the Ceph "
            "client of the runner image is too old to read it",
            "use a runner image with Ceph 20.2.4 or later in a new run. While the old one cannot connect either to "
            "clean up, replace the key by one of type `aes` ([ceph.md](ceph.md#keys))",
        ),
    ),
    ReasonEntry(
        Reason.CEPH_TOO_OLD,
        ended=Explanation(
            "the Ceph cluster is older than any that Plimsoll measures, or than `erasureCoded.optimizations` needs; "
            "the message has both versions. Nothing was created in it if its `CephCluster` reports a version; "
            "otherwise the conductor asked Ceph before it changed anything, and what Rook created for the run is "
            "removed",
            "upgrade Ceph, or remove the field that the message names, in a new run",
        ),
    ),
    ReasonEntry(
        Reason.ROOK_TOO_OLD,
        ended=Explanation(
            "the resource definitions of that Rook lack a field of the pool, or do not accept its value; the message "
            "has Rook's version and quotes the API server, which was asked with a dry run. Nothing was created",
            "upgrade Rook with its resource definitions, or remove that field, in a new run",
        ),
    ),
    ReasonEntry(
        Reason.CACHE_DROPPING_NOT_ALLOWED,
        ended=Explanation(
            "`prepare.dropCaches` is true, but the administrator has not enabled the helpers that drop caches, or not "
            "for runs in this namespace",
            "ask the administrator to set the chart's `caches.enabled` and to add the namespace to "
            "`caches.namespaces`, or set it to false and use volumes larger than the memory of the nodes",
        ),
    ),
    ReasonEntry(
        Reason.KUBE_BURNER_NOT_ALLOWED,
        ended=Explanation(
            "the administrator has not enabled `kubeBurner`, or not for runs in this namespace, or allows fewer "
            "objects, requests per second or bytes of a PVC than the workload has; the message says which",
            "ask the administrator to set the chart's `kubeBurner.enabled`, to add the namespace to "
            "`kubeBurner.namespaces`, or to raise `kubeBurner.maxObjects`, `kubeBurner.maxQps` or "
            "`kubeBurner.maxVolumeSize`; or lower the numbers",
        ),
    ),
    ReasonEntry(
        Reason.VOLUMES_RETAINED,
        ended=Explanation(
            "`kubeBurner` would leave the volume of each PVC behind, because the StorageClass has the reclaim policy "
            "`Retain`",
            "name a StorageClass with `reclaimPolicy: Delete`",
        ),
    ),
    ReasonEntry(
        Reason.RESULTS_EXIST,
        ended=Explanation(
            "the namespace has results that an earlier run with this name left, or that were not deleted with it "
            "within `provisionSeconds`",
            "delete them and the run, or rename the run",
        ),
    ),
    ReasonEntry(
        Reason.NAME_TAKEN,
        ended=Explanation(
            "an object that does not belong to this run occupies a name that the run needs; the message names it. The "
            "operator neither uses nor changes it",
            "delete it and the run, or rename the run",
        ),
        remedy="delete that object and the run, or rename the run",
        is_refusal=True,
    ),
    ReasonEntry(Reason.PLAN_MISSING, ended=Explanation("the plan's ConfigMap was deleted", "create the run again")),
    ReasonEntry(
        Reason.PLAN_DAMAGED,
        ended=Explanation(
            "the plan cannot be read (another version), or is not the one that the operator created: not immutable, of "
            "another run, or with a digest other than `status.planSha256`",
            "create the run again; if nothing was upgraded, find out who changed the plan",
        ),
    ),
    ReasonEntry(
        Reason.CLIENTS_FAILED,
        ended=Explanation("one client was lost six times", "the message has its exit code and termination message"),
    ),
    ReasonEntry(
        Reason.CONDUCTOR_NOT_READY,
        ended=Explanation(
            "no conductor was active for `readySeconds`: at the start, after one died or lost its node, or after the "
            "run was resumed",
            "the message has the state of its pod or Job: image, free nodes, quota, a lost node",
        ),
    ),
    ReasonEntry(
        Reason.CONDUCTOR_FAILED,
        ended=Explanation(
            "the conductor's Job failed: too many restarts, or its deadline",
            "the message has its termination message; check its log",
        ),
    ),
    ReasonEntry(
        Reason.RESULTS_INCOMPLETE,
        ended=Explanation(
            "a result, or the ConfigMap `<run>-state`, was deleted after the run's first conductor had started: trials "
            "may be missing; or the conductor finished, but results are not final",
            "create the run again, and leave both alone until it ends; to measure something again, create another run",
        ),
    ),
    ReasonEntry(
        Reason.CLIENTS_NOT_READY,
        ended=Explanation(
            "clients did not register, or were lost and did not return, within `readySeconds`; or were not running "
            "within `provisionSeconds` for no known reason",
            "the message combines the conductor's report with the state of the pods; check the events of these Jobs "
            "and pods",
        ),
        remedy="check the events of these Jobs and pods",
    ),
    ReasonEntry(
        Reason.PREPARATION_FAILED,
        ended=Explanation(
            "a client could not discard, write or verify its volume; the message quotes fio",
            "check the volume: full, read-only, compressing, gone",
        ),
    ),
    ReasonEntry(
        Reason.DEADLINE_EXCEEDED,
        ended=Explanation(
            "not measured within `totalSeconds`", "raise it, or plan fewer trials; recorded trials stay in the results"
        ),
    ),
)


ATTEMPT_REASONS: Mapping[AbortReason, AttemptExplanation] = {
    AbortReason.CLIENT_LOST: AttemptExplanation(
        "a client of the trial died, was replaced, or sent nothing for 20 s",
        "check its pod and node: memory, eviction, network",
        cause=Cause.HARNESS,
    ),
    AbortReason.CLIENT_NOT_STAGED: AttemptExplanation(
        "a client could not write the data that the trial reads, or not within the timeout",
        "check the pool and the client's termination message",
        cause=Cause.STORAGE,
    ),
    AbortReason.CACHES_NOT_DROPPED: AttemptExplanation(
        "the caches of a client's node, or of the OSDs, were not dropped before the trial; the message names the node "
        "and what failed. The cause is storage if the time was used up, or the OSDs failed",
        "check the helper's pod on that node: `kubectl -n plimsoll-caches logs`",
        cause=Cause.HARNESS,
    ),
    AbortReason.CLIENT_NOT_ARMED: AttemptExplanation(
        "a client did not report in time that it is armed, or could not build the command; no client did any I/O. The "
        "cause is storage if it looks at files before: with `bonnie`, and with `readBack: NextClient`",
        "check the load and the network of its node; the message names an impossible parameter",
        cause=Cause.HARNESS,
    ),
    AbortReason.LATE_CLIENT: AttemptExplanation(
        "a client did not start at T0",
        "check for other load on its node; give the clients more CPU",
        cause=Cause.HARNESS,
    ),
    AbortReason.TOOL_OVERRAN: AttemptExplanation(
        "no result 45 s after the planned end", "check whether the storage hangs", cause=Cause.STORAGE
    ),
    AbortReason.RESULT_REFUSED: AttemptExplanation(
        "the conductor rejected a client's document: larger than 16 MiB, or of another version",
        "the message names the cause; report a bug",
        cause=Cause.HARNESS,
    ),
    AbortReason.CONDUCTOR_RESTARTED: AttemptExplanation(
        "the conductor died during the attempt; after T0, the attempt counts as replaced, as if it was suspended",
        "check the log of the conductor's earlier pod: memory, eviction",
        cause=Cause.HARNESS,
    ),
    AbortReason.INTERRUPTED: AttemptExplanation(
        "the run was suspended, or the conductor was asked to stop", cause=Cause.HARNESS
    ),
    AbortReason.DEADLINE_EXCEEDED: AttemptExplanation(
        "`totalSeconds` elapsed", "raise it, or plan fewer trials", cause=Cause.HARNESS
    ),
}
