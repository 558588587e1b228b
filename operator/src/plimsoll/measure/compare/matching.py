"""Matches the points of two runs: those with the same workload name and the same parameters."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from plimsoll.api.result import BenchmarkResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """Two results of the same point."""

    baseline: BenchmarkResult
    candidate: BenchmarkResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Matching:
    """The points of two runs in the order of the baseline, those matched by name last, and the unmatched ones."""

    pairs: tuple[Pair, ...]
    baseline_only: tuple[BenchmarkResult, ...]
    candidate_only: tuple[BenchmarkResult, ...]


def match_points(
    baseline: Sequence[BenchmarkResult], candidate: Sequence[BenchmarkResult], *, also_by_name: bool = False
) -> Matching:
    """Match points by workload, tool, parameters and number of clients.

    The number in a point's name is its position in the sweep, so with another axis value it means another point. With
    `also_by_name` the remaining points are matched by name all the same, to compare what differs on purpose.
    """
    pairs, ours, theirs = _matched(baseline, candidate, _key)
    if also_by_name:
        named, ours, theirs = _matched(ours, theirs, _name)
        pairs = [*pairs, *named]
    return Matching(pairs=tuple(pairs), baseline_only=tuple(ours), candidate_only=tuple(theirs))


def _matched(
    baseline: Sequence[BenchmarkResult], candidate: Sequence[BenchmarkResult], key: Callable[[BenchmarkResult], str]
) -> tuple[list[Pair], list[BenchmarkResult], list[BenchmarkResult]]:
    counterparts = {key(result): result for result in candidate}
    keys = {key(result) for result in baseline}
    pairs = [
        Pair(baseline=result, candidate=counterparts[key(result)]) for result in baseline if key(result) in counterparts
    ]
    ours = [result for result in baseline if key(result) not in counterparts]
    return pairs, ours, [result for result in candidate if key(result) not in keys]


def _key(result: BenchmarkResult) -> str:
    spec = result.spec
    # An absent parameter and a null are the same: the API server drops nulls.
    parameters: dict[str, JsonValue] = {key: value for key, value in spec.parameters.items() if value is not None}
    return json.dumps([spec.workload, spec.tool, parameters, spec.clients], sort_keys=True)


def _name(result: BenchmarkResult) -> str:
    return result.spec.point
