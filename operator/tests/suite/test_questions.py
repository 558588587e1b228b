"""Comparisons and hypotheses that the planned points cannot answer are refused before anything is measured."""

from typing import Any

import pytest

from plimsoll.api.errors import SpecError
from plimsoll.api.suite import decode_suite
from plimsoll.suite.children import variant_plans
from support.specs import VARIANTS, suite_document

COMPARISON = {"name": "costs", "baseline": {"variant": "small"}, "candidate": {"variant": "other"}}
OTHER = {"name": "other", "set": {"workloads": [{"name": "more", "fio": {}}]}}


def selector(workload: str = "reads", **where: Any) -> dict[str, Any]:
    return {"workload": workload, "where": where, "quantity": "iops"}


def planned(**spec: Any) -> list[str]:
    """Return the problems of a suite; empty if it can be planned."""
    try:
        variant_plans(decode_suite(suite_document(**spec)), seed=1)
    except SpecError as error:
        return [str(problem) for problem in error.problems]
    return []


def test_variants_with_common_points_are_compared() -> None:
    assert planned(variants=[VARIANTS[0], OTHER], comparisons=[COMPARISON]) == []


def test_comparison_without_a_common_workload_is_refused() -> None:
    workloads: Any = [{"name": name, "set": {"workloads": [{"name": name, "fio": {}}]}} for name in ("small", "other")]
    run = suite_document()["spec"]["run"] | {"workloads": []}
    (problem,) = planned(run=run, variants=workloads, comparisons=[COMPARISON])
    assert problem.startswith(
        "spec.comparisons[0]: compares nothing, because variants small and other have no workload"
    )


@pytest.mark.parametrize(
    "hypothesis",
    [
        {"left": selector(ioDepth=16), "of": selector(ioDepth=1), "atLeastPercent": 200},
        {"left": selector(blockSize="64Ki", ioDepth=1), "of": selector(ioDepth=16), "atMostPercent": 100},
    ],
    ids=["in every variant", "in one variant"],
)
def test_hypothesis_on_planned_points_is_accepted(hypothesis: dict[str, Any]) -> None:
    assert planned(hypotheses=[{"name": "deep"} | hypothesis]) == []


@pytest.mark.parametrize(
    ("hypothesis", "expected"),
    [
        ({"left": selector("read", ioDepth=16), "of": selector(ioDepth=1)}, "left.workload: "),
        ({"left": selector(ioDepth=16), "of": selector(ioDept=1)}, "of.where.ioDept: "),
        ({"left": selector(ioDepth=16), "of": selector(ioDepth=2)}, "of.where.ioDepth: "),
        ({"left": selector(ioDepth=16), "of": selector()}, "of: "),
    ],
)
def test_hypothesis_on_other_points_is_refused(hypothesis: dict[str, Any], expected: str) -> None:
    found = planned(hypotheses=[{"name": "deep", "atLeastPercent": 200} | hypothesis])
    assert found
    assert all(problem.startswith(f"spec.hypotheses[0].{expected}") for problem in found)


def test_a_line_is_asked_of_a_workload_that_searches_for_it_and_nothing_else_is() -> None:
    def asked(quantity: str, run: Any) -> list[str]:
        sides = {
            side: {"workload": "reads", "where": {"ioDepth": depth}, "quantity": quantity}
            for side, depth in (("left", 16), ("of", 8))
        }
        return planned(run=run, hypotheses=[{"name": "deep", "atLeastPercent": 90} | sides])

    run = suite_document()["spec"]["run"]
    run = run | {"workloads": [one | {"fio": {"ioDepth": [8, 16]}} for one in run["workloads"]]}
    objectives = [{"percentile": "99", "latency": "5ms"}]
    search = {"line": {"start": 500, "limit": 20_000, "objectives": objectives}}
    searching = run | {"workloads": [one | search for one in run["workloads"]]}
    assert asked("line", searching) == []
    assert [problem.split(": ")[1].split(";")[0] for problem in asked("line", run)] == [
        "workload reads does not search for the line"
    ] * 2
    assert all("choose line" in problem for problem in asked("iops", searching))
    assert len(asked("iops", searching)) == 2
