"""When a command that writes to Ceph counts as stuck."""

from pathlib import Path

import pytest

from plimsoll.agent.process import STALL_SECONDS, StalledError, StallWatch

HEADER = "Inter-|   Receive                |  Transmit\n face |bytes    packets ...    |bytes    packets ...\n"
PID = 7
MEBIBYTE = 2**20


class Network:
    """The kernel's counters, and a clock."""

    def __init__(self, directory: Path) -> None:
        self.now = 0.0
        self._path = directory / str(PID) / "net/dev"
        self._path.parent.mkdir(parents=True)
        self.watch = StallWatch(directory, clock=lambda: self.now)

    def look(self, at: float, *, lo: int = 0, eth0: int = 0) -> None:
        self._path.write_text(f"{HEADER}    lo: 9 1 0 0 0 0 0 0 {lo} 1 0\n  eth0: 9 1 0 0 0 0 0 0 {eth0} 1 0\n")
        self.now = at
        self.watch.look(PID)

    def remove(self) -> None:
        self._path.unlink()


def test_a_slow_sender_is_not_stuck(tmp_path: Path) -> None:
    network = Network(tmp_path)
    for number in range(20):
        network.look(at=number * (STALL_SECONDS - 1), eth0=number * MEBIBYTE)


def test_a_sender_to_this_host_is_not_stuck(tmp_path: Path) -> None:
    network = Network(tmp_path)
    network.look(at=0)
    network.look(at=STALL_SECONDS, lo=MEBIBYTE)


def test_keepalive_traffic_is_no_data(tmp_path: Path) -> None:
    network = Network(tmp_path)
    network.look(at=1, eth0=5 * MEBIBYTE)
    network.look(at=STALL_SECONDS, eth0=5 * MEBIBYTE + 10_000)
    with pytest.raises(StalledError, match="has sent nothing for 300 s, and was killed"):
        network.look(at=STALL_SECONDS + 1, eth0=5 * MEBIBYTE + 20_000)


def test_an_unreadable_process_is_not_stuck(tmp_path: Path) -> None:
    network = Network(tmp_path)
    network.look(at=0)
    network.remove()
    network.now = 2 * STALL_SECONDS
    network.watch.look(PID)
