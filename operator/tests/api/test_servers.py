"""`spec.servers`: the model's own checks."""

from typing import Any

import pytest

from plimsoll.api.errors import SpecError
from plimsoll.api.run import Servers, decode_run

ROOK = {"cluster": {"namespace": "rook-ceph", "name": "rook-ceph"}, "pool": {"replicated": {"size": 3}}}


def servers_of(servers: dict[str, Any], storage: dict[str, Any] | None = None) -> Servers | None:
    spec: dict[str, Any] = {"servers": servers, "workloads": [{"name": "w", "fio": {}}]}
    document: dict[str, Any] = {
        "apiVersion": "plimsoll.dev/v1alpha1",
        "kind": "BenchmarkRun",
        "metadata": {"name": "run"},
        "spec": spec | ({"storage": storage} if storage else {}),
    }
    return decode_run(document).spec.servers


def test_servers_have_a_placement_and_a_number() -> None:
    servers = servers_of({"placement": "Selected", "nodeSelector": {"disk": "fast"}, "count": 64})
    assert servers == Servers(placement="Selected", node_selector={"disk": "fast"}, count=64)


def test_servers_beside_osds_need_a_rook_cluster() -> None:
    servers = {"placement": "StorageNodes", "count": 3}
    assert servers_of(servers, {"rook": ROOK}) == Servers(placement="StorageNodes", count=3)
    for storage in (None, {"storageClass": {"name": "fast"}, "volume": {"size": "1Gi"}}):
        with pytest.raises(SpecError, match=r"spec.servers.placement: .*cannot be StorageNodes without storage.rook"):
            servers_of(servers, storage)


@pytest.mark.parametrize(
    ("servers", "words"),
    [
        ({"placement": "ClientNodes"}, "spec.servers.count"),
        ({"count": 1}, "spec.servers.placement"),
        ({"placement": "ClientNodes", "count": 0}, "spec.servers.count"),
        ({"placement": "ClientNodes", "count": 65}, "spec.servers.count"),
        ({"placement": "Anywhere", "count": 1}, "spec.servers.placement"),
        ({"placement": "Selected", "count": 1}, "spec.servers.nodeSelector: must be set with placement Selected"),
        (
            {"placement": "ClientNodes", "count": 1, "nodeSelector": {"a": "b"}},
            "spec.servers.nodeSelector: must be set with placement Selected, and only with it",
        ),
    ],
)
def test_what_cannot_be_is_refused_by_its_field(servers: dict[str, Any], words: str) -> None:
    with pytest.raises(SpecError, match=words):
        servers_of(servers)
