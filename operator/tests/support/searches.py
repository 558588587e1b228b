"""Results of searches for the line, with trials that gave what a test says."""

from collections.abc import Sequence

from plimsoll.api.line import Ending, Line, LineSearch, Objective, Probe, ProbeOutcome, Vary
from plimsoll.api.names import LatencyKind, Operation, Verdict
from plimsoll.api.result import BenchmarkResult, Finding, Trial
from support.repeated import aborted, measured, result, trial

SEARCH = LineSearch(start=500, limit=200_000, objectives=(Objective(percentile="99", latency_microseconds=5000),))
PRECISE = Line(ending=Ending.PRECISE, probes=4, counted=3, estimate=12_412.3, low=11_824.7, high=13_001.9)
GOING_ON = Line(probes=3, counted=3, low=8000, high=16_000)
BOUND = Line(ending=Ending.NEVER_BROKE, probes=12, counted=12, low=231_512.7)
UNKNOWN = Line(ending=Ending.PROBES_USED_UP, probes=40, counted=0)


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
    return trial(number, operation, verdict=verdict).model_copy(update={"probe": load})


def died(number: int, offered: float, attempt: int = 0) -> Trial:
    """Return an aborted attempt at a probe."""
    load = Probe(offered=offered, outcome=ProbeOutcome.UNKNOWN)
    return aborted(number, attempt=attempt).model_copy(update={"probe": load})


def searched(
    line: Line | None = PRECISE,
    trials: Sequence[Trial] = (),
    *,
    point: str = "w-000",
    search: LineSearch = SEARCH,
    verdict: Verdict | None = Verdict.VALID,
    findings: Sequence[Finding] = (),
) -> BenchmarkResult:
    """Return the result of a search."""
    plain = result([trial(0, measured(100))], point=point)
    spec = plain.spec.model_copy(update={"line": search, "repetitions": 40, "label": "randread 4Ki up to qd64"})
    status = plain.status.model_copy(
        update={
            "trials": tuple(trials),
            "summary": None,
            "line": line,
            "verdict": verdict,
            "findings": tuple(findings),
            "final": line is not None and line.ending is not None,
        }
    )
    return plain.model_copy(update={"spec": spec, "status": status})


def in_flight(search: LineSearch = SEARCH) -> LineSearch:
    """Return the search with the depth as its load."""
    return search.model_copy(update={"vary": Vary.DEPTH})
