"""What the operator keeps of a suite between two looks. All of it can be found out again after a restart."""

from dataclasses import dataclass, field

from plimsoll.reconcile.digests import Digests
from plimsoll.suite.history.rounds import MeasuredRound
from plimsoll.suite.rounds.actions import RoundRuns
from plimsoll.suite.rounds.observed import Memory, Observed, OwnedRun
from plimsoll.suite.rounds.specification import Specification


@dataclass(slots=True, kw_only=True)
class SuiteMemory:
    """The state that only suites have.

    Attributes:
        runs: the suite's runs, so that the next look reads only those that have changed; None before the first look.
        specification: with the generation of the suite that it was read from; reading it takes time.
        outcomes: of the requests so far.
        has_outcome: whether the last look ended with the outcome of a request, and nothing has happened since.
        decided: what the last decision was based on.
        rounds: of accepted rounds one value for each run and quantity, and the fingerprint of each point, while a round
            is being evaluated; empty otherwise, as the next evaluation is days away. 15 rounds of 16 variants with 10
            repeats and 20 points each are some 100 MB; usual suites have a hundredth.

    """

    runs: Digests[OwnedRun | None] | None = None
    specification: tuple[int, Specification] | None = None
    outcomes: Memory = field(default_factory=Memory)
    has_outcome: bool = False
    decided: Observed | None = None
    rounds: list[tuple[RoundRuns, MeasuredRound]] = field(default_factory=list)
