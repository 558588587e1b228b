"""The baseline: the accepted rounds that later ones are compared with, and what became of a regression.

A baseline that replaces another one may be a mistake, such as an accepted regression. The replaced one is remembered
until the new one is established; naming one of its rounds in the annotation brings it back.
"""

from collections.abc import Set as AbstractSet
from dataclasses import replace

from plimsoll.api.suite_status import PINNED_ROUNDS, RoundVerdict
from plimsoll.suite.rounds.state import JUDGED, EndedRound, State

_ESTABLISHED = 3
"""Accepted rounds with which a baseline is established. Fewer do not show how much rounds differ without a change."""

_DECISIVE = frozenset({RoundVerdict.NO_REGRESSION, RoundVerdict.REGRESSED})


def with_baseline(state: State, chosen: EndedRound) -> State:
    """Return the state whose baseline starts with a round that the user accepts.

    A round of the former baseline brings back the later ones of that; any other one keeps the later accepted ones.
    """
    later = {
        one.minute
        for one in state.ended
        if one.minute > chosen.minute
        and one.digest == chosen.digest
        and (one.former if chosen.former else one.accepted)
    }
    return replace(_replaced(state, later | {chosen.minute}), first=chosen.minute)


def settled(state: State) -> State:
    """Return the state with one baseline, its pinned rounds, and the former one as long as it is needed.

    A baseline has one digest: the first accepted round that measures something else replaces all earlier ones. The
    first five accepted rounds of a baseline are pinned.
    """
    accepted = [one for one in state.ended if one.accepted]
    state = _replaced(state, {one.minute for one in accepted if one.digest == accepted[0].digest})
    pinned = {one.minute for one in state.ended if one.accepted}
    pinned = set(sorted(pinned)[:PINNED_ROUNDS])
    is_established = _is_established(state)
    ended = tuple(
        _marked(one, accepted=one.accepted, former=one.former and not is_established, pinned=one.minute in pinned)
        for one in state.ended
    )
    return replace(state, ended=ended)


def last_judged(state: State) -> EndedRound | None:
    """Return the last round that was evaluated; a failed one proves neither a regression nor a recovery."""
    return next((one for one in state.ended if one.verdict in JUDGED), None)


def decisive_round(state: State) -> EndedRound | None:
    """Return the last round that shows whether there is a regression: neither an Inconclusive nor a Failed one does."""
    return next((one for one in state.ended if one.verdict in _DECISIVE), None)


def open_regression(state: State) -> EndedRound | None:
    """Return the last round that regressed; None if a later one did not, or if a user accepted it or a later one."""
    last = decisive_round(state)
    is_open = last is not None and last.verdict is RoundVerdict.REGRESSED and last.minute > state.first
    return last if is_open else None


def _replaced(state: State, baseline: AbstractSet[int]) -> State:
    """Return the state with another baseline, given by its minutes."""
    dismissed = {one.minute for one in state.ended if one.accepted} - baseline
    former = {one.minute for one in state.ended if one.former} - baseline
    if dismissed:
        former = dismissed if _is_established(state) else former or dismissed
    ended = tuple(
        _marked(one, accepted=one.minute in baseline, former=one.minute in former, pinned=one.pinned)
        for one in state.ended
    )
    return replace(state, ended=ended, since=state.ended[0].minute if dismissed else state.since)


def _marked(one: EndedRound, *, accepted: bool, former: bool, pinned: bool) -> EndedRound:
    """Return a round with these marks, which most rounds have at most looks."""
    if (one.accepted, one.former, one.pinned) == (accepted, former, pinned):
        return one
    return replace(one, accepted=accepted, former=former, pinned=pinned)


def _is_established(state: State) -> bool:
    """Whether enough rounds are accepted; of those before the baseline replaced another one, one counts."""
    newer = [one for one in state.ended if one.accepted and one.minute > state.since]
    has_older = any(one.accepted and one.minute <= state.since for one in state.ended)
    return len(newer) + has_older >= _ESTABLISHED
