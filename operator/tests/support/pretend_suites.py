"""A pretended API server with one suite, and a shell that performs decisions and may be killed at every request."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

from plimsoll.api.suite_status import RoundVerdict
from plimsoll.suite.children import turn_in_name
from plimsoll.suite.rounds.actions import Action, CreateRun, Decision, DeleteRun, DryRun, Emit, Judge, PatchStatus
from plimsoll.suite.rounds.observed import Checked, Judgement, Observed, OwnedRun, Refusal, Suite
from plimsoll.suite.rounds.specification import Specification, read_specification
from plimsoll.suite.rounds.status import read_conditions, read_state
from plimsoll.suite.rounds.step import step
from support.suite_documents import suite_document

NAME = "sizes"
UID = "suite-uid"
HASH = "b8fa9"
"""Beginning of the SHA-256 of that UID."""

START = datetime(2026, 11, 25, 12, 0, 30, tzinfo=UTC)
START_MINUTE = int(START.timestamp()) // 60


@cache
def _specification(spec: str) -> Specification:
    return read_specification(suite_document(NAME, **json.loads(spec)))


class KilledError(Exception):
    """The operator died."""


class RefusedError(Exception):
    """The API server refused to create a run."""

    def __init__(self, message: str, *, is_taken: bool = False) -> None:
        super().__init__(message)
        self.is_taken = is_taken


@dataclass(slots=True, kw_only=True)
class PretendRun:
    name: str
    uid: str
    owner: str = UID
    minute: int = 0
    finished: bool = False
    succeeded: bool = False
    deleting: bool = False


@dataclass(slots=True, kw_only=True)
class PretendSuites:
    """The API server.

    Attributes:
        created: names of the runs that were ever created for the suite, in order.
        stuck: whether deleted runs keep their finalizers.
        kill_in: number of requests until the operator dies; None if it lives.
        kill_after: whether the request on which it dies is performed.
        refuses: message with which runs of a variant are refused, by the variant.

    """

    spec: dict[str, Any] = field(default_factory=dict)
    now: datetime = START
    generation: int = 1
    deleted: bool = False
    annotations: dict[str, str] = field(default_factory=dict)
    status: dict[str, Any] = field(default_factory=dict)
    runs: dict[str, PretendRun] = field(default_factory=dict)
    created: list[str] = field(default_factory=list)
    events: list[Emit] = field(default_factory=list)
    stuck: bool = False
    kill_in: int | None = None
    kill_after: bool = False
    refuses: dict[str, str] = field(default_factory=dict)
    ceph_version: str = ""
    verdicts: list[RoundVerdict] = field(default_factory=list)
    judged: list[Judge] = field(default_factory=list)
    dry_runs: int = 0
    # What the operator keeps in memory.
    judgement: Judgement | None = None
    checked: Checked | None = None
    refusal: Refusal | None = None

    def change(self, **spec: Any) -> None:
        self.spec |= spec
        self.generation += 1

    def pass_time(self, **duration: float) -> None:
        self.now += timedelta(**duration)

    def observe(self) -> Observed:
        suite = Suite(
            name=NAME,
            namespace="bench",
            uid=UID,
            generation=self.generation,
            is_deleted=self.deleted,
            annotations=dict(self.annotations),
            specification=_specification(json.dumps(self.spec, sort_keys=True)),
            status=self.status,
            state=read_state(self.status),
            conditions=read_conditions(self.status),
        )
        own = [run for run in self.runs.values() if run.owner == UID]
        return Observed(
            suite=suite,
            runs=tuple(
                OwnedRun(
                    name=run.name,
                    uid=run.uid,
                    minute=run.minute,
                    is_finished=run.finished,
                    succeeded=run.succeeded,
                    is_deleting=run.deleting,
                )
                for run in own
            ),
            now=self.now,
            ceph_version=self.ceph_version,
            judgement=self.judgement,
            checked=self.checked,
            refusal=self.refusal,
        )

    def look(self) -> Decision:
        """Decide once and perform the decision; return it."""
        decision = step(self.observe())
        for action in decision.actions:
            self._perform(action)
        return decision

    def settle(self, most: int = 200) -> Decision:
        """Look until nothing is left to do but wait; return the last decision."""
        for _ in range(most):
            decision = self.look()
            if not decision.actions:
                return decision
        raise AssertionError("the operator is never idle")

    def restart(self) -> None:
        """Forget what the operator keeps in memory."""
        self.judgement, self.checked, self.refusal, self.kill_in = None, None, None, None

    def finish(self, *, succeeded: bool = True) -> str | None:
        """Have the active run end; return its name, None if there is none."""
        for run in self.runs.values():
            if not run.finished and run.owner == UID and not run.deleting:
                run.finished, run.succeeded = True, succeeded
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
        self.runs = {name: run for name, run in self.runs.items() if not run.deleting}

    @property
    def rounds(self) -> list[dict[str, Any]]:
        return list(self.status.get("rounds", ()))

    def condition(self, kind: str) -> Mapping[str, Any]:
        return next((one for one in self.status.get("conditions", ()) if one["type"] == kind), {})

    def reasons(self) -> list[str]:
        return [event.reason for event in self.events]

    def _perform(self, action: Action) -> None:
        if self.kill_in is not None:
            self.kill_in -= 1
            if self.kill_in <= 0:
                if self.kill_after:
                    self._do(action)
                raise KilledError
        self._do(action)

    def _do(self, action: Action) -> None:
        match action:
            case PatchStatus():
                self.status = {name: value for name, value in action.status.items() if value is not None}
            case Emit():
                self.events.append(action)
            case CreateRun():
                self._create(action)
            case DeleteRun():
                self._delete(action)
            case DryRun():
                self._check(action)
            case Judge():
                self._judge(action)

    def _create(self, action: CreateRun) -> None:
        try:
            self._accept(action)
        except RefusedError as error:
            self.refusal = Refusal(name=action.name, time=self.now, message=str(error), is_taken=error.is_taken)
        else:
            self.refusal = None

    def _accept(self, action: CreateRun) -> None:
        existing = self.runs.get(action.name)
        if existing is not None:
            if existing.owner != UID:
                raise RefusedError("already exists", is_taken=True)
            return
        variant = action.run["metadata"]["labels"]["plimsoll.dev/variant"]
        if variant in self.refuses:
            raise RefusedError(self.refuses[variant])
        turn = turn_in_name(NAME, UID, action.name)
        assert turn is not None
        self.created.append(action.name)
        self.runs[action.name] = PretendRun(name=action.name, uid=f"uid-{len(self.created)}", minute=turn.minute)

    def _delete(self, action: DeleteRun) -> None:
        run = self.runs.get(action.name)
        if run is not None and run.uid == action.uid:
            run.deleting = True
            if not self.stuck:
                self.vanish()

    def _check(self, action: DryRun) -> None:
        self.dry_runs += 1
        variant = next((name for name in action.runs if name in self.refuses), "")
        message = self.refuses.get(variant, "")
        self.checked = Checked(digest=action.digest, time=self.now, variant=variant, message=message)

    def _judge(self, action: Judge) -> None:
        self.judged.append(action)
        verdict = self.verdicts.pop(0) if self.verdicts else RoundVerdict.NO_REGRESSION
        is_acceptable = verdict is not RoundVerdict.REGRESSED
        self.judgement = Judgement(
            minute=action.minute, verdict=verdict, is_acceptable=is_acceptable, message=f"it is {verdict}"
        )
