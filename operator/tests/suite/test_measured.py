"""A measured round, from the results of its runs."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from plimsoll.api.environment import Environment
from plimsoll.api.names import Metric, Verdict
from plimsoll.api.result import BenchmarkResult, Fingerprint, Trial
from plimsoll.suite.measured import MeasuredRound, measured_round, sharing
from support.results import aborted, measured, result, steady, trial, trials_of
from support.simulated_comparisons import quantity_of

Runs = list[list[BenchmarkResult]]


def runs(*means: float, **fields: Any) -> Runs:
    return [[result(trials_of(steady(mean)), run=f"r-{number}", **fields)] for number, mean in enumerate(means)]


def of(found: Runs, repeat: int = 3) -> MeasuredRound:
    return measured_round(minute=7, digest="d", repeat=repeat, runs={"v0": found})


def test_a_run_has_one_value_of_each_gating_metric() -> None:
    found = of(runs(1000, 1100, 900))
    assert {one.metric for one in found.values} == {Metric.IOPS, Metric.P99}
    means = [math.log(sum(map(round, steady(mean))) / 5) for mean in (1000, 1100, 900)]
    assert [*found.values[quantity_of()].values()] == means
    assert (found.is_complete, [*found.gaps["v0"]], [*found.doubts["v0"]]) == (True, [], [])


def test_missing_runs_leave_a_gap() -> None:
    found = of(runs(1000, 1100))
    assert not found.is_complete
    assert found.gaps["v0"] == ["1 of 3 runs are not measured completely"]
    assert len(found.values[quantity_of()]) == 2


def test_a_point_that_is_invalid_in_one_run_has_no_values() -> None:
    found = runs(1000, 1100, 900)
    status = found[1][0].status.model_copy(update={"verdict": Verdict.INVALID})
    found[1] = [found[1][0].model_copy(update={"status": status})]
    assert of(found).values == {}
    assert of(found).gaps["v0"] == ["Invalid, not finished or missing in a run: w-000"]


def test_a_point_that_a_run_lacks_has_no_values() -> None:
    found = runs(1000, 1100, 900)
    for number, run in enumerate(found[:2]):
        run.append(result(trials_of(steady(1000)), run=f"r-{number}", point="x-000", parameters={"ioDepth": 2}))
    assert {one.point for one in of(found).values} == {"w-000"}
    assert of(found).gaps["v0"] == ["Invalid, not finished or missing in a run: x-000"]


def test_a_metric_without_a_value_in_one_run_is_a_gap() -> None:
    found = runs(1000, 1100, 900)
    found[2] = [result([trial(number, measured(900, p99=None)) for number in range(5)], run="r-2")]
    assert {one.metric for one in of(found).values} == {Metric.IOPS}
    assert of(found).gaps["v0"] == ["a gating metric has no value, or is 0, in a run: w-000"]


def test_a_selection_of_trials_and_runs_of_different_things_are_doubts() -> None:
    kept = [aborted(0), aborted(1), *(trial(number, measured(1000), attempt=number < 2) for number in range(5))]
    found = runs(1000, 1100, 900)
    assert (
        of([*found[:2], [result(kept, run="r-2")]]).doubts["v0"][0].startswith("2 of 7 attempts of r-2 were replaced")
    )
    status = found[1][0].status
    assert status.fingerprint is not None
    other = status.fingerprint.model_copy(update={"identity_sha256": "other"})
    found[1] = [found[1][0].model_copy(update={"status": status.model_copy(update={"fingerprint": other})})]
    assert "are not repetitions of the same" in of(found).doubts["v0"][0]


def test_the_nodes_are_those_of_all_runs() -> None:
    found = runs(1000, 1100, 900)
    for number, run in enumerate(found):
        environment = run[0].status.environment.model_copy(update={"nodes": (f"node-{number % 2}",)})
        status = run[0].status.model_copy(update={"environment": environment})
        run[0] = run[0].model_copy(update={"status": status})
    (condition,) = of(found).conditions
    assert condition.nodes == {"node-0", "node-1"}


def with_status(found: BenchmarkResult, **update: Any) -> BenchmarkResult:
    return found.model_copy(update={"status": found.status.model_copy(update=update)})


def two_points(invalid: list[Trial] | None = None, caches: Mapping[int, str] | None = None) -> Runs:
    """Return three runs of two points; the first run has these trials of the second point."""
    found = runs(1000, 1100, 900)
    for number, run in enumerate(found):
        trials = invalid if invalid is not None and number == 0 else trials_of(steady(1000))
        identity = {"osdCaches": caches[number]} if caches else {}
        run.append(
            result(trials, run=f"r-{number}", point="x-000", parameters={"ioDepth": 2}, identity=identity, final=True)
        )
    return found


def test_trials_of_an_invalid_point_do_not_put_the_others_in_doubt() -> None:
    found = of(two_points([aborted(number, attempt=attempt) for number in range(5) for attempt in (0, 1)]))
    assert found.gaps["v0"] == ["Invalid, not finished or missing in a run: x-000"]
    assert found.doubts["v0"] == []
    assert {one.point for one in found.values} == {"w-000"}


@pytest.mark.parametrize("fingerprint", [None, "other"], ids=["none", "other"])
def test_the_identity_of_an_invalid_point_is_not_compared(fingerprint: str | None) -> None:
    found = two_points([aborted(number) for number in range(5)])
    known = found[0][1].status.fingerprint
    assert known is not None
    other = known.model_copy(update={"identity_sha256": fingerprint}) if fingerprint else None
    found[0][1] = with_status(found[0][1], fingerprint=other)
    round_ = of(found)
    assert round_.doubts["v0"] == []
    assert [one.point for one in round_.conditions] == ["w-000"]


def test_a_point_that_only_the_first_run_lacks_is_a_gap() -> None:
    found = two_points()
    del found[0][1]
    assert of(found).gaps["v0"] == ["Invalid, not finished or missing in a run: x-000"]


@pytest.mark.parametrize(
    "caches", [("Dropped", "Kept", "Dropped"), ("DroppedInPart",) * 3], ids=["between runs", "within runs"]
)
def test_caches_that_were_dropped_before_some_trials_only_are_a_gap_of_that_point(caches: Sequence[str]) -> None:
    found = two_points(caches=dict(enumerate(caches)))
    for run, state in zip(found, caches, strict=True):
        known = run[1].status.fingerprint
        assert known is not None
        run[1] = with_status(run[1], fingerprint=known.model_copy(update={"identity_sha256": state}))
    round_ = of(found)
    assert round_.gaps["v0"] == ["the OSDs dropped their caches before some trials, but not before others: x-000"]
    assert round_.doubts["v0"] == []
    assert {one.point for one in round_.values} == {one.point for one in round_.conditions} == {"w-000"}


@pytest.mark.parametrize("state", ["Dropped", "Kept"])
def test_caches_in_the_same_state_before_all_trials_are_no_gap(state: str) -> None:
    assert of(two_points(caches=dict.fromkeys(range(3), state))).gaps["v0"] == []


def test_a_run_without_a_fingerprint_leaves_the_conditions_unknown() -> None:
    found = runs(1000, 1100, 900)
    found[1] = [with_status(found[1][0], fingerprint=None)]
    assert [one.fingerprint for one in of(found).conditions] == [None]


def test_what_differs_between_the_runs_of_a_round_is_known_as_varying() -> None:
    found = runs(1000, 1100, 900)
    for number, run in enumerate(found):
        run[0] = result(trials_of(steady(1000)), run=f"r-{number}", context={"volumeSource": f"v{number}"})
    (condition,) = of(found).conditions
    assert condition.varying == {"volumeSource"}


def of_versions(*versions: Any) -> MeasuredRound:
    """Return a round of two variants whose runs found these versions of Ceph."""
    found = runs(1000, 1100, 900)
    for run, known in zip(found, versions, strict=True):
        run[0] = with_status(run[0], environment=Environment.model_validate({"ceph": {"versions": known}}))
    return measured_round(minute=7, digest="d", repeat=3, runs={"v0": found, "v1": runs(1000, 1000, 1000)})


@pytest.mark.parametrize(
    "versions",
    [
        ("19.2.0 squid", "19.2.0 squid", "20.1.0 tentacle"),
        ("19.2.0 squid", "19.2.0 squid", {"mon": {"20.1.0 tentacle": 3}, "osd": {"19.2.0 squid": 3}}),
        (None, None, {"osd": {"19.2.0 squid": 2, "20.1.0 tentacle": 1}}),
    ],
)
def test_an_upgrade_of_ceph_during_a_round_puts_all_variants_in_doubt(versions: Sequence[Any]) -> None:
    reason = (
        "Ceph had several versions during the round (19.2.0 squid, 20.1.0 tentacle); measure again after the upgrade"
    )
    assert of_versions(*versions).doubts == {"v0": [reason], "v1": [reason]}


def test_the_same_version_of_ceph_in_all_runs_is_no_doubt() -> None:
    assert of_versions("19.2.0 squid", None, {"osd": {"19.2.0 squid": 3}}).doubts == {"v0": [], "v1": []}


@pytest.mark.parametrize(("nodes", "doubted"), [(("a", "a", "a"), True), (("a", "b", "b"), False)])
def test_a_new_kernel_during_a_round_is_a_doubt_unless_runs_had_other_nodes(
    nodes: Sequence[str], *, doubted: bool
) -> None:
    found = runs(1000, 1100, 900)
    for run, node, kernel in zip(found, nodes, ("6.1", "6.2", "6.2"), strict=True):
        run[0] = with_status(run[0], environment=Environment(nodes=(node,), kernel=kernel))
    reason = "the kernel of a client changed during the round (6.1, 6.2); measure again"
    assert of(found).doubts["v0"] == ([reason] if doubted else [])


def test_rounds_share_equal_parts_of_fingerprints_and_nothing_by_a_digest_alone() -> None:
    def changed(fingerprint: Fingerprint, **parts: Any) -> MeasuredRound:
        (condition,) = first.conditions
        copied = Fingerprint.model_validate(fingerprint.model_dump() | parts)
        return replace(first, conditions=(replace(condition, fingerprint=copied),))

    first = of(runs(1000, 1000, 1000))
    (made,) = (condition.fingerprint for condition in first.conditions)
    assert made is not None
    for later, shares in ((changed(made), True), (changed(made, identity={"forged": True}), False)):
        (kept,) = (condition.fingerprint for condition in sharing(later, [first]).conditions)
        assert kept == later.conditions[0].fingerprint
        assert kept is not None
        assert (kept.identity is made.identity, kept.context is made.context) == (shares, True)
