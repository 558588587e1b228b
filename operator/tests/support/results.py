"""Results of points and of searches whose trials gave what a test says."""

import math
import random
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import yaml
from pydantic import JsonValue

from plimsoll.api.hypothesis import Hypothesis
from plimsoll.api.line import MOST_PROBES, Ending, Line, LineSearch, Probe, ProbeOutcome
from plimsoll.api.names import AbortReason, LatencyKind, Operation, Outcome, Verdict
from plimsoll.api.operation import Latency, OperationResult, OperationSummary, Rates, Statistic
from plimsoll.api.result import (
    Abort,
    BenchmarkResult,
    Finding,
    Fingerprint,
    Matrix,
    ResultMeta,
    ResultSpec,
    ResultStatus,
    Summary,
    Trial,
)
from plimsoll.api.surroundings import Osds, Spread
from plimsoll.measure.checks.outliers import judge_links
from plimsoll.measure.hypotheses.decide import Decision, decide
from plimsoll.measure.hypotheses.select import MeasuredRun, measured_run
from plimsoll.measure.line.observe import Observation, outcome_of
from plimsoll.measure.line.search import Settings
from plimsoll.measure.matrix import MatrixCell, matrix_of
from plimsoll.measure.summary import summarise
from support.simulated_storage import OBJECTIVE, SECONDS, Storage, linear, search

BLOCK = 4096
MILLISECOND = 10**6


def measured(
    iops: float,
    *,
    p99: int | None = 5 * MILLISECOND,
    operation: Operation = Operation.READ,
    kind: LatencyKind = LatencyKind.FULL,
    histogram: str | None = None,
) -> OperationResult:
    """Return an operation whose percentiles other than p99 never change."""
    rates = Rates(iops=round(iops), bytes_per_second=round(iops) * BLOCK)
    percentiles = {"50": MILLISECOND} | ({} if p99 is None else {"99": p99})
    latency = Latency(
        kind=kind,
        count=round(iops) * 10,
        mean_nanoseconds=None if kind is LatencyKind.NONE else 1.5 * MILLISECOND,
        max_nanoseconds=50 * MILLISECOND,
        percentiles=percentiles if kind is LatencyKind.FULL else {},
        histogram=histogram,
    )
    return OperationResult(
        operation=operation,
        ios=round(iops) * 10,
        bytes=round(iops) * 10 * BLOCK,
        rates=rates,
        whole_run=rates,
        sum_of_rates=rates,
        latency=latency,
    )


def trial(number: int, *operations: OperationResult, verdict: Verdict = Verdict.VALID, **fields: Any) -> Trial:
    whole = Trial(
        pass_number=number,
        attempt=0,
        epoch="e",
        clients=(0, 1),
        outcome=Outcome.MEASURED,
        started_at="2026-01-01T00:00:00.000Z",
        finished_at="2026-01-01T00:00:04.000Z",
        verdict=verdict,
        operations=operations,
    )
    return whole.model_copy(update=fields)


def aborted(number: int, *, reason: AbortReason = AbortReason.CLIENT_LOST, **fields: Any) -> Trial:
    abort = Abort(reason=reason, message="m")
    return trial(number, verdict=Verdict.INVALID, outcome=Outcome.ABORTED, abort=abort, **fields)


def trials_of(rates: Iterable[float]) -> list[Trial]:
    return [trial(number, measured(rate)) for number, rate in enumerate(rates)]


def steady(mean: float, trials: int = 5) -> list[float]:
    """Return rates that scatter by about 1 %."""
    return [mean * (1 + 0.01 * ((number % 3) - 1)) for number in range(trials)]


def result(
    trials: Sequence[Trial],
    *,
    run: str = "baseline",
    point: str = "w-000",
    parameters: Mapping[str, Any] | None = None,
    identity: Mapping[str, Any] | None = None,
    context: Mapping[str, Any] | None = None,
    final: bool = True,
    repetitions: int | None = None,
    findings: tuple[Finding, ...] = (),
    matrix: Matrix | None = None,
) -> BenchmarkResult:
    """Return the result of a point with these trials."""
    planned = len({one.pass_number for one in trials}) if repetitions is None else repetitions
    numbers = summarise(trials, planned, matrix)
    return BenchmarkResult(
        metadata=ResultMeta(name=f"{run}-{point}", namespace="default"),
        spec=ResultSpec(
            run=run,
            run_uid=f"uid of {run}",
            point=point,
            workload=point.removesuffix("-storm").rpartition("-")[0],
            tool="fio",
            label="randread 4Ki qd1",
            parameters={"ioDepth": 1} | dict(parameters or {}),
            clients=2,
            runtime_seconds=10,
            ramp_seconds=1,
            repetitions=planned,
        ),
        status=ResultStatus(
            trials=tuple(trials),
            summary=numbers.summary,
            verdict=numbers.verdict if final else None,
            findings=(*numbers.findings, *findings) if final else (),
            fingerprint=Fingerprint(
                identity={"tool": "fio"} | dict(identity or {}),
                context={"seed": 1} | dict(context or {}),
                identity_sha256="",
                context_sha256="",
            ),
            final=final,
        ),
    )


def with_spec(result: BenchmarkResult, **fields: Any) -> BenchmarkResult:
    """Return a result with other fields in its specification."""
    return result.model_copy(update={"spec": result.spec.model_copy(update=fields)})


MEGABIT = 10**6 / 8
Mesh = Mapping[tuple[int, int], float]


def full_mesh(clients: Iterable[int], servers: Iterable[int], rate: float = 937) -> dict[tuple[int, int], float]:
    peers = list(servers)
    return {(client, peer): rate for client in clients for peer in peers if client != peer}


def matrix(mesh: Mesh, *, by_bytes: bool = True, retransmits: int | None = None) -> Matrix:
    """Return the matrix of a trial in which each pair had a round of its own; client n is on node n<n>."""
    cells = [
        MatrixCell(
            client=client,
            peer=peer,
            client_node=f"n{client}",
            peer_node=f"n{peer}",
            iops=0 if by_bytes else rate,
            bytes_per_second=rate * MEGABIT if by_bytes else 0,
            retransmits=retransmits,
        )
        for (client, peer), rate in mesh.items()
    ]
    found = matrix_of(judge_links([[cell] for cell in cells])[0])
    assert found is not None
    return found


def matrix_point(found: Matrix | None, *, verdict: Verdict = Verdict.VALID, **fields: Any) -> BenchmarkResult:
    written = measured(1000, operation=Operation.WRITE, kind=LatencyKind.NONE)
    trials = [trial(number, written, verdict=verdict) for number in range(3)]
    return result(trials, matrix=None if verdict is Verdict.INVALID else found, **fields)


def layer_result(
    point: str,
    tool: str,
    rates: dict[Operation, tuple[float, float]],
    *,
    verdict: Verdict = Verdict.VALID,
    osds: Osds | None = None,
    reason: str = "",
) -> BenchmarkResult:
    """Return a result with bytes and operations per second of each operation, and a finding if there is a reason."""
    operations = tuple(
        OperationSummary(
            operation=operation,
            iops=Statistic(trials=1, mean=iops),
            bytes_per_second=Statistic(trials=1, mean=volume),
            latency=Latency(kind=LatencyKind.NONE, count=0),
        )
        for operation, (volume, iops) in rates.items()
    )
    tried = trial(0, verdict=verdict, osds=osds)
    plain = result([tried], run="r", point=point)
    findings = (Finding(reason=reason, verdict=Verdict.SUSPECT, message="m"),) if reason else ()
    summary = Summary(trials=1, operations=operations)
    status = ResultStatus(trials=(tried,), summary=summary, verdict=verdict, findings=findings)
    fields = {"workload": "w", "tool": tool, "label": point, "parameters": {}, "clients": 1, "runtime_seconds": 1}
    return with_spec(plain.model_copy(update={"status": status}), **fields)


def osds(count: int, volume: int, iops: float) -> Osds:
    spread = Spread(min=1, median=1, max=1)
    return Osds(count=count, iops=spread, bytes_per_second=spread, mean_iops=iops, mean_bytes_per_second=volume)


READ, WRITE = Operation.READ, Operation.WRITE
ALL_LAYERS = [
    layer_result("o-0", "osdBench", {WRITE: (99, 99)}, osds=osds(3, 300, 30)),
    layer_result("o-1", "osdBench", {WRITE: (99, 99)}, osds=osds(3, 100, 3000)),
    layer_result("r-0", "radosBench", {WRITE: (150, 15)}),
    layer_result("r-1", "radosBench", {WRITE: (240, 10)}),
    layer_result("r-2", "radosBench", {READ: (500, 50)}),
    layer_result("f-0", "fio", {READ: (250, 40), WRITE: (120, 5)}),
    layer_result("f-1", "fio", {READ: (9999, 9999)}, verdict=Verdict.INVALID),
]


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


def operation_at(
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


def trials_at(rates: Sequence[float], **fields: Any) -> list[Trial]:
    """Return one trial of each rate; `fields` are of `operation`."""
    return [trial(number, operation_at(rate, **fields)) for number, rate in enumerate(rates)]


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
    attempts = [one if isinstance(one, Trial) else trial(n, operation_at(one)) for n, one in enumerate(measured)]
    whole = result(attempts, run=run, point=name, final=final, findings=findings)
    return with_spec(whole, clients=clients, parameters=parameters)


def run_of_points(*points: BenchmarkResult, variant: str = "", name: str = "r1") -> MeasuredRun:
    """Return a run of a variant, with a UID of its own."""
    return measured_run(variant, name, [with_spec(point, run_uid=f"uid of {variant} {name}") for point in points])


def pair(rbd: _Measured, rados: _Measured, *, variant: str = "", name: str = "r1") -> MeasuredRun:
    points = point("rbd-000", rbd, run=name, blockSize="4Mi"), point("rados-000", rados, run=name, objectSize="4Mi")
    return run_of_points(*points, variant=variant, name=name)


def sweep(by_clients: Mapping[int, Sequence[float]], *, variant: str = "", name: str = "r1") -> MeasuredRun:
    points = (
        point(f"rados-{number:03d}", rates, clients=clients, run=name, objectSize="4Mi")
        for number, (clients, rates) in enumerate(by_clients.items())
    )
    return run_of_points(*points, variant=variant, name=name)


def decided(given: Hypothesis, *runs: MeasuredRun) -> Decision:
    (decision,) = decide(given, runs)
    return decision


SEARCH = LineSearch(start=500, limit=200_000, objectives=(OBJECTIVE,))
PRECISE = Line(ending=Ending.PRECISE, probes=4, counted=3, estimate=12_412.3, low=11_824.7, high=13_001.9)
GOING_ON = Line(probes=3, counted=3, low=8000, high=16_000)
BOUND = Line(ending=Ending.NEVER_BROKE, probes=12, counted=12, low=231_512.7)
UNKNOWN = Line(ending=Ending.PROBES_USED_UP, probes=40, counted=0)
_AWAY = {"count": 1, "action": "Out"}
STORM = Line.model_validate({**PRECISE.model_dump(), "estimate": 7100, "low": 6700, "high": 7500, "storm": _AWAY})


def line(
    estimate: float | None,
    *,
    width: float = 0.1,
    low: float | None = None,
    high: float | None = None,
    ending: Ending | None = Ending.PRECISE,
    counted: int = 20,
) -> Line:
    """Return a line whose interval is this part of the estimate wide, unless its ends are given."""
    if estimate is not None:
        low = estimate * (1 - width / 2) if low is None else low
        high = estimate * (1 + width / 2) if high is None else high
    return Line(ending=ending, probes=counted, counted=counted, estimate=estimate, low=low, high=high)


def above(limit: float = 200_000) -> Line:
    return line(None, low=limit * 1.1, ending=Ending.NEVER_BROKE)


def below(load: float = 1) -> Line:
    return line(None, high=load, ending=Ending.BROKEN_AT_FIRST)


def probe(
    number: int,
    offered: float,
    outcome: ProbeOutcome = ProbeOutcome.MET,
    *,
    p99: int | None = 2_000_000,
    achieved: float | None = None,
    histogram: str | None = None,
    verdict: Verdict = Verdict.VALID,
) -> Trial:
    """Return a measured probe that achieved its load unless another one is given."""
    got = offered if achieved is None else achieved
    load = Probe(offered=offered, achieved=got, depth_full_percent=0.25, outcome=outcome)
    operation = measured(got, p99=p99, operation=Operation.READ, kind=LatencyKind.FULL, histogram=histogram)
    return trial(number, operation, verdict=verdict, probe=load)


def died(number: int, offered: float, attempt: int = 0) -> Trial:
    return aborted(number, attempt=attempt, probe=Probe(offered=offered, outcome=ProbeOutcome.UNKNOWN))


def searched(
    found: Line | None = PRECISE,
    trials: Sequence[Trial] | None = None,
    *,
    run: str = "baseline",
    point: str = "line-000",
    search: LineSearch = SEARCH,
    verdict: Verdict | None = Verdict.VALID,
    findings: Sequence[Finding] = (),
) -> BenchmarkResult:
    """Return the result of a search with that line.

    Without other trials, every other probe broke at the estimate; all probes of a bound ended on its side.
    """
    if trials is None and found is not None:
        outcomes = [ProbeOutcome.MET, ProbeOutcome.LATE]
        if not found.estimate:
            outcomes = outcomes[:1] if found.low else outcomes[1:]
        load = found.estimate or search.start
        trials = [probe(number, load, outcomes[number % len(outcomes)]) for number in range(found.probes)]
    plain = result(trials or (), run=run, point=point, repetitions=MOST_PROBES)
    status = plain.status.model_copy(
        update={
            "summary": None,
            "line": found,
            "verdict": verdict,
            "findings": tuple(findings),
            "final": found is not None and found.ending is not None,
        }
    )
    return with_spec(plain.model_copy(update={"status": status}), line=search, label="randread 4Ki up to qd64")


_OF_P99 = {"50": 0.4, "90": 0.7, "95": 0.8, "99": 1.0, "99.9": 1.3, "99.99": 1.7}
"""Each percentile of a trial, as a part of the measured one."""

_MEAN_OF_P99 = 0.45


def simulated(
    storage: Storage | None = None,
    *,
    run: str = "baseline",
    point: str = "line-000",
    label: str = "randread 4Ki up to qd64",
    parameters: Mapping[str, JsonValue] | None = None,
    search_for: LineSearch = SEARCH,
    seed: Hashable = 1,
    probes: int | None = None,
    clients: int = 2,
) -> BenchmarkResult:
    """Return the result of a search whose objective is that of `offered`; unfinished after some probes.

    Args:
        storage: what is measured; a line at 12 000 operations per second that scatters by 3 % by default.
        probes: the number of probes after which the search is looked at; until its end by default.

    """
    observed, found = _search(storage or linear(12_000, 0.03), search_for, clients, seed)
    trials = tuple(_probe_trial(number, observation) for number, observation in enumerate(observed[:probes]))
    verdict: Verdict | None = Verdict.VALID
    findings: list[Finding] = []
    if probes is not None:
        found, verdict = Line(probes=len(trials), counted=len(trials)), None
    elif found.ending in {Ending.NOT_MONOTONE, Ending.DRIFTING}:
        verdict = Verdict.SUSPECT
        findings.append(Finding(reason=str(found.ending), verdict=verdict, message="the line is doubtful"))
    plain = searched(found, trials, run=run, point=point, search=search_for, verdict=verdict, findings=findings)
    return with_spec(
        plain,
        label=label,
        parameters={"ioDepth": 64, "blockSize": "4Ki", **(parameters or {})},
        clients=clients,
        runtime_seconds=SECONDS,
        ramp_seconds=10,
    )


def _probe_trial(number: int, observation: Observation) -> Trial:
    """Return the trial of one probe, a minute after the one before."""
    p99 = observation.latencies[0]
    latency = Latency(
        kind=LatencyKind.FULL,
        count=round(observation.whole.achieved * SECONDS),
        mean_nanoseconds=_MEAN_OF_P99 * (p99 or 0.0),
        percentiles={} if p99 is None else {name: round(share * p99) for name, share in _OF_P99.items()},
    )
    achieved, completed = observation.whole.achieved, latency.count
    rates = Rates(iops=achieved, bytes_per_second=round(achieved) * BLOCK)
    operation = measured(achieved).model_copy(
        update={
            "ios": completed,
            "bytes": completed * BLOCK,
            "latency": latency,
            **dict.fromkeys(("rates", "whole_run", "sum_of_rates"), rates),
        }
    )
    load = Probe(
        offered=observation.whole.offered,
        achieved=achieved,
        depth_full_percent=100 * (observation.depth_full_share or 0.0),
        outcome=outcome_of(observation, [OBJECTIVE]),
    )
    begin = f"2026-01-01T00:{number:02}"
    times: dict[str, Any] = {"started_at": f"{begin}:00.000Z", "finished_at": f"{begin}:59.000Z"}
    return trial(number, operation, probe=load, **times)


@cache
def _search(
    storage: Storage, search_for: LineSearch, clients: int, seed: Hashable
) -> tuple[Sequence[Observation], Line]:
    observed: list[Observation] = []

    def recorded(load: float, number: int, chance: random.Random) -> Observation:
        observed.append(storage(load, number, chance))
        return observed[-1]

    settings = Settings(
        start=search_for.start,
        limit=search_for.highest_load,
        precision_percent=search_for.precision_percent,
        step=clients,
    )
    line, _ = search(recorded, settings, seed)
    return tuple(observed), line
