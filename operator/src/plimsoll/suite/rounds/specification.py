"""The specification of a suite, checked as a whole. It changes with the suite's generation only."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from pydantic import JsonValue

from plimsoll.api.errors import Problem, SpecError
from plimsoll.api.suite import BenchmarkSuite, decode_suite
from plimsoll.plan.document import Plan
from plimsoll.plan.estimate import estimate
from plimsoll.suite.children import variant_plans
from plimsoll.suite.digest import measured_digest, questions_digest, suite_digest
from plimsoll.suite.merging import variant_spec
from plimsoll.suite.rounds.schedule import Times, times_of

MAX_TRIALS = 10_000
"""Planned trials of a round: evaluating more could take more memory than the chart gives to the operator by default.

On one machine there is no such limit.
"""

_ANY_SEED = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Specification:
    """What a suite asks for.

    Attributes:
        suite: the decoded suite; None if it is invalid.
        times: those of the schedule; None without one, and if the suite is invalid.
        digest: of what it measures; empty if it is invalid.
        questions: digest of what its results are to show; the same.
        measures: digest of what the run of each variant measures, by the variant's name; empty if it is invalid.
        problem: why it is invalid, one line for each field; empty if it is valid.

    """

    suite: BenchmarkSuite | None
    times: Times | None = None
    digest: str = ""
    questions: str = ""
    measures: Mapping[str, str] = field(default_factory=dict)
    problem: str = ""


def read_specification(document: JsonValue) -> Specification:
    """Return the specification of a suite as stored, after planning every variant. It plans for tens of ms."""
    try:
        suite = decode_suite(document)
        plans = variant_plans(suite, seed=_ANY_SEED)
    except SpecError as error:
        return Specification(suite=None, problem=str(error))
    if problem := size_problem(suite.spec.repeat, plans.values()):
        return Specification(suite=None, problem=str(Problem(field="spec", remedy=problem)))
    times = times_of(suite.spec.schedule) if suite.spec.schedule else None
    digest, questions = suite_digest(suite.spec), questions_digest(suite.spec)
    measures = {one.name: measured_digest(variant_spec(suite.spec.run, one)) for one in suite.spec.variants}
    return Specification(suite=suite, times=times, digest=digest, questions=questions, measures=measures)


def size_problem(repeat: int, plans: Iterable[Plan]) -> str:
    """Return why the operator cannot evaluate rounds of these variants, and the remedy; empty if it can."""
    of_variants = [estimate(plan).trials for plan in plans]
    trials = sum(of_variants) * repeat
    if trials <= MAX_TRIALS:
        return ""
    variants = f"{len(of_variants)} variant{'s' * (len(of_variants) > 1)}"
    return (
        f"a round would have {trials:,} trials: {sum(of_variants):,} in {variants} (points times repetitions), times "
        f"repeat {repeat}; the operator evaluates at most {MAX_TRIALS:,}: lower repeat or repetitions, measure fewer "
        "points, or divide the suite"
    )
