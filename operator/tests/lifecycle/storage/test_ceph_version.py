"""The version of Ceph behind the storage of a suite's variants."""

from collections.abc import Sequence
from typing import Any

import pytest

from plimsoll.lifecycle.run import Settings
from plimsoll.lifecycle.storage.registry import versions_of
from plimsoll.lifecycle.storage.seam import Look, Query, UnansweredError

SETTINGS = Settings(runner_image="r", rook_clusters={"rook/a": ("bench",), "rook/b": ("*",), "rook/secret": ()})
REEF, SQUID = "ceph version 18.2.7 (a) reef (stable)", "ceph version 19.2.0 (b) squid (stable)"
CLASS = {"storageClass": {"name": "fast"}, "volume": {"size": "1Gi"}}


def rook(name: str) -> dict[str, Any]:
    return {"rook": {"cluster": {"namespace": "rook", "name": name}, "existingPool": {"name": "p"}}}


def cluster(version: str, *daemons: str) -> dict[str, Any]:
    status = {"version": {"version": version}, "ceph": {"versions": {"osd": dict.fromkeys(daemons, 3)}}}
    return {"metadata": {"namespace": "rook", "name": "a"}, "status": status}


def answered(look: Look[str], *answers: Sequence[dict[str, Any]] | UnansweredError) -> tuple[str, list[Query]]:
    """Return what a look finds, and what it asked."""
    asked: list[Query] = []
    left = [*answers]
    try:
        batch = next(look)
        while True:
            asked += [query for query in batch if isinstance(query, Query)]
            answer = left.pop(0)
            batch = look.throw(answer) if isinstance(answer, UnansweredError) else look.send([answer])
    except StopIteration as end:
        assert not left
        return end.value, asked


def test_each_cluster_is_asked_once_and_several_versions_are_joined() -> None:
    storages = [rook("a"), CLASS, rook("b"), rook("a")]
    found, asked = answered(
        versions_of(storages, "bench", SETTINGS), [cluster("19.2.0-0", SQUID)], [cluster("18.2.7-0", REEF)]
    )
    assert found == "18.2.7-0, 19.2.0-0"
    assert [query.name for query in asked] == ["a", "b"]


@pytest.mark.parametrize(
    "answer",
    [
        [cluster("19.2.0-0", REEF, SQUID)],
        [cluster("19.2.0-0")],
        [],
        UnansweredError("no", is_forbidden=True),
        UnansweredError("no", is_forbidden=False),
    ],
)
def test_one_unknown_version_makes_all_unknown(answer: Any) -> None:
    look = versions_of([rook("a"), rook("b")], "bench", SETTINGS)
    assert answered(look, answer, [cluster("18.2.7-0", REEF)])[0] == ""


@pytest.mark.parametrize("storage", [rook("secret"), CLASS, {}, {"ceph": {"monitors": ["m"]}}])
def test_clusters_that_runs_may_not_use_and_other_storage_are_not_asked(storage: dict[str, Any]) -> None:
    assert answered(versions_of([storage], "bench", SETTINGS)) == ("", [])
