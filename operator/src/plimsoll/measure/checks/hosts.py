"""Whether clients, nodes or network were the limit, whether I/O reached the storage, and who else used its disks."""

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from plimsoll.api.names import Cause, Operation, Verdict
from plimsoll.measure.checks.check import CheckedValue, CheckedValues, Evidence, HostedClient, TrialCheck, client_value
from plimsoll.measure.checks.effect import NEGLIGIBLE_TIME, judged, throttling
from plimsoll.measure.intake import ClientMeasurement, TrialFacts, bytes_read_from, bytes_visited, part_read_again
from plimsoll.measure.rates import grouped
from plimsoll.measure.sample import DeviceUse, HostUse, ToolIo
from plimsoll.measure.text import number_text, percent_text, quote, size_text
from plimsoll.measure.timeline import NANOSECONDS, add

_DATA = (Operation.READ, Operation.WRITE)
_MOST_FROM_MEMORY = 50  # percent that memory may have answered: the storage answered at least as much
_LEAST_BUSY = 0.3
_LEAST_FOREIGN_BYTES = 256 * 2**10
_LEAST_FOREIGN_OPERATIONS = 25  # per second; an idle file system writes less
_SYNC_BYTES = 64 * 2**10  # of a journal, for one sync: ext4 writes 12 to 20 KiB, XFS up to 256 KiB with its padding
_SYNC_OPERATIONS = 8
_LEAST_PIECE = 64 * 2**10  # the smallest pieces into which devices split larger operations
_PART = 2**20  # 256 pages, which the kernel passes down at once (`BIO_MAX_VECS`); more where memory is contiguous
_Ways = tuple[Operation, ...]  # reads, writes, or both where the kernel counts them together


def _by_node(clients: Iterable[HostedClient]) -> dict[str, list[HostedClient]]:
    return grouped(clients, lambda client: client[0].node)


def _value_of(clients: Iterable[HostedClient], value: float, detail: str) -> CheckedValue:
    return CheckedValue(clients=tuple(item.client for item, _ in clients), value=value, detail=detail)


@TrialCheck(
    reason="HostUnknown",
    what="clients whose host or block device could not be observed",
    suspect=0,
    remedy="see the agent's log and check that its /proc shows the node; whether the client was the limit is unknown",
)
def host_unknown(evidence: Evidence) -> CheckedValues:
    for item in evidence.measured:
        host = item.answer.host
        if host is None:
            yield client_value(item.client, 1, "its host was not observed")
        elif host.device is not None and not _has_statistics(host.device) and _has_direct_io(item):
            detail = f"the kernel keeps no statistics of its block device {quote(host.device.number, 20)}"
            yield client_value(item.client, 1, detail)


@TrialCheck(
    reason="ClientThrottled",
    cause=Cause.HARNESS,
    what="time, or periods if less, in which the CPU quota throttled the client; Suspect unless that was harmless",
    unit="%",
    suspect=0,
    invalid=10,
    remedy="raise or remove the CPU limit in spec.clients.resources; for a local run, the limit of its cgroup",
)
def client_throttled(evidence: Evidence) -> CheckedValues:
    for item, host in evidence.observed:
        activity, seconds = throttling((item, host)), host.cpu.throttled_seconds
        if activity is None or not seconds:
            continue
        part, effect, periods = 100 * activity.part, judged(evidence, activity), host.cpu.throttled_periods
        detail = (
            f"its CPU quota stopped it for {number_text(seconds)} s"
            f"{f', summed over CPUs, in {periods} periods' if periods else ''}, in {number_text(host.seconds)} s of "
            f"observation: {percent_text(part)}; {effect.text}"
        )
        is_harmless = activity.part < NEGLIGIBLE_TIME or effect.is_harmless
        passes = is_harmless and client_throttled.verdict(part) is not Verdict.INVALID
        yield client_value(item.client, 0 if passes else part, detail)


@TrialCheck(
    reason="ClientCpuSaturated",
    what="CPU time that the client used, as a part of what it may use",
    unit="%",
    suspect=90,
    remedy="give the clients more CPU, or share the load among more clients",
)
def client_cpu_saturated(evidence: Evidence) -> CheckedValues:
    for item, host in evidence.observed:
        cpu = host.cpu
        if cpu.used is not None:
            usable = min(cpu.limit or cpu.node_processors, cpu.node_processors)
            yield client_value(item.client, 100 * cpu.used / usable)


@TrialCheck(
    reason="NodeCpuSaturated",
    what="part of the time in which the CPUs of a client's node were busy, on average",
    unit="%",
    suspect=90,
    remedy="run the clients on more nodes, or on nodes without other load such as OSDs (spec.clients.nodeSelector); "
    "latencies include waiting for a CPU, so the storage may be faster than this",
)
def node_cpu_saturated(evidence: Evidence) -> CheckedValues:
    for node, clients in _by_node(evidence.observed).items():
        busy = 100 * max(host.cpu.node_busy for _, host in clients)
        detail = f"the CPUs of {quote(node, 80)} were busy for {percent_text(busy)} of the time"
        # Without a cgroup of its own, a client cannot tell its CPU time from others'.
        if all(host.cpu.used is not None for _, host in clients):
            used = sum(host.cpu.used or 0.0 for _, host in clients) / clients[0][1].cpu.node_processors
            detail += f"; the clients themselves used {percent_text(100 * used)}"
        yield _value_of(clients, busy, detail)


@TrialCheck(
    reason="NodeMemoryShort",
    what="part of the node's memory that was available",
    unit="%",
    suspect=5,
    is_low_bad=True,
    remedy="free memory on the node or use another node; reclaiming memory delays I/O",
)
def node_memory_short(evidence: Evidence) -> CheckedValues:
    for node, clients in _by_node(evidence.observed).items():
        part = 100 * min(host.memory.node_available / host.memory.node_total for _, host in clients)
        yield _value_of(clients, part, f"{quote(node, 80)} had {percent_text(part)} of its memory available")


@TrialCheck(
    reason="NetworkBound",
    what="traffic in one direction, as a part of what the network can carry",
    unit="%",
    suspect=90,
    remedy="spread the clients over more nodes or use a faster network; the rate is the network's, not the storage's",
)
def network_bound(evidence: Evidence) -> CheckedValues:
    if evidence.facts.measures_network:
        return
    for item, host in evidence.observed:
        if host.network.link is not None:
            yield client_value(item.client, 100 * max(host.network.received, host.network.sent) / host.network.link)
    for value in _parts_of_capacity(evidence, Operation.READ, Operation.WRITE):
        # Faster rates than the network can have carried show nothing about the network.
        if value.value <= faster_than_network.limit(Verdict.INVALID):
            yield value


@TrialCheck(
    reason="FasterThanNetwork",
    cause=Cause.HARNESS,
    what="reads of the clients of one node, as a part of spec.clients.networkBytesPerSecond",
    unit="%",
    invalid=105,
    remedy="use direct I/O, prefill, and data sets larger than any cache; or correct networkBytesPerSecond",
)
def faster_than_network(evidence: Evidence) -> CheckedValues:
    yield from _parts_of_capacity(evidence, Operation.READ)


@TrialCheck(
    reason="WritesFasterThanNetwork",
    what="writes of the clients of one node, as a part of spec.clients.networkBytesPerSecond",
    unit="%",
    suspect=105,
    remedy="use direct I/O, or lengthen the runtime until any cache is full; or correct networkBytesPerSecond",
)
def writes_faster_than_network(evidence: Evidence) -> CheckedValues:
    yield from _parts_of_capacity(evidence, Operation.WRITE)


def _parts_of_capacity(evidence: Evidence, *operations: Operation) -> CheckedValues:
    network, span = evidence.facts.network_bytes_per_second, evidence.span
    if evidence.facts.measures_network or network is None or span is None or not span.length:
        return
    # Benchmarks that OSDs run themselves do not use the clients' networks.
    nodes = grouped((item for item in evidence.measured if not item.measurement.osds), lambda item: item.node)
    for operation in operations:
        for node, clients in nodes.items():
            shares = [share for item in clients for share in item.shares if share.sample.operation is operation]
            times = [(share, share.interval if share.is_phase else span) for share in shares]
            rate = add([share.within(time).per_second(time.length) for share, time in times]).bytes
            part = 100 * rate / network
            detail = (
                f"{operation} {size_text(rate)}/s on {quote(node, 80)}, whose network can carry "
                f"{size_text(network)}/s: {percent_text(part)}"
            )
            yield CheckedValue(clients=tuple(item.client for item in clients), value=part, detail=detail)


def _has_statistics(device: DeviceUse) -> bool:
    """Whether the kernel counts a device's I/O: that can be switched off, and often is for multipath devices."""
    return bool(device.read or device.written or device.busy or device.queue)


def _has_direct_io(item: ClientMeasurement) -> bool:
    return item.measurement.bypasses_cache and item.answer.document.data_set_bytes > 0 and any(map(item.bytes, _DATA))


def _submitted_bytes(item: ClientMeasurement, operation: Operation) -> float:
    # Linux counts I/O when it is submitted. What was in flight at the beginning is missing: mean latency / runtime of
    # all operations (Little's law).
    return sum(
        sample.bytes * max(0.0, 1 - sample.latency.mean_nanoseconds / item.measurement.runtime)
        for sample in item.measurement.operations
        if sample.operation is operation
    )


@TrialCheck(
    reason="CacheSized",
    what="largest part of a node's reads, or writes without fsync, that went through the page cache and memory holds",
    unit="%",
    suspect=_MOST_FROM_MEMORY,
    remedy="use direct I/O, larger volumes (twice the memory) or longer writes",
)
def cache_sized(evidence: Evidence) -> CheckedValues:
    # Clients without a data set have nothing that their page cache could hold.
    cached = [(item, host) for item, host in evidence.observed if not item.measurement.bypasses_cache]
    facts = evidence.facts
    for node, clients in _by_node((item, host) for item, host in cached if item.data_bytes).items():
        # If a tool was too fast to be timed, a cache is even more likely.
        if readers := [(item, host) for item, host in clients if item.reads]:
            part, detail = _part_of_reads(
                f"data sets read on {quote(node, 80)} through the page cache",
                facts,
                [item for item, _ in readers],
                _page_cache(readers),
                was_empty=facts.dropped_node_caches,
            )
            yield _value_of(readers, part, detail)
        synced = [item for item, _ in clients if item.does(Operation.SYNC) or item.measurement.flushes]
        if writers := [(item, host) for item, host in clients if item.does(Operation.WRITE) and item not in synced]:
            # Overwriting the same data takes no more memory.
            volumes = [(item.bytes(Operation.WRITE), item.data_bytes) for item, _ in writers]
            sizes = [bytes_visited(*each, at_random=facts.skew is not None, skew=facts.skew) for each in volumes]
            data = f"writes without fsync on {quote(node, 80)} through the page cache"
            held, detail = _held_in_memory(data, round(sum(sizes)), _page_cache(writers))
            yield _value_of(writers, 100 * held, detail)


def _page_cache(clients: Collection[HostedClient]) -> float:
    """Return the memory that can hold the data of a node's clients: the node's, or what their limits allow."""
    memory = max(host.memory.node_total for _, host in clients)
    limits = [host.memory.limit or math.inf for _, host in clients]
    return min(memory, sum(limits))


def _held_in_memory(data: str, size: int, memory: float) -> tuple[float, str]:
    held = min(1.0, memory / size)
    return (
        held,
        f"{data}: {size_text(size)}, of which {size_text(memory)} of memory may hold {percent_text(100 * held)}",
    )


def _part_of_reads(
    data: str, facts: TrialFacts, readers: Collection[ClientMeasurement], memory: float, *, was_empty: bool
) -> tuple[float, str]:
    """Return how many of the reads memory may have answered at most, in percent, and the message of the check.

    At best, memory holds the hottest data, and of caches that were dropped what was read or written since.
    """
    sizes = [item.data_bytes for item in readers]
    held, detail = _held_in_memory(data, sum(sizes), memory)
    if facts.skew is not None and held < 1:
        held = facts.skew.share(held, sum(sizes) // len(sizes))
        detail += f", and {percent_text(100 * held)} of the I/O was on the hottest part of that size"
    if not was_empty:
        return 100 * held, detail
    again = part_read_again(facts, readers)
    part = 100 * min(held, again)
    return part, (
        f"{detail}; {percent_text(100 * again)} of the I/O was on data that had been read or written since the caches "
        f"were dropped, so {percent_text(part)} may have been in memory"
    )


@TrialCheck(
    reason="ServerCacheSized",
    what="largest part of the reads that the OSDs' memory may have answered; not judged with caches: Warm",
    unit="%",
    suspect=_MOST_FROM_MEMORY,
    remedy="read from volumes of twice the memory, set prepare.dropCaches, or declare caches: Warm if that is meant",
)
def server_cache_sized(evidence: Evidence) -> CheckedValues:
    facts, what = evidence.facts, "data that the clients read from the OSDs"
    memory = facts.cluster.osd_memory_bytes if facts.cluster else None
    if memory and bytes_read_from(evidence.measured) is not None and not facts.warm_caches:
        readers = [item for item in evidence.measured if item.reads]
        part, detail = _part_of_reads(what, facts, readers, memory, was_empty=facts.dropped_osd_caches)
        yield CheckedValue(value=part, detail=detail)


@TrialCheck(
    reason="WrongDevice",
    cause=Cause.HARNESS,
    what="clients whose tool had something other than the client's volume open",
    invalid=0,
    remedy="check that the volume is mounted or mapped where the tool expects it",
)
def wrong_device(evidence: Evidence) -> CheckedValues:
    for item in evidence.measured:
        if target := item.answer.document.foreign_target:
            yield client_value(item.client, 1, quote(target, 200))


@TrialCheck(
    reason="DeviceBypassed",
    cause=Cause.HARNESS,
    what="part of the direct reads, or of the direct writes, that reached the block device below the data set",
    unit="%",
    suspect=90,
    invalid=50,
    is_low_bad=True,
    remedy="look for a cache, a hole in the file or another device between the tool and the volume",
)
def device_bypassed(evidence: Evidence) -> CheckedValues:
    """Yield the part that each device of each node saw, for all clients with data sets on it."""
    direct = [(item, host) for item, host in evidence.observed if _has_direct_io(item)]
    for clients, operation in product(_by_device(direct, lambda host: host.device), _DATA):
        if asked := sum(_submitted_bytes(item, operation) for item, _ in clients):
            seen = max(_moved(host, host.device, operation) or 0.0 for _, host in clients)
            counted = [_moved(host, host.tool, operation) for _, host in clients]
            # Other users' I/O hides what did not reach the device; the kernel's count of the tools' own does not.
            if None not in counted:
                seen = min(seen, sum(volume for volume in counted if volume is not None))
            part = 100 * seen / asked
            detail = f"the block device below the data set saw {percent_text(part)} of the direct {operation} bytes"
            yield _value_of(clients, part, detail)


def _by_device(
    clients: Iterable[HostedClient], device_of: Callable[[HostUse], DeviceUse | None]
) -> list[list[HostedClient]]:
    """Return the clients of each device of each node, without devices that the kernel does not count."""
    devices = [(client, device) for client in clients if (device := device_of(client[1])) and _has_statistics(device)]
    groups = grouped(devices, lambda case: (case[0][0].node, case[1].number))
    return [[client for client, _ in cases] for cases in groups.values()]


def _moved(host: HostUse, counted: DeviceUse | ToolIo | None, operation: Operation) -> float | None:
    """Return the bytes that the kernel counted in the observed time, of a device or the tool; None if it does not."""
    if counted is None:
        return None
    return host.seconds * (counted.read if operation is Operation.READ else counted.written)


_COUNTED_IN_MEMORY: Mapping[str, Collection[Operation]] = {"zfs": _DATA, "btrfs": (Operation.WRITE,)}
"""Operations that the kernel counts as I/O of the tool although memory answers them: by OpenZFS all (`zfs_vnops.c`), by
btrfs direct writes of data with checksums, its default (Linux commit 968f19c5b1b7)."""


@TrialCheck(
    reason="CacheNotExcluded",
    what="part of the direct reads or writes that the kernel counted as I/O, where no block device is visible",
    unit="%",
    suspect=90,
    is_low_bad=True,
    remedy="use storage with a block device; memory or a hole in the file may have answered instead",
)
def cache_not_excluded(evidence: Evidence) -> CheckedValues:
    # The kernel's client of CephFS has no block device and does not count direct I/O as the tool's. If the pools'
    # counters show what reached Ceph in a window, PoolCountersDisagree judges caches.
    watch = evidence.facts.cluster
    owns_file_system = watch is not None and watch.owns_file_system
    unknown = [operation for operation in _DATA if not owns_file_system or evidence.pool_io(operation) is None]
    for (item, host), operation in product(evidence.observed, unknown):
        asked, counted = _submitted_bytes(item, operation), _moved(host, host.tool, operation)
        if host.unseen and asked and _has_direct_io(item):
            part, words = 0.0, "exposes no counters of the tool"
            if operation in _COUNTED_IN_MEMORY.get(host.unseen, ()):
                words = "counts those that memory answered, too"
            elif counted is not None:
                part = 100 * counted / asked
                words = f"counted {percent_text(part)} as I/O on storage"
            detail = (
                f"no block device is visible below its data set on {quote(host.unseen, 120)}; of its direct "
                f"{operation} bytes the kernel {words}"
            )
            yield client_value(item.client, part, detail)


@dataclass(frozen=True, slots=True)
class _Traffic:
    """The bytes or operations of a disk in the observed time."""

    # Of each way: what was moved, and the most and the least that the tools explain.
    ways: Sequence[tuple[float, float, float]]

    @property
    def moved(self) -> float:
        return sum(moved for moved, _, _ in self.ways)

    @property
    def foreign(self) -> float:
        return sum(max(0.0, moved - most) for moved, most, _ in self.ways)

    @property
    def part(self) -> float:
        """The foreign part of foreign and own traffic, in percent; traffic that may be either counts as neither."""
        ours = sum(min(moved, least) for moved, _, least in self.ways)
        return 100 * self.foreign / (self.foreign + ours) if self.foreign else 0.0


@TrialCheck(
    reason="ForeignDeviceLoad",
    what=(
        "bytes or operations of the disk below the data set that the tools do not explain, as a part of these and "
        f"the tools' own, for reads and writes separately; only from {_LEAST_FOREIGN_BYTES // 2**10} KiB or "
        f"{_LEAST_FOREIGN_OPERATIONS} operations per second on, and only if the disk was busy for "
        f"{100 * _LEAST_BUSY:.0f} % of the time or more"
    ),
    unit="%",
    suspect=10,
    remedy="keep other users off the disk; data journalling or a new ext4 (mount it with noinit_itable) causes it too",
)
def foreign_device_load(evidence: Evidence) -> CheckedValues:
    """Yield the foreign part of the traffic of each disk of each node, for all clients with data sets on it."""
    users = [(item, host) for item, host in evidence.observed if item.answer.document.data_set_bytes]
    for clients in _by_device(users, lambda host: host.disk or host.device):
        # Cached writes reach the device at unpredictable times, and cached reads unless the tool's are counted.
        cached = [host for item, host in clients if not item.measurement.bypasses_cache]
        ways = _DATA if not cached else (Operation.READ,)
        if all(host.tool for host in cached):
            yield _foreign_part(clients, ways)


def _foreign_part(clients: Collection[HostedClient], ways: Collection[Operation]) -> CheckedValue:
    host = max((host for _, host in clients), key=lambda host: host.seconds)
    disk = host.disk or host.device
    volume = _Traffic([(_moved(host, disk, way) or 0.0, *_bytes_explained(clients, way)) for way in ways])
    rates: dict[_Ways, float] = {}
    if disk is not None and len(ways) == len(_DATA):
        rates = {_DATA: disk.operations or 0.0}
        if disk.reads is not None and disk.writes is not None:
            rates = {(Operation.READ,): disk.reads, (Operation.WRITE,): disk.writes}
    count = _Traffic([(host.seconds * rate, *_operations_explained(clients, ways)) for ways, rate in rates.items()])
    # A disk without such statistics counts as busy all the time.
    disks = [host.disk or host.device for _, host in clients]
    busy = max(it.busy if it is not None and (it.busy or it.queue) else 1.0 for it in disks)
    matters = busy >= _LEAST_BUSY and (
        volume.foreign >= host.seconds * _LEAST_FOREIGN_BYTES
        or count.foreign >= host.seconds * _LEAST_FOREIGN_OPERATIONS
    )
    detail = (
        f"the disk below the data set moved {size_text(volume.moved / host.seconds)}/s in "
        f"{number_text(count.moved / host.seconds)} operations/s and was busy for {percent_text(100 * busy)} of the "
        f"time; the tools do not explain {percent_text(volume.part)} of the bytes and {percent_text(count.part)} of "
        "the operations"
    )
    return _value_of(clients, max(volume.part, count.part) if matters else 0.0, detail)


def _bytes_explained(clients: Iterable[HostedClient], way: Operation) -> tuple[float, float]:
    """Return the most and the least bytes that the clients' tools explain of their disk's in the observed time."""
    most = least = 0.0
    for item, host in clients:
        asked, longer = item.bytes(way), _longer(item, host)
        least += asked
        most += max(asked * longer, _moved(host, host.tool, way) or 0.0)
        if way is Operation.WRITE:
            syncs = sum(sample.ios for sample in item.measurement.operations if sample.operation is Operation.SYNC)
            most += syncs * longer * _SYNC_BYTES
    return most, least


def _operations_explained(clients: Iterable[HostedClient], ways: _Ways) -> tuple[float, float]:
    """Return the same for operations."""
    most = least = 0.0
    for item, host in clients:
        # The least mean size of the pieces into which large operations are split.
        piece = _PART / math.ceil(_PART / host.uncut_bytes) if host.uncut_bytes else _LEAST_PIECE
        for sample in item.measurement.operations:
            operation = sample.operation
            # Trims are neither reads nor writes, but make a file system write its metadata.
            if (Operation.READ if operation is Operation.READ else Operation.WRITE) not in ways:
                continue
            is_sync = operation is Operation.SYNC
            on_device = sample.ios * _SYNC_OPERATIONS if is_sync else sample.ios + sample.bytes / piece
            # The tool may have done more in the observed time than while it measured.
            counted = _moved(host, host.tool, operation) if operation in _DATA else None
            most += on_device * max(_longer(item, host), counted / sample.bytes if counted and sample.bytes else 0.0)
            least += max(sample.ios, sample.bytes / _PART) if operation in _DATA else 0.0
    return most, least


def _longer(item: ClientMeasurement, host: HostUse) -> float:
    return host.seconds * NANOSECONDS / item.measurement.runtime
