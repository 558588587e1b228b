"""The PVCs of a run's clients, and the namespaces with PVCs that tools create themselves."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from plimsoll.api.reasons.reason import Reason
from plimsoll.lifecycle import naming
from plimsoll.lifecycle.children import Child, Object
from plimsoll.lifecycle.decision import Create, Fact, Teardown, deletions
from plimsoll.lifecycle.observed import Observed
from plimsoll.lifecycle.render import client as render
from plimsoll.lifecycle.run import Run, Settings
from plimsoll.lifecycle.storage.seam import Look, Query, Resource, View
from plimsoll.measure.text import count_text, first_few
from plimsoll.protocol.helpers import namespace_base
from plimsoll.tools.registry import TOOLS

_MAX_CHARACTERS = 200  # maximum length of why a namespace is not deleted


@dataclass(frozen=True, slots=True, kw_only=True)
class Claims(Resource):
    """The PVCs, removed with the run's other objects in its namespace; without `storage_class` there are none."""

    view: View
    storage_class: str = ""
    binds_immediately: bool = False  # whether the StorageClass binds PVCs before a pod uses them

    # With WaitForFirstConsumer, a PVC is bound only when a pod that uses it has a node.
    bound_by_clients: ClassVar[bool] = True

    def desired(self) -> Iterator[Create]:
        plan, existing = self.view.seen.plan, self.view.seen.names("PersistentVolumeClaim")
        if not self.storage_class or plan is None:
            return
        for claim in render.claims(self.view.run, plan, self.storage_class):
            if claim["metadata"]["name"] not in existing:
                yield Create(obj=claim)

    def is_schedulable(self) -> bool:
        """Whether all PVCs are bound that no client has to bind."""
        return not (self.binds_immediately and self.view.seen.unbound_claims)

    def ready(self) -> Fact:
        plan, seen = self.view.seen.plan, self.view.seen
        if plan is None or not plan.has_claims:
            return Fact.true(Reason.NOT_NEEDED)
        wanted = 1 if plan.volume is not None and plan.volume.is_shared else plan.clients
        unbound, absent = seen.unbound_claims, wanted - len(seen.claims)
        if not unbound and absent <= 0:
            return Fact.true(Reason.BOUND, f"{count_text(wanted, 'PVC')} bound")
        problems = [
            f"PVC {claim.child.name} is {claim.phase}"
            + (f" ({seen.warnings[claim.child.uid]})" if claim.child.uid in seen.warnings else "")
            for claim in unbound
        ]
        message = first_few(problems, 3, "; ") or f"{count_text(absent, 'PVC')} not created yet"
        return Fact.false(Reason.CLAIMS_NOT_BOUND, message)

    def remove(self) -> Teardown | None:
        claims, others = [claim.child for claim in self.view.seen.claims], removable(self.view.seen)
        if not claims and not others:
            return None
        if claims:
            message = f"deleting {count_text(len(claims), 'PVC')}"
            # Their names say what blocks the deletion.
            if blocked := next((claim for claim in self.view.seen.claims if claim.finalizers), None):
                message = f"{message}; {blocked.child.name} waits for finalizers: {first_few(blocked.finalizers, 3)}"
        else:
            kinds = ", ".join(sorted({child.kind for child in others}))
            message = f"deleting {count_text(len(others), 'object')}: {kinds}"
        return Teardown(actions=deletions([*claims, *others]), fact=Fact.false(Reason.IN_PROGRESS, message))


@dataclass(frozen=True, slots=True, kw_only=True)
class Outside:
    """What a run has outside its namespace."""

    storage: object | None = None  # what the storage provider found; None if there can be nothing
    namespaces: Mapping[str, str]  # names of those that exist -> what blocks the deletion, if anything
    volumes: Sequence[str] = ()  # names of the PersistentVolumes of PVCs in them that are deleted with these PVCs


@dataclass(frozen=True, slots=True, kw_only=True)
class Namespaces(Resource):
    """They exist only while a trial runs. Their PVCs need everything else of the storage."""

    outside: Outside
    settings: Settings

    def ready(self) -> Fact:
        return Fact.true(Reason.NOT_NEEDED)

    def remove(self) -> Teardown | None:
        if self.outside.namespaces:
            helper, remedy = "the kube-burner helper", "it is no longer enabled, so delete them yourself"
            if burning := self.settings.burning:
                helper = f"the helper {burning.service.namespace}/{burning.service.name}"
                remedy = "if it does not, check its pod"
            names = [f"{name}{f' ({why})' if why else ''}" for name, why in self.outside.namespaces.items()]
            message = f"{helper} is deleting {count_text(len(names), 'namespace')}: {first_few(names, 3)}; {remedy}"
        elif self.outside.volumes:
            left = f"{count_text(len(self.outside.volumes), 'PersistentVolume')} of deleted PVCs left"
            message = f"{left}: {first_few(self.outside.volumes, 3)}; check the provisioner of the StorageClass"
        else:
            return None
        return Teardown(actions=(), fact=Fact.false(Reason.IN_PROGRESS, message))


def removable(seen: Observed) -> Sequence[Child]:
    """Return the objects in the run's namespace that are deleted before the run itself, without its load and PVCs."""
    return [child for child in seen.others if child.kind != "ConfigMap"]


def creates_claims(run: Run) -> bool:
    """Whether a tool of the run creates PVCs itself. It reads the specification as stored, and never raises."""
    written = run.written.get("workloads")
    workloads = written if isinstance(written, list) else []
    keys = {key for key, tool in TOOLS.items() if tool.creates_claims}
    return any(isinstance(workload, Mapping) and not keys.isdisjoint(workload) for workload in workloads)


def look_outside(run: Run, storage: Look[object] | None) -> Look[Outside]:
    """Find the run's namespaces and their volumes, and what the storage provider looks for."""
    provided = (yield from storage) if storage is not None else None
    (answer,) = yield [Query(api_version="v1", kind="Namespace", labels={naming.LABEL_RUN_UID: run.uid})]
    base, namespaces = namespace_base(run.namespace, run.uid), dict[str, str]()
    for namespace in answer:
        conditions = namespace.get("status", {}).get("conditions") or ()
        blockers = (str(entry.get("message", "")) for entry in conditions if entry.get("status") == "True")
        if (name := str(namespace["metadata"]["name"])).startswith(base):
            namespaces[name] = next(blockers, "")[:_MAX_CHARACTERS]
    volumes: Sequence[Object] = ()
    if not namespaces:

        def is_left(volume: Object) -> bool:
            spec = volume.get("spec") or {}
            namespace = str((spec.get("claimRef") or {}).get("namespace", ""))
            return namespace.startswith(base) and spec.get("persistentVolumeReclaimPolicy") != "Retain"

        (volumes,) = yield [Query(api_version="v1", kind="PersistentVolume", keep=is_left)]
    names = [str(volume["metadata"]["name"]) for volume in volumes]
    return Outside(storage=provided, namespaces=namespaces, volumes=names)
