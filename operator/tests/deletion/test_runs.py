"""Runs on an existing StorageClass are deleted at any time and in any way, and leave nothing.

e2e/tests does the same on real nodes in the other ways.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import count, islice
from pathlib import Path

import pytest

from plimsoll.api.names import RunPhase
from support.apiserver import read_yamls
from support.served_world import ServedWorld, path_of
from support.specs import document

pytestmark = [pytest.mark.crd, pytest.mark.timeout(300)]

CASES = [
    ("Waiting", "foreground"),
    ("Waiting", "namespace"),
    ("Provisioning", "background"),
    ("Provisioning", "namespace"),
    ("Suspended", "foreground"),
    ("CleaningUp", "background"),
    ("CleaningUp", "namespace"),
    ("Finished", "foreground"),
]
CLEAN = {"Removed", "StorageKept", "NothingCreated"}


@pytest.fixture
def storage_class(world: ServedWorld, namespace: str) -> Iterator[str]:
    """Return a StorageClass for one test: runs on the same one take turns."""
    found = world.make_storage_class(namespace)
    yield namespace
    world.cluster.delete(found)


def create(world: ServedWorld, name: str, namespace: str) -> None:
    """Create a run on the StorageClass of its namespace's name."""
    storage = {"storageClass": {"name": namespace}, "volume": {"size": "64Mi", "mode": "Filesystem"}}
    run = document(storage=storage, repetitions=2, prepare={"settleSeconds": 0})
    world.create(run | {"metadata": {"name": name, "namespace": namespace}})


def reach(world: ServedWorld, namespace: str, phase: str) -> None:
    """Bring a run into a phase."""
    world.conductors.knobs.stays = None if phase in {"CleaningUp", "Finished"} else RunPhase.MEASURING
    if phase == "Waiting":
        create(world, "before", namespace)
        world.until_condition(namespace, "before", "Admitted", status="True")
    create(world, "doomed", namespace)
    match phase:
        case "Waiting":
            world.until_condition(namespace, "doomed", "Reconciling", reason="WaitingForTurn")
        case "Provisioning":
            world.until(lambda: world.exist("Job", namespace), "there are Jobs")
        case "Suspended":
            world.until_phase(namespace, "doomed", RunPhase.MEASURING)
            world.suspend(namespace, "doomed")
            world.until_condition(namespace, "doomed", "Suspended", status="True")
        case "CleaningUp":
            world.until_condition(namespace, "doomed", "Succeeded", status="True")
        case _:
            world.until(lambda: is_over(world, namespace), "the run is terminal and clean")


def is_over(world: ServedWorld, namespace: str) -> bool:
    ended, cleaned = (world.condition(namespace, "doomed", kind) for kind in ("Succeeded", "CleanedUp"))
    return ended.get("status") in {"True", "False"} and cleaned.get("reason") in CLEAN


@pytest.mark.usefixtures("storage_class")
@pytest.mark.parametrize(("phase", "way"), CASES)
def test_a_deleted_run_leaves_nothing(world: ServedWorld, namespace: str, phase: str, way: str) -> None:
    reach(world, namespace, phase)
    if way != "namespace" and phase == "Waiting":
        world.delete(namespace, "before", way="background")
    world.delete(namespace, "doomed", way=way)
    if way == "background":
        assert world.in_use(namespace) == [], "the run is gone only after what it used"
    world.until(lambda: not world.leftovers(namespace), "the garbage collector is done")
    world.until(lambda: not world.results(namespace), "the results are gone")
    world.until(lambda: not world.volumes(namespace), "the volumes are gone")


DONE = {"started": "2026-01-01T00:00:00", "stopped": "2026-01-01T00:00:01", "purpose": "delete", "success": True}
LATER = {"started": "2026-01-01T00:00:00", "delayed": "2099-01-01T00:00:00", "purpose": "delete", "retries": 1}


@pytest.mark.usefixtures("storage_class")
@pytest.mark.parametrize("progress", [json.dumps(DONE), json.dumps(LATER), "{not json"])
def test_nothing_that_users_annotate_skips_or_delays_a_teardown(
    world: ServedWorld, namespace: str, progress: str
) -> None:
    """kopf would keep its progress, and what it has handled last, in these annotations."""
    reach(world, namespace, "Provisioning")
    annotations = {"plimsoll.dev/remove": progress, "plimsoll.dev/last-handled": progress}
    path = path_of("BenchmarkRun", namespace, "doomed")
    change = {"metadata": {"annotations": annotations}}
    world.api.request("PATCH", path, change, content="application/merge-patch+json").expect(200)
    world.delete(namespace, "doomed", way="background")
    assert world.in_use(namespace) == []


@pytest.mark.usefixtures("storage_class")
def test_a_run_that_is_changed_all_the_time_starts_with_its_finalizer_and_is_torn_down(
    world: ServedWorld, namespace: str
) -> None:
    """Each change may make a patch of the operator too late, and is an event that nothing may collect."""
    path, numbers = path_of("BenchmarkRun", namespace, "doomed"), count()

    def changes(holds: Callable[[], bool]) -> bool:
        for number in islice(numbers, 20):
            change = {"metadata": {"annotations": {"example.com/number": str(number)}}}
            world.api.request("PATCH", path, change, content="application/merge-patch+json")
        return holds()

    world.conductors.knobs.stays = RunPhase.MEASURING
    create(world, "doomed", namespace)
    world.until(lambda: changes(lambda: world.exist("Job", namespace)), "there are Jobs")
    assert world.api.request("GET", path).body["metadata"]["finalizers"] == ["plimsoll.dev/teardown"]
    world.api.request("DELETE", path).expect(200)
    world.until(lambda: changes(lambda: world.api.request("GET", path).code == 404), "the run is gone")
    assert world.in_use(namespace) == []


def test_what_is_created_for_a_run_that_does_not_exist_is_garbage(world: ServedWorld, namespace: str) -> None:
    """Policies cannot tell whether a UID exists: somebody with the operator's token may invent one."""
    text = (Path(__file__).parents[1] / "golden" / "render" / "filesystem.yaml").read_text()
    text = text.replace("namespace: bench", f"namespace: {namespace}")
    text = text.replace("--namespace=bench", f"--namespace={namespace}")
    objects = read_yamls(text.replace("image: runner:1", "image: plimsoll-runner:0.1.0"))
    paths = [f"{path_of(obj['kind'], namespace)}/{obj['metadata']['name']}" for obj in objects]
    with closing(world.api.as_user("system:serviceaccount:plimsoll-system:plimsoll")) as operator:
        for obj in objects:
            operator.request("POST", path_of(obj["kind"], namespace), obj).expect(201)
    world.until(lambda: all(world.api.request("GET", path).code == 404 for path in paths), "they are gone")
