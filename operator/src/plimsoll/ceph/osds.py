"""The OSDs of a cluster and their settings."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace

from plimsoll.api.json_reader import JsonNode
from plimsoll.ceph.document import parse_answer

_CAPACITY = "osd_mclock_max_capacity_iops_"
SETTINGS = (
    "osd_mclock_profile",
    "osd_op_queue",
    f"{_CAPACITY}hdd",
    f"{_CAPACITY}ssd",
    "osd_memory_target",
    "ms_cluster_mode",
    "ms_service_mode",
)
"""The options that `OsdSettings` is read from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Osd:
    """One OSD. An empty string or None means unknown."""

    number: int
    host: str = ""  # as the daemon reports it; with Rook, the node's name
    bucket: str = ""  # its host in the CRUSH map
    device_class: str = ""
    device: str = ""  # model or kernel name of its device
    rotational: bool | None = None
    object_store: str = ""
    kernel: str = ""
    processor: str = ""
    size_bytes: int | None = None
    utilisation: float | None = None  # used part of the device, 0 to 1
    placement_groups: int | None = None
    is_up: bool | None = None
    is_in: bool | None = None
    reweight: float | None = None  # from 0, which is out, to 1


@dataclass(frozen=True, slots=True, kw_only=True)
class OsdSettings:
    """The settings of an OSD; None is unknown."""

    profile: str | None = None
    queue: str | None = None
    capacity_iops: float | None = None  # the capacity that mClock assumes for its kind of device
    memory_target_bytes: float | None = None
    cluster_mode: str | None = None  # permitted connection modes to other daemons, in order of preference: `crc secure`
    service_mode: str | None = None  # the same to clients; encryption costs throughput


def parse_osd_df(text: str) -> dict[int, Osd]:
    """Read `ceph osd df`: number of the OSD -> OSD. This and all other parsers raise ValueError with the field."""
    osds = (
        Osd(
            number=node["id"].count(),
            device_class=_word(node, "device_class"),
            size_bytes=node["kb"].count() * 1024,
            # Ceph divides by the size, which is 0 for an OSD that has not started.
            utilisation=None if (used := node.number_or_none("utilization")) is None else used / 100,
            placement_groups=node["pgs"].count(),
            is_up=node["status"].text() == "up",
            is_in=node["reweight"].number() > 0,
        )
        for node in parse_answer(text)["nodes"].elements()
    )
    return {osd.number: osd for osd in osds}


def parse_osd_metadata(text: str) -> dict[int, Osd]:
    """Read `ceph osd metadata`, which has only the number of an OSD that never started."""
    osds = {}
    for node in parse_answer(text).elements():
        rotational, size = node.get("rotational"), node.get("bluestore_bdev_size")
        number = node["id"].count()
        osds[number] = Osd(
            number=number,
            host=_word(node, "hostname"),
            device=_word(node, "device_ids") or _word(node, "devices"),
            rotational=None if rotational is None else rotational.text() == "1",
            object_store=_word(node, "osd_objectstore"),
            kernel=_word(node, "kernel_version"),
            processor=_word(node, "cpu"),
            size_bytes=None if size is None else size.unquoted().count(),
        )
    return osds


def parse_osd_tree(text: str) -> dict[int, Osd]:
    nodes = list(parse_answer(text)["nodes"].elements())
    hosts = {
        child.integer(): node["name"].text()
        for node in nodes
        if node["type"].text() == "host"
        for child in node["children"].elements()
    }
    osds = (
        Osd(
            number=node["id"].count(),
            bucket=hosts.get(node["id"].count(), ""),
            device_class=_word(node, "device_class"),
            is_up=node["status"].text() == "up",
            is_in=node["reweight"].number() > 0,
            reweight=node["reweight"].number(),
        )
        for node in nodes
        if node["type"].text() == "osd"
    )
    return {osd.number: osd for osd in osds}


def parse_members(osd_tree_text: str, root: str) -> set[int]:
    """Read the numbers of the OSDs below a bucket of `ceph osd tree`."""
    nodes = {node["id"].integer(): node for node in parse_answer(osd_tree_text)["nodes"].elements()}
    below = [number for number, node in nodes.items() if node["name"].text() == root]
    members = set[int]()
    while below:
        number = below.pop()
        if number >= 0:
            members.add(number)
        elif (bucket := nodes.pop(number, None)) is not None:
            below += [child.integer() for child in bucket["children"].elements()]
    return members


def merge_osds(*sources: Mapping[int, Osd]) -> dict[int, Osd]:
    """Merge the outputs of several commands; the first known value of each field wins."""
    merged: dict[int, Osd] = {}
    for source in sources:
        for number, osd in source.items():
            first = merged.setdefault(number, osd)
            unknown = [field.name for field in fields(Osd) if getattr(first, field.name) in ("", None)]
            merged[number] = replace(first, **{name: getattr(osd, name) for name in unknown})
    return dict(sorted(merged.items()))


def settings_of(osd: Osd, shown: Mapping[str, str]) -> OsdSettings:
    """Return an OSD's settings, given the values of `SETTINGS` that `ceph config show` printed for it."""

    def number(name: str) -> float | None:
        try:
            return None if (text := shown.get(name)) is None else JsonNode(text).unquoted().number()
        except ValueError:
            return None

    capacity = f"{_CAPACITY}{'hdd' if osd.rotational else 'ssd'}"
    return OsdSettings(
        profile=shown.get("osd_mclock_profile"),
        queue=shown.get("osd_op_queue"),
        capacity_iops=number(capacity) if osd.rotational is not None else None,
        memory_target_bytes=number("osd_memory_target"),
        cluster_mode=shown.get("ms_cluster_mode"),
        service_mode=shown.get("ms_service_mode"),
    )


def _word(node: JsonNode, key: str) -> str:
    value = node.get(key)
    return value.text() if value else ""
