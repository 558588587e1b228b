"""A run that names no Rook cluster uses the only one that its namespace may use, and stays on it."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from plimsoll.api.storage import NamespacedName
from plimsoll.lifecycle import naming
from plimsoll.lifecycle.queue import entry_of
from plimsoll.lifecycle.run import Settings, run_of
from plimsoll.lifecycle.storage.registry import versions_of
from plimsoll.plan.document import PLAN_FILE
from support import pretend_world
from support.pretend_cluster import Document
from support.pretend_rook import ROOK
from support.pretend_world import LIBRBD, PretendWorld, create, make_run, outside

ALLOWED = "rook-ceph/rook-ceph"
UNNAMED = {"pool": ROOK["pool"]}
Clusters = Mapping[str, tuple[str, ...]]


def settings_with(clusters: Clusters) -> Settings:
    return replace(pretend_world.SETTINGS, rook_clusters=clusters)


def stored_run(rook: Mapping[str, Any], **status: Any) -> Document:
    run = make_run("a", storage={"rook": rook, "volume": LIBRBD})
    run["metadata"] |= {"uid": "u", "creationTimestamp": "2026-01-31T12:00:00Z"}
    return run | {"status": status}


@pytest.mark.parametrize(
    ("rook", "recorded", "clusters", "used"),
    [
        (UNNAMED, None, {ALLOWED: ("bench",)}, ALLOWED),
        (UNNAMED, None, {ALLOWED: ("*",), "other/c": ("ours",)}, ALLOWED),
        (UNNAMED, None, {}, None),
        (UNNAMED, None, {"other/c": ("ours",)}, None),
        (UNNAMED, None, {ALLOWED: ("bench",), "other/c": ("*",)}, None),
        (UNNAMED, {"namespace": "former", "name": "c"}, {ALLOWED: ("bench",)}, "former/c"),
        (UNNAMED, {"namespace": "former", "name": "c"}, {ALLOWED: ("bench",), "other/c": ("*",)}, "former/c"),
        (ROOK, {"namespace": "former", "name": "c"}, {"other/c": ("bench",)}, ALLOWED),
    ],
)
def test_cluster_of_a_run(rook: Any, recorded: Any, clusters: Clusters, used: str | None) -> None:
    body, settings = stored_run(rook, **({"rookCluster": recorded} if recorded else {})), settings_with(clusters)
    run = run_of(body, settings)
    assert run.document is not None
    assert run.document.spec.storage is not None
    assert run.document.spec.storage.rook is not None
    cluster = run.document.spec.storage.rook.cluster
    assert (cluster and f"{cluster.namespace}/{cluster.name}") == used
    assert run.default_cluster == (None if rook == ROOK else cluster)
    assert entry_of(body, settings).targets == ({f"rook/{used}"} if used else set())
    assert body["spec"]["storage"]["rook"] == rook, "the stored run is not changed"


def test_version_that_starts_a_round_of_a_suite_is_that_of_the_only_cluster() -> None:
    look = versions_of([{"rook": UNNAMED}], "bench", settings_with({ALLOWED: ("bench",)}))
    ((query,),) = [next(look)]
    assert (query.namespace, query.name) == ("rook-ceph", "rook-ceph")  # type: ignore[union-attr]
    assert [*versions_of([{"rook": UNNAMED}], "bench", settings_with({ALLOWED: ("*",), "other/c": ("*",)}))] == []


@pytest.mark.parametrize(
    ("clusters", "reason", "says"),
    [
        ({}, "RookClusterNotAllowed", "may not use a Rook cluster; ask the administrator to add the namespace to the"),
        ({"other/c": ("ours",)}, "RookClusterNotAllowed", "may not use a Rook cluster; ask the administrator"),
        (
            {ALLOWED: ("bench",), "other/c": ("*",), "secret/d": ("ours",)},
            "InvalidSpec",
            "must be set, because runs in namespace bench may use several: other/c, rook-ceph/rook-ceph",
        ),
    ],
)
def test_run_is_refused_unless_it_has_exactly_one(clusters: Clusters, reason: str, says: str) -> None:
    with PretendWorld() as world:
        world.operator.runs.settings = settings_with(clusters)
        uid = create(world, rook=UNNAMED)
        ending = world.until_ended(uid)
        assert ending["reason"] == reason
        assert ending["message"].startswith("spec.storage.rook.cluster: ")
        assert says in ending["message"]
        assert "secret" not in ending["message"]
        world.until_settled(uid)
        assert outside(world, uid) == set()
        run = world.run(uid)
        assert run is not None
        assert "rookCluster" not in run["status"]


def test_named_and_unnamed_runs_take_turns() -> None:
    with PretendWorld() as world:
        named, unnamed = create(world), create(world, "b", rook=UNNAMED)
        world.until(lambda: world.conditions(unnamed).get("Admitted", {}).get("reason") == "WaitingForTurn")
        assert "behind bench/a" in world.conditions(unnamed)["Admitted"]["message"]
        for uid in (named, unnamed):
            world.until_settled(uid)
            assert world.conditions(uid)["Succeeded"]["status"] == "True"


@pytest.mark.parametrize("clusters", [{}, {"other/c": ("bench",)}, {ALLOWED: ("*",), "other/c": ("*",)}])
def test_settings_of_a_new_operator_do_not_move_a_run(monkeypatch: pytest.MonkeyPatch, clusters: Clusters) -> None:
    with PretendWorld() as world:
        uid = create(world, rook=UNNAMED)
        world.until(lambda: world.conductors.loads)
        monkeypatch.setattr(pretend_world, "SETTINGS", settings_with(clusters))
        world.restart_operator()
        world.until_settled(uid)
        run, plan = world.run(uid), world.cluster.find("ConfigMap", naming.plan_config_map("a"))
        assert run is not None
        assert plan is not None
        assert world.conditions(uid)["Succeeded"]["status"] == "True"
        assert world.conditions(uid)["CleanedUp"]["reason"] == "Removed"
        assert outside(world, uid) == set()
        cluster = NamespacedName(namespace="rook-ceph", name="rook-ceph").model_dump()
        assert run["status"]["rookCluster"] == json.loads(plan["data"][PLAN_FILE])["ceph"]["rook"] == cluster
        assert "cluster" not in run["spec"]["storage"]["rook"]


def test_run_that_waits_fails_if_its_cluster_is_not_allowed_any_more() -> None:
    with PretendWorld() as world:
        create(world)
        waiting = create(world, "b", rook=UNNAMED)
        world.until(lambda: world.conditions(waiting).get("Admitted", {}).get("reason") == "WaitingForTurn")
        world.operator.runs.settings = settings_with({"other/c": ("bench",)})
        ending = world.until_ended(waiting)
        assert ending["reason"] == "RookClusterNotAllowed"
        assert "may not use CephCluster rook-ceph/rook-ceph" in ending["message"]
