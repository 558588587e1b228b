import math
import random
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.api.line import MOST_PROBES, Ending, Line, ProbeOutcome
from plimsoll.api.names import Verdict
from plimsoll.measure.line.observe import Observation
from plimsoll.measure.line.search import Settings, TriedLoad, progress_of
from support.simulated_storage import (
    FULL,
    IDLE,
    HockeyStick,
    Storage,
    bimodal,
    cliff,
    drifting,
    linear,
    notched,
    observation,
    scatter_factor,
    search,
    sparse,
)

SETTINGS = Settings(start=500, limit=50_000)
ROUGH = Settings(start=500, limit=50_000, precision_percent=20)


def collapsing(line: float, noise: float) -> Storage:
    """Return storage that completes a third of what it carries, late, where more arrives."""

    def measure(load: float, _: int, chance: random.Random) -> Observation:
        capacity = line * scatter_factor(chance, noise)
        if load <= capacity:
            return observation(load, IDLE)
        return observation(load, 9 * IDLE, achieved=capacity / 3, full=FULL)

    return measure


def starved(line: float, noise: float, least: float, most: float = 1.0) -> Storage:
    """Return linear storage whose clients offer only a part of the load, evenly drawn from `least` to `most`."""

    def measure(load: float, number: int, chance: random.Random) -> Observation:
        found = linear(line, noise)(load * chance.uniform(least, most), number, chance)
        return replace(found, whole=replace(found.whole, offered=load))

    return measure


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
    return TriedLoad(offered=load, load=load, outcome=None if verdict is Verdict.INVALID else ProbeOutcome.MET)


def broke(load: float, verdict: Verdict = Verdict.VALID) -> TriedLoad:
    return TriedLoad(offered=load, load=load, outcome=None if verdict is Verdict.INVALID else ProbeOutcome.LATE)


def separated(line: float, bounds: Settings) -> tuple[Line, list[TriedLoad]]:
    """Search on storage whose every trial below the line holds and above it breaks."""
    probes: list[TriedLoad] = []
    while (load := progress_of(probes, bounds).next_load) is not None:
        probes.append(broke(load) if load > line else met(load))
    return progress_of(probes, bounds).line, probes


@settings(max_examples=12)
@given(ANY_STORAGE, st.integers(0, 10**6))
def test_every_search_ends_and_offers_only_what_it_may(storage: Storage, seed: int) -> None:
    line, probes = search(storage, ROUGH, seed)
    assert line.probes == len(probes) == line.counted <= MOST_PROBES
    assert all(ROUGH.lowest <= probe.load <= ROUGH.highest and probe.load % ROUGH.step == 0 for probe in probes)
    if line.estimate is not None:
        assert (line.low or math.inf) < line.estimate < (line.high or 0)
        assert any(not probe.is_broken and probe.load <= line.estimate for probe in probes)
        assert any(probe.is_broken and probe.load >= line.estimate for probe in probes)
    if line.ending is Ending.PRECISE:
        assert line.width_percent is not None
        assert line.width_percent <= ROUGH.precision_percent


@pytest.mark.parametrize("arrived", [1.0, 0.95])
@pytest.mark.parametrize(("start", "limit"), [(600, 30_000), (3_000, 50_000), (600, 1_000)])
def test_a_bound_above_all_loads_does_not_fall(start: float, limit: float, arrived: float) -> None:
    bounds, probes, lows = Settings(start=start, limit=limit, step=1), list[TriedLoad](), list[float]()
    while True:
        progress = progress_of(probes, bounds)
        lows += [progress.line.low] if progress.line.low else []
        if progress.next_load is None:
            break
        load = progress.next_load
        probes.append(TriedLoad(offered=load, load=load * arrived, outcome=ProbeOutcome.MET))
    assert progress.line.ending is Ending.NEVER_BROKE
    assert lows == sorted(lows)
    # A search that may make no more probes knows the highest load that it does not have to prove.
    few = replace(bounds, most_probes=len(probes) - 1)
    assert progress_of(probes[:-1], few).line.low == max(probe.load for probe in probes if probe.load < limit)


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
    assert (line.low or math.inf) < 7_000 < (line.high or 0)


def test_it_finds_the_line_of_storage_that_is_slow_in_some_trials() -> None:
    line, probes = search(bimodal(7_000, 0.02, slow=0.2), SETTINGS, 0)
    assert any(probe.is_broken for probe in probes if probe.load < 5_000)
    assert (line.low or math.inf) < 7_000 < (line.high or 0)


def test_storage_that_cannot_reach_the_first_load_has_a_line_below_it() -> None:
    line, probes = search(cliff(130, 0.02), SETTINGS, 0)
    assert probes[0].outcome is ProbeOutcome.DEPTH_FULL
    assert [probe.load for probe in probes[:3]] == [500, 250, 125]
    assert line.ending is Ending.PRECISE
    assert (line.low or math.inf) < 130 < (line.high or 0)


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
    assert 4.9 < (line.low or math.inf) < 5.5 < (line.high or 0) < 6.1


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
    unknown = TriedLoad(offered=2000, load=2000, outcome=ProbeOutcome.UNKNOWN)
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
    assert 500 < (bracketed.low or math.inf) < (bracketed.high or 0) < 4000


def test_it_gives_up_after_four_probes_in_a_row_that_do_not_count() -> None:
    invalid = [met(500, Verdict.INVALID)] * 4
    assert progress_of(invalid[1:], SETTINGS).next_load == 500
    progress = progress_of(invalid, SETTINGS)
    assert progress.next_load is None
    assert progress.line == Line(ending=Ending.PROBES_DO_NOT_COUNT, probes=4, counted=0)


def test_a_probe_that_counts_is_followed_by_four_more_attempts() -> None:
    before, after = [met(500, Verdict.INVALID)] * 3, [met(1000, Verdict.INVALID)] * 3
    assert progress_of([*before, met(500), *after], SETTINGS).next_load == 1000
    ended = progress_of([*before, met(500), *after, met(1000, Verdict.INVALID)], SETTINGS).line
    assert ended == Line(ending=Ending.PROBES_DO_NOT_COUNT, probes=8, counted=1)


def test_it_gives_up_on_a_load_at_which_four_probes_do_not_count_whatever_is_between_them() -> None:
    bracketed = [met(500), met(1000), broke(2000), broke(4000)]
    stalled = [broke(1400, Verdict.INVALID), met(1000)] * 4
    assert progress_of([*bracketed, *stalled[:-2]], SETTINGS).next_load is not None
    assert progress_of([*bracketed, *stalled], SETTINGS).line.ending is Ending.PROBES_DO_NOT_COUNT
    counting = [*bracketed, met(1400), *stalled]
    assert progress_of(counting, SETTINGS).line.ending is not Ending.PROBES_DO_NOT_COUNT


@pytest.mark.parametrize(
    "probes",
    [
        pytest.param([broke(500), broke(250), broke(125)], id="none held"),
        pytest.param([met(500), met(1000), met(2000)], id="none broke"),
        pytest.param([met(500)], id="one"),
        pytest.param([broke(600), broke(700), broke(800), met(2000), met(2100), met(2200)], id="upside down"),
    ],
)
def test_there_is_no_estimate_without_outcomes_on_both_sides(probes: list[TriedLoad]) -> None:
    used_up = progress_of(probes, replace(SETTINGS, most_probes=len(probes))).line
    assert used_up.ending in {Ending.PROBES_USED_UP, Ending.NOT_MONOTONE}
    assert used_up.estimate is None
    assert used_up.low is None or any(not probe.is_broken for probe in probes)
    assert used_up.high is None or any(probe.is_broken for probe in probes)


@pytest.mark.parametrize(("arrived", "is_known"), [(0.94, False), (0.96, True)])
def test_late_operations_of_clients_that_fell_short_are_no_upper_bound(arrived: float, *, is_known: bool) -> None:
    """Clients that do not get a processor in time offer less, and are late, on any storage."""
    late = [replace(broke(load), load=load * arrived) for load in (500, 250, 125)]
    used_up = progress_of(late, replace(SETTINGS, most_probes=len(late))).line
    assert (used_up.estimate, used_up.low, used_up.high is not None) == (None, None, is_known)


@pytest.mark.parametrize("line", [999.0, 950.0, 900.0, 700.0, 520.0])
def test_a_line_just_below_the_only_high_load_is_found(line: float) -> None:
    bounds = Settings(start=1000, limit=1000)
    found, probes = separated(line, bounds)
    assert max(one.load for one in probes if not one.is_broken) <= line
    assert found.ending is Ending.PRECISE
    assert (found.low or math.inf) < line < (found.high or 0)


def test_the_interval_of_a_line_just_below_the_limit_may_end_above_it() -> None:
    found, _ = separated(49_700, SETTINGS)
    assert found.ending is Ending.PRECISE
    assert (found.low or math.inf) < 49_700 < SETTINGS.limit < (found.high or 0)


def test_the_interval_of_a_depth_of_one_may_begin_below_it() -> None:
    found, _ = separated(1.5, Settings(start=1, limit=64))
    assert found.ending is Ending.PRECISE
    assert (found.low or math.inf) < 1.5 < (found.high or 0) <= (found.low or math.inf) + 1


@pytest.mark.parametrize(
    ("line", "bounds", "wrong"),
    [
        (15_700, Settings(start=500, limit=16_000), Ending.NEVER_BROKE),
        (102, Settings(start=500, limit=16_000, floor=100), Ending.BROKEN_AT_FIRST),
    ],
)
def test_a_line_within_the_loads_is_rarely_claimed_to_be_beyond_them(
    line: float, bounds: Settings, wrong: Ending
) -> None:
    endings = [search(linear(line, 0.05), bounds, seed)[0].ending for seed in range(12)]
    # Of 12 claims that are wrong with 2.5 % each, more than 2 come in 0.3 % of tests.
    assert endings.count(wrong) <= 2


def test_storage_that_collapses_under_overload_has_the_line_that_it_carries() -> None:
    """Overloaded, it is late and completes a third of what it carries: that is no load that arrived."""
    line, _ = search(collapsing(7_000, 0.02), SETTINGS, 1)
    assert line.ending is Ending.PRECISE
    assert (line.low or math.inf) < 7_000 < (line.high or 0)


def test_it_gives_up_where_clients_offer_less_than_half_of_the_first_load() -> None:
    """Higher loads would not help: they have too few processors, not too few operations."""
    line, probes = search(starved(10**6, 0.02, 0.3, 0.4), SETTINGS, 0)
    assert line == Line(ending=Ending.PROBES_DO_NOT_COUNT, probes=4, counted=0)
    assert {probe.outcome for probe in probes} == {ProbeOutcome.NOT_OFFERED}
    assert {probe.offered for probe in probes} == {500}


def test_a_claim_names_the_highest_or_lowest_load_that_was_offered() -> None:
    above, _ = separated(1_500, Settings(start=500, limit=1_999, step=1_000))
    assert (above.ending, above.estimate, above.low, above.high) == (Ending.NEVER_BROKE, None, 1_000, None)
    below, _ = separated(500, Settings(start=500, limit=1_500, step=1_000))
    assert (below.ending, below.estimate, below.low, below.high) == (Ending.BROKEN_AT_FIRST, None, None, 1_000)


def test_a_claim_names_what_arrived_where_slow_clients_never_offer_the_highest_load() -> None:
    climbed = [met(500), met(1000)]
    short = [replace(met(2000), load=load) for load in (1_990, 1_900, 1_960, 1_930, 1_950, 1_940)]
    bounds = Settings(start=500, limit=2000)
    assert progress_of([*climbed, *short[:5]], bounds).next_load == 2000
    found = progress_of([*climbed, *short], bounds)
    assert found.next_load is None
    assert (found.line.ending, found.line.estimate, found.line.low) == (Ending.NEVER_BROKE, None, 1_900)


CALM = Line(ending=Ending.PRECISE, probes=20, counted=20, estimate=1_900, low=1_800, high=2_000)


@pytest.mark.parametrize(
    ("limit", "calm", "arrived", "ending", "numbers"),
    [
        (9_000, CALM, 2_000, Ending.EQUALS_CALM, (1_900, 1_800, 2_000)),
        (9_000, CALM, 1_850, Ending.EQUALS_CALM, (1_900, 1_800, 2_000)),
        (9_000, CALM, 1_750, Ending.NEVER_BROKE, (None, 1_750, None)),  # less than the calm line was offered
        (9_000, CALM.model_copy(update={"ending": Ending.DRIFTING}), 2_000, Ending.NEVER_BROKE, (None, 2_000, None)),
        (2_000, CALM.model_copy(update={"high": 2_100}), 2_000, Ending.NEVER_BROKE, (None, 2_000, None)),
        (2_000, CALM.model_copy(update={"high": None}), 2_000, Ending.NEVER_BROKE, (None, 2_000, None)),
    ],
)
def test_a_storm_line_that_is_not_below_the_calm_line_is_the_calm_line(
    limit: float, calm: Line, arrived: float, ending: Ending, numbers: tuple[float | None, ...]
) -> None:
    probes = [met(950), met(1_900), *[replace(met(2_000), load=arrived)] * 6]
    line = progress_of(probes, Settings(start=500, limit=limit).below(calm)).line
    assert (line.ending, (line.estimate, line.low, line.high)) == (ending, numbers)


@pytest.mark.parametrize(("arrived", "low"), [(1_980, 2_000), (1_979, 1_979)])
def test_what_chance_explains_is_claimed_of_the_highest_load(arrived: float, low: float) -> None:
    probes = [met(500), met(1000), *[replace(met(2000), load=arrived)] * 6]
    assert progress_of(probes, Settings(start=500, limit=2000)).line.low == low


@pytest.mark.parametrize(("load", "is_short"), [(949, True), (950, False), (1_000, False)])
def test_a_probe_is_short_if_clearly_less_arrived(load: float, is_short: bool) -> None:  # noqa: FBT001 - a case
    assert replace(met(1000), load=load).is_short is is_short


def test_what_few_trials_at_an_end_suggest_is_not_claimed() -> None:
    climbed = [met(500), met(1000), met(2000)]
    bounds = Settings(start=500, limit=2000)
    progress = progress_of([*climbed, met(2000)], bounds)
    assert progress.next_load == 2000
    assert (progress.line.ending, progress.line.low) == (None, 1000)
    assert progress_of([*climbed, *[met(2000)] * 4], bounds).next_load == 2000
    assert progress_of([*climbed, *[met(2000)] * 5], bounds).line.ending is Ending.NEVER_BROKE


def test_storage_with_one_line_is_rarely_called_otherwise() -> None:
    chance = random.Random(1)  # noqa: S311 - numbers, not secrets
    lines = [math.exp(chance.uniform(math.log(300), math.log(980))) for _ in range(15)]
    endings = [separated(line, Settings(start=1000, limit=1000))[0].ending for line in lines]
    assert Ending.NOT_MONOTONE not in endings
    assert endings.count(Ending.DRIFTING) <= 1


@pytest.mark.parametrize("known_from", [3_000, 6_000])
def test_loads_with_too_few_operations_are_climbed_over_once(known_from: int) -> None:
    line, probes = search(sparse(linear(7_000, 0.02), known_from), SETTINGS, 1)
    assert line.ending is Ending.PRECISE
    assert (line.low or math.inf) < 7_000 < (line.high or 0)
    uncounted = [probe.load for probe in probes if not probe.counts]
    assert uncounted == sorted(set(uncounted))


def test_a_first_load_that_breaks_by_chance_does_not_end_a_search_above_loads_with_too_few_operations() -> None:
    def lapsing(load: float, number: int, chance: random.Random) -> Observation:
        return linear(470, 0.02)(load if number else 10 * load, number, chance)

    found = [search(sparse(lapsing, 340), Settings(start=400, limit=3_200), seed) for seed in range(10)]
    assert {line.ending for line, _ in found} == {Ending.PRECISE}
    assert max(sum(not probe.counts for probe in probes) for _, probes in found) <= 4


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


@pytest.mark.parametrize("least", [0.9, 0.7])
def test_a_client_that_offers_less_finds_the_line_of_the_storage_at_the_loads_that_arrived(least: float) -> None:
    found = [search(starved(10_000, 0.02, least), SETTINGS, f"starved {number}")[0] for number in range(5)]
    assert all(one.low and one.high for one in found)
    assert sum(one.low <= 10_000 <= one.high for one in found if one.low and one.high) >= 4


@pytest.mark.parametrize("shape", [linear, cliff])
@pytest.mark.parametrize("known_from", [0.97, 1.0, 1.04, 1.2, 1.7])
def test_no_bound_is_claimed_below_the_loads_with_enough_operations(
    shape: Callable[[float, float], Storage], known_from: float
) -> None:
    found = [search(sparse(shape(7_000, 0.02), round(7_000 * known_from)), SETTINGS, seed)[0] for seed in range(10)]
    assert sum(line.high is not None and line.high < 7_000 for line in found) <= 1


def test_busy_clients_do_not_keep_a_search_from_giving_up() -> None:
    found = [search(sparse(starved(7_000, 0.02, 0.94, 0.94), 11_900), SETTINGS, seed)[0] for seed in range(5)]
    assert {line.ending for line in found} == {Ending.PROBES_DO_NOT_COUNT}
    assert max(line.probes for line in found) <= 20
