"""The programs of pods end in order when they are asked to, from their start on."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import pytest
from click.testing import CliRunner

from plimsoll.agent.agent import Agent
from plimsoll.cli import EXIT_STOPPED
from plimsoll.cli.launch import Launcher
from plimsoll.conductor.ceph.commands import Commands
from plimsoll.conductor.main import EXIT_INTERRUPTED
from plimsoll.conductor.secret import client_directory, write_session
from plimsoll.helpers.server import TokenReviews
from plimsoll.plan.document import PLAN_FILE
from plimsoll.programs import agent, helpers, teardown
from plimsoll.programs.termination import run_until_stopped
from support.client_documents import make_plan

ASKED_TO_END = """
import os, signal, sys

class Import:
    def find_spec(self, name, *_):
        if name == sys.argv[1]:
            os.kill(os.getpid(), signal.SIGTERM)

sys.meta_path.insert(0, Import())
from plimsoll.cli import main
main(sys.argv[2:])
"""
"""A program that gets SIGTERM when it imports the module that its first argument names."""


OPTIONS = {
    "caches": ["--node=n", "--allow=bench"],
    "burner": [
        "--namespace=plimsoll-kube-burner",
        "--allow=bench",
        "--max-objects=1",
        "--max-qps=1",
        "--max-volume-size=1Gi",
        "--pod-image=runner:1",
    ],
}


@pytest.fixture(autouse=True)
def unhandled() -> Iterator[None]:
    """Make a signal fail the test, not end it, if the program does not handle it."""

    def fail(*_: object) -> NoReturn:
        raise AssertionError("the program does not handle the signal yet")

    before = {number: signal.signal(number, fail) for number in (signal.SIGTERM, signal.SIGINT)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def asked_to_end(module: str, *arguments: str) -> tuple[int, str]:
    """Return the exit code and the output of a program that gets SIGTERM when it imports a module."""
    command = [sys.executable, "-c", ASKED_TO_END, module, *arguments]
    ended = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    return ended.returncode, ended.stdout + ended.stderr


@pytest.mark.parametrize(
    ("program", "module"),
    [
        ("operator", "operator.main"),
        *((program, f"programs.{program}") for program in ("conductor", "agent", "teardown")),
        *((program, "programs.helpers") for program in ("caches", "burner")),
    ],
)
def test_a_program_that_is_being_imported_can_be_ended(program: str, module: str) -> None:
    code = EXIT_INTERRUPTED if program == "conductor" else EXIT_STOPPED
    assert asked_to_end(f"plimsoll.{module}", program) == (code, "")


def test_a_conductor_that_has_not_loaded_its_results_can_be_ended(tmp_path: Path) -> None:
    write_session(tmp_path, 1)
    (tmp_path / PLAN_FILE).write_text(make_plan().model_dump_json())
    options = [f"--secret={tmp_path}", "--namespace=bench", f"--plan={tmp_path / PLAN_FILE}", "--port=0"]
    assert asked_to_end("plimsoll.kube.client", "conductor", *options) == (EXIT_INTERRUPTED, "")


@pytest.mark.parametrize("exists", [True, False])
async def test_a_local_run_can_be_interrupted_before_its_conductor_handles_the_signal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, exists: bool
) -> None:
    (tmp_path / "python").write_text("#!/bin/sh\nexec sleep 60\n")
    (tmp_path / "python").chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    plan = make_plan().model_copy(update={"clients": 0})
    launcher = Launcher(plan=plan, results=tmp_path, secret=tmp_path, fio="fio", port=1)
    async with asyncio.timeout(30):
        if not exists:
            launcher.interrupt()
        assert await launcher.run(launcher.interrupt if exists else lambda: None) == EXIT_INTERRUPTED


async def wait_for_ever(*_: object) -> NoReturn:
    os.kill(os.getpid(), signal.SIGTERM)
    await asyncio.Event().wait()
    raise AssertionError


def test_an_agent_at_work_can_be_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_session(tmp_path, 1)
    fields = '"conductor": "https://x", "client": 0, "tools": []'
    monkeypatch.setattr(Agent, "run", wait_for_ever)
    document = f'{{{fields}, "work": "{tmp_path}", "terminationLog": "{tmp_path / "log"}"}}'
    result = CliRunner().invoke(
        agent.command, ["--assignment=-", f"--secret={client_directory(tmp_path, 0)}"], input=document
    )
    assert (result.exit_code, (tmp_path / "log").exists()) == (EXIT_STOPPED, False)


def test_a_teardown_at_work_can_be_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Commands, "ceph", wait_for_ever)
    result = CliRunner().invoke(teardown.command, ["--uid=u", "--clients=1", "--pool=p", "--user=u"])
    assert result.exit_code == EXIT_STOPPED, result.exception


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("program", OPTIONS)
def test_a_helper_that_is_reading_its_credentials_can_be_ended(
    program: str, number: signal.Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def never(_: TokenReviews) -> NoReturn:
        os.kill(os.getpid(), number)
        await asyncio.Event().wait()
        raise AssertionError

    monkeypatch.setattr(helpers, "may_drop_caches", lambda _: True)
    monkeypatch.setattr(TokenReviews, "__aenter__", never)
    result = CliRunner().invoke(getattr(helpers, f"{program}_command"), OPTIONS[program])
    assert result.exit_code == 0, result.exception


def test_what_was_opened_is_closed() -> None:
    closed = []

    async def work() -> NoReturn:
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            closed.append(True)
        raise AssertionError

    assert run_until_stopped(work()) is None
    assert closed


def test_work_that_is_not_stopped_returns_its_result_or_raises_its_error() -> None:
    async def work(value: int) -> int:
        return 1 // value

    assert run_until_stopped(work(1)) == 1
    with pytest.raises(ZeroDivisionError):
        run_until_stopped(work(0))
