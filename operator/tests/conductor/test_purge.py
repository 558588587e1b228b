"""The teardown of a run with its own file system waits until Ceph has purged the deleted volumes."""

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from plimsoll.ceph.pools import EXIT_PURGING
from plimsoll.cli import main
from plimsoll.conductor.ceph.commands import Commands
from plimsoll.conductor.ceph.teardown import Remains, TeardownTarget, tear_down
from plimsoll.plan.document import rados_namespace
from support.pretended_ceph import PretendedCeph, pretend_ceph

FILES = TeardownTarget(uid="u", clients=2, pool="golden", has_images=False, file_system="files")
ASKED = "ceph fs volume info files"
ARGUMENTS = ("teardown", "--uid=u", "--clients=2", "--pool=golden", "--no-images", "--user=conductor")


@pytest.fixture
def ceph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PretendedCeph:
    return pretend_ceph(tmp_path, monkeypatch)


def put_file_system(
    ceph: PretendedCeph, *, purging: int | None = None, hanging: tuple[str, ...] = (), **servers: Any
) -> None:
    with ceph.changing() as state:
        state["file_system"] = {"fs_name": "files", "up": {"mds_0": 4321}, **servers}
        state["purging"] = purging
        state["hanging"] = list(hanging)


async def torn_down(
    *, limit_seconds: float = 20.0, purge_seconds: float = 20.0, command_seconds: float = 20.0
) -> Remains:
    async with Commands("conductor", limit_seconds=command_seconds) as commands:
        return await tear_down(
            commands, FILES, limit_seconds=limit_seconds, purge_seconds=purge_seconds, pause_seconds=0.05
        )


@pytest.mark.parametrize("purging", [None, 0, 3], ids=["never had a subvolume", "nothing", "three"])
async def test_the_end_of_the_purge_is_waited_for(
    ceph: PretendedCeph, purging: int | None, caplog: pytest.LogCaptureFixture
) -> None:
    put_file_system(ceph, purging=purging)
    assert await torn_down() == Remains()
    assert len(ceph.commands(ASKED)) == 1 + (purging or 0)
    left = [f"{number} deleted volume{'s' if number > 1 else ''}" for number in range(purging or 0, 0, -1)]
    assert caplog.messages == [f"Ceph has yet to purge {volumes} of file system files; waiting" for volumes in left]


async def test_a_purge_is_waited_for_longer_than_problems_are(ceph: PretendedCeph) -> None:
    put_file_system(ceph, purging=5)
    assert await torn_down(limit_seconds=0) == Remains()
    assert len(ceph.commands(ASKED)) == 6


async def test_what_a_purge_has_left_at_the_limit_is_told(ceph: PretendedCeph) -> None:
    put_file_system(ceph, purging=1000)
    left = await torn_down(purge_seconds=0)
    assert left == Remains(("Ceph has yet to purge 1000 deleted volumes of file system files",), is_purging=True)


async def test_objects_are_removed_before_the_purge_and_not_again(ceph: PretendedCeph) -> None:
    put_file_system(ceph, purging=4)
    place = f"golden/{rados_namespace('u', 1)}"
    with ceph.changing() as state:
        state["objects"] = {place: {"a": ""}}
    assert await torn_down() == Remains()
    assert ceph.state["objects"][place] == {}
    assert len(ceph.commands("rados --pool golden --namespace plimsoll-u-1 ls")) == 1
    log = ceph.commands("")
    assert log.index(ASKED) > max(number for number, command in enumerate(log) if command.startswith("rados"))


async def test_what_cannot_be_removed_is_no_purge(ceph: PretendedCeph) -> None:
    put_file_system(ceph, purging=1)
    with ceph.changing() as state:
        state["refused"] = ["rados --pool golden --namespace plimsoll-u-0 ls"]
    left = await torn_down(limit_seconds=0)
    assert not left.is_purging
    assert "EACCES" in left.problems[0]
    assert ceph.commands(ASKED) == []


async def test_a_file_system_that_does_not_exist_purges_nothing(ceph: PretendedCeph) -> None:
    assert await torn_down() == Remains()
    assert len(ceph.commands(ASKED)) == 1


@pytest.mark.parametrize("state", ["up:active", "up:replay"])
async def test_a_manager_that_does_not_answer_may_be_purging(ceph: PretendedCeph, state: str) -> None:
    """A server that is about to be active lets the manager go on with its purge."""
    info = {"gid_4321": {"gid": 4321, "rank": 0, "state": state}}
    put_file_system(ceph, purging=1, hanging=("ceph fs volume info",), info=info)
    left = await torn_down(purge_seconds=0, command_seconds=2)
    assert left.is_purging
    (problem,) = left.problems
    assert problem.startswith(
        "Ceph's manager does not report how many deleted volumes of file system files it has yet to"
    )
    assert "`ceph fs volume info files` did not answer in 2 s" in problem
    assert problem.endswith("check that one is active (`ceph mgr stat`)")


async def test_a_manager_that_takes_over_is_asked_again(ceph: PretendedCeph, monkeypatch: pytest.MonkeyPatch) -> None:
    put_file_system(ceph, purging=1, hanging=("ceph fs volume info",))
    ceph_command = Commands.ceph

    async def answering(commands: Commands, *arguments: str, limit_seconds: float | None = None) -> str:
        if arguments == ("fs", "get", "files"):
            with ceph.changing() as state:
                state["hanging"] = []
        return await ceph_command(commands, *arguments, limit_seconds=limit_seconds)

    monkeypatch.setattr(Commands, "ceph", answering)
    assert await torn_down(command_seconds=2) == Remains()
    assert ceph.commands("ceph fs") == [ASKED, "ceph fs get files", ASKED, ASKED]
    assert ceph.state["purging"] == 0


async def test_nothing_is_purged_without_metadata_servers(ceph: PretendedCeph) -> None:
    put_file_system(ceph, purging=1, hanging=("ceph fs volume info",), up={})
    assert await torn_down(command_seconds=2) == Remains()
    assert ceph.commands("ceph fs") == [ASKED, "ceph fs get files"]


async def test_monitors_that_do_not_answer_are_no_purge(ceph: PretendedCeph) -> None:
    put_file_system(ceph, purging=1, hanging=("ceph fs",))
    left = await torn_down(limit_seconds=0, command_seconds=2)
    assert not left.is_purging
    assert "`ceph fs get files` did not answer in 2 s" in left.problems[0]


async def test_a_user_who_may_not_ask_about_the_purge_is_told_at_once(ceph: PretendedCeph) -> None:
    put_file_system(ceph, purging=1)
    with ceph.changing() as state:
        state["refused"] = ["ceph fs volume info"]
    left = await torn_down(limit_seconds=3600, purge_seconds=3600)
    assert not left.is_purging
    assert "fs volume info files" in left.problems[0]
    assert "EACCES" in left.problems[0]


def test_the_program_waits_for_the_purge_of_the_file_system_it_is_given(
    ceph: PretendedCeph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_file_system(ceph, purging=1000)
    defaults = tear_down.__kwdefaults__
    assert defaults is not None
    monkeypatch.setitem(defaults, "purge_seconds", 0.0)
    log = tmp_path / "termination-log"
    arguments = [*ARGUMENTS, "--file-system=files", f"--termination-log={log}"]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == EXIT_PURGING
    assert log.read_text() == "Ceph has yet to purge 1000 deleted volumes of file system files"


def test_the_program_asks_about_no_purge_without_a_file_system(ceph: PretendedCeph) -> None:
    put_file_system(ceph, purging=1000)
    result = CliRunner().invoke(main, ARGUMENTS)
    assert result.exit_code == 0, result.output
    assert ceph.commands("ceph fs") == []
