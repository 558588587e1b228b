"""When an operator leads: decided by the Lease and the local clock, and checked before every request."""

import asyncio
import logging
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.kube.port import ForbiddenError, Object, TransientError
from plimsoll.operator.leader import LEASE, Leadership, LeaseSettingError, lease_of, new_identity
from plimsoll.operator.lease import Sighting, Terms, renewed, seconds_to_wait, sight, taken
from support.fake_kube import FakeKube, failing

TERMS = Terms(15.0)
TIME = datetime(2026, 1, 1, tzinfo=UTC)
LATER = datetime(2026, 1, 1, 0, 0, 2, tzinfo=UTC)
PLACE = ("default", "plimsoll")

seconds = st.floats(0, 1e6)
specs = st.fixed_dictionaries(
    {},
    optional={
        "holderIdentity": st.none() | st.sampled_from(["", "a", "b"]),
        "leaseDurationSeconds": st.none() | st.integers(-(2**31), 2**31),
        "leaseTransitions": st.none() | st.integers(0, 2**31),
        "renewTime": st.none() | st.sampled_from(["1970-01-01T00:00:00.000000Z", "2262-01-01T00:00:00.000000Z"]),
    },
)


def lease(spec: Object) -> Object:
    return {"metadata": {"name": "plimsoll"}, "spec": spec}


# -- the decision


@given(specs, seconds, seconds)
def test_a_lease_that_another_holds_is_taken_only_after_its_holder_has_stopped(
    spec: Object, since: float, passed: float
) -> None:
    """Whatever somebody writes into it: the holder leads for less time than others wait, and nobody waits for ever."""
    now = since + passed
    wait = seconds_to_wait(sight(lease(spec), None, since), "a", TERMS, now)
    if spec.get("holderIdentity") == "b":
        assert wait > 0 or passed + 1e-9 >= TERMS.seconds > TERMS.lead_seconds
        assert wait <= 4 * TERMS.seconds
    else:
        assert wait == 0


@given(specs, specs, seconds, seconds)
def test_only_a_change_of_the_lease_counts_as_a_renewal(
    first: Object, second: Object, since: float, passed: float
) -> None:
    before = sight(lease(first), None, since)
    after = sight(lease(second), before, since + passed)
    assert after == (before if first == second else Sighting(second, since + passed))
    assert sight(None, before, since + passed) == before, "its holder may not know that it was deleted"


@given(specs)
def test_whoever_takes_it_holds_it_and_a_released_one_is_free(spec: Object) -> None:
    seen = sight(lease(spec), None, 0.0)
    changed = {**spec, **taken(seen, "a", TERMS, TIME)}
    held = sight(lease(changed), seen, 1.0)
    assert (held.holder, held.since) == ("a", 1.0)
    assert changed["leaseDurationSeconds"] == TERMS.seconds
    assert changed["leaseTransitions"] == (spec.get("leaseTransitions") or 0) + 1
    assert seconds_to_wait(sight(lease({**changed, **renewed("a", LATER)}), held, 2.0), "b", TERMS, 3.0) == 14.0
    assert seconds_to_wait(sight(lease({**changed, **renewed(None, LATER)}), held, 2.0), "b", TERMS, 3.0) == 0


def test_a_holder_with_longer_terms_is_waited_for() -> None:
    held = Sighting(taken(Sighting({}, 0.0), "b", Terms(20.0), TIME), 0.0)
    assert seconds_to_wait(held, "a", TERMS, 0.0) == 20.0


# -- the task


class LostError(Exception):
    """The process ends here."""


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def candidate(kube: FakeKube, identity: str, clock: Callable[[], float], terms: Terms = TERMS) -> Leadership:
    def lose(reason: str) -> None:
        raise LostError(reason)

    return Leadership(kube, *PLACE, terms, identity=identity, monotonic=clock, lose=lose)


async def take(leadership: Leadership) -> bool:
    """Return whether it leads after one look."""
    stop = asyncio.Event()
    asyncio.get_running_loop().call_later(0.05, stop.set)
    return await leadership.acquire(stop)


def holder(kube: FakeKube) -> Any:
    (found,) = kube.objects("Lease")
    return found["spec"].get("holderIdentity")


async def test_one_leads_and_the_next_follows_when_it_stops() -> None:
    kube, clock = FakeKube(), Clock()
    first, second = candidate(kube, "a", clock), candidate(kube, "b", clock)
    assert await take(first)
    async with first.kept():
        first.check()
        assert not await take(second)
        assert second.sees_lease
        with pytest.raises(LostError):
            second.check()
    assert holder(kube) is None
    with pytest.raises(LostError):
        first.check()
    assert await take(second)
    assert holder(kube) == "b"


async def test_a_process_that_was_frozen_finds_out_before_its_next_request() -> None:
    kube, clock = FakeKube(), Clock()
    frozen, other = candidate(kube, "a", clock), candidate(kube, "b", clock)
    assert await take(frozen)
    assert not await take(other)
    clock.now += TERMS.lead_seconds - 0.1
    frozen.check()
    assert not await take(other)
    clock.now += 0.2
    with pytest.raises(LostError, match="was not renewed for 10 s"):
        frozen.check()
    assert not await take(other), "requests of the other one may be under way"
    clock.now += TERMS.seconds - TERMS.lead_seconds
    assert await take(other)


@pytest.mark.parametrize("change", ["holder", "empty", "deleted"])
async def test_a_leader_whose_lease_somebody_edits_ends(change: str) -> None:
    kube = FakeKube()
    lost: list[str] = []
    terms = Terms(0.3)
    leader = Leadership(kube, *PLACE, terms, identity="a", lose=lost.append)
    assert await take(leader)
    if change == "deleted":
        await kube.delete(LEASE, "plimsoll", "default")
    else:
        await kube.patch(LEASE, "plimsoll", "default", {"spec": {"holderIdentity": "x" if change == "holder" else ""}})
    async with leader.kept(), asyncio.timeout(10):
        while not lost:
            await asyncio.sleep(0.01)
    assert ("is held by x" if change == "holder" else "has no holder") in lost[0]


@pytest.mark.parametrize("change", ["empty", "deleted"])
async def test_whoever_finds_the_lease_free_leads_before_the_former_leader_notices(change: str) -> None:
    kube, clock = FakeKube(), Clock()
    former, starting = candidate(kube, "a", clock), candidate(kube, "b", clock)
    assert await take(former)
    if change == "deleted":
        await kube.delete(LEASE, "plimsoll", "default")
    else:
        await kube.patch(LEASE, "plimsoll", "default", {"spec": {"holderIdentity": ""}})
    assert await take(starting)
    starting.check()
    former.check()
    clock.now += TERMS.lead_seconds
    with pytest.raises(LostError, match="was not renewed for 10 s"):
        former.check()


async def test_an_edit_of_anything_else_changes_nothing() -> None:
    kube, clock = FakeKube(), Clock()
    leader = candidate(kube, "a", clock, Terms(0.3))
    assert await take(leader)
    await kube.patch(LEASE, "plimsoll", "default", {"metadata": {"labels": {"a": "b"}}})
    async with leader.kept(), asyncio.timeout(10):
        before = kube.objects("Lease")[0]["spec"]["renewTime"]
        while kube.objects("Lease")[0]["spec"]["renewTime"] == before:
            await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (lambda asked: ForbiddenError(asked, "no"), "bind a Role that may create leases, and get and patch Lease"),
        (lambda asked: TransientError(asked, "no answer"), "no answer"),
    ],
)
async def test_without_an_answer_it_waits_and_says_once_why(
    error: Callable[[str], Exception], words: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    kube, stop = FakeKube(interfere=failing(error, times=3)), asyncio.Event()  # type: ignore[arg-type]
    leader = Leadership(kube, *PLACE, Terms(0.3), identity="a")
    async with asyncio.timeout(10):
        assert await leader.acquire(stop)
    told = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(told) == 1
    assert words in told[0]
    assert "this operator waits" in told[0]


async def test_a_leader_without_an_answer_ends_in_time() -> None:
    kube = FakeKube()
    lost = asyncio.Event()
    leader = Leadership(kube, *PLACE, Terms(0.3), identity="a", lose=lambda _: lost.set())
    assert await take(leader)
    kube.interfere = failing(lambda asked: TransientError(asked, "no answer"), times=10**6)
    async with leader.kept(), asyncio.timeout(10):
        await lost.wait()


# -- settings


def test_without_a_setting_there_is_no_lease() -> None:
    assert lease_of({}) is None
    assert lease_of({"PLIMSOLL_LEASE": "a/b"}) == ("a", "b", Terms(15.0))
    assert lease_of({"PLIMSOLL_LEASE": "a/b", "PLIMSOLL_LEASE_SECONDS": "3"}) == ("a", "b", Terms(3.0))


@pytest.mark.parametrize(
    ("environment", "words"),
    [
        ({"PLIMSOLL_LEASE": "plimsoll"}, "PLIMSOLL_LEASE is 'plimsoll': write namespace/name"),
        (
            {"PLIMSOLL_LEASE": "a/b", "PLIMSOLL_LEASE_SECONDS": "0"},
            "PLIMSOLL_LEASE_SECONDS is '0': write whole seconds",
        ),
        ({"PLIMSOLL_LEASE_SECONDS": "-1"}, "PLIMSOLL_LEASE_SECONDS is '-1'"),
    ],
)
def test_a_wrong_setting_is_named(environment: dict[str, str], words: str) -> None:
    with pytest.raises(LeaseSettingError, match=words):
        lease_of(environment)


def test_no_two_processes_have_the_same_identity() -> None:
    environment = {"POD_NAME": "plimsoll-0"}
    assert new_identity(environment) != new_identity(environment)
    assert new_identity(environment).startswith("plimsoll-0_")
