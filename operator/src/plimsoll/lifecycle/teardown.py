"""Taking a run's objects away, in order: load first, then volumes, then rights and addresses.

Plan, state and results stay until the run itself goes: they are what a finished run is read from.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from plimsoll.lifecycle import provisioning
from plimsoll.lifecycle.actions import Action, Delete
from plimsoll.lifecycle.decision import Ending, Fact
from plimsoll.lifecycle.observed import Child, Observed
from plimsoll.lifecycle.run import Run

_KEPT_COMPONENTS = {"plan", "state", "result"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Teardown:
    """What is to be deleted now, and how far it is. `load_is_gone`: no pod of the run is left."""

    actions: tuple[Action, ...]
    fact: Fact
    load_is_gone: bool


def teardown(seen: Observed, *, keep_volumes: bool) -> Teardown:
    """Return the next step of taking everything away that costs anything."""
    load = tuple(_load(seen))
    if load or seen.jobs or seen.pods:
        return _in_progress(load, _stopping(seen), load_is_gone=False)
    rest = tuple(_delete(child) for child in seen.others if _is_to_go(child))
    if keep_volumes and seen.claims:
        names = ", ".join(claim.child.name for claim in seen.claims[:3])
        fact = Fact(holds=False, reason="StorageKept", message=f"cleanup keeps {len(seen.claims)} claims: {names}")
        return Teardown(actions=rest, fact=fact, load_is_gone=True)
    claims = tuple(_delete(claim.child) for claim in seen.claims if not claim.child.deleting)
    if seen.claims or any(_counts(child) for child in seen.others):
        return _in_progress((*claims, *rest), f"{len(seen.claims)} claims are being removed", load_is_gone=True)
    return Teardown(
        actions=(), fact=Fact(holds=True, reason="Removed", message="nothing is left but results"), load_is_gone=True
    )


def stop_load(seen: Observed) -> tuple[Action, ...]:
    """Return what ends the load and leaves the volumes: for a suspension."""
    return tuple(_load(seen))


def keeps_volumes(run: Run, ending: Ending) -> bool:
    """Tell whether a run's volumes stay after its end."""
    cleanup = run.document.spec.cleanup if run.document else "Always"
    return cleanup == "Never" or (cleanup == "OnSuccess" and not ending.succeeded)


def _in_progress(actions: tuple[Action, ...], message: str, *, load_is_gone: bool) -> Teardown:
    return Teardown(
        actions=actions, fact=Fact(holds=False, reason="InProgress", message=message), load_is_gone=load_is_gone
    )


def _stopping(seen: Observed) -> str:
    """Return what still stops, and where: a pod of a node that is gone stays until the node or its object goes."""
    nodes = sorted({pod.node for pod in seen.pods if pod.child.deleting and pod.node})
    where = f" on {', '.join(nodes[:3])}; a node that does not answer holds its pods back" if nodes else ""
    return f"{len(seen.jobs)} Jobs and {len(seen.pods)} pods are stopping{where}"


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
    return child.component not in _KEPT_COMPONENTS


def _delete(child: Child) -> Delete:
    return Delete(
        api_version=child.api_version,
        kind=child.kind,
        namespace=child.namespace,
        name=child.name,
        uid=child.uid,
    )
