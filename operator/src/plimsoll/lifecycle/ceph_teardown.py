"""Taking away what a run has outside its namespace, in order, each step seen done before the next is begun.

Before its claims: what it left in Ceph, by the teardown Job. After them: the Job's key, PersistentVolumes, the
StorageClass, CephX users, pools, the Job and its record. Nothing is ever forced: what does not go is waited for, and
told.
"""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime

from plimsoll.api.status import format_time
from plimsoll.ceph.conf import monitors_of
from plimsoll.lifecycle.actions import Action, Create, Delete
from plimsoll.lifecycle.children import Child, JobFact
from plimsoll.lifecycle.decision import Fact, Teardown
from plimsoll.lifecycle.elsewhere import Elsewhere
from plimsoll.lifecycle.observed import Observed, age_seconds
from plimsoll.lifecycle.obstacles import is_own_plan
from plimsoll.lifecycle.render import teardown as render
from plimsoll.lifecycle.rook.cluster import ClusterFact, cluster_fact, inactive_groups
from plimsoll.lifecycle.rook.removal import removal_fact, why_held
from plimsoll.lifecycle.run import Run
from plimsoll.lifecycle.settings import Settings
from plimsoll.lifecycle.wording import are, counted
from plimsoll.plan.ceph import ceph_target
from plimsoll.plan.document import RunIdentity

_NAMED = 3
_MAX_WORDS = 500

_LONG_SECONDS = 120.0
"""A teardown Job takes a few seconds, and half a minute more if a client of an image died."""


def before_claims(run: Run, seen: Observed, settings: Settings, now: datetime) -> Teardown | None:
    """Return how far the removal of what is in Ceph is; None if nothing is left of it.

    Before there was a copy of the key, nobody of the run could reach Ceph.
    """
    there = seen.elsewhere
    if there is None or there.is_empty:
        return None
    if there.kinds_problem:
        message = f"Rook's objects of this run cannot be looked at: {there.kinds_problem}"
        return _waiting(Fact(holds=False, reason="RookNotFound", message=message))
    if there.keyring is None:
        return None
    if there.record is None or there.recorded is None:
        return _record_anew(run, seen, there, settings)
    return _in_ceph(run, there, there.recorded, settings, now)


def after_claims(run: Run, seen: Observed, now: datetime) -> Teardown | None:
    """Return how far the removal of everything else is; None if nothing is left of it."""
    there = seen.elsewhere
    if there is None or there.is_empty:
        return None
    if there.keyring is not None:
        # Before the user whose key it is: else a Job that somebody tidies up would be made anew, and fail for good.
        # From here on its absence says that nothing of the run is in Ceph.
        return _waiting(
            Fact(holds=False, reason="InProgress", message="the copy of the key is being removed"),
            *_deletions([there.keyring]),
        )
    return _volumes(there) or _rook(run, there, now) or _record_and_job(there)


def _volumes(there: Elsewhere) -> Teardown | None:
    """Return how far the removal of PersistentVolumes and their StorageClass is; None if it is done."""
    if volumes := _volumes_fact(there):
        return _waiting(volumes)
    if there.storage_class is None:
        return None
    return _waiting(
        Fact(holds=False, reason="InProgress", message="the StorageClass is being removed"),
        *_deletions([there.storage_class]),
    )


def _rook(run: Run, there: Elsewhere, now: datetime) -> Teardown | None:
    """Return how far the removal of users, and then of pools, is; None if it is done."""
    if there.users:
        return _waiting(removal_fact(there.users, now), *_deletions(user.child for user in there.users))
    return _pool(run, there, now) if there.pools else None


def _record_and_job(there: Elsewhere) -> Teardown:
    jobs = tuple(_delete(job.child, foreground=True) for job in there.jobs if not job.child.deleting)
    records = [child for child in (there.record, there.network_policy) if child is not None]
    return _waiting(
        Fact(holds=False, reason="InProgress", message="the teardown record is being removed"),
        *jobs,
        *_deletions(records),
    )


def _volumes_fact(there: Elsewhere) -> Fact | None:
    """Return which PersistentVolumes are there yet, and whether anybody else has them; None if none is."""
    if volumes := there.claimed_by_others:
        number = len(volumes)
        message = (
            f"{counted(number, 'PersistentVolume')} of the run's StorageClass {are(number)} claimed by others: "
            f"{', '.join(volumes[:_NAMED])}; its pool stays until these claims are deleted, and the next run may begin"
        )
        return Fact(holds=False, reason="ClaimedByOthers", message=message)
    if not there.volumes:
        return None
    number, names = len(there.volumes), ", ".join(there.volumes[:_NAMED])
    message = (
        f"{counted(number, 'PersistentVolume')} {are(number)} there yet; the provisioner removes what nobody claims "
        f"any more: {names}"
    )
    return Fact(holds=False, reason="InProgress", message=message)


def _pool(run: Run, there: Elsewhere, now: datetime) -> Teardown:
    """Return how far the removal of the pools is: first the one with the images' headers, then `<its name>-data`."""
    pool = min(there.pools, key=lambda fact: fact.child.name)
    cluster = _cluster(there)
    answered = any(job.complete for job in there.jobs)
    held = why_held(pool, cluster, groups_answered=answered, ended=run.end_time, now=now)
    if held is not None and not pool.child.deleting:
        return _waiting(held)
    return _waiting(removal_fact([pool], now, inactive_groups(cluster)), *_deletions([pool.child]))


def _cluster(there: Elsewhere) -> ClusterFact | None:
    return None if there.cluster is None else cluster_fact(there.cluster)


def _record_anew(run: Run, seen: Observed, there: Elsewhere, settings: Settings) -> Teardown:
    """Return the making of a record that somebody deleted, or that cannot be read."""
    if there.record is not None:
        message = (
            f"the teardown record {_where(there.record)} cannot be read; use the version of the operator that wrote it"
        )
        return _waiting(
            Fact(holds=False, reason="TeardownFailing", message=message),
            *_deletions([] if seen.plan is None or not is_own_plan(run, seen) else [there.record]),
        )
    record = _record(run, seen, settings)
    if record is None:
        message = "the teardown record was deleted, and the specification cannot be read; use a later operator"
        return _waiting(Fact(holds=False, reason="TeardownFailing", message=message))
    monitors = record.ceph.monitors or monitors_of(there.monitors)
    made = Create(obj=render.record_config_map(run, record, monitors, settings))
    return _waiting(
        Fact(holds=False, reason="InProgress", message="the teardown record was deleted and is made anew"), made
    )


def _record(run: Run, seen: Observed, settings: Settings) -> render.TeardownRecord | None:
    if seen.plan is not None and is_own_plan(run, seen):
        return render.record_of(seen.plan)
    if run.document is None:
        return None
    document = run.document
    target = ceph_target(
        document.model_copy(update={"metadata": document.metadata.model_copy(update={"uid": run.uid})})
    )
    if target is None:
        return None
    identity = RunIdentity(name=run.name, namespace=run.namespace, uid=run.uid)
    return render.TeardownRecord(
        run=identity, runner_image=settings.runner_image, clients=document.spec.clients.count, ceph=target
    )


def _in_ceph(
    run: Run, there: Elsewhere, record: render.TeardownRecord, settings: Settings, now: datetime
) -> Teardown | None:
    """Return how far the teardown Job is, begun anew when it has given up; None if it is done."""
    job = there.jobs[0] if there.jobs else None
    if job is None:
        # A pod that ran before its policy could talk to anybody.
        obj = render.job if there.network_policy else render.network_policy
        made = Create(obj=obj(run, record, settings))
        return _waiting(
            Fact(holds=False, reason="InProgress", message="what the run left in Ceph is about to be removed"), made
        )
    if job.complete and not job.child.deleting:
        return None
    again = (_delete(job.child, foreground=True),) if job.failure and not job.child.deleting else ()
    return replace(_under_way(job, there, settings, now), actions=again)


def _under_way(job: JobFact, there: Elsewhere, settings: Settings, now: datetime) -> Teardown:
    """Return what the teardown Job does, and its last words if it does not succeed."""
    # A pod that has done it all is there for a moment before its Job is complete.
    trying = [pod for pod in there.pods if pod.phase != "Succeeded"]
    words = [pod.problem or pod.last_words for pod in sorted(trying, key=lambda pod: pod.created)]
    trouble = next((text for text in reversed(words) if text), "") or job.failure or there.warnings.get(job.child.uid)
    inactive = inactive_groups(_cluster(there))
    if not trouble:
        return _waiting(_removing(job, inactive, now))
    message = (
        f"Job {_where(job.child)} could not yet remove what the run left in Ceph, and tries again: "
        f"{trouble[:_MAX_WORDS]}; if its monitors have moved, delete ConfigMap {settings.namespace}/{job.child.name}, "
        "which is made anew; if it is gone for good, delete the Secret of that name"
    )
    if inactive:
        message = f"{inactive}, so {message}"
    return _waiting(Fact(holds=False, reason="TeardownFailing", message=message))


def _removing(job: JobFact, inactive: str, now: datetime) -> Fact:
    """Return what the teardown Job does as long as it has not complained of anything."""
    message = f"Job {_where(job.child)} removes what the run left in Ceph"
    if inactive:
        message = f"{message}, and waits for Ceph: {inactive}; it goes on by itself when they are active"
        return Fact(holds=False, reason="PlacementGroupsInactive", message=message)
    if age_seconds(job.created, now) > _LONG_SECONDS:
        log = f"kubectl --namespace {job.child.namespace} logs job/{job.child.name}"
        message = f"{message} since {format_time(job.created)}; see whether Ceph answers, and `{log}`"
    return Fact(holds=False, reason="InProgress", message=message)


def _waiting(fact: Fact, *actions: Action) -> Teardown:
    return Teardown(actions=actions, fact=fact)


def _deletions(children: Iterable[Child]) -> tuple[Delete, ...]:
    return tuple(_delete(child) for child in children if not child.deleting)


def _delete(child: Child, *, foreground: bool = False) -> Delete:
    return Delete(
        api_version=child.api_version,
        kind=child.kind,
        namespace=child.namespace,
        name=child.name,
        uid=child.uid,
        foreground=foreground,
    )


def _where(child: Child) -> str:
    return f"{child.namespace}/{child.name}"
