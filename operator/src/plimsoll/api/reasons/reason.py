"""The reasons of a run's conditions."""

from dataclasses import KW_ONLY, dataclass
from enum import StrEnum
from typing import NewType

from plimsoll.api.names import Cause, ConditionType


class Reason(StrEnum):
    """Why a condition of a `BenchmarkRun` holds or does not: the closed vocabulary of this version."""

    PLANNING = "Planning"
    FINALIZER_MISSING = "FinalizerMissing"
    WAITING_FOR_TURN = "WaitingForTurn"
    WAITING_FOR_WINDOW = "WaitingForWindow"
    SUSPENDED_TOO_LONG = "SuspendedTooLong"
    WAITING_FOR_EARLIER_RUN = "WaitingForEarlierRun"
    SPEC_UNREADABLE = "SpecUnreadable"
    RESULTS_UNREADABLE = "ResultsUnreadable"
    ADMITTED = "Admitted"
    MEASURING = "Measuring"
    SUSPENDED = "Suspended"
    STOPPING = "Stopping"
    NOT_SUSPENDED = "NotSuspended"
    ENDED = "Ended"
    ALL_FINAL = "AllFinal"
    INCOMPLETE = "Incomplete"
    NOT_NEEDED = "NotNeeded"
    BOUND = "Bound"
    CLAIMS_NOT_BOUND = "ClaimsNotBound"
    READY = "Ready"
    KUBE_BURNER_NOT_READY = "KubeBurnerNotReady"
    CEPH_CLUSTER_NOT_READY = "CephClusterNotReady"
    POOL_NOT_READY = "PoolNotReady"
    FILE_SYSTEM_NOT_READY = "FileSystemNotReady"
    USER_NOT_READY = "UserNotReady"
    POOL_FAILED = "PoolFailed"
    FILE_SYSTEM_FAILED = "FileSystemFailed"
    USER_FAILED = "UserFailed"
    KEY_SECRETS_TAKEN = "KeySecretsTaken"
    CSI_DRIVER_NOT_FOUND = "CSIDriverNotFound"
    ROOK_NOT_FOUND = "RookNotFound"
    KEYRING_NOT_FOUND = "KeyringNotFound"
    KEYRING_NOT_ALLOWED = "KeyringNotAllowed"
    STARTING = "Starting"
    CONDUCTOR_STARTING = "ConductorStarting"
    REGISTERED = "Registered"
    CLIENTS_MISSING = "ClientsMissing"
    UNSCHEDULABLE = "Unschedulable"
    IMAGE_PULL_FAILED = "ImagePullFailed"
    CONTAINER_FAILED = "ContainerFailed"
    CLIENT_FAILED = "ClientFailed"
    QUOTA_EXCEEDED = "QuotaExceeded"
    API_REFUSED = "ApiRefused"
    NAMESPACE_TERMINATING = "NamespaceTerminating"
    API_UNAVAILABLE = "ApiUnavailable"
    CLEANING_UP = "CleaningUp"
    IN_PROGRESS = "InProgress"
    TEARDOWN_FAILING = "TeardownFailing"
    POOL_DELETION_BLOCKED = "PoolDeletionBlocked"
    FILE_SYSTEM_DELETION_BLOCKED = "FileSystemDeletionBlocked"
    USER_DELETION_BLOCKED = "UserDeletionBlocked"
    PLACEMENT_GROUPS_INACTIVE = "PlacementGroupsInactive"
    NODE_GONE = "NodeGone"
    CLAIMED_BY_OTHERS = "ClaimedByOthers"
    STORAGE_KEPT = "StorageKept"
    REMOVED = "Removed"
    NOTHING_CREATED = "NothingCreated"
    VALID = "Valid"
    SUSPECT = "Suspect"
    INVALID_RESULTS = "InvalidResults"
    INVALID_SPEC = "InvalidSpec"
    STORAGE_CLASS_NOT_FOUND = "StorageClassNotFound"
    POD_SECURITY_TOO_STRICT = "PodSecurityTooStrict"
    ROOK_CLUSTER_NOT_ALLOWED = "RookClusterNotAllowed"
    LIMIT_EXCEEDED = "LimitExceeded"
    WINDOWS_TOO_SHORT = "WindowsTooShort"
    OSD_BENCH_NOT_ALLOWED = "OsdBenchNotAllowed"
    POOL_NOT_FEASIBLE = "PoolNotFeasible"
    POOL_NOT_FOUND = "PoolNotFound"
    POOL_NOT_ALLOWED = "PoolNotAllowed"
    FILE_SYSTEM_NOT_FOUND = "FileSystemNotFound"
    FILE_SYSTEM_NOT_ALLOWED = "FileSystemNotAllowed"
    GATE_CLOSED = "GateClosed"
    CEPH_OPTION_NOT_ALLOWED = "CephOptionNotAllowed"
    CEPH_OPTION_REFUSED = "CephOptionRefused"
    DISTURBANCE_NOT_ALLOWED = "DisturbanceNotAllowed"
    DISTURBANCE_REFUSED = "DisturbanceRefused"
    CEPH_CLIENT_TOO_OLD = "CephClientTooOld"
    CEPH_TOO_OLD = "CephTooOld"
    CLUSTER_TOO_FULL = "ClusterTooFull"
    CLUSTER_AT_RISK = "ClusterAtRisk"
    QUOTA_REACHED = "QuotaReached"
    ROOK_TOO_OLD = "RookTooOld"
    CACHE_DROPPING_NOT_ALLOWED = "CacheDroppingNotAllowed"
    KUBE_BURNER_NOT_ALLOWED = "KubeBurnerNotAllowed"
    VOLUMES_RETAINED = "VolumesRetained"
    RESULTS_EXIST = "ResultsExist"
    NAME_TAKEN = "NameTaken"
    PLAN_MISSING = "PlanMissing"
    PLAN_DAMAGED = "PlanDamaged"
    CLIENTS_FAILED = "ClientsFailed"
    CONDUCTOR_NOT_READY = "ConductorNotReady"
    CONDUCTOR_FAILED = "ConductorFailed"
    RESULTS_INCOMPLETE = "ResultsIncomplete"
    CLIENTS_NOT_READY = "ClientsNotReady"
    PREPARATION_FAILED = "PreparationFailed"
    DEADLINE_EXCEEDED = "DeadlineExceeded"


UnknownReason = NewType("UnknownReason", str)
"""A reason that only another version of the operator knows."""


def read_reason(text: str) -> Reason | UnknownReason:
    """Return a status's reason, which only another version may know."""
    try:
        return Reason(text)
    except ValueError:
        return UnknownReason(text)


class Severity(StrEnum):
    """The type of a Kubernetes event."""

    NORMAL = "Normal"
    WARNING = "Warning"


@dataclass(frozen=True, slots=True)
class Explanation:
    """A row of the documentation, in Markdown: what happened, and what to do about it."""

    meaning: str
    advice: str = "nothing"


@dataclass(frozen=True, slots=True)
class AttemptExplanation(Explanation):
    """The row of a reason why an attempt has no numbers."""

    cause: Cause = Cause.HARNESS


@dataclass(frozen=True, slots=True)
class ReasonEntry:
    """A reason, with its explanations and what decisions derive from it."""

    reason: Reason
    conditions: tuple[ConditionType, ...] = ()  # those with this reason while the run is active or being cleaned up
    meaning: str = ""  # of these conditions; empty if only a finished run has the reason
    advice: str = "nothing"  # what to do about them
    _: KW_ONLY
    ended: Explanation | None = None  # explanation for a finished run; None if no run ends with the reason
    succeeded: bool = False  # whether a run that ends with it succeeded
    # What to do, as the last clause of a message; empty if the messages with this reason have their own
    remedy: str = ""
    severity: Severity = Severity.WARNING  # of an event about a condition that is not True
    load_is_gone: bool = False  # whether, as the reason of CleanedUp, the run no longer loads its target
    is_passed_by: bool = False  # whether the queue skips a run that is not admitted yet
    is_refusal: bool = False  # whether the API server, or something that it consults, refused a request
    event: str = ""  # name of the event, if the reason is unclear without its condition; empty to use the reason

    @property
    def under_way(self) -> Explanation | None:
        """The explanation for an active run; None if only a finished run has the reason."""
        return Explanation(self.meaning, self.advice) if self.meaning else None
