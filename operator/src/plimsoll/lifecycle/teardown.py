"""Taking a run's objects away, in order: load first, then volumes, then rights and addresses.

Plan, state and results stay until the run itself goes: they are what a finished run is read from.
"""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

from plimsoll.lifecycle import ceph_teardown, provisioning
from plimsoll.lifecycle.actions import Action, Delete
from plimsoll.lifecycle.children import Child, PodFact
from plimsoll.lifecycle.decision import Ending, Fact, Teardown
from plimsoll.lifecycle.observed import Observed, age_seconds
from plimsoll.lifecycle.run import Run
from plimsoll.lifecycle.settings import Settings
from plimsoll.lifecycle.wording import are, counted

LOAD_GONE_SECONDS = 300
"""So long after a pod had to be gone, nothing of it loads the storage any more, wherever it is.

Where a kubelet still answers it has killed the pod. Elsewhere a conductor on the same node gives up when it could not
write its state for a minute, and agents kill their tool and exit when they have heard of no conductor for a minute.
"""

_KEPT_KIND = "ConfigMap"
_NAMED = 3


def teardown(run: Run, seen: Observed, settings: Settings, *, keep_volumes: bool, now: datetime) -> Teardown:
    """Return the next step of taking everything away that costs anything."""
    step = _next_step(run, seen, settings, keep_volumes=keep_volumes, now=now)
    if seen.refusal is None or not seen.refusal.hinders_removal or step.fact.holds:
        return step
    return replace(step, fact=Fact(holds=False, reason=seen.refusal.reason, message=seen.refusal.message))


def _next_step(run: Run, seen: Observed, settings: Settings, *, keep_volumes: bool, now: datetime) -> Teardown:
    load = tuple(_load(seen))
    if load or seen.jobs or seen.pods:
        return Teardown(actions=load, fact=_stopping(seen, now))
    rest = tuple(_delete(child) for child in seen.others if _is_to_go(child))
    if keep_volumes and (kept := _kept(seen)):
        fact = Fact(holds=False, reason="StorageKept", message=f"cleanup keeps {kept}")
        return Teardown(actions=rest, fact=fact)
    in_ceph = ceph_teardown.before_claims(run, seen, settings, now)
    if in_ceph is not None:
        return replace(in_ceph, actions=(*rest, *in_ceph.actions))
    return _volumes(seen, rest) or ceph_teardown.after_claims(run, seen, now) or _nothing_left(run, seen)


def _volumes(seen: Observed, rest: tuple[Action, ...]) -> Teardown | None:
    """Return how far the removal of claims and of everything else in the run's namespace is; None if it is done."""
    claims = tuple(_delete(claim.child) for claim in seen.claims if not claim.child.deleting)
    others = [child for child in seen.others if _counts(child)]
    if not seen.claims and not others:
        return None
    if number := len(seen.claims):
        message = f"{counted(number, 'claim')} {are(number)} being removed{_held_by(seen)}"
    else:
        kinds = ", ".join(sorted({child.kind for child in others}))
        message = f"{counted(len(others), 'object')} {are(len(others))} being removed: {kinds}"
    return Teardown(actions=(*claims, *rest), fact=Fact(holds=False, reason="InProgress", message=message))


def _held_by(seen: Observed) -> str:
    """Return what keeps the first of the claims that are kept, as a clause: who it belongs to is in the finalizers."""
    claim = next((claim for claim in seen.claims if claim.finalizers), None)
    if claim is None:
        return ""
    more = f" and {len(claim.finalizers) - _NAMED} more" if len(claim.finalizers) > _NAMED else ""
    return f"; {claim.child.name} waits for {', '.join(claim.finalizers[:_NAMED])}{more}"


def _nothing_left(run: Run, seen: Observed) -> Teardown:
    unmade = run.start_time is None and not seen.others and not seen.results
    reason, message = (
        ("NothingMade", "nothing was made")
        if unmade
        else ("Removed", "nothing is left but the run's documents and results")
    )
    return Teardown(actions=(), fact=Fact(holds=True, reason=reason, message=message))


def _kept(seen: Observed) -> str:
    """Return what of the storage there is to keep; empty if there is nothing."""
    claims = [claim.child.name for claim in seen.claims]
    parts = [f"{counted(len(claims), 'claim')}: {', '.join(claims[:_NAMED])}"] if claims else []
    return "; ".join([*parts, *(seen.elsewhere.kept if seen.elsewhere else ())])


def stop_load(seen: Observed) -> tuple[Action, ...]:
    """Return what ends the load and leaves the volumes: for a suspension."""
    return tuple(_load(seen))


def load_is_gone(seen: Observed, now: datetime) -> bool:
    """Tell whether nothing of a run loads its target any more, whatever its nodes and its pods' finalizers do."""
    return all(job.child.deleting for job in seen.jobs) and all(_is_without_load(pod, now) for pod in seen.pods)


def stopping_message(seen: Observed) -> str:
    """Return what still stops, and where: a pod of a node that is gone stays until the node or its object goes."""
    nodes = _nodes(seen)
    where = f" on {nodes}; a node that does not answer holds its pods back" if nodes else ""
    return f"{counted(len(seen.jobs), 'Job')} and {counted(len(seen.pods), 'pod')} are stopping{where}"


def keeps_volumes(run: Run, ending: Ending) -> bool:
    """Tell whether a run's volumes stay after its end."""
    cleanup = run.document.spec.cleanup if run.document else run.written.get("cleanup", "Always")
    return cleanup == "Never" or (cleanup == "OnSuccess" and not ending.succeeded)


def _stopping(seen: Observed, now: datetime) -> Fact:
    """Return how far the end of the load is; it is there at the latest a while after the last pod had to be gone."""
    if not (seen.pods and load_is_gone(seen, now)):
        return Fact(holds=False, reason="InProgress", message=stopping_message(seen))
    nodes = _nodes(seen)
    message = (
        f"{counted(len(seen.pods), 'pod')}{f' on {nodes}' if nodes else ''} had to be gone {LOAD_GONE_SECONDS} s ago "
        "and cannot load the storage any more, so the next run may begin; delete the Node if it does not come back, or "
        "taint it node.kubernetes.io/out-of-service"
    )
    return Fact(holds=False, reason="NodeGone", message=message)


def _nodes(seen: Observed) -> str:
    """Return the nodes of pods that are being deleted."""
    nodes = sorted({pod.node for pod in seen.pods if pod.child.deleting and pod.node})
    return ", ".join(nodes[:_NAMED])


def _is_without_load(pod: PodFact, now: datetime) -> bool:
    """Tell whether a pod is only an object any more, whatever its node does."""
    return age_seconds(pod.gone_by, now) > LOAD_GONE_SECONDS


def _load(seen: Observed) -> Iterator[Action]:
    """Yield the deletion of every Job with its pods, and of pods that have lost theirs."""
    for job in seen.jobs:
        if not job.child.deleting:
            yield provisioning.delete(job)
    if not seen.jobs:
        for pod in seen.pods:
            if not pod.child.deleting:
                yield _delete(pod.child)


def _is_to_go(child: Child) -> bool:
    return _counts(child) and not child.deleting


def _counts(child: Child) -> bool:
    return child.kind != _KEPT_KIND


def _delete(child: Child) -> Delete:
    return Delete(
        api_version=child.api_version,
        kind=child.kind,
        namespace=child.namespace,
        name=child.name,
        uid=child.uid,
    )
