"""The development of each quantity over the rounds of a suite."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from plimsoll.api.names import Metric
from plimsoll.api.result import Fingerprint
from plimsoll.api.suite_status import EndedRound, RoundVerdict
from plimsoll.suite.judging import TrendRow, trends_of
from plimsoll.suite.measured import Condition, MeasuredRound
from support.simulated_comparisons import Rounds, drawn, ended_round, quantity_of

QUANTITY = quantity_of()
Round = tuple[EndedRound, MeasuredRound]


def measured(minute: int, *runs: float, ceph: str = "19.2.0", kernel: str = "6.1", node: str = "a") -> Round:
    """Return an accepted round of these values per run, measured under these conditions."""
    context: dict[str, JsonValue] = {"ceph": {"versions": ceph}, "kernel": kernel, "seed": minute}
    fingerprint = Fingerprint(identity={}, context=context, identity_sha256="", context_sha256="")
    condition = Condition(variant="v0", point="w-000", fingerprint=fingerprint, nodes=frozenset({node}))
    series = {repeat: math.log(value) for repeat, value in enumerate(runs)}
    found = MeasuredRound(minute=minute, digest="d", values={QUANTITY: series}, conditions=[condition])
    return ended_round(minute, accepted=True), found


def rows_of(*rounds: Round) -> list[TrendRow]:
    (trend,) = trends_of(rounds)
    assert trend.quantity == QUANTITY
    return [*trend.rows]


def test_a_row_has_the_geometric_mean_of_its_runs_and_the_state_of_the_round() -> None:
    pinned, regressed = ended_round(1, accepted=True, pinned=True), ended_round(2, RoundVerdict.REGRESSED)
    first, second = rows_of((pinned, measured(1, 80.0, 125.0)[1]), (regressed, measured(2, 80.0, 80.0)[1]))
    assert [first.estimate, second.estimate] == pytest.approx([100, 80])
    assert [first.round, second.round] == [pinned, regressed]


def test_changed_conditions_are_marked_at_the_first_round_that_has_them() -> None:
    rows = rows_of(
        measured(1, 100.0),
        measured(2, 100.0, kernel="6.2"),
        measured(3, 100.0, kernel="6.2", ceph="20.1.0"),
        measured(4, 100.0, kernel="6.2", ceph="20.1.0", node="b"),
        measured(5, 100.0, kernel="6.2", ceph="20.1.0", node="b"),
    )
    marks = [[(one.key, one.baseline, one.candidate) for one in row.changes] for row in rows]
    assert marks == [
        [],
        [("kernel", "6.1", "6.2")],
        [("ceph.versions", "19.2.0", "20.1.0")],
        [("nodes", ["a"], ["b"])],
        [],
    ]


def test_a_change_while_a_point_was_missing_is_marked_where_the_point_is_back() -> None:
    missing = ended_round(2), MeasuredRound(minute=2, digest="d", values={})
    rows = rows_of(measured(1, 100.0), missing, measured(3, 100.0, kernel="6.2"))
    assert [row.round.minute for row in rows] == [1, 3]
    assert [one.key for one in rows[1].changes] == ["kernel"]


def test_without_repeats_there_is_no_interval() -> None:
    assert [row.interval for row in rows_of(measured(1, 100.0), measured(2, 101.0))] == [None, None]


def test_every_variant_point_and_metric_has_a_trend() -> None:
    suite = Rounds(points=2, variants=2)
    chance = drawn(1)
    trends = trends_of([(ended_round(minute), suite.round(chance, minute)) for minute in range(3)])
    assert {trend.quantity for trend in trends} == {
        quantity_of(variant, point, metric)
        for variant in ("v0", "v1")
        for point in (0, 1)
        for metric in (Metric.IOPS, Metric.P99)
    }
    assert all([row.round.minute for row in trend.rows] == [0, 1, 2] for trend in trends)


@given(st.integers(min_value=0, max_value=10**6))
def test_the_interval_contains_the_estimate_and_is_as_wide_in_every_complete_round(seed: int) -> None:
    chance = drawn(seed)
    suite = Rounds(points=1)
    for trend in trends_of([(ended_round(minute), suite.round(chance, minute)) for minute in range(4)]):
        widths = []
        for row in trend.rows:
            assert row.interval is not None
            low, high = row.interval
            assert low < row.estimate < high
            widths.append(high / low)
        assert widths == pytest.approx([widths[0]] * 4)


def test_the_interval_covers_the_truth_about_as_often_as_it_says() -> None:
    chance = drawn(1)
    suite = Rounds(points=1)
    rows = [
        row
        for _ in range(200)
        for trend in trends_of([(ended_round(minute), suite.round(chance, minute)) for minute in range(5)])
        for row in trend.rows
    ]
    covered = sum(row.interval is not None and row.interval[0] <= 1 <= row.interval[1] for row in rows) / len(rows)
    assert 0.93 < covered < 0.97
