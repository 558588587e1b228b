"""A pretended API server with one suite, whose operator may be killed at every request."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime, timedelta
from functools import cache, lru_cache
from types import MappingProxyType
from typing import Any

import msgspec

from plimsoll.api.names import SuiteConditionType
from plimsoll.api.status import SuiteCondition
from plimsoll.api.suite_status import (
    PINNED_ROUNDS,
    UNUSABLE_ROUNDS,
    ComparisonOutcome,
    HypothesisResult,
    RoundVerdict,
    round_name,
)
from plimsoll.kube.port import ConflictError
from plimsoll.suite.children import measured_digest, turn_in_name
from plimsoll.suite.rounds.observed import (
    Absent,
    Action,
    Checked,
    CreateRun,
    Decision,
    Deleted,
    DeleteRun,
    DryRun,
    Emit,
    Found,
    GetRun,
    Judge,
    Judgement,
    Memory,
    Observed,
    Outcome,
    OwnedRun,
    PatchStatus,
    Request,
    RunRefusal,
    Specification,
    State,
    Suite,
    read_specification,
)
from plimsoll.suite.rounds.status import read_conditions, read_state
from plimsoll.suite.rounds.step import step
from support.fake_kube import copy_of
from support.pretend_cluster import Document
from support.specs import suite_document

NAME = "sizes"
UID = "suite-uid"
HASH = "b8fa9"
"""Beginning of the SHA-256 of that UID."""

START = datetime(2026, 11, 25, 12, 0, 30, tzinfo=UTC)
TAKEN = "exists and is not of this suite"
START_MINUTE = int(START.timestamp()) // 60


_OWNED_RUN = {one.name for one in fields(OwnedRun)}


@cache
def _specification(spec: str) -> Specification:
    return read_specification(suite_document(NAME, **json.loads(spec)))


@lru_cache(maxsize=1024)
def _known(status: bytes) -> tuple[State, Mapping[SuiteConditionType, SuiteCondition]]:
    """Return what a status says; the same is looked at many times."""
    document = msgspec.json.decode(status)
    return read_state(document), MappingProxyType(read_conditions(document))


class KilledError(Exception):
    """The operator died."""


@dataclass(slots=True, kw_only=True)
class PretendRun:
    """A run that changes; most fields are those of `OwnedRun`."""

    name: str
    uid: str
    owner: str = UID
    variant: str = ""
    minute: int = 0
    version: int = 1
    created: datetime = START
    measures: str = ""
    is_finished: bool = False
    succeeded: bool = False
    is_deleting: bool = False

    def end(self, *, succeeded: bool) -> None:
        self.is_finished, self.succeeded, self.version = True, succeeded, self.version + 1

    def seen(self) -> OwnedRun:
        same = {name: getattr(self, name) for name in _OWNED_RUN - {"resource_version"}}
        return OwnedRun(**same, resource_version=str(self.version))


@dataclass(slots=True, kw_only=True)
class PretendSuites:
    """The API server.

    Attributes:
        created: names of the runs that were ever created for the suite, in order.
        listed: what lists show, if it is not what exists.
        stuck: whether deleted runs keep their finalizers.
        kill_in: number of requests until the operator dies; None if it lives.
        kill_after: whether the request on which it dies is performed.
        verdicts: of the next evaluations; all others have `verdict`.
        refuses: message with which runs of a variant are refused, by the variant.

    """

    spec: dict[str, Any] = field(default_factory=dict)
    now: datetime = START
    generation: int = 1
    deleted: bool = False
    annotations: dict[str, str] = field(default_factory=dict)
    status: dict[str, Any] = field(default_factory=dict)
    version: int = 1
    runs: dict[str, PretendRun] = field(default_factory=dict)
    listed: tuple[OwnedRun, ...] | None = None
    created: list[str] = field(default_factory=list)
    events: list[Emit] = field(default_factory=list)
    stuck: bool = False
    kill_in: int | None = None
    kill_after: bool = False
    refuses: dict[str, str] = field(default_factory=dict)
    ceph_version: str = ""
    verdicts: list[RoundVerdict] = field(default_factory=list)
    verdict: RoundVerdict = RoundVerdict.NO_REGRESSION
    comparisons: tuple[ComparisonOutcome, ...] = ()
    hypotheses: tuple[HypothesisResult, ...] = ()
    judged: list[Judge] = field(default_factory=list)
    dry_runs: int = 0
    memory: Memory = field(default_factory=Memory)

    def change(self, **spec: Any) -> None:
        self.spec |= spec
        self.generation += 1
        self.version += 1

    def pass_time(self, **duration: float) -> None:
        self.now += timedelta(**duration)

    def observe(self) -> Observed:
        state, conditions = _known(msgspec.json.encode(self.status))
        suite = Suite(
            name=NAME,
            namespace="bench",
            uid=UID,
            generation=self.generation,
            resource_version=str(self.version),
            is_deleted=self.deleted,
            annotations=dict(self.annotations),
            specification=_specification(json.dumps(self.spec, sort_keys=True)),
            status=self.status,
            state=state,
            conditions=conditions,
        )
        return Observed(
            suite=suite,
            listed=self.existing() if self.listed is None else self.listed,
            now=self.now,
            ceph_version=self.ceph_version,
            memory=self.memory,
        )

    def existing(self) -> tuple[OwnedRun, ...]:
        return tuple(run.seen() for run in self.runs.values() if run.owner == UID)

    def look(self) -> Decision:
        """Decide once and perform the decision; return it."""
        decision = step(self.observe())
        self.perform(decision)
        if decision.request is None:
            self.memory = self.memory.woken(self.existing() if self.listed is None else self.listed)
        return decision

    def perform(self, decision: Decision) -> None:
        """Perform a decision until a conflict."""
        try:
            for action in decision.actions:
                if self.kill_in is not None:
                    self.kill_in -= 1
                    if self.kill_in <= 0:
                        if self.kill_after:
                            with suppress(ConflictError):
                                self._do(action)
                        raise KilledError
                self._do(action)
        except ConflictError:
            self.memory = Memory()

    def settle(self, most: int = 200) -> Decision:
        """Look until nothing is left to do but wait; return the last decision."""
        for _ in range(most):
            decision = self.look()
            if not decision.actions:
                return decision
        raise AssertionError(f"the operator is never idle: {decision.actions}")

    def restart(self) -> None:
        """Forget what the operator keeps in memory."""
        self.memory, self.kill_in = Memory(), None

    def finish(self, *, succeeded: bool = True) -> str | None:
        for run in self.runs.values():
            if not run.is_finished and run.owner == UID and not run.is_deleting:
                run.end(succeeded=succeeded)
                return run.name
        return None

    def measure_round(self, *, succeeded: bool = True) -> None:
        """Have all runs end until no round is due."""
        for _ in range(50):
            self.settle()
            if self.finish(succeeded=succeeded) is None:
                return
        raise AssertionError("rounds never end")

    def vanish(self) -> None:
        """Remove runs whose deletion was requested."""
        self.runs = {name: run for name, run in self.runs.items() if not run.is_deleting}

    @property
    def rounds(self) -> list[dict[str, Any]]:
        return list(self.status.get("rounds", ()))

    def condition(self, kind: str) -> Mapping[str, Any]:
        return next((one for one in self.status.get("conditions", ()) if one["type"] == kind), {})

    def reasons(self) -> list[str]:
        return [event.reason for event in self.events]

    def _do(self, action: Action) -> None:
        match action:
            case PatchStatus():
                if action.resource_version != str(self.version):
                    raise ConflictError("patch status", "the suite has changed since it was read")
                status = {name: value for name, value in action.status.items() if value is not None}
                if status != self.status:
                    self.status = status
                    self.version += 1
            case Emit():
                self.events.append(action)
            case _:
                self.memory = self.memory.after(self._answer(action))

    def _answer(self, request: Request) -> Outcome:
        match request:
            case CreateRun():
                return self._create(request)
            case GetRun():
                return self._get(request)
            case DeleteRun(name=name, uid=uid):
                run = self.runs.get(name)
                if run is not None and run.uid == uid:
                    run.is_deleting = True
                    if not self.stuck:
                        self.vanish()
                return Deleted(uid=uid)
            case DryRun(digest=digest, runs=runs):
                self.dry_runs += 1
                variant = next((name for name in runs if name in self.refuses), "")
                message = self.refuses.get(variant, "")
                return Checked(digest=digest, time=self.now, variant=variant, message=message)
            case Judge():
                self.judged.append(request)
                verdict = self.verdicts.pop(0) if self.verdicts else self.verdict
                return Judgement(
                    request=request,
                    verdict=verdict,
                    is_acceptable=verdict is not RoundVerdict.REGRESSED,
                    message=f"it is {verdict}",
                    comparisons=self.comparisons,
                    hypotheses=self.hypotheses,
                    counts=Counter(one.verdict.value for one in self.comparisons),
                )

    def _get(self, action: GetRun) -> Found | Absent | RunRefusal:
        run = self.runs.get(action.name)
        if run is None:
            return Absent(name=action.name)
        is_asked = run.owner == UID and run.measures == (action.measures or run.measures)
        if is_asked or run.uid == action.uid:
            return Found(run=run.seen())
        return self._refusal(action.name, TAKEN, is_taken=True)

    def _create(self, action: CreateRun) -> Found | RunRefusal:
        existing = self.runs.get(action.name)
        measures = measured_digest(action.run["spec"])
        if existing is not None:
            is_same = existing.owner == UID and existing.measures == measures
            return Found(run=existing.seen()) if is_same else self._refusal(action.name, TAKEN, is_taken=True)
        turn = turn_in_name(NAME, UID, action.name)
        assert turn is not None
        assert turn.variant == action.run["metadata"]["labels"]["plimsoll.dev/variant"]
        if turn.variant in self.refuses:
            return self._refusal(action.name, self.refuses[turn.variant])
        self.created.append(action.name)
        run = PretendRun(
            name=action.name,
            uid=f"uid-{len(self.created)}",
            variant=turn.variant,
            minute=turn.minute,
            created=self.now,
            measures=measures,
        )
        self.runs[action.name] = run
        return Found(run=run.seen())

    def _refusal(self, name: str, message: str, *, is_taken: bool = False) -> RunRefusal:
        return RunRefusal(name=name, time=self.now, message=message, is_taken=is_taken)


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
                assert action.minute == self.status["round"]["minute"]
                named = {name for of_variant in action.round.runs.values() for name in of_variant}
                assert named == {run.name for run in self.own if run.minute == action.minute and run.succeeded}
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
            valid = [run for run in self.own if run.minute == minute and run.succeeded]
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


_MOST_RUNS = 50


def suite_object(world: PretendSuites) -> Document:
    """Return the suite as the API server has it."""
    document = suite_document(NAME, **world.spec)
    metadata = {"name": NAME, "namespace": "bench", "uid": UID, "generation": world.generation}
    status = world.status or {"observedGeneration": -1}
    return deepcopy({**document, "metadata": metadata | {"annotations": world.annotations}, "status": status})


def suite_stages(world: PretendSuites) -> Iterator[Document]:
    """Yield a suite at every change, beginning with the present one, until no round is active or due."""
    last = suite_object(world)
    yield last
    for _ in range(_MOST_RUNS):
        while world.look().actions:
            if (now := suite_object(world)) != last:
                last = now
                yield last
        if world.finish() is None:
            return
    raise AssertionError("rounds never end")
