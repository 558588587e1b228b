"""Cold and warm caches, by the counters of a disk and not by time, with a real fio in local mode.

The run measures a file system in an image, whose file is on a disk of its own. fio drops the pages of its own file
before it measures; the page cache of the image is below that, where only `prepare.dropCaches` reaches it.
"""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from plimsoll.api.names import Outcome
from plimsoll.api.result import Trial
from support.local_run import LocalRun, make_spec
from support.own_disk import mounted_disk, mounted_image

pytestmark = [pytest.mark.system, pytest.mark.fio]

SECTOR = 512
DATA = 16 * 2**20
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


def measured(run: LocalRun) -> list[Trial]:
    code, _, err = run.finish()
    assert code in {0, 2}, err
    return run.trials()


def test_only_a_run_that_drops_caches_reads_from_the_disk(tmp_path: Path, disk: Path, fio: str) -> None:
    assert os.access("/proc/sys/vm/drop_caches", os.W_OK), "run this test as root, where caches can be dropped"
    found: dict[bool, tuple[list[Trial], int]] = {}
    for drops in (False, True):
        spec = make_spec(clients={"count": 1}, workloads=[WORKLOAD], prepare={"settleSeconds": 0, "dropCaches": drops})
        (tmp_path / "run.yaml").unlink(missing_ok=True)
        before = bytes_read(disk)
        with LocalRun(tmp_path, fio, spec, *(["--output", str(tmp_path / "cold")] if drops else [])) as run:
            run.results = tmp_path / ("cold" if drops else "results")
            found[drops] = measured(run), bytes_read(disk) - before
    warm, from_disk = found[False]
    assert [trial.caches for trial in warm] == [None] * len(warm)
    assert from_disk < 0.1 * DATA, "the page cache of the image answers"
    cold, from_disk = found[True]
    readings = [trial for trial in cold if trial.outcome is Outcome.MEASURED]
    # The metadata of both file systems, and data that is read ahead, come on top.
    assert 0.95 * DATA * len(readings) < from_disk < 1.5 * DATA * len(readings)
    for trial in readings:
        assert trial.caches is not None
        (node,) = trial.caches.nodes
        assert node.node == os.uname().nodename
        assert node.before_bytes - node.after_bytes > DATA, "the data set is among what was dropped"
