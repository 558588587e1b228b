from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.measure.line.search import Settings, next_rung

SETTINGS = Settings(start=500, limit=40_000, floor=60)


def climbed(breaks: Callable[[float], bool], settings: Settings = SETTINGS) -> Sequence[float]:
    broken: dict[float, bool] = {}
    while (rung := next_rung(broken, settings)) is not None:
        assert rung not in broken
        broken[rung] = breaks(rung)
    return [*broken]


def test_it_doubles_until_two_loads_in_a_row_break() -> None:
    assert climbed(lambda load: load > 3000) == [500, 1000, 2000, 4000, 8000]


def test_it_does_not_stop_at_a_load_that_broke_by_chance() -> None:
    assert climbed(lambda load: load == 1000 or load > 5000) == [500, 1000, 2000, 4000, 8000, 16000]


def test_it_halves_if_the_first_load_broke() -> None:
    assert climbed(lambda load: load > 200) == [500, 250, 125]
    assert climbed(lambda load: load > 300) == [500, 250, 1000]


def test_it_ends_at_the_limits() -> None:
    assert climbed(lambda _: False) == [500, 1000, 2000, 4000, 8000, 16000, 32000, 40000]
    assert climbed(lambda _: True) == [500, 250, 125, 62, 60, 1000]


def test_it_finds_storage_that_breaks_only_under_little_load() -> None:
    assert climbed(lambda load: load < 800 or load > 3000) == [500, 250, 125, 62, 60, 1000, 2000, 4000, 8000]


def test_all_loads_are_multiples_of_the_step() -> None:
    depths = Settings(start=12, limit=100, floor=1, step=4)
    assert climbed(lambda load: load > 40, depths) == [12, 24, 48, 96]
    assert climbed(lambda _: True, depths) == [12, 8, 4, 24]


@given(st.floats(60, 40_000))
def test_a_line_is_between_two_rungs(line: float) -> None:
    rungs = climbed(lambda load: load > line)
    assert any(rung <= line for rung in rungs)
    assert any(rung > line for rung in rungs) or max(rungs) == SETTINGS.highest


def test_bounds_without_a_load_that_can_be_offered_are_refused() -> None:
    with pytest.raises(ValueError, match="no multiple of 30000 lies between 31000 and 40000"):
        Settings(start=32_000, limit=40_000, floor=31_000, step=30_000)
