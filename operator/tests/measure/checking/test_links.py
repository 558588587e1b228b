"""Which links of a matrix are outliers. Numbers of published studies: CTU's table T5.1, UTSA's T8 and T9."""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.api.names import Verdict
from plimsoll.api.result import Finding
from plimsoll.measure.checks.outliers import LINK_OUTLIER, judge_links
from plimsoll.measure.matrix import MatrixCell
from plimsoll.measure.text import bits_text

MEGABIT = 10**6 / 8
Cell = tuple[int, int, float]
"""Client, peer, Mbit/s."""

CTU = """1 2 9310 2 1 9310 1 3 9360 3 1 9400 1 4 9310 4 1 9400 2 3 9310 3 2 9400 2 4 9320 4 2 9400 3 4 9410 4 3 9400
4 4 53300"""
UTSA_IPERF = """938/938/938 938/934/937 939/933/930 938/927/938 932/934/938 938/934/937 938/937/938 937/938/938"""
UTSA_NETCAT = """88/56/15 98/25/114 89/98/35 101/86/95 98/21/86 103/99/99 99/99/42 85/84/91"""


def ctu() -> list[Cell]:
    numbers = list(map(int, CTU.split()))
    return [(numbers[n], numbers[n + 1], numbers[n + 2]) for n in range(0, len(numbers), 3)]


def utsa(text: str) -> list[Cell]:
    """Return eight clients by three servers, which are numbered after the clients."""
    rows = [list(map(int, row.split("/"))) for row in text.split()]
    return [(client, 8 + place, rate) for client, row in enumerate(rows) for place, rate in enumerate(row)]


def cell(one: Cell, nodes: Mapping[int, str] | None = None) -> MatrixCell:
    client, peer, rate = one
    names = {number: f"n{number}" for number in (client, peer)} if nodes is None else nodes
    return MatrixCell(
        client=client,
        peer=peer,
        client_node=names.get(client, ""),
        peer_node=names.get(peer, ""),
        iops=0,
        bytes_per_second=rate * MEGABIT,
    )


def judged(
    cells: Sequence[Cell], nodes: Mapping[int, str] | None = None
) -> tuple[list[tuple[int, int]], Finding | None]:
    """Return the outliers of cells that each had a round of their own, and the finding."""
    marked, findings = judge_links([[cell(one, nodes)] for one in cells])
    assert [(one.client, one.peer) for one in marked] == [(client, peer) for client, peer, _ in cells]
    outliers = [(one.client, one.peer) for one in marked if one.is_outlier]
    assert len(findings) == bool(outliers)
    return outliers, findings[0] if findings else None


def full_mesh(count: int, rate: float = 937) -> dict[tuple[int, int], float]:
    return dict.fromkeys(permutations(range(count), 2), rate)


def as_cells(mesh: Mapping[tuple[int, int], float]) -> list[Cell]:
    return [(client, peer, rate) for (client, peer), rate in mesh.items()]


def test_a_healthy_matrix_has_no_outlier() -> None:
    assert judged(ctu()) == ([], None)
    assert judged(utsa(UTSA_IPERF)) == ([], None)


def test_the_uneven_rates_of_netcat_have_outliers() -> None:
    outliers, finding = judged(utsa(UTSA_NETCAT))
    assert outliers == [(0, 9), (0, 10), (1, 9), (2, 10), (4, 9), (6, 10)]
    assert finding is not None
    assert (finding.reason, finding.verdict) == ("LinkOutlier", Verdict.SUSPECT)
    assert finding.message.startswith(
        "client 0 (node n0) to client 10 (node n10): 15 Mbit/s, 16.5 % of the median of the others, 91 Mbit/s"
    )
    assert finding.clients == (0, 1, 2, 4, 6, 9, 10)


def test_the_message_names_both_nodes_and_the_other_direction() -> None:
    mesh = full_mesh(3) | {(2, 0): 94}
    outliers, finding = judged(as_cells(mesh), {0: "a", 1: "c", 2: "b"})
    assert outliers == [(2, 0)]
    assert finding is not None
    assert finding.message == (
        "client 2 (node b) to client 0 (node a): 94 Mbit/s (other direction 937 Mbit/s), 10 % of the "
        f"median of the others, 937 Mbit/s (limit 70 %); {LINK_OUTLIER.remedy}"
    )


@pytest.mark.parametrize(("rate", "is_outlier"), [(700, False), (699, True), (0, True)])
def test_a_link_at_the_limit_passes(rate: float, is_outlier: bool) -> None:  # noqa: FBT001 - a parameter of the test
    outliers, _ = judged([(0, 1, 1000), (1, 0, 1000), (0, 2, 1000), (2, 0, rate)])
    assert outliers == ([(2, 0)] if is_outlier else [])


def test_two_directions_are_compared_with_each_other() -> None:
    outliers, finding = judged([(0, 1, 1000), (1, 0, 10)])
    assert outliers == [(1, 0)]
    assert finding is not None
    assert finding.message.startswith(
        "client 1 (node n1) to client 0 (node n0): 10 Mbit/s (other direction 1 Gbit/s), 1 % of the median of"
    )
    assert judged([(0, 1, 1000), (1, 0, 900)]) == ([], None)
    assert judged([(0, 1, 1000)]) == ([], None), "there is nothing to compare it with"
    assert judged([]) == ([], None)


def test_two_pairs_of_one_round_are_compared_with_each_other() -> None:
    marked, _ = judge_links([[cell((0, 2, 1000)), cell((1, 3, 100))]])
    assert [one.client for one in marked if one.is_outlier] == [1]


def test_few_pairs_are_compared_with_the_median_of_the_others() -> None:
    assert judged([(0, 1, 1000), (1, 0, 1000), (0, 2, 10)])[0] == [(0, 2)]


@pytest.mark.parametrize(
    ("nodes", "bad", "links"), [(3, 1, 4), (4, 1, 6), (4, 2, 10), (5, 2, 14), (6, 3, 24), (2, 0, 0)]
)
@pytest.mark.parametrize("part", [0.1, 0.45])
def test_half_of_the_nodes_may_have_bad_links(nodes: int, bad: int, links: int, part: float) -> None:
    rates = {pair: 937 * (part if min(pair) < bad else 1) for pair in permutations(range(nodes), 2)}
    outliers, finding = judged(as_cells(rates))
    assert len(outliers) == links
    assert finding is None or (nodes == 4 and bad == 1) or "they or it are the outliers" in finding.message


def round_trip(client: int, peer: int, milliseconds: float) -> MatrixCell:
    named = cell((client, peer, 0.0))
    return dataclasses.replace(named, iops=100, round_trip_nanoseconds=milliseconds * 1e6)


@pytest.mark.parametrize(("milliseconds", "is_outlier"), [(3.0, True), (1.1, True), (0.9, False), (0.2, False)])
@pytest.mark.parametrize("usual", [0.03, 0.2])
def test_a_node_whose_round_trips_are_five_times_as_long_is_an_outlier(
    milliseconds: float, usual: float, *, is_outlier: bool
) -> None:
    times = {pair: milliseconds if 2 in pair else usual for pair in permutations(range(4), 2)}
    marked, findings = judge_links([[round_trip(*pair, time)] for pair, time in times.items()])
    assert {(one.client, one.peer) for one in marked if one.is_outlier} == {
        pair for pair in times if 2 in pair and is_outlier
    }
    assert [finding.reason for finding in findings] == ["LinkOutlier"] * is_outlier


LOCAL = {0: "a", 1: "a", 2: "b", 3: "c"}


def local_message(*rounds: Sequence[Cell]) -> str:
    _, findings = judge_links([[cell(one, LOCAL) for one in cells] for cells in rounds])
    assert {finding.verdict for finding in findings} <= {Verdict.SUSPECT}
    return next((finding.message for finding in findings if finding.reason == "LocalPairs"), "")


def test_pairs_that_are_all_on_one_node_measure_no_network() -> None:
    assert local_message([(0, 1, 50_000)], [(1, 0, 50_000)]).startswith(
        "all 2 pairs are on one node, so there are no rates of the network; use"
    )


def test_a_pair_on_one_node_disturbs_those_of_its_round_only() -> None:
    apart = [(0, 2, 1000)], [(2, 0, 1000)]
    assert local_message(*apart, [(0, 1, 50_000)]) == "", "it is not in the numbers"
    assert local_message(*apart, [(2, 3, 1000), (0, 1, 50_000)]).startswith("1 of 2 pairs are on one node and not in")
    assert local_message(*apart) == ""


def test_traffic_within_a_node_is_not_compared() -> None:
    """It is several times as fast; slow traffic within a node is not a fault of a link."""
    mesh = full_mesh(4) | {(0, 1): 53_300, (1, 0): 53_300, (2, 3): 10}
    assert judged(as_cells(mesh), {0: "a", 1: "a", 2: "b", 3: "b"}) == ([], None), "each pair has a round of its own"


def test_a_slow_node_is_named() -> None:
    mesh = full_mesh(5) | {pair: 94.0 for pair in full_mesh(5) if 3 in pair}
    _, finding = judged(as_cells(mesh))
    assert finding is not None
    assert "; all 8 links of node n3 are outliers (limit 70 %)" in finding.message


@pytest.mark.parametrize(("place", "way"), [(0, "from"), (1, "to")])
def test_a_node_that_is_slow_in_one_direction_is_named_with_it(place: int, way: str) -> None:
    mesh = full_mesh(5) | {pair: 94.0 for pair in full_mesh(5) if pair[place] == 3}
    _, finding = judged(as_cells(mesh))
    assert finding is not None
    assert f"; all 4 links {way} node n3 are outliers (limit" in finding.message


def test_one_slow_link_is_no_slow_node() -> None:
    _, finding = judged(as_cells(full_mesh(5) | {(3, 1): 94.0}))
    assert finding is not None
    assert "links" not in finding.message.partition("(limit")[0]


def test_pairs_that_share_a_link_are_compared_with_their_like() -> None:
    """Five clients load two servers: three share the link of one, two that of the other."""
    round_ = [cell((client, 5 + client % 2, 937 / (3 if client % 2 == 0 else 2))) for client in range(5)]
    _, findings = judge_links([round_])
    assert findings == ()
    slow = [cell((0, 5, 100)), *round_[1:]]
    marked, findings = judge_links([slow])
    assert [one.client for one in marked if one.is_outlier] == [0]
    assert findings[0].message.startswith("client 0 (node n0)")


def test_pairs_on_one_node_share_its_link() -> None:
    """Clients 0 and 1 are on one node, and have half of the rate of those that are alone."""
    nodes = {0: "a", 1: "a", 2: "b", 3: "c", 4: "d", 5: "e", 6: "f", 7: "g", 8: "h", 9: "i"}
    rates = {0: 470, 1: 467, 2: 937, 3: 936, 4: 938}
    _, findings = judge_links([[cell((client, client + 5, rate), nodes) for client, rate in rates.items()]])
    assert findings == ()


def test_a_tool_that_counts_operations_is_judged_by_them() -> None:
    cells = [
        MatrixCell(client=client, peer=9, iops=rate, bytes_per_second=0)
        for client, rate in enumerate((1000, 990, 1010, 300))
    ]
    marked, findings = judge_links([[one] for one in cells])
    assert [one.client for one in marked if one.is_outlier] == [3]
    assert findings[0].message.startswith("client 3 to client 9: 300 operations/s, 30 % of the median")


def test_pairs_that_all_stand_still_are_not_outliers() -> None:
    assert judged(as_cells(full_mesh(3, 0))) == ([], None)


@given(rates=st.lists(st.floats(min_value=0.8, max_value=1.0), min_size=2, max_size=40), scale=st.floats(1e3, 1e11))
def test_scatter_of_a_fifth_is_never_an_outlier(rates: list[float], scale: float) -> None:
    assert judged([(place, 100, rate * scale) for place, rate in enumerate(rates)]) == ([], None)


@given(data=st.data(), count=st.integers(min_value=2, max_value=40))
def test_each_cell_is_compared_with_the_median_and_the_fastest_sixth_of_the_others(
    data: st.DataObject, count: int
) -> None:
    rates = data.draw(st.lists(st.integers(0, 1000), min_size=count, max_size=count))
    outliers, _ = judged([(place, 100, rate) for place, rate in enumerate(rates)])
    usual = [max(_median(rates, place), 0.7 * _fastest(rates, place)) for place in range(count)]
    assert outliers == [(place, 100) for place in range(count) if 100 * rates[place] < 70 * usual[place] - 1e-9]


def _fastest(rates: list[int], without: int) -> float:
    others = sorted((rate for place, rate in enumerate(rates) if place != without), reverse=True)
    return others[math.ceil(len(others) / 6) - 1]


def _median(rates: list[int], without: int) -> float:
    others = sorted(rate for place, rate in enumerate(rates) if place != without)
    return (others[(len(others) - 1) // 2] + others[len(others) // 2]) / 2


@pytest.mark.parametrize(
    ("rate", "text"), [(0, "0 bit/s"), (937e6, "937 Mbit/s"), (9.41e9, "9.41 Gbit/s"), (4e15, "4000 Tbit/s")]
)
def test_rates_of_links_have_decimal_units(rate: float, text: str) -> None:
    assert bits_text(rate) == text
