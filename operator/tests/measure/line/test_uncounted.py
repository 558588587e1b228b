"""Why probes do not count, in words."""

from plimsoll.api.line import Ending, Line, ProbeOutcome
from plimsoll.api.names import Verdict
from plimsoll.api.result import Finding, Trial
from plimsoll.measure.line.search import Progress
from plimsoll.measure.line.summary import summarise_search, uncounted_text
from support.results import died, probe


def invalid(number: int, *reasons: str) -> Trial:
    findings = tuple(Finding(reason=reason, verdict=Verdict.INVALID, message="m") for reason in reasons)
    return probe(number, 500, verdict=Verdict.INVALID).model_copy(update={"findings": findings})


def test_the_most_frequent_reasons_come_first() -> None:
    trials = [invalid(0, "Stalled"), invalid(1, "Stalled", "RuntimeTooShort"), probe(2, 500)]
    assert uncounted_text(trials) == "Stalled in 2 probes, RuntimeTooShort in 1"


def test_only_the_last_attempt_at_a_probe_decides() -> None:
    repeated = probe(0, 500).model_copy(update={"attempt": 1})
    assert uncounted_text([died(0, 500), repeated]) == ""
    assert uncounted_text([died(0, 500)]).endswith(" in 1 probe")


def test_too_few_operations_have_a_remedy() -> None:
    few = [probe(number, 500, ProbeOutcome.UNKNOWN, p99=None) for number in range(3)]
    assert uncounted_text(few) == "too few operations for the percentile (raise runtimeSeconds) in 3 probes"


def test_clients_that_offer_too_little_have_a_remedy_of_their_own() -> None:
    trials = [probe(number, 500, ProbeOutcome.NOT_OFFERED, achieved=100) for number in range(4)]
    assert uncounted_text(trials).startswith("clients offered less than half of the load (give each at least two CPUs")


def test_a_search_without_a_probe_that_counts_is_invalid_and_says_why() -> None:
    trials = [invalid(number, "RuntimeTooShort") for number in range(5)]
    gave_up = Line(ending=Ending.PROBES_DO_NOT_COUNT, probes=5, counted=0)
    numbers = summarise_search(trials, Progress(line=gave_up, next_load=None))
    assert numbers.verdict is Verdict.INVALID
    assert "no probe counts, of 5: RuntimeTooShort in 5 probes" in next(
        item.message for item in numbers.findings if item.reason == "NoTrialCounts"
    )


def test_a_search_that_gave_up_after_probes_that_count_is_suspect() -> None:
    trials = [probe(0, 500), *(invalid(number, "Stalled") for number in range(1, 6))]
    gave_up = Line(ending=Ending.PROBES_DO_NOT_COUNT, probes=6, counted=1)
    assert summarise_search(trials, Progress(line=gave_up, next_load=None)).verdict is Verdict.SUSPECT
