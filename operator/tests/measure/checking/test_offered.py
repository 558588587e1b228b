"""A rate that was offered outside of a search: which part of it arrived, and whether it found room."""

from dataclasses import replace
from random import Random

import pytest

from measure.checking.test_search_load import working
from plimsoll.api.names import Operation, Verdict
from plimsoll.measure.intake import Offer
from plimsoll.measure.trial import TrialNumbers
from plimsoll.plan.refusals import offer_of
from plimsoll.tools.fio.parameters import Arrivals, FioParameters, Pattern
from support.client_documents import RUNTIME, document, measure

RATE = Offer(load=1000, at_random=False)
ARRIVALS = Offer(load=1000, depth=64)


def messages(numbers: TrialNumbers) -> dict[str, str]:
    return {finding.reason: finding.message for finding in numbers.findings}


@pytest.mark.parametrize("offer", [RATE, ARRIVALS])
def test_a_trial_says_which_part_of_its_rate_arrived(offer: Offer) -> None:
    numbers = measure(document(0, working(1000)), offer=offer)
    assert (numbers.verdict, numbers.probe) == (Verdict.VALID, None)
    assert numbers.load is not None
    assert (numbers.load.offered, numbers.load.achieved) == (1000, 1000)
    assert numbers.load.depth_full_percent == (0 if offer is ARRIVALS else None)
    assert measure(document(0, working(1000))).load is None, "nothing was offered"
    # It stays known if the trial has no numbers.
    without = measure(planned=1, offer=offer).load
    assert without is not None
    assert (without.offered, without.achieved) == (1000, None)


@pytest.mark.parametrize("offer", [RATE, ARRIVALS])
def test_less_than_searches_accept_is_not_achieved(offer: Offer) -> None:
    numbers = measure(document(0, working(940)), offer=offer)
    assert numbers.verdict is Verdict.SUSPECT
    least, enough = ("97.9 % but for chance", 985) if offer is ARRIVALS else ("99 %", 992)
    assert messages(numbers)["NotAchieved"].startswith(
        f"940 of 1000 operations per second that were due completed: 94 % (at least {least}); offer"
    )
    assert numbers.verdict is not measure(document(0, working(enough)), offer=offer).verdict


def test_what_is_due_after_equal_times_is_not_left_to_chance() -> None:
    """Of random arrivals, 10 a second for 20 s, three deviations are missing by chance; of even ones none is."""
    slow = Offer(load=10, depth=1, at_random=False)
    assert messages(measure(document(0, working(9)), offer=slow))["NotAchieved"].startswith(
        "9 of 10 operations per second that were due completed: 90 % (at least 99 %)"
    )
    assert not messages(measure(document(0, working(9, value=50_000)), offer=replace(slow, at_random=True)))
    # As many as are in flight may be due and not completed.
    assert not messages(measure(document(0, working(9)), offer=replace(slow, depth=32)))


def test_more_than_was_due_is_another_load() -> None:
    assert messages(measure(document(0, working(1100)), offer=RATE))["NotAchieved"].startswith(
        "1100 of 1000 operations per second that were due completed: 110 % (at most 105 %); offer"
    )
    assert not messages(measure(document(0, working(1040)), offer=RATE)), "caught up from before the window"
    assert not messages(measure(document(0, working(1100)), offer=ARRIVALS)), "they came at random"


def test_each_client_has_its_part_of_the_rate() -> None:
    numbers = measure(document(0, working(500)), document(1, working(300)), document(2, working(500)), offer=RATE_OF_3)
    (finding,) = [finding for finding in numbers.findings if finding.reason == "NotAchieved"]
    assert finding.clients == (1,)
    assert finding.message.startswith("client 1: 300 of 500 operations per second")


RATE_OF_3 = Offer(load=1500, at_random=False)


def test_a_full_depth_hides_latency_although_all_arrives() -> None:
    numbers = measure(document(0, working(1000, full=0.03)), offer=ARRIVALS)
    assert messages(numbers)["DepthFull"].startswith(
        "3 % of the submissions filled ioDepth, 64 on each client (limit 1 %)"
    )
    assert numbers.verdict is Verdict.SUSPECT
    assert not messages(measure(document(0, working(1000, full=0.009)), offer=ARRIVALS))
    assert (
        "how often ioDepth, 64" in messages(measure(document(0, working(1000, full=None)), offer=ARRIVALS))["DepthFull"]
    )
    # After equal times, a tool does at once what it could not do in time: a queue fills for a moment on good storage.
    assert not messages(measure(document(0, working(1000, full=0.09)), offer=RATE))


def test_at_a_depth_of_1_what_is_in_flight_takes_the_only_place() -> None:
    """Random arrivals see what is in flight on average: 100 a second of 1 ms find it taken one time in ten."""
    one = Offer(load=100, depth=1)
    numbers = measure(document(0, working(100, full=1.0)), offer=one)
    assert messages(numbers)["DepthFull"].startswith("10 % of the time an operation was in flight, and ioDepth is 1")
    assert not messages(measure(document(0, working(100, value=50_000, full=1.0)), offer=one))


@pytest.mark.parametrize("rate", [100, 1000, 4000])
def test_random_arrivals_that_all_come_are_achieved(rate: int) -> None:
    """As many trials fall short by chance as in searches: one in 741, of each client one in 741 among all."""
    numbers = Random(f"arrivals {rate}")  # noqa: S311 - numbers, not secrets
    short = 0
    for _ in range(200):
        seconds = tuple(float(round(numbers.gauss(rate, rate**0.5))) for _ in range(RUNTIME))
        short += "NotAchieved" in messages(measure(document(0, working(*seconds)), offer=Offer(load=rate, depth=64)))
    assert short <= 2


def test_the_offer_of_a_point_is_what_its_tool_was_told() -> None:
    assert offer_of(FioParameters(), 3) is None
    even = FioParameters(pattern=Pattern.RANDRW, read_percent=70, jobs=2, rate_iops=1001)
    # fio takes whole numbers of each job and direction: 350 reads and 150 writes.
    offer = offer_of(even, 3)
    assert offer is not None
    assert (offer.load, offer.is_open_loop, offer.depth) == (3000, False, 2)
    assert offer.shares == {Operation.READ: 0.7, Operation.WRITE: 0.3}
    random = offer_of(even.model_copy(update={"jobs": 1, "arrivals": Arrivals.POISSON}), 3)
    assert random is not None
    assert random.is_open_loop
    assert random.load == pytest.approx(3003)
