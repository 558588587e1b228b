"""`BenchmarkSuite`: several variants of one run, measured in turn, and what their results are to show."""

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Annotated, ClassVar, Literal, Self

from cronsim import CronSim, CronSimError
from pydantic import AfterValidator, Field, JsonValue, field_validator, model_validator

from plimsoll.api.errors import Problem, SpecError, decode_document, did_you_mean, field_path, load_document, shown
from plimsoll.api.hypothesis import MAX_HYPOTHESES, MAX_VARIANT_CHARACTERS, Hypothesis
from plimsoll.api.model import Choice, Flag, Integer, Model, Rule, ServerOnly, TimeZone, without_field
from plimsoll.api.names import DNS_LABEL_PATTERN, SUITE_KIND
from plimsoll.api.run import ObjectMeta, RunSpec, WithoutStatus, repeated_names
from plimsoll.api.storage import DnsLabel, ObjectName
from plimsoll.api.suite_status import MAX_KEEP

_CRON_PATTERN = r"^\S+(\s+\S+){4}$"
_FORM = 'write five fields such as "0 3 * * 0": minute, hour, day of month, month, day of week'


def _check_cron(expression: str) -> str:
    if re.match(_CRON_PATTERN, expression.strip()) is None:
        raise ValueError(f"is not a cron expression; {_FORM}")
    try:
        # Any moment: an expression that has a time has one every few years, even on 29 February.
        time = next(CronSim(expression, datetime(2000, 1, 1, tzinfo=UTC)), None)
    except CronSimError as error:
        raise ValueError(f"is not a cron expression ({error}); {_FORM}") from error
    if time is None:
        raise ValueError("never occurs; choose a day that one of the months has")
    return expression


class Schedule(Model):
    """When rounds start."""

    cron: Annotated[str, Field(max_length=256), AfterValidator(_check_cron), ServerOnly(pattern=_CRON_PATTERN)]
    """Cron expression such as "0 3 * * 0" for Sundays at three: minute, hour, day of month, month, day of week."""
    time_zone: TimeZone = "Etc/UTC"
    """Time zone of the cron expression, by its name in the time zone database, such as Europe/Berlin."""
    # As of a CronJob of Kubernetes, whose controller misses times with less.
    starting_deadline_seconds: Annotated[Integer, Field(ge=10, le=365 * 24 * 3600)] | None = None
    """How late a round may start, such as after an outage of the operator; at any time if absent. Of several missed
    times, only the last one counts."""


VariantName = Annotated[str, Field(pattern=DNS_LABEL_PATTERN, max_length=MAX_VARIANT_CHARACTERS)]


class VariantReference(Model):
    """A variant of the suite."""

    variant: VariantName
    """Name of the variant."""


class Baseline(Choice):
    """The side to compare with: another variant of the same round, or earlier rounds of the same variant."""

    one_of: ClassVar[tuple[str, ...]] = ("variant", "rounds")

    variant: VariantName | None = None
    """Name of a variant; candidate is compared with it within each round."""
    rounds: Literal["Accepted"] | None = None
    """Accepted compares each variant with its earlier rounds that did not regress."""


class Allowance(Model):
    """Changes for the worse that do not matter."""

    rate_percent: Annotated[Integer, Field(ge=1, le=90)] = 5
    """Tolerated decrease of a rate, in percent of the baseline."""
    latency_percent: Annotated[Integer, Field(ge=2, le=1000)] = 10
    """Tolerated increase of a latency, in percent of the baseline. A latency is exact to 1.6 % at best."""


class SuiteComparison(Model):
    """A comparison: whether one variant is worse than another, or each variant worse than in earlier rounds."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            rule="has(self.candidate) == has(self.baseline.variant)",
            holds=lambda comparison: (comparison.candidate is None) == (comparison.baseline.variant is None),
            message="must have the variant to judge with baseline.variant, and cannot be set with baseline.rounds, "
            "which compares every variant; add or remove it",
            field_path=".candidate",
        ),
        Rule(
            rule="!has(self.baseline.variant) || !has(self.candidate) || "
            "self.baseline.variant != self.candidate.variant",
            holds=lambda it: it.candidate is None or it.candidate.variant != it.baseline.variant,
            message="must be another variant than the baseline",
            field_path=".candidate.variant",
        ),
    )

    name: DnsLabel
    """Unique name of the comparison."""
    baseline: Baseline
    """The variant or the rounds to compare with."""
    candidate: VariantReference | None = None
    """The variant to judge; only with baseline.variant."""
    allow: Allowance = Allowance()
    """Changes for the worse that do not matter."""

    @property
    def variants(self) -> tuple[str, str] | None:
        """The names of baseline and candidate; None if earlier rounds are the baseline."""
        if self.baseline.variant is None or self.candidate is None:
            return None
        return self.baseline.variant, self.candidate.variant


MAX_SUITE_NAME = 30
BY_NAME = "workloads"  # the list of a run's specification whose entries are merged by name; others are replaced
ANNOTATION_STUDY = "plimsoll.dev/study"  # the key, in lower case, of a published study to show next to the suite
_RESERVED = ("results", "cleanup", "suspend", "ttlSecondsAfterFinished")

Fragment = dict[str, JsonValue]
Location = tuple[int | str, ...]


def _checked(fragment: Fragment) -> Fragment:
    """Return a part of a run's specification, if a suite can merge it, and its workloads by name."""
    remedy = "cannot be set in a suite, which decides when its runs are measured and removed; remove it"
    problems = [
        Problem(field=name, value=shown(fragment[name]), remedy=remedy) for name in _RESERVED if name in fragment
    ]
    workloads = fragment.get(BY_NAME)
    entries = workloads if isinstance(workloads, list) else []
    names = [entry.get("name") if isinstance(entry, dict) else None for entry in entries]
    remedy = "is required as text, because workloads are merged by name; add it"
    problems += [
        Problem(field=f"{BY_NAME}[{index}].name", value=shown(name), remedy=remedy)
        for index, name in enumerate(names)
        if not isinstance(name, str)
    ]
    problems += repeated_names(names, BY_NAME)
    if problems:
        raise SpecError(problems)
    return fragment


def _changes(fragment: Fragment) -> Fragment:
    remedy = "cannot be null, which kubectl apply drops; to remove a field of spec.run, name it in unset"
    if nulls := [Problem(field=field_path(place), value="null", remedy=remedy) for place in _nulls(fragment, ())]:
        raise SpecError(nulls)
    return _checked(fragment)


def _nulls(value: JsonValue, place: Location) -> Iterator[Location]:
    if value is None:
        yield place
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, entry in entries:
        yield from _nulls(entry, (*place, key))


class SuiteMeta(ObjectMeta):
    """The metadata of a suite; other fields are ignored."""

    name: Annotated[ObjectName, Field(max_length=MAX_SUITE_NAME)]
    annotations: Mapping[str, str] | None = None

    @property
    def study(self) -> str | None:
        """The published study that the suite repeats, in lower case; None if it repeats none."""
        return (self.annotations or {}).get(ANNOTATION_STUDY)


class Variant(Model):
    """One variant of the run."""

    name: VariantName
    """Unique name of the variant, part of the names of its runs."""
    changes: Annotated[Fragment, Field(alias="set"), ServerOnly(shape=RunSpec, part=True, part_without=_RESERVED)] = (
        Field(default_factory=dict)
    )
    """What the variant changes in spec.run. Mappings are merged, workloads are merged by name, other lists are
    replaced, and a field of a union replaces the others, such as erasureCoded a replicated pool."""
    unset: Annotated[
        tuple[Annotated[str, Field(min_length=1, max_length=256)], ...],
        Field(max_length=32),
        ServerOnly(list_type="set"),
    ] = ()
    """Fields that the variant removes from spec.run, before it sets any: dotted paths with the names of workloads, such
    as workloads.random-read.fio.rate."""

    _is_mergeable = field_validator("changes")(_changes)


class Triggers(Model):
    """What starts a round besides a change, a request and the schedule."""

    ceph_version: Flag = False
    """Whether another version of Ceph starts a round."""


def _existing_variants(reference: str, *, optional: tuple[str, ...], of: str) -> Rule:
    """Return the rule that a reference in every entry of a list names a variant, unless a part of it is absent."""
    absent = "".join(f"!has(e.{part}) || " for part in optional)
    return Rule(
        rule=f"self.{of}.all(e, {absent}self.variants.exists(v, v.name == e.{reference}))",
        message=f"must have a variant of the suite as {reference} in every entry; correct the name",
        field_path=f".{of}",
    )


class SuiteSpec(Model):
    """The specification of the suite."""

    rules: ClassVar[tuple[Rule, ...]] = (
        _existing_variants("baseline.variant", optional=("baseline.variant",), of="comparisons"),
        _existing_variants("candidate.variant", optional=("candidate",), of="comparisons"),
        _existing_variants("left.variant", optional=("left.variant",), of="hypotheses"),
        _existing_variants("of.variant", optional=("of", "of.variant"), of="hypotheses"),
    )

    schedule: Schedule | None = None
    """When rounds start. Without a schedule, a round starts after each change of run, variants or repeat."""
    triggers: Triggers = Triggers()
    """Other causes that start a round."""
    repeat: Annotated[Integer, Field(ge=1, le=10)] = 3
    """How often each variant is measured in a round, in shuffled order, to estimate the noise between runs of the
    same variant. At least 3 are needed for a useful estimate."""
    keep: Annotated[Integer, Field(ge=1, le=MAX_KEEP)] = 10
    """Number of former rounds whose runs and results are kept, besides those that a comparison still uses."""
    run: Annotated[Fragment, ServerOnly(shape=RunSpec, part=True, part_without=_RESERVED)]
    """What all variants share: a part of the specification of a BenchmarkRun."""
    variants: Annotated[tuple[Variant, ...], Field(min_length=1, max_length=16), ServerOnly(list_keys=("name",))]
    """The variants. Each one is spec.run with its own changes."""
    comparisons: Annotated[tuple[SuiteComparison, ...], Field(max_length=32), ServerOnly(list_keys=("name",))] = ()
    """Comparisons between variants, or with earlier rounds."""
    hypotheses: Annotated[
        tuple[Hypothesis, ...], Field(max_length=MAX_HYPOTHESES), ServerOnly(list_keys=("name",))
    ] = ()
    """Expectations of the numbers."""
    gate: Flag = False
    """Whether a regression makes the suite Stalled, which Flux and Argo CD report as failed."""
    suspend: Flag = False
    """Start no round, and no further run of the active round. A run that is being measured continues."""

    _is_mergeable = field_validator("run")(_checked)

    @model_validator(mode="after")
    def _check_names(self) -> Self:
        variants = [variant.name for variant in self.variants]
        problems = [
            *repeated_names(variants, "variants"),
            *repeated_names([comparison.name for comparison in self.comparisons], "comparisons"),
            *repeated_names([hypothesis.name for hypothesis in self.hypotheses], "hypotheses"),
        ]
        references: list[tuple[Location, str]] = [
            (("comparisons", index, side, "variant"), name)
            for index, comparison in enumerate(self.comparisons)
            for side, name in zip(("baseline", "candidate"), comparison.variants or (), strict=False)
        ]
        references += [
            (("hypotheses", index, side, "variant"), selector.variant)
            for index, hypothesis in enumerate(self.hypotheses)
            for side, selector in hypothesis.selectors
            if selector.variant is not None
        ]
        for location, name in references:
            if name not in variants:
                suggestion = did_you_mean(name, variants, 1) or f"the variants are {', '.join(variants)}"
                remedy = f"is not a variant of the suite; {suggestion}"
                problems.append(Problem(field=field_path(location), value=shown(name), remedy=remedy))
        for index, variant in enumerate(self.variants):
            rest = self.run
            for place, path in enumerate(variant.unset):
                without = without_field(rest, path)
                if without is None:
                    field = field_path(("variants", index, "unset", place))
                    remedy = "is not set in spec.run; correct or remove it"
                    problems.append(Problem(field=field, value=shown(path), remedy=remedy))
                else:
                    rest = without
        if problems:
            raise SpecError(problems)
        return self


class BenchmarkSuite(WithoutStatus):
    """A suite as written by a user."""

    api_version: Literal["plimsoll.dev/v1alpha1"]
    kind: Literal["BenchmarkSuite"]
    metadata: SuiteMeta
    spec: SuiteSpec


def load_suite(text: str) -> BenchmarkSuite:
    """Read one `BenchmarkSuite` from text, or raise SpecError; fields of a run are checked when variants are merged."""
    return load_document(text, BenchmarkSuite, SUITE_KIND)


def decode_suite(document: JsonValue) -> BenchmarkSuite:
    return decode_document(document, BenchmarkSuite, SUITE_KIND)
