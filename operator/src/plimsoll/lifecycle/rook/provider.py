"""A pool or file system of a Rook cluster: an existing one, or one that is created for the run and deleted again."""

from collections.abc import Sequence
from typing import ClassVar

from plimsoll.api.environment import PlatformEnvironment, RookDescription
from plimsoll.api.reasons.reason import Reason
from plimsoll.api.run import BenchmarkRun
from plimsoll.api.storage import RookStorage
from plimsoll.lifecycle import naming
from plimsoll.lifecycle.decision import Ending, Fact
from plimsoll.lifecycle.platform import MAX_CHARACTERS, Platform, environment_of
from plimsoll.lifecycle.rook.existing_file_system import with_all_pools
from plimsoll.lifecycle.rook.look import Scope, look_at_rook, survey_rook
from plimsoll.lifecycle.rook.render import needs_storage_class
from plimsoll.lifecycle.rook.resources import Cluster, FileSystemLeftovers, Pools, RookAccess, Users
from plimsoll.lifecycle.rook.survey import RookPlatform, cluster_name, why_not_usable, with_placement_groups
from plimsoll.lifecycle.run import Run
from plimsoll.lifecycle.settings import Settings
from plimsoll.lifecycle.storage.ceph.facts import ExternalObjects
from plimsoll.lifecycle.storage.ceph.leftovers import Leftovers
from plimsoll.lifecycle.storage.ceph.resources import Record, Unseen
from plimsoll.lifecycle.storage.claims import Claims
from plimsoll.lifecycle.storage.look import Look
from plimsoll.lifecycle.storage.seam import Provider, Resource, StorageSpec, View
from plimsoll.plan.ceph import ceph_target
from plimsoll.plan.document import Plan


class RookProvider(Provider):
    """A pool or file system in the Ceph cluster of a CephCluster."""

    is_polled: ClassVar[bool] = True

    def provides(self, storage: StorageSpec) -> bool:
        """Whether the run names a Rook cluster."""
        return bool(storage.get("rook"))

    def targets(self, storage: StorageSpec) -> frozenset[str]:
        """Return the CephCluster."""
        cluster = storage["rook"].get("cluster", {})
        return frozenset({f"rook/{cluster.get('namespace')}/{cluster.get('name')}"})

    def resources(self, view: View) -> Sequence[Resource]:
        """Return the record, pools, users, access and PVCs."""
        claims, there = Claims(view=view, storage_class=_storage_class(view)), view.seen.external
        if not isinstance(there, ExternalObjects):
            return [Unseen(), claims]
        makes_file_system = bool(view.run.written["storage"]["rook"].get("fileSystem"))
        return [
            Cluster(view=view, there=there),
            Record(view=view, there=there),
            Pools(view=view, there=there),
            Users(view=view, there=there),
            RookAccess(view=view, there=there),
            *([FileSystemLeftovers(view=view, there=there)] if makes_file_system else []),
            claims,
            *([] if makes_file_system else [Leftovers(view=view, there=there)]),
        ]

    def kept(self, view: View) -> Sequence[str]:
        """Return pools, users, StorageClass, and what their removal needs."""
        return view.seen.external.kept if isinstance(view.seen.external, ExternalObjects) else ()

    def claims_class(self, run: Run) -> str:
        """Return the run's own StorageClass, which exists if it has PVCs or a tool creates some."""
        return naming.storage_class(run.name, run.uid)

    def refusal(self, run: Run, settings: Settings) -> Ending | None:
        """Return that runs in that namespace may not use the cluster or set an option; None if they may."""
        storage = run.document.spec.storage if run.document else None
        rook = storage.rook if storage else None
        if rook is None:
            return None
        if settings.allows(rook.cluster, run.namespace):
            return _option_refusal(rook, settings)
        message = (
            f"spec.storage.rook.cluster: runs in namespace {run.namespace} may not use {cluster_name(rook)}; ask the "
            "operator's administrator to allow it in PLIMSOLL_ROOK_CLUSTERS"
        )
        return Ending.failure(Reason.ROOK_CLUSTER_NOT_ALLOWED, message)

    def survey(self, document: BenchmarkRun) -> Look[RookPlatform] | None:
        """Return the look at the cluster, its pools and its OSDs."""
        storage = document.spec.storage
        return survey_rook(storage.rook) if storage and storage.rook else None

    def blocker(self, document: BenchmarkRun, platform: Platform) -> Ending | Fact | None:
        """Return why the cluster is unusable; a Fact if that may change by itself."""
        storage, target = document.spec.storage, ceph_target(document)
        if storage is None or storage.rook is None or target is None:
            return None
        return why_not_usable(storage.rook, target, document.spec.gates, _found(platform))

    def environment(self, document: BenchmarkRun, platform: Platform) -> PlatformEnvironment:
        """Return the environment of any cluster, and the version of Ceph."""
        environment, found = environment_of(platform, None), _found(platform)
        if found is not None and found.cluster is not None:
            version = (found.cluster.get("status", {}).get("version") or {}).get("version", "")
            rook = RookDescription(ceph_version=str(version)[:MAX_CHARACTERS])
            environment = environment.model_copy(update={"rook": rook})
        return environment

    def complete_plan(self, plan: Plan, platform: Platform) -> Plan:
        """Return the plan with a fixed number of placement groups, and with all pools of an existing file system."""
        found = _found(platform)
        return with_all_pools(with_placement_groups(plan, found), found.file_systems if found else ())

    def look(self, view: View) -> Look[ExternalObjects] | None:
        """Return the look at Rook's namespace and the operator's; None before the run is admitted."""
        if view.run.start_time is None:
            return None
        storage = view.run.written["storage"]
        rook, volume = storage["rook"], storage.get("volume") or {}
        cluster = rook.get("cluster") or {}
        scope = Scope(
            operator_namespace=view.settings.namespace,
            rook_namespace=str(cluster.get("namespace", "")),
            rook_cluster=str(cluster.get("name", "")),
            by_claims=bool(volume) and volume.get("access", "PVC") == "PVC",
            has_file_system=bool(rook.get("fileSystem") or rook.get("existingFileSystem")),
        )
        return look_at_rook(scope, view.run.identity, has_claims=bool(view.seen.claims))

    def binds_immediately(self, plan: Plan) -> bool:
        """Whether there are PVCs: the run's own StorageClass binds them immediately."""
        return needs_storage_class(plan)


def _option_refusal(rook: RookStorage, settings: Settings) -> Ending | None:
    """Return that the administrator has not allowed an option for that cluster; None if all are allowed."""
    for number, option in enumerate(rook.config):
        if not settings.allows_option(rook.cluster, option.name):
            message = (
                f"spec.storage.rook.config[{number}].name: runs may not set option {option.name} of "
                f"{cluster_name(rook)}; remove it, or ask the operator's administrator to add it to the chart's "
                "rook.options"
            )
            return Ending.failure(Reason.CEPH_OPTION_NOT_ALLOWED, message)
    return None


def _found(platform: Platform) -> RookPlatform | None:
    return platform.storage if isinstance(platform.storage, RookPlatform) else None


def _storage_class(view: View) -> str:
    """Return the StorageClass of the clients' PVCs; empty if there are none."""
    if view.plan is None or not needs_storage_class(view.plan):
        return ""
    return naming.storage_class(view.run.name, view.run.uid)
