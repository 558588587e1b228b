"""OSDs that a conductor takes away in a trial, and that it, its successor or the teardown gives back."""

import asyncio
import dataclasses
import json
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import hypothesis.strategies as st
import pytest
from hypothesis import given

from conductor.test_options import KEY, OPTIONS, KilledError, MortalCommands, kill, torn_down
from plimsoll.api.names import FailureReason
from plimsoll.api.run import Disturbance
from plimsoll.api.storage import DisturbedOsds
from plimsoll.ceph.watch import LAG, Outage
from plimsoll.conductor.ceph.commands import Commands
from plimsoll.conductor.ceph.options import give_back, record_osds, restore_options, set_options, take_away
from plimsoll.conductor.ceph.watch import CephCluster
from plimsoll.conductor.phases import ClusterView
from plimsoll.measure.intake import TrialFacts
from plimsoll.plan.document import Plan
from support.ceph_programs import GOLDEN, State
from support.pretended_ceph import (
    TARGET,
    PretendedCeph,
    attend_until,
    cluster_of,
    is_prepared,
    mentions,
    plan_of,
    pretend_ceph,
)

Action = Literal["Out", "Down"]
FACTS = TrialFacts(clients=(0,), runtime_seconds=1, ramp_seconds=0, t0_nanoseconds=0)
RULES = [
    {
        "rule_id": number,
        "rule_name": name,
        "steps": [
            {"op": "take", "item": -1, "item_name": "default"},
            {"op": "chooseleaf_firstn", "num": 0, "type": "host"},
        ],
    }
    for number, name in enumerate(("replicated_rule", "erasure"))
]


@pytest.fixture
def ceph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PretendedCeph:
    pretended = pretend_ceph(tmp_path, monkeypatch)
    with pretended.changing() as state:
        state["osd-crush-rule-dump"] = RULES
    return pretended


def disturbance(action: Action = "Out", count: int = 1, seconds: int = 600) -> Disturbance:
    osds = DisturbedOsds(action=action, count=count)
    # Shorter than a specification permits.
    return Disturbance.model_construct(after_seconds=1, osds=osds, for_seconds=seconds)


def disturbing(wanted: Disturbance, **target: Any) -> Plan:
    plan = plan_of(TARGET.model_copy(update={"actions": (wanted.osds.action,), **target}))
    points = tuple(point.model_copy(update={"disturb": wanted}) for point in plan.points)
    return plan.model_copy(update={"points": points})


def osds(ceph: PretendedCeph) -> dict[str, tuple[str, float, bool]]:
    """Return state, reweight and whether it may not come up of each OSD."""
    tree = ceph.state.get("osd-tree") or json.loads((GOLDEN / "osd-tree.json").read_text())
    return {
        node["name"]: (node["status"], node["reweight"], node.get("noup", False))
        for node in tree["nodes"]
        if node["type"] == "osd"
    }


IN = ("up", 1, False)
AWAY = {"Out": ("up", 0, False), "Down": ("down", 1, True)}


async def disturbed(ceph: PretendedCeph, cluster: CephCluster, wanted: Disturbance) -> None:
    """Begin a trial, and wait until its OSDs are away."""
    await attend_until(cluster, is_prepared)
    await cluster.begin()
    cluster.disturb(wanted, 0)
    async with asyncio.timeout(60):
        while osds(ceph)["osd.0"] != AWAY[wanted.osds.action]:
            await asyncio.sleep(0.02)


@pytest.mark.parametrize("action", ["Out", "Down"])
async def test_osds_are_recorded_then_taken_away_then_given_back(ceph: PretendedCeph, action: Action) -> None:
    cluster, wanted = cluster_of(disturbing(disturbance(action))), disturbance(action)
    await disturbed(ceph, cluster, wanted)
    assert osds(ceph) == {"osd.0": AWAY[action], "osd.1": IN, "osd.2": IN}
    assert json.loads(ceph.state["config-key"][KEY])["osds"] == [{"number": 0, "action": action, "reweight": 1.0}]
    log = ceph.state["log"]
    first = next(number for number, command in enumerate(log) if command.startswith("ceph config-key set"))
    changes = [
        command for command in log[first + 1 :] if command.startswith(("ceph osd re", "ceph osd set", "ceph osd d"))
    ]
    assert changes[0] == ("ceph osd reweight 0 0.0" if action == "Out" else "ceph osd set-group noup osd.0")
    watch = (await cluster.end(FACTS, lambda _: None)).cluster
    assert watch is not None
    assert watch.outage is not None
    assert (watch.outage.osds, watch.outage.action, watch.outage.problem) == ((0,), action, "")
    assert 0 < watch.outage.start < watch.outage.end
    assert ({*osds(ceph).values()}, ceph.state["config-key"]) == ({IN}, {})
    assert ceph.state["denied"] == [], "the conductor has the rights for all of this"


async def test_an_outage_ends_before_any_sample_can_show_that_osds_are_back(
    ceph: PretendedCeph, monkeypatch: pytest.MonkeyPatch
) -> None:
    restored_at: list[int] = []

    async def give_back_later(commands: Commands, *, key: str) -> None:
        restored_at.append(time.time_ns())
        await give_back(commands, key=key)

    monkeypatch.setattr("plimsoll.conductor.ceph.options.give_back", give_back_later)
    wanted = disturbance()
    cluster = cluster_of(disturbing(wanted))
    await disturbed(ceph, cluster, wanted)
    watch = (await cluster.end(FACTS, lambda _: None)).cluster
    assert watch is not None
    assert watch.outage is not None
    *_, restored = restored_at  # the preparation gives OSDs back, too
    assert watch.outage.start < watch.outage.end <= restored


async def test_they_come_back_by_themselves(ceph: PretendedCeph) -> None:
    wanted = disturbance("Down", seconds=0)
    cluster = cluster_of(disturbing(wanted))
    await attend_until(cluster, is_prepared)
    await cluster.begin()
    cluster.disturb(wanted, 0)
    async with asyncio.timeout(60):
        while not ceph.commands("ceph config-key rm"):
            await asyncio.sleep(0.02)
    assert ({*osds(ceph).values()}, ceph.commands("ceph osd down")) == ({IN}, ["ceph osd down 0"])


@pytest.mark.parametrize("action", ["Out", "Down"])
@pytest.mark.parametrize("by", ["teardown", "successor", "release"])
async def test_whoever_comes_next_gives_back_what_a_conductor_left(
    ceph: PretendedCeph, action: Action, by: str
) -> None:
    wanted = disturbance(action)
    cluster = cluster_of(disturbing(wanted))
    await disturbed(ceph, cluster, wanted)
    with suppress(asyncio.CancelledError):
        # As a conductor that is killed: nothing is given back.
        task = cluster._disturbing
        assert task is not None
        task.cancel()
        await task
    assert osds(ceph)["osd.0"] == AWAY[action]
    if by == "teardown":
        assert await torn_down() == ()
    elif by == "release":
        await cluster.release()
    else:
        await attend_until(cluster_of(disturbing(wanted)), is_prepared)
    assert ({*osds(ceph).values()}, ceph.state["config-key"]) == ({IN}, {})


async def test_osds_that_an_earlier_conductor_takes_away_late_are_given_back(ceph: PretendedCeph) -> None:
    """It learns only with its next write that it was replaced, and the later one has given back what it found."""
    wanted = disturbance("Out")
    earlier, later = cluster_of(disturbing(wanted)), cluster_of(disturbing(wanted))
    views: list[ClusterView] = []

    async def until(holds: Callable[[], object]) -> None:
        async with asyncio.timeout(30):
            while not holds():
                await asyncio.sleep(0.01)

    first = asyncio.create_task(earlier.attend(lambda _: None))
    await until(lambda: earlier._prepared.pools)
    await earlier.begin()
    second = asyncio.create_task(later.attend(views.append))
    await until(lambda: views and views[-1].prepared)
    earlier.disturb(wanted, 0)
    await until(lambda: osds(ceph)["osd.0"] == AWAY["Out"])
    with ceph.changing() as state:
        state["osdmap"] = {"num_in_osds": 2, "num_up_osds": 3}
    first.cancel()
    await until(lambda: osds(ceph)["osd.0"] == IN)
    second.cancel()
    await asyncio.gather(first, second, return_exceptions=True)


async def test_osds_that_cannot_be_given_back_close_the_gate_until_they_are(ceph: PretendedCeph) -> None:
    wanted = disturbance()
    cluster = cluster_of(disturbing(wanted))
    await disturbed(ceph, cluster, wanted)
    with ceph.changing() as state:
        state["refused"] = ["ceph osd reweight"]
    seen: list[ClusterView] = []
    await cluster.end(FACTS, seen.append)
    assert "are not given back" in seen[-1].problems[0]
    assert "access denied" in seen[-1].problems[0]
    with ceph.changing() as state:
        state["refused"] = []
    await cluster.calm(lambda _: None)
    assert osds(ceph)["osd.0"] == IN


async def test_they_are_given_back_as_soon_as_possible_and_not_only_when_the_trial_ends(ceph: PretendedCeph) -> None:
    wanted = disturbance("Down", seconds=0)
    cluster = cluster_of(disturbing(wanted))
    with ceph.changing() as state:
        state["refused"] = ["ceph osd unset-group"]
    is_refused = mentions("are not given back")

    def see(view: ClusterView) -> None:
        if view.prepared and cluster._disturbing is None:
            cluster.disturb(wanted, 0)
        if is_refused(view):
            with ceph.changing() as state:
                state["refused"] = []
        elif any(command.startswith("ceph config-key rm") for command in ceph.state["log"]):
            back.set()

    back = asyncio.Event()
    attending = asyncio.create_task(cluster.attend(see))
    async with asyncio.timeout(60):
        await back.wait()
    assert {*osds(ceph).values()} == {IN}
    watch = (await cluster.end(FACTS, lambda _: None)).cluster
    attending.cancel()
    assert watch is not None
    assert watch.outage is not None
    assert watch.outage.start < watch.outage.away < watch.outage.end


@pytest.mark.parametrize("by", ["end", "calm"])
async def test_the_gate_stays_closed_until_ceph_shows_what_their_return_changed(ceph: PretendedCeph, by: str) -> None:
    wanted = disturbance()
    cluster = cluster_of(disturbing(wanted))
    await disturbed(ceph, cluster, wanted)
    seen: list[ClusterView] = []
    if by == "end":
        await cluster.end(FACTS, seen.append)
    else:
        await cluster.calm(seen.append)
    assert "OSDs came back a moment ago" in " ".join(seen[-1].problems)
    outage = cluster._outage
    assert outage is not None
    cluster._outage = dataclasses.replace(outage, end=time.time_ns() - LAG)
    assert not any("came back a moment ago" in problem for problem in cluster._view(await cluster._look()).problems)


async def test_osds_that_came_back_by_themselves_are_noticed_by_their_numbers(ceph: PretendedCeph) -> None:
    wanted = disturbance("Down", count=2, seconds=1)
    with ceph.changing() as state:
        # A pool that stays active without two hosts.
        for pool in state["pools"]:
            pool["size"] = 4
    cluster = cluster_of(disturbing(wanted, neighbours=("*",)))
    await disturbed(ceph, cluster, wanted)
    assert ceph.commands("ceph osd down") == ["ceph osd down 0 1"]
    with ceph.changing() as state:
        # Another OSD dies at the same time, so that their number is as expected.
        for number, status in ((2, "up"), (4, "down")):
            state["osd-tree"]["nodes"][number]["status"] = status
    assert cluster._disturbing is not None
    await cluster._disturbing
    watch = (await cluster.end(FACTS, lambda _: None)).cluster
    assert watch is not None
    assert watch.outage is not None
    assert watch.outage.returned == (0,)


def lose_osd_2(state: State) -> None:
    state["osd-tree"]["nodes"][-1]["status"] = "down"
    state["osdmap"] = {"num_up_osds": state["osdmap"].get("num_up_osds", 3) - 1}


def lose_osd_0_unseen(state: State) -> None:
    state["osd-tree"]["nodes"][2]["status"] = "down"


def take_away_by_others(state: State) -> None:
    state["config-key"]["plimsoll/other/options"] = "{}"


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lose_osd_2, "other OSDs were down or out just before"),
        (lose_osd_0_unseen, "osd.0 is down or out already"),
        (take_away_by_others, "run other has set options of the OSDs, or taken OSDs away, which is not undone yet"),
    ],
)
async def test_no_osd_is_taken_away_once_the_cluster_may_not_survive_that(
    ceph: PretendedCeph, change: Callable[[State], None], problem: str
) -> None:
    wanted = disturbance()
    cluster = cluster_of(disturbing(wanted))
    await attend_until(cluster, is_prepared)
    await cluster.begin()
    with ceph.changing() as state:
        state["osd-tree"] = json.loads((GOLDEN / "osd-tree.json").read_text())
        state["osdmap"] = {}
        change(state)
    await cluster._look()
    cluster.disturb(wanted, 0)
    assert cluster._disturbing is not None
    await cluster._disturbing
    watch = (await cluster.end(FACTS, lambda _: None)).cluster
    assert watch is not None
    assert watch.outage is not None
    assert watch.outage.problem.startswith(problem)
    assert not ceph.commands("ceph osd reweight 0 0")
    assert KEY not in ceph.state["config-key"]


@pytest.mark.parametrize("action", ["Out", "Down"])
async def test_osds_are_given_back_at_once_if_another_one_is_lost(ceph: PretendedCeph, action: Action) -> None:
    wanted, back, lost = disturbance(action), asyncio.Event(), asyncio.Event()
    cluster = cluster_of(disturbing(wanted))

    def see(view: ClusterView) -> None:
        if view.prepared and cluster._outage is None:
            cluster.disturb(wanted, 0)
        elif cluster._outage and cluster._outage.away and not lost.is_set():
            lost.set()
            with ceph.changing() as state:
                lose_osd_2(state)
        elif ceph.commands("ceph config-key rm"):
            back.set()

    attending = asyncio.create_task(cluster.attend(see))
    async with asyncio.timeout(60):
        await back.wait()
    attending.cancel()
    states = {name: state for name, (state, _, _) in osds(ceph).items()}
    assert states == {"osd.0": "up", "osd.1": "up", "osd.2": "down"}


async def test_what_cannot_be_taken_away_is_said(ceph: PretendedCeph) -> None:
    wanted = disturbance("Down")
    cluster = cluster_of(disturbing(wanted))
    await attend_until(cluster, is_prepared)
    with ceph.changing() as state:
        state["refused"] = ["ceph osd set-group"]
    await cluster.begin()
    cluster.disturb(wanted, 0)
    async with asyncio.timeout(60):
        while not ceph.commands("ceph config-key rm"):
            await asyncio.sleep(0.02)
    watch = (await cluster.end(FACTS, lambda _: None)).cluster
    assert watch is not None
    assert isinstance(watch.outage, Outage)
    assert "access denied" in watch.outage.problem
    assert {*osds(ceph).values()} == {IN}


async def test_a_reweight_that_somebody_else_sets_meanwhile_stays(ceph: PretendedCeph) -> None:
    wanted = disturbance()
    cluster = cluster_of(disturbing(wanted))
    await disturbed(ceph, cluster, wanted)
    with ceph.changing() as state:
        state["osd-tree"]["nodes"][2]["reweight"] = 0.5
    await cluster.calm(lambda _: None)
    assert (osds(ceph)["osd.0"], ceph.state["config-key"]) == (("up", 0.5, False), {})


@pytest.mark.parametrize(
    ("count", "neighbours", "words"),
    [
        (
            4,
            ("*",),
            "count is 4, but the number of OSDs that are up and in and hold placement groups of pool golden-data",
        ),
        (2, ("*",), "pool .mgr would become inactive, since it stays active without 1 of its failure domains"),
        (1, (), "pools of others are on them, too (theirs); use OSDs of their own, or ask the administrator"),
        (1, ("other",), "pools of others are on them, too (theirs)"),
    ],
)
async def test_osds_that_may_not_be_taken_away_end_the_run(
    ceph: PretendedCeph, count: int, neighbours: tuple[str, ...], words: str
) -> None:
    with ceph.changing() as state:
        theirs = next(pool for pool in state["pools"] if pool["pool_name"] == "golden")
        state["pools"].append({**theirs, "pool_name": "theirs", "pool_id": 99})
    plan = disturbing(disturbance(count=count), neighbours=neighbours)
    seen = await attend_until(cluster_of(plan), mentions(words))
    assert seen[-1].refusal is FailureReason.DISTURBANCE_REFUSED
    assert not ceph.commands("ceph config-key set")


REWEIGHTS = st.lists(st.integers(1, 2**16), min_size=3, max_size=3)
LIVES = st.lists(
    st.tuples(st.sampled_from(["options", "Out", "Down", "back"]), st.integers(0, 14), st.booleans()), max_size=5
)


@pytest.mark.fault(
    "Ceph",
    "Conductor and teardown are killed",
    "while OSDs are taken away by `disturb`",
    ends="the next one gives all OSDs back",
    within="as soon as it runs",
)
@given(REWEIGHTS, LIVES)
def test_wherever_processes_are_killed_the_next_teardown_gives_everything_back(
    reweights: list[int], lives: list[tuple[str, int, bool]]
) -> None:
    tree = json.loads((GOLDEN / "osd-tree.json").read_text())
    members = [node for node in tree["nodes"] if node["type"] == "osd"]
    for node, steps in zip(members, reweights, strict=True):
        node["reweight"] = steps / 2**16
    state: State = {"config": {}, "config-key": {}, "overridden": {}, "osd-tree": tree}

    async def live(commands: MortalCommands, what: str) -> None:
        # As a conductor begins.
        await give_back(commands, key=KEY)
        if what == "options":
            await set_options(commands, OPTIONS, key=KEY)
        elif what != "back":
            await take_away(commands, await record_osds(commands, (0, 2), "Out" if what == "Out" else "Down", key=KEY))

    for what, after, executed in lives:
        with suppress(KilledError):
            asyncio.run(live(MortalCommands(state, kill(after, executed=executed)), what))
    asyncio.run(restore_options(MortalCommands(state, iter(())), key=KEY))
    assert [round(node["reweight"] * 2**16) for node in members_of(state)] == reweights
    assert not any(node.get("noup") or node["status"] != "up" for node in members_of(state))
    assert (state["config"], state["config-key"]) == ({}, {})


def members_of(state: State) -> list[dict[str, Any]]:
    return [node for node in state["osd-tree"]["nodes"] if node["type"] == "osd"]
