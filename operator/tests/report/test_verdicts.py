"""The verdicts and the summary, and the table of all points."""

import pytest

from plimsoll.api.names import Verdict
from plimsoll.api.result import BenchmarkResult, Finding
from plimsoll.report.figure import sweeps_of
from plimsoll.report.overview import results_section, verdict_reasons, verdicts_section
from plimsoll.report.view import Counts
from support.goldens import SWEEP, blocks_of, golden, run_of, tables_of, texts, words_of
from support.results import MILLISECOND, aborted, measured, result, steady, trial, trials_of


def finding(reason: str, verdict: Verdict = Verdict.SUSPECT, message: str = "m") -> Finding:
    return Finding(reason=reason, verdict=verdict, message=message)


def judged(point: BenchmarkResult, verdict: Verdict, *findings: Finding) -> BenchmarkResult:
    return point.model_copy(
        update={"status": point.status.model_copy(update={"verdict": verdict, "findings": findings})}
    )


def test_every_reason_is_listed_once_worst_first_with_its_points() -> None:
    good = result(trials_of(steady(100)))
    results = [
        judged(good, Verdict.SUSPECT, finding("LowOverlap", message="a little"), finding("Stalled")),
        judged(
            result(trials_of(steady(1)), point="w-001"),
            Verdict.INVALID,
            finding("LowOverlap", Verdict.INVALID, "far too little"),
        ),
    ]
    reasons = [*verdict_reasons([run_of(results)])]
    assert [(one.reason, one.verdict, one.message, [*one.points]) for one in reasons] == [
        ("LowOverlap", "Invalid", "far too little", ["w-001", "w-000"]),
        ("Stalled", "Suspect", "m", ["w-000"]),
    ]


def test_points_are_counted_by_verdict() -> None:
    good = result(trials_of(steady(100)))
    unfinished = result(trials_of([1]), final=False, repetitions=3)
    results = [good, judged(good, Verdict.INVALID), judged(good, Verdict.INVALID), unfinished]
    section = verdicts_section([run_of(results)], [], [])
    (counts,) = [block for block in blocks_of(section) if isinstance(block, Counts)]
    assert list(counts.counts) == [
        ("Valid", 1),
        ("Suspect", 0),
        ("Invalid", 2),
        ("Unfinished", 1),
    ]


def deeper(depth: int, rate: float, p99: int, **parameters: object) -> BenchmarkResult:
    trials = [trial(number, measured(value, p99=p99)) for number, value in enumerate(steady(rate))]
    return result(trials, point=f"w-{depth:03d}", parameters={"ioDepth": depth, **parameters})


def test_the_best_of_a_workload_carries_its_mark() -> None:
    results = [deeper(1, 100, MILLISECOND), judged(deeper(4, 400, MILLISECOND), Verdict.SUSPECT)]
    runs = [run_of(results)]
    words = words_of(verdicts_section(runs, sweeps_of(runs), []))
    assert "w, read: at most 399 IOPS, 1.6 MiB/s, p99 1.00 ms, at randread 4Ki qd1, 2 clients [Suspect]" in words


def test_the_table_has_every_operation_of_every_point() -> None:
    results = golden(SWEEP)
    (table,) = tables_of(results_section([run_of(results)]))
    headings = [*table.headings]
    assert {len(row) for row in table.rows} == {len(headings)}
    assert [row[0] for row in texts(table)] == [one.spec.point for one in results]
    summary = results[0].status.summary
    assert summary is not None
    first = dict(zip(headings, table.rows[0], strict=True))
    assert first["IOPS ± 95 %"].sort == summary.operations[0].iops.mean
    assert first["p99"].sort == summary.operations[0].percentiles["99"].mean
    assert first["Verdict"].mark == results[0].status.verdict


@pytest.mark.parametrize(
    ("point", "why"),
    [
        (
            judged(result([aborted(0)]), Verdict.INVALID, finding("NoTrialCounts", Verdict.INVALID, "none")),
            "ClientLost",
        ),
        (result([aborted(0)], final=False, repetitions=3), "not finished: 1 of 3 trials recorded"),
        (judged(result([aborted(0)]), Verdict.INVALID), "no trial counts, and no reason was recorded"),
    ],
)
def test_point_without_numbers_has_a_reason(point: BenchmarkResult, why: str) -> None:
    (table,) = tables_of(results_section([run_of([point])]))
    (row,) = texts(table)
    assert row[-1] == why
    assert row[5] == "-"


def test_the_table_names_the_run_if_there_are_several() -> None:
    results = [result(trials_of(steady(100)))]
    (table,) = tables_of(results_section([run_of(results, "before"), run_of(results, "after")]))
    assert [row[1] for row in texts(table)] == ["before", "after"]
