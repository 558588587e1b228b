"""What can be wrong with the workloads of the tools other than fio."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from crd.manifests import CEPH, FIO, IMAGE, LONGER, PRECONDITION, REMOVED, ROOK, Manifest, Wrong, changed, integers
from plimsoll.tools.registry import TOOLS
from plimsoll.tools.target import TargetKind

SPELLING = "sizes in lists are bounded by a pattern, which allows the usual spellings only"

_NO_TCP = "a point does not know the workload's other protocols; the API server does"
_IN_LISTS = "comparing quantities in a list is beyond what a rule may cost; the operator refuses it"
_W = "spec.workloads[0]"
_KEYRING = {"keyringSecret": {"name": "admin-keyring"}}
_CEPH_TOOLS: Mapping[str, Mapping[str, Any]] = {"radosBench": {}, "rbdBench": {}, "osdBench": _KEYRING}
"""Tool -> the parameters without which it is refused."""

_IMAGES = {"rook": ROOK, "volume": IMAGE}
_CLAIMS = {"rook": ROOK, "volume": {"size": "1Gi"}}
_CLASS = {"storageClass": {"name": "fast"}, "volume": {"size": "1Gi"}}
_DEVICE = {"size": "1Gi", "mode": "Block"}
_FILES = {"storageClass": {"name": "fast"}, "volume": {"size": "1Gi", "mode": "Filesystem"}}
_STORAGE: Mapping[str, Any] = {
    **{key: _IMAGES for key, tool in TOOLS.items() if tool.target.is_of_ceph},
    **{key: REMOVED for key, tool in TOOLS.items() if tool.target is TargetKind.PEER},
    **{key: _FILES for key, tool in TOOLS.items() if tool.own_files},
}
"""Tool -> storage that suits it, if the usual does not."""

_NO_PREFILL = {"spec.prepare": {"prefill": False}}
_UNWRITTEN = ("spec.prepare.prefill", "must be true, because a workload would read unwritten extents")


def _case(
    name: str,
    tool: str,
    parameters: Any,
    *says: str,
    changes: Mapping[str, Any] | None = None,
    model_accepts: str = "",
    server_accepts: str = "",
) -> Manifest:
    """Return a run of a tool on storage that suits it."""
    storage = {"spec.storage": _STORAGE[tool]} if tool in _STORAGE else {}
    return Manifest(
        name=f"{tool} {name}",
        changes={**storage, "spec.workloads": [{"name": "w", tool: parameters}], **(changes or {})},
        says=says,
        model_accepts=model_accepts,
        server_accepts=server_accepts,
    )


def _bad(
    tool: str,
    path: str,
    value: Any,
    words: str,
    *,
    at: str = "",
    given: Mapping[str, Any] | None = None,
    model_accepts: str = "",
) -> Manifest:
    """Return a run with one parameter that is refused at its path, or at `at`; others may be given."""
    parameters = changed({"p": {**_CEPH_TOOLS.get(tool, {}), **(given or {})}}, {f"p.{path}": value})["p"]
    field = f"{_W}.{tool}.{at or path}"
    return _case(f"{path} {str(value)[:24]!r}", tool, parameters, field, words, model_accepts=model_accepts)


def _each(tool: str, path: str, wrong: Wrong, **given: Any) -> list[Manifest]:
    return [_bad(tool, path, value, words, given=given) for value, words in wrong]


def _axis(tool: str, name: str, first: Any, wrong: Wrong) -> list[Manifest]:
    """Return what is wrong with an axis whose values may be like `first`."""
    return [
        _bad(tool, name, first, "must be of type array"),
        _bad(tool, name, [], "at least 1 items"),
        _bad(tool, name, [first] * 65, "at most 64 items"),
        _bad(tool, name, [first, first], f"Duplicate value: {json.dumps(first)}", at=f"{name}[1]"),
        *(_bad(tool, name, [value], words, at=f"{name}[0]") for value, words in wrong),
    ]


def _choice(*values: str, other: str = "other") -> Wrong:
    words = ", ".join(f'"{value}"' for value in values)
    return ((other, f"supported values: {words}"),)


def _sizes(name: str, low: int, high: int, *, step: int = 1, forms: Iterable[str] = ()) -> Wrong:
    return (
        (low - step, f"greater than or equal to {low}"),
        (high + step, f"less than or equal to {high}"),
        ("4" * 33, "may not be more than 32 bytes"),
        *((form, "should match") for form in ("4MB", "0Ki", "65Ti", "-4Ki", *forms)),
        (True, name),
    )


def _block_sizes(tool: str, name: str, least: int, wrong: Wrong = ()) -> list[Manifest]:
    """Return what is wrong with an axis of sizes from `least` to 64 MiB."""
    place = f"{name}[0]"
    return [
        *_axis(tool, name, "4Mi", [*_sizes(place, least, 2**26, step=512, forms=["65Mi"]), *wrong]),
        _bad(tool, name, ["0.5Mi"], "should match", at=place, model_accepts=SPELLING),
    ]


_FLAG: Wrong = (("yes", "must be of type boolean"),)
_BY_512 = ((1000, "multiple of 512"),)
_CHECKS = "spec.gates.acceptedHealthChecks"
_OTHER_KEYRING = {"keyringSecret": {"name": "admin-keyring", "key": "other"}}
_ON_CEPH = "must have rook or ceph, because radosBench, "

_OF_CEPH = [
    *_each("radosBench", "operation", _choice("write", "seq", "rand", other="read")),
    *_block_sizes("radosBench", "objectSize", 512),
    *_axis("radosBench", "concurrency", 16, integers(1, 1024)),
    *_each("radosBench", "writeSeconds", integers(1, 86400), operation="seq"),
    _bad("radosBench", "writeSeconds", 60, "does not apply to operation write; remove it, or use seq or rand"),
    _bad("radosBench", "object_size", ["4Mi"], 'unknown field "spec.workloads[0].radosBench.object_size"'),
    *_each("rbdBench", "operation", _choice("read", "write")),
    *_each("rbdBench", "order", _choice("rand", "seq")),
    *_block_sizes("rbdBench", "blockSize", 512, _BY_512),
    *_axis("rbdBench", "concurrency", 16, integers(1, 1024)),
    *_block_sizes("osdBench", "blockSize", 4096, ((4097, "multiple of 512"), ("3Ki", "should match"))),
    *_each("osdBench", "totalSize", _sizes("totalSize", 4096, 2**34, forms=["3Ki", "17Gi"])),
    *_each("osdBench", "user", (("", "should match"), ("a b", "should match"), ("u" * 254, "more than 253"))),
    *_each("osdBench", "keyringSecret", [(REMOVED, "Required value")]),
    *_each(
        "osdBench",
        "keyringSecret.name",
        ((REMOVED, "Required value"), ("A", "should match"), (LONGER, "more than 63")),
    ),
    *_each("osdBench", "keyringSecret.key", (("", "should match"), ("k" * 254, "more than 253"))),
    _case(
        "by several clients",
        "osdBench",
        _KEYRING,
        f"{_W}.clients",
        "does not apply to osdBench, which one client runs for all; leave it out",
        changes={"spec.workloads": [{"name": "w", "osdBench": _KEYRING, "clients": [1, 2]}]},
    ),
    _case(
        "with two keyrings",
        "osdBench",
        _KEYRING,
        "spec.workloads",
        "must name the same keyringSecret in every osdBench",
        changes={
            "spec.workloads": [{"name": "one", "osdBench": _KEYRING}, {"name": "other", "osdBench": _OTHER_KEYRING}]
        },
    ),
    *(
        _case(name, tool, needed, "spec.storage", words, changes={"spec.storage": storage})
        for tool, needed in _CEPH_TOOLS.items()
        for name, storage, words in (
            ("on a StorageClass", _CLASS, _ON_CEPH),
            ("on a StorageClass without volumes", {"storageClass": {"name": "fast"}}, _ON_CEPH),
            ("without storage", REMOVED, "must have rook or ceph"),
        )
    ),
    _case(
        "without a volume",
        "rbdBench",
        {},
        "spec.storage.volume",
        "Required value: must be set, because fio, rbdBench, ",
        changes={"spec.storage": {"ceph": CEPH}},
    ),
    _case(
        "on a claim",
        "rbdBench",
        {},
        "spec.storage.volume.access",
        "must be LibRBD, because rbdBench runs on an RBD image; set it to LibRBD",
        changes={"spec.storage": _CLAIMS},
    ),
    _case("reads unwritten extents", "rbdBench", {"operation": "read"}, *_UNWRITTEN, changes=_NO_PREFILL),
    _case(
        "and another tool",
        "radosBench",
        {},
        _W,
        "must have exactly one tool: fio, ",
        changes={"spec.workloads": [{"name": "w", "radosBench": {}, "fio": {}}]},
    ),
    *(
        _case(f"{field}: {str(checks)[:24]}", "radosBench", {}, field + place, says, changes={field: checks})
        for field in (_CHECKS, "spec.gates.stopOn")
        for checks, place, says in (
            ("MON_DISK_LOW", "", "must be of type array"),
            (["mon disk low"], "[0]", "should match"),
            (["A" * 65], "[0]", "more than 64"),
            (["MON_DISK_LOW", "MON_DISK_LOW"], "[1]", "Duplicate value"),
            ([f"CHECK_{n}" for n in range(33)], "", "at most 32 items"),
        )
    ),
]

_OF_DISKS = [
    *_axis("dd", "operation", "Read", _choice("Read", "Write", "Copy", other="read")),
    *_block_sizes("dd", "blockSize", 512, _BY_512),
    *_each("dd", "count", integers(1, 2**31 - 1)),
    *_each("dd", "direct", _FLAG),
    *_each("dd", "fdatasync", ((1, "must be of type boolean"), (True, "applies only to Write and Copy"))),
    *_axis("ioping", "operation", "Read", _choice("Read", "Write", other="read")),
    *_block_sizes("ioping", "size", 512, _BY_512),
    *_each("ioping", "intervalMilliseconds", integers(0, 1000)),
    *_each("ioping", "direct", _FLAG),
    *(
        manifest
        for tool in ("dd", "ioping")
        for manifest in (
            _case(
                "on an image",
                tool,
                {},
                "spec.storage.volume.access",
                f"cannot be LibRBD, because {tool} needs a file or a block device",
                changes={"spec.storage": _IMAGES},
            ),
            _case("reads unwritten extents", tool, {"operation": ["Write", "Read"]}, *_UNWRITTEN, changes=_NO_PREFILL),
        )
    ),
]

_UDP: dict[str, Any] = {"protocol": ["UDP"], "bitrate": "100M"}
_RATES = (
    (9999, "greater than or equal to 10000"),
    (10**12, "less than or equal to 999000000000"),
    ("1" * 33, "may not be more than 32 bytes"),
    ("9k", "should match"),
    ("1T", "should match"),
)
_OF_NETWORKS = [
    *_axis("iperf3", "streams", 4, integers(1, 128)),
    *_axis("iperf3", "window", "1Mi", _sizes("window[0]", 1024, 2**26, forms=["65Mi"])),
    _bad("iperf3", "window", ["0.5Mi"], "should match", at="window[0]", model_accepts=SPELLING),
    *_axis("iperf3", "direction", "Send", _choice("Send", "Receive")),
    *_axis("iperf3", "protocol", "TCP", _choice("TCP", "UDP")),
    *_each("iperf3", "bitrate", _RATES, **_UDP),
    _case(
        "of UDP without a bitrate",
        "iperf3",
        {"protocol": ["UDP"]},
        f"{_W}.iperf3.bitrate",
        "must be set for UDP, which does not find its rate itself; set the bits per second of a stream",
    ),
    _bad("iperf3", "bitrate", "100M", "applies only to UDP", model_accepts=_NO_TCP),
    _bad("iperf3", "datagramBytes", 1500, "applies only to UDP", model_accepts=_NO_TCP),
    *_each("iperf3", "datagramBytes", integers(16, 65507), **_UDP),
    _case(
        "with a long ramp",
        "iperf3",
        {},
        f"{_W}.rampSeconds",
        "must be at most 60 with iperf3, which omits no more; lower it",
        changes={"spec.workloads": [{"name": "w", "iperf3": {}, "rampSeconds": 61, "runtimeSeconds": 100}]},
    ),
    *_axis("ping", "size", 56, integers(16, 65507)),
    *_each("ping", "intervalMilliseconds", integers(10, 1000)),
    *(
        manifest
        for tool in ("iperf3", "netcat", "ping")
        for manifest in _each(tool, "pairing", _choice("EachPair", "OneToAll", "AllAtOnce"))
    ),
]

_BONNIE = [
    *_each("bonnie", "size", _sizes("size", 2**20, 2**44, step=2**20, forms=["1Ki", "17Ti"])),
    _bad("bonnie", "size", 2**20 - 512, "greater than or equal to 1048576"),
    _bad("bonnie", "size", 2**20 + 1, "multiple of 1048576"),
    *_axis("bonnie", "chunkSize", "8Ki", [("3Ki", '"1Ki", "2Ki", "4Ki"')]),
    *_each("bonnie", "seeks", integers(1, 10_000_000)),
    *_each("bonnie", "seekProcesses", integers(1, 64)),
    *_each("bonnie", "files", integers(0, 1024)),
    *_each("bonnie", "directories", integers(1, 1024)),
    *(manifest for name in ("characters", "directIo", "sync") for manifest in _each("bonnie", name, _FLAG)),
    *_each("bonnie", "maxFileSize", _sizes("maxFileSize", 1, 2**26)),
    *_each("bonnie", "minFileSize", _sizes("minFileSize", 1, 2**26), maxFileSize="64Mi"),
    _case("of bytes with direct I/O", "bonnie", {"directIo": True}, f"{_W}.bonnie.characters", "must be false with"),
    _bad("bonnie", "maxFileSize", "1Ki", "has no effect with files 0", given={"files": 0}),
    _bad("bonnie", "minFileSize", "1Ki", "must be absent without maxFileSize"),
    _bad("bonnie", "chunk_size", ["8Ki"], f'unknown field "{_W}.bonnie.chunk_size"'),
    *(
        _case(
            f"on {name}",
            "bonnie",
            {},
            "spec.storage.volume.mode",
            "must be Filesystem, because bonnie works on files and directories",
            changes={"spec.storage": storage},
        )
        for name, storage in (
            ("a device", {**_CLASS, "volume": _DEVICE}),
            ("a device of a pool", {"rook": ROOK, "volume": _DEVICE}),
            ("an image", _IMAGES),
        )
    ),
    _case(
        "without storage",
        "bonnie",
        {},
        "spec.storage",
        "must be set with a volume",
        changes={"spec.storage": REMOVED},
    ),
    _case(
        "beside fio",
        "bonnie",
        {},
        "spec.workloads",
        "cannot have both bonnie ",
        changes={"spec.workloads": [{"name": "w", "bonnie": {}}, {"name": "x", "fio": {}}]},
    ),
    _case(
        "on overwritten data",
        "bonnie",
        {},
        PRECONDITION,
        "must be absent, because bonnie ",
        changes={PRECONDITION: {}},
    ),
]

_KUBE_BURNER = [
    *_axis("kubeBurner", "objects", 1, integers(1, 5000)),
    *_axis("kubeBurner", "qps", 1, integers(1, 1000)),
    *_each("kubeBurner", "burst", integers(1, 5000)),
    *_each("kubeBurner", "churn.percent", integers(1, 100)),
    *_each("kubeBurner", "churn.cycles", integers(1, 20)),
    *_each("kubeBurner", "readySeconds", integers(1, 3600)),
    *_each("kubeBurner", "pods", _FLAG),
    *_each(
        "kubeBurner",
        "volumeSize",
        (
            ("1Ki", "must be from 1Mi to 1Ti"),
            ("2Ti", "must be from 1Mi to 1Ti"),
            ("64MB", "should match"),
            ("1" * 33, "may not be more than 32 bytes"),
            ("1048577.5", "must be a whole number of bytes"),
        ),
    ),
    _case(
        "by several clients",
        "kubeBurner",
        {},
        f"{_W}.clients",
        "does not apply to kubeBurner",
        changes={"spec.workloads": [{"name": "w", "kubeBurner": {}, "clients": [1, 2]}]},
    ),
]

TOOLS_REFUSED = [*_OF_CEPH, *_OF_DISKS, *_OF_NETWORKS, *_BONNIE, *_KUBE_BURNER]

_SEVERAL = [
    {"name": "rados", "radosBench": {"operation": "rand", "objectSize": ["64Ki", 4194304], "concurrency": [1, 16]}},
    {"name": "osds", "osdBench": {**_KEYRING, "blockSize": ["4Ki", "4Mi"], "user": "bench"}, "clients": [1]},
    {"name": "osds-again", "osdBench": _KEYRING},
]
_EVERYTHING: Mapping[str, Mapping[str, Any]] = {
    "dd": {"operation": ["Write", "Copy"], "blockSize": [512, "4Mi"], "count": 2, "direct": False, "fdatasync": True},
    "ioping": {"operation": ["Read", "Write"], "size": [512, "64Ki"], "intervalMilliseconds": 1000, "direct": False},
    "iperf3": {
        "streams": [1, 128],
        "window": [1024, "64Mi"],
        "direction": ["Send", "Receive"],
        "protocol": ["TCP", "UDP"],
        "bitrate": "999G",
        "datagramBytes": 65507,
        "pairing": "AllAtOnce",
    },
    "ping": {"size": [16, 65507], "intervalMilliseconds": 1000},
    "bonnie": {
        "size": "1Mi",
        "chunkSize": ["1Ki", "1Mi"],
        "seeks": 1,
        "seekProcesses": 64,
        "characters": False,
        "directIo": True,
        "sync": True,
        "files": 1024,
        "maxFileSize": "64Mi",
        "minFileSize": 1,
        "directories": 1024,
    },
}
_BURNS = {
    "objects": [1, 5000],
    "qps": [500, 1000],
    "burst": 5000,
    "churn": {"percent": 1, "cycles": 2},
    "volumeSize": "1Ti",
    "pods": False,
    "readySeconds": 600,
}
_ON_POOLS: tuple[tuple[str, Mapping[str, Any], Mapping[str, Any]], ...] = (
    ("pool that is there", {"ceph": CEPH, "volume": IMAGE}, {}),
    *(
        (f"jobs of {p} on an image", {"ceph": CEPH, "volume": IMAGE}, {FIO: {"jobs": 2, "pattern": p}})
        for p in ("read", "randread")
    ),
    (
        "engine of librbd by name",
        {"ceph": CEPH, "volume": IMAGE},
        {FIO: {"engine": "rbd", "ioDepth": [8]}},
    ),
    (
        "pool that is there, with Rook",
        {
            "rook": {
                "cluster": ROOK["cluster"],
                "existingPool": {"name": "rbd.meta", "dataPool": "rbd_data-1"},
            },
            "volume": {**IMAGE, "rbdCache": True},
        },
        {},
    ),
    *(
        (f"monitor {monitor}", {"ceph": {**CEPH, "monitors": [monitor]}, "volume": IMAGE}, {})
        for monitor in (
            "mon-a.example.org",
            "192.0.2.1:6789",
            "[2001:db8::1]:6789",
            "v2:192.0.2.1:3300/0",
            "[v2:192.0.2.1:3300,v1:192.0.2.1:6789]",
        )
    ),
)

TOOLS_ACCEPTED = [
    *(_case("by default", tool, _CEPH_TOOLS.get(tool, {})) for tool in TOOLS),
    *(_case("with everything", tool, parameters) for tool, parameters in _EVERYTHING.items()),
    _case("without a volume", "radosBench", {}, changes={"spec.storage": {"ceph": CEPH}}),
    _case(
        "and OSDs without a volume",
        "radosBench",
        {},
        changes={"spec.storage": {"rook": ROOK}, "spec.workloads": _SEVERAL},
    ),
    _case("written for long", "radosBench", {"operation": "seq", "writeSeconds": 600}),
    _case("of any size", "radosBench", {"objectSize": [513, "9999Ki", "64Mi"], "concurrency": [1, 1024]}),
    _case("reads", "rbdBench", {"operation": "read", "order": "seq", "blockSize": [512, "4Mi"]}),
    _case("read without prefill", "radosBench", {"operation": "seq"}, changes=_NO_PREFILL),
    _case("with checks that may stand", "radosBench", {}, changes={_CHECKS: ["MON_DISK_LOW", "POOL_NO_REDUNDANCY"]}),
    *(
        _case(f"writes {size!r} each", "osdBench", {**_KEYRING, "totalSize": size, "blockSize": ["4Ki"]})
        for size in (4096, "4Ki", "9999Ki", "9999Mi", "16Gi", 2**34)
    ),
    _case(
        "writes less than a block",
        "osdBench",
        {**_KEYRING, "totalSize": "1Mi", "blockSize": ["4Mi"]},
        server_accepts=_IN_LISTS,
    ),
    *(
        _case("writes without prefill", tool, {"operation": ["Write"]}, changes=_NO_PREFILL)
        for tool in ("dd", "ioping")
    ),
    _case(
        "beside fio",
        "iperf3",
        {},
        changes={
            "spec.storage": _CLASS,
            "spec.workloads": [{"name": "w", "iperf3": {}}, {"name": "storage", "fio": {}}],
        },
    ),
    *(_case(f"of {size!r}", "bonnie", {"size": size}) for size in (2**20, "819Mi")),
    _case(
        "of more than the volume",
        "bonnie",
        {"size": "1Ti"},
        server_accepts="the size of the data set depends on more than a rule sees; the operator refuses it",
    ),
    _case(
        "files with more than the most",
        "bonnie",
        {"maxFileSize": "1Ki", "minFileSize": "2Ki"},
        server_accepts="a quantity has many spellings, which a rule would have to compare; the operator refuses it",
    ),
    _case(
        "on a shared volume",
        "bonnie",
        {},
        changes={"spec.storage": {"storageClass": {"name": "nfs"}, "volume": {"size": "1Gi", "sharing": "Shared"}}},
    ),
    _case("without prefill", "bonnie", {}, changes=_NO_PREFILL),
    _case(
        "with everything",
        "kubeBurner",
        _BURNS,
        changes={"spec.workloads": [{"name": "w", "kubeBurner": _BURNS, "clients": [1]}]},
    ),
    *(Manifest(name=name, changes={"spec.storage": storage, **changes}) for name, storage, changes in _ON_POOLS),
]
