"""One look at a run: from observation to decision. Level-triggered: it keeps no state between looks."""

from dataclasses import replace
from datetime import datetime, timedelta
from hashlib import sha256

from plimsoll.api.names import API_VERSION, RUN_KIND, ConditionType, RunPhase
from plimsoll.api.reasons.reason import Reason, UnknownReason
from plimsoll.api.run import BenchmarkRun
from plimsoll.api.status import format_time
from plimsoll.lifecycle import provisioning, queue, status, waiting
from plimsoll.lifecycle.children import Child
from plimsoll.lifecycle.decision import Create, Decision, Delete, Fact, RunEnding, Situation, Stage, events_of
from plimsoll.lifecycle.observed import Observed, age_seconds
from plimsoll.lifecycle.refusals import Refusal
from plimsoll.lifecycle.render.common import plan_config_map
from plimsoll.lifecycle.run import Run, Settings
from plimsoll.lifecycle.storage.registry import provider_of, storage_of
from plimsoll.measure.text import count_text, first_few
from plimsoll.plan.document import PLAN_FILE, Plan

_LOOK_AGAIN_SECONDS = 15.0  # maximum delay of a run after a missed event
_MEASURING_SECONDS = 30.0  # ... while it measures, and hardly anything but its conductor can change it
_SOON_SECONDS = 1.0  # also while storage that the operator does not watch is not ready
_PATIENCE = 20  # a removal is checked again after this fraction of the time that it has already taken: 1 / 20
_CLUSTER_SECONDS = 3.0  # polling interval while the Ceph cluster is unhealthy; recovery is slow
_NOT_SUSPENDED = Fact.false(Reason.NOT_SUSPENDED)


def step(run: Run, seen: Observed, settings: Settings, now: datetime) -> Decision:
    situation = _assess(run, seen, settings, now)
    new = status.status_of(run, seen, situation, now)
    actions = situation.actions
    if seen.refusal is not None and seen.refusal.is_permanent(run.namespace):
        # A namespace that is being deleted accepts no new objects.
        actions = tuple(action for action in actions if isinstance(action, Delete))
    events, requeue_seconds = events_of(run, new), situation.requeue_seconds
    return Decision(actions=actions, status=new, events=events, requeue_seconds=requeue_seconds)


def step_unseen(run: Run, refusal: Refusal, now: datetime) -> Decision | None:
    """Return the status of a run that cannot be observed; None if it has ended. It continues: it may be measuring."""
    if waiting.recorded_ending(run) is not None:
        return None
    new = status.updated_status(run, {"Reconciling": Fact.true(refusal.reason, refusal.message)}, now)
    return Decision(status=new, events=events_of(run, new))


def needs_platform(run: Run, seen: Observed, settings: Settings) -> bool:
    """Whether a plan is about to be frozen, for which the cluster has to be inspected."""
    if seen.plan is not None or run.is_suspended or not run.is_protected or waiting.recorded_ending(run) is not None:
        return False
    return provisioning.rejection(run, settings) is None


def _assess(run: Run, seen: Observed, settings: Settings, now: datetime) -> Situation:
    ending = waiting.recorded_ending(run)
    if ending is None:
        # Until a run is admitted it has created nothing, but may wait long: the settings can still reject it. A run
        # with a plan does not fail because another version of the operator understands less of its specification.
        if seen.plan is None or (run.start_time is None and run.document is not None):
            ending = provisioning.rejection(run, settings)
        ending = ending or waiting.conflict_ending(run, seen)
    if ending is None and seen.plan is not None and run.start_time is None:
        ending = provisioning.plan_excess(seen.plan, settings, now)
    if ending is None and seen.plan is not None:
        ending = waiting.ending_of(run, seen.plan, seen, settings, now)
    if ending is not None:
        return _finish(run, seen, settings, ending, now)
    if seen.plan is not None:
        return _restoring(_continue(run, seen, seen.plan, settings, now), run, seen, settings, now)
    if run.document is not None and not run.is_suspended:
        planned = _before_plan(run, run.document, seen, settings, now)
        return _finish(run, seen, settings, planned, now) if isinstance(planned, RunEnding) else planned
    return Situation(
        stage=Stage.SUSPENDED,
        reason=Reason.SUSPENDED,
        message="created suspended; nothing is created until spec.suspend is false",
        facts={"Suspended": Fact.true(Reason.SUSPENDED)},
    )


def _before_plan(
    run: Run, document: BenchmarkRun, seen: Observed, settings: Settings, now: datetime
) -> Situation | RunEnding:
    limit = document.spec.timeouts.provision_seconds
    late = waiting.waited_seconds(run, now) > limit
    if late and seen.departing:
        return waiting.name_still_taken(seen, limit)
    if late and seen.refusal is not None:
        return waiting.not_ready_in_time(seen.refusal, limit)
    blocker = waiting.missing_finalizer(run, seen)
    if blocker is None and seen.departing:
        message = f"an earlier run with this name is being deleted; remaining: {first_few(seen.departing, 1)}"
        blocker = Fact.true(Reason.WAITING_FOR_EARLIER_RUN, message)
    if blocker is not None:
        return _situation(Stage.WAITING, blocker.reason, blocker.message)
    message, digest = "inspecting the cluster", ""
    actions: tuple[Create, ...] = ()
    if seen.platform is not None:
        plan = provisioning.freeze(run, document, seen.platform, settings)
        if isinstance(plan, Plan):
            plan = provisioning.plan_excess(plan, settings, now) or plan
        if isinstance(plan, Fact) and not isinstance(plan, RunEnding):
            if not late:
                return _situation(Stage.WAITING, plan.reason, plan.message, seconds=_CLUSTER_SECONDS, StorageReady=plan)
            plan = waiting.not_ready_in_time(plan, limit)
        if isinstance(plan, RunEnding):
            return plan
        passes = f"{plan.repetitions} pass{'' if plan.repetitions == 1 else 'es'}"
        message, config_map = f"{count_text(len(plan.points), 'point')}, {passes}", plan_config_map(run, plan)
        actions, digest = (Create(obj=config_map),), sha256(config_map["data"][PLAN_FILE].encode()).hexdigest()
    situation = _situation(Stage.PROVISIONING, Reason.PLANNING, message, seconds=_SOON_SECONDS)
    return replace(_with_refusal(situation, seen), actions=actions, plan_sha256=digest)


def _continue(run: Run, seen: Observed, plan: Plan, settings: Settings, now: datetime) -> Situation:
    if run.is_suspended or queue.is_losing_place(run):
        return _suspend(run, seen, settings, now)
    storage = storage_of(run, seen, settings, now)
    if blocker := waiting.missing_finalizer(run, seen) or waiting.version_blocker(run, seen):
        stage, clients = Stage.MEASURING if seen.jobs else Stage.WAITING, waiting.clients_fact(plan, seen)
        return _situation(stage, blocker.reason, blocker.message, StorageReady=storage.fact(), ClientsReady=clients)
    if (not seen.jobs or queue.has_lost_place(run)) and (wait := _wait_to_start(run, seen, plan, settings, now)):
        return _situation(Stage.WAITING, wait.reason, wait.message, Admitted=wait)
    provider, storage_fact, clients = provider_of(run), storage.fact(), waiting.clients_fact(plan, seen)
    cause = waiting.waiting_fact(storage_fact, clients, seen)
    seconds = _MEASURING_SECONDS if seen.all_registered else _LOOK_AGAIN_SECONDS
    situation = _situation(
        Stage.PROVISIONING,
        cause.reason,
        cause.message,
        seconds=_SOON_SECONDS if provider.is_polled and not storage_fact.holds else seconds,
        Admitted=Fact.true(
            Reason.ADMITTED, f"it is this run's turn{provider.limitation(plan)}; it {provisioning.writes_text(plan)}"
        ),
        StorageReady=storage_fact,
        ClientsReady=clients,
    )
    removed = (*provisioning.held_pods(seen), *provisioning.crowding_conductor(plan, seen, now))
    missing = provisioning.missing_objects(run, plan, seen, settings, storage, now)
    situation = replace(situation, actions=(*removed, *missing))
    if not seen.all_registered:
        return _with_refusal(situation, seen)
    message = status.progress_message(seen) or (seen.state.message if seen.state else "")
    is_waiting = seen.state is not None and seen.state.phase is RunPhase.WAITING_FOR_WINDOW
    stage, reason = (Stage.WAITING, Reason.WAITING_FOR_WINDOW) if is_waiting else (Stage.MEASURING, Reason.MEASURING)
    return replace(situation, stage=stage, reason=reason, message=message)


def _restoring(situation: Situation, run: Run, seen: Observed, settings: Settings, now: datetime) -> Situation:
    """Return the situation with the next step of restoring what a conductor left changed, if no other one does it."""
    is_suspended = situation.stage is Stage.SUSPENDED
    is_needed = provisioning.load_is_gone(seen, now) if is_suspended else provisioning.conductor_is_gone(seen, now)
    restoration = storage_of(run, seen, settings, now).restoration(is_needed=is_needed)
    if restoration is None:
        return situation
    return replace(
        situation,
        message="; ".join(filter(None, (situation.message, restoration.fact.message))),
        actions=(*situation.actions, *restoration.actions),
        requeue_seconds=min(situation.requeue_seconds or _LOOK_AGAIN_SECONDS, _CLUSTER_SECONDS),
    )


def _wait_to_start(run: Run, seen: Observed, plan: Plan, settings: Settings, now: datetime) -> Fact | None:
    """Return what a run waits for that is not running: its turn, or a maintenance window; None if it may start."""
    if seen.turn.ahead:
        message = (
            f"position {len(seen.turn.ahead)} in the queue, behind {seen.turn.ahead[-1]}; namespaces take turns on a "
            f"target, so at most {count_text(seen.turn.own_ahead + 1, 'run')} of each other namespace can start before "
            "this one"
        )
        return Fact.false(Reason.WAITING_FOR_TURN, message)
    # Afterwards, its conductor waits.
    closed = "" if run.holds(ConditionType.ADMITTED) else provisioning.closed_until(plan, settings, now)
    return Fact.false(Reason.WAITING_FOR_WINDOW, closed) if closed else None


def _situation(
    stage: Stage, reason: Reason | UnknownReason, message: str, *, seconds: float = _LOOK_AGAIN_SECONDS, **facts: Fact
) -> Situation:
    facts = {"Suspended": _NOT_SUSPENDED, **facts}
    return Situation(stage=stage, reason=reason, message=message, facts=facts, requeue_seconds=seconds)


def _suspend(run: Run, seen: Observed, settings: Settings, now: datetime) -> Situation:
    stopping = bool(seen.jobs or seen.loading_pods)
    lost = queue.place_lost(run, seen, settings, now)
    keeps_until = queue.keeps_until(run, seen, settings, now) if lost is None else None
    if stopping:
        message = provisioning.stopping_message(seen, now)
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
    if lost is not None and provisioning.load_is_gone(seen, now):
        facts["Admitted"] = lost
    return Situation(
        stage=Stage.SUSPENDED,
        reason=Reason.SUSPENDED,
        message=message,
        actions=(*provisioning.stop_load(seen), *provisioning.revoke_rights(seen, now)),
        facts=facts,
        requeue_seconds=_SOON_SECONDS if stopping or not run.is_suspended else _until(keeps_until, now),
    )


def _with_refusal(situation: Situation, seen: Observed) -> Situation:
    if seen.refusal is None or seen.refusal.blocks_removal:
        return situation
    return replace(situation, reason=seen.refusal.reason, message=seen.refusal.message)


def _finish(run: Run, seen: Observed, settings: Settings, ending: RunEnding, now: datetime) -> Situation:
    """Report the end, clean up, and delete the run itself once it expires."""
    cleanup = run.document.spec.cleanup if run.document else run.written.get("cleanup", "Always")
    keeps = cleanup == "Never" or (cleanup == "OnSuccess" and not ending.holds)
    progress = provisioning.teardown(run, seen, settings, keep_volumes=keeps, now=now)
    # Conditions that held while the run was active and no longer do; kept volumes remain ready.
    past = [ConditionType.SUSPENDED, ConditionType.CLIENTS_READY, *([] if keeps else [ConditionType.STORAGE_READY])]
    facts: dict[str, Fact] = {kind: Fact.false(Reason.ENDED, "the run has ended") for kind in past if run.holds(kind)}
    facts["CleanedUp"] = progress.fact
    if seen.plan is not None:
        final, points = sum(result.final for result in seen.results.values()), len(seen.plan.points)
        reason = Reason.ALL_FINAL if final == points else Reason.INCOMPLETE
        message = f"{final} of {count_text(points, 'point')} complete"
        facts["Measured"] = Fact(holds=final == points, reason=reason, message=message)
    actions, ended = progress.actions, run.completion_time
    requeue_seconds: float | None = _LOOK_AGAIN_SECONDS
    if provisioning.is_settled(progress.fact):
        ttl = run.document.spec.ttl_seconds_after_finished if run.document else None
        expiry = None if ttl is None else (ended or now) + timedelta(seconds=ttl)
        requeue_seconds = _until(expiry, now)
        if expiry is not None and expiry <= now:
            child = Child(api_version=API_VERSION, kind=RUN_KIND, namespace=run.namespace, name=run.name, uid=run.uid)
            actions = (*actions, Delete(child=child))
    elif progress.fact.reason is Reason.IN_PROGRESS:
        # With growing pauses, because a Rook that is gone may take days.
        requeue_seconds = min(_LOOK_AGAIN_SECONDS, max(_SOON_SECONDS, age_seconds(ended, now) / _PATIENCE))
    return Situation(
        stage=Stage.CLEANING_UP,
        reason=ending.reason,
        message=ending.message,
        ending=ending,
        actions=actions,
        facts=facts,
        requeue_seconds=requeue_seconds,
    )


def _until(expiry: datetime | None, now: datetime) -> float | None:
    return None if expiry is None else max(_SOON_SECONDS, (expiry - now).total_seconds())
