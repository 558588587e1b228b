"""A new data set for each trial, with real processes and a real fio: discarded, written again, and after kills."""

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from plimsoll.api.names import AbortReason, RunPhase
from support.local_run import LocalRun, make_spec

pytestmark = [pytest.mark.system, pytest.mark.fio, pytest.mark.usefixtures("own_disk")]

MEBIBYTE = 2**20
DEVICE_BYTES = 64 * MEBIBYTE
BLOCK_BYTES = 512
WHOLE_DEVICE: dict[str, Any] = {
    "name": "whole",
    "fio": {"pattern": "write", "blockSize": ["1Mi"], "ioDepth": [4], "until": "DataSetDone", "rateIops": 12},
    "runtimeSeconds": 60,
    "rampSeconds": 0,
}


def prepared(run: LocalRun, client: int) -> int:
    """Return how often a client's processes have prepared its data set."""
    logs = (run.results / "logs").glob(f"client-{client}*.log")
    return sum(log.read_text().count("prepared ") for log in logs)


def allocated(path: Path) -> int:
    return path.stat().st_blocks * BLOCK_BYTES


@pytest.fixture
def backing(own_disk: Path) -> Path:
    """Return the sparse file that the loop device is on: it has blocks for what is written and not discarded."""
    file = own_disk / "disk"
    file.touch()
    os.truncate(file, DEVICE_BYTES)
    return file


@pytest.fixture
def loop_device(backing: Path) -> Iterator[Path]:
    command = ["losetup", "--find", "--show", str(backing)]
    device = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    yield Path(device)
    subprocess.run(["losetup", "--detach", device], check=True)


def test_a_whole_device_is_discarded_before_each_trial(
    tmp_path: Path, fio: str, backing: Path, loop_device: Path
) -> None:
    prepare = {"perTrial": "NewDataSet", "prefill": False, "settleSeconds": 2}
    spec = make_spec(prepare=prepare, workloads=[WHOLE_DEVICE], clients={"count": 1})
    with LocalRun(tmp_path, fio, spec, "--device", str(loop_device), "--destroy-data") as run:
        for done in range(2):
            settling = run.wait_for(
                lambda: s if (s := run.state) and (s.phase, s.trials_done) == (RunPhase.SETTLING, done) else None  # noqa: B023 - called at once
            )
            assert settling.message.startswith(f"new data set for whole-000 pass {done}")
            assert allocated(backing) < DEVICE_BYTES / 10
            run.wait_for(lambda: allocated(backing) > DEVICE_BYTES / 4)
        run.complete()
    assert all(trial.new_data_set for trial in run.trials())
    assert prepared(run, 0) == len(run.trials())
    assert "settling for 2 s after the preparation" in settling.message
    assert [trial.operations[0].bytes for trial in run.counted()] == pytest.approx([DEVICE_BYTES] * 2, rel=0.05)
    assert {finding.reason for trial in run.counted() for finding in trial.findings} & {"NotPrefilled"} == set()


def test_a_file_is_written_again_before_each_trial_also_after_kills(tmp_path: Path, fio: str) -> None:
    spec = make_spec(prepare={"perTrial": "NewDataSet", "settleSeconds": 1})
    with LocalRun(tmp_path, fio, spec) as run:
        run.wait_for_trial(seconds_in=1)
        os.kill(run.conductor(), signal.SIGKILL)
        run.wait_for(run.trials)
        run.wait_for_trial(seconds_in=1)
        os.kill(run.agent(1), signal.SIGKILL)
        run.complete()
    assert all(trial.new_data_set for trial in run.trials())
    aborts = [trial.abort.reason for trial in run.trials() if trial.abort]
    assert {AbortReason.CONDUCTOR_RESTARTED, AbortReason.CLIENT_LOST} <= set(aborts)
    # A client that was not armed in time keeps all others from any I/O: their data sets are still new.
    begun = len(run.trials()) - aborts.count(AbortReason.CLIENT_NOT_ARMED)
    assert prepared(run, 0) == begun
    assert prepared(run, 1) == begun
