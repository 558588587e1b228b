"""The clients' volumes: one PVC per client, or one for all, of the StorageClass that a provider names."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from plimsoll.api.reasons.reason import Reason
from plimsoll.lifecycle.actions import Create, deletions
from plimsoll.lifecycle.children import Child
from plimsoll.lifecycle.decision import Fact, Teardown
from plimsoll.lifecycle.observed import Observed
from plimsoll.lifecycle.render import client as render
from plimsoll.lifecycle.storage.seam import Resource, View
from plimsoll.lifecycle.wording import counted, listed

_KEPT_KIND = "ConfigMap"


@dataclass(frozen=True, slots=True, kw_only=True)
class Claims(Resource):
    """The PVCs, removed together with the run's other objects in its namespace.

    They are in every provider's list, also if its clients use no volumes: then `storage_class` is empty.
    """

    view: View
    storage_class: str = ""

    # With WaitForFirstConsumer, a PVC is bound only when a pod that uses it has a node.
    waits_for_clients: ClassVar[bool] = True

    def desired(self) -> Iterator[Create]:
        """Yield the missing PVCs."""
        plan, existing = self.view.plan, self.view.seen.names("PersistentVolumeClaim")
        if not self.storage_class or plan is None:
            return
        for claim in render.claims(self.view.run, plan, self.storage_class):
            if claim["metadata"]["name"] not in existing:
                yield Create(obj=claim)

    def ready(self) -> Fact:
        """Return whether every client has its volume, and why not."""
        plan, seen = self.view.plan, self.view.seen
        if plan is None or not render.has_claim(plan):
            return Fact.true(Reason.NOT_NEEDED)
        wanted = 1 if plan.volume is not None and plan.volume.is_shared else plan.clients
        unbound, absent = seen.unbound_claims, wanted - len(seen.claims)
        if not unbound and absent <= 0:
            return Fact.true(Reason.BOUND, f"{counted(wanted, 'PVC')} bound")
        problems = [
            f"PVC {claim.child.name} is {claim.phase}"
            + (f" ({seen.warnings[claim.child.uid]})" if claim.child.uid in seen.warnings else "")
            for claim in unbound
        ]
        message = listed(problems, separator="; ") or f"{counted(absent, 'PVC')} not created yet"
        return Fact.false(Reason.CLAIMS_NOT_BOUND, message)

    def remove(self) -> Teardown | None:
        """Return the progress of removing PVCs and everything else in the run's namespace; None if it is done."""
        claims, others = [claim.child for claim in self.view.seen.claims], removable(self.view.seen)
        if not claims and not others:
            return None
        if claims:
            message = f"deleting {counted(len(claims), 'PVC')}{_blockers(self.view.seen)}"
        else:
            kinds = ", ".join(sorted({child.kind for child in others}))
            message = f"deleting {counted(len(others), 'object')}: {kinds}"
        return Teardown(actions=deletions([*claims, *others]), fact=Fact.false(Reason.IN_PROGRESS, message))


def removable(seen: Observed) -> Sequence[Child]:
    """Return what a run has in its namespace, besides load and PVCs, that is deleted before the run itself."""
    return [child for child in seen.others if child.kind != _KEPT_KIND]


def _blockers(seen: Observed) -> str:
    """Return the finalizers of the first PVC that has any, as a clause; their names say what blocks its deletion."""
    claim = next((claim for claim in seen.claims if claim.finalizers), None)
    if claim is None:
        return ""
    return f"; {claim.child.name} waits for finalizers: {listed(claim.finalizers)}"
