"""The course of a run from its creation to its end, in a pretended cluster."""

from collections.abc import Iterator

import pytest

from support.pretend_world import PretendWorld


@pytest.fixture
def world() -> Iterator[PretendWorld]:
    with PretendWorld() as world:
        yield world


def test_a_run_is_measured_and_leaves_nothing_but_results(world: PretendWorld) -> None:
    uid = world.create("a")
    run = world.until_settled(uid)
    assert run is not None
    assert world.conditions(uid)["Succeeded"]["status"] == "True"
    assert run["status"]["points"] == {"total": 2, "completed": 2, "invalid": 0}
    assert {obj["kind"] for obj in world.cluster.kube.objects()} == {
        "BenchmarkResult",
        "BenchmarkRun",
        "ConfigMap",
        "Namespace",
        "Secret",
    }
