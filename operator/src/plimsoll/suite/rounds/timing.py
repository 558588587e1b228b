"""Which time of its schedule a suite has to answer."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from plimsoll.api.reasons.entry import Severity
from plimsoll.api.status import format_time
from plimsoll.suite.rounds.actions import Emit
from plimsoll.suite.rounds.observed import Observed
from plimsoll.suite.rounds.schedule import Times
from plimsoll.suite.rounds.state import State

_LARGEST_CORRECTION = timedelta(days=1)
"""A clock that is set back by less does not repeat a round. After more, the later time was an error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """The schedule now.

    Attributes:
        state: with the next schedule time.
        due: the schedule time that a round has to answer; None if none is.
        events: about a missed one.

    """

    state: State
    due: datetime | None = None
    events: tuple[Emit, ...] = ()


def timing_of(seen: Observed, state: State) -> Timing:
    """Return the schedule time that is due: of several, the last one, unless it is too old.

    It was due when its time came, so a schedule that is added or changed never makes a former time due.
    """
    suite, times = seen.suite.specification.suite, seen.suite.specification.times
    if suite is None or suite.spec.schedule is None or times is None:
        return Timing(state=replace(state, next_time=None))
    planned = replace(state, next_time=_next_time(times, state, seen.now))
    if state.next_time is None or state.next_time > seen.now:
        return Timing(state=planned)
    last = times.last_until(seen.now)
    if last < state.next_time:
        return Timing(state=planned)
    deadline = suite.spec.schedule.starting_deadline_seconds
    if deadline is not None and seen.now - last > timedelta(seconds=deadline):
        return Timing(state=planned, events=() if suite.spec.suspend else (_missed(last, deadline),))
    return Timing(state=state, due=last)


def answered(seen: Observed, state: State, due: datetime | None) -> State:
    """Return the state after a round has answered the schedule time that was due."""
    times = seen.suite.specification.times
    if due is None or times is None:
        return state
    state = replace(state, last_time=due)
    return replace(state, next_time=_next_time(times, state, seen.now))


def _next_time(times: Times, state: State, now: datetime) -> datetime:
    last = state.last_time
    is_ahead = last is not None and now < last < now + _LARGEST_CORRECTION
    return times.first_after(last if last is not None and is_ahead else now)


def _missed(time: datetime, deadline: int) -> Emit:
    message = (
        f"no round started at {format_time(time)} or in the {deadline} s after it, because another one was active or "
        "the operator was not running; raise spec.schedule.startingDeadlineSeconds to start late"
    )
    return Emit(severity=Severity.WARNING, reason="ScheduleMissed", message=message)
