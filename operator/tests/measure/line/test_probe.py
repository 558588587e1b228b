"""The load that the storage met in a trial."""

import pytest

from plimsoll.api.line import ProbeOutcome
from plimsoll.api.result import Trial, Window
from plimsoll.measure.line.search import arrived_load, tried_loads
from support.results import probe


def lasting(seconds: float, trial: Trial, milliseconds: float) -> Trial:
    """Return the trial with that window and mean latency."""
    window = Window(
        start_nanoseconds=0,
        end_nanoseconds=int(seconds * 1e9),
        last_end_nanoseconds=int(seconds * 1e9),
        seconds=seconds,
        whole_seconds=seconds,
        spread_seconds=0,
        overlap=1,
    )
    (one,) = trial.operations
    latency = one.latency.model_copy(update={"mean_nanoseconds": 1e6 * milliseconds})
    operations = (one.model_copy(update={"latency": latency}),)
    return trial.model_copy(update={"window": window, "operations": operations})


def arrived(outcome: ProbeOutcome, achieved: float, milliseconds: float = 1) -> float:
    trial = lasting(10, probe(0, 1000, outcome, achieved=achieved), milliseconds)
    assert trial.probe is not None
    return arrived_load(trial, trial.probe)


@pytest.mark.parametrize("outcome", [ProbeOutcome.MET, ProbeOutcome.LATE])
def test_what_a_client_did_not_offer_was_not_met(outcome: ProbeOutcome) -> None:
    assert arrived(outcome, 800) == pytest.approx(800, rel=0.001)


def test_what_was_in_flight_at_the_end_had_arrived() -> None:
    """Of a number that grew evenly to 100, the mean is 50."""
    assert arrived(ProbeOutcome.LATE, 500, milliseconds=100) == pytest.approx(510)
    assert arrived(ProbeOutcome.LATE, 995, milliseconds=100) == 1000, "no more than was offered"


@pytest.mark.parametrize("outcome", [ProbeOutcome.DEPTH_FULL, ProbeOutcome.NOT_ACHIEVED, ProbeOutcome.UNKNOWN])
def test_otherwise_the_load_is_the_offered_one(outcome: ProbeOutcome) -> None:
    assert arrived(outcome, 300) == 1000


def test_a_probe_whose_clients_offered_too_little_does_not_count_and_is_not_one_with_too_few_operations() -> None:
    few, starved = tried_loads([probe(0, 500, ProbeOutcome.UNKNOWN), probe(1, 500, ProbeOutcome.NOT_OFFERED)])
    assert (few.counts, few.has_too_few) == (False, True)
    assert (starved.counts, starved.has_too_few) == (False, False)
