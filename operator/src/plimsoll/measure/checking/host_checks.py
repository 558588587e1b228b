"""The checks of the clients' hosts and of the devices below their data sets: see `checks`."""

from plimsoll.measure.checking.check import Check, Direction

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
LEAST_DEVICE_BUSY = 0.3
LEAST_FOREIGN_BYTES = 256 * 2**10
LEAST_FOREIGN_OPERATIONS = 25
"""Per second; an idle file system writes less."""

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

HOST_CHECKS = tuple(value for value in tuple(globals().values()) if isinstance(value, Check))
