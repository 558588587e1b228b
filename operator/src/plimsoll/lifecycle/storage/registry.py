"""All storage providers, and the choice between them, which no other code makes."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime

from plimsoll.lifecycle.ceph.common import CephProvider
from plimsoll.lifecycle.ceph.rook import RookProvider
from plimsoll.lifecycle.observed import Observed
from plimsoll.lifecycle.run import Run
from plimsoll.lifecycle.settings import Settings
from plimsoll.lifecycle.storage.claims import Namespaces, Outside, creates_claims, look_outside
from plimsoll.lifecycle.storage.seam import Look, Provider, Storage, StorageSpec, View
from plimsoll.lifecycle.storage.storage_class import NoStorageProvider, StorageClassProvider

PROVIDERS: tuple[Provider, ...] = (RookProvider(), CephProvider(), StorageClassProvider(), NoStorageProvider())
"""A run uses the first that provides its storage; the last one accepts every run."""


def provider_for(storage: StorageSpec) -> Provider:
    """Return the provider of a `spec.storage`."""
    return next(provider for provider in PROVIDERS if provider.provides(storage))


def provider_of(run: Run) -> Provider:
    """Return the provider of a run's storage, according to the specification as stored."""
    return provider_for(run.written.get("storage") or {})


def storage_of(run: Run, seen: Observed, settings: Settings, now: datetime) -> Storage:
    """Return a run's storage."""
    outside = seen.external if isinstance(seen.external, Outside) else None
    seen = seen if outside is None else replace(seen, external=outside.storage)
    provider, view = provider_of(run), View(run=run, seen=seen, settings=settings, now=now)
    namespaces = () if outside is None else (Namespaces(outside=outside, settings=settings),)
    return Storage(resources=[*provider.resources(view), *namespaces], kept=provider.kept(view), in_use=view.in_use)


def look_of(run: Run, seen: Observed, settings: Settings, now: datetime) -> Look[object] | None:
    """Return the look at a run's objects outside its namespace; None if there can be none."""
    look = provider_of(run).look(View(run=run, seen=seen, settings=settings, now=now))
    return look_outside(run, look) if run.start_time is not None and creates_claims(run) else look


def survey_of(run: Run) -> Look[object] | None:
    """Return the look at a run's storage before its plan is frozen; None if none is needed."""
    return provider_of(run).survey(run) if run.document is not None else None


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
