"""A run's daemon and its deletion: the whole kopf surface of a `BenchmarkRun`."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import kopf

from plimsoll.api.names import API_VERSION, GROUP, RUN_KIND, VERSION, ConditionType
from plimsoll.conductor.secret import make_secret
from plimsoll.handlers.context import Context
from plimsoll.kube.errors import ApiError, ForbiddenError, NotFoundError, UnknownKindError, refusal_of
from plimsoll.kube.execute import execute
from plimsoll.kube.gather import Known, gather, gather_platform
from plimsoll.kube.port import Kind
from plimsoll.lifecycle.actions import Action
from plimsoll.lifecycle.admission import Entry, ahead_of, entry_of
from plimsoll.lifecycle.attention import needs_attention
from plimsoll.lifecycle.decision import Decision, Fact
from plimsoll.lifecycle.elsewhere import scope_of
from plimsoll.lifecycle.observed import Observed
from plimsoll.lifecycle.platform import Platform
from plimsoll.lifecycle.run import Run, run_of
from plimsoll.lifecycle.step import needs_platform, step, step_deletion, step_deletion_unseen, step_unseen
from plimsoll.metrics.instruments import UNEXPECTED

Queue = kopf.Index[str, Entry]

_RUN = Kind(api_version=API_VERSION, kind=RUN_KIND)
_RETRY_SECONDS = 5.0
_DELETION_LOOK_SECONDS = 2.0
_DELETION_SECONDS = 300.0


def _attention(body: kopf.Body, **_: Any) -> bool:  # noqa: ANN401 - kopf's
    return needs_attention(body)


@kopf.daemon(
    GROUP, VERSION, "benchmarkruns", when=_attention, cancellation_backoff=5, cancellation_timeout=10, backoff=15
)
async def drive(
    body: kopf.Body,
    uid: str,
    memo: kopf.Memo,
    stopped: kopf.DaemonStopped,
    logger: kopf.Logger,
    **indices: Any,  # noqa: ANN401 - kopf's
) -> None:
    """Bring one run towards its end, until it needs no attention, is deleted, or the operator stops.

    It never returns by itself: kopf would not start it again when a later change, as of `cleanup`, calls for it.
    """
    context: Context = memo.context
    wake = context.wakeups[uid]
    try:
        while not stopped:
            wake.clear()
            try:
                decision = await _look(context, body, indices["queue"])
            except ApiError as error:
                context.instruments.step_failed(_class_of(error))
                logger.warning("the API did not do as asked, trying again in %s s: %s", _RETRY_SECONDS, error)
                await _wait(wake, stopped, _RETRY_SECONDS)
            except Exception:
                context.instruments.step_failed(UNEXPECTED)
                raise
            else:
                await _wait(wake, stopped, decision.requeue_seconds)
    finally:
        context.forget(uid)


@kopf.on.delete(GROUP, VERSION, "benchmarkruns", when=_attention)
async def remove(body: kopf.Body, uid: str, memo: kopf.Memo, logger: kopf.Logger, **_: Any) -> None:  # noqa: ANN401
    """Take a deleted run's objects away in order; the finalizer stays until they are gone."""
    context: Context = memo.context
    told = "the API does not answer"
    async with context.locks[uid]:
        for _look_number in range(int(_DELETION_SECONDS / _DELETION_LOOK_SECONDS)):
            try:
                with context.instruments.step("remove"):
                    cleaned_up = await _look_at_removal(context, body)
            except ApiError as error:
                context.instruments.step_failed(_class_of(error))
                logger.warning("teardown goes on: %s", error)
            except Exception:
                context.instruments.step_failed(UNEXPECTED)
                raise
            else:
                told = cleaned_up.message
                if cleaned_up.holds:
                    context.forget(uid)
                    return
            with suppress(TimeoutError):
                async with asyncio.timeout(_DELETION_LOOK_SECONDS):
                    await context.wakeups[uid].wait()
            context.wakeups[uid].clear()
    # The run may be gone before another attempt, if somebody takes its finalizer away.
    context.known.pop(uid, None)
    message = f"teardown is not complete after {_DELETION_SECONDS:.0f} s, going on: {told}"
    raise kopf.TemporaryError(message, delay=30)


async def _look(context: Context, body: kopf.Body, queue: Queue) -> Decision:
    """Observe, decide, say, act; and say what could not be done."""
    run = run_of(_with_last_said(context, body))
    async with context.locks[run.uid]:
        with context.instruments.step("observe"):
            seen = await _observe(context, run, body)
        refused = run.uid in context.refused
        with context.instruments.step("decide"):
            decision = _decide(context, run, seen, queue, body)
        with context.instruments.step("say"):
            await _say(context, run, decision, body)
        try:
            with context.instruments.step("act"):
                await _act(context, run, decision.actions)
        except ApiError:
            run = run_of(_with_last_said(context, body))
            await _say(context, run, _decide(context, run, seen, queue, body), body)
            raise
    # What was refused before is done now: the status shall not say otherwise for long.
    return replace(decision, requeue_seconds=_RETRY_SECONDS) if refused else decision


async def _look_at_removal(context: Context, body: kopf.Body) -> Fact:
    """Observe a run that is being deleted, decide, say, act; return whether it may go.

    Raises:
        ApiError: if something of that failed. If the run may not be observed, that is said first.

    """
    run = run_of(_with_last_said(context, body))
    try:
        seen = await _gather(context, run, for_removal=True)
    except (ForbiddenError, UnknownKindError) as error:
        with suppress(NotFoundError):
            await _write(context, run, step_deletion_unseen(run, refusal_of(error), context.now()))
        raise
    seen = replace(seen, refusal=context.refused.get(run.uid))
    removal = step_deletion(run, seen, context.settings, context.now())
    # Also when all is gone: another finalizer may keep the run, and the queue must not wait for it.
    with suppress(NotFoundError):
        await _write(context, run, removal.status)
    if not removal.cleaned_up.holds:
        await _act(context, run, removal.actions)
    return removal.cleaned_up


async def _observe(context: Context, run: Run, body: kopf.Body) -> Observed:
    """Return what is there of a run, and of the cluster if its plan is about to be made.

    Raises:
        ApiError: if the run cannot be observed. If that is refused, it is said first.

    """
    try:
        seen = await _gather(context, run)
    except (ForbiddenError, UnknownKindError) as error:
        decision = step_unseen(run, refusal_of(error), context.now())
        if decision is not None:
            await _say(context, run, decision, body)
        raise
    if not needs_platform(run, seen, context.settings):
        return seen
    return replace(seen, platform=await _platform(context, run))


async def _gather(context: Context, run: Run, *, for_removal: bool = False) -> Observed:
    """Return what is there of a run."""
    return await gather(
        context.kube,
        namespace=run.namespace,
        name=run.name,
        uid=run.uid,
        scope=scope_of(run, context.settings),
        known=context.known.setdefault(run.uid, Known(run.uid)),
        for_removal=for_removal,
    )


async def _platform(context: Context, run: Run) -> Platform | None:
    """Return what is known of the cluster; None if that is refused, which is remembered."""
    try:
        storage = run.document.spec.storage if run.document else None
        rook = storage.rook.cluster if storage and storage.rook else None
        return await gather_platform(context.kube, run.namespace, rook)
    except ForbiddenError as error:
        context.refused[run.uid] = refusal_of(error)
        return None


async def _act(context: Context, run: Run, actions: Sequence[Action]) -> None:
    """Do what was decided, and remember what the API server did not do."""
    try:
        await execute(actions, context.kube, make_secret=make_secret)
    except ApiError as error:
        context.refused[run.uid] = refusal_of(error)
        raise
    refusal = context.refused.get(run.uid)
    if refusal is not None and not refusal.is_for_good(run.namespace):
        del context.refused[run.uid]


def _decide(context: Context, run: Run, seen: Observed, queue: Queue, body: kopf.Body) -> Decision:
    """Decide. Looking at the queue and taking one's turn are one piece: nobody else looks in between."""
    now = context.now()
    # A run that has just lost its place must not find it in kopf's older view.
    own = entry_of(_with_last_said(context, body))
    entries = [own if entry.uid == run.uid else entry for entry in _entries(context, queue)]
    ahead = ahead_of(run.uid, entries, now=now, hold_seconds=context.settings.hold_seconds)
    seen = replace(seen, ahead=ahead, refusal=context.refused.get(run.uid))
    decision = step(run, seen, context.settings, now)
    if any((c["type"], c["status"]) == ("Admitted", "True") for c in decision.status["conditions"]):
        context.admitted.add(run.uid)
    else:
        context.admitted.discard(run.uid)
    return decision


async def _say(context: Context, run: Run, decision: Decision, body: kopf.Body) -> None:
    """Write the status if it has changed, and an event for every transition that was written."""
    if await _write(context, run, decision.status):
        if decision.status.get("completionTime") and not run.status.get("completionTime"):
            context.instruments.ended(_reason_of_success(decision.status))
        for event in decision.events:
            kopf.event(body, type=event.kind, reason=event.reason, message=event.message)


async def _write(context: Context, run: Run, status: Mapping[str, Any]) -> bool:
    """Write a status; false if it is the one that was written last."""
    if context.said.get(run.uid) == status:
        return False
    await context.kube.patch_status(_RUN, run.name, run.namespace, status)
    context.said[run.uid] = dict(status)
    return True


def _reason_of_success(status: Mapping[str, Any]) -> str:
    """Return the reason of Succeeded, which every status has."""
    return next(str(entry["reason"]) for entry in status["conditions"] if entry["type"] == ConditionType.SUCCEEDED)


def _class_of(error: ApiError) -> str:
    """Return what `plimsoll.kube.errors` calls this error, without the ending: `Forbidden`."""
    return type(error).__name__.removesuffix("Error")


def _with_last_said(context: Context, body: kopf.Body) -> Mapping[str, Any]:
    """Return the run with the status that was written last: kopf's view of it may be older."""
    said = context.said.get(body["metadata"]["uid"])
    return dict(body) if said is None else {**body, "status": said}


def _entries(context: Context, queue: Queue) -> list[Entry]:
    """Return the queue, with what kopf's view of it does not show yet."""
    entries = [entry for store in queue.values() for entry in store]
    return [_admitted(entry) if entry.uid in context.admitted else entry for entry in entries]


def _admitted(entry: Entry) -> Entry:
    """Return a run that has been given its turn; as long as kopf does not show that, it cannot be over either."""
    return replace(entry, admitted=True, over=entry.over and entry.admitted)


async def _wait(wake: asyncio.Event, stopped: kopf.DaemonStopped, seconds: float | None) -> None:
    """Wait until something has changed, the daemon is to stop, or time is up."""
    waiting = [asyncio.ensure_future(wake.wait()), asyncio.ensure_future(stopped.wait())]
    try:
        await asyncio.wait(waiting, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in waiting:
            task.cancel()
