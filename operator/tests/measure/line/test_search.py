import math
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.api.line import MOST_PROBES, Ending, Line, ProbeOutcome
from plimsoll.api.names import Verdict
from plimsoll.measure.line.probe import TriedLoad
from plimsoll.measure.line.search import progress_of
from plimsoll.measure.line.settings import Settings
from support.offered import HockeyStick, Storage, bimodal, cliff, drifting, linear, notched, search, sparse

SETTINGS = Settings(start=500, limit=50_000)
ROUGH = Settings(start=500, limit=50_000, precision_percent=20)

SHAPES: dict[str, Callable[[float, float], Storage]] = {
    "linear": linear,
    "cliff": cliff,
    "queue": HockeyStick,
    "queue with noisy latency": lambda line, noise: HockeyStick(line, latency_noise=noise),
    "bimodal": lambda line, noise: bimodal(line, noise, slow=0.2),
    "drifting": lambda line, noise: drifting(line, noise, 0.03),
    "notched": notched,
}
ANY_STORAGE = st.builds(
    lambda shape, line, noise: SHAPES[shape](line, noise),
    st.sampled_from(sorted(SHAPES)),
    st.sampled_from([50.0, 400.0, 700.0, 3_000.0, 20_000.0, 200_000.0]),
    st.sampled_from([0.0, 0.02, 0.05, 0.3]),
)


def met(load: float, verdict: Verdict = Verdict.VALID) -> TriedLoad:
    return TriedLoad(load=load, outcome=ProbeOutcome.MET, verdict=verdict)


def broke(load: float, verdict: Verdict = Verdict.VALID) -> TriedLoad:
    return TriedLoad(load=load, outcome=ProbeOutcome.LATE, verdict=verdict)


@settings(max_examples=12)
@given(ANY_STORAGE, st.integers(0, 10**6))
def test_every_search_ends_and_offers_only_what_it_may(storage: Storage, seed: int) -> None:
    line, probes = search(storage, ROUGH, seed)
    assert line.probes == len(probes) == line.counted <= MOST_PROBES
    assert all(ROUGH.lowest <= probe.load <= ROUGH.highest and probe.load % ROUGH.step == 0 for probe in probes)
    if line.estimate is not None:
        assert (line.low or 0) < line.estimate < (line.high or math.inf)
    if line.ending is Ending.PRECISE:
        assert line.width_percent is not None
        assert line.width_percent <= ROUGH.precision_percent


@settings(max_examples=4)
@given(ANY_STORAGE, st.integers(0, 10**6))
def test_it_resumes_after_any_probe_where_it_was(storage: Storage, seed: int) -> None:
    line, probes = search(storage, ROUGH, seed)
    for number, probe in enumerate(probes):
        so_far = progress_of(probes[:number], ROUGH)
        assert (so_far.next_load, so_far.line.probes, so_far.line.ending) == (probe.load, number, None)
    assert progress_of(probes, ROUGH).line == line


@pytest.mark.parametrize("shape", ["linear", "cliff", "queue", "queue with noisy latency"])
@pytest.mark.parametrize("noise", [0.0, 0.02])
def test_it_finds_the_line_of_each_shape(shape: str, noise: float) -> None:
    line, _ = search(SHAPES[shape](7_000, noise), SETTINGS, "any")
    assert line.ending is Ending.PRECISE
    assert line.low is not None
    assert line.high is not None
    assert line.low < 7_000 < line.high


def test_it_finds_the_line_of_storage_that_is_slow_in_some_trials() -> None:
    line, probes = search(bimodal(7_000, 0.02, slow=0.2), SETTINGS, 0)
    assert any(probe.is_broken for probe in probes if probe.load < 5_000)
    assert (line.low or 0) < 7_000 < (line.high or 0)


def test_storage_that_cannot_reach_the_first_load_has_a_line_below_it() -> None:
    line, probes = search(cliff(130, 0.02), SETTINGS, 0)
    assert probes[0].outcome is ProbeOutcome.NOT_ACHIEVED
    assert [probe.load for probe in probes[:3]] == [500, 250, 125]
    assert line.ending is Ending.PRECISE
    assert line.low is not None
    assert line.high is not None
    assert line.low < 130 < line.high


def test_storage_that_never_breaks_has_a_line_above_the_limit() -> None:
    line, probes = search(cliff(10**6, 0.02), SETTINGS, 0)
    assert line.ending is Ending.NEVER_BROKE
    assert (line.estimate, line.high) == (None, None)
    assert line.low is not None
    assert line.low >= SETTINGS.limit
    assert len(probes) <= 15


def test_storage_that_always_breaks_has_a_line_below_the_floor() -> None:
    line, probes = search(cliff(0.01, 0.02), replace(SETTINGS, floor=100), 0)
    assert line.ending is Ending.BROKEN_AT_FIRST
    assert (line.estimate, line.low) == (None, None)
    assert line.high is not None
    assert line.high <= 100
    assert len(probes) <= 12


def test_storage_that_breaks_under_a_little_load_only_is_not_monotone() -> None:
    probes = [search(notched(12_000, 0.01), SETTINGS, seed)[1] for seed in range(3)]
    ends = [progress_of(one, SETTINGS) for one in probes]
    assert [end.line.ending for end in ends] == [Ending.NOT_MONOTONE] * 3
    assert all(end.evidence > 20 for end in ends)


def test_storage_that_becomes_slower_is_drifting() -> None:
    endings = [search(drifting(7_000, 0.02, 0.04), SETTINGS, seed)[0] for seed in range(3)]
    assert Ending.DRIFTING in {line.ending for line in endings}


def test_depths_are_whole_and_as_precise_as_they_can_be() -> None:
    depths = Settings(start=1, limit=256, precision_percent=10)
    line, probes = search(cliff(5.5, 0.0), depths, 0)
    assert all(probe.load == int(probe.load) for probe in probes)
    assert line.ending is Ending.PRECISE
    assert line.low is not None
    assert line.high is not None
    assert 4.9 < line.low < 5.5 < line.high < 6.1


def test_the_last_permitted_probe_counts() -> None:
    line, probes = search(cliff(7_000, 0.0), ROUGH, 0)
    assert line.ending is Ending.PRECISE
    assert progress_of(probes, replace(ROUGH, most_probes=line.probes)).line == line
    used_up = progress_of(probes[:-1], replace(ROUGH, most_probes=line.probes - 1)).line
    assert used_up.ending is Ending.PROBES_USED_UP
    assert used_up.width_percent is not None
    assert used_up.width_percent > ROUGH.precision_percent


def test_clients_share_a_load_evenly() -> None:
    _, probes = search(linear(700, 0.05), replace(SETTINGS, step=8), 0)
    assert all(probe.load % 8 == 0 for probe in probes)


def test_a_probe_that_does_not_count_is_repeated() -> None:
    held = [met(500), met(1000)]
    unknown = TriedLoad(load=2000, outcome=ProbeOutcome.UNKNOWN)
    assert progress_of(held, SETTINGS).next_load == 2000
    for probe in (broke(2000, Verdict.INVALID), unknown):
        progress = progress_of([*held, probe], SETTINGS)
        assert progress.next_load == 2000
        assert (progress.line.probes, progress.line.counted) == (3, 2)


def test_nothing_is_known_of_the_line_before_it_is_bracketed() -> None:
    climbing = progress_of([met(500), met(1000), broke(2000)], SETTINGS)
    assert (climbing.next_load, climbing.line) == (4000, Line(probes=3, counted=3))
    bracketed = progress_of([met(500), met(1000), broke(2000), broke(4000)], SETTINGS).line
    assert bracketed.ending is None
    assert bracketed.low is not None
    assert bracketed.high is not None
    assert 500 < bracketed.low < bracketed.high < 4000


def test_it_gives_up_after_five_probes_in_a_row_that_do_not_count() -> None:
    invalid = [met(500, Verdict.INVALID)] * 5
    assert progress_of(invalid[1:], SETTINGS).next_load == 500
    progress = progress_of(invalid, SETTINGS)
    assert progress.next_load is None
    assert progress.line == Line(ending=Ending.PROBES_DO_NOT_COUNT, probes=5, counted=0)


def test_a_probe_that_counts_is_followed_by_five_more_attempts() -> None:
    before, after = [met(500, Verdict.INVALID)] * 4, [met(1000, Verdict.INVALID)] * 4
    assert progress_of([*before, met(500), *after], SETTINGS).next_load == 1000
    ended = progress_of([*before, met(500), *after, met(1000, Verdict.INVALID)], SETTINGS).line
    assert ended == Line(ending=Ending.PROBES_DO_NOT_COUNT, probes=10, counted=1)


@pytest.mark.parametrize("known_from", [3_000, 6_000])
def test_loads_with_too_few_operations_are_climbed_over_once(known_from: int) -> None:
    line, probes = search(sparse(linear(7_000, 0.02), known_from), SETTINGS, 1)
    assert line.ending is Ending.PRECISE
    assert (line.low or 0) < 7_000 < (line.high or 0)
    uncounted = [probe.load for probe in probes if not probe.counts]
    assert uncounted == sorted(set(uncounted))


def test_it_gives_up_where_only_loads_above_the_line_have_enough_operations() -> None:
    line, probes = search(sparse(linear(7_000, 0.02), 12_000), SETTINGS, 1)
    assert (line.ending, line.estimate, line.low) == (Ending.PROBES_DO_NOT_COUNT, None, None)
    assert (line.high or 0) > 7_000
    assert len(probes) < 20


def test_it_gives_up_below_the_start_where_lower_loads_have_too_few_operations() -> None:
    line, probes = search(sparse(linear(300, 0.02), 490), SETTINGS, 1)
    assert (line.ending, line.estimate, line.low) == (Ending.PROBES_DO_NOT_COUNT, None, None)
    assert 300 < (line.high or 0) < 600
    assert [probe.load for probe in probes if probe.load < 490][:1] == [250]
    assert len(probes) < 20


def test_it_gives_up_at_the_limit_where_no_load_has_enough_operations() -> None:
    line, probes = search(sparse(linear(7_000, 0.02), 60_000), SETTINGS, 1)
    assert line == Line(ending=Ending.PROBES_DO_NOT_COUNT, probes=8, counted=0)
    assert probes[-1].load == SETTINGS.highest


@settings(max_examples=12)
@given(ANY_STORAGE, st.integers(1, 100_000), st.integers(0, 10**6))
def test_it_ends_whatever_loads_have_enough_operations(storage: Storage, known_from: int, seed: int) -> None:
    line, probes = search(sparse(storage, known_from), ROUGH, seed)
    assert line.probes == len(probes) <= MOST_PROBES
    assert line.counted or line.ending is Ending.PROBES_DO_NOT_COUNT
    assert all(ROUGH.lowest <= probe.load <= ROUGH.highest for probe in probes)
