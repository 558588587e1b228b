"""The input of a suite's report: its rounds, and what the last one shows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from plimsoll.measure.compare.tests import Conclusion
from plimsoll.measure.hypotheses.decide import Decision
from plimsoll.report.runs import Compared, ReportedRun
from plimsoll.studies.comparison import StudyComparison
from plimsoll.suite.history.history import JudgedRound
from plimsoll.suite.history.judging import RoundJudgement


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedRound:
    """One round.

    Attributes:
        conclusion: of the comparisons with accepted rounds; None if there is none.

    """

    judged: JudgedRound
    conclusion: Conclusion | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedVariants:
    """A comparison of two variants in the last round.

    Attributes:
        conclusion: its conclusion, which takes the doubts into account.
        doubts: reasons not to rely on the numbers.

    """

    name: str
    compared: Compared
    conclusion: Conclusion
    doubts: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedSuite:
    """A suite.

    Attributes:
        label: its name in the report.
        rounds: in the order of time; at least one.
        variants: the runs of each variant in the last round, as one run in which each run counts as a trial; without
            variants that have no complete run.
        comparisons: between variants, in the last round.
        judgements: of the last round, by the name of the comparison with accepted rounds.
        decisions: the hypotheses, decided in the last round.
        study: the last round beside the study that the suite repeats; None if it repeats none.

    """

    label: str
    rounds: Sequence[ReportedRound]
    variants: Sequence[ReportedRun]
    comparisons: Sequence[ComparedVariants]
    judgements: Mapping[str, RoundJudgement]
    decisions: Sequence[Decision]
    study: StudyComparison | None = None
