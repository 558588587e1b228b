"""Which rounds are kept, with their runs and results."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from plimsoll.api.suite_status import PINNED_ROUNDS
from plimsoll.suite.rounds.observed import Observed, OwnedRun
from plimsoll.suite.rounds.state import EndedRound, State


def kept(state: State, keep: int) -> State:
    """Return the state with the newest rounds and the pinned ones; all of them while a round is measured against them.

    Of the rounds that measured the same as the last accepted one, the first five accepted ones are pinned.
    """
    pinned = _pinned(state.ended)
    ended = tuple(replace(one, pinned=one.minute in pinned) for one in state.ended)
    if state.active is None:
        ended = tuple(one for index, one in enumerate(ended) if index < keep or one.pinned)
    return replace(state, ended=ended)


def _pinned(ended: Sequence[EndedRound]) -> frozenset[int]:
    accepted = [one for one in ended if one.accepted]
    series = [one.minute for one in accepted if one.digest == accepted[0].digest]
    return frozenset(series[-PINNED_ROUNDS:])


def abandoned_run(seen: Observed, state: State) -> OwnedRun | None:
    """Return an unfinished run that belongs to no active round; None if there is none or one is being deleted."""
    active = state.active.minute if state.active else None
    return _first(run for run in seen.unfinished if run.minute != active)


def obsolete_run(seen: Observed, state: State) -> OwnedRun | None:
    """Return a finished run of a round that is no longer kept; None if there is none or one is being deleted."""
    known = {one.minute for one in state.ended} | ({state.active.minute} if state.active else set())
    return _first(run for run in seen.runs if run.is_finished and run.minute not in known)


def _first(runs: Iterable[OwnedRun]) -> OwnedRun | None:
    ordered = sorted(runs, key=lambda run: (run.minute, run.name))
    return None if not ordered or any(run.is_deleting for run in ordered) else ordered[0]
