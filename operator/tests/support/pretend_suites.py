"""A pretended API server with one suite, whose operator may be killed at every request."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime, timedelta
from functools import cache, lru_cache
from typing import Any

import msgspec

from plimsoll.api.reasons.entry import Event
from plimsoll.api.suite_status import (
    ComparisonOutcome,
    HypothesisResult,
    RoundVerdict,
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
    GetRun,
    Judge,
    Memory,
    Observed,
    Outcome,
    OwnedRun,
    PatchStatus,
    RecordedEvaluation,
    Request,
    RunRefusal,
    Specification,
    State,
    Suite,
    read_specification,
)
from plimsoll.suite.rounds.step import step
from support.pretend_cluster import Document
from support.specs import suite_document

NAME = "sizes"
UID = "suite-uid"
HASH = "b8fa9"
"""Beginning of the SHA-256 of that UID."""

START = datetime(2026, 11, 25, 12, 0, 30, tzinfo=UTC)
TAKEN = "exists and does not belong to this suite"
START_MINUTE = int(START.timestamp()) // 60


_OWNED_RUN = {one.name for one in fields(OwnedRun)}


@cache
def _specification(spec: str) -> Specification:
    return read_specification(suite_document(NAME, **json.loads(spec)))


@lru_cache(maxsize=1024)
def _known(status: bytes) -> State:
    """Return what a status says; the same is looked at many times."""
    return State.model_validate(msgspec.json.decode(status))


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
    has_numbers: bool = False
    is_deleting: bool = False

    def end(self, *, succeeded: bool) -> None:
        self.is_finished, self.has_numbers, self.version = True, succeeded, self.version + 1

    def seen(self) -> OwnedRun:
        return OwnedRun(**{name: getattr(self, name) for name in _OWNED_RUN})


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
    events: list[Event] = field(default_factory=list)
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
        suite = Suite(
            name=NAME,
            namespace="bench",
            uid=UID,
            generation=self.generation,
            resource_version=str(self.version),
            is_deleted=self.deleted,
            annotations=dict(self.annotations),
            specification=_specification(json.dumps(self.spec, sort_keys=True)),
            status=_known(msgspec.json.encode(self.status)),
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
            case Event():
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
                return RecordedEvaluation(
                    request=request,
                    verdict=verdict,
                    is_acceptable=verdict is not RoundVerdict.REGRESSED,
                    message=f"it is {verdict}",
                    comparisons=self.comparisons,
                    hypotheses=self.hypotheses,
                    counts=Counter(one.verdict.value for one in self.comparisons),
                )

    def _get(self, action: GetRun) -> OwnedRun | Absent | RunRefusal:
        run = self.runs.get(action.name)
        if run is None:
            return Absent(name=action.name)
        is_asked = run.owner == UID and run.measures == (action.measures or run.measures)
        if is_asked or run.uid == action.uid:
            return run.seen()
        return self._refusal(action.name, TAKEN, is_taken=True)

    def _create(self, action: CreateRun) -> OwnedRun | RunRefusal:
        existing = self.runs.get(action.name)
        measures = measured_digest(action.run["spec"])
        if existing is not None:
            is_same = existing.owner == UID and existing.measures == measures
            return existing.seen() if is_same else self._refusal(action.name, TAKEN, is_taken=True)
        turn = turn_in_name(NAME, UID, action.name)
        assert turn is not None
        variant, minute = turn
        assert variant == action.run["metadata"]["labels"]["plimsoll.dev/variant"]
        if variant in self.refuses:
            return self._refusal(action.name, self.refuses[variant])
        self.created.append(action.name)
        run = PretendRun(
            name=action.name,
            uid=f"uid-{len(self.created)}",
            variant=variant,
            minute=minute,
            created=self.now,
            measures=measures,
        )
        self.runs[action.name] = run
        return run.seen()

    def _refusal(self, name: str, message: str, *, is_taken: bool = False) -> RunRefusal:
        return RunRefusal(name=name, time=self.now, message=message, is_taken=is_taken)


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
