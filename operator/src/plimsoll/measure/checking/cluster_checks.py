"""The checks of a Ceph cluster: see `checks`."""

from plimsoll.measure.checking.check import Check, Direction

CLUSTER_NOT_WATCHED = Check(
    reason="ClusterNotWatched",
    what="part of the measured time without answers from Ceph",
    unit="%",
    suspect=10,
    remedy="see the conductor's log for the reason; the state of the cluster during that time is unknown",
)
OSDS_CHANGED = Check(
    reason="OsdsChanged",
    what="OSDs that were down or out, and changes to the set of OSDs that are up and in",
    invalid=0,
    remedy="bring all OSDs up and in, wait until the cluster is clean, and run again",
)
METADATA_SERVERS_CHANGED = Check(
    reason="MetadataServersChanged",
    what="metadata servers of the measured file system that were not active, and changes to the active ones",
    invalid=0,
    remedy="check the metadata servers with `ceph fs status`, wait until all are active, and run again",
)
GROUPS_NOT_CLEAN = Check(
    reason="GroupsNotClean",
    what="placement groups that were not active+clean",
    invalid=0,
    remedy=(
        "wait until `ceph status` shows only active+clean; laggy placement groups have OSDs that cannot keep up, or if "
        "they stay laggy without load, OSDs that have to be restarted"
    ),
)
RECOVERY_TRAFFIC = Check(
    reason="RecoveryTraffic",
    what="bytes per second that the cluster recovered or moved",
    unit="bytes/s",
    invalid=0,
    remedy="wait until recovery ends, and switch off the balancer while measuring",
)
SCRUBBING = Check(
    reason="Scrubbing",
    what=(
        "placement groups that were scrubbed or trimmed of snapshots, unless rate and tail latency were no "
        "worse than in the rest of the window"
    ),
    suspect=0,
    remedy=(
        "set gates.pauseScrub: true; scrubs of other pools share the disks, and `ceph osd set noscrub` prevents them"
    ),
)
SLOW_OPS = Check(
    reason="SlowOps",
    what="polls that reported slow operations",
    suspect=0,
    remedy=("see `ceph health detail` for the OSDs and check their devices; the load may be more than they can handle"),
)
CLUSTER_UNHEALTHY = Check(
    reason="ClusterUnhealthy",
    what="health checks of Ceph that are not accepted",
    suspect=0,
    remedy="see `ceph health detail`, and fix the causes or list the checks in gates.acceptedHealthChecks",
)
FOREIGN_LOAD = Check(
    reason="ForeignLoad",
    what=(
        "operations on other pools, as a part of those on the run's pools; Suspect unless rate and tail "
        "latency were no worse under this load than in the rest of the window"
    ),
    unit="%",
    suspect=5,
    invalid=20,
    remedy="keep other users off the cluster while measuring",
)
POOL_COUNTERS_DISAGREE = Check(
    reason="PoolCountersDisagree",
    what="bytes that the pools counted, beyond what the clients' own bytes can explain",
    unit="%",
    suspect=10,
    remedy=("look for a cache between the tools and the pool, another user of the pool, or reads of unwritten extents"),
)
CEPH_OPTIONS_DIFFER = Check(
    reason="CephOptionsDiffer",
    what="options set for the run that the database or an OSD did not have before or after the trial",
    invalid=0,
    remedy=("find out with `ceph config log` and `ceph config show osd.N` who changed or overrides it, and run again"),
)
CEPH_OPTIONS_UNREAD = Check(
    reason="CephOptionsUnread",
    what="times that options set for the run could not be read",
    suspect=0,
    remedy="see whether Ceph's manager responds; the OSDs may have used other values",
)
OSD_OUTLIER = Check(
    reason="OsdOutlier",
    what="rate of one OSD, as a part of the median of its device class",
    unit="%",
    suspect=70,
    direction=Direction.BELOW,
    remedy="check that OSD's device, firmware and node; the slowest OSD sets the pace of the whole pool",
)

CLUSTER_CHECKS = tuple(value for value in tuple(globals().values()) if isinstance(value, Check))
