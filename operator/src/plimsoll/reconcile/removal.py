"""The loop for kinds whose objects the operator has to clean up before they can go."""

from contextlib import suppress
from dataclasses import dataclass

from plimsoll.kube.errors import ApiError, ForbiddenError, NotFoundError, UnknownKindError
from plimsoll.lifecycle.decision import Action, Fact
from plimsoll.reconcile.reconciler import Logger, Reconciler, uid_of, wait_for_first
from plimsoll.reconcile.refusals import refusal_of
from plimsoll.reconcile.steps import Body, M, RemovalSteps, S, T

_NO_ANSWER = "the API server does not respond"


@dataclass(slots=True, kw_only=True)
class RemovingReconciler(Reconciler[T, S, M, Action]):
    """Reconciles the objects of one kind, and cleans up after those that are deleted.

    Attributes:
        removal_look_seconds: pause between two looks at a deleted object.
        removal_seconds: maximum duration of one call of `remove`.

    """

    steps: RemovalSteps[T, S, M]
    removal_look_seconds: float = 2.0
    removal_seconds: float = 300.0

    async def remove(self, body: Body, logger: Logger) -> str | None:
        """Clean up a deleted object; return what the removal waits for, None if nothing is left."""
        uid, missing = uid_of(body), _NO_ANSWER
        async with self.records[uid].lock:
            for _ in range(int(self.removal_seconds / self.removal_look_seconds)):
                try:
                    with self._counting_failures(), self.instruments.step("remove"):
                        cleaned_up = await self.look_at_removal(body)
                except ApiError as error:
                    logger.warning("API request failed, teardown continues: %s", error)
                else:
                    if cleaned_up.holds:
                        self.records.forget(uid)
                        return None
                    missing = cleaned_up.message
                await self._rest(uid)
        self.steps.pause_removal(self.records[uid])
        return missing

    async def look_at_removal(self, body: Body) -> Fact:
        """Observe a deleted object, decide, write the status, act; return whether its finalizer can go.

        Raises:
            ApiError: if a request failed. If observing the object is refused, the status shows it.

        """
        record = self.records[uid_of(body)]
        subject = self._read(body, record)
        try:
            seen = await self.steps.observe_removal(subject, record)
        except (ForbiddenError, UnknownKindError) as error:
            with suppress(NotFoundError):
                status = self.steps.status_of_unseen_removal(subject, refusal_of(error))
                await self._write(subject, status, record)
            raise
        removal = self.steps.decide_removal(subject, seen, record)
        # Also when nothing is left: another finalizer may keep the object, and the next run must not wait for it.
        with suppress(NotFoundError):
            await self._write(subject, removal.status, record)
        if not removal.cleaned_up.holds:
            await self._act(subject, removal.actions, record)
        return removal.cleaned_up

    async def _rest(self, uid: str) -> None:
        """Wait until an event about a deleted object, or the timeout."""
        # Not the earlier record: a daemon that stops during the removal drops it.
        wakeup = self.records[uid].wakeup
        await wait_for_first(self.removal_look_seconds, wakeup.wait())
        wakeup.clear()
