"""One cluster for all deletions: an API server, the controllers and the operator, each a process of its own."""

import os
import uuid
from collections.abc import Iterator

import pytest

from support.apiserver import Binaries, running_apiserver
from support.pretend_conductor import Knobs
from support.served_world import ServedWorld, served_world


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedWorld]:
    directory = tmp_path_factory.mktemp("served")
    binaries = Binaries.find(os.environ)
    with running_apiserver(binaries, directory) as api, served_world(api, binaries, directory) as world:
        yield world


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
    world.make_namespace(name)
    return name
