"""Removal of a run's objects, in order: the load, addresses and rights, and storage backwards.

Plan, state and results are kept until the run itself is deleted: a finished run is read from them.
"""

from dataclasses import replace
from datetime import datetime

from plimsoll.api.reasons.reason import Reason
from plimsoll.lifecycle.decision import Action, Fact, Teardown, deletions
from plimsoll.lifecycle.observed import Observed, age_seconds
from plimsoll.lifecycle.run import Run, Settings, counted, listed
from plimsoll.lifecycle.storage.claims import removable
from plimsoll.lifecycle.storage.registry import storage_of

LOAD_GONE_SECONDS = 300
"""Seconds after a pod's deletion deadline from which on it cannot load the storage, wherever it is.

A kubelet that responds has killed the pod. Otherwise, a conductor gives up when its write is refused
(`revoke_rights`), or when it could not write its state for a minute, and agents kill their tool and exit after
a minute without a conductor.
"""


def teardown(run: Run, seen: Observed, settings: Settings, *, keep_volumes: bool, now: datetime) -> Teardown:
    """Return the next step of removing everything that uses resources."""
    load, rights = stop_load(seen), revoke_rights(seen, now)
    if load or seen.jobs or seen.loading_pods:
        fact = Fact.false(Reason.IN_PROGRESS, stopping_message(seen))
        if seen.loading_pods and load_is_gone(seen, now):
            message = (
                f"{counted(len(seen.loading_pods), 'pod')}{_nodes(seen)} should have been gone {LOAD_GONE_SECONDS} s "
                "ago and can no longer load the storage, so the next run may start; delete the Node if it will not "
                "return, or taint it node.kubernetes.io/out-of-service"
            )
            fact = Fact.false(Reason.NODE_GONE, message)
        step = Teardown(actions=(*load, *rights), fact=fact)
    else:
        storage, rest = storage_of(run, seen, settings, now), deletions(removable(seen))
        claims = [claim.child.name for claim in seen.claims]
        kept = "; ".join([*([f"{counted(len(claims), 'PVC')}: {listed(claims)}"] if claims else []), *storage.kept])
        if keep_volumes and kept:
            step = Teardown(actions=rest, fact=Fact.false(Reason.STORAGE_KEPT, f"spec.cleanup keeps {kept}"))
        elif (removal := storage.removal()) is not None:
            others = (action for action in rest if action not in removal.actions)
            step = replace(removal, actions=(*others, *removal.actions))
        elif run.start_time is None and not seen.others and not seen.results:
            step = Teardown(actions=(), fact=Fact.true(Reason.NOTHING_MADE, "nothing was created"))
        else:
            step = Teardown(actions=(), fact=Fact.true(Reason.REMOVED, "only the run's documents and results remain"))
    if seen.refusal is None or not seen.refusal.blocks_removal or step.fact.holds:
        return step
    return replace(step, fact=Fact.false(seen.refusal.reason, seen.refusal.message))


def is_settled(cleaned_up: Fact) -> bool:
    """Whether nothing more will be removed from an ended run: nothing is left, or only storage that it keeps."""
    return bool(cleaned_up.holds) or cleaned_up.reason is Reason.STORAGE_KEPT


def revoke_rights(seen: Observed, now: datetime) -> tuple[Action, ...]:
    """Return the deletion of the RoleBinding of a conductor that has been stopped, once it has no end left to record.

    Its pod may record its end until the deletion deadline. A kubelet that has not removed it by then is dead, and one
    whose pod was deleted by force may be: a conductor that still has a connection would otherwise measure on and change
    the results.
    """
    pods = [pod for pod in seen.loading_pods if pod.client is None]
    is_gone = seen.conductor_job is None and not pods
    is_overdue = any(pod.gone_by is not None and pod.gone_by < now for pod in pods)
    return deletions(child for child in seen.others if child.kind == "RoleBinding") if is_gone or is_overdue else ()


def stop_load(seen: Observed) -> tuple[Action, ...]:
    """Return the deletions that stop the load: every Job with its pods, and pods that have lost their Job."""
    if seen.jobs:
        return deletions((job.child for job in seen.jobs), foreground=True)
    return deletions(pod.child for pod in seen.loading_pods)


def load_is_gone(seen: Observed, now: datetime) -> bool:
    """Whether a run no longer loads its target, whatever the state of its nodes and its pods' finalizers."""
    are_gone = all(age_seconds(pod.gone_by, now) > LOAD_GONE_SECONDS for pod in seen.loading_pods)
    return are_gone and all(job.child.deleting for job in seen.jobs)


def stopping_message(seen: Observed) -> str:
    """Return what is still stopping, and on which nodes."""
    nodes = _nodes(seen)
    where = f"{nodes}; pods on an unresponsive node remain until it returns or is deleted" if nodes else ""
    return f"{counted(len(seen.jobs), 'Job')} and {counted(len(seen.loading_pods), 'pod')} are stopping{where}"


def _nodes(seen: Observed) -> str:
    """Return the nodes of pods that are being deleted, as ` on a, b`; empty if there are none."""
    nodes = sorted({pod.node for pod in seen.loading_pods if pod.child.deleting and pod.node})
    return f" on {listed(nodes)}" if nodes else ""
