"""The rounds of a suite in a cluster, from its status and the results of its runs."""

from pathlib import Path
from typing import Any

import click
import pytest

from plimsoll.api.suite_status import Conclusion, HypothesisVerdict, RoundVerdict
from plimsoll.cli.cluster import ClusterAccess
from plimsoll.cli.source import SUITE, InCluster
from plimsoll.cli.suite_rounds import SuiteRounds, exit_code, read_rounds
from support.command_line import (
    MINUTE,
    NAMESPACE,
    SUITE_NAME,
    ConnectedKube,
    Document,
    ended_round,
    invoke,
    measured_runs,
    owned_run,
    suite,
)

PLACE = InCluster(
    kind=SUITE,
    access=ClusterAccess(kubeconfig=None, context="here", namespace=NAMESPACE),
    namespace=NAMESPACE,
    name=SUITE_NAME,
)
ACCEPTED: dict[str, Any] = {"accepted": True, "pinned": True}
ROUNDS = [ended_round(3, "Regressed"), *(ended_round(number, **ACCEPTED) for number in (2, 1, 0))]


@pytest.fixture
def kube(connected: ConnectedKube) -> ConnectedKube:
    connected.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    return connected


async def read(kube: ConnectedKube, rounds: list[Document], *objects: Document) -> SuiteRounds:
    for document in (suite(rounds=rounds), *objects):
        kube.put(document)
    return await read_rounds(kube, PLACE)


async def test_a_round_is_judged_by_the_rounds_that_the_status_has_accepted(kube: ConnectedKube) -> None:
    found = await read(kube, ROUNDS, *measured_runs(range(4), {3: 0.8}))
    assert [ended.minute - MINUTE for ended, _ in found.rounds] == [0, 1, 2, 3]
    assert [ended.verdict for ended, _ in found.rounds] == ["NoRegression"] * 3 + ["Regressed"]
    judgement = found.evaluation.judgements["upgrade"]
    assert (judgement.accepted, judgement.minute) == (3, MINUTE + 3)
    assert {one.variant: one.conclusion for one in judgement.variants} == dict.fromkeys(
        ("old", "new"), Conclusion.REGRESSION
    )


async def test_the_last_round_has_results_and_hypotheses(kube: ConnectedKube) -> None:
    found = await read(kube, ROUNDS, *measured_runs(range(4)))
    assert {name: len(runs) for name, runs in found.results.complete.items()} == {"old": 3, "new": 3}
    assert [decision.verdict for decision in found.evaluation.decisions] == [HypothesisVerdict.HELD]


async def test_a_round_that_lost_a_run_is_no_baseline(kube: ConnectedKube) -> None:
    """The operator finds it Inconclusive, and its accepted rounds are evaluated by the same rules here."""
    rounds = [ended_round(3, "Inconclusive"), *(ended_round(number, **ACCEPTED) for number in (2, 1, 0))]
    documents = [*measured_runs(range(4))]
    lost = next(document for document in documents if f"-{MINUTE + 1}-" in document["metadata"]["name"])
    found = await read(kube, rounds, *(document for document in documents if document is not lost))
    judgement = found.evaluation.judgements["upgrade"]
    assert (judgement.accepted, judgement.conclusion) == (2, Conclusion.INCONCLUSIVE)
    assert found.evaluation.verdict is found.last.verdict is RoundVerdict.INCONCLUSIVE
    assert exit_code(found.last) == 4


async def test_rounds_that_were_not_evaluated_are_left_out(kube: ConnectedKube) -> None:
    rounds = [ended_round(2, "Failed"), ended_round(1, "Superseded"), ended_round(0, "Inconclusive")]
    found = await read(kube, rounds, *measured_runs([0]))
    assert [ended.minute - MINUTE for ended, _ in found.rounds] == [0]


async def test_failed_and_foreign_runs_are_no_part_of_a_round(kube: ConnectedKube) -> None:
    runs = [*measured_runs([0])]
    failed, foreign, *_ = (one["metadata"]["name"] for one in runs if one["kind"] == "BenchmarkRun")
    others = [owned_run(failed, "False"), owned_run(foreign, "True", uid="other")]
    found = await read(kube, [ended_round(0, "Inconclusive")], *runs, *others)
    complete = {name for runs in found.results.runs.values() for name, results in runs.items() if results}
    assert complete.isdisjoint({failed, foreign})
    assert len(complete) == 4


@pytest.mark.parametrize(
    ("verdict", "message"),
    [("Failed", "no round of suite bench/weekly has been evaluated yet"), ("Improved", "later version")],
)
async def test_a_suite_without_a_round_that_can_be_judged_is_refused(
    kube: ConnectedKube, verdict: str, message: str
) -> None:
    with pytest.raises(click.ClickException, match=message):
        await read(kube, [ended_round(0, verdict)])


def test_watching_shows_the_round_in_the_cluster_although_a_directory_has_the_name(
    kube: ConnectedKube, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / NAMESPACE / SUITE_NAME).mkdir(parents=True)
    for document in (suite(rounds=ROUNDS), *measured_runs(range(4), {3: 0.8})):
        kube.put(document)
    assert "old: Regression" in invoke("watch", PLACE.source, code=3)
