"""A toy check: tools that end long after their measurement. It follows the recipe "Add a check" of CONTRIBUTING.md."""

import pytest

from plimsoll.api.names import Verdict
from plimsoll.measure.checks import judge
from plimsoll.measure.checks.check import CheckedValues, Evidence, TrialCheck, client_value
from plimsoll.measure.checks.judge import CHECKS, TRIAL_CHECKS, markdown_table
from plimsoll.measure.timeline import NANOSECONDS
from support.client_documents import RAMP, RUNTIME, SECOND, T0, document, measure, only

END = T0 + (RAMP + RUNTIME) * SECOND


@TrialCheck(
    reason="ToySlowEnd",
    what="time from the end of the measurement to the end of the tool",
    unit="s",
    suspect=2,
    invalid=10,
    remedy="look for storage that is slow to close",
)
def slow_end(evidence: Evidence) -> CheckedValues:
    for item in evidence.measured:
        yield client_value(item.client, (item.answer.document.finished_at - item.interval.end) / NANOSECONDS)


@pytest.fixture(autouse=True)
def added(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judge, "TRIAL_CHECKS", (*TRIAL_CHECKS, slow_end))


@pytest.mark.parametrize(("seconds", "verdict"), [(2.5, Verdict.SUSPECT), (10.5, Verdict.INVALID)])
def test_a_value_beyond_a_limit_is_a_finding_with_client_value_limit_and_remedy(
    seconds: float, verdict: Verdict
) -> None:
    late = document(1, finished_at=END + int(seconds * SECOND))
    finding = only(measure(document(0), late), "ToySlowEnd")
    limit = 2 if verdict is Verdict.SUSPECT else 10
    assert (finding.verdict, finding.clients) == (verdict, (1,))
    assert finding.message.startswith(
        f"client 1: time from the end of the measurement to the end of the tool: {seconds}"
    )
    assert f"(limit {limit} s)" in finding.message
    assert finding.message.endswith("look for storage that is slow to close")


def test_a_value_equal_to_its_limit_passes() -> None:
    assert measure(document(0, finished_at=END + 2 * SECOND)).findings == ()


def test_the_table_has_its_row() -> None:
    row = "| `ToySlowEnd` | time from the end of the measurement to the end of the tool | above 2 s | above 10 s |"
    assert row in markdown_table((*CHECKS, slow_end))
