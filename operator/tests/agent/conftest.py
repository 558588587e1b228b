"""A simulated host."""

from pathlib import Path

import pytest

from support.agents import HostTree


@pytest.fixture
def tree(tmp_path: Path) -> HostTree:
    return HostTree(tmp_path / "host")
