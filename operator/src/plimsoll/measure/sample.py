"""What one client measured in one trial: the compact document a tool's output is reduced to.

It is what an agent posts. All times are Unix nanoseconds or nanoseconds, all sizes bytes. Texts and series are bounded
here; whether a number can be, `measure.plausible` judges, so that one of them costs no more than its trial.
"""

from typing import Annotated

from pydantic import Field

from plimsoll.api.model import Model
from plimsoll.api.names import LatencyKind, Operation

MAX_TEXT = 10_000
"""Characters of one message or argument."""

MAX_NAME = 256
_MAX_MESSAGES = 100
_MAX_ARGUMENTS = 1000
_MAX_OPERATIONS = 16
_MAX_OSDS = 100_000
_MAX_CELLS = 2**18
"""Seconds of the longest runtime, with a margin."""

_MAX_HISTOGRAM = 2**20
MAX_GAPS = 4096
"""The longest of a client. Of 50 ms each they are more than 5 % of an hour."""

Text = Annotated[str, Field(max_length=MAX_TEXT)]
Name = Annotated[str, Field(max_length=MAX_NAME)]
Messages = Annotated[tuple[Text, ...], Field(max_length=_MAX_MESSAGES)]
EncodedHistogram = Annotated[str, Field(max_length=_MAX_HISTOGRAM)]
Series = Annotated[tuple[float, ...], Field(max_length=_MAX_CELLS)]


class Cells(Model):
    """Completed I/O per interval, zero-filled.

    Cell k covers [k * width, (k+1) * width) after the start of measuring; the last one ends with the measurement
    and may be shorter. The sums are exact: they equal the operation's totals.
    """

    width_nanoseconds: int
    ios: Series
    bytes: Series


class LatencySample(Model):
    """A client's latency of one operation; `histogram` is `Histogram.encode` of all its jobs' bins."""

    kind: LatencyKind
    count: int = 0
    mean_nanoseconds: float = 0.0
    standard_deviation_nanoseconds: float = 0.0
    min_nanoseconds: int = 0
    max_nanoseconds: int = 0
    histogram: EncodedHistogram | None = None


class LatencySlices(Model):
    """Latency over time, for judging whether it is steady and for nothing else.

    Slice k covers [k * width, (k+1) * width) after the start of measuring; each is a `Histogram.encode`. The last,
    partial one may be missing, and so may single operations at the edges: the totals are those of `LatencySample`.
    The time that submitting took may be left out, as fio does.
    """

    width_nanoseconds: int
    histograms: Annotated[tuple[EncodedHistogram, ...], Field(max_length=_MAX_CELLS)]


class OperationSample(Model):
    """One operation of one client over its own measured time.

    Attributes:
        cells: absent if the tool keeps no series or it could not be reconciled with the totals.
        slices: absent if the tool keeps no such log, or it could not be reconciled with the totals.
        submission_nanoseconds: mean time that submitting one operation took; absent if the tool does not time it, or
            if submitting and waiting are one, as with synchronous engines.
        short_ios: operations that transferred less than asked.
        dropped_ios: operations that the tool gave up.
        lost_ios: operations that were begun and never completed, without as many as may still have been in flight at
            the end; a lower bound.

    """

    operation: Operation
    ios: int
    bytes: int
    short_ios: int = 0
    dropped_ios: int = 0
    lost_ios: int = 0
    latency: LatencySample
    cells: Cells | None = None
    slices: LatencySlices | None = None
    submission_nanoseconds: float | None = None


class Gaps(Model):
    """Stretches of time in which the client certainly completed nothing, syncs aside.

    They are in ascending order and do not touch. Each may have begun up to `width` before its `starts`. Shorter ones
    than a tool can tell are left out, and so are the shortest of very many.

    Attributes:
        width_nanoseconds: how finely the tool tells when its operations completed.
        starts: milliseconds after the start of measuring.
        lengths: milliseconds of each.

    """

    width_nanoseconds: int
    starts: Annotated[tuple[int, ...], Field(max_length=MAX_GAPS)] = ()
    lengths: Annotated[tuple[int, ...], Field(max_length=MAX_GAPS)] = ()


class OsdRate(Model):
    """What one OSD did when it was measured alone."""

    osd: int
    ios: int
    bytes: int
    seconds: float


class Measurement(Model):
    """What a tool's output says, and nothing else.

    Attributes:
        started_at: start of the measured part, after the ramp.
        start_is_estimated: the tool does not say when it began; derived from its end.
        runtime: length of the measured part.
        submitters: threads or processes of the tool that submit operations.
        in_flight: operations that the tool was to keep in flight all the time, over all submitters; absent if it was
            not to do that: with a limited rate, where it waits for something besides (fsync), or where it does one
            after the other whatever it is asked (trims).
        bypasses_cache: the I/O went past the client's page cache.
        gaps: absent if the tool does not tell, or what it tells cannot be used.
        osds: of a tool that measures OSDs one after the other; the operations are the sum of all.
        errors: the tool's own words on what went wrong, empty if nothing did.
        warnings: what the parser met and did not know, or what the tool said beside its document.

    """

    tool: Name
    tool_version: Name
    started_at: int
    start_is_estimated: bool = False
    runtime: int
    operations: Annotated[tuple[OperationSample, ...], Field(max_length=_MAX_OPERATIONS)]
    submitters: int = 1
    in_flight: int | None = None
    bypasses_cache: bool = True
    gaps: Gaps | None = None
    osds: Annotated[tuple[OsdRate, ...], Field(max_length=_MAX_OSDS)] = ()
    errors: Messages = ()
    warnings: Messages = ()


class Clock(Model):
    """The conductor's clock minus the client's, known to within `error` (half a round trip). Seconds."""

    offset: float
    error: float


class CpuUse(Model):
    """Processor time during the measured part.

    Attributes:
        limit: processors that the client may use at most: its cgroup's quota, or those that it is pinned to if they are
            fewer; absent without either.
        used: processors that the client used, on average; absent if its cgroup is not its own or cannot be read.
        throttled_periods: scheduler periods in which a quota stopped the client, its cgroup's or that of one around it,
            whoever else is in there; absent if unknown.
        throttled_seconds: how long it was stopped, added up over processors; absent if unknown.
        node_busy: part of the node's processors that was not idle, 0 to 1; time stolen by a hypervisor counts.
        node_processors: of the node.

    """

    limit: float | None = None
    used: float | None = None
    throttled_periods: int | None = None
    throttled_seconds: float | None = None
    node_busy: float
    node_processors: int


class MemoryUse(Model):
    """Memory during the measured part; bytes.

    Attributes:
        limit: of the client's cgroup; absent without one.
        used: the most that the client's cgroup used, its page cache included; absent if it is not its own or cannot be
            read.
        node_total: of the node.
        node_available: the least that the node could still give (`MemAvailable`).

    """

    limit: int | None = None
    used: int | None = None
    node_total: int
    node_available: int


class NetworkUse(Model):
    """The physical interface of the client's network namespace that comes closest to the speed of its link.

    Bytes per second. Where no physical interface tells its speed they are added up; where there are none, all but the
    loopback. On a node, bonds, bridges and veths only pass on what the physical ones carry. What the
    node's kernel does for the client, as krbd and NFS do, goes over the node's interfaces and is not here unless the
    client shares the node's network namespace.

    Attributes:
        link: what that interface can carry in one direction; absent if there is none that tells.

    """

    received: float
    sent: float
    link: float | None = None


class DeviceUse(Model):
    """A block device, whoever used it; absent numbers are unknown.

    Attributes:
        number: `major:minor`.
        read: bytes per second that it delivered.
        written: bytes per second that it took.
        operations: reads and writes per second that it completed.
        reads: of those.
        writes: of those.
        busy: part of the time in which it had something to do, 0 to 1.
        queue: operations that were with it, on average.

    """

    number: Name
    read: float
    written: float
    operations: float | None = None
    reads: float | None = None
    writes: float | None = None
    busy: float
    queue: float


class ToolUse(Model):
    """What the kernel counted as the tool's own I/O on storage, in bytes per second (`proc_pid_io(5)`).

    What a cache or a hole answered is not in there, and neither is what a file system writes beside the data.
    """

    read: float
    written: float


class HostUse(Model):
    """What the client's host did while the client measured.

    Attributes:
        seconds: length of the observed time: from the last reading before to the first after the measured part.
        device: below the data set; absent if none can be seen: below a network file system, an overlay, btrfs, tmpfs.
        disk: what that device is a part of, as a partition or a logical volume is; absent if it is a whole one.
        uncut_bytes: operations on the data set up to this size reach the disk in one piece; absent if not known.
        tool: absent if the kernel does not count a process's I/O, or does not show it.
        unseen: what a data set of this host lies on whose device cannot be seen, as `tmpfs` or `block device 8:1`.

    """

    seconds: float
    cpu: CpuUse
    memory: MemoryUse
    network: NetworkUse
    device: DeviceUse | None = None
    disk: DeviceUse | None = None
    uncut_bytes: int | None = None
    tool: ToolUse | None = None
    unseen: str = Field(default="", max_length=128)


class ClientDocument(Model):
    """One client's answer for one trial.

    Attributes:
        exit_code: of the tool; negative is the signal that ended it, as `subprocess` has it.
        launched_at: when the tool was started.
        parse_error: why there is no measurement although the tool ended; names the field or the place.
        raw_sha256: of everything the tool wrote; see `plimsoll.measure.provenance`.
        prefilled: every byte of the data set was written before, and none trimmed since: reads of unwritten extents
            measure nothing, and first writes allocate.
        host: absent if the host could not be observed, or the tool ended before it measured.
        foreign_target: why what the tool had open is not the client's volume; empty if it is, or nobody could look.

    """

    client: int
    node: Name
    exit_code: int
    launched_at: int
    finished_at: int
    argv: Annotated[tuple[Text, ...], Field(max_length=_MAX_ARGUMENTS)]
    measurement: Measurement | None = None
    parse_error: Text | None = None
    stderr_tail: str = Field(default="", max_length=2000)
    raw_sha256: Name = ""
    clock: Clock | None = None
    data_set_bytes: int = 0
    prefilled: bool = True
    host: HostUse | None = None
    foreign_target: Text = ""
