"""The rounds of a suite, from directories of this machine or from a cluster, with what the last one shows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click

from plimsoll.cli.compare import EXIT_OF
from plimsoll.cli.source import SuiteInCluster, find_suite
from plimsoll.cli.suite_cluster import rounds_in_cluster
from plimsoll.cli.suite_findings import Findings, findings_of
from plimsoll.cli.suite_history import Course, accepted_minutes, course_of, in_order
from plimsoll.cli.suite_measured import results_of_round
from plimsoll.cli.suite_round import read_round
from plimsoll.measure.compare.tests import Conclusion

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteRounds:
    """The rounds of a suite.

    Attributes:
        label: what a report calls the suite.
        findings: of the last round.
        course: of all rounds.
        conclusion: of the last round, over all comparisons; None if there is no comparison.

    """

    label: str
    findings: Findings
    course: Course
    conclusion: Conclusion | None

    @property
    def exit_code(self) -> int:
        """The exit code of commands that show the last round."""
        return EXIT_OF[self.conclusion] if self.conclusion else 0


def accept_option(function: F) -> F:
    """Add the option `--accept` for rounds in directories."""
    return click.option(
        "--accept",
        "accepted",
        multiple=True,
        metavar="MINUTE|DIR",
        help="Accept this round whatever it showed, such as a regression that is intended: the baseline starts with "
        "it. May be repeated. Only for directories; in a cluster, an annotation of the suite accepts a round.",
    )(function)


def load_rounds(sources: Sequence[str], accepted: Sequence[str]) -> SuiteRounds:
    """Read directories of rounds, or one suite in a cluster.

    Raises:
        click.ClickException: a round cannot be read.
        click.UsageError: the sources or the accepted rounds do not fit together.

    """
    places = [find_suite(source) for source in sources]
    directories = [place for place in places if isinstance(place, Path)]
    if len(directories) == len(places):
        return _of_directories(directories, accepted)
    if len(places) > 1:
        message = "name one suite in a cluster, or directories of rounds"
        raise click.UsageError(message)
    if accepted:
        message = "--accept is for directories; in a cluster, annotate the suite with plimsoll.dev/accept-round"
        raise click.UsageError(message)
    return _of_cluster(next(place for place in places if isinstance(place, SuiteInCluster)))


def _of_directories(directories: Sequence[Path], accepted: Sequence[str]) -> SuiteRounds:
    rounds = in_order([read_round(directory) for directory in directories])
    minutes = accepted_minutes(rounds, accepted)
    course = course_of([results_of_round(one) for one in rounds], minutes)
    findings = findings_of(course.rounds[-1])
    return SuiteRounds(
        label=findings.suite.metadata.name,
        findings=findings,
        course=course,
        conclusion=_conclusion(findings, course),
    )


def _of_cluster(place: SuiteInCluster) -> SuiteRounds:
    found = rounds_in_cluster(place)
    course = found.course
    last = found.ended[-1]
    # What the operator concluded counts, also if its version differs from this program's.
    is_intended = course.conclusions[-1] is Conclusion.REGRESSION and last.accepted
    return SuiteRounds(
        label=str(place),
        findings=findings_of(course.rounds[-1]),
        course=course,
        conclusion=None if is_intended else course.conclusions[-1],
    )


def _conclusion(findings: Findings, course: Course) -> Conclusion | None:
    """Return the conclusion of the last round; accepting it makes its regression from accepted rounds intended."""
    last = course.history.rounds[-1]
    intended = last.accepted and last.regressed
    conclusions = {
        *(one.conclusion for one in findings.comparisons),
        *(one.conclusion for one in course.judgements.values() if not intended),
    }
    worst = (Conclusion.REGRESSION, Conclusion.INCONCLUSIVE, Conclusion.NO_REGRESSION)
    return next((one for one in worst if one in conclusions), None)
