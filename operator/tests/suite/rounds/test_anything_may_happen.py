"""Whatever happens in whatever order, no round and no run is lost or measured twice, and the operator comes to rest.

One life of a suite, with an operator that is killed at any request and lists that lag, ends as if nothing had happened.
"""

import json
from collections.abc import Callable, Iterator
from datetime import datetime
from itertools import count
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from plimsoll.api.suite_status import MAX_ROUNDS, PINNED_ROUNDS, UNUSABLE_ROUNDS, RoundVerdict, round_name
from plimsoll.suite.rounds.observed import (
    Action,
    CreateRun,
    Decision,
    DeleteRun,
    DryRun,
    Judge,
    Observed,
    OwnedRun,
    PatchStatus,
)
from plimsoll.suite.rounds.step import step
from support.fake_kube import copy_of
from support.pretend_suites import HASH, NAME, UID, KilledError, PretendRun, PretendSuites
from support.specs import VARIANTS

_JUDGED = {"NoRegression", "Regressed", "Inconclusive"}
_LISTS = 8


class WatchedSuites(PretendSuites):
    """An API server that checks every request.

    Attributes:
        recorded: names of runs that the status has called current, with their UID.
        answered: schedule times that a round has answered.
        forgotten: minutes of rounds that a status lost. No operator may delete their runs.
        regressed: minute of the round whose regression is not over; None if there is none.
        lag: how many looks a list is behind.
        is_late: whether an operator acts that looked some time ago.

    """

    def __init__(self, spec: dict[str, Any]) -> None:
        PretendSuites.__init__(self, spec=spec)
        self.recorded: set[str] = set()
        self.answered: set[str] = set()
        self.forgotten: set[int] = set()
        self.regressed: int | None = None
        self.backups: list[dict[str, Any]] = []
        self.lists: list[tuple[OwnedRun, ...]] = []
        self.lag = 0
        self.is_late = False

    def observe(self) -> Observed:
        self.lists = [*self.lists, self.existing()][-_LISTS:]
        self.listed = self.lists[max(0, len(self.lists) - 1 - self.lag)]
        return PretendSuites.observe(self)

    def delete_suite(self) -> None:
        """Delete the suite, and what it owns."""
        self.deleted = True
        self.version += 1
        self.runs = {name: run for name, run in self.runs.items() if run.owner != UID}

    @property
    def own(self) -> list[PretendRun]:
        return [run for run in self.runs.values() if run.owner == UID]

    def known_minutes(self) -> set[int]:
        active = {self.status["round"]["minute"]} if "round" in self.status else set()
        return active | {one["minute"] for one in self.rounds}

    def _do(self, action: Action) -> None:
        assert not self.deleted or self.is_late
        match action:
            case PatchStatus() if action.resource_version == str(self.version):
                self._check_status({name: value for name, value in action.status.items() if value is not None})
            case CreateRun():
                self._check_creation(action.name)
            case DeleteRun():
                self._check_deletion(action.name)
            case Judge() if not self.is_late:
                assert action.round.minute == self.status["round"]["minute"]
                named = {name for of_variant in action.round.runs.values() for name in of_variant}
                assert named == {run.name for run in self.own if run.minute == action.round.minute and run.has_numbers}
            case DryRun() if not self.is_late:
                assert "round" not in self.status
        PretendSuites._do(self, action)

    def _check_creation(self, name: str) -> None:
        assert not self.deleted
        active = self.status["round"]
        assert name.startswith(f"{NAME}-")
        assert name == active["current"], "the run is not recorded"
        assert name.rsplit("-", 2)[1] == str(active["minute"]), "the round is not recorded"
        assert not self.spec.get("suspend")
        assert name not in self.recorded, "created again"
        assert not [run for run in self.own if run.name != name and not run.is_finished], "two runs at a time"

    def _check_deletion(self, name: str) -> None:
        if name not in self.runs or self.deleted:
            return
        minute = self.runs[name].minute
        superseded = {one["minute"] for one in self.rounds if one["verdict"] == "Superseded"}
        assert minute in {*self.status.get("dropped", ()), *superseded}, "nothing names it"
        assert minute not in self.forgotten
        assert minute != self.status.get("round", {}).get("minute")

    def _check_status(self, new: dict[str, Any]) -> None:
        assert len(json.dumps(new)) < 40_000
        before, after = self.status.get("round"), new.get("round")
        rounds = {one["minute"]: one for one in new.get("rounds", ())}
        assert list(rounds) == sorted(rounds, reverse=True)
        assert before is None or before["minute"] in rounds or (after and after["minute"] == before["minute"]), "lost"
        assert after is None or not rounds or after["minute"] > max(rounds)
        self._check_dropped(new, rounds)
        if before is not None and after is not None and before["minute"] == after["minute"]:
            assert all(one["minute"] in rounds for one in self.rounds), "the baseline of a round changed"
        assert len({one["digest"] for one in rounds.values() if one["accepted"]}) <= 1
        assert all(one["complete"] and one["verdict"] in _JUDGED for one in rounds.values() if one["accepted"])
        for one in rounds.values():
            self._check_round(one)
        if after is not None:
            if "currentUid" in after:
                self.recorded.add(after["current"])
            if before is None or before["minute"] != after["minute"]:
                self._check_opening(new, after)
        self._check_conditions(new)
        self.backups = [*self.backups, copy_of(new)][-_LISTS:]

    def _check_dropped(self, new: dict[str, Any], rounds: dict[int, Any]) -> None:
        keep = self.spec.get("keep", 10)
        dropped = {one["minute"]: one for one in self.rounds if one["minute"] not in rounds}
        assert {*dropped} <= {*new.get("dropped", ())}, "unnamed"
        every = {one["minute"]: one for one in self.rounds} | rounds
        usable = sorted((minute for minute, one in every.items() if one["verdict"] in _JUDGED), reverse=True)
        unusable = sorted({*every} - {*usable}, reverse=True)
        assert not {*usable[:keep], *unusable[:UNUSABLE_ROUNDS]} & {*dropped}
        assert sum(one["pinned"] for one in rounds.values()) <= PINNED_ROUNDS
        accepted = [one for one in rounds.values() if one["accepted"]]
        is_needed = len(accepted) < 3 and not any(one["former"] for one in rounds.values())
        assert not (is_needed and any(one["pinned"] for one in dropped.values())), "cannot be taken back"
        # With these reasons the operator can do nothing with the suite as it is.
        is_current = not {one["reason"] for one in new["conditions"]} & {"InvalidSpec", "StatusLost"}
        if "round" not in self.status and "round" not in new and is_current:
            assert len(rounds) <= keep + 2 * PINNED_ROUNDS + UNUSABLE_ROUNDS + 1

    def _check_round(self, one: dict[str, Any]) -> None:
        if one["minute"] in {old["minute"] for old in self.rounds}:
            return
        minute = one["minute"]
        is_named = self.annotations.get("plimsoll.dev/accept-round") == round_name(minute)
        assert not one["accepted"] or one["verdict"] in {"NoRegression", "Inconclusive"} or is_named
        if one["accepted"] or one["complete"] or one["verdict"] == "NoRegression":
            active = self.status["round"]
            valid = [run for run in self.own if run.minute == minute and run.has_numbers]
            assert len(valid) == active["children"]["total"], "proves nothing"
        if one["verdict"] in {"NoRegression", "Regressed"}:
            self.regressed = minute if one["verdict"] == "Regressed" else None

    def _check_opening(self, new: dict[str, Any], active: dict[str, Any]) -> None:
        assert not self.spec.get("suspend")
        assert "abandonedRun" not in new
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

    def _check_conditions(self, new: dict[str, Any]) -> None:
        conditions = {one["type"]: one for one in new["conditions"]}
        assert not ({"Stalled", "Reconciling"} <= conditions.keys())
        is_ready = conditions["Ready"]["status"] == "True"
        assert is_ready is not bool({"Stalled", "Reconciling"} & conditions.keys())
        has_regressed = conditions["Regressed"]["status"] == "True"
        if new.get("baseline") != self.status.get("baseline") or not self.status:
            # A user accepted a round, the first look after a loss, or another digest: what the user meant is not known.
            accepted = (new.get("baseline") or {}).get("first", 0)
            assert not has_regressed or all(
                one["minute"] > accepted for one in new["rounds"] if one["minute"] == self.regressed
            )
            regressed = (int(one["minute"]) for one in new["rounds"] if one["verdict"] == "Regressed")
            self.regressed = next(regressed) if has_regressed else None
        elif self.regressed is not None:
            assert has_regressed, "the gate opened without a reason"


CRON = "*/10 * * * *"

CONTENTS: list[dict[str, Any]] = [
    {"variants": VARIANTS, "repeat": 1},
    {"variants": VARIANTS[:1], "repeat": 2},
    {"variants": VARIANTS, "repeat": 2},
]
SCHEDULES = [None, {"cron": CRON}, {"cron": CRON, "startingDeadlineSeconds": 300}]
JUDGED = [RoundVerdict.NO_REGRESSION, RoundVerdict.NO_REGRESSION, RoundVerdict.REGRESSED, RoundVerdict.INCONCLUSIVE]


class Anything(RuleBasedStateMachine):
    """Users, the clock, runs and the operator doing what they do, at any time."""

    def __init__(self) -> None:
        super().__init__()
        self.world = WatchedSuites({})
        self.late: Decision | None = None
        self.requests = 0

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
        self.world.lag = 0
        if self._guarded(self.world.settle):
            assert not self.world.look().actions

    @rule(requests=st.integers(1, 6), after=st.booleans())
    def kill(self, requests: int, *, after: bool) -> None:
        self.world.kill_in, self.world.kill_after = requests, after

    @rule(lag=st.integers(0, 5))
    def lag(self, lag: int) -> None:
        """Have lists show what existed some looks ago."""
        self.world.lag = lag

    @rule()
    def decide(self) -> None:
        """Have another operator decide; it acts later, or never."""
        self.late = step(self.world.observe())

    @precondition(lambda self: self.late is not None)
    @rule()
    def act_late(self) -> None:
        assert self.late is not None
        late, self.late = self.late, None

        def perform() -> None:
            memory, self.world.is_late = self.world.memory, True
            try:
                self.world.perform(late)
            finally:
                self.world.memory, self.world.is_late = memory, False

        self._guarded(perform)

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

    @rule(verdict=st.sampled_from(JUDGED))
    def measure_requested_round(self, verdict: RoundVerdict) -> None:
        """Measure a whole round that has a verdict."""
        self.requests += 1
        self.world.annotations["plimsoll.dev/request-round"] = f"request {self.requests}"
        self.world.verdicts, self.world.verdict = [], verdict
        for _ in range(12):
            if not self._guarded(self.world.settle):
                return
            self.world.finish()
        self.world.verdict = RoundVerdict.NO_REGRESSION

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
        rounds = [round_name(one["minute"]) for one in self.world.rounds]
        text = rounds[index] if index < len(rounds) else "0"
        self.world.annotations["plimsoll.dev/accept-round"] = text

    @rule(index=st.integers(0, 4))
    def delete_run(self, index: int) -> None:
        if index < len(self.world.own):
            self._delete(self.world.own[index])

    @precondition(lambda self: "round" in self.world.status)
    @rule()
    def delete_active_run(self) -> None:
        for run in list(self.world.runs.values()):
            if run.minute == self.world.status["round"]["minute"] and not run.is_finished:
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
        if sure == 1:
            self.world.delete_suite()

    @rule(sure=st.integers(0, 2), entirely=st.booleans())
    def lose_status(self, sure: int, *, entirely: bool) -> None:
        """Lose the status, or set it back to the oldest backup."""
        if sure != 1:
            return
        self.late, world = None, self.world
        before = world.known_minutes()
        world.status = {} if entirely or not world.backups else copy_of(world.backups[0])
        world.version += 1
        world.forgotten |= before - world.known_minutes()
        world.recorded, world.answered, world.backups, world.lists, world.lag = set(), set(), [], [], 0
        world.regressed = None
        world.restart()

    @rule()
    def follow_the_remedy(self) -> None:
        if self.world.condition("Stalled").get("reason") == "StatusLost":
            self.delete_unknown_runs()

    def teardown(self) -> None:
        """Everything that stands in the way is removed: every round ends, and the operator comes to rest."""
        world = self.world
        world.restart()
        world.stuck, world.refuses, world.lag = False, {}, 0
        world.vanish()
        self.remove_strangers()
        if world.deleted:
            assert not world.look().actions
            assert not world.own, "left behind"
            return
        self.delete_unknown_runs()
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
        assert len(kept) <= MAX_ROUNDS

    def delete_unknown_runs(self) -> None:
        world = self.world
        known = world.known_minutes() | set(world.status.get("dropped", ()))
        world.runs = {name: run for name, run in world.runs.items() if run.owner != UID or run.minute in known}

    def _delete(self, run: PretendRun) -> None:
        run.is_deleting = True
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
TestAnything.settings = settings(max_examples=30, stateful_step_count=60, deadline=None)


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
