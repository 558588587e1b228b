"""A simulated cluster for each test, and a program with kstatus."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.pretend_world import PretendWorld


@pytest.fixture
def world() -> Iterator[PretendWorld]:
    with PretendWorld() as world:
        yield world


@pytest.fixture(scope="session")
def kstatus_program() -> Path:
    """Return the path of a program that prints the kstatus of an object."""
    named = os.environ.get("PLIMSOLL_KSTATUS", "")
    if not named or not os.access(named, os.X_OK):
        pytest.fail(f"PLIMSOLL_KSTATUS={named} is no program; PLIMSOLL_KSTATUS=$(hack/tool.sh kstatus)", pytrace=False)
    return Path(named)
