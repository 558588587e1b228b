"""When the gate is open, and how long clients may take before and after a trial."""

import pytest
from pydantic import JsonValue

from plimsoll.api.status import TrialKey
from plimsoll.conductor.attempt import Attempt, Timings
from plimsoll.conductor.phases import ClusterView, Gate
from plimsoll.conductor.roster import Roster
from plimsoll.plan.document import Point
from plimsoll.protocol.messages import Registration
from plimsoll.tools.cast import ACTOR_CLIENT
from support.client_documents import make_plan

ILL = ClusterView(prepared=True, problems=("1 of 3 OSDs are down",))


def attempt(tool: str, parameters: dict[str, JsonValue], roster: Roster | None = None) -> Attempt:
    point = Point(
        name="w-000",
        workload="w",
        tool=tool,
        parameters=parameters,
        label="",
        clients=1,
        runtime_seconds=60,
        ramp_seconds=10,
    )
    return Attempt(
        plan=make_plan(),
        roster=roster or Roster(1, lost_after=20),
        timings=Timings(),
        epoch="",
        key=TrialKey(point="w-000", pass_number=0, attempt=0),
        point=point,
    )


def test_a_gate_without_a_cluster_is_open() -> None:
    gate = Gate()
    assert gate.view.prepared
    assert gate.problems(1e9) == ()


def test_a_gate_that_is_not_required_only_waits_for_the_preparation() -> None:
    gate = Gate(watched=True, required=False)
    assert gate.problems(0) == ("it is being prepared",)
    gate.see(ClusterView(prepared=False, problems=("pool p does not exist",)), 0)
    assert gate.problems(0) == ("pool p does not exist",)
    gate.see(ILL, 1)
    assert gate.problems(1000) == ()


def test_a_gate_that_is_not_required_waits_until_options_have_the_values_of_the_run() -> None:
    gate = Gate(watched=True, required=False)
    differing = ("option osd_mclock_profile of osd is balanced",)
    gate.see(ClusterView(prepared=True, problems=(*ILL.problems, *differing), differing_options=differing), 0)
    assert gate.problems(1000) == differing
    gate.see(ILL, 1001)
    assert gate.problems(1001) == ()


def test_a_required_gate_is_open_while_a_fresh_look_finds_no_problem() -> None:
    gate = Gate(watched=True, fresh_seconds=15)
    gate.see(ClusterView(prepared=True), 100)
    assert gate.problems(115) == ()
    assert gate.problems(116) == ("Ceph has not reported its status for more than 15 s",)
    gate.see(ILL, 117)
    assert gate.problems(117) == ILL.problems


@pytest.mark.parametrize(
    ("parameters", "seconds"), [({"operation": "rand"}, 1370), ({"operation": "rand", "write_seconds": 7200}, 8500)]
)
def test_clients_may_take_ten_times_the_trial_and_the_time_that_they_write(
    parameters: dict[str, JsonValue], seconds: float
) -> None:
    assert attempt("radosBench", parameters).staging_seconds == seconds


@pytest.mark.parametrize(
    ("tool", "parameters", "seconds"),
    [
        ("fio", {}, 45),
        ("radosBench", {"operation": "write"}, 45 + 70 + 60),
        ("osdBench", {"user": "admin", "keyring_secret": {"name": "k"}}, 45 + 10 * 70),
    ],
)
def test_a_tool_that_cleans_up_or_is_not_time_based_may_overrun_for_longer(
    tool: str, parameters: dict[str, JsonValue], seconds: float
) -> None:
    assert attempt(tool, parameters).overrun_seconds == seconds


def test_the_client_with_the_key_loads_the_osds_whatever_its_node() -> None:
    roster = Roster(3, lost_after=20)
    for number, node in enumerate(("node-c", "node-a", "node-b")):
        roster.register(Registration(protocol=1, client=number, instance=str(number), node=node), 0.0)
    keyring: JsonValue = {"name": "k"}
    on_osds = attempt("osdBench", {"user": "admin", "keyring_secret": keyring}, roster)
    on_volume = attempt("fio", {}, roster)
    for chosen in (on_osds, on_volume):
        chosen.choose_clients()
    assert (on_osds.clients, on_volume.clients) == ((ACTOR_CLIENT,), (1,))
