"""The operator in a pretended cluster: the real daemon's look and the deletion's, with kopf's part of it played.

kopf's part: a view of the runs that lags until `watch`, the finalizer, the queue's index, the events that are posted.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import kopf
from kopf._core.engines import posting

from plimsoll.lifecycle.decision import Decision
from plimsoll.lifecycle.queue import Entry, entry_of
from plimsoll.lifecycle.run import needs_attention
from plimsoll.lifecycle.settings import Settings
from plimsoll.lifecycle.step import step
from plimsoll.metrics.exposition import Instruments
from plimsoll.operator.runs import RunReconciler
from plimsoll.operator.suites import SuiteReconciler
from plimsoll.operator.watches import Context, post
from plimsoll.protocol.assignment import token_name
from support.pretend_cluster import Document, PretendCluster, is_going

FINALIZER = "plimsoll.dev/teardown"
SETTINGS = Settings(
    runner_image="runner:1",
    rook_clusters={"rook-ceph/rook-ceph": ("bench",)},
    max_client_restarts=3,
    conductor_restarts=3,
)


class Stopper:
    """kopf's `stopped`."""

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def __bool__(self) -> bool:
        return self._event.is_set()

    async def wait(self) -> None:
        await self._event.wait()

    def stop(self) -> None:
        self._event.set()


def no_secret(clients: int) -> Mapping[str, bytes]:
    """Return the tokens of a session secret that cost nothing to make."""
    return dict.fromkeys(map(token_name, range(clients)), b"t")


def context_of(cluster: PretendCluster, queue: Callable[[], Iterable[Entry]] = tuple, **pace: float) -> Context:
    """Return what handlers share in a pretended cluster; `pace` is the reconciler's, which does not rest otherwise."""
    instruments = Instruments()
    shared: dict[str, Any] = {
        "kube": cluster.kube,
        "settings": SETTINGS,
        "now": lambda: cluster.now,
        "instruments": instruments,
        "post": post,
    }
    runs = RunReconciler(queue=queue, make_secret=no_secret, **{**shared, "rest_seconds": 0.0, **pace})
    suites = SuiteReconciler(**shared)
    return Context(runs=runs, suites=suites, instruments=instruments)


class PretendOperator:
    """One operator process. Creating another one simulates a crash: it knows only what the API server stores."""

    def __init__(self, cluster: PretendCluster) -> None:
        self.cluster = cluster
        self.runs = context_of(cluster, lambda: map(entry_of, self.bodies.values())).runs
        self.events: asyncio.Queue[Any] = asyncio.Queue()
        self.bodies: dict[str, Document] = {}
        self.watch_all()

    def watch_all(self) -> None:
        for uid in {*self.bodies, *(run["metadata"]["uid"] for run in self.cluster.kube.objects("BenchmarkRun"))}:
            self.watch(uid)

    def watch(self, uid: str) -> None:
        """Let kopf see a run as it is, and put or take its finalizer."""
        runs = self.cluster.kube.objects("BenchmarkRun", lambda run: run["metadata"]["uid"] == uid)
        if not runs:
            self.bodies.pop(uid, None)
            self.runs.records.forget(uid)
            return
        (run,) = runs
        if not needs_attention(run):
            self.cluster.let_go(run, FINALIZER)
            self.runs.records.forget(uid)
        elif not is_going(run) and FINALIZER not in run["metadata"].get("finalizers", []):
            self.cluster.edit(run, lambda new: new["metadata"].setdefault("finalizers", []).append(FINALIZER))
        self.bodies[uid] = run

    async def look(self, uid: str) -> Decision | None:
        """Look at a run once, as the daemon does, or as its deletion does."""
        body = self.bodies.get(uid)
        if body is None or not needs_attention(body):
            return None
        if is_going(body):
            await self._remove(body)
            return None
        posting.event_queue_var.set(self.events)
        posting.event_queue_loop_var.set(asyncio.get_running_loop())
        posting.settings_var.set(kopf.OperatorSettings())
        return await self.runs.reconcile(_body(body))

    async def foresee(self, uid: str) -> Decision:
        """Return what the next look would decide if nothing happened meanwhile, twice the same."""
        record = self.runs.records[uid]
        run = self.runs.read(_body(self.bodies[uid]), record)
        seen = await self.runs.observe(run, record)
        decision = step(run, seen, SETTINGS, self.cluster.now)
        assert step(run, seen, SETTINGS, self.cluster.now) == decision
        return decision

    async def _remove(self, body: Document) -> None:
        cleaned_up = await self.runs.look_at_removal(_body(body))
        if cleaned_up.holds:
            self.cluster.let_go(body, FINALIZER)


def _body(document: Any) -> kopf.Body:
    return kopf.Body(document)
