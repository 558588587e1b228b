"""The needs of a run before it measures: permission and limits, a frozen plan, objects; and the removal of these."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any

from plimsoll.api.errors import SpecError
from plimsoll.api.names import RunPhase
from plimsoll.api.quantity import format_quantity
from plimsoll.api.reasons.reason import Reason
from plimsoll.api.run import BenchmarkRun, RunSpec
from plimsoll.api.status import format_time
from plimsoll.lifecycle.children import JobFact
from plimsoll.lifecycle.decision import Action, Create, CreateSecret, Fact, RunEnding, Teardown, deletions
from plimsoll.lifecycle.observed import Observed, age_seconds
from plimsoll.lifecycle.render import client as render_client
from plimsoll.lifecycle.render import common, network
from plimsoll.lifecycle.render import conductor as render_conductor
from plimsoll.lifecycle.run import ENFORCED_PROFILE, Limits, Platform, Run, Settings
from plimsoll.lifecycle.storage.claims import removable
from plimsoll.lifecycle.storage.registry import provider_of, storage_of
from plimsoll.lifecycle.storage.seam import Storage
from plimsoll.measure.text import count_text, first_few, size_text
from plimsoll.plan.document import ControlPlane, Plan
from plimsoll.plan.expand import check_fits_deadline, estimate, estimate_writes, make_plan
from plimsoll.plan.sweep import run_seed
from plimsoll.plan.windows import longest_load_seconds, next_start
from plimsoll.protocol.helpers import excess_of
from plimsoll.tools.registry import TOOLS
from plimsoll.tools.target import TargetKind

_ASK = "or ask the operator's administrator to"
_RESTRICTED = "restricted"  # the Pod Security Standard that forbids root
_SCHEDULING_SECONDS = 10.0  # a pod that cannot be scheduled for so long has no room on the nodes
_OVERDUE_SECONDS = 15  # after a pod's deletion deadline, which its kubelet usually meets within a few
LOAD_GONE_SECONDS = 300
"""Seconds after a pod's deletion deadline from which on it cannot load the storage, wherever it is.

A kubelet that responds has killed the pod. Otherwise, a conductor gives up when its write is refused
(`revoke_rights`; a minute after the deadline, the API server no longer accepts the token of its pod), or when it could
not write its state for a minute, and agents kill their tool and exit after a minute without a conductor.
"""


def missing_objects(
    run: Run, plan: Plan, seen: Observed, settings: Settings, storage: Storage, now: datetime
) -> Iterator[Action]:
    """Yield the creations due now, in order: documents and permissions, storage with volumes, clients, conductor.

    A Job refers to objects by name, so all of them exist as the run's own before it is created.
    """
    wanted = [
        *(common.result(run, plan, point) for point in plan.points if point.name not in seen.results),
        common.state_config_map(run),
        render_conductor.service_account(run),
        render_conductor.role(run, plan),
        render_conductor.service(run, settings),
        *network.policies(run, plan, settings),
    ]
    yield from _absent(seen, wanted)
    yield from storage.missing()
    if not storage.is_provided():
        return
    # The operator may not list Secrets. This one is created before the first Job, so a Job proves that it exists.
    if not seen.jobs:
        yield CreateSecret(obj=common.session_secret(run), clients=plan.members)
    for client in range(plan.members if storage.is_schedulable() else 0):
        jobs = seen.client_jobs(client)
        if not jobs or (is_lost(jobs[-1], seen) and len(jobs) <= settings.max_client_restarts):
            attempt = jobs[-1].attempt + 1 if jobs else 0
            yield Create(obj=render_client.job(run, plan, settings, client=client, attempt=attempt), wave=1)
    # The API server refuses to bind a Role that does not exist yet. Clients do not wait for this, because it takes a
    # tenth of a second: if it is refused, they wait for a conductor that does not come, until the run ends.
    yield from (replace(action, wave=1) for action in _absent(seen, [render_conductor.role_binding(run)]))
    # A new Job is created once one that a suspension deletes is gone.
    if seen.conductor_job is None and not _may_crowd_out_clients(plan, seen, now):
        yield Create(obj=render_conductor.job(run, plan, settings), wave=2)


def crowding_conductor(plan: Plan, seen: Observed, now: datetime) -> tuple[Action, ...]:
    """Return the deletion of a conductor that may take a client's place on a node."""
    job = seen.conductor_job
    if job is None or job.child.deleting or seen.has_gathered or not _may_crowd_out_clients(plan, seen, now):
        return ()
    return deletions([job.child], foreground=True)


def _may_crowd_out_clients(plan: Plan, seen: Observed, now: datetime) -> bool:
    """Whether a client's pod has had no room on any node for a while; other clients do not wait for room."""
    pods = filter(None, map(seen.client_pod, range(plan.members)))
    return any("Unschedulable" in pod.problem and age_seconds(pod.created, now) > _SCHEDULING_SECONDS for pod in pods)


def is_lost(job: JobFact, seen: Observed) -> bool:
    """Whether a client's process has failed, is gone or terminating, or was dismissed, before its work is done."""
    if job.failure or job.child.deleting:
        return True
    if job.complete:
        return seen.state is None or seen.state.phase not in {RunPhase.COMPLETE, RunPhase.FAILED}
    return any(pod.child.deleting for pod in seen.client_pods(job.client) if pod.attempt == job.attempt)


def held_pods(seen: Observed) -> tuple[Action, ...]:
    """Return the deletion of held pods of a failed conductor or a lost client: they block the next, and its volume."""
    lost = {(job.client, job.attempt) for job in seen.jobs if job.client is not None and is_lost(job, seen)}
    return deletions(
        pod.child for pod in seen.pods if pod.is_held and (pod.phase == "Failed" or (pod.client, pod.attempt) in lost)
    )


def rejection(run: Run, settings: Settings) -> RunEnding | None:
    if run.document is None:
        return RunEnding.false(Reason.INVALID_SPEC, run.spec_problem)
    return next(filter(None, _rejections(run, run.document.spec, settings)), None)


def _rejections(run: Run, spec: RunSpec, settings: Settings) -> Iterator[RunEnding | None]:
    yield spec_excess(spec, settings.limits)
    if spec.prepare.drop_caches and (problem := settings.caches_problem(run.namespace)):
        message = f"spec.prepare.dropCaches: {problem}, or set it to false and use larger volumes"
        yield RunEnding.false(Reason.CACHE_DROPPING_NOT_ALLOWED, message)
    yield provider_of(run).rejection(run, settings)
    for number, workload in enumerate(spec.workloads):
        tool = TOOLS.get(workload.tool)
        if tool is not None and tool.target is TargetKind.OSDS and not settings.osd_bench:
            remedy = "remove these workloads, or ask the administrator to set the chart's osdBench.enabled"
            message = f"{tool.key} bypasses pools and writes to all OSDs; {remedy}"
            yield RunEnding.false(Reason.OSD_BENCH_NOT_ALLOWED, message)
        if tool is not None and tool.creates_claims and (problem := settings.burning_problem(run.namespace)):
            message = f"{tool.key}: {problem}, or remove these workloads"
            yield RunEnding.false(Reason.KUBE_BURNER_NOT_ALLOWED, message)
        if workload.disturb and spec.storage and settings.neighbours(spec.storage, run.namespace) is None:
            message = (
                f"spec.workloads[{number}].disturb: runs may not take OSDs of this cluster away; remove it, or ask "
                "the operator's administrator to add the CephCluster, or the Secret with the keyring, to the chart's "
                "disturb"
            )
            yield RunEnding.false(Reason.DISTURBANCE_NOT_ALLOWED, message)


def freeze(run: Run, document: BenchmarkRun, platform: Platform, settings: Settings) -> Plan | Fact:
    """Return the plan of a run, or why it cannot be frozen at all (RunEnding) or yet (Fact)."""
    provider = provider_of(run)
    named = document.model_copy(update={"metadata": document.metadata.model_copy(update={"uid": run.uid})})
    if blocker := provider.blocker(named, platform):
        return blocker
    environment = provider.environment(named, platform)
    try:
        plan = make_plan(named, seed=run_seed(run.uid), runner_image=settings.runner_image, environment=environment)
        check_fits_deadline(plan)
    except SpecError as error:
        return RunEnding.false(Reason.INVALID_SPEC, str(error))
    if render_client.has_device(plan, 0) and (problem := why_no_devices(run.namespace, platform.pod_security)):
        return RunEnding.false(Reason.POD_SECURITY_TOO_STRICT, f"spec.storage.volume.mode: {problem}")
    control_plane = _control_plane(run, plan, platform, settings)
    if isinstance(control_plane, Fact):
        return control_plane
    cache_helper = settings.caches.service if settings.caches and document.spec.prepare.drop_caches else None
    plan = plan.model_copy(update={"cache_helper": cache_helper, "control_plane": control_plane})
    if plan.ceph is not None and plan.ceph.actions and named.spec.storage:
        neighbours = settings.neighbours(named.spec.storage, run.namespace) or ()
        plan = plan.model_copy(update={"ceph": plan.ceph.model_copy(update={"neighbours": neighbours})})
    return provider.complete_plan(plan, platform)


def why_no_devices(namespace: str, pod_security: str) -> str:
    if pod_security != _RESTRICTED:
        return ""
    policy = f"Pod Security in namespace {namespace} forbids ({ENFORCED_PROFILE}: {_RESTRICTED})"
    remedy = "leave volume.mode out for Filesystem, with Ceph set volume.access to LibRBD, or use a namespace that"
    return f"clients of a Block volume run as root, which {policy}; {remedy} enforces baseline"


def teardown(run: Run, seen: Observed, settings: Settings, *, keep_volumes: bool, now: datetime) -> Teardown:
    load, rights, storage = stop_load(seen), revoke_rights(seen, now), storage_of(run, seen, settings, now)
    if load or seen.jobs or seen.loading_pods:
        fact = Fact.false(Reason.IN_PROGRESS, stopping_message(seen, now))
        if seen.loading_pods and load_is_gone(seen, now):
            message = (
                f"{count_text(len(seen.loading_pods), 'pod')}{_on_nodes(seen)} should have been gone "
                f"{LOAD_GONE_SECONDS} s ago and can no longer load the storage, so the next run may start; "
                "delete the Node if it will not return, or taint it node.kubernetes.io/out-of-service"
            )
            fact = Fact.false(Reason.NODE_GONE, message)
        step = Teardown(actions=(*load, *rights), fact=fact)
        # The removal has to wait for the pods, whose volumes exist as long as they do.
        if (restoration := storage.restoration(is_needed=load_is_gone(seen, now))) is not None:
            fact = replace(fact, message=f"{fact.message}; {restoration.fact.message}")
            step = Teardown(actions=(*step.actions, *restoration.actions), fact=fact)
    else:
        rest = deletions(removable(seen))
        claims = [claim.child.name for claim in seen.claims]
        kept_claims = [f"{count_text(len(claims), 'PVC')}: {first_few(claims, 3)}"] if claims else []
        kept = "; ".join([*kept_claims, *storage.kept])
        restoration = storage.restoration(is_needed=bool(keep_volumes and kept))
        if restoration is not None:
            step = replace(restoration, actions=(*rest, *restoration.actions))
        elif keep_volumes and kept:
            step = Teardown(actions=rest, fact=Fact.false(Reason.STORAGE_KEPT, f"spec.cleanup keeps {kept}"))
        elif (removal := storage.removal()) is not None:
            others = (action for action in rest if action not in removal.actions)
            step = replace(removal, actions=(*others, *removal.actions))
        elif run.start_time is None and not seen.others and not seen.results:
            step = Teardown(actions=(), fact=Fact.true(Reason.NOTHING_CREATED, "nothing was created"))
        else:
            step = Teardown(actions=(), fact=Fact.true(Reason.REMOVED, "only the run's documents and results remain"))
    refusal = seen.refusal
    if refusal is None or step.fact.holds:
        return step
    is_blocked = refusal.blocks_removal or refusal.concerns(settings.teardown_namespace)
    return replace(step, fact=Fact.false(refusal.reason, refusal.message)) if is_blocked else step


def is_settled(cleaned_up: Fact) -> bool:
    """Whether nothing more will be removed from an ended run: nothing is left, or only storage that it keeps."""
    return bool(cleaned_up.holds) or cleaned_up.reason is Reason.STORAGE_KEPT


def revoke_rights(seen: Observed, now: datetime) -> tuple[Action, ...]:
    """Return the deletion of a stopped conductor's RoleBinding: on a dead node it could still change the results."""
    pods = [pod for pod in seen.loading_pods if pod.client is None]
    is_gone = seen.conductor_job is None and not pods
    is_overdue = any(pod.gone_by is not None and pod.gone_by < now for pod in pods)
    return deletions(child for child in seen.others if child.kind == "RoleBinding") if is_gone or is_overdue else ()


def stop_load(seen: Observed) -> tuple[Action, ...]:
    """Return the deletions that stop the load: every Job with its pods, and pods that have lost their Job."""
    if seen.jobs:
        return deletions((job.child for job in seen.jobs), foreground=True)
    return deletions(pod.child for pod in seen.loading_pods)


def load_is_gone(seen: Observed, now: datetime) -> bool:
    """Whether a run no longer loads its target; dead nodes and pods' finalizers do not matter."""
    are_gone = all(age_seconds(pod.gone_by, now) > LOAD_GONE_SECONDS for pod in seen.loading_pods)
    return are_gone and all(job.child.deleting for job in seen.jobs)


def conductor_is_gone(seen: Observed, now: datetime) -> bool:
    """Whether the conductor's pod is on a dead node, and can no longer change anything in Ceph."""
    pods = [pod for pod in seen.loading_pods if pod.client is None]
    return bool(pods) and all(age_seconds(pod.gone_by, now) > LOAD_GONE_SECONDS for pod in pods)


def _on_nodes(seen: Observed) -> str:
    nodes = sorted({pod.node for pod in seen.loading_pods if pod.child.deleting and pod.node})
    return f" on {first_few(nodes, 3)}" if nodes else ""


def stopping_message(seen: Observed, now: datetime) -> str:
    where = _on_nodes(seen)
    if any(age_seconds(pod.gone_by, now) > _OVERDUE_SECONDS for pod in seen.loading_pods):
        where += "; pods on an unresponsive node remain until it returns or is deleted"
    return f"{count_text(len(seen.jobs), 'Job')} and {count_text(len(seen.loading_pods), 'pod')} are stopping{where}"


def _absent(seen: Observed, objects: Iterable[dict[str, Any]]) -> list[Create]:
    return [Create(obj=obj) for obj in objects if obj["metadata"]["name"] not in seen.names(obj["kind"])]


def _control_plane(run: Run, plan: Plan, platform: Platform, settings: Settings) -> ControlPlane | Fact | None:
    points = [point for point in plan.points if TOOLS[point.tool].creates_claims]
    burning = settings.burning
    if not points or burning is None:
        return None
    for point in points:
        limits = {"max_objects": burning.max_objects, "max_qps": burning.max_qps}
        if problem := excess_of(point.typed_parameters.limited, **limits, max_volume_size=burning.max_volume_size):
            message = f"workload {point.workload}: {problem}; lower it, or ask the operator's administrator for more"
            return RunEnding.false(Reason.KUBE_BURNER_NOT_ALLOWED, message)
    name = provider_of(run).claims_class(run)
    if platform.storage_classes.get(name, {}).get("reclaimPolicy") == "Retain":
        why = f"would leave the volume of each PVC behind, because StorageClass {name} has reclaimPolicy Retain"
        message = f"workload {points[0].workload}: {points[0].tool} {why}; name one with Delete"
        return RunEnding.false(Reason.VOLUMES_RETAINED, message)
    if not platform.burner_certificate:
        place = f"namespace {burning.service.namespace}"
        message = f"the helper that runs kube-burner has not started yet; check its pod in {place}"
        return Fact.false(Reason.KUBE_BURNER_NOT_READY, message)
    return ControlPlane(helper=burning.service, certificate=platform.burner_certificate, storage_class=name)


def spec_excess(spec: RunSpec, limits: Limits) -> RunEnding | None:
    problems = []
    count, most = spec.clients.count, limits.max_clients
    if most is not None and count > most:
        problem = f"spec.clients.count is {count}, but a run may have {count_text(most, 'client')}"
        problems.append(f"{problem}; lower it, {_ASK} raise the chart's limits.maxClients")
    volume, largest = spec.storage.volume if spec.storage else None, limits.max_volume_size
    if volume is not None and largest is not None and volume.size > largest:
        size, limit = format_quantity(volume.size), format_quantity(largest)
        problem = f"spec.storage.volume.size is {size}, but may be at most {limit}"
        problems.append(f"{problem}; lower it, {_ASK} raise the chart's limits.maxVolumeSize")
    return RunEnding.false(Reason.LIMIT_EXCEEDED, "; ".join(problems)) if problems else None


def plan_excess(plan: Plan, settings: Settings, now: datetime) -> RunEnding | None:
    """Return why a plan writes too much, or has a trial that is longer than the windows; None if neither is so."""
    most, writes = settings.limits.max_written_bytes, estimate_writes(plan)
    if most is not None and writes.preparing + writes.loading > most:
        message = (
            f"the run writes {writes.text}, but a run may write {format_quantity(most)}; lower clients.count, "
            " volume.size, runtimeSeconds, repetitions or a rate of its workloads, or set "
            f"prepare.prefill to false, {_ASK} raise the chart's limits.maxWrittenBytes"
        )
        return RunEnding.false(Reason.LIMIT_EXCEEDED, message)
    seconds = longest_load_seconds(plan)
    if next_start(settings.windows, now, seconds) is None:
        what = (
            f"the longest trial and the preparation before it take {seconds} s, and no maintenance window is that long"
        )
        remedy = f"runtimeSeconds, volume.size or prepare.settleSeconds, {_ASK} set longer ones in the chart's"
        return RunEnding.false(Reason.WINDOWS_TOO_SHORT, f"{what}; lower {remedy} maintenanceWindows")
    return None


def closed_until(plan: Plan, settings: Settings, now: datetime) -> str:
    """Return that a run waits for a window that holds its longest trial, and until when; empty if it may start."""
    start = next_start(settings.windows, now, longest_load_seconds(plan))
    if start is None or start <= now:
        return ""
    window = "the next maintenance window that is long enough (the chart's maintenanceWindows)"
    return f"waiting until {format_time(start)} for {window}"


def writes_text(plan: Plan) -> str:
    """Return what a run writes and stores: `writes 60 GiB to prefill ...; stores at most ...`."""
    written, cost = f"writes {estimate_writes(plan).text or 'no data'}", estimate(plan)
    if not cost.data_bytes:
        return written
    copies = f", {size_text(cost.stored_bytes)} with replicas or coding chunks" if cost.stored_bytes else ""
    return f"{written}; its data sets fill at most {size_text(cost.data_bytes)}{copies}"
