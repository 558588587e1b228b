"""Names and closed vocabularies shared by the code, the CRDs, the docs and the metrics."""

from enum import StrEnum

GROUP = "plimsoll.dev"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"
RUN_KIND = "BenchmarkRun"
RESULT_KIND = "BenchmarkResult"

DNS_LABEL_PATTERN = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
"""Source: Kubernetes, RFC 1123 labels."""

CEPH_NAME_PATTERN = r"^[A-Za-z0-9][-._A-Za-z0-9]*$"
"""Names of pools and CephX users. Ceph allows more, of which `/`, `@` and a leading `-` mean something to its tools."""

MONITOR_PATTERN = r"^[\[\]a-zA-Z0-9.:,/_-]+$"
"""Addresses of monitors as `mon_host` has them: nothing that would begin another line of a configuration file."""

DATA_KEY_PATTERN = r"^[-._a-zA-Z0-9]+$"
"""Source: Kubernetes, keys of ConfigMaps and Secrets."""

HEALTH_CHECK_PATTERN = r"^[A-Z][A-Z0-9_]*$"
"""Ceph's names of its health checks."""


class Verdict(StrEnum):
    """Whether the numbers may be believed."""

    VALID = "Valid"
    SUSPECT = "Suspect"
    INVALID = "Invalid"


class Outcome(StrEnum):
    """How one attempt at a trial ended."""

    MEASURED = "Measured"
    ABORTED = "Aborted"


class Operation(StrEnum):
    """A kind of I/O that is counted and timed on its own."""

    READ = "read"
    WRITE = "write"
    TRIM = "trim"
    SYNC = "sync"


class LatencyKind(StrEnum):
    """What a tool knows about latency: a dashboard must not show a p99 that nobody measured."""

    FULL = "full"
    MEAN_ONLY = "meanOnly"
    NONE = "none"


class RunPhase(StrEnum):
    """Where the conductor is. Displayed and resumed from, never believed over what the results say."""

    GATHERING = "Gathering"
    PREPARING = "Preparing"
    SETTLING = "Settling"
    MEASURING = "Measuring"
    COMPLETE = "Complete"
    FAILED = "Failed"
    INTERRUPTED = "Interrupted"


class AbortReason(StrEnum):
    """Why an attempt produced no numbers."""

    CLIENT_LOST = "ClientLost"
    CLIENT_NOT_STAGED = "ClientNotStaged"
    CLIENT_NOT_ARMED = "ClientNotArmed"
    LATE_CLIENT = "LateClient"
    TOOL_OVERRAN = "ToolOverran"
    RESULT_REFUSED = "ResultRefused"
    CONDUCTOR_RESTARTED = "ConductorRestarted"
    INTERRUPTED = "Interrupted"
    DEADLINE_EXCEEDED = "DeadlineExceeded"


class FailureReason(StrEnum):
    """Why a run could not be measured at all."""

    CLIENTS_NOT_READY = "ClientsNotReady"
    PREPARATION_FAILED = "PreparationFailed"
    CLUSTER_NOT_READY = "ClusterNotReady"
    DEADLINE_EXCEEDED = "DeadlineExceeded"


class ConditionType(StrEnum):
    """What a condition of a `BenchmarkRun` is about, in the order of a run's life.

    `Reconciling` and `Stalled` are there only while they are True, as kstatus wants it.
    """

    RECONCILING = "Reconciling"
    STALLED = "Stalled"
    SUCCEEDED = "Succeeded"
    ADMITTED = "Admitted"
    STORAGE_READY = "StorageReady"
    CLIENTS_READY = "ClientsReady"
    MEASURED = "Measured"
    CLEANED_UP = "CleanedUp"
    SUSPENDED = "Suspended"


class ConditionStatus(StrEnum):
    """Whether a condition holds."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"
