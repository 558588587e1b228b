"""One look at a run: from observation to decision. Level-triggered: it keeps no state between looks."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any

from plimsoll.api.names import API_VERSION, RUN_KIND, ConditionType
from plimsoll.api.reasons.reason import Reason, UnknownReason
from plimsoll.api.status import format_time
from plimsoll.lifecycle import provisioning, queue, status, teardown
from plimsoll.lifecycle import provisioning as planning
from plimsoll.lifecycle import waiting as readiness
from plimsoll.lifecycle.decision import (
    Action,
    Create,
    Decision,
    Delete,
    Ending,
    Fact,
    Refusal,
    Removal,
    Situation,
    Stage,
    events_of,
)
from plimsoll.lifecycle.endings import ending_of, not_ready_too_long, recorded_ending, refused_too_long, version_blocker
from plimsoll.lifecycle.observed import Observed, name_still_taken, obstacle
from plimsoll.lifecycle.render import common
from plimsoll.lifecycle.render.common import PLAN_FILE
from plimsoll.lifecycle.run import Run, counted, listed
from plimsoll.lifecycle.settings import Settings
from plimsoll.lifecycle.storage.registry import provider_of, storage_of
from plimsoll.lifecycle.storage.seam import Storage
from plimsoll.plan.document import Plan

_LOOK_AGAIN_SECONDS = 15.0
"""Maximum delay of a run after a missed event."""

_SOON_SECONDS = 1.0
"""Also used while storage that the operator does not watch is not ready: its CRDs may not be installed."""

_PATIENCE = 20
"""A removal is checked again after this fraction of the time that it has already taken: 1 / 20."""

_CLUSTER_SECONDS = 3.0
"""Polling interval while the Ceph cluster is unhealthy; recovery is slow."""

_NOT_SUSPENDED = Fact.false(Reason.NOT_SUSPENDED)


def step(run: Run, seen: Observed, settings: Settings, now: datetime) -> Decision:
    """Return what to do for a run now, and its status."""
    situation = _assess(run, seen, settings, now)
    new = status.status_of(run, seen, situation, now)
    return Decision(
        actions=_possible(run, seen, situation.actions),
        status=new,
        events=events_of(run, new),
        requeue_seconds=situation.requeue_seconds,
    )


def _possible(run: Run, seen: Observed, actions: tuple[Action, ...]) -> tuple[Action, ...]:
    """Return the actions that can succeed: a namespace that is being deleted accepts no new objects."""
    if seen.refusal is None or not seen.refusal.is_permanent(run.namespace):
        return actions
    return tuple(action for action in actions if isinstance(action, Delete))


def step_unseen(run: Run, refusal: Refusal, now: datetime) -> Decision | None:
    """Return the status of a run that cannot be observed; None if it has ended. It may be measuring, so it goes on."""
    if recorded_ending(run) is not None:
        return None
    new = status.status_unseen(run, refusal, now)
    return Decision(status=new, events=events_of(run, new))


def step_deletion(run: Run, seen: Observed, settings: Settings, now: datetime) -> Removal:
    """Return what to do before a deleted run can go, and the progress."""
    progress = teardown.teardown(run, seen, settings, keep_volumes=False, now=now)
    new = status.status_of_removal(run, progress.fact, now)
    return Removal(actions=progress.actions, status=new, cleaned_up=progress.fact)


def step_deletion_unseen(run: Run, refusal: Refusal, now: datetime) -> Mapping[str, Any]:
    """Return the status of a deleted run that cannot be observed, and therefore not be cleaned up."""
    return status.status_of_removal(run, Fact.false(refusal.reason, refusal.message), now)


def needs_platform(run: Run, seen: Observed, settings: Settings) -> bool:
    """Whether a plan is about to be frozen, for which the cluster has to be inspected."""
    if seen.plan is not None or run.is_suspended or recorded_ending(run) is not None:
        return False
    return planning.refusal(run, settings) is None


def _assess(run: Run, seen: Observed, settings: Settings, now: datetime) -> Situation:
    recorded = recorded_ending(run)
    if recorded is not None:
        return _finish(run, seen, settings, recorded, now, plan=seen.plan)
    refusal = (planning.refusal(run, settings) if _may_be_refused(run, seen) else None) or obstacle(run, seen)
    if refusal is not None:
        return _finish(run, seen, settings, refusal, now, stage=Stage.REFUSED)
    if seen.plan is None:
        return _before_plan(run, seen, settings, now)
    ending = ending_of(run, seen.plan, seen, settings, now)
    if ending is not None:
        return _finish(run, seen, settings, ending, now, plan=seen.plan)
    return _continue(run, seen, seen.plan, settings, now)


def _may_be_refused(run: Run, seen: Observed) -> bool:
    """Whether the settings can still refuse a run: until it is admitted it has created nothing, but may wait long.

    A run with a plan does not fail because another version of the operator understands less of its specification.
    """
    return seen.plan is None or (run.start_time is None and run.document is not None)


def _continue(run: Run, seen: Observed, plan: Plan, settings: Settings, now: datetime) -> Situation:
    """Suspend, wait or proceed, depending on the user and the queue."""
    if run.is_suspended or queue.is_losing_place(run):
        return _suspend(run, seen, settings, now)
    storage = storage_of(run, seen, settings, now)
    if blocker := version_blocker(run, seen):
        return _leave_alone(run, seen, plan, storage, blocker)
    if seen.ahead and (not seen.jobs or queue.has_lost_place(run)):
        return _wait_for_turn(seen)
    return _proceed(run, seen, plan, settings, storage)


def _before_plan(run: Run, seen: Observed, settings: Settings, now: datetime) -> Situation:
    """Freeze the plan, unless the run was created suspended: then nothing is created."""
    if run.document is None or run.is_suspended:
        return _suspended_unmade()
    limit = run.document.spec.timeouts.provision_seconds
    late = readiness.waited_seconds(run, now) > limit
    if late and (ending := _timeout_ending(seen, limit)):
        return _finish(run, seen, settings, ending, now, stage=Stage.REFUSED)
    if seen.departing:
        return _wait_for_departure(seen)
    if seen.platform is None:
        return _refused(_planning("inspecting the cluster"), seen)
    plan = planning.freeze(run, run.document, seen.platform, settings)
    if isinstance(plan, Fact) and late:
        plan = not_ready_too_long(plan, limit)
    if isinstance(plan, Ending):
        return _finish(run, seen, settings, plan, now, stage=Stage.REFUSED)
    return _wait_for_cluster(plan) if isinstance(plan, Fact) else _store(run, seen, plan)


def _timeout_ending(seen: Observed, limit: int) -> Ending | None:
    """Return the end of a run without a plan that has waited too long; None if it waits for nothing."""
    if seen.departing:
        return name_still_taken(seen, limit)
    return refused_too_long(seen.refusal, limit) if seen.refusal is not None else None


def _store(run: Run, seen: Observed, plan: Plan) -> Situation:
    passes = f"{plan.repetitions} pass{'' if plan.repetitions == 1 else 'es'}"
    message = f"{counted(len(plan.points), 'point')}, {passes}"
    config_map = common.plan_config_map(run, plan)
    digest = sha256(config_map["data"][PLAN_FILE].encode()).hexdigest()
    return replace(_refused(_planning(message, Create(obj=config_map)), seen), plan_sha256=digest)


def _suspended_unmade() -> Situation:
    return Situation(
        stage=Stage.SUSPENDED,
        reason=Reason.SUSPENDED,
        message="created suspended; nothing is created until spec.suspend is false",
        facts={"Suspended": Fact.true(Reason.SUSPENDED)},
    )


def _planning(message: str, *actions: Action) -> Situation:
    return Situation(
        stage=Stage.PROVISIONING,
        reason=Reason.PLANNING,
        message=message,
        actions=actions,
        facts={"Suspended": _NOT_SUSPENDED},
        requeue_seconds=_SOON_SECONDS,
    )


def _wait(
    reason: Reason | UnknownReason, message: str, *, seconds: float = _LOOK_AGAIN_SECONDS, **facts: Fact
) -> Situation:
    return Situation(
        stage=Stage.WAITING,
        reason=reason,
        message=message,
        facts={"Suspended": _NOT_SUSPENDED, **facts},
        requeue_seconds=seconds,
    )


def _wait_for_cluster(fact: Fact) -> Situation:
    return _wait(fact.reason, fact.message, seconds=_CLUSTER_SECONDS, StorageReady=fact)


def _wait_for_departure(seen: Observed) -> Situation:
    message = f"an earlier run with this name is being deleted; remaining: {listed(seen.departing, most=1)}"
    return _wait(Reason.WAITING_FOR_EARLIER_RUN, message)


def _wait_for_turn(seen: Observed) -> Situation:
    message = f"position {len(seen.ahead)} in the queue, behind {seen.ahead[-1]}; runs on one target take turns"
    return _wait(Reason.WAITING_FOR_TURN, message, Admitted=Fact.false(Reason.WAITING_FOR_TURN, message))


def _leave_alone(run: Run, seen: Observed, plan: Plan, storage: Storage, blocker: Fact) -> Situation:
    return Situation(
        stage=Stage.MEASURING if seen.jobs else Stage.WAITING,
        reason=blocker.reason,
        message=blocker.message,
        facts={
            "Suspended": _NOT_SUSPENDED,
            "StorageReady": storage.fact(),
            "ClientsReady": readiness.clients_fact(run, plan, seen),
        },
        requeue_seconds=_LOOK_AGAIN_SECONDS,
    )


def _suspend(run: Run, seen: Observed, settings: Settings, now: datetime) -> Situation:
    actions = teardown.stop_load(seen)
    stopping = bool(seen.jobs or seen.pods)
    lost = queue.place_lost(run, seen, settings, now)
    keeps_until = queue.keeps_until(run, seen, settings, now) if lost is None else None
    message = _suspended_message(run, keeps_until)
    if stopping:
        message = teardown.stopping_message(seen)
    elif lost is not None:
        message = lost.message
    facts = {
        "Suspended": Fact.true(Reason.SUSPENDED, message),
        "StorageReady": storage_of(run, seen, settings, now).fact(),
        "ClientsReady": Fact.false(Reason.SUSPENDED, message),
    }
    if stopping:
        facts["Reconciling"] = Fact.true(lost.reason if lost else Reason.STOPPING, message)
    if lost is not None and teardown.load_is_gone(seen, now):
        facts["Admitted"] = lost
    return Situation(
        stage=Stage.SUSPENDED,
        reason=Reason.SUSPENDED,
        message=message,
        actions=actions,
        facts=facts,
        requeue_seconds=_SOON_SECONDS if stopping or not run.is_suspended else _until(keeps_until, now),
    )


def _suspended_message(run: Run, keeps_until: datetime | None) -> str:
    if run.start_time is None:
        return "suspended before it started; resuming returns it to the queue"
    place = f"; its place in the queue is kept until {format_time(keeps_until)}" if keeps_until is not None else ""
    return f"volumes are kept; resuming prefills again{place}"


def _proceed(run: Run, seen: Observed, plan: Plan, settings: Settings, storage: Storage) -> Situation:
    """Create what is missing, and report the progress."""
    measuring = seen.all_registered
    provider, storage_fact, clients = provider_of(run), storage.fact(), readiness.clients_fact(run, plan, seen)
    limitation = provider.limitation(plan)
    waiting = readiness.waiting_fact(storage_fact, clients, seen)
    state_message = seen.state.message if seen.state else ""
    situation = Situation(
        stage=Stage.MEASURING if measuring else Stage.PROVISIONING,
        reason=Reason.MEASURING if measuring else waiting.reason,
        message=(status.progress_message(seen) or state_message) if measuring else waiting.message,
        actions=tuple(provisioning.missing_objects(run, plan, seen, settings, storage)),
        facts={
            "Admitted": Fact.true(Reason.ADMITTED, f"it is this run's turn{limitation}"),
            "Suspended": _NOT_SUSPENDED,
            "StorageReady": storage_fact,
            "ClientsReady": clients,
        },
        requeue_seconds=_SOON_SECONDS if provider.is_polled and not storage_fact.holds else _LOOK_AGAIN_SECONDS,
    )
    return situation if measuring else _refused(situation, seen)


def _refused(situation: Situation, seen: Observed) -> Situation:
    """Return the situation, with the last refusal of a creation if there was one."""
    if seen.refusal is None or seen.refusal.blocks_removal:
        return situation
    return replace(situation, reason=seen.refusal.reason, message=seen.refusal.message)


def _finish(
    run: Run,
    seen: Observed,
    settings: Settings,
    ending: Ending,
    now: datetime,
    *,
    plan: Plan | None = None,
    stage: Stage = Stage.CLEANING_UP,
) -> Situation:
    """Report the end, clean up, and delete the run itself once it expires."""
    keeps = teardown.keeps_volumes(run, ending)
    progress = teardown.teardown(run, seen, settings, keep_volumes=keeps, now=now)
    settled = progress.fact.holds or progress.fact.reason is Reason.STORAGE_KEPT
    expiry = _expiry(run, now) if settled else None
    facts = {**_past(run, keeps_volumes=keeps), "CleanedUp": progress.fact}
    if plan is not None:
        facts["Measured"] = _measured_fact(plan, seen)
    actions = progress.actions
    if expiry is not None and expiry <= now:
        actions = (*actions, _delete_run(run))
    return Situation(
        stage=Stage.FINISHED if settled else stage,
        reason=ending.reason,
        message=ending.message,
        ending=ending,
        actions=actions,
        facts=facts,
        requeue_seconds=_until(expiry, now) if settled else _until_clean(progress.fact, run, now),
    )


def _past(run: Run, *, keeps_volumes: bool) -> dict[str, Fact]:
    """Return the conditions that held while the run was active and no longer do; kept volumes stay ready."""
    kinds = [ConditionType.SUSPENDED, ConditionType.CLIENTS_READY]
    if not keeps_volumes:
        kinds.append(ConditionType.STORAGE_READY)
    return {kind: Fact.false(Reason.ENDED, "the run has ended") for kind in kinds if run.holds(kind)}


def _measured_fact(plan: Plan, seen: Observed) -> Fact:
    final = sum(result.final for result in seen.results.values())
    message = f"{final} of {counted(len(plan.points), 'point')} complete"
    return Fact.true(Reason.ALL_FINAL, message) if final == len(plan.points) else Fact.false(Reason.INCOMPLETE, message)


def _expiry(run: Run, now: datetime) -> datetime | None:
    ttl = run.document.spec.ttl_seconds_after_finished if run.document else None
    if ttl is None:
        return None
    ended = run.status.get("completionTime")
    return (datetime.fromisoformat(ended) if ended else now) + timedelta(seconds=ttl)


def _until(expiry: datetime | None, now: datetime) -> float | None:
    return None if expiry is None else max(_SOON_SECONDS, (expiry - now).total_seconds())


def _until_clean(cleaned_up: Fact, run: Run, now: datetime) -> float:
    """Return when to check a removal again: with growing pauses, because a Rook that is gone may take days."""
    if cleaned_up.reason is not Reason.IN_PROGRESS:
        return _LOOK_AGAIN_SECONDS
    ended = run.status.get("completionTime")
    elapsed = (now - datetime.fromisoformat(ended)).total_seconds() if ended else 0.0
    return min(_LOOK_AGAIN_SECONDS, max(_SOON_SECONDS, elapsed / _PATIENCE))


def _delete_run(run: Run) -> Delete:
    return Delete(api_version=API_VERSION, kind=RUN_KIND, namespace=run.namespace, name=run.name, uid=run.uid)
