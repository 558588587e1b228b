"""All storage providers, and the choice between them, which no other code makes; here any StorageClass, and none."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime

from plimsoll.api.environment import PlatformEnvironment, StorageClassDescription
from plimsoll.api.reasons.reason import Reason
from plimsoll.api.run import BenchmarkRun
from plimsoll.lifecycle.ceph.common import CephProvider
from plimsoll.lifecycle.ceph.rook import RookProvider
from plimsoll.lifecycle.decision import RunEnding
from plimsoll.lifecycle.observed import Observed
from plimsoll.lifecycle.run import Platform, Run, Settings, environment_of
from plimsoll.lifecycle.storage.claims import Claims, Namespaces, Outside, creates_claims, look_outside
from plimsoll.lifecycle.storage.seam import Look, Provider, Resource, Storage, StorageSpec, View
from plimsoll.measure.text import first_few
from plimsoll.plan.document import Plan


class StorageClassProvider(Provider):
    """PVCs of a StorageClass that the run names."""

    def provides(self, storage: StorageSpec) -> bool:
        return bool(storage.get("storageClass"))

    def targets(self, storage: StorageSpec) -> frozenset[str]:
        return frozenset({f"storageClass/{storage['storageClass'].get('name')}"})

    def resources(self, view: View) -> Sequence[Resource]:
        described = view.seen.plan.environment.storage_class if view.seen.plan else None
        is_immediate = isinstance(described, StorageClassDescription) and described.volume_binding_mode == "Immediate"
        return [Claims(view=view, storage_class=self.claims_class(view.run), binds_immediately=is_immediate)]

    def claims_class(self, run: Run) -> str:
        return str(run.written["storage"]["storageClass"].get("name", ""))

    def blocker(self, document: BenchmarkRun, platform: Platform) -> RunEnding | None:
        """Return that the StorageClass does not exist, or is another run's; None if the run may use it."""
        name = _name(document)
        if name is None or name in platform.storage_classes:
            return None
        existing = first_few(sorted(platform.storage_classes), 10) or "none"
        why = f"StorageClass {name} does not exist, or belongs to another run"
        message = f"spec.storage.storageClass.name: {why}; create it, or name an existing one: {existing}"
        return RunEnding.false(Reason.STORAGE_CLASS_NOT_FOUND, message)

    def environment(self, document: BenchmarkRun, platform: Platform) -> PlatformEnvironment:
        return environment_of(platform, _name(document))

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
        return [Claims(view=view)]


def _name(document: BenchmarkRun) -> str | None:
    storage = document.spec.storage
    return storage.storage_class.name if storage and storage.storage_class else None


PROVIDERS: tuple[Provider, ...] = (RookProvider(), CephProvider(), StorageClassProvider(), NoStorageProvider())
"""A run uses the first that provides its storage; the last one accepts every run."""


def provider_for(storage: StorageSpec) -> Provider:
    return next(provider for provider in PROVIDERS if provider.provides(storage))


def provider_of(run: Run) -> Provider:
    return provider_for(run.written.get("storage") or {})


def storage_of(run: Run, seen: Observed, settings: Settings, now: datetime) -> Storage:
    outside = seen.external if isinstance(seen.external, Outside) else None
    seen = seen if outside is None else replace(seen, external=outside.storage)
    provider, view = provider_of(run), View(run=run, seen=seen, settings=settings, now=now)
    namespaces = () if outside is None else (Namespaces(outside=outside, settings=settings),)
    return Storage(resources=[*provider.resources(view), *namespaces], kept=provider.kept(view), in_use=view.in_use)


def look_of(run: Run, seen: Observed, settings: Settings, now: datetime) -> Look[object] | None:
    look = provider_of(run).look(View(run=run, seen=seen, settings=settings, now=now))
    return look_outside(run, look) if run.start_time is not None and creates_claims(run) else look


def versions_of(storages: Iterable[StorageSpec], namespace: str, settings: Settings) -> Look[str]:
    """Find the version of Ceph behind valid `spec.storage` of runs in that namespace; several are joined."""
    by_target = {provider_for(storage).targets(storage): storage for storage in storages}
    versions: set[str] = set()
    for storage in by_target.values():
        look = provider_for(storage).version(storage, namespace, settings)
        if look is not None:
            versions.add((yield from look))
    # If one cluster's version is unknown at the moment, their joint version is unknown.
    return "" if "" in versions else ", ".join(sorted(versions))
