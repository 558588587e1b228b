"""Results of searches for the line, whose line and trials are what a test says."""

from collections.abc import Sequence

from plimsoll.api.line import MOST_PROBES, Ending, Line, LineSearch, Probe, ProbeOutcome, Vary
from plimsoll.api.names import LatencyKind, Operation, Verdict
from plimsoll.api.result import BenchmarkResult, Finding, Trial
from support.offered import OBJECTIVE
from support.repeated import aborted, measured, result, trial

SEARCH = LineSearch(start=500, limit=200_000, objectives=(OBJECTIVE,))
PRECISE = Line(ending=Ending.PRECISE, probes=4, counted=3, estimate=12_412.3, low=11_824.7, high=13_001.9)
GOING_ON = Line(probes=3, counted=3, low=8000, high=16_000)
BOUND = Line(ending=Ending.NEVER_BROKE, probes=12, counted=12, low=231_512.7)
UNKNOWN = Line(ending=Ending.PROBES_USED_UP, probes=40, counted=0)


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
    """Return a line above all loads."""
    return line(None, low=limit * 1.1, ending=Ending.NEVER_BROKE)


def below(load: float = 1) -> Line:
    """Return a line below all loads."""
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
    return trial(number, operation, verdict=verdict).model_copy(update={"probe": load})


def died(number: int, offered: float, attempt: int = 0) -> Trial:
    """Return an aborted attempt at a probe."""
    load = Probe(offered=offered, outcome=ProbeOutcome.UNKNOWN)
    return aborted(number, attempt=attempt).model_copy(update={"probe": load})


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
    """Return the result of a search with that line; without other trials, probes at the line met and broke in turn."""
    if trials is None:
        trials = _probes_at(found, search)
    plain = result(trials, run=run, point=point, repetitions=MOST_PROBES)
    status = plain.status.model_copy(
        update={
            "summary": None,
            "line": found,
            "verdict": verdict,
            "findings": tuple(findings),
            "final": found is not None and found.ending is not None,
        }
    )
    spec = plain.spec.model_copy(update={"line": search, "label": "randread 4Ki up to qd64"})
    return plain.model_copy(update={"spec": spec, "status": status})


def _probes_at(found: Line | None, search: LineSearch) -> Sequence[Trial]:
    """Return probes of which every other one broke at the estimate; all of a bound ended on its side."""
    if found is None:
        return ()
    outcomes = [ProbeOutcome.MET, ProbeOutcome.LATE]
    if not found.estimate:
        outcomes = outcomes[:1] if found.low else outcomes[1:]
    load = found.estimate or search.start
    return [probe(number, load, outcomes[number % len(outcomes)]) for number in range(found.probes)]


def in_flight(search: LineSearch = SEARCH) -> LineSearch:
    """Return the search with the depth as its load."""
    return search.model_copy(update={"vary": Vary.DEPTH})
