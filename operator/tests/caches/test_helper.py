"""A helper on a real port: whom it answers, what it refuses, and what it reports."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest

from plimsoll.agent.caches import CacheDropper
from plimsoll.agent.process import PreparationError, Programs
from plimsoll.api.status import TrialKey
from plimsoll.api.surroundings import NodeCaches
from plimsoll.conductor.ceph.commands import Commands
from plimsoll.helpers.authority import Turns
from plimsoll.helpers.caches import Abilities, Helper
from plimsoll.kube.port import TransientError
from plimsoll.net.listener import Listener, ListenerLimits, serving_requests
from plimsoll.protocol.helpers import DROP_PATH
from plimsoll.protocol.messages import DropCachesOrder
from support.pretended_ceph import pretend_ceph

FSID = "6d04ba56-a6f8-4d33-82bc-29ea547a8cf9"
OURS = "ours"
USERS = {
    OURS: "system:serviceaccount:bench:plimsoll-demo-conductor",
    "theirs": "system:serviceaccount:lab:default",
    "human": "admin",
}

PROGRAMS = Programs(Path("unused"), {})


class Node:
    """A pretended node, whose caches can be dropped."""

    def __init__(self) -> None:
        self.dropped = 0
        self.has_begun = threading.Event()
        self.may_finish = threading.Event()
        self.may_finish.set()
        self.problem: OSError | None = None

    def drop(self) -> NodeCaches:
        self.has_begun.set()
        assert self.may_finish.wait(30)
        if self.problem is not None:
            raise self.problem
        self.dropped += 1
        return NodeCaches(node="a", dropped_at="2026-01-01T00:00:00Z", before_bytes=2**30, after_bytes=2**20)


@pytest.fixture
def node() -> Node:
    return Node()


async def username(token: str) -> str | None:
    if token == "unreviewed":
        raise TransientError("create TokenReview", "connection refused")
    return USERS.get(token)


@asynccontextmanager
async def serving(node: Node, *, pause: float = 0.0, commands: Commands | None = None) -> AsyncIterator[str]:
    listener = Listener(ListenerLimits(strangers=8, stranger_seconds=10.0))
    abilities = Abilities(allowed=["bench"], username=username, drop=node.drop, commands=commands)
    helper = Helper(abilities, know=lambda connection: listener.know(connection, 0), turns=Turns(pause))
    async with serving_requests(helper.application(), listener, "127.0.0.1", 0, idle_seconds=5.0) as port:
        yield f"http://127.0.0.1:{port}"


async def post(
    url: str, token: str | None = OURS, *, body: str = "{}", path: str = DROP_PATH
) -> tuple[int, str, str | None]:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{url}{path}", data=body, headers=headers) as response,
    ):
        return response.status, await response.text(), response.headers.get("Retry-After")


def order(token: str = OURS, *, limit: float = 10.0, fsid: str | None = None) -> DropCachesOrder:
    trial = TrialKey(point="p", pass_number=0, attempt=0)
    return DropCachesOrder(trial=trial, token=token, fsid=fsid, limit_seconds=limit)


@pytest.mark.parametrize(
    ("token", "status", "message"),
    [
        (None, 401, "no valid bearer token"),
        ("x" * 5000, 401, "no valid bearer token"),
        ("forged", 401, "the token is not valid"),
        ("theirs", 403, "runs in namespace lab may not drop caches"),
        ("human", 403, "admin is not a ServiceAccount"),
        ("unreviewed", 503, "could not be reviewed"),
    ],
)
async def test_strangers_are_refused_and_nothing_is_dropped(
    node: Node, token: str | None, status: int, message: str
) -> None:
    async with serving(node) as url:
        assert (answer := await post(url, token))[0] == status
        assert message in answer[1]
    assert node.dropped == 0


@pytest.mark.parametrize(
    ("body", "path", "status"),
    [
        ("[]", DROP_PATH, 400),
        ("{", DROP_PATH, 400),
        ('{"command": "reboot"}', DROP_PATH, 400),
        ('{"fsid": "' + "x" * 65 + '"}', DROP_PATH, 400),
        ("{" + " " * 2000 + "}", DROP_PATH, 413),
        ("{}", "/", 404),
        ("{}", "/drop/", 404),
    ],
)
async def test_it_accepts_one_order_and_no_other(node: Node, body: str, path: str, status: int) -> None:
    async with serving(node) as url:
        assert (await post(url, body=body, path=path))[0] == status
        async with aiohttp.ClientSession() as session, session.get(f"{url}{DROP_PATH}") as response:
            assert response.status == 405
    assert node.dropped == 0


async def test_an_agent_has_the_caches_of_its_node_dropped(node: Node) -> None:
    async with serving(node) as url:
        dropped = await CacheDropper("a", helper=url).drop(order(), PROGRAMS)
    assert (dropped.node.node, dropped.node.before_bytes, dropped.node.after_bytes) == ("a", 2**30, 2**20)
    assert dropped.osds is None
    assert node.dropped == 1


async def test_one_drop_at_a_time_and_then_a_pause(node: Node) -> None:
    node.may_finish.clear()
    async with serving(node, pause=60.0) as url:
        first = asyncio.create_task(post(url))
        assert await asyncio.to_thread(node.has_begun.wait, 30)
        while_it_drops = await post(url)
        node.may_finish.set()
        assert (await first)[0] == 200
        afterwards = await post(url)
    assert (while_it_drops[0], afterwards[0]) == (429, 429)
    assert afterwards[2] == "60"
    assert node.dropped == 1


async def test_an_agent_waits_for_its_turn_within_its_time_limit(node: Node) -> None:
    async with serving(node, pause=1.0) as url:
        dropper = CacheDropper("a", helper=url)
        await asyncio.gather(dropper.drop(order(), PROGRAMS), dropper.drop(order(), PROGRAMS))
    assert node.dropped == 2
    async with serving(node, pause=60.0) as url:
        dropper = CacheDropper("a", helper=url)
        await dropper.drop(order(), PROGRAMS)
        with pytest.raises(PreparationError, match=r"did not drop the caches within 1\.5 s: .*one at a time"):
            await dropper.drop(order(limit=1.5), PROGRAMS)


async def test_a_failure_to_drop_is_reported_with_its_cause(node: Node) -> None:
    node.problem = OSError(30, "Read-only file system", "/proc/sys/vm/drop_caches")
    async with serving(node) as url:
        with pytest.raises(PreparationError, match=r"\(status 500\): cannot drop .*Read-only file system"):
            await CacheDropper("a", helper=url).drop(order(), PROGRAMS)


async def test_a_refusal_is_final_for_an_agent(node: Node) -> None:
    async with serving(node) as url:
        with pytest.raises(PreparationError, match=r"\(status 403\): runs in namespace lab may not drop caches"):
            await CacheDropper("a", helper=url).drop(order("theirs"), PROGRAMS)


async def test_a_helper_that_does_not_run_is_reported() -> None:
    with pytest.raises(
        PreparationError, match=r"within 1\.5 s: no answer from the helper of this node .*check its pod"
    ):
        await CacheDropper("a", helper="http://127.0.0.1:9").drop(order(limit=1.5), PROGRAMS)


async def test_without_a_key_the_osds_keep_their_caches_and_that_is_recorded(node: Node) -> None:
    async with serving(node) as url:
        dropped = await CacheDropper("a", helper=url).drop(order(fsid=FSID), PROGRAMS)
    assert dropped.osds is not None
    assert dropped.osds.count == 0
    assert "no key of a Ceph administrator" in (dropped.osds.reason or "")
    assert node.dropped == 1


async def test_the_osds_of_the_run_s_cluster_drop_their_caches(
    node: Node, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ceph = pretend_ceph(tmp_path, monkeypatch)
    async with serving(node, commands=Commands("admin")) as url:
        dropped = await CacheDropper("a", helper=url).drop(order(fsid=FSID), PROGRAMS)
        assert dropped.osds is not None
        assert (dropped.osds.count, dropped.osds.osds, dropped.osds.reason) == (3, (0, 1, 2), None)
        assert ceph.commands("ceph tell") == [f"ceph tell osd.{number} cache drop" for number in range(3)]
        other = await CacheDropper("a", helper=url).drop(order(fsid="another"), PROGRAMS)
        assert other.osds is not None
        assert other.osds.reason == "the helper's key is for another Ceph cluster"
        assert len(ceph.commands("ceph tell")) == 3, "another cluster is left alone"


async def test_an_osd_that_refuses_is_asked_again_and_then_reported(
    node: Node, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ceph = pretend_ceph(tmp_path, monkeypatch)
    with ceph.changing() as state:
        state["refused"] = ["ceph tell osd.1"]
    async with serving(node, commands=Commands("admin")) as url:
        with pytest.raises(PreparationError, match=r"within 3 s: the OSDs did not drop .*osd\.1 cache drop"):
            await CacheDropper("a", helper=url).drop(order(fsid=FSID, limit=3), PROGRAMS)
        assert node.dropped >= 2
        with ceph.changing() as state:
            state["refused"] = []
        assert (await CacheDropper("a", helper=url).drop(order(fsid=FSID), PROGRAMS)).osds is not None


async def test_a_file_system_that_does_not_answer_is_reported_and_blocks_nothing_else(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("plimsoll.helpers.caches._STALLED_SECONDS", 0.2)
    node.may_finish.clear()
    async with serving(node) as url:
        for _ in range(2):
            status, words, _ = await post(url)
            assert status == 500
            assert "the dirty data of this node was not written within 0.2 s" in words
        node.may_finish.set()
        async with asyncio.timeout(10):
            while (await post(url))[0] != 200:
                await asyncio.sleep(0.05)
    assert node.dropped >= 1, "the one that was stalled"
