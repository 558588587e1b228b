"""The namespaces in which a tool creates PVCs itself, and the volumes of these.

Only the tool's helper creates and deletes them, so that the operator needs no right to delete namespaces. It observes
them, and keeps the run until they are gone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from plimsoll.api.reasons.reason import Reason
from plimsoll.lifecycle import naming
from plimsoll.lifecycle.children import Object
from plimsoll.lifecycle.decision import Fact, Teardown
from plimsoll.lifecycle.run import Run
from plimsoll.lifecycle.settings import Settings
from plimsoll.lifecycle.storage.look import Look, Query
from plimsoll.lifecycle.storage.seam import Resource
from plimsoll.lifecycle.wording import counted, listed
from plimsoll.protocol.burning import namespace_base
from plimsoll.tools.registry import TOOLS

_MAX_CHARACTERS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Outside:
    """What a run has outside its namespace.

    Attributes:
        storage: what the storage provider found; None if there can be nothing.
        namespaces: names of the namespaces that exist, with what blocks the deletion of each, if anything.
        volumes: names of the PersistentVolumes of PVCs in them that are deleted with these PVCs.

    """

    storage: object | None = None
    namespaces: Mapping[str, str]
    volumes: Sequence[str] = ()


def creates_claims(run: Run) -> bool:
    """Whether a tool of the run creates PVCs itself. It reads the specification as stored, and never raises."""
    workloads = run.written.get("workloads")
    if not isinstance(workloads, list):
        return False
    return any(
        tool.creates_claims and isinstance(one, Mapping) and key in one
        for one in workloads
        for key, tool in TOOLS.items()
    )


def look_outside(run: Run, storage: Look[object] | None) -> Look[Outside]:
    """Find the run's namespaces and their volumes, and what the storage provider looks for."""
    found = (yield from storage) if storage is not None else None
    own = {naming.LABEL_RUN_UID: run.uid}
    (answer,) = yield [Query(api_version="v1", kind="Namespace", labels=own)]
    base = namespace_base(run.namespace, run.uid)
    namespaces = {name: _blocker(obj) for obj in answer if (name := str(obj["metadata"]["name"])).startswith(base)}
    volumes: Sequence[Object] = ()
    if not namespaces:
        (volumes,) = yield [Query(api_version="v1", kind="PersistentVolume")]
    own_volumes = [str(obj["metadata"]["name"]) for obj in volumes if _is_of(obj, base)]
    return Outside(storage=found, namespaces=namespaces, volumes=own_volumes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Namespaces(Resource):
    """They exist only while a trial runs. Their PVCs need everything else of the storage."""

    outside: Outside
    settings: Settings

    def ready(self) -> Fact:
        """Return that nothing has to be created beforehand."""
        return Fact.true(Reason.NOT_NEEDED)

    def remove(self) -> Teardown | None:
        """Return what the helper is still removing; None if nothing is left."""
        if self.outside.namespaces:
            left = [f"{name}{f' ({why})' if why else ''}" for name, why in self.outside.namespaces.items()]
            message = f"{self._helper} is deleting {counted(len(left), 'namespace')}: {listed(left)}; {self._remedy}"
        elif self.outside.volumes:
            names = listed(self.outside.volumes)
            message = (
                f"{counted(len(self.outside.volumes), 'PersistentVolume')} of deleted PVCs left: {names}; check the "
                "provisioner of the StorageClass"
            )
        else:
            return None
        return Teardown(actions=(), fact=Fact.false(Reason.IN_PROGRESS, message))

    @property
    def _helper(self) -> str:
        burning = self.settings.burning
        return f"the helper {burning.helper.namespace}/{burning.helper.name}" if burning else "the kube-burner helper"

    @property
    def _remedy(self) -> str:
        if self.settings.burning is None:
            return "it is not enabled any more, so delete them yourself"
        return "if it does not, check its pod"


def _blocker(namespace: Object) -> str:
    """Return why a namespace that is being deleted is not gone; empty if its conditions do not say."""
    conditions = namespace.get("status", {}).get("conditions") or ()
    said = (str(one.get("message", "")) for one in conditions if one.get("status") == "True")
    return next(said, "")[:_MAX_CHARACTERS]


def _is_of(volume: Object, base: str) -> bool:
    """Whether a PersistentVolume belongs to a PVC in such a namespace, and is deleted with it."""
    spec = volume.get("spec", {})
    claimed = str((spec.get("claimRef") or {}).get("namespace", "")).startswith(base)
    return claimed and spec.get("persistentVolumeReclaimPolicy") != "Retain"
