"""Without the API server or a node, a run continues or ends in time, measures each trial once, and leaves nothing."""

from collections import Counter
from itertools import count

import pytest

from plimsoll.agent.agent import EXIT_SILENCE
from plimsoll.api.names import RunPhase
from plimsoll.api.status import STATE_FILE, RunState
from plimsoll.kube.port import READ_SECONDS, TransientError
from support.pretend_cluster import Document, phase
from support.pretend_world import PretendWorld, create, kinds_of, until_trial

PHASES = ("Pending", "Provisioning", "Preparing", "Measuring", "CleaningUp")
KILLED = 137
DOCUMENTS = {"BenchmarkResult", "ConfigMap", "Secret"}
"""What a run keeps until it is deleted."""

_LOOK_SECONDS = 5.0
_ENDS_SECONDS = 180


@pytest.fixture(params=["StorageClass", "Rook"])
def uid(world: PretendWorld, request: pytest.FixtureRequest) -> str:
    """Return a run with the default timeouts."""
    return create(world, timeouts={}) if request.param == "Rook" else world.create("a", timeouts={})


def reach(world: PretendWorld, uid: str, stage: str) -> None:
    def conductors_phase() -> str:
        texts = [obj["data"].get(STATE_FILE) for obj in world.cluster.of_run("ConfigMap", uid)]
        return next((RunState.model_validate_json(text).phase.value for text in texts if text), "")

    match stage:
        case "Provisioning":
            world.cluster.faults.silent = {0, 1, None}
            world.until(lambda: world.client_pods(uid))
            world.cluster.faults.silent = set()
        case "Preparing":
            world.conductors.knobs.stays = RunPhase.PREPARING
            world.until(lambda: conductors_phase() == "Preparing")
            world.conductors.knobs.stays = None
        case "Measuring":
            until_trial(world)
        case "CleaningUp":
            world.until_ended(uid)


def take_api_server_away(world: PretendWorld, uid: str, seconds: float) -> None:
    """Let the operator look in vain, while nobody else can do anything either."""

    def refuse(asked: str) -> None:
        raise TransientError(asked, "Cannot connect to host")

    world.cluster.kube.interfere = refuse
    begun = world.cluster.now
    while (world.cluster.now - begun).total_seconds() < seconds:
        world.look(uid)
        world.cluster.pass_time(_LOOK_SECONDS)
    world.cluster.kube.interfere = lambda _: None


def end_programs(world: PretendWorld, uid: str) -> None:
    """End a conductor that cannot write, and the agents that get no answer from it, as kubelets report it later."""
    for pod in world.conductors.pods():
        world.cluster.end(pod, 1, "patch ConfigMap bench/a-state: Cannot connect to host")
    for pod in world.client_pods(uid):
        if phase(pod) == "Running":
            world.cluster.end(pod, EXIT_SILENCE)


def attempts(world: PretendWorld, uid: str) -> list[Document]:
    results = world.cluster.of_run("BenchmarkResult", uid)
    return [trial for result in results for trial in result.get("status", {}).get("trials", [])]


def aborts(world: PretendWorld, uid: str) -> list[str]:
    return [trial["abort"]["reason"] for trial in attempts(world, uid) if "abort" in trial]


def assert_measured_once_and_clean(world: PretendWorld, uid: str) -> None:
    """Check that a run ends soon, has each trial of two points and two passes once, and leaves only its documents."""
    begun = world.cluster.now
    assert world.until_ended(uid)["status"] == "True"
    world.until_settled(uid)
    assert (world.cluster.now - begun).total_seconds() <= _ENDS_SECONDS
    measured = Counter(trial["passNumber"] for trial in attempts(world, uid) if trial["outcome"] == "Measured")
    assert measured == {0: 2, 1: 2}
    assert kinds_of(world, uid) == DOCUMENTS


@pytest.mark.fault(
    "API server",
    "No answer for 60 s",
    "in each phase of a run",
    ends="`Succeeded=True`; the measurement continues meanwhile, and each trial is measured once",
    within="3 minutes after it answers again",
)
@pytest.mark.parametrize("stage", PHASES)
def test_a_short_outage_costs_no_trial(world: PretendWorld, uid: str, stage: str) -> None:
    reach(world, uid, stage)
    take_api_server_away(world, uid, 60)
    assert_measured_once_and_clean(world, uid)
    assert aborts(world, uid) == []


@pytest.mark.fault(
    "API server",
    "No answer for 10 minutes",
    "in each phase but the provisioning",
    ends=(
        "`Succeeded=True`; a conductor that cannot write for 60 s exits, its agents follow, and all are replaced: the "
        "trial in flight is aborted (`ConductorRestarted`) and repeated"
    ),
    within="3 minutes after it answers again",
)
@pytest.mark.parametrize("seconds", [60, 600])
@pytest.mark.parametrize("stage", [stage for stage in PHASES if stage != "Provisioning"])
def test_an_outage_that_ends_the_programs_costs_one_attempt(
    world: PretendWorld, uid: str, stage: str, seconds: int
) -> None:
    reach(world, uid, stage)
    take_api_server_away(world, uid, seconds)
    end_programs(world, uid)
    assert_measured_once_and_clean(world, uid)
    assert aborts(world, uid) == (["ConductorRestarted"] if stage == "Measuring" else [])


@pytest.mark.fault(
    "API server",
    "No answer for 10 minutes",
    "while the clients' pods start",
    ends="`Succeeded=False`, `ClientsNotReady`: the outage has used up `timeouts.provisionSeconds` (600 s by default)",
    within="15 s after it answers again",
)
def test_an_outage_as_long_as_provision_seconds_ends_the_run(world: PretendWorld, uid: str) -> None:
    reach(world, uid, "Provisioning")
    take_api_server_away(world, uid, 600)
    begun = world.cluster.now
    ended = world.until_ended(uid)
    assert (ended["status"], ended["reason"]) == ("False", "ClientsNotReady")
    assert "timeouts.provisionSeconds (600 s)" in ended["message"]
    assert (world.cluster.now - begun).total_seconds() <= 15
    world.until_settled(uid)
    assert kinds_of(world, uid) == DOCUMENTS


@pytest.mark.fault(
    "API server",
    "One request of the operator in twenty, or in five, fails",
    "from the creation of a run until it is clean",
    ends="`Succeeded=True`; the operator repeats the single request, and each trial is measured once",
    within="3 minutes, of which a run on Rook takes two without failures",
)
@pytest.mark.parametrize("period", [20, 5])
def test_refused_requests_hardly_delay_a_run(world: PretendWorld, uid: str, period: int) -> None:
    kube, numbers = world.cluster.kube, count(1)

    def refuse(asked: str) -> None:
        if next(numbers) % period == 0:
            raise TransientError(asked, "status 500")

    kube.interfere, kube.read_seconds = refuse, READ_SECONDS
    assert_measured_once_and_clean(world, uid)
    assert aborts(world, uid) == []


def node_of(world: PretendWorld, uid: str, of: str) -> str:
    pods = world.conductors.pods() if of == "conductor" else world.client_pods(uid)[-1:]
    return str(pods[0]["spec"]["nodeName"])


def pods_on(world: PretendWorld, uid: str, node: str) -> list[Document]:
    pods = world.cluster.of_run("Pod", uid)
    return [pod for pod in pods if pod["spec"].get("nodeName") == node and phase(pod) == "Running"]


@pytest.mark.fault(
    "Nodes",
    "A node is drained, with the conductor or a client",
    "while measuring",
    ends="`Succeeded=True`; the pods start elsewhere, and the trial in flight is aborted (`Interrupted`, `ClientLost`)",
    within="3 minutes",
)
@pytest.mark.parametrize(("of", "reason"), [("conductor", "Interrupted"), ("client", "ClientLost")])
def test_a_drained_node_costs_one_attempt(world: PretendWorld, uid: str, of: str, reason: str) -> None:
    reach(world, uid, "Measuring")
    for pod in pods_on(world, uid, node_of(world, uid, of)):
        world.cluster.delete(pod)
    assert_measured_once_and_clean(world, uid)
    assert aborts(world, uid) == [reason]


@pytest.mark.fault(
    "Nodes",
    "A worker reboots and is back after a minute, with the conductor or a client",
    "while measuring",
    ends="`Succeeded=True`; its pods are replaced, and the trial is aborted (`ConductorRestarted`, `ClientLost`)",
    within="3 minutes after it is back",
)
@pytest.mark.parametrize(("of", "reason"), [("conductor", "ConductorRestarted"), ("client", "ClientLost")])
def test_a_rebooted_node_costs_one_attempt(world: PretendWorld, uid: str, of: str, reason: str) -> None:
    reach(world, uid, "Measuring")
    node = node_of(world, uid, of)
    ended = pods_on(world, uid, node)
    world.cluster.faults.dead_nodes.add(node)
    begun = world.cluster.now
    while (world.cluster.now - begun).total_seconds() < 60:
        world.round()
    world.cluster.faults.dead_nodes.clear()
    for pod in ended:
        world.cluster.end(pod, KILLED)
    assert_measured_once_and_clean(world, uid)
    assert aborts(world, uid) == [reason]
