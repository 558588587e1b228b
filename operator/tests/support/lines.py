"""Results of finished searches for the line."""

from plimsoll.api.line import MOST_PROBES, Ending, Line, LineSearch, Objective, Probe, ProbeOutcome
from plimsoll.api.names import Verdict
from plimsoll.api.result import BenchmarkResult, Finding
from support.repeated import measured, result, trial

SEARCH = LineSearch(start=500, limit=200_000, objectives=(Objective(percentile="99", latency_microseconds=5000),))


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


def searched(
    found: Line | None,
    *,
    run: str = "baseline",
    point: str = "line-000",
    search: LineSearch = SEARCH,
    verdict: Verdict = Verdict.VALID,
    findings: tuple[Finding, ...] = (),
) -> BenchmarkResult:
    """Return the result of a search with that line; each probe was measured once, at one load."""
    load = (found.estimate if found else None) or search.start
    probe = Probe(offered=load, achieved=load, depth_full_percent=0, outcome=ProbeOutcome.MET)
    trials = [
        trial(number, measured(load)).model_copy(update={"probe": probe})
        for number in range(found.probes if found else 0)
    ]
    plain = result(trials, run=run, point=point, repetitions=MOST_PROBES)
    return plain.model_copy(
        update={
            "spec": plain.spec.model_copy(update={"line": search}),
            "status": plain.status.model_copy(
                update={
                    "summary": None,
                    "line": found,
                    "verdict": verdict,
                    "findings": findings,
                    "final": found is not None and found.ending is not None,
                }
            ),
        }
    )
