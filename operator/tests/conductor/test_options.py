"""Options that a conductor sets in Ceph's configuration database, and that it or the teardown restores."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Literal
from uuid import UUID

import hypothesis.strategies as st
import pytest
from hypothesis import given

from plimsoll.api.environment import CephOption
from plimsoll.api.run import Gates
from plimsoll.api.storage import NamespacedName
from plimsoll.ceph.options import database_key
from plimsoll.conductor.ceph.commands import CommandError, Commands
from plimsoll.conductor.ceph.options import RecordError, restore_options, set_options
from plimsoll.conductor.ceph.teardown import TeardownTarget, tear_down
from plimsoll.conductor.main import EXIT_COMPLETE
from plimsoll.conductor.phases import Gate
from plimsoll.conductor.sink import FilesSink
from plimsoll.measure.intake import TrialFacts
from plimsoll.plan.document import options_key
from support.ceph_programs import ProgramError, State, answer
from support.pretended_ceph import (
    BOTH,
    NOTE,
    TARGET,
    PretendedCeph,
    attend_until,
    cluster_of,
    is_prepared,
    mentions,
    plan_of,
    pretend_ceph,
    run_ceph,
)
from support.rendezvous import Setting

KEY = options_key("u")
PROFILE = "osd_mclock_profile"
FACTS = TrialFacts(clients=(0,), runtime_seconds=1, ramp_seconds=0, t0_nanoseconds=0)


def option(who: str = "osd", name: str = PROFILE, value: str = "high_client_ops") -> CephOption:
    return CephOption(who=who, name=name, value=value)


OPTIONS = (option(), option("osd.1", value="custom"), option(name="osd_memory_target", value="4Gi"))
IN_DATABASE = {
    f"osd {PROFILE}": "high_client_ops",
    f"osd.1 {PROFILE}": "custom",
    "osd osd_memory_target": "4294967296",
}
TARGET_WITH_OPTIONS = TARGET.model_copy(update={"options": OPTIONS, "rook": NamespacedName(namespace="r", name="r")})
PLAN = plan_of(TARGET_WITH_OPTIONS)
LEFT = TeardownTarget(uid="u", clients=2, pool="golden", other_pools=("golden-data",), has_options=True)


@pytest.fixture
def ceph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PretendedCeph:
    return pretend_ceph(tmp_path, monkeypatch)


async def torn_down(target: TeardownTarget = LEFT, *, limit_seconds: float = 20.0) -> tuple[str, ...]:
    async with Commands("conductor", limit_seconds=20) as commands:
        return (await tear_down(commands, target, limit_seconds=limit_seconds, pause_seconds=0.05)).problems


async def test_options_are_recorded_then_set_then_used_by_every_osd(ceph: PretendedCeph) -> None:
    await run_ceph("config", "set", "osd", PROFILE, "balanced")
    seen = await attend_until(cluster_of(PLAN), is_prepared)
    assert seen[-1].problems == ()
    assert ceph.state["config"] == IN_DATABASE
    assert json.loads(ceph.state["config-key"][KEY])["options"] == [
        {"who": "osd", "name": PROFILE, "value": "high_client_ops", "previous": "balanced"},
        {"who": "osd.1", "name": PROFILE, "value": "custom", "previous": None},
        {"who": "osd", "name": "osd_memory_target", "value": "4294967296", "previous": None},
    ]
    log = ceph.state["log"]
    recorded = next(number for number, command in enumerate(log) if command.startswith("ceph config-key set"))
    assert recorded < log.index(f"ceph config set osd {PROFILE} high_client_ops")
    assert ceph.state["denied"] == [], "the conductor has the rights for all of this"


async def test_results_tell_which_options_were_set(ceph: PretendedCeph) -> None:
    cluster = cluster_of(PLAN)
    await attend_until(cluster, is_prepared)
    described = cluster.environment.ceph
    assert described is not None
    assert described.options == {
        "osd": {PROFILE: "high_client_ops", "osd_memory_target": "4294967296"},
        "osd.1": {PROFILE: "custom"},
    }
    assert ceph.state["config"] == IN_DATABASE


async def test_options_are_restored_after_the_measurement(ceph: PretendedCeph) -> None:
    await run_ceph("config", "set", "osd", PROFILE, "of another version", "--force")
    await run_ceph("config", "set", "osd.1", PROFILE, "", "--force")
    before = ceph.state["config"]
    cluster = cluster_of(PLAN)
    await attend_until(cluster, is_prepared)
    await cluster.release()
    assert (ceph.state["config"], ceph.state["config-key"]) == (before, {})
    assert NOTE not in ceph.state["objects"]["golden/"], "scrubs resume, too"
    await attend_until(cluster_of(PLAN), is_prepared)
    assert ceph.state["config"] == IN_DATABASE, "by the conductor after a suspension"


async def test_scrubs_resume_although_options_cannot_be_restored(ceph: PretendedCeph) -> None:
    cluster = cluster_of(PLAN)
    await attend_until(cluster, is_prepared)
    assert ceph.flags("golden") == BOTH
    with ceph.changing() as state:
        state["refused"] = ["ceph config-key get config/"]
    await cluster.release()
    assert ceph.flags("golden") == set()
    assert KEY in ceph.state["config-key"]


async def test_the_teardown_restores_options_of_a_conductor_that_was_killed(ceph: PretendedCeph) -> None:
    await attend_until(cluster_of(PLAN), is_prepared)
    assert await torn_down() == ()
    assert (ceph.state["config"], ceph.state["config-key"]) == ({}, {})
    assert ceph.flags("golden") == set()


async def test_a_restoration_restores_options_and_touches_no_pool(ceph: PretendedCeph) -> None:
    """Clients on a dead node may still have their images, and placement groups may be inactive."""
    await attend_until(cluster_of(PLAN), is_prepared)
    before = len(ceph.state["log"])
    assert await torn_down(replace(LEFT, only_restores=True, file_system="files")) == ()
    assert (ceph.state["config"], ceph.state["config-key"]) == ({}, {})
    assert all(command.startswith(("ceph config", "ceph osd tree")) for command in ceph.state["log"][before:])
    assert ceph.flags("golden") != set()


async def test_the_teardown_restores_options_although_the_pool_is_gone(ceph: PretendedCeph) -> None:
    await attend_until(cluster_of(PLAN), is_prepared)
    with ceph.changing() as state:
        state["pools"] = []
    assert await torn_down() == ()
    assert (ceph.state["config"], ceph.state["config-key"]) == ({}, {})


async def test_no_run_measures_before_the_options_of_another_one_are_restored(ceph: PretendedCeph) -> None:
    """It would measure with them, or restore them as the previous ones."""
    with ceph.changing() as state:
        state["config"] = {f"osd {PROFILE}": "custom"}
        state["config-key"] = {"plimsoll/earlier/options": "{}", "config-history/1/": "", "plimsoll/u": ""}
    cluster = cluster_of(PLAN)
    seen = await attend_until(cluster, lambda view: bool(view.problems))
    (problem,) = seen[-1].problems
    assert "run earlier has set options of the OSDs" in problem
    assert not ceph.commands("ceph config set")
    with ceph.changing() as state:
        state["config"], state["config-key"] = {}, {}
    await attend_until(cluster, is_prepared)
    assert list(ceph.state["config-key"]) == ["plimsoll/u/options"]


async def test_the_teardown_of_a_run_without_options_asks_for_none(ceph: PretendedCeph) -> None:
    """Its user may not."""
    target = TeardownTarget(uid="u", clients=2, pool="golden")
    assert await torn_down(target) == ()
    assert not ceph.commands("ceph config")


async def test_options_that_cannot_be_restored_are_reported_and_all_else_is_removed(ceph: PretendedCeph) -> None:
    await attend_until(cluster_of(PLAN), is_prepared)
    with ceph.changing() as state:
        state["refused"] = ["ceph config set", "ceph config rm"]
    (problem,) = await torn_down(limit_seconds=0)
    assert "access denied" in problem
    assert KEY in ceph.state["config-key"], "a retry needs the record"
    assert ceph.state["images"] == {}


@pytest.mark.parametrize("text", ["no record", "", '{"schema_version": 2, "options": []}'])
async def test_a_malformed_record_is_kept_and_reported_at_once_with_its_remedy(ceph: PretendedCeph, text: str) -> None:
    await attend_until(cluster_of(PLAN), is_prepared)
    with ceph.changing() as state:
        state["config-key"][KEY] = text
    async with asyncio.timeout(60):
        (problem,) = await torn_down(limit_seconds=3600)
    assert "is no record of options that this version can read" in problem
    assert problem.endswith(f"and then remove the record: `ceph config-key rm {KEY}`")
    assert len(str(RecordError(options_key(str(UUID(int=0))), "'" * 4000))) < 500, "the status does not show more"
    assert (ceph.state["config-key"], ceph.state["config"]) == ({KEY: text}, IN_DATABASE), "nothing is lost"
    assert ceph.state["images"] == {}, "all else is removed"
    await run_ceph("config-key", "rm", KEY)
    assert await torn_down() == ()


async def test_what_somebody_else_changed_meanwhile_stays(
    ceph: PretendedCeph, caplog: pytest.LogCaptureFixture
) -> None:
    await attend_until(cluster_of(PLAN), is_prepared)
    await run_ceph("config", "set", "osd.1", PROFILE, "high_recovery_ops")
    assert await torn_down() == ()
    assert ceph.state["config"] == {f"osd.1 {PROFILE}": "high_recovery_ops"}
    assert f"option {PROFILE} of osd.1 is high_recovery_ops" in caplog.text


async def test_a_successor_does_not_set_what_somebody_else_changed(ceph: PretendedCeph) -> None:
    await attend_until(cluster_of(PLAN), is_prepared)
    await run_ceph("config", "set", "osd.1", PROFILE, "high_recovery_ops")
    seen = await attend_until(cluster_of(PLAN), mentions("somebody else has changed it"))
    assert not any(map(is_prepared, seen))
    assert ceph.state["config"][f"osd.1 {PROFILE}"] == "high_recovery_ops"


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        (option(name="osd_op_queue", value="wpq"), "takes effect only after a restart of the OSDs"),
        (option(name="osd_unknown", value="1"), "this version of Ceph has no option osd_unknown"),
        (option(value="fast"), "cannot be fast; choose one of balanced"),
        (option(name="osd_memory_target", value="much"), "cannot be much: write bytes, or a size such as 4Gi"),
        (option("osd.7"), "no OSD is osd.7"),
        (option("osd/class:hdd"), "no OSD is osd/class:hdd"),
    ],
)
async def test_an_option_that_cannot_be_set_is_refused_before_anything_is_set(
    ceph: PretendedCeph, wanted: CephOption, words: str
) -> None:
    plan = plan_of(TARGET.model_copy(update={"options": (option(), wanted)[wanted.key == option().key :]}))
    seen = await attend_until(cluster_of(plan), mentions(words))
    assert seen[-1].refusal
    assert (ceph.state["config"], ceph.state["config-key"]) == ({}, {})


async def test_a_value_that_only_ceph_can_judge_is_refused_and_nothing_stays_set(ceph: PretendedCeph) -> None:
    """`config help` does not tell everything: this option's values are limited in another way."""
    plan = plan_of(TARGET.model_copy(update={"options": (option(), option(name="osd_free_text", value="invalid"))}))
    cluster = cluster_of(plan)
    seen = await attend_until(cluster, mentions("option osd_free_text cannot be invalid"))
    assert seen[-1].refusal
    await cluster.release()
    assert (ceph.state["config"], ceph.state["config-key"]) == ({}, {})


async def test_the_cluster_is_not_prepared_before_every_osd_uses_the_options(ceph: PretendedCeph) -> None:
    """OSDs report their settings every few seconds."""
    with ceph.changing() as state:
        state["overridden"] = {"osd.2": {PROFILE: "balanced"}}
    cluster = cluster_of(plan_of(TARGET.model_copy(update={"options": (option(),)})))
    seen = await attend_until(cluster, mentions(f"osd.2 has {PROFILE} balanced instead of high_client_ops"))
    assert not any(map(is_prepared, seen))
    with ceph.changing() as state:
        state["overridden"] = {}
    await attend_until(cluster, is_prepared)


async def test_options_are_read_on_every_osd_before_and_after_each_trial(ceph: PretendedCeph) -> None:
    cluster = cluster_of(plan_of(TARGET.model_copy(update={"options": (option(),)})))
    await attend_until(cluster, is_prepared)
    await cluster.begin()
    with ceph.changing() as state:
        state["overridden"] = {"osd.2": {PROFILE: "balanced"}}
    watch = (await cluster.end(FACTS, lambda _: None)).cluster
    assert watch is not None
    before, after = watch.options
    assert before.differences == ()
    assert after.differences == (f"osd.2 has {PROFILE} balanced instead of high_client_ops",)


async def test_a_run_reads_options_as_each_of_its_trials_begins_and_ends(ceph: PretendedCeph, tmp_path: Path) -> None:
    setting = Setting(tmp_path, PLAN)
    codes = await asyncio.gather(setting.conduct(cluster=cluster_of(PLAN)), setting.agent(0), setting.agent(1))
    assert [*codes] == [EXIT_COMPLETE, 0, 0]
    trials = (await FilesSink(setting.results).load()).trials["w-000"]
    log = ceph.state["log"]
    since_prepared = log[log.index(ceph.commands("rbd config")[-1]) :]
    readings = since_prepared.count(f"ceph config-key get {database_key('osd.1', PROFILE)}")
    # Each attempt begins, at least one also ends, and the release reads them too.
    assert readings >= len(trials) + 2


@pytest.mark.parametrize("health", ["Required", "Ignored"])
async def test_the_gate_opens_again_once_the_osds_use_the_options(
    ceph: PretendedCeph, health: Literal["Required", "Ignored"]
) -> None:
    target = TARGET.model_copy(update={"options": (option(),)})
    cluster = cluster_of(plan_of(target, gates=Gates(ceph_health=health)))
    gate = Gate(watched=True, required=cluster.required)
    await attend_until(cluster, is_prepared)
    with ceph.changing() as state:
        state["overridden"] = {"osd.2": {PROFILE: "balanced"}}
    await cluster.begin()
    await cluster.end(FACTS, lambda _: None)
    gate.see((await attend_until(cluster, mentions("osd.2 has")))[-1], 0)
    (problem,) = gate.problems(0)
    assert f"osd.2 has {PROFILE} balanced instead of high_client_ops" in problem
    with ceph.changing() as state:
        state["overridden"] = {}
    gate.see((await attend_until(cluster, lambda view: view.prepared and not view.problems))[-1], 1)
    assert gate.problems(1) == ()


async def test_what_cannot_be_read_is_no_difference(ceph: PretendedCeph) -> None:
    cluster = cluster_of(plan_of(TARGET.model_copy(update={"options": (option(),)})))
    await attend_until(cluster, is_prepared)
    with ceph.changing() as state:
        state["refused"] = ["ceph config show osd.1"]
    await cluster.begin()
    watch = (await cluster.end(FACTS, lambda _: None)).cluster
    assert watch is not None
    assert [(reading.differences, "access denied" in reading.problem) for reading in watch.options] == [((), True)] * 2


async def test_a_run_without_options_reads_none(ceph: PretendedCeph) -> None:
    cluster = cluster_of(plan_of(gates=Gates(pause_scrub=False)))
    await attend_until(cluster, is_prepared)
    for_the_environment = ceph.commands("ceph config")
    await cluster.begin()
    watch = (await cluster.end(FACTS, lambda _: None)).cluster
    await cluster.release()
    assert watch is not None
    assert watch.options == ()
    assert not ceph.commands("ceph config-key")
    assert ceph.commands("ceph config") == for_the_environment


# -- kills


class KilledError(BaseException):
    """The process ends here."""


class MortalCommands(Commands):
    """`ceph` on a state in memory. The process is killed at its n-th command, before or after that is executed."""

    def __init__(self, state: State, kills: Iterator[bool | None]) -> None:
        super().__init__("conductor")
        self._state = state
        self._kills = kills

    async def ceph(self, *arguments: str, limit_seconds: float | None = None) -> str:
        assert limit_seconds is None or limit_seconds > 0
        is_killed = next(self._kills, None)
        if is_killed is False:
            raise KilledError
        try:
            return answer(self._state, [*arguments])
        except ProgramError as error:
            raise CommandError("ceph", f"failed: {error}") from error
        finally:
            if is_killed:
                raise KilledError


def kill(after: int, *, executed: bool) -> Iterator[bool | None]:
    """Yield for each command whether the process is killed with it, and if so whether the command is executed."""
    yield from [None] * after
    yield executed


LIVES = st.lists(st.tuples(st.booleans(), st.integers(0, 14), st.booleans()), max_size=4)
BEFORE = st.dictionaries(
    st.sampled_from([*IN_DATABASE, "osd osd_free_text", f"osd.0 {PROFILE}"]),
    st.sampled_from(["balanced", "high_client_ops", "custom", "", "4294967296"]),
)


@given(BEFORE, LIVES)
def test_wherever_processes_are_killed_the_next_teardown_restores_everything(
    before: dict[str, str], lives: list[tuple[bool, int, bool]]
) -> None:
    state: State = {"config": dict(before), "config-key": {}, "overridden": {}}

    async def live(kills: Iterator[bool | None], *, sets: bool) -> None:
        commands = MortalCommands(state, kills)
        if sets:
            await set_options(commands, OPTIONS, key=KEY)
        else:
            await restore_options(commands, key=KEY)

    for sets, after, executed in lives:
        with suppress(KilledError):
            asyncio.run(live(kill(after, executed=executed), sets=sets))
    asyncio.run(live(iter(()), sets=False))
    assert state["config"] == before
    assert state["config-key"] == {}
