"""Reads the results of a suite's runs, a few at a time, and evaluates rounds in a thread.

A stored result has up to 256 KiB; what an evaluation needs of it takes some 15 KiB of memory for each trial. One round
at a time is in memory as a whole, of which `suite.rounds.specification` limits the number of trials. Of each accepted
round one value for each run and quantity is in memory until the round that is compared with it has ended.
"""

import asyncio
import logging
from collections.abc import Sequence

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
    memory.rounds = [known for known in memory.rounds if known[0] in action.baseline]
    accepted = [await _known_round(runs, spec, namespace, memory, kube) for runs in action.baseline]
    pinned = [one for one in accepted if one.minute in action.pinned]
    current = await _round(action.round, spec, namespace, kube)
    return await asyncio.to_thread(evaluate, action, spec, current, accepted=accepted, pinned=pinned)


async def _known_round(
    runs: RoundRuns, spec: SuiteSpec, namespace: str, memory: SuiteMemory, kube: Kube
) -> MeasuredRound:
    """Return the values of a former round, which never change while its runs are the same.

    They are kept at once, so that a request that fails later does not discard them.
    """
    known = next((measured for one, measured in memory.rounds if one == runs), None)
    if known is None:
        found = await _round(runs, spec, namespace, kube)
        known = await asyncio.to_thread(found.measured)
        memory.rounds.append((runs, known))
    return known


async def _round(runs: RoundRuns, spec: SuiteSpec, namespace: str, kube: Kube) -> RoundResults:
    found = {
        variant: {run.name: await _results_of(run, namespace, kube) for run in of_variant}
        for variant, of_variant in runs.runs.items()
    }
    return RoundResults(minute=runs.minute, digest=runs.digest, repeat=spec.repeat, runs=found)


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
