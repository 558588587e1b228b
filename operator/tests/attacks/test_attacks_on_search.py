"""ATTACK: failing tests that prove defects of the search itself; each says what should happen."""

from collections.abc import Callable

from plimsoll.api.line import Ending, LineSearch, Objective, ProbeOutcome
from plimsoll.measure.line.probe import TriedLoad
from plimsoll.measure.line.result import Progress
from plimsoll.measure.line.search import progress_of
from plimsoll.measure.line.settings import Settings
from plimsoll.measure.line.wording import ending_sentence, load_text

ASKED = LineSearch(start=500, limit=200_000, objectives=(Objective(percentile="99", latency_microseconds=5_000),))


def searched(breaks: Callable[[float], bool], settings: Settings) -> tuple[Progress, list[TriedLoad]]:
    probes: list[TriedLoad] = []
    while (load := progress_of(probes, settings).next_load) is not None:
        probes.append(
            TriedLoad(offered=load, load=load, outcome=ProbeOutcome.LATE if breaks(load) else ProbeOutcome.MET)
        )
    return progress_of(probes, settings), probes


# ATTACK: 1000 clients, limit 1999: no load above 1000 is offered, but the line is said to be above 1,999.
def test_the_sentence_of_never_broke_names_the_highest_load_that_was_offered() -> None:
    asked = ASKED.model_copy(update={"limit": 1_999})
    progress, probes = searched(lambda load: load > 1_500, Settings(start=500, limit=1_999, step=1_000))
    assert {one.load for one in probes} == {1_000}
    assert progress.line.ending is Ending.NEVER_BROKE
    assert "above 1,999" not in ending_sentence(progress.line, asked), ending_sentence(progress.line, asked)


# ATTACK: `less than 1e+03`.
def test_a_bound_is_written_without_an_exponent() -> None:
    progress, _ = searched(lambda load: load > 500, Settings(start=500, limit=1_500, step=1_000))
    assert "e+" not in load_text(progress.line, ASKED), load_text(progress.line, ASKED)
