"""Conductor and agent as pods start them: options, environment, and what they say when they give up."""

import logging
import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from plimsoll.agent.agent import EXIT_REFUSED, EXIT_SILENCE, EXIT_UNUSABLE, Agent
from plimsoll.agent.image import ImageVolume
from plimsoll.agent.preparation import Volume
from plimsoll.agent.volume import DeviceVolume, FileVolume
from plimsoll.agent.worker import Worker
from plimsoll.api.names import FailureReason
from plimsoll.cli import main
from plimsoll.cli.launch import free_port
from plimsoll.cli.termination import MAX_BYTES, write_last_words
from plimsoll.conductor.conduct import EXIT_OF_FAILURE
from plimsoll.conductor.secret import client_directory, write_session
from plimsoll.conductor.sink import PLAN_FILE
from plimsoll.tools.base import OsdsTarget, PoolTarget
from support.simulation import make_plan


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith(("PLIMSOLL_", "KUBE")):
            monkeypatch.delenv(name)


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    path = tmp_path / "secret"
    write_session(path, 1)
    shutil.copytree(client_directory(path, 0), path, dirs_exist_ok=True)
    return path


def invoke(*arguments: str, environment: Mapping[str, str] | None = None) -> Result:
    return CliRunner().invoke(main, list(arguments), env=dict(environment or {}))


class Started:
    """What the agent command would have started."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.worker: dict[str, Any] = {}
        self.agent: dict[str, Any] = {}
        started = self

        class RecordingWorker(Worker):
            def __init__(self, **options: Any) -> None:
                started.worker = options
                super().__init__(**options)

        class RecordingAgent(Agent):
            def __init__(self, **options: Any) -> None:
                started.agent = options
                super().__init__(**options)

            async def run(self) -> int:
                return 0

        monkeypatch.setattr("plimsoll.cli.agent.Worker", RecordingWorker)
        monkeypatch.setattr("plimsoll.cli.agent.Agent", RecordingAgent)


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Started:
    return Started(monkeypatch)


@pytest.mark.parametrize(
    ("options", "volume"),
    [
        ((), None),
        (("--directory=/data",), FileVolume(path=Path("/data/plimsoll.data"))),
        (
            ("--directory=/data", "--mounted"),
            FileVolume(path=Path("/data/plimsoll.data"), mount_table=Path("/proc/self/mountinfo")),
        ),
        (("--file=/data/x", "--capacity=5"), FileVolume(path=Path("/data/x"), capacity=5)),
        (("--device=/dev/plimsoll-volume",), DeviceVolume(path=Path("/dev/plimsoll-volume"))),
        (("--device=/dev/x", "--offset=1", "--size=2"), DeviceVolume(path=Path("/dev/x"), offset=1, size=2)),
        (
            ("--image=p/i", "--size=5", "--ceph-user=u"),
            ImageVolume(pool="p", image="i", user="u", size=5),
        ),
        (
            ("--image=p/i", "--size=5", "--ceph-user=u", "--rbd-cache"),
            ImageVolume(pool="p", image="i", user="u", size=5, cache=True),
        ),
    ],
)
def test_the_agents_volume(started: Started, secret: Path, options: tuple[str, ...], volume: Volume | None) -> None:
    base = ("--conductor=https://x", f"--secret={secret}", "--client=0", "--work=/w")
    result = invoke("agent", *base, *options)
    assert result.exit_code == 0, result.output
    assert started.worker["volume"] == volume


def test_an_agent_has_one_volume_only(secret: Path) -> None:
    base = ("--conductor=https://x", f"--secret={secret}", "--client=0", "--work=/w")
    result = invoke("agent", *base, "--directory=/data", "--device=/dev/x")
    assert result.exit_code == 2
    assert "a client has one volume" in result.output


def test_an_agent_s_other_targets(started: Started, secret: Path) -> None:
    base = ("--conductor=https://x", f"--secret={secret}", "--client=0", "--work=/w")
    options = ("--rados-pool=p", "--rados-namespace=n", "--ceph-user=u", "--osd-keyring=/k")
    result = invoke("agent", *base, *options)
    assert result.exit_code == 0, result.output
    pool = PoolTarget(pool="p", namespace="n", run_name="n", user="u")
    assert started.worker["targets"] == (pool, OsdsTarget(keyring="/k"))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--image=i", "--size=5", "--ceph-user=u"), "POOL/IMAGE"),
        (("--image=p/i", "--ceph-user=u"), "--image needs --size"),
        (("--image=p/i", "--size=5"), "--image needs --ceph-user"),
        (("--device=/dev/x", "--rbd-cache"), "--rbd-cache is about --image"),
        (("--rados-pool=p", "--ceph-user=u"), "--rados-pool needs --rados-namespace"),
        (("--rados-pool=p", "--rados-namespace=n"), "--rados-pool needs --ceph-user"),
        (("--rados-namespace=n",), "--rados-namespace is about --rados-pool"),
        (("--tool=dd",), "dd"),
    ],
)
def test_options_that_do_not_go_together(secret: Path, options: tuple[str, ...], says: str) -> None:
    base = ("--conductor=https://x", f"--secret={secret}", "--client=0", "--work=/w")
    result = invoke("agent", *base, *options)
    assert result.exit_code == 2
    assert says in result.output


def test_only_a_directory_can_be_a_mount_point(secret: Path) -> None:
    base = ("--conductor=https://x", f"--secret={secret}", "--client=0", "--work=/w")
    result = invoke("agent", *base, "--device=/dev/x", "--mounted")
    assert result.exit_code == 2
    assert "--mounted is about --directory" in result.output


def test_an_agent_by_its_environment(started: Started, secret: Path) -> None:
    environment = {
        "PLIMSOLL_CONDUCTOR": "https://x",
        "PLIMSOLL_SECRET": str(secret),
        "PLIMSOLL_CLIENT": "3",
        "PLIMSOLL_ATTEMPT": "2",
        "PLIMSOLL_NODE": "node-1",
        "PLIMSOLL_WORK": "/w",
        "PLIMSOLL_DIRECTORY": "/data",
        "PLIMSOLL_FIO": "/opt/fio",
        "PLIMSOLL_SILENCE": "900",
    }
    result = invoke("agent", environment=environment)
    assert result.exit_code == 0, result.output
    assert (started.worker["client"], started.worker["node"]) == (3, "node-1")
    assert started.worker["binaries"] == {"fio": "/opt/fio"}
    assert (started.worker["tools"], started.worker["targets"]) == (("fio",), ())
    assert (started.agent["identity"].attempt, started.agent["silence_seconds"]) == (2, 900)


def test_an_agents_last_words(secret: Path, tmp_path: Path) -> None:
    words = tmp_path / "words"
    base = (f"--secret={secret}", "--client=0", f"--work={tmp_path / 'work'}", f"--termination-log={words}")
    address = f"--conductor=https://127.0.0.1:{free_port()}"
    assert invoke("agent", address, *base, "--fio=/none/fio").exit_code == EXIT_UNUSABLE
    assert re.fullmatch(r"/none/fio cannot be run: .*; install fio", words.read_text())
    assert invoke("agent", address, *base, "--fio=true", "--silence=0.1").exit_code == EXIT_SILENCE
    assert words.read_text() == "the conductor was silent for 0.1 s"


def test_a_refused_agents_last_words(secret: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def run(_: Agent) -> int:
        logging.getLogger("plimsoll.agent.agent").error("refused: %s", "client 0 has a newer process")
        return EXIT_REFUSED

    monkeypatch.setattr(Agent, "run", run)
    words = tmp_path / "words"
    base = ("--conductor=https://x", f"--secret={secret}", "--client=0", "--work=/w", f"--termination-log={words}")
    assert invoke("agent", *base).exit_code == EXIT_REFUSED
    assert words.read_text() == "refused: client 0 has a newer process"


def test_an_agent_that_breaks_says_how(secret: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def run(_: Agent) -> int:
        raise RuntimeError("what nobody thought of")

    monkeypatch.setattr(Agent, "run", run)
    words = tmp_path / "words"
    base = ("--conductor=https://x", f"--secret={secret}", "--client=0", "--work=/w", f"--termination-log={words}")
    assert invoke("agent", *base).exit_code == 1
    assert words.read_text() == "RuntimeError: what nobody thought of"


def test_a_conductor_must_know_where_results_go(secret: Path) -> None:
    result = invoke("conductor", f"--secret={secret}", "--port=1", "--namespace=n")
    assert result.exit_code == 2
    assert "--results DIR, or --namespace NAME with --plan FILE" in result.output


def test_a_conductors_last_words_when_it_fails_for_good(secret: Path, tmp_path: Path) -> None:
    results, words = tmp_path / "results", tmp_path / "words"
    results.mkdir()
    plan = make_plan(clients=2)
    plan = plan.model_copy(update={"timeouts": plan.timeouts.model_copy(update={"ready_seconds": 1})})
    (results / PLAN_FILE).write_text(plan.model_dump_json())
    environment = {"PLIMSOLL_RESULTS": str(results), "PLIMSOLL_SECRET": str(secret), "PLIMSOLL_PORT": str(free_port())}
    result = invoke("conductor", f"--termination-log={words}", environment=environment)
    assert result.exit_code == EXIT_OF_FAILURE[FailureReason.CLIENTS_NOT_READY]
    assert words.read_text().startswith("ClientsNotReady: clients 0, 1 did not register")


@pytest.mark.parametrize(
    ("plan", "says"), [("{}", "schemaVersion"), (None, "No such file"), (make_plan().model_dump_json(), "KUBECONFIG")]
)
def test_a_conductor_that_cannot_begin(
    secret: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plan: str | None, says: str
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    file, words = tmp_path / "plan.json", tmp_path / "words"
    if plan is not None:
        file.write_text(plan)
    base = (f"--secret={secret}", "--port=1", "--namespace=n", f"--plan={file}", f"--termination-log={words}")
    assert invoke("conductor", *base).exit_code == 1
    assert says in words.read_text()


def test_last_words_are_one_bounded_line(tmp_path: Path) -> None:
    words = tmp_path / "words"
    write_last_words(words, "one\n  two\t" + "ü" * MAX_BYTES)
    assert words.read_bytes().startswith(b"one two ")
    assert len(words.read_bytes()) == MAX_BYTES
    write_last_words(tmp_path / "none" / "words", "no place")
    write_last_words(None, "no wish")
