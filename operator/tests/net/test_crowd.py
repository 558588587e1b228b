"""Which stranger is dismissed when there are too many."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from plimsoll.net.crowd import Crowd, Stranger

PATIENCE = 2.0


def stranger(address: str, since: float = 0.0) -> Stranger:
    return Stranger(address=address, since=since)


def crowd(*strangers: Stranger, most: int) -> Crowd[Stranger]:
    found = Crowd[Stranger](most=most, patience_seconds=PATIENCE)
    for one in strangers:
        found.admit(one)
    return found


def test_no_stranger_leaves_while_there_is_room() -> None:
    found = crowd(most=2)
    assert [found.admit(stranger("a")), found.admit(stranger("a"))] == [None, None]


def test_the_address_with_the_most_makes_room_for_another_at_once() -> None:
    first = stranger("flood")
    found = crowd(stranger("quiet"), first, stranger("flood"), most=3)
    assert found.admit(stranger("new")) is first


def test_a_flood_is_held_back_at_its_own_address() -> None:
    old = stranger("flood", since=0.0)
    found = crowd(stranger("quiet"), old, stranger("flood"), most=3)
    newcomer = stranger("flood", since=1.0)
    assert found.admit(newcomer) is newcomer
    assert found.admit(stranger("flood", since=PATIENCE)) is old


def test_among_equals_the_oldest_has_some_time() -> None:
    first = stranger("a")
    found = crowd(first, stranger("b"), most=2)
    newcomer = stranger("c", since=1.0)
    assert found.admit(newcomer) is newcomer
    assert found.admit(stranger("c", since=PATIENCE)) is first


def test_a_stranger_that_left_takes_no_room_and_may_leave_again() -> None:
    first = stranger("a")
    found = crowd(first, most=1)
    found.remove(first)
    found.remove(first)
    assert found.admit(stranger("b")) is None


@given(st.integers(1, 6), st.lists(st.tuples(st.sampled_from("abc"), st.booleans(), st.floats(0, 3)), max_size=60))
def test_the_limit_holds_and_an_address_with_fewer_strangers_never_gives_way(
    most: int, events: list[tuple[str, bool, float]]
) -> None:
    found, now = Crowd[Stranger](most=most, patience_seconds=PATIENCE), 0.0
    for address, leaves, pause in events:
        now += pause
        before = Counter(one.address for one in found)
        newcomer = stranger(address, since=now)
        victim = found.admit(newcomer)
        assert len(found) == len(list(found)) <= most
        assert (victim is None) == (sum(before.values()) < most)
        if victim is not None and victim is not newcomer:
            assert before[victim.address] == max(before.values())
        if leaves:
            found.remove(newcomer)
