"""`plimsoll percentile`."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from plimsoll.api.names import LatencyKind, Operation, Verdict
from plimsoll.cli import main
from plimsoll.measure.histogram import Histogram, bin_index, bin_midpoint
from support.results import measured, result, trial

FAST, SLOW = 100_000, 1_000_000


def histogram(fast: int, slow: int) -> str:
    return Histogram(counts={bin_index(FAST): fast, bin_index(SLOW): slow}).encode()


@pytest.fixture(autouse=True)
def where_results_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two trials of 1000 operations: 1 % and then 5 % of them slow; the second at its second attempt."""
    monkeypatch.chdir(tmp_path)
    trials = [
        trial(0, measured(100, histogram=histogram(990, 10))),
        trial(1, measured(100), verdict=Verdict.INVALID),
        trial(1, measured(100, histogram=histogram(950, 50)), attempt=1),
    ]
    plain = trial(0, measured(100, operation=Operation.WRITE, kind=LatencyKind.MEAN_ONLY))
    documents = [result(trials), result([plain], point="w-001")]
    Path("run").write_text(json.dumps([one.model_dump(mode="json") for one in documents]))


def percentile(*arguments: str, code: int = 0) -> str:
    found = CliRunner().invoke(main, ["percentile", "run", *arguments])
    assert found.exit_code == code, found.output
    return found.output


def test_all_trials_that_count_are_merged() -> None:
    lines = percentile("97.5").splitlines()
    slow = bin_midpoint(bin_index(SLOW))
    assert lines[0] == f"w-000 read p97.5 1.00 ms = {slow} ns (50 of 2000 operations beyond)"
    assert lines[1] == "w-001 write p97.5 absent: the tool keeps no histogram; the maximum is 50.0 ms (1000 operations)"


@pytest.mark.parametrize(("p", "value"), [("50", FAST), ("96.9", FAST), ("97.1", SLOW)])
def test_value_is_that_of_the_histogram(p: str, value: int) -> None:
    (answer,) = json.loads(percentile(p, "--operation", "read", "-o", "json"))
    assert answer["nanoseconds"] == bin_midpoint(bin_index(value))
    assert answer["because"] == ""


@pytest.mark.parametrize(
    ("trial", "p", "value"), [("0", "97", FAST), ("1", "97", SLOW), ("1.1", "97", SLOW), ("0.0", "98.9", FAST)]
)
def test_one_trial_is_its_last_attempt_or_the_one_named(trial: str, p: str, value: int) -> None:
    (answer,) = json.loads(percentile(p, "--point", "w-000", "--trial", trial, "-o", "json"))
    assert (answer["nanoseconds"], answer["operations"]) == (bin_midpoint(bin_index(value)), 1000)


def test_fewer_than_ten_operations_beyond_are_no_percentile() -> None:
    assert percentile("99", "--trial", "0", "--point", "w-000").endswith(" ns (10 of 1000 operations beyond)\n")
    text = percentile("99.1", "--trial", "0", "--point", "w-000")
    expected = "absent: fewer than 10 operations beyond; the maximum is 50.0 ms (1000 operations)"
    assert text == f"w-000 read p99.1 {expected}\n"


def test_trial_that_does_not_count_has_no_histogram() -> None:
    text = percentile("50", "--trial", "1.0", "--point", "w-000")
    assert "absent: the histogram of a trial that does not count is not kept" in text


def test_many_digits_are_kept() -> None:
    assert " p99.999999 absent" in percentile("99.999999", "--point", "w-000")


@pytest.mark.parametrize("p", ["0", "100", "-1", "x"])
def test_percentile_lies_between_0_and_100(p: str) -> None:
    assert "Invalid value for 'PERCENTILE'" in percentile("--", p, code=2)


def test_missing_selection_is_refused() -> None:
    assert "--point w-007 is not a point; the points are w-000, w-001" in percentile("50", "--point", "w-007", code=2)
    assert "--trial x is not PASS or PASS.ATTEMPT" in percentile("50", "--trial", "x", code=2)
    assert "run has no such numbers" in percentile("50", "--trial", "7", code=1)
    assert "run has no such numbers" in percentile("50", "--operation", "trim", code=1)


def test_damaged_histogram_is_reported() -> None:
    documents = json.loads(Path("run").read_text())
    documents[0]["status"]["summary"]["operations"][0]["latency"]["histogram"] = "fio-plat-6-29:!"
    Path("run").write_text(json.dumps(documents))
    assert "absent: its histogram cannot be read: " in percentile("50", "--point", "w-000")


def test_percentile_beyond_the_histogram_names_the_maximum() -> None:
    beyond = Histogram(counts={bin_index(FAST): 900, bin_index(20 * 10**9): 100}).encode()
    found = result([trial(0, measured(100, histogram=beyond))])
    Path("run").write_text(json.dumps([found.model_dump(mode="json")]))
    expected = "absent: beyond 17.05 s, where the histogram ends; the maximum is 50.0 ms (1000 operations)"
    assert percentile("95") == f"w-000 read p95 {expected}\n"
