"""The record of an attempt: as it was measured, or why it was not."""

from plimsoll.api.names import AbortReason, Outcome, Verdict
from plimsoll.api.result import Abort, Trial
from plimsoll.conductor import reporting
from plimsoll.conductor.phases import Attempt
from plimsoll.conductor.timings import Moment
from plimsoll.measure.trial import TrialNumbers


def measured(attempt: Attempt, numbers: TrialNumbers, *, epoch: str, moment: Moment) -> Trial:
    """Return the record of an attempt whose documents were judged."""
    return Trial(
        pass_number=attempt.key.pass_number,
        attempt=attempt.key.attempt,
        epoch=epoch,
        clients=attempt.clients,
        outcome=Outcome.MEASURED,
        started_at=attempt.started_at,
        finished_at=reporting.timestamp(moment.wall),
        verdict=numbers.verdict,
        findings=numbers.findings,
        window=numbers.window,
        stalls=numbers.stalls,
        operations=numbers.operations,
        hosts=numbers.hosts,
        slowest=numbers.slowest,
        osds=numbers.osds,
        cluster=numbers.cluster,
        tool=numbers.tool,
        warnings=numbers.warnings,
    )


def aborted(attempt: Attempt, reason: AbortReason, message: str, *, epoch: str, moment: Moment) -> Trial:
    """Return the record of an attempt that was given up."""
    return Trial(
        pass_number=attempt.key.pass_number,
        attempt=attempt.key.attempt,
        epoch=epoch,
        clients=attempt.clients,
        outcome=Outcome.ABORTED,
        started_at=attempt.started_at,
        finished_at=reporting.timestamp(moment.wall),
        abort=Abort(reason=reason, message=message),
        verdict=Verdict.INVALID,
    )
