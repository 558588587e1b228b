"""Trials of a point that contradict each other, and clients that are not the same in all of them."""

import random
from collections.abc import Sequence

import pytest

from plimsoll.api.names import AbortReason, Outcome, Verdict
from plimsoll.api.result import Abort, ClientPlace, Finding, Trial
from plimsoll.measure.checks.repetitions import judge_agreement, judge_clients, new_places, places_of, without_names
from plimsoll.measure.intake import receive
from plimsoll.measure.sample import DeviceUse
from support.client_documents import document, facts, quiet_host

POINTS = 1000


def judged(*rates: float, other: Sequence[float] = ()) -> list[str]:
    return [finding.reason for finding in judge_agreement({"read": rates} | ({"write": other} if other else {}))]


def share_marked(trials: int, variation: float, drift: float = 0.0, points: int = POINTS) -> float:
    """Return which share of points is marked whose rates vary so much, and change by `drift` from first to last."""
    chance = random.Random(f"{trials} {variation} {drift}")  # noqa: S311 - numbers, not secrets
    marked = 0
    for _ in range(points):
        factors = [1 + drift * (number / (trials - 1) - 0.5) for number in range(trials)]
        marked += bool(judged(*(10_000 * factor * (1 + variation * chance.gauss(0, 1)) for factor in factors)))
    return marked / points


@pytest.mark.parametrize("trials", [2, 3, 5, 10])
@pytest.mark.parametrize("variation", [0.01, 0.03, 0.05, 0.08])
def test_healthy_points_are_hardly_ever_marked(trials: int, variation: float) -> None:
    """In the long run in at most 1.2 % of points (8 trials that vary by 8 %)."""
    assert share_marked(trials, variation) <= 0.02


@pytest.mark.parametrize(("trials", "variation", "least"), [(3, 0.5, 0.55), (5, 0.4, 0.8), (10, 0.3, 0.95)])
def test_rates_that_vary_wildly_are_found_the_more_often_the_more_trials_there_are(
    trials: int, variation: float, least: float
) -> None:
    assert share_marked(trials, variation, points=300) >= least


@pytest.mark.parametrize(("trials", "drift"), [(5, 0.4), (7, 0.25), (10, 0.2)])
def test_rates_that_drift_are_found_under_noise_of_three_percent(trials: int, drift: float) -> None:
    assert share_marked(trials, 0.03, drift, points=300) >= 0.9


def test_a_change_that_does_not_matter_is_none_however_sure_it_is() -> None:
    assert judged(100, 101, 102, 103, 104, 105, 106, 107, 108, 109) == []
    assert judged(100, 102, 104, 106, 108, 110, 112, 114, 116, 118) == ["Drifting"]


def test_burst_credits_and_rates_that_fall_from_trial_to_trial_are_found() -> None:
    assert judged(15_000, 1_500, 1_500) == ["Scattered"]
    assert judged(1_500, 1_500, 15_000) == ["Scattered"]
    assert judged(15_000, 10_500, 6_000) == ["Scattered"], "three trials are too few for a trend"
    assert judged(15_000, 12_750, 10_500, 8_250, 6_000) == ["Drifting", "Scattered"]
    assert judged(6_000, 6_300, 6_700, 7_000, 7_200) == ["Drifting"]


def test_the_messages_have_the_numbers_the_limits_and_a_remedy() -> None:
    drifting, scattered = judge_agreement({"read operations/s": [15_000, 12_700, 10_500, 8_250, 6_000]})
    assert drifting.message.startswith(
        "read operations/s fell from 14980 to 6000 over 5 trials, by 85.6 % of the mean (p = 8.68e-08) (limit 10 %); "
        "precondition the storage"
    )
    assert scattered.message.startswith(
        "read operations/s of 5 trials lie between 6000 and 15000: their coefficient of variation is 33.8 %, and at "
        "least 17.9 % with 99 % confidence (limit 10 %); compare the trials"
    )


@pytest.mark.parametrize(
    ("trials", "others", "loss"), [(10, 2, 0.6), (10, 1, 0.6), (20, 1, 0.6), (20, 2, 0.3), (10, 5, 0.3), (20, 10, 0.25)]
)
def test_outliers_and_two_states_are_found_among_many_trials(trials: int, others: int, loss: float) -> None:
    chance, found = random.Random(f"{trials} {others} {loss}"), 0  # noqa: S311 - numbers, not secrets
    for _ in range(200):
        rates = [(1 - loss if number < others else 1) * chance.gauss(100, 3) for number in range(trials)]
        found += "TrialsApart" in judged(*chance.sample(rates, trials))
    assert found >= 190


def test_two_states_that_hardly_differ_are_no_finding_however_clear_they_are() -> None:
    assert judged(100, 119, 100, 119, 100, 119, 100, 119) == []
    assert judged(100, 125, 100, 125, 100, 125, 100, 125) == ["TrialsApart"]


def test_two_trials_contradict_each_other_if_they_differ_by_more_than_half() -> None:
    assert judged(15_000, 1_500) == ["Scattered"]
    assert judged(1_500, 15_000) == ["Scattered"]
    assert judged(1_000, 1_500) == ["Scattered"]
    assert judged(1_000, 1_400) == []
    assert judged(15_000, 0) == ["Scattered"]
    assert judged(0, 0, 0, 0, 0) == []
    assert judge_agreement({}) == ()


def of_latencies(*values: float) -> list[str]:
    """Return the findings on a p99 in milliseconds, of a workload whose rate is that of its limit."""
    findings = judge_agreement({"read": [1000] * len(values)}, {"read p99": [1e6 * value for value in values]})
    return [finding.reason for finding in findings]


def test_latencies_of_a_workload_that_sets_its_rate_are_judged_with_twice_the_limits() -> None:
    assert of_latencies(1, 1.1, 0.9) == []
    assert of_latencies(1, 1.6) == []
    assert of_latencies(1, 10) == ["Scattered"]
    assert of_latencies(1, 1, 9) == ["Scattered"]
    assert of_latencies(1, 1.05, 1.1, 1.15, 1.2) == []
    assert of_latencies(1, 1.1, 1.2, 1.3, 1.4) == ["Drifting"]
    assert of_latencies(1, 1.01, 1.02, 1.01, 1, 1.02, 1.01, 1, 1.35, 1.36) == []
    assert of_latencies(1, 1.01, 1.02, 1.01, 1, 1.02, 1.01, 1, 1.65, 1.66) == ["TrialsApart"]
    (finding,) = judge_agreement({}, {"read p99": [1e6, 1e7]})
    assert finding.message.startswith("read p99 of 2 trials lie between 1.00 ms and 10.0 ms: ")
    assert "(limit 20 %)" in finding.message


@pytest.mark.parametrize("trials", [2, 3, 5, 10])
def test_latencies_that_vary_by_ten_percent_are_hardly_ever_marked(trials: int) -> None:
    chance = random.Random(trials)  # noqa: S311 - numbers, not secrets
    assert sum(bool(of_latencies(*(chance.gauss(5, 0.5) for _ in range(trials)))) for _ in range(500)) <= 8


def of_closed_loop(*values: float) -> list[str]:
    """Return the findings on a p99 in milliseconds, of storage that sets the rate."""
    findings = judge_agreement(
        {"read": [1000] * len(values)}, {"read p99": [1e6 * value for value in values]}, offers_load=False
    )
    return [finding.reason for finding in findings]


def test_latencies_of_a_closed_loop_are_judged_by_their_scatter_with_three_times_the_limit() -> None:
    assert of_closed_loop(47, 279, 48, 279, 49) == ["Scattered"], "two states of the tail"
    assert of_closed_loop(47, 48, 279) == ["Scattered"], "a mean that no trial had"
    assert of_closed_loop(47, 48, 47, 49, 94) == [], "a hiccup that doubles it"
    assert of_closed_loop(47, 55, 63, 71, 79) == [], "a drift that the rate would show"


@pytest.mark.parametrize("trials", [3, 5, 10])
def test_tails_that_vary_by_thirty_percent_are_hardly_ever_marked(trials: int) -> None:
    chance = random.Random(f"tails {trials}")  # noqa: S311 - numbers, not secrets
    marked = sum(bool(of_closed_loop(*(chance.lognormvariate(3, 0.3) for _ in range(trials)))) for _ in range(POINTS))
    assert marked <= 0.02 * POINTS


def test_chance_is_divided_among_the_rates_of_a_point() -> None:
    """22 % of three trials are beyond chance for one rate, not for the worse of two."""
    factor = 0.22
    rates = (1 - factor, 1.0, 1 + factor)
    assert judged(*rates) == ["Scattered"]
    assert judged(*rates, other=(1.0, 1.0, 1.0)) == []
    assert judged(*rates, other=(0.0, 0.0, 0.0)) == ["Scattered"], "a rate of nothing is none"
    assert judged(1.0, 1.0, 1.0, other=(1.0, 9.0, 1.0)) == ["Scattered"]
    assert judged(1_000, 1_500) == ["Scattered"]
    assert judged(1_000, 1_500, other=(1.0, 1.0)) == []


def trial(number: int, *places: ClientPlace, attempt: int = 0, abort: bool = False) -> Trial:
    return Trial(
        pass_number=number,
        attempt=attempt,
        epoch="e",
        clients=(0, 1),
        places=places,
        outcome=Outcome.ABORTED if abort else Outcome.MEASURED,
        started_at="",
        finished_at="",
        abort=Abort(reason=AbortReason.CLIENT_LOST, message="") if abort else None,
        verdict=Verdict.INVALID if abort else Verdict.VALID,
    )


def place(client: int, node: str, volume: str | None = None) -> ClientPlace:
    return ClientPlace(client=client, node=node, volume=volume)


def moved(*trials: Trial) -> tuple[Finding, ...]:
    return judge_clients(trials, [trial for trial in trials if trial.abort is None])


def test_a_client_on_another_node_is_named_with_its_passes() -> None:
    first = trial(0, place(0, "a", "disk 1"), place(1, "b", "disk 2"))
    (finding,) = moved(first, trial(1), trial(2, place(1, "c", "disk 2")))
    assert (finding.reason, finding.verdict, finding.clients) == ("ClientsChanged", Verdict.SUSPECT, (1,))
    assert finding.message.startswith(
        "client 1: was replaced by one on another node: b in passes 0 and 1, c in pass 2; find out why"
    )


def test_a_client_on_another_volume_of_the_same_node_is_named_too() -> None:
    first = trial(0, place(0, "a", "disk 1"), place(1, "b", "disk 2"))
    (finding,) = moved(first, trial(1, place(0, "a", "disk 3"), place(1, "c", "disk 2")))
    assert finding.clients == (0, 1)
    assert "client 0: was replaced by one on another volume: disk 1 in pass 0, disk 3 in pass 1" in finding.message
    assert "also client 1" in finding.message


def test_clients_that_stay_or_are_replaced_in_place_are_no_finding() -> None:
    first = trial(0, place(0, "a", "disk 1"), place(1, "b"))
    assert moved(first, trial(1), trial(2)) == ()
    assert moved(first, trial(1, place(0, "a", "disk 1"), place(1, "b"))) == ()
    assert moved(first, trial(1, place(0, "a"), place(1, "b", "disk 2"))) == (), "a volume that was unknown"


def test_only_places_in_trials_that_count_matter() -> None:
    first, away = trial(0, place(0, "a")), trial(1, place(0, "b"), abort=True)
    assert moved(first, away, trial(1, place(0, "a"), attempt=1)) == ()
    assert [finding.clients for finding in moved(first, away, trial(1, attempt=1))] == [(0,)]


def test_a_search_names_its_probes() -> None:
    trials = [trial(0, place(0, "a")), trial(1), trial(2, place(0, "b"))]
    (finding,) = judge_clients(trials, trials, "probe")
    assert "a in probes 0 and 1, b in probe 2" in finding.message


def test_only_new_places_are_recorded() -> None:
    before = [trial(0, place(0, "a", "disk 1"), place(1, "b", "disk 2")), trial(1, place(1, "c", "disk 2"))]
    assert new_places([], before[0].places) == before[0].places
    assert new_places(before, [place(0, "a", "disk 1"), place(1, "c", "disk 2")]) == ()
    assert new_places(before, [place(0, "a"), place(1, "c")]) == (), "volumes that are unknown now"
    back = place(1, "b", "disk 2")
    assert new_places(before, [place(0, "a", "disk 1"), back]) == (back,)


def test_digests_of_places_show_who_moved_as_their_names_do() -> None:
    before = without_names(trial(0, place(0, "a", "disk 1"), place(1, "b"), place(2, "c", "disk 3")))
    assert before.places == ()
    same = [place(0, "a", "disk 1"), place(1, "b"), place(2, "c")]
    assert new_places([before], same) == ()
    assert moved(before, trial(1, *same)) == ()
    assert without_names(trial(1)) == trial(1)
    (finding,) = moved(before, trial(1, place(0, "a", "disk 2")), without_names(trial(2, place(1, "d"))))
    assert finding.clients == (0, 1)
    assert "client 0: was replaced by one on another volume: #" in finding.message
    assert "disk 2 in passes 1 and 2" in finding.message


def test_a_place_is_the_node_and_what_identifies_the_volume_or_its_number() -> None:
    device = DeviceUse(number="252:16", read=0, written=0, busy=0, queue=0)
    documents = {
        0: document(0, host=quiet_host(device=device)),
        1: document(1, host=quiet_host(device=device).model_copy(update={"volume": "wwid 7"})),
        2: document(2, host=None),
        3: document(3),
    }
    measured = receive(facts(4), documents).measured
    assert places_of(measured, {3: "node-3", 7: "server"}) == (
        place(0, "node-0", "252:16"),
        place(1, "node-1", "wwid 7"),
        place(2, "node-2"),
        place(3, "node-3"),
        place(7, "server"),
    )
