"""Whatever happens in whatever order, what must hold holds, and every run comes to its end and leaves nothing."""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any, ClassVar

import hypothesis.strategies as st
import kopf
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from plimsoll.api.names import FailureReason, Verdict
from plimsoll.kube.port import ConflictError, Followed, ForbiddenError, TransientError
from plimsoll.lifecycle import naming
from plimsoll.lifecycle.decision import Create, CreateSecret, Decision
from plimsoll.lifecycle.run import needs_attention
from plimsoll.operator import watches
from plimsoll.operator.watches import CHILDREN, ChildWatch
from support.fake_kube import is_going, shaped
from support.pretend_cluster import NAMESPACE, NODES, Document, label
from support.pretend_world import CrashError, PretendWorld

_WATCHED = {kind.kind: shape for kind, shape in CHILDREN.items()}
_RETRY_SECONDS = 5.0
_AWAY_ROUNDS = 20
_BACK_ROUNDS = 16  # of 30 s: the grace period, LOAD_GONE_SECONDS, and what a Job takes

# As functions of any arguments: kopf hands over more than these take.
queue_changed: Any = watches.queue_changed


def created_by(decision: Decision) -> set[tuple[str, str]]:
    created = [action.obj for action in decision.actions if isinstance(action, Create | CreateSecret)]
    return {(obj["kind"], obj["metadata"]["name"]) for obj in created}


def look_twice(world: PretendWorld, uid: str) -> None:
    """Look, and find that what was done is not asked for again.

    After a look without actions, another one changes nothing: no event has to tell of a status that was written.
    """

    def status_writes() -> int:
        return sum(request.startswith("patch status of BenchmarkRun") for request in world.cluster.kube.requests)

    decision = world.look(uid)
    if decision is None or world.run(uid) is None:
        return
    again = world.wait(world.operator.foresee(uid))
    assert not created_by(decision) & created_by(again)
    if not decision.actions:
        written = status_writes()
        settled = world.look(uid)
        assert settled is None or not settled.actions
        assert status_writes() == written


class WakefulWorld(PretendWorld):
    """A world whose operator looks at a run when an event wakes it or its pause is over, as the daemon does.

    The events are those that watches would tell of: one for each object that has changed since the last time.

    Attributes:
        looks: how often it has looked.

    """

    def __init__(self) -> None:
        super().__init__()
        self.looks = 0
        self._awake()

    def restart_operator(self) -> None:
        super().restart_operator()
        self._awake()

    def round(self, seconds: float = 5.0) -> None:
        """Let the operator look where it has to, then everybody else do something, and time pass."""
        self.operator.watch_all()
        self._tell()
        for uid in sorted(self.operator.bodies):
            if self._has_to_look(uid):
                self._look(uid)
        for _ in range(2):
            self.cluster.step()
            self.rook.step()
            self.conductors.step()
        self.cluster.pass_time(seconds)

    def _awake(self) -> None:
        self._told: dict[str, Document] = {}
        self._memos: dict[str, Any] = {}
        self._children = ChildWatch(self.operator.runs.records)
        self._next: dict[str, datetime | None] = {}

    def _tell(self) -> None:
        known = {obj["metadata"]["uid"]: obj for obj in self.cluster.kube.objects()}
        for uid, obj in self._told.items():
            if uid not in known:
                self._tell_of(obj, "DELETED")
        for uid, obj in known.items():
            if uid not in self._told or self._told[uid]["metadata"]["resourceVersion"] != _version(obj):
                self._tell_of(obj, "MODIFIED")
        self._told = known

    def _tell_of(self, obj: Document, kind: str) -> None:
        uid = obj["metadata"]["uid"]
        if obj["kind"] == "BenchmarkRun":
            memo = self._memos.setdefault(uid, kopf.Memo(context=SimpleNamespace(runs=self.operator.runs)))
            self.wait(queue_changed(body=obj, uid=uid, type=kind, memo=memo))
        elif obj["kind"] in _WATCHED:
            self._children.notice(Followed(shaped(obj, _WATCHED[obj["kind"]]), is_gone=kind == "DELETED"))

    def _has_to_look(self, uid: str) -> bool:
        body, records = self.operator.bodies[uid], self.operator.runs.records
        # A task begins, or looks at a removal again.
        if uid not in records or uid not in self._next or is_going(body):
            return needs_attention(body)
        due = self._next[uid]
        return records[uid].wakeup.is_set() or (due is not None and due <= self.cluster.now)

    def _look(self, uid: str) -> None:
        self.looks += 1
        record = self.operator.runs.records[uid]
        record.was_woken = record.wakeup.is_set()
        record.wakeup.clear()
        decision = self.look(uid)
        seconds = decision.requeue_seconds if isinstance(decision, Decision) else _RETRY_SECONDS
        self._next[uid] = None if seconds is None else self.cluster.now + timedelta(seconds=seconds)


def _version(obj: Document) -> str:
    return str(obj["metadata"]["resourceVersion"])


# Half a minute of one processor, which a busy machine stretches.
pytestmark = pytest.mark.timeout(400)

NAMES = st.sampled_from(["a", "b"])
ERRORS: dict[str, Callable[[str], Exception]] = {
    "crash": CrashError,
    "away": lambda asked: TransientError(asked, "status 503"),
    "conflict": lambda asked: ConflictError(asked, "status 409"),
    "forbidden": lambda asked: ForbiddenError(asked, "status 403"),
}
BREAKAGES = {"unschedulable", "unpullable", "over_quota", "no_volumes", "nothing"}
KINDS_OF_LOAD = ("Job", "Pod", "PersistentVolumeClaim")


class Anything(RuleBasedStateMachine):
    """Users, machines and programs doing what they do, at any time.

    Attributes:
        storages: parts of specifications, of which runs choose one; without any, it is a StorageClass.
        worlds: where it happens.
        fate: what happens to a run whose conductor is lost in the end.

    """

    storages: ClassVar[Sequence[Document]] = ({},)
    worlds: ClassVar[type[PretendWorld]] = PretendWorld

    def __init__(self) -> None:
        super().__init__()
        self.world = self.worlds().__enter__()
        self.namespace_goes = False
        self.fate = ""
        self.retained: set[str] = set()

    # -- users

    @initialize(
        rounds=st.integers(0, 30),
        second=st.booleans(),
        storage=st.integers(0, 3),
        fate=st.sampled_from(["waits", "is suspended", "is deleted"]),
    )
    def begin(self, rounds: int, storage: int, fate: str, *, second: bool) -> None:
        """Begin anywhere in a run's life, perhaps with another run in the queue."""
        self.fate = fate
        self.world.create("a", **self._storage(storage))
        if second:
            self.world.create("b", **self._storage(storage))
        for _ in range(rounds):
            self.world.round(1.0)

    @precondition(lambda self: not self.namespace_goes)
    @rule(
        name=NAMES,
        cleanup=st.sampled_from(["Always", "OnSuccess", "Never"]),
        results=st.sampled_from(["Delete", "Delete", "Retain"]),
        suspend=st.sampled_from([False, False, True]),
        ttl=st.sampled_from([None, None, 0, 30]),
        storage=st.integers(0, 3),
    )
    def create(self, name: str, cleanup: str, results: str, ttl: int | None, storage: int, *, suspend: bool) -> None:
        if self._named(name) is None:
            spec = self._storage(storage) | ({} if ttl is None else {"ttlSecondsAfterFinished": ttl})
            uid = self.world.create(name, cleanup=cleanup, results=results, suspend=suspend, **spec)
            if results == "Retain":
                self.retained.add(uid)

    @rule(name=NAMES, suspend=st.booleans())
    def suspend_or_resume(self, name: str, *, suspend: bool) -> None:
        self._change(name, suspend=suspend)

    @rule(name=NAMES, cleanup=st.sampled_from(["Always", "OnSuccess", "Never"]))
    def change_cleanup(self, name: str, cleanup: str) -> None:
        self._change(name, cleanup=cleanup)

    @rule(name=NAMES, foreground=st.booleans())
    def delete(self, name: str, *, foreground: bool) -> None:
        run = self._named(name)
        if run is not None:
            self.world.cluster.delete(run, foreground=foreground)

    @precondition(lambda self: not self.namespace_goes)
    @rule(sure=st.integers(0, 9))
    def delete_namespace(self, sure: int) -> None:
        if sure == 0 and self.world.runs():
            self.namespace_goes = True
            namespace = self.world.cluster.find("Namespace", NAMESPACE)
            assert namespace is not None
            self.world.cluster.delete(namespace)

    @rule(number=st.integers(0, 20), kind=st.sampled_from([*KINDS_OF_LOAD, "Service", "Role", "ConfigMap"]))
    def delete_something(self, number: int, kind: str) -> None:
        """Somebody deletes an object of a run."""
        objects = [obj for obj in self.world.cluster.kube.objects(kind) if label(obj, naming.LABEL_RUN_UID)]
        if number < len(objects):
            self.world.cluster.delete(objects[number])

    # -- the operator

    @rule(name=NAMES, watched=st.booleans())
    def look(self, name: str, *, watched: bool) -> None:
        run = self._named(name)
        if run is not None:
            uid = run["metadata"]["uid"]
            if watched:
                self.world.operator.watch(uid)
            look_twice(self.world, uid)

    @rule(name=NAMES, kind=st.sampled_from(sorted(ERRORS)), number=st.integers(1, 40))
    def look_in_trouble(self, name: str, kind: str, number: int) -> None:
        run = self._named(name)
        if run is not None:
            self.world.operator.watch(run["metadata"]["uid"])
            self.world.look_with(run["metadata"]["uid"], number, ERRORS[kind])

    @rule(name=NAMES)
    def watch(self, name: str) -> None:
        run = self._named(name)
        if run is not None:
            self.world.operator.watch(run["metadata"]["uid"])

    @rule()
    def restart_operator(self) -> None:
        self.world.restart_operator()

    # -- the cluster

    @rule()
    def let_controllers_work(self) -> None:
        self.world.cluster.step()

    @rule(times=st.integers(1, 4))
    def let_conductors_work(self, times: int) -> None:
        for _ in range(times):
            self.world.conductors.step()

    @rule(times=st.integers(1, 8))
    def let_all_work(self, times: int) -> None:
        for _ in range(times):
            self.world.round(1.0)

    @rule(seconds=st.sampled_from([1.0, 30.0, 120.0]))
    def pass_time(self, seconds: float) -> None:
        self.world.cluster.pass_time(seconds)

    @rule(number=st.integers(0, 3), code=st.sampled_from([1, 137]))
    def kill_client(self, number: int, code: int) -> None:
        pods = [pod for uid in sorted(self.world.uids) for pod in self.world.client_pods(uid)]
        if number < len(pods):
            self.world.cluster.end(pods[number], code, "killed")

    @rule()
    def drain_conductor(self) -> None:
        """Ask the conductors to go, as when their node is drained."""
        for pod in self.world.conductors.pods():
            self.world.cluster.delete(pod)

    @rule()
    def kill_conductor(self) -> None:
        for pod in self.world.conductors.pods():
            self.world.conductors.kill(pod)

    @rule(node=st.sampled_from(NODES))
    def lose_node(self, node: str) -> None:
        self.world.cluster.lose_node(node)

    @rule()
    def mend_nodes(self) -> None:
        self.world.cluster.faults.dead_nodes.clear()

    @rule(client=st.sampled_from([0, 1, None]), what=st.sampled_from(sorted(BREAKAGES)))
    def break_something(self, client: int | None, what: str) -> None:
        faults = self.world.cluster.faults
        faults.unschedulable = {client} if what == "unschedulable" else set()
        faults.unpullable = {client} if what == "unpullable" else set()
        faults.over_quota = {client} if what == "over_quota" else set()
        faults.no_volumes = what == "no_volumes"

    @rule(verdict=st.sampled_from(Verdict), stuck=st.booleans())
    def set_conductors(self, verdict: Verdict, *, stuck: bool) -> None:
        self.world.conductors.knobs.verdict = verdict
        self.world.conductors.knobs.stuck = stuck

    @rule(name=NAMES, reason=st.sampled_from(FailureReason))
    def fail(self, name: str, reason: FailureReason) -> None:
        run = self._named(name)
        if run is not None:
            self.world.conductors.knobs.fails[run["metadata"]["uid"]] = reason

    # -- the end

    def teardown(self) -> None:
        try:
            self._come_to_an_end()
        finally:
            self.world.__exit__(None, None, None)

    def _come_to_an_end(self) -> None:
        """Every run ends, though what is broken stays broken, but for dead nodes; then nothing but results is left."""
        world = self.world
        world.conductors.knobs.stuck = False
        self._lose_conductors()
        world.cluster.faults.dead_nodes.clear()
        for run in world.runs():
            if not is_going(run):
                world.change(run["metadata"]["uid"], suspend=False)
        for uid in sorted(world.uids):
            world.until_settled(uid)
        for run in world.runs():
            world.cluster.delete(run)
        world.until(lambda: not world.runs())
        world.round()
        objects = [obj for obj in world.cluster.kube.objects() if obj["metadata"]["uid"] not in world.furniture]
        left = {(obj["kind"], label(obj, naming.LABEL_RUN_UID)) for obj in objects}
        allowed = {("BenchmarkResult", uid) for uid in self.retained} | {("Event", "")}
        assert not left - allowed
        assert not self.namespace_goes or not left - {("Event", "")}
        assert not any(world.rook.images.values())
        assert not any(world.rook.notes.values())

    def _lose_conductors(self) -> None:
        """Have the nodes of conductors die while OSDs are away, which come back although the nodes do not."""
        world, dead = self.world, self.world.cluster.faults.dead_nodes
        if not any("disturb" in workload for run in world.runs() for workload in run["spec"]["workloads"]):
            return
        for _ in range(_AWAY_ROUNDS):
            if world.cluster.away:
                break
            world.round()
        for pod in world.conductors.pods():
            uid, node = label(pod, naming.LABEL_RUN_UID), pod["spec"]["nodeName"]
            if uid in world.cluster.away and not dead.union({node}).issuperset(NODES):
                world.cluster.lose_node(node)
                run = world.run(uid)
                if run is not None and self.fate == "is deleted":
                    world.cluster.delete(run)
                world.change(uid, suspend=self.fate == "is suspended")
        if dead.issuperset(NODES):
            return  # no node is left for a Job
        for _ in range(_BACK_ROUNDS):
            world.round(30.0)
        alive = (pod for pod in world.conductors.pods() if pod["spec"].get("nodeName") not in dead)
        assert world.cluster.away <= {label(pod, naming.LABEL_RUN_UID) for pod in alive}

    def _storage(self, number: int) -> dict[str, object]:
        return self.storages[number % len(self.storages)]

    def _named(self, name: str) -> Document | None:
        return next((run for run in self.world.runs() if run["metadata"]["name"] == name), None)

    def _change(self, name: str, **spec: object) -> None:
        run = self._named(name)
        if run is not None and not is_going(run):
            self.world.change(run["metadata"]["uid"], **spec)


class AnythingThatWakes(Anything):
    """The same to an operator that looks only when it is woken or its pause is over."""

    worlds = WakefulWorld


TestAnything = Anything.TestCase
TestAnything.settings = settings(max_examples=15, stateful_step_count=30, deadline=None)
TestAnythingThatWakes = AnythingThatWakes.TestCase
TestAnythingThatWakes.settings = settings(max_examples=10, stateful_step_count=30, deadline=None)
