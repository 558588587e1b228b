"""Polling a run: the requests, and the end."""

from collections.abc import Callable, Iterator
from typing import Any

import click
import pytest

from plimsoll.cli import source
from plimsoll.cli.cluster import ClusterAccess
from plimsoll.cli.source import InCluster
from plimsoll.cli.watched import Following, WatchedRun
from plimsoll.kube.port import ApiError, ForbiddenError, TransientError, UnauthorizedError, UnknownKindError
from support.command_line import LABELS, UID, ConnectedKube, Document, config_map, ended, measuring, run

ACCESS = ClusterAccess(kubeconfig=None, context="here", namespace="bench")
RUN = InCluster(kind=source.RUN, access=ACCESS, namespace="bench", name="nightly")

Step = Callable[[ConnectedKube], None]


class Script:
    """Records what is shown, and runs one step on the cluster after every poll."""

    def __init__(self, kube: ConnectedKube, *steps: Step) -> None:
        self.seen: list[WatchedRun] = []
        self.troubles: list[str] = []
        self._kube = kube
        self._steps: Iterator[Step] = iter(steps)

    def show(self, seen: WatchedRun) -> None:
        self.seen.append(seen)
        next(self._steps)(self._kube) if seen.ending is None else None

    def trouble(self, problem: str) -> None:
        self.troubles.append(problem)


@pytest.fixture
def kube(connected: ConnectedKube) -> ConnectedKube:
    connected.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "bench"}})
    connected.put(run())
    connected.put(config_map(measuring()))
    return connected


def result_document(name: str, iops: str) -> Document:
    metadata = {"name": f"nightly-{name}", "namespace": "bench", "labels": LABELS}
    status = {"display": {"iops": iops, "trials": "1/2"}, "verdict": "Valid"}
    spec = {"run": "nightly", "label": "randread", "clients": 2}
    return {
        "apiVersion": "plimsoll.dev/v1alpha1",
        "kind": "BenchmarkResult",
        "metadata": metadata,
        "spec": spec,
        "status": status,
    }


def putting(*documents: Document) -> Step:
    def step(kube: ConnectedKube) -> None:
        for document in documents:
            kube.put(document)

    return step


def failing_once(error: type[ApiError], what: str = "") -> Step:
    """Return a step that makes the next request with `what` in its name fail."""

    def step(kube: ConnectedKube) -> None:
        def interfere(asked: str) -> None:
            if what in asked:
                kube.interfere = lambda _: None
                raise error(asked, "no")

        kube.interfere = interfere

    return step


async def follow(script: Script, **options: Any) -> WatchedRun:
    return await Following(RUN, script, pause=0, **options).to_the_end()


async def test_run_is_followed_to_its_end(kube: ConnectedKube) -> None:
    script = Script(kube, putting(result_document("w-000", "10"), config_map(measuring(2))), putting(ended()))
    last = await follow(script)
    assert [one.trials for one in script.seen] == [(1, 4), (2, 4), (2, 4)]
    assert last.ending is not None
    assert last.ending.reason == "Valid"
    assert [point.name for point in last.points] == ["w-000"]


async def test_results_are_asked_for_only_after_progress(kube: ConnectedKube) -> None:
    step = putting()
    await follow(Script(kube, step, step, putting(config_map(measuring(2))), step, putting(ended())))
    assert kube.requests.count("list BenchmarkResult bench") == 3
    assert kube.requests.count("get BenchmarkRun bench/nightly") == 6


@pytest.mark.parametrize(("seconds", "hint"), [(9, ""), (10, "; `plimsoll doctor --namespace bench` shows why")])
async def test_a_run_that_no_operator_sees_leads_to_the_doctor(kube: ConnectedKube, seconds: int, hint: str) -> None:
    kube.put(run(status=""))
    times = iter((0, seconds, seconds))
    script = Script(kube, putting(ended()))
    await follow(script, now=lambda: next(times))
    assert script.seen[0].headline.startswith(f"not seen by the operator yet{hint}  1/4")
    assert "doctor" not in script.seen[1].headline


async def test_what_was_ended_before_is_seen_at_once(kube: ConnectedKube) -> None:
    kube.put(ended(succeeded=False))
    script = Script(kube)
    last = await follow(script)
    assert last.ending is not None
    assert last.ending.status == "False"
    assert len(script.seen) == 1


@pytest.mark.parametrize("error", [TransientError, UnknownKindError, ForbiddenError])
async def test_api_server_may_be_away_or_starting_for_a_while(kube: ConnectedKube, error: type[ApiError]) -> None:
    script = Script(kube, failing_once(error), putting(ended()))
    await follow(script)
    assert script.troubles == ["get BenchmarkRun bench/nightly: no"]
    assert kube.connections == 2


async def test_api_server_that_stays_away_ends_watching(kube: ConnectedKube) -> None:
    def gone(kube: ConnectedKube) -> None:
        def interfere(asked: str) -> None:
            raise TransientError(asked, "no")

        kube.interfere = interfere

    seconds = iter(range(0, 1000, 100))
    with pytest.raises(TransientError):
        await follow(Script(kube, gone), silence=300, now=lambda: next(seconds))


async def test_api_server_that_was_never_there_is_not_waited_for(kube: ConnectedKube) -> None:
    failing_once(TransientError)(kube)
    with pytest.raises(TransientError):
        await follow(Script(kube))


async def test_expired_token_is_replaced(kube: ConnectedKube) -> None:
    await follow(Script(kube, failing_once(UnauthorizedError), putting(ended())))
    assert kube.connections == 2


async def test_rejected_token_ends_watching(kube: ConnectedKube) -> None:
    def expire(kube: ConnectedKube) -> None:
        def interfere(asked: str) -> None:
            raise UnauthorizedError(asked, "no")

        kube.interfere = interfere

    script = Script(kube, expire)
    with pytest.raises(UnauthorizedError):
        await follow(script)
    assert (kube.connections, len(script.troubles)) == (2, 1)


async def test_state_that_may_not_be_read_is_done_without(kube: ConnectedKube) -> None:
    failing_once(ForbiddenError, "ConfigMap")(kube)
    script = Script(kube, putting(), putting(ended()))
    await follow(script)
    assert [one.state for one in script.seen] == [None] * 3
    assert script.seen[0].trials == (1, 4)
    assert kube.requests.count("get ConfigMap bench/nightly-state") == 1


async def test_state_of_an_earlier_run_is_not_this_ones(kube: ConnectedKube) -> None:
    other = config_map(measuring(3))
    other["metadata"]["labels"] = {"plimsoll.dev/run-uid": "other"}
    kube.put(other)
    script = Script(kube, putting(ended()))
    await follow(script)
    assert script.seen[0].state is None


async def test_missing_run_is_refused(kube: ConnectedKube) -> None:
    other = run() | {"metadata": {"name": "nightlies", "namespace": "bench"}}
    kube.drop(source.RUN, "bench", "nightly")
    kube.put(other)
    with pytest.raises(click.ClickException, match="no run nightly in namespace bench of context here; did you mean"):
        await follow(Script(kube))


async def test_run_deleted_meanwhile_has_its_own_error(kube: ConnectedKube) -> None:
    def delete(kube: ConnectedKube) -> None:
        kube.drop(source.RUN, "bench", "nightly")

    with pytest.raises(click.ClickException, match="run bench/nightly was deleted before it ended"):
        await follow(Script(kube, delete))


async def test_another_run_of_that_name_is_not_followed(kube: ConnectedKube) -> None:
    other = run()
    other["metadata"]["uid"] = UID[::-1]
    with pytest.raises(click.ClickException, match="another run with this name was created"):
        await follow(Script(kube, putting(other)))
