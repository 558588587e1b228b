"""Opening a round."""

from dataclasses import replace
from datetime import datetime

from plimsoll.api.reasons.entry import Severity
from plimsoll.api.suite import BenchmarkSuite
from plimsoll.api.suite_status import Cause
from plimsoll.suite.children import child_name, turns_of
from plimsoll.suite.rounds.actions import Emit
from plimsoll.suite.rounds.causes import REQUEST_ROUND, text_of, version_of
from plimsoll.suite.rounds.observed import Observed
from plimsoll.suite.rounds.state import ActiveRound, State
from plimsoll.suite.rounds.timing import answered

_SECONDS_PER_MINUTE = 60

_BECAUSE = {
    Cause.CHANGE: "what the suite measures has changed",
    Cause.REQUESTED: f"annotation {REQUEST_ROUND} requests it",
    Cause.SCHEDULED: "its time has come",
    Cause.CEPH_VERSION: "the version of Ceph has changed",
}


def next_minute(seen: Observed, state: State) -> int:
    """Return the minute of a round that starts now: later than that of every known round, whatever the clock does."""
    known = [one.minute for one in state.ended] + [run.minute for run in seen.runs if not run.is_ahead]
    known += [state.active.minute] if state.active else []
    return max(int(seen.now.timestamp()) // _SECONDS_PER_MINUTE, *(minute + 1 for minute in known), 0)


def opened(
    seen: Observed, suite: BenchmarkSuite, state: State, cause: Cause, due: datetime | None
) -> tuple[State, Emit]:
    """Return the state with a new round, which answers everything that is due, and the event about it."""
    minute = next_minute(seen, state)
    turns = turns_of(suite.spec, minute)
    total, first = len(turns), child_name(suite, turns[0], minute, seen.suite.uid)
    active = ActiveRound(minute=minute, seed=minute, cause=cause, started=seen.now, total=total, current=first)
    is_requested = text_of(seen, REQUEST_ROUND) not in {"", state.requested}
    state = replace(
        answered(seen, state, due),
        active=active,
        digest=seen.suite.specification.digest,
        requested=text_of(seen, REQUEST_ROUND) if is_requested else state.requested,
        requested_minute=minute if is_requested else state.requested_minute,
        ceph_version=version_of(seen) or state.ceph_version,
    )
    message = f"round {minute} of {total} run{'s' * (total > 1)} started, because {_BECAUSE[cause]}"
    return state, Emit(severity=Severity.NORMAL, reason="RoundStarted", message=message)
