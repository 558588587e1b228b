"""Which change of a run wakes whom, and what is kept for Prometheus."""

import copy
from typing import Any

import kopf
import pytest

from plimsoll.handlers import index
from plimsoll.metrics.runs import RunRecord
from support.pretend_cluster import Document, PretendCluster
from support.pretend_operator import context_of
from support.pretend_world import make_run

queue_changed: Any = index.queue_changed
runs: Any = index.runs


class Watched:
    """A run, and two daemons: its own and that of another run."""

    def __init__(self) -> None:
        cluster = PretendCluster()
        self.run: Document = cluster.kube.put(make_run("a"))
        self.context = context_of(cluster)
        self.own = self.context.runs.records[self.run["metadata"]["uid"]].wakeup
        self.other = self.context.runs.records["another"].wakeup
        # As kopf does it for every object.
        self.memo: Any = copy.copy(kopf.Memo(context=self.context))

    async def change(self, kind: str | None = "MODIFIED", **status: Any) -> tuple[bool, bool]:
        """Tell of a change, and return who is awake now: the run itself, the other one."""
        self.own.clear()
        self.other.clear()
        body = {**self.run, "status": status}
        await queue_changed(body=body, uid=self.run["metadata"]["uid"], type=kind, memo=self.memo)
        return self.own.is_set(), self.other.is_set()


def condition(kind: str, status: str, reason: str) -> dict[str, str]:
    return {"type": kind, "status": status, "reason": reason}


@pytest.fixture
async def watched() -> Watched:
    return Watched()


async def test_a_new_run_wakes_everybody(watched: Watched) -> None:
    # None is what kopf says of those that it lists first.
    assert await watched.change(None) == (True, True)


async def test_a_status_that_says_nothing_of_the_queue_wakes_only_its_run(watched: Watched) -> None:
    await watched.change("ADDED")
    assert await watched.change(display={"progress": "3/12"}) == (True, False)


async def test_a_run_that_takes_or_leaves_its_place_wakes_everybody(watched: Watched) -> None:
    await watched.change("ADDED")
    admitted = condition("Admitted", "True", "Admitted")
    assert await watched.change(conditions=[admitted]) == (True, True)
    assert await watched.change(conditions=[admitted]) == (True, False)
    assert await watched.change(conditions=[admitted, condition("CleanedUp", "True", "Removed")]) == (True, True)


async def test_a_run_that_disappears_wakes_everybody(watched: Watched) -> None:
    await watched.change("ADDED")
    assert await watched.change("DELETED") == (True, True)


async def test_what_prometheus_is_told_of_a_run_is_kept_by_uid(watched: Watched) -> None:
    ((uid, run),) = (await runs(body=kopf.Body(_raw(watched.run)), uid="r")).items()
    assert uid == "r"
    assert isinstance(run, RunRecord)
    assert (run.namespace, run.name, run.status) == ("bench", "a", "")


def _raw(document: Any) -> Any:
    """Return a document as kopf's types want it."""
    return document
