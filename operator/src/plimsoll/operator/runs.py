"""Looks at a `BenchmarkRun`, and cleans up after one that is deleted."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import Any

from plimsoll.api.names import API_VERSION, RUN_KIND, ConditionType
from plimsoll.kube import port
from plimsoll.kube.port import Kind, Object
from plimsoll.lifecycle import shapes
from plimsoll.lifecycle.decision import Action, Decision, Fact
from plimsoll.lifecycle.naming import FINALIZER
from plimsoll.lifecycle.observed import Observed
from plimsoll.lifecycle.provisioning import teardown
from plimsoll.lifecycle.queue import Entry, entry_of, turn_of
from plimsoll.lifecycle.refusals import Refusal
from plimsoll.lifecycle.run import Run, is_protected, needs_attention, run_of
from plimsoll.lifecycle.status import status_of_removal
from plimsoll.lifecycle.step import needs_platform, step, step_unseen
from plimsoll.lifecycle.storage.claims import creates_claims
from plimsoll.lifecycle.storage.registry import look_of, provider_of
from plimsoll.operator.execute import MakeSecret, execute, refusal_of
from plimsoll.operator.gather import RunDigests, gather, gather_platform
from plimsoll.operator.loop import Body, Reconciler, Record, Records, wait_for_first

RUN = Kind(api_version=API_VERSION, kind=RUN_KIND)

_QUEUE_POLL_SECONDS, _QUEUE_POLLS = 0.1, 50


@dataclass(slots=True, kw_only=True)
class RunMemory(Record):
    """What the operator remembers of a run."""

    # The last written status, because a watch lags behind the operator's own writes; None before the first.
    status: Mapping[str, Any] | None = None
    version: str = ""  # the resourceVersion that the run had with this status
    refusal: Refusal | None = None  # the last refused request, until a look at which every request succeeds
    admitted: bool = False  # whether the run is admitted, because a watch lags behind the written status
    digests: RunDigests | None = None  # of its objects, so that a look reads only those that have changed

    def remember(self, document: Object) -> None:
        self.status, self.version = document.get("status") or {}, document["metadata"]["resourceVersion"]


@dataclass(slots=True, kw_only=True)
class RunReconciler(Reconciler[RunMemory]):
    """Reconciles runs."""

    queue: Callable[[], Iterable[Entry]]  # returns the entries of all runs that a watch has shown
    is_queue_complete: bool = False  # whether it has shown all runs that existed when the operator started
    completing: asyncio.Lock = field(default_factory=asyncio.Lock)
    namespaces: Sequence[str] = ()  # whose runs these are; all if empty
    make_secret: MakeSecret
    records: Records[RunMemory] = field(default_factory=lambda: Records(RunMemory))
    # Maximum pause after a look that acted and changed the status: events need not tell of the next step, because not
    # every kind of object is watched, and events can be lost.
    verify_seconds: float = 1.0
    removal_look_seconds: float = 2.0  # pause between two looks at a deleted run
    write_seconds: float = 2.0  # how long a refused change of the run is tried again

    def needs_look(self, body: Body) -> bool:
        return needs_attention(body) or is_protected(body)

    async def look(self, body: Body) -> tuple[float | None, bool]:
        """Look at a run; see `reconcile` and `look_at_removal`. Its finalizer is kept as long as it needs that."""
        if not self.is_queue_complete:
            record = self.records[body["metadata"]["uid"]]
            await self.complete_queue()
            # This look sees everything that the watch has shown in the meantime.
            record.wakeup.clear()
            if entry_of(record.body, self.settings).admitted:
                # Its conductor measures meanwhile; a new run's first trial waits for this look.
                await self.spread(record)
                record.wakeup.clear()
            body = record.body
            if record.is_gone or self.stopping.is_set() or not self.needs_look(body):
                return 0.0, False
        if needs_attention(body):
            if "deletionTimestamp" not in body["metadata"]:
                decision = await self.reconcile(body)
                return decision.requeue_seconds, bool(decision.actions)
            with self.instruments.step("remove"):
                cleaned_up = await self.look_at_removal(body)
            if not cleaned_up.holds:
                return self.removal_look_seconds, True
        await self._set_finalizer(body, present=False)
        return None, False

    async def complete_queue(self) -> None:
        """Wait until the watch has shown all runs: a run must not overtake another that is not in the queue yet."""
        async with self.completing:
            while not (self.is_queue_complete or self.stopping.is_set()):
                places = self.namespaces or (None,)
                versions = [await self.kube.versions(RUN, namespace=namespace) for namespace in places]
                existing = {version.uid for version in chain.from_iterable(versions)}
                # A run that was deleted before the watch began is never shown: list them again if no more are shown.
                missing, polls = len(existing) + 1, 0
                while polls < _QUEUE_POLLS and missing and not self.stopping.is_set():
                    left = len(existing - {entry.uid for entry in self.queue()})
                    missing, polls = min(left, missing), 0 if left < missing else polls + 1
                    self.is_queue_complete = not missing
                    await wait_for_first(_QUEUE_POLL_SECONDS if missing else 0.0, self.stopping.wait())

    async def reconcile(self, body: Body) -> Decision:
        """Observe a run, decide, write its status, act; after a refused request, write it again. Raises ApiError."""
        record = self.records[body["metadata"]["uid"]]
        body = await self._protected(body, record)
        run = self.read(body, record)
        with self.instruments.step("observe"):
            try:
                seen = await self.observe(run, record)
            except (port.ForbiddenError, port.UnknownKindError) as error:
                if (unseen := step_unseen(run, refusal_of(error), self.now())) is not None:
                    await self._publish(run, unseen, record, body)
                raise
        was_refused = record.refusal is not None
        with self.instruments.step("decide"):
            decision = self._decide(run, seen, record, body)
        with self.instruments.step("say"):
            has_changed = await self._publish(run, decision, record, body)
        try:
            with self.instruments.step("act"):
                await self._act(run, decision.actions, record)
        except port.ApiError:
            run = self.read(body, record)
            await self._publish(run, replace(self._decide(run, seen, record, body), actions=()), record, body)
            raise
        if was_refused:
            # A refused request has succeeded: look again soon so that the status catches up.
            return replace(decision, requeue_seconds=self.retry_seconds)
        if decision.actions and has_changed:
            seconds = self.verify_seconds if decision.requeue_seconds is None else decision.requeue_seconds
            return replace(decision, requeue_seconds=min(seconds, self.verify_seconds))
        lasts_seconds = record.digests.lasts_seconds if record.digests is not None else 0.0
        if lasts_seconds and decision.requeue_seconds and run.holds(ConditionType.CLIENTS_READY):
            return replace(decision, requeue_seconds=min(decision.requeue_seconds, lasts_seconds))
        return decision

    async def _protected(self, body: Body, record: RunMemory) -> Body:
        """Return the run with its finalizer, which is set if it is missing; without, if that is refused."""
        if is_protected(body):
            return body
        try:
            finalizers = await self._set_finalizer(body, present=True)
        except port.ApiError as error:
            record.refusal = refusal_of(error)
            return body
        return {**body, "metadata": {**body["metadata"], "finalizers": finalizers}}

    async def _set_finalizer(self, body: Body, *, present: bool) -> Sequence[str]:
        """Set or remove a run's finalizer, and return those that are stored; none if the run is gone."""
        name, namespace, uid = (body["metadata"][field] for field in ("name", "namespace", "uid"))

        async def set_it() -> Sequence[str]:
            stored = await self.kube.get(RUN, name, namespace, shape=shapes.Identity)
            if stored is None or stored["metadata"]["uid"] != uid:
                return ()
            finalizers = stored["metadata"].get("finalizers") or []
            if (FINALIZER in finalizers) is not present:
                wanted = [*finalizers, FINALIZER] if present else [name for name in finalizers if name != FINALIZER]
                metadata = {"resourceVersion": stored["metadata"]["resourceVersion"], "finalizers": wanted}
                stored = await self.kube.patch(RUN, name, namespace, {"metadata": metadata})
            return stored["metadata"].get("finalizers") or ()

        return await port.persist(set_it, seconds=self.write_seconds)

    async def look_at_removal(self, body: Body) -> Fact:
        """Observe a deleted run, decide, write its status, act; return whether its finalizer can go."""
        record = self.records[body["metadata"]["uid"]]
        if record.status is None:
            # It may record an admission, and thus objects, that the watch does not show yet.
            metadata = body["metadata"]
            document = await self.kube.get(RUN, metadata["name"], metadata["namespace"])
            if document is not None and document["metadata"]["uid"] == metadata["uid"]:
                record.remember(document)
                record.admitted = run_of(document, self.settings).holds(ConditionType.ADMITTED)
        run = self.read(body, record)
        try:
            seen = await self._gather(run, record, for_removal=True)
        except (port.ForbiddenError, port.UnknownKindError) as error:
            refusal = refusal_of(error)
            status = status_of_removal(run, Fact.false(refusal.reason, refusal.message), self.now())
            with suppress(port.NotFoundError):
                await self._write(run, status, record)
            raise
        now, seen = self.now(), replace(seen, refusal=record.refusal)
        progress = teardown(run, seen, self.settings, keep_volumes=False, now=now)
        status = status_of_removal(run, progress.fact, now)
        # Also when nothing is left: another finalizer may keep the object, and the next run must not wait for it.
        with suppress(port.NotFoundError):
            await self._write(run, status, record, acts=bool(progress.actions))
        if not progress.fact.holds:
            await self._act(run, progress.actions, record)
        return progress.fact

    def read(self, body: Body, record: RunMemory) -> Run:
        document = dict(body)
        if record.status is None:
            record.version = document["metadata"]["resourceVersion"]
            return run_of(document, self.settings)
        return run_of({**document, "status": record.status}, self.settings)

    async def observe(self, run: Run, record: RunMemory) -> Observed:
        seen = await self._gather(run, record)
        if not needs_platform(run, seen, self.settings):
            return seen
        try:
            burner = self.settings.burning.service if self.settings.burning and creates_claims(run) else None
            survey = provider_of(run).survey(run) if run.document is not None else None
            return replace(seen, platform=await gather_platform(self.kube, run.namespace, survey, burner))
        except port.ForbiddenError as error:
            record.refusal = refusal_of(error)
            return seen

    async def _gather(self, run: Run, record: RunMemory, *, for_removal: bool = False) -> Observed:
        record.digests = record.digests or RunDigests(run.identity, self.now)
        return await gather(
            self.kube,
            run.identity,
            look=lambda seen: look_of(run, seen, self.settings, self.now()),
            digests=record.digests,
            for_removal=for_removal,
            after_event=record.was_woken and run.holds(ConditionType.CLIENTS_READY),
        )

    def _decide(self, run: Run, seen: Observed, record: RunMemory, body: Body) -> Decision:
        """Decide. Reading the queue and admitting the run is atomic: there is no `await` in between."""
        now = self.now()
        # The watch may still show a place in the queue that the run has just lost.
        own_entry = entry_of({**body, "status": run.status}, self.settings)
        entries = [own_entry if entry.uid == run.uid else entry for entry in self._entries()]
        turn = turn_of(run.uid, entries, now=now, hold_seconds=self.settings.hold_seconds)
        decision = step(run, replace(seen, turn=turn, refusal=record.refusal), self.settings, now)
        conditions = decision.status["conditions"]
        record.admitted = any((c["type"], c["status"]) == ("Admitted", "True") for c in conditions)
        return decision

    def _entries(self) -> list[Entry]:
        """Return the queue, with admissions that the watch does not show yet."""
        admitted = {uid for uid, record in self.records.items() if record.admitted}
        return [
            # Not over as long as the watch does not show the admission.
            replace(entry, admitted=True, over=entry.over and entry.admitted) if entry.uid in admitted else entry
            for entry in self.queue()
        ]

    async def _publish(self, run: Run, decision: Decision, record: RunMemory, body: Body) -> bool:
        status = decision.status
        if not await self._write(run, status, record, acts=bool(decision.actions)):
            return False
        if status.get("completionTime") and not run.status.get("completionTime"):
            reasons = {entry["type"]: entry["reason"] for entry in status["conditions"]}
            self.instruments.ended(str(reasons[ConditionType.SUCCEEDED]))
        for event in decision.events:
            self.post(body, event)
        return True

    async def _write(self, run: Run, status: Mapping[str, Any], record: RunMemory, *, acts: bool = False) -> bool:
        """Write a status if it changed, or before actions; ConflictError: another operator has written another one."""
        has_changed = record.status != status
        if not has_changed and not acts:
            return False
        write = partial(self.kube.patch_status, RUN, run.name, run.namespace, status)
        try:
            ask = partial(write, version=record.version)
            written = await port.persist(ask, seconds=self.write_seconds, errors=(port.TransientError,))
        except port.ConflictError:
            stored = await self.kube.get(RUN, run.name, run.namespace)
            if stored is None or stored["metadata"]["uid"] != run.uid:
                raise
            record.remember(stored)
            if any((record.status or {}).get(field) != value for field, value in run.status.items()):
                record.digests = None  # another operator has acted since the objects were read
                raise
            written = await write(version=record.version)
        record.status, record.version = dict(status), written["metadata"]["resourceVersion"]
        return has_changed

    async def _act(self, run: Run, actions: Sequence[Action], record: RunMemory) -> None:
        if actions and record.digests is not None:
            record.digests.forget_fixed()
        try:
            await execute(actions, self.kube, make_secret=self.make_secret)
        except port.ApiError as error:
            record.refusal = refusal_of(error)
            raise
        if record.refusal is not None and not record.refusal.is_permanent(run.namespace):
            record.refusal = None
