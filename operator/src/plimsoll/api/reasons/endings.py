"""Reasons that only a finished run has."""

from plimsoll.api.reasons.entry import Explanation, ReasonEntry, Severity
from plimsoll.api.reasons.reason import Reason

ENDING_REASONS = (
    ReasonEntry(
        Reason.VALID,
        ended=Explanation("all points are Valid"),
        succeeded=True,
        severity=Severity.NORMAL,
    ),
    ReasonEntry(
        Reason.SUSPECT,
        ended=Explanation("some points are Suspect, the rest Valid", "read the findings in the results"),
        succeeded=True,
        severity=Severity.NORMAL,
    ),
    ReasonEntry(
        Reason.INVALID_RESULTS,
        ended=Explanation(
            "measured, but points are Invalid",
            "read the findings of the Invalid points ([trust.md](trust.md#checks))",
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
            "the StorageClass in `storage.storageClass.name` does not exist; the message lists those that do. Static "
            "volumes need one too (`provisioner: kubernetes.io/no-provisioner`)",
            "create it, or name another, in a new run",
        ),
    ),
    ReasonEntry(
        Reason.POD_SECURITY_TOO_STRICT,
        ended=Explanation(
            "clients of a Block volume run as root, and the namespace enforces `restricted`",
            "use a Filesystem volume or, on Ceph, `access: LibRBD`, or a namespace that enforces `baseline`",
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
            "the administrator has not allowed `osdBench`",
            "remove it, or ask for `PLIMSOLL_OSD_BENCH=true`",
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
            'the CephBlockPool has no annotation `plimsoll.dev/allow-benchmarks: "true"`',
            "ask its owner to set it",
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
            'the CephFilesystem has no annotation `plimsoll.dev/allow-benchmarks: "true"`',
            "ask its owner to set it",
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
        Reason.CACHE_DROPPING_NOT_ALLOWED,
        ended=Explanation(
            "`prepare.dropCaches: true`, but the administrator has not enabled the helpers that drop caches, or not "
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
    ReasonEntry(
        Reason.PLAN_MISSING,
        ended=Explanation("the plan's ConfigMap was deleted", "create the run again"),
    ),
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
        ended=Explanation(
            "one client was lost six times",
            "the message has its exit code and termination message",
        ),
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
            "the conductor finished, but results are not final",
            "a result may have been deleted or changed; create the run again",
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
            "not measured within `totalSeconds`",
            "raise it, or plan fewer trials; recorded trials stay in the results",
        ),
    ),
)
