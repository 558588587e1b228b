"""What the client makes of answers that a healthy API server seldom gives."""

import json
import tracemalloc
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from datetime import UTC, datetime
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web

from plimsoll.kube import port
from plimsoll.kube.client import AioKube
from plimsoll.kube.port import (
    READ_ATTEMPTS,
    ApiError,
    ConflictError,
    ForbiddenError,
    InvalidError,
    Kind,
    TooLargeError,
    TransientError,
    UnauthorizedError,
    UnknownKindError,
    Version,
)
from plimsoll.lifecycle import shapes

CONFIG_MAP = Kind(api_version="v1", kind="ConfigMap")
OBJECT = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "n"}}
RESOURCES = {"resources": [{"name": "configmaps", "kind": "ConfigMap", "namespaced": True}]}


def status(code: int, reason: str = "", *, message: str = "", **details: Any) -> web.Response:
    body = {"kind": "Status", "code": code, "reason": reason, "message": message, "details": details}
    return web.json_response(body, status=code)


class Scripted:
    """A server with prepared answers; the last one is given for ever."""

    def __init__(self, answers: Sequence[web.Response]) -> None:
        self.answers = list(answers)
        self.requests: list[tuple[str, str]] = []
        self.bodies: list[Any] = []

    async def answer(self, request: web.Request) -> web.Response:
        if request.path == "/api/v1":
            return web.json_response(RESOURCES)
        self.requests.append((request.method, request.path_qs))
        text = await request.text()
        self.bodies.append(json.loads(text) if text else None)
        found = self.answers[0] if len(self.answers) == 1 else self.answers.pop(0)
        return web.Response(status=found.status, body=found.body, headers=found.headers)


Serve = Callable[..., AbstractAsyncContextManager[tuple[AioKube, Scripted]]]


@pytest.fixture
def serve(tmp_path: Path) -> Serve:
    @asynccontextmanager
    async def serve(*answers: web.Response, read_seconds: float = 0.0) -> AsyncIterator[tuple[AioKube, Scripted]]:
        scripted = Scripted(answers)
        application = web.Application()
        application.router.add_route("*", "/{path:.*}", scripted.answer)
        runner = web.AppRunner(application)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        config = {
            "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{runner.addresses[0][1]}"}}],
            "users": [{"name": "u", "user": {"token": "t"}}],
            "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
            "current-context": "x",
        }
        path = tmp_path / "kubeconfig"
        path.write_text(yaml.safe_dump(config))
        async with AioKube(kubeconfig=str(path), read_seconds=read_seconds) as kube:
            yield kube, scripted
        await runner.cleanup()

    return serve


@pytest.mark.parametrize("code", [200, 403, 503])
async def test_every_answer_says_what_time_the_server_has(serve: Serve, code: int) -> None:
    server = datetime(2020, 2, 29, 12, tzinfo=UTC)
    answer = web.json_response({}, status=code, headers={"Date": format_datetime(server, usegmt=True)})
    async with serve(answer) as (kube, _):
        with suppress(ApiError):
            await kube.version()
        assert abs((kube.clock.now() - server).total_seconds()) < 60


@pytest.mark.parametrize(
    ("answer", "expected", "says"),
    [
        (status(400, "BadRequest", message="no such field"), InvalidError, "no such field"),
        (status(401, "Unauthorized", message="Unauthorized"), UnauthorizedError, "status 401"),
        (status(403, "Forbidden", message="cannot"), ForbiddenError, "cannot"),
        (status(405, "MethodNotAllowed", message="not so"), ApiError, "not so"),
        (status(409, "Conflict", message="quota was changed", name="q"), ConflictError, "quota was changed"),
        (status(413, "RequestEntityTooLarge", message="limit is 3145728"), InvalidError, "limit is 3145728"),
        (status(422, "Invalid", message="spec: Invalid value"), InvalidError, "spec: Invalid value"),
        (status(429, "TooManyRequests", message="slow down"), TransientError, "slow down"),
        (status(500, "InternalError", message="etcd: leader changed"), TransientError, "leader changed"),
        (web.Response(status=502, text="Bad Gateway"), TransientError, "Bad Gateway"),
        (web.Response(status=503), TransientError, "status 503"),
        (status(504, "Timeout", message="too slow"), TransientError, "too slow"),
        (web.Response(status=200, text="<html>", content_type="text/html"), TransientError, "text/html"),
        (web.Response(status=200, text="{", content_type="application/json"), TransientError, ""),
        (web.Response(status=404, text="404 page not found"), UnknownKindError, "404 page not found"),
    ],
)
async def test_answers_and_their_errors(
    serve: Serve,
    answer: web.Response,
    expected: type[ApiError],
    says: str,
) -> None:
    async with serve(answer) as (kube, _):
        with pytest.raises(expected) as caught:
            await kube.create(OBJECT)
    assert type(caught.value) is expected
    assert str(caught.value).startswith("create ConfigMap n/a: ")
    assert says in str(caught.value)


async def test_the_server_says_when_to_ask_again(
    serve: Serve,
) -> None:
    answer = status(429, "TooManyRequests", message="slow down")
    answer.headers["Retry-After"] = "7"
    async with serve(answer) as (kube, _):
        with pytest.raises(TransientError) as caught:
            await kube.create(OBJECT)
    assert caught.value.retry_after == 7


REFUSALS = (
    status(429, "TooManyRequests", message="slow down"),
    status(500, "InternalError", message="etcd: leader changed"),
    web.Response(status=502, text="Bad Gateway"),
    web.Response(status=200, text="{", content_type="application/json"),
)


@pytest.mark.parametrize("refusal", REFUSALS)
async def test_only_the_page_that_was_refused_is_read_again(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, refusal: web.Response
) -> None:
    monkeypatch.setattr(port, "_FIRST_PAUSE_SECONDS", 0.0)

    def page(name: str, token: str = "") -> web.Response:
        return web.json_response({"metadata": {"continue": token}, "items": [{"metadata": {"name": name}}]})

    async with serve(refusal, page("a", "next"), refusal, refusal, page("b"), read_seconds=10) as (kube, server):
        listed = await kube.list(CONFIG_MAP, namespace="n")
    assert [obj["metadata"]["name"] for obj in listed] == ["a", "b"]
    assert [path.endswith("continue=next") for _, path in server.requests] == [False, False, True, True, True]


@pytest.mark.parametrize(("verb", "attempts"), [("get", READ_ATTEMPTS), ("create", 1)])
async def test_a_read_is_repeated_a_few_times_and_a_write_never(
    serve: Serve, monkeypatch: pytest.MonkeyPatch, verb: str, attempts: int
) -> None:
    monkeypatch.setattr(port, "_FIRST_PAUSE_SECONDS", 0.0)
    async with serve(REFUSALS[1], read_seconds=10) as (kube, server):
        with pytest.raises(TransientError) as caught:
            await (kube.get(CONFIG_MAP, "a", "n") if verb == "get" else kube.create(OBJECT))
    assert len(server.requests) == caught.value.attempts == attempts


@pytest.mark.fault(
    "API server",
    "A list expires (410 Gone)",
    "between two pages",
    ends="the list is read again from its beginning",
    within="at once",
)
async def test_a_list_that_expires_is_begun_again(
    serve: Serve,
) -> None:
    def page(names: str, token: str = "") -> web.Response:
        items = [{"metadata": {"name": name}} for name in names]
        return web.json_response({"kind": "ConfigMapList", "metadata": {"continue": token}, "items": items})

    answers = page("ab", "next"), status(410, "Expired", message="too old"), page("abc")
    async with serve(*answers) as (kube, server):
        found = await kube.list(CONFIG_MAP, namespace="n", labels={"x": "1"})
    assert [obj["metadata"]["name"] for obj in found] == ["a", "b", "c"]
    assert [path for _, path in server.requests] == [
        "/api/v1/namespaces/n/configmaps?limit=100&labelSelector=x%3D1",
        "/api/v1/namespaces/n/configmaps?limit=100&labelSelector=x%3D1&continue=next",
        "/api/v1/namespaces/n/configmaps?limit=100&labelSelector=x%3D1",
    ]


async def test_versions_are_listed_again_if_the_list_expires(
    serve: Serve,
) -> None:
    def page(names: str, token: str = "") -> web.Response:
        items = [{"metadata": metadata(name)} for name in names]
        return web.json_response({"metadata": {"continue": token}, "items": items})

    def metadata(name: str) -> dict[str, Any]:
        written = [{"manager": "kubelet", "fieldsV1": {"f:status": {".": {}, 'k:{"type":"Ready"}': {}}}}]
        identity = {"name": name, "namespace": "n", "uid": f"uid-{name}", "resourceVersion": f"version-{name}"}
        return {**identity, "labels": {"x": "1"}, "managedFields": written}

    answers = page("abc", "next"), status(410, "Expired", message="too old"), page("ac")
    async with serve(*answers) as (kube, server):
        found = await kube.versions(CONFIG_MAP, namespace="n", labels={"x": "1"})
    assert found == [Version(uid=f"uid-{n}", namespace="n", name=n, version=f"version-{n}") for n in "ac"]
    assert [path for _, path in server.requests] == [
        "/api/v1/namespaces/n/configmaps?limit=500&labelSelector=x%3D1",
        "/api/v1/namespaces/n/configmaps?limit=500&labelSelector=x%3D1&continue=next",
        "/api/v1/namespaces/n/configmaps?limit=500&labelSelector=x%3D1",
    ]


def many_keys(name: str, count: int = 42_000) -> dict[str, Any]:
    """Return what a user can store within the 1 MiB of a ConfigMap: as Python objects it is ten times as large."""
    data = {f"key-{number:05}": "" for number in range(count)}
    labels = {"plimsoll.dev/run-uid": "u"} | {f"label-{number}": "" for number in range(1000)}
    metadata = {"name": name, "namespace": "n", "uid": f"uid-{name}", "labels": labels}
    return {"metadata": metadata, "data": data | {"state.json": "{}"}}


def traced_mebibytes(start: int) -> float:
    return (tracemalloc.get_traced_memory()[1] - start) / 2**20


async def test_of_objects_with_thousands_of_keys_only_what_is_needed_is_decoded(serve: Serve) -> None:
    page = web.json_response({"metadata": {}, "items": [many_keys(f"m-{number}") for number in range(8)]})
    async with serve(page) as (kube, _):
        tracemalloc.start()
        start, _ = tracemalloc.get_traced_memory()
        found = await kube.list(CONFIG_MAP, namespace="n", shape=shapes.ConfigMap)
        most = traced_mebibytes(start)
        tracemalloc.stop()
    identity = {"namespace": "n", "labels": {"plimsoll.dev/run-uid": "u"}}
    assert found[0] == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "m-0", "uid": "uid-m-0", **identity},
        "data": {"state.json": "{}"},
    }
    # The answer has 6 MiB, twice, as parts and as a whole. All of it as Python objects would be 70 MiB.
    assert most < 30


async def test_a_list_of_large_objects_is_read_in_smaller_pages(serve: Serve) -> None:
    def page(count: int, token: str = "") -> web.Response:
        large = {"annotations": {"a": "x" * (1 << 20)}}
        items = [{"metadata": {"name": f"m-{number}", "uid": f"u-{number}", **large}} for number in range(count)]
        return web.json_response({"metadata": {"continue": token}, "items": items})

    async with serve(page(9), page(7, "next"), page(3)) as (kube, server):
        assert len(await kube.list(CONFIG_MAP, namespace="n", shape=shapes.Identity)) == 10
    assert [path for _, path in server.requests] == [
        "/api/v1/namespaces/n/configmaps?limit=100",
        "/api/v1/namespaces/n/configmaps?limit=10",
        "/api/v1/namespaces/n/configmaps?limit=100&continue=next",
    ]


async def test_one_object_that_is_too_large_is_an_error_that_names_it(serve: Serve) -> None:
    huge = web.json_response({"metadata": {"name": "a", "annotations": {"a": "x" * (9 << 20)}}})
    async with serve(huge) as (kube, _):
        with pytest.raises(TooLargeError, match=r"get ConfigMap n/a: the answer has more than 8 MiB"):
            await kube.get(CONFIG_MAP, "a", "n")


async def test_of_a_list_only_what_is_wanted_is_kept(serve: Serve) -> None:
    items = [{"metadata": {"name": name, "uid": name}} for name in "abc"]
    async with serve(web.json_response({"metadata": {}, "items": items})) as (kube, _):
        found = await kube.list(CONFIG_MAP, keep=lambda obj: obj["metadata"]["name"] != "b")
    assert [obj["metadata"]["name"] for obj in found] == ["a", "c"]


async def test_a_watch_begins_with_what_exists_and_skips_what_is_too_large(serve: Serve) -> None:
    def line(kind: str, name: str, **metadata: str) -> bytes:
        obj = {"metadata": {"name": name, "uid": f"uid-{name}", **metadata}, "data": {"state.json": name, "x": "y"}}
        return json.dumps({"type": kind, "object": obj}).encode() + b"\n"

    huge = line("MODIFIED", "huge", note="x" * (9 << 20))
    body = line("ADDED", "a", note="x" * (1 << 20)) + huge + line("MODIFIED", "b") + line("DELETED", "a")
    async with serve(web.Response(body=body, content_type="application/json")) as (kube, server):
        found = [change async for change in kube.follow(CONFIG_MAP, shapes.ConfigMap, namespace="n", labels={"x": "1"})]
    assert [(change.obj["metadata"]["name"], change.is_gone) for change in found] == [
        ("a", False),
        ("b", False),
        ("a", True),
    ]
    assert found[0].obj["data"] == {"state.json": "a"}
    ((_, path),) = server.requests
    assert path == "/api/v1/namespaces/n/configmaps?watch=true&timeoutSeconds=600&labelSelector=x%3D1"


@pytest.mark.parametrize("body", [{"metadata": {}, "items": None}, {"metadata": {}}, {}])
async def test_a_list_of_no_versions(serve: Serve, body: dict[str, Any]) -> None:
    async with serve(web.json_response(body)) as (kube, _):
        assert await kube.versions(CONFIG_MAP) == []


@pytest.mark.parametrize("metadata", [{}, {"name": "a", "uid": "u"}, {"name": "a", "uid": 1, "resourceVersion": "2"}])
async def test_an_object_without_a_version_is_no_answer(serve: Serve, metadata: dict[str, Any]) -> None:
    async with serve(web.json_response({"metadata": {}, "items": [{"metadata": metadata}]})) as (kube, _):
        with pytest.raises(TransientError, match="list ConfigMap of n"):
            await kube.versions(CONFIG_MAP, namespace="n")


async def test_a_deletion_that_meets_a_conflict_of_another_kind(
    serve: Serve,
) -> None:
    there = web.json_response(OBJECT | {"metadata": {"name": "a", "uid": "u"}})
    async with serve(status(409, "Conflict", message="try again"), there) as (kube, server):
        with pytest.raises(ConflictError, match="try again"):
            await kube.delete(CONFIG_MAP, "a", "n", uid="u")
    assert server.bodies[0] == {"propagationPolicy": "Background", "preconditions": {"uid": "u"}}


async def test_names_cannot_lead_elsewhere(
    serve: Serve,
) -> None:
    async with serve(status(404, "NotFound", name="x")) as (kube, server):
        assert await kube.get(CONFIG_MAP, "../secrets/x?y", "n") is None
    assert server.requests == [("GET", "/api/v1/namespaces/n/configmaps/..%2Fsecrets%2Fx%3Fy")]


async def test_an_unknown_kind_is_looked_up_again(serve: Serve) -> None:
    unknown = web.Response(status=404, text="404 page not found")
    known = web.json_response({"resources": [{"name": "ks", "kind": "K", "namespaced": True}, {"name": "ks/status"}]})
    kind = Kind(api_version="g/v1", kind="K")
    async with serve(unknown, known, web.json_response({"metadata": {"name": "a"}})) as (kube, server):
        with pytest.raises(UnknownKindError, match=r"look up K of g/v1: .*install its CRD"):
            await kube.get(kind, "a", "n")
        for _ in range(2):
            assert await kube.get(kind, "a", "n") is not None
    assert [path for _, path in server.requests] == ["/apis/g/v1"] * 2 + ["/apis/g/v1/namespaces/n/ks/a"] * 2
