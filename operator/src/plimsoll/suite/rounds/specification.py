"""The specification of a suite, checked as a whole. It changes with the suite's generation only."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic import JsonValue

from plimsoll.api.errors import SpecError
from plimsoll.api.suite import BenchmarkSuite, decode_suite
from plimsoll.suite.children import variant_plans
from plimsoll.suite.digest import measured_digest, questions_digest, suite_digest
from plimsoll.suite.merging import variant_spec
from plimsoll.suite.rounds.schedule import Times, times_of

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
        variant_plans(suite, seed=_ANY_SEED)
    except SpecError as error:
        return Specification(suite=None, problem=str(error))
    times = times_of(suite.spec.schedule) if suite.spec.schedule else None
    digest, questions = suite_digest(suite.spec), questions_digest(suite.spec)
    measures = {one.name: measured_digest(variant_spec(suite.spec.run, one)) for one in suite.spec.variants}
    return Specification(suite=suite, times=times, digest=digest, questions=questions, measures=measures)
