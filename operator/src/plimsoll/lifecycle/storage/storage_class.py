"""Any existing StorageClass; and runs without storage."""

from collections.abc import Sequence

from plimsoll.api.environment import PlatformEnvironment, StorageClassDescription
from plimsoll.api.reasons.reason import Reason
from plimsoll.api.run import BenchmarkRun
from plimsoll.lifecycle.decision import RunEnding
from plimsoll.lifecycle.run import Platform, Run, environment_of, listed
from plimsoll.lifecycle.storage.claims import Claims
from plimsoll.lifecycle.storage.seam import Provider, Resource, StorageSpec, View
from plimsoll.plan.document import Plan


class StorageClassProvider(Provider):
    """PVCs of a StorageClass that the run names, whatever its storage."""

    def provides(self, storage: StorageSpec) -> bool:
        """Whether the run names a StorageClass."""
        return bool(storage.get("storageClass"))

    def targets(self, storage: StorageSpec) -> frozenset[str]:
        """Return the StorageClass."""
        return frozenset({f"storageClass/{storage['storageClass'].get('name')}"})

    def resources(self, view: View) -> Sequence[Resource]:
        """Return the PVCs."""
        return [Claims(view=view, storage_class=self.claims_class(view.run))]

    def claims_class(self, run: Run) -> str:
        """Return the StorageClass that the run names."""
        return str(run.written["storage"]["storageClass"].get("name", ""))

    def blocker(self, document: BenchmarkRun, platform: Platform) -> RunEnding | None:
        """Return that the StorageClass does not exist, or is another run's; None if the run may use it."""
        name = _name(document)
        if name is None or name in platform.storage_classes:
            return None
        existing = listed(sorted(platform.storage_classes), most=10) or "none"
        message = (
            f"spec.storage.storageClass.name: StorageClass {name} does not exist, or belongs to another run; create "
            f"it, or name an existing one: {existing}"
        )
        return RunEnding.failure(Reason.STORAGE_CLASS_NOT_FOUND, message)

    def environment(self, document: BenchmarkRun, platform: Platform) -> PlatformEnvironment:
        """Return the environment of any cluster, and the StorageClass."""
        return environment_of(platform, _name(document))

    def binds_immediately(self, plan: Plan) -> bool:
        """Whether the StorageClass had that binding mode when the plan was frozen."""
        described = plan.environment.storage_class
        return isinstance(described, StorageClassDescription) and described.volume_binding_mode == "Immediate"

    def limitation(self, plan: Plan) -> str:
        """Return that gates on a Ceph cluster have no effect, if there are any."""
        asks_ceph = plan.gates.pause_scrub or plan.gates.ceph_health == "Required"
        if plan.volume is None or not asks_ceph:
            return ""
        return "; spec.gates has no effect: Plimsoll does not monitor a Ceph cluster behind a StorageClass"


class NoStorageProvider(Provider):
    """No storage: no workload uses any."""

    def provides(self, storage: StorageSpec) -> bool:
        """Whether the run names no storage; it is the last provider, so that is certain."""
        return True

    def targets(self, storage: StorageSpec) -> frozenset[str]:
        """Return the network between nodes, which is all that tools without storage load."""
        return frozenset({"network"})

    def resources(self, view: View) -> Sequence[Resource]:
        """Return the PVCs, of which there are none."""
        return [Claims(view=view)]


def _name(document: BenchmarkRun) -> str | None:
    storage = document.spec.storage
    return storage.storage_class.name if storage and storage.storage_class else None
