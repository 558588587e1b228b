"""The line in words."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.api.line import Ending, Line, LineSearch, Objective, ProbeOutcome, Vary
from plimsoll.api.storage import OsdsAway
from plimsoll.measure.line import summary
from plimsoll.measure.line.search import Settings, TriedLoad, progress_of


def search(vary: Vary = Vary.RATE, **latencies: int) -> LineSearch:
    known = {name.removeprefix("p"): value for name, value in (latencies or {"p99": 5000}).items()}
    objectives = tuple(
        Objective.model_validate({"percentile": percentile, "latency": f"{value}us"})
        for percentile, value in known.items()
    )
    return LineSearch(vary=vary, start=500, limit=200_000, objectives=objectives)


def line(
    ending: Ending | None = Ending.PRECISE,
    estimate: float | None = 12_400,
    low: float | None = 11_800,
    high: float | None = 13_000,
    **counts: Any,
) -> Line:
    return Line(ending=ending, estimate=estimate, low=low, high=high, **({"probes": 20, "counted": 20} | counts))


@pytest.mark.parametrize(
    ("found", "asked", "expected"),
    [
        (line(), search(), "carries 12,400 ± 600 IOPS at p99 <= 5 ms"),
        (line(), search(p50=800, p99=1250), "carries 12,400 ± 600 IOPS at p50 <= 800 µs and p99 <= 1.25 ms"),
        (line(estimate=64, low=61, high=67), search(Vary.DEPTH), "carries 64 ± 3 in flight at p99 <= 5 ms"),
        (line(Ending.NEVER_BROKE, None, 231_512.7, None), search(), "carries more than 200,000 IOPS at p99 <= 5 ms"),
        (line(Ending.BROKEN_AT_FIRST, None, None, 2.71828), search(), "carries less than 2.72 IOPS at p99 <= 5 ms"),
        (line(estimate=12_412, low=None), search(), "carries about 12,412 IOPS at p99 <= 5 ms"),
        (line(None, None, 8000, 16_000), search(), "carries between 8,000 and 16,000 IOPS at p99 <= 5 ms"),
        (line(None, None, None, None), search(), "line at p99 <= 5 ms is not known yet"),
        (
            line(Ending.PROBES_USED_UP, None, None, None, probes=40, counted=0),
            search(),
            "line at p99 <= 5 ms is unknown after 40 probes, none of which counts",
        ),
    ],
)
def test_headline(found: Line, asked: LineSearch, expected: str) -> None:
    assert summary.headline_text(found, asked) == expected


def test_a_depth_has_its_unit_in_a_column_and_a_rate_has_none() -> None:
    found = line(estimate=64, low=61, high=67)
    assert summary.short_text(found, search(Vary.DEPTH)) == "64 ± 3 in flight at p99 <= 5 ms"
    assert summary.short_text(found, search(Vary.RATE)) == "64 ± 3 at p99 <= 5 ms"


@pytest.mark.parametrize(
    ("estimate", "low", "high", "expected"),
    [
        (12_412.3, 11_824.7, 13_001.9, "12,400 ± 600"),
        (12_412.3, 12_263.3, 12_561.3, "12,410 ± 150"),
        (64.2, 62.8, 65.6, "64.2 ± 1.4"),
        (500, 500, 500, "500 ± 0"),
    ],
)
def test_the_half_width_decides_on_the_digits(estimate: float, low: float, high: float, expected: str) -> None:
    assert summary.load_text(line(estimate=estimate, low=low, high=high), search()) == expected


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (11_800, 13_000, "11,800 to 13,000"),
        (None, 13_000, "below 13,000"),
        (11_800, None, "above 11,800"),
        (None, None, "-"),
    ],
)
def test_interval(low: float | None, high: float | None, expected: str) -> None:
    assert summary.interval_text(line(low=low, high=high), search()) == expected


@given(st.floats(1, 1e9), st.floats(0.001, 0.5))
def test_what_is_shown_is_what_was_found_within_a_tenth_of_the_interval(estimate: float, part: float) -> None:
    half = estimate * part
    text = summary.load_text(line(estimate=estimate, low=estimate - half, high=estimate + half), search())
    shown, shown_half = (float(number.replace(",", "")) for number in text.split(" ± "))
    assert abs(shown - estimate) <= 0.17 * half + 1e-9 * estimate
    assert abs(shown_half - half) <= 0.17 * half + 1e-9 * estimate


def test_probes() -> None:
    assert summary.line_probes_text(line()) == "20"
    assert summary.line_probes_text(line(counted=16)) == "16 of 20"
    assert summary.probes_made(line(probes=1, counted=1)) == "1 probe"
    assert summary.probes_made(line(counted=1)) == "20 probes, 1 of which counts"


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (
            line(None, probes=7, counted=7),
            (
                "The search is not finished: 7 of at most 40 probes made; the interval is 9.68 % of the estimate wide; "
                "at most 10 % were requested."
            ),
        ),
        (
            line(None, None, None, None, probes=0, counted=0),
            "The search is not finished: 0 of at most 40 probes made; the interval is unknown.",
        ),
        (
            line(),
            (
                "The search ended after 20 probes: the interval is 9.68 % of the estimate wide; at most 10 % were "
                "requested."
            ),
        ),
        (
            line(Ending.PROBES_USED_UP, high=14_000, probes=40, counted=39),
            (
                "The search ended after 40 probes, 39 of which count, the most that it may make: the interval is "
                "17.7 % of the estimate wide; at most 10 % were requested; the storage scatters too much from trial to "
                "trial."
            ),
        ),
        (
            line(Ending.NEVER_BROKE, None, 231_512.7, None),
            (
                "The line is above 200,000 IOPS, the highest load that was offered, with 97.5 % confidence; to find "
                "it, increase limit, and the number of clients if it is refused."
            ),
        ),
        (
            line(Ending.NEVER_BROKE, None, 200_000, None, storm=OsdsAway(count=1, action="Out")),
            (
                "The line is above 200,000 IOPS, the highest load that was offered, with 97.5 % confidence; to find "
                "it, increase limit, and the number of clients if it is refused."
            ),
        ),
        (
            line(Ending.NEVER_BROKE, None, 9_500, None, storm=OsdsAway(count=1, action="Out")),
            "The line is above 9,500 IOPS, the highest load that arrived, with 97.5 % confidence.",
        ),
        (
            line(Ending.EQUALS_CALM, storm=OsdsAway(count=1, action="Out")),
            (
                "The disturbance costs nothing that can be measured: during it, the storage carries a load within the "
                "interval of the calm line, with 97.5 % confidence, and no higher load was offered."
            ),
        ),
        (
            line(Ending.PROBES_DO_NOT_COUNT, None, None, None, probes=5, counted=0),
            "The search gave up: more probes would not count either; remove the cause, then run again.",
        ),
        (
            line(Ending.BROKEN_AT_FIRST, None, None, 2.7),
            (
                "The line is below the lowest load that may be offered, with 97.5 % confidence; decrease start, or "
                "allow a higher latency."
            ),
        ),
    ],
)
def test_sentences(found: Line, expected: str) -> None:
    assert summary.ending_sentence(found, search()) == expected


@pytest.mark.parametrize("ending", [Ending.NOT_MONOTONE, Ending.DRIFTING])
def test_sentences_of_storage_without_one_line_say_that_the_interval_is_doubtful(ending: Ending) -> None:
    assert "beyond chance" in summary.ending_sentence(line(ending), search())
    assert "the interval" in summary.ending_sentence(line(ending), search())


def test_a_search_that_gave_up_says_why() -> None:
    gave_up = line(Ending.PROBES_DO_NOT_COUNT, None, None, None, probes=9, counted=4)
    assert (
        "after 9 probes, 4 of which count: more probes would not count either (Stalled in 5 probes); remove"
        in summary.ending_sentence(gave_up, search(), "Stalled in 5 probes")
    )


def test_probes_that_do_not_count_are_blamed_for_a_wide_interval() -> None:
    used_up = line(Ending.PROBES_USED_UP, high=14_000, probes=40, counted=3)
    assert summary.ending_sentence(used_up, search(), "Stalled in 37 probes") == (
        "The search ended after 40 probes, 3 of which count, the most that it may make: the interval is 17.7 % of the "
        "estimate wide; at most 10 % were requested; most probes do not count (Stalled in 37 probes); remove the "
        "cause, then run again."
    )


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (None, 13_000, "the interval is below 13,000"),
        (11_800, None, "the interval is above 11,800"),
        (None, None, "the interval is unknown"),
    ],
)
@pytest.mark.parametrize("ending", [Ending.PRECISE, Ending.PROBES_USED_UP])
def test_an_interval_without_an_end_is_not_called_narrow(
    low: float | None, high: float | None, expected: str, ending: Ending
) -> None:
    assert summary.ending_sentence(line(ending, low=low, high=high), search()).endswith(f": {expected}.")


def test_never_broke_names_the_highest_load_that_the_clients_offered() -> None:
    asked, probes = search().model_copy(update={"limit": 1999}), list[TriedLoad]()
    settings = Settings(start=500, limit=1999, step=1000)
    while (load := progress_of(probes, settings).next_load) is not None:
        probes.append(TriedLoad(offered=load, load=load, outcome=ProbeOutcome.MET))
    found = progress_of(probes, settings).line
    assert found.ending is Ending.NEVER_BROKE
    assert {one.load for one in probes} == {1000}
    sentence = "The line is above 1,000 IOPS, the highest load that arrived, with 97.5 % confidence; if the clients"
    assert summary.ending_sentence(found, asked).startswith(sentence)
    assert summary.load_text(found, asked) == "more than 1,000"


@pytest.mark.parametrize(
    ("load", "expected"),
    [
        (999.99, "1,000"),
        (2.71828, "2.72"),
        (8.5, "8.5"),
        (0.0321, "0.0321"),
        (9.88e-324, "0"),
        (0, "0"),
        (1e6, "1,000,000"),
    ],
)
def test_loads_have_no_exponent(load: float, expected: str) -> None:
    assert summary.rounded_load(load) == expected


@given(st.floats(0, allow_infinity=False))
def test_every_load_is_shown_within_half_a_percent_without_an_exponent(load: float) -> None:
    shown = summary.rounded_load(load)
    assert "e" not in shown
    assert abs(float(shown.replace(",", "")) - load) <= max(0.005 * load, 1e-6)


_LOADS = st.none() | st.floats(0, allow_infinity=False) | st.sampled_from([0.0, 5e-324, 999.99, 12_000.0])


@given(st.none() | st.sampled_from(Ending), _LOADS, _LOADS, _LOADS, st.integers(0, 40), st.integers(0, 40))
def test_every_combination_is_worded(
    ending: Ending | None, estimate: float | None, low: float | None, high: float | None, probes: int, counted: int
) -> None:
    found = line(ending, estimate, low, high, probes=probes, counted=counted)
    texts = [
        summary.headline_text(found, search()),
        summary.short_text(found, search()),
        summary.interval_text(found, search()),
        summary.width_text(found),
        summary.ending_sentence(found, search()),
    ]
    for text in texts:
        assert not re.search(r"\de[+-]?\d|\binf\b|nan|None| - |± -", text), text


def test_every_outcome_has_its_own_words() -> None:
    assert len({summary.outcome_text(outcome) for outcome in ProbeOutcome}) == len(ProbeOutcome)


def stormy(
    ending: Ending | None = Ending.PRECISE,
    estimate: float | None = 7100,
    low: float | None = 6700,
    high: float | None = 7500,
    **rest: Any,
) -> Line:
    return line(ending, estimate, low, high, **{"storm": OsdsAway(count=1, action="Out"), **rest})


CALM = "12,400 ± 600 IOPS at p99 <= 5 ms"


@pytest.mark.parametrize(
    ("calm", "storm", "headline", "short"),
    [
        (line(), stormy(), f"carries {CALM}, 7,100 ± 400 while 1 OSD is out", ", 7,100 ± 400 with 1 OSD out"),
        (
            line(),
            stormy(storm=OsdsAway(count=2, action="Down")),
            f"carries {CALM}, 7,100 ± 400 while 2 OSDs are down",
            ", 7,100 ± 400 with 2 OSDs down",
        ),
        (
            line(),
            stormy(Ending.EQUALS_CALM, 12_400, 11_800, high=13_000),
            f"carries {CALM}, and as much while 1 OSD is out",
            ", 12,400 ± 600 with 1 OSD out",
        ),
        (
            line(),
            stormy(Ending.BROKEN_AT_FIRST, None, None, high=500),
            f"carries {CALM}, less than 500 while 1 OSD is out",
            ", less than 500 with 1 OSD out",
        ),
        (
            line(Ending.NEVER_BROKE, None, 200_000, None),
            stormy(Ending.NEVER_BROKE, None, 200_000, high=None),
            "carries more than 200,000 IOPS at p99 <= 5 ms, more than 200,000 while 1 OSD is out",
            ", more than 200,000 with 1 OSD out",
        ),
        (
            line(),
            stormy(Ending.PROBES_DO_NOT_COUNT, None, None, high=None, probes=4, counted=0),
            f"carries {CALM}; line while 1 OSD is out is unknown after 4 probes, none of which counts",
            ", unknown with 1 OSD out",
        ),
        (
            line(Ending.PROBES_DO_NOT_COUNT, None, None, None, probes=4, counted=0),
            stormy(),
            (
                "line at p99 <= 5 ms is unknown after 4 probes, none of which counts; carries 7,100 ± 400 IOPS while "
                "1 OSD is out"
            ),
            ", 7,100 ± 400 with 1 OSD out",
        ),
        (
            line(),
            Line(probes=0, counted=0),
            f"carries {CALM}; line while OSDs are away is not known yet",
            "",
        ),
    ],
)
def test_the_calm_and_the_storm_line_are_one_sentence(calm: Line, storm: Line, headline: str, short: str) -> None:
    assert summary.headline_text(calm, search(), storm) == headline
    assert summary.short_text(calm, search(), storm) == summary.short_text(calm, search()) + short


@pytest.mark.parametrize(
    ("count", "words", "short"), [(1, "1 OSD is out", "1 OSD out"), (2, "2 OSDs are out", "2 OSDs out")]
)
def test_a_storm_line_says_what_was_away(count: int, words: str, short: str) -> None:
    storm = line(storm=OsdsAway(count=count, action="Out"))
    assert summary.headline_text(storm, search()) == f"{summary.headline_text(line(), search())} while {words}"
    assert summary.short_text(storm, search()) == f"{summary.short_text(line(), search())}, {short}"
