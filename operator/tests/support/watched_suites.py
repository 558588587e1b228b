"""A pretended API server that checks every request: no round and no run is lost, measured twice, or left behind."""

import json
from datetime import datetime
from typing import Any

from plimsoll.api.suite_status import PINNED_ROUNDS, UNUSABLE_ROUNDS
from plimsoll.suite.rounds.actions import Action, CreateRun, Decision, DeleteRun, DryRun, Judge, PatchStatus
from plimsoll.suite.rounds.observed import Observed, OwnedRun
from support.copies import copy_of
from support.pretend_suites import NAME, UID, PretendRun, PretendSuites

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

    def perform_late(self, decision: Decision) -> None:
        """Have another operator, which decided some time ago, perform its decision."""
        memory, self.is_late = self.memory, True
        try:
            self.perform(decision)
        finally:
            self.memory, self.is_late = memory, False

    def lose_status(self, *, entirely: bool) -> None:
        """Lose the status, or set it back to the oldest backup."""
        before = self._known()
        self.status = {} if entirely or not self.backups else copy_of(self.backups[0])
        self.version += 1
        self.forgotten |= before - self._known()
        self.recorded, self.answered, self.backups, self.lists, self.lag = set(), set(), [], [], 0
        self.regressed = None
        self.restart()

    def delete_unknown_runs(self) -> None:
        """Do what the condition asks for."""
        known = self._known() | set(self.status.get("dropped", ()))
        self.runs = {name: run for name, run in self.runs.items() if run.owner != UID or run.minute in known}

    def delete_suite(self) -> None:
        """Delete the suite, and what it owns."""
        self.deleted = True
        self.version += 1
        self.collect_garbage()

    def collect_garbage(self) -> None:
        self.runs = {name: run for name, run in self.runs.items() if run.owner != UID}

    @property
    def own(self) -> list[PretendRun]:
        return [run for run in self.runs.values() if run.owner == UID]

    def _known(self) -> set[int]:
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
                self._check_judge(action)
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
        assert not [run for run in self.own if run.name != name and not run.finished], "two runs at a time"

    def _check_deletion(self, name: str) -> None:
        if name not in self.runs or self.deleted:
            return
        minute = self.runs[name].minute
        superseded = {one["minute"] for one in self.rounds if one["verdict"] == "Superseded"}
        assert minute in {*self.status.get("dropped", ()), *superseded}, "nothing names it"
        assert minute not in self.forgotten
        assert minute != self.status.get("round", {}).get("minute")

    def _check_judge(self, action: Judge) -> None:
        assert action.minute == self.status["round"]["minute"]
        named = {run.name for of_variant in action.round.runs.values() for run in of_variant}
        assert named == {run.name for run in self.own if run.minute == action.minute and run.succeeded}

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
        if "round" not in self.status and "round" not in new and self._is_current(new):
            assert len(rounds) <= keep + 2 * PINNED_ROUNDS + UNUSABLE_ROUNDS + 1

    def _is_current(self, new: dict[str, Any]) -> bool:
        """Whether the operator can do anything with the suite as it is."""
        reasons = {one["reason"] for one in new["conditions"]}
        return not reasons & {"InvalidSpec", "StatusLost"}

    def _check_round(self, one: dict[str, Any]) -> None:
        if one["minute"] in {old["minute"] for old in self.rounds}:
            return
        minute = one["minute"]
        assert not one["accepted"] or one["verdict"] in {"NoRegression", "Inconclusive"} or self._is_named(minute)
        if one["accepted"] or one["complete"] or one["verdict"] == "NoRegression":
            active = self.status["round"]
            valid = [run for run in self.own if run.minute == minute and run.succeeded]
            assert len(valid) == active["children"]["total"], "proves nothing"
        if one["verdict"] in {"NoRegression", "Regressed"}:
            self.regressed = minute if one["verdict"] == "Regressed" else None

    def _is_named(self, minute: int) -> bool:
        return self.annotations.get("plimsoll.dev/accept-round") == str(minute)

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
            self.regressed = self._last_regressed(new) if has_regressed else None
        elif self.regressed is not None:
            assert has_regressed, "the gate opened without a reason"

    def _last_regressed(self, new: dict[str, Any]) -> int:
        return next(int(one["minute"]) for one in new["rounds"] if one["verdict"] == "Regressed")
