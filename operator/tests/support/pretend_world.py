"""Cluster, conductors and operator together in one process, with what must hold at any time."""

import asyncio
import json
import re
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from copy import deepcopy
from datetime import datetime
from functools import partial
from itertools import groupby
from typing import Any, Self, TypeVar
from unittest.mock import patch

import kopf
from kopf._core.engines import posting

from plimsoll.api.names import RUN_KIND
from plimsoll.api.status import BenchmarkRunStatus
from plimsoll.kube import port
from plimsoll.kube.port import ApiError, Kind
from plimsoll.lifecycle import naming
from plimsoll.lifecycle.decision import Decision
from plimsoll.lifecycle.naming import FINALIZER
from plimsoll.lifecycle.queue import Entry, entry_of
from plimsoll.lifecycle.run import Settings, needs_attention
from plimsoll.lifecycle.step import step
from plimsoll.metrics.exposition import Instruments
from plimsoll.operator.runs import RunReconciler
from plimsoll.operator.suites import SuiteReconciler
from plimsoll.operator.watches import Context, post
from plimsoll.plan.document import image_prefix
from plimsoll.protocol.assignment import token_name
from support.fake_kube import is_going
from support.pretend_cluster import NAMESPACE, Document, PretendCluster, client_of, label, phase
from support.pretend_conductor import PretendConductors
from support.pretend_rook import KEY, ROOK, PretendRook
from support.specs import manifest

SETTINGS = Settings(
    runner_image="runner:1",
    rook_clusters={"rook-ceph/rook-ceph": ("bench",)},
    disturb={"rook-ceph/rook-ceph": ()},
    max_client_restarts=3,
    conductor_restarts=3,
)


def context_of(cluster: PretendCluster, queue: Callable[[], Iterable[Entry]] = tuple, **pace: float) -> Context:
    """Return what handlers share in a pretended cluster; `pace` is the reconciler's, which does not rest otherwise."""
    instruments = Instruments()
    shared: dict[str, Any] = {"kube": cluster.kube, "settings": SETTINGS, "instruments": instruments, "post": post}
    shared["now"] = lambda: cluster.now

    def make_secret(clients: int) -> Mapping[str, bytes]:
        return dict.fromkeys(map(token_name, range(clients)), b"t")  # they cost nothing to make

    own = shared | {"rest_seconds": 0.0, "is_queue_complete": True, **pace}
    runs = RunReconciler(queue=queue, make_secret=make_secret, **own)
    return Context(runs=runs, suites=SuiteReconciler(**shared))


class PretendOperator:
    """One operator process. Creating another one simulates a crash: it knows only what the API server stores."""

    def __init__(self, cluster: PretendCluster) -> None:
        self.cluster = cluster
        self.runs = context_of(cluster, self._queue).runs
        self.events: asyncio.Queue[Any] = asyncio.Queue()
        self.bodies: dict[str, Document] = {}
        self.watch_all()

    def _queue(self) -> Iterator[Entry]:
        return (entry_of(body, self.runs.settings) for body in self.bodies.values())

    def watch_all(self) -> None:
        for uid in {*self.bodies, *(run["metadata"]["uid"] for run in self.cluster.kube.objects("BenchmarkRun"))}:
            self.watch(uid)

    def watch(self, uid: str) -> None:
        """Let the operator see a run as it is, and put or take its finalizer."""
        runs = self.cluster.kube.objects("BenchmarkRun", lambda run: run["metadata"]["uid"] == uid)
        if not runs:
            self.bodies.pop(uid, None)
            self.runs.records.pop(uid, None)
            return
        (run,) = runs
        if not needs_attention(run):
            self.cluster.let_go(run, FINALIZER)
            self.runs.records.pop(uid, None)
        elif not is_going(run) and FINALIZER not in run["metadata"].get("finalizers", []):
            self.cluster.edit(run, lambda new: new["metadata"].setdefault("finalizers", []).append(FINALIZER))
            (run,) = self.cluster.kube.objects("BenchmarkRun", lambda run: run["metadata"]["uid"] == uid)
        self.bodies[uid] = run

    async def look(self, uid: str) -> Decision | None:
        """Look at a run once, as the daemon does, or as its deletion does."""
        body = self.bodies.get(uid)
        if body is None or not needs_attention(body):
            return None
        if is_going(body):
            cleaned_up = await self.runs.look_at_removal(_body(body))
            if cleaned_up.holds:
                self.cluster.let_go(body, FINALIZER)
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


def _body(document: Any) -> kopf.Body:
    return kopf.Body(document)


T = TypeVar("T")

MAX_STATUS_BYTES = 64 * 1024
SECRETS = re.compile(r"plimsoll-teardown/plimsoll-teardown-.*|rook-ceph/plimsoll-\d+|bench/keyring")
"""Those that the operator may look at: its own, and where Rook or the user put a key for it."""

LOAD_ENDS_SECONDS = 200
"""Without an API server a conductor leaves after two minutes at most, and its agents a minute later."""

_ROUND_SECONDS = 5.0
_ROUNDS = 400


class CrashError(Exception):
    """The operator's process ends here."""


def make_run(name: str, **spec: Any) -> Document:
    """Return a run of two clients and two points, two passes each, as the API server stores it; None is left out."""
    workload = {"name": "w", "fio": {"ioDepth": [1, 16]}, "runtimeSeconds": 4, "rampSeconds": 1}
    fields = {
        "storage": {"storageClass": {"name": "fast"}, "volume": {"size": "1Gi", "mode": "Filesystem"}},
        "clients": {"count": 2},
        "workloads": [workload],
        "repetitions": 2,
        "prepare": {"settleSeconds": 0},
        "timeouts": {"provisionSeconds": 60, "readySeconds": 60, "totalSeconds": 600},
        **spec,
    }
    return manifest(RUN_KIND, fields, name=name, namespace=NAMESPACE) | {"status": {"observedGeneration": -1}}


class PretendWorld:
    """Everything that takes part. Use as a context manager: it holds an event loop."""

    def __init__(self) -> None:
        self.cluster = PretendCluster()
        self.conductors = PretendConductors(self.cluster)
        self.rook = PretendRook(self.cluster)
        self.rook.install()
        self.operator = PretendOperator(self.cluster)
        self.furniture = {obj["metadata"]["uid"] for obj in self.cluster.kube.objects()}
        self.uids: set[str] = set()
        self._loop = asyncio.new_event_loop()
        self._patch = patch.object(port, "_FIRST_PAUSE_SECONDS", 0.0)
        self._checked = 0
        self._targets: dict[str, str] = {}
        self._statuses: dict[str, Document] = {}
        self._guard_requests()

    def __enter__(self) -> Self:
        self._patch.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._patch.stop()
        self._loop.close()

    def wait(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return self._loop.run_until_complete(coroutine)

    # -- what users and others do

    def create(self, name: str, **spec: Any) -> str:
        """Create a run, and return its UID."""
        run = self.cluster.kube.put(make_run(name, **spec))
        uid = str(run["metadata"]["uid"])
        self.uids.add(uid)
        self._targets[uid] = next(iter({"rook", "ceph", "storageClass"} & set(run["spec"].get("storage", {}))), "")
        return uid

    def runs(self) -> list[Document]:
        return list(self.cluster.kube.objects("BenchmarkRun"))

    def run(self, uid: str) -> Document | None:
        return next(iter(self.cluster.kube.objects("BenchmarkRun", lambda run: run["metadata"]["uid"] == uid)), None)

    def change(self, uid: str, **spec: Any) -> None:
        run = self.run(uid)
        if run is not None:
            self.cluster.edit(run, lambda new: new["spec"].update(spec))

    def conditions(self, uid: str) -> dict[str, Document]:
        run = self.run(uid)
        assert run is not None
        return conditions_of(run["status"])

    def client_pods(self, uid: str) -> list[Document]:
        return [pod for pod in self.cluster.of_run("Pod", uid) if client_of(pod) is not None]

    # -- the operator

    def restart_operator(self) -> None:
        self.operator = PretendOperator(self.cluster)

    def look(self, uid: str) -> Decision | None:
        """Have the operator look once; what it complains of is for the next time."""
        try:
            return self.wait(self.operator.look(uid))
        except ApiError:
            return None
        except CrashError:
            self.restart_operator()
            return None
        finally:
            self.check()

    def look_with(self, uid: str, number: int, error: Callable[[str], Exception]) -> None:
        """Have the operator look, and break one of its requests."""
        left = number

        def interfere(request: str) -> None:
            nonlocal left
            left -= 1
            if left == 0:
                raise error(request)

        self.cluster.kube.interfere = interfere
        try:
            self.look(uid)
        finally:
            self.cluster.kube.interfere = lambda _: None

    # -- all together

    def players(self) -> list[Callable[[], None]]:
        return [self.cluster.step, self.rook.step, self.conductors.step]

    def round(self, seconds: float = _ROUND_SECONDS) -> None:
        self.operator.watch_all()
        for uid in sorted(self.operator.bodies):
            self.look(uid)
        for step_of_player in self.players() * 2:
            step_of_player()
        self.cluster.pass_time(seconds)

    def until(self, what: Callable[[], object], *, rounds: int = _ROUNDS) -> None:
        """Let rounds pass until something holds."""
        for _ in range(rounds):
            if what():
                return
            self.round()
        message = f"not in {rounds} rounds; {json.dumps([run.get('status') for run in self.runs()], indent=1)}"
        raise AssertionError(message)

    def until_settled(self, uid: str) -> Document | None:
        self.until(lambda: is_settled(self.run(uid)))
        return self.run(uid)

    def until_ended(self, uid: str) -> Document:
        self.until(lambda: self.conditions(uid).get("Succeeded", {}).get("status") in {"True", "False"})
        return self.conditions(uid)["Succeeded"]

    # -- what must hold

    def check(self) -> None:
        requests = self.cluster.kube.requests
        for request in requests[self._checked :]:
            verb, kind, name = (*request.split(), "", "")[:3]
            assert kind != "Secret" or verb in {"create", "delete"} or (verb == "get" and SECRETS.fullmatch(name))
        self._checked = len(requests)
        for run in self.runs():
            self._check_status(run)

        def may_load(pod: Document) -> bool:
            """Whether a client may do I/O: on a dead node until it has had no conductor for long enough."""
            if client_of(pod) is None or phase(pod) != "Running":
                return False
            going = pod["metadata"].get("deletionTimestamp")
            return not going or (self.cluster.now - datetime.fromisoformat(going)).total_seconds() < LOAD_ENDS_SECONDS

        loaded = {label(pod, naming.LABEL_RUN_UID) for pod in self.cluster.kube.objects("Pod", may_load)}
        targets = [self._targets[uid] for uid in loaded]
        assert len(targets) == len(set(targets)), "two runs load one target"

    def _check_status(self, run: Document) -> None:
        uid, status = run["metadata"]["uid"], run.get("status", {})
        before = self._statuses.get(uid, {})
        self._statuses[uid] = status
        if status == before:
            return
        BenchmarkRunStatus.model_validate(status)
        assert KEY not in json.dumps(status)
        assert len(json.dumps(status)) < MAX_STATUS_BYTES
        assert status["observedGeneration"] <= run["metadata"]["generation"]
        then = conditions_of(before)
        for entry in status.get("conditions", []):
            check_condition(entry, then.get(entry["type"]), self.cluster.now)

    def _guard_requests(self) -> None:
        """See that what is made outside a run's namespace is on record before, and check deletions."""
        kube, create, delete = self.cluster.kube, self.cluster.kube.create, self.cluster.kube.delete

        async def guarded_create(obj: Mapping[str, Any], *, dry_run: bool = False) -> bool:
            if not dry_run and obj["kind"] in {"CephBlockPool", "CephFilesystem", "CephClient", "StorageClass"}:
                assert self.cluster.find("ConfigMap", naming.teardown(label(dict(obj), naming.LABEL_RUN_UID)))
            return await create(obj, dry_run=dry_run)

        async def guarded_delete(
            kind: Kind, name: str, namespace: str | None = None, *, uid: str | None = None, foreground: bool = False
        ) -> bool:
            obj = await kube.get(kind, name, namespace)
            if obj is not None:
                self._check_deletion(obj, uid)
            return await delete(kind, name, namespace, uid=uid, foreground=foreground)

        kube.create, kube.delete = guarded_create, guarded_delete  # type: ignore[method-assign]

    def _check_deletion(self, obj: Mapping[str, Any], uid: str | None) -> None:
        document = dict(obj)
        assert uid, "an object is deleted by name alone"
        if obj["kind"] == "BenchmarkRun":
            assert obj["spec"].get("ttlSecondsAfterFinished") is not None
            return
        assert label(document, naming.LABEL_RUN_UID) in self.uids
        assert obj["kind"] != "BenchmarkResult"
        assert label(document, naming.LABEL_COMPONENT) not in {"plan", "state"}
        if document["metadata"].get("namespace") != NAMESPACE:
            assert document["metadata"]["name"].startswith("plimsoll-")
            self._check_deletion_in_ceph(document)
        if obj["kind"] == "PersistentVolumeClaim":
            assert not self.client_pods(label(document, naming.LABEL_RUN_UID)), "a claim goes before its client"

    def _check_deletion_in_ceph(self, obj: Document) -> None:
        """Check the order in which storage is removed: content, access, pools, record."""
        uid, rook = label(obj, naming.LABEL_RUN_UID), self.rook
        images = [image for found in rook.images.values() for image in found if image.startswith(image_prefix(uid))]
        of_teardown = label(obj, naming.LABEL_COMPONENT) == naming.TEARDOWN
        in_ceph = {"StorageClass", "CephClient", "CephBlockPool", "CephFilesystem"}
        copies = [self.cluster.find("Secret", name) for name in (naming.teardown(uid), naming.key_renewal(uid))]
        is_last_copy = of_teardown and obj["kind"] == "Secret" and None in copies
        if obj["kind"] in in_ceph or is_last_copy:
            assert not self.client_pods(uid)
            assert not images
            assert not any(uid in found for found in rook.notes.values())
        if obj["kind"] == "StorageClass":
            assert not self.cluster.kube.objects("PersistentVolume")
        if obj["kind"] in {"CephBlockPool", "CephFilesystem"}:
            assert not self._own("CephClient", uid)
            is_inactive = "PG_AVAILABILITY" in str(self.cluster.kube.objects("CephCluster"))
            assert not is_inactive, "Rook is stopped for everybody"
            name = obj["metadata"]["name"]
            assert not name.endswith("-data") or len(self._own("CephBlockPool", uid)) == 1, "the data goes first"
        if obj["kind"] == "CephClient":
            assert self.cluster.find("Secret", naming.teardown(uid)) is None, "a key outlives its user"
        if of_teardown and obj["kind"] == "ConfigMap":
            assert not self._own("CephBlockPool", uid)
            assert not self._own("CephFilesystem", uid)

    def _own(self, kind: str, uid: str) -> list[Document]:
        """Return the operator's objects of a kind: others with the run's label have other names."""
        return [obj for obj in self.cluster.of_run(kind, uid) if obj["metadata"]["name"].startswith("plimsoll-")]


def check_condition(entry: Mapping[str, str], before: Mapping[str, str] | None, now: datetime) -> None:
    """Check that a condition may follow another."""
    if entry["type"] in {"Reconciling", "Stalled"}:
        assert entry["status"] == "True"
    assert datetime.fromisoformat(entry["lastTransitionTime"]) <= now
    if before is None:
        return
    kept = entry["lastTransitionTime"] == before["lastTransitionTime"]
    # A look at which something is refused writes twice, and a condition may come and go between.
    assert kept or entry["status"] != before["status"] or datetime.fromisoformat(entry["lastTransitionTime"]) == now
    if entry["type"] == "Succeeded" and before["status"] != "Unknown":
        assert all(entry[name] == before[name] for name in ("status", "reason", "message"))


def is_settled(run: Document | None) -> bool:
    """Whether a run will not change any more by itself."""
    if run is None:
        return True
    if is_going(run):
        return False
    conditions = conditions_of(run["status"])
    succeeded, cleaned_up = conditions.get("Succeeded", {}), conditions.get("CleanedUp", {})
    is_suspended = succeeded.get("reason") == "Suspended" and "stopping" not in succeeded["message"]
    rests = run["spec"].get("suspend", False) and is_suspended
    kept = cleaned_up.get("reason") == "StorageKept" and run["spec"].get("ttlSecondsAfterFinished") is None
    seen = run["status"]["observedGeneration"] == run["metadata"]["generation"]
    return not needs_attention(run) or (seen and (rests or kept))


def conditions_of(status: Document) -> dict[str, Document]:
    return {entry["type"]: entry for entry in status.get("conditions", [])}


def kinds_of(world: PretendWorld, uid: str) -> set[str]:
    return {obj["kind"] for obj in world.cluster.of_run("", uid)}


def until_trial(world: PretendWorld) -> None:
    """Let rounds pass until a trial is in flight."""
    known = len(world.conductors.loads)
    world.until(lambda: len(world.conductors.loads) > known)


def run_of(world: PretendWorld, uid: str) -> Document:
    run = world.run(uid)
    assert run is not None
    return run


LIBRBD = {"size": "1Gi", "access": "LibRBD"}
CLAIMS = {"size": "1Gi"}
SHARED = {"size": "1Gi", "sharing": "Shared"}
FILE_SYSTEM = {"cluster": ROOK["cluster"], "fileSystem": {"metadataPool": ROOK["pool"], "dataPools": [ROOK["pool"]]}}
ERASURE_CODED = ROOK | {"pool": {"erasureCoded": {"dataChunks": 2, "codingChunks": 1}}}


DISTURBED: Mapping[str, Any] = {
    "workloads": [
        {
            "name": "w",
            "fio": {},
            "runtimeSeconds": 30,
            "disturb": {"afterSeconds": 10, "osds": {"count": 1, "action": "Out"}, "forSeconds": 10},
        }
    ]
}


def create(world: PretendWorld, name: str = "a", volume: Any = LIBRBD, rook: Any = ROOK, **spec: Any) -> str:
    timeouts = {"provisionSeconds": 120, "readySeconds": 60, "totalSeconds": 600}
    return world.create(name, storage={"rook": rook, "volume": volume}, **{"timeouts": timeouts, **spec})


def outside(world: PretendWorld, uid: str) -> set[str]:
    """Return the kinds of what a run has outside its namespace."""
    return {obj["kind"] for obj in world.cluster.of_run("", uid) if obj["metadata"].get("namespace") != NAMESPACE}


def stages(world: PretendWorld, uid: str) -> Iterator[Document]:
    """Yield a run at every change, beginning before the operator has seen it, until it is settled."""

    def actors() -> Iterator[Callable[[], Any]]:
        yield lambda: None  # so that what is there is seen before it changes
        yield world.operator.watch_all
        for other in sorted({*world.operator.bodies, uid}):
            yield partial(world.look, other)
        yield from world.players() * 2

    last: Document | None = None
    for _ in range(_ROUNDS):
        for act in actors():
            act()
            run = world.run(uid)
            if run is not None and run != last:
                last = deepcopy(run)
                yield last
        if is_settled(world.run(uid)):
            return
        world.cluster.pass_time(5.0)
    message = f"not in {_ROUNDS} rounds: {last}"
    raise AssertionError(message)


def story(told: Iterator[str]) -> list[str]:
    """Return the statuses without repetitions."""
    return [status for status, _ in groupby(told)]
