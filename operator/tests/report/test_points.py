"""Sweeps, and the points shown in figures."""

import pytest
from pydantic import JsonValue

from plimsoll.api.names import Operation, Verdict
from plimsoll.report.figure import ReportedRun, axis_number, axis_text, runs_of, sweeps_of
from support.goldens import SWEEP, golden, run_of
from support.results import measured, result, steady, trial, trials_of


def test_axes_are_what_has_several_values() -> None:
    reads, writes = sweeps_of([run_of(golden(SWEEP))])
    assert (reads.workload, reads.operation, [*reads.axes]) == (
        "random-read",
        Operation.READ,
        ["clients", "blockSize", "ioDepth"],
    )
    assert [*writes.axes] == ["ioDepth"]


def test_a_series_is_called_by_the_other_axes_and_by_its_run_if_there_are_several() -> None:
    results = golden(SWEEP)
    (reads, _) = sweeps_of([run_of(results)])
    assert reads.label(reads.measured[0], ["clients", "blockSize"]) == "4Ki, 1 client"
    (reads, _) = sweeps_of([run_of(results, "before"), run_of(results, "after")])
    assert reads.label(reads.measured[0], ["blockSize"]) == "4Ki, before"


def test_invalid_points_and_those_without_numbers_are_never_drawn() -> None:
    bad = result([trial(0, measured(100), verdict=Verdict.INVALID)], point="w-001")
    (sweep,) = sweeps_of([run_of([result(trials_of(steady(100))), bad, result([], point="w-002", repetitions=3)])])
    assert [one.result.spec.point for one in sweep.measured] == ["w-000"]


def test_an_invalid_point_with_a_summary_is_not_drawn_either() -> None:
    good = result(trials_of(steady(100)))
    status = good.status.model_copy(update={"verdict": Verdict.INVALID})
    assert sweeps_of([run_of([good.model_copy(update={"status": status})])]) == []


@pytest.mark.parametrize(
    ("axis", "value", "number", "text"),
    [
        ("blockSize", "64Ki", 65536, "64Ki"),
        ("ioDepth", 16, 16, "depth 16"),
        ("concurrency", 4, 4, "depth 4"),
        ("directIo", True, None, "directIo True"),
        ("engine", "libaio", None, "engine libaio"),
    ],
)
def test_values_of_axes(axis: str, value: JsonValue, number: float | None, text: str) -> None:
    point = result(trials_of([1]), parameters={axis: value})
    assert axis_number(point, axis) == number
    assert axis_text(axis, value) == text


def test_runs_with_the_same_name_are_distinguished() -> None:
    here, there = result(trials_of([1]), run="a"), result(trials_of([1]), run="a")
    there = there.model_copy(
        update={
            "spec": there.spec.model_copy(update={"run_uid": "another uid"}),
            "metadata": there.metadata.model_copy(update={"namespace": "other"}),
        }
    )
    twin = there.model_copy(update={"spec": there.spec.model_copy(update={"run_uid": "third"})})
    assert labels(runs_of([here])) == ["a"]
    assert labels(runs_of([here, there])) == ["default/a", "other/a"]
    assert labels(runs_of([here, there, twin])) == ["default/a", "other/a another ", "other/a third"]


def labels(runs: list[ReportedRun]) -> list[str]:
    return [run.label for run in runs]
