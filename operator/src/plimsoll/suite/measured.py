"""A measured round of a suite: one value for each run, quantity, point and variant."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import NamedTuple

from pydantic import JsonValue

from plimsoll.api.line import STORM_SUFFIX
from plimsoll.api.names import Metric, Operation, Verdict
from plimsoll.api.result import BenchmarkResult, Fingerprint
from plimsoll.measure.attempts import counted, repeated_too_often, runs_on_first_attempts
from plimsoll.measure.compare.lines import line_estimate, operation_of, valueless
from plimsoll.measure.compare.repeats import as_one_run
from plimsoll.measure.compare.significance import Series
from plimsoll.measure.compare.values import DEFAULT_GATES, RegressionRule, RepeatsError, gates_of
from plimsoll.measure.rates import grouped
from plimsoll.measure.summary import OF_DISTURBANCES, operations_of, values_of
from plimsoll.measure.text import first_few
from plimsoll.plan.fingerprint import DROPPED_IN_PART, Difference, differences


def changed_during(results: Iterable[BenchmarkResult]) -> Iterator[str]:
    """Yield what changed during a round, with remedies; kernels of runs on the same nodes are compared."""
    versions, kernels = set[str](), dict[Sequence[str], set[str]]()
    for environment in (result.status.environment for result in results):
        ceph = environment.ceph.versions if environment.ceph else None
        # Several versions, by daemon, if they differ.
        versions.update([ceph] if isinstance(ceph, str) else chain.from_iterable((ceph or {}).values()))
        if environment.nodes and environment.kernel:
            texts = [environment.kernel] if isinstance(environment.kernel, str) else environment.kernel
            kernels.setdefault(environment.nodes, set()).add(", ".join(texts))
    if len(versions) > 1:
        several = first_few(sorted(versions))
        yield f"Ceph had several versions during the round ({several}); measure again after the upgrade"
    if changed := next((sorted(of_nodes) for of_nodes in kernels.values() if len(of_nodes) > 1), None):
        yield f"the kernel of a client changed during the round ({first_few(changed)}); measure again"


GATES = DEFAULT_GATES | OF_DISTURBANCES
"""What decides in a suite: a workload that takes OSDs away asks what that costs, and how long the recovery takes."""


class Group(NamedTuple):
    """What has a mean over points."""

    variant: str
    workload: str
    operation: Operation
    metric: Metric
    storm: bool = False  # whether the points are storm lines, whose mean does not include calm lines


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantity:
    """One metric of one operation at one point of a variant."""

    variant: str
    workload: str
    point: str
    operation: Operation
    metric: Metric

    @property
    def group(self) -> Group:
        """The mean that it is a part of."""
        is_storm = self.metric is Metric.LINE and self.point.endswith(STORM_SUFFIX)
        return Group(self.variant, self.workload, self.operation, self.metric, is_storm)


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """How a point of a variant was measured in a round."""

    variant: str
    point: str
    fingerprint: Fingerprint | None  # of the first run, with the identity of all runs; None if a run has none
    varying: frozenset[str] = frozenset()  # keys of the context that differ between the runs of the round
    nodes: frozenset[str] = frozenset()  # of the clients of all runs


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredRound:
    """A round of a suite."""

    minute: int  # of its start, since the epoch; it identifies the round
    digest: str  # of what the suite measured
    # Quantity -> number of the repeat -> logarithm; only of gating metrics of points that are not Invalid, with a value
    # in every run.
    values: Mapping[Quantity, Series]
    # The same from the first attempts; None if these are the attempts that count.
    first_values: Mapping[Quantity, Series] | None = None
    conditions: Sequence[Condition] = ()  # of each point that has values, of each variant
    # Variant -> what is missing, so that the round cannot show that nothing is worse.
    gaps: Mapping[str, Sequence[str]] = field(default_factory=dict)
    # Variant -> reasons not to rely on any of its numbers.
    doubts: Mapping[str, Sequence[str]] = field(default_factory=dict)
    is_complete: bool = True  # whether all planned runs are measured

    @property
    def on_first_attempts(self) -> "MeasuredRound":
        return self if self.first_values is None else replace(self, values=self.first_values)


def measured_round(
    *, minute: int, digest: str, repeat: int, runs: Mapping[str, Sequence[Sequence[BenchmarkResult]]]
) -> MeasuredRound:
    """Return the round from the results of the complete runs of each variant; `repeat` runs were planned."""
    changed = [*changed_during(result for of_variant in runs.values() for run in of_variant for result in run)]
    values, first_values = dict[Quantity, Series](), dict[Quantity, Series]()
    conditions: list[Condition] = []
    gaps: dict[str, list[str]] = {}
    doubts = {variant: [*changed] for variant in runs}
    for variant, of_variant in runs.items():
        complete = [run for run in of_variant if run]
        lacking = repeat - len(complete)
        gaps[variant] = [f"{lacking} of {repeat} runs are not measured completely"] if lacking else []
        if not complete:
            continue
        points = grouped(chain.from_iterable(complete), lambda result: result.spec.point)
        unusable = {point: why for point, results in points.items() if (why := _unusable(results, len(complete)))}
        gaps[variant] += _by_reason(unusable.items())
        used = [[result for result in run if result.spec.point not in unusable] for run in complete]
        try:
            measured, incomplete = _values_in_all(variant, used)
        except RepeatsError as error:
            doubts[variant].append(str(error))
            continue
        no_value = "a gating metric has no value, or is 0, in a run"
        gaps[variant] += _by_reason(
            (quantity.point, reason)
            for quantity in incomplete
            for reason in (map(valueless, points[quantity.point]) if quantity.metric is Metric.LINE else [no_value])
            if reason
        )
        values |= measured
        first = runs_on_first_attempts(used)
        first_values |= measured if first is None else _values_in_all(variant, first)[0]
        conditions += [_condition(variant, point, points[point]) for point in points if point not in unusable]
        doubts[variant] += [doubt for run in used if run for doubt in repeated_too_often(run[0].spec.run, run)]
    return MeasuredRound(
        minute=minute,
        digest=digest,
        values=values,
        first_values=None if first_values == values else first_values,
        conditions=tuple(conditions),
        gaps=gaps,
        doubts=doubts,
        is_complete=all(sum(map(bool, of_variant)) == repeat for of_variant in runs.values()),
    )


def _unusable(results: Sequence[BenchmarkResult], runs: int) -> str:
    """Return why the numbers of a point do not count, from its results in so many runs; empty if they do."""
    statuses = [result.status for result in results]
    states = {str(status.fingerprint.identity.get("osdCaches")) for status in statuses if status.fingerprint}
    usable = [it for it in statuses if it.verdict is not Verdict.INVALID and it.final and counted(it.trials)]
    # Without a valid result of every run, the runs that have one would be a selection.
    if len(usable) < max(runs, len(results)):
        return "Invalid, not finished or missing in a run"
    # Trials of this point found the OSDs' caches in different states, which concerns no other point.
    if len(states) > 1 or DROPPED_IN_PART in states:
        return "the OSDs dropped their caches before some trials, but not before others"
    return ""


def _by_reason(points: Iterable[tuple[str, str]]) -> list[str]:
    by_reason = grouped(dict.fromkeys(points), lambda pair: pair[1])
    return [f"{reason}: {first_few(sorted(point for point, _ in pairs))}" for reason, pairs in by_reason.items()]


def _values_in_all(
    variant: str, runs: Sequence[Sequence[BenchmarkResult]]
) -> tuple[dict[Quantity, Series], list[Quantity]]:
    """Return the gating quantities with a value in every run, and the others; RepeatsError as `as_one_run`."""
    points = grouped(chain.from_iterable(runs), lambda result: result.spec.point)
    values = dict(
        chain.from_iterable(_values(variant, result, points[result.spec.point]) for result in as_one_run(runs))
    )
    incomplete = [quantity for quantity, series in values.items() if len(series) < len(runs)]
    return {quantity: series for quantity, series in values.items() if quantity not in incomplete}, incomplete


def _values(
    variant: str, result: BenchmarkResult, runs: Sequence[BenchmarkResult]
) -> Iterator[tuple[Quantity, Series]]:
    """Yield the gating quantities of a point from its runs, and their combination.

    Rates and what a disturbance shows are yielded also without a value; the line has one value per run.
    """
    trials, spec = result.status.trials, result.spec
    quantity = partial(Quantity, variant=variant, workload=spec.workload, point=spec.point)
    if spec.line is not None:
        lines = enumerate(map(line_estimate, runs))
        series = {number: math.log(value) for number, value in lines if value}
        yield quantity(operation=operation_of([result]), metric=Metric.LINE), series
        return
    phases = [trial.disturbance.phase("During") for trial in trials if trial.disturbance]
    disturbed = [part.operation for during in phases if during for part in during.operations]
    for operation in operations_of(trials):
        for metric in sorted(gates_of(RegressionRule(gates=GATES), trials, operation)):
            values = zip(trials, values_of(trials, operation, metric), strict=True)
            series = {trial.pass_number: math.log(value) for trial, value in values if value}
            of_disturbances = {Metric.DURING: bool(disturbed), Metric.RECOVERY: operation in disturbed[:1]}
            if series or of_disturbances.get(metric, metric.is_rate):
                yield quantity(operation=operation, metric=metric), series


def _condition(variant: str, point: str, results: Sequence[BenchmarkResult]) -> Condition:
    fingerprints = [result.status.fingerprint for result in results if result.status.fingerprint is not None]
    return Condition(
        variant=variant,
        point=point,
        fingerprint=fingerprints[0] if fingerprints and len(fingerprints) == len(results) else None,
        varying=frozenset(
            difference.key for other in fingerprints[1:] for difference in differences(fingerprints[0], other)
        ),
        nodes=frozenset(node for result in results for node in (result.status.environment.nodes or ())),
    )


_NAMED = ("ceph.", "kubernetes", "kernel", "plimsoll", "rook.", "volume", "cpu", "processors", "memoryBytes")
"""Beginnings of keys of the context that are named if they differ; all others may differ from round to round."""


def changes_since(
    earlier: Sequence[MeasuredRound], judged: MeasuredRound
) -> tuple[Sequence[Difference], Sequence[str]]:
    """Return what changed since earlier rounds of the same digest, in their order, and what makes them incomparable.

    Each point is compared with the last round that has it. A new version of Ceph, for example, is reported but
    accepted.
    """
    before = latest_conditions(earlier)
    pairs = [(before[key], after) for key, after in latest_conditions([judged]).items() if key in before]
    changed: list[Difference] = []
    for pair in pairs:
        changed += [difference for difference in differences_between(*pair) if difference not in changed]
    obstacles = [
        f"changed since the accepted rounds: {difference.key}: {_shown(difference.baseline)} -> "
        f"{_shown(difference.candidate)}; restore it, or accept this round"
        for difference in changed
        if difference.part == "identity"
    ]
    if unknown := [after.point for before, after in pairs if not (before.fingerprint and after.fingerprint)]:
        points = first_few([*dict.fromkeys(unknown)])
        obstacles.append(f"without fingerprints, nothing shows that conditions are the same: {points}")
    return [difference for difference in changed if difference.part == "context"], obstacles


def sharing(measured: MeasuredRound, earlier: Iterable[MeasuredRound]) -> MeasuredRound:
    """Return the round, whose fingerprints share the objects of equal parts: they are most of what a round takes."""
    identities, contexts = dict[str, Mapping[str, JsonValue]](), dict[str, Mapping[str, JsonValue]]()

    def shared(
        known: dict[str, Mapping[str, JsonValue]], digest: str, part: Mapping[str, JsonValue]
    ) -> Mapping[str, JsonValue]:
        # Users may change results: their digests prove nothing.
        return same if (same := known.setdefault(digest, part)) == part else part

    def with_shared(condition: Condition) -> Condition:
        if (made := condition.fingerprint) is None:
            return condition
        same = {
            "identity": shared(identities, made.identity_sha256, made.identity),
            "context": shared(contexts, made.context_sha256, made.context),
        }
        return replace(condition, fingerprint=made.model_copy(update=same))

    for before in earlier:
        for condition in before.conditions:
            with_shared(condition)
    return replace(measured, conditions=tuple(map(with_shared, measured.conditions)))


def latest_conditions(rounds: Sequence[MeasuredRound]) -> Mapping[tuple[str, str], Condition]:
    """Return the last known condition of each variant and point."""
    return {(condition.variant, condition.point): condition for measured in rounds for condition in measured.conditions}


def differences_between(before: Condition, after: Condition) -> list[Difference]:
    """Return what changed at a point: identity, versions, hardware and `nodes`; not what differs within one round."""
    changed: list[Difference] = []
    if before.fingerprint and after.fingerprint:
        varying = before.varying | after.varying
        changed = [
            difference
            for difference in differences(before.fingerprint, after.fingerprint)
            if difference.part == "identity" or (difference.key.startswith(_NAMED) and difference.key not in varying)
        ]
    if before.nodes != after.nodes:
        nodes: list[list[JsonValue]] = [[*sorted(condition.nodes)] for condition in (before, after)]
        changed.append(Difference(part="identity", key="nodes", baseline=nodes[0], candidate=nodes[1]))
    return changed


def _shown(value: JsonValue) -> str:
    return first_few([*map(str, value)]) or "unknown" if isinstance(value, list) else str(value)
