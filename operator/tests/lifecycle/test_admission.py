"""The queue: one run per target, namespaces in turn; what is admitted stays admitted."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from time import process_time
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given

from plimsoll.lifecycle import queue
from plimsoll.lifecycle.queue import Entry, entry_of
from plimsoll.lifecycle.run import needs_attention
from support.specs import SETTINGS

NOW = datetime(2026, 1, 1, 1, tzinfo=UTC)
HOLD_SECONDS = 600
ANOTHER = "a run of another namespace"


def ahead_of(uid: str, entries: Iterable[Entry]) -> tuple[str, ...]:
    return queue.turn_of(uid, entries, now=NOW, hold_seconds=HOLD_SECONDS).ahead


def entry(number: int, **changes: Any) -> Entry:
    fields: dict[str, Any] = {
        "uid": f"u{number}",
        "namespace": "ns",
        "name": f"r{number}",
        "targets": frozenset({"storageClass/fast"}),
        "queued": f"2026-01-01T00:00:{number:02d}Z",
        "admitted": False,
        "over": False,
    }
    return Entry(**(fields | changes))


def test_the_oldest_goes_first_and_the_others_know_whom_they_wait_for() -> None:
    entries = [entry(2), entry(0), entry(1)]
    assert ahead_of("u0", entries) == ()
    assert ahead_of("u1", entries) == ("ns/r0",)
    assert ahead_of("u2", entries) == ("ns/r0", "ns/r1")


def test_runs_that_were_created_in_the_same_second_go_in_the_order_of_their_names() -> None:
    uids = {"a": "u2", "b": "u0", "c": "u1"}
    entries = [entry(0, uid=uid, name=name) for name, uid in uids.items()]
    assert ahead_of("u1", entries) == ahead_of("u1", entries[::-1]) == ("ns/a", "ns/b")
    twins = [entry(0, namespace=namespace, uid=uid) for namespace, uid in (("x", "u2"), ("y", "u1"))]
    assert ahead_of("u2", twins) == (ANOTHER,)
    assert ahead_of("u1", twins) == ()


def of(namespace: str, number: int, queued: int, **changes: Any) -> Entry:
    uid = f"{namespace}{number}"
    return entry(queued, namespace=namespace, name=uid, uid=uid, **changes)


def served(entries: Iterable[Entry]) -> list[str]:
    """Return the names of the runs in the order of their admission; each is deleted before the next one is admitted.

    Those that wait record the admission in their status, as the operator does at its next look.
    """
    waiting, order = {entry.uid: entry for entry in entries}, []
    for second in range(len(waiting)):
        (uid,) = [uid for uid in waiting if not ahead_of(uid, waiting.values())]
        order.append(uid)
        time = f"2026-01-01T00:01:{second:02d}Z"
        admitted = replace(waiting[uid], admitted=True, served=time)
        turns = {
            other: queue.turn_of(other, [*(waiting | {uid: admitted}).values()], now=NOW, hold_seconds=HOLD_SECONDS)
            for other in waiting.keys() - {uid}
        }
        assert all(turn.ahead for turn in turns.values())
        waiting = {other: replace(waiting[other], served=turn.namespace_served) for other, turn in turns.items()}
    return order


def test_a_namespace_with_many_runs_delays_the_run_of_another_by_one_of_them() -> None:
    many, late = [of("a", number, number) for number in range(9)], [of("b", 0, 20), of("b", 1, 21)]
    assert served([*many, *late]) == ["a0", "b0", "a1", "b1", *(f"a{number}" for number in range(2, 9))]


def test_the_position_is_the_one_at_which_a_run_is_admitted_if_none_is_created_later() -> None:
    entries = [of("a", 0, 0), of("a", 1, 1), of("a", 2, 2), of("b", 0, 5), of("c", 0, 3), of("c", 1, 9)]
    order = served(entries)
    assert order == ["a0", "c0", "b0", "a1", "c1", "a2"]
    assert [len(ahead_of(uid, entries)) for uid in order] == [*range(6)]


def test_a_run_knows_how_many_of_its_own_namespace_come_first_and_the_names_of_no_others() -> None:
    entries = [of("a", 0, 0), of("b", 0, 1), of("a", 1, 2), of("a", 2, 3)]
    turn = queue.turn_of("a2", entries, now=NOW, hold_seconds=HOLD_SECONDS)
    assert turn.ahead == ("a/a0", ANOTHER, "a/a1")
    assert turn.own_ahead == 2


def test_a_namespace_that_was_served_waits_although_its_runs_are_older_and_the_served_one_is_gone() -> None:
    older, newer = of("a", 1, 1, served="2026-01-01T00:00:30Z"), of("b", 0, 20)
    assert ahead_of("b0", [older, newer]) == ()
    assert ahead_of("a1", [older, newer]) == (ANOTHER,)
    # One that was created suspended, and never looked at, is served by what its neighbours know.
    fresh = of("a", 0, 0)
    assert ahead_of("a0", [fresh, older, newer]) == (ANOTHER,)


def test_a_namespace_keeps_its_turn_on_other_targets() -> None:
    elsewhere = of("a", 0, 0, admitted=True, over=True, served="2026-01-01T00:00:59Z", targets=frozenset({"x"}))
    assert ahead_of("a1", [elsewhere, of("a", 1, 1), of("b", 0, 2)]) == ()


def test_an_admission_is_read_from_the_status_and_what_a_waiting_run_recorded() -> None:
    admitted = body(conditions=(("Admitted", "True", "Admitted"),))
    admitted["status"]["startTime"] = "2026-01-01T00:00:05Z"
    assert entry_of(admitted, SETTINGS).served == "2026-01-01T00:00:05Z"
    admitted["status"]["conditions"][0]["lastTransitionTime"] = "2026-01-01T00:00:07Z"
    assert entry_of(admitted, SETTINGS).served == "2026-01-01T00:00:07Z"
    waiting = body()
    waiting["status"]["namespaceServedTime"] = "2026-01-01T00:00:03Z"
    assert entry_of(waiting, SETTINGS).served == "2026-01-01T00:00:03Z"
    assert entry_of(waiting, SETTINGS) == entry_of(body(), SETTINGS), "the others need not be woken"


@given(
    st.lists(
        st.tuples(st.sampled_from("abc"), st.integers(0, 9), st.sets(st.integers(0, 3), min_size=1, max_size=2)),
        min_size=1,
        max_size=8,
    )
)
def test_runs_with_several_targets_wait_for_each_other_in_one_order(runs: list[tuple[str, int, set[int]]]) -> None:
    """So none waits for ever, and no two that share a target are admitted together."""
    entries = {
        f"{namespace}{number}": of(namespace, number, queued, targets=frozenset(map(str, targets)))
        for number, (namespace, queued, targets) in enumerate(runs)
    }
    while entries:
        free = [entry for entry in entries.values() if not ahead_of(entry.uid, entries.values())]
        assert free
        assert max(Counter(target for entry in free for target in entry.targets).values()) == 1
        del entries[free[0].uid]


def test_an_admitted_run_is_never_put_back_behind_an_older_one() -> None:
    entries = [entry(0), entry(5, admitted=True)]
    assert ahead_of("u5", entries) == ()
    assert ahead_of("u0", entries) == ("ns/r5",)


def test_runs_of_other_targets_and_without_any_do_not_wait() -> None:
    entries = [entry(0), entry(1, targets=frozenset({"storageClass/slow"})), entry(2, targets=frozenset())]
    assert ahead_of("u1", entries) == ()
    assert ahead_of("u2", entries) == ()


def test_a_run_that_is_over_lets_the_next_go() -> None:
    assert ahead_of("u1", [entry(0, over=True), entry(1)]) == ()


def test_a_run_whose_storage_is_still_being_taken_away_is_waited_for_and_it_is_said() -> None:
    def body(reason: str) -> dict[str, Any]:
        conditions = [
            {"type": "Admitted", "status": "True"},
            {"type": "CleanedUp", "status": "False", "reason": reason},
        ]
        return {
            "metadata": {"uid": "u0", "namespace": "ns", "name": "r0", "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"storage": {"rook": {"cluster": {"namespace": "rook-ceph", "name": "c"}}}},
            "status": {"conditions": conditions},
        }

    behind = entry(1, targets=frozenset({"rook/rook-ceph/c"}))
    for reason in ("InProgress", "TeardownFailing", "PoolDeletionBlocked"):
        (ahead,) = ahead_of("u1", [entry_of(body(reason), SETTINGS), behind])
        assert ahead == f"ns/r0 (being cleaned up: {reason})"
    for reason in ("StorageKept", "Removed", "NodeGone", "ClaimedByOthers"):
        assert ahead_of("u1", [entry_of(body(reason), SETTINGS), behind]) == ()


@given(st.lists(st.tuples(st.booleans(), st.booleans(), st.integers(0, 3)), min_size=1, max_size=8))
def test_at_most_one_waiting_run_of_a_target_may_go(kinds: list[tuple[bool, bool, int]]) -> None:
    entries = [
        entry(number, admitted=admitted, over=over, targets=frozenset({f"t{target}"}))
        for number, (admitted, over, target) in enumerate(kinds)
    ]
    for target in range(4):
        waiting = [one for one in entries if f"t{target}" in one.targets and not one.admitted and not one.over]
        free = [one for one in waiting if not ahead_of(one.uid, entries)]
        running = [one for one in entries if f"t{target}" in one.targets and one.admitted and not one.over]
        assert len(free) == (1 if waiting and not running else 0)


def body(*, suspend: bool = False, conditions: tuple[tuple[str, str, str], ...] = (), **spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"uid": "u", "namespace": "ns", "name": "r", "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"storage": {"storageClass": {"name": "fast"}}, "suspend": suspend, **spec},
        "status": {"conditions": [{"type": t, "status": s, "reason": r} for t, s, r in conditions]},
    }


def test_a_run_that_was_created_suspended_is_not_in_the_queue_but_an_admitted_one_keeps_its_place() -> None:
    assert entry_of(body(suspend=True), SETTINGS).over
    assert not entry_of(body(suspend=True, conditions=(("Admitted", "True", "Admitted"),)), SETTINGS).over


def test_a_finished_run_is_in_the_way_until_its_load_is_gone() -> None:
    finished = ("Succeeded", "True", "Valid")
    assert not entry_of(body(conditions=(finished, ("CleanedUp", "False", "InProgress"))), SETTINGS).over
    assert entry_of(body(conditions=(finished, ("CleanedUp", "False", "StorageKept"))), SETTINGS).over
    assert entry_of(body(conditions=(finished, ("CleanedUp", "False", "NodeGone"))), SETTINGS).over
    assert entry_of(body(conditions=(finished, ("CleanedUp", "True", "Removed"))), SETTINGS).over


def test_an_entry_is_made_of_whatever_stands_there() -> None:
    bare = {"metadata": body()["metadata"]}
    assert entry_of(bare, SETTINGS).targets == frozenset({"network"})


def test_a_run_needs_attention_until_it_is_terminal_and_clean_and_does_not_expire() -> None:
    terminal, clean = ("Succeeded", "False", "X"), ("CleanedUp", "True", "Removed")
    assert needs_attention(body())
    assert needs_attention(body(conditions=(terminal,)))
    assert needs_attention(body(conditions=(terminal, ("CleanedUp", "False", "StorageKept"))))
    assert needs_attention(body(conditions=(terminal, ("CleanedUp", "False", "NodeGone"))))
    assert not needs_attention(body(conditions=(terminal, clean)))
    assert not needs_attention(body(conditions=(terminal, ("CleanedUp", "True", "NothingCreated"))))
    assert needs_attention(body(conditions=(terminal, clean), ttlSecondsAfterFinished=0))


def test_a_run_that_waits_for_its_name_or_cannot_be_read_holds_up_nobody_before_it_is_admitted() -> None:
    for reason in ("WaitingForEarlierRun", "SpecUnreadable"):
        waits = ("Succeeded", "Unknown", reason)
        assert entry_of(body(conditions=(waits,)), SETTINGS).over
        assert not entry_of(body(conditions=(waits, ("Admitted", "True", "Admitted"))), SETTINGS).over


def test_a_finished_run_whose_specification_is_changed_needs_attention_until_that_is_seen() -> None:
    finished = body(conditions=(("Succeeded", "True", "Valid"), ("CleanedUp", "True", "Removed")))
    finished["metadata"]["generation"], finished["status"]["observedGeneration"] = 2, 1
    assert needs_attention(finished)
    going = {**finished, "metadata": {**finished["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}}
    assert not needs_attention(going)
    finished["status"]["observedGeneration"] = 2
    assert not needs_attention(finished)


@pytest.mark.parametrize("reason", ["InProgress", "TeardownFailing", "PoolDeletionBlocked"])
def test_a_run_that_cannot_be_removed_holds_up_the_others_for_as_long_as_the_administrator_allows(reason: str) -> None:
    def body_ended_at(time: str, deleted: str = "") -> dict[str, Any]:
        found = body(conditions=(("Admitted", "True", "Admitted"), ("CleanedUp", "False", reason)))
        found["metadata"] |= {"deletionTimestamp": deleted} if deleted else {}
        found["status"]["completionTime"] = time
        return found

    waiting, long_ago, lately = entry(1), "2026-01-01T00:49:59Z", "2026-01-01T00:50:01Z"
    assert ahead_of("u1", [entry_of(body_ended_at(lately), SETTINGS), waiting]) != ()
    assert ahead_of("u1", [entry_of(body_ended_at(long_ago), SETTINGS), waiting]) == ()
    assert ahead_of("u1", [entry_of(body_ended_at(long_ago, deleted=lately), SETTINGS), waiting]) != ()


def test_a_run_that_rests_is_told_to_those_behind_it() -> None:
    resting = entry_of(body(suspend=True, conditions=(("Admitted", "True", "Admitted"),)), SETTINGS)
    assert ahead_of("u1", [resting, entry(1)]) == ("ns/r (suspended; keeps its place for at most 600 s)",)


def on_monitors(*monitors: str) -> dict[str, Any]:
    return body() | {"spec": {"storage": {"ceph": {"monitors": [*monitors]}}}}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (["10.0.0.1"], ["10.0.0.1:6789"]),
        (["10.0.0.1:3300"], ["[v2:10.0.0.1:3300/0,v1:10.0.0.1:6789/0]"]),
        (["10.0.0.1,10.0.0.2"], ["10.0.0.2"]),
        (["10.0.0.1", "10.0.0.2", "10.0.0.3"], ["10.0.0.3:6789"]),
        (["Mon.Example.com."], ["v1:mon.example.com:6789"]),
        (["[2001:db8::1]:6789"], ["2001:DB8:0::1"]),
        (["[v2:[2001:db8::1]:3300]"], ["[2001:db8::1]"]),
        (["10.0.0.1:16789"], ["v1:10.0.0.1:16789/7"]),
    ],
)
def test_two_runs_with_a_monitor_in_common_measure_one_cluster(first: list[str], second: list[str]) -> None:
    assert entry_of(on_monitors(*first), SETTINGS).targets & entry_of(on_monitors(*second), SETTINGS).targets


@pytest.mark.parametrize(("first", "second"), [("10.0.0.1", "10.0.0.11"), ("10.0.0.1", "10.0.0.1:16789"), ("a", "b")])
def test_other_monitors_are_other_clusters(first: str, second: str) -> None:
    assert not entry_of(on_monitors(first), SETTINGS).targets & entry_of(on_monitors(second), SETTINGS).targets


def test_a_chain_of_runs_with_common_targets_does_not_keep_the_operator_busy() -> None:
    """Any user can create such runs, by naming the monitors of the next one: following them one by one took minutes."""
    chain = [
        entry(0, uid=f"u{number}", name=f"r{number:04}", targets=frozenset({f"ceph/{number}", f"ceph/{number + 1}"}))
        for number in range(3000)
    ]
    begun = process_time()
    assert ahead_of("u2999", chain) == ("ns/r2998",)
    assert process_time() - begun < 2
