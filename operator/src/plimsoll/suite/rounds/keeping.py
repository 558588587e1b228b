"""Which rounds are kept, with their runs and results."""

from collections.abc import Iterable
from dataclasses import replace

from plimsoll.api.suite_status import MAX_DROPPED, PINNED_ROUNDS, RoundVerdict
from plimsoll.suite.rounds.observed import Observed, OwnedRun
from plimsoll.suite.rounds.state import State


def kept(state: State, keep: int) -> State:
    """Return the state with the newest rounds and the pinned ones; all of them while a round is measured against them.

    A baseline has one digest: the first accepted round that measures something else replaces all earlier ones. The
    first five accepted rounds of a baseline are pinned.
    """
    accepted = [one for one in state.ended if one.accepted]
    baseline = [one.minute for one in accepted if one.digest == accepted[0].digest]
    pinned = frozenset(baseline[-PINNED_ROUNDS:])
    ended = tuple(replace(one, accepted=one.minute in baseline, pinned=one.minute in pinned) for one in state.ended)
    if state.active is not None:
        return replace(state, ended=ended)
    remaining = tuple(one for index, one in enumerate(ended) if index < keep or one.pinned)
    dropped = {one.minute for one in ended} - {one.minute for one in remaining} | {*state.dropped}
    return replace(state, ended=remaining, dropped=tuple(sorted(dropped, reverse=True)[:MAX_DROPPED]))


def lost_minutes(seen: Observed, state: State) -> tuple[int, ...]:
    """Return the rounds that have runs and are not in the status, oldest first: it was lost, or set back."""
    known = {one.minute for one in state.ended} | {*state.dropped}
    known |= {state.active.minute} if state.active else set()
    return tuple(sorted({run.minute for run in seen.runs} - known))


def without_abandoned(seen: Observed, state: State) -> State:
    """Return the state after an abandoned round's run has finished, or the API server did not find it."""
    is_over = state.abandoned in seen.memory.absent or any(
        run.name == state.abandoned and run.is_finished for run in seen.runs
    )
    return replace(state, abandoned="") if is_over else state


def abandoned_run(seen: Observed, state: State) -> OwnedRun | None:
    """Return an unfinished run of an abandoned round; None if there is none or one is being deleted.

    A run of any other round was finished when its round ended: a list that shows it unfinished is old.
    """
    abandoned = {one.minute for one in state.ended if one.verdict is RoundVerdict.SUPERSEDED}
    return _first(run for run in seen.unfinished if run.minute in abandoned)


def obsolete_run(seen: Observed, state: State) -> OwnedRun | None:
    """Return a run of a round that was dropped; None if there is none or one is being deleted."""
    return _first(run for run in seen.runs if run.minute in state.dropped)


def _first(runs: Iterable[OwnedRun]) -> OwnedRun | None:
    ordered = sorted(runs, key=lambda run: (run.minute, run.name))
    return None if not ordered or any(run.is_deleting for run in ordered) else ordered[0]
