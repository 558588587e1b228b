"""Which rounds are kept, with their runs and results."""

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import replace

from plimsoll.api.suite_status import MAX_DROPPED, PINNED_ROUNDS, UNUSABLE_ROUNDS, RoundVerdict
from plimsoll.suite.rounds.baseline import decisive_round, settled
from plimsoll.suite.rounds.observed import Observed, OwnedRun
from plimsoll.suite.rounds.state import JUDGED, State


def kept(seen: Observed, state: State, keep: int) -> State:
    """Return the state with the rounds that are needed; all of them while a round is measured against them."""
    state = settled(state)
    if state.active is not None:
        return state
    needed = _needed(state, keep)
    dropped = {one.minute for one in state.ended} - needed | {*state.dropped}
    return replace(
        state,
        ended=tuple(one for one in state.ended if one.minute in needed),
        dropped=_named(seen, dropped),
    )


def _named(seen: Observed, dropped: AbstractSet[int]) -> tuple[int, ...]:
    """Return the dropped rounds that the status has, newest first.

    Those with runs precede all others: without them it would seem that the status was lost.
    """
    having = {run.minute for run in seen.runs}
    first = sorted(dropped, key=lambda minute: (minute in having, minute), reverse=True)
    return tuple(sorted(first[:MAX_DROPPED], reverse=True))


def _needed(state: State, keep: int) -> AbstractSet[int]:
    """Return the minutes of the rounds to keep: those that a user, or a later verdict, may need."""
    usable = [one.minute for one in state.ended if one.verdict in JUDGED]
    unusable = [one.minute for one in state.ended if one.verdict not in JUDGED]
    pinned = [one.minute for one in state.ended if one.pinned]
    former = [one.minute for one in state.ended if one.former]
    decisive = decisive_round(state)
    needed = {*usable[:keep], *unusable[:UNUSABLE_ROUNDS], *pinned, *former[-PINNED_ROUNDS:]}
    return needed | ({decisive.minute} if decisive else set())


def lost_runs(seen: Observed, state: State) -> tuple[OwnedRun, ...]:
    """Return the runs of rounds that are not in the status, those of the oldest first: it was lost, or set back."""
    return tuple(run for run in _unknown(seen, state) if not run.is_ahead)


def strange_runs(seen: Observed, state: State) -> tuple[OwnedRun, ...]:
    """Return the runs that the suite cannot have created: somebody else named it as their owner."""
    return tuple(run for run in _unknown(seen, state) if run.is_ahead)


def _unknown(seen: Observed, state: State) -> list[OwnedRun]:
    known = {one.minute for one in state.ended} | {*state.dropped}
    known |= {state.active.minute} if state.active else set()
    return sorted((run for run in seen.runs if run.minute not in known), key=_age)


def without_abandoned(seen: Observed, state: State) -> State:
    """Return the state after an abandoned round's run has finished, or the API server did not find it."""
    is_over = state.abandoned in seen.memory.absent or any(
        run.name == state.abandoned and run.is_finished for run in seen.runs
    )
    return replace(state, abandoned="") if is_over else state


def abandoned_run(seen: Observed, state: State) -> OwnedRun | None:
    """Return an unfinished run of an abandoned round; None if there is none that is not being deleted yet.

    A run of any other round was finished when its round ended: a list that shows it unfinished is old.
    """
    abandoned = {one.minute for one in state.ended if one.verdict is RoundVerdict.SUPERSEDED}
    return _first(run for run in seen.unfinished if run.minute in abandoned)


def obsolete_run(seen: Observed, state: State) -> OwnedRun | None:
    """Return a run of a round that was dropped; None if there is none that is not being deleted yet."""
    return _first(run for run in seen.runs if run.minute in state.dropped)


def _first(runs: Iterable[OwnedRun]) -> OwnedRun | None:
    left = [run for run in runs if not run.is_deleting]
    return min(left, key=_age, default=None)


def _age(run: OwnedRun) -> tuple[int, str]:
    return run.minute, run.name
