"""`plimsoll remove-runs` deletes all runs, or names those that remain and the reason."""

import asyncio
import logging

import pytest
from click.testing import CliRunner

from plimsoll.api.names import API_VERSION, RUN_KIND, SUITE_KIND
from plimsoll.cli import main
from plimsoll.kube.port import ForbiddenError, Kind, TransientError
from plimsoll.programs.hooks import remove_runs
from support.fake_kube import Document, FakeKube, failing

RUN = Kind(api_version=API_VERSION, kind=RUN_KIND)
SUITE = Kind(api_version=API_VERSION, kind=SUITE_KIND)
FINALIZER = "plimsoll.dev/teardown"


def put(kube: FakeKube, name: str, namespace: str = "default", *, held: bool = False) -> Document:
    metadata: Document = {"name": name, "namespace": namespace}
    if held:
        metadata["finalizers"] = [FINALIZER]
    return kube.put({"apiVersion": API_VERSION, "kind": RUN_KIND, "metadata": metadata, "spec": {}})


async def let_go(kube: FakeKube, name: str) -> None:
    """Finish the teardown as the operator does, as soon as the run is deleted."""
    while True:
        run = await kube.get(RUN, name, "default")
        if run is not None and "deletionTimestamp" in run["metadata"]:
            await kube.patch(RUN, name, "default", {"metadata": {"finalizers": None}})
            return
        await asyncio.sleep(0.001)


async def test_runs_of_all_namespaces_are_deleted() -> None:
    kube = FakeKube(namespaces=["default", "bench"])
    put(kube, "a")
    put(kube, "b", "bench")
    assert await remove_runs(kube, seconds=10, poll_seconds=0.001) == []
    assert kube.objects(RUN_KIND) == []


async def test_suites_are_deleted_too_so_that_they_create_no_other_runs() -> None:
    kube = FakeKube()
    suite = kube.put(
        {"apiVersion": API_VERSION, "kind": SUITE_KIND, "metadata": {"name": "s", "namespace": "default"}, "spec": {}}
    )

    def create_a_run(request: str) -> None:
        if request.startswith("delete BenchmarkRun") and kube.objects(SUITE_KIND):
            put(kube, "of-the-suite")

    put(kube, "a")
    kube.interfere = create_a_run
    assert await remove_runs(kube, seconds=10, poll_seconds=0.001) == []
    assert kube.objects(RUN_KIND) == kube.objects(SUITE_KIND) == []
    assert kube.requests.index(f"delete {suite['kind']} default/s") < kube.requests.index(
        "delete BenchmarkRun default/a"
    )


async def test_runs_of_other_namespaces_remain() -> None:
    kube = FakeKube(namespaces=["default", "bench", "lab"])
    for namespace in ("default", "bench", "lab"):
        put(kube, "a", namespace)
    assert await remove_runs(kube, ["default", "lab"], seconds=10, poll_seconds=0.001) == []
    assert [run["metadata"]["namespace"] for run in kube.objects(RUN_KIND)] == ["bench"]


async def test_it_waits_until_the_operator_lets_a_run_go() -> None:
    kube = FakeKube()
    put(kube, "a", held=True)
    left, _ = await asyncio.gather(remove_runs(kube, seconds=10, poll_seconds=0.001), let_go(kube, "a"))
    assert left == []
    assert kube.objects(RUN_KIND) == []


async def test_a_run_is_asked_to_go_only_once() -> None:
    kube = FakeKube()
    put(kube, "a", held=True)
    await remove_runs(kube, seconds=0.05, poll_seconds=0.001)
    assert [request for request in kube.requests if request.startswith("delete")] == [f"delete {RUN_KIND} default/a"]


async def test_run_created_meanwhile_is_deleted() -> None:
    kube = FakeKube()
    put(kube, "a", held=True)

    async def make_another() -> None:
        await let_go(kube, "a")
        put(kube, "b")

    put(kube, "c", held=True)
    left, *_ = await asyncio.gather(
        remove_runs(kube, seconds=10, poll_seconds=0.001), make_another(), let_go(kube, "c")
    )
    assert left == []
    assert kube.objects(RUN_KIND) == []


async def test_remaining_runs_are_returned_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    kube = FakeKube()
    for number in range(7):
        put(kube, f"run-{number}", held=True)
    cleaned_up = {"type": "CleanedUp", "status": "False", "message": "2 pods are stopping"}
    await kube.patch_status(RUN, "run-0", "default", {"conditions": [cleaned_up]})
    with caplog.at_level(logging.INFO):
        left = await remove_runs(kube, seconds=0.01, poll_seconds=0.001)
    assert len(left) == 7
    assert caplog.messages == [
        "default/run-0: 2 pods are stopping; default/run-1; default/run-2; default/run-3; default/run-4; and 2 more"
    ]


async def test_a_later_run_of_that_name_is_seen_before_it_is_deleted() -> None:
    kube = FakeKube()
    uid = put(kube, "a")["metadata"]["uid"]

    def replace_it(request: str) -> None:
        if request.startswith("delete") and kube.objects(RUN_KIND)[0]["metadata"]["uid"] == uid:
            put(kube, "a")

    kube.interfere = replace_it
    assert await remove_runs(kube, seconds=10, poll_seconds=0.001) == []
    assert len([request for request in kube.requests if request.startswith("delete")]) == 2


async def test_without_the_definition_there_is_nothing_to_do() -> None:
    kube = FakeKube()
    del kube.kinds[RUN], kube.kinds[SUITE]
    assert await remove_runs(kube, seconds=10, poll_seconds=0.001) == []


async def test_an_api_server_that_stumbles_is_asked_again() -> None:
    kube = FakeKube(interfere=failing(lambda asked: TransientError(asked, "busy"), times=2))
    put(kube, "a")
    assert await remove_runs(kube, seconds=10, poll_seconds=0.001) == []


async def test_missing_rights_end_it_at_once() -> None:
    kube = FakeKube(interfere=failing(lambda asked: ForbiddenError(asked, "no"), times=1, request="delete"))
    put(kube, "a")
    with pytest.raises(ForbiddenError, match="delete BenchmarkRun default/a"):
        await remove_runs(kube, seconds=10, poll_seconds=0.001)


@pytest.mark.parametrize("name", ["remove-runs", "check-installation"])
def test_it_is_not_among_the_commands_for_users(name: str) -> None:
    assert name not in CliRunner().invoke(main, ["--help"]).output
    assert CliRunner().invoke(main, [name, "--help"]).exit_code == 0
