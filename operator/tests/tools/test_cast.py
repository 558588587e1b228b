"""Who takes part in a trial."""

from dataclasses import dataclass
from typing import Any

import pytest

from plimsoll.tools.cast import ACTOR_CLIENT, Cast, Round, all_at_once
from plimsoll.tools.fio.parameters import FioParameters
from plimsoll.tools.fio.tool import Fio
from plimsoll.tools.osd_bench import OsdBench, OsdBenchParameters
from plimsoll.tools.registry import TOOLS

FIO = Fio()
OSD_BENCH = OsdBench()


@dataclass
class Client:
    number: int
    node: str = "n"
    serves: bool = False


CLIENTS = tuple(Client(number) for number in range(4))


def test_clients_that_load_at_once_have_no_servers() -> None:
    (active,) = all_at_once((3, 1)).rounds
    assert (active.loading, active.serving, active.members) == ((1, 3), (), (1, 3))
    assert active.peers(1) == ()


def test_peers_are_known_on_both_sides() -> None:
    active = Round(servers={0: (2, 3), 1: (3,)})
    assert (active.loading, active.serving, active.members) == ((0, 1), (2, 3), (0, 1, 2, 3))
    assert [active.peers(client) for client in range(5)] == [(2, 3), (3,), (0,), (0, 1), ()]


def test_members_are_those_of_any_round() -> None:
    cast = Cast(rounds=(Round(servers={0: (1,)}), Round(servers={3: (0,)})))
    assert cast.members == (0, 1, 3)


def test_the_next_of_the_last_client_is_the_first() -> None:
    (active,) = all_at_once((0, 2, 5)).rounds
    assert [active.next_after(client) for client in active.loading] == [2, 5, 0]


def test_fio_loads_from_as_many_clients_as_a_point_has() -> None:
    assert FIO.cast(FioParameters(), CLIENTS, 2).members == (0, 1)
    assert FIO.cast_size(FioParameters(), 2, 0) == (1, 0, 2)


def test_one_actor_is_always_the_same_client() -> None:
    parameters = OsdBenchParameters.model_validate({"keyringSecret": {"name": "k"}})
    assert OSD_BENCH.cast(parameters, CLIENTS[::-1], 1).members == (ACTOR_CLIENT,)


@pytest.mark.parametrize(
    ("tool", "parameters", "clients"),
    [
        ("ping", {"pairing": "EachPair"}, 1),
        ("iperf3", {"pairing": "AllAtOnce"}, 2),
        ("fio", {"pattern": "read"}, 4),
        ("osdBench", {"keyringSecret": {"name": "k"}}, 1),
    ],
)
def test_so_many_of_four_clients_load_at_the_same_time(tool: str, parameters: dict[str, Any], clients: int) -> None:
    assert TOOLS[tool].cast_size(TOOLS[tool].parameters.model_validate(parameters), 4, 0).loading == clients


def test_servers_never_load() -> None:
    roster = (*CLIENTS[:2], Client(2, serves=True))
    assert FIO.cast(FioParameters(), roster, 3).members == (0, 1)
