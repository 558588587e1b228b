"""A conductor's work on a Ceph cluster with Ceph's own commands."""

import asyncio
import json
import signal
import sys
from pathlib import Path

import pytest

from plimsoll.agent.agent import Connection
from plimsoll.api.names import AbortReason, FailureReason, Outcome, RunPhase
from plimsoll.api.run import Gates
from plimsoll.api.status import OsdsSeen
from plimsoll.api.storage import ErasureCoded, Pool, Replicated, Volume
from plimsoll.conductor.ceph.commands import CommandError, Commands, NotPermittedError
from plimsoll.conductor.main import EXIT_COMPLETE, EXIT_INTERRUPTED
from plimsoll.conductor.phases import ClusterView
from plimsoll.conductor.sink import FilesSink
from plimsoll.measure.intake import TrialFacts
from plimsoll.plan.document import CephTarget, image_name
from support.pretended_ceph import (
    BOTH,
    NOTE,
    SIZE,
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
from support.rendezvous import Setting, until_up

EXIT_GATE_CLOSED = 13
TOO_OLD = FailureReason.CEPH_TOO_OLD
QUINCY, REEF, TENTACLE = (
    f"ceph version {version} (stable)" for version in ("17.2.9 (0) quincy", "18.2.7 (0) reef", "20.2.4 (0) tentacle")
)


@pytest.fixture
def ceph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PretendedCeph:
    return pretend_ceph(tmp_path, monkeypatch)


async def test_a_cluster_is_prepared_once_its_scrubs_pause_and_every_client_has_an_image(ceph: PretendedCeph) -> None:
    seen = await attend_until(cluster_of(plan_of()), is_prepared)
    assert seen[-1] == ClusterView(prepared=True, osds=OsdsSeen(up=3, members=3), risks=frozenset())
    assert ClusterView(prepared=False, problems=("2 of 2 images are created",)) in seen
    assert ceph.flags("golden") == ceph.flags("golden-data") == BOTH
    assert ceph.state["images"] == {
        image_name("u", client): {"size": SIZE, "data_pool": "golden-data", "watched": 0, "rbd_cache": "false"}
        for client in (0, 1)
    }


async def test_images_have_no_features_that_cost_operations(ceph: PretendedCeph) -> None:
    await attend_until(cluster_of(plan_of(clients=1)), is_prepared)
    (command,) = ceph.commands("rbd create")
    assert command == (
        f"rbd create --size {SIZE}B --image-feature layering,exclusive-lock --data-pool golden-data "
        f"golden/{image_name('u', 0)}"
    )


async def test_flags_are_noted_before_they_are_set(ceph: PretendedCeph) -> None:
    await attend_until(cluster_of(plan_of()), is_prepared)
    log = ceph.state["log"]
    noted = next(number for number, command in enumerate(log) if f"put {NOTE}" in command)
    assert noted < min(number for number, command in enumerate(log) if "osd pool set" in command)


async def test_only_flags_that_were_not_set_before_are_noted(ceph: PretendedCeph) -> None:
    await run_ceph("osd", "pool", "set", "golden", "noscrub", "1")
    await attend_until(cluster_of(plan_of()), is_prepared)
    note = json.loads(ceph.state["objects"]["golden/"][NOTE])
    assert note == {"golden": ["nodeep-scrub"], "golden-data": ["noscrub", "nodeep-scrub"]}


async def test_a_conductor_that_died_after_its_note_loses_and_doubles_nothing(ceph: PretendedCeph) -> None:
    """Its successor must not take the run's own flags for somebody else's."""
    plan = plan_of()
    await attend_until(cluster_of(plan), is_prepared)
    before = ceph.state
    await attend_until(cluster_of(plan), is_prepared)
    after = ceph.state
    assert (after["objects"], after["images"]) == (before["objects"], before["images"])
    assert len([command for command in ceph.commands("rados") if f"put {NOTE}" in command]) == 1


@pytest.mark.fault(
    "Ceph",
    "The conductor is killed",
    "while it pauses the pool's scrubs",
    ends="the next conductor sets the flags that were noted, and the teardown unsets exactly these",
    within="at the end of the run",
)
async def test_a_conductor_that_died_between_note_and_flags_has_its_successor_set_them(ceph: PretendedCeph) -> None:
    with ceph.changing() as state:
        state["objects"]["golden/"] = {NOTE: json.dumps({"golden": ["noscrub"], "golden-data": ["noscrub"]})}
    await attend_until(cluster_of(plan_of()), is_prepared)
    assert ceph.flags("golden") == BOTH
    assert json.loads(ceph.state["objects"]["golden/"][NOTE]) == {"golden": ["noscrub"], "golden-data": ["noscrub"]}


async def test_scrubs_resume_after_the_measurement(ceph: PretendedCeph) -> None:
    """Even if the storage is kept: others may have data in the pool."""
    await run_ceph("osd", "pool", "set", "golden", "noscrub", "1")
    cluster = cluster_of(plan_of())
    await attend_until(cluster, is_prepared)
    await cluster.release()
    assert ceph.flags("golden") == {"noscrub"}
    assert ceph.flags("golden-data") == set()
    assert NOTE not in ceph.state["objects"].get("golden/", {})
    await attend_until(cluster_of(plan_of()), is_prepared)
    assert ceph.flags("golden-data") == BOTH


async def test_the_note_stays_if_scrubs_cannot_resume(ceph: PretendedCeph) -> None:
    cluster = cluster_of(plan_of(), limit_seconds=1)
    await attend_until(cluster_of(plan_of()), is_prepared)
    with ceph.changing() as state:
        state["hanging"] = ["ceph"]
    await cluster.release()
    assert NOTE in ceph.state["objects"]["golden/"]


async def test_without_pausing_scrubs_nothing_is_done_at_the_end(ceph: PretendedCeph) -> None:
    await cluster_of(plan_of(gates=Gates(pause_scrub=False))).release()
    assert not ceph.state["log"]


async def test_without_pausing_scrubs_no_flag_is_set(ceph: PretendedCeph) -> None:
    await attend_until(cluster_of(plan_of(gates=Gates(pause_scrub=False))), is_prepared)
    assert not ceph.commands("ceph osd pool set")
    assert NOTE not in ceph.state["objects"].get("golden/", {})


async def test_a_pool_that_is_not_there_is_named(ceph: PretendedCeph) -> None:
    target = TARGET.model_copy(update={"data_pool": "nowhere"})
    seen = await attend_until(cluster_of(plan_of(target)), mentions("does not exist"))
    assert seen[-1].problems == ("pool nowhere does not exist",)
    assert not ceph.commands("rbd")


@pytest.mark.parametrize(
    ("made", "problem"),
    [
        (Pool(erasure_coded=ErasureCoded(data_chunks=4, coding_chunks=2)), "not erasure with size 6"),
        (Pool(replicated=Replicated(size=3)), "is erasure with size 3, not replicated with size 3"),
        (
            Pool(erasure_coded=ErasureCoded(data_chunks=2, coding_chunks=1), placement_groups=64),
            "has 8 placement groups, not 64",
        ),
        (
            Pool(erasure_coded=ErasureCoded(data_chunks=2, coding_chunks=1), compression_mode="force"),
            "has compression none, not force",
        ),
        (
            Pool(erasure_coded=ErasureCoded(data_chunks=2, coding_chunks=1, stripe_unit="16Ki")),
            "has stripe unit 4Ki, not 16Ki",
        ),
        (
            Pool(erasure_coded=ErasureCoded(data_chunks=2, coding_chunks=1, optimizations=True)),
            "has no optimizations of erasure coding: Ceph has refused allow_ec_optimizations",
        ),
    ],
)
async def test_a_pool_that_differs_from_the_plan_is_reported(ceph: PretendedCeph, made: Pool, problem: str) -> None:
    seen = await attend_until(cluster_of(plan_of(TARGET.model_copy(update={"made": made}))), mentions("golden-data"))
    assert problem in seen[-1].problems[0]
    assert not ceph.commands("rbd")


@pytest.mark.parametrize(
    ("is_optimized", "wanted", "problem"),
    [
        (True, False, "has optimizations of erasure coding, which Ceph cannot turn off again"),
        (True, True, ""),
        (True, None, ""),
        (False, False, ""),
        (False, None, ""),
    ],
)
async def test_optimizations_are_compared_if_the_run_names_them(
    ceph: PretendedCeph, *, is_optimized: bool, wanted: bool | None, problem: str
) -> None:
    with ceph.changing() as state:
        data = next(pool for pool in state["pools"] if pool["pool_name"] == "golden-data")
        data["flags_names"] += ",ec_optimizations" if is_optimized else ""
    coded = ErasureCoded(data_chunks=2, coding_chunks=1, stripe_unit="4Ki", optimizations=wanted)
    cluster = cluster_of(plan_of(TARGET.model_copy(update={"made": Pool(erasure_coded=coded)})))
    await attend_until(cluster, mentions(problem) if problem else is_prepared)


@pytest.mark.parametrize(
    ("versions", "problem", "refusal"),
    [
        ((REEF, TENTACLE), f"the cluster runs different versions of Ceph ({REEF}; {TENTACLE}); wait", None),
        ((QUINCY,), "the cluster runs Ceph 17.2.9, and Plimsoll measures Ceph 18.2 and later", TOO_OLD),
    ],
)
async def test_a_version_that_cannot_be_measured_is_reported_before_anything_changes(
    ceph: PretendedCeph, versions: tuple[str, ...], problem: str, refusal: FailureReason | None
) -> None:
    with ceph.changing() as state:
        state["versions"] = {"osd": dict.fromkeys(versions, 3), "overall": dict.fromkeys(versions, 3)}
    seen = await attend_until(cluster_of(plan_of(gates=Gates(ceph_health="Ignored"))), mentions("Ceph"))
    assert seen[-1].problems[0].startswith(problem)
    assert seen[-1].refusal is refusal
    assert not ceph.commands("rbd")
    assert not ceph.commands("rados")
    assert not ceph.commands("ceph osd pool set")


async def test_placement_groups_that_are_about_to_split_are_waited_for(ceph: PretendedCeph) -> None:
    with ceph.changing() as state:
        state["pools"][-1]["pg_num_target"] = 32
    await attend_until(cluster_of(plan_of()), mentions("from 8 to 32 placement groups"))
    with ceph.changing() as state:
        state["pools"][-1]["pg_num_target"] = 8
    await attend_until(cluster_of(plan_of()), is_prepared)


async def test_the_autoscaler_of_a_pool_with_a_number_of_groups_has_to_be_off(ceph: PretendedCeph) -> None:
    made = Pool(erasure_coded=ErasureCoded(data_chunks=2, coding_chunks=1), placement_groups=8)
    plan = plan_of(TARGET.model_copy(update={"made": made}))
    with ceph.changing() as state:
        state["pools"][-1]["pg_autoscale_mode"] = "on"
    seen = await attend_until(cluster_of(plan), mentions("autoscaler"))
    assert seen[-1].problems == (
        "the autoscaler of pool golden-data is on, and may split placement groups during the run",
    )
    with ceph.changing() as state:
        state["pools"][-1]["pg_autoscale_mode"] = "off"
    await attend_until(cluster_of(plan), is_prepared)


async def test_an_unhealthy_cluster_is_reported_and_not_changed(ceph: PretendedCeph) -> None:
    with ceph.changing() as state:
        state["status"] = "status-osd-down"
    seen = await attend_until(cluster_of(plan_of()), mentions("OSD"))
    assert "1 of 3 OSDs are down" in seen[-1].problems[0]
    assert not ceph.commands("rbd")
    assert not ceph.commands("ceph osd pool set")


async def test_the_reason_for_waiting_is_shown_without_the_steps_that_every_pass_repeats(
    ceph: PretendedCeph,
) -> None:
    with ceph.changing() as state:
        state["status"] = "status-noscrub"
    passes = 0

    def enough(view: ClusterView) -> bool:
        nonlocal passes
        passes += any("HEALTH_WARN" in problem for problem in view.problems)
        return passes == 4

    seen = await attend_until(cluster_of(plan_of()), enough)
    assert [view.problems == ("pausing scrubs of the run's pools",) for view in seen] == [True, *[False] * 4]


async def test_only_the_runs_own_placement_groups_matter_if_health_is_ignored(ceph: PretendedCeph) -> None:
    with ceph.changing() as state:
        state["status"], state["groups"] = "status-osd-down", "active+undersized"
    plan = plan_of(gates=Gates(ceph_health="Ignored"))
    seen = await attend_until(cluster_of(plan), mentions("of pool golden "))
    assert seen[-1].problems[0].startswith("8 placement groups of pool golden are not active+clean")
    with ceph.changing() as state:
        state["groups"] = "active+clean+scrubbing"
    await attend_until(cluster_of(plan), is_prepared)


async def test_an_image_of_another_size_is_reported(ceph: PretendedCeph) -> None:
    with ceph.changing() as state:
        state["images"][image_name("u", 1)] = {"size": 2**20, "data_pool": "golden-data", "watched": 0}
    seen = await attend_until(cluster_of(plan_of()), mentions("instead of"))
    assert seen[-1].problems == (
        f"image golden/{image_name('u', 1)} already exists with 1Mi instead of 64Mi; remove it",
    )


async def test_a_trial_is_watched_from_before_it_begins_until_after_its_end(ceph: PretendedCeph) -> None:
    cluster = cluster_of(plan_of(gates=Gates(accepted_health_checks=("MON_DISK_LOW",))))
    seen: list[ClusterView] = []
    await attend_until(cluster, is_prepared)
    await cluster.begin()
    with ceph.changing() as state:
        state["status"] = "status-osd-down"
    planned = TrialFacts(clients=(0, 1), runtime_seconds=4, ramp_seconds=1, t0_nanoseconds=0)
    facts = await cluster.end(planned, seen.append)
    watch = facts.cluster
    assert watch is not None
    assert [sample.status.osds_up for sample in watch.samples if sample.status] == [3, 2]
    assert watch.samples[0].at < watch.samples[1].at
    assert watch.pools == ("golden", "golden-data")
    assert watch.accepted_checks == {"MON_DISK_LOW"}
    assert watch.samples[-1].pools["golden"].reads == 15
    assert watch.required
    assert facts.osd_classes == {0: "ssd", 1: "ssd", 2: "ssd"}
    assert mentions("1 of 3 OSDs are down")(seen[-1])


async def test_an_osd_that_is_out_from_the_beginning_is_a_fact_and_one_that_goes_out_closes_the_gate(
    ceph: PretendedCeph,
) -> None:
    with ceph.changing() as state:
        state["osdmap"] = {"num_osds": 4, "num_up_osds": 3, "num_in_osds": 3}
    cluster = cluster_of(plan_of())
    await attend_until(cluster, is_prepared)
    with ceph.changing() as state:
        state["osdmap"] = {"num_osds": 4, "num_up_osds": 3, "num_in_osds": 2}
    seen: list[ClusterView] = []
    planned = TrialFacts(clients=(0, 1), runtime_seconds=4, ramp_seconds=1, t0_nanoseconds=0)
    watch = (await cluster.end(planned, seen.append)).cluster
    assert seen[-1].problems[0].startswith("1 of 3 OSDs went out since the run began")
    assert watch is not None
    assert (watch.osds, watch.widest) == (OsdsSeen(up=3, members=3), 3)


async def test_an_osd_that_was_lost_while_there_was_no_conductor_closes_the_gate(ceph: PretendedCeph) -> None:
    with ceph.changing() as state:
        state["osdmap"] = {"num_osds": 4, "num_up_osds": 3, "num_in_osds": 3}
    cluster = cluster_of(plan_of())
    cluster.osds = OsdsSeen(up=4, members=4)
    seen = await attend_until(cluster, is_prepared)
    assert seen[-1].osds == OsdsSeen(up=4, members=4)
    assert any("1 of 4 OSDs went out since the run began" in problem for problem in seen[-1].problems)


async def test_a_command_that_hangs_is_ended_and_named(ceph: PretendedCeph) -> None:
    with ceph.changing() as state:
        state["hanging"] = ["ceph osd pool"]
    seen = await attend_until(cluster_of(plan_of(), limit_seconds=2), mentions("did not answer"))
    (problem,) = seen[-1].problems
    assert problem.startswith("`ceph osd pool ls detail` did not answer in 2 s; missing capabilities")


async def test_ceph_s_versions_and_settings_are_in_the_environment(ceph: PretendedCeph) -> None:
    cluster = cluster_of(plan_of())
    assert cluster.environment.document() == {}
    await attend_until(cluster, is_prepared)
    environment = cluster.environment
    assert set(environment.document()) == {"ceph", "pool"}
    pool, known = environment.pool, environment.ceph
    assert pool is not None
    assert known is not None
    assert pool.type == "erasure"
    assert known.client_path == "librbd"
    assert known.versions == "18.2.7 reef"
    assert known.settings is not None
    assert known.settings.mclock_profiles == {"balanced": 3}
    assert ceph.commands("ceph config show osd.2 osd_op_queue")
    assert ceph.state["denied"] == []


async def test_a_missing_capability_is_reported_as_such(ceph: PretendedCeph) -> None:
    with ceph.changing() as state:
        state["refused"] = ["ceph osd pool set"]
    with pytest.raises(
        NotPermittedError, match=r"osd pool set golden noscrub 1` failed: Error EACCES: access denied; the"
    ):
        await run_ceph("osd", "pool", "set", "golden", "noscrub", "1")


async def test_a_program_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CommandError, match=r"`rbd ls golden` cannot be started: .*No such file"):
        await Commands("u").rbd("ls", "golden")
    (tmp_path / "rados.py").write_text("import no_such_module")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(CommandError, match=r"`ceph status` failed: No module named 'no_such_module'"):
        await run_ceph("status")


async def test_the_libraries_log_lines_are_not_part_of_the_error(ceph: PretendedCeph) -> None:
    with ceph.changing() as state:
        state["images"]["there"] = {"size": 1, "data_pool": "", "watched": 0}
    with pytest.raises(CommandError) as caught:
        await Commands("u").rbd("create", "--size", "1B", "golden/there")
    assert str(caught.value) == "`rbd create --size 1B golden/there` failed: rbd: create error: (17) File exists"
    assert caught.value.is_present


async def test_a_run_is_measured_on_a_cluster_that_becomes_healthy_later(ceph: PretendedCeph, tmp_path: Path) -> None:
    with ceph.changing() as state:
        state["status"] = "status-osd-down"
    setting = Setting(tmp_path, plan_of())
    sink = FilesSink(setting.results)
    conductor = asyncio.create_task(setting.conduct(cluster=cluster_of(setting.plan)))
    agents = [asyncio.create_task(setting.agent(client)) for client in (0, 1)]
    await until_state(sink, "waiting for the cluster: 1 of 3 OSDs are down")
    with ceph.changing() as state:
        state["status"] = "status-healthy"
    assert await asyncio.gather(conductor, *agents) == [EXIT_COMPLETE, 0, 0]
    trials = (await sink.load()).trials
    # An attempt for which the machine was too late is repeated.
    assert sum(trial.outcome is Outcome.MEASURED for trial in trials["w-000"]) == 1
    aborted = {trial.abort.reason for trial in trials["w-000"] if trial.abort}
    assert aborted <= {AbortReason.LATE_CLIENT, AbortReason.CLIENT_NOT_ARMED}
    (result,) = [json.loads(path.read_text()) for path in (setting.results / "results").iterdir()]
    assert {"ceph", "pool"} <= set(result["status"]["environment"])
    assert (ceph.flags("golden"), ceph.flags("golden-data")) == (set(), set())


@pytest.mark.fault(
    "Ceph",
    "An OSD is down",
    "before the first trial",
    ends="the run waits and names the problem, then `Succeeded=False`, `GateClosed`",
    within="`timeouts.readySeconds`",
)
async def test_a_cluster_that_stays_unhealthy_ends_the_run_with_its_own_exit_code(
    ceph: PretendedCeph, tmp_path: Path
) -> None:
    with ceph.changing() as state:
        state["status"] = "status-osd-down"
    setting = Setting(tmp_path, plan_of(ready_seconds=5))
    assert await setting.conduct(cluster=cluster_of(setting.plan)) == EXIT_GATE_CLOSED
    left = (await FilesSink(setting.results).load()).state
    assert left is not None
    assert left.failure is not None
    assert "1 of 3 OSDs are down" in left.failure.message


async def test_a_conductor_that_waits_for_its_cluster_can_be_interrupted(ceph: PretendedCeph, tmp_path: Path) -> None:
    with ceph.changing() as state:
        state["hanging"] = ["ceph"]
    setting = Setting(tmp_path, plan_of())
    task = asyncio.create_task(setting.conduct(cluster=cluster_of(setting.plan, limit_seconds=1)))
    await until_state(FilesSink(setting.results), "waiting for the cluster")
    signal.raise_signal(signal.SIGTERM)
    assert await task == EXIT_INTERRUPTED
    left = (await FilesSink(setting.results).load()).state
    assert left is not None
    assert left.phase is RunPhase.INTERRUPTED


async def test_a_local_run_does_not_talk_to_ceph(ceph: PretendedCeph, tmp_path: Path) -> None:
    """Its clients are on a directory or a device of this machine, whatever storage the specification names."""
    setting = Setting(tmp_path, plan_of())
    options = ("--results", setting.results, "--secret", setting.secret, "--port", setting.port, "--lost-after", 20)
    conductor = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "plimsoll", "conductor", *map(str, options), stderr=asyncio.subprocess.DEVNULL
    )
    connection = Connection(setting.url, setting.secret_of(0))
    await until_up(connection)
    await connection.close()
    codes = await asyncio.gather(conductor.wait(), setting.agent(0), setting.agent(1))
    assert list(codes) == [EXIT_COMPLETE, 0, 0]
    assert not ceph.state["log"]


async def until_state(sink: FilesSink, words: str) -> None:
    """Wait until the conductor's message starts with `words`."""
    async with asyncio.timeout(60):
        while True:
            state = (await sink.load()).state
            if state is not None and state.message.startswith(words):
                return
            await asyncio.sleep(0.05)


MADE = TARGET.model_copy(update={"made": Pool(erasure_coded=ErasureCoded(data_chunks=2, coding_chunks=1))})
FREE = 16189664256  # MAX AVAIL of the pretended cluster, until its OSDs are 95 % full


def quota_of(ceph: PretendedCeph) -> int:
    return next(int(pool["quota_max_bytes"]) for pool in ceph.state["pools"] if pool["pool_name"] == "golden-data")


async def test_a_pool_of_the_run_gets_a_quota_before_anything_is_written(ceph: PretendedCeph) -> None:
    seen = await attend_until(cluster_of(plan_of(MADE)), is_prepared)
    assert quota_of(ceph) == pytest.approx(FREE * 0.7 / 0.95, rel=0.01)
    assert [command for command in ceph.commands("ceph osd pool set-quota") if "golden-data" not in command] == []
    assert seen[-1].risks == frozenset()
    assert ceph.state["denied"] == []


async def test_the_quota_of_an_existing_pool_is_its_owners(ceph: PretendedCeph) -> None:
    await attend_until(cluster_of(plan_of()), is_prepared)
    assert not ceph.commands("ceph osd pool set-quota")


@pytest.mark.fault(
    "Ceph",
    "The data of a run would fill an OSD",
    "before it is written",
    ends="`Succeeded=False`, `ClusterTooFull` with the percentages",
    within="before any I/O",
)
async def test_data_that_would_fill_an_osd_is_refused_before_it_is_written(ceph: PretendedCeph) -> None:
    large = plan_of(MADE).model_copy(update={"volume": Volume(size=FREE, access="LibRBD")})
    seen = await attend_until(cluster_of(large), mentions("spec.limits.fillPercent is 70"))
    assert seen[-1].refusal is FailureReason.CLUSTER_TOO_FULL
    assert "would fill the fullest OSD from 0.8% to 1" in seen[-1].problems[0]
    assert not ceph.commands("ceph osd pool set-quota")
    assert not any(view.prepared for view in seen)


async def test_a_later_conductor_does_not_count_the_run_s_own_data(ceph: PretendedCeph) -> None:
    cluster = cluster_of(plan_of(MADE).model_copy(update={"volume": Volume(size=FREE, access="LibRBD")}))
    cluster.osds = OsdsSeen(up=3, members=3)
    await attend_until(cluster, is_prepared)
    assert not ceph.commands("ceph osd pool set-quota")


async def test_a_cluster_that_does_not_show_how_full_it_is_is_not_checked(
    ceph: PretendedCeph, caplog: pytest.LogCaptureFixture
) -> None:
    with ceph.changing() as state:
        state["refused"] = ["ceph osd df"]
    await attend_until(cluster_of(plan_of(MADE)), is_prepared)
    assert "spec.limits.fillPercent is not checked" in caplog.text


@pytest.mark.parametrize(
    ("checks", "muted", "stop_on", "found"),
    [
        (("OSD_NEARFULL", "SLOW_OPS"), (), (), {"OSD_NEARFULL"}),
        (("OSD_NEARFULL", "SLOW_OPS"), ("OSD_NEARFULL",), ("SLOW_OPS",), {"SLOW_OPS"}),
        (("POOL_FULL",), (), (), {"POOL_FULL"}),
    ],
)
async def test_risks_are_the_checks_that_are_not_muted(
    ceph: PretendedCeph, checks: tuple[str, ...], muted: tuple[str, ...], stop_on: tuple[str, ...], found: set[str]
) -> None:
    cluster = cluster_of(plan_of(gates=Gates(stop_on=stop_on)))
    await attend_until(cluster, is_prepared)
    with ceph.changing() as state:
        state["checks"], state["muted"] = checks, muted
    seen = await attend_until(cluster_of(plan_of(gates=Gates(stop_on=stop_on, ceph_health="Ignored"))), is_prepared)
    assert {*(seen[-1].risks or ())} == found
    assert seen[-1].full_pools == ()


async def test_a_pool_at_its_quota_is_named_although_the_check_is_muted(ceph: PretendedCeph) -> None:
    cluster = cluster_of(plan_of(MADE))
    await attend_until(cluster, is_prepared)
    ceph.fill("golden-data")
    with ceph.changing() as state:
        state["muted"] = ["POOL_FULL"]
    seen = await attend_until(cluster, lambda view: bool(view.full_pools))
    assert (seen[-1].full_pools, seen[-1].risks) == (("golden-data",), frozenset())


@pytest.mark.parametrize("target", [MADE, TARGET])
async def test_a_pool_at_its_quota_is_named_and_loses_a_quota_of_the_run(
    ceph: PretendedCeph, target: CephTarget
) -> None:
    """A node cannot unmount a volume whose writes hang."""
    cluster = cluster_of(plan_of(target, gates=Gates(ceph_health="Ignored")))
    await attend_until(cluster, is_prepared)
    ceph.fill("golden-data")
    seen = await attend_until(cluster, lambda view: bool(view.full_pools))
    assert (seen[-1].full_pools, seen[-1].risks) == (("golden-data",), frozenset())
    await cluster.release()
    assert [command.split()[-3:] for command in ceph.commands("ceph osd pool set-quota")][-1:] == (
        [["golden-data", "max_bytes", "0"]] if target is MADE else []
    )
    assert ceph.flags("golden") == set()
    assert ceph.state["denied"] == []


async def test_the_quota_of_a_pool_with_room_is_kept(ceph: PretendedCeph) -> None:
    cluster = cluster_of(plan_of(MADE))
    await attend_until(cluster, is_prepared)
    await cluster.release()
    assert quota_of(ceph) > 0
