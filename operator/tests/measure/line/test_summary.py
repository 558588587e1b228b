"""The verdict of a search over the trials of its probes."""

from typing import Any

import pytest

from plimsoll.api.line import Ending, Line, Probe, ProbeOutcome
from plimsoll.api.names import AbortReason, Outcome, Verdict
from plimsoll.api.result import Abort, Finding, Trial
from plimsoll.measure.line.search import Progress
from plimsoll.measure.line.summary import summarise_search
from plimsoll.measure.summary import PointNumbers

LINE = Line(ending=Ending.PRECISE, probes=4, counted=4, estimate=1000, low=950, high=1050)
MET, LATE, UNKNOWN = ProbeOutcome.MET, ProbeOutcome.LATE, ProbeOutcome.UNKNOWN


def probe(
    number: int,
    load: float,
    judged: ProbeOutcome,
    verdict: Verdict = Verdict.VALID,
    attempt: int = 0,
    reason: str = "SlowOps",
    abort: AbortReason | None = None,
) -> Trial:
    found = [] if verdict is Verdict.VALID else [Finding(reason=reason, verdict=verdict, message="m", clients=())]
    return Trial(
        pass_number=number,
        attempt=attempt,
        epoch="e",
        clients=(0,),
        probe=Probe(offered=load, outcome=judged),
        outcome=Outcome.MEASURED if abort is None else Outcome.ABORTED,
        started_at="2026-01-01T00:00:00.000Z",
        finished_at="2026-01-01T00:00:00.000Z",
        abort=None if abort is None else Abort(reason=abort, message="m"),
        verdict=verdict,
        findings=tuple(found),
    )


PROBES = (probe(0, 500, MET), probe(1, 1000, MET), probe(2, 2000, LATE), probe(3, 1400, LATE))


def judged(*trials: Trial, line: Line = LINE) -> PointNumbers:
    return summarise_search(trials, Progress(line=line, next_load=None))


def reasons(*trials: Trial, line: Line = LINE) -> list[str]:
    return [finding.reason for finding in judged(*trials, line=line).findings]


def test_a_search_whose_probes_all_count_is_valid() -> None:
    assert (judged(*PROBES).verdict, judged(*PROBES).findings) == (Verdict.VALID, ())


def test_a_search_whose_loads_were_tried_until_they_were_valid_is_suspect() -> None:
    again = [probe(n, 500, UNKNOWN, Verdict.INVALID, attempt=0, reason="ClientStalled") for n in (4, 5)]
    done = [probe(n, 500, MET, attempt=1) for n in (4, 5)]
    numbers = judged(*PROBES, *again, *done)
    (finding,) = numbers.findings
    assert (numbers.verdict, finding.reason) == (Verdict.SUSPECT, "AttemptsReplaced")
    assert finding.message.startswith("2 of 8 attempts: ClientStalled (probes 4 and 5); fix")


def test_where_no_probe_counts_nothing_is_said_of_attempts() -> None:
    lost = [probe(0, 500, UNKNOWN, Verdict.INVALID, attempt=n, reason="ToolFailed") for n in range(3)]
    numbers = judged(*lost)
    assert [finding.reason for finding in numbers.findings] == ["ToolFailed", "NoTrialCounts"]
    assert numbers.verdict is Verdict.INVALID


@pytest.mark.parametrize("reason", [AbortReason.INTERRUPTED, AbortReason.CONDUCTOR_RESTARTED])
def test_interruptions_make_no_search_suspect(reason: AbortReason) -> None:
    lost = probe(4, 500, UNKNOWN, Verdict.INVALID, abort=reason)
    assert reasons(*PROBES, lost, probe(4, 500, MET, attempt=1)) == []


def test_a_search_with_a_probe_that_is_not_trustworthy_is_suspect() -> None:
    numbers = judged(*PROBES, probe(4, 500, UNKNOWN, Verdict.INVALID, reason="ClientStalled"))
    (finding,) = numbers.findings
    assert (numbers.verdict, finding.reason) == (Verdict.SUSPECT, "PassesMissing")
    assert finding.message.startswith("1 of 5 probes do not count: ClientStalled in 1 probe; fix the causes")


def test_reasons_of_probes_come_before_what_the_search_lacks() -> None:
    again = [probe(4, 1000, MET, Verdict.INVALID, reason="ToolFailed"), probe(4, 1000, MET, Verdict.SUSPECT, attempt=1)]
    missing = probe(5, 1000, UNKNOWN, Verdict.INVALID, reason="ClientStalled")
    drifting = LINE.model_copy(update={"ending": Ending.DRIFTING})
    numbers = summarise_search([*PROBES, *again, missing], Progress(line=drifting, next_load=None, evidence=100))
    expected = ["SlowOps", "Drifting", "AttemptsReplaced", "PassesMissing"]
    assert [finding.reason for finding in numbers.findings] == expected


def test_too_few_operations_make_a_search_suspect_only_if_it_gives_up() -> None:
    few = [probe(n, 10 * n, UNKNOWN) for n in (4, 5)]
    assert reasons(*PROBES, *few) == []
    gave_up = LINE.model_copy(update={"ending": Ending.PROBES_DO_NOT_COUNT, "estimate": None, "low": None})
    assert reasons(*PROBES, *few, line=gave_up) == ["PassesMissing"]
    assert reasons(*few, line=gave_up) == ["NoTrialCounts"]


@pytest.mark.parametrize(
    ("load", "outcome", "is_reported"),
    [
        (1490, LATE, True),
        (1510, LATE, False),  # an overload on purpose
        (20_000, LATE, False),
        (20_000, MET, True),  # unexpected, so it moves the line
        (670, MET, True),
        (660, MET, False),
        (10, MET, False),
        (10, LATE, True),
    ],
)
def test_suspect_probes_far_from_the_line_make_it_suspect_only_if_their_outcome_is_unexpected(
    load: float,
    outcome: ProbeOutcome,
    is_reported: bool,  # noqa: FBT001 - a case
) -> None:
    suspect = probe(4, load, outcome, Verdict.SUSPECT)
    assert reasons(*PROBES, suspect) == ["SlowOps"] * is_reported


def test_an_interval_wider_than_that_decides_what_is_next_to_the_line() -> None:
    wide = LINE.model_copy(update={"low": 400, "high": 3000})
    assert reasons(*PROBES, probe(4, 2900, LATE, Verdict.SUSPECT), line=wide) == ["SlowOps"]
    assert reasons(*PROBES, probe(4, 3100, LATE, Verdict.SUSPECT), line=wide) == []
    assert reasons(*PROBES, probe(4, 410, MET, Verdict.SUSPECT), line=wide) == ["SlowOps"]
    assert reasons(*PROBES, probe(4, 390, MET, Verdict.SUSPECT), line=wide) == []


@pytest.mark.parametrize("ending", [Ending.NEVER_BROKE, Ending.BROKEN_AT_FIRST])
def test_without_an_estimate_its_bound_takes_its_place(ending: Ending) -> None:
    bound: dict[str, Any] = {"low": 2000.0} if ending is Ending.NEVER_BROKE else {"high": 2000.0}
    line = Line(ending=ending, probes=4, counted=4, **bound)
    assert reasons(probe(4, 1400, MET, Verdict.SUSPECT), line=line) == ["SlowOps"]
    assert reasons(probe(4, 1300, MET, Verdict.SUSPECT), line=line) == []
    assert reasons(probe(4, 2900, LATE, Verdict.SUSPECT), line=line) == ["SlowOps"]
    assert reasons(probe(4, 3100, LATE, Verdict.SUSPECT), line=line) == []


def test_where_nothing_is_known_of_the_line_each_suspect_probe_counts() -> None:
    unknown = Line(ending=Ending.PROBES_USED_UP, probes=1, counted=1)
    assert reasons(probe(0, 10, MET, Verdict.SUSPECT), line=unknown) == ["SlowOps"]
