"""Whatever users write into a run's state: looks at the run raise no error, and it ends."""

import json

import pytest

from support.pretend_cluster import Document
from support.pretend_world import PretendWorld, run_of, until_trial

FAR = 10**100
EDITS: dict[str, Document] = {
    "a number of trials that no text has room for": {"trialsTotal": FAR},
    "more trials than the plan has": {"phase": "Measuring", "trialsTotal": 10**7, "trialsDone": 10**6},
    "a prefill of the largest size": {"phase": "Preparing", "prefill": {"doneBytes": 1, "totalBytes": 2**63 - 1}},
    "a larger prefill": {"phase": "Preparing", "prefill": {"doneBytes": 1, "totalBytes": FAR}},
    "a time that is none": {"phase": "Measuring", "inFlightSince": "yesterday"},
    "a time without a zone": {"phase": "Measuring", "inFlightSince": "2026-01-31T12:00:00"},
    "the last time": {"phase": "Measuring", "inFlightSince": "9999-12-31T23:59:59Z"},
    "a time before all others": {"phase": "Measuring", "inFlightSince": "0001-01-01T00:00:00Z"},
    "a million missing clients": {"missing": [1] * 10**6},
}


def edit_state(world: PretendWorld, name: str, change: Document) -> None:
    for config_map in [*world.cluster.kube.objects("ConfigMap")]:
        if config_map["metadata"]["name"] == f"{name}-state":

            def edit(new: Document) -> None:
                state = json.loads(new["data"]["state.json"]) | change
                new["data"]["state.json"] = json.dumps(state)

            world.cluster.edit(config_map, edit)


def has_state(world: PretendWorld) -> bool:
    return any(obj["metadata"]["name"] == "a-state" for obj in world.cluster.kube.objects("ConfigMap"))


def is_admitted(world: PretendWorld, uid: str) -> bool:
    return world.conditions(uid).get("Admitted", {}).get("status") == "True"


@pytest.mark.parametrize("change", EDITS.values(), ids=EDITS)
def test_a_state_that_a_user_has_edited_does_not_keep_the_run_from_its_end(
    world: PretendWorld, change: Document
) -> None:
    """Without a conductor that would overwrite it."""
    uid = world.create("a")
    world.until(lambda: has_state(world))
    for _ in range(12):
        edit_state(world, "a", change)
        world.operator.watch_all()
        world.look(uid)
        world.cluster.step()
        world.cluster.pass_time(60)
    assert world.conditions(uid)["Succeeded"]["status"] == "False"


@pytest.mark.parametrize("change", EDITS.values(), ids=EDITS)
def test_a_state_that_is_edited_while_a_conductor_measures_raises_no_error(
    world: PretendWorld, change: Document
) -> None:
    uid = world.create("a")
    until_trial(world)
    edit_state(world, "a", change)
    for _ in range(3):
        world.operator.watch_all()
        world.look(uid)
    assert is_admitted(world, uid)


def test_a_measured_run_shows_all_its_trials_although_its_conductor_died_before_it_wrote_the_last(
    world: PretendWorld,
) -> None:
    uid = world.create("a")
    assert world.until_ended(uid)["status"] == "True"
    edit_state(world, "a", {"trialsDone": 3})
    world.operator.watch_all()
    world.look(uid)
    assert run_of(world, uid)["status"]["display"]["progress"] == "4/4"
