"""One look at a run: from observation to decision. Level-triggered: it keeps no state between looks."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any

from plimsoll.api.names import API_VERSION, RUN_KIND, ConditionType
from plimsoll.api.reasons.reason import Reason, UnknownReason
from plimsoll.api.run import BenchmarkRun
from plimsoll.api.status import format_time
from plimsoll.lifecycle import provisioning, queue, status, teardown
from plimsoll.lifecycle.decision import (
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
from plimsoll.lifecycle.observed import Observed, age_seconds, name_still_taken, obstacle
from plimsoll.lifecycle.progress import (
    clients_fact,
    ending_of,
    not_ready_too_long,
    recorded_ending,
    refused_too_long,
    version_blocker,
    waited_seconds,
    waiting_fact,
)
from plimsoll.lifecycle.render.common import plan_config_map
from plimsoll.lifecycle.run import Run, counted, listed
from plimsoll.lifecycle.settings import Settings
from plimsoll.lifecycle.storage.registry import provider_of, storage_of
from plimsoll.lifecycle.storage.seam import Storage
from plimsoll.plan.document import PLAN_FILE, Plan

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
    actions = situation.actions
    if seen.refusal is not None and seen.refusal.is_permanent(run.namespace):
        # A namespace that is being deleted accepts no new objects.
        actions = tuple(action for action in actions if isinstance(action, Delete))
    events, requeue_seconds = events_of(run, new), situation.requeue_seconds
    return Decision(actions=actions, status=new, events=events, requeue_seconds=requeue_seconds)


def step_unseen(run: Run, refusal: Refusal, now: datetime) -> Decision | None:
    """Return the status of a run that cannot be observed; None if it has ended. It may be measuring, so it goes on."""
    if recorded_ending(run) is not None:
        return None
    new = status.updated_status(run, {"Reconciling": Fact.true(refusal.reason, refusal.message)}, now)
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
    return provisioning.refusal(run, settings) is None


def _assess(run: Run, seen: Observed, settings: Settings, now: datetime) -> Situation:
    recorded = recorded_ending(run)
    if recorded is not None:
        return _finish(run, seen, settings, recorded, now, plan=seen.plan)
    # Until a run is admitted it has created nothing, but may wait long: the settings can still refuse it. A run with a
    # plan does not fail because another version of the operator understands less of its specification.
    may_be_refused = seen.plan is None or (run.start_time is None and run.document is not None)
    refusal = (provisioning.refusal(run, settings) if may_be_refused else None) or obstacle(run, seen)
    if refusal is not None:
        return _finish(run, seen, settings, refusal, now, stage=Stage.REFUSED)
    if seen.plan is None:
        if run.document is not None and not run.is_suspended:
            return _before_plan(run, run.document, seen, settings, now)
        return Situation(
            stage=Stage.SUSPENDED,
            reason=Reason.SUSPENDED,
            message="created suspended; nothing is created until spec.suspend is false",
            facts={"Suspended": Fact.true(Reason.SUSPENDED)},
        )
    ending = ending_of(run, seen.plan, seen, settings, now)
    if ending is not None:
        return _finish(run, seen, settings, ending, now, plan=seen.plan)
    return _continue(run, seen, seen.plan, settings, now)


def _continue(run: Run, seen: Observed, plan: Plan, settings: Settings, now: datetime) -> Situation:
    if run.is_suspended or queue.is_losing_place(run):
        return _suspend(run, seen, settings, now)
    storage = storage_of(run, seen, settings, now)
    if blocker := version_blocker(run, seen):
        stage, clients = Stage.MEASURING if seen.jobs else Stage.WAITING, clients_fact(run, plan, seen)
        return _situation(stage, blocker.reason, blocker.message, StorageReady=storage.fact(), ClientsReady=clients)
    if seen.ahead and (not seen.jobs or queue.has_lost_place(run)):
        message = f"position {len(seen.ahead)} in the queue, behind {seen.ahead[-1]}; runs on one target take turns"
        turn = Fact.false(Reason.WAITING_FOR_TURN, message)
        return _situation(Stage.WAITING, turn.reason, message, Admitted=turn)
    return _proceed(run, seen, plan, settings, storage)


def _before_plan(run: Run, document: BenchmarkRun, seen: Observed, settings: Settings, now: datetime) -> Situation:
    limit, ending = document.spec.timeouts.provision_seconds, None
    late = waited_seconds(run, now) > limit
    if late and seen.departing:
        ending = name_still_taken(seen, limit)
    elif late and seen.refusal is not None:
        ending = refused_too_long(seen.refusal, limit)
    if ending is not None:
        return _finish(run, seen, settings, ending, now, stage=Stage.REFUSED)
    if seen.departing:
        message = f"an earlier run with this name is being deleted; remaining: {listed(seen.departing, most=1)}"
        return _situation(Stage.WAITING, Reason.WAITING_FOR_EARLIER_RUN, message)
    if seen.platform is None:
        message = "inspecting the cluster"
        return _refused(_situation(Stage.PROVISIONING, Reason.PLANNING, message, seconds=_SOON_SECONDS), seen)
    plan = provisioning.freeze(run, document, seen.platform, settings)
    if isinstance(plan, Fact):
        if not late:
            return _situation(Stage.WAITING, plan.reason, plan.message, seconds=_CLUSTER_SECONDS, StorageReady=plan)
        plan = not_ready_too_long(plan, limit)
    if isinstance(plan, Ending):
        return _finish(run, seen, settings, plan, now, stage=Stage.REFUSED)
    message = f"{counted(len(plan.points), 'point')}, {plan.repetitions} pass{'' if plan.repetitions == 1 else 'es'}"
    config_map = plan_config_map(run, plan)
    digest = sha256(config_map["data"][PLAN_FILE].encode()).hexdigest()
    situation = _situation(Stage.PROVISIONING, Reason.PLANNING, message, seconds=_SOON_SECONDS)
    return replace(_refused(situation, seen), actions=(Create(obj=config_map),), plan_sha256=digest)


def _situation(
    stage: Stage, reason: Reason | UnknownReason, message: str, *, seconds: float = _LOOK_AGAIN_SECONDS, **facts: Fact
) -> Situation:
    """Return the situation of a run that is neither suspended nor over."""
    facts = {"Suspended": _NOT_SUSPENDED, **facts}
    return Situation(stage=stage, reason=reason, message=message, facts=facts, requeue_seconds=seconds)


def _suspend(run: Run, seen: Observed, settings: Settings, now: datetime) -> Situation:
    stopping = bool(seen.jobs or seen.pods)
    lost = queue.place_lost(run, seen, settings, now)
    keeps_until = queue.keeps_until(run, seen, settings, now) if lost is None else None
    if stopping:
        message = teardown.stopping_message(seen)
    elif lost is not None:
        message = lost.message
    elif run.start_time is None:
        message = "suspended before it started; resuming returns it to the queue"
    else:
        place = f"; its place in the queue is kept until {format_time(keeps_until)}" if keeps_until is not None else ""
        message = f"volumes are kept; resuming prefills again{place}"
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
        actions=(*teardown.stop_load(seen), *teardown.revoke_overdue_rights(seen, now)),
        facts=facts,
        requeue_seconds=_SOON_SECONDS if stopping or not run.is_suspended else _until(keeps_until, now),
    )


def _proceed(run: Run, seen: Observed, plan: Plan, settings: Settings, storage: Storage) -> Situation:
    provider, storage_fact, clients = provider_of(run), storage.fact(), clients_fact(run, plan, seen)
    fact = waiting_fact(storage_fact, clients, seen)
    stage, reason, message = Stage.PROVISIONING, fact.reason, fact.message
    if seen.all_registered:
        stage, reason = Stage.MEASURING, Reason.MEASURING
        message = status.progress_message(seen) or (seen.state.message if seen.state else "")
    situation = _situation(
        stage,
        reason,
        message,
        seconds=_SOON_SECONDS if provider.is_polled and not storage_fact.holds else _LOOK_AGAIN_SECONDS,
        Admitted=Fact.true(Reason.ADMITTED, f"it is this run's turn{provider.limitation(plan)}"),
        StorageReady=storage_fact,
        ClientsReady=clients,
    )
    situation = replace(situation, actions=tuple(provisioning.missing_objects(run, plan, seen, settings, storage)))
    return situation if seen.all_registered else _refused(situation, seen)


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
    # Conditions that held while the run was active and no longer do; kept volumes stay ready.
    past = [ConditionType.SUSPENDED, ConditionType.CLIENTS_READY, *([] if keeps else [ConditionType.STORAGE_READY])]
    facts: dict[str, Fact] = {kind: Fact.false(Reason.ENDED, "the run has ended") for kind in past if run.holds(kind)}
    facts["CleanedUp"] = progress.fact
    if plan is not None:
        final, points = sum(result.final for result in seen.results.values()), len(plan.points)
        reason = Reason.ALL_FINAL if final == points else Reason.INCOMPLETE
        message = f"{final} of {counted(points, 'point')} complete"
        facts["Measured"] = Fact(holds=final == points, reason=reason, message=message)
    actions, ended = progress.actions, run.completion_time
    requeue_seconds: float | None = _LOOK_AGAIN_SECONDS
    if settled:
        ttl = run.document.spec.ttl_seconds_after_finished if run.document else None
        expiry = None if ttl is None else (ended or now) + timedelta(seconds=ttl)
        requeue_seconds = _until(expiry, now)
        if expiry is not None and expiry <= now:
            actions = (
                *actions,
                Delete(api_version=API_VERSION, kind=RUN_KIND, namespace=run.namespace, name=run.name, uid=run.uid),
            )
    elif progress.fact.reason is Reason.IN_PROGRESS:
        # With growing pauses, because a Rook that is gone may take days.
        requeue_seconds = min(_LOOK_AGAIN_SECONDS, max(_SOON_SECONDS, age_seconds(ended, now) / _PATIENCE))
    return Situation(
        stage=Stage.FINISHED if settled else stage,
        reason=ending.reason,
        message=ending.message,
        ending=ending,
        actions=actions,
        facts=facts,
        requeue_seconds=requeue_seconds,
    )


def _until(expiry: datetime | None, now: datetime) -> float | None:
    return None if expiry is None else max(_SOON_SECONDS, (expiry - now).total_seconds())
