"""The annotation with which a user accepts a round as the new baseline."""

from dataclasses import replace

from plimsoll.api.names import GROUP
from plimsoll.api.reasons.entry import Severity
from plimsoll.suite.rounds.actions import Emit
from plimsoll.suite.rounds.baseline import with_baseline
from plimsoll.suite.rounds.causes import text_of
from plimsoll.suite.rounds.observed import Observed
from plimsoll.suite.rounds.state import State

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
