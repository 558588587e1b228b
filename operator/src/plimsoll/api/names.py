"""Names and enumerations of the code, the CRDs, the docs and the metrics."""

import re
from collections.abc import Iterable
from enum import StrEnum

GROUP = "plimsoll.dev"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"
RUN_KIND = "BenchmarkRun"
RESULT_KIND = "BenchmarkResult"
SUITE_KIND = "BenchmarkSuite"

DNS_LABEL_PATTERN = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"  # source: Kubernetes, RFC 1123 labels
OBJECT_NAME_PATTERN = r"^[a-z]([-a-z0-9]*[a-z0-9])?$"  # RFC 1035 labels: a Service is named after a run
CEPH_NAME_PATTERN = r"^[A-Za-z0-9][-._A-Za-z0-9]*$"  # Ceph's tools interpret `/`, `@` and a leading `-`
MONITOR_PATTERN = r"^[\[\]a-zA-Z0-9.:,/_-]+$"  # as in `mon_host`, without line ends of a configuration file
DATA_KEY_PATTERN = r"^[-._a-zA-Z0-9]+$"  # source: Kubernetes, keys of ConfigMaps and Secrets
HEALTH_CHECK_PATTERN = r"^[A-Z][A-Z0-9_]*$"  # Ceph's names of health checks
DECIMAL_PATTERN = r"^-?[0-9]{1,3}(\.[0-9]{1,6})?$"  # text, because JSON readers differ about floats
PARAMETER_PATTERN = r"^[a-z][a-zA-Z0-9]*$"  # names of parameters of a tool

FORMS = {
    DNS_LABEL_PATTERN: "must consist of lower-case letters, digits and '-', and begin and end with a letter or digit",
    OBJECT_NAME_PATTERN: "must consist of lower-case letters, digits and '-', begin with a letter and not end with '-'",
    CEPH_NAME_PATTERN: "must consist of letters, digits, '-', '_' and '.', and begin with a letter or digit",
    MONITOR_PATTERN: "must be an address such as 192.0.2.1:6789 or [v2:192.0.2.1:3300]",
    DATA_KEY_PATTERN: "must consist of letters, digits, '-', '_' and '.'",
    HEALTH_CHECK_PATTERN: "must be the name of a health check such as MON_DISK_LOW",
    DECIMAL_PATTERN: 'must be a decimal number such as "0.8"',
    PARAMETER_PATTERN: "must be clients, or a parameter of the tool such as ioDepth",
}
"""Pattern -> the form that it requires, in words."""


class Verdict(StrEnum):
    """Whether the numbers are trustworthy."""

    VALID = "Valid"
    SUSPECT = "Suspect"
    INVALID = "Invalid"

    @property
    def severity(self) -> int:
        """The worst verdict has the largest."""
        return [*Verdict].index(self)


class Outcome(StrEnum):
    """How one attempt at a trial ended."""

    MEASURED = "Measured"
    ABORTED = "Aborted"


class Operation(StrEnum):
    """A kind of I/O, or of requests, with its own count and latencies.

    Between two clients of a network, `write` is what the loading client sends, and `read` what it receives.
    """

    READ = "read"
    WRITE = "write"
    TRIM = "trim"
    SYNC = "sync"
    ROUND_TRIP = "roundTrip"
    WRITE_CHARACTERS = "writeCharacters"
    REWRITE = "rewrite"
    READ_CHARACTERS = "readCharacters"
    SEEK = "seek"
    CREATE_SEQUENTIAL = "createSequential"
    STAT_SEQUENTIAL = "statSequential"
    DELETE_SEQUENTIAL = "deleteSequential"
    CREATE_RANDOM = "createRandom"
    STAT_RANDOM = "statRandom"
    DELETE_RANDOM = "deleteRandom"
    BIND_CLAIM = "bindClaim"
    START_POD = "startPod"


class Layer(StrEnum):
    """The layer that a tool loads, from the bottom up."""

    NETWORK = "Network"
    DEVICE = "Device"
    OSD = "OSD"
    RADOS = "RADOS"
    RBD = "RBD"
    FILE_SYSTEM = "FileSystem"
    CONTROL_PLANE = "ControlPlane"


class LatencyKind(StrEnum):
    """What a tool reports about latency: `meanOnly` has the extremes too, `maxOnly` only the longest operation."""

    FULL = "full"
    MEAN_ONLY = "meanOnly"
    MAX_ONLY = "maxOnly"
    NONE = "none"

    @property
    def has_mean(self) -> bool:
        return self in (LatencyKind.FULL, LatencyKind.MEAN_ONLY)


class Metric(StrEnum):
    """A quantity of a point: a rate per second or a latency in nanoseconds of each trial, or the line of a search."""

    BYTES = "bytesPerSecond"
    IOPS = "iops"
    MEAN = "meanLatency"
    P50 = "p50"
    P90 = "p90"
    P95 = "p95"
    P99 = "p99"
    P999 = "p99.9"
    P9999 = "p99.99"
    DURING = "iopsDuring"
    """Operations per second while the workload's `disturb` takes OSDs away."""
    RECOVERY = "recovery"
    """The time from the end of that until all placement groups are clean; of the first operation of a trial."""
    LINE = "line"
    """The load at which latency breaks: operations per second, or operations in flight."""

    @property
    def is_rate(self) -> bool:
        """Whether it is a rate or a load, so that more is better; of a latency less is."""
        return self in (Metric.BYTES, Metric.IOPS, Metric.DURING, Metric.LINE)

    @property
    def percentile(self) -> str | None:
        """The key in `Latency.percentiles`; None for other metrics."""
        return self.removeprefix("p") if self.startswith("p") else None

    @property
    def unit(self) -> str:
        """What it counts; only metrics of the same unit have a ratio."""
        return self.value if self.is_rate else "nanoseconds"

    @property
    def words(self) -> str:
        """Its name in a sentence: `throughput`, `p99 latency`."""
        words = {Metric.BYTES: "throughput", Metric.IOPS: "IOPS", Metric.MEAN: "mean latency", Metric.LINE: "line"}
        words |= {Metric.DURING: "IOPS during the disturbance", Metric.RECOVERY: "time to recover"}
        return words.get(self, f"{self} latency")


class RunPhase(StrEnum):
    """The phase of the conductor, for display and resuming. The results take precedence."""

    GATHERING = "Gathering"
    PREPARING = "Preparing"
    SETTLING = "Settling"
    MEASURING = "Measuring"
    WAITING_FOR_WINDOW = "WaitingForWindow"
    COMPLETE = "Complete"
    FAILED = "Failed"
    INTERRUPTED = "Interrupted"


class AbortReason(StrEnum):
    """Why an attempt has no numbers."""

    CLIENT_LOST = "ClientLost"
    CLIENT_NOT_STAGED = "ClientNotStaged"
    CACHES_NOT_DROPPED = "CachesNotDropped"
    CLIENT_NOT_ARMED = "ClientNotArmed"
    LATE_CLIENT = "LateClient"
    TOOL_OVERRAN = "ToolOverran"
    RESULT_REFUSED = "ResultRefused"
    CONDUCTOR_RESTARTED = "ConductorRestarted"
    INTERRUPTED = "Interrupted"
    DEADLINE_EXCEEDED = "DeadlineExceeded"
    CLUSTER_AT_RISK = "ClusterAtRisk"
    QUOTA_REACHED = "QuotaReached"


class Cause(StrEnum):
    """What prevented an attempt from counting."""

    STORAGE = "storage"
    """The storage, or possibly the storage: the attempt shows what it does."""

    HARNESS = "harness"
    """Clients, conductor, user or neighbours: the attempt says nothing about the storage."""


class FailureReason(StrEnum):
    """Why a run could not be measured, in the order of the conductor's exit codes."""

    CLIENTS_NOT_READY = "ClientsNotReady"
    PREPARATION_FAILED = "PreparationFailed"
    DEADLINE_EXCEEDED = "DeadlineExceeded"
    GATE_CLOSED = "GateClosed"
    CEPH_OPTION_REFUSED = "CephOptionRefused"
    CEPH_CLIENT_TOO_OLD = "CephClientTooOld"
    CEPH_TOO_OLD = "CephTooOld"
    CLUSTER_TOO_FULL = "ClusterTooFull"
    CLUSTER_AT_RISK = "ClusterAtRisk"
    QUOTA_REACHED = "QuotaReached"
    DISTURBANCE_REFUSED = "DisturbanceRefused"


class ConditionType(StrEnum):
    """The conditions of a `BenchmarkRun`, in order; `Reconciling` and `Stalled` are absent unless True, for kstatus."""

    RECONCILING = "Reconciling"
    STALLED = "Stalled"
    SUCCEEDED = "Succeeded"
    ADMITTED = "Admitted"
    STORAGE_READY = "StorageReady"
    CLIENTS_READY = "ClientsReady"
    MEASURED = "Measured"
    CLEANED_UP = "CleanedUp"
    SUSPENDED = "Suspended"


class SuiteConditionType(StrEnum):
    """The conditions of a `BenchmarkSuite`; `Reconciling` and `Stalled` are absent unless True, for kstatus."""

    RECONCILING = "Reconciling"
    STALLED = "Stalled"
    READY = "Ready"
    REGRESSED = "Regressed"


class ConditionStatus(StrEnum):
    """Whether a condition holds."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


_RANGES = re.compile(r"(\d{1,6}(-\d{1,6})?(,\d{1,6}(-\d{1,6})?)*)?")


def format_numbers(numbers: Iterable[int]) -> str:
    """Return numbers as ascending ranges; an empty set is an empty text."""
    ranges: list[list[int]] = []
    for number in sorted(set(numbers)):
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges)


def parse_numbers(value: object) -> object:
    """Return the numbers of a text by `format_numbers`; other values are returned for the caller's validation."""
    if not isinstance(value, str):
        return value
    if _RANGES.fullmatch(value) is None:
        raise ValueError("is not a set of numbers; write ascending numbers and ranges such as 0-7,12")
    numbers: list[int] = []
    for part in filter(None, value.split(",")):
        first, _, last = part.partition("-")
        numbers += range(int(first), int(last or first) + 1)
    return tuple(numbers)


def format_duration(nanoseconds: float) -> str:
    """Return a latency with three significant digits and a suitable unit: 1234567 -> `1.23 ms`."""
    rounded = float(f"{nanoseconds:.2e}")  # before the unit is chosen: 999.9 µs is 1.00 ms
    for unit, size in (("s", 10**9), ("ms", 10**6), ("µs", 10**3)):
        if rounded >= size:
            value = rounded / size
            digits = 2 if value < 10 else 1 if value < 100 else 0  # noqa: PLR2004 - powers of ten
            return f"{value:.{digits}f} {unit}"
    return f"{nanoseconds:.0f} ns"
