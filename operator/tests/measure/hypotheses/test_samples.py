"""Values that decide nothing: without a logarithm, missing, or of a quantity that the tool does not have."""

import math

import pytest

from plimsoll.api.names import LatencyKind, Operation
from plimsoll.api.suite_status import HypothesisVerdict
from plimsoll.measure.hypotheses.decide import Decision
from plimsoll.measure.hypotheses.select import measured_run
from support.results import decided, hypothesis, operation_at, point, run_of_points, trial, trials_at

RADOS = [98, 99, 100, 101, 102]


def broken(rbd: list[float], quantity: str = "iops", **fields: object) -> Decision:
    left = {"workload": "rbd", "quantity": quantity}
    given = hypothesis(left=left, of={"workload": "rados", "quantity": quantity})
    return decided(given, run_of_points(point("rbd-0", trials_at(rbd, **fields)), point("rados-0", trials_at(RADOS))))


@pytest.mark.parametrize(
    ("rates", "reason"),
    [
        ([0, 100, 100], "iops is 0 in 1 of 3 trials of rbd-0 of run r1, so it has no logarithm; check these trials"),
        (
            [-1, 0, 100],
            "iops is 0 or less in 2 of 3 trials of rbd-0 of run r1, so it has no logarithm; check these trials",
        ),
        ([math.nan, 1, 1], "iops is not a finite number in 1 of 3 trials of rbd-0 of run r1; check these trials"),
        ([math.inf, 1, 1], "iops is not a finite number in 1 of 3 trials of rbd-0 of run r1; check these trials"),
    ],
)
def test_values_without_a_logarithm(rates: list[float], reason: str) -> None:
    assert broken(rates, block=0).reasons == (reason,)


@pytest.mark.parametrize(
    ("quantity", "fields", "instead"),
    [
        ("p99", {"latency": LatencyKind.MEAN_ONLY}, "choose iops, bytesPerSecond or meanLatency"),
        ("p99", {"latency": LatencyKind.MAX_ONLY}, "choose iops or bytesPerSecond"),
        ("meanLatency", {"latency": LatencyKind.NONE}, "choose iops or bytesPerSecond"),
        ("bytesPerSecond", {"block": 0}, "choose iops, meanLatency, p50, p99 or p99.9"),
    ],
)
def test_a_quantity_that_the_tool_does_not_have(quantity: str, fields: dict[str, object], instead: str) -> None:
    found = broken([float(rate) for rate in RADOS], quantity, **fields)
    assert found.reasons == (f"left.quantity: the tool of rbd-0 of run r1 does not report {quantity}; {instead}",)


def test_a_tool_that_counts_only_bytes() -> None:
    rates = operation_at(0).rates.model_copy(update={"bytes_per_second": 4096})
    bytes_only = [trial(number, operation_at(0).model_copy(update={"rates": rates})) for number in range(3)]
    given = hypothesis(left={"workload": "dd", "quantity": "iops"}, of={"workload": "rados", "quantity": "iops"})
    found = decided(given, run_of_points(point("dd-0", bytes_only), point("rados-0", RADOS)))
    assert found.reasons[0].startswith(
        "left.quantity: the tool of dd-0 of run r1 does not report iops; choose bytesPerSecond"
    )


def test_a_percentile_that_some_trials_lack() -> None:
    some = [trial(number, operation_at(100, p99=None if number else 10**6)) for number in range(3)]
    given = hypothesis(left={"workload": "rbd", "quantity": "p99"}, of={"workload": "rados", "quantity": "p99"})
    found = decided(given, run_of_points(point("rbd-0", some), point("rados-0", RADOS)))
    assert found.reasons == (
        (
            "p99 is missing in 2 of 3 trials of rbd-0 of run r1: its operation is absent, was too fast to be timed, "
            "ended without numbers, or has fewer than 10 results beyond the percentile; measure for longer"
        ),
    )


def test_several_operations_need_a_choice() -> None:
    mixed = [trial(n, operation_at(70, kind=Operation.READ), operation_at(30, kind=Operation.WRITE)) for n in range(3)]
    results = run_of_points(point("rbd-0", mixed), point("rados-0", RADOS))
    of = {"workload": "rados", "quantity": "iops"}
    left = {"workload": "rbd", "quantity": "iops"}
    assert decided(hypothesis(left=left, of=of), results).reasons == (
        "left: rbd-0 of run r1 has the operations read and write; add left.operation",
    )
    chosen = decided(hypothesis(left={**left, "operation": "read"}, of=of), results)
    assert chosen.estimate == pytest.approx(0.7, rel=0.01)
    assert decided(hypothesis(left={**left, "operation": "trim"}, of=of), results).reasons == (
        "left.operation: rbd-0 of run r1 has no trim; it has read and write",
    )


def test_an_operation_that_a_trial_lacks_decides_nothing() -> None:
    """It was too fast to be timed: the others would be the slow trials."""
    writes = [operation_at(rate) for rate in (100, 101, 99)]
    reads = operation_at(100, kind=Operation.READ)
    trials = [trial(number, reads, *([write] if number else [])) for number, write in enumerate(writes)]
    left = {"workload": "rbd", "operation": "write", "quantity": "iops"}
    found = decided(
        hypothesis(left=left, of={"workload": "rados", "quantity": "iops"}),
        run_of_points(point("rbd-0", trials), point("rados-0", RADOS)),
    )
    assert found.verdict is HypothesisVerdict.UNDECIDED
    assert found.reasons[0].startswith("iops is missing in 1 of 3 trials of rbd-0 of run r1: its operation is absent")


def test_a_run_that_is_given_twice_is_undecided() -> None:
    points = point("rbd-0", RADOS), point("rados-0", RADOS)
    given = hypothesis(left={"workload": "rbd", "quantity": "iops"}, of={"workload": "rados", "quantity": "iops"})
    found = decided(given, *(measured_run("", name, points) for name in ("r1", "r2")))
    assert found.verdict is HypothesisVerdict.UNDECIDED
    assert found.reasons == ("run default/r1 is given more than once; name each run once",)
