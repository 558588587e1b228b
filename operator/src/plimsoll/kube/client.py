"""The port, implemented with `kubernetes.aio`, which only this module and `plimsoll.kube.connection` import."""

import asyncio
import os
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from functools import lru_cache, partial
from http import HTTPStatus
from types import TracebackType
from typing import Any, Self, TypeVar, Unpack

import aiohttp
import msgspec
from kubernetes.aio.client import ApiClient
from kubernetes.aio.client.exceptions import ApiException
from kubernetes.aio.dynamic import DynamicClient

from plimsoll import __version__
from plimsoll.kube import port
from plimsoll.kube.connection import ApiClock, Guard, Resource, connect
from plimsoll.kube.port import Keep, Kind, Kube, Object, Selection, Shape, Version

ACCEPT_JSON = {"Accept": "application/json"}
ACCEPT_TABLE = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
ACCEPT_METADATA = {"Accept": "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"}
ACCEPT_METADATA_LIST = {
    "Accept": "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
    # Within a cluster, compression costs both sides more than the bytes.
    "Accept-Encoding": "identity",
}

FIELD_MANAGER = "plimsoll"  # the owner of fields that Plimsoll sets
PAGE_SIZE = 100  # objects in one answer. Decoding it blocks the event loop for some milliseconds.
METADATA_PAGE_SIZE = 500  # the same for metadata, which is smaller and decoded faster
MAX_ANSWER_BYTES = 8 << 20  # of one answer, and of one change that a watch reports. A stored object has at most 3 MiB.
MAX_ANSWERS = 8  # answers in memory at once, which are decoded one after the other
Observer = Callable[[str, float, str | None], None]
"""Called after every request with its verb, its seconds, and how it failed: the HTTP status, an empty text without an
answer, or None if it succeeded."""

_TIMEOUT = aiohttp.ClientTimeout(total=30, connect=10)
_MERGE_PATCH, _JSON_PATCH = "application/merge-patch+json", "application/json-patch+json"
_FIELD_MANAGER = ("fieldManager", FIELD_MANAGER)

_WATCH_SECONDS = 600
_WATCH_TIMEOUT = aiohttp.ClientTimeout(total=_WATCH_SECONDS + 60, connect=10)
_WATCH = (("watch", "true"), ("timeoutSeconds", str(_WATCH_SECONDS)))

Query = Sequence[tuple[str, str]]
T = TypeVar("T")

_CHANGES = frozenset({"ADDED", "MODIFIED", "DELETED"})


class _Entry(msgspec.Struct):
    metadata: Version


class _Change(msgspec.Struct):
    type: str
    object: msgspec.Raw


_CHANGE = msgspec.json.Decoder(_Change)


@lru_cache
def _decoder(shape: Shape | None, *, of_list: bool = False) -> msgspec.json.Decoder[Any]:
    item: Any = dict[str, Any] if shape is None else shape  # a type at run time
    if not of_list:
        return msgspec.json.Decoder(item)
    items = list[item] | None
    return msgspec.json.Decoder(
        msgspec.defstruct("ObjectList", [("metadata", dict[str, Any], {}), ("items", items, None)])
    )


def _object(kind: Kind, decoded: object) -> Object:
    """Return a decoded object as plain dictionaries, with its kind, which lists leave out."""
    fields = decoded if isinstance(decoded, dict) else msgspec.to_builtins(decoded)
    return {"apiVersion": kind.api_version, "kind": kind.kind, **fields}


async def lines(stream: aiohttp.StreamReader) -> AsyncGenerator[bytes]:
    """Yield the lines of a stream, without those that are longer than an answer may be."""
    line, is_too_long = bytearray(), False
    async for chunk in stream.iter_any():
        *ends, rest = chunk.split(b"\n")
        for end in ends:
            if not is_too_long and len(line) + len(end) <= MAX_ANSWER_BYTES:
                yield bytes(line + end)
            line, is_too_long = bytearray(), False
        is_too_long = is_too_long or len(line) + len(rest) > MAX_ANSWER_BYTES
        line = bytearray() if is_too_long else line + rest


def selectors(labels: Mapping[str, str] | None, fields: Mapping[str, str] | None) -> Query:
    both = (("labelSelector", labels), ("fieldSelector", fields))
    return [(name, ",".join(f"{key}={value}" for key, value in wanted.items())) for name, wanted in both if wanted]


class AioKube(Kube):
    """A connection to one API server with that `clock`: `async with AioKube() as kube`. Its verbs are `Kube`'s."""

    _client: DynamicClient
    _api: ApiClient

    def __init__(
        self,
        *,
        kubeconfig: str | None = None,
        context: str | None = None,
        observer: Observer | None = None,
        guard: Guard | None = None,
        read_seconds: float = 0.0,
    ) -> None:
        """Use the given kubeconfig, $KUBECONFIG, the pod's credentials, or ~/.kube/config, in this order.

        `context` selects a context of the file, by default its current one; a pod's credentials have none. `guard` is
        called before every request. `read_seconds`: for how long a read that fails is repeated, page by page of a list.
        """
        self._kubeconfig = kubeconfig or os.environ.get("KUBECONFIG")
        self._context = context
        self._observer = observer
        self._guard = guard
        self._read_seconds = read_seconds
        self._resources: dict[Kind, Resource] = {}
        self._answers = asyncio.Semaphore(MAX_ANSWERS)
        self.clock = ApiClock()

    async def __aenter__(self) -> Self:
        self._api = await connect(self._kubeconfig, self._context, self.clock, self._guard)
        self._api.user_agent = f"plimsoll/{__version__}"
        # Not awaited, as its documentation says: that would start the library's discovery.
        self._client = DynamicClient(self._api)  # type: ignore[no-untyped-call]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._api.close()  # type: ignore[no-untyped-call]

    async def get(
        self, kind: Kind, name: str, namespace: str | None = None, *, shape: Shape | None = None
    ) -> Object | None:
        resource = await self._resource(kind)
        asked = _asked("get", kind, name, namespace)
        take = partial(self._read, _decoder(shape).decode, asked)
        try:
            decoded = await self._request("get", resource.single(name, namespace), kind, asked, take)
        except port.NotFoundError:
            return None
        return _object(kind, decoded)

    async def list(self, kind: Kind, *, keep: Keep | None = None, **selection: Unpack[Selection]) -> Sequence[Object]:
        objects: list[Object] = []
        async for items, _, is_first in self._pages(kind, PAGE_SIZE, selection):
            if is_first:
                objects.clear()
            objects += (obj for obj in (_object(kind, item) for item in items) if keep is None or keep(obj))
        return objects

    async def versions(
        self, kind: Kind, *, namespace: str | None = None, labels: Mapping[str, str] | None = None
    ) -> Sequence[Version]:
        return (await self._versions(kind, namespace, labels))[0]

    async def changes(self, kind: Kind, *, namespace: str | None = None) -> AsyncGenerator[port.Listed | port.Changed]:
        existing, since = await self._versions(kind, namespace, None)
        yield port.Listed(existing)
        query = (("resourceVersion", since),)
        async with aclosing(self._watch(kind, namespace, query, _Entry, ACCEPT_METADATA)) as later:
            async for entry, is_gone in later:
                yield port.Changed(entry.metadata, is_gone)

    async def follow(
        self, kind: Kind, shape: Shape, *, namespace: str | None = None, labels: Mapping[str, str] | None = None
    ) -> AsyncGenerator[port.Followed]:
        # Without a resourceVersion, a watch begins with every existing object.
        async with aclosing(self._watch(kind, namespace, selectors(labels, None), shape, ACCEPT_JSON)) as later:
            async for decoded, is_gone in later:
                yield port.Followed(_object(kind, decoded), is_gone)

    async def pages(self, kind: Kind, *, size: int, **selection: Unpack[Selection]) -> AsyncIterator[Sequence[Object]]:
        async for items, *_ in self._pages(kind, size, selection):
            yield [_object(kind, item) for item in items]

    async def table(self, kind: Kind, *, namespace: str, labels: Mapping[str, str]) -> Sequence[Mapping[str, Any]]:
        """Return the rows of `kubectl get`, as column -> cell: a hundredth of the size of large objects."""
        resource = await self._resource(kind)
        query = [("includeObject", "None"), *selectors(labels, None)]
        asked = f"list {kind.kind} of {namespace}"
        answer = await self._ask("get", resource.collection(namespace), kind, asked, query=query, accept=ACCEPT_TABLE)
        names = [column["name"] for column in answer.get("columnDefinitions") or ()]
        return [dict(zip(names, row["cells"], strict=True)) for row in answer.get("rows") or ()]

    async def create(self, obj: Object, *, dry_run: bool = False) -> bool:
        kind, name, namespace = Kind.of(obj), obj["metadata"]["name"], obj["metadata"].get("namespace")
        resource = await self._resource(kind)
        asked = _asked("dry run of" if dry_run else "create", kind, name, namespace)
        resource.single(name, namespace)  # raises without a name or namespace
        query = [_FIELD_MANAGER, *([("dryRun", "All"), ("fieldValidation", "Strict")] if dry_run else [])]
        try:
            await self._ask("post", resource.collection(namespace), kind, asked, body=obj, query=query)
        except port.ConflictError as error:
            if error.already_exists:
                return False
            raise
        return True

    async def patch(self, kind: Kind, name: str, namespace: str | None, patch: Object) -> Object:
        return await self._patch(kind, name, namespace, patch, _MERGE_PATCH)

    async def patch_status(
        self, kind: Kind, name: str, namespace: str | None, status: Object, *, version: str | None = None
    ) -> Object:
        # A merge patch would keep the old keys of a mapping, but a JSON patch cannot add fields to a missing status.
        operations: list[Object] = []
        if version is not None:
            operations.append({"op": "add", "path": "/metadata/resourceVersion", "value": version})
        for field, value in status.items():
            path = f"/status/{field}"
            operations.append({"op": "add", "path": path, "value": value})
            if value is None:
                operations.append({"op": "remove", "path": path})
        try:
            return await self._patch(kind, name, namespace, operations, _JSON_PATCH, subresource="/status")
        except port.InvalidError:
            merged = {"status": status, **({} if version is None else {"metadata": {"resourceVersion": version}})}
            return await self._patch(kind, name, namespace, merged, _MERGE_PATCH, subresource="/status")

    async def delete(
        self, kind: Kind, name: str, namespace: str | None = None, *, uid: str | None = None, foreground: bool = False
    ) -> bool:
        resource = await self._resource(kind)
        # Without a policy the dependents of a Job would be orphaned.
        options: dict[str, Any] = {"propagationPolicy": "Foreground" if foreground else "Background"}
        if uid is not None:
            options["preconditions"] = {"uid": uid}
        path, asked = resource.single(name, namespace), _asked("delete", kind, name, namespace)
        try:
            await self._ask("delete", path, kind, asked, body=options)
        except port.NotFoundError:
            return False
        except port.ConflictError:
            obj = None if uid is None else await self.get(kind, name, namespace)
            if uid is None or (obj is not None and obj["metadata"]["uid"] == uid):
                raise
            return False
        return True

    async def review(self, review: Object) -> Object:
        """Return the answer to an object that is not stored, such as a SelfSubjectAccessReview."""
        kind = Kind.of(review)
        resource = await self._resource(kind)
        return await self._ask("post", resource.collection(None), kind, f"create {kind.kind}", body=review)

    async def version(self) -> str:
        return str((await self._fetch("/version")).get("gitVersion", ""))

    async def _versions(
        self, kind: Kind, namespace: str | None, labels: Mapping[str, str] | None
    ) -> tuple[Sequence[Version], str]:
        """Return the versions of the objects with these labels, and the version of the list."""
        # Without the managed fields, which are most of its bytes.
        selection: Selection = {"namespace": namespace, "labels": labels, "shape": _Entry}
        versions: list[Version] = []
        version = ""
        async for items, of_list, is_first in self._pages(kind, METADATA_PAGE_SIZE, selection, ACCEPT_METADATA_LIST):
            if is_first:
                versions.clear()
            versions += (entry.metadata for entry in items)
            version = of_list
        return versions, version

    async def _pages(
        self, kind: Kind, size: int, selection: Selection, accept: Mapping[str, str] = ACCEPT_JSON
    ) -> AsyncGenerator[tuple[Sequence[Any], str, bool]]:
        """Yield the items of each page of a list, its version, and whether it is the first: a list may begin again."""
        resource, namespace = await self._resource(kind), selection.get("namespace")
        asked = f"list {kind.kind} of {namespace or 'all namespaces'}"
        take = partial(self._read, _decoder(selection.get("shape"), of_list=True).decode, asked)
        selected, path = selectors(selection.get("labels"), selection.get("fields")), resource.collection(namespace)
        limit, token = size, ""
        while True:
            query = [("limit", str(limit)), *selected, *([("continue", token)] if token else [])]
            try:
                answer = await self._request("get", path, kind, asked, take, query=query, accept=accept)
            except port.TooLargeError:
                if limit == 1:
                    raise
                limit = max(1, limit // 10)
            except _ExpiredError:
                token = ""
            else:
                yield answer.items or (), answer.metadata.get("resourceVersion", ""), not token
                limit, token = size, answer.metadata.get("continue", "")
                if not token:
                    return

    async def _watch(
        self, kind: Kind, namespace: str | None, query: Query, shape: type[T], accept: Mapping[str, str]
    ) -> AsyncGenerator[tuple[T, bool]]:
        """Yield what a watch reports, and whether it is gone, until the watch ends. Raises TransientError."""

        async def unread(response: aiohttp.ClientResponse) -> aiohttp.ClientResponse:
            return response

        asked = f"watch {kind.kind} of {namespace or 'all namespaces'}"
        path, query = (await self._resource(kind)).collection(namespace), [*_WATCH, *query]
        request = partial(self._request, "get", path, kind, asked, unread, query=query, accept=accept)
        stream, decode = await request(patience=_WATCH_TIMEOUT), msgspec.json.Decoder(shape).decode
        try:
            async for line in lines(stream.content):
                change = _CHANGE.decode(line)
                if change.type not in _CHANGES:
                    # The resourceVersion has expired: the caller has to list again.
                    return
                yield decode(change.object), change.type == "DELETED"
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            raise port.TransientError(asked, str(error) or type(error).__name__) from error
        finally:
            stream.close()

    async def _read(self, parse: Callable[[bytes], T], asked: str, response: aiohttp.ClientResponse) -> T:
        """Return the decoded body of an answer. Raises TooLargeError, and ValueError if it is not JSON."""
        if "json" not in response.content_type:
            response.close()
            raise ValueError(f"the answer is {response.content_type or 'of no type'}, not JSON")
        async with self._answers:
            body = bytearray()
            async for chunk in response.content.iter_any():
                body += chunk
                if len(body) > MAX_ANSWER_BYTES:
                    response.close()
                    raise port.TooLargeError(asked, f"the answer has more than {MAX_ANSWER_BYTES >> 20} MiB")
            return parse(bytes(body))

    async def _patch(
        self,
        kind: Kind,
        name: str,
        namespace: str | None,
        patch: Object | Sequence[Object],
        content_type: str,
        *,
        subresource: str = "",
    ) -> Object:
        resource = await self._resource(kind)
        return await self._ask(
            "patch",
            resource.single(name, namespace) + subresource,
            kind,
            _asked("patch status of" if subresource else "patch", kind, name, namespace),
            body=patch,
            content_type=content_type,
            query=[_FIELD_MANAGER],
        )

    async def _resource(self, kind: Kind) -> Resource:
        """Return the paths of a kind, which are looked up once. UnknownKindError: the API server does not serve it."""
        if kind not in self._resources:
            root = f"/apis/{kind.api_version}" if "/" in kind.api_version else f"/api/{kind.api_version}"
            document: Mapping[str, Any] = {}
            with suppress(port.UnknownKindError):
                document = await self._fetch(root)
            for entry in document.get("resources") or ():
                if "/" not in entry["name"]:  # not a subresource
                    key = Kind(api_version=kind.api_version, kind=entry["kind"])
                    self._resources[key] = Resource(root=root, plural=entry["name"], namespaced=entry["namespaced"])
        if kind not in self._resources:
            asked = f"look up {kind.kind} of {kind.api_version}"
            words = "the API server does not serve this kind; install its CRD or API service"
            raise port.UnknownKindError(asked, words)
        return self._resources[kind]

    async def _fetch(self, path: str) -> Mapping[str, Any]:
        return await self._ask("get", path, None, f"get {path}")

    async def _ask(
        self,
        method: str,
        path: str,
        kind: Kind | None,
        asked: str,
        *,
        body: Object | Sequence[Object] | None = None,
        content_type: str = "application/json",
        **options: Any,  # noqa: ANN401 - those of `_request`
    ) -> dict[str, Any]:
        take = partial(self._read, _decoder(None).decode, asked)
        return await self._request(method, path, kind, asked, take, body=body, content_type=content_type, **options)

    async def _request(
        self,
        method: str,
        path: str,
        kind: Kind | None,
        asked: str,
        take: Callable[[aiohttp.ClientResponse], Awaitable[T]],
        *,
        query: Query = (),
        accept: Mapping[str, str] = ACCEPT_JSON,
        patience: aiohttp.ClientTimeout | None = None,
        **more: Any,  # noqa: ANN401 - the library's
    ) -> T:
        async def send() -> T:
            begin, refusal, observe = time.monotonic(), None, self._observer
            try:
                response = await self._client.request(
                    method,
                    path,
                    query_params=list(query),
                    header_params=dict(accept),
                    _request_timeout=patience or _TIMEOUT,
                    serialize=False,
                    **more,
                )
                answer = await take(response)
            except ApiException as error:
                refusal = str(error.status or "")
                failure = port.error_of(asked, error.status or 0, error.body or "", error.headers or {})
                failure = _ExpiredError(asked, "expired") if error.status == HTTPStatus.GONE else failure
            except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
                refusal = ""
                raise port.TransientError(asked, str(error) or type(error).__name__) from error
            except asyncio.CancelledError:
                observe = None  # neither answered nor refused
                raise
            else:
                return answer
            finally:
                if observe is not None:
                    observe(asked.partition(" ")[0], time.monotonic() - begin, refusal)
            if kind is not None and isinstance(failure, port.UnknownKindError):
                self._resources.pop(kind, None)
            raise failure

        seconds = self._read_seconds if method == "get" else 0.0
        return await port.persist(send, seconds=seconds, attempts=port.READ_ATTEMPTS)


class _ExpiredError(port.ApiError):
    """The continue token of a list has expired."""


def _asked(verb: str, kind: Kind, name: str, namespace: str | None) -> str:
    return f"{verb} {kind.kind} {namespace}/{name}" if namespace else f"{verb} {kind.kind} {name}"
