"""Runs the stand-in for Rook (e2e/rook) without a cluster: on objects in memory, and a Ceph that only keeps names."""

import importlib
import json
import sys
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from copy import deepcopy
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from plimsoll.kube.port import Kind
from support.fake_kube import Document, FakeKube, Key, merged
from support.goldens import NEW_ROOK, OLD_ROOK, ceph, rook, rook_object

Modules = Mapping[str, ModuleType]

_CONTROLLER = Path(__file__).parents[3] / "e2e" / "rook" / "controller"
_MODULES = [path.stem for path in _CONTROLLER.glob("*.py")]
_OF_CEPH = ("ceph_argparse", "rados")
_RECORDED_WITH = {OLD_ROOK: "18.2", NEW_ROOK: "20.2"}
_TIMES = ("lastHeartbeatTime", "lastTransitionTime")


@contextmanager
def loaded_stand_in() -> Iterator[Modules]:
    """Load the program's modules beside each other, as in its pod; by name."""
    names = (*_MODULES, *_OF_CEPH)
    before = {name: sys.modules.pop(name) for name in names if name in sys.modules}
    sys.path.insert(0, str(_CONTROLLER))
    sys.modules.update({name: ModuleType(name) for name in _OF_CEPH})
    try:
        yield {name: importlib.import_module(name) for name in _MODULES if name != "main"}
    finally:
        sys.path.remove(str(_CONTROLLER))
        for name in names:
            sys.modules.pop(name, None)
        sys.modules.update(before)


def release_of(modules: Modules, version: str) -> Any:
    """Return the release that the stand-in plays on the Ceph with which a Rook was recorded."""
    return modules["release"].release_for(json.loads(ceph("versions", _RECORDED_WITH[version]))["mon"])


class Objects:
    """The API server of one namespace, as the stand-in's client asks it.

    Attributes:
        history: states of adopted objects, by name: generation, finalizers, and status without times.
        events: the events, by name.
        fails: called before a request is answered; may raise.

    """

    namespace = "rook-ceph"

    def __init__(self, modules: Modules, version: str) -> None:
        """Begin with a CephCluster as that Rook reported it."""
        self._error = modules["kube"].ApiError
        cluster = rook_object("cephcluster-ready-health-ok")
        if version == OLD_ROOK:
            cluster["status"]["version"]["version"] = "18.2.7-0"
        self._kube = FakeKube(namespaces=[self.namespace])
        self._kube.put(cluster)
        self.history: dict[str, list[Document]] = {}
        self.events: dict[str, Document] = {}
        self.fails: Callable[[str, str], None] = lambda verb, kind: None  # noqa: ARG005 - for an answer

    def list(self, kind: str) -> Sequence[Document]:
        self.fails("list", kind)
        return self._kube.objects(kind)

    def get(self, kind: str, name: str) -> Document | None:
        return next(iter(self._kube.objects(kind, lambda obj: obj["metadata"]["name"] == name)), None)

    def create(self, kind: str, manifest: Document) -> Document:
        self.fails("create", kind)
        metadata = manifest["metadata"]
        if kind == "Event":
            name = f"{metadata['generateName']}{len(self.events)}"
            self.events[name] = {"apiVersion": "v1", "kind": kind} | manifest
            return manifest | {"metadata": {"name": name}}
        if self.get(kind, metadata["name"]) is not None:
            raise self._error(409, "AlreadyExists")
        created = {"apiVersion": "ceph.rook.io/v1", "kind": kind} | manifest
        return self._noted(self._kube.put(_encoded({**created, "metadata": metadata | {"namespace": self.namespace}})))

    def replace(self, kind: str, manifest: Document) -> Document:
        def with_status(old: Document) -> Document:
            return manifest | ({"status": old["status"]} if "status" in old else {})

        return self._change("replace", kind, manifest["metadata"]["name"], with_status)

    def patch(self, kind: str, name: str, patch: Document) -> Document:
        if kind != "Event":
            return self._change("patch", kind, name, lambda old: merged(old, patch))
        self.fails("patch", kind)
        self.events[name] |= patch
        return self.events[name]

    def patch_status(self, kind: str, name: str, status: Document) -> Document:
        return self._change("patch", kind, name, lambda old: merged(old, {"status": status}))

    def delete(self, kind: str, name: str) -> None:
        found = self.get(kind, name)
        if found is not None:
            self._kube._delete(Key(Kind.of(found), self.namespace, name), foreground=False)
            self._noted(self.get(kind, name) or {})

    def _change(self, verb: str, kind: str, name: str, change: Callable[[Document], Document]) -> Document:
        self.fails(verb, kind)
        old = self.get(kind, name)
        assert old is not None
        return self._noted(self._kube._replace(Key(Kind.of(old), self.namespace, name), _encoded(change(old))))

    def _noted(self, obj: Document) -> Document:
        """Add the state of an object to its history, if it is another one."""
        if obj.get("metadata", {}).get("finalizers"):
            states, state = self.history.setdefault(obj["metadata"]["name"], []), state_of(obj)
            if state not in states[-1:]:
                states.append(state)
        return obj


def _encoded(obj: Document) -> Document:
    """Return a Secret as the API server stores it."""
    texts = {field: b64encode(text.encode()).decode() for field, text in obj.get("stringData", {}).items()}
    stored = {field: value for field, value in obj.items() if field != "stringData"}
    return stored | ({"data": stored.get("data", {}) | texts} if texts else {})


def state_of(obj: Document) -> Document:
    """Return generation, finalizers and status of an object, without the times of conditions."""
    metadata, status = obj["metadata"], deepcopy(obj.get("status", {}))
    for condition in status.get("conditions", ()):
        for time in _TIMES:
            condition.pop(time, None)
    return {"generation": metadata["generation"], "finalizers": metadata.get("finalizers", []), "status": status}


class NamesOfCeph:
    """What the stand-in's commands make in Ceph, by name.

    Attributes:
        commands: all that were run.
        keys: entity -> its key.
        next_keys: entity -> the keys that it gets, one after the other.
        content: what prevents the deletion of pools and file systems: an image, or a subvolume in the group `g1`.

    """

    def __init__(self, modules: Modules, version: str, *, pool_id: int = 1) -> None:
        self._error = modules["ceph"].CommandError
        self._profile = rook("erasure-code-profile", version)
        self._pool_id = pool_id
        self._pools: list[str] = []
        self._file_systems: list[str] = []
        self.commands: list[str] = []
        self.keys: dict[str, str] = {}
        self.next_keys: dict[str, list[str]] = {}
        self.content = False

    def run(self, *command: str, seconds: float | None = 60) -> str:
        group, *arguments = command[1:] if command[0] == "ceph" else command
        self.commands.append(" ".join((group, *arguments)))
        answers: Mapping[str, Callable[..., str]] = {
            "auth": self._auth,
            "fs": self._fs,
            "osd": self._osd,
            "rbd": self._rbd,
        }
        return answers[group](*arguments) if group in answers else ""

    def _osd(self, *arguments: str) -> str:
        match arguments:
            case ("pool", *rest):
                return self._pool(*rest)
            case ("erasure-code-profile", "get", "default", *_):
                return self._profile
            case ("crush", "rule", "create-replicated", *_, "nvme"):
                raise self._error("Error EINVAL: device class nvme does not exist", "exit status 22")
            case ("crush", "rule", "ls", *_):
                return json.dumps(self._pools)
        return ""

    def _rbd(self, *arguments: str) -> str:
        match arguments:
            case ("pool", "init", name) if "42" in name:
                raise self._error("", "signal: interrupt")
            case ("pool", "stats", *_):
                return json.dumps({"images": {"count": int(self.content), "snap_count": 0}})
        return ""

    def _auth(self, verb: str, entity: str, *arguments: str) -> str:
        if verb == "get-key" and entity not in self.keys:
            raise self._error("Error ENOENT: failed to find client", "exit status 2")
        if verb in {"get-or-create-key", "rotate"}:
            if {"profile nonsense", "allow xyz", "allow nonsense pool=bench-rep1"} & {*arguments}:
                raise self._error("Error EINVAL: bad cap", "exit status 22")
            self.keys[entity] = self.next_keys[entity].pop(0)
        answer = {"entity": entity, "key": self.keys.get(entity, "")}
        return json.dumps([answer] if verb == "rotate" else answer)

    def _fs(self, *arguments: str) -> str:
        match arguments:
            case ("ls", *_):
                return json.dumps([{"name": name} for name in self._file_systems])
            case ("new", name, *_):
                self._file_systems.append(name)
            case ("subvolumegroup", "ls", *_):
                return json.dumps([{"name": "g1"}])
            case ("subvolume", "ls", *_):
                return json.dumps([{"name": "volume"}] * self.content)
        return ""

    def _pool(self, *arguments: str) -> str:
        match arguments:
            case ("create", name, *_):
                self._pools.append(name)
            case ("rm", name, *_):
                self._pools.remove(name)
            case ("ls", "detail", *_):
                return json.dumps([{"pool_name": name, "pool_id": self._pool_id} for name in self._pools])
            case ("ls", *_):
                return json.dumps(self._pools)
            case ("set", _, "pg_num" | "nonsense" | "no_such_parameter", value) if not value.isdigit():
                raise self._error("Error EINVAL", "exit status 22")
        return ""


def times_of(event: Mapping[str, Any]) -> int:
    return int(event.get("count") or (event.get("series") or {"count": 1})["count"])


class Play:
    """One controller of the stand-in, with a clock of its own."""

    def __init__(
        self, modules: Modules, monkeypatch: pytest.MonkeyPatch, version: str, kind: str, *, pool_id: int = 1
    ) -> None:
        """Have the controller of a kind see to objects as that Rook did."""
        self.api, self.ceph = Objects(modules, version), NamesOfCeph(modules, version, pool_id=pool_id)
        release = release_of(modules, version)
        controllers = {
            "CephBlockPool": lambda: modules["pools"].Pools(self.api, release, 0.0),
            "CephFilesystem": lambda: modules["file_systems"].FileSystems(self.api, release, 0.0),
            "CephClient": lambda: modules["clients"].Clients(self.api, release),
        }
        self.kind = kind
        self._now = self._until = 0.0
        clock = SimpleNamespace(monotonic=lambda: self._now, sleep=self._sleep)
        monkeypatch.setattr(modules["worker"], "time", clock)
        monkeypatch.setattr(modules["ceph"], "run", self.ceph.run)
        self._worker = modules["worker"].Worker(self.api, controllers[kind]())

    def create(self, name: str, spec: Mapping[str, Any]) -> None:
        self.api.create(self.kind, {"metadata": {"name": name}, "spec": deepcopy(spec)})

    def change(self, name: str, spec: Mapping[str, Any]) -> None:
        """Merge a patch into the specification of an object, and have the controller see to it."""
        self.api.patch(self.kind, name, {"spec": spec})
        self.work()

    def work(self, seconds: float = 5.0) -> None:
        """Let time pass: enough for three attempts by default."""
        self._until = self._now + seconds
        with suppress(TimeoutError):
            self._worker.run()

    def object(self, name: str) -> Document:
        found = self.api.get(self.kind, name)
        assert found is not None
        return found

    def events(self) -> list[tuple[str, str, str, int]]:
        """Return type, reason, message and count of all events, in order."""
        events = self.api.events.values()
        return [(event["type"], event["reason"], event["message"], times_of(event)) for event in events]

    def _sleep(self, seconds: float) -> None:
        self._now += seconds
        if self._now >= self._until:
            raise TimeoutError
