"""Cold and warm caches, by the counters of a disk and not by time, with a real fio in local mode.

The run measures a file system in an image, whose file is on a disk of its own. fio drops the pages of its own file
before it measures; the page cache of the image is below that, where only `prepare.dropCaches` reaches it.
"""

import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from plimsoll.api.names import Outcome
from plimsoll.api.result import Trial
from plimsoll.measure.attempts import counted
from support.disks import mounted_disk, mounted_image
from support.local_run import LocalRun, make_spec

# In one process: one of the tests drops what the other one expects to be cached.
pytestmark = [pytest.mark.system, pytest.mark.fio, pytest.mark.xdist_group("caches")]

SECTOR = 512
READS = {"name": "read", "fio": {"pattern": "read", "blockSize": ["64Ki"], "directIo": False, "ioDepth": [1]}}
WORKLOAD = READS | {"runtimeSeconds": 3, "rampSeconds": 0}


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """Return the counters of the disk below the image in which a run measures `data`."""
    below = tmp_path / "below"
    with mounted_disk(tmp_path, below), mounted_image(below / "image", tmp_path / "data"):
        device = subprocess.run(["findmnt", "-no", "SOURCE", str(below)], check=True, capture_output=True, text=True)
        yield Path("/sys/block") / Path(device.stdout.strip()).name / "stat"


def bytes_read(disk: Path) -> int:
    return int(disk.read_text().split()[2]) * SECTOR


@dataclass(frozen=True)
class Course:
    """The trials that a run measured, the size of its data set, and what was read from the disk meanwhile."""

    trials: list[Trial]
    data_set_bytes: int
    from_disk: int


def measure(directory: Path, disk: Path, fio: str, *, drops_caches: bool) -> Course:
    prepare = {"settleSeconds": 0, "dropCaches": drops_caches}
    before = bytes_read(disk)
    with LocalRun(directory, fio, make_spec(clients={"count": 1}, workloads=[WORKLOAD], prepare=prepare)) as run:
        code, _, err = run.finish()
    assert code in {0, 2}, err
    (result,) = run.found()
    size = result.status.environment.data_set_bytes
    assert size is not None
    trials = [trial for trial in run.trials() if trial.outcome is Outcome.MEASURED]
    return Course(trials, size.min, bytes_read(disk) - before)


def test_a_run_that_drops_no_caches_reads_nothing_from_the_disk(tmp_path: Path, disk: Path, fio: str) -> None:
    warm = measure(tmp_path, disk, fio, drops_caches=False)
    assert {trial.caches for trial in warm.trials} == {None}
    assert warm.from_disk < 0.1 * warm.data_set_bytes, "the page cache of the image answers"


def test_a_run_that_drops_caches_reads_its_data_from_the_disk_in_every_trial(
    tmp_path: Path, disk: Path, fio: str
) -> None:
    assert os.access("/proc/sys/vm/drop_caches", os.W_OK), "run this test as root, where caches can be dropped"
    cold = measure(tmp_path, disk, fio, drops_caches=True)
    expected = cold.data_set_bytes * len(cold.trials)
    # The metadata of both file systems, and data that is read ahead, come on top.
    assert 0.99 * expected < cold.from_disk < 1.5 * expected
    assert all(trial.caches is not None and trial.caches.node_count == 1 for trial in cold.trials)
    # A repeated attempt keeps only the number of its nodes.
    for trial in counted(cold.trials):
        assert trial.caches is not None
        (node,) = trial.caches.nodes
        assert node.node == os.uname().nodename
        assert node.before_bytes - node.after_bytes > cold.data_set_bytes, "the data set is among what was dropped"
