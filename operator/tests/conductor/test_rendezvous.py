"""The rendezvous over real TLS: who is admitted, and how agents survive a conductor's restart."""

import asyncio
import dataclasses
import ssl
import time
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from plimsoll.agent.agent import EXIT_REFUSED, EXIT_SILENCE, Connection, UnreachableError
from plimsoll.agent.worker import Armed
from plimsoll.api.names import AbortReason, FailureReason
from plimsoll.api.run import Timeouts
from plimsoll.api.status import TrialKey
from plimsoll.api.storage import Prepare
from plimsoll.conductor.main import EXIT_COMPLETE, EXIT_OF_FAILURE
from plimsoll.conductor.secret import make_secret, server_context, write_secret
from plimsoll.conductor.sink import FilesSink
from plimsoll.measure.attempts import counted
from plimsoll.measure.sample import ClientDocument, Clock
from plimsoll.protocol.assignment import CERTIFICATE_FILE, TOKEN_FILE
from plimsoll.protocol.messages import (
    PROTOCOL_VERSION,
    SERVER_NAME,
    AgentState,
    PrepareOrder,
    RefusedError,
    Report,
    ResultPost,
)
from support import rendezvous
from support.client_documents import make_document, make_plan
from support.rendezvous import QUICK, REGISTRATION, PretendedWork, Setting, running


@pytest.fixture
def setting(tmp_path: Path) -> Setting:
    return Setting(tmp_path, make_plan(points=2, clients=3, repetitions=2))


def another_secret(setting: Setting, directory: Path, **changes: bytes) -> Path:
    """Return a copy of client 0's part of the session secret with other content in some files."""
    names = {"token": TOKEN_FILE, "certificate": CERTIFICATE_FILE}
    files = {name: (setting.secret_of(0) / name).read_bytes() for name in names.values()}
    write_secret(directory, files | {names[name]: content for name, content in changes.items()})
    return directory


async def test_a_whole_run_over_tls(setting: Setting) -> None:
    work = [PretendedWork(client) for client in range(3)]
    codes = await asyncio.gather(setting.conduct(), *(setting.agent(client, work=work[client]) for client in range(3)))
    assert codes == [EXIT_COMPLETE, 0, 0, 0]
    trials, state, *_ = await FilesSink(setting.results).load()
    # A busy machine may lose an attempt, which is repeated then.
    assert sum(bool(counted([trial])) for found in trials.values() for trial in found) == 4
    assert state is not None
    assert state.trials_done == 4
    together = [moment for moment in work[0].started_at if all(began_near(one, moment) for one in work[1:])]
    assert len(together) >= 4


def began_near(work: PretendedWork, moment: int) -> bool:
    return any(abs(started - moment) < 250_000_000 for started in work.started_at)


async def test_a_wrong_token_is_refused_on_every_path_and_changes_nothing(setting: Setting, tmp_path: Path) -> None:
    wrong = another_secret(setting, tmp_path / "wrong", token=b"guess")
    async with running(setting):
        assert await setting.agent(0, secret=wrong) == EXIT_REFUSED
        connection = Connection(setting.url, wrong)
        post = ResultPost(
            epoch="epoch",
            client=0,
            instance="i",
            trial=TrialKey(point="w-000", pass_number=0, attempt=0),
            document=make_document(0, 0),
        )
        for request in (
            connection.register(REGISTRATION),
            connection.post(post),
            connection.clock(1),
            connection.orders(client=0, instance="i", epoch="epoch", after=-1, hold=1),
        ):
            with pytest.raises(RefusedError) as caught:
                await request
            assert caught.value.code == "BadToken"
        await connection.close()
    state = (await FilesSink(setting.results).load()).state
    assert state is not None
    assert state.registered == ()


@pytest.mark.parametrize("header", [{}, {"Authorization": "Basic x"}, {"Authorization": "Bearer "}])
async def test_a_request_without_the_token_is_refused(setting: Setting, header: dict[str, str]) -> None:
    async with running(setting), aiohttp.ClientSession() as session:
        context = Connection(setting.url, setting.secret_of(0))
        for method, path in (("GET", "/v1/clock"), ("POST", "/v1/clients"), ("GET", "/v1/nothing")):
            async with session.request(
                method, setting.url + path, ssl=False, headers=header, server_hostname=SERVER_NAME
            ) as response:
                assert response.status == 401
        await context.close()


async def test_the_first_three_problems_of_a_message_are_named(setting: Setting) -> None:
    headers = {"Authorization": f"Bearer {setting.token()}"}
    async with running(setting), aiohttp.ClientSession(headers=headers) as session:
        url = f"{setting.url}/v1/clients"
        async with session.post(url, data="{}", ssl=False, server_hostname=SERVER_NAME) as response:
            answer = await response.json()
    assert (response.status, answer["code"]) == (400, "BadRequest")
    named = [
        field for field in ("protocol", "client", "instance", "attempt", "node") if f"{field}: " in answer["message"]
    ]
    assert named == ["protocol", "client", "instance"]


async def test_an_agent_rejects_a_conductor_with_another_certificate(setting: Setting, tmp_path: Path) -> None:
    other = make_secret(3)
    wrong = another_secret(setting, tmp_path / "wrong", certificate=other[CERTIFICATE_FILE])
    async with running(setting):
        connection = Connection(setting.url, wrong)
        with pytest.raises(UnreachableError, match=r"(?i)certificate"):
            await connection.clock(1)
        await connection.close()


async def test_another_protocol_version_is_refused_with_a_remedy(setting: Setting) -> None:
    async with running(setting) as connection:
        registration = REGISTRATION.model_copy(update={"protocol": PROTOCOL_VERSION + 1})
        with pytest.raises(RefusedError, match="one image for both") as caught:
            await connection.register(registration)
        assert caught.value.code == "BadProtocol"


async def test_a_token_that_is_not_utf_8_is_refused(setting: Setting) -> None:
    context = ssl.create_default_context(cafile=str(setting.secret / CERTIFICATE_FILE))
    async with running(setting):
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", setting.port, ssl=context, server_hostname=SERVER_NAME
        )
        writer.write(
            b"GET /v1/clock HTTP/1.1\r\nHost: c\r\nAuthorization: Bearer \xff\xfe\r\nConnection: close\r\n\r\n"
        )
        async with asyncio.timeout(60):
            assert b" 401 " in await reader.readline()
        writer.close()


async def test_a_malformed_request_is_refused_and_does_not_affect_the_conductor(setting: Setting) -> None:
    async with running(setting) as connection, aiohttp.ClientSession() as session:
        headers = {"Authorization": f"Bearer {setting.token()}"}
        for body in (b"", b"{", b'{"protocol": 1}', b"\xff" * 10):
            async with session.post(setting.url + "/v1/clients", ssl=False, data=body, headers=headers) as response:
                assert (response.status, response.content_type) == (400, "application/json")
        await connection.clock(1)
        async with session.get(setting.url + "/v1/clock", ssl=False, headers=headers) as response:
            assert (response.status, response.content_type) == (200, "application/json")


async def test_a_held_request_is_answered_after_the_hold_time(setting: Setting) -> None:
    async with running(setting) as connection:
        registered = await connection.register(REGISTRATION)
        begun = time.monotonic()
        ordered = await connection.orders(client=0, instance="i", epoch=registered.epoch, after=0, hold=1)
        assert ordered.sequence == 0
        assert time.monotonic() - begun >= 0.9


async def test_a_held_request_is_answered_at_once_with_a_new_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rendezvous, "QUICK", dataclasses.replace(QUICK, hold=600.0))
    async with running(Setting(tmp_path, make_plan(clients=1))) as connection, asyncio.timeout(60):
        await connection.register(REGISTRATION)
        held = asyncio.create_task(connection.orders(client=0, instance="i", epoch="epoch", after=0, hold=600))
        await connection.clock(3)
        await connection.report(Report(epoch="epoch", client=0, instance="i", sequence=0, state=AgentState.IDLE))
        assert isinstance((await held).order, PrepareOrder)


async def test_an_agent_that_gets_only_errors_says_which(setting: Setting, caplog: pytest.LogCaptureFixture) -> None:
    async def overloaded(_: web.Request) -> web.Response:
        return web.Response(status=503)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", overloaded)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", setting.port, ssl_context=server_context(setting.secret)).start()
    assert await setting.agent(0, silence_seconds=2.0) == EXIT_SILENCE
    await runner.cleanup()
    assert "the conductor answered only errors for 2 s: /v1/clients answered with status 503" in caplog.text
    caplog.clear()
    assert await setting.agent(0, silence_seconds=0.5) == EXIT_SILENCE
    assert "the conductor did not answer for 0.5 s" in caplog.text


@pytest.mark.fault(
    "Network",
    "An agent loses its conductor",
    "at any time",
    ends="it stops its load and exits; its client gets a new pod",
    within="60 s",
)
async def test_an_agent_leaves_after_a_bounded_silence(setting: Setting) -> None:
    begun = time.monotonic()
    assert await setting.agent(0, silence_seconds=2.0) == EXIT_SILENCE
    assert 2 <= time.monotonic() - begun < 30


@pytest.mark.parametrize(("clients", "limit"), [(1, 4), (3, 2)])
async def test_only_an_agent_that_has_had_work_leaves_after_the_conductors_limit(
    setting: Setting, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, clients: int, limit: int
) -> None:
    """The next conductor may start much later, if this one had to make room for a client."""
    monkeypatch.setattr(rendezvous, "QUICK", dataclasses.replace(QUICK, hold=0.2, silence=2.0))
    work = [PretendedWork(client) for client in range(clients)]
    async with running(setting), asyncio.timeout(60):
        agents = [
            asyncio.create_task(setting.agent(client, work=work[client], silence_seconds=4.0))
            for client in range(clients)
        ]
        while not (work[0].done if clients == setting.plan.clients else await registered(setting)):
            await asyncio.sleep(0.02)
    assert await asyncio.gather(*agents) == [EXIT_SILENCE] * clients
    assert f"the conductor did not answer for {limit} s" in caplog.text


async def registered(setting: Setting) -> tuple[int, ...]:
    state = (await FilesSink(setting.results).load()).state
    return state.registered if state else ()


async def test_agents_survive_a_restart_of_the_conductor(setting: Setting) -> None:
    first = asyncio.create_task(setting.conduct("first"))
    agents = [asyncio.create_task(setting.agent(client)) for client in range(3)]
    async with asyncio.timeout(60):
        while not any((setting.results / "results").glob("*.json")):
            await asyncio.sleep(0.02)
    first.cancel()
    with suppress(asyncio.CancelledError):
        await first
    assert await setting.conduct("second") == EXIT_COMPLETE
    assert await asyncio.gather(*agents) == [0, 0, 0]
    trials = (await FilesSink(setting.results).load()).trials
    epochs = {trial.epoch for recorded in trials.values() for trial in recorded}
    assert epochs == {"first", "second"}


async def test_agents_prepare_before_every_measurement_also_after_a_restart_of_the_conductor(tmp_path: Path) -> None:
    plan = make_plan(points=1, clients=3, repetitions=2)
    prepare = Prepare(per_trial="NewDataSet", settle_seconds=0)
    setting = Setting(tmp_path, plan.model_copy(update={"prepare": prepare}))
    work = [PretendedWork(client) for client in range(3)]
    first = asyncio.create_task(setting.conduct("first"))
    agents = [asyncio.create_task(setting.agent(client, work=work[client])) for client in range(3)]
    async with asyncio.timeout(60):
        while not all("measured" in one.done for one in work):
            await asyncio.sleep(0.02)
    first.cancel()
    with suppress(asyncio.CancelledError):
        await first
    assert await setting.conduct("second") == EXIT_COMPLETE
    assert await asyncio.gather(*agents) == [0, 0, 0]
    for one in work:
        assert one.done.count("measured") >= 2
        assert all(pair == ("prepared", "measured") for pair in pairwise(one.done) if pair[1] == "measured")
    trials = (await FilesSink(setting.results).load()).trials
    assert all(trial.new_data_set for recorded in trials.values() for trial in recorded)


async def test_a_failed_preparation_ends_the_run_with_the_agent_s_message(setting: Setting) -> None:
    broken = PretendedWork(1, broken="the disk is made of cheese")
    code, *_ = await asyncio.gather(
        setting.conduct(), setting.agent(0), setting.agent(1, work=broken), setting.agent(2)
    )
    state = (await FilesSink(setting.results).load()).state
    assert state is not None
    assert state.failure is not None
    assert code == EXIT_OF_FAILURE[state.failure.reason]
    assert "client 1 on here: the disk is made of cheese" in state.failure.message


def test_the_secret_is_readable_by_its_owner_only(setting: Setting) -> None:
    assert setting.secret.stat().st_mode & 0o777 == 0o700
    files = [path for path in setting.secret.rglob("*") if path.is_file()]
    assert len(files) == 3 + 3 * 2
    assert all(path.stat().st_mode & 0o777 == 0o600 for path in files)
    assert all(setting.secret_of(client).stat().st_mode & 0o777 == 0o700 for client in range(3))


class UnkillableWork(PretendedWork):
    """Its first tool hangs; it cannot be ended, but exits when the storage answers again."""

    def __init__(self, client: int) -> None:
        super().__init__(client)
        self.is_stuck = asyncio.Event()

    async def measure(self, armed: Armed, clock: Clock) -> ClientDocument:
        if not self.is_stuck.is_set():
            self.is_stuck.set()
            try:
                await asyncio.Event().wait()
            finally:
                self.unended = "fio (process 7) cannot be ended"
        return await super().measure(armed, clock)


async def test_a_tool_that_cannot_be_ended_is_named_and_costs_one_attempt(
    setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    impatient = dataclasses.replace(QUICK, overrun_grace=0.5, lost_after=5.0, hold=0.5)
    monkeypatch.setattr(rendezvous, "QUICK", impatient)
    work = [PretendedWork(0), PretendedWork(1), UnkillableWork(2)]
    agents = [asyncio.create_task(setting.agent(client, work=work[client])) for client in range(3)]
    conducting = asyncio.create_task(setting.conduct())
    sink = FilesSink(setting.results)
    async with asyncio.timeout(120):
        while "fio (process 7) cannot be ended" not in (state.message if (state := (await sink.load()).state) else ""):
            await asyncio.sleep(0.05)
        work[2].unended = ""
        assert await asyncio.gather(conducting, *agents) == [EXIT_COMPLETE, 0, 0, 0]
    trials = (await sink.load()).trials
    aborted = [trial.abort.reason for found in trials.values() for trial in found if trial.abort]
    assert aborted[0] is AbortReason.TOOL_OVERRAN
    assert AbortReason.CLIENT_LOST not in aborted


@pytest.mark.fault(
    "Conductor and clients",
    "A tool hangs in the kernel and cannot be killed",
    "after its trial was aborted",
    ends="`Succeeded=False`, `ClientsNotReady`: the message names the client and the process",
    within="`timeouts.readySeconds`",
)
async def test_a_tool_that_cannot_be_ended_in_time_ends_the_run_with_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = make_plan(points=1, clients=1, repetitions=1)
    setting = Setting(tmp_path, plan.model_copy(update={"timeouts": Timeouts(ready_seconds=1)}))
    monkeypatch.setattr(rendezvous, "QUICK", dataclasses.replace(QUICK, overrun_grace=0.5))
    agent = asyncio.create_task(setting.agent(0, work=UnkillableWork(0)))
    async with asyncio.timeout(120):
        assert await setting.conduct() == EXIT_OF_FAILURE[FailureReason.CLIENTS_NOT_READY]
        assert await agent == 0
    state = (await FilesSink(setting.results).load()).state
    assert state is not None
    assert state.failure is not None
    assert "that the last tool has stopped: client 0 on " in state.failure.message
    assert "fio (process 7) cannot be ended" in state.failure.message
