from typing import Any

import pytest

from plimsoll.api.result import BenchmarkResult
from plimsoll.measure.compare.values import Matching, RepeatsError, match_points
from support.results import SEARCH, result


def point(name: str, depth: int = 1, **spec: Any) -> BenchmarkResult:
    found = result([], point=name, parameters={"ioDepth": depth})
    return found.model_copy(update={"spec": found.spec.model_copy(update=spec)})


def names(matching: Matching) -> tuple[list[tuple[str, str]], list[str], list[str]]:
    return (
        [(pair.baseline.spec.point, pair.candidate.spec.point) for pair in matching.pairs],
        [one.spec.point for one in matching.baseline_only],
        [one.spec.point for one in matching.candidate_only],
    )


def test_points_are_matched_by_what_they_ask_for_and_not_by_number() -> None:
    baseline = [point("w-000", 1), point("w-001", 16)]
    candidate = [point("w-000", 1), point("w-001", 4), point("w-002", 16)]
    assert names(match_points(baseline, candidate)) == ([("w-000", "w-000"), ("w-001", "w-002")], [], ["w-001"])


@pytest.mark.parametrize("change", [{"clients": 3}, {"tool": "other"}, {"workload": "v"}, {"parameters": {}}])
def test_whatever_differs_is_another_point(change: dict[str, Any]) -> None:
    assert names(match_points([point("w-000")], [point("w-000", 1, **change)])) == ([], ["w-000"], ["w-000"])


def test_an_absent_parameter_is_the_same_as_a_null() -> None:
    baseline, candidate = point("w-000"), point("w-000", parameters={"ioDepth": 1, "readPercent": None})
    assert names(match_points([baseline], [candidate]))[0] == [("w-000", "w-000")]


def test_what_is_left_over_is_matched_by_name_on_request() -> None:
    baseline = [point("w-000", 1), point("w-001", 16), point("v-000", 1)]
    candidate = [point("w-001", 32), point("w-000", 1), point("u-000", 1)]
    assert names(match_points(baseline, candidate, also_by_name=True)) == (
        [("w-000", "w-000"), ("w-001", "w-001")],
        ["v-000"],
        ["u-000"],
    )


CALM, STORM = ("w-000", "w-000-storm")


@pytest.mark.parametrize("by_name", [False, True])
@pytest.mark.parametrize(
    ("baseline", "candidate", "pairs"),
    [
        ((CALM, STORM), (STORM, CALM), [(CALM, CALM), (STORM, STORM)]),
        ((STORM,), (CALM, STORM), [(STORM, STORM)]),
        ((CALM, STORM), (CALM,), [(CALM, CALM)]),
        ((STORM,), (CALM,), []),
        ((CALM, STORM), ("w-001-storm", "w-001"), [(CALM, "w-001"), (STORM, "w-001-storm")]),
    ],
)
def test_calm_lines_and_storm_lines_are_matched_apart(
    baseline: tuple[str, ...], candidate: tuple[str, ...], pairs: list[tuple[str, str]], *, by_name: bool
) -> None:
    ours, theirs = ([point(name, line=SEARCH) for name in side] for side in (baseline, candidate))
    assert names(match_points(ours, theirs, also_by_name=by_name))[0] == pairs


def test_nothing_matches_nothing() -> None:
    assert names(match_points([], [])) == ([], [], [])


def test_equal_points_of_a_run_are_matched_in_their_order() -> None:
    baseline, candidate = [point("w-000"), point("w-001")], [point("w-002"), point("w-003"), point("w-004")]
    assert names(match_points(baseline, candidate)) == ([("w-000", "w-002"), ("w-001", "w-003")], [], ["w-004"])


def test_a_result_that_a_side_has_twice_is_refused() -> None:
    message = "run default/baseline is given more than once; name each run once"
    with pytest.raises(RepeatsError, match=message):
        match_points([point("w-000")] * 2, [])
    with pytest.raises(RepeatsError, match=message):
        match_points([], [point("w-000")] * 2)
