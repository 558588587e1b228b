"""The queue: one run per target, first come, first served; what is admitted stays admitted."""

from typing import Any

import hypothesis.strategies as st
from hypothesis import given

from plimsoll.lifecycle.admission import Entry, ahead_of, entry_of
from plimsoll.lifecycle.attention import needs_attention


def entry(number: int, **changes: Any) -> Entry:
    fields: dict[str, Any] = {
        "uid": f"u{number}",
        "namespace": "ns",
        "name": f"r{number}",
        "target": "storageClass/fast",
        "created": f"2026-01-01T00:00:{number:02d}Z",
        "admitted": False,
        "over": False,
    }
    return Entry(**(fields | changes))


def test_the_oldest_goes_first_and_the_others_know_whom_they_wait_for() -> None:
    entries = [entry(2), entry(0), entry(1)]
    assert ahead_of("u0", entries) == ()
    assert ahead_of("u1", entries) == ("ns/r0",)
    assert ahead_of("u2", entries) == ("ns/r0", "ns/r1")


def test_an_admitted_run_is_never_put_back_behind_an_older_one() -> None:
    entries = [entry(0), entry(5, admitted=True)]
    assert ahead_of("u5", entries) == ()
    assert ahead_of("u0", entries) == ("ns/r5",)


def test_runs_of_other_targets_and_without_any_do_not_wait() -> None:
    entries = [entry(0), entry(1, target="storageClass/slow"), entry(2, target="")]
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

    behind = entry(1, target="rook/rook-ceph/c")
    for reason in ("InProgress", "TeardownFailing", "PoolDeletionBlocked"):
        (ahead,) = ahead_of("u1", [entry_of(body(reason)), behind])
        assert ahead == f"ns/r0, which is being taken away ({reason})"
    for reason in ("StorageKept", "Removed", "NodeGone"):
        assert ahead_of("u1", [entry_of(body(reason)), behind]) == ()


@given(st.lists(st.tuples(st.booleans(), st.booleans(), st.integers(0, 3)), min_size=1, max_size=8))
def test_at_most_one_waiting_run_of_a_target_may_go(kinds: list[tuple[bool, bool, int]]) -> None:
    entries = [
        entry(number, admitted=admitted, over=over, target=f"t{target}")
        for number, (admitted, over, target) in enumerate(kinds)
    ]
    for target in range(4):
        waiting = [one for one in entries if one.target == f"t{target}" and not one.admitted and not one.over]
        free = [one for one in waiting if not ahead_of(one.uid, entries)]
        running = [one for one in entries if one.target == f"t{target}" and one.admitted and not one.over]
        assert len(free) == (1 if waiting and not running else 0)


def body(*, suspend: bool = False, conditions: tuple[tuple[str, str, str], ...] = (), **spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"uid": "u", "namespace": "ns", "name": "r", "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"storage": {"storageClass": {"name": "fast"}}, "suspend": suspend, **spec},
        "status": {"conditions": [{"type": t, "status": s, "reason": r} for t, s, r in conditions]},
    }


def test_a_run_that_was_created_suspended_is_not_in_the_queue_but_an_admitted_one_keeps_its_place() -> None:
    assert entry_of(body(suspend=True)).over
    assert not entry_of(body(suspend=True, conditions=(("Admitted", "True", "Admitted"),))).over


def test_a_finished_run_is_in_the_way_until_its_load_is_gone() -> None:
    finished = ("Succeeded", "True", "Valid")
    assert not entry_of(body(conditions=(finished, ("CleanedUp", "False", "InProgress")))).over
    assert entry_of(body(conditions=(finished, ("CleanedUp", "False", "StorageKept")))).over
    assert entry_of(body(conditions=(finished, ("CleanedUp", "False", "NodeGone")))).over
    assert entry_of(body(conditions=(finished, ("CleanedUp", "True", "Removed")))).over


def test_an_entry_is_made_of_whatever_stands_there() -> None:
    bare = {"metadata": body()["metadata"]}
    assert entry_of(bare).target == ""


def test_a_run_needs_attention_until_it_is_terminal_and_clean_and_does_not_expire() -> None:
    terminal, clean = ("Succeeded", "False", "X"), ("CleanedUp", "True", "Removed")
    assert needs_attention(body())
    assert needs_attention(body(conditions=(terminal,)))
    assert needs_attention(body(conditions=(terminal, ("CleanedUp", "False", "StorageKept"))))
    assert needs_attention(body(conditions=(terminal, ("CleanedUp", "False", "NodeGone"))))
    assert not needs_attention(body(conditions=(terminal, clean)))
    assert not needs_attention(body(conditions=(terminal, ("CleanedUp", "True", "NothingMade"))))
    assert needs_attention(body(conditions=(terminal, clean), ttlSecondsAfterFinished=0))


def test_a_run_that_waits_for_its_name_or_cannot_be_read_holds_up_nobody_before_it_is_admitted() -> None:
    for reason in ("WaitingForEarlierRun", "SpecUnreadable"):
        waits = ("Succeeded", "Unknown", reason)
        assert entry_of(body(conditions=(waits,))).over
        assert not entry_of(body(conditions=(waits, ("Admitted", "True", "Admitted")))).over


def test_a_finished_run_whose_specification_is_changed_needs_attention_until_that_is_seen() -> None:
    finished = body(conditions=(("Succeeded", "True", "Valid"), ("CleanedUp", "True", "Removed")))
    finished["metadata"]["generation"], finished["status"]["observedGeneration"] = 2, 1
    assert needs_attention(finished)
    going = {**finished, "metadata": {**finished["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z"}}
    assert not needs_attention(going)
    finished["status"]["observedGeneration"] = 2
    assert not needs_attention(finished)
