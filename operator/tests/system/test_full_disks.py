"""The disks of a local run's results and of its programs' files are full."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from plimsoll.api.names import AbortReason, Verdict
from plimsoll.cli import Exit
from plimsoll.measure.attempts import counted
from support.local_run import LocalRun, descendants, make_spec

pytestmark = [pytest.mark.system, pytest.mark.fio, pytest.mark.storm, pytest.mark.usefixtures("own_disk")]


@contextmanager
def small_disk(place: Path) -> Iterator[None]:
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def fill(place: Path) -> Path:
    """Fill a disk, and return the file that does."""
    file = place / "filler"
    done = subprocess.run(["dd", "if=/dev/zero", f"of={file}", "bs=1k"], check=False, capture_output=True, text=True)
    assert "No space left" in done.stderr
    return file


@pytest.mark.fault(
    "Storage",
    "The disk of the results of `plimsoll run` is full",
    "while measuring",
    ends=(
        "the command fails and names the file; recorded trials are kept, and `--resume` repeats the one in flight "
        "(`ConductorRestarted`)"
    ),
    within="half a minute",
)
def test_a_full_disk_of_results_keeps_what_was_recorded(tmp_path: Path, fio: str) -> None:
    results = tmp_path / "results"
    with small_disk(results):
        with LocalRun(tmp_path, fio, make_spec(repetitions=2)) as run:
            run.wait_for(lambda: len(run.counted()) == 1)
            filler = fill(results)
            code, _, err = run.finish(seconds=180)
            assert code == Exit.ERROR
            assert "No space left on device: " in err
            assert str(results) in err
            recorded = run.trials()
            assert len(counted(recorded)) == 1
            assert not descendants(run.process.pid)
        assert list(run.data.iterdir()) == [], "the data is removed"
        assert not list(results.glob(".*")), "no draft is left"
        filler.unlink()
        with LocalRun(tmp_path, fio, None, "--resume") as resumed:
            resumed.complete()
        assert resumed.trials()[: len(recorded)] == recorded
        aborted = [trial.abort.reason for trial in resumed.trials() if trial.abort]
        assert AbortReason.CONDUCTOR_RESTARTED in aborted


@pytest.mark.fault(
    "Storage",
    "The disk of an agent's working directory is full",
    "while measuring",
    ends="the trials are Invalid (`OutputUnreadable` or `ToolFailed`), and the run has no number",
    within="the end of the trial",
)
def test_a_full_disk_of_an_agent_gives_no_number(tmp_path: Path, fio: str, monkeypatch: pytest.MonkeyPatch) -> None:
    scratch = tmp_path / "scratch"
    with small_disk(scratch):
        monkeypatch.setenv("TMPDIR", str(scratch))
        with LocalRun(tmp_path, fio, make_spec(repetitions=1)) as run:
            run.wait_for_trial(seconds_in=0)
            fill(scratch)
            code, _, _ = run.finish(seconds=180)
            assert code == Exit.NOT_VALID
            for trial in run.trials():
                assert trial.verdict is Verdict.INVALID
                (finding,) = trial.findings
                assert finding.reason in {"OutputUnreadable", "ToolFailed"}
                assert finding.reason != "OutputUnreadable" or "disk of the client's temporary files" in finding.message
        assert list(run.data.iterdir()) == []
