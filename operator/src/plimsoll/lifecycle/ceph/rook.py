"""Storage in a Rook cluster: its provider, the resources of a run there, and the looks at them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import chain
from typing import ClassVar

from plimsoll.api.environment import PlatformEnvironment, RookDescription
from plimsoll.api.reasons.reason import Reason
from plimsoll.api.run import BenchmarkRun
from plimsoll.api.status import format_time
from plimsoll.api.storage import NamespacedName, RookStorage
from plimsoll.ceph.document import monitors_of
from plimsoll.lifecycle import naming
from plimsoll.lifecycle.ceph import common, rook_facts, rook_render, rook_survey
from plimsoll.lifecycle.ceph.common import ExternalObjects
from plimsoll.lifecycle.ceph.rook_facts import ROOK_KINDS, ClusterFact, RookFact, cluster_name, inactive_groups
from plimsoll.lifecycle.ceph.rook_render import API_VERSION, BLOCK_POOL, CEPH_CLIENT, CEPH_CLUSTER, FILE_SYSTEM
from plimsoll.lifecycle.ceph.rook_survey import RookPlatform
from plimsoll.lifecycle.children import Object, is_external_object_of
from plimsoll.lifecycle.decision import Action, CopyKeyring, Create, Fact, RunEnding, Teardown, deletions
from plimsoll.lifecycle.render import ceph as render_ceph
from plimsoll.lifecycle.render import teardown as render_teardown
from plimsoll.lifecycle.render.common import OSD_LABELS, Json
from plimsoll.lifecycle.run import MAX_DESCRIPTION_CHARACTERS, Platform, Run, Settings, environment_of
from plimsoll.lifecycle.storage.claims import Claims
from plimsoll.lifecycle.storage.seam import Look, Query, Rehearsal, Resource, StorageSpec, UnansweredError, View
from plimsoll.measure.text import are, count_text, first_few
from plimsoll.plan.document import Plan, ceph_target

VOLUME = "PersistentVolume"
CLUSTER_SCOPED_EVENTS = "default"  # namespace of the events about objects without a namespace. Source: Kubernetes.
MONITORS = "rook-ceph-mon-endpoints"  # ConfigMap in Rook's namespace. Source: Rook 1.18.
_COMPLAINT_SECONDS = 60.0  # `mon_pg_stuck_threshold`, after which Ceph raises PG_AVAILABILITY (Ceph 18.2)
_CHECK_ROOK = "check that Rook's operator is running, and its log: a pool that it cannot delete blocks others"
_BRING_BACK = "bring the OSDs back (`ceph health detail` names the groups)"


class RookProvider(common.ClusterProvider):
    """A pool or file system in the Ceph cluster of a CephCluster."""

    def provides(self, storage: StorageSpec) -> bool:
        return bool(storage.get("rook"))

    def targets(self, storage: StorageSpec) -> frozenset[str]:
        """Return the CephCluster; nothing if the run names none and its namespace has no default: it is refused."""
        cluster = storage["rook"].get("cluster")
        return frozenset({f"rook/{cluster.get('namespace')}/{cluster.get('name')}"} if cluster else ())

    def resources(self, view: View) -> Sequence[Resource]:
        there, has_class = (
            view.seen.external,
            view.seen.plan is not None and rook_render.needs_storage_class(view.seen.plan),
        )
        storage_class = self.claims_class(view.run) if has_class else ""
        claims = Claims(view=view, storage_class=storage_class, binds_immediately=has_class)
        if not isinstance(there, ExternalObjects):
            return [common.Unseen(), claims]
        makes_file_system = bool(view.run.written["storage"]["rook"].get("fileSystem"))
        kinds: list[type[common.CephResource]] = [Cluster, common.Record, Pools, Users, RookAccess]
        first = [resource(view=view, there=there) for resource in kinds]
        if makes_file_system:
            return [*first, FileSystemLeftovers(view=view, there=there), claims]
        return [*first, claims, RookLeftovers(view=view, there=there)]

    def claims_class(self, run: Run) -> str:
        return naming.storage_class(run.name, run.uid)

    def version(self, storage: StorageSpec, namespace: str, settings: Settings) -> Look[str] | None:
        named = storage["rook"].get("cluster") or settings.default_cluster(namespace)
        if not named:
            return None
        cluster = NamespacedName.model_validate(named)
        return version_of_rook(cluster.namespace, cluster.name) if settings.allows(cluster, namespace) else None

    def rejection(self, run: Run, settings: Settings) -> RunEnding | None:
        storage = run.document.spec.storage if run.document else None
        rook = storage.rook if storage else None
        if rook is None:
            return None
        if problem := settings.rook_problem(rook.cluster, run.namespace):
            is_ambiguous = rook.cluster is None and settings.clusters_of(run.namespace)
            reason = Reason.INVALID_SPEC if is_ambiguous else Reason.ROOK_CLUSTER_NOT_ALLOWED
            return RunEnding.false(reason, f"spec.storage.rook.cluster: {problem}")
        cluster = cluster_name(rook.used_cluster)
        for number, option in enumerate(rook.config):
            if not settings.allows_option(rook.used_cluster, option.name):
                message = (
                    f"spec.storage.rook.config[{number}].name: runs may not set option {option.name} of {cluster}; "
                    "remove it, or ask the operator's administrator to add it to the chart's rook.options"
                )
                return RunEnding.false(Reason.CEPH_OPTION_NOT_ALLOWED, message)
        return None

    def survey(self, run: Run) -> Look[RookPlatform] | None:
        storage, target = run.document.spec.storage if run.document else None, common.target_of(run)
        if storage is None or storage.rook is None or target is None:
            return None
        return survey_rook(storage.rook, [*rook_render.pools(run, target)])

    def blocker(self, document: BenchmarkRun, platform: Platform) -> Fact | None:
        storage, target = document.spec.storage, ceph_target(document)
        if storage is None or storage.rook is None or target is None:
            return None
        return rook_survey.why_not_usable(storage.rook, target, document.spec.gates, _surveyed(platform))

    def environment(self, document: BenchmarkRun, platform: Platform) -> PlatformEnvironment:
        environment, surveyed = environment_of(platform, None), _surveyed(platform)
        if surveyed.cluster is None:
            return environment
        version = rook_facts.cluster_fact(surveyed.cluster).version
        rook = RookDescription(ceph_version=version[:MAX_DESCRIPTION_CHARACTERS])
        return environment.model_copy(update={"rook": rook})

    def complete_plan(self, plan: Plan, platform: Platform) -> Plan:
        return rook_survey.complete_plan(plan, _surveyed(platform))

    def look(self, view: View) -> Look[ExternalObjects] | None:
        return look_at_rook(view) if view.run.start_time is not None else None


class Cluster(common.CephResource):
    """The existing CephCluster."""

    def ready(self) -> Fact:
        rook, there = self.target.rook, self.there
        if rook is None:
            return common.hidden_fact(holds=True)
        name = cluster_name(rook)
        if there.kinds_problem or there.cluster is None:
            why = f": {there.kinds_problem}" if there.kinds_problem else ""
            return Fact.false(Reason.ROOK_NOT_FOUND, f"{name} not found{why}")
        if not self.monitors:
            message = f"Rook has not published the monitors of {name} yet (ConfigMap {MONITORS})"
            return Fact.false(Reason.CEPH_CLUSTER_NOT_READY, message)
        needs_class = rook_render.needs_storage_class(self.plan) and there.storage_class is None
        if needs_class and not self.view.in_use and there.provisioner and there.provisioner.problem:
            return Fact.false(Reason.CSI_DRIVER_NOT_FOUND, there.provisioner.problem)
        return common.hidden_fact(holds=True)


class RookResource(common.CephResource):
    """Objects that Rook reconciles."""

    def unless_in_use(self, fact: Fact) -> Fact:
        """Return the fact, or that objects in use are ready although a restarted Rook does not report them as ready."""
        objects, expected = (*self.there.pools, *self.there.users), [*rook_facts.own_objects(self.target)]
        is_complete = len(objects) == len(expected) and not any(obj.child.deleting for obj in objects)
        if fact.holds or not self.view.in_use or not is_complete:
            return fact
        return Fact.true(Reason.READY, f"in use; Rook is reconciling it again: {fact.message}")


class Pools(RookResource):
    """The run's own pools, or its file system. One that a user deletes under load is not created again."""

    def desired(self) -> Iterable[Create]:
        wanted: Iterable[Json] = () if self.view.in_use else rook_render.pools(self.view.run, self.target)
        return _absent(wanted, self.there.pools)

    def ready(self) -> Fact:
        return self.unless_in_use(
            rook_facts.readiness_fact(self.target, self.there.pools, kinds=rook_facts.POOL_KINDS, now=self.view.now)
        )

    def remove(self) -> Teardown | None:
        """Return the progress of deleting pools: first the pool with the images' headers, then `<its name>-data`."""
        if not self.there.pools:
            return None
        pool, cluster = min(self.there.pools, key=lambda fact: fact.child.name), self.there.cluster
        answered = any(job.complete for job in self.there.jobs)
        blocker = deletion_blocker(pool, cluster, groups_answered=answered, ended=self.view.run.end_time)
        if blocker is not None and not pool.child.deleting:
            return Teardown(actions=(), fact=blocker)
        return Teardown(actions=deletions([pool.child]), fact=removal_fact([pool], inactive_groups(cluster)))


class Users(RookResource):
    """The CephX users of conductor and agents."""

    def desired(self) -> Iterable[Create]:
        secrets = self._key_secrets().of_run(self.target)
        if self.view.in_use or secrets is None:
            return ()
        version = self.there.cluster.ceph_version if self.there.cluster else ""
        return _absent(rook_render.users(self.view.run, self.target, secrets, version=version), self.there.users)

    def ready(self) -> Fact:
        fact = self.unless_in_use(
            rook_facts.readiness_fact(self.target, (*self.there.pools, *self.there.users), now=self.view.now)
        )
        if fact.reason is Reason.USER_FAILED and self.there.cluster and self.there.cluster.external:
            return Fact.false(fact.reason, f"{fact.message}; {rook_survey.EXTERNAL_REMEDY}")
        secrets = self._key_secrets()
        if fact.reason is not Reason.USER_NOT_READY or secrets.of_run(self.target):
            return fact
        names = f"{rook_render.KEY_SECRETS[0]} to {rook_render.KEY_SECRETS[-1]}"
        rook, own = self.target.rook.namespace if self.target.rook else "", self.view.run.namespace
        message = (
            f"runs of namespace {own} use {secrets.held} of the Secrets {names} in namespace {rook}, and may use as "
            f"many as are free, which are {len(secrets.free)}; delete runs that keep their storage"
        )
        return Fact.false(Reason.KEY_SECRETS_TAKEN, message)

    def remove(self) -> Teardown | None:
        users = self.there.users
        return Teardown(actions=deletions(user.child for user in users), fact=removal_fact(users)) if users else None

    def _key_secrets(self) -> rook_render.KeySecrets:
        return rook_render.key_secrets(self.view.run.namespace, self.there.all_users)


class RookAccess(common.Access):
    """Access as without Rook, but with keys from Rook's namespace, and with the StorageClass of the run's PVCs."""

    def desired(self) -> Iterator[Action]:
        yield from super().desired()
        owner = next((fact for fact in self.there.users if fact.child.name == self.target.conductor_user), None)
        if owner is not None:
            yield from _renewal(self.view, self.there, owner)
        needs_class = rook_render.needs_storage_class(self.plan) and self.there.storage_class is None
        if needs_class and (provisioner := self.there.provisioner) and provisioner.name:
            yield Create(obj=rook_render.storage_class(self.view.run, self.plan, provisioner.name))

    def ready(self) -> Fact:
        has_class = self.there.storage_class is not None or not rook_render.needs_storage_class(self.plan)
        return common.hidden_fact(holds=bool(super().ready().holds) and has_class)

    def remove(self) -> Teardown | None:
        if step := super().remove():
            return step
        if volumes := _volumes_fact(self.there):
            return Teardown(actions=(), fact=volumes)
        if self.there.storage_class is None:
            return None
        return common.removal_step("deleting the StorageClass", *deletions([self.there.storage_class]))

    def pod_keyrings(self) -> Iterator[Action]:
        run = self.view.run
        yield self.copy(render_ceph.keyring_secret(run, naming.CONDUCTOR), self.target.conductor_user)
        if render_ceph.clients_use_ceph(self.plan):
            yield self.copy(render_ceph.keyring_secret(run, naming.CLIENT), self.target.agent_user)

    def copy(self, obj: Json, user: str) -> CopyKeyring:
        return _copy(obj, next(fact for fact in self.there.users if fact.child.name == user))


class RookLeftovers(common.Leftovers):
    """The leftovers of a run in a Rook cluster, whose administrator may rotate the key that removes them."""

    def renew_key(self) -> Teardown | None:
        there = self.there
        owner = next((fact for fact in there.users if fact.child.name.endswith(f"-{naming.CONDUCTOR}")), None)
        steps: list[Action] = []
        if there.keyring is None and there.renewal is not None:
            if owner is None:
                message = "the run's CephClient was deleted while its rotated key was being copied"
                remedy = f"remove the run's objects from Ceph yourself, then delete Secret {there.renewal.place}"
                return common.removal_step(f"{message}; {remedy}", reason=Reason.TEARDOWN_FAILING)
            steps = [_copy(render_teardown.keyring_secret(self.view.run, self.view.settings), owner)]
        elif owner is not None:
            steps = [*_renewal(self.view, there, owner)]
        if owner is None or not steps:
            return None
        # A Job would try the new key only after a pause of up to six minutes.
        jobs = deletions((job.child for job in (*there.jobs, there.restoration) if job is not None), foreground=True)
        message = f"copying the key of CephClient {owner.child.place} again, which was rotated"
        return common.removal_step(message, *steps, *jobs)


class FileSystemLeftovers(RookLeftovers):
    """The leftovers of a run with its own file system: removed after its volumes, which Ceph purges after deletion."""

    delay: ClassVar[str] = "check whether Ceph is still purging deleted volumes, and the Job's log"

    def remove(self) -> Teardown | None:
        """Return the progress; a Job from before the last volume was deleted is repeated."""
        there, volumes = self.there, _volumes_fact(self.there)
        if volumes is None:
            return super().remove()
        # Without the copied key, another one could only fail.
        jobs = [job.child for job in there.jobs] if there.keyring is not None else []
        return Teardown(actions=deletions(jobs, foreground=True), fact=volumes)


def deletion_blocker(
    pool: RookFact, cluster: ClusterFact | None, *, groups_answered: bool, ended: datetime | None
) -> Fact | None:
    """Return why a pool or file system cannot be deleted yet: inactive placement groups would block Rook's only worker.

    `groups_answered`: the teardown Job has just listed the pool's objects, for which all groups must be active.
    Otherwise Rook must have queried Ceph since the run `ended`; and, unless Ceph was healthy then except for harmless
    checks, again after Ceph would have reported groups that were inactive at that time.
    """
    if cluster is None:
        return None
    kind, name = pool.child.kind, f"{pool.child.kind} {pool.child.place}"
    if inactive := inactive_groups(cluster):
        message = (
            f"{name} is not deleted while {inactive}: that would block Rook's {ROOK_KINDS[kind].worker}. The removal "
            f"continues when they are active; {_BRING_BACK}, or delete the {kind} yourself if none of them "
            "belongs to it"
        )
        return Fact.false(Reason.PLACEMENT_GROUPS_INACTIVE, message)
    if groups_answered or cluster.checked is None:
        return None
    patience = timedelta(seconds=_COMPLAINT_SECONDS if rook_facts.may_lose_groups(cluster) else 0.0)
    if ended is not None and cluster.checked > ended + patience:
        return None
    checked = (
        f"Rook has checked again that all placement groups are active (last check: {format_time(cluster.checked)})"
    )
    return Fact.false(Reason.IN_PROGRESS, f"{name} is deleted once {checked}; if that takes minutes, {_CHECK_ROOK}")


def removal_fact(left: Sequence[RookFact], inactive: str = "") -> Fact:
    """Return what is still being deleted in Rook's namespace; `inactive`: the placement groups that delay it."""
    blocked = next((fact for fact in left if fact.blocked), None)
    if blocked is not None:
        child, kind = blocked.child, ROOK_KINDS[blocked.child.kind]
        listing = kind.listing.format(name=child.name)
        remedy = f"list its content, for example with `{listing}`, and remove unneeded content"
        message = f"Rook does not delete {child.kind} {child.place}: {blocked.blocked}; {remedy}"
        return Fact.false(kind.deletion_blocked, message)
    names = ", ".join(f"{fact.child.kind} {fact.child.name}" for fact in left)
    warning = next((f" ({fact.warning[: rook_facts.MAX_WARNING_CHARACTERS]})" for fact in left if fact.warning), "")
    message = f"Rook is deleting {names}{warning}"
    if inactive:
        return Fact.false(Reason.PLACEMENT_GROUPS_INACTIVE, f"{message}, and waits because {inactive}; {_BRING_BACK}")
    since = min((fact.deleted for fact in left if fact.deleted is not None), default=None)
    if since is not None:
        message = f"{message} since {format_time(since)}; if that takes minutes, {_CHECK_ROOK}"
    return Fact.false(Reason.IN_PROGRESS, message)


def look_at_rook(view: View) -> Look[ExternalObjects]:
    """Find an admitted run's objects outside its namespace, which may be of a specification that cannot be read."""
    run, storage = view.run.identity, view.run.written["storage"]
    rook, volume, cluster = storage["rook"], storage.get("volume") or {}, storage["rook"].get("cluster") or {}
    uses_claims = bool(volume) and volume.get("access", "PVC") == "PVC"
    measures_files = bool(rook.get("fileSystem") or rook.get("existingFileSystem"))
    provisioner: rook_survey.Provisioner | None = None
    namespace, labels = str(cluster.get("namespace", "")), {naming.LABEL_RUN_UID: run.uid}
    teardown = yield from common.look_at_teardown(view.settings.teardown_namespace, run.uid)
    (classes,) = yield [Query(api_version="storage.k8s.io/v1", kind="StorageClass", labels=labels)]
    try:
        pools, users, clusters, config_maps, *file_systems = yield [
            Query(api_version=API_VERSION, kind=BLOCK_POOL, namespace=namespace, labels=labels),
            # All of them, because the Secrets of other CephClients are taken.
            Query(api_version=API_VERSION, kind=CEPH_CLIENT, namespace=namespace),
            _cluster(namespace, str(cluster.get("name", ""))),
            Query(api_version="v1", kind="ConfigMap", namespace=namespace, name=MONITORS),
            # Other runs need no right to read CephFilesystems.
            *([_file_systems(namespace, labels)] if measures_files else []),
        ]
        in_rook = [*pools, *chain.from_iterable(file_systems), *users]
        if uses_claims and not classes and view.run.end_time is None:
            osds, drivers, all_classes = yield [
                _osds(namespace),
                Query(api_version="storage.k8s.io/v1", kind="CSIDriver"),
                Query(api_version="storage.k8s.io/v1", kind="StorageClass"),
            ]
            driver = rook_render.csi_driver(file_system=measures_files)
            provisioner = rook_survey.provisioner_of(
                namespace, driver=driver, osds=osds, drivers=drivers, classes=all_classes
            )
        # Keys are rotated rarely.
        own = [rook_facts.rook_fact(user, {}) for user in users if is_external_object_of(user, run.name, run.uid)]
        copied = common.external_objects_of(teardown, run=run)
        generations = {copied.key_generation, *(user.key_generation for user in own)}
        if copied.keyring is None or not generations <= {"", rook_facts.FIRST_KEY}:
            # What marks that the copied key is being replaced.
            place, renewal = view.settings.teardown_namespace, naming.key_renewal(run.uid)
            (secrets,) = yield [Query(api_version="v1", kind="Secret", namespace=place, name=renewal)]
            teardown = [*teardown, *secrets]
    except UnansweredError as error:
        # Even without its permissions there, the operator has to stop the run's load here.
        problem = _missing_permission(error, namespace) if error.is_forbidden else error.reason
        remedy = "" if error.is_forbidden else "; reinstall Rook's CRDs"
        known = common.external_objects_of([*teardown, *classes], run=run)
        return replace(known, kinds_problem=f"{problem}{remedy}")
    volumes: Sequence[Object] = ()
    volume_events: Sequence[Object] = ()
    # The StorageClass may have been deleted. Without the users there are no volumes any more.
    lost_class = uses_claims and view.run.end_time is not None and bool(own)
    # As long as the run has PVCs, the PersistentVolumes, which may be many, do not matter.
    if (classes or lost_class) and not view.seen.claims:
        # The API server does not select PersistentVolumes by their StorageClass.
        name = naming.storage_class(run.name, run.uid)
        (volumes,) = yield [
            Query(api_version="v1", kind=VOLUME, keep=lambda obj: obj.get("spec", {}).get("storageClassName") == name)
        ]
    # An operator that watches only some namespaces may not list these events.
    with suppress(UnansweredError):
        volume_events = yield from common.look_for_events(CLUSTER_SCOPED_EVENTS, volumes, (VOLUME,))
    events = [
        *volume_events,
        *(yield from common.look_for_events(namespace, in_rook, ROOK_KINDS)),
        *(yield from common.look_for_events(view.settings.teardown_namespace, teardown, (common.JOB,))),
    ]
    monitors = next((str(config_map.get("data", {}).get("data", "")) for config_map in config_maps), "")
    known = common.external_objects_of([*teardown, *classes, *volumes, *in_rook], run=run, events=events)
    cluster_fact = next(map(rook_facts.cluster_fact, clusters), None)
    return replace(known, cluster=cluster_fact, monitors=monitors_of(monitors), provisioner=provisioner)


def survey_rook(rook: RookStorage, pools_to_create: Iterable[Json] = ()) -> Look[RookPlatform]:
    cluster = rook.used_cluster
    file_systems: Sequence[Object] = ()
    try:
        if rook.has_file_system:
            (file_systems,) = yield [_file_systems(cluster.namespace)]
        clusters, pools, deployments = yield [
            _cluster(cluster.namespace, cluster.name),
            Query(api_version=API_VERSION, kind=BLOCK_POOL, namespace=cluster.namespace),
            _osds(cluster.namespace),
        ]
    except UnansweredError as error:
        if error.is_forbidden:
            raise UnansweredError(_missing_permission(error, cluster.namespace), is_forbidden=True) from error
        return RookPlatform(problem=error.reason)
    refusals: Sequence[Sequence[Object]] = ()
    # Other fields are known to every Rook. If the dry run is not permitted, the conductor compares what Ceph made.
    if rehearsals := [Rehearsal(obj=obj) for obj in pools_to_create if rook_render.has_stripe_unit(obj)]:
        with suppress(UnansweredError):
            refusals = yield rehearsals
    cluster_object = next(iter(clusters), None)
    return RookPlatform(
        cluster=cluster_object,
        pools=tuple(pools),
        file_systems=tuple(file_systems),
        osds=rook_survey.osds_of(deployments, rook_survey.root_of_pools(cluster_object or {})),
        rook_version=rook_survey.rook_version(deployments),
        refusal=next((str(refusal["message"]) for answer in refusals for refusal in answer), ""),
    )


def version_of_rook(namespace: str, name: str) -> Look[str]:
    """Find the version of Ceph of a CephCluster; empty if it is unknown, or while daemons have several."""
    try:
        (clusters,) = yield [_cluster(namespace, name)]
    except UnansweredError:
        return ""
    cluster = next(map(rook_facts.cluster_fact, clusters), None)
    return cluster.version if cluster is not None and len(cluster.versions) == 1 else ""


def _volumes_fact(there: ExternalObjects) -> Fact | None:
    if volumes := there.claimed_by_others:
        bound = f"{count_text(len(volumes), 'PersistentVolume')} of the run's StorageClass {are(len(volumes))} bound"
        what = f"{bound} to PVCs of others: {first_few(volumes, 3)}"
        kept = "their storage in Ceph is kept until they are deleted, and the next run may start"
        return Fact.false(Reason.CLAIMED_BY_OTHERS, f"{what}; {kept}")
    if volumes := there.volumes:
        left = count_text(len(volumes), "PersistentVolume")
        message = f"waiting for the provisioner to delete {left}: {first_few(volumes, 3)}"
        why = f" ({warning[: rook_facts.MAX_WARNING_CHARACTERS]})" if (warning := there.volume_warning) else ""
        return Fact.false(Reason.IN_PROGRESS, f"{message}{why}")
    return None


def _copy(obj: Json, owner: RookFact) -> CopyKeyring:
    annotations = {naming.ANNOTATION_KEY_GENERATION: owner.key_generation} if owner.key_generation else {}
    metadata = {**obj["metadata"], "annotations": annotations}
    # Rook also stores the key in a field named after the user, which an earlier user of this Secret does not have.
    user, place = owner.child.name, owner.child.namespace
    return CopyKeyring(obj={**obj, "metadata": metadata}, user=user, namespace=place, secret=owner.secret, field=user)


def _renewal(view: View, there: ExternalObjects, owner: RookFact) -> Iterator[Action]:
    """Yield the next action that replaces a rotated key. A Secret marks that: a missing copy means Ceph is clean."""
    if there.keyring is None:
        return
    if owner.key_generation in {"", there.key_generation or rook_facts.FIRST_KEY}:
        if there.renewal is not None:
            yield from deletions([there.renewal])
    elif there.renewal is None:
        yield Create(obj=render_teardown.renewal_secret(view.run, view.settings))
    else:
        yield from deletions([there.keyring])


def _absent(wanted: Iterable[Json], existing: Iterable[RookFact]) -> Iterator[Create]:
    names = {fact.child.name for fact in existing}
    return (Create(obj=obj) for obj in wanted if obj["metadata"]["name"] not in names)


def _cluster(namespace: str, name: str) -> Query:
    return Query(api_version=API_VERSION, kind=CEPH_CLUSTER, namespace=namespace, name=name)


def _file_systems(namespace: str, labels: Mapping[str, str] | None = None) -> Query:
    return Query(api_version=API_VERSION, kind=FILE_SYSTEM, namespace=namespace, labels=labels or {})


def _osds(namespace: str) -> Query:
    return Query(api_version="apps/v1", kind="Deployment", namespace=namespace, labels=OSD_LABELS)


def _missing_permission(error: UnansweredError, namespace: str) -> str:
    remedy = f"bind the Role of manifests/rook to the operator's ServiceAccount in namespace {namespace}"
    return f"{error.reason}; {remedy}, or name the cluster in the chart's value rook.clusters"


def _surveyed(platform: Platform) -> RookPlatform:
    return platform.storage if isinstance(platform.storage, RookPlatform) else RookPlatform()
