"""A rate that was offered outside of a search: which part of it arrived, and whether it found room."""

import math
import re
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from measure.checking.test_search_load import working
from plimsoll.api.names import Operation, Verdict
from plimsoll.measure.histogram import merge_latencies, sample_of
from plimsoll.measure.intake import Offer
from plimsoll.measure.lateness import Lateness, lateness_of
from plimsoll.measure.sample import Gaps
from plimsoll.measure.trial import TrialNumbers
from plimsoll.plan.refusals import offer_of
from plimsoll.tools.fio.parameters import FioParameters, Pattern
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
    assert (
        "110 % (at most 105 % but for chance)"
        in messages(measure(document(0, working(1100)), offer=ARRIVALS))["NotAchieved"]
    )
    few = Offer(load=10, depth=64)
    assert not messages(measure(document(0, working(12, value=50_000)), offer=few)), "three deviations of 200"


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
    assert messages(measure(document(0, working(1000, full=None)), offer=ARRIVALS))["DepthFull"].startswith(
        "how often ioDepth, 64 on each client, was full is unknown; "
    )
    # After equal times, a tool does at once what it could not do in time: a queue fills for a moment on good storage.
    assert not messages(measure(document(0, working(1000, full=0.09)), offer=RATE))


def test_at_a_depth_of_1_what_is_in_flight_takes_the_only_place() -> None:
    """Random arrivals see what is in flight on average: 100 a second of 1 ms find it taken one time in ten."""
    one = Offer(load=100, depth=1)
    numbers = measure(document(0, working(100, full=1.0)), offer=one)
    assert messages(numbers)["DepthFull"].startswith("10 % of the time an operation was in flight, and ioDepth is 1")
    assert not messages(measure(document(0, working(100, value=50_000, full=1.0)), offer=one))


def frozen(rate: int, depth: int, milliseconds: int, times: int) -> Any:
    """Make a client that does all that is due in 0.5 ms each, but for some freezes, after which it catches up."""
    number = rate * RUNTIME
    stuck = [milliseconds * 1_000_000 - place * 10**9 // rate for place in range(depth)] * times
    timed = sample_of([500_000] * (number - len(stuck)) + [max(500_000, value) for value in stuck])
    gaps = Gaps(
        width_nanoseconds=10_000_000,
        starts=tuple(1000 + 2000 * freeze for freeze in range(times)),
        lengths=(milliseconds,) * times,
    )
    return working(rate, timed=timed).model_copy(update={"gaps": gaps})


@pytest.mark.parametrize("depth", [1, 8, 32])
def test_what_is_due_in_a_freeze_starts_late_although_all_of_it_comes(depth: int) -> None:
    offer = Offer(load=1000, depth=depth, at_random=False)
    numbers = measure(document(0, frozen(1000, depth, 400, 2)), offer=offer)
    assert numbers.verdict is Verdict.SUSPECT
    found = re.match(
        r"about ([0-9.]+) % of the operations were due while ioDepth.*: .* p99 is .* instead of .* \(limit 1.00 ms\); ",
        messages(numbers)["DepthFull"],
    )
    assert found is not None
    least = 100 * 2 * (400 - depth - 1) / (1000 * RUNTIME)
    # At a depth of 1, those that had to wait until the tool had caught up are known, too.
    assert least - 0.01 <= float(found[1]) <= (least + 0.01 if depth > 1 else 3 * least)
    # There was room for what was due in the meantime.
    assert not messages(measure(document(0, frozen(1000, depth, 400, 2)), offer=replace(offer, depth=512)))
    # A single pause of that share changes no 99th percentile.
    assert not messages(measure(document(0, frozen(1000, depth, 80, 1)), offer=offer))


def test_a_freeze_stops_the_operations_of_all_jobs() -> None:
    """Each of four jobs has two places, and an operation due every 4 ms: of 400 ms, what was due in 388 waits."""
    fast = merge_latencies([sample_of([500_000] * 20_000)])
    gaps = Gaps(width_nanoseconds=10_000_000, starts=(5000,), lengths=(400,))
    late = lateness_of(Offer(load=1000, depth=8, at_random=False), fast, [gaps], 4)
    assert late is not None
    assert late.waited == pytest.approx(388 / 20_000)


def test_each_client_has_a_depth_of_its_own() -> None:
    offer = Offer(load=2000, depth=8, at_random=False)
    healthy = working(1000, value=500_000)
    both = measure(document(0, frozen(1000, 8, 900, 1)), document(1, healthy), offer=offer)
    assert "about 2.23 % of the operations" in messages(both)["DepthFull"]


def test_random_arrivals_that_a_freeze_omits_are_missing_and_not_late() -> None:
    late = lateness_of(
        Offer(load=1000, depth=64),
        merge_latencies([sample_of([500_000] * 19_000)]),
        [Gaps(width_nanoseconds=10_000_000, starts=(5000,), lengths=(264,))],
    )
    assert late is not None
    assert late.waited == pytest.approx(200 / 19_200)


def queue(busy: float, sigma: float, depth: int = 1, jobs: int = 1) -> tuple[float, float, Lateness | None]:
    """Return the published and the real 99th percentile of a disk at a limited rate, and what the trial shows.

    Each job has its own depth, in which its part of the rate keeps operations in flight for `busy` times all the time.
    """
    chance, published, real = Random(f"queue {busy}"), list[float](), list[float]()  # noqa: S311 - numbers
    places = [[0.0] * depth for _ in range(jobs)]
    period = 0.008 / busy / jobs
    for number in range(20_000):
        free = places[number % jobs]
        due, place = number * period, min(range(depth), key=free.__getitem__)
        start, taken = max(due, free[place]), chance.lognormvariate(math.log(0.008) - sigma**2 / 2, sigma)
        free[place] = start + taken
        published.append(taken)
        real.append(start + taken - due)
    offer = Offer(load=1 / period, depth=depth * jobs, at_random=False)
    timed = merge_latencies([sample_of([round(taken * 10**9) for taken in published])])
    late = lateness_of(offer, timed, [None], jobs)
    return sorted(published)[19_800], sorted(real)[19_800], late


@pytest.mark.parametrize(("busy", "sigma", "jobs"), [(0.8, 0.7, 1), (0.7, 1.0, 1), (0.9, 0.5, 1), (0.8, 0.7, 4)])
def test_a_depth_of_1_is_a_queue_with_one_server(busy: float, sigma: float, jobs: int) -> None:
    published, real, late = queue(busy, sigma, jobs=jobs)
    assert late is not None
    assert late.published == pytest.approx(10**9 * published, rel=0.02)
    assert late.from_due == pytest.approx(10**9 * real, rel=0.3)
    assert late.from_due > late.longest


@pytest.mark.parametrize(
    ("busy", "sigma", "depth", "jobs"),
    [(0.4, 0.7, 1, 1), (0.6, 0.7, 1, 1), (0.8, 0.4, 1, 1), (1.65, 1.0, 4, 1), (0.6, 0.7, 1, 4), (1.65, 1.0, 4, 4)],
)
def test_a_disk_that_keeps_up_is_not_late(busy: float, sigma: float, depth: int, jobs: int) -> None:
    """Nor with a heavy tail at a depth at which the other places go on."""
    published, real, late = queue(busy, sigma, depth, jobs)
    assert real < 1.6 * published
    assert late is not None
    assert late.from_due <= late.longest


def test_too_few_operations_for_a_percentile_show_nothing() -> None:
    offer = Offer(load=1, depth=1, at_random=False)
    assert lateness_of(offer, merge_latencies([sample_of([10**6] * 19)]), [None]) is None
    assert lateness_of(offer, merge_latencies([sample_of([10**6] * 20)]), [None]) is not None
    assert lateness_of(replace(offer, depth=None), merge_latencies([sample_of([10**6] * 20)]), [None]) is None


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
    random = offer_of(even.model_copy(update={"jobs": 1, "arrivals": "Poisson"}), 3)
    assert random is not None
    assert random.is_open_loop
    assert random.load == pytest.approx(3003)
