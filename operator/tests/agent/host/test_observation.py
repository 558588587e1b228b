"""The observation of a trial's host, whose clock the test controls."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from plimsoll.agent import observation as module
from plimsoll.agent.observation import DataSetIdentity, HostObservation, identify
from plimsoll.measure.sample import Measurement
from plimsoll.tools.target import VolumeKind, VolumeTarget
from support.agents import DEVICE_STAT, HostTree

SECOND = 10**9
NUMBER = "252:16"
DATA_SET = DataSetIdentity(path="/dev/plimsoll-volume", file=None, device=252 * 256 + 16)


class Running:
    """A host on which time passes and counters increase."""

    def __init__(self, tree: HostTree, monkeypatch: pytest.MonkeyPatch) -> None:
        self.tree = tree
        self.seconds = 0
        self.step = 0
        monkeypatch.setattr("time.time_ns", lambda: (self.seconds + self.step) * SECOND)
        monkeypatch.setattr("time.monotonic_ns", lambda: self.seconds * SECOND)
        self.pass_time(0)

    def pass_time(self, seconds: int) -> None:
        self.seconds += seconds
        self.tree.write("proc/stat", f"cpu  {100 * self.seconds} 0 0 {300 * self.seconds} 0 0 0 0 0 0\ncpu0\ncpu1\n")
        if (self.tree.directory / "sys/fs").exists():
            stat = f"usage_usec {500_000 * self.seconds}\nnr_throttled 0\nthrottled_usec 0\n"
            self.tree.write("sys/fs/cgroup/cpu.stat", stat)


@pytest.fixture
def running(tree: HostTree, monkeypatch: pytest.MonkeyPatch) -> Running:
    tree.in_unified_pod()
    tree.device(NUMBER)
    return Running(tree, monkeypatch)


def observe(running: Running, seconds: int, *, data_set: DataSetIdentity | None = DATA_SET) -> HostObservation:
    observation = HostObservation(running.tree.host, data_set, work_directory="/nowhere")
    for _ in range(seconds):
        running.pass_time(1)
        observation.look(100)
    observation.end()
    return observation


def measured(start: float, runtime: float) -> Measurement:
    return Measurement(
        tool="fio", tool_version="3.39", started_at=int(start * SECOND), runtime=int(runtime * SECOND), operations=()
    )


def test_the_observation_encloses_the_measurement_with_a_second_on_either_side(running: Running) -> None:
    host = observe(running, 20).host_use(measured(5.5, 10))
    assert host is not None
    assert host.seconds == 16 - 5
    assert (host.cpu.used, host.cpu.node_busy, host.cpu.limit) == (0.5, 0.25, 1.5)
    assert host.memory.used == 4_096_000
    assert host.device is not None
    assert (host.device.number, host.device.written) == (NUMBER, 0)


@pytest.mark.fault(
    "Clocks",
    "A node's clock steps by 2 s to an hour, either way",
    "while an agent observes its machine",
    ends="rates and shares of processors and devices are unaffected",
    within="no delay",
)
@pytest.mark.parametrize("step", [-3600, -2, 10, 3600])
def test_setting_the_clock_has_no_effect(running: Running, step: int) -> None:
    observation = HostObservation(running.tree.host, DATA_SET, work_directory="/nowhere")
    for second in range(20):
        running.pass_time(1)
        running.step = step if second >= 10 else 0
        observation.look(100)
    observation.end()
    host = observation.host_use(measured(5.5, 10))
    assert host is not None
    assert host.seconds == 16 - 5
    assert (host.cpu.used, host.cpu.node_busy) == (0.5, 0.25)


def test_the_first_snapshot_is_taken_before_the_tool_starts(running: Running) -> None:
    host = observe(running, 3).host_use(measured(0.2, 2.5))
    assert host is not None
    assert host.seconds == 3


def test_a_client_in_a_shared_group_has_no_usage_of_its_own(running: Running) -> None:
    running.tree.process(9, parent=1)
    running.tree.write("sys/fs/cgroup/cgroup.procs", "1\n7\n9\n")
    host = observe(running, 5).host_use(measured(1, 2))
    assert host is not None
    assert (host.cpu.used, host.memory.used) == (None, None)
    assert host.cpu.throttled_seconds == 0, "the group's quota would stop it too"
    assert (host.cpu.limit, host.memory.limit) == (1.5, 2**30)


def test_a_tool_without_a_data_set_has_no_device_and_no_foreign_target(running: Running) -> None:
    observation = observe(running, 5, data_set=None)
    host = observation.host_use(measured(1, 2))
    assert host is not None
    assert host.device is None
    assert observation.foreign_target == ""


def test_without_a_measurement_there_is_no_host_use(running: Running) -> None:
    assert observe(running, 5).host_use(None) is None


@pytest.mark.parametrize("missing", ["proc/stat", "proc/meminfo", "proc/net/dev"])
def test_an_unreadable_host_is_unknown_without_an_error(running: Running, missing: str) -> None:
    (running.tree.directory / missing).unlink()
    observation = HostObservation(running.tree.host, DATA_SET, work_directory="/nowhere")
    observation.look(100)
    observation.end()
    assert observation.host_use(measured(0, 0)) is None


def test_a_device_whose_statistics_vanish_is_unknown(running: Running) -> None:
    observation = HostObservation(running.tree.host, DATA_SET, work_directory="/nowhere")
    running.pass_time(10)
    running.tree.device(NUMBER, DEVICE_STAT[:10])
    observation.end()
    host = observation.host_use(measured(1, 2))
    assert host is not None
    assert host.device is None


def test_a_long_trial_keeps_a_bounded_number_of_snapshots_and_its_ends(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MAX_SNAPSHOTS", 32)
    observation = observe(running, 200)
    assert len(observation._snapshots) <= 32
    host = observation.host_use(measured(20, 160))
    assert host is not None
    assert 160 <= host.seconds <= 200
    assert host.cpu.used == pytest.approx(0.5)


@pytest.mark.parametrize(("file", "uncut"), [(None, 2**17), ((252 * 256 + 16, 2), None)])
def test_the_split_size_is_known_for_a_device_and_not_for_a_file(
    running: Running, file: tuple[int, int] | None, uncut: int | None
) -> None:
    for name, value in {"max_sectors_kb": 128, "max_segments": 65535, "chunk_sectors": 0}.items():
        running.tree.write(f"sys/dev/block/{NUMBER}/queue/{name}", f"{value}\n")
    data_set = DataSetIdentity(path="/data", file=file, device=DATA_SET.device)
    host = observe(running, 5, data_set=data_set).host_use(measured(1, 2))
    assert host is not None
    assert host.uncut_bytes == uncut


def test_the_tool_s_files_are_looked_at(running: Running, tmp_path: Path) -> None:
    target, other = tmp_path / "target", tmp_path / "other"
    for file in (target, other):
        file.write_text("data")
    identity = identify(VolumeTarget(kind=VolumeKind.FILE, path=str(target), size=4))
    running.tree.opened(100, 4, other)
    assert str(other) in observe(running, 2, data_set=identity).foreign_target


def test_the_tool_s_io_is_that_of_the_measurement(running: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """It excludes the ramp, and includes I/O after the last look."""
    ended = [0]
    monkeypatch.setattr(
        "resource.getrusage", lambda _: SimpleNamespace(ru_inblock=ended[0] // 512, ru_oublock=7 + 2 * ended[0] // 512)
    )
    observation = HostObservation(running.tree.host, DATA_SET, work_directory="/nowhere")
    for second in range(1, 21):
        running.pass_time(1)
        running.tree.write("proc/100/io", f"read_bytes: {51_200 * second}\nwrite_bytes: {102_400 * second}\n")
        observation.look(100)
    ended[0] = 51_200 * 21
    running.pass_time(1)
    observation.end()
    host = observation.host_use(measured(5.5, 15))
    assert host is not None
    assert host.tool is not None
    assert (host.seconds, host.tool.read, host.tool.written) == (16, 51_200, 102_400)


def test_a_look_between_the_tool_s_end_and_the_last_snapshot_loses_nothing(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = [0]
    monkeypatch.setattr("resource.getrusage", lambda _: SimpleNamespace(ru_inblock=ended[0] // 512, ru_oublock=0))
    io = running.tree.write("proc/100/io", "read_bytes: 0\nwrite_bytes: 0\n")
    observation = HostObservation(running.tree.host, DATA_SET, work_directory="/nowhere")
    running.pass_time(1)
    observation.look(100)
    io.unlink()
    ended[0] = 51_200
    running.pass_time(1)
    observation.look(100)
    running.pass_time(1)
    observation.end()
    host = observation.host_use(measured(1, 1))
    assert host is not None
    assert host.tool is not None
    assert host.tool.read * host.seconds == 51_200


@pytest.mark.parametrize(
    ("lines", "unseen"),
    [
        ("9 1 0:99 / / rw - overlay overlay rw\n10 9 0:40 / /mnt rw - tmpfs shm rw\n", "tmpfs"),
        ("", "an unknown file system"),
    ],
)
def test_a_file_without_a_block_device_names_its_file_system(running: Running, lines: str, unseen: str) -> None:
    running.tree.write("proc/self/mountinfo", lines)
    identity = DataSetIdentity(path="/mnt/data", file=(40, 2), device=40)
    host = observe(running, 5, data_set=identity).host_use(measured(1, 2))
    assert host is not None
    assert (host.device, host.unseen) == (None, unseen)


def test_without_a_data_set_no_storage_is_missing(running: Running) -> None:
    host = observe(running, 5, data_set=None).host_use(measured(1, 2))
    assert host is not None
    assert host.unseen == ""
