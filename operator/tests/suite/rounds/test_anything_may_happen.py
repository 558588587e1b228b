"""Whatever happens in whatever order, no round and no run is lost or measured twice, and the operator comes to rest."""

import json
from collections.abc import Callable
from datetime import datetime
from typing import Any

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from plimsoll.api.suite_status import PINNED_ROUNDS, RoundVerdict
from plimsoll.suite.rounds.actions import Action, CreateRun, DeleteRun, DryRun, Judge, PatchStatus
from support.pretend_suites import HASH, NAME, KilledError, PretendRun, PretendSuites
from support.suite_documents import VARIANTS

CRON = "*/10 * * * *"

CONTENTS: list[dict[str, Any]] = [
    {"variants": VARIANTS, "repeat": 1},
    {"variants": VARIANTS[:1], "repeat": 2},
    {"variants": VARIANTS, "repeat": 2},
]
SCHEDULES = [None, {"cron": CRON}, {"cron": CRON, "startingDeadlineSeconds": 300}]
JUDGED = [RoundVerdict.NO_REGRESSION, RoundVerdict.NO_REGRESSION, RoundVerdict.REGRESSED, RoundVerdict.INCONCLUSIVE]


class WatchedSuites(PretendSuites):
    """An API server that checks every request.

    Attributes:
        recorded: names of runs that the status has called current, with their UID.
        answered: schedule times that a round has answered.

    """

    def __init__(self, spec: dict[str, Any]) -> None:
        PretendSuites.__init__(self, spec=spec)
        self.recorded: set[str] = set()
        self.answered: set[str] = set()

    def _do(self, action: Action) -> None:
        assert not self.deleted
        match action:
            case PatchStatus():
                self._check_status({name: value for name, value in action.status.items() if value is not None})
            case CreateRun():
                self._check_creation(action.name)
            case DeleteRun():
                self._check_deletion(action.name)
            case Judge():
                assert action.minute == self.status["round"]["minute"]
            case DryRun():
                assert "round" not in self.status
        PretendSuites._do(self, action)

    def _check_creation(self, name: str) -> None:
        active = self.status["round"]
        assert name.startswith(f"{NAME}-")
        assert name.rsplit("-", 2)[1] == str(active["minute"]), "the round is not recorded"
        assert not self.spec.get("suspend")
        assert name not in self.recorded, "created again"
        others = [run for run in self.runs.values() if run.owner != "stranger" and not run.finished]
        assert not [run for run in others if run.name != name], "two runs at a time"

    def _check_deletion(self, name: str) -> None:
        minute = self.runs[name].minute if name in self.runs else None
        kept = {one["minute"]: one for one in self.rounds}
        is_unfinished = name in self.runs and not self.runs[name].finished
        assert not any(run.deleting for run in self.runs.values() if run.finished != is_unfinished)
        assert minute != self.status.get("round", {}).get("minute")
        assert minute not in kept or (is_unfinished and kept[minute]["verdict"] == "Superseded")

    def _check_status(self, new: dict[str, Any]) -> None:
        assert len(json.dumps(new)) < 40_000
        keep = self.spec.get("keep", 10)
        before, after = self.status.get("round"), new.get("round")
        rounds = {one["minute"]: one for one in new.get("rounds", ())}
        assert list(rounds) == sorted(rounds, reverse=True)
        assert before is None or before["minute"] in rounds or (after and after["minute"] == before["minute"]), "lost"
        assert after is None or not rounds or after["minute"] > max(rounds)
        if before is None and after is None:
            assert len(rounds) <= max(keep, len(self.rounds)) + PINNED_ROUNDS
        self._check_dropped(rounds, keep)
        if before is not None and after is not None and before["minute"] == after["minute"]:
            assert all(one["minute"] in rounds for one in self.rounds), "the baseline of a round changed"
        if new.get("acceptedRound") == self.status.get("acceptedRound"):
            pinned = {one["minute"]: one["digest"] for one in self.rounds if one["pinned"]}
            baseline = {one["digest"] for one in rounds.values() if one["accepted"]}
            assert all(minute in rounds or digest not in baseline for minute, digest in pinned.items())
        assert len({one["digest"] for one in rounds.values() if one["accepted"]}) <= 1
        for one in rounds.values():
            self._check_round(one)
        if after is not None:
            if "currentUid" in after:
                self.recorded.add(after["current"])
            if before is None or before["minute"] != after["minute"]:
                self._check_opening(new, after)
        conditions = {one["type"]: one["status"] for one in new["conditions"]}
        assert not ({"Stalled", "Reconciling"} <= conditions.keys())
        assert (conditions["Ready"] == "True") is not bool({"Stalled", "Reconciling"} & conditions.keys())

    def _check_dropped(self, rounds: dict[int, Any], keep: int) -> None:
        dropped = [one for one in self.rounds if one["minute"] not in rounds]
        newest = sorted({one["minute"] for one in self.rounds} | set(rounds), reverse=True)[:keep]
        assert not any(one["minute"] in newest for one in dropped)
        assert sum(one["pinned"] for one in rounds.values()) <= PINNED_ROUNDS

    def _check_round(self, one: dict[str, Any]) -> None:
        if one in self.rounds or one["minute"] in {old["minute"] for old in self.rounds}:
            return
        minute = str(one["minute"])
        assert not one["accepted"] or one["verdict"] in {"NoRegression", "Inconclusive"}
        if one["accepted"] or one["verdict"] == "NoRegression":
            active = self.status["round"]
            valid = [run for run in self.runs.values() if run.name.rsplit("-", 2)[1] == minute and run.succeeded]
            assert len(valid) == active["children"]["total"], "proves nothing"

    def _check_opening(self, new: dict[str, Any], active: dict[str, Any]) -> None:
        assert not self.spec.get("suspend")
        assert new["digest"] != self.status.get("digest") or active["cause"] != "Change"
        time = new.get("lastScheduleTime", "")
        is_new = time != self.status.get("lastScheduleTime", "")
        assert is_new or active["cause"] != "Scheduled"
        if is_new:
            deadline = (self.spec.get("schedule") or {}).get("startingDeadlineSeconds")
            late = self.now - datetime.fromisoformat(time)
            assert deadline is None or late.total_seconds() <= deadline
            assert time not in self.answered, "two rounds for one schedule time"
            self.answered.add(time)
        planned = new.get("nextScheduleTime")
        assert planned is None or planned > self.now.strftime("%Y-%m-%dT%H:%M:%SZ")


class Anything(RuleBasedStateMachine):
    """Users, the clock, runs and the operator doing what they do, at any time."""

    def __init__(self) -> None:
        super().__init__()
        self.world = WatchedSuites({})

    @initialize(content=st.sampled_from(CONTENTS), schedule=st.sampled_from(SCHEDULES), rounds=st.integers(0, 4))
    def begin(self, content: dict[str, Any], schedule: dict[str, Any] | None, rounds: int) -> None:
        """Begin anywhere in a suite's life."""
        self.world.change(**content, keep=2, schedule=schedule, triggers={"cephVersion": True})
        self.world.ceph_version = "18.2.0"
        for number in range(rounds):
            self.world.annotations["plimsoll.dev/request-round"] = str(number)
            self.world.measure_round()
            self.world.pass_time(minutes=1)

    # -- the operator

    @rule()
    def look(self) -> None:
        self._guarded(self.world.look)

    @rule()
    def come_to_rest(self) -> None:
        if self._guarded(self.world.settle):
            assert not self.world.look().actions

    @rule(requests=st.integers(1, 6), after=st.booleans())
    def kill(self, requests: int, *, after: bool) -> None:
        self.world.kill_in, self.world.kill_after = requests, after

    # -- the clock

    @rule(minutes=st.sampled_from([0, 1, 7, 10, 60, 60 * 24 * 3]))
    def pass_time(self, minutes: int) -> None:
        self.world.pass_time(minutes=minutes, seconds=1)

    @rule(minutes=st.sampled_from([1, 5, 11]))
    def set_clock_back(self, minutes: int) -> None:
        self.world.pass_time(minutes=-minutes)

    @rule(minutes=st.sampled_from([1, 5]))
    def repeat_schedule_time(self, minutes: int) -> None:
        """Set the clock back after a schedule time was answered."""
        for duration in (10, -minutes, minutes):
            self.world.pass_time(minutes=duration)
            for _ in range(5):
                if not self._guarded(self.world.settle):
                    return
                self.world.finish()

    # -- runs

    @rule(succeeded=st.sampled_from([True, True, True, False]))
    def finish(self, *, succeeded: bool) -> None:
        self.world.finish(succeeded=succeeded)

    @rule(delays=st.lists(st.sampled_from([0, 1, 9, 20]), min_size=1, max_size=6))
    def measure_slowly(self, delays: list[int]) -> None:
        for minutes in delays:
            if not self._guarded(self.world.settle):
                return
            self.world.finish()
            self.world.pass_time(minutes=minutes)

    @rule(verdicts=st.lists(st.sampled_from(JUDGED), min_size=1, max_size=3), succeeded=st.integers(0, 7))
    def measure(self, verdicts: list[RoundVerdict], succeeded: int) -> None:
        self.world.verdicts = verdicts
        for _ in range(6):
            if not self._guarded(self.world.settle):
                return
            self.world.finish(succeeded=succeeded > 0)

    @rule()
    def vanish(self) -> None:
        self.world.vanish()

    @rule(stuck=st.booleans())
    def finalize(self, *, stuck: bool) -> None:
        self.world.stuck = stuck

    # -- users

    @rule(content=st.sampled_from(CONTENTS))
    def change_content(self, content: dict[str, Any]) -> None:
        self.world.change(**content)

    @rule(
        keep=st.integers(1, 3),
        gate=st.booleans(),
        schedule=st.sampled_from(SCHEDULES),
        triggers=st.booleans(),
    )
    def configure(self, *, keep: int, gate: bool, schedule: dict[str, Any] | None, triggers: bool) -> None:
        self.world.change(keep=keep, gate=gate, schedule=schedule, triggers={"cephVersion": triggers})

    @rule(suspend=st.booleans())
    def suspend(self, *, suspend: bool) -> None:
        self.world.change(suspend=suspend)

    @precondition(lambda self: "round" in self.world.status)
    @rule()
    def suspend_and_finish(self) -> None:
        self.world.change(suspend=True)
        self._guarded(self.world.settle)
        self.world.finish()
        self._guarded(self.world.settle)
        self.world.change(suspend=False)

    @rule(valid=st.booleans())
    def break_schedule(self, *, valid: bool) -> None:
        self.world.change(schedule={"cron": CRON if valid else "no cron"})

    @rule(text=st.sampled_from(["one", "two", "three"]))
    def request(self, text: str) -> None:
        self.world.annotations["plimsoll.dev/request-round"] = text

    @rule(index=st.integers(0, 3))
    def accept(self, index: int) -> None:
        rounds = [str(one["minute"]) for one in self.world.rounds]
        text = rounds[index] if index < len(rounds) else "0"
        self.world.annotations["plimsoll.dev/accept-round"] = text

    @rule(index=st.integers(0, 4))
    def delete_run(self, index: int) -> None:
        own = [run for run in self.world.runs.values() if run.owner != "stranger"]
        if index < len(own):
            self._delete(own[index])

    @precondition(lambda self: "round" in self.world.status)
    @rule()
    def delete_active_run(self) -> None:
        for run in list(self.world.runs.values()):
            if run.minute == self.world.status["round"]["minute"] and not run.finished:
                self._delete(run)

    @rule(refused=st.sampled_from([{}, {}, {"small": "denied"}, {"large": "denied"}]))
    def refuse(self, refused: dict[str, str]) -> None:
        self.world.refuses = refused

    @rule(variant=st.sampled_from(["small", "large"]), repeat=st.integers(0, 1))
    def take_name(self, variant: str, repeat: int) -> None:
        """Create a run with the name of one of the active round, or of a round that starts now."""
        now = int(self.world.now.timestamp()) // 60
        minute = self.world.status.get("round", {}).get("minute", now)
        name = f"{NAME}-{variant}-{HASH}-{minute}-{repeat}"
        if name not in self.world.runs:
            self.world.runs[name] = PretendRun(name=name, uid=f"stranger-{name}", owner="stranger", minute=minute)

    @rule()
    def remove_strangers(self) -> None:
        self.world.runs = {name: run for name, run in self.world.runs.items() if run.owner != "stranger"}

    @rule(version=st.sampled_from(["18.2.1", "18.2.7", ""]))
    def upgrade_ceph(self, version: str) -> None:
        self.world.ceph_version = version

    @rule(sure=st.integers(0, 3))
    def delete_suite(self, sure: int) -> None:
        self.world.deleted = self.world.deleted or sure == 1

    def teardown(self) -> None:
        """Everything that stands in the way is removed: every round ends, and the operator comes to rest."""
        world = self.world
        world.restart()
        world.stuck, world.refuses = False, {}
        world.vanish()
        world.runs = {name: run for name, run in world.runs.items() if run.owner != "stranger"}
        if world.deleted:
            assert not world.look().actions
            return
        world.change(suspend=False, schedule=None)
        world.pass_time(minutes=6)
        for _ in range(2):
            world.measure_round()
        assert "round" not in world.status
        assert world.observe().suite.specification.digest == world.status["digest"]
        assert world.annotations.get("plimsoll.dev/request-round", "") == world.status.get("requestedRound", "")
        assert world.annotations.get("plimsoll.dev/accept-round", "") == world.status.get("acceptedRound", "")
        kept = {one["minute"] for one in world.rounds}
        assert {run.minute for run in world.runs.values()} <= kept
        assert len(kept) <= world.spec["keep"] + PINNED_ROUNDS

    def _delete(self, run: PretendRun) -> None:
        run.deleting = True
        if not self.world.stuck:
            self.world.vanish()

    def _guarded(self, operate: Callable[[], object]) -> bool:
        """Have the operator work; return false if it was killed, which restarts it."""
        try:
            operate()
        except KilledError:
            self.world.restart()
            return False
        return True


TestAnything = Anything.TestCase
TestAnything.settings = settings(max_examples=100, stateful_step_count=60, deadline=None)
