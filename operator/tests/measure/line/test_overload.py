"""Whole searches on storage whose placement groups lag, and which stands still, under loads that break."""

import dataclasses
import math
import random

import pytest

from plimsoll.api.line import Line, LineSearch, Objective
from plimsoll.api.names import Outcome, Verdict
from plimsoll.api.result import Trial
from plimsoll.ceph.watch import ClusterSample, ClusterWatch
from plimsoll.measure.intake import Offer
from plimsoll.measure.line.search import Settings, progress_of, tried_loads
from plimsoll.measure.trial import measure_round
from support.client_documents import (
    BLOCK,
    QUIET_CLUSTER,
    RAMP,
    RUNTIME,
    SECOND,
    T0,
    document,
    facts,
    latency,
    measurement,
    operation,
)

LIMIT_NANOSECONDS = 5_000_000
SEARCH = LineSearch(
    start=500,
    limit=50_000,
    objectives=(Objective(percentile="99", latency=f"{LIMIT_NANOSECONDS // 1000}us"),),
)


def watch(states: dict[str, int]) -> ClusterWatch:
    """Return polls that found these placement groups in the middle of the trial."""
    start = T0 + RAMP * SECOND
    quiet, disturbed = QUIET_CLUSTER, dataclasses.replace(QUIET_CLUSTER, pg_states=states)
    seconds = range(-10, RUNTIME + 10, 5)
    statuses = [disturbed if 5 <= second <= 10 else quiet for second in seconds]
    samples = [
        ClusterSample(at=start + second * SECOND, status=status)
        for second, status in zip(seconds, statuses, strict=True)
    ]
    return ClusterWatch(samples=tuple(samples), pools=())


def probe(load: float, number: int, value: int, *, affected: bool, states: dict[str, int]) -> Trial:
    """Return the trial of a load whose operations all took so long, from the documents on."""
    rates = [load] * RUNTIME
    if affected:
        # It stands still for a tenth of the time and more, and catches up.
        rates[4:7], rates[7] = [0.0] * 3, 4 * load
    ios = round(load) * RUNTIME
    sample = operation(1, ios=ios, bytes=ios * BLOCK, latency=latency(ios, value))
    assert sample.cells is not None
    cells = sample.cells.model_copy(update={"ios": tuple(rates), "bytes": tuple(BLOCK * rate for rate in rates)})
    measured = measurement(sample.model_copy(update={"cells": cells}), depth_full_share=0.0)
    planned = facts(
        1, offer=Offer(search=SEARCH, load=load), cluster=watch(states if affected else {"active+clean": 8})
    )
    numbers = measure_round(planned, {0: document(0, measured)})
    return Trial(
        pass_number=number,
        attempt=0,
        epoch="e",
        clients=(0,),
        probe=numbers.probe,
        outcome=Outcome.MEASURED,
        started_at="",
        finished_at="",
        verdict=numbers.verdict,
        findings=numbers.findings,
        window=numbers.window,
        operations=numbers.operations,
    )


def search(seed: int, line: float, noise: float, share: float, states: dict[str, int]) -> tuple[Line, list[Trial]]:
    """Search on linear storage that scatters; that share of the probes that break is affected."""
    chance, troubled = random.Random(f"{seed} noise"), random.Random(f"{seed} trouble")  # noqa: S311 - no secrets
    trials: list[Trial] = []
    settings = Settings(start=SEARCH.start, limit=SEARCH.highest_load)
    while (load := (progress := progress_of(tried_loads(trials), settings)).next_load) is not None:
        value = round(LIMIT_NANOSECONDS * load / line * math.exp(noise * chance.gauss(0, 1)))
        affected = value > LIMIT_NANOSECONDS and troubled.random() < share
        trials.append(probe(load, len(trials), value, affected=affected, states=states))
    return progress.line, trials


LAGGY = {"active+clean": 6, "active+clean+laggy": 2}
UNDERSIZED = {"active+clean": 6, "active+undersized+degraded": 2}


@pytest.mark.parametrize("seed", [1, 2])
def test_groups_that_lag_and_stalls_under_loads_that_break_change_nothing_about_a_search(seed: int) -> None:
    line, trials = search(seed, 7_000, 0.1, 0.5, LAGGY)
    same, quiet = search(seed, 7_000, 0.1, 0.0, LAGGY)
    assert (line, len(trials)) == (same, len(quiet))
    assert line.counted == line.probes
    assert {trial.verdict for trial in trials} == {Verdict.VALID}


def test_what_load_does_not_cause_still_makes_a_probe_invalid() -> None:
    trial = probe(9_000, 0, 2 * LIMIT_NANOSECONDS, affected=True, states=UNDERSIZED)
    assert [finding.reason for finding in trial.findings] == ["GroupsNotClean"]
    held = probe(900, 0, LIMIT_NANOSECONDS // 2, affected=True, states=LAGGY)
    assert [finding.reason for finding in held.findings] == ["Stalled", "GroupsNotClean"]
