"""Local mode with real processes and a real fio: its measurements, and its reaction to faults."""

import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from plimsoll.agent.agent import EXIT_REFUSED
from plimsoll.agent.worker import raw_digest
from plimsoll.api.environment import Extremes
from plimsoll.api.names import AbortReason, RunPhase, Verdict
from plimsoll.api.result import Trial
from plimsoll.cli import Exit
from plimsoll.conductor.ledger import MAX_ATTEMPTS
from plimsoll.conductor.sink import read_plan
from plimsoll.measure.attempts import counted
from plimsoll.measure.sample import ClientDocument
from plimsoll.protocol.assignment import TOKEN_FILE, Assignment
from support.local_run import LocalRun, command_line, invalid_for_load, make_spec


def processes_naming(text: str) -> list[int]:
    """Return all other processes of the machine whose command line contains `text`."""
    pids = [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]
    return [pid for pid in pids if pid != os.getpid() and text in command_line(pid)]


pytestmark = [pytest.mark.system, pytest.mark.fio, pytest.mark.usefixtures("own_disk")]


def aborts(trials: list[Trial]) -> list[AbortReason]:
    return [trial.abort.reason for trial in trials if trial.abort is not None]


def faults(trials: list[Trial]) -> list[AbortReason]:
    """Return the aborts without one late client, which a busy machine may add to what a test does."""
    found = aborts(trials)
    assert found.count(AbortReason.LATE_CLIENT) <= 1, found
    return [reason for reason in found if reason is not AbortReason.LATE_CLIENT]


def assert_every_planned_trial_is_measured_once(run: LocalRun, passes: int = 2) -> None:
    """Check that only the last attempt of each pass counts; earlier ones were aborted or Invalid.

    On a busy machine it may be Invalid, too, if there are as many as there may be.
    """
    for result in run.found():
        for number in range(passes):
            attempts = [trial for trial in result.status.trials if trial.pass_number == number]
            assert [trial.attempt for trial in attempts] == list(range(len(attempts)))
            assert not counted(attempts[:-1])
            assert counted(attempts[-1:]) or (len(attempts) >= MAX_ATTEMPTS and invalid_for_load(attempts))
        assert result.status.final


@pytest.mark.essential
def test_a_run_measures_its_specification(tmp_path: Path, fio: str) -> None:
    workloads = [
        {
            "name": "mixed",
            "fio": {"pattern": "randrw", "readPercent": 50, "ioDepth": [2, 8], "rateIops": 400},
            "clients": [1, 2],
            "runtimeSeconds": 3,
            "rampSeconds": 1,
        }
    ]
    with LocalRun(tmp_path, fio, make_spec(workloads=workloads, repetitions=1)) as run:
        out = run.complete()
    assert_every_planned_trial_is_measured_once(run, passes=1)
    assert len(run.found()) == 4
    for result in run.found():
        trial = result.status.trials[-1]
        assert len(trial.clients) == result.spec.clients
        assert {operation.operation for operation in trial.operations} == {"read", "write"}
        total = sum(operation.rates.iops for operation in trial.operations)
        assert total == pytest.approx(400 * result.spec.clients, rel=0.1)
        assert trial.window is not None
        assert trial.window.overlap > 0.9
        assert result.status.verdict is not Verdict.INVALID, result.status.findings
    assert "mixed" in out
    assert list(run.data.iterdir()) == [], "the data is removed"
    assert not processes_naming(str(run.results)), "no process is left"


@pytest.mark.essential
def test_raw_output_is_kept_and_matches_the_result(tmp_path: Path, fio: str) -> None:
    with LocalRun(tmp_path, fio, make_spec(), "--raw-output", str(tmp_path / "raw")) as run:
        run.complete()
    for trial in run.trials():
        attempt = tmp_path / "raw" / "read-000" / f"pass-{trial.pass_number}-attempt-{trial.attempt}"
        assert {path.name for path in attempt.iterdir()} == {"client-0", "client-0.json", "client-1", "client-1.json"}
        assert trial.tool is not None
        (version,) = trial.tool.versions
        assert json.loads((attempt / "client-0" / "fio.json").read_text())["fio version"] == version.replace(" ", "-")
        assert not counted([trial]) or trial.tool.argv[0] == fio
        documents = [attempt / f"client-{client}.json" for client in range(2)]
        kept = [ClientDocument.model_validate_json(path.read_text()) for path in documents]
        assert [raw_digest(path.with_suffix("")) for path in documents] == [answer.raw_sha256 for answer in kept]
        lines = "".join(f"{answer.raw_sha256}  client-{answer.client}\n" for answer in kept)
        assert hashlib.sha256(lines.encode()).hexdigest() == trial.tool.raw_sha256


def test_a_run_on_ceph_runs_locally(tmp_path: Path, fio: str) -> None:
    rook = {"cluster": {"namespace": "r", "name": "r"}, "pool": {"replicated": {"size": 3}}}
    storage = {"rook": rook, "volume": {"size": "16Mi", "access": "LibRBD"}}
    with LocalRun(tmp_path, fio, make_spec(storage=storage, repetitions=1)) as run:
        run.complete()
    assert read_plan(run.results).ceph is None
    assert_every_planned_trial_is_measured_once(run, passes=1)


@pytest.mark.fault(
    "Conductor and clients",
    "An agent is killed",
    "while measuring",
    ends="its tool dies with it; the trial is aborted (`ClientLost`) and repeated",
    within="20 s",
)
@pytest.mark.essential
def test_a_killed_agent_aborts_its_trial_and_its_fio_dies_with_it(tmp_path: Path, fio: str) -> None:
    with LocalRun(tmp_path, fio) as run:
        run.wait_for_trial(seconds_in=1)
        agent = run.agent(1)
        tools = run.wait_for(lambda: run.pids(r"--name=measure.*client-1"))
        os.kill(agent, signal.SIGKILL)
        run.wait_for(lambda: not set(tools) & set(processes_naming("--name=measure")), seconds=2)
        run.complete()
    assert faults(run.trials()) == [AbortReason.CLIENT_LOST]
    assert "client 1" in next(trial.abort.message for trial in run.trials() if trial.abort)
    assert_every_planned_trial_is_measured_once(run)


@pytest.mark.fault(
    "Conductor and clients",
    "The conductor is killed",
    "while measuring",
    ends="the agents keep their data sets; the trial is aborted (`ConductorRestarted`) and repeated, no other one is",
    within="as soon as the next conductor runs",
)
@pytest.mark.essential
def test_a_killed_conductor_loses_and_doubles_no_trial(tmp_path: Path, fio: str) -> None:
    with LocalRun(tmp_path, fio, make_spec(repetitions=3)) as run:
        run.wait_for(lambda: len(run.counted()) == 1)
        run.wait_for_trial(seconds_in=1)
        os.kill(run.conductor(), signal.SIGKILL)
        run.complete()
    assert faults(run.trials()) == [AbortReason.CONDUCTOR_RESTARTED]
    (lost,) = (each for trial in run.trials() if (each := trial.abort) and each.reason in faults(run.trials()))
    assert lost.after_start, "somebody may have seen its rates"
    assert_every_planned_trial_is_measured_once(run, passes=3)
    assert len({trial.epoch for trial in run.trials()}) == 2
    for client in range(2):
        log = (run.results / "logs" / f"client-{client}.log").read_text()
        assert log.count("prepared") == 1, "the agents lived on and did not prefill again"


def is_armed(run: LocalRun, client: int) -> bool:
    log = run.results / "logs" / f"client-{client}.log"
    return log.exists() and "armed for" in log.read_text()


def frozen_before_arming(run: LocalRun, client: int) -> int:
    """Return the process of an agent that is stopped before the first attempt."""
    run.wait_for(lambda: run.state and run.state.phase is RunPhase.SETTLING)
    agent = run.agent(client)
    os.kill(agent, signal.SIGSTOP)
    return agent


@pytest.mark.fault(
    "Conductor and clients",
    "An agent is frozen",
    "after it has armed",
    ends="the trial is aborted before the agent starts any I/O (`LateClient`), and repeated",
    within="3 s after the planned start",
)
@pytest.mark.essential
def test_an_agent_stopped_across_t0_does_not_start_late(tmp_path: Path, fio: str) -> None:
    with LocalRun(tmp_path, fio, make_spec(prepare={"settleSeconds": 2}, repetitions=1)) as run:
        first = frozen_before_arming(run, 0)
        run.wait_for(lambda: is_armed(run, 1))
        agent = run.agent(1)
        os.kill(agent, signal.SIGSTOP)
        os.kill(first, signal.SIGCONT)
        run.wait_for(lambda: aborts(run.trials()))
        # A fio that has begun has a process for its job.
        assert len(run.pids(r"--name=measure.*client-1")) == 1, "the tool of a stopped agent does not begin"
        os.kill(agent, signal.SIGCONT)
        run.complete()
    late = next(trial.abort for trial in run.trials() if trial.abort)
    assert late.reason is AbortReason.LATE_CLIENT
    assert "client 1" in late.message
    assert_every_planned_trial_is_measured_once(run, passes=1)


@pytest.mark.fault(
    "Conductor and clients",
    "An agent is frozen for 5 s",
    "while it arms",
    ends="the others wait for it, and the trial counts",
    within="as soon as it continues",
)
def test_an_agent_that_arms_late_delays_the_trial_and_costs_none(tmp_path: Path, fio: str) -> None:
    with LocalRun(tmp_path, fio, make_spec(prepare={"settleSeconds": 2}, repetitions=1)) as run:
        agent = frozen_before_arming(run, 0)
        run.wait_for(lambda: is_armed(run, 1))
        (waiting,) = run.pids(r"--name=measure.*client-1")
        frozen = time.monotonic() + 5
        run.wait_for(lambda: time.monotonic() >= frozen)
        assert run.state is not None
        assert run.state.current is None
        assert command_line(waiting)
        os.kill(agent, signal.SIGCONT)
        run.complete()
    assert faults(run.trials()) == []
    assert_every_planned_trial_is_measured_once(run, passes=1)


@pytest.mark.fault(
    "Conductor and clients",
    "An agent is killed",
    "after it has armed",
    ends="its tool dies with it, without any I/O; the trial is aborted (`ClientLost`) and repeated",
    within="20 s",
)
def test_a_tool_whose_agent_dies_before_the_start_does_no_io(tmp_path: Path, fio: str) -> None:
    spec = make_spec(prepare={"settleSeconds": 2}, repetitions=1)
    spec["spec"]["workloads"][0]["fio"]["pattern"] = "randwrite"
    with LocalRun(tmp_path, fio, spec) as run:
        other = frozen_before_arming(run, 0)
        run.wait_for(lambda: is_armed(run, 1))
        (waiting,) = run.pids(r"--name=measure.*client-1")
        agent, (target,) = run.agent(1), re.findall(r"--filename=(\S+)", command_line(waiting))
        data = Path(target)
        before = data.stat().st_mtime_ns
        # Otherwise it would start another agent, which writes.
        run.process.send_signal(signal.SIGSTOP)
        os.kill(agent, signal.SIGKILL)
        run.wait_for(lambda: not command_line(waiting))
        assert data.stat().st_mtime_ns == before
        run.process.send_signal(signal.SIGCONT)
        os.kill(other, signal.SIGCONT)
        run.complete()
    # On a busy machine, the other agent may be frozen only after it has armed.
    assert {*aborts(run.trials())} in ({AbortReason.CLIENT_LOST}, {AbortReason.LATE_CLIENT})
    assert_every_planned_trial_is_measured_once(run, passes=1)


@pytest.mark.fault(
    "Conductor and clients",
    "`plimsoll run` is interrupted",
    "while measuring",
    ends="the trial is recorded as aborted (`Interrupted`), the data is removed, and `--resume` continues",
    within="a few seconds",
)
@pytest.mark.essential
def test_ctrl_c_leaves_a_correct_state_and_resume_continues_from_it(tmp_path: Path, fio: str) -> None:
    with LocalRun(tmp_path, fio, make_spec(repetitions=3)) as run:
        run.wait_for(lambda: len(run.counted()) == 1)
        run.wait_for_trial(seconds_in=1)
        run.interrupt()
        code, _, err = run.finish()
        assert code == Exit.INTERRUPTED
        assert "1 of 3" in err
        assert "--resume" in err
        assert list(run.data.iterdir()) == []
    assert faults(run.trials()) == [AbortReason.INTERRUPTED]
    before = run.trials()
    with LocalRun(tmp_path, fio, None, "--resume") as resumed:
        resumed.complete()
    assert resumed.trials()[: len(before)] == before, "what was recorded stays as it was"
    assert_every_planned_trial_is_measured_once(resumed, passes=3)


def test_a_second_run_into_the_same_output_is_refused(tmp_path: Path, fio: str) -> None:
    with LocalRun(tmp_path, fio, make_spec(repetitions=1)) as run:
        run.finish()
    kept = run.trials()
    with LocalRun(tmp_path, fio) as again:
        code, _, err = again.finish()
    assert code == 1
    assert "--resume" in err
    assert run.trials() == kept


@pytest.mark.fault(
    "Conductor and clients",
    "`plimsoll run` is killed",
    "while measuring",
    ends="no process is left, the trial is recorded as aborted (`Interrupted`), and `--resume` continues",
    within="15 s",
)
def test_killing_the_launcher_ends_everything(tmp_path: Path, fio: str) -> None:
    with LocalRun(tmp_path, fio) as run:
        run.wait_for_trial(seconds_in=1)
        run.process.kill()
        run.process.wait()
        assert_gone_within(str(tmp_path), seconds=15)
    assert run.state is not None
    assert run.state.phase is RunPhase.INTERRUPTED
    assert faults(run.trials()) == [AbortReason.INTERRUPTED]


def assert_gone_within(text: str, *, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while pids := processes_naming(text):
        assert time.monotonic() < deadline, [command_line(pid) for pid in pids]
        time.sleep(0.1)


@pytest.mark.essential
def test_a_missing_fio_is_reported_at_once(tmp_path: Path) -> None:
    with LocalRun(tmp_path, "/nonexistent/fio") as run:
        code, _, err = run.finish(seconds=30)
    assert code == 1
    assert "install fio" in err


@pytest.mark.fault(
    "Storage",
    "The volume is full",
    "while a client prefills it",
    ends="`Succeeded=False`, `PreparationFailed` with the tool's output",
    within="as soon as the tool fails",
)
def test_a_full_directory_fails_the_preparation_with_the_tool_s_output(tmp_path: Path, fio: str) -> None:
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(tmp_path / "data")], check=True)
    try:
        with LocalRun(tmp_path, fio) as run:
            code, _, err = run.finish()
    finally:
        subprocess.run(["umount", str(tmp_path / "data")], check=True)
    assert code == 1
    assert "PreparationFailed" in err
    assert "client" in err


def test_clients_share_a_device_without_touching_each_others_part(tmp_path: Path, fio: str, loop_device: Path) -> None:
    options = ("--device", str(loop_device), "--destroy-data")
    with LocalRun(tmp_path, fio, make_spec(repetitions=1), *options) as run:
        run.complete()
    assert_every_planned_trial_is_measured_once(run, passes=1)
    (result,) = run.found()
    assert result.status.environment.data_set_bytes == Extremes(min=32 * 2**20, max=32 * 2**20)


@pytest.fixture
def loop_device(own_disk: Path) -> Iterator[Path]:
    backing = own_disk / "disk"
    backing.write_bytes(b"")
    os.truncate(backing, 64 * 2**20)
    device = subprocess.run(
        ["losetup", "--find", "--show", str(backing)], check=True, capture_output=True, text=True
    ).stdout.strip()
    yield Path(device)
    subprocess.run(["losetup", "--detach", device], check=True)


@pytest.mark.essential
def test_the_installed_commands_start() -> None:
    for name in ("plimsoll", "kubectl-plimsoll"):
        program = Path(sys.executable).with_name(name)
        shown = subprocess.run([program, "--help"], check=True, capture_output=True, text=True).stdout
        assert "plan" in shown


@pytest.mark.essential
def test_an_agent_with_a_wrong_token_is_refused_without_effect_on_the_run(tmp_path: Path, fio: str) -> None:
    with LocalRun(tmp_path, fio, make_spec(repetitions=1)) as run:
        conductor = command_line(run.conductor()).split()
        secret = tmp_path / "guessed"
        shutil.copytree(conductor[conductor.index("--secret") + 1], secret, ignore=shutil.ignore_patterns("scratch"))
        (secret / TOKEN_FILE).write_text("guessed")
        url = f"https://127.0.0.1:{conductor[conductor.index('--port') + 1]}"
        assignment = Assignment(
            conductor=url,
            client=0,
            attempt=9,
            work=str(tmp_path / "work"),
            tools=("fio",),
        )
        intruder = subprocess.run(
            [sys.executable, "-m", "plimsoll", "agent", "--assignment=-", f"--secret={secret}", f"--fio={fio}"],
            input=assignment.model_dump_json(),
            check=False,
            capture_output=True,
            text=True,
            timeout=60,
        )
        run.complete()
    assert intruder.returncode == EXIT_REFUSED
    assert "token" in intruder.stderr
    assert faults(run.trials()) == []
    assert_every_planned_trial_is_measured_once(run, passes=1)
