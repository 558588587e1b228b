"""The turns of a round, and the runs that measure them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from plimsoll.api.names import API_VERSION, GROUP, RUN_KIND, SUITE_KIND
from plimsoll.api.suite import BenchmarkSuite
from plimsoll.api.suite_status import (
    MAX_DROPPED,
    PINNED_ROUNDS,
    UNUSABLE_ROUNDS,
    ActiveRound,
    RoundChildren,
    RoundVerdict,
    round_label,
)
from plimsoll.suite.children import Turn, child_name, turns_by_name, turns_of, variant_spec
from plimsoll.suite.rounds.baseline import decisive_round, settle_baseline
from plimsoll.suite.rounds.observed import JUDGED, Object, Observed, OwnedRun, State, Suite

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
    owner_reference = {
        "apiVersion": API_VERSION,
        "kind": SUITE_KIND,
        "name": owner.name,
        "uid": owner.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return {
        "apiVersion": API_VERSION,
        "kind": RUN_KIND,
        "metadata": {
            "name": child_name(suite, turn, minute, owner.uid),
            "namespace": owner.namespace,
            "labels": {
                LABEL_SUITE: owner.name,
                LABEL_VARIANT: turn.variant,
                LABEL_ROUND: round_label(minute),
                LABEL_REPEAT: str(turn.repeat),
            },
            "ownerReferences": [owner_reference],
        },
        "spec": variant_spec(suite.spec.run, variant),
    }


def variant_objects(owner: Suite, suite: BenchmarkSuite, minute: int) -> Mapping[str, Object]:
    """Return the manifest of each variant's first run in a round, by the variant's name."""
    return {turn.variant: run_object(owner, suite, turn, minute) for turn in turns_of(suite.spec, 0) if not turn.repeat}


def advance(seen: Observed, active: ActiveRound, members: Sequence[Member]) -> ActiveRound:
    """Return the round after all turns that are over."""
    while not active.is_measured:
        done, total = active.children.done, active.children.total
        member = members[done]
        was_seen = active.current == member.name and active.current_uid is not None
        if member.run is None and not (was_seen and member.name in seen.memory.absent):
            return active if was_seen else active.model_copy(update={"current": member.name, "current_uid": None})
        if member.run is not None and not member.run.is_finished:
            return active.model_copy(update={"current": member.name, "current_uid": member.run.uid})
        children = RoundChildren(done=done + 1, total=total)
        active = active.model_copy(update={"children": children, "current": None, "current_uid": None})
    return active


def next_member(seen: Observed, active: ActiveRound, members: Sequence[Member]) -> Member | None:
    """Return the turn whose run is to be created; None while any other run of the suite may load the storage.

    If another run has its name, the creation is refused, which names that run.
    """
    if active.is_measured or active.current_uid:
        return None
    member = members[active.children.done]
    is_loaded = any(run.name != member.name for run in seen.unfinished)
    return None if is_loaded or member.run is not None else member


def unconfirmed_name(seen: Observed, active: ActiveRound, members: Sequence[Member]) -> str:
    """Return the name of a run that was seen, and that the list lacks or shows as it was before; empty if none is.

    A measured round needs every run, or the certainty that it is gone.
    """
    if not active.is_measured:
        is_unlisted = active.current_uid and members[active.children.done].run is None
        return (active.current or "") if is_unlisted else ""
    asked = seen.memory.absent | seen.memory.found.keys()
    doubtful = (member.name for member in members if member.run is None or not member.run.is_finished)
    return next((name for name in doubtful if name not in asked), "")


def drop_rounds(seen: Observed, state: State, keep: int) -> State:
    """Return the state with the rounds that a user, or a later verdict, may need.

    All rounds are kept while a round is measured against them.
    """
    state = settle_baseline(state)
    if state.round is not None:
        return state
    usable = [ended.minute for ended in state.rounds if ended.verdict in JUDGED]
    unusable = [ended.minute for ended in state.rounds if ended.verdict not in JUDGED]
    pinned = [ended.minute for ended in state.rounds if ended.pinned]
    former = [ended.minute for ended in state.rounds if ended.former]
    decisive = decisive_round(state)
    needed = {*usable[:keep], *unusable[:UNUSABLE_ROUNDS], *pinned, *former[-PINNED_ROUNDS:]}
    needed |= {decisive.minute} if decisive else set()
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
    minutes = {ended.minute for ended in state.rounds} | {*state.dropped}
    minutes |= {state.round.minute} if state.round else set()
    return sorted((run for run in seen.runs if run.minute not in minutes), key=_age)


def forget_abandoned(seen: Observed, state: State) -> State:
    """Return the state after an abandoned round's run has finished, or the API server did not find it."""
    name = state.abandoned_run
    is_over = name in seen.memory.absent or any(run.name == name and run.is_finished for run in seen.runs)
    return state.model_copy(update={"abandoned_run": None}) if is_over else state


def abandoned_run(seen: Observed, state: State) -> OwnedRun | None:
    """Return an unfinished run of an abandoned round; None if there is none that is not being deleted yet.

    A run of any other round was finished when its round ended: a list that shows it unfinished is old.
    """
    abandoned = {ended.minute for ended in state.rounds if ended.verdict is RoundVerdict.SUPERSEDED}
    return _first(run for run in seen.unfinished if run.minute in abandoned)


def obsolete_run(seen: Observed, state: State) -> OwnedRun | None:
    """Return a run of a round that was dropped; None if there is none that is not being deleted yet."""
    return _first(run for run in seen.runs if run.minute in state.dropped)


def _first(runs: Iterable[OwnedRun]) -> OwnedRun | None:
    return min((run for run in runs if not run.is_deleting), key=_age, default=None)


def _age(run: OwnedRun) -> tuple[int, str]:
    return run.minute, run.name
