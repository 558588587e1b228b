"""Conductor and agents in a network of their own, which is slow, loses packets, or is cut for a while."""

import ctypes
import os
import subprocess
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from plimsoll.api.names import AbortReason
from plimsoll.api.result import Trial
from plimsoll.cli import Exit
from plimsoll.measure.attempts import counted
from support.local_run import LocalRun, make_spec

pytestmark = [pytest.mark.system, pytest.mark.fio, pytest.mark.storm, pytest.mark.usefixtures("own_disk")]

_SHAPED = ("tbf", "burst", "1600", "latency", "2s")
_NEW_NETWORK = 0x40000000  # CLONE_NEWNET
_BUSY = {AbortReason.LATE_CLIENT, AbortReason.CLIENT_NOT_ARMED}
"""What a busy machine may add to what a test does."""


class Network:
    """A network namespace whose only interface is the loopback."""

    def __init__(self) -> None:
        self._name = f"plimsoll-{uuid.uuid4().hex[:8]}"
        _call("ip", "netns", "add", self._name)
        _call("ip", "-n", self._name, "link", "set", "lo", "up")

        _call("ip", "-n", self._name, "link", "set", "lo", "mtu", "1500")

    def delete(self) -> None:
        _call("ip", "netns", "delete", self._name)

    def slow(self, rate: str) -> None:
        """Limit what the network carries, so that packets wait for each other."""
        _call("tc", "-n", self._name, "qdisc", "add", "dev", "lo", "root", *_SHAPED, "rate", rate)

    def lose(self, percent: int) -> None:
        """Lose this share of all packets from now on."""
        self._iptables("--flush")
        if percent:
            share = ("-m", "statistic", "--mode", "random", "--probability", str(percent / 100))
            self._iptables("--append", "INPUT", *share, "--jump", "DROP")

    def _iptables(self, *arguments: str) -> None:
        _call("ip", "netns", "exec", self._name, "iptables", "--wait", *arguments)

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Start all processes in this network."""
        library = ctypes.CDLL(None, use_errno=True)
        with Path("/proc/self/ns/net").open() as before, Path(f"/run/netns/{self._name}").open() as inside:
            try:
                _enter(library, inside.fileno())
                yield
            finally:
                _enter(library, before.fileno())


def _enter(library: ctypes.CDLL, namespace: int) -> None:
    if library.setns(namespace, _NEW_NETWORK):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def _call(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True)


@pytest.fixture
def network() -> Iterator[Network]:
    network = Network()
    yield network
    network.delete()


def start(network: Network, directory: Path, fio: str) -> LocalRun:
    with network.entered():
        return LocalRun(directory, fio, make_spec())


def finish(run: LocalRun) -> None:
    """Wait for the end of a run, whose trials a busy machine may have spoiled."""
    code, _, err = run.finish(seconds=240)
    assert code in {Exit.DONE, Exit.NOT_VALID}, err


def aborts(trials: list[Trial]) -> set[AbortReason]:
    return {trial.abort.reason for trial in trials if trial.abort is not None} - _BUSY


def assert_measured_once(run: LocalRun) -> None:
    for result in run.found():
        assert result.status.final
        passes = [trial.pass_number for trial in counted(result.status.trials)]
        assert passes, "no attempt counts"
        assert len(passes) == len(set(passes))


@pytest.mark.fault(
    "Network",
    "The network between conductor and agents carries 128 kbit/s",
    "during the whole run",
    ends="the run is measured; no trial is aborted (no `ClientLost`)",
    within="no delay worth mentioning",
)
def test_a_slow_network_costs_no_attempt(network: Network, tmp_path: Path, fio: str) -> None:
    network.slow("128kbit")
    with start(network, tmp_path, fio) as run:
        finish(run)
    assert AbortReason.CLIENT_LOST not in aborts(run.trials())
    for trial in counted(run.trials()):
        # Small packets after a pause are not slow, so that some comparisons succeed.
        assert "ClockOffset" not in {finding.reason for finding in trial.findings}
    assert_measured_once(run)


@pytest.mark.fault(
    "Network",
    "Every tenth packet between conductor and agents is lost",
    "during the whole run",
    ends="the run is measured; no trial is aborted (no `ClientLost`)",
    within="a few seconds later than usual",
)
def test_a_lossy_network_loses_no_trial(network: Network, tmp_path: Path, fio: str) -> None:
    network.lose(10)
    with start(network, tmp_path, fio) as run:
        finish(run)
    assert AbortReason.CLIENT_LOST not in aborts(run.trials())
    assert_measured_once(run)


@pytest.mark.fault(
    "Network",
    "The network between conductor and agents is cut for 8 s",
    "while measuring",
    ends="the trial counts: its load needs no network (no `ClientLost`)",
    within="no delay",
)
def test_a_cut_that_is_shorter_than_the_patience_costs_nothing(network: Network, tmp_path: Path, fio: str) -> None:
    with start(network, tmp_path, fio) as run:
        run.wait_for_trial(seconds_in=1)
        network.lose(100)
        time.sleep(8)
        network.lose(0)
        finish(run)
    assert AbortReason.CLIENT_LOST not in aborts(run.trials())
    assert_measured_once(run)


@pytest.mark.fault(
    "Network",
    "The network between conductor and agents is cut for 30 s",
    "while measuring",
    ends="the trial is aborted (`ClientLost`); the agents return with what they have prepared, and it is repeated",
    within="20 s, and the trial is repeated as soon as the network is back",
)
def test_a_longer_cut_costs_an_attempt(network: Network, tmp_path: Path, fio: str) -> None:
    with start(network, tmp_path, fio) as run:
        run.wait_for_trial(seconds_in=1)
        network.lose(100)
        run.wait_for(lambda: AbortReason.CLIENT_LOST in aborts(run.trials()), seconds=40)
        time.sleep(10)
        network.lose(0)
        finish(run)
        for client in range(2):
            log = (run.results / "logs" / f"client-{client}.log").read_text()
            assert log.count("prepared") == 1, "the agents lived on and did not prefill again"
    assert aborts(run.trials()) == {AbortReason.CLIENT_LOST}
    assert_measured_once(run)
