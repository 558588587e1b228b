"""A Kubernetes API in memory, with the garbage collector that a bare API server lacks. Its watches poll.

tests/kube/test_contract.py asks it and a real API server the same questions. Whoever plays a controller uses the port
too, `patch_status` above all, or `put` for objects that come with a status, such as pods.
"""

import asyncio
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar

import msgspec

from plimsoll.api.status import format_time
from plimsoll.kube.port import (
    READ_ATTEMPTS,
    ApiError,
    Changed,
    ConflictError,
    Followed,
    InvalidError,
    Keep,
    Kind,
    Listed,
    NotFoundError,
    Object,
    Shape,
    TerminatingError,
    UnknownKindError,
    Version,
    persist,
)

T = TypeVar("T")

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


def copy_of(value: T) -> T:
    """Return a copy of a JSON value, as an API server sends it; several times as fast as `deepcopy`."""
    return _decode(_encode(value))  # type: ignore[no-any-return] # a JSON value is one again


def shaped(obj: Mapping[str, Any], shape: Shape | None) -> Any:
    """Return a copy of an object, with the fields of that shape only."""
    if shape is None:
        return copy_of(obj)
    fields = msgspec.to_builtins(msgspec.convert(obj, shape))
    return {"apiVersion": obj["apiVersion"], "kind": obj["kind"], **copy_of(fields)}


def version_of(obj: Object) -> Version:
    return msgspec.convert(obj["metadata"], Version)


NAMESPACE = Kind(api_version="v1", kind="Namespace")
FOREGROUND = "foregroundDeletion"

Document = dict[str, Any]

_POLL_SECONDS = 0.005


@dataclass(frozen=True, slots=True)
class Traits:
    namespaced: bool = True
    has_status: bool = True


_CLUSTER_WIDE = {"CSIDriver", "Namespace", "Node", "PersistentVolume", "StorageClass"}
_ACCESS = {"NetworkPolicy", "Role", "RoleBinding", "ServiceAccount"}
_WITHOUT_STATUS = {"CSIDriver", "ConfigMap", "Event", "Lease", "Secret", "StorageClass"} | _ACCESS
_KINDS = {
    "v1": "ConfigMap Event Namespace Node PersistentVolume PersistentVolumeClaim Pod Secret Service ServiceAccount",
    "apps/v1": "Deployment",
    "batch/v1": "Job",
    "coordination.k8s.io/v1": "Lease",
    "networking.k8s.io/v1": "NetworkPolicy",
    "rbac.authorization.k8s.io/v1": "Role RoleBinding",
    "storage.k8s.io/v1": "CSIDriver StorageClass",
    "plimsoll.dev/v1alpha1": "BenchmarkResult BenchmarkRun BenchmarkSuite",
    "ceph.rook.io/v1": "CephBlockPool CephClient CephCluster CephFilesystem",
}
KINDS: Mapping[Kind, Traits] = {
    Kind(api_version=version, kind=kind): Traits(kind not in _CLUSTER_WIDE, kind not in _WITHOUT_STATUS)
    for version, kinds in _KINDS.items()
    for kind in kinds.split()
}


@dataclass(frozen=True, slots=True)
class Key:
    kind: Kind
    namespace: str | None
    name: str

    def __str__(self) -> str:
        return f"{self.kind.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind.kind} {self.name}"


class FakeKube:
    """`plimsoll.kube.port.Kube` without a server.

    Attributes:
        kinds: those that are known; take one away and its CRD is not installed.
        requests: every request so far, as `create Job default/run-client-0`.
        interfere: called with each request before it is served; what it raises is the answer.
        read_seconds: as of `AioKube`.

    """

    def __init__(
        self,
        *,
        namespaces: Sequence[str] = ("default",),
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        interfere: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.kinds = dict(KINDS)
        self.requests: list[str] = []
        self.interfere = interfere
        self.read_seconds = 0.0
        self._now = now
        self._version = 0
        self._objects: dict[Key, Document] = {}
        for namespace in namespaces:
            self.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})

    # The port

    async def get(
        self, kind: Kind, name: str, namespace: str | None = None, *, shape: Shape | None = None
    ) -> Object | None:
        key = await self._request("get", kind, namespace, name)
        obj = self._objects.get(key)
        return None if obj is None else shaped(obj, shape)

    async def list(
        self,
        kind: Kind,
        *,
        namespace: str | None = None,
        labels: Mapping[str, str] | None = None,
        fields: Mapping[str, str] | None = None,
        shape: Shape | None = None,
        keep: Keep | None = None,
    ) -> Sequence[Object]:
        await self._enter(f"list {kind.kind} {namespace or ''}".strip(), kind)
        found = [obj for key, obj in self._objects.items() if key.kind == kind and namespace in {None, key.namespace}]

        def is_selected(obj: Document) -> bool:
            own = obj["metadata"].get("labels", {})
            has_labels = all(own.get(name) == value for name, value in (labels or {}).items())
            return has_labels and all(field_at(obj, path) == value for path, value in (fields or {}).items())

        objects = [shaped(obj, shape) for obj in found if is_selected(obj)]
        return [obj for obj in objects if keep is None or keep(obj)]

    async def versions(self, kind: Kind, **selection: Any) -> Sequence[Version]:
        return [version_of(obj) for obj in await self.list(kind, **selection)]

    async def changes(self, kind: Kind, *, namespace: str | None = None) -> AsyncGenerator[Listed | Changed]:
        known = {version.uid: version for version in await self.versions(kind, namespace=namespace)}
        yield Listed([*known.values()])
        while True:
            found = (version_of(obj) for key, obj in self._objects.items() if key.kind == kind)
            there = {version.uid: version for version in found if namespace in {None, version.namespace}}
            for uid in known.keys() - there.keys():
                yield Changed(known[uid], is_gone=True)
            for uid, version in there.items():
                if known.get(uid) != version:
                    yield Changed(version)
            known = there
            await asyncio.sleep(_POLL_SECONDS)

    async def follow(
        self, kind: Kind, shape: Shape, *, namespace: str | None = None, labels: Mapping[str, str] | None = None
    ) -> AsyncGenerator[Followed]:
        known: dict[str, Object] = {}
        while True:
            found = await self.list(kind, namespace=namespace, labels=labels, shape=shape)
            there = {obj["metadata"]["uid"]: obj for obj in found}
            for uid in known.keys() - there.keys():
                yield Followed(known[uid], is_gone=True)
            for uid, obj in there.items():
                if known.get(uid) != obj:
                    yield Followed(obj, is_gone=False)
            known = there
            await asyncio.sleep(_POLL_SECONDS)

    async def pages(self, kind: Kind, *, size: int, **selection: Any) -> AsyncIterator[Sequence[Object]]:
        found = await self.list(kind, **selection)
        for begin in range(0, max(len(found), 1), size):
            yield found[begin : begin + size]

    async def create(self, obj: Object, *, dry_run: bool = False) -> bool:
        verb = "dry run of" if dry_run else "create"
        key = await self._request(verb, Kind.of(obj), obj["metadata"].get("namespace"), obj["metadata"]["name"])
        if key in self._objects:
            return False
        if dry_run:
            self._check_namespace(key, verb)
        else:
            self._check_namespace(key)
            self._check_role(key, obj)
            new = self._without_status(key.kind, obj)
            new["metadata"] = new["metadata"] | self._fresh_metadata()
            self._objects[key] = new
        return True

    def _check_role(self, key: Any, obj: Object) -> None:
        """Refuse to bind a Role that does not exist, unless its binder may bind all."""
        role = obj.get("roleRef", {})
        if role.get("kind") == "Role":
            wanted = Kind(api_version="rbac.authorization.k8s.io/v1", kind="Role")
            names = {each.name for each in self._objects if each.kind == wanted and each.namespace == key.namespace}
            if role["name"] not in names:
                raise NotFoundError(f"create {key}", f'roles "{role["name"]}" not found')

    async def patch(self, kind: Kind, name: str, namespace: str | None, patch: Object) -> Object:
        key = await self._request("patch", kind, namespace, name)
        old = self._copy(key, f"patch {key}")
        if patch.get("metadata", {}).get("resourceVersion") not in {None, old["metadata"]["resourceVersion"]}:
            raise ConflictError(f"patch {key}", "the object has been modified")
        return self._replace(key, merged(old, self._without_status(kind, patch)))

    async def patch_status(
        self, kind: Kind, name: str, namespace: str | None, status: Object, *, version: str | None = None
    ) -> Object:
        key = await self._request("patch status of", kind, namespace, name)
        asked = f"patch status of {key}"
        if not self.kinds[kind].has_status:
            raise UnknownKindError(asked, "not served by the API server")
        new = self._copy(key, asked)
        if version not in {None, new["metadata"]["resourceVersion"]}:
            raise ConflictError(asked, "the object has been modified")
        known = new.get("status", {}) | copy_of(dict(status))
        new["status"] = {field: value for field, value in known.items() if value is not None}
        return self._replace(key, new)

    async def delete(
        self, kind: Kind, name: str, namespace: str | None = None, *, uid: str | None = None, foreground: bool = False
    ) -> bool:
        key = await self._request("delete", kind, namespace, name)
        if key not in self._objects or uid not in {None, self._objects[key]["metadata"]["uid"]}:
            return False
        self._delete(key, foreground=foreground)
        return True

    async def version(self) -> str:
        await self._send("get /version")
        return "v1.34.0"

    # What a test does besides

    def put(self, obj: Object) -> Document:
        """Store an object as it is, its status included, with what every object has; return it."""
        key = self._key(Kind.of(obj), obj["metadata"].get("namespace"), obj["metadata"]["name"])
        new = copy_of(dict(obj))
        new["metadata"] = self._fresh_metadata() | new["metadata"]
        self._objects[key] = new
        return copy_of(new)

    def objects(self, kind: str = "", is_meant: Callable[[Document], bool] = lambda _: True) -> Sequence[Document]:
        """Return all objects, or those of a kind, in the order of their creation; only these are copied."""
        return [copy_of(obj) for obj in self._objects.values() if kind in {"", obj["kind"]} and is_meant(obj)]

    # Requests

    async def _request(self, verb: str, kind: Kind, namespace: str | None, name: str) -> Key:
        key = self._key(kind, namespace, name)
        await self._enter(f"{verb} {key}", kind)
        return key

    async def _send(self, request: str) -> None:
        async def send() -> None:
            self.requests.append(request)
            await asyncio.sleep(0)  # others get their turn, as with a real server
            self.interfere(request)

        is_read = request.startswith(("get ", "list "))
        await persist(send, seconds=self.read_seconds if is_read else 0.0, attempts=READ_ATTEMPTS)

    async def _enter(self, request: str, kind: Kind) -> None:
        await self._send(request)
        if kind not in self.kinds:
            raise UnknownKindError(request, "the API server does not serve this kind")

    def _key(self, kind: Kind, namespace: str | None, name: str) -> Key:
        namespaced = self.kinds[kind].namespaced if kind in self.kinds else namespace is not None
        no_names = {None, "", ".", ".."}
        if name in no_names or (namespaced and namespace in no_names):
            raise InvalidError(f"{kind.kind} {namespace}/{name}", "needs a name and a namespace")
        return Key(kind, namespace if namespaced else None, name)

    # Objects

    def _check_namespace(self, key: Key, verb: str = "create") -> None:
        if key.namespace is None:
            return
        namespace = self._objects.get(Key(NAMESPACE, None, key.namespace))
        if namespace is None:
            raise NotFoundError(f"{verb} {key}", f'namespaces "{key.namespace}" not found')
        if is_going(namespace):
            raise TerminatingError(f"{verb} {key}", f"namespace {key.namespace} is being terminated")

    def _fresh_metadata(self) -> Document:
        created = format_time(self._now())
        version = self._next_version()
        return {"uid": str(uuid.uuid4()), "creationTimestamp": created, "generation": 1, "resourceVersion": version}

    def _next_version(self) -> str:
        self._version += 1
        return str(self._version)

    def _without_status(self, kind: Kind, obj: Object) -> Document:
        left_out = {"status"} if self.kinds[kind].has_status else set()
        return {field: copy_of(value) for field, value in obj.items() if field not in left_out}

    def _copy(self, key: Key, asked: str) -> Document:
        if key not in self._objects:
            raise NotFoundError(asked, f'"{key.name}" not found')
        return copy_of(self._objects[key])

    def _replace(self, key: Key, new: Document) -> Document:
        """Store an object in place of an old one, if it differs; let it go if only a finalizer held it."""
        old = self._objects[key]
        if new != old:
            if _content(new) != _content(old):
                new["metadata"]["generation"] += 1
            new["metadata"]["resourceVersion"] = self._next_version()
            self._objects[key] = new
        self._settle(key)
        return copy_of(new)

    # Deletion

    def _delete(self, key: Key, *, foreground: bool) -> None:
        obj = self._objects[key]
        metadata = obj["metadata"]
        if not is_going(obj):
            metadata["deletionTimestamp"] = format_time(self._now())
            metadata["generation"] += 1
            metadata["resourceVersion"] = self._next_version()
        if foreground and FOREGROUND not in metadata.setdefault("finalizers", []):
            metadata["finalizers"].append(FOREGROUND)
        dependants = self._dependants(metadata["uid"]) if foreground else ()
        inside = [one for one in self._objects if key.kind == NAMESPACE and one.namespace == key.name]
        for other in (*dependants, *inside):
            if other in self._objects:
                self._delete(other, foreground=foreground)
        self._settle(key)

    def _settle(self, key: Key) -> None:
        """Remove an object if it is going and nothing holds it any more."""
        obj = self._objects.get(key)
        if obj is None or not is_going(obj):
            return
        metadata = obj["metadata"]
        if FOREGROUND in metadata.get("finalizers", ()):
            owners = (owner for other in self._objects.values() for owner in _owners(other))
            if not any(owner["uid"] == metadata["uid"] and owner.get("blockOwnerDeletion") for owner in owners):
                metadata["finalizers"].remove(FOREGROUND)
        inhabited = key.kind == NAMESPACE and any(one.namespace == key.name for one in self._objects)
        if metadata.get("finalizers") or inhabited:
            return
        # Those that only it owned are collected, and those let go that waited for it.
        del self._objects[key]
        for dependant in self._dependants(obj["metadata"]["uid"]):
            uids = {other["metadata"]["uid"] for other in self._objects.values()}
            if dependant in self._objects and not any(o["uid"] in uids for o in _owners(self._objects[dependant])):
                self._delete(dependant, foreground=False)
        for other in list(self._objects):
            self._settle(other)

    def _dependants(self, uid: str) -> Sequence[Key]:
        return [key for key, obj in self._objects.items() if any(owner["uid"] == uid for owner in _owners(obj))]


def failing(error: Callable[[str], ApiError], *, times: int, request: str = "") -> Callable[[str], None]:
    """Return an interference that fails the first requests that contain a text."""
    left = times

    def interfere(asked: str) -> None:
        nonlocal left
        if left > 0 and request in asked:
            left -= 1
            raise error(asked)

    return interfere


def _owners(obj: Document) -> Sequence[Document]:
    owners: Sequence[Document] = obj["metadata"].get("ownerReferences", ())
    return owners


def is_going(obj: Document) -> bool:
    return "deletionTimestamp" in obj["metadata"]


def _content(obj: Document) -> Document:
    return {field: value for field, value in obj.items() if field not in {"metadata", "status"}}


def field_at(obj: Any, path: str) -> Any:
    for part in path.split("."):
        obj = obj.get(part) if isinstance(obj, dict) else None
    return obj


def merged(old: Mapping[str, Any], patch: Mapping[str, Any]) -> Document:
    """Return an object with a merge patch applied (RFC 7386)."""
    inner = {name: value if isinstance(value := old.get(name), dict) else {} for name in patch}
    changed = {
        name: merged(inner[name], value) if isinstance(value, Mapping) else value for name, value in patch.items()
    }
    return {name: value for name, value in {**old, **changed}.items() if value is not None}
