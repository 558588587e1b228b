"""The turns of a round, and the runs that measure them."""

from collections.abc import Mapping
from dataclasses import dataclass

from plimsoll.api.names import API_VERSION, GROUP, RUN_KIND, SUITE_KIND
from plimsoll.api.suite import BenchmarkSuite
from plimsoll.suite.children import Turn, child_name, turns_of
from plimsoll.suite.merging import variant_spec
from plimsoll.suite.rounds.actions import Object
from plimsoll.suite.rounds.observed import Observed, OwnedRun, Suite
from plimsoll.suite.rounds.state import ActiveRound

LABEL_SUITE = f"{GROUP}/suite"
LABEL_VARIANT = f"{GROUP}/variant"
LABEL_ROUND = f"{GROUP}/round"
LABEL_REPEAT = f"{GROUP}/repeat"


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A turn of a round.

    Attributes:
        run: the run that measures it; None before it is created, after it was deleted, if a list lacks it, and if
            another run has its name, which measures something else.

    """

    turn: Turn
    name: str
    run: OwnedRun | None


def members_of(seen: Observed, suite: BenchmarkSuite, active: ActiveRound) -> tuple[Member, ...]:
    """Return the turns of the active round in their order. The suite must measure what the round measures."""
    measures = seen.suite.specification.measures
    # One that was seen and recorded is it whatever it measures: another version may read the same differently.
    runs = {run.name: run for run in seen.runs if run.uid == active.uid or run.measures == measures.get(run.variant)}
    return tuple(
        Member(turn=turn, name=name, run=runs.get(name))
        for turn in turns_of(suite.spec, active.seed)
        for name in [child_name(suite, turn, active.minute, seen.suite.uid)]
    )


def run_object(owner: Suite, suite: BenchmarkSuite, turn: Turn, minute: int) -> Object:
    """Return the manifest of a turn's run. It is garbage-collected with the suite, and has no labels of it."""
    variant = next(one for one in suite.spec.variants if one.name == turn.variant)
    labels = {
        LABEL_SUITE: owner.name,
        LABEL_VARIANT: turn.variant,
        LABEL_ROUND: str(minute),
        LABEL_REPEAT: str(turn.repeat),
    }
    return {
        "apiVersion": API_VERSION,
        "kind": RUN_KIND,
        "metadata": {
            "name": child_name(suite, turn, minute, owner.uid),
            "namespace": owner.namespace,
            "labels": labels,
            "ownerReferences": [_owner_reference(owner)],
        },
        "spec": variant_spec(suite.spec.run, variant),
    }


def variant_objects(owner: Suite, suite: BenchmarkSuite, minute: int) -> Mapping[str, Object]:
    """Return the manifest of each variant's first run in a round, by the variant's name."""
    return {turn.variant: run_object(owner, suite, turn, minute) for turn in turns_of(suite.spec, 0) if not turn.repeat}


def _owner_reference(owner: Suite) -> Object:
    return {
        "apiVersion": API_VERSION,
        "kind": SUITE_KIND,
        "name": owner.name,
        "uid": owner.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
