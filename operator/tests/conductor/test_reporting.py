"""The environment of a result."""

from pydantic import JsonValue

from plimsoll.api.environment import Environment
from plimsoll.conductor.roster import Roster, environment
from plimsoll.protocol.messages import Registration

NOTHING = Environment()


def described(roster: Roster, storage: Environment = NOTHING) -> dict[str, JsonValue]:
    found = environment(roster, storage)
    assert found is not None
    return found.document()


def roster_of(*registrations: Registration) -> Roster:
    roster = Roster(len(registrations), lost_after=20)
    for registration in registrations:
        roster.register(registration, 0.0)
    return roster


def client(number: int, *, node: str = "a", prepared: int = 2**30, kernel: str = "6.1") -> Registration:
    return Registration(
        protocol=1, client=number, instance="i", node=node, prepared_bytes=prepared, facts={"kernel": kernel}
    )


def test_each_distinct_fact_is_listed_once() -> None:
    found = described(roster_of(client(0), client(1, node="b"), client(2, node="b", kernel="6.2", prepared=2**31)))
    assert found == {
        "nodes": ["a", "b"],
        "nodeCount": 2,
        "dataSetBytes": {"min": 2**30, "max": 2**31},
        "kernel": ["6.1", "6.2"],
    }


def test_the_description_of_the_cluster_is_added() -> None:
    ceph = Environment.model_validate({"ceph": {"seenFrom": ["a"]}})
    assert described(roster_of(client(0)), ceph)["ceph"] == {"seenFrom": ["a"]}
    assert environment(roster_of(), ceph) is None, "it is not known yet who uses it"


def test_a_client_does_not_replace_the_conductor_s_facts() -> None:
    facts: dict[str, JsonValue] = {"nodes": "none", "nodeCount": -1, "dataSetBytes": "much", "kernel": "6.1"}
    lying = client(0).model_copy(update={"facts": facts})
    assert described(roster_of(lying)) == described(roster_of(client(0)))


def test_nothing_is_known_without_clients() -> None:
    assert environment(roster_of(), NOTHING) is None


def test_a_client_that_prepares_again_has_no_data_set_yet() -> None:
    found = described(roster_of(client(0), client(1, prepared=0)))
    assert found["dataSetBytes"] == {"min": 2**30, "max": 2**30}


def test_many_nodes_are_counted_and_some_of_them_named() -> None:
    found = described(roster_of(*(client(number, node=f"node-{number:04d}") for number in range(1000))))
    assert found["nodeCount"] == 1000
    assert found["nodes"] == [f"node-{number:04d}" for number in range(64)]
