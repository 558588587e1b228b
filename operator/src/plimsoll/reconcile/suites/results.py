"""Reads the results of a suite's runs, a few at a time, and evaluates rounds in a thread.

A stored result has up to 256 KiB; what an evaluation needs of it takes some 7 KB of memory for each trial. Only the
round that is evaluated is in memory as a whole: 160 runs with 20 points of 5 trials each are some 100 MB. Of earlier
rounds one value for each run and quantity is kept, and read again after a restart.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence

from pydantic import ValidationError

from plimsoll.api.result import BenchmarkResult
from plimsoll.api.suite import SuiteSpec
from plimsoll.kube.port import Kube, Object
from plimsoll.lifecycle import naming
from plimsoll.reconcile.digests import RESULT, RESULTS_PAGE_SIZE
from plimsoll.reconcile.suites.memory import SuiteMemory
from plimsoll.suite.evaluation import RoundResults, evaluate
from plimsoll.suite.history.rounds import MeasuredRound
from plimsoll.suite.projection import projected
from plimsoll.suite.rounds.actions import Judge, RoundRuns, RunVersion
from plimsoll.suite.rounds.observed import Judgement

_log = logging.getLogger(__name__)


async def judge_round(action: Judge, spec: SuiteSpec, namespace: str, memory: SuiteMemory, kube: Kube) -> Judgement:
    """Return the evaluation of a round of a suite with that specification.

    Raises:
        ApiError: results could not be read.

    """
    memory.rounds = [(runs, await _known_round(runs, spec, namespace, memory, kube)) for runs in action.baseline]
    accepted = [measured for _, measured in memory.rounds]
    current = RoundResults(
        minute=action.round.minute,
        digest=action.round.digest,
        repeat=spec.repeat,
        runs=await _results_of_round(action.round, namespace, kube),
    )
    pinned = [one for one in accepted if one.minute in action.pinned]
    return await asyncio.to_thread(evaluate, action, spec, current, accepted=accepted, pinned=pinned)


async def _known_round(
    runs: RoundRuns, spec: SuiteSpec, namespace: str, memory: SuiteMemory, kube: Kube
) -> MeasuredRound:
    """Return the values of a former round, which never change while its runs are the same."""
    known = next((measured for one, measured in memory.rounds if one == runs), None)
    if known is not None:
        return known
    found = RoundResults(
        minute=runs.minute,
        digest=runs.digest,
        repeat=spec.repeat,
        runs=await _results_of_round(runs, namespace, kube),
    )
    return await asyncio.to_thread(found.measured)


async def _results_of_round(
    runs: RoundRuns, namespace: str, kube: Kube
) -> Mapping[str, Mapping[str, Sequence[BenchmarkResult]]]:
    return {
        variant: {run.name: await _results_of(run, namespace, kube) for run in of_variant}
        for variant, of_variant in runs.runs.items()
    }


async def _results_of(run: RunVersion, namespace: str, kube: Kube) -> Sequence[BenchmarkResult]:
    """Return the results of a run by name; none if one of them cannot be read, so that the run counts as missing."""
    labels = {naming.LABEL_RUN: naming.label_value(run.name)}
    found: dict[str, BenchmarkResult] = {}
    try:
        async for page in kube.pages(RESULT, size=RESULTS_PAGE_SIZE, namespace=namespace, labels=labels):
            own = [obj for obj in page if obj.get("spec", {}).get("runUid") == run.uid]
            found |= await asyncio.to_thread(_project, own)
    except ValidationError as error:
        _log.warning("a result of run %s/%s is not of this version: %s", namespace, run.name, error)
        return ()
    return [found[name] for name in sorted(found)]


def _project(objects: Sequence[Object]) -> dict[str, BenchmarkResult]:
    return {obj["metadata"]["name"]: projected(obj) for obj in objects}
