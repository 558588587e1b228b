"""The rounds of a suite: turns and their runs, the baseline of later rounds, and which rounds are kept.

A replaced baseline is remembered until the new one is established; naming one of its rounds restores it.
"""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime

from plimsoll.api.names import API_VERSION, GROUP, RUN_KIND, SUITE_KIND
from plimsoll.api.reasons.entry import Event, Severity
from plimsoll.api.suite import BenchmarkSuite
from plimsoll.api.suite_status import (
    MAX_ANNOTATION_CHARACTERS,
    MAX_DROPPED,
    MAX_VERSION_CHARACTERS,
    PINNED_ROUNDS,
    UNUSABLE_ROUNDS,
    ActiveRound,
    Baseline,
    Cause,
    EndedRound,
    RoundVerdict,
    minute_of_round,
    round_label,
)
from plimsoll.suite.children import Turn, child_name, turns_by_name, turns_of, variant_spec
from plimsoll.suite.rounds.observed import JUDGED, Object, Observed, OwnedRun, State, Suite

REQUEST_ROUND = f"{GROUP}/request-round"  # annotation: each new text requests a round
ACCEPT_ROUND = f"{GROUP}/accept-round"
"""Annotation: the start of a round. Earlier rounds are no longer a baseline; naming one of them brings them back."""
_ESTABLISHED = 3  # accepted rounds of an established baseline; fewer do not show how much rounds differ by themselves


def start_baseline(state: State, chosen: EndedRound) -> State:
    """Return the state whose baseline starts with a round that the user accepts; `settle_baseline` has to follow.

    A round of the former baseline restores that baseline's later rounds; any other round keeps the later accepted ones.
    """
    same_baseline = (ended for ended in state.rounds if (ended.former if chosen.former else ended.accepted))
    later = {each.minute for each in same_baseline if each.minute > chosen.minute and each.digest == chosen.digest}
    state = _replaced(state, later | {chosen.minute})
    baseline = (state.baseline or Baseline()).model_copy(update={"first": chosen.minute})
    return state.model_copy(update={"baseline": baseline})


def settle_baseline(state: State) -> State:
    """Return the state with the last accepted digest as baseline, its pinned rounds, and the former one if needed."""
    accepted = [ended for ended in state.rounds if ended.accepted]
    baseline = {ended.minute for ended in accepted if ended.digest == accepted[0].digest}
    state = _replaced(state, baseline)
    return _marked(state, baseline, set() if _is_established(state) else _former(state))


def _former(state: State) -> set[int]:
    return {ended.minute for ended in state.rounds if ended.former}


def last_judged(state: State) -> EndedRound | None:
    """Return the last round that was evaluated; a failed one proves neither a regression nor a recovery."""
    return next((ended for ended in state.rounds if ended.verdict in JUDGED), None)


def decisive_round(state: State) -> EndedRound | None:
    """Return the last round that shows whether there is a regression: neither an Inconclusive nor a Failed one does."""
    decisive = {RoundVerdict.NO_REGRESSION, RoundVerdict.REGRESSED}
    return next((ended for ended in state.rounds if ended.verdict in decisive), None)


def open_regression(state: State) -> EndedRound | None:
    """Return the last round that regressed; None if a later one did not, or if a user accepted it or a later one."""
    last = decisive_round(state)
    first = (state.baseline or Baseline()).first or 0
    return last if last and last.verdict is RoundVerdict.REGRESSED and last.minute > first else None


def _replaced(state: State, baseline: AbstractSet[int]) -> State:
    dismissed = {ended.minute for ended in state.rounds if ended.accepted} - baseline
    former = _former(state) - baseline
    if not dismissed:
        return _marked(state, baseline, former)
    former = dismissed if _is_established(state) else former or dismissed
    since = (state.baseline or Baseline()).model_copy(update={"since": state.rounds[0].minute})
    return _marked(state, baseline, former).model_copy(update={"baseline": since})


def _marked(state: State, accepted: AbstractSet[int], former: AbstractSet[int]) -> State:
    marks = {"accepted": accepted, "former": former, "pinned": sorted(accepted)[:PINNED_ROUNDS]}
    rounds = tuple(
        ended.model_copy(update={mark: ended.minute in minutes for mark, minutes in marks.items()})
        for ended in state.rounds
    )
    return state.model_copy(update={"rounds": rounds})


def _is_established(state: State) -> bool:
    """Whether enough rounds are accepted; of those before the baseline replaced another one, one counts."""
    since = (state.baseline or Baseline()).since or 0
    accepted = [ended.minute for ended in state.rounds if ended.accepted]
    newer = [minute for minute in accepted if minute > since]
    return len(newer) + (len(newer) < len(accepted)) >= _ESTABLISHED


def cause_due(seen: Observed, suite: BenchmarkSuite, state: State, due: datetime | None) -> Cause | None:
    """Return why a round is due, the first cause of several; None if none is. `due` is a schedule time."""
    if not seen.measures_as(state):
        return Cause.CHANGE
    if text_of(seen, REQUEST_ROUND) not in {"", state.requested_round}:
        return Cause.REQUESTED
    if due is not None:
        return Cause.SCHEDULED
    versions = {version_of(seen), state.ceph_version} - {"", None}
    return Cause.CEPH_VERSION if suite.spec.triggers.ceph_version and len(versions) > 1 else None


def version_of(seen: Observed) -> str:
    """Return the version of Ceph, as far as the status remembers it; empty if unknown."""
    return seen.ceph_version[:MAX_VERSION_CHARACTERS]


def text_of(seen: Observed, annotation: str) -> str:
    """Return the text of an annotation, as far as the status remembers it; empty if absent."""
    return seen.suite.annotations.get(annotation, "")[:MAX_ANNOTATION_CHARACTERS]


def accept_round(seen: Observed, state: State) -> tuple[State, tuple[Event, ...]]:
    """Return the state after handling the annotation, and the event; one that names the active round has to wait."""
    text = text_of(seen, ACCEPT_ROUND)
    minute = minute_of_round(text)
    if text in {"", state.accepted_round} or (state.round is not None and minute == state.round.minute):
        return state, ()
    state = state.model_copy(update={"accepted_round": text})
    # A user may accept any round that was evaluated with all of its runs.
    acceptable = [ended for ended in state.rounds if ended.complete and ended.verdict in JUDGED]
    chosen = next((ended for ended in acceptable if ended.minute == minute), None)
    if chosen is None:
        rounds = ", ".join(ended.name for ended in acceptable)
        message = (
            f"annotation {ACCEPT_ROUND}: {text!r} is not the start of a round that was evaluated with all of its runs; "
            f"{f'these can be accepted: {rounds}' if rounds else 'no round can be accepted yet'}"
        )
        return state, (Event(severity=Severity.WARNING, reason="RoundUnknown", message=message),)
    message = f"round {chosen.name} is accepted: later rounds are compared with it and its successors"
    return start_baseline(state, chosen), (Event(severity=Severity.NORMAL, reason="RoundAccepted", message=message),)


LABEL_SUITE = f"{GROUP}/suite"
LABEL_VARIANT = f"{GROUP}/variant"
LABEL_ROUND = f"{GROUP}/round"
LABEL_REPEAT = f"{GROUP}/repeat"


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A turn of a round."""

    turn: Turn
    name: str
    # The run that measures it; None before it is created, after it was deleted, if a list lacks it, and if another run
    # has its name, which measures something else
    run: OwnedRun | None


def members_of(seen: Observed, suite: BenchmarkSuite, active: ActiveRound) -> tuple[Member, ...]:
    """Return the turns of the active round in their order. The suite must measure what the round measures."""
    measures = seen.suite.specification.measures
    # The recorded run counts with any digest: another version may compute it differently.
    runs = {
        run.name: run for run in seen.runs if run.uid == active.current_uid or run.measures == measures.get(run.variant)
    }
    return tuple(
        Member(turn=turn, name=name, run=runs.get(name))
        for name, turn in turns_by_name(suite, minute=active.minute, seed=active.seed, uid=seen.suite.uid).items()
    )


def run_object(owner: Suite, suite: BenchmarkSuite, turn: Turn, minute: int) -> Object:
    """Return the manifest of a turn's run. It is garbage-collected with the suite, and has no labels of it."""
    variant = next(variant for variant in suite.spec.variants if variant.name == turn.variant)
    labels = {
        LABEL_SUITE: owner.name,
        LABEL_VARIANT: turn.variant,
        LABEL_ROUND: round_label(minute),
        LABEL_REPEAT: str(turn.repeat),
    }
    reference = {"apiVersion": API_VERSION, "kind": SUITE_KIND, "name": owner.name, "uid": owner.uid}
    metadata = {
        "name": child_name(suite, turn, minute, owner.uid),
        "namespace": owner.namespace,
        "labels": labels,
        "ownerReferences": [reference | {"controller": True, "blockOwnerDeletion": True}],
    }
    spec = variant_spec(suite.spec.run, variant)
    return {"apiVersion": API_VERSION, "kind": RUN_KIND, "metadata": metadata, "spec": spec}


def variant_objects(owner: Suite, suite: BenchmarkSuite, minute: int) -> Mapping[str, Object]:
    """Return the manifest of each variant's first run in a round, by the variant's name."""
    return {turn.variant: run_object(owner, suite, turn, minute) for turn in turns_of(suite.spec, 0) if not turn.repeat}


def drop_rounds(seen: Observed, state: State, keep: int) -> State:
    """Return the state with the rounds that a user, or a later verdict, may need; all while a round is measured."""
    state = settle_baseline(state)
    if state.round is not None:
        return state
    usable, unusable = ([it for it in state.rounds if (it.verdict in JUDGED) is judged] for judged in (True, False))
    pinned = [ended for ended in state.rounds if ended.pinned]
    former = [ended for ended in state.rounds if ended.former]
    kept = (*usable[:keep], *unusable[:UNUSABLE_ROUNDS], *pinned, *former[-PINNED_ROUNDS:], decisive_round(state))
    needed = {ended.minute for ended in kept if ended}
    dropped = {ended.minute for ended in state.rounds} - needed | {*state.dropped}
    # If not all fit, those with runs precede the others: without them it would seem that the status was lost.
    with_runs = {run.minute for run in seen.runs}
    named = sorted(dropped, key=lambda minute: (minute in with_runs, minute), reverse=True)[:MAX_DROPPED]
    rounds = tuple(ended for ended in state.rounds if ended.minute in needed)
    return state.model_copy(update={"rounds": rounds, "dropped": tuple(sorted(named, reverse=True))})


def lost_runs(seen: Observed, state: State) -> tuple[OwnedRun, ...]:
    """Return the runs of rounds that are not in the status, oldest first: it was lost, or set back."""
    return tuple(run for run in _unknown(seen, state) if not run.is_ahead)


def strange_runs(seen: Observed, state: State) -> tuple[OwnedRun, ...]:
    """Return the runs that the suite cannot have created: another client named it as their owner."""
    return tuple(run for run in _unknown(seen, state) if run.is_ahead)


def _unknown(seen: Observed, state: State) -> list[OwnedRun]:
    minutes = {*state.dropped, *(it.minute for it in (state.round, *state.rounds) if it)}
    return sorted((run for run in seen.runs if run.minute not in minutes), key=age_of)


def age_of(run: OwnedRun) -> tuple[int, str]:
    return run.minute, run.name
