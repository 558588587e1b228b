"""One cluster for all deletions: an API server, the controllers and the operator, each a process of its own."""

import uuid
from collections.abc import Iterator

import pytest

from support.apiserver import operator_process
from support.pretend_conductor import Knobs
from support.served_world import ServedWorld, installed_world


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedWorld]:
    """Return a world in which an operator works."""
    directory = tmp_path_factory.mktemp("served")
    with installed_world(directory) as installed:
        config = installed.kubeconfig(directory / "operator.yaml")
        with operator_process(config, directory / "operator.log", **installed.environment):
            yield installed.world
        assert installed.world.complaints() == []


@pytest.fixture
def world(served: ServedWorld) -> Iterator[ServedWorld]:
    """Return the world, whose conductors do what they do by themselves, without what an earlier test found."""
    served.conductors.knobs = Knobs()
    served.cluster.early.clear()
    yield served
    assert served.complaints() == []


@pytest.fixture
def namespace(world: ServedWorld) -> str:
    """Return a new namespace."""
    name = f"test-{uuid.uuid4().hex[:8]}"
    world.cluster.kube.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    return name
