"""What the operator keeps of a suite between two looks. All of it can be found out again after a restart."""

from dataclasses import dataclass, field

from plimsoll.suite.history.rounds import MeasuredRound
from plimsoll.suite.rounds.observed import Checked, Judgement, Observed, Refusal
from plimsoll.suite.rounds.specification import Specification


@dataclass(slots=True, kw_only=True)
class SuiteMemory:
    """The state that only suites have.

    Attributes:
        specification: with the generation of the suite that it was read from; reading it takes time.
        seen: what the last decision was based on; the requests that follow are about it.
        judgement: the last evaluation of a round.
        checked: the last dry run.
        refusal: of the last request to create a run; None if it succeeded.
        rounds: minute -> UIDs of the runs that were read, and one value for each of their quantities. Of 15 rounds of
            16 variants with 10 repeats and 20 points each, these are some 200 MB; usual suites have a hundredth.

    """

    specification: tuple[int, Specification] | None = None
    seen: Observed | None = None
    judgement: Judgement | None = None
    checked: Checked | None = None
    refusal: Refusal | None = None
    rounds: dict[int, tuple[frozenset[str], MeasuredRound]] = field(default_factory=dict)
