"""Reads the results of a suite's runs, a few at a time, and evaluates rounds in a thread.

A result has up to 256 KiB; what an evaluation needs of it has a few KiB for each trial. Only the round that is
evaluated is in memory as a whole: 160 runs with 20 points of 5 trials each, the most that is sensible, are some 100 MB.
Of earlier rounds one value for each run and quantity is kept, and read again after a restart.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence

from pydantic import ValidationError

from plimsoll.api.result import BenchmarkResult
from plimsoll.api.suite import BenchmarkSuite
from plimsoll.kube.port import Kube, Object
from plimsoll.lifecycle import naming
from plimsoll.reconcile.digests import RESULT, RESULTS_PAGE_SIZE
from plimsoll.reconcile.suites.memory import SuiteMemory
from plimsoll.suite.children import child_name, turn_in_name, turns_of
from plimsoll.suite.evaluation import RoundResults, evaluate
from plimsoll.suite.history.rounds import MeasuredRound
from plimsoll.suite.projection import projected
from plimsoll.suite.rounds.actions import Judge
from plimsoll.suite.rounds.observed import Judgement, Observed, OwnedRun

_log = logging.getLogger(__name__)


async def judge_round(action: Judge, seen: Observed, memory: SuiteMemory, kube: Kube) -> Judgement | None:
    """Return the evaluation of a round; None if the suite has become invalid.

    Raises:
        ApiError: results could not be read.

    """
    suite = seen.suite.specification.suite
    if suite is None:
        return None
    used = {*action.baseline, *action.pinned}
    memory.rounds = {minute: known for minute, known in memory.rounds.items() if minute in used}
    earlier = {minute: await _earlier_round(minute, suite, seen, memory, kube) for minute in sorted(used)}
    current = await _read_round(action, suite, seen, kube)
    return await asyncio.to_thread(
        evaluate,
        suite.spec,
        current,
        accepted=[earlier[minute] for minute in action.baseline],
        pinned=[earlier[minute] for minute in action.pinned],
    )


async def _earlier_round(
    minute: int, suite: BenchmarkSuite, seen: Observed, memory: SuiteMemory, kube: Kube
) -> MeasuredRound:
    """Return the values of a former round. The results of a finished run never change."""
    runs = _runs_of_round(minute, suite, seen)
    uids = frozenset(run.uid for of_variant in runs.values() for run in of_variant)
    known = memory.rounds.get(minute)
    if known is not None and known[0] == uids:
        return known[1]
    digest = next((one.digest for one in seen.suite.state.ended if one.minute == minute), "")
    found = RoundResults(
        minute=minute,
        digest=digest,
        runs={
            variant: {run.name: await _results_of(run, seen.suite.namespace, kube) for run in of_variant}
            for variant, of_variant in runs.items()
        },
    )
    measured = await asyncio.to_thread(found.measured)
    memory.rounds[minute] = uids, measured
    return measured


def _runs_of_round(minute: int, suite: BenchmarkSuite, seen: Observed) -> Mapping[str, Sequence[OwnedRun]]:
    """Return the runs with numbers of a former round by variant, in the order of the repeats."""
    found: dict[str, list[tuple[int, OwnedRun]]] = {variant.name: [] for variant in suite.spec.variants}
    for run in seen.runs:
        turn = turn_in_name(seen.suite.name, seen.suite.uid, run.name)
        if turn is not None and turn.minute == minute and run.succeeded:
            found.setdefault(turn.variant, []).append((turn.repeat, run))
    return {variant: [run for _, run in sorted(runs, key=lambda one: one[0])] for variant, runs in found.items()}


async def _read_round(action: Judge, suite: BenchmarkSuite, seen: Observed, kube: Kube) -> RoundResults:
    """Read the round that is evaluated, with all of its planned runs."""
    by_name = {run.name: run for run in seen.runs}
    runs: dict[str, dict[str, Sequence[BenchmarkResult]]] = {variant.name: {} for variant in suite.spec.variants}
    for turn in turns_of(suite.spec, seed=action.minute):
        name = child_name(suite, turn, action.minute, seen.suite.uid)
        is_measured = name in action.runs.get(turn.variant, ()) and name in by_name
        results = await _results_of(by_name[name], seen.suite.namespace, kube) if is_measured else ()
        runs[turn.variant][name] = results
    return RoundResults(minute=action.minute, digest=seen.suite.specification.digest, runs=runs)


async def _results_of(run: OwnedRun, namespace: str, kube: Kube) -> Sequence[BenchmarkResult]:
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
