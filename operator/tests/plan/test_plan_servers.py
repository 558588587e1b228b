"""Servers in a plan: rounds, refusals, estimates, and what makes two results comparable."""

from collections.abc import Mapping
from typing import Any

import pytest

from plimsoll.api.environment import Environment
from plimsoll.api.errors import SpecError
from plimsoll.api.run import MAX_CLIENTS, MAX_SERVERS, Servers
from plimsoll.plan.document import load_plan
from plimsoll.plan.expand import TRIAL_OVERHEAD_SECONDS, estimate, round_count
from plimsoll.plan.fingerprint import fingerprint
from plimsoll.plan.refusals import run_rules
from plimsoll.protocol.assignment import client_of, client_token
from plimsoll.protocol.messages import PROTOCOL_VERSION, Registration
from plimsoll.tools.base import AnyTool
from plimsoll.tools.fio.tool import Fio
from plimsoll.tools.rados_bench import RadosBench
from plimsoll.tools.registry import TOOLS
from support.specs import KEY, PAIRS, pairs_plan, pairs_run

FIO = Fio()
RADOS_BENCH = RadosBench()

SECONDS = 4 + 1 + TRIAL_OVERHEAD_SECONDS


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TOOLS, KEY, PAIRS)


def problems(*workloads: dict[str, Any], **spec: Any) -> list[str]:
    with pytest.raises(SpecError) as caught:
        pairs_plan(*workloads, **spec)
    return [str(problem) for problem in caught.value.problems]


def test_servers_are_numbered_after_the_clients_and_have_no_volume() -> None:
    plan = pairs_plan(clients=3)
    assert (plan.clients, plan.server_count, plan.members, plan.volume) == (3, 2, 5, None)
    assert [plan.is_server(number) for number in range(5)] == [False, False, False, True, True]
    assert load_plan(plan.model_dump_json()) == plan


@pytest.mark.parametrize(
    ("pairing", "servers", "rounds"),
    [("EachPair", 2, 6), ("EachPair", 0, 6), ("OneToAll", 2, 3), ("AllAtOnce", 2, 1)],
)
def test_rounds_depend_on_the_servers(pairing: str, servers: int, rounds: int) -> None:
    wanted = {"placement": "ClientNodes", "count": servers} if servers else None
    plan = pairs_plan({KEY: {"pairing": pairing}}, clients=3, servers=wanted)
    assert round_count(plan.points[0], plan.server_count) == rounds
    assert estimate(plan).measuring_seconds == rounds * SECONDS


def test_one_client_has_a_round_only_with_a_server() -> None:
    assert pairs_plan(clients=1).points
    assert problems(clients=1, servers=None) == [
        (
            "spec.workloads[0].pairs: takes 0 rounds with 1 clients, but 1 to 4096 are possible; choose at least 2 "
            "clients, or add spec.servers"
        )
    ]


def test_too_many_pairs_are_refused_whatever_the_number_of_rounds() -> None:
    many = {"placement": "ClientNodes", "count": 64}
    assert pairs_plan(clients=64, servers=many).points
    assert problems(clients=65, servers=many) == [
        (
            "spec.workloads[0].pairs: takes 4160 rounds with 65 clients and 64 servers, but 1 to 4096 are possible; "
            "choose fewer"
        )
    ]
    assert problems({KEY: {"pairing": "OneToAll"}}, clients=65, servers=many) == [
        (
            "spec.workloads[0].pairs: measures 4160 pairs with 65 clients and 64 servers, but at most 4096 are "
            "possible; choose fewer"
        )
    ]
    assert pairs_plan({KEY: {"pairing": "AllAtOnce"}}, clients=1000, servers=many).points


def test_servers_without_a_tool_that_uses_them_are_refused() -> None:
    storage = {"storageClass": {"name": "fast"}, "volume": {"size": "1Gi"}}
    assert problems({"fio": {}}, storage=storage) == [
        (
            "spec.servers: has no effect, because no workload has a tool whose clients connect to servers; remove it, "
            "or add such a workload"
        )
    ]
    assert pairs_plan({"fio": {}}, {KEY: {}}, storage=storage).points


def test_the_api_server_refuses_them_too() -> None:
    tools: dict[str, AnyTool] = {"fio": FIO, "radosBench": RADOS_BENCH}
    assert _rule_on_servers({**tools, KEY: PAIRS}) == "!has(self.servers) || self.workloads.exists(w, has(w.pairs))"
    assert _rule_on_servers(tools) == "!has(self.servers) || false"


def _rule_on_servers(tools: Mapping[str, AnyTool]) -> str:
    (rule,) = (rule.rule for rule in run_rules(tools) if rule.field_path == ".servers")
    return rule


def test_servers_hold_no_data() -> None:
    storage = {"storageClass": {"name": "fast"}, "volume": {"size": "1Gi", "mode": "Block"}}
    assert estimate(pairs_plan({"fio": {}}, {KEY: {}}, storage=storage)).data_bytes == 2 * 2**30


def identity(servers: dict[str, Any] | None, tool: int = 0) -> dict[str, Any]:
    storage = {"storageClass": {"name": "fast"}, "volume": {"size": "1Gi"}}
    plan = pairs_plan({KEY: {}}, {"fio": {}}, servers=servers, storage=storage)
    return dict(fingerprint(plan, plan.points[tool], Environment()).identity)


def test_servers_belong_to_the_identity_of_what_uses_them() -> None:
    assert identity({"placement": "ClientNodes", "count": 2})["servers"] == {"placement": "ClientNodes", "count": 2}
    selected = {"placement": "Selected", "count": 2, "nodeSelector": {"disk": "fast"}}
    assert identity(selected)["servers"] == {"placement": "Selected", "count": 2, "nodeSelector": {"disk": "fast"}}
    assert "servers" not in identity(None)
    assert identity(selected, tool=1) == identity(None, tool=1)


def test_the_run_keeps_its_servers() -> None:
    assert pairs_run().spec.servers == Servers(placement="ClientNodes", count=2)


def test_the_last_server_of_the_most_clients_may_register() -> None:
    many = {"placement": "ClientNodes", "count": MAX_SERVERS}
    plan = pairs_plan({KEY: {"pairing": "AllAtOnce"}}, clients=MAX_CLIENTS, servers=many)
    last = plan.members - 1
    assert Registration(protocol=PROTOCOL_VERSION, client=last, instance="i", node="n").client == last
    assert client_of(client_token(b"key", last), b"key") == last
