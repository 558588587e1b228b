"""The resources of every run on a Ceph cluster, with or without Rook; and the provider of pools without Rook."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import ClassVar

from plimsoll.api.reasons.reason import Reason
from plimsoll.api.status import format_time
from plimsoll.ceph.document import monitor_keys
from plimsoll.ceph.pools import EXIT_PURGING
from plimsoll.lifecycle import children, naming
from plimsoll.lifecycle.ceph import rook_facts
from plimsoll.lifecycle.ceph.rook_facts import ClusterFact, RookFact
from plimsoll.lifecycle.ceph.rook_render import CEPH_CLIENT
from plimsoll.lifecycle.ceph.rook_survey import Provisioner
from plimsoll.lifecycle.children import Child, JobFact, Object, PodFact
from plimsoll.lifecycle.decision import Action, CheckSecret, CopyKeyring, Create, Fact, RunEnding, Teardown, deletions
from plimsoll.lifecycle.observed import is_own_plan
from plimsoll.lifecycle.refusals import refused_pod
from plimsoll.lifecycle.render import ceph as render_ceph
from plimsoll.lifecycle.render import network
from plimsoll.lifecycle.render import teardown as render_teardown
from plimsoll.lifecycle.render.common import Json
from plimsoll.lifecycle.run import Run, Settings
from plimsoll.lifecycle.storage.claims import Claims
from plimsoll.lifecycle.storage.seam import Look, Provider, Query, Resource, StorageSpec, View
from plimsoll.plan.document import CephTarget, Plan, RunIdentity, ceph_target

JOB = "Job"

_MAX_CHARACTERS = 500  # maximum length of a Job's own words in a message
_REMOVE = "remove the run's objects from Ceph"
_RESTORE = "restore the OSDs and options that the run changed"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalObjects:
    """What a run has outside its namespace, and what Rook reports about its cluster."""

    kinds_problem: str = ""  # why Rook's objects cannot be read, with the remedy; empty if they can be
    cluster: ClusterFact | None = None  # None if the CephCluster does not exist, or without Rook
    monitors: tuple[str, ...] = ()  # addresses that Rook publishes; empty without Rook
    provisioner: Provisioner | None = None  # of the StorageClass; known only while it has to be created
    pools: tuple[RookFact, ...] = ()  # the run's CephBlockPools, or its CephFilesystem
    users: tuple[RookFact, ...] = ()  # the run's CephClients
    all_users: tuple[Object, ...] = ()  # every CephClient in Rook's namespace
    storage_class: Child | None = None  # the run's own; None if there is none
    # PersistentVolumes of it, even if it is gone, that are deleted with their PVCs: names, and each one's PVC.
    volumes: tuple[str, ...] = ()
    volume_warning: str = ""  # the newest warning about one of them; empty if there is none
    claimed_by_others: tuple[str, ...] = ()  # those bound to PVCs of others, which any user can create
    record: Child | None = None  # ConfigMap with what the run may leave in Ceph; None if it does not exist
    recorded: render_teardown.TeardownRecord | None = None  # its content; None if it cannot be read
    keyring: Child | None = None  # Secret of the teardown Job; None if it does not exist
    key_generation: str = ""  # of the key in it; empty if unknown
    renewal: Child | None = None  # Secret that marks that it is being replaced; None if it is not
    network_policy: Child | None = None  # of the teardown Job; None if it does not exist
    jobs: tuple[JobFact, ...] = ()  # teardown Jobs
    pods: tuple[PodFact, ...] = ()  # of these Jobs
    restoration: JobFact | None = None  # the Job that only restores options and OSDs; None if it does not exist
    restoration_pods: tuple[PodFact, ...] = ()
    warnings: Mapping[str, str] = field(default_factory=dict)  # UID of such a Job -> the newest warning about it

    @property
    def is_empty(self) -> bool:
        return not (self.kept or self.jobs or self.pods or self.restoration or self.network_policy)

    @property
    def kept(self) -> tuple[str, ...]:
        rook = [fact.child for fact in (*self.pools, *self.users)]
        held = [child for child in (self.storage_class, self.keyring, self.renewal, self.record) if child]
        return tuple(f"{child.kind} {child.name}" for child in (*rook, *held))


def external_objects_of(
    objects: Iterable[Object], *, run: RunIdentity, events: Sequence[Object] = ()
) -> ExternalObjects:
    """Return the facts about the run's objects among objects of any kind and owner."""
    everything = list(objects)
    run_objects = [obj for obj in everything if children.is_external_object_of(obj, run.name, run.uid)]
    warnings = children.warnings_on(run_objects, events)

    def child(kind: str, name: str) -> Child | None:
        matching = (obj for obj in run_objects if (obj["kind"], obj["metadata"]["name"]) == (kind, name))
        return next(map(children.child_of, matching), None)

    storage_class = naming.storage_class(run.name, run.uid)
    volumes = [
        obj
        for obj in everything
        if obj["kind"] == "PersistentVolume" and obj.get("spec", {}).get("storageClassName") == storage_class
        if obj["spec"].get("persistentVolumeReclaimPolicy") != "Retain"
    ]
    records = [obj for obj in run_objects if obj["kind"] == "ConfigMap"]
    secrets = {obj["metadata"]["name"]: obj["metadata"] for obj in run_objects if obj["kind"] == "Secret"}
    annotations = secrets.get(naming.teardown(run.uid), {}).get("annotations") or {}
    pods = [pod for obj in everything if obj["kind"] == "Pod" if (pod := children.pod_fact(run.uid, obj)).own]
    jobs = [
        children.job_with_pods(job, [pod for pod in pods if job.child.uid in pod.jobs])
        for job in (children.job_fact(run.uid, obj) for obj in run_objects if obj["kind"] == JOB)
    ]
    restoration = next((job for job in jobs if job.child.name == naming.restoration(run.uid)), None)
    restoring = [pod for pod in pods if restoration is not None and restoration.child.uid in pod.jobs]
    readable = filter(None, map(render_teardown.read_record, records))
    return ExternalObjects(
        pools=tuple(rook_facts.rook_fact(obj, warnings) for obj in run_objects if obj["kind"] in rook_facts.POOL_KINDS),
        users=tuple(rook_facts.rook_fact(obj, warnings) for obj in run_objects if obj["kind"] == CEPH_CLIENT),
        all_users=tuple(obj for obj in everything if obj["kind"] == CEPH_CLIENT),
        storage_class=child("StorageClass", storage_class),
        volumes=tuple(map(_name_with_claim, volumes)),
        volume_warning=next(iter(children.warnings_on(volumes, events).values()), ""),
        claimed_by_others=tuple(_name_with_claim(obj) for obj in volumes if _is_claimed_by_others(obj, run)),
        record=next(map(children.child_of, records), None),
        recorded=next((record for record in readable if record.run == run), None),
        keyring=child("Secret", naming.teardown(run.uid)),
        key_generation=str(annotations.get(naming.ANNOTATION_KEY_GENERATION, "")),
        renewal=child("Secret", naming.key_renewal(run.uid)),
        network_policy=child("NetworkPolicy", naming.teardown(run.uid)),
        jobs=tuple(job for job in jobs if job is not restoration),
        pods=tuple(pod for pod in pods if pod not in restoring),
        restoration=restoration,
        restoration_pods=tuple(restoring),
        warnings=warnings,
    )


def look_at_ceph(namespace: str, run: RunIdentity) -> Look[ExternalObjects]:
    objects = yield from look_at_teardown(namespace, run.uid)
    events = yield from look_for_events(namespace, objects, (JOB,))
    return external_objects_of(objects, run=run, events=events)


def look_at_teardown(namespace: str, uid: str) -> Look[Sequence[Object]]:
    labels, name = {naming.LABEL_RUN_UID: uid}, naming.teardown(uid)
    # Jobs first: a pod that is read after its Job is at least as new.
    (jobs,) = yield [Query(api_version="batch/v1", kind=JOB, namespace=namespace, labels=labels)]
    rest = yield [
        Query(api_version="v1", kind="Pod", namespace=namespace, labels=labels),
        Query(api_version="v1", kind="ConfigMap", namespace=namespace, name=name),
        Query(api_version="v1", kind="Secret", namespace=namespace, name=name),
        Query(api_version="networking.k8s.io/v1", kind="NetworkPolicy", namespace=namespace, name=name),
    ]
    return [*jobs, *chain.from_iterable(rest)]


def look_for_events(namespace: str, objects: Sequence[Object], kinds: Iterable[str]) -> Look[Sequence[Object]]:
    """Find the events about objects of these kinds, if one of them waits for something."""
    waiting = {
        obj["kind"]
        for obj in objects
        if obj.get("status", {}).get("phase") != "Ready" or "deletionTimestamp" in obj["metadata"]
    }
    if not waiting.intersection(kinds):
        return ()
    uids = {obj["metadata"].get("uid") for obj in objects}
    events = yield [
        Query(
            api_version="v1",
            kind="Event",
            namespace=namespace,
            fields={"involvedObject.kind": kind},
            keep=lambda event: (event.get("involvedObject") or {}).get("uid") in uids,
        )
        for kind in kinds
        if kind in waiting
    ]
    return [*chain.from_iterable(events)]


class ClusterProvider(Provider):
    """Storage in a Ceph cluster."""

    is_polled: ClassVar[bool] = True

    def kept(self, view: View) -> Sequence[str]:
        return view.seen.external.kept if isinstance(view.seen.external, ExternalObjects) else ()


class CephProvider(ClusterProvider):
    """An existing pool of any Ceph cluster: the run names it, the addresses of monitors and a keyring."""

    def provides(self, storage: StorageSpec) -> bool:
        return bool(storage.get("ceph"))

    def targets(self, storage: StorageSpec) -> frozenset[str]:
        """Return the monitors; each identifies the cluster, and a run may name only one."""
        return frozenset(f"ceph/{key}" for key in monitor_keys(storage["ceph"].get("monitors") or ()))

    def rejection(self, run: Run, settings: Settings) -> RunEnding | None:
        storage = run.document.spec.storage if run.document else None
        monitors = storage.ceph.monitors if storage is not None and storage.ceph is not None else ()
        if not settings.network_policies.enabled or not (monitor := network.unreachable_monitor(monitors)):
            return None
        why = f"{monitor} has a name, and another port than 3300 and 6789, and a NetworkPolicy cannot name hosts"
        return RunEnding.false(Reason.INVALID_SPEC, f"spec.storage.ceph.monitors: {why}; write its IP address")

    def resources(self, view: View) -> Sequence[Resource]:
        there, claims = view.seen.external, Claims(view=view)
        if not isinstance(there, ExternalObjects):
            return [Unseen(), claims]
        kinds: list[type[CephResource]] = [Record, ExistingPool, Access]
        return [*(kind(view=view, there=there) for kind in kinds), claims, Leftovers(view=view, there=there)]

    def look(self, view: View) -> Look[ExternalObjects] | None:
        if view.run.start_time is None:
            return None
        return look_at_ceph(view.settings.teardown_namespace, view.run.identity)


@dataclass(frozen=True, slots=True, kw_only=True)
class CephResource(Resource):
    """A resource of an admitted run on Ceph."""

    view: View
    there: ExternalObjects

    @property
    def plan(self) -> Plan:
        if self.view.seen.plan is None:
            raise ValueError(f"run {self.view.run.name} has no plan")
        return self.view.seen.plan

    @property
    def target(self) -> CephTarget:
        if self.plan.ceph is None:
            raise ValueError(f"the plan of run {self.view.run.name} names no Ceph cluster")
        return self.plan.ceph

    @property
    def monitors(self) -> tuple[str, ...]:
        return self.target.monitors or self.there.monitors


class Unseen(Resource):
    """The storage of a run that is not admitted: nothing was created or observed."""

    def ready(self) -> Fact:
        return Fact.false(Reason.POOL_NOT_READY, "inspecting the Ceph cluster")


class Record(CephResource):
    """The record of what has to be removed, in the namespace of teardowns; removed together with the teardown Job."""

    def desired(self) -> Iterable[Action]:
        record = render_teardown.record_of(self.plan)
        if self.there.record is not None or record is None:
            return ()
        return [Create(obj=render_teardown.record_config_map(self.view.run, record, self.monitors, self.view.settings))]

    def ready(self) -> Fact:
        return hidden_fact(holds=self.there.record is not None)

    def remove(self) -> Teardown | None:
        there = self.there
        if there.is_empty:
            return None
        records = deletions(child for child in (there.record, there.network_policy) if child is not None)
        jobs = deletions((job.child for job in there.jobs), foreground=True)
        return removal_step("deleting the teardown record", *jobs, *records)


class ExistingPool(CephResource):
    """The pool that a run without Rook names."""

    def ready(self) -> Fact:
        return Fact.true(Reason.READY, f"existing pool {' and '.join(self.target.pools)}; the conductor checks it")


class Access(CephResource):
    """`ceph.conf`, and a copy of the key for the teardown Job: without it, no pod of the run has ever reached Ceph."""

    def desired(self) -> Iterator[Action]:
        run = self.view.run
        if self.there.keyring is None:
            yield self.copy(render_teardown.keyring_secret(run, self.view.settings), self.target.conductor_user)
        if not self.view.in_use:
            yield from self.pod_keyrings()
            if administrator := render_ceph.administrator_keyring(self.plan):
                yield CheckSecret(namespace=run.namespace, secret=administrator.name)
        if not self._is_configured():
            yield Create(obj=render_ceph.config_map(run, self.monitors))

    def ready(self) -> Fact:
        return hidden_fact(holds=self._is_configured() and self.there.keyring is not None)

    def remove(self) -> Teardown | None:
        """Return the deletion of the teardown Job's copy. The rest is garbage-collected with the run."""
        copies = [child for child in (self.there.renewal, self.there.keyring) if child is not None]
        if not copies:
            return None
        # Before its CephX user: otherwise a deleted Job would be recreated and could only fail. From here on, the
        # absence of the copy means that the run has nothing in Ceph.
        return removal_step("deleting the copied key", *deletions(copies))

    def pod_keyrings(self) -> Iterable[Action]:
        """Return the copies of keys for conductor and clients: none if they mount the Secret that the run names."""
        return ()

    def copy(self, obj: Json, user: str) -> CopyKeyring:
        """Return the copy of a user's key from the keyring that the run names; raises ValueError if it names none."""
        source = self.target.keyring
        if source is None:
            raise ValueError(f"run {self.view.run.name} names no keyring")
        namespace, secret, field = self.view.run.namespace, source.name, source.key
        return CopyKeyring(obj=obj, user=user, namespace=namespace, secret=secret, field=field, is_keyring=True)

    def _is_configured(self) -> bool:
        return naming.ceph_config_map(self.view.run.name) in self.view.seen.names("ConfigMap")


class Leftovers(CephResource):
    """What clients create in the pool, and what a lost conductor left changed; removed while the key still exists."""

    delay: ClassVar[str] = "check that Ceph responds, and the Job's log"

    def ready(self) -> Fact:
        return hidden_fact(holds=True)

    def restore(self, *, is_needed: bool) -> Teardown | None:
        there, job = self.there, self.there.restoration
        target = there.recorded.ceph if there.recorded else self.plan.ceph if self.view.seen.plan else None
        if is_needed and target is not None and target.has_record:
            return self._in_ceph(job, there.restoration_pods, only_restores=True)
        if job is None:
            return None
        return removal_step(f"deleting Job {job.child.place}", *deletions([job.child], foreground=True))

    def remove(self) -> Teardown | None:
        there = self.there
        if there.is_empty:
            return None
        if there.kinds_problem:
            message = f"cannot read the run's Rook objects: {there.kinds_problem}"
            return removal_step(message, reason=Reason.ROOK_NOT_FOUND)
        return self._in_ceph(there.jobs[0] if there.jobs else None, there.pods, only_restores=False)

    def renew_key(self) -> Teardown | None:
        return None

    def _restore_record(self) -> Teardown:
        """Return the new record, from the operator's plan or the specification, or why it is not written."""
        run, there, plan = self.view.run, self.there, self.view.seen.plan
        own_plan = plan if plan is not None and is_own_plan(run, self.view.seen) else None
        if there.record is not None:
            message = f"cannot read the teardown record {there.record.place}; use the operator version that wrote it"
            obsolete = deletions([there.record] if own_plan is not None else [])
            return removal_step(message, *obsolete, reason=Reason.TEARDOWN_FAILING)
        record: render_teardown.TeardownRecord | None = None
        document, target = run.document, target_of(run)
        if own_plan is not None:
            record = render_teardown.record_of(own_plan)
        elif document is not None and target is not None:
            image, clients = self.view.settings.runner_image, document.spec.clients.count
            record = render_teardown.TeardownRecord(run=run.identity, runner_image=image, clients=clients, ceph=target)
        if record is None:
            message = "the teardown record was deleted, and this version cannot read the specification; use a later one"
            return removal_step(message, reason=Reason.TEARDOWN_FAILING)
        monitors = record.ceph.monitors or there.monitors
        creation = Create(obj=render_teardown.record_config_map(run, record, monitors, self.view.settings))
        return removal_step("the teardown record was deleted and is being recreated", creation)

    def _in_ceph(self, job: JobFact | None, pods: Iterable[PodFact], *, only_restores: bool) -> Teardown | None:
        """Return the next step of a Job's clean-up in Ceph; None if it is done, or no pod has ever reached Ceph."""
        there, run, settings = self.there, self.view.run, self.view.settings
        if job is not None and job.complete and not job.child.deleting:
            return None
        if step := self.renew_key():
            return step
        if there.keyring is None:
            return None
        if there.record is None or there.recorded is None:
            return self._restore_record()
        if job is not None:
            step = self._progress(job, pods, only_restores=only_restores)
            return replace(step, actions=deletions([job.child] if job.failure else [], foreground=True))
        # The policy first: without it a pod could reach any address.
        if settings.network_policies.enabled and there.network_policy is None:
            creation = Create(obj=render_teardown.network_policy(run, there.recorded, settings))
        else:
            creation = Create(obj=render_teardown.job(run, there.recorded, settings, only_restores=only_restores))
        return removal_step(f"about to {_RESTORE if only_restores else _REMOVE}", creation)

    def _progress(self, job: JobFact, pods: Iterable[PodFact], *, only_restores: bool) -> Teardown:
        there, task = self.there, _RESTORE if only_restores else _REMOVE
        # A pod can have succeeded shortly before its Job is complete.
        trying = sorted((pod for pod in pods if pod.phase != "Succeeded"), key=lambda pod: pod.created)
        last = next((pod for pod in reversed(trying) if pod.problem or pod.exit_message), None)
        problem = (last and (last.problem or last.exit_message)) or job.failure
        warning = "" if trying else there.warnings.get(job.child.uid, "")
        if last is not None and not last.problem and last.exit_code == EXIT_PURGING:
            return self._waiting(job, last.exit_message.partition(": ")[2][:_MAX_CHARACTERS])
        if (refused := refused_pod(warning)) and not problem:
            message = f"Job {job.child.place}, which is to {task}, has no pod: {warning[:_MAX_CHARACTERS]}"
            remedy = f"change the policy or quota that refuses it in namespace {job.child.namespace}"
            return removal_step(f"{message}; {remedy}", reason=refused)
        if not problem:
            return removal_step(f"waiting for Job {job.child.place} to {task}") if only_restores else self._waiting(job)
        message = (
            f"Job {job.child.place} failed to {task}, and retries: {problem[:_MAX_CHARACTERS]}; if the monitors have "
            f"moved, delete ConfigMap {job.child.namespace}/{naming.teardown(self.view.run.uid)}, which the operator "
            "recreates; if the Ceph cluster is gone for good, delete the Secret of that name"
        )
        if not only_restores and (inactive := rook_facts.inactive_groups(there.cluster)):
            message = f"{inactive}, so {message}"
        return removal_step(message, reason=Reason.TEARDOWN_FAILING)

    def _waiting(self, job: JobFact, purge: str = "") -> Teardown:
        """Return that the Job is at work; `purge`: what was left to be purged when one of its pods last said so."""
        doing = "is removing the run's objects from Ceph"
        waiting = "has removed the run's objects from Ceph, and waits until Ceph has purged the deleted volumes"
        message = f"Job {job.child.place} {waiting if purge else doing}"
        if inactive := rook_facts.inactive_groups(self.there.cluster):
            message = f"{message}, and waits because {inactive}; it continues when they are active"
            return removal_step(message, reason=Reason.PLACEMENT_GROUPS_INACTIVE)
        message = f"{message} (since {format_time(job.created)})"
        return removal_step(f"{message}: {purge}" if purge else f"{message}; if that takes minutes, {self.delay}")


def target_of(run: Run) -> CephTarget | None:
    """Return a run's part of the Ceph cluster by its specification; None if there is none, or it cannot be read."""
    if run.document is None:
        return None
    metadata = run.document.metadata.model_copy(update={"uid": run.uid})
    return ceph_target(run.document.model_copy(update={"metadata": metadata}))


def hidden_fact(*, holds: bool) -> Fact:
    """Return whether a resource is ready, as a fact that no status shows."""
    return Fact.true(Reason.READY) if holds else Fact.false(Reason.IN_PROGRESS)


def removal_step(message: str, *actions: Action, reason: Reason = Reason.IN_PROGRESS) -> Teardown:
    return Teardown(actions=actions, fact=Fact.false(reason, message))


def _is_claimed_by_others(volume: Object, run: RunIdentity) -> bool:
    """Whether a PersistentVolume is bound to a PVC whose name is not one of the run's."""
    claim = _bound_claim(volume)
    name = str(claim.get("name", ""))
    client = name.rpartition("-")[2]
    own = naming.client_claim(run.name, int(client)) if client.isdecimal() else naming.shared_claim(run.name)
    return bool(claim) and (claim.get("namespace"), name) != (run.namespace, own)


def _name_with_claim(volume: Object) -> str:
    name, claim = str(volume["metadata"]["name"]), _bound_claim(volume)
    return f"{name} (claimed by {claim.get('namespace')}/{claim.get('name')})" if claim else name


def _bound_claim(volume: Object) -> Object:
    """Return the reference to the PVC that a PersistentVolume is bound to; empty if it is not, or its PVC is gone."""
    is_bound = volume.get("status", {}).get("phase") == "Bound"
    return (volume.get("spec", {}).get("claimRef") or {}) if is_bound else {}
