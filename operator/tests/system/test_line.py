"""The search for the line on a real device, which the kernel limits to a number of reads per second."""

from pathlib import Path

import pytest

from plimsoll.api.line import Probe, ProbeOutcome
from plimsoll.api.names import Verdict
from support.local_run import THROTTLE, found_line, line_of

pytestmark = [pytest.mark.system, pytest.mark.fio, pytest.mark.quiet]

_TOLERANCE = 0.03
"""By how much, as a part of the line, the interval may miss it. One interval of twenty does not contain the line; at
a width of 9 % its standard deviation is 2.3 %, so that this is more than one beyond its ends. It also covers what the
simulation of theory leaves open, about 0.5 %."""

_PRECISION_PERCENT = 15
_WIDEST_PERCENT = 30
"""On a busy machine a search may end less precise, after its last probe; an interval wider than this proves nothing."""

_SURE = 0.99
"""Where this share of simulated trials has one outcome, so has the real one."""


def test_the_interval_contains_the_line_of_a_throttled_device(tmp_path: Path, fio: str) -> None:
    """Theory knows the limit of Linux, not the result: the line is where half of its simulated trials hold."""
    expected = THROTTLE.line()
    result = found_line(tmp_path, fio, _PRECISION_PERCENT)
    line = line_of(result)
    assert line.low is not None
    assert line.high is not None
    assert line.width_percent is not None
    assert line.width_percent <= _WIDEST_PERCENT, line
    assert line.low * (1 - _TOLERANCE) <= expected <= line.high * (1 + _TOLERANCE), line
    # What a busy machine disturbed is Suspect at least.
    probes = [trial.probe for trial in result.status.trials if trial.verdict is Verdict.VALID]
    unexpected = [probe for probe in probes if probe is not None and _is_unexpected(probe)]
    assert len(unexpected) <= 1, unexpected


def _is_unexpected(probe: Probe) -> bool:
    """Whether nearly all simulated trials at its load have the other outcome."""
    share = THROTTLE.share_met(probe.offered, trials=100)
    return (1 - share if probe.outcome is ProbeOutcome.MET else share) >= _SURE
