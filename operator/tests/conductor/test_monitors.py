"""The lasting connection to the monitors, and what becomes of commands when it breaks or they hang."""

import asyncio
import json
import os
import signal
import time
from pathlib import Path

import pytest

from plimsoll.conductor.ceph.commands import CommandError, Commands, NotPermittedError, UnresponsiveError
from plimsoll.conductor.ceph.prepare import ask
from support.apiserver import wait_until
from support.client_documents import make_plan
from support.pretended_ceph import PretendedCeph, pretend_ceph, run_ceph


@pytest.fixture
def ceph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PretendedCeph:
    return pretend_ceph(tmp_path, monkeypatch)


async def test_one_connection_serves_all_commands_until_one_of_them_hangs(ceph: PretendedCeph) -> None:
    async with Commands("u") as commands:
        assert json.loads(await commands.ceph("status"))["health"]
        assert len(json.loads(await commands.ceph("df", "detail"))["pools"]) > 1
        assert len(ceph.connections()) == 1
        with ceph.changing() as state:
            state["hanging"] = ["ceph osd tree"]
        with pytest.raises(UnresponsiveError, match="`ceph osd tree` did not answer in 1 s"):
            await commands.ceph("osd", "tree", limit_seconds=1)
        assert json.loads(await commands.ceph("status"))["health"]
    assert len(ceph.connections()) == 2


async def test_commands_that_wait_for_their_turn_have_a_time_limit_too(ceph: PretendedCeph) -> None:
    with ceph.changing() as state:
        state["hanging"] = ["ceph osd tree"]
    async with Commands("u") as commands:
        before = time.monotonic()
        questions = [commands.ceph("osd", "tree", limit_seconds=2), commands.ceph("status", limit_seconds=1)]
        tree, status = await asyncio.gather(*questions, return_exceptions=True)
        assert isinstance(tree, UnresponsiveError)
        assert isinstance(status, UnresponsiveError)
        assert time.monotonic() - before < 10
        assert json.loads(await commands.ceph("status"))["health"]


async def test_a_connection_that_breaks_between_commands_is_made_again(ceph: PretendedCeph) -> None:
    async with Commands("u") as commands:
        await commands.ceph("status")
        os.kill(ceph.connections()[0], signal.SIGKILL)
        await asyncio.sleep(0.5)
        assert json.loads(await commands.ceph("status"))["health"]
    assert len(ceph.connections()) == 2
    for pid in ceph.connections():
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


async def test_a_connection_that_breaks_during_a_command_is_reported(ceph: PretendedCeph) -> None:
    with ceph.changing() as state:
        state["hanging"] = ["ceph osd tree"]
    async with Commands("u") as commands:
        await commands.ceph("status")
        asking = asyncio.create_task(commands.ceph("osd", "tree"))
        await asyncio.to_thread(wait_until, lambda: bool(ceph.commands("ceph osd tree")), "the command")
        os.kill(ceph.connections()[0], signal.SIGKILL)
        with pytest.raises(CommandError, match="`ceph osd tree` failed: the process with the connection"):
            await asking


async def test_capabilities_that_were_repaired_count_for_the_next_command(ceph: PretendedCeph) -> None:
    """A monitor knows those that a user had when it connected."""
    with ceph.changing() as state:
        state["refused"] = ["ceph status"]
    async with Commands("u") as commands:
        with pytest.raises(NotPermittedError):
            await commands.ceph("status")
        with ceph.changing() as state:
            state["refused"] = []
        assert json.loads(await commands.ceph("status"))["health"]
    assert len(ceph.connections()) == 2


async def test_a_command_that_ceph_does_not_know_is_explained(ceph: PretendedCeph) -> None:
    with pytest.raises(CommandError, match=r"`ceph no such` failed: .*invalid command: no valid command found"):
        await run_ceph("no", "such")
    assert not ceph.commands("ceph")


@pytest.mark.parametrize(
    ("hanging", "known"), [("osd metadata", {"versions"}), ("osd df", {"versions", "osd_tree", "pools"})]
)
async def test_the_environment_asks_no_more_once_a_command_has_no_answer(
    ceph: PretendedCeph, monkeypatch: pytest.MonkeyPatch, hanging: str, known: set[str]
) -> None:
    """The manager may hang while the monitors answer, so it is asked last."""
    with ceph.changing() as state:
        state["hanging"] = [f"ceph {hanging}"]
    async with Commands("u") as commands:
        await commands.ceph("status")
        monkeypatch.setattr(commands, "_limit", 3)
        found = await ask(commands, make_plan(points=1, clients=1, repetitions=1), [], 3)
    assert all(getattr(found, name) for name in known)
    assert not found.osd_df
    assert bool(found.osd_tree) == ("osd_tree" in known)
    assert found.configs == dict.fromkeys(range(3), "")
    assert ceph.commands("ceph")[-1] == f"ceph {hanging}"
