"""What a user can read while something does not come: at once, in the conditions, and no longer than it lasts."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from plimsoll.api.names import FailureReason, RunPhase
from plimsoll.api.reasons.reason import Reason
from plimsoll.api.status import Failure, RunState
from plimsoll.conductor import sink
from plimsoll.conductor.attempt import Timings
from plimsoll.kube import client
from plimsoll.kube.port import ForbiddenError
from plimsoll.lifecycle import naming
from plimsoll.lifecycle.children import Members
from plimsoll.lifecycle.observed import observe
from plimsoll.lifecycle.provisioning import LOAD_GONE_SECONDS
from plimsoll.lifecycle.refusals import Refusal, reason_of_words, refused_pod
from plimsoll.lifecycle.waiting import _conductor_failure
from plimsoll.plan.document import RunIdentity
from support.fake_kube import is_going
from support.pretend_cluster import KUBELET, label, role_of
from support.pretend_rook import ROOK
from support.pretend_world import LIBRBD, PretendWorld, run_of, until_trial
from support.pretend_world import create as create_on_ceph


def refuse(world: PretendWorld, request: str, words: str = "exceeded quota: few") -> None:
    """Have the API server refuse every request that begins like this, until further notice."""

    def interfere(asked: str) -> None:
        if asked.startswith(request):
            raise ForbiddenError(asked, words)

    world.cluster.kube.interfere = interfere


def relent(world: PretendWorld) -> None:
    world.cluster.kube.interfere = lambda _: None


def lose_client_node(world: PretendWorld, uid: str) -> str:
    """Take away the node of a client that is not the conductor's, and return its name."""
    conductors = {pod["spec"]["nodeName"] for pod in world.conductors.pods()}
    (node,) = {str(pod["spec"]["nodeName"]) for pod in world.client_pods(uid)} - conductors
    world.cluster.lose_node(node)
    return node


# -- conductors


def assert_waits_and_ends(world: PretendWorld, uid: str) -> None:
    """Check that a run whose conductor cannot come back waits for 50 s, and ends before two minutes."""
    lost = world.cluster.now
    for _ in range(5):
        world.look(uid)
        assert world.conditions(uid)["Succeeded"]["status"] == "Unknown"
        world.cluster.pass_time(10.0)
    ended = world.until_ended(uid)
    assert (ended["status"], ended["reason"]) == ("False", "QuotaExceeded")
    assert world.cluster.now - lost < timedelta(minutes=2)


@pytest.mark.fault(
    "Conductor and clients",
    "The conductor is killed and cannot be scheduled again",
    "while measuring",
    ends="`Unschedulable` with the scheduler's words while it waits; it continues when there is room",
    within="`timeouts.readySeconds`, after which the run ends",
)
def test_a_conductor_that_cannot_come_back_is_named_at_once_and_not_called_measuring(world: PretendWorld) -> None:
    uid = world.create("a")
    until_trial(world)
    world.until(lambda: world.conditions(uid)["Reconciling"]["reason"] == "Measuring")
    world.cluster.faults.unschedulable = {None}
    for pod in world.conductors.pods():
        world.conductors.kill(pod)
    world.until(lambda: world.conditions(uid)["Reconciling"]["reason"] == "Unschedulable", rounds=3)
    said = world.conditions(uid)
    assert "the conductor (pod a-conductor-" in said["Reconciling"]["message"]
    assert "Insufficient memory" in said["ClientsReady"]["message"]
    assert (said["ClientsReady"]["status"], said["Succeeded"]["status"]) == ("False", "Unknown")
    assert run_of(world, uid)["status"]["display"]["status"] == "Provisioning"
    world.cluster.faults.unschedulable = set()
    assert world.until_ended(uid)["status"] == "True"


def test_conductors_that_come_back_in_time_do_not_add_up_to_a_deadline(world: PretendWorld) -> None:
    uid = world.create("a")
    until_trial(world)
    for _ in range(3):
        world.cluster.pass_time(50)
        for pod in world.conductors.pods():
            world.conductors.kill(pod)
        until_trial(world)
    assert world.until_ended(uid)["status"] == "True"


def test_a_conductor_whose_pod_is_deleted_late_in_a_run_has_ready_seconds_to_come_back(world: PretendWorld) -> None:
    uid = world.create("a")
    until_trial(world)
    world.look(uid)
    world.cluster.pass_time(30 * 60.0)
    world.cluster.faults.over_quota = {None}
    for pod in world.conductors.pods():
        world.cluster.delete(pod)
        world.cluster.let_go(pod, KUBELET)
    assert_waits_and_ends(world, uid)


def test_a_conductor_whose_job_is_deleted_late_in_a_run_is_replaced(world: PretendWorld) -> None:
    uid = world.create("a")
    until_trial(world)
    world.look(uid)
    world.cluster.pass_time(30 * 60.0)
    (job,) = [job for job in world.cluster.of_run("Job", uid) if role_of(job) is None]
    world.cluster.delete(job)
    assert world.until_ended(uid)["status"] == "True"


@pytest.mark.fault(
    "Nodes",
    "The conductor's node fails and does not return",
    "while measuring",
    ends="`Succeeded=False`, `ConductorNotReady`: the message names the pod and the node",
    within="`timeouts.readySeconds` after its pod is evicted",
)
def test_a_conductor_on_a_dead_node_ends_the_run_in_time(world: PretendWorld) -> None:
    uid = world.create("a")
    until_trial(world)
    (pod,) = world.conductors.pods()
    world.cluster.lose_node(pod["spec"]["nodeName"])
    ended = world.until_ended(uid)
    assert (ended["status"], ended["reason"]) == ("False", "ConductorNotReady")
    for words in (pod["metadata"]["name"], pod["spec"]["nodeName"], "its node may be gone", "readySeconds (60 s)"):
        assert words in ended["message"]


@pytest.mark.fault(
    "Clocks",
    "The clocks of nodes are 20 minutes ahead or behind",
    "while the conductor's pod is replaced",
    ends="no deadline is shorter or longer",
    within="no delay",
)
@pytest.mark.parametrize("ahead", [timedelta(minutes=-20), timedelta(minutes=20)])
def test_the_clock_of_a_node_neither_shortens_nor_extends_the_wait_for_a_conductor(
    world: PretendWorld, ahead: timedelta
) -> None:
    world.cluster.faults.nodes_ahead = ahead
    uid = world.create("a")
    until_trial(world)
    world.cluster.pass_time(30 * 60.0)
    world.cluster.faults.over_quota = {None}
    for pod in world.conductors.pods():
        world.conductors.kill(pod)
    assert_waits_and_ends(world, uid)


def test_a_conductor_that_the_operator_cannot_understand_is_left_alone(world: PretendWorld) -> None:
    """An operator may be newer or older than the conductor of a run that is under way."""
    uid = world.create("a")
    until_trial(world)
    state = world.cluster.find("ConfigMap", "a-state")
    assert state is not None
    world.cluster.edit(state, lambda new: new["data"].update({"state.json": '{"schemaVersion": 2}'}))
    for _ in range(20):
        world.look(uid)
        world.cluster.pass_time(30.0)
    assert world.conditions(uid)["Succeeded"]["status"] == "Unknown"


# -- refusals


@pytest.mark.parametrize(
    "request_",
    ["create ConfigMap bench/a-", "create PersistentVolumeClaim bench/plimsoll-a-", "create Job bench/a-"],
)
def test_a_refusal_is_told_at_once_and_forgotten_when_it_is_over(world: PretendWorld, request_: str) -> None:
    refuse(world, request_)
    uid = world.create("a")
    world.until(lambda: world.conditions(uid).get("Reconciling", {}).get("reason") == "QuotaExceeded", rounds=4)
    said = world.conditions(uid)["Reconciling"]
    assert request_ in said["message"]
    assert "exceeded quota: few" in said["message"]
    assert "ResourceQuota" in said["message"]
    relent(world)
    world.until(lambda: world.conditions(uid)["Reconciling"]["reason"] != "QuotaExceeded", rounds=3)
    assert world.until_ended(uid)["status"] == "True"


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("insufficient quota to match these scopes: [{PriorityClass In [high]}]", "QuotaExceeded"),
        ("status unknown for quota: few, resources: pods", "QuotaExceeded"),
        ('admission webhook "quota.example" denied the request: no team label', "ApiRefused"),
        ('admission webhook "x" denied the request: label cost-center is needed for quota accounting', "ApiRefused"),
        ("no PriorityClass with name quota was found", "ApiRefused"),
        ("ValidatingAdmissionPolicy 'quota policy' denied request: no label", "ApiRefused"),
        ("pods \"quota-client-0\" is forbidden: ValidatingAdmissionPolicy 'quota' denied request: no", "ApiRefused"),
        ("Internal error occurred: resource quota evaluation timed out", "ApiUnavailable"),
        ("spec.template.spec.containers[0].resources.requests: must be less than or equal to cpu limit", "ApiRefused"),
        ("spec.containers[0].resources.requests: must be less than or equal to memory limit of 64Mi", "QuotaExceeded"),
    ],
)
def test_a_quota_is_named_by_what_is_said_and_not_by_names(words: str, reason: str) -> None:
    assert reason_of_words(words, passing=reason == "ApiUnavailable") == reason


def test_only_a_pod_that_cannot_be_created_is_refused(world: PretendWorld) -> None:
    """A Job that has failed warns too; events about all Jobs are read while one of them waits for its pod."""
    assert refused_pod("BackoffLimitExceeded: Job has reached the specified backoff limit") is None
    world.cluster.faults.over_quota = {1}
    uid = world.create("a")
    world.until(lambda: [pod["status"]["phase"] for pod in world.client_pods(uid)] == ["Running"])
    world.cluster.pass_time(1.0)
    (pod,) = world.client_pods(uid)
    world.cluster.delete(pod)
    world.cluster.let_go(pod, KUBELET)
    world.cluster.run_jobs()
    world.look(uid)
    ready = world.conditions(uid)["ClientsReady"]
    assert (ready["reason"], "BackoffLimitExceeded" in ready["message"]) == ("QuotaExceeded", True)


def test_a_refusal_that_stays_is_written_and_told_once(world: PretendWorld) -> None:
    refuse(world, "create Job")
    uid = world.create("a")
    world.until(lambda: world.conditions(uid).get("Reconciling", {}).get("reason") == "QuotaExceeded", rounds=4)
    world.round(1.0)
    world.round(1.0)
    events, before = world.operator.events.qsize(), world.run(uid)
    for _ in range(3):
        world.round(1.0)
    assert world.operator.events.qsize() == events
    assert world.run(uid) == before, "a status that is written again before actions is stored once"


def test_a_run_that_may_not_be_observed_says_so_and_goes_on(world: PretendWorld) -> None:
    uid = world.create("a")
    until_trial(world)
    refuse(world, "list Job", "cannot list resource")
    world.until(lambda: world.conditions(uid)["Reconciling"]["reason"] == "ApiRefused", rounds=3)
    assert "list Job" in world.conditions(uid)["Reconciling"]["message"]
    for _ in range(20):
        world.round(30.0)
    relent(world)
    assert world.until_ended(uid)["status"] == "True"


def test_a_client_that_quota_keeps_from_coming_back_is_explained(world: PretendWorld) -> None:
    uid = world.create("a")
    until_trial(world)
    world.cluster.faults.over_quota = {0}
    world.cluster.end(world.client_pods(uid)[0], 137)
    world.until(lambda: world.conditions(uid)["ClientsReady"]["reason"] == "QuotaExceeded", rounds=6)
    assert "client 0 (Job a-client-0-1) has no pod" in world.conditions(uid)["ClientsReady"]["message"]
    ended = world.until_ended(uid)
    assert ended["reason"] == "QuotaExceeded"
    assert "exceeded quota: few" in ended["message"]


def test_a_client_that_is_lost_before_a_conductor_starts_and_cannot_come_back_ends_the_run_in_time(
    world: PretendWorld,
) -> None:
    world.cluster.faults.unschedulable = {None}
    uid = world.create("a")
    world.until(lambda: any(role_of(job) is None for job in world.cluster.of_run("Job", uid)))
    world.cluster.faults.over_quota = {0}
    lost = world.cluster.now
    world.cluster.end(world.client_pods(uid)[0], 137)
    ended = world.until_ended(uid)
    assert "exceeded quota: few" in ended["message"]
    assert world.cluster.now - lost < timedelta(minutes=3)


def test_a_refused_client_is_not_the_cause_of_another_failure(world: PretendWorld) -> None:
    uid = world.create("a")
    until_trial(world)
    world.cluster.faults.over_quota = {0}
    world.cluster.end(world.client_pods(uid)[0], 137)
    world.until(lambda: world.conditions(uid)["ClientsReady"]["reason"] == "QuotaExceeded", rounds=6)
    world.conductors.knobs.fails[uid] = FailureReason.CLUSTER_AT_RISK
    ended = world.until_ended(uid)
    assert ended["reason"] == "ClusterAtRisk"


@pytest.mark.parametrize(("asked", "reason"), [("create Job n/a", "ApiRefused"), ("delete Pod n/a", "ClientsNotReady")])
def test_a_deletion_that_is_refused_is_told_and_not_why_a_client_is_missing(asked: str, reason: str) -> None:
    seen = replace(
        observe([], run=RunIdentity(name="a", namespace="n", uid="u"), members=Members()),
        state=RunState(failure=Failure(reason=FailureReason.CLIENTS_NOT_READY, message="no client 0"), missing=(0,)),
        refusal=Refusal(asked=asked, reason=Reason.API_REFUSED, words="denied"),
    )
    ending = _conductor_failure(seen)
    assert ending is not None
    assert (ending.reason, f"could not {asked}: denied" in ending.message) == (reason, True)


def test_what_the_api_refuses_is_part_of_the_conductors_last_word(world: PretendWorld) -> None:
    uid = world.create("a")
    until_trial(world)
    refuse(world, "create Job", "denied by policy")
    world.cluster.end(world.client_pods(uid)[0], 137)
    ended = world.until_ended(uid)
    assert ended["reason"] == "ApiRefused"
    assert "create Job bench/a-client-0-1: denied by policy" in ended["message"]


def test_a_run_that_has_ended_keeps_its_word_while_it_may_not_be_observed(world: PretendWorld) -> None:
    uid = world.create("a", cleanup="Never")
    world.until_settled(uid)
    before = world.conditions(uid)
    refuse(world, "list Job", "cannot list resource")
    world.round()
    assert world.conditions(uid) == before


# -- removal


def test_the_removal_of_a_deleted_run_can_be_followed(world: PretendWorld) -> None:
    uid = world.create("a")
    until_trial(world)
    node = lose_client_node(world, uid)
    world.cluster.delete(run_of(world, uid))
    world.until(lambda: "CleanedUp" in world.conditions(uid), rounds=3)
    said = world.conditions(uid)
    assert (said["CleanedUp"]["status"], said["CleanedUp"]["reason"]) == ("False", "InProgress")
    assert node in said["CleanedUp"]["message"]
    assert said["Reconciling"]["reason"] == "CleaningUp"
    assert run_of(world, uid)["status"]["display"]["status"] == "CleaningUp"
    assert run_of(world, uid)["status"]["startTime"]
    world.cluster.faults.dead_nodes.clear()
    world.until(lambda: world.run(uid) is None)


@pytest.mark.parametrize("deleted", [False, True])
def test_a_removal_that_is_refused_says_so(world: PretendWorld, *, deleted: bool) -> None:
    uid = world.create("a")
    until_trial(world)
    refuse(world, "delete Job", "denied by policy")
    if deleted:
        world.cluster.delete(run_of(world, uid))
    world.until(lambda: world.conditions(uid).get("CleanedUp", {}).get("reason") == "ApiRefused")
    message = world.conditions(uid)["CleanedUp"]["message"]
    assert "delete Job bench/a-" in message
    assert "denied by policy" in message
    relent(world)
    world.until_settled(uid)
    world.until(lambda: world.run(uid) is None or world.conditions(uid)["CleanedUp"]["status"] == "True")


@pytest.mark.fault(
    "Nodes",
    "The node of a client fails and does not return",
    "while cleaning up",
    ends="`CleanedUp=False`, `NodeGone`, until the node returns or is deleted; the next run of the target begins",
    within="5 minutes after the pods should be gone",
)
@pytest.mark.parametrize("deleted", [False, True])
def test_a_dead_node_holds_back_its_run_for_good_and_the_next_only_for_a_while(
    world: PretendWorld, *, deleted: bool
) -> None:
    first = world.create("a")
    until_trial(world)
    node = lose_client_node(world, first)
    lost_at = world.cluster.now
    if deleted:
        world.cluster.delete(run_of(world, first))
    second = world.create("b", clients={"count": 1})
    messages: list[str] = []

    def is_overdue() -> bool:
        messages.append(world.conditions(first).get("CleanedUp", {}).get("message", ""))
        return "pods on an unresponsive node remain" in messages[-1]

    world.until(is_overdue)
    # Pods that were evicted before are overdue from the beginning.
    assert not deleted or any(f"are stopping on {node}" in message for message in messages[:-1])
    world.until(lambda: world.conditions(second).get("Admitted", {}).get("status") == "True")
    assert (world.cluster.now - lost_at).total_seconds() > LOAD_GONE_SECONDS
    said = world.conditions(first)["CleanedUp"]
    assert (said["status"], said["reason"]) == ("False", "NodeGone")
    assert node in said["message"]
    assert any(is_going(pod) for pod in world.client_pods(first))
    assert world.until_ended(second)["status"] == "True"
    world.cluster.faults.dead_nodes.clear()
    world.until(lambda: world.run(first) is None or world.conditions(first)["CleanedUp"]["status"] == "True")
    assert not world.client_pods(first)


def test_when_load_counts_as_gone_the_slowest_to_notice_has_noticed() -> None:
    """A conductor and agents that are cut off together: it cannot write, leaves, and they hear of none."""
    assert client._TIMEOUT.total is not None
    pulse = sink.KubeSink.pulse_seconds
    notices = pulse + sink.RETRY_SECONDS + client._TIMEOUT.total
    leaves = notices + pulse
    assert leaves + Timings().silence + Timings().linger < LOAD_GONE_SECONDS


def test_a_conductor_that_no_kubelet_ends_is_refused_in_time() -> None:
    """Its node's kubelet is dead, and its run is not deleted: it still has its rights, and a token until then."""
    assert client._TIMEOUT.total is not None
    # Source: Kubernetes, pkg/serviceaccount/claims.go (`jwt.DefaultLeeway`), and the cache of the authenticator.
    accepted = 60 + 10
    leaves = accepted + 2 * sink.KubeSink.pulse_seconds + client._TIMEOUT.total
    assert leaves + Timings().silence + Timings().linger < LOAD_GONE_SECONDS


# -- deletion and restarts, wherever a run is


def suspended(world: PretendWorld, uid: str) -> None:
    until_trial(world)
    world.change(uid, suspend=True)
    world.until_settled(uid)


def suspended_at_creation(world: PretendWorld, uid: str) -> None:
    world.change(uid, suspend=True)
    world.until_settled(uid)


def cleaning_up(world: PretendWorld, uid: str) -> None:
    world.until(lambda: world.conditions(uid).get("CleanedUp", {}).get("reason") == "InProgress")


def waiting(world: PretendWorld, uid: str) -> None:
    world.until(lambda: world.conditions(uid).get("Admitted", {}).get("reason") == "WaitingForTurn")


def refused(world: PretendWorld, uid: str) -> None:
    refuse(world, "create Job")
    world.until(lambda: world.conditions(uid).get("Reconciling", {}).get("reason") == "QuotaExceeded")


def reasons(world: PretendWorld, uid: str) -> dict[str, tuple[str, str]]:
    return {kind: (said["status"], said["reason"]) for kind, said in world.conditions(uid).items()}


Reach = Callable[[PretendWorld, str], None]


@pytest.mark.parametrize("reach", [suspended, suspended_at_creation, cleaning_up, refused])
@pytest.mark.parametrize("foreground", [False, True])
def test_a_run_can_be_deleted_where_it_rests_or_is_held_up(
    world: PretendWorld, reach: Reach, *, foreground: bool
) -> None:
    uid = world.create("a")
    reach(world, uid)
    world.cluster.delete(run_of(world, uid), foreground=foreground)
    world.until(lambda: world.run(uid) is None)
    world.round()
    assert world.cluster.of_run("Pod", uid) == []
    assert world.cluster.of_run("PersistentVolumeClaim", uid) == []


@pytest.mark.fault(
    "Operator",
    "The operator is killed",
    "wherever a run waits",
    ends="the next operator shows the same conditions, and the run continues",
    within="16 s",
)
@pytest.mark.parametrize("reach", [suspended, waiting, cleaning_up, refused])
def test_an_operator_that_is_killed_is_followed_by_one_that_sees_the_same(world: PretendWorld, reach: Reach) -> None:
    if reach is waiting:
        world.create("before")
        until_trial(world)
    uid = world.create("a")
    reach(world, uid)
    before = reasons(world, uid)
    world.restart_operator()
    world.operator.watch_all()
    world.look(uid)
    assert reasons(world, uid) == before
    relent(world)
    world.change(uid, suspend=False)
    assert world.until_ended(uid)["status"] == "True"


def test_a_measured_run_waits_for_its_conductor_only_if_that_has_changed_ceph(world: PretendWorld) -> None:
    world.conductors.knobs.stays = RunPhase.COMPLETE
    runs = {world.create("a"): True, create_on_ceph(world, "b", volume=LIBRBD, rook=ROOK): False}
    world.until_ended(next(iter(runs)))
    for _ in range(20):
        world.round()
    assert {uid: world.conditions(uid)["Succeeded"]["status"] == "True" for uid in runs} == runs


def test_a_conductor_takes_no_clients_place_on_a_node(world: PretendWorld) -> None:
    def has_conductor() -> bool:
        return any(label(job, naming.LABEL_COMPONENT) == naming.CONDUCTOR for job in world.cluster.of_run("Job", uid))

    world.cluster.faults.unschedulable = {1}
    uid = world.create("a")
    world.until(has_conductor)
    world.until(lambda: not has_conductor())
    for _ in range(5):
        world.round()
        assert not has_conductor()
    world.cluster.faults.unschedulable = set()
    assert world.until_ended(uid)["status"] == "True"
