"""Hypotheses: both forms, and errors that name the field, the value and the remedy."""

from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from plimsoll.api.errors import problems_of
from plimsoll.api.hypothesis import AxisRange, Hypothesis
from plimsoll.api.names import Metric
from plimsoll.measure.histogram import PERCENTILES
from support.results import RATIO, SCALING, hypothesis


def problems(text: str, **changes: Any) -> list[str]:
    document = yaml.safe_load(text) | changes
    with pytest.raises(ValidationError) as caught:
        Hypothesis.model_validate({key: value for key, value in document.items() if value is not None})
    return [str(problem) for problem in problems_of(caught.value, model=Hypothesis)]


@pytest.mark.parametrize(("text", "bounds"), [(RATIO, (0.9, None)), (SCALING, (0.8, None))])
def test_both_forms_load_and_survive_json(text: str, bounds: tuple[float | None, float | None]) -> None:
    found = hypothesis(text)
    assert found.bounds == bounds
    assert Hypothesis.model_validate_json(found.model_dump_json(exclude_none=True)) == found
    assert Hypothesis.model_validate_json(found.model_dump_json()) == found


def test_bounds_on_both_sides() -> None:
    assert hypothesis(RATIO, atMostPercent=110).bounds == (0.9, 1.1)
    assert hypothesis(SCALING, exponentAtLeast="-0.25", exponentAtMost="1").bounds == (-0.25, 1)


def test_selectors_are_named_by_their_fields() -> None:
    assert [field for field, _ in hypothesis(RATIO).selectors] == ["left", "of"]
    assert [field for field, _ in hypothesis(SCALING).selectors] == ["left"]


def test_quantities_are_those_of_a_result() -> None:
    assert {metric.percentile for metric in Metric} - {None} == {str(percentile) for percentile in PERCENTILES}
    others = [metric.value for metric in Metric if not metric.percentile]
    assert others == ["bytesPerSecond", "iops", "meanLatency", "iopsDuring", "recovery", "line"]
    assert Metric("p99").unit == Metric("meanLatency").unit != Metric("iops").unit


def test_values_of_a_range_are_numbers_or_sizes() -> None:
    found = AxisRange.model_validate({"first": "4Ki", "last": 8192})
    assert (found.first, found.last) == (4096, 8192)
    assert [found.includes(value) for value in (4095, 4096, 8192, 8193)] == [False, True, True, False]
    assert AxisRange(first=2).includes(10**9)
    assert not AxisRange(last=2).includes(3)


NEITHER = (
    "document: must be either a ratio or scaling; have of with atLeastPercent or atMostPercent, or over with "
    "exponentAtLeast or exponentAtMost"
)
MIXED = (
    "document: cannot have exponentAtLeast, exponentAtMost or range with of, nor atLeastPercent or atMostPercent with "
    "over; remove them"
)


@pytest.mark.parametrize(
    ("text", "changes", "expected"),
    [
        (RATIO, {"of": None, "atLeastPercent": None}, NEITHER),
        (RATIO, {"atLeastPercent": None}, NEITHER),
        (SCALING, {"exponentAtLeast": None}, NEITHER),
        *((RATIO, foreign, MIXED) for foreign in ({"exponentAtMost": "1"}, {"range": {"first": 1}})),
        (SCALING, {"atMostPercent": 90}, MIXED),
        (RATIO, {"atMostPercent": 80}, "atMostPercent: 80 must be at least atLeastPercent"),
        (SCALING, {"exponentAtMost": "0.7"}, 'exponentAtMost: "0.7" must be at least exponentAtLeast, which is 0.8'),
        (
            RATIO,
            {"of": yaml.safe_load(RATIO)["left"]},
            "of: is the same as left, so the ratio is always 100 %; select another point",
        ),
        (
            RATIO,
            {"of": {"workload": "rados", "quantity": "p99"}},
            (
                'of.quantity: "p99" has no ratio with left.quantity, which is bytesPerSecond; choose quantities of '
                "the same unit"
            ),
        ),
        *(
            (
                RATIO,
                {side: {"variant": "a", "workload": "rados", "quantity": "bytesPerSecond"}},
                "document: must have a variant in both left and of, or in neither",
            )
            for side in ("left", "of")
        ),
        (
            SCALING,
            {"left": {"workload": "w", "quantity": "iops", "where": {"clients": 2}}},
            "left.where.clients: 2 fixes the axis that over names; remove it, or limit the axis with range",
        ),
        (SCALING, {"range": {"first": 5, "last": 5}}, "range.last: 5 must be more than first, which is 5"),
        (
            SCALING,
            {"range": {"first": "x"}},
            'range.first: "x" is not a quantity; write a Kubernetes quantity of whole bytes such as 4Ki, 20Gi or 4096',
        ),
        (SCALING, {"exponentAtLeast": 0.8}, "exponentAtLeast: 0.8 must be text; put it in quotes"),
        (SCALING, {"exponentAtLeast": "0,8"}, 'exponentAtLeast: "0,8" must be a decimal number such as "0.8"'),
        (SCALING, {"over": "IoDepth"}, 'over: "IoDepth" must be clients, or a parameter of the tool such as ioDepth'),
        (RATIO, {"atLeastPercent": 0}, "atLeastPercent: 0 must be at least 1"),
        (RATIO, {"atLeastPercent": 90.5}, "atLeastPercent: 90.5 must be a whole number"),
        (RATIO, {"atleastPercent": 90}, "atleastPercent: is not a known field; did you mean atLeastPercent?"),
    ],
)
def test_errors_name_field_and_remedy(text: str, changes: dict[str, Any], expected: str) -> None:
    assert problems(text, **changes) == [expected]


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ({"clients": 0}, "left.where.clients: 0 must be a number of clients, at least 1"),
        ({"clients": "8"}, 'left.where.clients: "8" must be a number of clients, at least 1'),
        ({"clients": True}, "left.where.clients: true must be a number of clients, at least 1"),
        (
            {"ioDepth": [1, 2]},
            "left.where.ioDepth: must be one value: a whole number, a quantity, text, true or false",
        ),
        ({"ioDepth": None}, "left.where.ioDepth: must be one value: a whole number, a quantity, text, true or false"),
        (
            {"ioDepth": 1.5},
            "left.where.ioDepth: 1.5 must be one value: a whole number, a quantity, text, true or false",
        ),
    ],
)
def test_conditions_are_single_values(where: dict[str, Any], expected: str) -> None:
    left = {"workload": "w", "quantity": "iops", "where": where}
    assert problems(SCALING, left=left, over="blockSize") == [expected]


def test_all_problems_are_reported_at_once() -> None:
    left = {"workload": "W", "quantity": "speed", "operation": "writes"}
    found = problems(RATIO, left=left, name="A b")
    fields = [problem.partition(":")[0] for problem in found]
    assert fields == ["name", "left.workload", "left.operation", "left.quantity"]
