"""A helper on a real port, with a pretended kube-burner and cluster: whom it serves, and that nothing is left."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from burner.burning import GOLDEN, HELPER, VOLUME, World, order, post, put_class, serving, until
from plimsoll.conductor.secret import new_certificate
from plimsoll.helpers.burner import identity
from plimsoll.kube.port import Kind, TransientError
from plimsoll.programs.burn import _HelperError, _ordered
from plimsoll.protocol import helpers as protocol
from plimsoll.protocol.helpers import BURN_PATH, BURNER_CERTIFICATE, LABEL_HELPER, BurnOutcome
from plimsoll.protocol.messages import SERVER_NAME
from support.fake_kube import FakeKube


@pytest.fixture
async def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[World]:
    async with serving(tmp_path, monkeypatch) as one:
        yield one


@pytest.mark.parametrize(
    ("token", "status", "message"),
    [
        (None, 401, "no valid bearer token"),
        ("x" * 5000, 401, "no valid bearer token"),
        ("forged", 401, "the token is not valid"),
        ("theirs", 403, "runs in namespace lab may not run kube-burner; ask the administrator"),
        ("human", 403, "admin is not a ServiceAccount"),
        ("unreviewed", 503, "could not be reviewed"),
    ],
)
async def test_strangers_are_refused_and_nothing_runs(
    world: World, token: str | None, status: int, message: str
) -> None:
    found = await post(world, token, order().model_dump_json())
    assert found[0] == status
    assert message in found[1]
    assert not (world.directory / "runs").exists()


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ("{", 400, ""),
        ('{"argv": ["sh"]}', 400, "parameters"),
        (json.dumps({"parameters": {"image": "evil"}, "storageClass": "a", "runUid": "u"}), 400, "image"),
        (json.dumps({"parameters": {}, "storageClass": "a\nb", "runUid": "u"}), 400, "storageClass"),
        (json.dumps({"parameters": {}, "storageClass": "a", "runUid": "{{.UUID}}"}), 400, "runUid"),
        (order(objects=201).model_dump_json(), 403, "objects 201 exceeds the administrator's kubeBurner.maxObjects"),
        (order(qps=21, burst=1).model_dump_json(), 403, "qps 21 exceeds the administrator's kubeBurner.maxQps of 20"),
        (order(burst=21).model_dump_json(), 403, "burst 21 exceeds the administrator's kubeBurner.maxQps of 20"),
        (
            order(volumeSize="2Gi").model_dump_json(),
            403,
            "volumeSize 2Gi exceeds the administrator's kubeBurner.maxVol",
        ),
        (" " * 5000, 413, ""),
    ],
)
async def test_orders_that_are_not_allowed_are_refused(world: World, body: str, status: int, message: str) -> None:
    found = await post(world, "ours", body)
    assert found[0] == status
    assert message in found[1]
    assert not (world.directory / "runs").exists()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("absent", "StorageClass absent does not exist"),
        ("kept", "StorageClass kept has reclaimPolicy Retain, which would leave the volumes behind"),
        ("plimsoll-theirs-01234567", "StorageClass plimsoll-theirs-01234567 does not exist, or belongs to another run"),
        ("plimsoll-moved-01234567", "StorageClass plimsoll-moved-01234567 does not exist, or belongs to another run"),
    ],
)
async def test_storage_classes_that_the_operator_would_not_use_are_refused(
    world: World, name: str, message: str
) -> None:
    """Whoever has a token can send an order without the operator."""
    put_class(world.kube, "kept", policy="Retain")
    put_class(world.kube, "plimsoll-theirs-01234567", run_uid="theirs", run_namespace="bench")
    put_class(world.kube, "plimsoll-moved-01234567", run_uid="u", run_namespace="lab")
    found = await post(world, "ours", order().model_copy(update={"storage_class": name}).model_dump_json())
    assert found[0] == 403
    assert message in found[1]
    assert not (world.directory / "runs").exists()


async def test_run_uses_its_own_storage_class(world: World) -> None:
    put_class(world.kube, "plimsoll-ours-01234567", run_uid="u", run_namespace="bench")
    world.may_end()
    own = order().model_copy(update={"storage_class": "plimsoll-ours-01234567"})
    assert (await _ordered(world.url, world.certificate, world.token(), own)).exit_code == 0


async def test_storage_class_that_cannot_be_read_is_asked_for_again(world: World) -> None:
    def interfere(request: str) -> None:
        if "StorageClass" in request:
            raise TransientError("list StorageClass", "timeout")

    world.kube.interfere = interfere
    assert (await post(world, "ours", order().model_dump_json()))[0] == 503


async def test_outcome_is_what_kube_burner_left(world: World) -> None:
    world.may_end(3)
    outcome = await _ordered(world.url, world.certificate, world.token(), order())
    assert outcome.exit_code == 3
    assert outcome.stdout == "it ran with --config=config.yml\n"
    assert outcome.stderr == 'level=info msg="done"\n'
    assert outcome.files == {path.name: path.read_text() for path in GOLDEN.glob("*.json")}
    assert not [*(world.directory / "work").iterdir()]


async def test_configuration_names_the_run_and_what_was_ordered(world: World) -> None:
    world.may_end()
    await _ordered(world.url, world.certificate, world.token(), order(objects=7))
    (job,) = json.loads((world.directory / "config.yml").read_text())["jobs"]
    assert (job["jobIterations"], job["namespace"]) == (7, job["name"])
    assert job["namespaceLabels"] == {
        LABEL_HELPER: HELPER,
        "plimsoll.dev/run-uid": "u",
        "plimsoll.dev/run-namespace": "bench",
        "pod-security.kubernetes.io/enforce": "restricted",
    }
    assert json.loads((world.directory / "pvc.yml").read_text())["spec"]["storageClassName"] == "fast"


async def test_answer_comes_once_everything_is_removed(world: World) -> None:
    ordered = asyncio.create_task(_ordered(world.url, world.certificate, world.token(), order()))
    await world.runs()
    world.put_leftovers()
    world.may_end()
    await until(lambda: "delete Namespace plimsoll-burn-x" in world.kube.requests)
    # Its volume is not gone yet.
    assert not ordered.done()
    await world.kube.delete(VOLUME, "pv-1")
    assert (await ordered).exit_code == 0
    assert await world.namespaces() == {"default", "bench"}


async def test_what_cannot_be_removed_is_named(world: World) -> None:
    ordered = asyncio.create_task(_ordered(world.url, world.certificate, world.token(), order()))
    await world.runs()
    world.put_leftovers(policy="Retain")
    world.may_end()
    assert "not removed: PersistentVolume pv-1 is kept by its reclaim policy" in (await ordered).stderr


async def test_what_was_not_removed_in_time_is_named_in_the_next_answer(world: World) -> None:
    """It is being removed while the next order is timed."""
    world.put_leftovers()
    await world.kube.delete(VOLUME, "pv-1")
    world.may_end()
    stderr = (await _ordered(world.url, world.certificate, world.token(), order())).stderr
    assert 'level=error msg="still being removed when kube-burner started: plimsoll-burn-x"' in stderr
    assert "not removed" not in stderr


async def test_client_that_goes_ends_kube_burner_and_leaves_nothing(world: World) -> None:
    ordered = asyncio.create_task(_ordered(world.url, world.certificate, world.token(), order()))
    await world.runs()
    world.put_leftovers()
    await world.kube.delete(VOLUME, "pv-1")
    ordered.cancel()
    await until(lambda: "delete Namespace plimsoll-burn-x" in world.kube.requests)
    assert await world.namespaces() == {"default", "bench"}
    # It was killed: nobody has let it end.
    (world.directory / "runs").unlink()
    world.may_end()
    assert (await _ordered(world.url, world.certificate, world.token(), order())).exit_code == 0


async def test_second_order_waits_for_its_turn(world: World) -> None:
    first = asyncio.create_task(_ordered(world.url, world.certificate, world.token(), order()))
    await world.runs()
    assert (await post(world, "ours", order().model_dump_json()))[0] == 429
    world.may_end()
    assert (await first).exit_code == 0


async def test_namespaces_that_wait_take_turns(world: World) -> None:
    first = asyncio.create_task(_ordered(world.url, world.certificate, world.token(), order()))
    await world.runs()
    assert (await post(world, "neighbours", order().model_dump_json()))[0] == 429
    world.may_end()
    await first
    # Ours asks again first, and would always be served.
    assert (await post(world, "ours", order().model_dump_json()))[0] == 429
    assert (await post(world, "neighbours", order().model_dump_json()))[0] == 200
    assert (await post(world, "ours", order().model_dump_json()))[0] == 200


async def test_client_that_does_not_read_its_answer_does_not_block_the_next(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    (world.directory / "files" / "large.json").write_text("x" * 20 * 2**20)
    body = order().model_dump_json()
    port = int(world.url.rpartition(":")[2])
    reader, writer = await asyncio.open_connection(
        "127.0.0.1", port, limit=1024, ssl=world.tls, server_hostname=SERVER_NAME
    )
    head = f"POST {BURN_PATH} HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer ours\r\nContent-Length: {len(body)}\r\n\r\n"
    writer.write(f"{head}{body}".encode())
    await world.runs()
    world.may_end()
    await until(lambda: not world.helper._turn.locked())
    (world.directory / "files" / "large.json").unlink()
    assert (await _ordered(world.url, world.certificate, world.token(), order())).exit_code == 0
    await until(lambda: "did not read its answer" in caplog.text)
    with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
        await reader.readexactly(20 * 2**20)
    writer.close()


async def test_connections_of_one_namespace_do_not_displace_those_of_another(world: World) -> None:
    ordered = asyncio.create_task(_ordered(world.url, world.certificate, world.token("neighbours"), order()))
    await world.runs()
    connector = aiohttp.TCPConnector(limit=0, ssl=world.tls)
    async with aiohttp.ClientSession(connector=connector) as session:
        headers = {"Authorization": "Bearer ours"}
        asked = [
            session.post(
                f"{world.url}{BURN_PATH}",
                data=order().model_dump_json(),
                headers=headers,
                server_hostname=SERVER_NAME,
            )
            for _ in range(12)
        ]
        answers = await asyncio.gather(*asked, return_exceptions=True)
        assert any(not isinstance(one, BaseException) and one.status == 429 for one in answers)
    world.may_end()
    assert (await ordered).exit_code == 0


async def test_helper_that_starts_removes_what_an_earlier_process_left(world: World) -> None:
    world.put_leftovers()
    world.kube.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "plimsoll-burn-other"}})
    await world.kube.delete(VOLUME, "pv-1")
    assert await world.helper.clean() == []
    assert await world.namespaces() == {"default", "bench", "plimsoll-burn-other"}


async def test_api_server_that_does_not_answer_is_asked_again(world: World) -> None:
    world.put_leftovers()
    await world.kube.delete(VOLUME, "pv-1")
    failures = iter([TransientError("list Namespace", "timeout")] * 3)

    def interfere(_: str) -> None:
        if (error := next(failures, None)) is not None:
            raise error

    world.kube.interfere = interfere
    assert await world.helper.clean() == []
    assert await world.namespaces() == {"default", "bench"}


async def test_refusal_reaches_the_client(world: World) -> None:
    with pytest.raises(_HelperError, match="runs in namespace lab may not run kube-burner"):
        await _ordered(world.url, world.certificate, world.token("theirs"), order())


async def test_helper_that_dies_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(tmp_path, monkeypatch) as world:
        ordered = asyncio.create_task(_ordered(world.url, world.certificate, world.token(), order()))
        await world.runs()
    with pytest.raises(_HelperError, match=r"the helper stopped|not complete"):
        await ordered


async def test_connection_that_is_closed_without_an_answer_is_repeated(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The helper does that to those who do not send their token while it has too many connections."""
    monkeypatch.setattr(protocol, "RETRY_SECONDS", 0.05)
    refused = asyncio.Event()

    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.transport.abort()
        refused.set()

    async with await asyncio.start_server(hang_up, "127.0.0.1", 0) as server:
        port = int(server.sockets[0].getsockname()[1])
        ordered = asyncio.create_task(_ordered(f"https://127.0.0.1:{port}", world.certificate, world.token(), order()))
        await refused.wait()
        await asyncio.sleep(0.2)
        assert not ordered.done()
        ordered.cancel()
        await asyncio.wait({ordered})


async def test_a_client_sends_its_token_to_nobody_but_the_helper_that_the_run_trusts(world: World) -> None:
    other, _ = new_certificate(days=1)
    with pytest.raises(_HelperError, match=r"certificate is not the one that the run trusts; .* create the run again"):
        await _ordered(world.url, other.decode(), world.token(), order())
    assert not (world.directory / "runs").exists()


async def test_plain_http_is_not_answered(world: World) -> None:
    async with aiohttp.ClientSession() as session:
        with pytest.raises(aiohttp.ClientError):
            await session.post(f"{world.url.replace('https', 'http')}{BURN_PATH}", data=order().model_dump_json())


async def test_the_certificate_outlives_the_helpers_process(tmp_path: Path) -> None:
    kube = FakeKube()
    for number in range(2):
        await identity(kube, "default", tmp_path / str(number))
    for name in ("tls.crt", "tls.key"):
        assert (tmp_path / "0" / name).read_bytes() == (tmp_path / "1" / name).read_bytes()
        assert (tmp_path / "0" / name).stat().st_mode & 0o777 == 0o600
    assert len([request for request in kube.requests if request.startswith("create ")]) == 2


async def test_a_changed_certificate_is_published_again_and_a_damaged_secret_is_named(tmp_path: Path) -> None:
    kube = FakeKube()
    await identity(kube, "default", tmp_path)
    map_kind, secret_kind = (Kind(api_version="v1", kind=name) for name in ("ConfigMap", "Secret"))
    await kube.patch(map_kind, BURNER_CERTIFICATE, "default", {"data": {"tls.crt": "another"}})
    await identity(kube, "default", tmp_path)
    published = await kube.get(map_kind, BURNER_CERTIFICATE, "default")
    assert published is not None
    assert published["data"]["tls.crt"] == (tmp_path / "tls.crt").read_text()
    await kube.patch(secret_kind, BURNER_CERTIFICATE, "default", {"data": {"tls.key": None}})
    with pytest.raises(ValueError, match=r"Secret default/plimsoll-kube-burner-certificate has no tls\.key; delete it"):
        await identity(kube, "default", tmp_path)


def test_outcome_is_a_message() -> None:
    outcome = BurnOutcome(exit_code=0, stdout="", stderr="", files={"a": "\n"})
    assert b"\n" not in outcome.model_dump_json().encode()
