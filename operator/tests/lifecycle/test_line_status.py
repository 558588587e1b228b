"""The line of a search in a run's status, and in the columns of its result."""

from datetime import UTC, datetime

import pytest

from plimsoll.api.line import Ending, Line
from plimsoll.api.names import Verdict
from plimsoll.api.reasons.reason import Reason
from plimsoll.api.result import Finding, ResultStatus
from plimsoll.api.run import decode_run
from plimsoll.api.status import (
    MAX_HEADLINES,
    BenchmarkRunStatus,
    CurrentTrial,
    HeadlineLatency,
    RunState,
    TrialKey,
)
from plimsoll.conductor.sink import result_display
from plimsoll.lifecycle.children import Measured, digest
from plimsoll.lifecycle.decision import Situation, Stage
from plimsoll.lifecycle.observed import Observed
from plimsoll.lifecycle.run import run_of
from plimsoll.lifecycle.status import progress_message, status_of
from plimsoll.plan.document import Plan
from plimsoll.plan.expand import make_plan
from support.pretend_world import make_run
from support.results import BOUND, GOING_ON, PRECISE, SEARCH, STORM, UNKNOWN, probe, searched
from support.specs import SETTINGS

CALM = "carries 12,400 ± 600 IOPS at p99 <= 5 ms"
NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


def plan_with(searches: int, others: int = 0) -> Plan:
    """Return a plan whose first points are searches."""
    document = make_run("a")
    document["metadata"]["uid"] = "u"
    plan = make_plan(decode_run(document), seed=1)
    plain = plan.points[0]
    points = tuple(
        plain.model_copy(update={"name": f"w-{number:03d}", "line": SEARCH if number < searches else None})
        for number in range(searches + others)
    )
    return plan.model_copy(update={"points": points, "order": (tuple(range(len(points))),)})


def status_with(plan: Plan, **results: Measured) -> BenchmarkRunStatus:
    body = make_run("a")
    run = run_of(
        {**body, "metadata": {**body["metadata"], "uid": "u", "creationTimestamp": "2026-01-31T12:00:00Z"}}, SETTINGS
    )
    found = {name.replace("_", "-"): result for name, result in results.items()}
    seen = Observed(plan=plan, state=RunState(trials_total=len(plan.points)), results=found, warnings={})
    known = status_of(run, seen, Situation(stage=Stage.MEASURING, reason=Reason.MEASURING, message="m"), NOON)
    return BenchmarkRunStatus.model_validate({name: value for name, value in known.items() if value is not None})


def measured(line: Line, verdict: Verdict | None = Verdict.VALID) -> Measured:
    return digest(searched(line, verdict=verdict).status)


def rated() -> Measured:
    latency = HeadlineLatency(p99=2_000_000)
    operation = {"operation": "read", "iops": 12_000, "bytes_per_second": 4096, "latency_nanoseconds": latency}
    return Measured(verdict=Verdict.VALID, operations=(operation,))


def test_a_headline_has_the_line() -> None:
    (entry,) = status_with(plan_with(1), w_000=measured(PRECISE)).headline
    assert entry.line is not None
    assert entry.line.text == "carries 12,400 ± 600 IOPS at p99 <= 5 ms"
    assert (entry.line.ending, entry.line.estimate) == (Ending.PRECISE, 12_412.3)
    assert (entry.iops, entry.operation, entry.latency_nanoseconds) == (None, None, None)


def test_lines_stand_beside_rates() -> None:
    status = status_with(plan_with(1, others=1), w_000=measured(BOUND), w_001=rated())
    assert [entry.line.text if entry.line else entry.iops for entry in status.headline] == [
        "carries more than 200,000 IOPS at p99 <= 5 ms",
        12_000,
    ]
    assert status.display is not None
    assert (status.display.iops, status.display.p99) == ("12,000", "2.00 ms")
    assert status.display.line == "more than 200,000 at p99 <= 5 ms"


def test_several_lines_are_counted() -> None:
    display = status_with(plan_with(3), w_000=measured(PRECISE), w_001=measured(BOUND), w_002=measured(PRECISE)).display
    assert display is not None
    assert (display.line, display.iops, display.p99) == ("12,400 ± 600 at p99 <= 5 ms +2", "", "")


@pytest.mark.parametrize(
    ("calm", "storm", "texts", "column"),
    [
        (
            measured(PRECISE),
            measured(STORM),
            [f"{CALM}, 7,100 ± 400 while 1 OSD is out", "carries 7,100 ± 400 IOPS at p99 <= 5 ms while 1 OSD is out"],
            "12,400 ± 600 at p99 <= 5 ms, 7,100 ± 400 with 1 OSD out +1",
        ),
        (
            measured(PRECISE),
            measured(UNKNOWN, Verdict.INVALID),
            [f"{CALM}; line while OSDs are away is unknown after 40 probes, none of which counts"],
            "12,400 ± 600 at p99 <= 5 ms, unknown with OSDs away +1",
        ),
        (
            measured(PRECISE),
            Measured(verdict=None),
            [f"{CALM}; line while OSDs are away is not known yet"],
            "12,400 ± 600 at p99 <= 5 ms +1",
        ),
        (
            measured(UNKNOWN, Verdict.INVALID),
            measured(STORM),
            ["carries 7,100 ± 400 IOPS at p99 <= 5 ms while 1 OSD is out"],
            "7,100 ± 400 at p99 <= 5 ms, 1 OSD out +1",
        ),
    ],
)
def test_the_storm_line_stands_beside_its_calm_line(
    calm: Measured, storm: Measured, texts: list[str], column: str
) -> None:
    plan = plan_with(3)
    points = (
        plan.points[0],
        plan.points[2].model_copy(update={"name": "w-000-storm", "calm": "w-000"}),
        plan.points[1],
    )
    status = status_with(
        plan.model_copy(update={"points": points}), w_000=calm, w_001=measured(BOUND), w_000_storm=storm
    )
    lines = {entry.point: entry.line.text for entry in status.headline if entry.line}
    assert [text for point, text in lines.items() if point != "w-001"] == texts
    assert status.display is not None
    assert status.display.line == column


def test_an_invalid_search_has_no_headline() -> None:
    status = status_with(plan_with(1), w_000=measured(PRECISE, Verdict.INVALID))
    assert status.headline == ()
    assert status.display is not None
    assert status.display.line == ""


def test_the_interval_is_shown_while_the_search_goes_on() -> None:
    display = status_with(plan_with(1), w_000=measured(GOING_ON, None)).display
    assert display is not None
    assert display.line == "between 8,000 and 16,000 at p99 <= 5 ms"


def test_the_message_says_how_far_the_search_is() -> None:
    key = TrialKey(point="w-000", pass_number=11, attempt=0)
    current = CurrentTrial(key=key, label="randread 4Ki", clients=(0,), starts_at=1, ends_at=2)
    state = RunState(current=current, trials_done=1, trials_total=3, message="w-000: probe 12 of at most 40")
    expected = "trial 2 of 3: w-000: probe 12 of at most 40 (randread 4Ki)"
    plan = plan_with(1)
    assert progress_message(Observed(plan=plan, state=state, results={}, warnings={})) == expected
    plain = state.model_copy(update={"message": ""})
    assert progress_message(Observed(plan=plan, state=plain, results={}, warnings={})) == (
        "trial 2 of 3: w-000 (randread 4Ki)"
    )
    later = current.model_copy(update={"key": key.model_copy(update={"attempt": 1})})
    again = plain.model_copy(update={"current": later})
    assert progress_message(Observed(plan=plan, state=again, results={}, warnings={})) == (
        "trial 2 of 3: w-000, attempt 2 (randread 4Ki)"
    )


def test_headlines_are_bounded() -> None:
    many = {f"w_{number:03d}": measured(PRECISE) for number in range(MAX_HEADLINES + 5)}
    assert len(status_with(plan_with(len(many)), **many).headline) == MAX_HEADLINES


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (ResultStatus(), {"trials": "0 of at most 40"}),
        (ResultStatus(line=GOING_ON), {"line": "between 8,000 and 16,000 at p99 <= 5 ms", "trials": "3 of at most 40"}),
        (
            ResultStatus(
                line=PRECISE,
                final=True,
                findings=(Finding(reason="Drifting", verdict=Verdict.SUSPECT, message="m"),),
            ),
            {"line": "12,400 ± 600 at p99 <= 5 ms", "trials": "3 of 4", "reason": "Drifting"},
        ),
    ],
)
def test_the_columns_of_a_search(status: ResultStatus, expected: dict[str, str]) -> None:
    assert result_display(status, 5, SEARCH).model_dump(mode="json", exclude_none=True) == expected


@pytest.mark.parametrize(
    ("estimate", "low", "high"), [(1.0, 0.0, 1e-323), (1e300, 0.0, 1.7e308), (0.0, 0.0, 0.0), (0.5, 0.9, 0.1)]
)
def test_a_line_that_no_search_finds_does_not_stop_the_status(estimate: float, low: float, high: float) -> None:
    line = Line(ending=Ending.PRECISE, probes=3, counted=3, estimate=estimate, low=low, high=high)
    result = digest(searched(line, [probe(0, 0.0)]).status)
    (entry,) = status_with(plan_with(1), w_000=result).headline
    assert entry.line is not None
    assert entry.line.text.startswith("carries ")
