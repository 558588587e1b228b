"""The pods of servers as they are sent to the API.

`PLIMSOLL_WRITE_GOLDEN=1 pytest tests/lifecycle/test_render_servers.py` writes the file anew; read the difference.
"""

import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from plimsoll.lifecycle import naming
from plimsoll.lifecycle.render import client
from plimsoll.lifecycle.run import Run, Settings, run_of
from plimsoll.plan.document import Plan
from plimsoll.plan.expand import make_plan
from plimsoll.tools.registry import TOOLS
from support.apiserver import read_yamls
from support.pretend_rook import ROOK
from support.pretend_world import LIBRBD
from support.specs import KEY, PAIRS, UID
from support.tooling import restricted

GOLDEN = Path(__file__).parents[1] / "golden" / "render" / "servers.yaml"
SETTINGS = Settings(runner_image="runner:1")
SELECTOR = {"disk": "fast"}
LINUX = {"kubernetes.io/os": "linux"}
_TERM = {"matchExpressions": [{"key": "zone", "operator": "Exists"}]}
AFFINITY = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": _TERM}]}
FAST = {"storageClass": {"name": "fast"}, "volume": {"size": "1Gi", "mode": "Block"}}


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TOOLS, KEY, PAIRS)


def planned(placement: str, **spec: Any) -> tuple[Run, Plan]:
    servers = {"placement": placement, "count": 2, **({"nodeSelector": SELECTOR} if placement == "Selected" else {})}
    fields = {
        "storage": {"rook": ROOK} if placement == "StorageNodes" else None,
        "clients": {
            "count": 2,
            "nodeSelector": {"role": "client"},
            "resources": {"limits": {"cpu": 2}},
        },
        "servers": servers,
        "podTemplate": {
            "tolerations": [{"key": "bench", "operator": "Exists"}],
            "affinity": {"nodeAffinity": AFFINITY},
            "imagePullSecrets": [{"name": "registry"}],
        },
        "workloads": [{"name": "w", KEY: {}, "runtimeSeconds": 4, "rampSeconds": 1}],
        "repetitions": 1,
        **spec,
    }
    metadata = {"name": "run", "namespace": "bench", "uid": UID, "creationTimestamp": "2026-01-01T12:00:00Z"}
    run = run_of(
        {
            "apiVersion": "plimsoll.dev/v1alpha1",
            "kind": "BenchmarkRun",
            "metadata": metadata,
            "spec": {name: value for name, value in fields.items() if value is not None},
        },
        SETTINGS,
    )
    assert run.document is not None
    return run, make_plan(run.document, seed=1, runner_image=SETTINGS.runner_image)


def job(placement: str, number: int, **spec: Any) -> dict[str, Any]:
    run, plan = planned(placement, **spec)
    return client.job(run, plan, SETTINGS, client=number, attempt=0)


def pod(placement: str, number: int, **spec: Any) -> dict[str, Any]:
    found: dict[str, Any] = job(placement, number, **spec)["spec"]["template"]["spec"]
    return found


def test_objects_are_what_the_golden_file_says() -> None:
    placements = ("ClientNodes", "StorageNodes", "Selected")
    objects = [job("ClientNodes", 1), *(job(placement, 2) for placement in placements)]
    if os.environ.get("PLIMSOLL_WRITE_GOLDEN"):
        GOLDEN.write_text(yaml.safe_dump_all(objects, sort_keys=False, width=120))
    assert read_yamls(GOLDEN.read_text()) == objects


def matches(selector: dict[str, Any], labels: dict[str, str]) -> bool:
    """Whether a selector of this package, whose expressions all exclude a label, matches."""
    assert all(one["operator"] == "DoesNotExist" for one in selector.get("matchExpressions", []))
    excluded = {one["key"] for one in selector.get("matchExpressions", [])}
    return selector["matchLabels"].items() <= labels.items() and not excluded & labels.keys()


@pytest.mark.parametrize("placement", ["ClientNodes", "StorageNodes", "Selected"])
def test_clients_and_servers_are_spread_among_their_like(placement: str) -> None:
    labels = [job(placement, number)["spec"]["template"]["metadata"]["labels"] for number in range(4)]
    for number, spreads in ((0, [True, True, False, False]), (3, [False, False, True, True])):
        (spread,) = pod(placement, number)["topologySpreadConstraints"]
        assert [matches(spread["labelSelector"], one) for one in labels] == spreads
        assert (spread["maxSkew"], spread["topologyKey"]) == (1, "kubernetes.io/hostname")


def test_a_run_without_servers_counts_all_its_clients_as_before() -> None:
    (spread,) = pod("ClientNodes", 0, servers=None)["topologySpreadConstraints"]
    assert "matchExpressions" not in spread["labelSelector"]


def test_servers_on_the_nodes_of_clients_follow_the_clients() -> None:
    spec = pod("ClientNodes", 2)
    (term,) = spec["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    labels = [job("ClientNodes", number)["spec"]["template"]["metadata"]["labels"] for number in (0, 2)]
    assert [matches(term["labelSelector"], one) for one in labels] == [True, False]
    assert (spec["nodeSelector"], "namespaces" in term) == (LINUX, False)
    assert spec["affinity"]["nodeAffinity"] == AFFINITY


def test_servers_on_the_storages_nodes_follow_the_osds_of_the_cluster() -> None:
    (term,) = pod("StorageNodes", 2)["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert term == {
        "labelSelector": {"matchLabels": {"app": "rook-ceph-osd"}},
        "namespaces": ["rook-ceph"],
        "topologyKey": "kubernetes.io/hostname",
    }


def test_selected_servers_have_their_own_selector() -> None:
    spec = pod("Selected", 2)
    assert (spec["nodeSelector"], spec["affinity"]) == ({**SELECTOR, **LINUX}, {"nodeAffinity": AFFINITY})
    (spread,) = spec["topologySpreadConstraints"]
    assert spread["whenUnsatisfiable"] == "DoNotSchedule"


def test_servers_have_the_image_the_resources_and_the_tolerations_of_clients() -> None:
    ours, theirs = pod("Selected", 2), pod("Selected", 0)
    for key in ("tolerations", "securityContext", "imagePullSecrets", "automountServiceAccountToken"):
        assert ours[key] == theirs[key]
    for key in ("image", "resources", "args"):
        assert ours["containers"][0][key] == theirs["containers"][0][key]


@pytest.mark.parametrize("storage", [FAST, {"rook": ROOK, "volume": LIBRBD}, {"rook": ROOK, "volume": {"size": "1Gi"}}])
def test_servers_have_neither_volumes_nor_keys_and_are_restricted(storage: dict[str, Any]) -> None:
    workloads = [{"name": "w", KEY: {}}, {"name": "v", "fio": {}}]
    if "rook" in storage:
        workloads.append({"name": "r", "radosBench": {}})
        workloads.append({"name": "o", "osdBench": {"keyringSecret": {"name": "admin"}}})
    spec = pod("ClientNodes", 3, storage=storage, workloads=workloads)
    (container,) = spec["containers"]
    assert {volume["name"] for volume in spec["volumes"]} == {"session", "assignment", "scratch", "tmp"}
    assert "volumeDevices" not in container
    assert [one["name"] for one in container["env"]] == ["PLIMSOLL_NODE"]
    assert list(restricted(spec)) == []
    run, plan = planned("ClientNodes", storage=storage, workloads=workloads)
    assigned = client.assignment(run, plan, SETTINGS, client=3, attempt=0)
    assert (assigned.volume, assigned.rados, assigned.osd_keyring) == (None, None, None)
    assert assigned.client == 3


def test_a_server_has_a_token_of_its_own_and_the_label_of_its_role() -> None:
    found = job("ClientNodes", 3)
    assert found["metadata"]["labels"][naming.LABEL_ROLE] == naming.SERVER
    assert found["metadata"]["labels"][naming.LABEL_COMPONENT] == naming.CLIENT
    (session,) = [one["secret"] for one in pod("ClientNodes", 3)["volumes"] if "secret" in one]
    assert [item["key"] for item in session["items"]] == ["tls.crt", "token-3"]


def test_claims_are_of_clients_only() -> None:
    workloads = [{"name": "w", KEY: {}}, {"name": "v", "fio": {}}]
    run, plan = planned("ClientNodes", storage=FAST, workloads=workloads)
    names = [claim["metadata"]["name"] for claim in client.claims(run, plan, "fast")]
    assert names == ["plimsoll-run-client-0", "plimsoll-run-client-1"]
