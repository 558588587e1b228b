"""What an attacker can do at a conductor's port: without a token, or with a client's token."""

import asyncio
import io
import json
import logging
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import aiohttp
import pytest
from pydantic import BaseModel, TypeAdapter, ValidationError

from plimsoll.agent.agent import Connection
from plimsoll.api.errors import models_in
from plimsoll.api.names import Operation
from plimsoll.api.run import MAX_CLIENTS, MAX_SERVERS
from plimsoll.conductor import main, server
from plimsoll.conductor.sink import FilesSink
from plimsoll.protocol.messages import (
    MAX_ATTEMPT,
    PROTOCOL_VERSION,
    AgentState,
    RefusedError,
    Registration,
    Report,
    ResultPost,
)
from support.client_documents import make_document, make_plan
from support.rendezvous import Setting, large_post, running

WAIT_SECONDS = 60.0
"""Deadline of an event that must happen."""

NEVER = 600.0
"""Longer than any test waits."""

REGISTRATION: Mapping[str, Any] = {"protocol": PROTOCOL_VERSION, "client": 0, "instance": "i", "node": "n"}
REPORT: Mapping[str, Any] = {"epoch": "epoch", "client": 0, "instance": "i", "sequence": 0, "state": "Idle"}


@pytest.fixture
def setting(tmp_path: Path) -> Setting:
    return Setting(tmp_path, make_plan(points=1, clients=6, repetitions=1))


def registration(client: int = 0, **changes: Any) -> Registration:
    return Registration.model_validate({**REGISTRATION, "client": client, **changes})


async def closed(reader: asyncio.StreamReader) -> None:
    """Wait until the other side closes."""
    async with asyncio.timeout(WAIT_SECONDS):
        with suppress(ConnectionError):
            await reader.read()


# -- without a token


async def test_half_open_connections_end_and_clients_are_served_meanwhile(
    setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(main, "_OTHER_STRANGERS", 10)
    monkeypatch.setattr(main, "_STRANGER_SECONDS", 5.0)
    async with running(setting):
        strangers = [await asyncio.open_connection("127.0.0.1", setting.port) for _ in range(200)]
        for _, writer in strangers:
            writer.write(b"\x16\x03\x01")
        for client in range(6):
            connection = Connection(setting.url, setting.secret_of(client))
            async with asyncio.timeout(WAIT_SECONDS):
                while not await registered(connection, client):
                    await asyncio.sleep(0.1)
            await connection.close()
        await asyncio.gather(*(closed(reader) for reader, _ in strangers))
        for _, writer in strangers:
            writer.close()


async def registered(connection: Connection, client: int) -> bool:
    """Register; false if it did not work, after which an agent retries."""
    with suppress(Exception):
        return (await connection.register(registration(client))).epoch == "epoch"
    return False


async def test_a_connection_that_never_authenticates_ends_over_tls_too(
    setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(main, "_STRANGER_SECONDS", 0.5)
    async with running(setting):
        for sent in (b"", b"GET /v1/clock HTTP/1.1\r\nHost: c\r\nAuthorization: Bearer 0.guess\r\n\r\n", b"GET /v1/"):
            reader, writer = await setting.raw()
            writer.write(sent)
            await closed(reader)
            writer.close()


# -- with one client's token


async def test_a_client_cannot_speak_for_another(setting: Setting) -> None:
    async with running(setting):
        other = Connection(setting.url, setting.secret_of(1))
        report = Report(epoch="epoch", client=0, instance="i", sequence=0, state=AgentState.IDLE)
        for request in (
            other.register(registration(0)),
            other.orders(client=0, instance="i", epoch="epoch", after=-1, hold=1),
            other.report(report),
            other.post(large_post("epoch", seconds=1)),
        ):
            with pytest.raises(RefusedError, match="client: 0 is not client 1, whose token was sent") as caught:
                await request
            assert caught.value.code == "BadToken"
        await other.close()
    state = (await FilesSink(setting.results).load()).state
    assert state is not None
    assert state.registered == ()


async def test_a_successor_registers_with_the_token_of_its_number(setting: Setting) -> None:
    async with running(setting) as first:
        await first.register(registration(instance="first"))
        successor = Connection(setting.url, setting.secret_of(0))
        await successor.register(registration(instance="second", attempt=1))
        with pytest.raises(RefusedError, match="another process has replaced this one"):
            await first.orders(client=0, instance="first", epoch="epoch", after=-1, hold=1)
        await successor.close()


# -- slow posts


async def slow_posts(setting: Setting, sent: int) -> list[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """Start a post of 1 MiB for each of four clients, and stop after `sent` bytes."""
    posts = [await setting.raw() for _ in range(4)]
    for client, (_, writer) in enumerate(posts, start=1):
        writer.write(setting.head("/v1/results", 2**20, client=client) + b" " * sent)
        await writer.drain()
    return posts


@pytest.mark.parametrize("sent", [1, 300_000])
async def test_slow_posts_do_not_hold_up_a_fifth(setting: Setting, monkeypatch: pytest.MonkeyPatch, sent: int) -> None:
    """Nothing ends the slow ones within the deadline of this test."""
    monkeypatch.setattr(server, "_BODY_SECONDS", NEVER)
    monkeypatch.setattr(server, "_PACE_GRACE_SECONDS", NEVER)
    async with running(setting) as connection:
        await connection.register(registration())
        posts = await slow_posts(setting, sent)
        async with asyncio.timeout(WAIT_SECONDS):
            assert await connection.post(large_post("epoch", seconds=60)) is False
        for _, writer in posts:
            writer.close()


async def test_a_stalled_large_post_gives_way_to_another(setting: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "_BODY_SECONDS", NEVER)
    async with running(setting) as connection:
        await connection.register(registration())
        begun = time.monotonic()
        posts = await slow_posts(setting, 300_000)
        await connection.clock(3)
        post = large_post("epoch", seconds=20_000)
        assert len(post.model_dump_json()) > 4 * server._SMALL_BYTES
        async with asyncio.timeout(WAIT_SECONDS):
            assert await connection.post(post) is False
            assert time.monotonic() - begun >= server._PACE_GRACE_SECONDS, "five large bodies were read at once"
            for reader, writer in posts:
                assert b" 503 " in await reader.readline()
                writer.close()


async def test_of_two_posts_of_one_client_the_later_one_arrives(
    setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "_BODY_SECONDS", NEVER)
    async with running(setting) as connection:
        await connection.register(registration())
        reader, writer = await setting.raw()
        writer.write(setting.head("/v1/results", 100, client=0) + b"{")
        await connection.clock(1)
        async with asyncio.timeout(WAIT_SECONDS):
            assert await connection.post(large_post("epoch", seconds=60)) is False
            assert b" 503 " in await reader.readline()
        writer.close()


async def test_a_client_that_vanishes_while_it_posts_leaves_no_trace_in_the_log(
    setting: Setting, caplog: pytest.LogCaptureFixture
) -> None:
    async with running(setting) as connection:
        _, writer = await setting.raw()
        writer.write(setting.head("/v1/results", 100, client=0) + b"{")
        await writer.drain()
        writer.transport.abort()
        await connection.clock(3)
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


# -- bounds


BAD_REGISTRATIONS = {
    "protocol": 2**70,
    "client": MAX_CLIENTS + MAX_SERVERS,
    "instance": "i" * 65,
    "attempt": 2**70,
    "node": "n" * 254,
    "preparedBytes": 2**63,
    "dataSetUsed": "perhaps",
    "facts": {"kernel": "k" * 9000},
}
BAD_REPORTS = {
    "epoch": "e" * 65,
    "client": -1,
    "instance": "i" * 65,
    "sequence": 2**63,
    "state": "Unheard",
    "message": "m" * 2001,
    "doneBytes": -1,
    "totalBytes": 2**63,
    "clock": {"offset": 0, "error": 1e9},
    "rates": [{"operation": "read", "iops": 1, "bytesPerSecond": 1}] * (len(Operation) + 1),
    "caches": {"node": {"node": "n" * 254, "droppedAt": "", "beforeBytes": 0, "afterBytes": 0}},
}


async def refusal(setting: Setting, path: str, body: object) -> tuple[int, str]:
    headers = {"Authorization": f"Bearer {setting.token()}"}
    data = io.BytesIO(json.dumps(body).encode())
    async with (
        aiohttp.ClientSession() as session,
        session.post(setting.url + path, ssl=False, data=data, headers=headers) as answer,
    ):
        return answer.status, (await answer.json())["message"]


async def test_every_field_of_an_agents_messages_has_a_bound_and_its_name_in_the_refusal(setting: Setting) -> None:
    assert BAD_REGISTRATIONS.keys() == Registration.model_json_schema()["properties"].keys()
    assert BAD_REPORTS.keys() == Report.model_json_schema()["properties"].keys()
    async with running(setting):
        for path, good, bad in (("clients", REGISTRATION, BAD_REGISTRATIONS), ("reports", REPORT, BAD_REPORTS)):
            for field, value in bad.items():
                status, message = await refusal(setting, f"/v1/{path}", {**good, field: value})
                assert status == 400
                assert message.startswith(field), message


async def test_facts_of_many_megabytes_are_refused_by_their_name(setting: Setting) -> None:
    async with running(setting):
        status, message = await refusal(setting, "/v1/clients", {**REGISTRATION, "facts": {"a": "b" * 15_000_000}})
    assert (status, message) == (413, "/v1/clients: the body is larger than 64 KiB; send fewer facts")


def test_facts_are_few() -> None:
    with pytest.raises(ValueError, match="at most 32 items"):
        registration(facts={str(number): 0 for number in range(33)})
    assert registration(attempt=MAX_ATTEMPT, facts={str(number): 0 for number in range(32)}).attempt == MAX_ATTEMPT


def test_a_client_stores_nothing_that_a_terminal_obeys() -> None:
    told = registration(node="\x1b[31mn\u202e", facts={"kernel": ["\x1b]0;owned\a", {"a": "<b>\n\u202e"}]})
    assert (told.node, told.facts) == ("?[31mn?", {"kernel": ["?]0;owned?", {"a": "<b>\n?"}]})


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity"])
def test_facts_contain_only_numbers_that_are_valid_json(number: str) -> None:
    text = json.dumps({**REGISTRATION, "facts": {"kernel": [{"of": 0}]}}).replace('"of": 0', f'"of": {number}')
    with pytest.raises(ValueError, match="contains a number that is not valid JSON"):
        Registration.model_validate_json(text)


def unbounded(schema: Mapping[str, Any], definitions: Mapping[str, Any], path: str) -> Iterator[str]:
    """Yield the texts and lists in a schema that have no bound, and the mappings with any keys."""
    if "$ref" in schema:
        schema = definitions[schema["$ref"].rpartition("/")[2]]
    for branch in schema.get("anyOf", ()):
        yield from unbounded(branch, definitions, path)
    match schema.get("type"):
        case "string" if not schema.keys() & {"maxLength", "enum", "const"}:
            yield path
        case "array":
            if "maxItems" not in schema:
                yield path
            # A tuple has a schema for each of its places.
            for part in schema.get("prefixItems") or [schema["items"]]:
                yield from unbounded(part, definitions, f"{path}[]")
        case "object":
            if "properties" not in schema and "maxProperties" not in schema:
                yield path
            for name, part in schema.get("properties", {}).items():
                yield from unbounded(part, definitions, f"{path}.{name}")


def lists_in(model: type[BaseModel]) -> Iterator[tuple[str, Any]]:
    """Yield the fields of a model, and of the models in it, that hold a list of any length."""
    for name, field in model.model_fields.items():
        annotation: Any = Annotated[(field.annotation, *field.metadata)] if field.metadata else field.annotation
        schema = TypeAdapter(annotation).json_schema()
        if any(branch.get("type") == "array" for branch in schema.get("anyOf", [schema])):
            yield f"{model.__name__}.{name}", annotation
        for inner in models_in(field.annotation):
            yield from lists_in(inner)


LISTS = {name: annotation for model in (Report, ResultPost) for name, annotation in lists_in(model)}


def test_every_list_that_an_agent_sends_stops_at_its_first_invalid_entry() -> None:
    """An error for each entry would take a hundred times the memory of the message."""
    assert {"ClientDocument.argv", "CpuUse.throttled", "Cells.ios", "Report.rates", "OsdCaches.osds"} <= LISTS.keys()
    assert not [*lists_in(Registration)]
    for name, annotation in LISTS.items():
        for entry in ("[]", '{"": 0}', "null"):
            with pytest.raises(ValidationError) as caught:
                TypeAdapter(annotation).validate_json(f"[{','.join([entry] * 100)}]")
            # An entry that is a model lacks all its fields; a list may be absent instead.
            assert caught.value.error_count() <= 10, name


def result_with(**fields: Any) -> dict[str, Any]:
    post = {"epoch": "epoch", "client": 0, "instance": "i", "trial": {"point": "p", "passNumber": 0, "attempt": 0}}
    return {**post, "document": {**make_document(0, 0).model_dump(mode="json"), **fields}}


@pytest.mark.parametrize(
    "fields",
    [
        {"argv": [0] * (2**20 + 1)},
        {"argv": [[]] * 2**17},
        {"argv": [{}] * 2**17},
        {str(number): 0 for number in range(2**17)},
    ],
)
async def test_a_result_with_very_many_parts_is_refused_before_it_is_parsed(
    setting: Setting, monkeypatch: pytest.MonkeyPatch, fields: dict[str, Any]
) -> None:
    async with running(setting):
        monkeypatch.setattr(ResultPost, "model_validate_json", None)
        status, message = await refusal(setting, "/v1/results", result_with(**fields))
    assert status == 413
    assert message.startswith("/v1/results: the body has "), message
    assert message.endswith(" entries and 131072 fields are allowed; reduce runtimeSeconds"), message


async def test_a_result_with_many_errors_is_refused_without_a_list_of_them(setting: Setting) -> None:
    async with running(setting):
        unknown = await refusal(setting, "/v1/results", result_with(**{str(number): 0 for number in range(2**16)}))
        invalid = await refusal(setting, "/v1/results", result_with(argv=[0] * 2**18))
    assert unknown == (400, "document: has 65536 errors, too many to list; is it the right document?")
    assert invalid == (400, "document.argv[0]: 0 must be text; put it in quotes")


@pytest.mark.parametrize("model", [Registration, Report, ResultPost])
def test_every_text_and_list_that_an_agent_sends_has_a_bound(model: type[ResultPost]) -> None:
    schema = model.model_json_schema()
    assert list(unbounded(schema, schema.get("$defs", {}), model.__name__)) == []
