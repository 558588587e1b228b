"""Comparisons of a `BenchmarkSuite`: which results are compared, and what is tolerated."""

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from plimsoll.api.errors import Problem, SpecError
from plimsoll.api.hypothesis import MAX_VARIANT_CHARACTERS
from plimsoll.api.model import Integer, Model
from plimsoll.api.names import DNS_LABEL_PATTERN
from plimsoll.api.pools import DnsLabel
from plimsoll.api.schema import Rule
from plimsoll.api.wording import shown

VariantName = Annotated[str, Field(pattern=DNS_LABEL_PATTERN, max_length=MAX_VARIANT_CHARACTERS)]

_ONE_BASELINE = "must have exactly one of variant and rounds"
_NO_CANDIDATE = "must have the variant to judge, because the baseline is a variant; add it, or compare with rounds"
_NEEDLESS_CANDIDATE = (
    "cannot be set with baseline.rounds, which compares every variant; remove it, or compare with a variant"
)
_SAME = "must be another variant than the baseline"


class VariantReference(Model):
    """A variant of the suite.

    Attributes:
        variant: Name of the variant.

    """

    variant: VariantName


class Baseline(Model):
    """What is compared with: another variant of the same round, or earlier rounds of the same variant.

    Attributes:
        variant: Name of a variant; candidate is compared with it within each round.
        rounds: Accepted compares each variant with its earlier rounds that did not regress.

    """

    rules: ClassVar[tuple[Rule, ...]] = (Rule(rule="has(self.variant) != has(self.rounds)", message=_ONE_BASELINE),)
    one_of: ClassVar[tuple[str, ...]] = ("variant", "rounds")

    variant: VariantName | None = None
    rounds: Literal["Accepted"] | None = None

    @model_validator(mode="after")
    def _one_baseline(self) -> Self:
        if not self.has_one_choice:
            raise ValueError(_ONE_BASELINE)
        return self


class Allowance(Model):
    """Changes for the worse that do not matter.

    Attributes:
        rate_percent: Tolerated decrease of a rate, in percent of the baseline.
        latency_percent: Tolerated increase of a latency, in percent of the baseline. A latency is known to 1.6 % at
            best.

    """

    rate_percent: Annotated[Integer, Field(ge=1, le=90)] = 5
    latency_percent: Annotated[Integer, Field(ge=2, le=1000)] = 10


class SuiteComparison(Model):
    """A comparison: whether one variant is worse than another, or each variant worse than in earlier rounds.

    Attributes:
        name: Unique name of the comparison.
        baseline: What is compared with.
        candidate: The variant to judge; only with baseline.variant.
        allow: Changes for the worse that do not matter.

    """

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            rule="!has(self.baseline.variant) || has(self.candidate)",
            message=_NO_CANDIDATE,
            field_path=".candidate",
            reason="FieldValueRequired",
        ),
        Rule(
            rule="!has(self.baseline.rounds) || !has(self.candidate)",
            message=_NEEDLESS_CANDIDATE,
            field_path=".candidate",
            reason="FieldValueForbidden",
        ),
        Rule(
            rule=(
                "!has(self.baseline.variant) || !has(self.candidate) || self.baseline.variant != self.candidate.variant"
            ),
            message=_SAME,
            field_path=".candidate.variant",
        ),
    )

    name: DnsLabel
    baseline: Baseline
    candidate: VariantReference | None = None
    allow: Allowance = Allowance()

    @model_validator(mode="after")
    def _check_candidate(self) -> Self:
        if problems := list(_candidate_problems(self)):
            raise SpecError(problems)
        return self

    @property
    def variants(self) -> tuple[str, str] | None:
        """The names of baseline and candidate; None if earlier rounds are the baseline."""
        if self.baseline.variant is None or self.candidate is None:
            return None
        return self.baseline.variant, self.candidate.variant


def _candidate_problems(comparison: SuiteComparison) -> Iterator[Problem]:
    baseline, candidate = comparison.baseline.variant, comparison.candidate
    if baseline is not None and candidate is None:
        yield Problem(field="candidate", remedy=_NO_CANDIDATE)
    elif candidate is not None and baseline is None:
        yield Problem(field="candidate", remedy=_NEEDLESS_CANDIDATE)
    elif candidate is not None and candidate.variant == baseline:
        remedy = "is the baseline as well; compare two different variants"
        yield Problem(field="candidate.variant", value=shown(candidate.variant), remedy=remedy)
