"""What the disk below a data set did beside the tool's work, and what shows that direct I/O reached storage at all."""

import math
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.api.names import Operation, Verdict
from plimsoll.measure.sample import ClientDocument, DeviceUse, Measurement, ToolIo
from plimsoll.measure.trial import TrialNumbers
from support.client_documents import (
    BLOCK,
    RUNTIME,
    document,
    latency,
    measure,
    measurement,
    only,
    operation,
    quiet_host,
)

SECONDS = 22.0
RATE = 1000
"""Operations per second of a client."""
MOVED = RATE * BLOCK
"""Bytes per second that a disk shows which did what the client did, and went on before and after it."""
MEBIBYTE = 2**20


def disk(number: str = "8:0", **changes: Any) -> DeviceUse:
    return DeviceUse(number=number, read=0, written=MOVED, operations=RATE, busy=1.0, queue=8).model_copy(
        update=changes
    )


def writing(**changes: Any) -> Measurement:
    return measurement(operation(RATE), **changes)


def client(number: int = 0, *, measured: Measurement | None = None, **host: Any) -> ClientDocument:
    observed = quiet_host(SECONDS).model_copy(update={"device": disk(), **host})
    return document(number, measured or writing(), node="node", host=observed)


def reasons(*documents: ClientDocument) -> list[str]:
    return [finding.reason for finding in measure(*documents).findings]


def foreign(**host: Any) -> TrialNumbers:
    return measure(client(**host))


# Foreign load


def test_a_disk_that_did_what_the_tool_did_was_the_run_s_alone() -> None:
    assert reasons(client()) == []
    assert reasons(client(disk=disk("8:16"))) == []


def test_two_runs_on_one_disk_are_seen() -> None:
    finding = only(foreign(device=disk(written=2 * MOVED, operations=2 * RATE)), "ForeignDeviceLoad")
    assert (finding.verdict, finding.clients) == (Verdict.SUSPECT, (0,))
    assert (
        "the disk below the data set moved 7.81 MiB/s in 2000 operations/s and was busy for 100 % of the time; "
        "the tools do not explain 52.4 % of the bytes and 50.8 % of the operations (limit 10 %); keep other users"
    ) in finding.message


def test_reads_beside_writes_are_foreign_however_few_writes_there_were() -> None:
    only(foreign(device=disk(read=10 * MEBIBYTE)), "ForeignDeviceLoad")


def test_what_is_little_in_itself_is_no_matter() -> None:
    few = measurement(operation(10))
    little: dict[str, Any] = {"written": 10 * BLOCK + 200_000, "operations": 34}
    assert reasons(client(measured=few, device=disk(**little))) == []
    assert reasons(client(measured=few, device=disk(**(little | {"operations": 50})))) == ["ForeignDeviceLoad"]


def test_a_disk_with_time_to_spare_has_room_for_others() -> None:
    assert reasons(client(device=disk(written=50 * MOVED, busy=0.29))) == []
    assert reasons(client(device=disk(written=50 * MOVED, busy=0.31))) == ["ForeignDeviceLoad"]
    silent = disk(written=50 * MOVED, busy=0, queue=0)
    assert reasons(client(device=silent)) == ["ForeignDeviceLoad"], "whether it was busy is unknown"


def test_clients_of_one_disk_explain_it_together() -> None:
    """Also those on different partitions of it, of which each counts its own."""
    whole = disk(written=3 * MOVED, operations=3 * RATE)
    parts = [client(number, device=disk(f"8:{number + 1}"), disk=whole) for number in range(3)]
    assert reasons(*parts) == []
    assert reasons(*parts[:2]) == ["ForeignDeviceLoad"]


def test_a_sync_writes_a_journal() -> None:
    syncs = operation(RATE, operation=Operation.SYNC, bytes=0, cells=None)
    synced = writing()
    synced = synced.model_copy(update={"operations": (*synced.operations, syncs)})
    journalled = disk(written=MOVED + RATE * 20 * 2**10, operations=5 * RATE)
    assert reasons(client(measured=synced, device=journalled)) == []
    assert reasons(client(device=journalled)) == ["ForeignDeviceLoad"]


def test_a_ramp_that_did_more_is_the_tool_s_own_if_the_kernel_counted_it() -> None:
    faster = disk(written=2 * MOVED)
    assert reasons(client(device=faster, tool=ToolIo(read=0, written=2 * MOVED))) == []
    assert reasons(client(device=faster, tool=ToolIo(read=0, written=MOVED))) == ["ForeignDeviceLoad"]


def test_large_operations_are_cut_by_the_device() -> None:
    large = measurement(operation(10, bytes=10 * RUNTIME * 4 * MEBIBYTE, cells=None))
    numbers = measure(client(measured=large, device=disk(written=40 * MEBIBYTE, operations=640)))
    assert "ForeignDeviceLoad" not in [finding.reason for finding in numbers.findings]


def large_writes(**host: Any) -> list[str]:
    """Return what is found of ten writes of 4 MiB a second, on a disk that did so many reads and writes."""
    large = measurement(operation(10, bytes=10 * RUNTIME * 4 * MEBIBYTE, cells=None))
    reads, writes = host.pop("reads"), host.pop("writes")
    used = disk(
        read=reads * BLOCK,
        written=40 * MEBIBYTE * RUNTIME / SECONDS,
        reads=reads,
        writes=writes,
        operations=reads + writes,
    )
    return [reason for reason in reasons(client(measured=large, device=used, **host)) if reason == "ForeignDeviceLoad"]


@pytest.mark.parametrize("uncut", [None, 4096, 2**17, 5 * 2**18, 2**22])
def test_reads_beside_a_tool_that_only_writes_are_seen(uncut: int | None) -> None:
    assert large_writes(reads=0, writes=40, uncut_bytes=uncut) == []
    assert large_writes(reads=24, writes=40, uncut_bytes=uncut) == [], "little in itself"
    assert large_writes(reads=26, writes=40, uncut_bytes=uncut) == ["ForeignDeviceLoad"]


@pytest.mark.parametrize(("uncut", "parts"), [(2**22, 4), (5 * 2**18, 4), (688_128, 8), (2**17, 32), (4096, 1024)])
def test_small_writes_of_others_are_distinguished_from_the_parts_of_large_ones(uncut: int, parts: int) -> None:
    """One part more for each operation, since blocks need not lie where parts begin."""
    most = 10 * (parts + 1)
    assert large_writes(reads=0, writes=most, uncut_bytes=uncut) == []
    assert large_writes(reads=0, writes=1.2 * most + 25, uncut_bytes=uncut) == ["ForeignDeviceLoad"]


def test_what_may_be_parts_of_large_writes_does_not_make_foreign_reads_seem_little() -> None:
    assert large_writes(reads=30, writes=40) == ["ForeignDeviceLoad"]
    assert large_writes(reads=30, writes=600) == ["ForeignDeviceLoad"]


def test_where_it_is_not_known_how_the_kernel_cuts_parts_may_be_small() -> None:
    assert large_writes(reads=0, writes=640) == []
    assert large_writes(reads=0, writes=1000) == ["ForeignDeviceLoad"]


def test_a_ramp_that_did_more_explains_more_operations() -> None:
    faster = disk(written=2 * MOVED, operations=2 * RATE, reads=0, writes=2 * RATE)
    assert reasons(client(device=faster, tool=ToolIo(read=0, written=2 * MOVED))) == []
    assert reasons(client(device=faster, tool=ToolIo(read=0, written=MOVED))) == ["ForeignDeviceLoad"]


def test_bytes_that_are_missing_one_way_hide_none_of_the_other() -> None:
    mixed = measurement(operation(RATE), operation(RATE, operation=Operation.READ))
    used = disk(read=0.95 * MOVED, written=1.3 * MOVED, operations=2 * RATE, reads=0.95 * RATE, writes=RATE)
    assert reasons(client(measured=mixed, device=used)) == ["ForeignDeviceLoad"]


def test_what_was_written_through_the_page_cache_comes_when_it_likes() -> None:
    buffered = writing(bypasses_cache=False)
    assert "ForeignDeviceLoad" not in reasons(client(measured=buffered, device=disk(written=9 * MOVED)))
    read = client(measured=buffered, device=disk(written=9 * MOVED, read=9 * MOVED), tool=ToolIo(read=0, written=0))
    assert "ForeignDeviceLoad" in reasons(read), "but not what was read"


volumes = st.floats(0, 1e10)
counts = st.floats(0, 1e6)


@given(
    st.tuples(volumes, volumes, counts, st.floats(0, 1)),
    st.tuples(volumes, volumes, counts, st.floats(0, 1)),
    st.booleans(),
)
def test_more_foreign_load_is_never_judged_milder(
    load: tuple[float, ...],
    more: tuple[float, ...],
    below: bool,  # noqa: FBT001 - Hypothesis gives it
) -> None:
    def judged(read: float, written: float, operations: float, busy: float) -> int:
        used = disk(read=read, written=MOVED + written, operations=RATE + operations, busy=min(1.0, 0.05 + busy))
        return len(reasons(client(disk=used) if below else client(device=used)))

    heavier = tuple(one + other for one, other in zip(load, more, strict=True))
    assert judged(*load) <= judged(*heavier)


rates = st.floats(0, 1e5)


@given(st.tuples(rates, rates), st.tuples(rates, rates), st.none() | st.integers(4096, 2**23))
def test_more_foreign_operations_of_either_kind_are_never_judged_milder(
    load: tuple[float, float], more: tuple[float, float], uncut: int | None
) -> None:
    (reads, writes), (more_reads, more_writes) = load, more
    before = large_writes(reads=reads, writes=40 + writes, uncut_bytes=uncut)
    assert len(before) <= len(
        large_writes(reads=reads + more_reads, writes=40 + writes + more_writes, uncut_bytes=uncut)
    )


@given(st.integers(1, 500), st.sampled_from([512, 4096, 2**16, 2**20, 3 * 2**20, 2**24]), st.integers(2**12, 2**23))
def test_no_way_of_cutting_blocks_is_blamed_on_others(rate: int, block: int, uncut: int) -> None:
    """The kernel hands down parts of a mebibyte, and cuts each of them by what the queue takes."""
    edges = [*range(0, block, MEBIBYTE), block]
    parts = sum(math.ceil((end - start) / uncut) for start, end in pairwise(edges))
    wrote = operation(rate, bytes=rate * RUNTIME * block, cells=None)
    alone = disk(
        written=rate * block * RUNTIME / SECONDS,
        reads=0,
        writes=rate * parts * RUNTIME / SECONDS,
        operations=rate * parts * RUNTIME / SECONDS,
    )
    assert "ForeignDeviceLoad" not in reasons(client(measured=measurement(wrote), device=alone, uncut_bytes=uncut))


@given(st.integers(1, 5000), st.sampled_from([512, 4096, 2**16, 2**20]), st.integers(1, 4), st.floats(0.3, 1))
def test_a_disk_without_other_users_is_never_a_finding(rate: int, block: int, clients: int, busy: float) -> None:
    wrote = operation(rate, bytes=rate * RUNTIME * block, cells=None)
    pieces = max(1, block // 2**16)
    whole = disk(
        written=clients * rate * block * RUNTIME / SECONDS,
        operations=clients * rate * pieces * RUNTIME / SECONDS,
        busy=busy,
    )
    documents = [client(number, measured=measurement(wrote), device=whole) for number in range(clients)]
    assert "ForeignDeviceLoad" not in reasons(*documents)


def test_other_users_do_not_hide_what_never_reached_the_disk() -> None:
    busy = disk(written=5 * MOVED)
    numbers = measure(client(device=busy, tool=ToolIo(read=0, written=MOVED / 10)))
    assert [finding.reason for finding in numbers.findings] == ["DeviceBypassed", "ForeignDeviceLoad"]
    assert "DeviceBypassed" not in reasons(client(device=busy))


def test_tools_on_one_disk_are_witnessed_together_or_not_at_all() -> None:
    one = client(0, device=disk(written=2 * MOVED, operations=2 * RATE), tool=ToolIo(read=0, written=0))
    assert reasons(one, client(1, device=disk(written=2 * MOVED, operations=2 * RATE))) == []
    other = client(1, device=disk(written=2 * MOVED, operations=2 * RATE), tool=ToolIo(read=0, written=MOVED))
    assert only(measure(one, other), "DeviceBypassed").clients == (0, 1)


@pytest.mark.parametrize(
    ("latency_part", "reached", "is_enough"), [(0, 0.4, False), (0.6, 0.4, True), (0.6, 0.37, True), (0.6, 0.15, False)]
)
@pytest.mark.parametrize("device", [None, disk()])
def test_what_was_in_flight_when_the_measurement_began_reached_storage_before(
    latency_part: float, reached: float, device: DeviceUse | None, *, is_enough: bool
) -> None:
    slow = latency(RATE * RUNTIME, round(latency_part * RUNTIME * 10**9))
    written = reached * MOVED * RUNTIME / SECONDS
    seen = device and device.model_copy(update={"written": written})
    tool, unseen = ToolIo(read=0, written=written), "" if seen else "overlay"
    found = reasons(client(measured=measurement(operation(RATE, latency=slow)), device=seen, tool=tool, unseen=unseen))
    assert (("DeviceBypassed" if device else "CacheNotExcluded") not in found) is is_enough


# Storage without a device that can be seen


@pytest.mark.parametrize(("part", "is_enough"), [(1.05, True), (0.91, True), (0.89, False), (0, False), (None, False)])
def test_direct_io_that_no_device_shows_needs_the_kernel_s_word(part: float | None, *, is_enough: bool) -> None:
    tool = None if part is None else ToolIo(read=0, written=part * MOVED * RUNTIME / SECONDS)
    numbers = foreign(device=None, unseen="overlay", tool=tool)
    if is_enough:
        assert numbers.verdict is Verdict.VALID
        return
    finding = only(numbers, "CacheNotExcluded")
    assert finding.verdict is Verdict.SUSPECT
    words = "exposes no counters of the tool" if part is None else f"counted {100 * part:.3g} % as I/O on storage"
    assert (
        "client 0: no block device is visible below its data set on overlay; "
        f"of its direct write bytes the kernel {words} (limit 90 %)"
    ) in finding.message


@pytest.mark.parametrize(
    ("file_system", "did", "is_enough"),
    [
        ("zfs", Operation.READ, False),
        ("zfs", Operation.WRITE, False),
        ("btrfs", Operation.READ, True),
        ("btrfs", Operation.WRITE, False),
        ("overlay", Operation.WRITE, True),
    ],
)
def test_the_kernel_s_word_is_worth_nothing_where_it_counts_what_memory_answers(
    file_system: str, did: Operation, *, is_enough: bool
) -> None:
    moved = 2 * MOVED
    done = measurement(operation(RATE, operation=did))
    numbers = measure(client(measured=done, device=None, unseen=file_system, tool=ToolIo(read=moved, written=moved)))
    assert ("CacheNotExcluded" in [finding.reason for finding in numbers.findings]) is not is_enough
    if not is_enough:
        assert "the kernel counts those that memory answered, too" in only(numbers, "CacheNotExcluded").message


def test_each_direction_needs_its_own() -> None:
    mixed = measurement(operation(RATE), operation(RATE, operation=Operation.READ))
    written = ToolIo(read=0, written=2 * MOVED)
    finding = only(measure(client(measured=mixed, device=None, unseen="nfs4", tool=written)), "CacheNotExcluded")
    assert "direct read bytes" in finding.message


def test_images_pools_and_buffered_io_have_no_device_by_nature() -> None:
    assert reasons(client(device=None)) == [], "what librbd does is not seen by the kernel at all"
    buffered = writing(bypasses_cache=False)
    assert "CacheNotExcluded" not in reasons(client(measured=buffered, device=None, unseen="tmpfs"))


@given(st.lists(st.floats(0, 2), min_size=2, max_size=2))
def test_fewer_counted_bytes_are_never_judged_milder(parts: list[float]) -> None:
    fewer, more = (
        len(reasons(client(device=None, unseen="overlay", tool=ToolIo(read=0, written=part * MOVED))))
        for part in sorted(parts)
    )
    assert fewer >= more


@pytest.mark.parametrize(
    "host",
    [
        {"tool": ToolIo(read=-1, written=0)},
        {"tool": ToolIo(read=0, written=float("nan"))},
        {"disk": disk(busy=1.2)},
        {"disk": disk(operations=-1)},
        {"device": disk(operations=float("inf"))},
        {"device": disk(reads=-1)},
        {"device": disk(writes=float("nan"))},
        {"uncut_bytes": 0},
    ],
)
def test_an_impossible_number_costs_the_observation(host: dict[str, Any]) -> None:
    assert reasons(client(**host)) == ["HostUnknown"]
