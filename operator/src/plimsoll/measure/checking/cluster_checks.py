"""The part of the table of checks that is about a Ceph cluster: see `checks`."""

from plimsoll.measure.checking.check import Check, Direction

CLUSTER_NOT_WATCHED = Check(
    reason="ClusterNotWatched",
    what="part of the measured time in which Ceph did not say how it was",
    unit="%",
    suspect=10,
    remedy="see the conductor's log for what kept it from asking; nobody knows what else the cluster did then",
)
OSDS_CHANGED = Check(
    reason="OsdsChanged",
    what="OSDs that were down or out, and changes of which are up and in",
    invalid=0,
    remedy="bring all OSDs up and in, wait until the cluster is clean, and run again",
)
GROUPS_NOT_CLEAN = Check(
    reason="GroupsNotClean",
    what="placement groups that were not active+clean",
    invalid=0,
    remedy="wait until `ceph status` shows active+clean only; laggy ones come from OSDs that cannot keep up",
)
RECOVERY_TRAFFIC = Check(
    reason="RecoveryTraffic",
    what="bytes per second that the cluster recovered or moved",
    unit="bytes/s",
    invalid=0,
    remedy="wait until nothing recovers, and switch off the balancer while measuring",
)
SCRUBBING = Check(
    reason="Scrubbing",
    what=(
        "placement groups that were scrubbed, or trimmed of snapshots; unless rate and tail of the latency were no "
        "worse then than in the rest of the window"
    ),
    suspect=0,
    remedy="set gates.pauseScrub: true; other pools' scrubs share the disks: `ceph osd set noscrub` keeps them away",
)
SLOW_OPS = Check(
    reason="SlowOps",
    what="looks at the cluster that showed slow operations",
    suspect=0,
    remedy="see `ceph health detail` for the OSDs and look at their devices; less load may be all that they can bear",
)
CLUSTER_UNHEALTHY = Check(
    reason="ClusterUnhealthy",
    what="health checks of Ceph that may not stand",
    suspect=0,
    remedy="see `ceph health detail`, and remove the causes or name checks in gates.acceptedHealthChecks",
)
FOREIGN_LOAD = Check(
    reason="ForeignLoad",
    what=(
        "operations on pools that are not the run's, as a part of those on its own; Suspect unless rate and tail of "
        "the latency were no worse when there were many than in the rest of the window"
    ),
    unit="%",
    suspect=5,
    invalid=20,
    remedy="keep other users of the cluster away while measuring",
)
POOL_COUNTERS_DISAGREE = Check(
    reason="PoolCountersDisagree",
    what="bytes that the pools counted, beyond what the clients' own can explain",
    unit="%",
    suspect=10,
    remedy="look for a cache between the tools and the pool, another user of the pool, or reads of what holds nothing",
)
OSD_OUTLIER = Check(
    reason="OsdOutlier",
    what="rate of one OSD, as a part of the median of its device class",
    unit="%",
    suspect=70,
    direction=Direction.BELOW,
    remedy="look at that OSD's device, its firmware and its node; the slowest OSD sets the pace of the whole pool",
)

CLUSTER_CHECKS = (
    CLUSTER_NOT_WATCHED,
    OSDS_CHANGED,
    GROUPS_NOT_CLEAN,
    RECOVERY_TRAFFIC,
    SCRUBBING,
    SLOW_OPS,
    CLUSTER_UNHEALTHY,
    FOREIGN_LOAD,
    POOL_COUNTERS_DISAGREE,
    OSD_OUTLIER,
)
