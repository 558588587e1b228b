"""What disturbed trials show: phases, the time until the cluster was clean, and the shade over time."""

import pytest

from plimsoll.api.names import Metric
from plimsoll.api.operation import Series
from plimsoll.api.result import PHASES, DisturbanceResult, Phase, PhaseOperation, Trial
from plimsoll.api.suite_status import Conclusion
from plimsoll.measure.compare.comparison import compare
from plimsoll.measure.compare.values import RegressionRule, match_points
from plimsoll.metrics.objects import result_metrics
from plimsoll.report.figure import result_rows
from plimsoll.report.markdown import results_markdown
from plimsoll.report.pipelines import suite_of_run
from plimsoll.report.points import PHASE_COLUMNS, RESULT_COLUMNS, named, phase_rows, recovery_sentences
from plimsoll.report.trials import timeline_section
from plimsoll.report.view import csv_rows
from plimsoll.suite.measured import GATES
from report.test_trials import over_time
from support.goldens import charts_of, run_of, tables_of, texts, words_of
from support.results import result


def disturbed(number: int, *, clean: float | None = 10.0, p99: tuple[int, ...] = ()) -> Trial:
    """Return a trial of 4.5 s, whose rates were 100, 40 + `number` and 90 before, during and after."""
    whole = over_time(number, [100, 40, 40, 90])
    phases = tuple(
        Phase(
            name=name,
            seconds=1.5,
            stall_seconds=stall,
            operations=(
                PhaseOperation(
                    operation=whole.operations[0].operation,
                    iops=rate,
                    bytes_per_second=round(rate) * 4096,
                    percentiles={"50": 10**6, "99": 10**7},
                ),
            ),
        )
        for name, rate, stall in zip(PHASES, (100.0, 40.0 + number, 90.0), (0.0, 1.0, 0.0), strict=True)
    )
    series = Series(interval_seconds=1, iops=(100, 40, 40, 90), bytes_per_second=(0,) * 4, p99_nanoseconds=p99)
    operations = tuple(each.model_copy(update={"series": series}) for each in whole.operations)
    disturbance = DisturbanceResult(
        action="Down",
        osds=(3,),
        start_seconds=1.5,
        end_seconds=3.0,
        clean_seconds=clean,
        watched_seconds=60.0,
        phases=phases,
    )
    return whole.model_copy(update={"disturbance": disturbance, "operations": operations})


def test_phases_are_means_over_the_trials() -> None:
    rows = [*phase_rows([result([disturbed(0), disturbed(2)])])]
    names, iops, p99, stalls = (PHASE_COLUMNS[number] for number in (2, 4, 7, 8))
    assert [tuple(column.value(row) for column in (names, iops, p99, stalls)) for row in rows] == [
        ("Before", 100, 10**7, 0), ("During", 41, 10**7, 1), ("After", 90, 10**7, 0)
    ]  # fmt: skip
    assert [PHASE_COLUMNS[4].cell(row).text for row in rows] == ["100", "41.0", "90.0"]


def test_programs_read_the_rate_while_osds_are_away_and_the_time_to_recover() -> None:
    measured = result([disturbed(0), disturbed(2)])
    (row,) = csv_rows(RESULT_COLUMNS, result_rows(named([measured])))
    assert (row["iops_during"], row["recovery_nanoseconds"]) == (41, 10**10)
    run = run_of([measured])
    numbers = suite_of_run(run).numbers
    assert (numbers["w-000.read.iopsDuring"], numbers["w-000.read.recovery"]) == (41, 10**10)
    text = results_markdown([run]).replace("\N{NO-BREAK SPACE}", " ")
    assert "| `w-000` | read | During | 2 s | 41.0 |" in text
    assert "- `w-000`: `osd.3 was down for 2 s, all placement groups were clean 10 s later.`" in text


@pytest.mark.parametrize(
    ("cleaned", "words"),
    [
        ((10.0, 10.0), "osd.3 was down for 2 s, all placement groups were clean 10 s later."),
        ((10.0, 30.0), "all placement groups were clean 10 to 30 s later."),
        ((10.0, None), "clean 10 s later, not within 60 s in 1 of 2 trials."),
        ((None, None), "was down for 2 s, not within 60 s in 2 of 2 trials."),
    ],
)
def test_when_the_cluster_was_clean_is_said(cleaned: tuple[float | None, ...], words: str) -> None:
    trials = [disturbed(number, clean=seconds) for number, seconds in enumerate(cleaned)]
    (sentence,) = recovery_sentences([result(trials)])
    assert words in sentence


def test_all_osds_that_trials_took_away_are_said() -> None:
    first, second = disturbed(0), disturbed(1)
    assert second.disturbance is not None
    other = second.model_copy(update={"disturbance": second.disturbance.model_copy(update={"osds": (5,)})})
    assert "osd.3 or osd.5 was down for 2 s" in next(recovery_sentences([result([first, other])]))


def test_runs_are_compared_by_the_rate_during_and_the_time_to_recover() -> None:
    before = [result([disturbed(number, clean=10.0 + number) for number in range(3)])]
    after = [result([disturbed(number - 20, clean=40.0 + number) for number in range(3)], run="candidate")]
    rule = RegressionRule(gates=frozenset({Metric.DURING, Metric.RECOVERY}))
    comparison = compare(match_points(before, after), rule)
    (point,) = comparison.points
    gating = {metric.metric: metric.conclusion for metric in point.metrics if metric.gates}
    assert gating == {Metric.DURING: Conclusion.REGRESSION, Metric.RECOVERY: Conclusion.REGRESSION}
    assert comparison.gates == (Metric.DURING, Metric.RECOVERY)


def test_without_a_disturbance_its_metrics_are_no_gates() -> None:
    runs = [[result([over_time(number, [10, 20]) for number in range(3)], run=name)] for name in ("a", "b")]
    assert compare(match_points(*runs), RegressionRule(gates=GATES)).gates == (Metric.IOPS, Metric.P99)


def test_a_point_without_a_disturbance_has_none_of_it() -> None:
    calm = result([over_time(0, [10, 20])])
    assert ([*phase_rows([calm])], [*recovery_sentences([calm])]) == ([], [])


def test_the_report_shades_the_outage_and_shows_the_latencies_over_time() -> None:
    section = timeline_section([run_of([result([disturbed(0, p99=(1000, 9000, 0, 2000))])])])
    rates, latencies = charts_of(section)
    (shade,) = (shape for shape in rates.layout["shapes"] if shape["type"] == "rect")
    assert (shade["x0"], shade["x1"]) == (1.5, 3.0)
    assert latencies.layout["shapes"] == [shade]
    # One line, also through intervals in which no slice begins.
    assert [(latencies.data[0]["x"], latencies.data[0]["y"])] == [([0, 1, 3], [1, 9, 2])]
    assert "In the shaded time, OSDs were away." in words_of(section)
    assert [row[2] for row in texts(tables_of(section)[-1])] == ["Before", "During", "After"]


@pytest.mark.parametrize(("clean", "recovery"), [(10.0, [30.0]), (None, [])])
def test_metrics_have_the_rate_during_and_the_longest_recovery(clean: float | None, recovery: list[float]) -> None:
    body = result([disturbed(0, clean=30.0), disturbed(2, clean=clean)]).model_dump(mode="json")
    exposed = result_metrics(body, now=0)
    assert exposed is not None
    by_name = {sample.metric.name: sample.value for sample in exposed.samples}
    assert by_name["plimsoll_result_disturbed_iops"] == 41
    assert [by_name[name] for name in by_name if name.endswith("result_recovery_seconds")] == recovery
