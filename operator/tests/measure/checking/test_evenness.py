"""Whether clients shared the load, on both sides: one that does little beside the others, and one that does much."""

import math
from collections.abc import Sequence
from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.api.names import Operation, Verdict
from plimsoll.api.result import Finding
from plimsoll.measure.checks import outliers
from plimsoll.measure.intake import Offer
from plimsoll.measure.sample import ClientDocument, OperationSample
from plimsoll.measure.trial import TrialNumbers
from support.client_documents import BLOCK, RUNTIME, SECOND, document, latency, measure, measurement, operation

_WORSE = (Verdict.VALID, Verdict.SUSPECT, Verdict.INVALID)


def total(ios: int, kind: Operation = Operation.WRITE) -> OperationSample:
    """Make so many operations in all, without a series."""
    return operation(operation=kind, ios=ios, bytes=ios * BLOCK, cells=None, latency=latency(ios))


def doing(*totals: int, nodes: Sequence[int] = ()) -> list[ClientDocument]:
    """Make clients that did so many operations, each on a node of its own unless its node is named."""
    return [
        document(number, measurement(total(ios)), node=f"node-{nodes[number] if nodes else number}")
        for number, ios in enumerate(totals)
    ]


def uneven(numbers: TrialNumbers) -> Finding | None:
    return next((finding for finding in numbers.findings if finding.reason == "ClientsUneven"), None)


def severity(*totals: int, nodes: Sequence[int] = ()) -> Verdict:
    finding = uneven(measure(*doing(*totals, nodes=nodes)))
    return finding.verdict if finding else Verdict.VALID


def named(*totals: int) -> tuple[int, ...]:
    finding = uneven(measure(*doing(*totals)))
    return finding.clients if finding else ()


@pytest.mark.parametrize(
    ("totals", "clients"),
    [
        ((10**6, 10**6 // 20), (1,)),
        ((10**6, 10**6, 10**6 // 20), (2,)),
        ((10**6, 10**6 // 20, 10**6, 10**6 // 20), (1, 3)),
    ],
)
def test_clients_that_do_much_less_than_the_others_are_named(totals: tuple[int, ...], clients: tuple[int, ...]) -> None:
    finding = uneven(measure(*doing(*totals)))
    assert finding is not None
    assert finding.clients == clients


def working(*seconds: float) -> TrialNumbers:
    """Measure clients that did the same work in these times."""
    work = RUNTIME * 100_000 * BLOCK
    documents = [
        document(number, measurement(total(RUNTIME * 100_000), runtime=int(time * SECOND), work_bytes=work))
        for number, time in enumerate(seconds)
    ]
    return measure(*documents, windowed=False, ends_when_done=True)


@pytest.mark.parametrize(
    ("seconds", "verdict", "clients"),
    [
        ((20, 20, 38), Verdict.VALID, ()),
        ((20, 20, 45), Verdict.SUSPECT, (2,)),
        ((20, 21, 220), Verdict.INVALID, (2,)),
        ((20, 50, 51, 52), Verdict.SUSPECT, (0,)),
    ],
)
def test_clients_that_end_when_their_work_is_done_are_compared_until_the_first_one_is(
    seconds: tuple[float, ...], verdict: Verdict, clients: tuple[int, ...]
) -> None:
    finding = uneven(working(*seconds))
    assert (finding.verdict if finding else Verdict.VALID) is verdict
    assert (finding.clients if finding else ()) == clients
    assert finding is None or "until the first client was done" in finding.message


def test_a_client_with_most_of_the_operations_is_seen_however_many_share_the_rest() -> None:
    assert severity(*[10_000] * 8, 1_000_000) is Verdict.INVALID
    assert severity(*[10_000] * 99, 30_000) is Verdict.SUSPECT
    assert severity(*[10_000] * 99, 19_000) is Verdict.VALID


@given(others=st.lists(st.integers(0, 10**7), min_size=1, max_size=5), own=st.integers(0, 10**7), less=st.integers(0))
def test_the_less_a_client_does_the_worse_it_is(others: list[int], own: int, less: int) -> None:
    """As long as it is the one that does the least: a client beyond the others is their fault, and not its own."""
    own = min(own, *others)
    before, after = severity(*others, own), severity(*others, max(0, own - less))
    assert _WORSE.index(after) >= _WORSE.index(before)


@given(mean=st.integers(1, 10**6), share=st.floats(-2, 2))
def test_what_chance_explains_is_no_finding(mean: int, share: float) -> None:
    own = max(0, round(mean + share * math.sqrt(mean)))
    assert severity(mean, mean, own) is Verdict.VALID


def test_a_client_alone_and_clients_that_do_nothing_are_not_uneven() -> None:
    assert [severity(1000), severity(0, 0)] == [Verdict.VALID] * 2


def test_a_client_whose_tool_failed_is_not_called_slow() -> None:
    failed = document(1, measurement(total(1), errors=("an error",)))
    assert uneven(measure(document(0), failed)) is None


def test_syncs_do_not_count() -> None:
    syncing = measurement(total(1000), total(10**6, Operation.SYNC))
    assert uneven(measure(document(0, measurement(total(1000))), document(1, syncing))) is None


def test_clients_that_do_not_run_for_a_time_are_not_compared() -> None:
    assert uneven(measure(*doing(10**6, 1), windowed=False)) is None


# Fast clients


def test_one_of_ten_that_a_cache_answers_is_named_with_its_rate_and_the_median_of_the_others() -> None:
    finding = uneven(measure(*doing(*[100_000] * 9, 900_000)))
    assert finding is not None
    assert (finding.verdict, finding.clients) == (Verdict.SUSPECT, (9,))
    assert finding.message.startswith(
        "client 9: 45000 operations/s in the window, 9 times the others' median of 5000, "
        "which is 11.1 % of it (limit 50 %); check the client's node"
    )
    assert "cache" in finding.message


@pytest.mark.parametrize("clients", [3, 4, 10, 100])
@pytest.mark.parametrize(
    ("times", "verdict"),
    [(1.9, Verdict.VALID), (2.1, Verdict.SUSPECT), (9, Verdict.SUSPECT), (11, Verdict.INVALID), (99, Verdict.INVALID)],
)
def test_a_fast_client_has_the_limits_of_a_slow_one(clients: int, times: float, verdict: Verdict) -> None:
    others = [10**6] * (clients - 1)
    assert severity(*others, round(times * 10**6)) is verdict
    assert severity(*others, round(10**6 / times)) is verdict


@pytest.mark.parametrize(
    ("totals", "clients"),
    [
        ((50_000, 50_000, 50_000, 10**6), (3,)),
        ((50_000, 50_000, 10**6), (2,)),
        ((50_000, 10**6, 50_000, 50_000, 10**6), (1, 4)),
        ((10**6, 3 * 10**6, 9 * 10**6), (0, 2)),
        ((10**6, 9 * 10**6, 9 * 10**6), (0,)),
        ((10**6, 10**6, 10**6, 10_000, 10**8), (3, 4)),
    ],
)
def test_the_fewer_are_the_odd_ones(totals: tuple[int, ...], clients: tuple[int, ...]) -> None:
    assert named(*totals) == clients


def test_which_of_two_is_the_odd_one_is_not_known() -> None:
    finding = uneven(measure(*doing(10**6, 10**5)))
    assert finding is not None
    assert "10 % of the others' mean of 1000000; either of the two may be the outlier (limit 50 %)" in finding.message
    assert severity(10**6, 501_000) is Verdict.VALID


def test_a_client_that_has_a_node_for_itself_may_do_what_those_of_another_node_do_together() -> None:
    crowded = (0, 0, 0, 1)
    assert severity(10**6, 10**6, 10**6, 3 * 10**6, nodes=crowded) is Verdict.VALID
    assert severity(10**6, 10**6, 10**6, 3 * 10**6) is Verdict.SUSPECT
    assert severity(10**6, 10**6, 10**6, 7 * 10**6, nodes=crowded) is Verdict.SUSPECT
    assert severity(10**6, 10**6, 10**6, 3 * 10**6, nodes=(0, 0, 0, 0)) is Verdict.SUSPECT
    assert severity(10**6, 10**6, 10**6, 3 * 10**6, nodes=(0, 1, 2, 2)) is Verdict.SUSPECT, "the crowded one is fast"


def test_a_client_among_others_that_do_nothing_is_not_the_odd_one() -> None:
    assert named(0, 0, 0, 10**6) == (0, 1, 2)


@pytest.mark.parametrize("others", [0, 1, 10])
def test_a_client_that_does_nearly_everything_is_as_bad_if_the_others_do_nothing(others: int) -> None:
    assert severity(*[others] * 9, 5000) is Verdict.INVALID


@given(
    others=st.lists(st.integers(0, 10**7), min_size=1, max_size=6),
    own=st.integers(0, 10**7),
    more=st.integers(0, 10**8),
    crowd=st.integers(1, 3),
)
def test_the_more_the_fastest_client_does_the_worse_it_is(others: list[int], own: int, more: int, crowd: int) -> None:
    own = max(own, *others)
    nodes = [number // crowd for number in range(len(others) + 1)]
    before, after = severity(*others, own, nodes=nodes), severity(*others, own + more, nodes=nodes)
    assert _WORSE.index(after) >= _WORSE.index(before)


@given(st.lists(st.integers(10**4, 19 * 10**3), min_size=1, max_size=12), st.integers(1, 4))
def test_clients_within_a_factor_of_two_share_the_load(totals: list[int], crowd: int) -> None:
    assert severity(*totals, nodes=[number // crowd for number in range(len(totals))]) is Verdict.VALID


@given(mean=st.integers(1, 10**6), deviation=st.floats(-2, 2))
def test_chance_makes_no_client_fast(mean: int, deviation: float) -> None:
    own = max(0, round(mean + deviation * math.sqrt(mean)))
    assert severity(mean, mean, mean, own) is Verdict.VALID


@given(st.lists(st.integers(0, 3) | st.floats(0, 3), min_size=2, max_size=9))
def test_the_median_of_the_others_is_that_of_the_list_without_the_value(values: list[float]) -> None:
    expected = [median(values[:place] + values[place + 1 :]) for place in range(len(values))]
    assert outliers._medians_of_others(values) == expected


LIMITED = Offer(load=1000, at_random=False)


def waiting(*medians: int, ios: int = 10_000, offer: Offer | None = LIMITED) -> Finding | None:
    """Compare clients that did the same number of operations, each of which took this many microseconds."""
    documents = [
        document(number, measurement(total(ios).model_copy(update={"latency": latency(ios, 1000 * median)})))
        for number, median in enumerate(medians)
    ]
    return uneven(measure(*documents, offer=offer))


@pytest.mark.parametrize(
    ("medians", "clients"),
    [
        ((500, 500, 500, 20_000), (3,)),
        ((500, 500, 500, 500, 500, 500, 500, 500, 500, 1_200), (9,)),
        ((5_000, 5_000, 5_000, 500), (3,)),
        ((500, 500, 5_000), (2,)),
        ((500, 500, 5_000, 5_000), (0, 1, 2, 3)),
        ((500, 1_200), (0, 1)),
    ],
)
def test_clients_of_a_limited_rate_are_compared_by_their_medians(
    medians: tuple[int, ...], clients: tuple[int, ...]
) -> None:
    finding = waiting(*medians)
    assert finding is not None
    assert (finding.verdict, finding.clients) == (Verdict.SUSPECT, clients)
    assert "times the others' median of" in finding.message
    assert ("either of the two" in finding.message) is (len(medians) == 2)


def test_medians_that_differ_by_less_than_twice_or_by_chance_are_even() -> None:
    assert waiting(500, 500, 900) is None
    assert waiting(500) is None
    assert waiting(500, 500, 5_000, ios=9) is None, "too few operations"
    assert waiting(500, 500, 5_000, offer=None) is None, "in a closed loop the rates tell"
