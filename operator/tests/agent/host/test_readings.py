import time
from pathlib import Path

import pytest

from plimsoll.agent.readings import CgroupCounters, DeviceCounters, Host, ToolCounters, Traffic
from support.agents import DEVICE_STAT, NET_DEV, STAT, HostTree

MEBIBYTE = 2**20


def test_a_snapshot_contains_the_kernel_s_counters(tree: HostTree) -> None:
    tree.in_unified_pod()
    tree.device("252:16")
    snapshot = tree.host.snapshot(cgroup=tree.host.cgroup(), device="252:16")
    assert snapshot is not None
    assert abs(snapshot.at - time.time_ns()) < 60 * 10**9
    assert 0 < snapshot.monotonic <= time.monotonic_ns()
    assert snapshot.idle == 5000 + 300, "waiting for I/O is idle"
    assert snapshot.busy == 1000 + 10 + 200 + 5 + 15 + 40, "stolen time is not; guests' time is in user time"
    assert (snapshot.memory_total, snapshot.memory_available) == (8000 * 1024, 6000 * 1024)
    assert snapshot.interfaces == {"eth0": Traffic(received=1000, sent=2000)}, "without the loopback"
    assert snapshot.device == DeviceCounters(
        read_sectors=4096, written_sectors=8192, reads=100, writes=200, busy=1500, waiting=2500
    )
    assert (snapshot.disk, snapshot.tool) == (None, None)
    assert snapshot.cgroup.cpu == 2_500_000_000


def test_a_host_without_group_and_device_is_still_a_host(tree: HostTree) -> None:
    snapshot = tree.host.snapshot(cgroup=None, device=None)
    assert snapshot is not None
    assert snapshot.cgroup == CgroupCounters()
    assert snapshot.device is None


@pytest.mark.parametrize("text", [None, "", "1 2 3", "a b c d e f g h i j k"])
def test_a_device_that_cannot_be_read_is_absent(tree: HostTree, text: str | None) -> None:
    if text is not None:
        tree.device("252:16", text)
    snapshot = tree.host.snapshot(cgroup=None, device="252:16")
    assert snapshot is not None
    assert snapshot.device is None


@pytest.mark.parametrize("path", ["proc/stat", "proc/meminfo", "proc/net/dev"])
@pytest.mark.parametrize("text", [None, "", "garbage", "cpu x\n"])
def test_an_unreadable_host_has_no_snapshot(tree: HostTree, path: str, text: str | None) -> None:
    if text is None:
        (tree.directory / path).unlink()
    else:
        tree.write(path, text)
    assert tree.host.snapshot(cgroup=None, device=None) is None


def add_interface(tree: HostTree, name: str, *, speed: str | None, physical: bool) -> None:
    """Add a network interface to /sys; its counters are those of /proc/net/dev."""
    if speed is not None:
        tree.write(f"sys/class/net/{name}/speed", f"{speed}\n")
    if physical:
        (tree.directory / f"sys/class/net/{name}/device").mkdir(parents=True)


def test_bounds_of_a_pod(tree: HostTree) -> None:
    tree.in_unified_pod()
    add_interface(tree, "eth0", speed="10000", physical=False)
    bounds = tree.host.bounds(tree.host.cgroup())
    assert bounds is not None
    assert (bounds.processors, bounds.usable, bounds.memory) == (2, 1.5, 2**30)
    assert (bounds.physical, bounds.speeds) == (frozenset(), {}), "a veth's speed is made up"


def test_bounds_of_a_node(tree: HostTree) -> None:
    add_interface(tree, "eno1", speed="25000", physical=True)
    add_interface(tree, "eno2", speed="25000", physical=True)
    add_interface(tree, "eno3", speed="-1", physical=True)
    add_interface(tree, "bond0", speed="50000", physical=False)
    bounds = tree.host.bounds(None)
    assert bounds is not None
    assert (bounds.usable, bounds.memory) == (None, None)
    assert bounds.physical == {"eno1", "eno2", "eno3"}
    assert bounds.speeds == {"eno1": 25000 * 10**6 / 8, "eno2": 25000 * 10**6 / 8}


@pytest.mark.parametrize("speed", ["-1", "0", "", None])
def test_an_interface_without_a_known_speed_has_none(tree: HostTree, speed: str | None) -> None:
    add_interface(tree, "eth0", speed=speed, physical=True)
    bounds = tree.host.bounds(None)
    assert bounds is not None
    assert (bounds.physical, bounds.speeds) == (frozenset({"eth0"}), {})


@pytest.mark.parametrize(("mask", "usable"), [("1", 1), ("3", None), ("00000000,00000002", 1)])
def test_a_client_pinned_to_processors_can_use_only_those(tree: HostTree, mask: str, usable: int | None) -> None:
    tree.write("proc/self/status", f"Name:\tx\nCpus_allowed:\t{mask}\n")
    bounds = tree.host.bounds(None)
    assert bounds is not None
    assert bounds.usable == usable


def test_bounds_that_cannot_be_read_are_unknown(tree: HostTree) -> None:
    (tree.directory / "proc/stat").unlink()
    assert tree.host.bounds(None) is None


def test_this_machine_can_be_read() -> None:
    host = Host()
    cgroup = host.cgroup()
    bounds, snapshot = host.bounds(cgroup), host.snapshot(cgroup=cgroup, device=None)
    assert bounds is not None
    assert snapshot is not None
    assert bounds.processors >= 1
    assert snapshot.memory_total >= snapshot.memory_available > MEBIBYTE
    assert snapshot.busy > 0


def test_an_interface_name_may_directly_precede_its_counter(tree: HostTree) -> None:
    tree.write("proc/net/dev", NET_DEV.replace("eth0: 1000", "eth0:1000"))
    tree.write("proc/stat", STAT)
    snapshot = tree.host.snapshot(cgroup=None, device=None)
    assert snapshot is not None
    assert snapshot.interfaces == {"eth0": Traffic(received=1000, sent=2000)}


def block_device(tree: HostTree, place: str, number: str, *, below: tuple[str, ...] = ()) -> Path:
    """Create a device as /sys shows it, on other devices if named."""
    directory = tree.directory / "sys/devices" / place
    (directory / "slaves").mkdir(parents=True)
    (directory / "dev").write_text(f"{number}\n")
    for name in below:
        (directory / "slaves" / Path(name).name).symlink_to(tree.directory / "sys/devices" / name)
    link = tree.directory / "sys/dev/block" / number
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(directory)
    return directory


def test_a_partition_and_a_logical_volume_are_parts_of_a_disk(tree: HostTree) -> None:
    block_device(tree, "sda", "8:0")
    for name, number in (("sda/sda1", "8:1"), ("sda/sda2", "8:2")):
        (block_device(tree, name, number) / "partition").write_text("1\n")
    block_device(tree, "dm-0", "253:0", below=("sda/sda2",))
    block_device(tree, "dm-1", "253:1", below=("dm-0",))
    assert [tree.host.disk_of(number) for number in ("8:0", "8:1", "253:0", "253:1")] == [None, "8:0", "8:0", "8:0"]
    tree.write("sys/devices/sda/stat", DEVICE_STAT)
    snapshot = tree.host.snapshot(cgroup=None, device="253:1", disk="8:0", tool=ToolCounters(read=1, written=2))
    assert snapshot is not None
    assert snapshot.disk is not None
    assert (snapshot.device, snapshot.disk.reads, snapshot.tool) == (None, 100, ToolCounters(read=1, written=2))


def queue(directory: Path, *, sectors: int = 1280, segments: int = 168, chunk: int = 0) -> None:
    limits = {"max_sectors_kb": sectors, "max_segments": segments, "chunk_sectors": chunk}
    (directory / "queue").mkdir()
    for name, value in limits.items():
        (directory / "queue" / name).write_text(f"{value}\n")


def test_the_largest_operation_that_a_disk_takes_unsplit(tree: HostTree) -> None:
    queue(block_device(tree, "sda", "8:0"))
    (block_device(tree, "sda/sda1", "8:1") / "partition").write_text("1\n")
    queue(block_device(tree, "sdb", "8:16"), segments=65535)
    queue(block_device(tree, "nvme0n1", "259:0"), chunk=256)
    queue(block_device(tree, "sdc", "8:32"), segments=127, chunk=1024)
    queue(block_device(tree, "sdd", "8:48"), segments=1, chunk=9)
    assert tree.host.uncut_bytes("8:0") == 168 * 4096, "a segment may be a single page"
    assert tree.host.uncut_bytes("8:1") == 168 * 4096, "a partition has the queue of its disk"
    assert tree.host.uncut_bytes("8:16") == 1280 * 1024
    assert tree.host.uncut_bytes("259:0") == 256 * 512, "nothing crosses such a boundary"
    assert tree.host.uncut_bytes("8:32") == 256 * 1024, "up to a boundary there is room for one piece and a small rest"
    assert tree.host.uncut_bytes("8:48") == 4096, "the conductor refuses a document with less than a page"


def test_where_layers_split_operations_is_unknown(tree: HostTree) -> None:
    block_device(tree, "sda", "8:0")
    queue(block_device(tree, "dm-0", "253:0", below=("sda",)))
    assert [tree.host.uncut_bytes(number) for number in ("253:0", "8:0", "7:7")] == [None] * 3


def test_a_device_on_several_others_is_a_whole_device(tree: HostTree) -> None:
    for name, number in (("sda", "8:0"), ("sdb", "8:16")):
        block_device(tree, name, number)
    block_device(tree, "md0", "9:0", below=("sda", "sdb"))
    block_device(tree, "dm-0", "253:0", below=("md0",))
    assert [tree.host.disk_of(number) for number in ("9:0", "253:0", "7:7")] == [None, "9:0", None]


def test_a_device_is_identified_by_what_does_not_depend_on_its_number(tree: HostTree) -> None:
    """The names are those of Linux: of NVMe, SCSI and virtio disks, logical volumes, loop devices, krbd and rbd-nbd."""
    identities = {
        ("nvme0n1", "wwid", "259:0"): "eui.0025385b71b0a4d2",
        ("sda", "device/wwid", "8:0"): "t10.ATA     disk      S3Z9",
        ("vda", "serial", "254:0"): "virtio-1",
        ("dm-0", "dm/uuid", "253:0"): "LVM-9xCq",
        ("loop3", "loop/backing_file", "7:3"): "/var/lib/volume.img",
        ("rbd0", "device/image_id", "252:0"): "5e3a6b8b4567",
        ("nbd0", "backend", "43:0"): "pool/image",
    }
    for (device, name, number), identity in identities.items():
        block_device(tree, device, number)
        tree.write(f"sys/devices/{device}/{name}", f"{identity}\n")
    (block_device(tree, "sda/sda2", "8:2") / "partition").write_text("2\n")
    block_device(tree, "sdz", "65:144")
    expected = {number: " ".join(identity.split()) for (_, _, number), identity in identities.items()}
    assert {number: tree.host.identity_of(number) for number in expected} == expected
    assert tree.host.identity_of("8:2") == f"{expected['8:0']} partition 2"
    assert [tree.host.identity_of(number) for number in ("65:144", "7:7")] == ["", ""]


def test_a_long_identity_fits_into_the_document(tree: HostTree) -> None:
    block_device(tree, "loop0", "7:0")
    tree.write("sys/devices/loop0/loop/backing_file", "/" + 4000 * "x")
    assert len(tree.host.identity_of("7:0")) <= 256
