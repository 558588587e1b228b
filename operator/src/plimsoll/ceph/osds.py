"""The OSDs of a cluster and their settings."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace

from plimsoll.api.json_reader import JsonNode
from plimsoll.ceph.document import parse_answer

_CAPACITY = "osd_mclock_max_capacity_iops_"
# Options of an OSD that may explain differences: connection modes, for one, of which encryption costs throughput.
SETTINGS = (
    "osd_mclock_profile",
    "osd_op_queue",
    f"{_CAPACITY}hdd",
    f"{_CAPACITY}ssd",
    "osd_memory_target",
    "ms_cluster_mode",
    "ms_service_mode",
)


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


def setting_number(shown: Mapping[str, str], name: str) -> float | None:
    """Return a number among the values of `SETTINGS` that `ceph config show` printed for an OSD; None if unknown."""
    try:
        return None if (text := shown.get(name)) is None else JsonNode(text).unquoted().number()
    except ValueError:
        return None


def capacity_iops(osd: Osd, shown: Mapping[str, str]) -> float | None:
    """Return the capacity that mClock assumes for an OSD's kind of device; None if it is unknown."""
    kind = {None: "", True: "hdd", False: "ssd"}[osd.rotational]
    return setting_number(shown, f"{_CAPACITY}{kind}")


def _word(node: JsonNode, key: str) -> str:
    value = node.get(key)
    return value.text() if value else ""
