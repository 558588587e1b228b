"""Which clients send to which."""

from dataclasses import dataclass
from itertools import permutations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.tools.cast import Pairing, paired, round_count


@dataclass
class Member:
    number: int
    serves: bool = False
    node: str = "n"


def roster(clients: int, servers: int = 0) -> tuple[Member, ...]:
    return tuple(Member(number, serves=number >= clients) for number in range(clients + servers))


def test_each_pair_of_clients_has_a_round_of_its_own() -> None:
    rounds = paired(Pairing.EACH_PAIR, roster(3), 3).rounds
    assert [one.servers for one in rounds] == [{client: (server,)} for client, server in permutations(range(3), 2)]


def test_each_client_loads_each_server() -> None:
    rounds = paired(Pairing.EACH_PAIR, roster(2, 2), 2).rounds
    assert [one.servers for one in rounds] == [{client: (server,)} for client, server in product((0, 1), (2, 3))]


def test_one_client_at_a_time_loads_all_servers() -> None:
    assert [one.servers for one in paired(Pairing.ONE_TO_ALL, roster(2, 2), 2).rounds] == [{0: (2, 3)}, {1: (2, 3)}]
    assert [one.servers for one in paired(Pairing.ONE_TO_ALL, roster(2), 2).rounds] == [{0: (1,)}, {1: (0,)}]


@pytest.mark.parametrize(
    ("clients", "servers", "expected"),
    [(4, 0, {0: (1,), 2: (3,)}), (3, 0, {0: (1,)}), (3, 2, {0: (3,), 1: (4,), 2: (3,)})],
)
def test_all_load_at_once(clients: int, servers: int, expected: dict[int, tuple[int, ...]]) -> None:
    (one,) = paired(Pairing.ALL_AT_ONCE, roster(clients, servers), clients).rounds
    assert one.servers == expected


@given(pairing=st.sampled_from(Pairing), clients=st.integers(1, 8), servers=st.integers(0, 4))
def test_rounds_are_counted_right_and_nobody_loads_and_serves_in_one(
    pairing: Pairing, clients: int, servers: int
) -> None:
    rounds = paired(pairing, roster(clients, servers), clients).rounds
    assert len(rounds) == round_count(pairing, clients, servers)
    assert not any({*one.loading} & {*one.serving} for one in rounds)
