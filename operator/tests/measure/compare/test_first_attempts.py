"""Comparisons of storage whose trials collapse, and are repeated until they do not."""

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import count

import pytest

from plimsoll.api.line import Ending, Line
from plimsoll.api.names import AbortReason, Cause, Metric, Verdict
from plimsoll.api.result import BenchmarkResult, Finding, Trial
from plimsoll.api.suite_status import Conclusion
from plimsoll.api.surroundings import ClusterSummary
from plimsoll.measure.compare.comparison import Comparison, compare
from plimsoll.measure.compare.values import RegressionRule, match_points
from support.results import BLOCK, aborted, measured, result, searched, steady, trial, trials_of

STALLED = Finding(reason="Stalled", verdict=Verdict.INVALID, message="m")
LATE = Finding(reason="LateClient", verdict=Verdict.INVALID, message="m", cause=Cause.HARNESS)


def compared(baseline: Sequence[Sequence[Trial]], candidate: Sequence[Sequence[Trial]]) -> Comparison:
    ours, theirs = (
        [result(trials, run=run, point=f"w-{number:03}") for number, trials in enumerate(points)]
        for run, points in (("baseline", baseline), ("candidate", candidate))
    )
    return compare(match_points(ours, theirs), RegressionRule())


def replaced(*attempts: Trial, trials: int = 10) -> list[Trial]:
    """Return steady trials, of which the first ones replaced these attempts."""
    again = {attempt.pass_number for attempt in attempts}
    good = [each.model_copy(update={"attempt": each.pass_number in again}) for each in trials_of(steady(1000, trials))]
    return [*attempts, *good]


def collapsed(number: int, finding: Finding = STALLED) -> Trial:
    return trial(number, measured(400), verdict=Verdict.INVALID, findings=(finding,))


def test_a_trial_that_collapsed_and_was_repeated_excludes_that_nothing_is_worse() -> None:
    found = compared([trials_of(steady(1000, 10))], [replaced(collapsed(0))])
    assert found.conclusion is Conclusion.INCONCLUSIVE
    assert found.reasons[0] == (
        "the storage spoiled first attempts (Stalled), and with them the conclusion is Inconclusive; the attempts that "
        "count alone show NoRegression"
    )
    (iops,) = [metric for metric in found.points[0].metrics if metric.metric is Metric.IOPS]
    assert iops.ratio == pytest.approx(0.4**0.1, rel=0.01)


def test_a_trial_that_the_harness_spoiled_and_was_repeated_excludes_nothing() -> None:
    found = compared([trials_of(steady(1000, 10))], [replaced(collapsed(0, LATE), aborted(1))])
    assert found.conclusion is Conclusion.NO_REGRESSION


def disturbed(number: int, foreign: float, iops: float = 400) -> Trial:
    """Return an attempt beside neighbours with so many operations per second."""
    cluster = ClusterSummary(
        samples=9, failed=0, foreign_operations_per_second=foreign, foreign_bytes_per_second=round(foreign * BLOCK)
    )
    finding = Finding(reason="ForeignLoad", verdict=Verdict.INVALID, message="m")
    spoiled = trial(number, measured(iops), verdict=Verdict.INVALID, findings=(finding,))
    return spoiled.model_copy(update={"cluster": cluster})


@pytest.mark.parametrize(("foreign", "conclusion"), [(150, Conclusion.INCONCLUSIVE), (500, Conclusion.NO_REGRESSION)])
def test_a_collapse_beside_the_usual_neighbours_counts_and_a_disturbance_by_new_ones_does_not(
    foreign: float, conclusion: Conclusion
) -> None:
    found = compared([trials_of(steady(1000, 10))], [replaced(disturbed(0, foreign))])
    assert found.conclusion is conclusion


def test_storage_that_collapses_in_every_trial_beside_its_neighbours_never_looks_healthy() -> None:
    candidate = [disturbed(number, 150).model_copy(update={"attempt": a}) for number in range(5) for a in range(3)]
    found = compared([trials_of(steady(1000, 5))], [candidate])
    assert found.conclusion is not Conclusion.NO_REGRESSION


def test_a_trial_that_hung_and_was_repeated_excludes_that_nothing_is_worse() -> None:
    hang = aborted(0, reason=AbortReason.TOOL_OVERRAN)
    found = compared([trials_of(steady(1000, 10))], [replaced(hang)])
    assert found.conclusion is Conclusion.INCONCLUSIVE
    assert "(ToolOverran)" in found.reasons[0]
    assert any("ended without numbers" in note for metric in found.points[0].metrics for note in metric.notes)


def test_first_attempts_that_are_worse_are_a_regression() -> None:
    slow = [collapsed(number) for number in range(6)]
    trials = 30
    found = compared([trials_of(steady(1000, trials))], [replaced(*slow, trials=trials)])
    assert found.conclusion is Conclusion.REGRESSION
    assert "with them the conclusion is Regression" in found.reasons[0]


def test_a_regression_of_the_attempts_that_count_needs_no_other() -> None:
    slower = [each.model_copy(update={"attempt": each.pass_number == 0}) for each in trials_of(steady(800, 10))]
    found = compared([trials_of(steady(1000, 10))], [[collapsed(0), *slower]])
    assert found.conclusion is Conclusion.REGRESSION
    assert not any("first attempts" in reason for reason in found.reasons)


def search(estimate: float, *, run: str, first: float | None = None) -> BenchmarkResult:
    """Return a search with that line; with `first`, the storage spoiled an attempt at its first probe."""

    def line(load: float) -> Line:
        return Line(ending=Ending.PRECISE, probes=20, counted=20, estimate=load, low=0.98 * load, high=1.02 * load)

    found = searched(line(estimate), run=run)
    if first is None:
        return found
    probe, *others = found.status.trials
    spoiled = probe.model_copy(update={"verdict": Verdict.INVALID, "findings": (STALLED,)})
    trials = (spoiled, probe.model_copy(update={"attempt": 1}), *others)
    # At the first line, one probe held and another one broke.
    beside = [
        each.model_copy(update={"probe": each.probe.model_copy(update={"offered": first})})
        for each in others[:2]
        if each.probe
    ]
    status = found.status.model_copy(update={"trials": (*trials[:2], *beside, *trials[4:]), "first_line": line(first)})
    return found.model_copy(update={"status": status})


@pytest.mark.parametrize(
    ("first", "conclusion"),
    [(None, Conclusion.NO_REGRESSION), (9700, Conclusion.INCONCLUSIVE), (8000, Conclusion.REGRESSION)],
)
def test_a_line_is_compared_as_the_first_attempts_show_it_too(first: float | None, conclusion: Conclusion) -> None:
    ours, theirs = search(10_000, run="baseline"), search(10_000, run="candidate", first=first)
    found = compare(match_points([ours], [theirs]), RegressionRule())
    assert found.conclusion is conclusion


# -- Storage whose trials collapse by chance. The shares stand in docs/explanation/comparing.md. -----------------------


def attempts_of(chance: random.Random, number: int, collapse: float) -> Iterator[Trial]:
    """Yield the attempts at a trial as the conductor makes them: at most three, the last one as good as it gets."""
    for attempt in count():
        rate, p99 = 1000 * chance.lognormvariate(0, 0.02), 5_000_000 * chance.lognormvariate(0, 0.02)
        if chance.random() >= collapse:
            yield trial(number, measured(rate, p99=round(p99)), attempt=attempt)
            return
        spoiled = measured(0.4 * rate, p99=round(2.5 * p99))
        yield trial(number, spoiled, attempt=attempt, verdict=Verdict.INVALID, findings=(STALLED,))
        if attempt == 2:
            return


def conclusions(collapse: float, *, points: int, comparisons: int, trials: int = 5) -> Counter[tuple[Conclusion, bool]]:
    """Count the conclusions, and whether a trial of the candidate collapsed."""
    chance = random.Random(f"{collapse} {points}")  # noqa: S311 - numbers, not secrets

    def run(probability: float) -> list[list[Trial]]:
        return [
            [attempt for number in range(trials) for attempt in attempts_of(chance, number, probability)]
            for _ in range(points)
        ]

    found = Counter[tuple[Conclusion, bool]]()
    for _ in range(comparisons):
        candidate = run(collapse)
        has_collapsed = any(attempt.verdict is Verdict.INVALID for of_point in candidate for attempt in of_point)
        found[compared(run(0), candidate).conclusion, has_collapsed] += 1
    return found


@pytest.mark.parametrize("collapse", [0.10, 0.15])
@pytest.mark.parametrize("points", [1, 4])
def test_storage_that_collapsed_once_never_has_no_regression(collapse: float, points: int) -> None:
    found = conclusions(collapse, points=points, comparisons=60)
    assert found[Conclusion.NO_REGRESSION, True] == 0
    assert sum(number for (_, has_collapsed), number in found.items() if has_collapsed) > 10


def test_storage_that_never_collapses_has_no_regression_as_before() -> None:
    found = conclusions(0, points=4, comparisons=60)
    assert found[Conclusion.NO_REGRESSION, False] >= 54
    assert found[Conclusion.REGRESSION, False] <= 1
