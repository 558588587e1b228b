"""One client's measurement of one trial: the compact document to which an agent reduces a tool's output, and posts.

All times are Unix nanoseconds or nanoseconds, all sizes bytes. Texts and series are bounded here; `implausible_number`
and `implausible_host` check the numbers, so that an impossible one costs no more than its trial. Every list stops at
its first invalid entry: pydantic would collect an error for each.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from plimsoll.api.model import Model
from plimsoll.api.names import LatencyKind, Operation

MAX_TEXT = 10_000  # characters of one message or argument
MAX_NAME = 256
_MAX_OPERATIONS = 16
_MAX_CELLS = 2**18  # seconds of the longest runtime, with a margin
MAX_OSDS = 2**14
MAX_GAPS = 4096  # the longest gaps of a client; of 50 ms each they are more than 5 % of an hour

Text = Annotated[str, Field(max_length=MAX_TEXT)]
Name = Annotated[str, Field(max_length=MAX_NAME)]
Messages = Annotated[tuple[Text, ...], Field(max_length=100, fail_fast=True)]
EncodedHistogram = Annotated[str, Field(max_length=2**20)]
CellValues = Annotated[tuple[float, ...], Field(max_length=_MAX_CELLS, fail_fast=True)]


class Cells(Model):
    """Completed I/O per interval, zero-filled.

    Cell k covers [k * width, (k+1) * width) after the start of measuring; the last one ends with the measurement and
    may be shorter: (number - 1) * width < runtime <= number * width. The sums equal the operation's totals exactly. A
    series that breaks a rule is ignored, and the trial is Suspect (`SeriesIncomplete`).
    """

    width_nanoseconds: int
    ios: CellValues
    bytes: CellValues


class LatencySample(Model):
    """A client's latency of one operation."""

    kind: LatencyKind
    count: int = 0
    mean_nanoseconds: float = 0.0
    standard_deviation_nanoseconds: float | None = None  # exact, of the sample; absent if the tool does not report it
    min_nanoseconds: int = 0
    max_nanoseconds: int = 0
    histogram: EncodedHistogram | None = None  # `Histogram.encode` of all its jobs' bins; absent unless FULL


class LatencySlices(Model):
    """Latency over time, used only to judge whether it is steady, and the effect of other activities.

    Slice k covers [k * width, (k+1) * width) after the start of measuring; each is a `Histogram.encode`. The last,
    partial one may be missing, and so may single operations at the edges. Submission time may be excluded.
    """

    width_nanoseconds: int
    histograms: Annotated[tuple[EncodedHistogram, ...], Field(max_length=_MAX_CELLS, fail_fast=True)]


class OperationSample(Model):
    """One operation of one client over its own measured time."""

    operation: Operation
    ios: int
    bytes: int
    short_ios: int = 0  # operations that transferred less than requested
    dropped_ios: int = 0  # operations that the tool dropped
    lost_ios: int = 0  # operations that never completed, beyond those that may be in flight at the end; a lower bound
    latency: LatencySample
    runtime: int | None = None  # of this operation, if the tool does one after the other; absent if all took the whole
    processor_percent: float | None = None  # CPU time for this operation, of one CPU; absent if it is not counted
    cells: Cells | None = None  # absent if the tool keeps no series, or if it does not match the totals
    slices: LatencySlices | None = None  # absent if the tool keeps no such log, or if it does not match the totals
    # Mean time to submit one operation; absent if it is not timed, or includes waiting, as with synchronous engines.
    submission_nanoseconds: float | None = None


class Gaps(Model):
    """Stretches of time in which the client certainly completed nothing except syncs.

    They are in ascending order and do not touch. Each may have begun up to `width` before its `starts`. Gaps that the
    tool cannot resolve are omitted, and so are the shortest of very many, of which only the number is known.
    """

    width_nanoseconds: int  # the width of the intervals in which the tool reports its completions
    starts: Annotated[tuple[int, ...], Field(max_length=MAX_GAPS, fail_fast=True)] = ()  # ms of measuring
    lengths: Annotated[tuple[int, ...], Field(max_length=MAX_GAPS, fail_fast=True)] = ()  # ms
    omitted: int = 0  # the number of shorter gaps


class OsdRate(Model):
    """The I/O of one OSD, measured alone."""

    osd: int
    ios: int
    bytes: int
    seconds: float


class PeerRate(Model):
    """The traffic between the client and one that served it; without operations if the tool does not count them."""

    peer: int
    ios: int = 0
    bytes: int
    seconds: float
    retransmits: int | None = None  # TCP segments that the sender sent again; absent if the tool does not know them
    lost_percent: float | None = None  # datagrams that did not arrive; absent if the tool does not know them
    round_trip_nanoseconds: float | None = None  # the median; absent if the tool does not measure it


class Measurement(Model):
    """The content of a tool's output."""

    tool: Name = ""  # the key of the tool, which the agent adds
    tool_version: Name = ""  # the agent adds the program's version if the output has none
    started_at: int  # start of the measured part, after the ramp
    start_is_estimated: bool = False  # the output does not show it exactly: the trial is Suspect (`ToolTooOld`)
    ramp_step: int = 0  # interval at which the tool checks whether its ramp is over; 0 for every operation
    runtime: int  # length of the measured part
    operations: Annotated[tuple[OperationSample, ...], Field(max_length=_MAX_OPERATIONS, fail_fast=True)]
    submitters: int = 1  # threads or processes of the tool that submit operations
    # CPU time of the threads that move data, as a part of their time, of the busiest process at either end, if known.
    thread_percent: float | None = None
    # Operations that all submitters keep in flight all the time; absent with a limited rate, fsync, or trims.
    in_flight: int | None = None
    # Share of submissions, 0 to 1, that took the last place of the depth; absent if it is not known exactly.
    depth_full_share: float | None = None
    work_bytes: int | None = None  # bytes after which the load ends, if the runtime permits; absent if it has no end
    data_bytes: int | None = None  # size of the files that the tool worked on, if that is not the whole data set
    bypasses_cache: bool = True  # the I/O bypassed the client's page cache
    flushes: bool = False  # the times of cached writes include making them durable
    gaps: Gaps | None = None  # absent if the tool does not report them in a usable form
    # Operations that the tool did, but too fast to time them.
    untimed: Annotated[tuple[Operation, ...], Field(max_length=_MAX_OPERATIONS, fail_fast=True)] = ()
    pace: float | None = None  # submitted requests, as a part of the requested rate; absent if unknown
    inexact: float | None = None  # part of the timed operations whose ends the tool lost; absent if it can lose none
    # Of a tool that measures OSDs one after the other; the operations are their sum.
    osds: Annotated[tuple[OsdRate, ...], Field(max_length=MAX_OSDS, fail_fast=True)] = ()
    # Of a tool that measures between clients: a cell for each client that served this one.
    peers: Annotated[tuple[PeerRate, ...], Field(max_length=4096, fail_fast=True)] = ()
    errors: Messages = ()  # the tool's own error messages
    warnings: Messages = ()  # output that the parser did not recognise, and the tool's remarks outside its document


class Clock(Model):
    """The conductor's clock minus the client's, known to within `error` (half a round trip). Seconds."""

    offset: float
    error: float


class CpuUse(Model):
    """CPU time during the measured part."""

    limit: float | None = None  # CPUs that the client may use, by quota or pinning; absent without either
    used: float | None = None  # CPUs that it used, on average; absent without a readable cgroup of its own
    throttled_periods: int | None = None  # in which a quota of its cgroup, or of one around it, stopped it
    throttled_seconds: float | None = None  # how long it was stopped, summed over CPUs; absent if unknown
    # From and until when, in ms of measuring, it was stopped at least once, to about a second, in ascending order.
    throttled: Annotated[tuple[tuple[int, int], ...], Field(max_length=MAX_GAPS, fail_fast=True)] | None = None
    node_busy: float  # part of the node's CPU time that was not idle, 0 to 1; time stolen by a hypervisor counts
    node_processors: int  # the node's CPUs


class MemoryUse(Model):
    """Memory during the measured part; bytes."""

    limit: int | None = None  # of the client's cgroup; absent without one
    used: int | None = None  # the most of its cgroup, page cache included; absent without a readable one of its own
    node_total: int  # of the node
    node_available: int  # the least `MemAvailable` of the node


class NetworkUse(Model):
    """The physical interface of the client's network namespace that comes closest to the speed of its link.

    Bytes per second. If no physical interface reports its speed, this is their sum; without physical interfaces it is
    the sum of all except the loopback. The traffic of krbd and NFS appears here only if the client shares the node's
    network namespace.
    """

    received: float
    sent: float
    link: float | None = None  # what it can carry in one direction; absent if no interface reports its speed


class DeviceUse(Model):
    """The I/O of a block device, of all its users; absent numbers are unknown."""

    number: Name  # `major:minor`
    read: float  # bytes per second read from it
    written: float  # bytes per second written to it
    operations: float | None = None  # reads and writes per second that it completed
    reads: float | None = None  # the reads among these
    writes: float | None = None  # the writes among these
    busy: float  # part of the time in which it was busy, 0 to 1
    queue: float  # mean number of operations in its queue


class ToolIo(Model):
    """The tool's own bytes per second, as the kernel counts them: without metadata, and without what caches answer."""

    read: float
    written: float


class HostUse(Model):
    """The client's host while the client measured."""

    seconds: float  # length of the observed time: from the last reading before to the first after the measured part
    cpu: CpuUse
    memory: MemoryUse
    network: NetworkUse
    # Below the data set; absent if none is visible: below a network file system, an overlay, btrfs, tmpfs.
    device: DeviceUse | None = None
    # The disk that contains that device, if it is a partition or a logical volume; absent if it is a whole one.
    disk: DeviceUse | None = None
    uncut_bytes: int | None = None  # operations up to this size reach the disk in one piece; absent if unknown
    tool: ToolIo | None = None  # absent if the kernel does not count a process's I/O, or does not expose it
    unseen: str = Field(default="", max_length=128)  # below a data set without a visible device, such as `tmpfs`
    volume: Name = ""  # identifies the storage, such as the serial number of a disk or the source of a network mount


class ClientDocument(Model):
    """One client's answer for one trial."""

    client: int
    node: Name
    exit_code: int  # of the tool; a negative number is the signal that ended it, as in `subprocess`
    launched_at: int  # when the agent started the tool
    finished_at: int
    argv: Annotated[tuple[Text, ...], Field(max_length=1000, fail_fast=True)]
    measurement: Measurement | None = None
    parse_error: Text | None = None  # why a tool that ended has no measurement; names the field or the position
    stderr_tail: str = Field(default="", max_length=2000)
    raw_sha256: Name = ""  # of everything that the tool wrote; see `plimsoll.measure.intake`
    clock: Clock | None = None
    data_set_bytes: int = 0
    # Every byte of the data set was written before, and none trimmed since.
    prefilled: bool = True
    host: HostUse | None = None  # absent if the host could not be observed, or if the tool ended before it measured
    foreign_target: Text = ""  # why the target that the tool had open is not the client's volume; empty if unknown


_LIMIT = 2**63
_GREATEST = {
    (Measurement, "depth_full_share"): 1,
    # fio's. A longer one would excuse any lateness.
    (Measurement, "ramp_step"): 10**9,
    (CpuUse, "node_busy"): 1,
    # A device's busy time is counted in clock ticks, and may exceed the time between two readings by one or two.
    (DeviceUse, "busy"): 1.05,
    (PeerRate, "lost_percent"): 100,
}
_LEAST = {
    (Measurement, "submitters"): 1,
    (Measurement, "in_flight"): 1,
    (OperationSample, "runtime"): 1,
    (OsdRate, "seconds"): 1e-6,
    (PeerRate, "seconds"): 1e-6,
    (HostUse, "seconds"): 1e-3,
    (HostUse, "uncut_bytes"): 4096,
    (CpuUse, "limit"): 1e-3,
    (CpuUse, "node_processors"): 1,
    (MemoryUse, "node_total"): 1,
    (NetworkUse, "link"): 1,
}


def implausible_number(document: ClientDocument, measurement: Measurement) -> str:
    """Name the first impossible number of a measurement; empty if there is none."""
    problems = [
        *_wrong_number(document, "launched_at", "launchedAt"),
        *_wrong_number(document, "data_set_bytes", "dataSetBytes"),
        *_wrong_numbers(measurement),
        *_wrong_gaps(measurement.gaps),
    ]
    operations = Counter(sample.operation for sample in measurement.operations)
    problems += [f"{operation} appears {n} times" for operation, n in operations.items() if n > 1]
    return problems[0] if problems else ""


def implausible_host(host: HostUse) -> str:
    """Name the first impossible number of an observation of the host; empty if there is none."""
    times = [moment for span in host.cpu.throttled or () for moment in span]
    if times != sorted(times) or any(abs(moment) >= _LIMIT // 10**6 for moment in times):
        return "cpu.throttled does not ascend"
    return next(_wrong_numbers(host), "")


def _wrong_numbers(part: Model, prefix: str = "") -> Iterator[str]:
    """Name the wrong numbers of a model and of the models in it, with the operation that they belong to."""
    for name, field in type(part).model_fields.items():
        value = getattr(part, name)
        path = f"{prefix}{field.alias or name}"
        if isinstance(value, int | float) and not isinstance(value, bool):
            yield from _wrong_number(part, name, path)
        for item in value if isinstance(value, tuple) else (value,):
            # Cells are checked as a series: they have to add up to the operation's totals.
            if isinstance(item, Model) and not isinstance(item, Cells):
                inner = f"{item.operation}." if isinstance(item, OperationSample) else f"{path}."
                yield from _wrong_numbers(item, inner)


def _wrong_number(part: Model, name: str, path: str) -> Iterator[str]:
    key, value = (type(part), name), getattr(part, name)
    # Comparisons with NaN are false.
    if not _LEAST.get(key, 0) <= value <= _GREATEST.get(key, _LIMIT - 1024):
        yield f"{path} is {str(value)[:40]}"


def _wrong_gaps(gaps: Gaps | None) -> Iterator[str]:
    if gaps is None:
        return
    if len(gaps.starts) != len(gaps.lengths):
        yield f"gaps has {len(gaps.starts)} starts and {len(gaps.lengths)} lengths"
    end = 0
    for start, length in zip(gaps.starts, gaps.lengths, strict=False):
        if not end <= start <= start + length < _LIMIT:
            yield f"a gap of {str(length)[:40]} ms begins {str(start)[:40]} ms after the start"
        end = start + length
