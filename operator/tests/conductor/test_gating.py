"""When the gate is open, and how long clients may take around a trial."""

import pytest
from pydantic import JsonValue

from plimsoll.conductor.gating import Gate, View
from plimsoll.conductor.roster import Roster
from plimsoll.conductor.steps import overrun_seconds, participants, staging_seconds
from plimsoll.conductor.timings import Timings
from plimsoll.plan.document import Point
from plimsoll.protocol.messages import Registration
from plimsoll.tools.base import ACTOR_CLIENT

ILL = View(prepared=True, problems=("1 of 3 OSDs are down",))


def point(tool: str, **parameters: JsonValue) -> Point:
    return Point(
        name="w-000",
        workload="w",
        tool=tool,
        parameters=parameters,
        label="",
        clients=1,
        runtime_seconds=60,
        ramp_seconds=10,
    )


def test_a_gate_that_nobody_looks_through_is_open() -> None:
    gate = Gate()
    assert gate.is_prepared
    assert gate.problems(1e9) == ()


def test_a_gate_that_is_not_required_waits_for_what_is_made_only() -> None:
    gate = Gate(watched=True, required=False)
    assert gate.problems(0) == ("it is being prepared",)
    gate.see(View(prepared=False, problems=("there is no pool p",)), 0)
    assert gate.problems(0) == ("there is no pool p",)
    gate.see(ILL, 1)
    assert gate.problems(1000) == ()


def test_a_required_gate_is_open_while_a_fresh_look_finds_no_problem() -> None:
    gate = Gate(watched=True, fresh_seconds=15)
    gate.see(View(prepared=True), 100)
    assert gate.problems(115) == ()
    assert gate.problems(116) == ("Ceph has not said for more than 15 s how it is",)
    gate.see(ILL, 117)
    assert gate.problems(117) == ILL.problems


@pytest.mark.parametrize(
    ("parameters", "seconds"), [({"operation": "rand"}, 1370), ({"operation": "rand", "write_seconds": 7200}, 8500)]
)
def test_clients_may_take_ten_times_the_trial_and_what_they_were_asked_to_write(
    parameters: dict[str, JsonValue], seconds: float
) -> None:
    assert staging_seconds(point("radosBench", **parameters), Timings()) == seconds


def test_a_tool_that_cleans_up_may_overrun_for_as_long_as_it_measured_and_a_minute() -> None:
    assert overrun_seconds(point("fio"), Timings()) == 45
    assert overrun_seconds(point("radosBench", operation="write"), Timings()) == 45 + 70 + 60


def test_a_tool_that_ends_when_its_work_is_done_has_ten_times_its_trial_more() -> None:
    assert overrun_seconds(point("osdBench", user="admin", keyring_secret={"name": "k"}), Timings()) == 45 + 10 * 70


def test_who_loads_the_osds_is_the_client_that_has_the_key_wherever_it_is() -> None:
    roster = Roster(3, lost_after=20)
    for number, node in enumerate(("node-c", "node-a", "node-b")):
        roster.register(Registration(protocol=1, client=number, instance=str(number), node=node), 0.0)
    keyring: JsonValue = {"name": "k"}
    assert participants(point("osdBench", user="admin", keyring_secret=keyring), roster) == (ACTOR_CLIENT,)
    assert participants(point("fio"), roster) == (1,)
