"""What users may write into a run's state, or have a conductor write, never blocks the runs of others on its target."""

import json
from typing import Any

import pytest

from plimsoll.lifecycle import step as steps
from plimsoll.operator import runs
from support.pretend_cluster import Document
from support.pretend_world import SETTINGS, PretendWorld, until_trial

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


def watch_and_look(world: PretendWorld, *uids: str) -> None:
    """Look as kopf's daemons do, which try again after an unexpected error."""
    world.operator.watch_all()
    for uid in uids:
        try:
            world.look(uid)
        except RuntimeError:
            world.operator.runs.records.pop(uid, None)


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


def test_a_run_whose_looks_fail_blocks_its_target_for_a_limited_time(
    world: PretendWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    stuck = world.create("a")
    world.until(lambda: is_admitted(world, stuck))
    waiting = world.create("b")
    world.round()

    def fail(run: Any, *rest: Any) -> Any:
        if run.uid == stuck:
            raise RuntimeError("an observation that nobody has thought of")
        return steps.step(run, *rest)

    monkeypatch.setattr(runs, "step", fail)
    watch_and_look(world, stuck, waiting)
    world.cluster.pass_time(SETTINGS.hold_seconds - 1)
    watch_and_look(world, stuck, waiting)
    assert not is_admitted(world, waiting)
    world.cluster.pass_time(2)
    watch_and_look(world, stuck, waiting)
    assert is_admitted(world, waiting)


def test_a_run_that_failed_for_a_while_keeps_its_place(world: PretendWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    measured = world.create("a")
    world.until(lambda: is_admitted(world, measured))
    waiting = world.create("b")
    world.round()

    def broken(*_: Any) -> Any:
        raise RuntimeError

    with monkeypatch.context() as patched:
        patched.setattr(runs, "step", broken)
        watch_and_look(world, measured)
    watch_and_look(world, measured)
    world.cluster.pass_time(SETTINGS.hold_seconds + 1)
    watch_and_look(world, waiting)
    assert not is_admitted(world, waiting)
