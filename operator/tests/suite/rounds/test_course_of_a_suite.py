"""One life of a suite, with an operator that is killed at any request, and lists that lag: it ends the same way."""

from collections.abc import Iterator
from itertools import count

import pytest

from plimsoll.api.suite_status import RoundVerdict, round_name
from support.pretend_suites import KilledError, WatchedSuites

REQUEST = "plimsoll.dev/request-round"
ACCEPT = "plimsoll.dev/accept-round"
GOOD, WORSE, UNCLEAR = RoundVerdict.NO_REGRESSION, RoundVerdict.REGRESSED, RoundVerdict.INCONCLUSIVE

_LEAST_ACTIONS = 90


def settle(world: WatchedSuites) -> None:
    """Have the operator look until nothing is left to do, and lists are no longer old."""
    idle = 0
    while idle <= world.lag:
        try:
            idle = 0 if world.look().actions else idle + 1
        except KilledError:
            world.restart()
            idle = 0


def measure(world: WatchedSuites, verdict: RoundVerdict) -> None:
    """Have all runs of a round end."""
    world.verdict = verdict
    settle(world)
    while world.finish() is not None:
        settle(world)
    world.pass_time(minutes=1)


def regressed(world: WatchedSuites) -> str:
    return str(world.condition("Regressed")["status"])


def life(world: WatchedSuites) -> Iterator[object]:
    """Yield what users see at certain times."""
    for number, verdict in enumerate([GOOD, WORSE, UNCLEAR]):
        world.annotations[REQUEST] = str(number)
        measure(world, verdict)
        yield regressed(world), world.condition("Ready")["status"]
    world.annotations[ACCEPT] = round_name(world.rounds[1]["minute"])
    settle(world)
    yield regressed(world), [one["accepted"] for one in world.rounds]
    world.change(repeat=2)
    settle(world)
    world.change(suspend=True)
    world.finish()
    settle(world)
    yield len(world.created), world.condition("Ready")["reason"]
    world.change(suspend=False)
    settle(world)
    world.stuck = True
    world.change(repeat=1)
    settle(world)
    world.change(repeat=2)
    settle(world)
    yield "round" in world.status
    world.vanish()
    world.stuck = False
    measure(world, GOOD)
    yield world.rounds[0]["verdict"], len(world.created)
    world.change(schedule={"cron": "0 * * * *"})
    settle(world)
    world.pass_time(days=1)
    settle(world)
    world.runs.pop(world.created[-1])
    measure(world, GOOD)
    yield world.rounds[0]["verdict"], world.rounds[0]["complete"], [one["cause"] for one in world.rounds]
    world.change(keep=1)
    settle(world)
    yield len(world.rounds), {run.minute for run in world.own} == {one["minute"] for one in world.rounds}


def lived(*, kill_in: int | None, kill_after: bool = False, lag: int = 0) -> tuple[list[object], WatchedSuites]:
    world = WatchedSuites({"repeat": 1, "gate": True, "keep": 10})
    world.kill_in, world.kill_after, world.lag = kill_in, kill_after, lag
    seen = [*life(world)]
    world.delete_suite()
    assert not world.look().actions
    assert not world.own
    return seen, world


UNDISTURBED, _ = lived(kill_in=None)


def test_undisturbed_life() -> None:
    assert UNDISTURBED == [
        ("False", "True"),
        ("True", "False"),
        ("True", "False"),
        ("Unknown", [True, True, False]),
        (7, "Suspended"),
        False,
        ("NoRegression", 12),
        ("Inconclusive", False, ["Scheduled", "Change", "Change", "Requested", "Requested", "Change"]),
        (4, True),
    ]


@pytest.mark.parametrize(("lag", "kill_after"), [(0, True), (3, False)])
def test_life_with_a_killed_operator_is_the_same(lag: int, *, kill_after: bool) -> None:
    for kill_in in count(1):
        seen, world = lived(kill_in=kill_in, kill_after=kill_after, lag=lag)
        assert seen == UNDISTURBED, f"killed at action {kill_in}"
        if world.kill_in is not None:
            break
    assert kill_in > _LEAST_ACTIONS
