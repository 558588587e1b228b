"""Reasons about clients, the conductor, and requests that the API server refuses."""

from plimsoll.api.names import ConditionType
from plimsoll.api.reasons.entry import Explanation, ReasonEntry, Severity
from plimsoll.api.reasons.reason import Reason

_CLIENTS = (ConditionType.CLIENTS_READY, ConditionType.SUCCEEDED, ConditionType.RECONCILING)
_REQUESTS = (ConditionType.SUCCEEDED, ConditionType.RECONCILING, ConditionType.CLIENTS_READY)
_CLIENTS_TIMED_OUT = Explanation("clients were not running within `provisionSeconds`", "as above")
_REFUSED_TOO_LONG = Explanation("an object could not be created within `provisionSeconds`", "as above")

CLIENT_REASONS = (
    ReasonEntry(
        Reason.STARTING,
        conditions=_CLIENTS,
        under_way=Explanation("pods are being created, and no problem is known"),
        severity=Severity.NORMAL,
        event="ClientsStarting",
    ),
    ReasonEntry(
        Reason.CONDUCTOR_STARTING,
        conditions=_CLIENTS,
        under_way=Explanation(
            "the conductor, or its replacement, is not active yet; the message has the state of its pod",
            "nothing; if it persists, check the events of its Job and pod, and its log",
        ),
        remedy="check the events of the conductor's Job and pod, and its log",
        severity=Severity.NORMAL,
    ),
    ReasonEntry(
        Reason.REGISTERED,
        conditions=(ConditionType.CLIENTS_READY,),
        under_way=Explanation("all clients have registered"),
        severity=Severity.NORMAL,
    ),
    ReasonEntry(
        Reason.CLIENTS_MISSING,
        conditions=_CLIENTS,
        under_way=Explanation(
            "a client has no pod, or its running pod has not contacted the conductor",
            "check the client's log; a NetworkPolicy of yours or the cluster's DNS may block it",
        ),
        ended=_CLIENTS_TIMED_OUT,
        remedy="check the pods of the run",
    ),
    ReasonEntry(
        Reason.UNSCHEDULABLE,
        conditions=_CLIENTS,
        under_way=Explanation(
            "the scheduler finds no node for a client or the conductor",
            "free or add nodes, lower `clients.count` or `clients.resources`, set `clients.spread: Preferred`, or "
            "change `servers.placement`",
        ),
        ended=_CLIENTS_TIMED_OUT,
        remedy=(
            "free or add nodes, lower clients.count or clients.resources, set clients.spread: Preferred, or change "
            "servers.placement"
        ),
    ),
    ReasonEntry(
        Reason.IMAGE_PULL_FAILED,
        conditions=_CLIENTS,
        under_way=Explanation(
            "the runner image cannot be pulled",
            "check the image's name, `clients.imagePullSecrets` and the registry",
        ),
        ended=_CLIENTS_TIMED_OUT,
        remedy="check the runner image and imagePullSecrets",
    ),
    ReasonEntry(
        Reason.CONTAINER_FAILED,
        conditions=_CLIENTS,
        under_way=Explanation("the container cannot be created or started", "check the pod's events"),
        ended=_CLIENTS_TIMED_OUT,
        remedy="check the pod's events",
    ),
    ReasonEntry(
        Reason.CLIENT_FAILED,
        conditions=_CLIENTS,
        under_way=Explanation(
            "an agent exited; the message has its exit code and termination message",
            "see [exit codes](#exit-codes); it is replaced up to five times",
        ),
        ended=_CLIENTS_TIMED_OUT,
        remedy="check the client's exit code and termination message",
    ),
    ReasonEntry(
        Reason.QUOTA_EXCEEDED,
        conditions=_REQUESTS,
        under_way=Explanation(
            "a ResourceQuota blocks the creation of an object, or of a Job's pod; the message quotes the API server or "
            "the Job controller",
            "raise the quota, or lower `clients.count`, `clients.resources` or `volume.size`",
        ),
        ended=_REFUSED_TOO_LONG,
        remedy="raise the namespace's ResourceQuota, or lower clients.count, clients.resources or volume.size",
        is_refusal=True,
    ),
    ReasonEntry(
        Reason.API_REFUSED,
        conditions=(*_REQUESTS, ConditionType.CLEANED_UP),
        under_way=Explanation(
            "the API server refuses a request of the operator: an admission policy, a LimitRange, Pod Security, "
            "missing permissions. The operator retries every 5 s",
            "change the run or what refuses it; [who may do what](architecture.md#who-may-do-what) lists the "
            "operator's permissions. A run does not end because the operator cannot observe it",
        ),
        ended=_REFUSED_TOO_LONG,
        remedy=(
            "change the run, or what refuses it: an admission policy, LimitRange, Pod Security, the operator's "
            "ClusterRole"
        ),
        is_refusal=True,
    ),
    ReasonEntry(
        Reason.NAMESPACE_TERMINATING,
        conditions=_REQUESTS,
        under_way=Explanation(
            "the namespace is being deleted and accepts no new objects. The operator creates nothing more for the run",
            "nothing: the run is deleted with its namespace",
        ),
        ended=_REFUSED_TOO_LONG,
        remedy=(
            "a namespace that is being deleted accepts no new objects; its runs are deleted with it, so nothing has "
            "to be done"
        ),
        severity=Severity.NORMAL,
        is_refusal=True,
    ),
    ReasonEntry(
        Reason.API_UNAVAILABLE,
        conditions=(ConditionType.SUCCEEDED, ConditionType.RECONCILING, ConditionType.CLEANED_UP),
        under_way=Explanation(
            "the request did not succeed within 20 s of retries",
            "check the API server and its admission webhooks",
        ),
        ended=_REFUSED_TOO_LONG,
        remedy="check the API server and its admission webhooks",
        is_refusal=True,
    ),
)
