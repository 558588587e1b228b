"""Polling a suite: the requests, and the end."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import click
import pytest

from plimsoll.api.suite_status import EndedRound
from plimsoll.cli import source
from plimsoll.cli.cluster import ClusterAccess
from plimsoll.cli.source import InCluster
from plimsoll.cli.watched import AwaitedRound, SuiteFollowing, WatchedSuite
from plimsoll.kube.port import ForbiddenError
from support.command_line import (
    MINUTE,
    NAMESPACE,
    SUITE_NAME,
    ConnectedKube,
    active_round,
    ended_round,
    owned_run,
    suite,
)

ACCESS = ClusterAccess(kubeconfig=None, context="here", namespace=NAMESPACE)
SUITE = InCluster(kind=source.SUITE, access=ACCESS, namespace=NAMESPACE, name=SUITE_NAME)
RUN = "weekly-old-12345-1-0"

Step = Callable[[ConnectedKube], None]


class Script:
    """Records what is shown, and runs one step on the cluster after every poll."""

    def __init__(self, kube: ConnectedKube, *steps: Step) -> None:
        self.seen: list[WatchedSuite] = []
        self._kube = kube
        self._steps: Iterator[Step] = iter(steps)

    def show(self, seen: WatchedSuite) -> None:
        self.seen.append(seen)
        next(self._steps, lambda _: None)(self._kube)

    def trouble(self, problem: str) -> None:
        raise AssertionError(problem)


@pytest.fixture
def kube(connected: ConnectedKube) -> ConnectedKube:
    connected.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    connected.put(suite(round=active_round(1, done=2, current=RUN)))
    connected.put(owned_run(RUN, "Unknown"))
    return connected


def putting(**status: Any) -> Step:
    def step(kube: ConnectedKube) -> None:
        kube.put(suite(**status))

    return step


async def test_a_suite_is_followed_with_its_current_run_to_the_end_of_the_round(kube: ConnectedKube) -> None:
    script = Script(kube, putting(rounds=[ended_round(1, "Regressed")]))
    following = SuiteFollowing(SUITE, script, AwaitedRound(), pause=0)
    await following.to_the_end()
    assert [one.run and one.run.headline for one in script.seen] == ["Measuring  3/12  trial 4", None]
    assert isinstance(following.ending, EndedRound)
    assert (following.ending.minute, following.ending.verdict) == (MINUTE + 1, "Regressed")
    assert kube.requests.count(f"get BenchmarkSuite {NAMESPACE}/{SUITE_NAME}") == 2
    assert kube.requests.count(f"get BenchmarkRun {NAMESPACE}/{RUN}") == 1


@pytest.mark.parametrize("kind", ["BenchmarkRun", "BenchmarkResult"])
async def test_runs_and_results_that_may_not_be_read_are_done_without(kube: ConnectedKube, kind: str) -> None:
    def interfere(asked: str) -> None:
        if kind in asked:
            raise ForbiddenError(asked, "no")

    kube.interfere = interfere
    script = Script(kube, lambda _: None, putting(rounds=[ended_round(1)]))
    await SuiteFollowing(SUITE, script, AwaitedRound(), pause=0).to_the_end()
    expected = ["Measuring  3/12  trial 4"] * 2 if kind == "BenchmarkResult" else [None] * 2
    assert [one.run and one.run.headline for one in script.seen] == [*expected, None]
    assert len([request for request in kube.requests if kind in request]) == 1


async def test_without_a_view_only_the_suite_is_read(kube: ConnectedKube) -> None:
    following = SuiteFollowing(SUITE, None, AwaitedRound(), pause=0)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.1):
            await following.to_the_end()
    assert {request.partition(" ")[2].partition(" ")[0] for request in kube.requests} == {"BenchmarkSuite"}


async def test_a_suite_that_is_deleted_ends_following(kube: ConnectedKube) -> None:
    script = Script(kube, lambda kube: kube.drop(source.SUITE, NAMESPACE, SUITE_NAME))
    with pytest.raises(click.ClickException, match="suite bench/weekly was deleted before it ended"):
        await SuiteFollowing(SUITE, script, AwaitedRound(), pause=0).to_the_end()


async def test_a_missing_suite_is_refused_with_the_one_that_may_be_meant(kube: ConnectedKube) -> None:
    place = InCluster(kind=source.SUITE, access=ACCESS, namespace=NAMESPACE, name="weekli")
    with pytest.raises(click.ClickException, match="no suite weekli in namespace bench of context here; did you mean"):
        await SuiteFollowing(place, Script(kube), AwaitedRound(), pause=0).to_the_end()
