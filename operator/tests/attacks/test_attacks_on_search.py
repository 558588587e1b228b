"""ATTACK: failing tests that prove defects of the search itself; each says what should happen."""

import math
import random
from collections import Counter
from collections.abc import Callable

import pytest

from plimsoll.api.line import Ending, LineSearch, Objective, ProbeOutcome
from plimsoll.measure.compare.lines import position_of
from plimsoll.measure.line.probe import TriedLoad
from plimsoll.measure.line.result import Progress
from plimsoll.measure.line.search import progress_of
from plimsoll.measure.line.settings import Settings
from plimsoll.measure.line.wording import ending_sentence

ASKED = LineSearch(start=500, limit=200_000, objectives=(Objective(percentile="99", latency_microseconds=5_000),))


def searched(breaks: Callable[[float], bool], settings: Settings) -> tuple[Progress, list[TriedLoad]]:
    probes: list[TriedLoad] = []
    while (load := progress_of(probes, settings).next_load) is not None:
        probes.append(TriedLoad(load=load, outcome=ProbeOutcome.LATE if breaks(load) else ProbeOutcome.MET))
    return progress_of(probes, settings), probes


# ATTACK: storage without noise, whose every load below the line met and every load above broke, is called NotMonotone.
def test_outcomes_that_a_single_load_separates_are_monotone() -> None:
    progress, probes = searched(lambda load: load > 900, Settings(start=1000, limit=1000))
    assert max(one.load for one in probes if not one.is_broken) < min(one.load for one in probes if one.is_broken)
    assert progress.line.ending is not Ending.NOT_MONOTONE


# ATTACK: the same for any line below a start that is the limit: how often.
def test_steady_storage_is_rarely_called_otherwise() -> None:
    rng, endings = random.Random(1), Counter[Ending | None]()
    for _ in range(40):
        line = math.exp(rng.uniform(math.log(300), math.log(980)))
        endings[searched(lambda load, line=line: load > line, Settings(start=1000, limit=1000))[0].line.ending] += 1
    print(endings)
    assert endings[Ending.NOT_MONOTONE] + endings[Ending.DRIFTING] <= 4


# ATTACK: NeverBroke claims that the line is above `limit` with 97.5 %, after two trials at it: here it is 2 % below.
def test_a_line_below_the_limit_is_rarely_claimed_to_be_above_it() -> None:
    rng, settings = random.Random(2), Settings(start=500, limit=16_000)
    claims = 0
    for _ in range(60):
        progress, _ = searched(lambda load: math.log(load) + rng.gauss(0, 0.05) > math.log(15_700), settings)
        claims += progress.line.ending is Ending.NEVER_BROKE
    print(claims, "of 60")
    assert claims <= 5


# ATTACK: "Precise ... the interval is - of the estimate wide", without an upper end: compare takes it as infinite.
@pytest.mark.parametrize(("line", "start", "limit"), [(199_000, 500, 200_000), (999, 1000, 1000), (0.1, 500, 200_000)])
def test_a_precise_line_has_an_estimate_and_an_interval(line: float, start: int, limit: int) -> None:
    progress, _ = searched(lambda load: load > line, Settings(start=start, limit=limit))
    asked = ASKED.model_copy(update={"start": start, "limit": limit})
    print(progress.line, ending_sentence(progress.line, asked), position_of(progress.line, asked))
    if progress.line.ending is Ending.PRECISE:
        assert progress.line.width_percent is not None


# ATTACK: a depth whose lowest load holds and whose second breaks is Precise, without a lower end.
def test_a_depth_between_one_and_two_has_an_interval() -> None:
    progress, _ = searched(lambda load: load > 1.5, Settings(start=1, limit=64))
    assert progress.line.ending is Ending.PRECISE
    assert progress.line.width_percent is not None, progress.line
