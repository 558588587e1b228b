"""What one client measured in one trial: the compact document a tool's output is reduced to.

It is what an agent posts. All times are Unix nanoseconds or nanoseconds, all sizes bytes.
"""

from pydantic import Field

from plimsoll.api.model import Model
from plimsoll.api.names import LatencyKind, Operation


class Cells(Model):
    """Completed I/O per interval, zero-filled.

    Cell k covers [k * width, (k+1) * width) after the start of measuring; the last one ends with the measurement
    and may be shorter. The sums are exact: they equal the operation's totals.
    """

    width_nanoseconds: int
    ios: tuple[float, ...]
    bytes: tuple[float, ...]


class LatencySample(Model):
    """A client's latency of one operation; `histogram` is `Histogram.encode` of all its jobs' bins."""

    kind: LatencyKind
    count: int = 0
    mean_nanoseconds: float = 0.0
    standard_deviation_nanoseconds: float = 0.0
    min_nanoseconds: int = 0
    max_nanoseconds: int = 0
    histogram: str | None = None


class OperationSample(Model):
    """One operation of one client over its own measured time.

    Attributes:
        cells: absent if the tool keeps no series or it could not be reconciled with the totals.
        short_ios: operations that transferred less than asked.
        dropped_ios: operations that the tool gave up.

    """

    operation: Operation
    ios: int
    bytes: int
    short_ios: int = 0
    dropped_ios: int = 0
    latency: LatencySample
    cells: Cells | None = None


class Measurement(Model):
    """What a tool's output says, and nothing else.

    Attributes:
        started_at: start of the measured part, after the ramp.
        start_is_estimated: the tool does not say when it began; derived from its end.
        runtime: length of the measured part.
        errors: the tool's own words on what went wrong, empty if nothing did.
        warnings: what the parser met and did not know, or what the tool said beside its document.

    """

    tool: str
    tool_version: str
    started_at: int
    start_is_estimated: bool = False
    runtime: int
    operations: tuple[OperationSample, ...]
    errors: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


class Clock(Model):
    """The conductor's clock minus the client's, known to within `error` (half a round trip). Seconds."""

    offset: float
    error: float


class ClientDocument(Model):
    """One client's answer for one trial.

    Attributes:
        exit_code: of the tool; negative is the signal that ended it, as `subprocess` has it.
        launched_at: when the tool was started.
        parse_error: why there is no measurement although the tool ended; names the field or the place.
        raw_sha256: of everything the tool wrote.
        prefilled: every byte of the data set was written before; reads of unwritten extents measure nothing.

    """

    client: int
    node: str
    exit_code: int
    launched_at: int
    finished_at: int
    argv: tuple[str, ...]
    measurement: Measurement | None = None
    parse_error: str | None = None
    stderr_tail: str = Field(default="", max_length=2000)
    raw_sha256: str = ""
    clock: Clock | None = None
    data_set_bytes: int = 0
    prefilled: bool = True
