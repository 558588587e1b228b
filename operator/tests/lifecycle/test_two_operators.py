"""An operator that does not know what another one has done changes nothing."""

from contextlib import suppress

import pytest

from plimsoll.kube.port import ApiError, ConflictError
from support.pretend_world import PretendOperator, PretendWorld

LOOKS = 3


def look(world: PretendWorld, operator: PretendOperator, uid: str) -> None:
    with suppress(ApiError):
        world.wait(operator.look(uid))


@pytest.mark.parametrize("phase", ["Admitted", "ClientsReady"])
@pytest.mark.parametrize("has_looked", [True, False], ids=["it has looked before", "its watch is late"])
def test_a_run_that_has_ended_is_not_begun_again(phase: str, *, has_looked: bool) -> None:
    """The other operator was frozen since the run was in that phase."""
    with PretendWorld() as world:
        uid = world.create("a")
        world.until(lambda: world.conditions(uid).get(phase, {}).get("status") == "True")
        frozen = PretendOperator(world.cluster)
        if has_looked:
            look(world, frozen, uid)
        world.until_settled(uid)
        before = world.cluster.kube.objects()
        assert world.conditions(uid)["Succeeded"]["status"] == "True"
        for _ in range(LOOKS):
            look(world, frozen, uid)
        assert world.cluster.kube.objects() == before


def test_a_status_of_another_operator_is_a_conflict_and_read_again() -> None:
    with PretendWorld() as world:
        uid = world.create("a")
        world.until(lambda: world.client_pods(uid))
        frozen = PretendOperator(world.cluster)
        look(world, frozen, uid)
        world.until_settled(uid)
        with pytest.raises(ConflictError):
            world.wait(frozen.look(uid))
        run = world.run(uid)
        assert run is not None
        assert frozen.runs.records[uid].status == run["status"]


def test_a_change_of_the_run_itself_is_no_conflict() -> None:
    """Users change runs all the time, which is no reason to wait for the next look."""
    with PretendWorld() as world:
        uid = world.create("a")
        world.until(lambda: world.client_pods(uid))
        world.change(uid, suspend=True)
        world.operator.watch_all()
        decision = world.look(uid)
        assert decision is not None
        assert world.conditions(uid)["Succeeded"]["reason"] == "Suspended"
