"""The operator in a pretended cluster: the real daemon's look and the deletion's, with kopf's part of it played.

kopf's part: a view of the runs that lags until `watch`, the finalizer, the queue's index, the events that are posted.
"""

import asyncio
from collections.abc import Iterator, Mapping
from typing import Any

import kopf
from kopf._core.engines import posting

from plimsoll.handlers import run as handlers
from plimsoll.handlers.context import Context
from plimsoll.lifecycle.admission import Entry, entry_of
from plimsoll.lifecycle.attention import needs_attention
from plimsoll.lifecycle.decision import Decision
from plimsoll.lifecycle.run import run_of
from plimsoll.lifecycle.settings import Settings
from plimsoll.lifecycle.step import step
from plimsoll.protocol.secret import TOKEN_FILE, token_name
from support.pretend_cluster import Document, PretendCluster, is_going

FINALIZER = "plimsoll.dev/teardown"
SETTINGS = Settings(
    runner_image="runner:1",
    rook_clusters={"rook-ceph/rook-ceph": ("bench",)},
    max_client_restarts=3,
    conductor_restarts=3,
)


class FakeIndex(Mapping[str, Any]):
    """What kopf gives a handler as index: key -> values."""

    def __init__(self, entries: Mapping[str, Entry]) -> None:
        self._entries = entries

    def __getitem__(self, key: str) -> list[Entry]:
        return [self._entries[key]]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)


def no_secret(clients: int | None) -> Mapping[str, bytes]:
    """Return the tokens of a session secret that cost nothing to make."""
    names = [TOKEN_FILE] if clients is None else [token_name(client) for client in range(clients)]
    return dict.fromkeys(names, b"t")


class PretendOperator:
    """One operator process. Another one is a crash of this one: it knows nothing but what the API says."""

    def __init__(self, cluster: PretendCluster) -> None:
        self.cluster = cluster
        self.context = Context(kube=cluster.kube, settings=SETTINGS, now=lambda: cluster.now)
        self.events: asyncio.Queue[Any] = asyncio.Queue()
        self.bodies: dict[str, Document] = {}
        self.watch_all()

    @property
    def queue(self) -> Any:
        return FakeIndex({uid: entry_of(body) for uid, body in self.bodies.items()})

    def watch_all(self) -> None:
        for uid in {*self.bodies, *(run["metadata"]["uid"] for run in self.cluster.kube.objects("BenchmarkRun"))}:
            self.watch(uid)

    def watch(self, uid: str) -> None:
        """Let kopf see a run as it is, and put or take its finalizer."""
        runs = [run for run in self.cluster.kube.objects("BenchmarkRun") if run["metadata"]["uid"] == uid]
        if not runs:
            self.bodies.pop(uid, None)
            self.context.forget(uid)
            return
        (run,) = runs
        if not needs_attention(run):
            self.cluster.let_go(run, FINALIZER)
            self.context.forget(uid)
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
        return await handlers._look(self.context, _body(body), self.queue)

    async def foresee(self, uid: str) -> Decision:
        """Return what the next look would decide if nothing happened meanwhile, twice the same."""
        body = _body(self.bodies[uid])
        run = run_of(handlers._with_last_said(self.context, body))
        seen = await handlers._observe(self.context, run, body)
        decision = step(run, seen, SETTINGS, self.cluster.now)
        assert step(run, seen, SETTINGS, self.cluster.now) == decision
        return decision

    async def _remove(self, body: Document) -> None:
        cleaned_up = await handlers._look_at_removal(self.context, _body(body))
        if cleaned_up.holds:
            self.cluster.let_go(body, FINALIZER)


def _body(document: Any) -> kopf.Body:
    return kopf.Body(document)
