"""Hypotheses: a user's expectations, stated before results decide them (`plimsoll.measure.hypotheses`)."""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Self

from pydantic import AfterValidator, BeforeValidator, Field, JsonValue, model_validator

from plimsoll.api.errors import Problem, SpecError, shown
from plimsoll.api.model import Integer, Model, Rule, ServerOnly
from plimsoll.api.names import DECIMAL_PATTERN, DNS_LABEL_PATTERN, PARAMETER_PATTERN, Metric, Operation
from plimsoll.api.quantity import QUANTITY_PATTERN, parse_quantity
from plimsoll.api.run import WorkloadName

CLIENTS = "clients"  # key of the number of clients, in `where` and `over`
STORM = "storm"  # key, in `where`, of whether a line is the storm line; others are parameters of the tool
MAX_HYPOTHESES = 64
MAX_VARIANT_CHARACTERS = 20
_MAX_CONDITIONS = 16


def _conditions(where: Mapping[str, JsonValue]) -> Mapping[str, JsonValue]:
    problems = []
    for key, value in where.items():
        if not isinstance(value, bool | int | str):
            remedy = "must be one value: a whole number, a quantity, text, true or false"
        elif key == CLIENTS and (isinstance(value, bool | str) or value < 1):
            remedy = "must be a number of clients, at least 1"
        else:
            continue
        problems.append(Problem(field=key, value=shown(value), remedy=remedy))
    if problems:
        raise SpecError(problems)
    return where


_AxisValue = Annotated[
    int, BeforeValidator(parse_quantity), ServerOnly(int_or_string=True, max_length=32, pattern=QUANTITY_PATTERN)
]
_Percent = Annotated[Integer, Field(ge=1, le=1_000_000)]
_Exponent = Annotated[str, Field(pattern=DECIMAL_PATTERN), ServerOnly(max_length=16)]
_Condition = Annotated[JsonValue, Field(description="The value, as in a workload: 4Mi, 8, randwrite or true.")]


class Selector(Model):
    """One quantity of one point."""

    variant: Annotated[str, Field(pattern=DNS_LABEL_PATTERN, max_length=MAX_VARIANT_CHARACTERS)] | None = None
    """Name of a variant. If left and of have none, the hypothesis is decided in each variant by itself."""
    workload: WorkloadName
    """Name of the workload."""
    operation: Operation | None = None
    """The operation; may be omitted if the workload has a single one."""
    where: Annotated[
        Mapping[str, _Condition],
        AfterValidator(_conditions),
        Field(max_length=_MAX_CONDITIONS),
        ServerOnly(max_length=_MAX_CONDITIONS),
    ] = Field(default_factory=dict)
    """Values that select one point of a workload with several: parameters of its tool as the workload writes them, such
    as blockSize 4Mi, and clients; storm true selects the storm line, false the calm line."""
    quantity: Metric
    """The compared quantity: bytesPerSecond, iops, meanLatency, or a percentile of latency (p50, p90, p95, p99, p99.9,
    p99.99), as far as the tool reports it; iopsDuring or recovery if the workload has disturb; only line if the
    workload searches for the line."""


class AxisRange(Model):
    """The part of an axis that a hypothesis is about, both ends included."""

    first: _AxisValue | None = None
    """Smallest value, such as 1 or 4Ki; no limit if absent."""
    last: _AxisValue | None = None
    """Largest value; no limit if absent."""

    @model_validator(mode="after")
    def _check_order(self) -> Self:
        if self.first is not None and self.last is not None and self.first >= self.last:
            remedy = f"must be more than first, which is {self.first}"
            raise SpecError([Problem(field="last", value=str(self.last), remedy=remedy)])
        return self

    def includes(self, value: int) -> bool:
        return (self.first is None or value >= self.first) and (self.last is None or value <= self.last)


class Hypothesis(Model):
    """What is expected: a ratio of two points, or how a quantity scales along an axis.

    A ratio has left, of, and atLeastPercent or atMostPercent or both. Scaling has left, over, and exponentAtLeast or
    exponentAtMost or both: a quantity that is proportional to clients has the exponent 1, one that does not depend on
    them 0.
    """

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            rule="has(self.of) != has(self.over) && (has(self.of) ? has(self.atLeastPercent) || "
            "has(self.atMostPercent) : has(self.exponentAtLeast) || has(self.exponentAtMost))",
            holds=lambda it: bool(it.of) != bool(it.over) and (it.has_percents if it.of else it.has_exponents),
            message="must be either a ratio or scaling; have of with atLeastPercent or atMostPercent, or over with "
            "exponentAtLeast or exponentAtMost",
        ),
        Rule(
            rule="has(self.of) ? !has(self.exponentAtLeast) && !has(self.exponentAtMost) && !has(self.range) : "
            "!has(self.atLeastPercent) && !has(self.atMostPercent)",
            holds=lambda it: not (it.has_exponents or it.range if it.of else it.has_percents),
            message="cannot have exponentAtLeast, exponentAtMost or range with of, nor atLeastPercent or "
            "atMostPercent with over; remove them",
        ),
        Rule(
            rule="!has(self.of) || has(self.left.variant) == has(self.of.variant)",
            holds=lambda it: it.of is None or (it.left.variant is None) == (it.of.variant is None),
            message="must have a variant in both left and of, or in neither",
        ),
        Rule(
            rule="!has(self.atLeastPercent) || !has(self.atMostPercent) || self.atLeastPercent <= self.atMostPercent",
            holds=lambda it: not it.of or None in it.bounds or it.bounds[0] <= it.bounds[1],
            message="must be at least atLeastPercent",
            field_path=".atMostPercent",
        ),
    )

    name: Annotated[str, Field(pattern=DNS_LABEL_PATTERN, max_length=63)]
    """Unique name of the hypothesis."""
    left: Selector
    """The point that the hypothesis is about; for scaling, the points along the axis."""
    at_least_percent: _Percent | None = None
    """Smallest expected ratio of left and of, in percent."""
    at_most_percent: _Percent | None = None
    """Largest expected ratio, in percent."""
    of: Selector | None = None
    """The point with which left is compared."""
    over: Annotated[str, Field(pattern=PARAMETER_PATTERN, max_length=64)] | None = None
    """Axis with at least three values: clients, or a parameter of the tool with numbers or sizes, such as ioDepth."""
    range: AxisRange | None = None
    """The part of the axis that the hypothesis is about; all of it if absent."""
    exponent_at_least: _Exponent | None = None
    """Smallest expected exponent, a decimal number in quotes such as "0.8"."""
    exponent_at_most: _Exponent | None = None
    """Largest expected exponent, in the same form."""

    @model_validator(mode="after")
    def _check_values(self) -> Self:
        """Check whether the values of a ratio or of scaling make sense, which the API server cannot do well."""
        problems = []
        left, over = self.left, self.over
        if self.of == left:
            remedy = "is the same as left, so the ratio is always 100 %; select another point"
            problems.append(Problem(field="of", remedy=remedy))
        elif self.of and self.of.quantity.unit != left.quantity.unit:
            remedy = f"has no ratio with left.quantity, which is {left.quantity}; choose quantities of the same unit"
            problems.append(Problem(field="of.quantity", value=shown(self.of.quantity), remedy=remedy))
        if over and over in left.where:
            remedy = "fixes the axis that over names; remove it, or limit the axis with range"
            problems.append(Problem(field=f"left.where.{over}", value=shown(left.where[over]), remedy=remedy))
        low, high = self.bounds
        if over and low is not None and high is not None and low > high:
            remedy = f"must be at least exponentAtLeast, which is {self.exponent_at_least}"
            problems.append(Problem(field="exponentAtMost", value=shown(self.exponent_at_most), remedy=remedy))
        if problems:
            raise SpecError(problems)
        return self

    @property
    def has_percents(self) -> bool:
        return self.at_least_percent is not None or self.at_most_percent is not None

    @property
    def has_exponents(self) -> bool:
        return self.exponent_at_least is not None or self.exponent_at_most is not None

    @property
    def selectors(self) -> tuple[tuple[str, Selector], ...]:
        """The selectors, each with the name of its field."""
        return (("left", self.left), *((("of", self.of),) if self.of else ()))

    @property
    def bounds(self) -> tuple[float | None, float | None]:
        """The smallest and the largest expected ratio, as a part of 1, or exponent; None without a limit."""
        if self.of:
            low, high = self.at_least_percent, self.at_most_percent
            return None if low is None else low / 100, None if high is None else high / 100
        at_least, at_most = self.exponent_at_least, self.exponent_at_most
        return None if at_least is None else float(at_least), None if at_most is None else float(at_most)
