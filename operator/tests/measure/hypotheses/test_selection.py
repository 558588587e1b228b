"""Which points a selector means, and what to change if none or several match."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
from pydantic import JsonValue

from plimsoll.measure.hypotheses.select import SelectionError, VariantRun, impossible, scopes, select
from support.results import RATIO, SCALING, hypothesis


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedPoint:
    name: str
    workload: str = "rbd"
    clients: int = 1
    calm: str | None = None
    parameters: Mapping[str, JsonValue] = field(default_factory=dict)


Run = VariantRun[PlannedPoint]
SIZES = ("4Ki", "64Ki", "4Mi")


def run(*points: PlannedPoint, variant: str = "", name: str = "r1") -> Run:
    return VariantRun(variant=variant, name=name, points=points)


def swept(**fields: Any) -> Run:
    """Return three block sizes with one and with eight clients."""
    cases = [(clients, size) for clients in (1, 8) for size in SIZES]
    points = (
        PlannedPoint(name=f"rbd-{n:03d}", clients=clients, parameters={"blockSize": size, "directIo": True})
        for n, (clients, size) in enumerate(cases)
    )
    return run(*points, **fields)


def chosen(run: Run, where: dict[str, Any], **changes: Any) -> list[str]:
    left = {"workload": "rbd", "quantity": "iops", "where": where} | changes.pop("left", {})
    given = hypothesis(**({"left": left, "of": {"workload": "other", "quantity": "iops"}} | changes))
    return [one.point.name for one in select(given, "left", given.left, [run])]


def refused(run: Run, where: dict[str, Any], **changes: Any) -> str:
    with pytest.raises(SelectionError) as caught:
        chosen(run, where, **changes)
    return str(caught.value)


@pytest.mark.parametrize("size", ["4Mi", "4096Ki", 4194304, "4194304"])
@pytest.mark.parametrize("written", ["4Mi", 4194304])
def test_sizes_are_equal_however_they_are_written(size: JsonValue, written: JsonValue) -> None:
    points = [PlannedPoint(name="a", parameters={"blockSize": written}), PlannedPoint(name="b", parameters={})]
    assert chosen(run(*points), {"blockSize": size}) == ["a"]


def test_one_and_true_are_different() -> None:
    points = [PlannedPoint(name="a", parameters={"x": True}), PlannedPoint(name="b", parameters={"x": 1})]
    assert chosen(run(*points), {"x": True}) == ["a"]
    assert chosen(run(*points), {"x": 1}) == ["b"]


def test_all_conditions_must_hold() -> None:
    assert chosen(swept(), {"blockSize": "64Ki", "clients": 8, "directIo": True}) == ["rbd-004"]


@pytest.mark.parametrize(
    ("where", "reason"),
    [
        ({"blockSize": "64Ki"}, "left: rbd-001 and rbd-004 match; add clients (1 or 8) to left.where"),
        (
            {},
            (
                "left: rbd-000, rbd-001, rbd-002, rbd-003, rbd-004 and rbd-005 match; add blockSize (4Ki, 64Ki or 4Mi) "
                "and clients (1 or 8) to left.where"
            ),
        ),
        (
            {"blockSize": "8Mi", "clients": 8},
            "left.where.blockSize: workload rbd of run r1 has no point with 8Mi; it has 4Ki, 64Ki and 4Mi",
        ),
        (
            {"blockSize": "4Mi", "clients": 4},
            "left.where.clients: workload rbd of run r1 has no point with 4; it has 1 and 8",
        ),
        ({"directIo": False}, "left.where.directIo: workload rbd of run r1 has no point with false; it has true"),
        (
            {"blokSize": "4Mi"},
            "left.where.blokSize: workload rbd of run r1 has no parameter blokSize; did you mean blockSize?",
        ),
        (
            {"concurrency": 4},
            (
                "left.where.concurrency: workload rbd of run r1 has no parameter concurrency; it has blockSize and "
                "directIo"
            ),
        ),
    ],
)
def test_not_exactly_one_point(where: dict[str, Any], reason: str) -> None:
    assert refused(swept(), where) == reason


def stormy() -> Run:
    points = (PlannedPoint(name=name, calm=calm) for name, calm in (("rbd-000", None), ("rbd-000-storm", "rbd-000")))
    return run(*points)


@pytest.mark.parametrize(("storm", "name"), [(False, "rbd-000"), (True, "rbd-000-storm")])
def test_a_condition_selects_the_calm_or_the_storm_line(name: str, *, storm: bool) -> None:
    assert chosen(stormy(), {"storm": storm}) == [name]


def test_a_workload_with_both_lines_needs_that_condition() -> None:
    expected = "left: rbd-000 and rbd-000-storm match; add storm (false or true) to left.where"
    assert refused(stormy(), {}) == expected
    remedy = "workload rbd of run r1 has no parameter storm; it has blockSize and directIo"
    assert refused(swept(), {"storm": True}) == f"left.where.storm: {remedy}"


def test_the_order_of_points_changes_no_reason() -> None:
    reversed_run = run(*reversed(swept().points))
    assert refused(reversed_run, {}) == refused(swept(), {})
    assert refused(reversed_run, {"blockSize": "8Mi"}) == refused(swept(), {"blockSize": "8Mi"})


def test_values_that_were_never_measured_together() -> None:
    points = [
        PlannedPoint(name="a", clients=1, parameters={"blockSize": "4Ki"}),
        PlannedPoint(name="b", clients=8, parameters={"blockSize": "4Mi"}),
    ]
    assert refused(run(*points), {"blockSize": "4Ki", "clients": 8}) == (
        "left.where: no point of workload rbd of run r1 has blockSize 4Ki and clients 8 together; it has blockSize 4Ki "
        "with clients 1 and blockSize 4Mi with clients 8"
    )


def test_the_closest_of_many_values_that_were_never_measured_together() -> None:
    cases = [*((clients, size) for clients in (1, 2) for size in SIZES), (8, "64Ki")]
    points = [
        PlannedPoint(name=f"rbd-{n}", clients=clients, parameters={"blockSize": size})
        for n, (clients, size) in enumerate(cases)
    ]
    assert refused(run(*points), {"clients": 8, "blockSize": "4Mi"}).endswith(
        "; it has clients 1 with blockSize 4Mi, clients 2 with blockSize 4Mi, clients 8 with blockSize 64Ki and 4 more"
    )


@pytest.mark.parametrize(("workload", "remedy"), [("rdb", "did you mean rbd?"), ("network", "it has rbd")])
def test_an_unknown_workload(workload: str, remedy: str) -> None:
    left = {"workload": workload, "quantity": "iops"}
    assert refused(swept(), {}, left=left) == f"left.workload: run r1 has no workload {workload}; {remedy}"


def test_a_run_without_results() -> None:
    assert refused(run(variant="a"), {}) == "left: run r1 has no results; measure it again"


def test_a_point_that_one_of_several_runs_lacks() -> None:
    given = hypothesis(SCALING, left={"workload": "rbd", "quantity": "iops", "where": {"blockSize": "4Ki"}})
    points = [PlannedPoint(name=f"rbd-{n}", clients=n, parameters={"blockSize": "4Ki"}) for n in (1, 2, 4)]
    with pytest.raises(SelectionError, match=r"over: run r2 \(variant a\) has no point with clients 4; measure it"):
        select(given, "left", given.left, [run(*points, variant="a"), run(*points[:2], variant="a", name="r2")])


def test_selected_runs_are_in_the_order_of_their_names() -> None:
    given = hypothesis(RATIO, left={"workload": "rbd", "quantity": "bytesPerSecond"})
    runs = [run(PlannedPoint(name="rbd-0"), name=name) for name in ("r3", "r1", "r2")]
    assert [one.run for one in select(given, "left", given.left, runs)] == ["r1", "r2", "r3"]


# Axes


def axis(*points: PlannedPoint, over: str = "clients", **changes: Any) -> list[int | None]:
    left = {"workload": "rbd", "quantity": "iops"}
    given = hypothesis(SCALING, **({"left": left, "over": over, "range": None} | changes))
    return [one.axis_value for one in select(given, "left", given.left, [run(*points)])]


def along(over: str, *values: JsonValue) -> list[PlannedPoint]:
    return [PlannedPoint(name=f"rbd-{n}", parameters={over: value}) for n, value in enumerate(values)]


def test_the_axis_is_ascending() -> None:
    assert axis(*along("blockSize", "4Mi", "4Ki", 65536), over="blockSize") == [4096, 65536, 4194304]


def test_the_axis_has_clients_or_a_parameter() -> None:
    assert axis(*(PlannedPoint(name=f"rbd-{n}", clients=n) for n in (1, 2, 8))) == [1, 2, 8]


@pytest.mark.parametrize(
    ("points", "changes", "reason"),
    [
        (
            along("ioDepth", 1, 2),
            {"over": "ioDepth"},
            "over: ioDepth has only the values 1 and 2; at least 3 are needed: measure more, or widen range",
        ),
        (
            along("ioDepth", 1, 2, 4, 8),
            {"over": "ioDepth", "range": {"first": 4}},
            "over: ioDepth has only the values 4 and 8; at least 3 are needed: measure more, or widen range",
        ),
        (
            along("ioDepth", 1, 2, 4),
            {"over": "ioDepth", "range": {"first": 16}},
            "range: it includes no value of ioDepth; there are 1, 2 and 4",
        ),
        (
            along("ioDepth", 1, 2, 4),
            {"over": "iodepth"},
            "over: workload rbd has no parameter iodepth; did you mean ioDepth?",
        ),
        (
            along("ioDepth", 1, 2, 4),
            {"over": "objectSize"},
            "over: workload rbd has no parameter objectSize; it has clients and ioDepth",
        ),
        (
            along("pattern", "read", "write"),
            {"over": "pattern"},
            "over: pattern is read at rbd-0; choose an axis whose values are numbers or sizes",
        ),
        (
            along("fsyncEvery", 0, 1, 2, 4),
            {"over": "fsyncEvery"},
            "over: fsyncEvery is 0 at rbd-0, which has no logarithm; exclude it with range",
        ),
    ],
)
def test_an_axis_that_has_no_exponent(points: list[PlannedPoint], changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(SelectionError) as caught:
        axis(*points, **changes)
    assert str(caught.value) == reason


def test_a_zero_may_be_excluded_by_the_range() -> None:
    assert axis(*along("fsyncEvery", 0, 1, 2, 4), over="fsyncEvery", range={"first": 1}) == [1, 2, 4]


def test_other_axes_must_be_fixed() -> None:
    with pytest.raises(
        SelectionError, match=r"^left: rbd-000 and rbd-003 match; add clients \(1 or 8\) to left.where$"
    ):
        axis(*swept().points, over="blockSize")


# Variants and plans


def test_an_unknown_variant() -> None:
    left = {"variant": "ec-42", "workload": "rbd", "quantity": "iops"}
    given = hypothesis(left=left, of={**left, "variant": "size-3"})
    runs = [swept(variant="ec-4-2"), swept(variant="size-3")]
    assert impossible(given, runs)[0] == "left.variant: there is no variant ec-42; did you mean ec-4-2?"
    given = hypothesis(left={**left, "variant": "other"}, of={**left, "variant": "size-3"})
    assert impossible(given, runs)[0] == "left.variant: there is no variant other; there are ec-4-2 and size-3"


def test_scopes_are_the_variants_unless_one_is_named() -> None:
    runs = [swept(variant="a"), swept(variant="b"), swept(variant="a", name="r2")]
    assert [(variant, len(some)) for variant, some in scopes(hypothesis(SCALING), runs)] == [("a", 2), ("b", 1)]
    assert [(variant, len(some)) for variant, some in scopes(hypothesis(SCALING), runs[:1])] == [(None, 1)]
    named = hypothesis(SCALING, left={"variant": "a", "workload": "rbd", "quantity": "iops"})
    assert [(variant, len(some)) for variant, some in scopes(named, runs)] == [(None, 3)]


def test_a_plan_shows_that_a_hypothesis_can_never_be_decided() -> None:
    left = {"workload": "rbd", "quantity": "iops", "where": {"clients": 8}}
    given = hypothesis(left=left, of={**left, "where": {"clients": 1}})
    one = run(PlannedPoint(name="rbd-0", clients=8), PlannedPoint(name="rbd-1", clients=1), variant="a")
    other = run(PlannedPoint(name="rbd-0", clients=2), variant="b")
    assert impossible(given, [one, other]) == ()
    assert impossible(given, [other]) == (
        "left.where.clients: workload rbd of run r1 (variant b) has no point with 8; it has 2",
        "of.where.clients: workload rbd of run r1 (variant b) has no point with 1; it has 2",
    )
    unnamed = run(*other.points, variant="b", name="")
    assert impossible(given, [unnamed])[0].startswith(
        "left.where.clients: workload rbd of variant b has no point with 8"
    )
    assert impossible(given, []) == ("left: there are no runs", "of: there are no runs")
