"""The steps of a look at a `BenchmarkSuite`. It is read anew at every look, because its status is its memory."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import ClassVar

from plimsoll.api.names import API_VERSION, SUITE_KIND
from plimsoll.api.suite_status import BenchmarkSuiteStatus
from plimsoll.kube.port import Kind, Kube
from plimsoll.lifecycle.actions import Event
from plimsoll.lifecycle.decision import DecisionOf
from plimsoll.lifecycle.refusal import Refusal
from plimsoll.lifecycle.settings import Settings
from plimsoll.reconcile.reconciler import Reconciler
from plimsoll.reconcile.records import Record, Records
from plimsoll.reconcile.steps import Body, Steps
from plimsoll.reconcile.suites.gather import gather_suite
from plimsoll.reconcile.suites.memory import SuiteMemory
from plimsoll.reconcile.suites.requests import check_runs, create_run, delete_run
from plimsoll.reconcile.suites.results import judge_round
from plimsoll.suite.rounds.actions import CreateRun, Decision, DeleteRun, DryRun, Emit, Judge, PatchStatus, Request
from plimsoll.suite.rounds.observed import Observed
from plimsoll.suite.rounds.step import step

SUITE = Kind(api_version=API_VERSION, kind=SUITE_KIND)

LONGEST_WAIT_SECONDS = 600.0
"""Pause between two looks at a suite whose objects do not change: the version of Ceph is not watched."""

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

    """

    kind: ClassVar[Kind] = SUITE

    kube: Kube
    settings: Settings
    now: Callable[[], datetime]
    records: Records[SuiteMemory] = field(default_factory=lambda: Records(SuiteMemory))

    def read(self, body: Body) -> SuiteName:
        """Return what identifies the suite."""
        metadata = body["metadata"]
        return SuiteName(name=metadata["name"], namespace=metadata["namespace"], uid=metadata["uid"])

    async def observe(self, subject: SuiteName, record: Record[SuiteMemory]) -> Observed | None:
        """Observe a suite. What is written is written over the status that is seen here."""
        document = await self.kube.get(SUITE, subject.name, subject.namespace)
        if document is None or document["metadata"]["uid"] != subject.uid:
            record.status, record.version = {}, None
            return None
        status = document.get("status") or {}
        record.status, record.version = _whole(status), document["metadata"]["resourceVersion"]
        memory = record.memory
        return await gather_suite(document, self.kube, memory=memory, settings=self.settings, now=self.now())

    def decide(self, subject: SuiteName, seen: Observed | None, record: Record[SuiteMemory]) -> DecisionOf[Request]:
        """Decide. After every request, the next look follows at once."""
        record.memory.seen = seen
        decision = step(seen) if seen is not None else Decision()
        patches = [one.status for one in decision.actions if isinstance(one, PatchStatus)]
        events = [one for one in decision.actions if isinstance(one, Emit)]
        return DecisionOf(
            status=patches[0] if patches else record.status or {},
            events=tuple(Event(kind=one.severity, reason=one.reason, message=one.message) for one in events),
            actions=tuple(one for one in decision.actions if not isinstance(one, PatchStatus | Emit)),
            requeue_seconds=0.0 if decision.actions else _wait_seconds(decision),
        )

    async def act(self, subject: SuiteName, actions: Sequence[Request], record: Record[SuiteMemory]) -> None:
        """Perform the request, and keep its outcome for the next look."""
        for action in actions:
            await self._perform(subject, action, record.memory)

    def decide_unseen(self, subject: SuiteName, refusal: Refusal) -> DecisionOf[Request] | None:
        """Change nothing: what cannot be observed is logged."""
        return None

    async def _perform(self, suite: SuiteName, action: Request, memory: SuiteMemory) -> None:
        match action:
            case CreateRun():
                memory.refusal = await create_run(action, self.kube, uid=suite.uid, now=self.now)
            case DeleteRun():
                await delete_run(action, self.kube, namespace=suite.namespace)
            case DryRun():
                memory.checked = await check_runs(action, self.kube, now=self.now)
            case Judge() if memory.seen is not None:
                memory.judgement = await judge_round(action, memory.seen, memory, self.kube)


SuiteReconciler = Reconciler[SuiteName, Observed | None, SuiteMemory, Request]


def _whole(status: Body) -> dict[str, object]:
    """Return a stored status in the form in which it is written: absent fields are None."""
    return {name: status.get(name) for name in _FIELDS}


def _wait_seconds(decision: Decision) -> float:
    seconds = decision.again_after
    return LONGEST_WAIT_SECONDS if seconds is None else min(seconds, LONGEST_WAIT_SECONDS)
