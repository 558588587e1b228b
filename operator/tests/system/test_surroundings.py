"""Foreign load on a local run's storage, and invisible storage, with real disks and a real fio."""

import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from plimsoll.api.names import Outcome, Verdict
from support.local_run import LocalRun, make_spec

pytestmark = [pytest.mark.system, pytest.mark.fio]

# Three at a time and first in line for a processor, so that they keep the disk busy on a busy machine too.
_COPIES = """
for number in 1 2 3; do
    while true; do dd if=/dev/zero of="$1.$number" bs=1M count=64 oflag=direct status=none; done &
done
wait
"""


@contextmanager
def copying(file: Path) -> Iterator[None]:
    """Write files past the page cache, again and again, until the context ends."""
    command = ["nice", "-n", "-10", "sh", "-c", _COPIES, "copy", str(file)]
    process = subprocess.Popen(command, start_new_session=True)
    try:
        yield
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait()


def reasons(run: LocalRun) -> list[set[str]]:
    """Return the reasons of each trial that was measured; none of them is Valid."""
    trials = [trial for trial in run.trials() if trial.outcome is Outcome.MEASURED]
    assert trials
    assert Verdict.VALID not in {trial.verdict for trial in trials}
    return [{finding.reason for finding in trial.findings} for trial in trials]


def test_copying_on_the_same_disk_is_foreign_load(tmp_path: Path, fio: str) -> None:
    with copying(tmp_path / "copy"), LocalRun(tmp_path, fio, make_spec(repetitions=1)) as run:
        run.finish()
    assert all("ForeignDeviceLoad" in found for found in reasons(run))


def test_a_file_system_in_memory_does_not_count_as_storage(fio: str) -> None:
    """tmpfs accepts direct I/O since Linux 6.6, and has no device to observe."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as directory:
        with LocalRun(Path(directory), fio, make_spec(repetitions=1)) as run:
            run.finish()
        assert all("CacheNotExcluded" in found for found in reasons(run))
