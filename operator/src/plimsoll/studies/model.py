"""A study as a file of this package describes it, its shares, and a user's own next to them. Tests check the files."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from itertools import product
from typing import Annotated

from pydantic import Field, JsonValue, field_validator

from plimsoll.api.environment import OsdsDescription
from plimsoll.api.hypothesis import CLIENTS, Hypothesis, Selector
from plimsoll.api.manifest import read_manifest
from plimsoll.api.model import Model
from plimsoll.api.names import Layer, Operation, Verdict
from plimsoll.api.result import BenchmarkResult
from plimsoll.measure.hypotheses.decide import decide
from plimsoll.measure.hypotheses.select import MeasuredRun, P, VariantRun
from plimsoll.measure.layers import LayerRow

ExperimentId = Annotated[str, Field(pattern=r"^[A-Z]{3,4}-[A-Z0-9][A-Za-z0-9-]*$")]
_Text = Annotated[str, Field(min_length=1)]
_Number = Annotated[float, Field(strict=False)]


class Unit(StrEnum):
    """Units as published; the studies do not always say which power of a thousand they mean."""

    MEGABYTES_PER_SECOND = "MB/s"
    GIGABYTES_PER_SECOND = "GB/s"
    KIBIBYTES_PER_SECOND = "KiB/s"
    MEBIBYTES_PER_SECOND = "MiB/s"
    MEGABITS_PER_SECOND = "Mbit/s"
    GIGABITS_PER_SECOND = "Gbit/s"
    MICROSECONDS = "µs"
    MILLISECONDS = "ms"
    SECONDS = "s"
    PERCENT = "%"
    RATIO = "1"
    COUNT = "count"
    KIBIBYTES = "KiB"
    MEBIBYTES = "MiB"
    GIBIBYTES = "GiB"
    NOT_STATED = "not stated"


class Origin(StrEnum):
    """Where a value comes from: the study has it, it was computed from the study's numbers, or the study quotes it."""

    PUBLISHED = "Published"
    DERIVED = "Derived"
    CITED = "Cited"


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """One value of a study."""

    experiment: str  # id of the experiment
    place: str  # table, figure or text that published it
    quantity: str  # what was measured, such as throughput
    unit: Unit  # as published
    value: float
    origin: Origin
    conditions: Mapping[str, str | int]  # parameter -> value


_BYTES_PER_SECOND = {
    Unit.MEGABYTES_PER_SECOND: 1e6,
    Unit.GIGABYTES_PER_SECOND: 1e9,
    Unit.KIBIBYTES_PER_SECOND: 2**10,
    Unit.MEBIBYTES_PER_SECOND: 2**20,
    Unit.MEGABITS_PER_SECOND: 1e6 / 8,
    Unit.GIGABITS_PER_SECOND: 1e9 / 8,
}


class Form(StrEnum):
    """How a published number expresses a share: 95 % as a part of 95, a gain of -5, or a loss of 5 %."""

    PART = "Part"
    GAIN = "Gain"
    LOSS = "Loss"


class ValuesOf(Model):
    """The values of an experiment with this quantity and these conditions, among others."""

    experiment: _Text
    quantity: _Text
    conditions: Mapping[_Text, str | int] = Field(default_factory=dict)

    def among(self, values: Sequence[Published]) -> list[Published]:
        return [
            value
            for value in values
            if (value.experiment, value.quantity) == (self.experiment, self.quantity)
            and self.conditions.items() <= value.conditions.items()
        ]


class PublishedShare(Model):
    """A share as a study published it."""

    values: ValuesOf  # the numbers; several are a range
    form: Form = Form.PART  # how to read numbers in percent
    of: ValuesOf | None = None  # the limit, if the numbers are rates


class LayerShare(Model):
    """A layer's best throughput as a share of a computed limit."""

    variant: _Text  # whose run measured the layer
    layer: Layer
    operation: Operation
    devices: _Text | None = None  # variant that measured devices like the OSDs'; absent if they set no limit
    limit_of: Layer | None = None  # the layer whose limit counts; the layer's own if absent


class Ratio(Model):
    """Two points, whose ratio is the share, at the largest number of clients that both were measured with."""

    left: Selector
    of: Selector

    def hypothesis(self, runs: Sequence[VariantRun[P]]) -> Hypothesis:
        """Return the ratio as a hypothesis that says nothing, to estimate it with its interval."""
        left, of = self.left, self.of
        clients = max(_clients(left, runs) & _clients(of, runs), default=None)
        if clients is not None:
            left, of = (side.model_copy(update={"where": {**side.where, CLIENTS: clients}}) for side in (left, of))
        return Hypothesis(name="share", left=left, of=of, at_least_percent=1)


def _clients(selector: Selector, runs: Sequence[VariantRun[P]]) -> set[int]:
    points = (point for run in runs if run.variant == selector.variant for point in run.points)
    return {point.clients for point in points if point.workload == selector.workload}


class Share(Model):
    """A share of a study, and how to measure it again."""

    name: _Text  # what is a share of what
    experiment: _Text  # id of the experiment that measured it
    published: PublishedShare  # by the study
    layer: LayerShare | None = None  # the user's own as a share of a computed limit
    ratio: Ratio | None = None  # the user's own as a ratio of two points
    note: str = ""  # what else differs between the two; empty if nothing is known

    @property
    def variants(self) -> frozenset[str]:
        named: list[str | None] = [self.layer.variant, self.layer.devices] if self.layer else []
        named += [self.ratio.left.variant, self.ratio.of.variant] if self.ratio else []
        return frozenset(variant for variant in named if variant is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedRange:
    """A study's share as parts of 1."""

    low: float  # the lowest; `high` for a single number
    high: float  # the highest
    text: str  # the study's numbers in words
    place: str  # where it published them
    origin: Origin  # Derived also if only one of the numbers behind it was computed


def published_range(share: PublishedShare, values: Sequence[Published]) -> PublishedRange:
    selected = share.values.among(values)
    words = {Form.PART: "", Form.GAIN: "gain of ", Form.LOSS: "loss of "}[share.form]
    text, origins = f"{words}{_number_text(selected)}", {value.origin for value in selected}
    if share.of is not None:
        (limit,) = share.of.among(values)
        parts = [_rate(value) / _rate(limit) for value in selected]
        # A share of rates is computed, wherever the rates come from.
        text, origins = f"{text} of {_number_text([limit])}", {Origin.DERIVED}
    elif selected[0].unit is Unit.RATIO:
        parts = [value.value for value in selected]
    else:
        start, sign = {Form.PART: (0, 1), Form.GAIN: (1, 1), Form.LOSS: (1, -1)}[share.form]
        parts = [start + sign * value.value / 100 for value in selected]
    origin = next(origin for origin in (Origin.DERIVED, Origin.CITED, Origin.PUBLISHED) if origin in origins)
    return PublishedRange(low=min(parts), high=max(parts), text=text, place=selected[0].place, origin=origin)


def _number_text(values: Sequence[Published]) -> str:
    low, high = min(value.value for value in values), max(value.value for value in values)
    ends = f"{high:g}" if low == high else f"{low:g} to {high:g}"
    unit = values[0].unit
    return ends if unit in (Unit.RATIO, Unit.NOT_STATED) else f"{ends} {unit}"


def _rate(published: Published) -> float:
    """Return a rate in bytes per second; one without a stated unit as it is."""
    return published.value * (1 if published.unit is Unit.NOT_STATED else _BYTES_PER_SECOND[published.unit])


class Unavailable(StrEnum):
    """What Plimsoll cannot vary or run in an experiment, in the words of the documentation."""

    SERVER_KERNEL_SETTINGS = "kernel settings of servers"
    KERNEL_VERSIONS = "kernel versions of servers"
    BOND_POLICIES = "bond and hash policies"
    JOURNALS_IN_MEMORY = "journals in memory"
    NETPERF = "netperf"
    IOR = "IOR itself"
    IOZONE = "IOzone"


class Reproduction(Model):
    """Points of a suite."""

    suite: _Text  # `metadata.name` of the suite
    variants: Annotated[tuple[_Text, ...], Field(min_length=1)]  # names of the variants, all with these workloads
    workloads: Annotated[tuple[_Text, ...], Field(min_length=1)]  # names of the workloads


class Experiment(Model):
    """An experiment of a study."""

    id: ExperimentId
    title: _Text  # what it measured
    reproduced_by: tuple[Reproduction, ...] = ()  # points that reproduce it; none if it is impossible
    unavailable: Unavailable | None = None  # what no point reproduces; all of it if `reproduced_by` is empty


class ValueTable(Model):
    """Values with the same quantity and unit: one for each combination of the axes, the last one varying fastest."""

    experiment: ExperimentId  # id of the experiment
    place: _Text  # table, figure or text that published them
    quantity: _Text  # what was measured, such as throughput
    unit: Unit  # of cells that are numbers; a text such as `82.75 KiB/s` has its own
    origin: Origin = Origin.PUBLISHED  # Cited also if a reader of the study quotes them from others
    conditions: Mapping[_Text, str | int] = Field(default_factory=dict)  # what holds for all values
    axes: Mapping[_Text, Annotated[tuple[str | int, ...], Field(min_length=1)]] = Field(default_factory=dict)
    values: Annotated[tuple[_Number | _Text | None, ...], Field(min_length=1)]  # None where the study has no value
    note: str = ""  # how to read the values; empty if they need no remark

    @field_validator("values", mode="before")
    @classmethod
    def _flattened(cls, values: JsonValue) -> list[JsonValue]:
        """Return the cells of rows, which are lists for legibility only."""
        rows = values if isinstance(values, list) else [values]
        return [cell for row in rows for cell in (row if isinstance(row, list) else [row])]

    def published(self) -> Iterator[Published]:
        for cell, combination in zip(self.values, product(*self.axes.values()), strict=True):
            if cell is None:
                continue
            number, _, unit = (cell if isinstance(cell, str) else f"{cell} {self.unit}").partition(" ")
            yield Published(
                experiment=self.experiment,
                place=self.place,
                quantity=self.quantity,
                unit=Unit(unit),
                value=float(number),
                origin=self.origin,
                conditions={**self.conditions, **dict(zip(self.axes, combination, strict=True))},
            )


class Source(Model):
    """Where a study was published; `year` is absent if the publication does not have one."""

    title: _Text
    authors: _Text
    publication: _Text
    year: Annotated[int, Field(ge=2000, le=2100)] | None = None


class Study(Model):
    """A study."""

    key: Annotated[str, Field(pattern=r"^[A-Z]{3,4}$")]  # what the ids of its experiments start with
    source: Source
    testbed: Mapping[_Text, _Text]  # name -> what it measured with, such as hardware and versions
    experiments: tuple[Experiment, ...]  # all experiments, in the order of the publication
    tables: tuple[ValueTable, ...]  # the published values
    shares: tuple[Share, ...] = ()  # ratios to which a user's own can be compared

    @cached_property
    def values(self) -> tuple[Published, ...]:
        return tuple(value for table in self.tables for value in table.published())


def parse_study(text: str) -> Study:
    """Read a study from YAML text; ValidationError if it is invalid."""
    return Study.model_validate(read_manifest(text), by_alias=True, by_name=False)


ResultsOf = Mapping[str, Sequence[BenchmarkResult]]  # variant -> the results of its first complete run, if any
RowsOf = Callable[[Sequence[BenchmarkResult], Sequence[BenchmarkResult]], Sequence[LayerRow]]
"""The layers of a run's results, with those of a run on devices."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnShare:
    """A user's share, as a part of 1."""

    value: float | None = None  # None if it was not measured
    low: float | None = None  # lower end of the 95 % interval; None without one
    high: float | None = None  # upper end of it
    rate: float | None = None  # bytes per second behind it
    limit: float | None = None  # bytes per second that it is a share of
    is_suspect: bool = False  # whether a point behind it is not Valid
    missing: str = ""  # why there is no value


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedShare:
    """A share of a study, and the user's own."""

    name: str
    experiment: str
    published: PublishedRange
    own: OwnShare
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyComparison:
    """A suite compared with the study that it repeats."""

    study: Study
    shares: Sequence[ComparedShare]  # those whose variants and workloads the suite has
    own_testbed: Sequence[str]  # description of the user's cluster


def compare_with_study(
    study: Study, variants: Collection[str], runs: Sequence[MeasuredRun], results: ResultsOf, rows_of: RowsOf
) -> StudyComparison:
    """Return the shares of a study that a suite with these variants measures, from the `runs` of one round."""
    shares = [
        ComparedShare(
            name=share.name,
            experiment=share.experiment,
            published=published_range(share.published, study.values),
            own=_of_layer(share.layer, results, rows_of) if share.layer else _of_ratio(share, runs),
            note=share.note,
        )
        for share in study.shares
        # A variant may have been measured without a workload that the share is about.
        if share.variants <= {*variants}
        and not any(
            selector.workload not in {result.spec.workload for result in of_variant}
            for selector in ((share.ratio.left, share.ratio.of) if share.ratio else ())
            if (of_variant := results.get(selector.variant or "", ()))
        )
    ]
    return StudyComparison(study=study, shares=shares, own_testbed=_testbed([*results.values()]))


def _of_layer(share: LayerShare, results: ResultsOf, rows_of: RowsOf) -> OwnShare:
    needed = [share.variant, *([share.devices] if share.devices else [])]
    for variant in needed:
        if not results.get(variant):
            return OwnShare(missing=f"variant {variant} has no complete run")
    rows = rows_of(results[share.variant], results[share.devices] if share.devices else ())
    best = {row.layer: row.bytes_per_second for row in rows if row.operation is share.operation}
    own, limiting = best.get(share.layer), best.get(share.limit_of or share.layer)
    if own is None:
        return OwnShare(missing=f"no {share.operation} of layer {share.layer} has numbers that count")
    # The network is a part of the limit, so the clients behind the layer's own best rate count.
    limit = limiting.bound.at(own.clients) if limiting else None
    if not limit:
        return OwnShare(rate=own.value, missing=f"the limit of layer {share.limit_of or share.layer} is unknown")
    below = limiting.bound.layer if limiting and limit == limiting.bound.below else Layer.NETWORK
    behind = {own.point, *(row.bytes_per_second.point for row in rows if row.layer is below and row.bytes_per_second)}
    suspect = {
        result.spec.point for name in needed for result in results[name] if result.status.verdict is Verdict.SUSPECT
    }
    return OwnShare(value=own.value / limit, rate=own.value, limit=limit, is_suspect=bool(behind & suspect))


def _of_ratio(share: Share, runs: Sequence[MeasuredRun]) -> OwnShare:
    if share.ratio is None:
        raise AssertionError("a share has a layer or a ratio")
    (decision,) = decide(share.ratio.hypothesis(runs), runs)
    means = {side.field: side.mean for side in decision.basis if side.mean is not None}
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
    environments = [result.status.environment for results in runs for result in results]
    ceph = next((environment.ceph for environment in environments if environment.ceph is not None), None)
    if ceph is None:
        return []
    versions = ceph.versions or ""
    if not isinstance(versions, str):
        versions = ", ".join(sorted({version for counts in versions.values() for version in counts}))
    osds = ceph.osds or OsdsDescription()
    parts = (
        ("{} OSDs", osds.up or osds.count),
        ("on {} hosts", osds.hosts),
        ("of {}", ", ".join(sorted(osds.object_stores or ()))),
        ("with kernel {}", ", ".join(sorted(osds.kernels or ()))),
    )
    return [text for text in (versions, " ".join(text.format(value) for text, value in parts if value)) if text]
