"""Only one run at a time measures a directory or device, which is released whenever that run ends."""

import fcntl
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from plimsoll.cli import local_storage
from plimsoll.cli.local_storage import LOCK_FILE, PlaceError, claimed_devices, claimed_directory
from plimsoll.cli.run import command as run_command

QUICKSTART = Path(__file__).parents[1] / "golden" / "plan-v1-quickstart.yaml"
HOLD = """
import signal, sys
from pathlib import Path
from plimsoll.cli.local_storage import claimed_directory

with claimed_directory(Path(sys.argv[1]), "first"):
    print("held", flush=True)
    signal.pause()
"""


@pytest.fixture
def holder(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Yield another process that has locked the directory."""
    with subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_second_run_in_a_directory_is_refused_with_the_first_one(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    with pytest.raises(PlaceError) as caught, claimed_directory(tmp_path, "second"):
        pass
    assert str(caught.value) == (
        f"--directory {tmp_path} is being measured by another run (run first, process {holder.pid}); "
        "wait until it has ended: two runs would share the throughput"
    )


def test_refused_run_leaves_no_plan_that_would_have_to_be_resumed(
    tmp_path: Path, holder: subprocess.Popen[str]
) -> None:
    results = tmp_path / "results"
    options = [str(QUICKSTART), "--directory", str(tmp_path), "--results", str(results)]
    refused = CliRunner().invoke(run_command, options)
    assert refused.exit_code == 1
    assert f"process {holder.pid}" in refused.output
    assert not results.exists()


def test_killed_run_holds_nothing(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    with claimed_directory(tmp_path, "second"):
        assert (tmp_path / LOCK_FILE).read_text() == f"run second, process {os.getpid()}\n"


def test_directory_is_left_as_it_was(tmp_path: Path) -> None:
    with claimed_directory(tmp_path, "first"):
        pass
    with pytest.raises(ZeroDivisionError), claimed_directory(tmp_path, "second"):
        raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == []


def test_lock_of_a_removed_file_does_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A finished run removes its file; a process that opened it before must not mistake it for the current one."""
    path = tmp_path / LOCK_FILE
    locking = fcntl.flock
    calls = []

    def flock(descriptor: int, operation: int) -> None:
        calls.append(descriptor)
        if len(calls) == 1:
            path.unlink()
        locking(descriptor, operation)

    monkeypatch.setattr("fcntl.flock", flock)
    with claimed_directory(tmp_path, "first"):
        assert len(calls) == 2
        with pytest.raises(PlaceError, match="run first"), claimed_directory(tmp_path, "second"):
            pass


def test_lock_that_is_a_link_to_something_else_is_not_followed(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text("precious")
    (tmp_path / LOCK_FILE).symlink_to(other)
    with pytest.raises(PlaceError, match="cannot be locked"), claimed_directory(tmp_path, "first"):
        pass
    assert other.read_text() == "precious"


def test_missing_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PlaceError, match="No such file or directory"), claimed_directory(tmp_path / "no", "first"):
        pass


def test_device_has_one_run_and_is_free_after_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lock is on the file, of any kind."""
    monkeypatch.setattr(local_storage, "_PROBE_SECONDS", 0)
    device, other = tmp_path / "device", tmp_path / "other"
    device.touch()
    other.touch()
    with (
        claimed_devices([device]),
        pytest.raises(PlaceError, match=f"--device {device} is locked by another program"),
        claimed_devices([other, device]),
    ):
        pass
    with claimed_devices([other, device]):
        pass
    with pytest.raises(PlaceError, match="No such file or directory"), claimed_devices([tmp_path / "no"]):
        pass


def test_device_that_udev_looks_at_just_now_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    device = tmp_path / "device"
    device.touch()
    with device.open() as probing:
        fcntl.flock(probing, fcntl.LOCK_SH)
        monkeypatch.setattr("time.sleep", lambda _: fcntl.flock(probing, fcntl.LOCK_UN))
        with claimed_devices([device]):
            pass
