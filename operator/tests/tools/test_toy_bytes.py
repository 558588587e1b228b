"""A toy tool that counts only bytes: no check, headline or comparison assumes operations.

Follows the recipe "Add a tool" of CONTRIBUTING.md.
"""

from typing import Annotated, Any, ClassVar

import pytest
from pydantic import Field

from plimsoll.api.model import Integer
from plimsoll.api.names import LatencyKind, Layer, Metric, Operation, Verdict
from plimsoll.api.result import BenchmarkResult
from plimsoll.api.run import Workload
from plimsoll.conductor.sink import result_display, result_of
from plimsoll.measure.compare.comparison import Comparison, compare
from plimsoll.measure.compare.values import RegressionRule, match_points
from plimsoll.measure.rates import Quantities
from plimsoll.measure.sample import Cells, ClientDocument, LatencySample, Measurement, OperationSample
from plimsoll.plan.document import Plan, Point
from plimsoll.protocol.messages import ArmOrder
from plimsoll.report.figure import result_rows, runs_of
from plimsoll.report.page import make_page
from plimsoll.report.points import RESULT_COLUMNS, named
from plimsoll.report.view import csv_rows
from plimsoll.tools.base import Command, Output, StepContext, Tool, ToolParameters
from plimsoll.tools.registry import TOOLS
from plimsoll.tools.target import TargetKind
from support.client_documents import EPOCH, SECOND, make_document, make_plan
from support.simulation import Simulation

MEBIBYTE = 2**20


class Copies(ToolParameters):
    """Size of a block."""

    axes: ClassVar[frozenset[str]] = frozenset({"mebibytes"})
    mebibytes: Annotated[Integer, Field(ge=1, le=64)] = 1

    def label(self) -> str:
        return f"copy {self.mebibytes} MiB"


class Copy(Tool[Copies]):
    """Copies, and prints the copied bytes of each second."""

    key: ClassVar[str] = "toyCopy"
    program: ClassVar[str] = "toy-copy"
    parameters = Copies
    layer: ClassVar[Layer] = Layer.DEVICE
    quantities: ClassVar[Quantities] = Quantities(operations=False)
    target: ClassVar[TargetKind] = TargetKind.VOLUME
    least_runtime_seconds: ClassVar[int] = 3

    def command(self, parameters: Copies, context: StepContext) -> Command:
        return Command(argv=(self.program, context.target.name, str(parameters.mebibytes)))

    def parse(self, parameters: Copies, context: StepContext, output: Output) -> Measurement:
        copied = [int(line) for line in output.stdout.split()]
        written = OperationSample(
            operation=Operation.WRITE,
            ios=0,
            bytes=sum(copied),
            latency=LatencySample(kind=LatencyKind.NONE),
            cells=Cells(width_nanoseconds=SECOND, ios=(0.0,) * len(copied), bytes=tuple(map(float, copied))),
        )
        return Measurement(
            tool=self.key,
            tool_version="1",
            started_at=output.launched_at + SECOND,
            runtime=len(copied) * SECOND,
            operations=(written,),
        )


COPY = Copy()


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TOOLS, COPY.key, COPY)


class Simulated(Simulation):
    """A run whose clients send the documents of the toy's parser, with these MiB per second."""

    def __init__(self, plan: Plan, *seconds: int) -> None:
        super().__init__(plan)
        self.copied = seconds or (100, 100, 100, 100)

    def document(self, client: int, armed: ArmOrder) -> ClientDocument:
        # Trials differ a little, so that their noise can be estimated.
        jitter = (self.t0 - EPOCH) // SECOND % 7 * 1024
        stdout = "\n".join(str(copied * MEBIBYTE + jitter * (copied > 0)) for copied in self.copied)
        output = Output(exit_code=0, stdout=stdout, stderr="", files={}, launched_at=self.t0)
        context: Any = None
        measurement = COPY.parse(Copies.model_validate(armed.parameters), context, output)
        return make_document(client, self.t0).model_copy(update={"measurement": measurement})


def plan_of(repetitions: int = 5) -> Plan:
    plan = make_plan(points=1, clients=2, repetitions=repetitions)
    point = plan.points[0].model_copy(update={"tool": COPY.key, "parameters": Copies().model_dump(mode="json")})
    return plan.model_copy(update={"points": (Point.model_validate(point.model_dump()),)})


def measured(*seconds: int) -> BenchmarkResult:
    simulation = Simulated(plan_of(), *seconds)
    simulation.settle()
    status = simulation.session.ledger.status("w-000", None)
    return result_of(simulation.plan, simulation.plan.points[0], status)


def reasons(result: BenchmarkResult) -> set[str]:
    return {finding.reason for trial in result.status.trials for finding in trial.findings}


def compared(baseline: BenchmarkResult, candidate: BenchmarkResult) -> Comparison:
    spec = candidate.spec.model_copy(update={"run_uid": "another"})
    return compare(match_points([baseline], [candidate.model_copy(update={"spec": spec})]), RegressionRule())


def test_its_key_is_not_a_field_of_workload() -> None:
    assert COPY.key not in Workload.model_fields


def test_numbers_without_operations_are_valid() -> None:
    result = measured()
    assert (result.status.verdict, reasons(result)) == (Verdict.VALID, set())
    (summary,) = result.status.summary.operations if result.status.summary else ()
    assert summary.iops.mean == 0
    assert summary.bytes_per_second.mean == pytest.approx(200 * MEBIBYTE, rel=1e-3)


def test_zero_bytes_mean_no_io() -> None:
    assert "NoIo" in reasons(measured(0, 0, 0, 0))


def test_stalls_are_detected_from_bytes() -> None:
    assert "Stalled" in reasons(measured(100, 0, 0, 100))


def test_tables_show_only_bytes() -> None:
    result = measured()
    display = result_display(result.status, 5)
    assert (display.iops, display.bytes_per_second) == ("-", "200.0 MiB/s")
    (row,) = csv_rows(RESULT_COLUMNS, result_rows(named([result])))
    assert row["iops"] is None
    assert row["bytes_per_second"] == pytest.approx(200 * MEBIBYTE, rel=1e-3)


def test_a_report_shows_bytes() -> None:
    (run,) = runs_of([measured()])
    page = make_page([run], [])
    words = [line for section in page.sections for block in section.blocks for line in getattr(block, "paragraphs", ())]
    assert any("at most 200.0 MiB/s" in line for line in words), words


def test_a_comparison_is_decided_by_bytes() -> None:
    same = compared(measured(), measured())
    assert [(metric.metric, metric.gates) for metric in same.points[0].metrics] == [(Metric.BYTES, True)]
    assert same.conclusion == "NoRegression"
    assert compared(measured(), measured(50, 50, 50, 50)).conclusion == "Regression"
