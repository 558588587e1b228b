"""What is recorded, what is missing, and how large it may grow."""

import math
import random

import pytest

from plimsoll.api.names import AbortReason, LatencyKind, Operation, Outcome, Verdict
from plimsoll.api.result import Abort, ClientSummary, Finding, Latency, OperationResult, Rates, Trial
from plimsoll.api.state import TrialKey
from plimsoll.conductor.ledger import Ledger, is_settled
from plimsoll.measure.histogram import Histogram
from support.simulation import make_plan

LIMIT_OF_A_RESULT = 256 * 2**10


def make_trial(pass_number: int = 0, attempt: int = 0, **fields: object) -> Trial:
    return Trial.model_validate(
        {
            "passNumber": pass_number,
            "attempt": attempt,
            "epoch": "e",
            "clients": (0,),
            "outcome": Outcome.MEASURED,
            "startedAt": "",
            "finishedAt": "",
            "verdict": Verdict.VALID,
            **fields,
        }
    )


def aborted(attempt: int, reason: AbortReason = AbortReason.CLIENT_LOST) -> Trial:
    abort = Abort(reason=reason, message="gone")
    return make_trial(attempt=attempt, outcome=Outcome.ABORTED, verdict=Verdict.INVALID, abort=abort)


def test_the_first_missing_trial_is_next_and_a_retry_comes_at_once() -> None:
    plan = make_plan(points=2, repetitions=2)
    ledger = Ledger(plan)
    first, second = (plan.points[index].name for index in plan.order[0])
    assert ledger.next_trial() == TrialKey(point=first, pass_number=0, attempt=0)
    ledger.add(first, aborted(0))
    assert ledger.next_trial() == TrialKey(point=first, pass_number=0, attempt=1)
    ledger.add(first, make_trial(attempt=1))
    assert ledger.next_trial() == TrialKey(point=second, pass_number=0, attempt=0)
    assert (ledger.done, ledger.total) == (1, 4)


def test_a_suspect_trial_is_not_repeated() -> None:
    assert is_settled([make_trial(verdict=Verdict.SUSPECT)])


def test_an_attempt_cannot_be_recorded_twice() -> None:
    ledger = Ledger(make_plan())
    ledger.add("w-000", make_trial())
    with pytest.raises(ValueError, match="recorded already"):
        ledger.add("w-000", make_trial())


def test_three_aborted_attempts_settle_a_trial_but_interruptions_do_not_count() -> None:
    lost = [aborted(number) for number in range(3)]
    interrupted = [aborted(number, AbortReason.INTERRUPTED) for number in range(9)]
    assert is_settled(lost)
    assert not is_settled(lost[:2])
    assert not is_settled([*interrupted, *lost[:2]])


def test_a_point_has_no_verdict_before_its_last_trial() -> None:
    ledger = Ledger(make_plan(points=1, repetitions=2))
    ledger.add("w-000", make_trial())
    assert ledger.status("w-000", {}).verdict is None
    ledger.add("w-000", make_trial(pass_number=1))
    status = ledger.status("w-000", {})
    assert status.final
    assert status.verdict is Verdict.VALID


def full_operation(operation: Operation, seed: int) -> OperationResult:
    """Return a larger result than real runs give: noisy counts in hundreds of bins, from microseconds to seconds."""
    chance = random.Random(seed)  # noqa: S311 - numbers, not secrets
    counts = {
        index: 1 + int(1e6 * math.exp(-(((index - 800) / 200) ** 2)) * chance.uniform(0.9, 1.1))
        for index in range(400, 1200)
    }
    return OperationResult(
        operation=operation,
        ios=10**12,
        bytes=10**15,
        rates=Rates(iops=10**7, bytes_per_second=10**11),
        whole_run=Rates(iops=10**7, bytes_per_second=10**11),
        sum_of_rates=Rates(iops=10**7, bytes_per_second=10**11),
        bias=-0.12345678901234567,
        latency=Latency(
            kind=LatencyKind.FULL,
            count=10**12,
            mean_nanoseconds=123456789.12345678,
            standard_deviation_nanoseconds=123456789.12345678,
            min_nanoseconds=10**6,
            max_nanoseconds=10**10,
            percentiles=dict.fromkeys(("50", "90", "95", "99", "99.9", "99.99"), 10**9),
            histogram=Histogram(counts=counts).encode(),
        ),
    )


def test_the_largest_result_stays_below_its_limit() -> None:
    """10 repetitions of a mixed workload with syncs on 1000 clients, each repeated twice before it counted."""
    plan = make_plan(points=1, repetitions=10)
    ledger = Ledger(plan)
    operations = tuple(full_operation(operation, 1) for operation in (Operation.READ, Operation.WRITE, Operation.SYNC))
    slowest = tuple(
        ClientSummary(
            client=n, node="node-" + "x" * 40, start_offset_seconds=0.123, runtime_seconds=300.001, iops=10**6
        )
        for n in range(8)
    )
    findings = tuple(
        Finding(reason=f"Reason{n}", verdict=Verdict.SUSPECT, message="x" * 300, clients=tuple(range(32)))
        for n in range(3)
    )
    rest = {"operations": operations, "slowest": slowest, "findings": findings, "clients": tuple(range(1000))}
    for number in range(plan.repetitions):
        for attempt in range(2):
            ledger.add("w-000", make_trial(number, attempt, verdict=Verdict.INVALID, **rest))
        ledger.add("w-000", make_trial(number, 2, verdict=Verdict.SUSPECT, **rest))
    text = ledger.status("w-000", {}).model_dump_json()
    assert len(text) < LIMIT_OF_A_RESULT, len(text)
