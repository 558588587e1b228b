"""A toy tool that one actor runs with its own ServiceAccount, as kube-burner needs it.

Follows the recipe "Add a tool" of CONTRIBUTING.md.
"""

from typing import Annotated, Any, ClassVar

import pytest
from pydantic import Field

from plimsoll.api.errors import SpecError
from plimsoll.api.model import Integer
from plimsoll.api.names import LatencyKind, Layer, Operation, RunPhase, Verdict
from plimsoll.api.run import decode_run
from plimsoll.lifecycle.render import client as render
from plimsoll.lifecycle.run import Settings, run_of
from plimsoll.measure.sample import ClientDocument, LatencySample, Measurement, OperationSample
from plimsoll.plan.document import Plan
from plimsoll.plan.expand import make_plan
from plimsoll.protocol.messages import ArmOrder
from plimsoll.tools.base import Command, Output, StepContext, Tool, ToolParameters
from plimsoll.tools.cast import Executor
from plimsoll.tools.registry import TOOLS
from plimsoll.tools.target import ApiTarget, TargetKind
from support.client_documents import SECOND, make_document
from support.simulation import Simulation


class Objects(ToolParameters):
    """Number of objects to create."""

    axes: ClassVar[frozenset[str]] = frozenset({"objects"})
    objects: Annotated[Integer, Field(ge=1, le=1000)] = 10

    def label(self) -> str:
        return f"{self.objects} objects"


class Burner(Tool[Objects]):
    """Creates objects through the Kubernetes API."""

    key: ClassVar[str] = "toyBurner"
    program: ClassVar[str] = "toy-burner"
    parameters = Objects
    layer: ClassVar[Layer] = Layer.CONTROL_PLANE
    target: ClassVar[TargetKind] = TargetKind.API
    executor: ClassVar[Executor] = Executor(alone=True, service_account="toy-burner")
    windowed: ClassVar[bool] = False

    def command(self, parameters: Objects, context: StepContext) -> Command:
        assert context.target == ApiTarget()
        return Command(argv=(self.program, str(parameters.objects)))

    def parse(self, parameters: Objects, context: StepContext, output: Output) -> Measurement:
        made = OperationSample(
            operation=Operation.WRITE, ios=int(output.stdout), bytes=0, latency=LatencySample(kind=LatencyKind.NONE)
        )
        return Measurement(
            tool=self.key,
            tool_version="1",
            started_at=output.launched_at,
            runtime=output.finished_at - output.launched_at,
            operations=(made,),
        )


class Other(Burner):
    key: ClassVar[str] = "toyOther"
    executor: ClassVar[Executor] = Executor(alone=True, service_account="toy-other")


class Simulated(Simulation):
    """A run whose clients send the documents of the toy's parser."""

    def document(self, client: int, armed: ArmOrder) -> ClientDocument:
        started = armed.t0_nanoseconds
        output = Output(
            exit_code=0, stdout="40", stderr="", files={}, launched_at=started, finished_at=started + 4 * SECOND
        )
        context: Any = None
        measurement = BURNER.parse(Objects.model_validate(armed.parameters), context, output)
        return make_document(client, started).model_copy(update={"measurement": measurement})


BURNER = Burner()


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    for tool in (BURNER, Other()):
        monkeypatch.setitem(TOOLS, tool.key, tool)


def run(*workloads: dict[str, Any]) -> dict[str, Any]:
    metadata = {"name": "run", "namespace": "bench", "uid": "u", "creationTimestamp": "2026-01-01T12:00:00Z"}
    spec = {
        "clients": {"count": 3},
        "workloads": [
            {"name": f"w{number}", "runtimeSeconds": 4, "rampSeconds": 1, **fields}
            for number, fields in enumerate(workloads)
        ],
        "repetitions": 2,
    }
    return {"apiVersion": "plimsoll.dev/v1alpha1", "kind": "BenchmarkRun", "metadata": metadata, "spec": spec}


def plan_of(*workloads: dict[str, Any]) -> Plan:
    return make_plan(decode_run(run(*workloads)), seed=1, runner_image="runner:1")


def test_points_have_one_client_and_no_volume() -> None:
    plan = plan_of({"toyBurner": {"objects": [10, 20]}})
    assert [(point.clients, point.label) for point in plan.points] == [(1, "10 objects"), (1, "20 objects")]
    assert plan.volume is None


def test_a_number_of_clients_is_refused() -> None:
    with pytest.raises(SpecError, match="does not apply to toyBurner, which one client runs for all"):
        plan_of({"toyBurner": {"objects": [10]}, "clients": [2]})


def test_one_pod_never_gets_two_sets_of_rights() -> None:
    with pytest.raises(SpecError, match="needs other rights than toyBurner of workload w0; split the run"):
        plan_of({"toyBurner": {}}, {"toyOther": {}})


def test_only_the_actors_pod_has_its_rights() -> None:
    plan = plan_of({"toyBurner": {"objects": [10]}})
    pods = [
        render.job(run_of(run({"toyBurner": {}})), plan, Settings(runner_image="runner:1"), client=client, attempt=0)[
            "spec"
        ]["template"]["spec"]
        for client in range(3)
    ]
    assert [pod.get("serviceAccountName") for pod in pods] == ["toy-burner", None, None]
    assert [pod["automountServiceAccountToken"] for pod in pods] == [True, False, False]


def test_only_the_actor_measures() -> None:
    simulation = Simulated(plan_of({"toyBurner": {"objects": [10]}}))
    simulation.settle()
    assert simulation.phase is RunPhase.COMPLETE
    trials = simulation.stored["w0-000"]
    assert [(trial.clients, trial.verdict) for trial in trials] == [((0,), Verdict.VALID)] * 2
    operations = [operation for trial in trials for operation in trial.operations]
    assert [(each.ios, each.bytes, each.rates.iops) for each in operations] == [(40, 0, 10)] * 2
    assert {client for _, _, client in simulation.touched} == {0}
