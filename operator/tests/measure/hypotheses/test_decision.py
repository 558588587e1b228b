"""Verdicts, sentences, and what a decision rests on."""

import math

import pytest

from plimsoll.api.names import AbortReason, Cause, Verdict
from plimsoll.api.result import Finding, Trial
from plimsoll.api.suite_status import HypothesisVerdict
from plimsoll.measure.hypotheses.decide import Decision, Form, Unit, decide
from plimsoll.measure.hypotheses.select import MeasuredRun
from support.results import (
    SCALING,
    aborted,
    decided,
    hypothesis,
    operation_at,
    pair,
    point,
    run_of_points,
    sweep,
    trial,
    trials_at,
)

RADOS = [98, 99, 100, 101, 102]
RADOS_IOPS = {"workload": "rados", "quantity": "iops"}
NO_NOISE = "noise between runs is not counted; it is if each variant has at least 3 runs"
FEW_RUNS = (
    "runs are assumed to be independent, which fewer than 5 cannot show: day and night, bursts or two states of the "
    "storage may look like the effect"
)
SUSPECT = Finding(reason="NodeCpuSaturated", verdict=Verdict.SUSPECT, message="m")
INVALID = Finding(reason="PasteFailed", verdict=Verdict.INVALID, message="m")


def scaled(factor: float) -> list[float]:
    return [factor * rate for rate in RADOS]


# Ratios


@pytest.mark.parametrize(
    ("factor", "verdict"),
    [(0.97, HypothesisVerdict.HELD), (0.83, HypothesisVerdict.REFUTED), (0.9, HypothesisVerdict.UNDECIDED)],
)
def test_a_ratio_is_decided_by_its_whole_interval(factor: float, verdict: HypothesisVerdict) -> None:
    found = decided(hypothesis(), pair(scaled(factor), RADOS))
    assert found.verdict is verdict
    assert found.estimate == pytest.approx(factor)
    assert found.low is not None
    assert found.high is not None
    assert found.low < factor < found.high
    assert math.sqrt(found.low * found.high) == pytest.approx(factor)
    assert (found.form, found.at_least, found.at_most) == (Form.RATIO, 0.9, None)


def test_the_sentence_of_a_refuted_ratio() -> None:
    found = decided(hypothesis(), pair(scaled(0.8), RADOS))
    assert found.sentence == (
        "rbd (blockSize 4Mi, clients 8) reaches 80 % (78 to 82) of the throughput of rados (objectSize 4Mi, clients 8)"
        "; at least 90 % was expected: Refuted."
    )
    assert found.reasons == ()


def test_the_sentence_of_an_undecided_ratio_tells_why() -> None:
    found = decided(hypothesis(), pair(scaled(0.9), RADOS))
    reason = "the interval includes 90 %; more repetitions narrow it"
    assert found.sentence.endswith(f"at least 90 % was expected: Undecided, because {reason}.")
    assert found.reasons == (reason,)


def test_the_sentence_of_latencies() -> None:
    faster = {"workload": "rbd", "quantity": "p99", "operation": "write"}
    given = hypothesis(left=faster, of={**faster, "where": {"clients": 1}}, atLeastPercent=None, atMostPercent=150)
    latencies = [
        point(f"rbd-{number}", trials_at(RADOS, p99=p99), clients=clients)
        for number, (clients, p99) in enumerate([(1, 10**6), (8, 2 * 10**6)])
    ]
    # Both points match without `where`.
    assert decided(given, run_of_points(*latencies)).reasons == (
        "left: rbd-0 and rbd-1 match; add clients (1 or 8) to left.where",
    )
    given = given.model_copy(update={"left": given.left.model_copy(update={"where": {"clients": 8}})})
    assert decided(given, run_of_points(*latencies)).sentence == (
        "The p99 latency of rbd write (clients 8) is 200 % (200 to 200) of the p99 latency of rbd write (clients 1); "
        "at most 150 % was expected: Refuted."
    )


def test_the_sentence_of_two_percentiles_of_one_point() -> None:
    left = {"workload": "rbd", "quantity": "p99"}
    given = hypothesis(left=left, of={**left, "quantity": "p50"}, atLeastPercent=None, atMostPercent=1000)
    found = decided(given, run_of_points(point("rbd-0", RADOS)))
    assert found.sentence == (
        "The p99 latency of rbd is 500 % (500 to 500) of the p50 latency of rbd; at most 1,000 % was expected: Held."
    )


def test_bounds_on_both_sides() -> None:
    given = hypothesis(atMostPercent=110)
    assert decided(given, pair(RADOS, RADOS)).verdict is HypothesisVerdict.HELD
    assert decided(given, pair(scaled(1.2), RADOS)).verdict is HypothesisVerdict.REFUTED
    assert decided(given, pair(scaled(1.1), RADOS)).verdict is HypothesisVerdict.UNDECIDED
    wild = decided(given, pair([50, 100, 150], [60, 100, 130]))
    assert wild.reasons == ("the interval includes 90 % and 110 %; more repetitions narrow it",)
    assert "; 90 % to 110 % was expected: Undecided" in wild.sentence


def test_what_equals_a_limit_satisfies_it() -> None:
    for block in (1000, 4096, 123457):
        found = decided(hypothesis(), pair([0.9 * 1000 * block] * 3, [1000 * block] * 3))
        assert found.verdict is HypothesisVerdict.HELD
        assert "90 % (90 to 90)" in found.sentence


def test_rounding_never_contradicts_the_verdict() -> None:
    found = decided(hypothesis(), pair([89.996] * 3, [100.0] * 3))
    assert found.verdict is HypothesisVerdict.REFUTED
    assert "reaches 89.996 % (89.996 to 89.996)" in found.sentence


@pytest.mark.parametrize(("ratio", "text"), [(0.00123, "0.12 %"), (31.4, "3,140 %"), (123456, "1.23e+07 %")])
def test_small_and_large_ratios_are_readable(ratio: float, text: str) -> None:
    found = decided(hypothesis(), pair([1e6 * ratio] * 3, [1e6] * 3))
    assert f"reaches {text} (" in found.sentence


def test_even_absurd_values_have_finite_numbers() -> None:
    for rates in ([1e-150, 1, 1e150], [1e-150] * 3, [1e150] * 3):
        for count in (1, 3):
            runs = (pair(trials_at(rates, block=0), trials_at([1, 1, 1], block=0), name=f"r{n}") for n in range(count))
            found = decided(hypothesis(left={"workload": "rbd", "quantity": "iops"}, of=RADOS_IOPS), *runs)
            assert found.low is not None
            assert found.high is not None
            assert 0 < found.low <= found.high < math.inf


# Scaling


def test_the_exponent_of_a_power_law_is_exact() -> None:
    found = decided(hypothesis(SCALING), sweep({clients: [1e6 * clients**0.5] * 3 for clients in (1, 2, 3, 4, 5)}))
    assert found.estimate == pytest.approx(0.5, abs=1e-6)
    assert found.low == pytest.approx(0.5, abs=1e-5)
    assert found.verdict is HypothesisVerdict.REFUTED
    assert (found.form, found.unit, found.replicates) == (Form.EXPONENT, Unit.TRIAL, (15,))
    assert found.sentence == (
        "The throughput of rados scales with clients to the power of 0.50 (0.50 to 0.50), from 1 to 5; at least 0.8 "
        "was expected: Refuted."
    )


def test_the_range_limits_the_axis() -> None:
    rates = {clients: scaled(min(clients, 4)) for clients in (1, 2, 4, 8, 16)}
    limited = decided(hypothesis(SCALING, range={"last": 4}), sweep(rates))
    assert limited.verdict is HypothesisVerdict.HELD
    assert limited.estimate == pytest.approx(1, abs=0.01)
    assert [one.axis_value for one in limited.basis] == [1, 2, 4]
    everything = decided(hypothesis(SCALING, range=None), sweep(rates))
    assert everything.verdict is HypothesisVerdict.REFUTED
    assert ", from 1 to 16; " in everything.sentence


def test_an_axis_of_sizes() -> None:
    left = {"workload": "w", "quantity": "iops"}
    given = hypothesis(SCALING, left=left, over="blockSize", range={"first": "4Ki"}, exponentAtLeast="-1.1")
    points = [point(f"w-{n}", scaled(1024 / (4**n)), blockSize=size) for n, size in enumerate(["4Ki", "16Ki", "64Ki"])]
    found = decided(given, run_of_points(*points))
    assert found.estimate == pytest.approx(-1)
    assert found.sentence == (
        "The IOPS of w scales with blockSize to the power of -1.000 (-1.007 to -0.993), from 4Ki to 64Ki; at least "
        "-1.1 was expected: Held."
    )


def test_an_undecided_exponent() -> None:
    rates = {clients: scaled(clients**0.8) for clients in (1, 2, 4)}
    found = decided(hypothesis(SCALING, exponentAtMost="1.2"), sweep(rates))
    assert found.verdict is HypothesisVerdict.UNDECIDED
    assert found.reasons == ("the interval includes 0.8; more repetitions narrow it",)
    assert "; 0.8 to 1.2 was expected: Undecided" in found.sentence


# The unit of replication


def test_the_trial_is_the_unit_of_one_run() -> None:
    found = decided(hypothesis(), pair(scaled(0.95), RADOS))
    assert (found.unit, found.replicates) == (Unit.TRIAL, (5, 5))
    assert found.notes == (NO_NOISE,)


def test_trials_of_two_runs_are_taken_together() -> None:
    found = decided(hypothesis(), pair(scaled(0.95), RADOS), pair(scaled(0.95), RADOS, name="r2"))
    assert (found.unit, found.replicates) == (Unit.TRIAL, (10, 10))
    assert found.notes == (NO_NOISE,)


def test_three_runs_are_the_unit_and_show_the_noise_between_them() -> None:
    """All trials of a run agree, but runs differ by 10 %: any number of trials proves nothing."""
    left = {"workload": "rbd", "quantity": "iops"}
    given = hypothesis(left={**left, "variant": "a"}, of={**left, "variant": "b"})
    runs = [
        run_of_points(point("rbd-0", [noise * rate] * 5), variant=variant, name=f"{variant}{noise}")
        for variant, rate in (("a", 95.0), ("b", 100.0))
        for noise in (0.9, 1, 1.1)
    ]
    found = decided(given, *runs)
    assert (found.unit, found.replicates, found.notes) == (Unit.RUN, (3, 3), (FEW_RUNS,))
    assert found.verdict is HypothesisVerdict.UNDECIDED
    assert found.reasons == ("the interval includes 90 %; more runs (repeat) narrow it",)
    assert decided(given, runs[1], runs[4]).verdict is HypothesisVerdict.HELD


def test_what_the_same_runs_share_is_no_noise_of_their_ratio() -> None:
    runs = [pair([95.0 * noise] * 5, [100.0 * noise] * 5, name=f"r{noise}") for noise in (0.8, 1, 1.2)]
    found = decided(hypothesis(), *runs)
    assert (found.unit, found.replicates, found.verdict) == (Unit.RUN, (3, 3), HypothesisVerdict.HELD)
    assert found.low == pytest.approx(0.95, rel=1e-6)


def runs_of(ratios: list[float], spread: float = 0.0) -> list[MeasuredRun]:
    """Return runs of both points with these ratios, whose levels differ by as much from run to run."""
    levels = [1 + spread * number for number in range(len(ratios))]
    return [
        pair([100 * level * ratio] * 3, [100 * level] * 3, name=f"r{number}")
        for number, (level, ratio) in enumerate(zip(levels, ratios, strict=True))
    ]


@pytest.mark.parametrize(
    ("ratios", "verdict"),
    [
        # Their logarithms scatter by 1.1 %: the 95 % interval ends 2.6 % from the mean, three scatters at 3.2 %.
        ([0.92, 0.93, 0.94], HypothesisVerdict.HELD),
        ([0.918, 0.928, 0.938], HypothesisVerdict.UNDECIDED),
        ([0.84, 0.85, 0.86], HypothesisVerdict.REFUTED),
        ([0.864, 0.874, 0.884], HypothesisVerdict.UNDECIDED),
        ([0.9178, 0.9278, 0.9378, 0.9278, 0.9278], HypothesisVerdict.HELD),
    ],
)
def test_three_runs_decide_what_exceeds_three_times_their_scatter(
    ratios: list[float], verdict: HypothesisVerdict
) -> None:
    found = decided(hypothesis(), *runs_of(ratios, spread=0.2))
    assert found.verdict is verdict
    assert found.notes == ((FEW_RUNS,) if len(ratios) < 5 else ())
    low, high = found.low or 0, found.high or 0
    assert not low <= 0.9 <= high
    reason = (
        "runs scatter by 1.1 % and decide only on an effect of more than 3 times that; measure at least 5 runs (repeat)"
    )
    assert found.reasons == ((reason,) if verdict is HypothesisVerdict.UNDECIDED else ())


def test_of_different_runs_the_scatter_is_that_of_both() -> None:
    """Each side scatters by 1 %, their ratio by 1.41 %: three times that is 4.2 %, and the interval ends at 2.3 %."""
    left = {"workload": "rbd", "quantity": "iops"}
    given = hypothesis(left={**left, "variant": "a"}, of={**left, "variant": "b"})
    for ratio, verdict in ((0.945, HypothesisVerdict.HELD), (0.93, HypothesisVerdict.UNDECIDED)):
        runs = [
            run_of_points(point("rbd-0", [noise * rate] * 3), variant=variant, name=f"{variant}{noise}")
            for variant, rate in (("a", 100 * ratio), ("b", 100.0))
            for noise in (0.99, 1, 1.01)
        ]
        found = decided(given, *runs)
        assert found.verdict is verdict
        assert (found.low or 0) > 0.9


@pytest.mark.parametrize(("power", "verdict"), [(0.9, HypothesisVerdict.HELD), (0.82, HypothesisVerdict.UNDECIDED)])
def test_the_exponents_of_three_runs_scatter_too(power: float, verdict: HypothesisVerdict) -> None:
    """Those of the runs are 0.01 apart; within each run the law is exact, so that the interval is narrower."""
    runs = [
        sweep({clients: [1e6 * clients ** (power + 0.01 * number)] * 3 for clients in (1, 2, 4)}, name=f"r{number}")
        for number in (-1, 0, 1)
    ]
    found = decided(hypothesis(SCALING), *runs)
    assert (found.verdict, found.unit) == (verdict, Unit.RUN)
    assert (found.low or 0) > 0.8
    if verdict is HypothesisVerdict.UNDECIDED:
        assert found.reasons[0].startswith("runs scatter by 0.01 and decide ")


def test_runs_of_different_variants_are_no_pairs_whatever_their_names() -> None:
    left = {"workload": "rbd", "quantity": "iops"}
    given = hypothesis(left={**left, "variant": "a"}, of={**left, "variant": "b"})
    runs = [
        run_of_points(point("rbd-0", [noise * rate] * 5), variant=variant, name=f"r{noise}")
        for variant, rate in (("a", 95.0), ("b", 100.0))
        for noise in (0.8, 1, 1.2)
    ]
    assert decided(given, *runs).verdict is HypothesisVerdict.UNDECIDED


def test_what_a_run_shares_is_no_noise_of_its_exponent() -> None:
    runs = [
        sweep({clients: [1e6 * noise * clients] * 3 for clients in (1, 2, 4)}, name=f"r{noise}")
        for noise in (0.8, 1, 1.2)
    ]
    found = decided(hypothesis(SCALING), *runs)
    assert (found.unit, found.replicates, found.verdict) == (Unit.RUN, (3,), HypothesisVerdict.HELD)
    assert found.low == pytest.approx(1, rel=1e-5)


def test_runs_with_one_trial_each_are_enough() -> None:
    found = decided(hypothesis(), *(pair([95.0 + n], [100.0 + n], name=f"r{n}") for n in range(3)))
    assert (found.unit, found.replicates) == (Unit.RUN, (3, 3))
    assert found.estimate == pytest.approx(0.95, rel=0.01)


def test_scaling_over_three_runs() -> None:
    runs = [sweep({clients: scaled(clients) for clients in (1, 2, 4)}, name=f"r{n}") for n in range(3)]
    found = decided(hypothesis(SCALING), *runs)
    assert (found.unit, found.replicates, found.verdict) == (Unit.RUN, (3,), HypothesisVerdict.HELD)


@pytest.mark.parametrize("count", [1, 2])
def test_fewer_than_three_trials_decide_nothing(count: int) -> None:
    found = decided(hypothesis(), pair(RADOS[:count], RADOS))
    counts = "only 1 trial counts" if count == 1 else "only 2 trials count"
    assert found.reasons == (f"left: {counts}, but at least 3 are needed; measure with more repetitions",)
    assert found.sentence == f"Undecided: {found.reasons[0]}."
    assert (found.estimate, found.unit) == (None, None)


def test_fewer_than_three_trials_at_a_value_of_the_axis() -> None:
    found = decided(hypothesis(SCALING), sweep({1: RADOS, 2: RADOS[:2], 4: RADOS}))
    (reason,) = found.reasons
    assert reason.startswith("left, clients 2: only 2 trials count, but at least 3 are needed;")


@pytest.mark.parametrize("factor", [0.95, 0.855])
def test_trials_of_fewer_than_three_runs_decide_what_exceeds_three_times_their_scatter(factor: float) -> None:
    """The ratio of two trials scatters by 2.2 %: the interval ends at 2.3 %, three times the scatter at 6.7 %."""
    left = {"workload": "rbd", "quantity": "iops"}
    for runs in ([1], [1, 2]):
        found = decided(
            hypothesis(left=left, of=RADOS_IOPS), *(pair(scaled(factor), RADOS, name=f"r{n}") for n in runs)
        )
        assert (found.unit, found.verdict) == (Unit.TRIAL, HypothesisVerdict.UNDECIDED)
        assert not (found.low or 0) <= 0.9 <= (found.high or 0)
        assert found.reasons[0].startswith("trials of fewer than 3 runs scatter by 2.")
        assert "decide only on an effect of more than 3 times that; measure at least 5 runs" in found.reasons[0]


@pytest.mark.parametrize(("power", "verdict"), [(0.95, HypothesisVerdict.HELD), (0.82, HypothesisVerdict.UNDECIDED)])
def test_the_exponent_of_one_run_is_judged_by_the_scatter_of_its_trials(
    power: float, verdict: HypothesisVerdict
) -> None:
    """The scatter of 1.6 % over an axis of four is one of 0.016 of the exponent."""
    found = decided(hypothesis(SCALING), sweep({n: scaled(1e4 * n**power) for n in (1, 2, 4)}))
    assert (found.verdict, found.unit) == (verdict, Unit.TRIAL)
    assert (found.low or 0) > 0.8
    if verdict is HypothesisVerdict.UNDECIDED:
        assert found.reasons[0].startswith("trials of fewer than 3 runs scatter by 0.016 and decide ")


# Variants


def test_without_a_variant_each_one_is_decided() -> None:
    runs = [pair(scaled(0.97), RADOS, variant="size-3"), pair(scaled(0.5), RADOS, variant="ec-4-2", name="r2")]
    found = decide(hypothesis(), runs)
    assert [(one.variant, one.verdict.value) for one in found] == [("size-3", "Held"), ("ec-4-2", "Refuted")]
    assert found[0].sentence.startswith("In size-3, rbd (blockSize 4Mi, clients 8) reaches 97 % ")


def test_a_variant_without_the_workload_is_undecided_and_not_left_out() -> None:
    runs = [pair(RADOS, RADOS, variant="a"), run_of_points(point("rados-0", RADOS), variant="b", name="r2")]
    _, found = decide(hypothesis(), runs)
    assert found.sentence == (
        "Undecided in b: left.workload: run r2 (variant b) has no workload rbd; it has rados (and 1 more)."
    )


def test_variants_are_compared_by_name() -> None:
    left = {"workload": "rbd", "quantity": "iops"}
    given = hypothesis(left={**left, "variant": "memory"}, of={**left, "variant": "disk"}, atLeastPercent=150)
    runs = [
        run_of_points(point("rbd-0", scaled(2)), variant="memory"),
        run_of_points(point("rbd-0", RADOS), variant="disk", name="r2"),
    ]
    found = decided(given, *runs)
    assert (found.variant, found.verdict) == (None, HypothesisVerdict.HELD)
    assert found.sentence.startswith("rbd of memory reaches 200 % (195 to 205) of the IOPS of rbd of disk; ")
    assert [(one.field, one.variant, one.run) for one in found.basis] == [
        ("left", "memory", "r1"),
        ("of", "disk", "r2"),
    ]


# What a decision rests on


def test_points_trials_and_runs_are_named() -> None:
    found = decided(hypothesis(), pair(scaled(0.95), RADOS))
    left, of = found.basis
    assert (left.field, left.run, left.point, left.trials, left.verdict) == ("left", "r1", "rbd-000", 5, Verdict.VALID)
    assert of.mean == pytest.approx(4096 * 100, rel=0.001)
    assert not found.is_suspect


def test_suspect_points_are_decided_and_named() -> None:
    rbd = point("rbd-000", scaled(0.97), blockSize="4Mi", findings=(SUSPECT,))
    rbd = rbd.model_copy(update={"status": rbd.status.model_copy(update={"verdict": Verdict.SUSPECT})})
    found = decided(hypothesis(), run_of_points(rbd, point("rados-000", RADOS, objectSize="4Mi")))
    assert found.is_suspect
    assert found.sentence.endswith("at least 90 % was expected: Held, on Suspect points.")
    assert found.notes == ("Suspect (NodeCpuSaturated): rbd-000 of run r1", NO_NOISE)


def test_an_invalid_point_decides_nothing() -> None:
    rbd = point("rbd-000", scaled(0.95), blockSize="4Mi", findings=(INVALID,))
    rbd = rbd.model_copy(update={"status": rbd.status.model_copy(update={"verdict": Verdict.INVALID})})
    found = decided(hypothesis(), run_of_points(rbd, point("rados-000", RADOS, objectSize="4Mi")))
    assert found.sentence == (
        "Undecided: rbd-000 of run r1 is Invalid (PasteFailed), so it decides nothing; fix the cause and measure again."
    )
    assert [one.trials for one in found.basis] == [0, 5]
    assert found.notes == ()


def test_a_point_without_trials_that_count_decides_nothing() -> None:
    rados = point("rados-000", RADOS, objectSize="4Mi")
    found = decided(hypothesis(), run_of_points(point("rbd-000", [aborted(0)], blockSize="4Mi"), rados))
    (reason,) = found.reasons
    assert reason.startswith("rbd-000 of run r1 is Invalid (NoTrialCounts), so it decides nothing;")


def test_an_unfinished_point_decides_nothing() -> None:
    rbd = point("rbd-000", RADOS, blockSize="4Mi", final=False)
    found = decided(hypothesis(), run_of_points(rbd, point("rados-000", RADOS, objectSize="4Mi")))
    assert found.reasons == ("rbd-000 of run r1 is not finished",)


def test_attempts_that_the_harness_spoiled_do_not_count() -> None:
    late = Finding(reason="LateClient", verdict=Verdict.INVALID, message="m", cause=Cause.HARNESS)
    attempts = [
        trial(0, operation_at(1), verdict=Verdict.INVALID, findings=(late,)),
        *trials_at(RADOS)[1:],
        trial(0, operation_at(98), attempt=1),
    ]
    found = decided(
        hypothesis(atLeastPercent=99),
        run_of_points(point("rbd-0", attempts, blockSize="4Mi"), point("rados-0", RADOS, objectSize="4Mi")),
    )
    assert found.estimate == pytest.approx(1)


def decided_with(*spoiled: Trial, trials: int = 12, runs: int = 1) -> Decision:
    """Decide that RBD is at least 90 % of RADOS, at equal rates; these attempts at RBD were replaced."""
    again = {attempt.pass_number for attempt in spoiled}
    rates = [100 + number % 3 for number in range(trials)]
    rbd = [trial(number, operation_at(rate), attempt=number in again) for number, rate in enumerate(rates)]
    points = point("rbd-0", [*spoiled, *rbd], blockSize="4Mi"), point("rados-0", rates, objectSize="4Mi")
    return decided(hypothesis(), *(run_of_points(*points, name=f"r{number}") for number in range(runs)))


def test_a_hypothesis_holds_only_if_the_first_attempts_show_it_too() -> None:
    stalled = Finding(reason="Stalled", verdict=Verdict.INVALID, message="m")
    collapsed = trial(0, operation_at(40), verdict=Verdict.INVALID, findings=(stalled,))
    assert decided_with().verdict is HypothesisVerdict.HELD
    assert decided_with(aborted(0), aborted(1)).verdict is HypothesisVerdict.HELD, "the harness lost them"
    found = decided_with(collapsed)
    assert found.verdict is HypothesisVerdict.UNDECIDED
    assert found.notes[0] == (
        "the storage spoiled first attempts (Stalled), and with them the verdict is Undecided; the attempts that count "
        "alone show Held"
    )


def test_a_hypothesis_does_not_hold_where_an_attempt_hung() -> None:
    found = decided_with(aborted(0, reason=AbortReason.TOOL_OVERRAN))
    assert found.verdict is HypothesisVerdict.UNDECIDED
    assert "throughput is missing" in found.reasons[0] or "bytesPerSecond is missing" in found.reasons[0]


def test_first_attempts_refute() -> None:
    stalled = Finding(reason="Stalled", verdict=Verdict.INVALID, message="m")
    slow = [trial(number, operation_at(30), verdict=Verdict.INVALID, findings=(stalled,)) for number in range(12)]
    assert decided_with(*slow, trials=40, runs=5).verdict is HypothesisVerdict.REFUTED
    assert decided_with(*slow, trials=40).verdict is HypothesisVerdict.UNDECIDED, "its trials scatter too much"


def test_too_many_replaced_attempts_decide_nothing() -> None:
    found = decided_with(*(aborted(number) for number in range(7)))
    assert found.verdict is HypothesisVerdict.UNDECIDED
    assert found.reasons[0].startswith("7 of 31 attempts of the selected points were replaced or do not count")


def test_the_document_is_json() -> None:
    for given_run in (pair(RADOS, RADOS), pair([0.0] * 3, RADOS), run_of_points()):
        found = decided(hypothesis(), given_run)
        assert Decision.model_validate_json(found.model_dump_json()) == found
