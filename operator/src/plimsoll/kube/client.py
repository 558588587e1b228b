"""The port, implemented with `kubernetes.aio`, which only this module and `plimsoll.kube.connection` import.

They use the library's configuration, connection and dynamic requests, with plain dictionaries. There are no hidden
retries: see `plimsoll.kube.errors.persist`.
"""

import asyncio
import os
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

import aiohttp
import msgspec
from kubernetes.aio.client import ApiClient
from kubernetes.aio.client.exceptions import ApiException
from kubernetes.aio.dynamic import DynamicClient

from plimsoll import __version__
from plimsoll.kube.connection import ApiClock, Discovery, connect
from plimsoll.kube.errors import (
    ApiError,
    ConflictError,
    InvalidError,
    NotFoundError,
    TransientError,
    UnknownKindError,
    error_of,
)
from plimsoll.kube.port import Changed, Gone, Kind, Listed, Object, Version

ACCEPT_JSON = {"Accept": "application/json"}
ACCEPT_TABLE = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
ACCEPT_METADATA = {"Accept": "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"}
ACCEPT_METADATA_LIST = {
    "Accept": "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
    # Within a cluster, compression costs both sides more than the bytes.
    "Accept-Encoding": "identity",
}

FIELD_MANAGER = "plimsoll"
"""The owner of fields that Plimsoll sets."""

PAGE_SIZE = 100
"""Objects in one answer. Decoding it blocks the event loop for some milliseconds."""

METADATA_PAGE_SIZE = 500
"""The same for metadata, which is smaller and decoded faster."""

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

_CHANGES: Mapping[str, type[Changed] | type[Gone]] = {"ADDED": Changed, "MODIFIED": Changed, "DELETED": Gone}


class _Entry(msgspec.Struct):
    metadata: Version


class _MetadataList(msgspec.Struct):
    metadata: dict[str, Any] = msgspec.field(default_factory=dict)
    items: list[_Entry] | None = None


_METADATA_LIST = msgspec.json.Decoder(_MetadataList)


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """Entries of a list, the token for the next page (empty on the last), and the version of the list."""

    entries: Sequence[T]
    token: str
    version: str

    @classmethod
    def of(cls, entries: Sequence[T], metadata: Mapping[str, Any]) -> Self:
        """Return a page from its entries and the list's metadata."""
        return cls(entries, metadata.get("continue", ""), metadata.get("resourceVersion", ""))


def objects_page(kind: Kind, body: bytes) -> Page[Object]:
    """Decode a page of full objects, and add their kind, which lists leave out."""
    answer = msgspec.json.decode(body)
    both = {"apiVersion": kind.api_version, "kind": kind.kind}
    return Page.of([{**both, **item} for item in answer.get("items") or ()], answer.get("metadata", {}))


def versions_page(body: bytes) -> Page[Version]:
    """Decode a page of metadata, skipping the managed fields, which are most of its bytes."""
    answer = _METADATA_LIST.decode(body)
    return Page.of([entry.metadata for entry in answer.items or ()], answer.metadata)


def document(body: bytes) -> dict[str, Any]:
    """Decode one object."""
    obj: dict[str, Any] = msgspec.json.decode(body)
    return obj


async def read(parse: Callable[[bytes], T], response: aiohttp.ClientResponse) -> T:
    """Return the decoded body of an answer.

    Raises ValueError if it is not JSON, for example because a proxy answered.
    """
    body = await response.read()
    if "json" not in response.content_type:
        raise ValueError(f"the answer is {response.content_type or 'of no type'}, not JSON")
    return parse(body)


async def unread(response: aiohttp.ClientResponse) -> aiohttp.ClientResponse:
    """Return an answer to be read as a stream."""
    return response


async def changes(stream: aiohttp.ClientResponse, asked: str) -> AsyncGenerator[Changed | Gone]:
    """Yield the changes of a metadata watch until the API server ends it.

    Raises TransientError if the connection breaks.
    """
    try:
        async for line in stream.content:
            event = msgspec.json.decode(line)
            if event["type"] not in _CHANGES:
                # The resourceVersion has expired: the caller has to list again.
                return
            yield _CHANGES[event["type"]](Version.of(event["object"]))
    except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
        raise TransientError(asked, str(error) or type(error).__name__) from error
    finally:
        stream.close()


def selectors(labels: Mapping[str, str] | None, fields: Mapping[str, str] | None) -> Query:
    """Return the query parameters that select objects with these labels and fields."""
    both = (("labelSelector", labels), ("fieldSelector", fields))
    return [(name, ",".join(f"{key}={value}" for key, value in wanted.items())) for name, wanted in both if wanted]


def replacing(status: Mapping[str, Any], version: str | None) -> list[Object]:
    """Return a JSON patch (RFC 6902): a merge patch would keep the old keys of a mapping. None removes a field.

    With the version of the object that was read, the API server answers with a conflict if there is another one.
    """
    operations: list[Object] = []
    if version is not None:
        operations.append({"op": "add", "path": "/metadata/resourceVersion", "value": version})
    for field, value in status.items():
        path = f"/status/{field}"
        operations.append({"op": "add", "path": path, "value": value})
        if value is None:
            operations.append({"op": "remove", "path": path})
    return operations


def creating(status: Mapping[str, Any], version: str | None) -> Object:
    """Return a merge patch (RFC 7386) for an object without a status, to which the other one cannot add fields."""
    metadata = {} if version is None else {"metadata": {"resourceVersion": version}}
    return {"status": dict(status), **metadata}


class AioKube:
    """A connection to one API server: `async with AioKube() as kube`. See `plimsoll.kube.port.Kube` for the verbs.

    Attributes:
        clock: the API server's.

    """

    _client: DynamicClient
    _api: ApiClient

    def __init__(
        self, *, kubeconfig: str | None = None, context: str | None = None, observer: Observer | None = None
    ) -> None:
        """Use the given kubeconfig, $KUBECONFIG, the pod's credentials, or ~/.kube/config, in this order.

        `context` selects a context of the file, by default its current one; a pod's credentials have none.
        """
        self._kubeconfig = kubeconfig or os.environ.get("KUBECONFIG")
        self._context = context
        self._observer = observer
        self._discovery = Discovery(self._fetch)
        self.clock = ApiClock()

    async def __aenter__(self) -> Self:
        self._api = await connect(self._kubeconfig, self._context, self.clock)
        self._api.user_agent = f"plimsoll/{__version__}"
        # Not awaited, as its documentation says: that would start the library's discovery.
        self._client = DynamicClient(self._api)  # type: ignore[no-untyped-call]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._api.close()  # type: ignore[no-untyped-call]

    async def get(self, kind: Kind, name: str, namespace: str | None = None) -> Object | None:
        """Return an object; None if it does not exist."""
        resource = await self._discovery.resource(kind)
        try:
            return await self._ask("get", resource.single(name, namespace), kind, _asked("get", kind, name, namespace))
        except NotFoundError:
            return None

    async def list(
        self,
        kind: Kind,
        *,
        namespace: str | None = None,
        labels: Mapping[str, str] | None = None,
        fields: Mapping[str, str] | None = None,
    ) -> Sequence[Object]:
        """Return the objects with these labels and fields; see `Kube.list`."""
        parse = partial(objects_page, kind)
        return (await self._items(kind, namespace, selectors(labels, fields), parse, PAGE_SIZE))[0]

    async def versions(
        self, kind: Kind, *, namespace: str | None = None, labels: Mapping[str, str] | None = None
    ) -> Sequence[Version]:
        """Return the versions of the objects with these labels; see `Kube.versions`."""
        return (await self._versions(kind, namespace, selectors(labels, None)))[0]

    async def changes(self, kind: Kind, *, namespace: str | None = None) -> AsyncGenerator[Listed | Changed | Gone]:
        """Yield the existing objects, and then every change; see `Kube.changes`."""
        existing, since = await self._versions(kind, namespace, ())
        yield Listed(existing)
        asked = f"watch {kind.kind} of {namespace or 'all namespaces'}"
        resource = await self._discovery.resource(kind)
        stream = await self._request(
            "get",
            resource.collection(namespace),
            kind,
            asked,
            unread,
            query=[*_WATCH, ("resourceVersion", since)],
            accept=ACCEPT_METADATA,
            patience=_WATCH_TIMEOUT,
        )
        async with aclosing(changes(stream, asked)) as later:
            async for change in later:
                yield change

    async def pages(
        self, kind: Kind, *, size: int, namespace: str | None = None, labels: Mapping[str, str] | None = None
    ) -> AsyncIterator[Sequence[Object]]:
        """Yield the objects with these labels in pages; see `Kube.pages`."""
        token, parse = "", partial(objects_page, kind)
        while True:
            try:
                page = await self._page(kind, namespace, selectors(labels, None), parse, size, token)
            except _ExpiredError:
                token = ""
                continue
            yield page.entries
            token = page.token
            if not token:
                return

    async def table(self, kind: Kind, *, namespace: str, labels: Mapping[str, str]) -> Sequence[Mapping[str, Any]]:
        """Return the rows that `kubectl get` shows for the objects with these labels, as column -> cell.

        For large objects, a row is a hundredth of their size.
        """
        resource = await self._discovery.resource(kind)
        query = [("includeObject", "None"), *selectors(labels, None)]
        asked = f"list {kind.kind} of {namespace}"
        answer = await self._ask("get", resource.collection(namespace), kind, asked, query=query, accept=ACCEPT_TABLE)
        names = [column["name"] for column in answer.get("columnDefinitions") or ()]
        return [dict(zip(names, row["cells"], strict=True)) for row in answer.get("rows") or ()]

    async def create(self, obj: Object, *, dry_run: bool = False) -> bool:
        """Create an object; false if one with that name exists, which is not changed; see `Kube.create`."""
        kind, name, namespace = Kind.of(obj), obj["metadata"]["name"], obj["metadata"].get("namespace")
        resource = await self._discovery.resource(kind)
        asked = _asked("dry run of" if dry_run else "create", kind, name, namespace)
        resource.single(name, namespace)  # raises without a name or namespace
        query = [_FIELD_MANAGER, *([("dryRun", "All"), ("fieldValidation", "Strict")] if dry_run else [])]
        try:
            await self._ask("post", resource.collection(namespace), kind, asked, body=obj, query=query)
        except ConflictError as error:
            if error.already_exists:
                return False
            raise
        return True

    async def patch(self, kind: Kind, name: str, namespace: str | None, patch: Object) -> Object:
        """Merge a patch (RFC 7386) into an object."""
        return await self._patch(kind, name, namespace, patch, _MERGE_PATCH)

    async def patch_status(
        self, kind: Kind, name: str, namespace: str | None, status: Object, *, version: str | None = None
    ) -> Object:
        """Replace the given top-level fields of an object's status; see `Kube.patch_status`."""
        operations = replacing(status, version)
        try:
            return await self._patch(kind, name, namespace, operations, _JSON_PATCH, subresource="/status")
        except InvalidError:
            merged = creating(status, version)
            return await self._patch(kind, name, namespace, merged, _MERGE_PATCH, subresource="/status")

    async def delete(
        self, kind: Kind, name: str, namespace: str | None = None, *, uid: str | None = None, foreground: bool = False
    ) -> bool:
        """Delete an object, if given only with that UID; false if there is none."""
        resource = await self._discovery.resource(kind)
        # Without a policy the dependents of a Job would be orphaned.
        options: dict[str, Any] = {"propagationPolicy": "Foreground" if foreground else "Background"}
        if uid is not None:
            options["preconditions"] = {"uid": uid}
        path, asked = resource.single(name, namespace), _asked("delete", kind, name, namespace)
        try:
            await self._ask("delete", path, kind, asked, body=options)
        except NotFoundError:
            return False
        except ConflictError:
            obj = None if uid is None else await self.get(kind, name, namespace)
            if uid is None or (obj is not None and obj["metadata"]["uid"] == uid):
                raise
            return False
        return True

    async def version(self) -> str:
        """Return the API server's version."""
        return str((await self._fetch("/version")).get("gitVersion", ""))

    async def _versions(self, kind: Kind, namespace: str | None, selected: Query) -> tuple[Sequence[Version], str]:
        return await self._items(
            kind, namespace, selected, versions_page, METADATA_PAGE_SIZE, accept=ACCEPT_METADATA_LIST
        )

    async def _items(
        self,
        kind: Kind,
        namespace: str | None,
        selected: Query,
        parse: Callable[[bytes], Page[T]],
        size: int,
        accept: Mapping[str, str] = ACCEPT_JSON,
    ) -> tuple[Sequence[T], str]:
        entries: list[T] = []
        limit: int | None = size
        token = ""
        while True:
            try:
                page = await self._page(kind, namespace, selected, parse, limit, token, accept)
            except _ExpiredError:
                # The continue token has expired: list again, without pages.
                entries, token, limit = [], "", None
                continue
            entries += page.entries
            token = page.token
            if not token:
                return entries, page.version

    async def _page(
        self,
        kind: Kind,
        namespace: str | None,
        selected: Query,
        parse: Callable[[bytes], Page[T]],
        limit: int | None,
        token: str,
        accept: Mapping[str, str] = ACCEPT_JSON,
    ) -> Page[T]:
        resource = await self._discovery.resource(kind)
        asked = f"list {kind.kind} of {namespace or 'all namespaces'}"
        query = [("limit", str(limit or "")), *selected, ("continue", token)]
        query = [(name, value) for name, value in query if value]
        return await self._request(
            "get", resource.collection(namespace), kind, asked, partial(read, parse), query=query, accept=accept
        )

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
        resource = await self._discovery.resource(kind)
        return await self._ask(
            "patch",
            resource.single(name, namespace) + subresource,
            kind,
            _asked("patch status of" if subresource else "patch", kind, name, namespace),
            body=patch,
            content_type=content_type,
            query=[_FIELD_MANAGER],
        )

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
        take = partial(read, document)
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
            failure = error_of(asked, error.status or 0, error.body or "", error.headers or {})
            failure = _ExpiredError(asked, "expired") if error.status == HTTPStatus.GONE else failure
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            refusal = ""
            raise TransientError(asked, str(error) or type(error).__name__) from error
        except asyncio.CancelledError:
            observe = None  # neither answered nor refused
            raise
        else:
            return answer
        finally:
            if observe is not None:
                observe(asked.partition(" ")[0], time.monotonic() - begin, refusal)
        if kind is not None and isinstance(failure, UnknownKindError):
            self._discovery.forget(kind)
        raise failure


class _ExpiredError(ApiError):
    """The continue token of a list has expired."""


def _asked(verb: str, kind: Kind, name: str, namespace: str | None) -> str:
    return f"{verb} {kind.kind} {namespace}/{name}" if namespace else f"{verb} {kind.kind} {name}"
