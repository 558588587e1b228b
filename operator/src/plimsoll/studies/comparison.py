"""A user's own shares beside those of a study."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from plimsoll.api.environment import CephDescription, OsdsDescription
from plimsoll.api.names import Layer, Verdict
from plimsoll.api.result import BenchmarkResult
from plimsoll.measure.hypotheses.decide import decide
from plimsoll.measure.hypotheses.select import MeasuredRun
from plimsoll.measure.limits import LayerRow
from plimsoll.studies.model import Study
from plimsoll.studies.shares import LayerShare, PublishedRange, Ratio, Share, published_range

ResultsOf = Mapping[str, Sequence[BenchmarkResult]]
"""Variant -> the results of its first complete run; without variants that have none."""

RowsOf = Callable[[Sequence[BenchmarkResult], Sequence[BenchmarkResult]], Sequence[LayerRow]]
"""The layers of a run's results, with those of a run on devices."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnShare:
    """A user's share, as a part of 1.

    Attributes:
        value: None if it was not measured.
        low: lower end of the 95 % interval; None without one.
        high: upper end of it.
        rate: bytes per second behind it.
        limit: bytes per second that it is a share of.
        is_suspect: whether a point behind it is not Valid.
        missing: why there is no value.

    """

    value: float | None = None
    low: float | None = None
    high: float | None = None
    rate: float | None = None
    limit: float | None = None
    is_suspect: bool = False
    missing: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedShare:
    """A share of a study beside the user's own."""

    name: str
    experiment: str
    published: PublishedRange
    own: OwnShare
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyComparison:
    """A suite beside the study that it repeats.

    Attributes:
        study: the study.
        shares: those whose variants and workloads the suite has.
        own_testbed: what the user measured with, in words.

    """

    study: Study
    shares: Sequence[ComparedShare]
    own_testbed: Sequence[str]


def compare_with_study(
    study: Study, variants: Collection[str], runs: Sequence[MeasuredRun], results: ResultsOf, rows_of: RowsOf
) -> StudyComparison:
    """Return the shares of a study that a suite with these variants measures; `runs` are those of one round."""
    shares = [
        ComparedShare(
            name=one.name,
            experiment=one.experiment,
            published=published_range(one.published, study.values),
            own=_of_layer(one.layer, results, rows_of) if one.layer else _of_ratio(one.ratio, runs),
            note=one.note,
        )
        for one in study.shares
        if one.variants <= {*variants} and not _leaves_out(one, results)
    ]
    return StudyComparison(study=study, shares=shares, own_testbed=_testbed([*results.values()]))


def _leaves_out(share: Share, results: ResultsOf) -> bool:
    """Whether a variant was measured without a workload that the share is about."""
    selectors = (share.ratio.left, share.ratio.of) if share.ratio else ()
    return any(
        selector.workload not in {one.spec.workload for one in found}
        for selector in selectors
        if (found := results.get(selector.variant or "", ()))
    )


def _of_layer(share: LayerShare, results: ResultsOf, rows_of: RowsOf) -> OwnShare:
    needed = [share.variant, *([share.devices] if share.devices else [])]
    for variant in needed:
        if not results.get(variant):
            return OwnShare(missing=f"variant {variant} has no complete run")
    found = results[share.variant]
    rows = rows_of(found, results[share.devices] if share.devices else ())
    best = {row.layer: row.bytes_per_second for row in rows if row.operation is share.operation}
    own, limiting = best.get(share.layer), best.get(share.limit_of or share.layer)
    if own is None:
        return OwnShare(missing=f"no {share.operation} of layer {share.layer} has numbers that count")
    # The clients' network is a part of the limit, so it is that of the clients behind the layer's own best rate.
    limit = limiting.bound.at(own.clients) if limiting else None
    if not limit:
        return OwnShare(rate=own.value, missing=f"the limit of layer {share.limit_of or share.layer} is unknown")
    below = limiting.bound.layer if limiting and limit == limiting.bound.below else Layer.NETWORK
    behind = {own.point, *(row.bytes_per_second.point for row in rows if row.layer is below and row.bytes_per_second)}
    suspect = {one.spec.point for name in needed for one in results[name] if one.status.verdict is Verdict.SUSPECT}
    return OwnShare(value=own.value / limit, rate=own.value, limit=limit, is_suspect=bool(behind & suspect))


def _of_ratio(ratio: Ratio | None, runs: Sequence[MeasuredRun]) -> OwnShare:
    if ratio is None:
        raise AssertionError("a share is that of a layer or a ratio")
    (decision,) = decide(ratio.hypothesis(runs), runs)
    means = {one.field: one.mean for one in decision.basis if one.mean is not None}
    if decision.estimate is None:
        return OwnShare(missing="; ".join(decision.reasons))
    return OwnShare(
        value=decision.estimate,
        low=decision.low,
        high=decision.high,
        rate=means.get("left"),
        limit=means.get("of"),
        is_suspect=decision.is_suspect,
    )


def _testbed(runs: Sequence[Sequence[BenchmarkResult]]) -> list[str]:
    """Return what was recorded of the cluster, from the first results that have it."""
    environments = [result.status.environment for results in runs for result in results]
    ceph = next((one.ceph for one in environments if one.ceph is not None), None)
    if ceph is None:
        return []
    found = [_versions(ceph), _osds(ceph.osds) if ceph.osds is not None else ""]
    return [one for one in found if one]


def _versions(ceph: CephDescription) -> str:
    if ceph.versions is None or isinstance(ceph.versions, str):
        return ceph.versions or ""
    return ", ".join(sorted({version for counts in ceph.versions.values() for version in counts}))


def _osds(osds: OsdsDescription) -> str:
    parts = (
        ("{} OSDs", osds.up or osds.count),
        ("on {} hosts", osds.hosts),
        ("of {}", ", ".join(sorted(osds.object_stores or ()))),
        ("with kernel {}", ", ".join(sorted(osds.kernels or ()))),
    )
    return " ".join(text.format(value) for text, value in parts if value)
