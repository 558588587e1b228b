from typing import Any

import pytest

from plimsoll.api.names import Operation, Verdict
from plimsoll.measure.sample import ClientDocument, DeviceUse, HostUse
from support.client_documents import (
    BLOCK,
    GIBIBYTE,
    RUNTIME,
    T0,
    document,
    measure,
    measurement,
    only,
    operation,
    quiet_host,
)

RATE = 100 * BLOCK
"""Bytes per second of a client."""
SECONDS = 22.0
MOVED = RATE * RUNTIME / SECONDS
"""What a device shows that moved exactly a client's data in the observed time."""


def host(**changes: dict[str, Any]) -> HostUse:
    """Return a quiet host with some fields of its parts changed: `host(cpu={"used": 3})`."""
    quiet = quiet_host(SECONDS)
    parts = {name: getattr(quiet, name).model_copy(update=fields) for name, fields in changes.items()}
    return quiet.model_copy(update=parts)


def on(client: int, observed: HostUse | None, node: str = "", **changes: Any) -> ClientDocument:
    return document(client, host=observed, node=node or f"node-{client}", **changes)


def device(read: float = 0.0, written: float = 0.0, busy: float = 0.5, number: str = "253:0") -> HostUse:
    return quiet_host(SECONDS, device=DeviceUse(number=number, read=read, written=written, busy=busy, queue=busy))


def reading(rate: int = 100, **changes: Any) -> Any:
    return measurement(operation(rate, operation=Operation.READ), **changes)


def test_a_quiet_host_is_summarised_for_the_slowest_clients() -> None:
    numbers = measure(on(0, device(1.0, MOVED, busy=0.5)))
    assert numbers.verdict is Verdict.VALID
    summary = numbers.slowest[0].host
    assert summary is not None
    assert (summary.cpu, summary.cpu_limit, summary.throttled_seconds, summary.node_cpu_busy) == (0.5, 2, 0, 0.25)
    assert (summary.memory_bytes, summary.received_bytes_per_second) == (GIBIBYTE // 4, 1_000_000)
    assert (summary.device_read_bytes_per_second, summary.device_written_bytes_per_second) == (1, round(MOVED))
    assert (summary.device_busy, summary.device_queue) == (0.5, 0.5)


def test_an_unobserved_host_is_suspect() -> None:
    numbers = measure(on(0, quiet_host()), on(1, None))
    finding = only(numbers, "HostUnknown")
    assert (finding.verdict, finding.clients) == (Verdict.SUSPECT, (1,))
    assert [item.host is None for item in numbers.slowest] == [False, True]


@pytest.mark.parametrize(
    ("part", "field", "value"),
    [
        ("cpu", "node_busy", 1.5),
        ("cpu", "used", float("nan")),
        ("cpu", "node_processors", 0),
        ("cpu", "limit", 0.0),
        ("cpu", "throttled_seconds", float("inf")),
        ("memory", "node_total", 0),
        ("memory", "node_available", -1),
        ("network", "received", -1.0),
        ("network", "link", 0.0),
    ],
)
def test_an_impossible_number_costs_the_observation_and_not_the_measurement(
    part: str, field: str, value: float
) -> None:
    numbers = measure(on(0, host(**{part: {field: value}})), on(1, quiet_host()))
    assert only(numbers, "HostUnknown").clients == (0,)
    (warning,) = numbers.warnings
    assert warning.startswith("client 0: the observation of its host was discarded: ")
    assert warning.endswith(f" is {value}")
    assert numbers.operations[0].rates.iops == 200


def test_an_impossible_number_of_a_device_or_of_time_is_seen_too() -> None:
    for observed in (device(busy=1.2), device(read=-1.0), quiet_host(0.0), quiet_host(float("nan"))):
        assert only(measure(on(0, observed)), "HostUnknown").clients == (0,)
    assert measure(on(0, device(written=MOVED, busy=1.01))).verdict is Verdict.VALID


@pytest.mark.parametrize(
    ("seconds", "verdict"), [(0.12, Verdict.SUSPECT), (2.19, Verdict.SUSPECT), (2.3, Verdict.INVALID)]
)
def test_a_throttled_client_measures_its_quota(seconds: float, verdict: Verdict) -> None:
    finding = only(measure(on(0, host(cpu={"throttled_seconds": seconds})), on(1, quiet_host())), "ClientThrottled")
    assert (finding.verdict, finding.clients) == (verdict, (0,))
    assert "raise or remove the CPU limit in spec.clients.resources" in finding.message


@pytest.mark.parametrize("seconds", [0.05, 0.1])
def test_a_quota_that_hardly_stopped_a_client_changes_nothing(seconds: float) -> None:
    assert measure(on(0, host(cpu={"throttled_seconds": seconds})), on(1, quiet_host())).findings == ()


def test_times_of_a_quota_that_do_not_ascend_are_impossible() -> None:
    for times in (((5, 3),), ((0, 5), (3, 9)), ((0, 2**63),)):
        assert only(measure(on(0, host(cpu={"throttled": times}))), "HostUnknown").clients == (0,)


def test_throttled_time_that_is_added_up_over_processors_is_not_the_clients() -> None:
    stopped = host(cpu={"throttled_seconds": 30.0, "throttled_periods": 11})
    finding = only(measure(on(0, stopped)), "ClientThrottled")
    assert finding.verdict is Verdict.SUSPECT
    assert "summed over CPUs, in 11 periods, in 22 s of observation: 5 %" in finding.message
    stopped = host(cpu={"throttled_seconds": 30.0, "throttled_periods": 23})
    assert only(measure(on(0, stopped)), "ClientThrottled").verdict is Verdict.INVALID


def test_a_client_that_uses_all_processors_it_may_is_suspect() -> None:
    assert only(measure(on(0, host(cpu={"used": 1.9}))), "ClientCpuSaturated").verdict is Verdict.SUSPECT
    assert measure(on(0, host(cpu={"used": 1.9, "limit": None}))).verdict is Verdict.VALID
    assert only(measure(on(0, host(cpu={"used": 7.5, "limit": None}))), "ClientCpuSaturated").clients == (0,)
    assert only(measure(on(0, host(cpu={"used": 7.5, "limit": 64}))), "ClientCpuSaturated").clients == (0,)


def test_a_local_process_without_a_cgroup_of_its_own_is_not_suspect_for_that() -> None:
    unknown = host(cpu={"used": None, "limit": None, "throttled_seconds": None, "throttled_periods": None})
    assert measure(on(0, unknown)).verdict is Verdict.VALID


def test_a_busy_node_is_named_once_with_all_its_clients() -> None:
    busy = host(cpu={"node_busy": 0.97, "node_processors": 4, "used": 0.25})
    finding = only(measure(on(0, busy, "n1"), on(1, busy, "n1"), on(2, quiet_host())), "NodeCpuSaturated")
    assert (finding.verdict, finding.clients) == (Verdict.SUSPECT, (0, 1))
    assert (
        "the CPUs of n1 were busy for 97 % of the time; the clients themselves used 12.5 % (limit 90 %)"
        in finding.message
    )
    assert "spec.clients.nodeSelector" in finding.message


def test_a_node_short_of_memory_is_suspect() -> None:
    short = host(memory={"node_available": GIBIBYTE // 2})
    assert (
        "node-0 had 3.12 % of its memory available (limit 5 %)"
        in only(measure(on(0, short)), "NodeMemoryShort").message
    )


def test_a_full_link_is_suspect_in_either_direction() -> None:
    for direction in ("received", "sent"):
        full = host(network={direction: 0.95e9, "link": 1e9})
        assert only(measure(on(0, full)), "NetworkBound").verdict is Verdict.SUSPECT
    assert measure(on(0, host(network={"received": 0.5e9, "sent": 0.5e9, "link": 1e9}))).verdict is Verdict.VALID


def test_clients_of_a_node_share_the_network_that_the_user_names() -> None:
    reads = [on(client, quiet_host(), f"n{client % 2}", measurement=reading()) for client in range(4)]
    assert measure(*reads, network_bytes_per_second=RATE * 10 // 4).verdict is Verdict.VALID
    bound = only(measure(*reads, network_bytes_per_second=2 * RATE), "NetworkBound")
    assert bound.verdict is Verdict.SUSPECT
    assert "read 800 KiB/s on n0, whose network can carry 800 KiB/s: 100 % (limit 90 %)" in bound.message
    faster = only(measure(*reads, network_bytes_per_second=RATE), "FasterThanNetwork")
    assert (faster.verdict, faster.clients) == (Verdict.INVALID, (0, 1, 2, 3))
    assert "800 KiB/s on n0" in faster.message


def test_writes_faster_than_the_network_are_suspect() -> None:
    finding = only(measure(on(0, quiet_host()), network_bytes_per_second=RATE // 2), "WritesFasterThanNetwork")
    assert (finding.verdict, finding.clients) == (Verdict.SUSPECT, (0,))


def test_rates_against_the_network_are_those_of_the_window() -> None:
    """Two clients that shared the network one after the other never exceeded it."""
    late = T0 + (5 + RUNTIME) * 10**9
    apart = [
        on(0, quiet_host(), "n", measurement=reading()),
        on(1, quiet_host(), "n", measurement=reading(started_at=late)),
    ]
    assert "FasterThanNetwork" not in [f.reason for f in measure(*apart, network_bytes_per_second=RATE).findings]


@pytest.mark.parametrize(("gibibytes", "is_enough"), [(15, False), (16, True)])
def test_data_sets_of_a_node_must_exceed_its_page_cache_twice(gibibytes: int, *, is_enough: bool) -> None:
    buffered = reading(bypasses_cache=False)
    unlimited = host(memory={"limit": None})
    documents = [
        on(client, unlimited, "n", measurement=buffered, data_set_bytes=gibibytes * GIBIBYTE) for client in (0, 1)
    ]
    numbers = measure(*documents)
    assert [finding.reason for finding in numbers.findings] == ([] if is_enough else ["CacheSized"])
    direct = on(0, quiet_host(), data_set_bytes=GIBIBYTE)
    assert measure(direct).verdict is Verdict.VALID


def test_a_pods_limit_bounds_its_page_cache() -> None:
    buffered = reading(bypasses_cache=False)
    for gibibytes, reasons in ((1, ["CacheSized"]), (2, [])):
        documents = [
            on(client, quiet_host(), "n", measurement=buffered, data_set_bytes=gibibytes * GIBIBYTE)
            for client in (0, 1)
        ]
        assert [finding.reason for finding in measure(*documents).findings] == reasons


def test_buffered_writes_that_memory_holds_are_suspect_unless_they_are_synced() -> None:
    size = 64 * GIBIBYTE
    few = measurement(bypasses_cache=False)
    finding = only(measure(on(0, quiet_host(), measurement=few, data_set_bytes=size)), "CacheSized")
    assert (
        "fsync on node-0 through the page cache: 7.81 MiB, of which 1 GiB of memory may hold 100 %" in finding.message
    )
    sync = operation(operation=Operation.SYNC, bytes=0, cells=None)
    synced = measurement(operation(), sync, bypasses_cache=False)
    assert measure(on(0, quiet_host(), measurement=synced, data_set_bytes=size)).verdict is Verdict.VALID
    many = measurement(operation(bytes=2 * GIBIBYTE, cells=None), bypasses_cache=False)
    assert "CacheSized" not in [
        item.reason for item in measure(on(0, quiet_host(), measurement=many, data_set_bytes=size)).findings
    ]
    small = on(0, quiet_host(), measurement=many, data_set_bytes=GIBIBYTE)
    assert "CacheSized" in [item.reason for item in measure(small).findings], "what is overwritten takes no more memory"


def test_a_foreign_target_is_invalid_in_the_agents_words() -> None:
    numbers = measure(on(0, quiet_host(), foreign_target="fio has /tmp/x open and not /dev/rbd0"))
    finding = only(numbers, "WrongDevice")
    assert finding.verdict is Verdict.INVALID
    assert finding.message.startswith("client 0: fio has /tmp/x open and not /dev/rbd0; check that")


@pytest.mark.parametrize(
    ("part", "verdict"),
    [(1, Verdict.VALID), (0.91, Verdict.VALID), (0.89, Verdict.SUSPECT), (0.49, Verdict.INVALID), (0, Verdict.INVALID)],
)
def test_direct_io_that_the_device_did_not_see_went_elsewhere(part: float, verdict: Verdict) -> None:
    numbers = measure(on(0, device(written=part * MOVED)))
    assert numbers.verdict is verdict
    if verdict is not Verdict.VALID:
        assert only(numbers, "DeviceBypassed").clients == (0,)


def test_clients_on_one_device_are_compared_with_it_together() -> None:
    shared = [on(client, device(written=1.2 * MOVED), "n") for client in (0, 1)]
    assert only(measure(*shared), "DeviceBypassed").clients == (0, 1)
    apart = [on(client, device(written=1.2 * MOVED, number=f"253:{client}"), "n") for client in (0, 1)]
    assert measure(*apart).verdict is Verdict.VALID


def test_reads_and_writes_are_compared_apart_and_other_users_of_the_device_do_not_hide_it() -> None:
    mixed = measurement(operation(), operation(operation=Operation.READ))
    numbers = measure(on(0, device(read=MOVED / 4, written=5 * MOVED), measurement=mixed))
    assert [finding.reason for finding in numbers.findings] == ["DeviceBypassed", "ForeignDeviceLoad"]
    assert numbers.findings[0].verdict is Verdict.INVALID
    assert "saw 25 % of the direct read bytes (limit 50 %)" in numbers.findings[0].message


def test_a_device_without_statistics_is_unknown_and_not_bypassed() -> None:
    finding = only(measure(on(0, device(busy=0))), "HostUnknown")
    assert "the kernel keeps no statistics of its block device 253:0" in finding.message


def test_buffered_io_need_not_reach_the_device() -> None:
    buffered = measurement(bypasses_cache=False)
    reasons = [item.reason for item in measure(on(0, device(), measurement=buffered)).findings]
    assert "DeviceBypassed" not in reasons


@pytest.mark.parametrize(("gibibytes", "is_enough"), [(1, False), (2, True)])
def test_files_of_a_tool_must_exceed_the_page_cache_twice_whatever_the_data_set(
    gibibytes: int, *, is_enough: bool
) -> None:
    rewriting = measurement(
        operation(100, operation=Operation.REWRITE), bypasses_cache=False, data_bytes=gibibytes * GIBIBYTE
    )
    numbers = measure(on(0, quiet_host(), measurement=rewriting, data_set_bytes=4096 * GIBIBYTE))
    assert ("CacheSized" in {finding.reason for finding in numbers.findings}) is not is_enough


def test_reads_too_fast_to_be_timed_come_from_a_cache_too() -> None:
    untimed = measurement(
        operation(100, operation=Operation.WRITE),
        bypasses_cache=False,
        flushes=True,
        data_bytes=GIBIBYTE,
        untimed=(Operation.READ,),
    )
    numbers = measure(on(0, quiet_host(), measurement=untimed))
    messages = {finding.reason: finding.message for finding in numbers.findings}
    assert messages.keys() == {"Untimed", "CacheSized"}
    assert messages["Untimed"].startswith("client 0: too fast to be timed: read")
    assert "data sets read" in messages["CacheSized"]
    written = untimed.model_copy(update={"untimed": ()})
    assert measure(on(0, quiet_host(), measurement=written)).verdict is Verdict.VALID, "flushed writes are no cache's"


def test_a_phase_is_compared_with_the_network_by_its_own_time() -> None:
    brief = operation(100, operation=Operation.WRITE).model_copy(update={"runtime": 10**9, "cells": None})
    documents = [on(0, quiet_host(), measurement=measurement(brief))]
    numbers = measure(*documents, windowed=False, network_bytes_per_second=RATE * RUNTIME)
    assert only(numbers, "NetworkBound").message.startswith(f"client 0: write {RATE * RUNTIME / 2**20:.3g} MiB/s")
    assert numbers.operations[0].rates.bytes_per_second == RATE * RUNTIME
