"""Conductor and agent as started by pods: options, environment, and termination messages."""

import json
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
from plimsoll.agent.preparation import Volume
from plimsoll.agent.volume import DeviceVolume, FileVolume, ImageVolume
from plimsoll.agent.worker import Worker
from plimsoll.api.names import FailureReason
from plimsoll.cli import main
from plimsoll.cli.launch import free_port
from plimsoll.conductor.main import EXIT_OF_FAILURE
from plimsoll.conductor.secret import client_directory, write_session
from plimsoll.plan.document import PLAN_FILE
from plimsoll.programs.termination import MAX_BYTES, write_termination_message
from plimsoll.tools.target import OsdsTarget, PoolTarget
from support.client_documents import make_plan


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
    """The worker that the agent command would have started."""

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

        monkeypatch.setattr("plimsoll.programs.agent.Worker", RecordingWorker)
        monkeypatch.setattr("plimsoll.programs.agent.Agent", RecordingAgent)


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Started:
    return Started(monkeypatch)


def assigned(**fields: Any) -> dict[str, Any]:
    """Return an assignment document."""
    return {"conductor": "https://x", "client": 0, "work": "/w", "tools": ["fio"], **fields}


def invoke_agent(document: object, secret: Path, *options: str) -> Result:
    """Start an agent with a document on standard input."""
    text = document if isinstance(document, str) else json.dumps(document)
    return CliRunner().invoke(main, ["agent", "--assignment=-", f"--secret={secret}", *options], input=text)


@pytest.mark.parametrize(
    ("assignment", "volume"),
    [
        (None, None),
        ({"kind": "File", "path": "/data/plimsoll.data"}, FileVolume(path=Path("/data/plimsoll.data"))),
        (
            {"kind": "File", "path": "/data/plimsoll.data", "mounted": True},
            FileVolume(path=Path("/data/plimsoll.data"), mount_table=Path("/proc/self/mountinfo")),
        ),
        ({"kind": "File", "path": "/data/x", "capacity": 5}, FileVolume(path=Path("/data/x"), capacity=5)),
        ({"kind": "Device", "path": "/dev/plimsoll-volume"}, DeviceVolume(path=Path("/dev/plimsoll-volume"))),
        (
            {"kind": "Device", "path": "/dev/x", "offset": 1, "size": 2},
            DeviceVolume(path=Path("/dev/x"), offset=1, size=2),
        ),
        (
            {"kind": "Image", "pool": "p", "image": "i", "user": "u", "size": 5},
            ImageVolume(pool="p", image="i", user="u", size=5),
        ),
        (
            {"kind": "Image", "pool": "p", "image": "i", "user": "u", "size": 5, "cache": True},
            ImageVolume(pool="p", image="i", user="u", size=5, cache=True),
        ),
    ],
)
def test_the_agents_volume(
    started: Started, secret: Path, assignment: dict[str, Any] | None, volume: Volume | None
) -> None:
    result = invoke_agent(assigned(volume=assignment), secret)
    assert result.exit_code == 0, result.output
    assert started.worker["volume"] == volume


def test_an_agent_s_other_targets(started: Started, secret: Path) -> None:
    rados = {"pool": "p", "namespace": "n", "user": "u"}
    result = invoke_agent(assigned(rados=rados, osdKeyring="/k"), secret)
    assert result.exit_code == 0, result.output
    pool = PoolTarget(pool="p", namespace="n", user="u")
    assert started.worker["targets"] == (pool, OsdsTarget(keyring="/k"))


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"volume": {"kind": "File", "path": "/data/plimsoll.data", "device": "/dev/x"}}, "volume.File.device"),
        ({"volume": {"kind": "Image", "image": "i", "user": "u", "size": 5}}, "volume.Image.pool"),
        ({"volume": {"kind": "Image", "pool": "p", "image": "i", "user": "u"}}, "volume.Image.size"),
        ({"volume": {"kind": "Image", "pool": "p", "image": "i", "size": 5}}, "volume.Image.user"),
        ({"volume": {"kind": "Device", "path": "/dev/x", "cache": True}}, "volume.Device.cache"),
        ({"volume": {"kind": "Device", "path": "/dev/x", "mounted": True}}, "volume.Device.mounted"),
        ({"rados": {"pool": "p", "user": "u"}}, "rados.namespace"),
        ({"rados": {"pool": "p", "namespace": "n"}}, "rados.user"),
        ({"rados": {"namespace": "n", "user": "u"}}, "rados.pool"),
        ({"programs": {"fio": "/etc/plimsoll/x/run.sh"}}, "programs"),
        ({"secret": "/etc/plimsoll/x"}, "secret"),
        ({"rados": {"pool": "--plugin_dir=/x", "namespace": "n", "user": "u"}}, "rados.pool"),
        ({"volume": {"kind": "Image", "pool": "p", "image": "-c/x", "user": "u", "size": 5}}, "volume.Image.image"),
        ({"tools": ["fio", "unheardOf"]}, "the assignment contains unknown tools: unheardOf"),
    ],
)
def test_what_does_not_go_together_is_refused(secret: Path, fields: dict[str, Any], says: str) -> None:
    result = invoke_agent(assigned(**fields), secret)
    assert result.exit_code == 2
    assert says in result.output


def test_an_assignment_has_to_be_a_document(secret: Path) -> None:
    result = invoke_agent("client 3", secret)
    assert result.exit_code == 2
    assert "the assignment is invalid" in result.output


def test_an_agent_by_its_environment(started: Started, secret: Path, tmp_path: Path) -> None:
    path = tmp_path / "assignment.json"
    volume = {"kind": "File", "path": "/data/plimsoll.data"}
    document = assigned(client=3, attempt=2, volume=volume, silenceSeconds=900)
    path.write_text(json.dumps(document))
    environment = {"ASSIGNMENT": str(path), "SECRET": str(secret), "NODE": "node-1", "FIO": "/opt/fio"}
    result = invoke("agent", environment={f"PLIMSOLL_{name}": value for name, value in environment.items()})
    assert result.exit_code == 0, result.output
    assert (started.worker["client"], started.worker["node"]) == (3, "node-1")
    assert started.worker["binaries"] == {"fio": "/opt/fio"}
    assert (started.worker["tools"], started.worker["targets"]) == (("fio",), ())
    assert (started.agent["identity"].attempt, started.agent["silence_seconds"]) == (2, 900)


def test_an_agents_last_words(secret: Path, tmp_path: Path) -> None:
    words = tmp_path / "words"
    document = assigned(
        conductor=f"https://127.0.0.1:{free_port()}",
        work=str(tmp_path / "work"),
        terminationLog=str(words),
    )
    assert invoke_agent(document, secret, "--fio=/none/fio").exit_code == EXIT_UNUSABLE
    assert re.fullmatch(r"/none/fio cannot be run: .*; install fio", words.read_text())
    assert invoke_agent({**document, "silenceSeconds": 0.1}, secret, "--fio=true").exit_code == EXIT_SILENCE
    assert words.read_text() == "the conductor did not answer for 0.1 s"


def test_a_refused_agents_last_words(secret: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def run(_: Agent) -> int:
        logging.getLogger("plimsoll.agent.agent").error("refused: %s", "client 0 has a newer process")
        return EXIT_REFUSED

    monkeypatch.setattr(Agent, "run", run)
    words = tmp_path / "words"
    assert invoke_agent(assigned(terminationLog=str(words)), secret).exit_code == EXIT_REFUSED
    assert words.read_text() == "refused: client 0 has a newer process"


def test_an_agent_that_breaks_says_how(secret: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def run(_: Agent) -> int:
        raise RuntimeError("what nobody thought of")

    monkeypatch.setattr(Agent, "run", run)
    words = tmp_path / "words"
    assert invoke_agent(assigned(terminationLog=str(words)), secret).exit_code == 1
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
    assert words.read_text().startswith("ClientsNotReady: clients 0 and 1 did not register")


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
    write_termination_message(words, "one\n  two\t" + "ü" * MAX_BYTES)
    assert words.read_bytes().startswith(b"one two ")
    assert len(words.read_bytes()) == MAX_BYTES
    write_termination_message(tmp_path / "none" / "words", "no place")
    write_termination_message(None, "no wish")
