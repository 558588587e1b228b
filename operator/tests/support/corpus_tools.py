"""What can be wrong with the workloads of Ceph's own tools, and with the sizes of any tool."""

from collections.abc import Mapping
from typing import Any

from support.manifests import CEPH, FIO, IMAGE, LONGER, REMOVED, ROOK, Manifest, changed

SPELLING = "sizes in lists are bounded by a pattern, which allows the usual spellings only"

_W = "spec.workloads[0]"
_KEYRING = {"keyringSecret": {"name": "admin-keyring"}}
_NEEDED: Mapping[str, Mapping[str, Any]] = {"radosBench": {}, "rbdBench": {}, "osdBench": _KEYRING}
"""Tool -> the parameters without which it is refused."""

_TOO_SMALL = "greater than or equal to"
_TOO_LARGE = "less than or equal to"


def on_ceph(name: str, tool: str, parameters: Any, *says: str, **more: Any) -> Manifest:
    """Return a run of one of Ceph's tools on images of a Rook cluster; `more` are changes and reasons."""
    reasons = {key: more.pop(key) for key in ("model_accepts", "server_accepts") if key in more}
    changes = {
        "spec.storage": {"rook": ROOK, "volume": IMAGE},
        "spec.workloads": [{"name": "w", tool: parameters}],
    }
    return Manifest(name=name, changes={**changes, **more.get("changes", {})}, says=says, **reasons)


def _bad(tool: str, path: str, value: Any, words: str, *, at: str = "", model_accepts: str = "") -> Manifest:
    """Return a run with one parameter that is refused at its path, or at `at`."""
    parameters = changed({"p": dict(_NEEDED.get(tool, {}))}, {f"p.{path}": value})["p"]
    field = f"{_W}.{tool}.{at or path}"
    name = f"{tool} {path} {str(value)[:24]!r}"
    if tool not in _NEEDED:
        workloads = [{"name": "w", tool: parameters}]
        changes = {"spec.workloads": workloads}
        return Manifest(name=name, changes=changes, says=(field, words), model_accepts=model_accepts)
    return on_ceph(name, tool, parameters, field, words, model_accepts=model_accepts)


def _depths(tool: str) -> list[Manifest]:
    """Return what is wrong with an axis of operations in flight."""
    name = "concurrency"
    return [
        _bad(tool, name, 16, "must be of type array"),
        _bad(tool, name, [], "at least 1 items"),
        _bad(tool, name, list(range(1, 66)), "at most 64 items"),
        _bad(tool, name, [4, 4], "Duplicate value: 4", at=f"{name}[1]"),
        _bad(tool, name, [0], f"{_TOO_SMALL} 1", at=f"{name}[0]"),
        _bad(tool, name, [1025], f"{_TOO_LARGE} 1024", at=f"{name}[0]"),
        _bad(tool, name, ["16"], "must be of type integer", at=f"{name}[0]"),
    ]


def sizes(tool: str, name: str, least: int, wrong: tuple[tuple[Any, str], ...]) -> list[Manifest]:
    """Return what is wrong with an axis of sizes from `least` to 64 MiB."""
    place = f"{name}[0]"
    return [
        _bad(tool, name, "4Mi", "must be of type array"),
        _bad(tool, name, [], "at least 1 items"),
        _bad(tool, name, [f"{n}Ki" for n in range(4, 69)], "at most 64 items"),
        _bad(tool, name, ["4Mi", "4Mi"], 'Duplicate value: "4Mi"', at=f"{name}[1]"),
        *(
            _bad(tool, name, [size], words, at=place)
            for size, words in (
                (least - 512, f"{_TOO_SMALL} {least}"),
                (2**26 + 512, f"{_TOO_LARGE} 67108864"),
                ("4" * 33, "may not be more than 32 bytes"),
                ("4MB", "should match"),
                ("0Ki", "should match"),
                ("65Mi", "should match"),
                ("-4Ki", "should match"),
                (True, place),
                *wrong,
            )
        ),
        _bad(tool, name, ["0.5Mi"], "should match", at=place, model_accepts=SPELLING),
    ]


_RADOS = [
    _bad("radosBench", "operation", "read", 'supported values: "write", "seq", "rand"'),
    *sizes("radosBench", "objectSize", 512, ()),
    *_depths("radosBench"),
    *(
        on_ceph(
            f"objects for {seconds!r} s",
            "radosBench",
            {"operation": "seq", "writeSeconds": seconds},
            f"{_W}.radosBench.writeSeconds",
            words,
        )
        for seconds, words in (
            (0, f"{_TOO_SMALL} 1"),
            (86401, f"{_TOO_LARGE} 86400"),
            ("60", "must be of type integer"),
        )
    ),
    _bad("radosBench", "writeSeconds", 60, "does not apply to operation write; remove it, or use seq or rand"),
    _bad("radosBench", "object_size", ["4Mi"], 'unknown field "spec.workloads[0].radosBench.object_size"'),
]

_RBD = [
    _bad("rbdBench", "operation", "rw", 'supported values: "read", "write"'),
    _bad("rbdBench", "order", "random", 'supported values: "rand", "seq"'),
    *sizes("rbdBench", "blockSize", 512, ((1000, "multiple of 512"),)),
    *_depths("rbdBench"),
]

_TOTAL = "totalSize"
_OSD = [
    *sizes("osdBench", "blockSize", 4096, ((4097, "multiple of 512"), ("3Ki", "should match"))),
    *(
        _bad("osdBench", _TOTAL, size, words)
        for size, words in (
            (4095, f"{_TOO_SMALL} 4096"),
            (2**34 + 1, f"{_TOO_LARGE} 17179869184"),
            ("3Ki", "should match"),
            ("17Gi", "should match"),
            ("1GB", "should match"),
            ("1" * 33, "may not be more than 32 bytes"),
            (True, _TOTAL),
        )
    ),
    _bad("osdBench", "user", "", "should match"),
    _bad("osdBench", "user", "a b", "should match"),
    _bad("osdBench", "user", "u" * 254, "more than 253"),
    _bad("osdBench", "keyringSecret", REMOVED, "Required value"),
    _bad("osdBench", "keyringSecret.name", REMOVED, "Required value"),
    _bad("osdBench", "keyringSecret.name", "A", "should match"),
    _bad("osdBench", "keyringSecret.name", LONGER, "more than 63"),
    _bad("osdBench", "keyringSecret.key", "", "should match"),
    _bad("osdBench", "keyringSecret.key", "k" * 254, "more than 253"),
    on_ceph(
        "OSDs by several clients",
        "osdBench",
        _KEYRING,
        f"{_W}.clients",
        "does not apply to osdBench, which one client runs for all; leave it out",
        changes={"spec.workloads": [{"name": "w", "osdBench": _KEYRING, "clients": [1, 2]}]},
    ),
    on_ceph(
        "OSDs with two keyrings",
        "osdBench",
        _KEYRING,
        "spec.workloads",
        "must name the same keyringSecret in every osdBench",
        changes={
            "spec.workloads": [
                {"name": "one", "osdBench": _KEYRING},
                {"name": "other", "osdBench": {"keyringSecret": {"name": "admin-keyring", "key": "other"}}},
            ]
        },
    ),
]

_STORAGE = [
    *(
        Manifest(
            name=f"{tool} {name}",
            changes={"spec.storage": storage, "spec.workloads": [{"name": "w", tool: dict(needed)}]},
            says=("spec.storage", "must have rook or ceph, because radosBench, rbdBench and osdBench connect to Ceph"),
        )
        for tool, needed in _NEEDED.items()
        for name, storage in (
            ("on a StorageClass", {"storageClass": {"name": "fast"}, "volume": {"size": "1Gi"}}),
            ("on a StorageClass without volumes", {"storageClass": {"name": "fast"}}),
        )
    ),
    *(
        on_ceph(
            f"{tool} without storage",
            tool,
            dict(needed),
            "spec.storage",
            "must have rook or ceph",
            changes={"spec.storage": REMOVED},
        )
        for tool, needed in _NEEDED.items()
    ),
    on_ceph(
        "rbd bench without a volume",
        "rbdBench",
        {},
        "spec.storage.volume",
        "Required value: must be set, because fio, rbdBench, dd, ioping and bonnie run on a volume",
        changes={"spec.storage": {"ceph": CEPH}},
    ),
    on_ceph(
        "rbd bench on a claim",
        "rbdBench",
        {},
        "spec.storage.volume.access",
        "must be LibRBD, because rbdBench runs on an RBD image; set it to LibRBD",
        changes={"spec.storage": {"rook": ROOK, "volume": {"size": "1Gi"}}},
    ),
    on_ceph(
        "rbd bench reads unwritten extents",
        "rbdBench",
        {"operation": "read"},
        "spec.prepare.prefill",
        "must be true, because a workload would read unwritten extents",
        changes={"spec.prepare": {"prefill": False}},
    ),
    on_ceph(
        "two tools",
        "radosBench",
        {},
        _W,
        "must have exactly one tool: fio, radosBench, rbdBench, osdBench, dd, ioping, bonnie",
        changes={"spec.workloads": [{"name": "w", "radosBench": {}, "fio": {}}]},
    ),
]

_CHECKS = "spec.gates.acceptedHealthChecks"
_GATES = [
    on_ceph(f"health checks {str(checks)[:24]}", "radosBench", {}, *says, changes={_CHECKS: checks})
    for checks, says in (
        ("MON_DISK_LOW", (_CHECKS, "must be of type array")),
        (["mon disk low"], (f"{_CHECKS}[0]", "should match")),
        (["A" * 65], (f"{_CHECKS}[0]", "more than 64")),
        (["MON_DISK_LOW", "MON_DISK_LOW"], (f"{_CHECKS}[1]", "Duplicate value")),
        ([f"CHECK_{n}" for n in range(33)], (_CHECKS, "at most 32 items")),
    )
]

TOOLS_OF_CEPH = [*_RADOS, *_RBD, *_OSD, *_STORAGE, *_GATES]

_SEVERAL = [
    {"name": "rados", "radosBench": {"operation": "rand", "objectSize": ["64Ki", 4194304], "concurrency": [1, 16]}},
    {"name": "osds", "osdBench": {**_KEYRING, "blockSize": ["4Ki", "4Mi"], "user": "bench"}, "clients": [1]},
    {"name": "osds-again", "osdBench": _KEYRING},
]
CEPH_TOOLS_ACCEPTED = [
    *(on_ceph(f"{tool} by default", tool, dict(needed)) for tool, needed in _NEEDED.items()),
    on_ceph("no volume for objects", "radosBench", {}, changes={"spec.storage": {"ceph": CEPH}}),
    on_ceph(
        "no volume for objects and OSDs",
        "radosBench",
        {},
        changes={"spec.storage": {"rook": ROOK}, "spec.workloads": _SEVERAL},
    ),
    on_ceph("objects written for long", "radosBench", {"operation": "seq", "writeSeconds": 600}),
    on_ceph("objects of any size", "radosBench", {"objectSize": [513, "9999Ki", "64Mi"], "concurrency": [1, 1024]}),
    on_ceph("reads of an image", "rbdBench", {"operation": "read", "order": "seq", "blockSize": [512, "4Mi"]}),
    on_ceph(
        "objects read without prefill", "radosBench", {"operation": "seq"}, changes={"spec.prepare": {"prefill": False}}
    ),
    on_ceph("checks that may stand", "radosBench", {}, changes={_CHECKS: ["MON_DISK_LOW", "POOL_NO_REDUNDANCY"]}),
    *(
        on_ceph(f"OSDs write {size!r} each", "osdBench", {**_KEYRING, _TOTAL: size, "blockSize": ["4Ki"]})
        for size in (4096, "4Ki", "9999Ki", "9999Mi", "16Gi", 2**34)
    ),
    on_ceph(
        "OSDs write less than a block",
        "osdBench",
        {**_KEYRING, _TOTAL: "1Mi", "blockSize": ["4Mi"]},
        server_accepts="comparing quantities in a list is beyond what a rule may cost; the operator refuses it",
    ),
    Manifest(name="pool that is there", changes={"spec.storage": {"ceph": CEPH, "volume": IMAGE}}),
    *(
        Manifest(
            name=f"jobs of {pattern} on an image",
            changes={"spec.storage": {"ceph": CEPH, "volume": IMAGE}, FIO: {"jobs": 2, "pattern": pattern}},
        )
        for pattern in ("read", "randread")
    ),
    Manifest(
        name="engine of librbd by name",
        changes={
            "spec.storage": {"ceph": CEPH, "volume": IMAGE},
            FIO: {"engine": "rbd", "ioDepth": [8]},
        },
    ),
    Manifest(
        name="pool that is there, with Rook",
        changes={
            "spec.storage": {
                "rook": {"cluster": ROOK["cluster"], "existingPool": {"name": "rbd.meta", "dataPool": "rbd_data-1"}},
                "volume": {**IMAGE, "rbdCache": True},
            }
        },
    ),
    *(
        Manifest(
            name=f"monitor {monitor}",
            changes={"spec.storage": {"ceph": {**CEPH, "monitors": [monitor]}, "volume": IMAGE}},
        )
        for monitor in (
            "mon-a.example.org",
            "192.0.2.1:6789",
            "[2001:db8::1]:6789",
            "v2:192.0.2.1:3300/0",
            "[v2:192.0.2.1:3300,v1:192.0.2.1:6789]",
        )
    ),
]
