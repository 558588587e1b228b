"""The API server's time, independent of this machine's clock."""

import math
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.kube.connection import ApiClock

BEGIN = datetime(2026, 1, 31, 12, tzinfo=UTC)


class Machine:
    """A machine that has been up for a while, and an API server elsewhere."""

    def __init__(self) -> None:
        self.uptime = 4321.0
        self.server = BEGIN
        self.clock = ApiClock(lambda: self.uptime)

    def wait(self, seconds: float) -> None:
        self.uptime += seconds
        self.server += timedelta(seconds=seconds)

    def ask(self, there: float = 0.01, back: float = 0.01) -> None:
        """Ask the server something; so long takes the way there and back."""
        asked = self.uptime
        self.wait(there)
        date = format_datetime(self.server, usegmt=True)
        self.wait(back)
        self.clock.read(date, asked, self.uptime)

    @property
    def error(self) -> float:
        return abs((self.clock.now() - self.server).total_seconds())


def test_before_the_first_answer_it_is_this_machines() -> None:
    begin = datetime.now(UTC)
    assert begin <= ApiClock().now() <= datetime.now(UTC)


@given(st.lists(st.tuples(st.floats(0, 10), st.floats(0, 2), st.floats(0, 2)), min_size=1))
def test_it_is_never_wrong_by_more_than_the_best_answer_allows(requests: list[tuple[float, float, float]]) -> None:
    machine, best = Machine(), math.inf
    for pause, there, back in requests:
        machine.wait(pause)
        machine.ask(there, back)
        best = min(best, there + back)
        assert machine.error <= (1 + best) / 2 + 0.001


def test_many_answers_say_it_more_exactly() -> None:
    machine = Machine()
    for _ in range(50):
        machine.wait(0.37)
        machine.ask()
    assert machine.error < 0.03


@pytest.mark.fault(
    "Clocks",
    "The API server's clock steps by 5 s or an hour, either way",
    "at any time",
    ends="deadlines follow the new time",
    within="at the next answer",
)
@pytest.mark.parametrize("step", [3600.0, -3600.0, 5.0, -5.0])
def test_a_server_whose_clock_is_set_is_followed(step: float) -> None:
    machine = Machine()
    for _ in range(50):
        machine.wait(0.37)
        machine.ask()
    machine.server += timedelta(seconds=step)
    machine.ask()
    assert machine.error < 0.6


def test_what_is_no_date_says_nothing() -> None:
    machine = Machine()
    machine.ask()
    before = machine.clock.now()
    machine.clock.read("yesterday", machine.uptime, machine.uptime)
    assert machine.clock.now() == before
