"""What the helper reads from the cluster before it removes what kube-burner has created: only of this order."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from burner.burning import HELPER, World, order, serving
from plimsoll.kube.port import TransientError
from plimsoll.programs.burn import _ordered
from plimsoll.protocol.helpers import LABEL_HELPER, LABEL_RUN_NAMESPACE, LABEL_RUN_UID, BurnOutcome
from plimsoll.tools.base import Output
from plimsoll.tools.kube_burner import read_log

EARLIER = "plimsoll-burn-x"
SECOND = 10**9
STARTED = 3 * 10**15


@pytest.fixture
async def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[World]:
    async with serving(tmp_path, monkeypatch) as one:
        yield one


@asynccontextmanager
async def ordered_by(world: World, **parameters: Any) -> AsyncIterator[tuple[asyncio.Task[BurnOutcome], str]]:
    """Yield an order in progress, and the name of its namespaces."""
    ordered = asyncio.create_task(_ordered(world.url, world.certificate, world.token(), order(**parameters)))
    await world.runs()
    (job,) = json.loads((world.directory / "config.yml").read_text())["jobs"]
    yield ordered, job["namespace"]
    assert ordered.done()


def put_namespace(world: World, name: str, **metadata: str) -> None:
    labels = {LABEL_HELPER: HELPER, LABEL_RUN_UID: "u", LABEL_RUN_NAMESPACE: "bench"}
    world.kube.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels, **metadata}})


def put_pod(world: World, namespace: str, *, number: int = 0, **metadata: str) -> None:
    """Create a ready pod whose start has an event, and its namespace if it does not exist."""
    if namespace not in {obj["metadata"]["name"] for obj in world.kube.objects("Namespace")}:
        put_namespace(world, namespace)
    own = {"name": f"pod-{number}-1", "namespace": namespace, "uid": f"{namespace}-{number}"}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": own | {"creationTimestamp": "1970-01-01T00:00:01Z"} | metadata,
    }
    status = {"conditions": [{"type": "Ready", "status": "True"}]}
    world.kube.put(pod | {"spec": {"containers": [{"name": "sleep"}]}, "status": status})
    event = {"name": f"pod-{number}-1.{STARTED:015x}", "namespace": namespace}
    about = {"uid": own["uid"], "fieldPath": "spec.containers{sleep}"}
    world.kube.put(
        {"apiVersion": "v1", "kind": "Event", "metadata": event, "involvedObject": about, "reason": "Started"}
    )


async def test_reasons_are_collected_before_the_removal(world: World) -> None:
    async with ordered_by(world) as (ordered, name):
        put_namespace(world, name)
        put_namespace(world, EARLIER)
        for number, namespace in enumerate((EARLIER, name)):
            claim = {"name": f"pvc-{number}-1", "namespace": namespace, "uid": f"c{number}"}
            kind = {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}
            world.kube.put({**kind, "metadata": claim, "status": {"phase": "Pending"}})
        event = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": "e", "namespace": name},
            "involvedObject": {"uid": "c1"},
            "lastTimestamp": "2026-01-01T00:00:00Z",
            "message": "waiting for a volume\nto be created",
        }
        world.kube.put(event)
        world.may_end()
        files = (await ordered).files
    assert files["problems.txt"] == "PersistentVolumeClaim pvc-1-1 is Pending: waiting for a volume to be created"


async def test_starts_of_pods_are_collected_before_the_removal(world: World) -> None:
    async with ordered_by(world) as (ordered, name):
        put_pod(world, name)
        world.may_end()
        (pod,) = json.loads((await ordered).files["pods.json"])
    assert pod == {"name": "pod-0-1", "created": SECOND, "started": STARTED, "exact": True}


async def test_starts_of_churned_pods_are_those_of_this_order(world: World) -> None:
    """An earlier trial of the same run may have left namespaces that could not be removed, with pods of these names."""
    async with ordered_by(world, churn={"percent": 10}) as (ordered, name):
        for number, namespace in enumerate((EARLIER, f"{EARLIER}-0", f"{name}-0", f"{name}-1", f"{name}x-2")):
            put_pod(world, namespace, number=number)
        put_pod(world, f"{name}-3", number=5, deletionTimestamp="1970-01-01T00:00:09Z")
        put_namespace(world, f"{name}-4", deletionTimestamp="1970-01-01T00:00:09Z")
        put_pod(world, f"{name}-4", number=6)
        world.may_end()
        found = json.loads((await ordered).files["pods.json"])
    assert [pod["name"] for pod in found] == ["pod-2-1", "pod-3-1"]


@pytest.mark.parametrize(
    ("request_text", "known", "message"),
    [
        ("list Namespace", 0, "when pods started is unknown: list Namespace: timeout"),
        ("list Pod NAME-1", 1, "when pods started is unknown in 1 of 2 namespaces: list Pod NAME-1: timeout"),
        ("list Event NAME-0", 0, "when pods started is unknown in 2 of 2 namespaces: list Event NAME-0: timeout"),
    ],
)
async def test_starts_that_could_not_be_read_are_an_error_in_the_log(
    world: World, request_text: str, known: int, message: str
) -> None:
    async with ordered_by(world, churn={"percent": 10}) as (ordered, name):
        for number in range(2):
            put_pod(world, f"{name}-{number}", number=number)
        failing = request_text.replace("NAME", name)
        failures = iter([TransientError(failing, "timeout")])

        def interfere(asked: str) -> None:
            if asked.startswith(failing) and (error := next(failures, None)) is not None:
                raise error

        world.kube.interfere = interfere
        world.may_end()
        outcome = await ordered
    assert len(json.loads(outcome.files.get("pods.json", "[]"))) == known
    (error,), _ = read_log(Output(exit_code=0, stdout="", stderr=outcome.stderr, files={}))
    assert error == message.replace("NAME", name)
    assert outcome.stderr.startswith('level=info msg="done"\nlevel=error msg=')
