"""The lasting connection to the monitors, and what becomes of commands when it breaks or they hang."""

import asyncio
import json
import os
import signal
import time
from pathlib import Path

import pytest

from plimsoll.api.names import FailureReason
from plimsoll.ceph.document import keyring
from plimsoll.conductor.ceph.commands import (
    ClientTooOldError,
    CommandError,
    Commands,
    NotPermittedError,
    UnresponsiveError,
    end,
    if_present,
    start,
)
from plimsoll.conductor.ceph.prepare import ask
from plimsoll.conductor.ceph.teardown import TeardownTarget, tear_down
from support.apiserver import wait_until
from support.client_documents import make_plan
from support.goldens import NEW_ROOK, rook
from support.pretended_ceph import PretendedCeph, attend_until, cluster_of, plan_of, pretend_ceph, run_ceph


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


async def test_a_cancellation_waits_until_the_command_is_dead() -> None:
    process = await start(("sleep", "600"), has_input=False)
    ending = asyncio.create_task(end(process))
    await asyncio.sleep(0)
    ending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await ending
    assert process.returncode == -signal.SIGKILL


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


async def test_a_command_that_is_not_in_the_table_is_not_sent(ceph: PretendedCeph) -> None:
    for command in (("config", "dump"), ("auth", "get", "client.admin"), ("status", "detail"), ()):
        with pytest.raises(ValueError, match="is not among the commands that Plimsoll may run"):
            await run_ceph(*command)
    assert not ceph.commands("ceph")


async def test_an_object_that_does_not_exist_does_not_end_the_connection(ceph: PretendedCeph) -> None:
    async with Commands("u") as commands:
        for _ in range(2):
            assert await if_present(commands.ceph("config-key", "get", "absent")) is None
    assert len(ceph.connections()) == 1


KEYS: dict[str, str] = json.loads(rook("keys", NEW_ROOK))


def give_key(ceph: PretendedCeph, monkeypatch: pytest.MonkeyPatch, user: str, kind: str, version: str) -> str:
    """Give a user a key of a type to a client of a version; return the key."""
    key = KEYS[f"bench-{kind}"]
    directory = ceph.programs.parent
    (directory / "keyring").write_text(keyring(user, key))
    (directory / "ceph.conf").write_text(f"[global]\nkeyring = {directory / 'keyring'}\n")
    monkeypatch.setenv("CEPH_CONF", str(directory / "ceph.conf"))
    with ceph.changing() as state:
        state.update({"unreadable key": key, "version": version})
    return key


@pytest.mark.parametrize(
    ("kind", "version", "is_too_old"),
    [("aes256k", "18.2.7", True), ("aes256k", "20.2.3", True), ("aes256k", "20.2.4", False), ("aes", "18.2.7", False)],
)
async def test_a_client_too_old_for_the_key_is_named_and_the_key_is_not_passed_on(
    ceph: PretendedCeph,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    kind: str,
    version: str,
    *,
    is_too_old: bool,
) -> None:
    key = give_key(ceph, monkeypatch, "u", kind, version)
    async with Commands("u") as commands:
        with pytest.raises(CommandError) as caught:
            await commands.ceph("status")
    assert isinstance(caught.value, ClientTooOldError) == is_too_old
    assert ("of type aes256k, which this client cannot read" in str(caught.value)) == is_too_old
    assert (f"(ceph version {version})" in str(caught.value)) == is_too_old
    assert key not in str(caught.value)
    logged: list[str] = []

    def has_log() -> bool:
        logged.append(capfd.readouterr().err)
        return "another line of the log" in "".join(logged)

    wait_until(has_log, "the log")
    assert key not in "".join(logged)


async def test_a_run_with_a_key_that_cannot_be_read_is_refused_at_once(
    ceph: PretendedCeph, monkeypatch: pytest.MonkeyPatch
) -> None:
    give_key(ceph, monkeypatch, "conductor", "aes256k", "18.2.7")
    seen = await attend_until(cluster_of(plan_of()), lambda view: bool(view.problems))
    assert seen[-1].refusal is FailureReason.CEPH_CLIENT_TOO_OLD
    assert "use a runner image with Ceph 20.2.4" in seen[-1].problems[0]


async def test_a_teardown_with_a_key_that_cannot_be_read_ends_at_once(
    ceph: PretendedCeph, monkeypatch: pytest.MonkeyPatch
) -> None:
    give_key(ceph, monkeypatch, "u", "aes256k", "18.2.7")
    async with Commands("u") as commands:
        left = await tear_down(commands, TeardownTarget(uid="u", clients=1, pool="golden"), limit_seconds=60)
    (problem,) = left.problems
    assert "have the key replaced by one of type aes" in problem


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
        found = await ask(commands, make_plan(points=1, clients=1, repetitions=1), [])
    assert all(getattr(found, name) for name in known)
    assert not found.osd_df
    assert bool(found.osd_tree) == ("osd_tree" in known)
    assert not any(found.settings.values())
    assert ceph.commands("ceph")[-1] == f"ceph {hanging}"
