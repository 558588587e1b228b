"""The clock of a client or of the conductor is set during a trial: that trial does not count, and the next one does."""

import asyncio
import time
from enum import Enum
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from plimsoll.agent import agent
from plimsoll.agent.worker import Armed
from plimsoll.api.names import AbortReason, Outcome, Verdict
from plimsoll.api.storage import Prepare
from plimsoll.conductor import server
from plimsoll.conductor.main import EXIT_COMPLETE
from plimsoll.conductor.sink import FilesSink
from plimsoll.measure.sample import ClientDocument, Clock
from plimsoll.protocol.messages import ArmOrder, GoOrder, Order, Ordered
from support.client_documents import make_plan
from support.rendezvous import PretendedWork, Setting

LATE = {AbortReason.LATE_CLIENT, AbortReason.CLIENT_NOT_ARMED}


class SteppedTime:
    """The module `time` of one program, whose clock is set by `step` seconds."""

    step = 0.0

    monotonic = staticmethod(time.monotonic)
    monotonic_ns = staticmethod(time.monotonic_ns)

    def time_ns(self) -> int:
        return time.time_ns() + int(self.step * 10**9)


class When(Enum):
    """When a clock is set, and set back."""

    BEFORE_THE_LOAD = "before the load, and back before the next attempt"
    UNDER_LOAD = "under load, and back before the next attempt"
    FOR_THE_START = "before the load, and back under load"


class SteppedWork(PretendedWork):
    """Sets a clock in the first attempt, and back."""

    def __init__(self, clock: SteppedTime, step: float, when: When) -> None:
        super().__init__(0)
        self._clock = clock
        self._step = step
        self._when = when

    async def arm(self, order: ArmOrder) -> Armed:
        if order.trial.attempt:
            self._clock.step = 0.0
        return await super().arm(order)

    async def measure(self, armed: Armed, clock: Clock) -> ClientDocument:
        if not armed.order.trial.attempt and self._when is not When.BEFORE_THE_LOAD:
            self._clock.step = self._step if self._when is When.UNDER_LOAD else 0.0
        return await super().measure(armed, clock)

    def note(self, order: Order) -> None:
        """Take note of an order: `Go` comes after the comparison of clocks, and before the load."""
        if self._when is not When.UNDER_LOAD and isinstance(order, GoOrder) and not order.trial.attempt:
            self._clock.step = self._step


@pytest.mark.fault(
    "Clocks",
    "The clock of a client's or the conductor's node steps by 5 s, either way",
    "while measuring",
    ends="the trial is Invalid (`ClockOffset`) or aborted (`LateClient`), and repeated",
    within="the end of the trial",
)
@pytest.mark.parametrize(
    ("whose", "step", "when"),
    [
        *product(("client", "conductor"), (5.0, -5.0), (When.BEFORE_THE_LOAD, When.UNDER_LOAD)),
        ("client", -1.0, When.FOR_THE_START),
        ("client", 0.2, When.FOR_THE_START),
    ],
)
async def test_a_trial_in_which_a_clock_is_set_does_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whose: str, step: float, when: When
) -> None:
    plan = make_plan(points=1, clients=1, repetitions=1).model_copy(update={"prepare": Prepare(settle_seconds=0)})
    setting, clock = Setting(tmp_path, plan), SteppedTime()
    monkeypatch.setattr(agent if whose == "client" else server, "time", clock)
    work, ask = SteppedWork(clock, step, when), agent.Connection.orders

    async def orders(connection: agent.Connection, **query: Any) -> Ordered:
        ordered = await ask(connection, **query)
        work.note(ordered.order)
        return ordered

    monkeypatch.setattr(agent.Connection, "orders", orders)
    async with asyncio.timeout(60):
        codes = await asyncio.gather(setting.conduct(), setting.agent(0, work=work))
    assert list(codes) == [EXIT_COMPLETE, 0]
    (trials,) = (await FilesSink(setting.results).load()).trials.values()
    first, last = trials[0], trials[-1]
    if first.outcome is Outcome.MEASURED:
        invalid = {finding.reason for finding in first.findings if finding.verdict is Verdict.INVALID}
        assert "ClockOffset" in invalid
    else:
        assert first.abort is not None
        assert first.abort.reason in LATE
    assert len(trials) > 1
    # On a busy machine, the other attempts may be late.
    assert last.abort is None or last.abort.reason in LATE
    assert "ClockOffset" not in {finding.reason for finding in last.findings}
