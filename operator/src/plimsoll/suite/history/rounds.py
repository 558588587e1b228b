"""A measured round of a suite: one value for each run, quantity, point and variant."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pydantic import JsonValue

from plimsoll.api.environment import Environment, TextFact
from plimsoll.api.names import Operation, Verdict
from plimsoll.api.result import BenchmarkResult, Fingerprint, ResultSpec, Trial
from plimsoll.measure.checks.check import first_few
from plimsoll.measure.compare.comparison import repeated_too_often
from plimsoll.measure.compare.lines import line_estimate, valueless
from plimsoll.measure.compare.noise import RepeatsDifferError, as_one_run
from plimsoll.measure.compare.tests import Series, logarithm
from plimsoll.measure.compare.values import DEFAULT_GATES, Metric, RegressionRule, gates_of, values_of
from plimsoll.measure.summary import counted
from plimsoll.plan.fingerprint import DROPPED_IN_PART, Difference, differences


def changed_during(results: Iterable[BenchmarkResult]) -> Iterator[str]:
    """Yield what changed during a round, from the results of all its runs: sentences with remedies.

    Runs on other nodes may have another kernel without any change, so only runs on the same nodes are compared.
    """
    environments = [result.status.environment for result in results]
    versions = {version for one in environments for version in _ceph_versions(one)}
    if len(versions) > 1:
        yield (
            f"Ceph had several versions during the round ({first_few(sorted(versions))}); measure again after the "
            "upgrade"
        )
    kernels: dict[Sequence[str], set[str]] = {}
    for one in environments:
        if one.nodes and one.kernel:
            kernels.setdefault(one.nodes, set()).add(_text(one.kernel))
    changed = next((sorted(found) for found in kernels.values() if len(found) > 1), None)
    if changed:
        yield f"the kernel of a client changed during the round ({first_few(changed)}); measure again"


def _ceph_versions(environment: Environment) -> Iterator[str]:
    """Yield the versions of Ceph's daemons; several if they differ."""
    found = environment.ceph.versions if environment.ceph else None
    if isinstance(found, str):
        yield found
    elif found is not None:
        for counts in found.values():
            yield from counts


def _text(fact: TextFact) -> str:
    return fact if isinstance(fact, str) else ", ".join(fact)


Group = tuple[str, str, Operation, Metric]
"""Variant, workload, operation and metric: what has a mean over points."""


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
        return self.variant, self.workload, self.operation, self.metric


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """How a point of a variant was measured in a round.

    Attributes:
        fingerprint: of the first run, with the identity of all runs; None if a run has none.
        varying: keys of the context that differ between the runs of the round.
        nodes: those of the clients of all runs.

    """

    variant: str
    point: str
    fingerprint: Fingerprint | None
    varying: frozenset[str] = frozenset()
    nodes: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredRound:
    """A round of a suite.

    Attributes:
        minute: of its start, since the epoch; it identifies the round.
        digest: of what the suite measured.
        values: quantity -> number of the repeat -> logarithm; only of gating metrics of points that are not Invalid,
            with a value in every run.
        conditions: of each point that has values, of each variant.
        gaps: variant -> what is missing, so that the round cannot show that nothing is worse.
        doubts: variant -> reasons not to rely on any of its numbers.
        is_complete: whether all planned runs are measured.

    """

    minute: int
    digest: str
    values: Mapping[Quantity, Series]
    conditions: Sequence[Condition] = ()
    gaps: Mapping[str, Sequence[str]] = field(default_factory=dict)
    doubts: Mapping[str, Sequence[str]] = field(default_factory=dict)
    is_complete: bool = True


def measured_round(
    *, minute: int, digest: str, repeat: int, runs: Mapping[str, Sequence[Sequence[BenchmarkResult]]]
) -> MeasuredRound:
    """Return the round from the results of the complete runs of each variant, of which `repeat` were planned."""
    parts = {variant: _part(variant, repeat, of_variant) for variant, of_variant in runs.items()}
    changed = [*changed_during(result for of_variant in runs.values() for run in of_variant for result in run)]
    return MeasuredRound(
        minute=minute,
        digest=digest,
        values={quantity: series for part in parts.values() for quantity, series in part.values.items()},
        conditions=tuple(condition for part in parts.values() for condition in part.conditions),
        gaps={variant: part.gaps for variant, part in parts.items()},
        doubts={variant: [*changed, *part.doubts] for variant, part in parts.items()},
        is_complete=all(sum(map(bool, of_variant)) == repeat for of_variant in runs.values()),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """What a round has of one variant."""

    values: Mapping[Quantity, Series] = field(default_factory=dict)
    conditions: Sequence[Condition] = ()
    gaps: Sequence[str] = ()
    doubts: Sequence[str] = ()


def _part(variant: str, repeat: int, runs: Sequence[Sequence[BenchmarkResult]]) -> _Part:
    known = [run for run in runs if run]
    lacking = repeat - len(known)
    missing = [f"{lacking} of {repeat} runs are not measured completely"] if lacking else []
    if not known:
        return _Part(gaps=missing)
    points = _by_point(known)
    invalid = [point for point, results in points.items() if _is_invalid(results, len(known))]
    uneven = [point for point, results in points.items() if point not in invalid and _has_uneven_caches(results)]
    used = [[result for result in run if result.spec.point not in (*invalid, *uneven)] for run in known]
    gaps = [*missing, *_gaps(invalid, uneven)]
    try:
        results = as_one_run(used)
    except RepeatsDifferError as error:
        return _Part(gaps=gaps, doubts=[str(error)])
    values = {
        quantity: series
        for result in results
        for quantity, series in _values(variant, result, points[result.spec.point])
    }
    incomplete = [quantity for quantity, series in values.items() if len(series) < len(known)]
    return _Part(
        values={quantity: series for quantity, series in values.items() if quantity not in incomplete},
        conditions=tuple(_condition(variant, result, points[result.spec.point]) for result in results),
        gaps=[*gaps, *_valueless(incomplete, points)],
        doubts=[doubt for run in used if run for doubt in repeated_too_often(run[0].spec.run, run)],
    )


def _by_point(runs: Sequence[Sequence[BenchmarkResult]]) -> Mapping[str, Sequence[BenchmarkResult]]:
    """Return the results of each point that any run has, in the order of the runs."""
    found: dict[str, list[BenchmarkResult]] = {}
    for result in (result for run in runs for result in run):
        found.setdefault(result.spec.point, []).append(result)
    return found


def _gaps(invalid: Sequence[str], uneven: Sequence[str]) -> Iterator[str]:
    if invalid:
        yield f"Invalid, not finished or missing in a run: {first_few(invalid)}"
    if uneven:
        yield f"the OSDs dropped their caches before some trials, but not before others: {first_few(uneven)}"


def _valueless(quantities: Sequence[Quantity], results: Mapping[str, Sequence[BenchmarkResult]]) -> Iterator[str]:
    """Yield why quantities have no value in a run, each reason with its points; `results` are those of each point."""
    places: dict[str, list[str]] = {}
    for name in sorted({one.point for one in quantities if one.metric is Metric.LINE}):
        for reason in dict.fromkeys(filter(None, map(valueless, results[name]))):
            places.setdefault(reason, []).append(name)
    for reason, names in places.items():
        yield f"{reason}: {first_few(names)}"
    points = sorted({one.point for one in quantities if one.metric is not Metric.LINE})
    if points:
        yield f"a gating metric has no value, or is 0, in a run: {first_few(points)}"


def _is_invalid(results: Sequence[BenchmarkResult], runs: int) -> bool:
    """Whether a run has no valid result of a point; the runs that have one would be a selection."""
    return len(results) < runs or any(
        result.status.verdict is Verdict.INVALID or not result.status.final or not counted(result.status.trials)
        for result in results
    )


def _has_uneven_caches(results: Sequence[BenchmarkResult]) -> bool:
    """Whether trials of a point found the OSDs' caches in different states, which concerns no other point."""
    states = {
        str(result.status.fingerprint.identity.get("osdCaches"))
        for result in results
        if result.status.fingerprint is not None
    }
    return len(states) > 1 or DROPPED_IN_PART in states


def _values(
    variant: str, result: BenchmarkResult, runs: Sequence[BenchmarkResult]
) -> Iterator[tuple[Quantity, Series]]:
    """Yield the gating quantities of a point; a rate also if it has no value, other metrics if a run has one.

    `result` is that of all `runs` together. The line has one value per run, and no operation of its own.
    """
    trials, spec = result.status.trials, result.spec
    if spec.line is not None:
        done = (one for one in Operation if any(_has(trial, one) for trial in trials))
        lines = enumerate(map(line_estimate, runs))
        series = {number: logarithm(value) for number, value in lines if value}
        yield _quantity(variant, spec, next(done, Operation.READ), Metric.LINE), series
        return
    for operation in (one for one in Operation if any(_has(trial, one) for trial in trials)):
        for metric in sorted(gates_of(RegressionRule(gates=DEFAULT_GATES), trials, operation)):
            series = {
                trial.pass_number: logarithm(value)
                for trial, value in zip(trials, values_of(trials, operation, metric), strict=True)
                if value
            }
            if series or metric.is_rate:
                yield _quantity(variant, spec, operation, metric), series


def _quantity(variant: str, spec: ResultSpec, operation: Operation, metric: Metric) -> Quantity:
    return Quantity(variant=variant, workload=spec.workload, point=spec.point, operation=operation, metric=metric)


def _has(trial: Trial, operation: Operation) -> bool:
    return any(result.operation is operation for result in trial.operations)


def _condition(variant: str, combined: BenchmarkResult, results: Sequence[BenchmarkResult]) -> Condition:
    fingerprints = [result.status.fingerprint for result in results]
    known = [one for one in fingerprints if one is not None]
    return Condition(
        variant=variant,
        point=combined.spec.point,
        fingerprint=known[0] if known and len(known) == len(fingerprints) else None,
        varying=frozenset(one.key for other in known[1:] for one in differences(known[0], other)),
        nodes=frozenset(node for result in results for node in (result.status.environment.nodes or ())),
    )


_NAMED = ("ceph.", "kubernetes", "kernel", "plimsoll", "rook.", "volume", "cpu", "processors", "memoryBytes")
"""Beginnings of keys of the context that are named if they differ; all others may differ from round to round."""

_NODES = "nodes"


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """What changed from earlier rounds to a later one.

    Attributes:
        named: such as a new version of Ceph; no obstacle.
        obstacles: sentences that say what makes the rounds incomparable.

    """

    named: Sequence[Difference] = ()
    obstacles: Sequence[str] = ()


def changes_since(earlier: Sequence[MeasuredRound], judged: MeasuredRound) -> Changes:
    """Return what changed since earlier rounds of the same digest, in their order.

    Each point is compared with the last of these rounds that has numbers of it.
    """
    before = latest_conditions(earlier)
    pairs = [(before[one.variant, one.point], one) for one in judged.conditions if (one.variant, one.point) in before]
    found: list[Difference] = []
    for pair in pairs:
        found += [one for one in differences_between(*pair) if one not in found]
    return Changes(
        named=[one for one in found if one.part == "context" and one.key != _NODES],
        obstacles=[
            *(_differs(one) for one in found if one.part == "identity"),
            *_unknown([theirs.point for ours, theirs in pairs if not (ours.fingerprint and theirs.fingerprint)]),
            *(_other_nodes(one) for one in found if one.key == _NODES),
        ],
    )


def latest_conditions(rounds: Sequence[MeasuredRound]) -> Mapping[tuple[str, str], Condition]:
    """Return the last known condition of each variant and point."""
    return {(one.variant, one.point): one for measured in rounds for one in measured.conditions}


def differences_between(before: Condition, after: Condition) -> list[Difference]:
    """Return what changed at a point: its identity, versions, the hardware, and nodes (`nodes`, lists of names).

    What already differs between the runs of one of the rounds is omitted, such as the name of a volume.
    """
    found: list[Difference] = []
    if before.fingerprint and after.fingerprint:
        found = [
            one
            for one in differences(before.fingerprint, after.fingerprint)
            if one.part == "identity"
            or (one.key.startswith(_NAMED) and one.key not in before.varying and one.key not in after.varying)
        ]
    if before.nodes != after.nodes:
        ours, theirs = _names(before), _names(after)
        found.append(Difference(part="context", key=_NODES, baseline=ours, candidate=theirs))
    return found


def _names(condition: Condition) -> JsonValue:
    return [*sorted(condition.nodes)]


def _differs(difference: Difference) -> str:
    change = f"{difference.baseline} -> {difference.candidate}"
    return f"{difference.key} differs from the accepted rounds ({change}); restore it, or accept this round"


def _unknown(points: Sequence[str]) -> Iterator[str]:
    if points:
        yield f"without fingerprints, nothing shows that conditions are the same: {first_few([*dict.fromkeys(points)])}"


def _other_nodes(difference: Difference) -> str:
    before, after = (_listed(names) for names in (difference.baseline, difference.candidate))
    return f"clients ran on other nodes ({before} -> {after}); select the same nodes, or accept this round"


def _listed(names: JsonValue) -> str:
    return first_few([str(name) for name in names]) or "unknown" if isinstance(names, list) else "unknown"
