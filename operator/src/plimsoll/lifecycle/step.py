"""One look at a run: what is there, what follows from it. Level-triggered: nothing is remembered between looks."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any

from plimsoll.api.names import API_VERSION, RUN_KIND, ConditionStatus, ConditionType
from plimsoll.api.status import format_time
from plimsoll.lifecycle import holding, planning, provisioning, readiness, status, teardown
from plimsoll.lifecycle.actions import Action, Create, Delete
from plimsoll.lifecycle.decision import Decision, Ending, Fact, Removal, Situation, Stage
from plimsoll.lifecycle.endings import ending_of, hindrance, not_ready_too_long, refused_too_long, said_before
from plimsoll.lifecycle.events import events_of
from plimsoll.lifecycle.observed import Observed
from plimsoll.lifecycle.obstacles import obstacle, stays
from plimsoll.lifecycle.refusal import Refusal
from plimsoll.lifecycle.render import documents
from plimsoll.lifecycle.render.common import PLAN_FILE
from plimsoll.lifecycle.run import Run
from plimsoll.lifecycle.settings import Settings
from plimsoll.lifecycle.wording import counted, have
from plimsoll.plan.document import Plan

_LOOK_AGAIN_SECONDS = 15.0
"""A missed event delays a run by this much at most."""

_SOON_SECONDS = 1.0
"""Also used while Rook reconciles: its CRDs may not be installed, so the operator polls them instead of watching."""

_PATIENCE = 20
"""What has taken so long already is looked at again after one part in this many of that time."""

_CLUSTER_SECONDS = 3.0
"""Polling interval while the Ceph cluster is unhealthy; recovery is slow."""

_NOT_SUSPENDED = Fact(holds=False, reason="NotSuspended")


def step(run: Run, seen: Observed, settings: Settings, now: datetime) -> Decision:
    """Return what is to be done for a run now, and what its status says."""
    situation = _assess(run, seen, settings, now)
    said = status.status_of(run, seen, situation, now)
    return Decision(
        actions=_possible(run, seen, situation.actions),
        status=said,
        events=events_of(run, said),
        requeue_seconds=situation.requeue_seconds,
    )


def _possible(run: Run, seen: Observed, actions: tuple[Action, ...]) -> tuple[Action, ...]:
    """Return the actions that are worth asking for: a namespace that is being deleted takes nothing new."""
    if seen.refusal is None or not seen.refusal.is_for_good(run.namespace):
        return actions
    return tuple(action for action in actions if isinstance(action, Delete))


def step_unseen(run: Run, refusal: Refusal, now: datetime) -> Decision | None:
    """Return what is said of a run that cannot be observed. It does not end for that: it may be measuring well."""
    if said_before(run) is not None:
        return None
    said = status.status_unseen(run, refusal, now)
    return Decision(status=said, events=events_of(run, said))


def step_deletion(run: Run, seen: Observed, settings: Settings, now: datetime) -> Removal:
    """Return what is to be done before a deleted run may go, and how far that is."""
    progress = teardown.teardown(run, seen, settings, keep_volumes=False, now=now)
    said = status.status_of_removal(run, progress.fact, now)
    return Removal(actions=progress.actions, status=said, cleaned_up=progress.fact)


def step_deletion_unseen(run: Run, refusal: Refusal, now: datetime) -> Mapping[str, Any]:
    """Return the status of a deleted run that cannot be observed, and therefore not be taken away."""
    fact = Fact(holds=False, reason=refusal.reason, message=refusal.message)
    return status.status_of_removal(run, fact, now)


def needs_platform(run: Run, seen: Observed, settings: Settings) -> bool:
    """Tell whether a plan is about to be frozen, for which the cluster has to be looked at."""
    if seen.plan is not None or run.is_suspended or said_before(run) is not None:
        return False
    return planning.refusal(run, settings) is None


def _assess(run: Run, seen: Observed, settings: Settings, now: datetime) -> Situation:
    said = said_before(run)
    if said is not None:
        return _finish(run, seen, settings, said, now, plan=seen.plan)
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
    """Tell whether an administrator's word counts yet: until its turn a run has made nothing, but may wait for long.

    What has a plan is not given up because another version of the operator understands less of its specification.
    """
    return seen.plan is None or (run.start_time is None and run.document is not None)


def _continue(run: Run, seen: Observed, plan: Plan, settings: Settings, now: datetime) -> Situation:
    """Rest, wait, or go on, as the user and the queue say."""
    if run.is_suspended or holding.is_losing_place(run):
        return _suspend(run, seen, plan, settings, now)
    if hindered := hindrance(run, seen):
        return _hold(seen, plan, hindered)
    if seen.ahead and (not seen.jobs or holding.has_lost_place(run)):
        return _wait_for_turn(seen)
    return _go_on(run, seen, plan, settings)


def _before_plan(run: Run, seen: Observed, settings: Settings, now: datetime) -> Situation:
    """Freeze the plan, unless the run was created suspended: then nothing is made."""
    if run.document is None or run.is_suspended:
        return _suspended_unmade()
    limit = run.document.spec.timeouts.provision_seconds
    late = readiness.waited_seconds(run, now) > limit
    if late and (ending := _waited_in_vain(seen, limit)):
        return _finish(run, seen, settings, ending, now, stage=Stage.REFUSED)
    if seen.departing:
        return _wait_for_departure(seen)
    if seen.platform is None:
        return _refused(_planning("the cluster is being looked at"), seen)
    plan = planning.freeze(run, run.document, seen.platform, settings)
    if isinstance(plan, Fact) and late:
        plan = not_ready_too_long(plan, limit)
    if isinstance(plan, Ending):
        return _finish(run, seen, settings, plan, now, stage=Stage.REFUSED)
    return _wait_for_cluster(plan) if isinstance(plan, Fact) else _store(run, seen, plan)


def _waited_in_vain(seen: Observed, limit: int) -> Ending | None:
    """Return the end of a run that has no plan yet and may not wait any longer; None if it waits for nothing."""
    if seen.departing:
        return stays(seen, limit)
    return refused_too_long(seen.refusal, limit) if seen.refusal is not None else None


def _store(run: Run, seen: Observed, plan: Plan) -> Situation:
    """Store the plan."""
    passes = f"{plan.repetitions} pass{'' if plan.repetitions == 1 else 'es'}"
    message = f"{counted(len(plan.points), 'point')}, {passes}"
    config_map = documents.plan_config_map(run, plan)
    digest = sha256(config_map["data"][PLAN_FILE].encode()).hexdigest()
    return replace(_refused(_planning(message, Create(obj=config_map)), seen), plan_sha256=digest)


def _suspended_unmade() -> Situation:
    return Situation(
        stage=Stage.SUSPENDED,
        reason="Suspended",
        message="created suspended: nothing is made until spec.suspend is false",
        facts={"Suspended": Fact(holds=True, reason="Suspended")},
    )


def _planning(message: str, *actions: Action) -> Situation:
    return Situation(
        stage=Stage.PROVISIONING,
        reason="Planning",
        message=message,
        actions=actions,
        facts={"Suspended": _NOT_SUSPENDED},
        requeue_seconds=_SOON_SECONDS,
    )


def _wait_for_cluster(fact: Fact) -> Situation:
    return Situation(
        stage=Stage.WAITING,
        reason=fact.reason,
        message=fact.message,
        facts={"Suspended": _NOT_SUSPENDED, "StorageReady": fact},
        requeue_seconds=_CLUSTER_SECONDS,
    )


def _wait_for_departure(seen: Observed) -> Situation:
    more = f" and {len(seen.departing) - 1} more" if len(seen.departing) > 1 else ""
    return Situation(
        stage=Stage.WAITING,
        reason="WaitingForEarlierRun",
        message=f"an earlier run of this name is being removed; still there: {seen.departing[0]}{more}",
        facts={"Suspended": _NOT_SUSPENDED},
        requeue_seconds=_LOOK_AGAIN_SECONDS,
    )


def _wait_for_turn(seen: Observed) -> Situation:
    message = f"position {len(seen.ahead)} in the queue, behind {seen.ahead[-1]}; runs of one target take turns"
    return Situation(
        stage=Stage.WAITING,
        reason="WaitingForTurn",
        message=message,
        facts={"Admitted": Fact(holds=False, reason="WaitingForTurn", message=message), "Suspended": _NOT_SUSPENDED},
        requeue_seconds=_LOOK_AGAIN_SECONDS,
    )


def _hold(seen: Observed, plan: Plan, hindered: Fact) -> Situation:
    """Leave everything as it is."""
    return Situation(
        stage=Stage.MEASURING if seen.jobs else Stage.WAITING,
        reason=hindered.reason,
        message=hindered.message,
        facts={
            "Suspended": _NOT_SUSPENDED,
            "StorageReady": readiness.storage_fact(plan, seen),
            "ClientsReady": readiness.clients_fact(plan, seen),
        },
        requeue_seconds=_LOOK_AGAIN_SECONDS,
    )


def _suspend(run: Run, seen: Observed, plan: Plan, settings: Settings, now: datetime) -> Situation:
    actions = teardown.stop_load(seen)
    stopping = bool(seen.jobs or seen.pods)
    lost = holding.place_lost(run, seen, settings, now)
    keeps_until = holding.keeps_until(run, seen, settings, now) if lost is None else None
    message = _resting_message(run, keeps_until)
    if stopping:
        message = teardown.stopping_message(seen)
    elif lost is not None:
        message = lost.message
    facts = {
        "Suspended": Fact(holds=True, reason="Suspended", message=message),
        "StorageReady": readiness.storage_fact(plan, seen),
        "ClientsReady": Fact(holds=False, reason="Suspended", message=message),
    }
    if stopping:
        facts["Reconciling"] = Fact(holds=True, reason=lost.reason if lost else "Stopping", message=message)
    if lost is not None and teardown.load_is_gone(seen, now):
        facts["Admitted"] = lost
    return Situation(
        stage=Stage.SUSPENDED,
        reason="Suspended",
        message=message,
        actions=actions,
        facts=facts,
        requeue_seconds=_SOON_SECONDS if stopping or not run.is_suspended else _until(keeps_until, now),
    )


def _resting_message(run: Run, keeps_until: datetime | None) -> str:
    if run.start_time is None:
        return "it had not begun; resuming puts it back into the queue"
    place = f"; its place in the queue is kept until {format_time(keeps_until)}" if keeps_until is not None else ""
    return f"volumes are kept; resuming prefills again{place}"


def _go_on(run: Run, seen: Observed, plan: Plan, settings: Settings) -> Situation:
    """Create what is missing, and say how far the run is."""
    measuring = seen.all_registered
    storage, clients = readiness.storage_fact(plan, seen), readiness.clients_fact(plan, seen)
    waiting = readiness.waiting_fact(storage, clients, seen)
    state_message = seen.state.message if seen.state else ""
    situation = Situation(
        stage=Stage.MEASURING if measuring else Stage.PROVISIONING,
        reason="Measuring" if measuring else waiting.reason,
        message=(status.progress_message(seen) or state_message) if measuring else waiting.message,
        actions=tuple(provisioning.missing_objects(run, plan, seen, settings)),
        facts={
            "Admitted": Fact(holds=True, reason="Admitted", message=f"it is this run's turn{_limitation(plan)}"),
            "Suspended": _NOT_SUSPENDED,
            "StorageReady": storage,
            "ClientsReady": clients,
        },
        requeue_seconds=_LOOK_AGAIN_SECONDS if storage.holds or plan.ceph is None else _SOON_SECONDS,
    )
    return situation if measuring else _refused(situation, seen)


def _limitation(plan: Plan) -> str:
    """Return what of the specification has no effect, as a clause; empty if all of it has."""
    asks_ceph = plan.gates.pause_scrub or plan.gates.ceph_health == "Required"
    if plan.ceph is not None or plan.volume is None or not asks_ceph:
        return ""
    return "; spec.gates has no effect, because no Ceph cluster is known behind a StorageClass"


def _refused(situation: Situation, seen: Observed) -> Situation:
    """Return the same, and that something of it could not be made at the last attempt."""
    if seen.refusal is None or seen.refusal.hinders_removal:
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
    """Say how it ended, take away what is to go, and at its time the run itself."""
    keeps = teardown.keeps_volumes(run, ending)
    progress = teardown.teardown(run, seen, settings, keep_volumes=keeps, now=now)
    settled = progress.fact.holds or progress.fact.reason == "StorageKept"
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
    """Return what held while the run went on, and holds no more; volumes that are kept stay ready."""
    kinds = [ConditionType.SUSPENDED, ConditionType.CLIENTS_READY]
    if not keeps_volumes:
        kinds.append(ConditionType.STORAGE_READY)
    held = [kind for kind in kinds if kind in run.conditions and run.conditions[kind].status is ConditionStatus.TRUE]
    return {kind: Fact(holds=False, reason="Ended", message="the run has ended") for kind in held}


def _measured_fact(plan: Plan, seen: Observed) -> Fact:
    final = sum(result.final for result in seen.results.values())
    message = f"{final} of {counted(len(plan.points), 'point')} {have(final)} all trials"
    return Fact(
        holds=final == len(plan.points),
        reason="AllFinal" if final == len(plan.points) else "Incomplete",
        message=message,
    )


def _expiry(run: Run, now: datetime) -> datetime | None:
    """Return when a finished run is to be deleted; None if never."""
    ttl = run.document.spec.ttl_seconds_after_finished if run.document else None
    if ttl is None:
        return None
    said = run.status.get("completionTime")
    return (datetime.fromisoformat(said) if said else now) + timedelta(seconds=ttl)


def _until(expiry: datetime | None, now: datetime) -> float | None:
    return None if expiry is None else max(_SOON_SECONDS, (expiry - now).total_seconds())


def _until_clean(cleaned_up: Fact, run: Run, now: datetime) -> float:
    """Return when to look again at what is being removed: later and later, as a Rook that is gone may take days."""
    if cleaned_up.reason != "InProgress":
        return _LOOK_AGAIN_SECONDS
    ended = run.status.get("completionTime")
    elapsed = (now - datetime.fromisoformat(ended)).total_seconds() if ended else 0.0
    return min(_LOOK_AGAIN_SECONDS, max(_SOON_SECONDS, elapsed / _PATIENCE))


def _delete_run(run: Run) -> Delete:
    return Delete(api_version=API_VERSION, kind=RUN_KIND, namespace=run.namespace, name=run.name, uid=run.uid)
