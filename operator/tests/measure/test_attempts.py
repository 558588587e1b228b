"""Which attempts come first, what spoiled them, and what is left of a result if they count."""

import random
from collections.abc import Callable
from typing import Any

import pytest

from plimsoll.api.line import Line, Probe, ProbeOutcome
from plimsoll.api.names import AbortReason, Cause, Outcome, Verdict
from plimsoll.api.reasons.attempts import ATTEMPT_REASONS
from plimsoll.api.result import Abort, Finding, Trial
from plimsoll.api.surroundings import ClusterSummary
from plimsoll.measure.attempts import (
    counts,
    first_attempts,
    is_undecided,
    on_first_attempts,
    reasons_text,
    repeated_too_often,
    spoiled_attempts,
    spoiled_by,
    why_not_counted,
)
from plimsoll.measure.checks.judge import CHECKS
from support.results import BLOCK, aborted, measured, result, trial

HANG = AbortReason.TOOL_OVERRAN


def spoiled(number: int, *reasons: str, attempt: int = 0, iops: float = 400) -> Trial:
    findings = tuple(Finding(reason=reason, verdict=Verdict.INVALID, message="m") for reason in reasons)
    return trial(number, measured(iops), attempt=attempt, verdict=Verdict.INVALID, findings=findings)


def numbers(trials: list[Trial]) -> list[tuple[int, int]]:
    return [(attempt.pass_number, attempt.attempt) for attempt in first_attempts(trials)]


def test_every_reason_has_a_cause() -> None:
    storage = {"ClientNotStaged", "ToolOverran"}
    assert {reason for reason in AbortReason if ATTEMPT_REASONS[reason].cause is Cause.STORAGE} == storage
    harness = {check.reason for check in CHECKS if check.invalid is not None and check.cause is Cause.HARNESS}
    assert harness == {
        "ClientMissing",
        "EarlyClient",
        "ClockOffset",
        "HistogramMismatch",
        "ClientThrottled",
        "FasterThanNetwork",
        "WrongDevice",
        "DeviceBypassed",
        "CephOptionsDiffer",
        "NotDisturbed",
    }
    either = {check.reason for check in CHECKS if check.invalid is not None and check.cause is None}
    assert either == {"OutputUnreadable", "LateClient", "LowOverlap", "ForeignLoad"}
    for reason in ("Stalled", "ClientStalled", "LostIo", "ToolFailed", "OsdsChanged", "GroupsNotClean"):
        assert spoiled_by(spoiled(0, reason), []) is Cause.STORAGE
    assert spoiled_by(spoiled(0, "OfAnotherVersion"), []) is Cause.STORAGE


def test_any_reason_that_blames_the_storage_is_enough() -> None:
    assert spoiled_by(spoiled(0, "ClockOffset"), []) is Cause.HARNESS
    assert spoiled_by(spoiled(0, "ClockOffset", "Stalled"), []) is Cause.STORAGE
    assert spoiled_by(aborted(0), []) is Cause.HARNESS
    found = Abort(reason=AbortReason.CLIENT_NOT_ARMED, message="the target is missing", cause=Cause.STORAGE)
    assert spoiled_by(aborted(0).model_copy(update={"abort": found}), []) is Cause.STORAGE


@pytest.mark.parametrize("cause", Cause)
def test_evidence_of_an_attempt_decides_who_is_to_blame_for_a_late_client(cause: Cause) -> None:
    late = Finding(reason="LateClient", verdict=Verdict.INVALID, message="m", cause=cause)
    assert spoiled_by(trial(0, measured(400), verdict=Verdict.INVALID, findings=(late,)), []) is cause


def beside(foreign: float, iops: float, number: int = 0, **fields: Any) -> Trial:
    """Return an attempt that was spoiled by foreign operations per second, of 4 KiB as its own."""
    cluster = ClusterSummary(
        samples=9, failed=0, foreign_operations_per_second=foreign, foreign_bytes_per_second=round(foreign * BLOCK)
    )
    return spoiled(number, "ForeignLoad", iops=iops).model_copy(update={"cluster": cluster, **fields})


@pytest.mark.parametrize(
    ("foreign", "iops", "cause"),
    [
        pytest.param(150, 200, Cause.STORAGE, id="the usual neighbour beside storage that collapsed"),
        pytest.param(250, 100, Cause.STORAGE, id="a neighbour that is no reason for a collapse"),
        pytest.param(500, 500, Cause.HARNESS, id="a neighbour that took what the run lost"),
        pytest.param(400, 300, Cause.HARNESS, id="a neighbour that writes, which costs more"),
        pytest.param(5000, 100, Cause.HARNESS, id="a neighbour that took everything"),
        pytest.param(250, 1000, Cause.HARNESS, id="a neighbour that cost nothing"),
    ],
)
def test_foreign_load_is_the_neighbours_unless_the_run_lost_more_than_twice_what_they_had(
    foreign: float, iops: float, cause: Cause
) -> None:
    good = [trial(number, measured(1000)) for number in range(1, 5)]
    assert spoiled_by(beside(foreign, iops), good) is cause
    assert is_undecided(beside(foreign, iops))
    # Nothing else shows what the storage usually does.
    assert spoiled_by(beside(foreign, iops), []) is Cause.HARNESS


def share_of_storage(chance: random.Random, *, foreign: tuple[float, float], cost: float = 0, loss: float = 0) -> float:
    """Return the part of Invalid attempts that the storage is to blame for, among two that count at about 1000.

    Each operation of a neighbour costs `cost` of the run's, and the storage collapses by `loss`.
    """
    causes = list[Cause]()
    while len(causes) < 300:
        neighbours = chance.uniform(*foreign)
        own = max(20, 1000 * (1 - loss) * chance.lognormvariate(0, 0.05) - cost * neighbours)
        if neighbours > 0.2 * own:
            good = [trial(number, measured(1000 * chance.lognormvariate(0, 0.05))) for number in (1, 2)]
            causes.append(spoiled_by(beside(neighbours, own), good))
    return causes.count(Cause.STORAGE) / len(causes)


@pytest.mark.parametrize(("cost", "limit"), [(0.5, 0), (1, 0), (1.5, 0.02), (2, 0.1)])
def test_neighbours_that_share_the_storage_are_hardly_ever_taken_for_a_collapse(cost: float, limit: float) -> None:
    assert share_of_storage(random.Random(1), foreign=(170, 3000), cost=cost) <= limit  # noqa: S311 - numbers, not secrets


@pytest.mark.parametrize("loss", [0.5, 0.6, 0.75, 0.9])
def test_a_collapse_beside_the_usual_neighbours_is_always_found(loss: float) -> None:
    assert share_of_storage(random.Random(1), foreign=(100, 190), loss=loss) == 1  # noqa: S311 - numbers, not secrets


def test_in_a_search_foreign_load_is_compared_at_the_same_load() -> None:
    def probe(offered: float) -> Probe:
        return Probe(offered=offered, outcome=ProbeOutcome.MET)

    others = [trial(0, measured(5000), attempt=1, probe=probe(5000)), trial(1, measured(100), attempt=1)]
    assert spoiled_by(beside(30, 99, number=1, probe=probe(100)), others) is Cause.HARNESS
    assert spoiled_by(beside(30, 20, number=1, probe=probe(100)), others) is Cause.STORAGE
    assert spoiled_by(beside(30, 99, number=2, probe=probe(100)), others) is Cause.HARNESS


def test_the_first_attempt_is_the_first_one_without_a_harness_cause() -> None:
    trials = [
        trial(0, measured(1000)),
        aborted(1),
        spoiled(1, "Stalled", attempt=1),
        trial(1, measured(1000), attempt=2),
        spoiled(2, "ClockOffset"),
        trial(2, measured(1000), attempt=1),
        aborted(3, reason=HANG),
        trial(3, measured(1000), attempt=1),
        *(aborted(4, attempt=number) for number in range(3)),
    ]
    assert numbers(trials) == [(0, 0), (1, 1), (2, 1), (3, 0)]
    assert numbers(trials[::-1]) == numbers(trials)
    assert [why_not_counted(attempt) for attempt in spoiled_attempts([result(trials)])] == [("Stalled",), (HANG,)]
    assert why_not_counted(trials[0]) == ()


def test_a_result_whose_first_attempts_count_is_left_alone() -> None:
    good = result([trial(0, measured(1000)), aborted(1), trial(1, measured(1000), attempt=1)])
    assert on_first_attempts(good) is good


def test_first_attempts_count_with_their_numbers_and_a_hang_counts_without() -> None:
    attempts = [
        spoiled(0, "Stalled", iops=400),
        trial(0, measured(1000), attempt=1),
        aborted(1, reason=HANG),
        trial(1, measured(1000), attempt=1),
        trial(2, measured(1000)),
    ]
    first = on_first_attempts(result(attempts)).status
    assert [counts(attempt) for attempt in first.trials] == [True] * 3
    assert [[each.rates.iops for each in attempt.operations] for attempt in first.trials] == [[400], [], [1000]]
    assert [attempt.outcome for attempt in first.trials] == [Outcome.MEASURED] * 3


def test_a_point_without_numbers_has_those_of_its_first_attempts() -> None:
    lost = result([spoiled(n, "Stalled", attempt=a) for n in range(2) for a in range(3)])
    assert lost.status.verdict is Verdict.INVALID
    first = on_first_attempts(lost).status
    assert (first.verdict, len(first.trials)) == (Verdict.SUSPECT, 2)


def test_in_a_search_an_attempt_that_the_storage_spoiled_is_a_probe_that_broke() -> None:
    probe = Probe(offered=500, outcome=ProbeOutcome.UNKNOWN)
    line, lower = Line(probes=1, counted=1, estimate=900), Line(probes=1, counted=1, estimate=600)
    search = result([spoiled(0, "Stalled").model_copy(update={"probe": probe}), trial(0, measured(1000), attempt=1)])
    status = search.status.model_copy(update={"line": line, "first_line": lower})
    first = on_first_attempts(search.model_copy(update={"status": status})).status
    assert first.line == lower
    assert first.trials[0].probe is not None
    assert first.trials[0].probe.outcome is ProbeOutcome.LATE


@pytest.mark.parametrize(("replaced", "is_often"), [(1, False), (2, True)])
def test_more_than_a_fifth_of_the_attempts_is_too_many(replaced: int, is_often: bool) -> None:  # noqa: FBT001
    attempts = [spoiled(number, "Stalled") for number in range(replaced)]
    trials = [trial(number, measured(1000), attempt=number < replaced) for number in range(5)]
    reasons = [*repeated_too_often("the run", [result([*attempts, *trials])])]
    assert bool(reasons) == is_often
    said = "2 of 7 attempts of the run were replaced or do not count (limit 20 %): Stalled (2); find the cause"
    assert all(reason.startswith(said) for reason in reasons)


def interrupted(number: int, attempt: int) -> Trial:
    lost = aborted(number, attempt=attempt)
    assert lost.abort is not None
    abort = lost.abort.model_copy(update={"reason": AbortReason.INTERRUPTED, "after_start": True})
    return lost.model_copy(update={"abort": abort})


def point_with(lost: list[int], trials: int = 5, spoil: Callable[[int, int], Trial] = interrupted) -> list[Trial]:
    """Return the trials of a point, each after so many attempts that do not count."""
    return [
        attempt
        for number, times in enumerate([*lost, *[0] * (trials - len(lost))])
        for attempt in (*(spoil(number, n) for n in range(times)), trial(number, measured(1000), attempt=times))
    ]


@pytest.mark.parametrize(
    ("lost", "trials", "is_often"),
    [([1], 5, False), ([1], 3, False), ([1, 1], 5, True), ([2], 3, True), ([1, 1], 10, False)],
)
def test_the_limit_applies_to_each_point_but_not_to_a_single_attempt(
    lost: list[int],
    trials: int,
    is_often: bool,  # noqa: FBT001
) -> None:
    """A user interrupts what looks bad at one point of fifty."""
    others = [result(point_with([], trials), point=f"w-{number:03}") for number in range(1, 50)]
    reasons = [*repeated_too_often("the run", [result(point_with(lost, trials)), *others])]
    number = sum(lost)
    said = f"{number} of {number + trials} attempts of the run at randread 4Ki qd1 were replaced or do not count"
    assert [reason.startswith(said) for reason in reasons] == [True] * is_often


def test_what_the_storage_spoiled_at_one_point_is_left_to_the_first_attempts() -> None:
    collapsed = point_with([1, 1], spoil=lambda number, attempt: spoiled(number, "Stalled", attempt=attempt))
    others = [result(point_with([]), point=f"w-{number:03}") for number in range(1, 10)]
    assert not [*repeated_too_often("the run", [result(collapsed), *others])]


@pytest.mark.parametrize("points", [1, 4, 10, 50])
def test_interrupting_bad_attempts_at_one_point_is_rarely_hidden(points: int) -> None:
    """Half of the attempts at a point lose half of the rate; without the limit, 69 % of four points would pass."""
    chance, found = random.Random(f"selected {points}"), 0  # noqa: S311 - a simulation
    for _ in range(200):
        lost = [next(n for n in range(20) if chance.random() >= 0.5) for _ in range(5)]
        others = [result(point_with([]), point=f"w-{number:03}") for number in range(1, min(points, 4))]
        # The attempts at other points are the same.
        run = [result(point_with(lost)), *others] + others[:1] * (points - 4)
        found += bool([*repeated_too_often("the run", run)])
    assert found >= 0.83 * 200


@pytest.mark.parametrize("fault", [0.005, 0.02])
def test_rare_faults_of_the_harness_are_rarely_too_many(fault: float) -> None:
    """Clients are lost in so many of the attempts, at 20 points of three trials."""
    chance, found = random.Random(f"faults {fault}"), 0  # noqa: S311 - a simulation
    for _ in range(100):
        lost = [[int(chance.random() < fault) for _ in range(3)] for _ in range(20)]
        run = [result(point_with(each, 3, lambda number, attempt: aborted(number, attempt=attempt))) for each in lost]
        found += bool([*repeated_too_often("the run", run)])
    assert found <= 5


def test_the_most_frequent_reason_comes_first() -> None:
    attempts = [aborted(0), spoiled(1, "Stalled"), spoiled(2, "Stalled", "LostIo"), spoiled(3, "Stalled")]
    assert reasons_text(attempts) == "Stalled (2); ClientLost; Stalled, LostIo"
