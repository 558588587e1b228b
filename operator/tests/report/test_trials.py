"""Attempts: all are shown, and only those that count are in curves."""

from typing import Any

from plimsoll.api.line import Line, ProbeOutcome
from plimsoll.api.names import Verdict
from plimsoll.api.operation import Series
from plimsoll.api.result import BenchmarkResult, Finding, Stalls, Trial, Window
from plimsoll.report.trials import MOST_PANELS, timeline_section, trials_section
from support.goldens import SWEEP, charts_of, golden, run_of, tables_of, texts, words_of
from support.results import aborted, measured, probe, result, searched, steady, trial, trials_of


def over_time(number: int, rates: list[float], *, stalled: float = 0.0, verdict: Verdict = Verdict.VALID) -> Trial:
    """Return a trial with a series of one second each, and half a second more."""
    made = trial(number, measured(100), verdict=verdict)
    series = Series(interval_seconds=1, iops=tuple(rates), bytes_per_second=tuple(round(rate) * 4096 for rate in rates))
    window = Window(
        start_nanoseconds=0,
        end_nanoseconds=1,
        last_end_nanoseconds=1,
        seconds=len(rates) + 0.5,
        whole_seconds=len(rates) + 0.5,
        spread_seconds=0.0,
        overlap=1.0,
    )
    return made.model_copy(
        update={
            "operations": tuple(one.model_copy(update={"series": series}) for one in made.operations),
            "window": window,
            "stalls": Stalls(seconds=stalled, worst_client_seconds=stalled, worst_client=1 if stalled else None),
        }
    )


def named(traces: Any) -> dict[str, Any]:
    return {trace["name"]: trace for trace in traces}


def test_a_line_holds_each_rate_to_the_end_of_its_interval_and_of_the_window() -> None:
    (chart,) = charts_of(timeline_section([run_of([result([over_time(0, [10, 20, 30])])])]))
    (trace,) = chart.data
    assert (trace["x"], trace["y"]) == ([0, 1, 2, 3.5], [10, 20, 30, 30])
    assert [shape["x0"] for shape in chart.layout["shapes"]] == [0, 3.5]


def test_seconds_in_which_nothing_completed_are_marked() -> None:
    (chart,) = charts_of(timeline_section([run_of([result([over_time(0, [10, 0, 0, 10], stalled=1.5)])])]))
    assert named(chart.data)["nothing completed"]["x"] == [1.5, 2.5]


def test_only_trials_that_count_are_drawn_over_time() -> None:
    attempts = [
        over_time(0, [1, 1], verdict=Verdict.INVALID),
        over_time(0, [5, 5]).model_copy(update={"attempt": 1}),
        over_time(1, [6, 6], verdict=Verdict.SUSPECT),
    ]
    (chart,) = charts_of(timeline_section([run_of([result(attempts)])]))
    assert [trace["name"] for trace in chart.data] == ["read, pass 0", "read, pass 1 (Suspect)"]


def test_of_many_points_those_with_stalls_are_shown() -> None:
    calm = [result([over_time(0, [1, 1])], point=f"w-{number:03d}") for number in range(20)]
    still = result([over_time(0, [1, 0], stalled=1)], point="w-020")
    section = timeline_section([run_of([*calm, still])])
    charts = charts_of(section)
    assert len(charts) == MOST_PANELS
    assert charts[-1].title.startswith("w-020")
    assert "9 more points are omitted" in words_of(section)


def test_trial_without_a_series_is_named() -> None:
    (chart,) = charts_of(timeline_section([run_of([result([over_time(0, [10, 20]), trial(1, measured(15))])])]))
    assert [trace["name"] for trace in chart.data] == ["read, pass 0"]
    assert chart.title.endswith("(pass 1 has no series)")


def test_of_a_whole_data_set_the_bytes_are_drawn_over_time() -> None:
    parameters = {"pattern": "read", "blockSize": 4096, "until": "DataSetDone"}
    (chart,) = charts_of(timeline_section([run_of([result([over_time(0, [256, 512])], parameters=parameters)])]))
    assert chart.data[0]["y"] == [1, 2, 2]
    assert chart.data[0]["customdata"] == [256, 512, 512]
    assert chart.layout["yaxis"]["title"]["text"] == "MiB per second"
    assert chart.description.startswith("MiB per second of")


def test_without_any_series_there_is_nothing_over_time() -> None:
    assert timeline_section([run_of([result(trials_of(steady(100)))])]) is None


def test_every_attempt_is_listed_those_that_do_not_count_first() -> None:
    attempts = [
        trial(0, measured(50), verdict=Verdict.INVALID),
        trial(0, measured(100), attempt=1),
        trial(1, measured(110), verdict=Verdict.SUSPECT),
    ]
    (table,) = tables_of(trials_section([run_of([result(attempts)])]))
    assert [(row[3], row[4], row[5]) for row in texts(table)] == [
        ("read 50.0", "no", "Invalid"),
        ("read 100", "yes", "Valid"),
        ("read 110", "yes", "Suspect"),
    ]


def test_uncounted_attempts_are_listed_with_their_reasons() -> None:
    bad = trial(1, measured(1), verdict=Verdict.INVALID)
    reason = Finding(reason="LowOverlap", verdict=Verdict.INVALID, message="0.5 (limit 0.9)")
    attempts = [
        aborted(0),
        trial(0, measured(100), attempt=1),
        bad.model_copy(update={"findings": (reason,)}),
    ]
    (table,) = tables_of(trials_section([run_of([result(attempts)])]))
    assert [(row[1], row[5], row[6]) for row in texts(table)] == [
        ("pass 0", "Aborted", "ClientLost: m"),
        ("pass 1", "Invalid", "LowOverlap: 0.5 (limit 0.9)"),
        ("pass 0, attempt 1", "Valid", ""),
    ]


def test_a_probe_whose_outcome_is_unknown_does_not_count_although_it_is_valid() -> None:
    probes = [
        probe(0, 8000),
        probe(1, 4000, ProbeOutcome.UNKNOWN, p99=None),
        probe(2, 16_000, ProbeOutcome.NOT_OFFERED),
    ]
    found = searched(Line(probes=3, counted=1), probes)
    assert found.status.line is not None
    (table,) = tables_of(trials_section([run_of([found])]))
    uncounted = [row for row in texts(table) if row[4] == "no"]
    assert len(uncounted) == found.status.line.probes - found.status.line.counted
    assert [(row[1], row[6].partition(" (")[0]) for row in uncounted] == [
        ("pass 1", "too few operations for the percentile"),
        ("pass 2", "clients offered less than half of the load"),
    ]


def test_statement_of_how_many_attempts_do_not_count() -> None:
    section = trials_section([run_of([result(trials_of(steady(100)))])])
    assert "0 attempts of 5 do not count" in words_of(section)


def test_real_attempts_that_were_replaced_are_there() -> None:
    results = golden(SWEEP)
    (table,) = tables_of(trials_section([run_of(results)]))
    assert len(table.rows) == sum(len(one.status.trials) for one in results)
    assert {row[0] for row in texts(table) if row[4] == "no"} == {"random-read-015"}


def test_many_attempts_are_bounded() -> None:
    many: list[BenchmarkResult] = [result(trials_of([1, 2]), point=f"w-{number:03d}") for number in range(512)]
    section = trials_section([run_of(many)])
    assert [len(table.rows) for table in tables_of(section)] == [1000]
    assert "24 more are omitted" in words_of(section)
