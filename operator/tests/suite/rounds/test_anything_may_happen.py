"""Whatever happens in whatever order, no round and no run is lost or measured twice, and the operator comes to rest."""

from collections.abc import Callable
from typing import Any

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from plimsoll.api.suite_status import MAX_ROUNDS, RoundVerdict, round_name
from plimsoll.suite.rounds.observed import Decision
from plimsoll.suite.rounds.step import step
from support.fake_kube import copy_of
from support.pretend_suites import HASH, NAME, UID, KilledError, PretendRun, WatchedSuites
from support.specs import VARIANTS

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
TestAnything.settings = settings(max_examples=60, stateful_step_count=60, deadline=None)
