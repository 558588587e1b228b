"""The delivery of documents to the conductor, and what happens if it fails."""

import asyncio
from pathlib import Path

import pytest

from plimsoll.agent.agent import Agent, AgentIdentity, Connection
from plimsoll.agent.worker import Armed
from plimsoll.api.names import AbortReason
from plimsoll.api.status import TrialKey
from plimsoll.api.storage import Prepare as Preparation
from plimsoll.conductor import server
from plimsoll.conductor.main import EXIT_COMPLETE
from plimsoll.conductor.sink import FilesSink
from plimsoll.measure.sample import ClientDocument, Clock
from plimsoll.plan.document import Plan
from plimsoll.protocol.messages import (
    RefusedError,
    ResultPost,
)
from support.client_documents import make_document, make_plan
from support.rendezvous import QUICK, REGISTRATION, PretendedWork, Setting, large_post, running


def short_plan() -> Plan:
    """Return a plan of one trial of one client, without settling time."""
    return make_plan(points=1, clients=1, repetitions=1).model_copy(update={"prepare": Preparation(settle_seconds=0)})


A_DAY = 24 * 3600
"""The longest runtime of a trial; seconds."""


@pytest.fixture
def setting(tmp_path: Path) -> Setting:
    return Setting(tmp_path, make_plan(points=2, clients=3, repetitions=2))


class ForeignWork(PretendedWork):
    """Sends another client's document, which the conductor refuses."""

    async def measure(self, armed: Armed, clock: Clock) -> ClientDocument:
        return (await super().measure(armed, clock)).model_copy(update={"client": self.client + 1})


class SteppedConnection(Connection):
    """Replaces the comparisons of clocks before and after the measurement, and keeps the posted document."""

    def __init__(self, setting: "Setting", work: PretendedWork, before: Clock, after: Clock) -> None:
        super().__init__(setting.url, setting.secret_of(0))
        self.work = work
        self.before = before
        self.after = after
        self.posted: ResultPost | None = None

    async def clock(self, probes: int) -> Clock:
        return self.after if self.work.done[-1:] == ["measured"] else self.before

    async def post(self, post: ResultPost) -> bool:
        self.posted = post
        return await super().post(post)


async def test_the_largest_possible_document_arrives(setting: Setting) -> None:
    """Three operations with a value for each second of the longest runtime, in full precision."""
    async with running(setting) as connection:
        registered = await connection.register(REGISTRATION)
        post = large_post(registered.epoch, seconds=A_DAY)
        assert len(post.model_dump_json()) > 8 * 2**20
        assert await connection.post(post) is False


async def test_a_document_that_is_too_large_is_refused_for_good(setting: Setting) -> None:
    async with running(setting) as connection:
        registered = await connection.register(REGISTRATION)
        with pytest.raises(RefusedError, match="larger than 16 MiB") as caught:
            await connection.post(large_post(registered.epoch, seconds=2 * A_DAY))
        assert caught.value.code == "TooLarge"


async def test_a_request_that_the_web_server_refuses_is_not_retried(setting: Setting) -> None:
    """The web server refuses it, without a refusal of the protocol."""
    async with running(setting) as connection:
        with pytest.raises(RefusedError, match="/v1/orders answered with status 400"):
            await connection.orders(client=0, instance="x" * 2**15, epoch="epoch", after=-1, hold=1)


@pytest.mark.fault(
    "Conductor and clients",
    "Agents are killed",
    "while they send their results",
    ends="the results of the other clients arrive",
    within="at once",
)
async def test_clients_that_die_while_they_post_do_not_hold_up_the_others(
    setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "_BODY_SECONDS", 0.2)
    async with running(setting) as connection:
        registered = await connection.register(REGISTRATION)
        dead = [await setting.raw() for _ in range(8)]
        for _, writer in dead:
            writer.write(setting.head("/v1/results", 9, client=1) + b"{")
        async with asyncio.timeout(60):
            assert await connection.post(large_post(registered.epoch, seconds=10)) is False
            assert b" 503 " in await dead[0][0].readline()
        for _, writer in dead:
            writer.close()


async def test_an_attempt_whose_document_is_refused_is_aborted_and_says_why(tmp_path: Path) -> None:
    setting = Setting(tmp_path, short_plan())
    code, left = await asyncio.gather(setting.conduct(), setting.agent(0, work=ForeignWork(0)))
    assert (code, left) == (EXIT_COMPLETE, 0)
    recorded = (await FilesSink(setting.results).load()).trials
    aborts = [trial.abort for trial in recorded["w-000"] if trial.abort]
    assert len(aborts) == 3
    # On a busy machine, an attempt may have been too late for that.
    refused = [abort.message for abort in aborts if abort.reason is not AbortReason.LATE_CLIENT]
    assert {abort.reason for abort in aborts} <= {AbortReason.RESULT_REFUSED, AbortReason.LATE_CLIENT}
    assert "client 0 on here: its result was refused (BadRequest): document.client is 1" in refused[0]


@pytest.mark.parametrize(
    ("before", "after", "kept"),
    [
        (Clock(offset=0.0, error=0.0001), Clock(offset=0.08, error=0.0001), 0.08),
        (Clock(offset=0.08, error=0.0001), Clock(offset=0.0, error=0.0001), 0.08),
        (Clock(offset=0.0, error=0.0001), Clock(offset=0.02, error=0.03), 0.0),
    ],
)
async def test_clocks_are_compared_again_after_the_trial(
    tmp_path: Path, before: Clock, after: Clock, kept: float
) -> None:
    setting = Setting(tmp_path, short_plan())
    work = PretendedWork(0)
    connection = SteppedConnection(setting, work, before, after)
    identity = AgentIdentity(client=0, attempt=0, node="here")
    agent = Agent(identity=identity, connection=connection, work=work, silence_seconds=QUICK.silence)
    code, left = await asyncio.gather(setting.conduct(), agent.run())
    assert (code, left) == (EXIT_COMPLETE, 0)
    await connection.close()
    assert connection.posted is not None
    assert connection.posted.document.clock is not None
    assert connection.posted.document.clock.offset == pytest.approx(kept, abs=1e-3)


async def test_posting_a_document_twice_changes_nothing(setting: Setting) -> None:
    async with running(setting) as connection:
        registered = await connection.register(REGISTRATION)
        post = ResultPost(
            epoch=registered.epoch,
            client=0,
            instance="i",
            trial=TrialKey(point="w-000", pass_number=0, attempt=0),
            document=make_document(0, 0),
        )
        assert [await connection.post(post) for _ in range(2)] == [False, False]
