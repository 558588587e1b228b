"""Why runs fail: every reason, who is named in the message, and what to do about it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest

from plimsoll.api.names import FailureReason, RunPhase, Verdict
from plimsoll.kube.port import ApiError, ForbiddenError, InvalidError, TransientError
from plimsoll.lifecycle import naming
from support.pretend_cluster import NAMESPACE, PretendCluster, client_of, label
from support.pretend_world import PretendWorld, make_run
from support.tooling import kstatus

Arrange = Callable[[PretendWorld], None]


def nothing(_: PretendWorld) -> None:
    """Do nothing."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """A way to fail. `before` is done before the run is created, `meanwhile` before every round."""

    reason: str
    says: tuple[str, ...]
    name: str = ""
    spec: Mapping[str, Any] = field(default_factory=dict)
    before: Arrange = nothing
    meanwhile: Arrange = nothing


def set_faults(**faults: Any) -> Arrange:
    def arrange(world: PretendWorld) -> None:
        for name, value in faults.items():
            setattr(world.cluster.faults, name, value)

    return arrange


def fail_as(reason: FailureReason) -> Arrange:
    def arrange(world: PretendWorld) -> None:
        for uid in world.uids:
            world.conductors.knobs.fails[uid] = reason

    return arrange


def give(verdict: Verdict) -> Arrange:
    def arrange(world: PretendWorld) -> None:
        world.conductors.knobs.verdict = verdict

    return arrange


def kill_client(world: PretendWorld) -> None:
    for uid in world.uids:
        for pod in world.client_pods(uid):
            if client_of(pod) == 1 and pod["status"]["phase"] == "Running":
                world.cluster.end(pod, 1, "the volume is read-only")


def kill_conductor(world: PretendWorld) -> None:
    for pod in world.conductors.pods():
        world.cluster.end(pod, 1, "no route to the API")


def stop_clients_from_starting_again(world: PretendWorld) -> None:
    """Take client 1 away once a conductor is there, and have its successor not find a node."""
    if world.conductors.pods():
        world.cluster.faults.unschedulable = {1}
        kill_client(world)


def lose_the_conductor(world: PretendWorld, **faults: Any) -> None:
    """Kill a conductor that has begun, and have its successor not come."""
    if world.conductors.loads:
        set_faults(**faults)(world)
        kill_conductor(world)


def resume_without_image(world: PretendWorld) -> None:
    """Suspend a run that measures, for longer than its deadlines, and resume it without an image for the conductor."""
    for run in world.runs() if world.conductors.loads and not world.cluster.faults.unpullable else ():
        uid = run["metadata"]["uid"]
        world.change(uid, suspend=True)
        world.until_settled(uid)
        world.cluster.pass_time(3600)
        world.cluster.faults.unpullable = {None}
        world.change(uid, suspend=False)


def silence_conductors(world: PretendWorld) -> None:
    world.conductors.knobs.stuck = True


def refuse(request: str, error: Callable[[str], ApiError]) -> Arrange:
    """Have the API server refuse every request that begins like this."""

    def interfere(asked: str) -> None:
        if asked.startswith(request):
            raise error(asked)

    def arrange(world: PretendWorld) -> None:
        world.cluster.kube.interfere = interfere

    return arrange


def delete_a_result_at_the_end(world: PretendWorld) -> None:
    for run in world.runs():
        if state_of(world.cluster, run["metadata"]["uid"]) == RunPhase.COMPLETE:
            world.cluster.delete(world.cluster.of_run("BenchmarkResult", run["metadata"]["uid"])[0])
            world.cluster.step()
            world.conductors.step()
            world.cluster.step()


def state_of(cluster: PretendCluster, uid: str) -> str:
    texts = [obj["data"].get("state.json", "") for obj in cluster.of_run("ConfigMap", uid)]
    return RunPhase.COMPLETE if any('"phase":"Complete"' in text for text in texts) else ""


def leave_results(world: PretendWorld) -> None:
    uid = world.create("a", results="Retain")
    world.until_settled(uid)
    run = world.run(uid)
    assert run is not None
    world.cluster.delete(run)
    world.until(lambda: world.run(uid) is None)


def take_the_plans_name(world: PretendWorld) -> None:
    world.cluster.kube.put(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a-plan", "namespace": NAMESPACE}, "data": {}}
    )


def damage_the_plan(world: PretendWorld) -> None:
    plan = world.cluster.find("ConfigMap", "a-plan")
    if plan is not None:
        world.cluster.edit(plan, lambda new: new.update(data={"plan.json": "{}"}))


def delete_the_plan(world: PretendWorld) -> None:
    plan = world.cluster.find("ConfigMap", "a-plan")
    if plan is not None and world.cluster.kube.objects("Job"):
        world.cluster.delete(plan)


SHORT = {"provisionSeconds": 60, "readySeconds": 60, "totalSeconds": 5}

CASES = [
    Case(
        reason="ImagePullFailed",
        before=set_faults(unpullable={1}),
        says=("client 1", "a-client-1", "runner:1", "imagePullSecrets", "provisionSeconds (60 s)"),
    ),
    Case(
        reason="Unschedulable",
        before=set_faults(unschedulable={0, 1}),
        says=("client 0", "client 1", "Insufficient memory", "clients.spread"),
    ),
    Case(
        reason="ClaimsNotBound",
        before=set_faults(no_volumes=True),
        says=("PVC plimsoll-a-client-0", "PVC plimsoll-a-client-1", "absent", "check the StorageClass"),
    ),
    Case(
        reason="ContainerFailed",
        before=set_faults(unusable={0}),
        says=("client 0", "CreateContainerConfigError", "events"),
    ),
    Case(
        reason="ClientsNotReady",
        name="a client hangs",
        before=set_faults(silent={1}),
        says=("client 1 (pod a-client-1-0", "on node-1", "Pending", "events"),
    ),
    Case(
        reason="ClientsFailed",
        meanwhile=kill_client,
        says=("client 1", "the volume is read-only", "4 times", "termination message"),
    ),
    Case(
        reason="ClientsNotReady",
        name="the conductor misses a client",
        meanwhile=stop_clients_from_starting_again,
        says=("client 1", "60 s", "Insufficient memory"),
    ),
    Case(reason="PreparationFailed", meanwhile=fail_as(FailureReason.PREPARATION_FAILED), says=("as it was told",)),
    Case(reason="DeadlineExceeded", meanwhile=fail_as(FailureReason.DEADLINE_EXCEEDED), says=("as it was told",)),
    Case(reason="ConductorFailed", meanwhile=kill_conductor, says=("BackoffLimitExceeded", "no route to the API")),
    Case(
        reason="ConductorNotReady",
        before=set_faults(unschedulable={None}),
        says=("conductor", "60 s", "Insufficient memory"),
    ),
    Case(
        reason="ConductorNotReady",
        name="a later conductor finds no node",
        meanwhile=partial(lose_the_conductor, unschedulable={None}),
        says=("no conductor", "readySeconds (60 s)", "Insufficient memory", "free or add nodes"),
    ),
    Case(
        reason="QuotaExceeded",
        name="a later conductor makes no pod",
        meanwhile=partial(lose_the_conductor, over_quota={None}),
        says=("no conductor", "readySeconds (60 s)", "exceeded quota: few", "ResourceQuota"),
    ),
    Case(
        reason="ConductorNotReady",
        name="a resumed run has no image",
        meanwhile=resume_without_image,
        says=("pod a-conductor-", "ImagePullBackOff", "imagePullSecrets"),
    ),
    Case(
        reason="ConductorNotReady",
        name="the conductor says nothing",
        before=silence_conductors,
        says=("Running and not active yet", "log"),
    ),
    Case(
        reason="ClientsNotReady",
        name="a volume cannot be mounted",
        before=set_faults(unmounted={1}),
        says=(
            "client 1 (pod a-client-1-0-",
            "is Pending: FailedMapVolume: MapVolume.SetUpDevice failed",
            "image not found",
        ),
    ),
    Case(
        reason="QuotaExceeded",
        name="a client makes no pod",
        before=set_faults(over_quota={1}),
        says=("client 1 (Job a-client-1-0) has no pod", "FailedCreate", "exceeded quota: few", "ResourceQuota"),
    ),
    Case(
        reason="QuotaExceeded",
        before=refuse("create PersistentVolumeClaim", lambda asked: ForbiddenError(asked, "exceeded quota: disks")),
        says=(
            "provisionSeconds (60 s)",
            "PersistentVolumeClaim bench/plimsoll-a-client-",
            "quota: disks",
            "volume.size",
        ),
    ),
    Case(
        reason="ApiRefused",
        before=refuse("create Job", lambda asked: InvalidError(asked, "denied by policy (status 422)")),
        says=("create Job bench/a-client-0-0: denied by policy (status 422)", "admission policy"),
    ),
    Case(
        reason="ApiRefused",
        name="the plan is refused",
        before=refuse("create ConfigMap", lambda asked: ForbiddenError(asked, "cannot create resource")),
        says=("provisionSeconds (60 s)", "create ConfigMap bench/a-plan", "cannot create resource", "ClusterRole"),
    ),
    Case(
        reason="ApiRefused",
        name="the StorageClasses may not be listed",
        before=refuse("list StorageClass", lambda asked: ForbiddenError(asked, "cannot list resource")),
        says=("provisionSeconds (60 s)", "list StorageClass", "cannot list resource", "ClusterRole"),
    ),
    Case(
        reason="ApiUnavailable",
        before=refuse("create Service ", lambda asked: TransientError(asked, "calling webhook", retry_after=60)),
        says=("create Service bench/a-conductor: calling webhook", "admission webhooks"),
    ),
    Case(
        reason="StorageClassNotFound",
        spec={"storage": {"storageClass": {"name": "absent"}, "volume": {"size": "1Gi"}}},
        says=("spec.storage.storageClass.name: StorageClass absent", "name an existing one: fast"),
    ),
    Case(
        reason="ResultsIncomplete",
        meanwhile=delete_a_result_at_the_end,
        says=("BenchmarkResult a-w-000 was deleted", "first conductor", "create the run again"),
    ),
    Case(reason="ResultsExist", before=leave_results, says=("a-w-000", "delete them", "rename")),
    Case(reason="NameTaken", before=take_the_plans_name, says=("ConfigMap a-plan", "rename the run")),
    Case(reason="InvalidSpec", spec={"timeouts": SHORT}, says=("spec.timeouts.totalSeconds", "raise it")),
    Case(
        reason="InvalidSpec",
        name="unknown field",
        spec={"repetitions": "many"},
        says=("spec.repetitions", "many"),
    ),
    Case(
        reason="GateClosed",
        meanwhile=fail_as(FailureReason.GATE_CLOSED),
        says=("as it was told",),
    ),
    Case(
        reason="CephOptionRefused",
        meanwhile=fail_as(FailureReason.CEPH_OPTION_REFUSED),
        says=("as it was told",),
    ),
    Case(
        reason="DisturbanceRefused",
        meanwhile=fail_as(FailureReason.DISTURBANCE_REFUSED),
        says=("as it was told",),
    ),
    Case(
        reason="CephClientTooOld",
        meanwhile=fail_as(FailureReason.CEPH_CLIENT_TOO_OLD),
        says=("as it was told",),
    ),
    Case(
        reason="CephTooOld",
        meanwhile=fail_as(FailureReason.CEPH_TOO_OLD),
        says=("as it was told",),
    ),
    Case(
        reason="ClusterTooFull",
        meanwhile=fail_as(FailureReason.CLUSTER_TOO_FULL),
        says=("as it was told",),
    ),
    Case(
        reason="ClusterAtRisk",
        meanwhile=fail_as(FailureReason.CLUSTER_AT_RISK),
        says=("as it was told",),
    ),
    Case(
        reason="QuotaReached",
        meanwhile=fail_as(FailureReason.QUOTA_REACHED),
        says=("as it was told",),
    ),
    Case(
        reason="PlanDamaged",
        meanwhile=damage_the_plan,
        says=("another version of Plimsoll froze it", "cannot read schemaVersion", "create it again"),
    ),
    Case(reason="PlanMissing", meanwhile=delete_the_plan, says=("plan was deleted", "create it again")),
    Case(reason="InvalidResults", before=give(Verdict.INVALID), says=("2 of 2 points", "What to do about")),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name or case.reason)
def test_a_run_fails_with_its_reason_in_time_and_is_taken_away(world: PretendWorld, case: Case) -> None:
    case.before(world)
    uid = world.create("a", **case.spec)
    for _ in range(400):
        case.meanwhile(world)
        world.round()
        if world.conditions(uid).get("Succeeded", {}).get("status") == "False":
            break
    ended = world.conditions(uid)["Succeeded"]
    assert (ended["status"], ended["reason"]) == ("False", case.reason)
    for words in case.says:
        assert words in ended["message"]
    assert len(ended["message"]) < 1000
    run = world.until_settled(uid)
    assert run is not None
    assert kstatus(run) == "Failed"
    assert world.conditions(uid)["Stalled"]["reason"] == case.reason
    left = {obj["kind"] for obj in world.cluster.kube.objects() if label(obj, naming.LABEL_RUN_UID) == uid}
    assert left <= {"BenchmarkResult", "ConfigMap", "Secret"}
    assert world.conditions(uid)["CleanedUp"]["reason"] == ("Removed" if left else "NothingCreated")


@pytest.mark.parametrize("verdict", [Verdict.VALID, Verdict.SUSPECT])
def test_a_run_succeeds_with_the_worst_of_its_verdicts(world: PretendWorld, verdict: Verdict) -> None:
    world.conductors.knobs.verdict = verdict
    uid = world.create("a")
    ended = world.until_ended(uid)
    assert (ended["status"], ended["reason"]) == ("True", verdict.value)
    run = world.until_settled(uid)
    assert run is not None
    assert kstatus(run) == "Current"
    assert run["status"]["display"]["verdict"] == verdict.value
    assert len(run["status"]["headline"]) == 2


def test_every_failure_of_a_conductor_is_a_reason_of_the_run(world: PretendWorld) -> None:
    assert {reason.value for reason in FailureReason} <= {case.reason for case in CASES}


def test_a_condition_says_what_is_waited_for_before_time_is_up(world: PretendWorld) -> None:
    world.cluster.faults.unschedulable = {1}
    uid = world.create("a")
    world.until(lambda: world.conditions(uid).get("ClientsReady", {}).get("reason") == "Unschedulable", rounds=8)
    assert "client 1" in world.conditions(uid)["ClientsReady"]["message"]
    assert world.conditions(uid)["Succeeded"]["status"] == "Unknown"


def test_a_brand_new_run_is_in_progress() -> None:
    new = make_run("a")
    new["metadata"]["generation"] = 1
    assert kstatus(new) == "InProgress"
