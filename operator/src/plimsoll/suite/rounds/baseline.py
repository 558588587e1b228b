"""The baseline: the accepted rounds that later ones are compared with, and what became of a regression.

A baseline that replaces another one may be a mistake, such as an accepted regression. The replaced one is remembered
until the new one is established; naming one of its rounds in the annotation brings it back.
"""

from collections.abc import Set as AbstractSet
from dataclasses import replace
from datetime import datetime

from plimsoll.api.names import GROUP
from plimsoll.api.reasons.reason import Severity
from plimsoll.api.suite import BenchmarkSuite
from plimsoll.api.suite_status import MAX_ANNOTATION_CHARACTERS, PINNED_ROUNDS, Cause, RoundVerdict
from plimsoll.suite.rounds.actions import Emit
from plimsoll.suite.rounds.observed import JUDGED, EndedRound, Observed, State

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


REQUEST_ROUND = f"{GROUP}/request-round"
"""Annotation: each new text requests a round."""

_MAX_VERSION = 256
"""Maximum length of a version in the API."""


def cause_due(seen: Observed, suite: BenchmarkSuite, state: State, due: datetime | None) -> Cause | None:
    """Return why a round is due, the first cause of several; None if none is. `due` is a schedule time."""
    if seen.suite.specification.digest != state.digest:
        return Cause.CHANGE
    if text_of(seen, REQUEST_ROUND) not in {"", state.requested}:
        return Cause.REQUESTED
    if due is not None:
        return Cause.SCHEDULED
    if suite.spec.triggers.ceph_version and has_other_version(seen, state):
        return Cause.CEPH_VERSION
    return None


def has_other_version(seen: Observed, state: State) -> bool:
    """Whether the cluster has another version of Ceph than the last round found."""
    version = version_of(seen)
    return bool(version and state.ceph_version and version != state.ceph_version)


def version_of(seen: Observed) -> str:
    """Return the version of Ceph, as far as the status remembers it; empty if unknown."""
    return seen.ceph_version[:_MAX_VERSION]


def text_of(seen: Observed, annotation: str) -> str:
    """Return the text of an annotation, as far as the status remembers it; empty if absent."""
    return seen.suite.annotations.get(annotation, "")[:MAX_ANNOTATION_CHARACTERS]


ACCEPT_ROUND = f"{GROUP}/accept-round"
"""Annotation: the minute of a round. Earlier rounds are no longer a baseline; naming one of them brings them back."""


def accepted(seen: Observed, state: State) -> tuple[State, tuple[Emit, ...]]:
    """Return the state after handling the annotation, with an event if it cannot be followed.

    An annotation that names the active round waits until the round has ended.
    """
    text = text_of(seen, ACCEPT_ROUND)
    if text in {"", state.accepted} or (state.active is not None and text == str(state.active.minute)):
        return state, ()
    state = replace(state, accepted=text)
    chosen = next((one for one in state.ended if str(one.minute) == text and one.is_acceptable), None)
    if chosen is None:
        return state, (_unknown(text, state),)
    message = f"round {chosen.minute} is accepted: later rounds are compared with it and its successors"
    return with_baseline(state, chosen), (Emit(severity=Severity.NORMAL, reason="RoundAccepted", message=message),)


def _unknown(text: str, state: State) -> Emit:
    rounds = ", ".join(str(one.minute) for one in state.ended if one.is_acceptable)
    remedy = f"these can be accepted: {rounds}" if rounds else "no round can be accepted yet"
    message = (
        f"annotation {ACCEPT_ROUND}: {text!r} is not the minute of a round that was evaluated with all of its runs; "
        f"{remedy}"
    )
    return Emit(severity=Severity.WARNING, reason="RoundUnknown", message=message)
