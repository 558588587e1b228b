"""Reasons of a run that waits, is suspended or measures."""

from plimsoll.api.names import ConditionType
from plimsoll.api.reasons.entry import Explanation, ReasonEntry, Severity
from plimsoll.api.reasons.reason import Reason

_SUMMARY = (ConditionType.SUCCEEDED, ConditionType.RECONCILING)
_USE_NEWER_OPERATOR = "use that version of the operator, or a later one"
_SEE_SUCCEEDED = "see the reason of `Succeeded`"

WAITING_REASONS = (
    ReasonEntry(
        Reason.PLANNING,
        conditions=_SUMMARY,
        under_way=Explanation("the plan is being stored"),
        severity=Severity.NORMAL,
    ),
    ReasonEntry(
        Reason.WAITING_FOR_TURN,
        conditions=(*_SUMMARY, ConditionType.ADMITTED),
        under_way=Explanation(
            "another run on the same target comes first; the message names it",
            "wait; a run that is suspended, or has ended and is not cleaned up, loses its place after "
            "`PLIMSOLL_HOLD_SECONDS`",
        ),
        severity=Severity.NORMAL,
    ),
    ReasonEntry(
        Reason.SUSPENDED_TOO_LONG,
        conditions=(ConditionType.ADMITTED, ConditionType.RECONCILING),
        under_way=Explanation(
            "all suspensions of the run together exceed `PLIMSOLL_HOLD_SECONDS` without a measured trial in between; "
            "other runs on its target go first, as soon as its pods have stopped. Its volumes are kept",
            "resume it: it waits at the end of the queue",
        ),
        severity=Severity.NORMAL,
    ),
    ReasonEntry(
        Reason.WAITING_FOR_EARLIER_RUN,
        conditions=_SUMMARY,
        under_way=Explanation(
            "an object of an earlier run with this name, or one that is being deleted, still exists; the message names "
            "it. The operator checks every 15 s; a run that is not admitted yet is overtaken in the queue meanwhile, "
            "and ends after `provisionSeconds`",
            "nothing; if it persists, check that object's finalizers",
        ),
        remedy="nothing has to be done; if it persists, check that object's finalizers",
        is_passed_by=True,
        is_refusal=True,
    ),
    ReasonEntry(
        Reason.SPEC_UNREADABLE,
        conditions=_SUMMARY,
        under_way=Explanation(
            "a version of the operator that can read the run's specification started it, and this one cannot. Its pods "
            "continue and may finish; the operator creates nothing more",
            _USE_NEWER_OPERATOR,
        ),
        is_passed_by=True,
    ),
    ReasonEntry(
        Reason.RESULTS_UNREADABLE,
        conditions=_SUMMARY,
        under_way=Explanation(
            "the conductor finished, and this version cannot read the status of the results that the message names",
            _USE_NEWER_OPERATOR,
        ),
    ),
    ReasonEntry(
        Reason.ADMITTED,
        conditions=(ConditionType.ADMITTED,),
        under_way=Explanation("it is this run's turn"),
        severity=Severity.NORMAL,
    ),
    ReasonEntry(
        Reason.MEASURING,
        conditions=_SUMMARY,
        under_way=Explanation("all clients have registered; the message shows what is being measured"),
        severity=Severity.NORMAL,
    ),
    ReasonEntry(
        Reason.SUSPENDED,
        conditions=(ConditionType.SUCCEEDED, ConditionType.SUSPENDED, ConditionType.CLIENTS_READY),
        under_way=Explanation("`spec.suspend` is true, and the clients are deleted", "set it to false to resume"),
        severity=Severity.NORMAL,
    ),
    ReasonEntry(
        Reason.STOPPING,
        conditions=(ConditionType.RECONCILING,),
        under_way=Explanation("the pods of a suspended run are stopping"),
        severity=Severity.NORMAL,
    ),
    ReasonEntry(
        Reason.NOT_SUSPENDED,
        conditions=(ConditionType.SUSPENDED,),
        under_way=Explanation("the run is not suspended"),
        severity=Severity.NORMAL,
        event="Resumed",
    ),
    ReasonEntry(
        Reason.ENDED,
        conditions=(ConditionType.SUSPENDED, ConditionType.STORAGE_READY, ConditionType.CLIENTS_READY),
        under_way=Explanation("the condition was True until the run ended", _SEE_SUCCEEDED),
        severity=Severity.NORMAL,
    ),
    ReasonEntry(
        Reason.ALL_FINAL,
        conditions=(ConditionType.MEASURED,),
        under_way=Explanation("all points have all their trials"),
        severity=Severity.NORMAL,
    ),
    ReasonEntry(
        Reason.INCOMPLETE,
        conditions=(ConditionType.MEASURED,),
        under_way=Explanation("the run ended before all points had all their trials", _SEE_SUCCEEDED),
    ),
)
