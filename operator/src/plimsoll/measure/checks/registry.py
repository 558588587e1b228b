"""Every check that a number has to pass, with its limits and what to do when it fails."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from plimsoll.api.result import Finding
from plimsoll.measure.checks.check import Check, CheckedValue, Direction, evaluate

LEAST_DEVICE_BUSY = 0.3
LEAST_FOREIGN_BYTES = 256 * 2**10
LEAST_FOREIGN_OPERATIONS = 25
"""Per second; an idle file system writes less."""
LONG_PAUSE_SECONDS = 1.0
MISSING_SECONDS = 0.25
"""Starting processes takes this long on a loaded node, however short the runtime is."""
THINKING_SECONDS = 10e-6
"""The longest time from a completion to the next submission that is not the client's fault; fio takes 2 to 8 µs."""
THINKING_SHARE = 0.25
"""Of the requested operations in flight; a tool that spends more time between operations limits the rate itself."""
EDGE_SHARE = 0.25
"""Of the requested operations in flight: the most that pauses and operations at the edges of the measurement explain.
One slow operation does not mean that all operations at an edge are slow."""

TOOL_FAILED = Check(
    reason="ToolFailed",
    what="errors that the tool reported",
    invalid=0,
    remedy="read the tool's message; the tool did not do the requested work",
)
OUTPUT_UNREADABLE = Check(
    reason="OutputUnreadable",
    what="outputs of the tool that cannot be parsed",
    invalid=0,
    remedy="check the tool's version and its raw output; if that version is supported, report a bug",
)
CLIENT_MISSING = Check(
    reason="ClientMissing",
    what="planned clients that sent no result",
    invalid=0,
    remedy="check the client's pod and node; the load of the others is not the requested one",
)
LATE_CLIENT = Check(
    reason="LateClient",
    what="start after the planned time, without the longest operation",
    unit="s",
    suspect=1,
    invalid=5,
    remedy="lengthen the ramp, and look for other load on the client's node",
)
EARLY_CLIENT = Check(
    reason="EarlyClient",
    what="start before the planned time",
    unit="s",
    suspect=1,
    invalid=5,
    remedy=(
        "find out why the tool cut its ramp short, or what set the client's clock; it measured part of the warm-up"
    ),
)
SHORT_RUN = Check(
    reason="ShortRun",
    what="difference between actual and requested runtime, without the longest operation",
    unit="%",
    suspect=1,
    invalid=10,
    remedy="find out why the tool ended early or overran: an error, a signal, or a stall at the end",
)
DATA_SET_UNFINISHED = Check(
    reason="DataSetUnfinished",
    what="part of the data set that a client did, where the measurement ends when all is done",
    unit="%",
    invalid=100,
    direction=Direction.BELOW,
    remedy="raise runtimeSeconds, which limits the time, or use a smaller volume",
)
REQUESTS_SLOWED = Check(
    reason="RequestsSlowed",
    what="rate at which the tool could submit its requests, as a part of the requested rate",
    unit="%",
    suspect=80,
    direction=Direction.BELOW,
    remedy=(
        "lower the requested rate, or look for the limits of API priority and fairness and for a slow API server; the "
        "load was not the requested one"
    ),
)
LOW_OVERLAP = Check(
    reason="LowOverlap",
    what=(
        "time in which all clients measured, as a part of their mean runtime; "
        f"Suspect only if more than {MISSING_SECONDS} s are missing"
    ),
    suspect=0.98,
    invalid=0.90,
    direction=Direction.BELOW,
    remedy=(
        "lengthen the ramp and the runtime, or find what delays the clients, some of which may have to do more with "
        "until DataSetDone; rates cover the common window, but latencies cover each client's whole run"
    ),
)
WIDE_SPREAD = Check(
    reason="WideSpread",
    what="time between the first and the last client's start",
    unit="s",
    suspect=1,
    remedy="lengthen the ramp, and look for other load on the late clients' nodes",
)
TOOL_TOO_OLD = Check(
    reason="ToolTooOld",
    what="starts that were estimated because the tool does not report them",
    suspect=0,
    remedy="use a newer version of the tool (fio 3.36 or later)",
)
NOT_PREFILLED = Check(
    reason="NotPrefilled",
    what="clients that read or overwrote a data set that was never written, or was trimmed since",
    suspect=0,
    remedy=(
        "set prepare.prefill: true, and trim in a separate run; reads of unwritten extents do not access the "
        "storage, and first writes have to allocate them"
    ),
)
SHORT_IO = Check(
    reason="ShortIo",
    what="operations that transferred less than requested",
    suspect=0,
    remedy="check that the data set is fully written and not smaller than the size that the tool was given",
)
DROPPED_IO = Check(
    reason="DroppedIo",
    what="operations that the tool dropped",
    invalid=0,
    remedy="look for storage errors in the client's kernel log",
)
LOST_IO = Check(
    reason="LostIo",
    what="operations that never completed and were not in flight at the end, as a part of all",
    unit="%",
    suspect=0,
    invalid=0.01,
    remedy=(
        "look for storage errors in the client's kernel log, or for a network that drops packets; no latency includes "
        "lost operations"
    ),
)
NO_IO = Check(
    reason="NoIo",
    what="operations completed in the window",
    invalid=1,
    direction=Direction.BELOW,
    remedy=("look for a stalled cluster, or a tool that did something else; very slow storage needs a longer runtime"),
)
SERIES_INCOMPLETE = Check(
    reason="SeriesIncomplete",
    what="operations without a complete series over time",
    suspect=0,
    remedy="check the tool's logs; rates in the window use the client's mean rate, which hides stalls",
)
UNTIMED = Check(
    reason="Untimed",
    what="operations that ended too soon for the tool to time them",
    suspect=0,
    remedy="give the tool more to do, such as a larger size or more files; their rates are unknown",
)
# Lost ends are those of the slowest operations. Above this part, even the p90 may consist of inexact times; below it, a
# second more for each of them moves the mean by a tenth of a second at most.
TIMES_INEXACT = Check(
    reason="TimesInexact",
    what="operations whose times are less exact than those of the others, because the tool lost their ends",
    unit="%",
    suspect=10,
    remedy=(
        "look for what delays or drops events in the cluster, such as the kubelets' eventRecordQPS, and lower the "
        "requested rate; these times may be too long"
    ),
)
CLOCK_UNKNOWN = Check(
    reason="ClockUnknown",
    what="clients whose clock was not compared to within 10 ms, the limit of ClockOffset",
    suspect=0,
    remedy="check the connection between conductor and client; without the comparison the window is unverified",
)
CLOCK_OFFSET = Check(
    reason="ClockOffset",
    what="certain difference between the client's clock and the conductor's",
    unit="ms",
    suspect=10,
    invalid=50,
    remedy="synchronise the nodes' clocks (chrony, ntp)",
)
HISTOGRAM_MISMATCH = Check(
    reason="HistogramMismatch",
    what="operations whose latency histogram does not contain exactly the completed operations",
    invalid=0,
    remedy="check the tool's version and its raw output; the percentiles would describe other operations",
)
HOST_UNKNOWN = Check(
    reason="HostUnknown",
    what="clients whose host or block device could not be observed",
    suspect=0,
    remedy=("see the agent's log and check that its /proc shows the node; whether the client was the limit is unknown"),
)
CLIENT_THROTTLED = Check(
    reason="ClientThrottled",
    what=(
        "periods in which the CPU quota stopped the client, as a part of all periods; or stopped time, as a "
        "part of the measured time, if that is less"
    ),
    unit="%",
    suspect=0,
    invalid=10,
    remedy="raise or remove the CPU limit in spec.clients.resources; for a local run, that of its cgroup",
)
CLIENT_CPU_SATURATED = Check(
    reason="ClientCpuSaturated",
    what="CPU time that the client used, as a part of what it may use",
    unit="%",
    suspect=90,
    remedy="give the clients more CPU, or share the load among more clients",
)
NODE_CPU_SATURATED = Check(
    reason="NodeCpuSaturated",
    what="part of the time in which the node's CPUs were busy",
    unit="%",
    suspect=90,
    remedy="spread the clients over more nodes or remove other load; latencies include waiting for a CPU",
)
NODE_MEMORY_SHORT = Check(
    reason="NodeMemoryShort",
    what="part of the node's memory that was available",
    unit="%",
    suspect=5,
    direction=Direction.BELOW,
    remedy="free memory on the node or use another node; reclaiming memory delays I/O",
)
NETWORK_BOUND = Check(
    reason="NetworkBound",
    what="traffic in one direction, as a part of what the network can carry",
    unit="%",
    suspect=90,
    remedy=("spread the clients over more nodes or use a faster network; the rate is the network's, not the storage's"),
)
FASTER_THAN_NETWORK = Check(
    reason="FasterThanNetwork",
    what="reads of the clients of one node, as a part of spec.clients.networkBytesPerSecond",
    unit="%",
    invalid=105,
    remedy="use direct I/O, prefill, and data sets larger than any cache; or correct networkBytesPerSecond",
)
WRITES_FASTER_THAN_NETWORK = Check(
    reason="WritesFasterThanNetwork",
    what="writes of the clients of one node, as a part of spec.clients.networkBytesPerSecond",
    unit="%",
    suspect=105,
    remedy="use direct I/O, or lengthen the runtime until any cache is full; or correct networkBytesPerSecond",
)
CACHE_SIZED = Check(
    reason="CacheSized",
    what=(
        "data that the clients of one node read, or wrote without fsync, through the page cache, as a "
        "multiple of the memory that may hold it"
    ),
    suspect=2,
    direction=Direction.BELOW,
    remedy=(
        "use direct I/O, larger volumes or longer writes; at twice the memory, half of the data may still be in it"
    ),
)
WRONG_DEVICE = Check(
    reason="WrongDevice",
    what="clients whose tool had something other than the client's volume open",
    invalid=0,
    remedy="check that the volume is mounted or mapped where the tool expects it",
)
DEVICE_BYPASSED = Check(
    reason="DeviceBypassed",
    what="part of the direct reads, or of the direct writes, that reached the block device below the data set",
    unit="%",
    suspect=90,
    invalid=50,
    direction=Direction.BELOW,
    remedy="look for a cache, a hole in the file or another device between the tool and the volume",
)
CACHE_NOT_EXCLUDED = Check(
    reason="CacheNotExcluded",
    what=(
        "part of the direct reads, or of the direct writes, that the kernel counted as I/O on storage, where "
        "no block device is visible below the data set"
    ),
    unit="%",
    suspect=90,
    direction=Direction.BELOW,
    remedy="use storage with a block device; memory or a hole in the file may have answered instead",
)
FOREIGN_DEVICE_LOAD = Check(
    reason="ForeignDeviceLoad",
    what=(
        "bytes or operations of the disk below the data set that the tools do not explain, as a part of these and "
        f"the tools' own, for reads and writes separately; only from {LEAST_FOREIGN_BYTES // 2**10} KiB or "
        f"{LEAST_FOREIGN_OPERATIONS} operations per second on, and only if the disk was busy for "
        f"{100 * LEAST_DEVICE_BUSY:.0f} % of the time or more"
    ),
    unit="%",
    suspect=10,
    remedy=(
        "keep other users off the disk while measuring, or look for a layer that does more I/O than it "
        "receives, such as data journalling or a new file system that still initialises"
    ),
)
STALLED = Check(
    reason="Stalled",
    what="part of the window in which no client completed anything",
    unit="%",
    suspect=0,
    invalid=10,
    remedy=("look for what stopped the storage at that time: peering, slow operations, a full device, a lost path"),
)
CLIENT_STALLED = Check(
    reason="ClientStalled",
    what="part of the window in which one client completed nothing while others did",
    unit="%",
    suspect=0,
    invalid=10,
    remedy="check the client's node and everything that only its volume depends on",
)
LONG_PAUSE = Check(
    reason="LongPause",
    what=(
        "time in which a tool without a common window completed nothing, only if it is as long as ten operations and "
        f"{LONG_PAUSE_SECONDS:g} s, as a part of its time for the operation"
    ),
    unit="%",
    suspect=5,
    remedy="look for what stopped the storage or the client; the tool's mean rate includes the pause",
)
PHASES_APART = Check(
    reason="PhasesApart",
    what=(
        "time in which all clients were in the same phase of a tool, as a part of its mean length, estimated from the "
        "lengths of the phases before"
    ),
    unit="%",
    suspect=90,
    direction=Direction.BELOW,
    remedy=(
        "measure with one client, or with clients of equal speed; the rate of the phase is too high, because clients "
        "in other phases left it more of the storage"
    ),
)
NOT_STEADY = Check(
    reason="NotSteady",
    what=(
        "rates and 99th percentiles beyond SNIA's criterion: over five rounds range 20 %, drift 10 % of the "
        "mean; in a window under 50 s rates beyond five times these limits; not with until DataSetDone"
    ),
    suspect=0,
    remedy="lengthen ramp and runtime, or set prepare.precondition; the mean depends on when it was measured",
)
TOO_FEW_SAMPLES = Check(
    reason="TooFewSamples",
    what="timed operations of one type",
    suspect=1000,
    direction=Direction.BELOW,
    remedy="lengthen the runtime; a 99th percentile with fewer than 10 operations beyond it is omitted",
)
SUBMISSION_BOUND = Check(
    reason="SubmissionBound",
    what="part of the time that the tool's threads spent submitting",
    unit="%",
    suspect=90,
    remedy="use direct I/O or more jobs; submissions that block keep the queue shallower than requested",
)
TOOL_CPU_BOUND = Check(
    reason="ToolCpuBound",
    what="CPU time of the tool's threads that move data, as a part of their time, at the busier end of a network",
    unit="%",
    suspect=90,
    remedy=(
        "use more streams (iperf3 uses one thread for all of them before 3.16), or give the clients more CPU; the rate "
        "is that of the tool, not of the network"
    ),
)
PACKETS_LOST = Check(
    reason="PacketsLost",
    what="datagrams that did not arrive, of all that a client sent to or received from a peer",
    unit="%",
    suspect=1,
    invalid=50,
    remedy="lower the bitrate until hardly any are lost, and check drops at interfaces and switches",
)
LITTLES_LAW = Check(
    reason="LittlesLaw",
    what=(
        "difference between the operations in flight, computed from rate and latency, and the requested "
        "number, without the tool's 10 µs between two operations and the longest operation's part of the runtime "
        "(at most a quarter)"
    ),
    unit="%",
    suspect=5,
    remedy="give the client more CPU or the tool more jobs; the load was not the requested one",
)
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
RUNTIME_TOO_SHORT = Check(
    reason="RuntimeTooShort",
    what=(
        "runtimeSeconds, or the time of work that ended before, as a part of the minimum for the tool: 3 s for fio, "
        "ioping, rados bench, rbd bench, iperf3, netcat and ping, ten times as long without a ramp; 10 s for dd"
    ),
    unit="%",
    suspect=100,
    direction=Direction.BELOW,
    remedy=(
        "raise runtimeSeconds (60 or more for reliable numbers), and set rampSeconds to 1 or more; with "
        "until DataSetDone, and for dd, use a larger volume"
    ),
)
MIXED_VERSIONS = Check(
    reason="MixedVersions",
    what="versions of the tool that the clients ran",
    suspect=1,
    remedy=("give all clients one image or one version of the tool; the sum is that of two different load generators"),
)
CLIENTS_UNEVEN = Check(
    reason="ClientsUneven",
    what=(
        "operations of one client, as a part of the mean of the others; or the median of the others, as a "
        "part of a faster client's operations, also if clients on one node share its rate; without what "
        "chance explains"
    ),
    unit="%",
    suspect=50,
    invalid=10,
    direction=Direction.BELOW,
    remedy=(
        "check the client's node, network and volume, and behind a fast client look for a cache, another "
        "device or sparse data; measure clients that differ by design in separate runs"
    ),
)
LINK_OUTLIER = Check(
    reason="LinkOutlier",
    what=(
        "rate from one client to another, as a part of the median of the other pairs whose nodes carry as many pairs "
        "in a round; not with fewer than three pairs, nor between clients on one node"
    ),
    unit="%",
    # Healthy links between like nodes differ by 1 to 2 %, virtual machines by 10 %. The mildest fault, a link that
    # carries another flow, leaves half, and a link at a lower speed a tenth.
    suspect=70,
    direction=Direction.BELOW,
    remedy=(
        "check cable, port, negotiated speed, MTU and bond of the node, and what else uses the link; storage that uses "
        "it is slow too"
    ),
)
NO_TRIAL_COUNTS = Check(
    reason="NoTrialCounts",
    what="repetitions that count",
    invalid=1,
    direction=Direction.BELOW,
    remedy="fix the causes that the trials name, then run again",
)
PASSES_MISSING = Check(
    reason="PassesMissing",
    what="planned repetitions, or probes of a search, that do not count",
    suspect=0,
    remedy="fix the causes, then run again; the numbers come from the others",
)
ATTEMPTS_REPLACED = Check(
    reason="AttemptsReplaced",
    what="attempts that were replaced by another",
    suspect=0,
    remedy="fix the causes, then run again; repeating until the result is good shows the storage at its best",
)
UNREPLICATED = Check(
    reason="Unreplicated",
    what="repetitions that count",
    suspect=2,
    direction=Direction.BELOW,
    remedy="set repetitions to 3 or more, or run again; one trial does not show how much trials differ",
)
VERSIONS_CHANGED = Check(
    reason="VersionsChanged",
    what="versions of the tool in the repetitions that count",
    suspect=1,
    remedy="run again with one version; a mean over two versions describes neither",
)
NOT_MONOTONE = Check(
    reason="NotMonotone",
    what=(
        "in a search for the line: how much likelier the outcomes are if one range of loads has a probability of its "
        "own (a Bayes factor)"
    ),
    suspect=20,
    remedy=(
        "look at latency against load for what breaks at these loads and holds at higher ones, such as a device that "
        "saves power; the storage has no single line"
    ),
)
DRIFTING = Check(
    reason="Drifting",
    what="in a search for the line: how much likelier the outcomes are if the line moves steadily (a Bayes factor)",
    suspect=20,
    remedy=(
        "precondition the storage, let it settle, and look for other load, then run again; the interval lies around a "
        "line that moved"
    ),
)

CHECKS = tuple(value for value in tuple(globals().values()) if isinstance(value, Check))
"""All checks, in the order of their definition: causes before their effects, because the first reasons are shown."""


_PLACES = {check.reason: place for place, check in enumerate(CHECKS)}


def findings_of(values: Iterable[tuple[Check, CheckedValue]]) -> tuple[Finding, ...]:
    """Return the findings on the values of several checks, in the order of the table of checks."""
    values_of = defaultdict[Check, list[CheckedValue]](list)
    for check, value in values:
        values_of[check].append(value)
    ordered = sorted(values_of, key=lambda check: _PLACES[check.reason])
    return tuple(finding for check in ordered for finding in evaluate(check, values_of[check]))


def markdown_table(checks: Sequence[Check] = CHECKS) -> str:
    """Return the table of checks as Markdown."""
    rows = [
        "| Reason | What is measured | Suspect | Invalid | What to do |",
        "|---|---|---|---|---|",
        *(
            f"| `{check.reason}` | {check.what} | {check.limit_text(check.suspect)} "
            f"| {check.limit_text(check.invalid)} | {check.remedy} |"
            for check in checks
        ),
    ]
    return "\n".join(rows) + "\n"
