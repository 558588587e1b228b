"""What has happened to a suite since its status was written."""

from dataclasses import dataclass, replace

from plimsoll.api.suite import BenchmarkSuite
from plimsoll.api.suite_status import Cause
from plimsoll.suite.rounds.accepting import accepted
from plimsoll.suite.rounds.actions import Emit
from plimsoll.suite.rounds.causes import cause_due, version_of
from plimsoll.suite.rounds.children import advanced
from plimsoll.suite.rounds.ending import ended, superseded
from plimsoll.suite.rounds.keeping import kept, lost_runs, without_abandoned
from plimsoll.suite.rounds.observed import Observed
from plimsoll.suite.rounds.opening import opened
from plimsoll.suite.rounds.state import State
from plimsoll.suite.rounds.timing import timing_of
from plimsoll.suite.rounds.turns import members_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """The new state.

    Attributes:
        events: about what has changed, oldest first.
        waiting: cause of a round that is due and cannot start yet; None if none is due or one is active.

    """

    state: State
    events: tuple[Emit, ...] = ()
    waiting: Cause | None = None


def progress_of(seen: Observed) -> Progress:
    """Return the state after everything that has happened. A second application changes nothing.

    An invalid suite keeps its state: it is unknown which turns the active round has. So does one whose status was lost.
    """
    suite, state = seen.suite.specification.suite, seen.suite.state
    if suite is None or lost_runs(seen, state):
        return Progress(state=state)
    state, ending = _after_active_round(seen, suite, state)
    state, acceptance = accepted(seen, without_abandoned(seen, state))
    state = _with_version(seen, suite, kept(seen, state, suite.spec.keep))
    timing = timing_of(seen, state)
    events, state = (*ending, *acceptance, *timing.events), timing.state
    cause = None if state.active else cause_due(seen, suite, state, timing.due)
    if cause is None or suite.spec.suspend or is_loaded(seen, state) or not is_checked(seen, state):
        return Progress(state=state, events=events, waiting=cause)
    state, start = opened(seen, suite, state, cause, timing.due)
    return Progress(state=state, events=(*events, start))


def is_loaded(seen: Observed, state: State) -> bool:
    """Whether a run of the suite may load the storage."""
    return bool(seen.unfinished or state.abandoned)


def is_checked(seen: Observed, state: State) -> bool:
    """Whether the API server accepts the runs of all variants: those of an earlier round, or after a dry run."""
    digest, checked = seen.suite.specification.digest, seen.memory.checked
    return digest == state.digest or (checked is not None and checked.digest == digest and not checked.variant)


def measures_digest(seen: Observed, state: State) -> bool:
    """Whether the active round, if any, measures what the suite asks for now."""
    return seen.suite.specification.digest == state.digest


def _after_active_round(seen: Observed, suite: BenchmarkSuite, state: State) -> tuple[State, tuple[Emit, ...]]:
    """Return the state with the progress of the active round, or its end.

    A suspended suite whose digest has changed keeps its round: the active run continues until the suite is resumed.
    """
    active = state.active
    if active is None or (suite.spec.suspend and not measures_digest(seen, state)):
        return state, ()
    if not measures_digest(seen, state):
        state, event = superseded(seen, state, active)
        return state, (event,)
    members = members_of(seen, suite, active)
    active = advanced(seen, active, members)
    state = replace(state, active=active)
    end = ended(seen, state, active, members) if active.is_measured else None
    return (state, ()) if end is None else (end[0], (end[1],))


def _with_version(seen: Observed, suite: BenchmarkSuite, state: State) -> State:
    """Return the state with the version of Ceph, unless another version than the last one is due to start a round."""
    if state.ceph_version and suite.spec.triggers.ceph_version:
        return state
    return replace(state, ceph_version=version_of(seen) or state.ceph_version)
