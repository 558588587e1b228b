"""A pretended cluster for each test."""

from collections.abc import Iterator

import pytest

from support.pretend_world import PretendWorld


@pytest.fixture
def world() -> Iterator[PretendWorld]:
    with PretendWorld() as world:
        yield world
