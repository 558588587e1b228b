"""Shares: ratios that a study published, or that follow from its numbers, and the points that give a user's own."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Self

from pydantic import Field, model_validator

from plimsoll.api.errors import Problem, SpecError
from plimsoll.api.hypothesis import CLIENTS, Hypothesis, Selector
from plimsoll.api.model import Model
from plimsoll.api.names import Layer, Operation
from plimsoll.measure.hypotheses.select import P, VariantRun


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
    note: str = ""  # how to read it; empty if it needs no remark

    @property
    def key(self) -> tuple[str, str, str, frozenset[tuple[str, str | int]]]:
        """What identifies it: no study has two values of the same experiment, place, quantity and conditions."""
        return self.experiment, self.place, self.quantity, frozenset(self.conditions.items())


_BYTES_PER_SECOND = {
    Unit.MEGABYTES_PER_SECOND: 1e6,
    Unit.GIGABYTES_PER_SECOND: 1e9,
    Unit.KIBIBYTES_PER_SECOND: 2**10,
    Unit.MEBIBYTES_PER_SECOND: 2**20,
    Unit.MEGABITS_PER_SECOND: 1e6 / 8,
    Unit.GIGABITS_PER_SECOND: 1e9 / 8,
}
_Text = Annotated[str, Field(min_length=1)]


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

    @model_validator(mode="after")
    def _check_own(self) -> Self:
        if (self.layer is None) == (self.ratio is None):
            raise SpecError([Problem(field="ratio", remedy="must be given if layer is not, and only then")])
        return self


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedRange:
    """A study's share as parts of 1."""

    low: float  # the lowest; `high` for a single number
    high: float  # the highest
    text: str  # the study's numbers in words
    place: str  # where it published them
    origin: Origin  # Derived also if only one of the numbers behind it was computed


def published_range(share: PublishedShare, values: Sequence[Published]) -> PublishedRange:
    """Return the range of a published share; ValueError if it selects no value, several limits, or no shares."""
    selected = share.values.among(values)
    if not selected:
        raise ValueError(f"no value of {share.values.experiment} is a {share.values.quantity} with these conditions")
    words = {Form.PART: "", Form.GAIN: "gain of ", Form.LOSS: "loss of "}[share.form]
    text, origins = f"{words}{_number_text(selected)}", {value.origin for value in selected}
    if share.of is not None:
        limits = share.of.among(values)
        if len(limits) != 1:
            what = f"{len(limits)} values of {share.of.experiment} are a {share.of.quantity}"
            raise ValueError(f"{what} with these conditions, not one")
        parts = [_rate(value) / _rate(limits[0]) for value in selected]
        # A share of rates is computed, wherever the rates come from.
        text, origins = f"{text} of {_number_text(limits)}", {Origin.DERIVED}
    else:
        parts = [_part(share.form, value) for value in selected]
    origin = next(origin for origin in (Origin.DERIVED, Origin.CITED, Origin.PUBLISHED) if origin in origins)
    return PublishedRange(low=min(parts), high=max(parts), text=text, place=selected[0].place, origin=origin)


def _number_text(values: Sequence[Published]) -> str:
    """Return the number, or the lowest and the highest one, with the unit if there is one."""
    low, high = min(value.value for value in values), max(value.value for value in values)
    ends = f"{high:g}" if low == high else f"{low:g} to {high:g}"
    unit = values[0].unit
    return ends if unit in (Unit.RATIO, Unit.NOT_STATED) else f"{ends} {unit}"


def _part(form: Form, published: Published) -> float:
    if published.unit is Unit.RATIO:
        return published.value
    if published.unit is not Unit.PERCENT:
        raise ValueError(f"{published.value:g} {published.unit} is not a share; name what it is a share of")
    part = published.value / 100
    return {Form.PART: part, Form.GAIN: 1 + part, Form.LOSS: 1 - part}[form]


def _rate(published: Published) -> float:
    """Return a rate in bytes per second; one without a stated unit as it is."""
    if published.unit is Unit.NOT_STATED:
        return published.value
    if published.unit not in _BYTES_PER_SECOND:
        raise ValueError(f"{published.value:g} {published.unit} is not a rate")
    return published.value * _BYTES_PER_SECOND[published.unit]
