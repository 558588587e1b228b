"""The rounds of a suite in a cluster: its status says how they ended, and the results of its runs have the numbers.

The user needs the rights to get the BenchmarkSuite and to list BenchmarkRuns and BenchmarkResults in its namespace.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import click
from pydantic import ValidationError

from plimsoll.api.errors import SpecError
from plimsoll.api.names import ConditionStatus, ConditionType
from plimsoll.api.result import BenchmarkResult
from plimsoll.api.suite import BenchmarkSuite, decode_suite
from plimsoll.api.suite_status import BenchmarkSuiteStatus, EndedRound, RoundVerdict
from plimsoll.cli.cluster import ask, program
from plimsoll.cli.source import RUN, SuiteInCluster, no_such_object, results_of_run
from plimsoll.cli.suite_history import Course, judgements_of
from plimsoll.cli.suite_measured import PlannedRun, RoundResults
from plimsoll.kube.port import Kube, Object
from plimsoll.measure.compare.tests import Conclusion
from plimsoll.suite.children import child_name, turns_of
from plimsoll.suite.history.history import History, JudgedRound
from plimsoll.suite.rounds.turns import LABEL_SUITE

_AT_ONCE = 8
"""Requests at the same time."""

_CONCLUSIONS = {
    RoundVerdict.REGRESSED: Conclusion.REGRESSION,
    RoundVerdict.NO_REGRESSION: Conclusion.NO_REGRESSION,
    RoundVerdict.INCONCLUSIVE: Conclusion.INCONCLUSIVE,
}
"""Of the rounds that were evaluated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterRounds:
    """The rounds of a suite that were evaluated and are still kept.

    Attributes:
        ended: what the status says of each, in the order of time; at least one.
        rounds: their results.

    """

    suite: BenchmarkSuite
    ended: Sequence[EndedRound]
    rounds: Sequence[RoundResults]

    @property
    def course(self) -> Course:
        """The rounds as the operator judged them, with the judgements of the last one.

        These are made again: the status has only their outcomes.
        """
        judged = tuple(
            JudgedRound(
                measured=one.measured,
                regressed=ended.verdict is RoundVerdict.REGRESSED,
                accepted=ended.accepted,
                pinned=ended.pinned,
            )
            for one, ended in zip(self.rounds, self.ended, strict=True)
        )
        before = History(rounds=judged[:-1])
        return Course(
            rounds=self.rounds,
            history=History(rounds=judged),
            conclusions=[_CONCLUSIONS[one.verdict] for one in self.ended],
            judgements=judgements_of(self.suite.spec, before, judged[-1].measured),
        )


def rounds_in_cluster(place: SuiteInCluster) -> ClusterRounds:
    """Read the rounds of a suite.

    Raises:
        click.ClickException: if they cannot be read, or if no round has been evaluated.

    """
    return ask(place.access, lambda kube: read_rounds(kube, place))


async def read_rounds(kube: Kube, place: SuiteInCluster) -> ClusterRounds:
    """Read the rounds of a suite; see `rounds_in_cluster`."""
    document = await kube.get(place.kind, place.name, place.namespace)
    if document is None:
        raise await no_such_object(kube, place)
    uid = str(document["metadata"]["uid"])
    try:
        suite = decode_suite(dict(document))
        status = BenchmarkSuiteStatus.model_validate(document.get("status") or {})
    except (SpecError, ValidationError) as error:
        message = f"suite {place} cannot be read; is it of a later version than this program? {error}"
        raise click.ClickException(message) from error
    ended = [one for one in reversed(status.rounds) if one.verdict in _CONCLUSIONS]
    if not ended:
        message = f"no round of suite {place} has been evaluated yet; `{program()} suite watch {place}` follows one"
        raise click.ClickException(message)
    results = await _results(kube, place, uid)
    return ClusterRounds(suite=suite, ended=ended, rounds=[_round(suite, uid, one, results) for one in ended])


async def _results(kube: Kube, place: SuiteInCluster, uid: str) -> Mapping[str, list[BenchmarkResult]]:
    """Return the results of all runs of a suite that succeeded, by the name of the run."""
    runs = await kube.list(RUN, namespace=place.namespace, labels={LABEL_SUITE: place.name})
    names = [str(run["metadata"]["name"]) for run in runs if _is_owned(run, uid) and _has_succeeded(run)]
    limit = asyncio.Semaphore(_AT_ONCE)

    async def of_run(name: str) -> list[BenchmarkResult]:
        async with limit:
            return await results_of_run(kube, place.namespace, name)

    try:
        found = await asyncio.gather(*map(of_run, names))
    except SpecError as error:
        message = f"the results of suite {place} cannot be read: {error}"
        raise click.ClickException(message) from error
    return dict(zip(names, found, strict=True))


def _round(
    suite: BenchmarkSuite, uid: str, ended: EndedRound, results: Mapping[str, list[BenchmarkResult]]
) -> RoundResults:
    # The status does not keep the seed of a former round; the order of its runs does not matter any more.
    planned = [
        PlannedRun(turn=turn, name=child_name(suite, turn, ended.minute, uid))
        for turn in turns_of(suite.spec, ended.minute)
    ]
    return RoundResults(
        suite=suite,
        minute=ended.minute,
        digest=ended.digest,
        planned=planned,
        results={one.name: results[one.name] for one in planned if one.name in results},
    )


def _is_owned(run: Object, uid: str) -> bool:
    return any(owner["uid"] == uid for owner in run["metadata"].get("ownerReferences", ()))


def _has_succeeded(run: Object) -> bool:
    conditions = (run.get("status") or {}).get("conditions", ())
    return any(one["type"] == ConditionType.SUCCEEDED and one["status"] == ConditionStatus.TRUE for one in conditions)
