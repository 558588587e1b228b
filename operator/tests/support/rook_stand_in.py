"""Runs the stand-in for Rook (e2e/rook) without a cluster: on objects in memory, and a Ceph that only keeps names."""

import importlib
import json
import sys
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from copy import deepcopy
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from support.goldens import NEW_ROOK, OLD_ROOK, ceph, rook, rook_object

Document = dict[str, Any]
Modules = Mapping[str, ModuleType]

_CONTROLLER = Path(__file__).parents[3] / "e2e" / "rook" / "controller"
_MODULES = [path.stem for path in _CONTROLLER.glob("*.py")]
_RECORDED_WITH = {OLD_ROOK: "18.2", NEW_ROOK: "20.2"}
_TIMES = ("lastHeartbeatTime", "lastTransitionTime")


@contextmanager
def loaded_stand_in() -> Iterator[Modules]:
    """Load the program's modules beside each other, as in its pod; by name."""
    names = (*_MODULES, "rados")
    before = {name: sys.modules.pop(name) for name in names if name in sys.modules}
    sys.path.insert(0, str(_CONTROLLER))
    sys.modules["rados"] = ModuleType("rados")
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


def merged(old: Mapping[str, Any], patch: Mapping[str, Any]) -> Document:
    """Return an object with a merge patch applied (RFC 7386)."""
    changed = {
        name: merged(old.get(name) or {}, value) if isinstance(value, dict) else value for name, value in patch.items()
    }
    return {name: value for name, value in {**old, **changed}.items() if value is not None}


class Objects:
    """The API server of one namespace.

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
        self._objects: dict[tuple[str, str], Document] = {("CephCluster", "rook-ceph"): cluster}
        self._version = 0
        self.history: dict[str, list[Document]] = {}
        self.events: dict[str, Document] = {}
        self.fails: Callable[[str, str], None] = lambda verb, kind: None  # noqa: ARG005 - for an answer

    def list(self, kind: str) -> list[Document]:
        self.fails("list", kind)
        return [deepcopy(obj) for (found, _), obj in self._objects.items() if found == kind]

    def get(self, kind: str, name: str) -> Document | None:
        return deepcopy(self._objects.get((kind, name)))

    def create(self, kind: str, manifest: Document) -> Document:
        self.fails("create", kind)
        metadata = manifest["metadata"]
        if kind == "Event":
            name = f"{metadata['generateName']}{len(self.events)}"
            self.events[name] = {"apiVersion": "v1", "kind": kind} | manifest
            return manifest | {"metadata": {"name": name}}
        if (kind, metadata["name"]) in self._objects:
            raise self._error(409, "AlreadyExists")
        own = {"uid": f"uid-{len(self._objects)}", "generation": 1, "namespace": self.namespace}
        created = {"apiVersion": "ceph.rook.io/v1", "kind": kind} | manifest
        return self._store(created | {"metadata": {"creationTimestamp": "", **metadata, **own}})

    def replace(self, kind: str, manifest: Document) -> Document:
        self.fails("replace", kind)
        status = self._objects[kind, manifest["metadata"]["name"]].get("status")
        return self._store(manifest | ({"status": status} if status else {}))

    def patch(self, kind: str, name: str, patch: Document) -> Document:
        self.fails("patch", kind)
        if kind == "Event":
            self.events[name] |= patch
            return self.events[name]
        return self._store(merged(self._objects[kind, name], patch))

    def patch_status(self, kind: str, name: str, status: Document) -> Document:
        self.fails("patch", kind)
        return self._store(merged(self._objects[kind, name], {"status": status}))

    def delete(self, kind: str, name: str) -> None:
        found = self.get(kind, name)
        if found is not None:
            self._store(merged(found, {"metadata": {"deletionTimestamp": "2026-11-26T22:15:16Z"}}))

    def _store(self, changed: Document) -> Document:
        changed = deepcopy(changed)
        key, metadata = (changed["kind"], changed["metadata"]["name"]), changed["metadata"]
        before = self._objects.get(key)
        if before == changed:
            return deepcopy(changed)
        self._version += 1
        is_deleted = "deletionTimestamp" in metadata
        if before is not None:
            was_deleted = "deletionTimestamp" in before["metadata"]
            newer = changed.get("spec") != before.get("spec") or is_deleted != was_deleted
            metadata["generation"] = before["metadata"]["generation"] + newer
        metadata["resourceVersion"] = str(self._version)
        if is_deleted and not metadata.get("finalizers"):
            del self._objects[key]
            return changed
        for field, text in changed.pop("stringData", {}).items():
            changed.setdefault("data", {})[field] = b64encode(text.encode()).decode()
        self._objects[key] = changed
        if metadata.get("finalizers"):
            states = self.history.setdefault(metadata["name"], [])
            state = state_of(changed)
            if state not in states[-1:]:
                states.append(state)
        return deepcopy(changed)


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
        return [
            (
                event["type"],
                event["reason"],
                event["message"],
                event.get("count") or (event.get("series") or {"count": 1})["count"],
            )
            for event in self.api.events.values()
        ]

    def _sleep(self, seconds: float) -> None:
        self._now += seconds
        if self._now >= self._until:
            raise TimeoutError


def key_in(secret: Document, field: str = "userKey") -> str:
    return b64decode(secret["data"][field]).decode()


def is_subsequence(states: Sequence[Any], recorded: Sequence[Any]) -> bool:
    """Whether all states are among the recorded ones, in their order."""
    remaining = iter(recorded)
    return all(state in remaining for state in states)
