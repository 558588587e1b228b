"""Results of searches for the line, made on simulated storage."""

import random
from collections.abc import Hashable, Mapping, Sequence
from functools import cache

from pydantic import JsonValue

from plimsoll.api.line import Ending, Line, LineSearch, Probe
from plimsoll.api.names import LatencyKind, Operation, Outcome, Verdict
from plimsoll.api.operation import Latency, OperationResult, Rates
from plimsoll.api.result import BenchmarkResult, Finding, Trial
from plimsoll.measure.line.model import Settings
from plimsoll.measure.line.observe import Observation, outcome_of
from support.line_results import SEARCH, searched
from support.offered import OBJECTIVE, SECONDS, Storage, linear, search

_BLOCK = 4096
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
    is_final = probes is None
    trials = tuple(trial_of(number, one) for number, one in enumerate(observed[:probes]))
    line = found if is_final else Line(probes=len(trials), counted=len(trials))
    verdict, findings = _judged(line)
    plain = searched(
        line,
        trials,
        run=run,
        point=point,
        search=search_for,
        verdict=verdict if is_final else None,
        findings=findings if is_final else (),
    )
    spec = plain.spec.model_copy(
        update={
            "label": label,
            "parameters": {"ioDepth": 64, "blockSize": "4Ki", **(parameters or {})},
            "clients": clients,
            "runtime_seconds": SECONDS,
            "ramp_seconds": 10,
        }
    )
    return plain.model_copy(update={"spec": spec})


def trial_of(number: int, observation: Observation) -> Trial:
    """Return the trial of one probe, a minute after the one before."""
    rates = Rates(iops=observation.whole.achieved, bytes_per_second=round(observation.whole.achieved) * _BLOCK)
    return Trial(
        pass_number=number,
        attempt=0,
        epoch="e",
        clients=(0, 1),
        probe=Probe(
            offered=observation.whole.offered,
            achieved=observation.whole.achieved,
            depth_full_percent=100 * (observation.depth_full_share or 0.0),
            outcome=outcome_of(observation, [OBJECTIVE]),
        ),
        outcome=Outcome.MEASURED,
        started_at=f"2026-01-01T00:{number:02}:00.000Z",
        finished_at=f"2026-01-01T00:{number:02}:59.000Z",
        verdict=Verdict.VALID,
        operations=(
            OperationResult(
                operation=Operation.READ,
                ios=_completed(observation),
                bytes=_completed(observation) * _BLOCK,
                rates=rates,
                whole_run=rates,
                sum_of_rates=rates,
                latency=_latency(observation),
            ),
        ),
    )


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
        limit=search_for.limit,
        precision_percent=search_for.precision_percent,
        step=clients,
    )
    line, _ = search(recorded, settings, seed)
    return tuple(observed), line


def _completed(observation: Observation) -> int:
    return round(observation.whole.achieved * SECONDS)


def _latency(observation: Observation) -> Latency:
    p99 = observation.latencies[0]
    known = {} if p99 is None else {name: round(share * p99) for name, share in _OF_P99.items()}
    return Latency(
        kind=LatencyKind.FULL,
        count=_completed(observation),
        mean_nanoseconds=_MEAN_OF_P99 * (p99 or 0.0),
        percentiles=known,
    )


def _judged(line: Line) -> tuple[Verdict, tuple[Finding, ...]]:
    if line.ending not in {Ending.NOT_MONOTONE, Ending.DRIFTING}:
        return Verdict.VALID, ()
    reason = str(line.ending)
    return Verdict.SUSPECT, (Finding(reason=reason, verdict=Verdict.SUSPECT, message="the line is doubtful"),)
