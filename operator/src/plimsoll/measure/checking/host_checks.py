"""The part of the table of checks that is about the clients' hosts and what their data sets lie on: see `checks`."""

from plimsoll.measure.checking.check import Check, Direction

HOST_UNKNOWN = Check(
    reason="HostUnknown",
    what="clients whose host, or whose block device, could not be observed",
    suspect=0,
    remedy="see the agent's log and whether /proc shows it its node; whether the client was the limit is not known",
)
CLIENT_THROTTLED = Check(
    reason="ClientThrottled",
    what=(
        "periods in which its CPU quota stopped the client, as a part of all; or stopped time, as a part of the "
        "measured time, if that is less"
    ),
    unit="%",
    suspect=0,
    invalid=10,
    remedy=(
        "raise or remove the CPU limit in spec.clients.resources; of a local run that of the control group it runs in"
    ),
)
CLIENT_CPU_SATURATED = Check(
    reason="ClientCpuSaturated",
    what="processors that the client used, as a part of those it may use",
    unit="%",
    suspect=90,
    remedy="give the clients more processors, or share the load among more clients",
)
NODE_CPU_SATURATED = Check(
    reason="NodeCpuSaturated",
    what="part of the time in which the node's processors were busy",
    unit="%",
    suspect=90,
    remedy="spread the clients over more nodes or keep other load away; latencies include waiting for a processor",
)
NODE_MEMORY_SHORT = Check(
    reason="NodeMemoryShort",
    what="part of the node's memory that was still available",
    unit="%",
    suspect=5,
    direction=Direction.BELOW,
    remedy="free memory on the node or use another; the kernel's search for free pages delays I/O",
)
NETWORK_BOUND = Check(
    reason="NetworkBound",
    what="traffic in one direction, as a part of what the network can carry",
    unit="%",
    suspect=90,
    remedy="spread the clients over more nodes or use a faster network; the rate is the network's, not the storage's",
)
FASTER_THAN_NETWORK = Check(
    reason="FasterThanNetwork",
    what="reads of the clients of one node, as a part of what spec.clients.networkBytesPerSecond says it can receive",
    unit="%",
    invalid=105,
    remedy="use direct I/O, prefill, and data sets larger than any cache; or correct the figure",
)
WRITES_FASTER_THAN_NETWORK = Check(
    reason="WritesFasterThanNetwork",
    what="writes of the clients of one node, as a part of what spec.clients.networkBytesPerSecond says it can send",
    unit="%",
    suspect=105,
    remedy="use direct I/O or lengthen the runtime: a cache that takes them is full in the end; or correct the figure",
)
CACHE_SIZED = Check(
    reason="CacheSized",
    what=(
        "data read, or written without fsync, through the page cache by the clients of one node, as a multiple of the "
        "memory that may hold it"
    ),
    suspect=2,
    direction=Direction.BELOW,
    remedy="use direct I/O, larger volumes or longer writing; even twice the memory leaves half of the data in it",
)
WRONG_DEVICE = Check(
    reason="WrongDevice",
    what="clients whose tool had something else open than the client's volume",
    invalid=0,
    remedy="check that the volume is mounted or mapped where the tool expects it",
)
DEVICE_BYPASSED = Check(
    reason="DeviceBypassed",
    what="part of the direct reads, or of the direct writes, that the block device below the data set saw",
    unit="%",
    suspect=90,
    invalid=50,
    direction=Direction.BELOW,
    remedy="look for a cache, a hole in the file or another device between the tool and the volume",
)
CACHE_NOT_EXCLUDED = Check(
    reason="CacheNotExcluded",
    what=(
        "part of the direct reads, or of the direct writes, that the kernel counted as I/O on storage, where no block "
        "device can be seen below the data set"
    ),
    unit="%",
    suspect=90,
    direction=Direction.BELOW,
    remedy="use storage with a block device; nobody can tell whether memory or a hole in the file answered instead",
)
LEAST_DEVICE_BUSY = 0.3
LEAST_FOREIGN_BYTES = 256 * 2**10
LEAST_FOREIGN_OPERATIONS = 25
"""Per second; a file system that nobody uses writes less."""

FOREIGN_DEVICE_LOAD = Check(
    reason="ForeignDeviceLoad",
    what=(
        "bytes, or operations, of the disk below the data set that the tools do not explain, reads and writes each by "
        "themselves, as a part of those and the tools' own; if they "
        f"are {LEAST_FOREIGN_BYTES // 2**10} KiB or {LEAST_FOREIGN_OPERATIONS} operations per second or more, and the "
        f"disk was busy for {100 * LEAST_DEVICE_BUSY:.0f} % of the time or more"
    ),
    unit="%",
    suspect=10,
    remedy=(
        "keep other users of the disk away while measuring, or look for a layer that does more than it is given, as "
        "a journal of data or a new file system that is still being laid out"
    ),
)

HOST_CHECKS = (
    HOST_UNKNOWN,
    CLIENT_THROTTLED,
    CLIENT_CPU_SATURATED,
    NODE_CPU_SATURATED,
    NODE_MEMORY_SHORT,
    NETWORK_BOUND,
    FASTER_THAN_NETWORK,
    WRITES_FASTER_THAN_NETWORK,
    CACHE_SIZED,
    WRONG_DEVICE,
    DEVICE_BYPASSED,
    CACHE_NOT_EXCLUDED,
    FOREIGN_DEVICE_LOAD,
)
