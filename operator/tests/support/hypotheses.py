"""Hypotheses as a user writes them, and runs whose points gave what a test says."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from plimsoll.api.hypothesis import Hypothesis
from plimsoll.api.names import LatencyKind, Operation
from plimsoll.api.operation import OperationResult, Rates
from plimsoll.api.result import BenchmarkResult, Finding, Trial
from plimsoll.measure.hypotheses.decide import Decision, decide
from plimsoll.measure.hypotheses.select import MeasuredRun, measured_run
from support.repeated import BLOCK, measured, trial
from support.repeated import result as result_of

RATIO = """
name: rbd-close-to-rados
left: {workload: rbd, where: {blockSize: 4Mi, clients: 8}, quantity: bytesPerSecond}
atLeastPercent: 90
of: {workload: rados, where: {objectSize: 4Mi, clients: 8}, quantity: bytesPerSecond}
"""
SCALING = """
name: scales-with-clients
left: {workload: rados, quantity: bytesPerSecond}
over: clients
range: {first: 1, last: 5}
exponentAtLeast: "0.8"
"""


_Measured = Sequence[Trial | float]


def hypothesis(text: str = RATIO, **changes: Any) -> Hypothesis:
    """Return a hypothesis with other fields; None removes one."""
    document = yaml.safe_load(text) | changes
    return Hypothesis.model_validate({key: value for key, value in document.items() if value is not None})


def operation(
    rate: float,
    *,
    block: int = BLOCK,
    kind: Operation = Operation.WRITE,
    latency: LatencyKind = LatencyKind.FULL,
    p99: int | None = 5_000_000,
) -> OperationResult:
    """Return an operation with this rate, not rounded; with `block` 0 that of a tool without bytes."""
    rates = Rates(iops=rate, bytes_per_second=round(rate * block) if math.isfinite(rate) else 0)
    found = measured(100, operation=kind, kind=latency, p99=p99)
    return found.model_copy(update={"rates": rates, "bytes": 100 * block})


def trials(rates: Sequence[float], **fields: Any) -> list[Trial]:
    """Return one trial of each rate; `fields` are of `operation`."""
    return [trial(number, operation(rate, **fields)) for number, rate in enumerate(rates)]


def point(
    name: str,
    measured: _Measured,
    *,
    clients: int = 8,
    run: str = "r1",
    final: bool = True,
    findings: tuple[Finding, ...] = (),
    **parameters: Any,
) -> BenchmarkResult:
    """Return the result of a point, from its trials or from their rates."""
    attempts = [one if isinstance(one, Trial) else trial(n, operation(one)) for n, one in enumerate(measured)]
    found = result_of(attempts, run=run, point=name, final=final, findings=findings)
    spec = found.spec.model_copy(update={"clients": clients, "parameters": parameters})
    return found.model_copy(update={"spec": spec})


def run(*points: BenchmarkResult, variant: str = "", name: str = "r1") -> MeasuredRun:
    """Return a run with these points."""
    return measured_run(variant, name, points)


def pair(rbd: _Measured, rados: _Measured, *, variant: str = "", name: str = "r1") -> MeasuredRun:
    """Return a run with both points of `RATIO`."""
    points = point("rbd-000", rbd, run=name, blockSize="4Mi"), point("rados-000", rados, run=name, objectSize="4Mi")
    return run(*points, variant=variant, name=name)


def sweep(by_clients: Mapping[int, Sequence[float]], *, variant: str = "", name: str = "r1") -> MeasuredRun:
    """Return a run with the points of `SCALING`."""
    points = (
        point(f"rados-{number:03d}", rates, clients=clients, run=name, objectSize="4Mi")
        for number, (clients, rates) in enumerate(by_clients.items())
    )
    return run(*points, variant=variant, name=name)


def decided(given: Hypothesis, *runs: MeasuredRun) -> Decision:
    """Return the only decision."""
    (decision,) = decide(given, runs)
    return decision
