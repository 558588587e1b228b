"""`plimsoll compare`."""

import csv
import io
import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

import pytest
from rich.console import Console

from plimsoll.api.result import BenchmarkResult
from plimsoll.api.suite_status import Conclusion
from plimsoll.cli.compare import EXIT_OF, show_comparison, variants_lines
from plimsoll.measure.compare import comparison
from plimsoll.measure.compare.values import RegressionRule, match_points
from plimsoll.plan.fingerprint import Difference, Likeness
from support.command_line import invoke
from support.results import above, line, result, searched, steady, trials_of


@pytest.fixture(autouse=True)
def saved_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Provide a directory with the runs `baseline`, `same` and `slower`."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")
    save("same", [saved_run("same", 1000)])
    save("baseline", [saved_run("baseline", 1000)])
    save("slower", [saved_run("slower", 800)])


def saved_run(name: str, rate: float, **changes: Any) -> BenchmarkResult:
    """Return the result of a run with a steady rate."""
    return result(trials_of(steady(rate)), run=name, context={"seed": len(name)}, **changes)


def save(name: str, results: Sequence[BenchmarkResult]) -> None:
    Path(name).write_text(json.dumps([one.model_dump(mode="json") for one in results]))


compare = partial(invoke, "compare")


def without_fingerprint(one: BenchmarkResult) -> BenchmarkResult:
    return one.model_copy(update={"status": one.status.model_copy(update={"fingerprint": None})})


# Conclusions and exit codes


def test_every_conclusion_has_an_exit_code_of_its_own() -> None:
    assert EXIT_OF == {Conclusion.NO_REGRESSION: 0, Conclusion.REGRESSION: 3, Conclusion.INCONCLUSIVE: 4}


def test_regression() -> None:
    text = compare("baseline", "slower", code=3)
    assert text.splitlines()[-1] == "Regression"
    (iops,) = [line for line in text.splitlines() if " iops " in line]
    assert iops.split()[iops.split().index("read") :] == [
        *("read", "iops", "998", "798", "-20.0", "%", "-21.0", "%", "to", "-19.0", "%", "-20.8", "%", "5+5"),
        *("Regression,", "confirmed"),
    ]
    assert "Tolerated: 5 % less rate, 10 % more latency. Gates: iops, p99." in text
    assert "- Regression in 1 of 2 gating metrics" in text


def test_a_lower_line_is_a_regression() -> None:
    save("before", [searched(line(12_000), run="before")])
    save("after", [searched(line(9_600), run="after")])
    text = compare("before", "after", code=3)
    assert "12,000" in text
    assert "9,600" in text
    assert "-20.0 %" in text
    assert "20+20" in text
    assert "its trials are the probes behind it" in text
    document = json.loads(compare("before", "after", "-o", "json", code=3))
    assert document["gates"] == ["iops", "p99", "line"]
    (row,) = csv.DictReader(compare("before", "after", "-o", "csv", code=3).splitlines())
    assert (row["metric"], row["conclusion"], row["baseline"]) == ("line", "Regression", "12000.0")
    assert row["operation"] == document["points"][0]["metrics"][0]["operation"] == "all"


def test_lines_above_all_loads_have_no_ratio() -> None:
    for name in ("before", "after"):
        save(name, [searched(above(), run=name)])
    assert "above 200,000; how far is unknown" in compare("before", "after", code=4)


def test_no_regression() -> None:
    text = compare("baseline", "same")
    assert text.splitlines()[-1] == "NoRegression"
    assert "(NoRegression)" in text


def test_improvement_is_shown() -> None:
    text = compare("slower", "baseline")
    assert "NoRegression, improved" in text


def test_inconclusive_says_how_many_trials_would_tell() -> None:
    save("noisy", [result(trials_of([850, 950, 1050]), run="noisy")])
    text = compare("baseline", "noisy", code=4)
    assert text.splitlines()[-1] == "Inconclusive"
    assert "w-000 read iops: about " in text
    assert " trials on each side would decide it" in text


def test_thresholds_and_gates_are_what_the_user_says() -> None:
    assert "30 % less rate" in compare("baseline", "slower", "--threshold-rate", "30")
    assert "Gates: p99." in compare("baseline", "slower", "--gate", "p99")
    compare("baseline", "slower", "--gate", "p99", "--gate", "bytesPerSecond", code=3)


@pytest.mark.parametrize(
    "options",
    [
        ("--threshold-rate", "0"),
        ("--threshold-rate", "100"),
        ("--threshold-latency", "1"),
        ("--gate", "p42"),
    ],
)
def test_bad_options_are_refused(options: tuple[str, str]) -> None:
    assert f"Invalid value for '{options[0]}'" in compare("baseline", "same", *options, code=2).replace(
        "'-o' / '--output'", "'-o'"
    )


@pytest.mark.parametrize("width", [60, 80, 100, 160])
def test_no_column_vanishes_silently(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    text = compare("baseline", "slower", code=3)
    headings = text.splitlines()[0]
    for heading in ("Metric", "Conclusion", "Change"):
        assert heading in headings
    missed = " ".join(text.partition("No room for")[2].partition("In brackets")[0].split())
    for heading in ("Baseline", "Candidate", "95 % interval", "At worst", "Trials"):
        assert heading in headings or heading in missed, heading


# Sweeps


def sweep(name: str, factors: Sequence[float] = (1, 1, 1, 1)) -> list[BenchmarkResult]:
    """Return points whose rates scatter by about 5 %, each in another order, times these factors."""
    noise = [0.93, 0.97, 1.0, 1.03, 1.07]
    return [
        result(
            trials_of(factor * 1000 * noise[(point * len(name) + number) % 5] for number in range(5)),
            run=name,
            point=f"w-{point:03d}",
            parameters={"ioDepth": point + 1},
        )
        for point, factor in enumerate(factors)
    ]


def test_mean_of_a_sweep_comes_first_and_decides_what_its_points_leave_open() -> None:
    save("ab", sweep("ab"))
    save("abc", sweep("abc"))
    text = compare("ab", "abc")
    lines = text.splitlines()
    assert lines[1].split()[:7] == ["w", "mean", "of", "4", "points", "read", "iops"]
    assert lines[1].split()[-2:] == ["5+5", "NoRegression"]
    assert lines[2].split()[:2] == ["read", "p99"]
    assert "The mean change of a workload decides what its points alone leave Inconclusive" in text
    assert "- NoRegression in 2 of 2 mean changes of workloads" in text
    assert sum(line.rstrip().endswith(" Inconclusive") for line in lines) == 4
    assert "would decide it" not in text


@pytest.mark.parametrize(
    ("doubts", "conclusion", "last"),
    [
        ((), None, ["Regression"]),
        (
            ("2 of 7 attempts of r-2 were replaced",),
            Conclusion.INCONCLUSIVE,
            ["2 of 7 attempts of r-2 were replaced", "Inconclusive; the numbers alone would show Regression"],
        ),
    ],
)
def test_a_comparison_ends_with_one_conclusion(
    doubts: Sequence[str], conclusion: Conclusion | None, last: list[str]
) -> None:
    console = Console(file=io.StringIO(), width=200)
    matching = match_points([result(trials_of(steady(1000)))], [result(trials_of(steady(700)), run="candidate")])
    same = Likeness(differences=[], unknown=[])
    show_comparison(console, comparison.compare(matching, RegressionRule()), same, doubts=doubts, conclusion=conclusion)
    assert console.file.getvalue().splitlines()[-len(last) :] == last  # type: ignore[attr-defined]


def test_documents_have_the_means() -> None:
    save("ab", sweep("ab"))
    save("abc", sweep("abc"))
    document = json.loads(compare("ab", "abc", "-o", "json"))
    iops, p99 = document["means"]
    assert (iops["workload"], iops["points"], iops["metric"]) == ("w", 4, "iops")
    assert (iops["baselinePasses"], iops["candidatePasses"]) == (5, 5)
    assert 0.95 < iops["low"] < iops["bound"] < iops["ratio"] < iops["high"]
    assert p99["conclusion"] == "NoRegression"
    assert all(point["metrics"][0]["inMean"] for point in document["points"])


def test_rows_of_csv_begin_with_the_means() -> None:
    save("ab", sweep("ab"))
    save("abc", sweep("abc"))
    rows = [*csv.DictReader(compare("ab", "abc", "-o", "csv").splitlines())]
    assert len(rows) == 2 + 4 * 5
    assert [(row["point"], row["label"], row["metric"], row["baseline_trials"]) for row in rows[:2]] == [
        ("", "mean of 4 points", "iops", "5"),
        ("", "mean of 4 points", "p99", "5"),
    ]


def test_a_suspected_point_is_marked() -> None:
    save("ab", sweep("ab"))
    save("abc", sweep("abc", (0.87, 1, 1, 1)))
    text = compare("ab", "abc", code=4)
    assert text.count("Inconclusive, suspected") == 1
    assert "- a regression is suspected in 1 of 8 gating metrics of single points" in text
    assert "w-000 read iops: about " in text


# What differs


def test_context_is_shown_and_no_obstacle() -> None:
    text = compare("baseline", "same")
    assert "context seed: 8 -> 4, at w-000" in text


def test_different_runs_are_refused_with_their_differences() -> None:
    save("other", [saved_run("other", 1000, identity={"toolVersions": ["fio-3.40"]})])
    text = compare("baseline", "other", code=1)
    assert "differ; --allow-different compares them anyway" in text
    assert "identity toolVersions: - -> fio-3.40, at w-000" in text
    text = compare("baseline", "other", "--allow-different")
    assert "The runs differ in (baseline -> candidate):\nidentity toolVersions" in text
    assert text.splitlines()[-1] == "NoRegression"


def test_runs_of_unknown_likeness_are_refused() -> None:
    save("old", [without_fingerprint(saved_run("old", 1000))])
    assert "No fingerprint was recorded at w-000" in compare("baseline", "old", code=1)
    assert "No fingerprint was recorded at w-000" in compare("baseline", "old", "--allow-different")


def test_equal_runs_are_reported_as_equal() -> None:
    save("equal", [saved_run("baseline", 1000).model_copy(update={"spec": saved_run("equal", 1).spec})])
    assert "The recorded settings of the runs do not differ." in compare("baseline", "equal")


def test_differences_of_several_points_are_shown_once() -> None:
    for name in ("one", "two"):
        save(name, [saved_run(name, 1000, point=f"w-{n:03d}", parameters={"ioDepth": n + 1}) for n in range(3)])
    save("three", [saved_run("three", 1000, point=f"w-{n:03d}", parameters={"ioDepth": n + 1}) for n in range(3)])
    assert compare("one", "three").count("context seed: 3 -> 5, at w-000 and 2 more") == 1


def test_variants_differ_by_intention_and_only_the_settings_are_named() -> None:
    keys: list[tuple[Literal["identity", "context"], str]] = [
        ("identity", "pool.size"),
        ("context", "ceph.pools"),
        ("context", "kernel"),
        ("context", "seed"),
    ]
    found = [(Difference(part=part, key=key, baseline=1, candidate=2), ["w-000"]) for part, key in keys]
    assert [*variants_lines(Likeness(differences=found, unknown=["w-001"]))] == [
        "No fingerprint was recorded at w-001: other differences are unknown.",
        "The variants differ in what is measured: pool.size (-o json has the values).",
        "Their runs differ in kernel: 1 -> 2",
    ]


def test_runs_without_a_common_point_are_refused() -> None:
    save("deep", [saved_run("deep", 1000, parameters={"ioDepth": 16}, identity={"parameters": {"ioDepth": 16}})])
    text = compare("baseline", "deep", code=1)
    assert "have no workload with the same parameters and clients" in text
    assert "--allow-different also matches points by name" in text
    assert "identity parameters.ioDepth" in compare("baseline", "deep", "--allow-different")


def test_points_of_one_side_are_listed() -> None:
    save("more", [saved_run("more", 1000), saved_run("more", 1000, point="v-000")])
    assert "Only the candidate has v-000." in compare("baseline", "more")
    assert "the candidate lacks these points: v-000" in compare("more", "baseline", code=4)


# What is refused


def test_a_run_is_not_compared_with_itself() -> None:
    assert "baseline and baseline are the same run; name two different runs" in compare("baseline", "baseline", code=1)


def test_results_of_several_runs_are_refused() -> None:
    save("both", [saved_run("a", 1000), saved_run("b", 1000)])
    assert "both contains results of 2 runs (default/a, default/b)" in compare("both", "same", code=1)


def test_a_file_that_has_a_result_twice_is_refused() -> None:
    save("twice", [saved_run("twice", 1000)])
    results = json.loads(Path("twice").read_text())
    Path("twice.json").write_text(json.dumps(results * 2))
    assert "twice.json: run default/twice is given more than once" in compare("twice.json", "same", code=1)


def test_one_side_alone_is_refused() -> None:
    assert "Missing argument 'CANDIDATE'" in compare("baseline", code=2)


def test_json_has_everything() -> None:
    document = json.loads(compare("baseline", "slower", "-o", "json", code=3))
    assert document["conclusion"] == "Regression"
    assert document["differences"] == [
        {"part": "context", "key": "seed", "baseline": 8, "candidate": 6, "points": ["w-000"]}
    ]
    (point,) = document["points"]
    assert [metric["metric"] for metric in point["metrics"]] == ["iops", "bytesPerSecond", "meanLatency", "p50", "p99"]
    iops = point["metrics"][0]
    assert iops["low"] < iops["ratio"] < iops["high"] < 1
    assert iops["pValue"] < 1e-6


# Noise between runs


def test_without_noise_runs_the_noise_between_runs_is_unknown() -> None:
    assert "Noise between runs: unknown and not taken into account" in compare("baseline", "slower", code=3)
    document = json.loads(compare("baseline", "slower", "-o", "json", code=3))
    assert (document["noiseRuns"], document["points"][0]["metrics"][0]["between"]) == (0, None)


def test_noise_between_runs_prevents_a_regression() -> None:
    for number, rate in enumerate((900, 1000, 1100)):
        save(f"same-{number}", [saved_run(f"same-{number}", rate)])
    same = [word for number in range(3) for word in ("--noise", f"same-{number}")]
    text = compare("baseline", "slower", *same, code=4)
    assert "Noise between runs: from 3 runs, so at most 2 degrees of freedom." in text
    assert "too near the noise between the 3 --noise runs" in text
    document = json.loads(compare("baseline", "slower", *same, "-o", "json", code=4))
    assert document["noiseRuns"] == 3
    assert document["points"][0]["metrics"][0]["between"] == pytest.approx(0.1, abs=0.01)


def test_runs_that_hardly_differ_leave_a_large_regression_one() -> None:
    save("again", [saved_run("again", 1005)])
    compare("baseline", "slower", "--noise", "baseline", "--noise", "same", "--noise", "again", code=3)


def test_unsuitable_noise_runs_are_refused() -> None:
    save("other", [saved_run("other", 1000, identity={"clients": 9})])
    for sources, words in (
        (["same"], "--noise same alone shows no noise between runs; name at least 2 runs"),
        (["same", "same"], "--noise same same: run default/same is given more than once; name each run once"),
        (["same", "slower"], "--noise slower is the candidate"),
        (["same", "other"], "--noise other has another specification than baseline"),
    ):
        assert words in compare("baseline", "slower", *(w for one in sources for w in ("--noise", one)), code=1)


def test_a_point_that_the_noise_runs_do_not_tell_of_is_inconclusive() -> None:
    save("short", [result(trials_of([1000, 1001]), run="short")])
    text = compare("baseline", "slower", "--noise", "same", "--noise", "short", code=4)
    assert "its noise between runs is unknown: fewer than 2 of the --noise runs have this point" in text
