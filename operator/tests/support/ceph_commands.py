"""Commands on a pretended Ceph, from a test's own process."""

from pathlib import Path

import pytest

from plimsoll.conductor.ceph.commands import Commands
from support.pretended_ceph import PretendedCeph


def pretend_ceph(directory: Path, monkeypatch: pytest.MonkeyPatch) -> PretendedCeph:
    """Return a cluster that all commands talk to until the test ends."""
    pretended = PretendedCeph(directory)
    for name, value in pretended.environment.items():
        monkeypatch.setenv(name, value)
    return pretended


async def run_ceph(*arguments: str) -> str:
    """Return the output of one `ceph` command, over a connection of its own."""
    async with Commands("administrator") as commands:
        return await commands.ceph(*arguments)
