"""When pods started, read from a real API server; the test plays kubelets, with their events."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from plimsoll.helpers.burner import Namespaces
from plimsoll.kube.client import AioKube
from plimsoll.protocol.helpers import LABEL_HELPER
from support.apiserver import ApiServer

pytestmark = pytest.mark.crd

SECOND = 10**9
HELD = "example.org/held"


class Cluster:
    """Namespaces, pods and events as kube-burner and kubelets create them."""

    def __init__(self, api: ApiServer, labels: Mapping[str, str]) -> None:
        self.api = api
        self.labels = labels

    def put_namespace(self, name: str) -> None:
        document = {"metadata": {"name": name, "labels": dict(self.labels)}}
        self.api.request("POST", "/api/v1/namespaces", document).expect(201)

    def put_pod(
        self, namespace: str, name: str, *, after: int, containers: Sequence[str] = ("sleep",), held: bool = False
    ) -> tuple[str, int]:
        """Create a pod all of whose containers started `after` seconds; return its UID and creation, nanoseconds."""
        path = f"/api/v1/namespaces/{namespace}/pods"
        spec = {"containers": [{"name": one, "image": "runner:1"} for one in containers]}
        metadata = {"name": name, "finalizers": [HELD] if held else []}
        made = self.api.request("POST", path, {"metadata": metadata, "spec": spec}).expect(201)
        created = datetime.fromisoformat(made["metadata"]["creationTimestamp"])
        started = datetime.fromtimestamp(created.timestamp() + after, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        statuses = [self._running(one, started) for one in containers]
        ready = {"type": "Ready", "status": "True", "lastTransitionTime": started}
        status = {"phase": "Running", "conditions": [ready], "containerStatuses": statuses}
        self.api.request("PUT", f"{path}/{name}/status", {**made, "status": status}).expect(200)
        return str(made["metadata"]["uid"]), round(created.timestamp()) * SECOND

    @staticmethod
    def _running(name: str, started: str) -> Mapping[str, Any]:
        known = {"name": name, "ready": True, "image": "runner:1", "imageID": "x", "restartCount": 0}
        return {**known, "state": {"running": {"startedAt": started}}}

    def put_event(self, namespace: str, pod: str, uid: str, time: int, *, path: str, reason: str = "Started") -> None:
        about = {"kind": "Pod", "namespace": namespace, "name": pod, "uid": uid, "fieldPath": path}
        document = {
            "metadata": {"name": f"{pod}.{time:x}", "namespace": namespace},
            "involvedObject": about,
            "reason": reason,
            "type": "Normal",
        }
        self.api.request("POST", f"/api/v1/namespaces/{namespace}/events", document).expect(201)

    def delete(self, path: str) -> None:
        assert self.api.request("DELETE", path).accepted


async def test_starts_are_those_of_the_containers_of_this_order(
    apiserver: ApiServer, real: AioKube, namespace: str
) -> None:
    base, labels = f"{namespace}-burn", {LABEL_HELPER: namespace}
    cluster = Cluster(apiserver, labels)
    for name in (f"{base}-0", f"{base}-1", f"{base}x-0", f"{namespace}-earlier"):
        cluster.put_namespace(name)
        uid, created = cluster.put_pod(name, "pod-0-1", after=7)
        cluster.put_event(name, "pod-0-1", uid, created + 7 * SECOND + 5, path="spec.containers{sleep}")
    own = f"{base}-0"
    init, born = cluster.put_pod(own, "pod-1-1", after=20)
    cluster.put_event(own, "pod-1-1", init, born + 21 * SECOND, path="spec.initContainers{sleep}")
    cluster.put_event(own, "pod-1-1", init, born + 22 * SECOND, path="spec.containers{sleep}", reason="Pulled")
    both, joined = cluster.put_pod(own, "pod-2-1", after=30, containers=("sleep", "proxy"))
    for number, name in enumerate(("sleep", "proxy")):
        cluster.put_event(own, "pod-2-1", both, joined + 30 * SECOND + number, path=f"spec.containers{{{name}}}")
    cluster.put_pod(own, "pod-3-1", after=5, held=True)
    cluster.delete(f"/api/v1/namespaces/{own}/pods/pod-3-1")
    found, lost = await Namespaces(real, labels, base=base).started()
    assert lost == ""
    entries = {(entry["name"], entry["started"] - entry["created"], entry["exact"]) for entry in json.loads(found)}
    assert entries == {
        ("pod-0-1", 7 * SECOND + 5, True),
        ("pod-1-1", 21 * SECOND, False),
        ("pod-2-1", 30 * SECOND + 1, True),
    }
    assert len(json.loads(found)) == 4, "pod-0-1 in both namespaces of the order"


async def test_namespaces_that_are_going_are_not_read(apiserver: ApiServer, real: AioKube, namespace: str) -> None:
    """Without a controller of namespaces, this one stays with its pods."""
    base, labels = f"{namespace}-burn", {LABEL_HELPER: namespace}
    cluster = Cluster(apiserver, labels)
    cluster.put_namespace(base)
    uid, created = cluster.put_pod(base, "pod-0-1", after=7)
    cluster.put_event(base, "pod-0-1", uid, created + 8 * SECOND, path="spec.containers{sleep}")
    namespaces = Namespaces(real, labels, base=base)
    assert len(json.loads((await namespaces.started())[0])) == 1
    cluster.delete(f"/api/v1/namespaces/{base}")
    assert await namespaces.names() == [base]
    assert await namespaces.started() == ("", "")
