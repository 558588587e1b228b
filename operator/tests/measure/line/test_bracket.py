"""A line is shown by trials that ended on both sides of it."""

import pytest

from plimsoll.api.line import Line, ProbeOutcome
from plimsoll.api.names import Verdict
from plimsoll.measure.compare.lines import line_problem
from plimsoll.measure.line.search import Settings, TriedLoad, progress_of
from plimsoll.measure.line.summary import unproven_side
from support.results import above, below, line, probe, searched

_MET, _LATE, _UNKNOWN = ProbeOutcome.MET, ProbeOutcome.LATE, ProbeOutcome.UNKNOWN


@pytest.mark.parametrize(
    ("found", "outcomes", "missing"),
    [
        (line(1000), {900: _MET, 1100: _LATE}, ""),
        (line(1000), {1000: _MET, 1100: _LATE}, ""),
        (line(1000), {900: _MET, 1000: _LATE}, ""),
        (line(1000), {900: _MET, 1100: _UNKNOWN}, "no load at or above it broke"),
        (line(1000), {900: _MET, 950: _LATE}, "no load at or above it broke"),
        (line(1000), {900: _UNKNOWN, 1100: _LATE}, "no load at or below it met the objectives"),
        (line(1000), {1050: _MET, 1100: _LATE}, "no load at or below it met the objectives"),
        (above(), {1000: _MET}, ""),
        (above(), {1000: _UNKNOWN}, "no load met the objectives"),
        (below(), {1000: _LATE}, ""),
        (below(), {1000: _UNKNOWN}, "no load broke"),
    ],
)
def test_what_no_trial_shows(found: Line, outcomes: dict[int, ProbeOutcome], missing: str) -> None:
    trials = [probe(number, load, outcome) for number, (load, outcome) in enumerate(outcomes.items())]
    assert unproven_side(found, trials) == missing


def test_an_invalid_probe_shows_nothing() -> None:
    trials = [probe(0, 900), probe(1, 1100, _LATE, verdict=Verdict.INVALID)]
    assert unproven_side(line(1000), trials)


def test_a_search_whose_low_loads_do_not_count_gives_no_value_that_hides_a_change() -> None:
    before, after = _starved(110), _starved(65)
    assert before.estimate != after.estimate or line_problem("run", searched(after))


def _starved(at: float) -> Line:
    """Return the line of a search whose loads below 70 have too few operations for the percentile."""
    probes: list[TriedLoad] = []
    settings = Settings(start=500, limit=200_000)
    while (load := progress_of(probes, settings).next_load) is not None:
        known = _LATE if load > at else _MET
        probes.append(TriedLoad(offered=load, load=load, outcome=_UNKNOWN if load < 70 else known))
    return progress_of(probes, settings).line
