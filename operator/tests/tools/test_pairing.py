"""Which clients send to which."""

from dataclasses import dataclass
from itertools import permutations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.tools.cast import CastSize, Pairing, paired, paired_size


@dataclass
class Member:
    number: int
    serves: bool = False
    node: str = "n"


def roster(clients: int, servers: int = 0) -> tuple[Member, ...]:
    return tuple(Member(number, serves=number >= clients) for number in range(clients + servers))


@pytest.mark.parametrize(
    ("pairing", "clients", "servers", "expected"),
    [
        (Pairing.EACH_PAIR, 3, 0, [{client: (server,)} for client, server in permutations(range(3), 2)]),
        (Pairing.EACH_PAIR, 2, 2, [{client: (server,)} for client, server in product((0, 1), (2, 3))]),
        (Pairing.ONE_TO_ALL, 2, 2, [{0: (2, 3)}, {1: (2, 3)}]),
        (Pairing.ONE_TO_ALL, 2, 0, [{0: (1,)}, {1: (0,)}]),
        (Pairing.ALL_AT_ONCE, 4, 0, [{0: (1,), 2: (3,)}]),
        (Pairing.ALL_AT_ONCE, 3, 0, [{0: (1,)}]),
        (Pairing.ALL_AT_ONCE, 3, 2, [{0: (3,), 1: (4,), 2: (3,)}]),
    ],
)
def test_clients_load_servers_or_each_other(
    pairing: Pairing, clients: int, servers: int, expected: list[dict[int, tuple[int, ...]]]
) -> None:
    assert [active.servers for active in paired(pairing, roster(clients, servers), clients).rounds] == expected


@given(pairing=st.sampled_from(Pairing), clients=st.integers(1, 8), servers=st.integers(0, 4))
def test_rounds_are_counted_right_and_nobody_loads_and_serves_in_one(
    pairing: Pairing, clients: int, servers: int
) -> None:
    rounds = paired(pairing, roster(clients, servers), clients).rounds
    assert paired_size(pairing, clients, servers) == CastSize(
        rounds=len(rounds),
        pairs=sum(len(serving) for active in rounds for serving in active.servers.values()),
        loading=max((len(active.loading) for active in rounds), default=1),
    )
    assert not any({*active.loading} & {*active.serving} for active in rounds)
