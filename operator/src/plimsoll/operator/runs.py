"""The steps of a look at a `BenchmarkRun`."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, ClassVar

from plimsoll.api.names import API_VERSION, RUN_KIND, ConditionType
from plimsoll.api.status import format_time
from plimsoll.kube.errors import ForbiddenError
from plimsoll.kube.port import Kind, Kube
from plimsoll.lifecycle.decision import Action, Decision, Refusal, Removal
from plimsoll.lifecycle.observed import Observed
from plimsoll.lifecycle.queue import Entry, ahead_of, entry_of
from plimsoll.lifecycle.run import Platform, Run, run_of
from plimsoll.lifecycle.settings import Settings
from plimsoll.lifecycle.step import needs_platform, step, step_deletion, step_deletion_unseen, step_unseen
from plimsoll.lifecycle.storage.registry import look_of, survey_of
from plimsoll.metrics.exposition import Instruments
from plimsoll.operator.execute import MakeSecret, execute
from plimsoll.operator.gather import Known, gather, gather_platform
from plimsoll.operator.loop import Body, Record, Records, RemovalSteps, RemovingReconciler, refusal_of


@dataclass(slots=True, kw_only=True)
class RunMemory:
    """The state that only runs have.

    Attributes:
        admitted: whether the run is admitted, because a watch lags behind the written status.
        known: digests of its objects, so that the next look reads only those that have changed; None before the first.

    """

    admitted: bool = False
    known: Known | None = None


@dataclass(slots=True, kw_only=True)
class RunSteps(RemovalSteps[Run, Observed, RunMemory]):
    """The steps of a run.

    Attributes:
        now: returns the API server's time, because it is compared with times that the API server has set.
        queue: returns the entries of all runs, as a watch shows them.

    """

    kind: ClassVar[Kind] = Kind(api_version=API_VERSION, kind=RUN_KIND)

    kube: Kube
    settings: Settings
    now: Callable[[], datetime]
    queue: Callable[[], Iterable[Entry]]
    make_secret: MakeSecret
    instruments: Instruments
    records: Records[RunMemory] = field(default_factory=lambda: Records(RunMemory))

    def read(self, body: Body) -> Run:
        """Return the run."""
        return run_of(body)

    async def observe(self, subject: Run, record: Record[RunMemory]) -> Observed:
        """Observe a run, and the cluster if its plan is about to be frozen."""
        seen = await self._gather(subject, record)
        if not needs_platform(subject, seen, self.settings):
            return seen
        return replace(seen, platform=await self._platform(subject, record))

    def decide(self, subject: Run, seen: Observed, record: Record[RunMemory]) -> Decision:
        """Decide. Reading the queue and admitting the run is atomic: there is no `await` in between."""
        now = self.now()
        # The watch may still show a place in the queue that the run has just lost.
        own = _entry_of_run(subject)
        entries = [own if entry.uid == subject.uid else entry for entry in self._entries()]
        ahead = ahead_of(subject.uid, entries, now=now, hold_seconds=self.settings.hold_seconds)
        seen = replace(seen, ahead=ahead, refusal=record.refusal)
        decision = step(subject, seen, self.settings, now)
        conditions = decision.status["conditions"]
        record.memory.admitted = any((c["type"], c["status"]) == ("Admitted", "True") for c in conditions)
        return decision

    async def act(self, subject: Run, actions: Sequence[Action], record: Record[RunMemory]) -> None:
        """Perform actions."""
        if actions and record.memory.known is not None:
            record.memory.known.forget_fixed()
        await execute(actions, self.kube, make_secret=self.make_secret)

    def decide_unseen(self, subject: Run, refusal: Refusal) -> Decision | None:
        """Return the status of a run that the operator may not observe; None if it has ended."""
        return step_unseen(subject, refusal, self.now())

    async def observe_removal(self, subject: Run, record: Record[RunMemory]) -> Observed:
        """Observe what has to be removed of a run."""
        return await self._gather(subject, record, for_removal=True)

    def decide_removal(self, subject: Run, seen: Observed, record: Record[RunMemory]) -> Removal:
        """Return what to do before a deleted run can go."""
        return step_deletion(subject, replace(seen, refusal=record.refusal), self.settings, self.now())

    def status_of_unseen_removal(self, subject: Run, refusal: Refusal) -> Mapping[str, Any]:
        """Return the status of a deleted run that the operator may not observe."""
        return step_deletion_unseen(subject, refusal, self.now())

    def pause_removal(self, record: Record[RunMemory]) -> None:
        """Drop the digests of a run's objects."""
        record.memory.known = None

    def status_written(self, subject: Run, status: Mapping[str, Any]) -> None:
        """Count a run that has ended."""
        if status.get("completionTime") and not subject.status.get("completionTime"):
            self.instruments.ended(_reason_of_success(status))

    async def _gather(self, run: Run, record: Record[RunMemory], *, for_removal: bool = False) -> Observed:
        memory = record.memory
        memory.known = memory.known or Known(run.uid, self.now)
        return await gather(
            self.kube,
            namespace=run.namespace,
            name=run.name,
            uid=run.uid,
            look=lambda seen: look_of(run, seen, self.settings, self.now()),
            known=memory.known,
            for_removal=for_removal,
        )

    async def _platform(self, run: Run, record: Record[RunMemory]) -> Platform | None:
        """Inspect the cluster; None if that is refused, which is recorded."""
        try:
            return await gather_platform(self.kube, run.namespace, survey_of(run))
        except ForbiddenError as error:
            record.refusal = refusal_of(error)
            return None

    def _entries(self) -> list[Entry]:
        """Return the queue, with admissions that the watch does not show yet."""
        admitted = {uid for uid, record in self.records.items() if record.memory.admitted}
        return [_admitted(entry) if entry.uid in admitted else entry for entry in self.queue()]


def _entry_of_run(run: Run) -> Entry:
    """Return a run's entry according to the last written status."""
    metadata = {
        "uid": run.uid,
        "namespace": run.namespace,
        "name": run.name,
        "creationTimestamp": format_time(run.created),
    }
    return entry_of({"metadata": metadata, "spec": run.written, "status": run.status})


RunReconciler = RemovingReconciler[Run, Observed, RunMemory]


def _admitted(entry: Entry) -> Entry:
    """Return the entry of an admitted run, which is not over as long as the watch does not show its admission."""
    return replace(entry, admitted=True, over=entry.over and entry.admitted)


def _reason_of_success(status: Mapping[str, Any]) -> str:
    """Return the reason of Succeeded, which every status has."""
    return next(str(entry["reason"]) for entry in status["conditions"] if entry["type"] == ConditionType.SUCCEEDED)
