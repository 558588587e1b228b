"""How a status counts, and that it does not report what is over."""

import re

from plimsoll.measure.checks.judge import CHECKS
from support.pretend_world import PretendWorld, create

(REMEDY,) = [check.remedy for check in CHECKS if check.reason == "Unreplicated"]
UNREPLICATED = f"What to do about Unreplicated: {REMEDY}"


def test_messages_about_one_point_use_the_singular(world: PretendWorld) -> None:
    workload = {"name": "w", "fio": {"ioDepth": [1]}, "runtimeSeconds": 4, "rampSeconds": 1}
    uid = world.create("a", clients={"count": 1}, workloads=[workload], repetitions=1)
    messages = set()
    while world.conditions(uid).get("Succeeded", {}).get("status") not in {"True", "False"}:
        world.round(1.0)
        messages |= {entry["message"] for entry in world.conditions(uid).values()}
    message = world.conditions(uid)["Succeeded"]["message"]
    assert message == f"the only point is measured and Suspect: Unreplicated. {UNREPLICATED}"
    wrong = re.compile(r"\b1 \w+s (are|have)\b|\b(0|1) (PVCs|claims|points|clients)\b")
    assert not [text for text in messages if wrong.search(text)]


def test_a_run_that_is_deleted_while_it_measures_does_not_say_that_it_measures(world: PretendWorld) -> None:
    uid = world.create("a")
    world.until(lambda: world.conductors.loads)
    world.until(lambda: world.conditions(uid)["Succeeded"]["reason"] == "Measuring")
    run = world.run(uid)
    assert run is not None
    world.cluster.delete(run)
    world.operator.watch_all()
    world.look(uid)
    assert world.conditions(uid)["Succeeded"]["status"] == "Unknown"
    assert world.conditions(uid)["Succeeded"]["reason"] == "CleaningUp"
    assert world.conditions(uid)["Succeeded"]["message"] == "the run was deleted before it ended"


def test_a_run_on_images_mentions_no_pvcs(world: PretendWorld) -> None:
    uid = create(world)
    world.until_ended(uid)
    messages = set()
    while world.conditions(uid).get("CleanedUp", {}).get("reason") != "Removed":
        world.look(uid)
        messages.add(world.conditions(uid)["CleanedUp"]["message"])
        world.round(1.0)
    assert not [text for text in messages if "claim" in text or "PVC" in text]
