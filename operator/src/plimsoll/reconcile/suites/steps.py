"""The steps of a look at a `BenchmarkSuite`. Every look reads it again, because its status is its memory."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import ClassVar

from pydantic import ValidationError

from plimsoll.api.names import API_VERSION, SUITE_KIND
from plimsoll.api.suite_status import BenchmarkSuiteStatus
from plimsoll.kube.port import Kind, Kube
from plimsoll.lifecycle.decision import DecisionOf, Event, Refusal
from plimsoll.lifecycle.settings import Settings
from plimsoll.reconcile.reconciler import Reconciler
from plimsoll.reconcile.records import Record, Records
from plimsoll.reconcile.steps import Body, Steps
from plimsoll.reconcile.suites.gather import gather_suite
from plimsoll.reconcile.suites.memory import SuiteMemory
from plimsoll.reconcile.suites.requests import check_runs, create_run, delete_run, get_run
from plimsoll.reconcile.suites.results import judge_round
from plimsoll.suite.rounds.actions import (
    LONGEST_WAIT_SECONDS,
    CreateRun,
    Decision,
    DeleteRun,
    DryRun,
    Emit,
    GetRun,
    Judge,
    PatchStatus,
    Request,
)
from plimsoll.suite.rounds.observed import Observed, Outcome, Suite
from plimsoll.suite.rounds.step import step

SUITE = Kind(api_version=API_VERSION, kind=SUITE_KIND)

_log = logging.getLogger(__name__)

_FIELDS = tuple(model.serialization_alias or name for name, model in BenchmarkSuiteStatus.model_fields.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteName:
    """A suite."""

    name: str
    namespace: str
    uid: str


@dataclass(slots=True, kw_only=True)
class SuiteSteps(Steps[SuiteName, Observed | None, SuiteMemory, Request]):
    """The steps of a suite. None is observed of one that is gone.

    Attributes:
        now: returns the API server's time.
        judging: held while a round is evaluated, which takes much memory and processor time: one round at a time, of
            whichever suite.

    """

    kind: ClassVar[Kind] = SUITE

    kube: Kube
    settings: Settings
    now: Callable[[], datetime]
    records: Records[SuiteMemory] = field(default_factory=lambda: Records(SuiteMemory))
    judging: asyncio.Lock = field(default_factory=asyncio.Lock)

    def read(self, body: Body) -> SuiteName:
        """Return what identifies the suite."""
        metadata = body["metadata"]
        return SuiteName(name=metadata["name"], namespace=metadata["namespace"], uid=metadata["uid"])

    async def observe(self, subject: SuiteName, record: Record[SuiteMemory]) -> Observed | None:
        """Observe a suite. A status is only written over the one that is read here."""
        document = await self.kube.get(SUITE, subject.name, subject.namespace)
        if document is None or document["metadata"]["uid"] != subject.uid:
            record.status, record.version = {}, None
            return None
        record.status, record.version = _whole(document.get("status") or {}), document["metadata"]["resourceVersion"]
        memory = record.memory
        memory.has_outcome &= not record.was_woken
        # A failed request is logged, and delays nothing but the next look.
        record.refusal = None
        try:
            seen = await gather_suite(document, self.kube, memory=memory, settings=self.settings, now=self.now())
        except ValidationError as error:
            _log.error("suite %s/%s has a status of another version: %s", subject.namespace, subject.name, error)
            return None
        memory.outcomes, memory.has_outcome = seen.memory, False
        return seen

    def decide(self, subject: SuiteName, seen: Observed | None, record: Record[SuiteMemory]) -> DecisionOf[Request]:
        """Decide. After a request, the next look follows at once."""
        if seen is None or seen is record.memory.decided:
            # Also after a failed request: nothing else was observed.
            return DecisionOf(status=record.status or {}, requeue_seconds=LONGEST_WAIT_SECONDS)
        record.memory.decided = seen
        decision = step(seen)
        if not isinstance(decision.request, GetRun | Judge):
            record.memory.rounds.clear()
        status = record.status or {}
        for one in decision.actions:
            if isinstance(one, PatchStatus):
                # It is written even if it is the same: that fails if another operator has written one since.
                status, record.status = one.status, None
        return DecisionOf(
            status=status,
            events=tuple(_event(one) for one in decision.actions if isinstance(one, Emit)),
            actions=() if decision.request is None else (decision.request,),
            requeue_seconds=_pause_seconds(decision),
        )

    async def act(self, subject: SuiteName, actions: Sequence[Request], record: Record[SuiteMemory]) -> None:
        """Perform the request, and keep its outcome for the next look."""
        memory = record.memory
        for action in actions:
            if memory.decided is not None:
                outcome = await self._outcome(action, memory.decided.suite, memory)
                memory.outcomes, memory.has_outcome = memory.outcomes.after(outcome), True

    def decide_unseen(self, subject: SuiteName, refusal: Refusal) -> DecisionOf[Request] | None:
        """Change nothing: what cannot be observed is logged."""
        return None

    async def _outcome(self, action: Request, suite: Suite, memory: SuiteMemory) -> Outcome:
        match action:
            case CreateRun():
                return await create_run(action, suite, self.kube, now=self.now)
            case GetRun():
                return await get_run(action, suite, self.kube, now=self.now)
            case DeleteRun():
                return await delete_run(action, suite, self.kube)
            case DryRun():
                return await check_runs(action, self.kube, now=self.now)
            case Judge():
                asked = suite.specification.suite
                if asked is None:
                    raise ValueError("an invalid suite has no round to judge")
                async with self.judging:
                    return await judge_round(action, asked.spec, suite.namespace, memory, self.kube)


SuiteReconciler = Reconciler[SuiteName, Observed | None, SuiteMemory, Request]


def _whole(status: Body) -> dict[str, object]:
    """Return a stored status in the form in which it is written: absent fields are None."""
    return {name: status.get(name) for name in _FIELDS}


def _event(one: Emit) -> Event:
    return Event(kind=one.severity, reason=one.reason, message=one.message)


def _pause_seconds(decision: Decision) -> float:
    if decision.request is not None:
        return 0.0
    return LONGEST_WAIT_SECONDS if decision.again_after is None else decision.again_after
