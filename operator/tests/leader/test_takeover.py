"""An operator follows the one that led, whatever happens to that one, and nothing is made twice."""

import time
import uuid

import pytest

from leader.operators import LEASE, SECONDS, AuditLog, Line, OperatorProcess, StartOperator
from plimsoll.api.names import RunPhase
from support.served_world import Installed, ServedWorld, path_of
from support.specs import document, suite_document

pytestmark = [pytest.mark.crd, pytest.mark.timeout(400)]

WAYS = [
    ("stopped", "Preparing"),
    ("killed", "CleaningUp"),
    ("frozen", "Measuring"),
    ("cut off", "Measuring"),
]
FOLLOWS_SECONDS = 60  # on a machine that is busy with other tests


@pytest.fixture
def world(installed: Installed) -> ServedWorld:
    return installed.world


@pytest.fixture
def namespace(world: ServedWorld) -> str:
    """Return a new namespace, and a StorageClass of that name."""
    name = f"test-{uuid.uuid4().hex[:8]}"
    world.cluster.kube.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    world.make_storage_class(name)
    return name


def reach(world: ServedWorld, namespace: str, phase: str) -> None:
    """Bring a run into a phase, in which it stays if possible."""
    world.conductors.knobs.stays = RunPhase(phase) if phase != "CleaningUp" else None
    storage = {"storageClass": {"name": namespace}, "volume": {"size": "64Mi", "mode": "Filesystem"}}
    run = document(storage=storage, repetitions=2, prepare={"settleSeconds": 0})
    world.create(run | {"metadata": {"name": "r", "namespace": namespace}})
    if phase == "CleaningUp":
        world.until_condition(namespace, "r", "Succeeded", status="True")
    else:
        world.until_phase(namespace, "r", RunPhase(phase))


def both(world: ServedWorld, start: StartOperator, port: int | None = None) -> tuple[OperatorProcess, OperatorProcess]:
    """Return the operator that leads, and the one that waits."""
    leader = start(port)
    world.until(lambda: leader.leads, "the first operator leads")
    follower = start()
    world.until(lambda: follower.is_ready, "the second operator waits")
    return leader, follower


@pytest.mark.fault(
    "Operator",
    "The leading operator is stopped, killed, frozen, or cut off from the API server",
    "while a run prepares, measures or cleans up",
    ends=(
        "another operator takes over, the measurement continues, and nothing is created twice; a former leader that "
        "resumes exits without a change"
    ),
    within="16 s; a few seconds if it is stopped",
)
@pytest.mark.parametrize(("way", "phase"), WAYS)
def test_the_next_operator_follows_and_makes_nothing_twice(
    world: ServedWorld, namespace: str, start: StartOperator, audit: AuditLog, line: Line, way: str, phase: str
) -> None:
    leader, follower = both(world, start, line.port if way == "cut off" else None)
    reach(world, namespace, phase)
    assert follower.gauge() == "0.0"
    begun = time.monotonic()
    match way:
        case "stopped":
            leader.stop()
            assert leader.wait() == 0, leader.log()
        case "killed":
            leader.kill()
        case "frozen":
            leader.freeze()
        case _:
            line.cut()
    world.until(lambda: follower.leads, "the next operator follows")
    passed = time.monotonic() - begun
    print(f"{way} in {phase}: followed within {passed:.1f} s with a Lease of {SECONDS} s")  # noqa: T201 - to be read
    assert passed < FOLLOWS_SECONDS
    world.conductors.knobs.stays = None
    world.until_condition(namespace, "r", "Succeeded", status="True")
    world.until_condition(namespace, "r", "CleanedUp", status="True")
    assert not world.in_use(namespace)
    repeated = {name: times for name, times in audit.created().items() if times > 1}
    assert repeated == {}
    if way == "cut off":
        assert leader.wait() == 1
    if way == "frozen":
        _wake(world, namespace, leader, audit)
    for operator in (leader, follower):
        assert "Traceback" not in operator.log()


def _wake(world: ServedWorld, namespace: str, leader: OperatorProcess, audit: AuditLog) -> None:
    """Check that a leader that was frozen changes nothing when it wakes up."""
    path = path_of("BenchmarkRun", namespace, "r")
    before, changes = world.api.request("GET", path).expect(200), audit.changes()
    leader.wake()
    assert leader.wait() == 1
    assert "the operator exits at once" in leader.log()
    assert world.api.request("GET", path).expect(200) == before
    assert audit.changes() == changes


@pytest.mark.fault(
    "Operator",
    "The leading operator is killed",
    "between two runs of a suite",
    ends="another operator creates the next run; no run is created twice",
    within="16 s",
)
def test_a_suite_between_two_runs_goes_on(
    world: ServedWorld, namespace: str, start: StartOperator, audit: AuditLog
) -> None:
    """Its runs fail at once, as their StorageClass does not exist."""
    leader, follower = both(world, start)
    suite = suite_document("s", repeat=2)
    world.cluster.kube.put(suite | {"metadata": {"name": "s", "namespace": namespace}})
    runs = path_of("BenchmarkRun", namespace)
    world.until(lambda: world.api.request("GET", runs).expect(200)["items"], "the first run exists")
    leader.kill()
    path = path_of("BenchmarkSuite", namespace, "s")
    world.until(lambda: world.api.request("GET", path).expect(200).get("status", {}).get("rounds"), "the round ended")
    assert follower.leads
    created = {name: times for name, times in audit.created().items() if name.startswith("benchmarkruns")}
    assert set(created.values()) == {1}
    assert len(created) == 4


@pytest.mark.fault(
    "Operator",
    "The operator may not use the Lease",
    "before it leads",
    ends="it is not ready, logs which rights are missing, and leads once it has them",
    within="a few seconds after it has them",
)
def test_without_rights_to_the_lease_an_operator_waits_and_says_which(
    world: ServedWorld, installed: Installed, start: StartOperator
) -> None:
    namespace, _, name = LEASE.partition("/")
    binding = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings/{name}-lease"
    document = world.api.request("GET", binding).expect(200)
    world.api.request("DELETE", binding).expect(200)
    try:
        operator = start()
        world.until(lambda: "bind a Role that may create leases" in operator.log(), "it says what is missing")
        assert operator.gauge() == "0.0"
    finally:
        document["metadata"] = {key: document["metadata"][key] for key in ("name", "namespace", "labels")}
        world.api.request("POST", binding.rpartition("/")[0], document).expect(201)
    world.until(lambda: operator.leads, "it leads")
