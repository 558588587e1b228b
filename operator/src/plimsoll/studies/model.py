"""A study as a file describes it: source, experiments, and published values as tables."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from itertools import product
from math import prod
from typing import Annotated, Self

from pydantic import Field, JsonValue, ValidationError, field_validator, model_validator

from plimsoll.api.environment import OsdsDescription
from plimsoll.api.errors import Problem, SpecError, problems_of
from plimsoll.api.manifest import read_manifest
from plimsoll.api.model import Model
from plimsoll.api.names import Layer, Verdict
from plimsoll.api.result import BenchmarkResult
from plimsoll.measure.hypotheses.decide import decide
from plimsoll.measure.hypotheses.select import MeasuredRun
from plimsoll.measure.layers import LayerRow
from plimsoll.studies.shares import LayerShare, Origin, Published, PublishedRange, Share, Unit, published_range

ExperimentId = Annotated[str, Field(pattern=r"^[A-Z]{3,4}-[A-Z0-9][A-Za-z0-9-]*$")]
_Text = Annotated[str, Field(min_length=1)]
_Number = Annotated[float, Field(strict=False)]


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

    @model_validator(mode="after")
    def _check_reproduction(self) -> Self:
        if not self.reproduced_by and self.unavailable is None:
            raise SpecError([Problem(field="reproducedBy", remedy="is empty without a reason; add `unavailable`")])
        return self


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

    @model_validator(mode="after")
    def _check_shape(self) -> Self:
        expected = prod(map(len, self.axes.values()))
        remedy = f"has {len(self.values)} values, but its axes have {expected} combinations"
        problems = [Problem(field="values", remedy=remedy)] if len(self.values) != expected else []
        problems += [
            Problem(field=f"axes.{name}", remedy="is also one of the conditions; rename it")
            for name in self.axes
            if name in self.conditions
        ]
        remedy = f"must be a number, or a number with one of {', '.join(Unit)}"
        problems += [
            Problem(field=f"values[{index}]", value=str(cell), remedy=remedy)
            for index, cell in enumerate(self.values)
            if isinstance(cell, str) and _read_text(cell) is None
        ]
        if problems:
            raise SpecError(problems)
        return self

    def published(self) -> Iterator[Published]:
        for cell, combination in zip(self.values, product(*self.axes.values()), strict=True):
            if cell is None:
                continue
            read = (cell, self.unit) if isinstance(cell, float) else _read_text(cell)
            if read is None:
                raise AssertionError(f"{cell} passed validation")
            value, unit = read
            yield Published(
                experiment=self.experiment,
                place=self.place,
                quantity=self.quantity,
                unit=unit,
                value=value,
                origin=self.origin,
                conditions={**self.conditions, **dict(zip(self.axes, combination, strict=True))},
                note=self.note,
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

    @model_validator(mode="after")
    def _check_ids(self) -> Self:
        ids = [experiment.id for experiment in self.experiments]
        problems = [
            Problem(field=f"experiments[{index}].id", value=key, remedy="must be unique and start with the study's key")
            for index, key in enumerate(ids)
            if ids.index(key) != index or not key.startswith(f"{self.key}-")
        ]
        references = [(f"tables[{index}]", table.experiment) for index, table in enumerate(self.tables)]
        references += [(f"shares[{index}]", share.experiment) for index, share in enumerate(self.shares)]
        problems += [
            Problem(field=f"{field}.experiment", value=key, remedy="is not one of experiments")
            for field, key in references
            if key not in ids
        ]
        if problems:
            raise SpecError(problems)
        return self

    @model_validator(mode="after")
    def _check_shares(self) -> Self:
        problems = []
        for index, share in enumerate(self.shares):
            try:
                published_range(share.published, self.values)
            except ValueError as error:
                problems.append(Problem(field=f"shares[{index}].published", remedy=f"is not usable: {error}"))
        if problems:
            raise SpecError(problems)
        return self


def parse_study(text: str) -> Study:
    """Read a study from YAML text, or raise SpecError with every invalid field and the remedy."""
    try:
        return Study.model_validate(read_manifest(text), by_alias=True, by_name=False)
    except ValidationError as error:
        raise SpecError(problems_of(error, model=Study)) from error


def _read_text(cell: str) -> tuple[float, Unit] | None:
    """Return a number with its unit; None if the text is something else."""
    number, _, unit = cell.partition(" ")
    try:
        return float(number), Unit(unit)
    except ValueError:
        return None


ResultsOf = Mapping[str, Sequence[BenchmarkResult]]
"""Variant -> the results of its first complete run; without variants that have none."""

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
    """Return a description of the cluster, from the first results that have one."""
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
