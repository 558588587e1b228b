"""The load between two snapshots: exact where counters increase, unknown where they decrease."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.agent.observation import DataSetStorage, host_use_during
from plimsoll.agent.readings import Bounds, CgroupCounters, DeviceCounters, HostSnapshot, ToolCounters, Traffic
from plimsoll.measure.sample import HostUse, NetworkUse

SECOND = 10**9
STORAGE = DataSetStorage(device="252:16", disk="252:0", file_system="ext4")
BOUNDS = Bounds(processors=4, usable=1.5, memory=2**30, physical=frozenset(), speeds={})
BEFORE = HostSnapshot(
    at=100 * SECOND,
    monotonic=7 * SECOND,
    busy=1000,
    idle=5000,
    memory_total=8 * 2**30,
    memory_available=6 * 2**30,
    interfaces={"eth0": Traffic(received=1000, sent=2000)},
    cgroup=CgroupCounters(cpu=SECOND, throttled_periods=4, throttled=SECOND // 2, memory=100),
    device=DeviceCounters(read_sectors=10, written_sectors=20, reads=2, writes=5, busy=1000, waiting=5000),
)
AFTER = HostSnapshot(
    at=110 * SECOND,
    monotonic=17 * SECOND,
    busy=1300,
    idle=5100,
    memory_total=8 * 2**30,
    memory_available=5 * 2**30,
    interfaces={"eth0": Traffic(received=11_000, sent=2500)},
    cgroup=CgroupCounters(cpu=6 * SECOND, throttled_periods=9, throttled=3 * SECOND, memory=200),
    device=DeviceCounters(read_sectors=30, written_sectors=220, reads=27, writes=80, busy=6000, waiting=45_000),
)


def use_of(*snapshots: HostSnapshot, bounds: Bounds = BOUNDS) -> HostUse | None:
    return host_use_during(bounds, snapshots, start=101 * SECOND, runtime=8 * SECOND, storage=STORAGE)


def known(*snapshots: HostSnapshot, bounds: Bounds = BOUNDS) -> HostUse:
    use = use_of(*snapshots, bounds=bounds)
    assert use is not None
    return use


def test_rates_are_differences_by_time() -> None:
    use = known(BEFORE, AFTER)
    assert use.seconds == 10
    assert (use.cpu.used, use.cpu.limit) == (0.5, 1.5)
    assert (use.cpu.throttled_periods, use.cpu.throttled_seconds) == (5, 2.5)
    assert use.cpu.throttled == ((-1000, 9000),)
    assert (use.cpu.node_busy, use.cpu.node_processors) == (0.75, 4)
    assert (use.network.received, use.network.sent, use.network.link) == (1000, 50, None)
    assert use.device is not None
    assert (use.device.number, use.device.read, use.device.written) == ("252:16", 20 * 51.2, 200 * 51.2)
    assert (use.device.busy, use.device.queue) == (0.5, 4)
    assert (use.device.operations, use.device.reads, use.device.writes) == (10, 2.5, 7.5)
    assert (use.disk, use.tool, use.unseen) == (None, None, "")


def test_the_disk_below_a_partition_and_the_tool_itself_have_rates_of_their_own() -> None:
    disk = DeviceCounters(read_sectors=10, written_sectors=20, reads=2, writes=5, busy=1000, waiting=5000)
    busier = replace(disk, read_sectors=1010, reads=22, writes=35, busy=11_000)
    use = known(
        replace(BEFORE, disk=disk, tool=ToolCounters(read=4096, written=0)),
        replace(AFTER, disk=busier, tool=ToolCounters(read=45_056, written=10)),
    )
    assert use.disk is not None
    assert (use.disk.number, use.disk.read, use.disk.operations, use.disk.busy) == ("252:0", 51_200, 5, 1)
    assert use.tool is not None
    assert (use.tool.read, use.tool.written) == (4096, 1)


@pytest.mark.parametrize(
    ("storage", "unseen"),
    [
        (DataSetStorage(file_system="tmpfs"), "tmpfs"),
        (DataSetStorage(device="8:1", file_system="ext4"), "block device 8:1"),
        (DataSetStorage(), ""),
    ],
)
def test_invisible_storage_of_a_data_set_is_named(storage: DataSetStorage, unseen: str) -> None:
    blind = [replace(snapshot, device=None) for snapshot in (BEFORE, AFTER)]
    use = host_use_during(BOUNDS, blind, start=101 * SECOND, runtime=8 * SECOND, storage=storage)
    assert use is not None
    assert (use.device, use.unseen) == (None, unseen)


def test_a_tool_whose_counters_decreased_or_are_invisible_is_absent() -> None:
    after = replace(AFTER, tool=ToolCounters(read=1, written=0))
    assert known(replace(BEFORE, tool=ToolCounters(read=2, written=0)), after).tool is None
    assert known(BEFORE, after).tool is None


def test_memory_is_the_worst_of_all_snapshots() -> None:
    between = replace(
        AFTER,
        at=105 * SECOND,
        monotonic=12 * SECOND,
        memory_available=2**30,
        cgroup=replace(AFTER.cgroup, memory=900),
        busy=1100,
    )
    later = replace(
        AFTER, at=120 * SECOND, monotonic=27 * SECOND, memory_available=1, cgroup=replace(AFTER.cgroup, memory=10**6)
    )
    memory = known(BEFORE, between, AFTER, later).memory
    assert (memory.used, memory.node_available) == (900, 2**30)
    assert (memory.limit, memory.node_total) == (2**30, 8 * 2**30)


@pytest.mark.parametrize(
    "snapshots",
    [
        (),
        (BEFORE,),
        (AFTER,),
        (replace(BEFORE, at=102 * SECOND, monotonic=9 * SECOND), AFTER),
        (BEFORE, replace(AFTER, at=108 * SECOND, monotonic=15 * SECOND)),
    ],
)
def test_a_measurement_that_snapshots_do_not_enclose_is_unknown(
    snapshots: tuple[HostSnapshot, ...],
) -> None:
    assert use_of(*snapshots) is None


def test_a_moment_has_no_rates() -> None:
    at = BEFORE.at
    assert host_use_during(BOUNDS, [BEFORE], start=at, runtime=0, storage=DataSetStorage()) is None


@given(st.lists(st.integers(0, 200), unique=True, max_size=30))
def test_the_observed_time_is_the_shortest_around_the_measured_part(seconds: list[int]) -> None:
    snapshots = [
        replace(BEFORE, at=at * SECOND, monotonic=(at + 7) * SECOND, busy=1000 + at, idle=5000 + at)
        for at in sorted(seconds)
    ]
    starts, ends = [at for at in seconds if at <= 101], [at for at in seconds if at >= 109]
    use = use_of(*snapshots)
    if starts and ends:
        assert use is not None
        assert use.seconds == min(ends) - max(starts)
    else:
        assert use is None


counters = st.integers(0, 2**64)
groups = st.builds(
    CgroupCounters,
    cpu=st.none() | counters,
    throttled_periods=st.none() | counters,
    throttled=st.none() | counters,
    memory=st.none() | counters,
)
devices = st.none() | st.builds(
    DeviceCounters,
    read_sectors=counters,
    written_sectors=counters,
    reads=counters,
    writes=counters,
    busy=counters,
    waiting=counters,
)
traffic = st.builds(Traffic, received=counters, sent=counters)
snapshots_at_100_and_110 = st.tuples(
    *(
        st.builds(
            HostSnapshot,
            at=st.just(second * SECOND),
            monotonic=st.just((second - 93) * SECOND),
            busy=counters,
            idle=counters,
            memory_total=counters,
            memory_available=counters,
            interfaces=st.dictionaries(st.sampled_from(["eth0", "eth1", "veth1"]), traffic),
            cgroup=groups,
            device=devices,
            disk=devices,
            tool=st.none() | st.builds(ToolCounters, read=counters, written=counters),
        )
        for second in (100, 110)
    )
)


def test_the_times_at_which_a_quota_stopped_the_client_are_those_between_two_snapshots() -> None:
    counts = [4, 4, 5, 9, 9, 9, 10, 10, 10, 10, 10]
    snapshots = [
        replace(
            BEFORE,
            at=(100 + second) * SECOND,
            monotonic=(7 + second) * SECOND,
            busy=1000 + second,
            cgroup=CgroupCounters(cpu=SECOND, throttled_periods=count, throttled=count * SECOND // 10, memory=100),
        )
        for second, count in enumerate(counts)
    ]
    # The measurement begins a second after the first snapshot.
    assert known(*snapshots).cpu.throttled == ((0, 2000), (4000, 5000))
    assert known(BEFORE, replace(AFTER, cgroup=BEFORE.cgroup)).cpu.throttled == ()


@given(snapshots_at_100_and_110)
def test_no_counters_yield_impossible_numbers(pair: tuple[HostSnapshot, HostSnapshot]) -> None:
    use = use_of(*pair)
    if use is None:
        return
    numbers = [
        use.cpu.used,
        use.cpu.throttled_periods,
        use.cpu.throttled_seconds,
        use.network.received,
        use.network.sent,
    ]
    for device in (use.device, use.disk):
        if device:
            numbers += [device.read, device.written, device.operations, device.reads, device.writes, device.queue]
            assert 0 <= device.busy <= 1
    if use.tool:
        numbers += [use.tool.read, use.tool.written]
    assert all(number >= 0 for number in numbers if number is not None)
    assert 0 <= use.cpu.node_busy <= 1


@pytest.mark.parametrize("name", ["read_sectors", "written_sectors", "reads", "writes", "busy", "waiting"])
def test_a_device_whose_counter_decreased_is_absent(name: str) -> None:
    assert AFTER.device is not None
    use = known(BEFORE, replace(AFTER, device=replace(AFTER.device, **{name: 0})))
    assert (use.device, use.unseen) == (None, "block device 252:16")


def test_a_device_that_was_not_present_throughout_is_absent() -> None:
    assert known(replace(BEFORE, device=None), AFTER).device is None
    assert known(BEFORE, replace(AFTER, device=None)).device is None


def test_a_group_whose_counters_decreased_is_absent() -> None:
    use = known(BEFORE, replace(AFTER, cgroup=CgroupCounters(cpu=0, throttled_periods=0, throttled=0)))
    assert (use.cpu.used, use.cpu.throttled_periods, use.cpu.throttled_seconds) == (None, None, None)


def test_a_device_is_at_most_fully_busy() -> None:
    assert AFTER.device is not None
    device = known(BEFORE, replace(AFTER, device=replace(AFTER.device, busy=11_004))).device
    assert device is not None
    assert device.busy == 1


def test_idle_time_that_decreased_slightly_means_no_idle_time() -> None:
    assert known(BEFORE, replace(AFTER, idle=4999)).cpu.node_busy == 1


@pytest.mark.parametrize("after", [replace(AFTER, busy=999), replace(AFTER, busy=1000, idle=5000)])
def test_a_host_whose_processors_count_backwards_or_not_at_all_is_unknown(after: HostSnapshot) -> None:
    assert use_of(BEFORE, after) is None


def test_an_interface_whose_counter_decreased_makes_the_traffic_unknown() -> None:
    assert use_of(BEFORE, replace(AFTER, interfaces={"eth0": Traffic(received=1, sent=2500)})) is None


def test_interfaces_that_come_and_go_do_not_count() -> None:
    before = replace(BEFORE, interfaces={**BEFORE.interfaces, "veth1": Traffic(received=9, sent=9)})
    after = replace(AFTER, interfaces={**AFTER.interfaces, "veth2": Traffic(received=10**9, sent=10**9)})
    network = known(before, after).network
    assert (network.received, network.sent) == (1000, 50)


def network_of(traffic: dict[str, int], bounds: Bounds) -> NetworkUse:
    """Return the use of interfaces that receive `traffic` bytes per second, and send a hundredth of that."""
    still = dict.fromkeys(traffic, Traffic(received=0, sent=0))
    grown = {name: Traffic(received=10 * rate, sent=rate // 10) for name, rate in traffic.items()}
    return known(replace(BEFORE, interfaces=still), replace(AFTER, interfaces=grown), bounds=bounds).network


def test_on_a_node_only_physical_interfaces_count() -> None:
    bounds = replace(BOUNDS, physical=frozenset({"eno1", "eno2"}))
    network = network_of(dict.fromkeys(("eno1", "eno2", "bond0", "veth1"), 1000), bounds)
    assert (network.received, network.sent, network.link) == (2000, 20, None)


def test_one_full_link_of_four_is_full() -> None:
    names = ("eno1", "eno2", "eno3", "eno4")
    bounds = replace(BOUNDS, physical=frozenset(names), speeds=dict.fromkeys(names, 125e6))
    network = network_of({**dict.fromkeys(names, 1000), "eno3": 125_000_000}, bounds)
    assert (network.received, network.sent, network.link) == (125e6, 1.25e6, 125e6)


def test_the_interface_with_the_fullest_link_counts_and_not_the_busiest() -> None:
    bounds = replace(BOUNDS, physical=frozenset({"eno1", "eno2"}), speeds={"eno1": 125e6, "eno2": 12.5e9})
    network = network_of({"eno1": 100_000_000, "eno2": 1_000_000_000}, bounds)
    assert (network.received, network.link) == (100e6, 125e6)


def test_traffic_of_an_interface_of_unknown_speed_does_not_fill_the_link_of_another() -> None:
    bounds = replace(BOUNDS, physical=frozenset({"eno1", "ib0"}), speeds={"eno1": 125e6})
    network = network_of({"eno1": 1000, "ib0": 10**10}, bounds)
    assert (network.received, network.link) == (1000, 125e6)


@pytest.mark.parametrize("step", [-3600, 3600])
def test_a_clock_that_was_set_before_the_start_does_not_hide_the_start(step: int) -> None:
    earlier = [replace(BEFORE, at=(at - step) * SECOND, monotonic=(at - 93) * SECOND) for at in (97, 98, 99)]
    assert known(*earlier, BEFORE, AFTER).seconds == 10
