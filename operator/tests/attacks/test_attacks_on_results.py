"""ATTACK: failing tests of what is made of the results of searches; each says what should happen."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from plimsoll.api.line import Ending, Line, ProbeOutcome
from plimsoll.cli import main
from plimsoll.measure.compare.lines import line_problem
from plimsoll.measure.line.probe import TriedLoad
from plimsoll.measure.line.search import progress_of
from plimsoll.measure.line.settings import Settings
from plimsoll.measure.line.wording import ending_sentence, headline_text
from support.searches import PRECISE, SEARCH, probe, searched


def starved(line: float) -> Line:
    """Return the line of a search whose loads below 70 have too few operations for the percentile."""
    probes: list[TriedLoad] = []
    settings = Settings(start=500, limit=200_000)
    while (load := progress_of(probes, settings).next_load) is not None:
        known = ProbeOutcome.LATE if load > line else ProbeOutcome.MET
        probes.append(TriedLoad(load=load, outcome=ProbeOutcome.UNKNOWN if load < 70 else known))
    return progress_of(probes, settings).line


# ATTACK: a starved search gives the same "estimate" for lines of 110 and 65, without any scatter: a suite that takes it
# as the value of a run finds no noise, and no regression by 40 %.
def test_the_estimate_of_a_search_that_was_never_bracketed_is_no_value_of_a_run() -> None:
    before, after = starved(110), starved(65)
    print(before, after)
    assert before.estimate != after.estimate or line_problem("run", searched(before))


# ATTACK: 37 of 40 probes do not count, and the sentence blames scatter.
def test_the_sentence_of_a_search_whose_probes_do_not_count_does_not_blame_scatter() -> None:
    assert "scatters too much" not in ending_sentence(starved(65), SEARCH), ending_sentence(starved(65), SEARCH)


# ATTACK: a status that validates (minimum 0) kills `results` and `report`, and the operator's look at the run.
@pytest.mark.parametrize("arguments", [["results"], ["results", "--probes"], ["report", "--output", "page.html"]])
@pytest.mark.parametrize("line", [PRECISE.model_copy(update={"estimate": 0.0, "low": 0.0, "high": 0.0}), PRECISE])
def test_loads_of_zero_are_shown_or_refused(tmp_path: Path, arguments: list[str], line: Line) -> None:
    file = tmp_path / "result.json"
    file.write_text(searched(line, [probe(0, 500), probe(1, 0.0), probe(2, 2000)]).model_dump_json(exclude_none=True))
    command, *options = arguments
    page = [str(tmp_path / one) if one.endswith("html") else one for one in options]
    found = CliRunner().invoke(main, [command, str(file), *page])
    assert found.exception is None or isinstance(found.exception, SystemExit), found.exception


def test_a_tiny_interval_does_not_kill_the_operator() -> None:
    line = Line(ending=Ending.PRECISE, probes=3, counted=3, estimate=1.0, low=0.0, high=1e-323)
    assert headline_text(line, SEARCH)


def test_a_huge_interval_does_not_kill_the_operator() -> None:
    line = Line(ending=Ending.PRECISE, probes=3, counted=3, estimate=1e300, low=0.0, high=1.7e308)
    assert headline_text(line, SEARCH)
