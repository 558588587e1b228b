"""What the administrator limits: a run over a limit creates nothing, and no run starts outside of the windows."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from plimsoll.api.names import RunPhase
from plimsoll.api.reasons.reason import Reason
from plimsoll.api.run import RunSpec, decode_run
from plimsoll.lifecycle.provisioning import closed_until, plan_excess, spec_excess, writes_text
from plimsoll.lifecycle.render import conductor
from plimsoll.lifecycle.run import Limits, Settings, run_of
from plimsoll.plan.document import Plan
from plimsoll.plan.expand import estimate_writes, make_plan
from plimsoll.plan.windows import WINDOWS, Windows, longest_load_seconds
from support import pretend_world
from support.pretend_world import PretendWorld, kinds_of, make_run, until_trial
from support.pretend_world import run_of as run_in

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
SETTINGS = Settings(runner_image="runner:1")
NIGHT = WINDOWS.validate_python([{"from": "22:00", "to": "06:00"}])
MINUTE = WINDOWS.validate_python([{"from": "22:00", "to": "22:01"}])
WORKLOAD = {"name": "w", "fio": {"pattern": "randwrite"}, "runtimeSeconds": 60, "rampSeconds": 0}


def spec_of(**spec: Any) -> RunSpec:
    return decode_run(make_run("a", **spec)).spec


def plan_of(**spec: Any) -> Plan:
    document = make_run("a", **{"timeouts": {"totalSeconds": 86_400}, **spec})
    document["metadata"]["uid"] = "u"
    return make_plan(decode_run(document), seed=1)


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        (Limits(), ()),
        (Limits(max_clients=2, max_volume_size=2**30), ()),
        (
            Limits(max_clients=1),
            ("spec.clients.count is 2, but a run may have 1 client; lower it", "the chart's limits.maxClients"),
        ),
        (
            Limits(max_volume_size=2**29),
            ("spec.storage.volume.size is 1Gi, but may be at most 512Mi", "the chart's limits.maxVolumeSize"),
        ),
        (Limits(max_clients=1, max_volume_size=1), ("limits.maxClients", "limits.maxVolumeSize")),
    ],
)
def test_a_run_over_a_limit_is_refused_with_field_value_limit_and_setting(
    limits: Limits, words: tuple[str, ...]
) -> None:
    excess = spec_excess(spec_of(), limits)
    assert (excess is None) == (not words)
    if excess is not None:
        assert excess.reason is Reason.LIMIT_EXCEEDED
        assert all(text in excess.message for text in words), excess.message


def test_a_run_without_volumes_has_no_size() -> None:
    workload = {"name": "net", "iperf3": {}}
    assert spec_excess(spec_of(workloads=[workload], storage=None), Limits(max_volume_size=1)) is None


@pytest.mark.parametrize(("spare", "is_refused"), [(0, False), (-1, True)])
def test_a_plan_that_writes_too_much_is_refused_with_its_numbers(spare: int, is_refused: bool) -> None:  # noqa: FBT001 - a case
    plan = plan_of(workloads=[WORKLOAD])
    writes = estimate_writes(plan)
    limits = Limits(max_written_bytes=writes.preparing + writes.loading + spare)
    excess = plan_excess(plan, replace(SETTINGS, limits=limits), NOON)
    assert (excess is not None) == is_refused
    if excess is not None:
        assert excess.reason is Reason.LIMIT_EXCEEDED
        assert "the run writes 1.6 GiB to prefill and about 23.4 GiB in trials" in excess.message
        assert "the chart's limits.maxWrittenBytes" in excess.message


@pytest.mark.parametrize(
    ("windows", "now", "says"),
    [
        ((), NOON, None),
        (NIGHT, NOON, "waiting until 2026-01-31T22:00:00Z for the next maintenance window"),
        (NIGHT, NOON + timedelta(hours=11), None),
        (NIGHT, NOON + timedelta(hours=17, minutes=59, seconds=50), "waiting until 2026-02-01T22:00:00Z"),
    ],
)
def test_a_run_waits_for_a_window_that_holds_its_longest_trial(
    windows: Windows, now: datetime, says: str | None
) -> None:
    closed = closed_until(plan_of(), replace(SETTINGS, windows=windows), now)
    assert says in closed if says else not closed


def test_a_trial_that_is_longer_than_all_windows_is_refused_with_the_remedy() -> None:
    plan, settings = plan_of(workloads=[WORKLOAD]), replace(SETTINGS, windows=MINUTE)
    excess = plan_excess(plan, settings, NOON)
    assert excess is not None
    assert excess.reason is Reason.WINDOWS_TOO_SHORT
    assert f"take {longest_load_seconds(plan)} s, and no maintenance window is that long" in excess.message
    assert "lower runtimeSeconds" in excess.message
    assert "the chart's maintenanceWindows" in excess.message
    assert plan_excess(plan_of(), settings, NOON) is None


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ({}, "writes 1.6 GiB to prefill; its data sets fill at most 1.6 GiB"),
        (
            {"prepare": {"prefill": False}, "workloads": [WORKLOAD]},
            "writes about 23.4 GiB in trials, at 100 MiB/s of each client",
        ),
        ({"workloads": [{"name": "net", "iperf3": {}}], "storage": None}, "writes no data"),
    ],
)
def test_what_a_run_writes_is_said(spec: dict[str, Any], says: str) -> None:
    assert writes_text(plan_of(**spec)).startswith(says)


# -- in a cluster


def world_with(monkeypatch: pytest.MonkeyPatch, **settings: Any) -> PretendWorld:
    monkeypatch.setattr(pretend_world, "SETTINGS", replace(pretend_world.SETTINGS, **settings))
    return PretendWorld()


@pytest.mark.parametrize("limits", [Limits(max_clients=1), Limits(max_written_bytes=1)])
def test_a_refused_run_creates_nothing(monkeypatch: pytest.MonkeyPatch, limits: Limits) -> None:
    with world_with(monkeypatch, limits=limits) as world:
        uid = world.create("a")
        ended = world.until_ended(uid)
        assert (ended["status"], ended["reason"]) == ("False", "LimitExceeded")
        assert kinds_of(world, uid) == set()


def test_a_run_is_admitted_when_a_window_opens(monkeypatch: pytest.MonkeyPatch) -> None:
    with world_with(monkeypatch) as world:
        opens = world.cluster.now + timedelta(hours=2)
        times = {"from": f"{opens:%H:%M}", "to": f"{opens + timedelta(hours=1):%H:%M}"}
        settings = replace(pretend_world.SETTINGS, windows=WINDOWS.validate_python([times]))
        monkeypatch.setattr(pretend_world, "SETTINGS", settings)
    with PretendWorld() as world:
        uid = world.create("a")
        world.until(lambda: world.conditions(uid).get("Admitted"))
        admitted = world.conditions(uid)["Admitted"]
        assert (admitted["status"], admitted["reason"]) == ("False", "WaitingForWindow")
        assert "waiting until" in admitted["message"]
        # The run waits much longer than timeouts.provisionSeconds, which is a minute.
        world.round(3600.0)
        world.round()
        assert kinds_of(world, uid) == {"ConfigMap"}
        assert world.conditions(uid)["Succeeded"]["reason"] == "WaitingForWindow"
        world.round(3600.0)
        assert world.until_ended(uid)["status"] == "True"
        assert "it writes 1.6 GiB to prefill" in world.conditions(uid)["Admitted"]["message"]


def test_a_conductor_that_waits_for_a_window_is_neither_measuring_nor_late(world: PretendWorld) -> None:
    uid = world.create("a")
    world.conductors.knobs.stays = RunPhase.WAITING_FOR_WINDOW
    world.until(lambda: world.conditions(uid).get("Succeeded", {}).get("reason") == "WaitingForWindow")
    world.round(300.0)
    world.round()
    status = run_in(world, uid)["status"]
    assert (status["display"]["status"], status.get("estimatedCompletionTime")) == ("Waiting", None)
    assert "behind schedule" not in world.conditions(uid)["Succeeded"]["message"]
    assert world.conditions(uid)["Admitted"]["status"] == "True"
    world.conductors.knobs.stays = None
    until_trial(world)
    assert world.until_ended(uid)["status"] == "True"


def test_a_conductor_gets_the_windows_and_time_to_wait_for_them() -> None:
    document = make_run("a")
    document["metadata"] |= {"uid": "u", "creationTimestamp": "2026-01-31T12:00:00Z"}
    run = run_of(document, SETTINGS)
    plan = plan_of()
    at_any_time, at_night = (conductor.job(run, plan, replace(SETTINGS, windows=windows)) for windows in ((), NIGHT))
    (container,) = at_night["spec"]["template"]["spec"]["containers"]
    (text,) = [variable["value"] for variable in container["env"] if variable["name"] == "PLIMSOLL_MAINTENANCE_WINDOWS"]
    assert WINDOWS.validate_json(text) == NIGHT
    assert "PLIMSOLL_MAINTENANCE_WINDOWS" not in str(at_any_time)
    seconds = at_night["spec"]["activeDeadlineSeconds"] - at_any_time["spec"]["activeDeadlineSeconds"]
    assert seconds > 7 * 24 * 3600
