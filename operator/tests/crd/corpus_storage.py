"""What can be wrong with the storage and the servers of a run."""

from collections.abc import Iterable, Mapping
from typing import Any

from crd.manifests import (
    CEPH,
    FIO,
    IMAGE,
    LONGER,
    REMOVED,
    ROOK,
    VOLUME,
    Manifest,
    Wrong,
    changed,
    choice,
    each,
    flag,
    indexed,
    integers,
    refused,
)

_SHARED = {"size": "1Gi", "sharing": "Shared"}
_READ_BACK = {"pattern": "read", "readBack": "NextClient"}

_VOLUMES: tuple[tuple[str, Mapping[str, Any], str, str], ...] = (
    (
        "shared device",
        {VOLUME: {**_SHARED, "mode": "Block"}},
        f"{VOLUME}.sharing",
        "must be PerClient, because clients can share only files",
    ),
    *(
        (
            f"{words} without sharing",
            {f"{VOLUME}.mode": "Filesystem", FIO: parameters},
            f"{VOLUME}.sharing",
            "must be Shared, because a workload has files SharedFile or readBack",
        )
        for words, parameters in (("one file", {"files": "SharedFile"}), ("reading back", _READ_BACK))
    ),
    (
        "files of two kinds",
        {
            VOLUME: _SHARED,
            "spec.workloads": [{"name": "a", "fio": {"files": "SharedFile"}}, {"name": "b", "fio": {}}],
        },
        "spec.workloads",
        "cannot have files SharedFile in only some workloads",
    ),
    *(
        (
            f"reading back with one client of {where}",
            {VOLUME: _SHARED, FIO: _READ_BACK, path: clients},
            "spec.workloads",
            "must have at least 2 clients where readBack is NextClient",
        )
        for where, path, clients in (
            ("the workload", "spec.workloads.0.clients", [1, 2]),
            ("the run", "spec.clients.count", 1),
        )
    ),
    (
        "reading back what is written",
        {VOLUME: _SHARED, FIO: {**_READ_BACK, "pattern": "randrw"}},
        "spec.workloads[0].fio.readBack",
        "applies only to the patterns read and randread",
    ),
    (
        "librbd without Ceph",
        {f"{VOLUME}.access": "LibRBD"},
        f"{VOLUME}.access",
        "must be PVC, because a Storage",
    ),
    (
        "cache of a claim",
        {f"{VOLUME}.rbdCache": True},
        f"{VOLUME}.rbdCache",
        "has no effect unless access is LibRBD; remove the field",
    ),
    (
        "file system through librbd",
        {"spec.storage": {"rook": ROOK, "volume": {**IMAGE, "mode": "Filesystem"}}},
        f"{VOLUME}.mode",
        "must be Block, because access is LibRBD, which does not support file systems; remove the field",
    ),
    (
        "shared image",
        {"spec.storage": {"rook": ROOK, "volume": _SHARED}},
        f"{VOLUME}.sharing",
        "must be PerClient, because pods cannot share an RBD image",
    ),
    (
        "shared image through librbd",
        {"spec.storage": {"ceph": CEPH, "volume": {**IMAGE, "sharing": "Shared"}}},
        f"{VOLUME}.sharing",
        "must be PerClient, because clients can share only files",
    ),
    (
        "claims without Rook",
        {"spec.storage": {"ceph": CEPH, "volume": {"size": "1Gi"}}},
        f"{VOLUME}.access",
        "must be LibRBD, because a Ceph cluster without Rook has no StorageClass; set it to LibRBD",
    ),
)

_STORAGE = [
    refused("no source", "spec.storage.storageClass", REMOVED, "spec.storage", "exactly one of rook, ceph and storage"),
    refused("two sources", "spec.storage.rook", ROOK, "spec.storage", "exactly one of rook, ceph and storageClass"),
    refused("no storage for fio", "spec.storage", REMOVED, "spec.storage", "because fio, rbdBench, "),
    refused("no volume for fio", VOLUME, REMOVED, "spec.storage.volume", "Required value: must be set, because fio"),
    refused("no size", VOLUME, {}, "spec.storage.volume.size", "Required value"),
    *choice(f"{VOLUME}.mode", "Block", "Filesystem"),
    *choice(f"{VOLUME}.access", "PVC", "LibRBD"),
    *choice(f"{VOLUME}.sharing", "PerClient", "Shared"),
    *flag(f"{VOLUME}.rbdCache"),
    *(Manifest(name=name, changes=changes, says=(field, words)) for name, changes, field, words in _VOLUMES),
    refused("StorageClass without a name", "spec.storage.storageClass", {}, "storageClass.name", "Required value"),
    *each("spec.storage.storageClass.name", (("", "at least 1 chars"), ("s" * 254, "more than 253"))),
    *each(
        f"{VOLUME}.size",
        (
            ("1" + "0" * 32, "may not be more than 32 bytes"),
            *((size, "should match") for size in ("20GB", "-1Gi", "1e9", "5000m", "")),
            (1.5, "must be of type integer,string"),
            *(
                (size, "must be from 1Mi to 1Pi")
                for size in (0, 2**20 - 1, 2**50 + 1, "1048575", "1023Ki", "2Pi", "999999999999999999Ei")
            ),
            *((size, "must be a whole number of bytes") for size in ("1.1Gi", "1048576.5", "1.000000001Mi")),
        ),
    ),
]

_FILES: Mapping[str, Any] = {
    "cluster": ROOK["cluster"],
    "fileSystem": {"metadataPool": {"replicated": {"size": 3}}, "dataPools": [{"replicated": {"size": 3}}]},
}
_KNOWN = {"cluster": ROOK["cluster"], "existingPool": {"name": "p"}}
_KNOWN_FILES = {"cluster": ROOK["cluster"], "existingFileSystem": {"name": "f"}}
_SOURCES: Mapping[str, tuple[str, Mapping[str, Any], Mapping[str, Any]]] = {
    "new pool": ("rook", ROOK, IMAGE),
    "existing pool": ("rook", _KNOWN, IMAGE),
    "file system": ("rook", _FILES, {"size": "1Gi"}),
    "existing file system": ("rook", _KNOWN_FILES, {"size": "1Gi"}),
    "ceph": ("ceph", CEPH, IMAGE),
}
"""Name -> the kind of storage, a good one, and its volume."""


def _bad(source: str, path: str, value: Any, *says: str, name: str = "") -> Manifest:
    """Return a run on a source of which one field is refused, if nothing else is said at its path."""
    kind, good, volume = _SOURCES[source]
    storage = changed({"s": good}, {f"s.{path}": value})["s"]
    where = (f"spec.storage.{kind}.{indexed(path)}",) if len(says) == 1 else ()
    return Manifest(
        name=name or f"{source}: {path} {str(value)[:30]!r}",
        changes={"spec.storage": {kind: storage, "volume": volume}},
        says=(*where, *says),
    )


def _all_bad(source: str, path: str, wrong: Wrong) -> list[Manifest]:
    return [_bad(source, path, value, words) for value, words in wrong]


_CODED: Mapping[str, Any] = {"erasureCoded": {"dataChunks": 4, "codingChunks": 2}}
_NAME_WORDS = "should match '^[A-Za-z0-9][-._A-Za-z0-9]*$'"
_NAMES: Wrong = (
    *((name, _NAME_WORDS) for name in ("", "-rm", "a/b", "a@b", "a\nb")),
    ("n" * 129, "more than 128"),
    (7, "must be of type string"),
)
_LABELS: Wrong = (("A B", "should match"), (LONGER, "more than 63"))
_POOL: Mapping[str, Wrong] = {
    "": (({}, "exactly one of replicated and erasureCoded"),),
    ".erasureCoded": (),
    ".replicated.size": integers(1, 10)[:2],
    ".replicated.replicasPerFailureDomain": integers(2, 2)[:2],
    ".replicated.subFailureDomain": (*_LABELS, ("host", "has no effect without replicasPerFailureDomain")),
    ".failureDomain": _LABELS,
    ".deviceClass": _LABELS,
    ".crushRoot": (("-rm", _NAME_WORDS), ("n" * 129, "more than 128")),
    ".compressionMode": (("on", 'supported values: "none", "passive", "aggressive", "force"'),),
    ".placementGroups": integers(1, 32768)[:2],
}
_UNITS = 'supported values: "4Ki", "16Ki", "64Ki", "256Ki", "1Mi"'
_CHUNKS: Mapping[str, Wrong] = {
    "dataChunks": (*integers(2, 32)[:2], (REMOVED, "Required value")),
    "codingChunks": (*integers(1, 32)[:2], (REMOVED, "Required value")),
    "stripeUnit": tuple((unit, _UNITS) for unit in ("8Ki", "4096", "16KiB", "2Mi")),
    "optimizations": (("yes", "must be of type boolean"),),
}


def _bad_pools(source: str, place: str) -> Iterable[Manifest]:
    """Yield what is wrong with a new pool."""
    field = f"spec.storage.rook.{indexed(place)}"
    two_layouts = {"replicated": {"size": 3}, **_CODED}
    in_zones: Mapping[str, Any] = {"replicated": {"size": 4, "replicasPerFailureDomain": 2}, "failureDomain": "zone"}
    for path, value, wrong_field, words in (
        ("replicated.size", 5, "replicated.size", "must be 4, 6, 8 or 10"),
        ("replicated.subFailureDomain", "zone", "failureDomain", "must differ from subFailureDomain"),
        ("failureDomain", "host", "failureDomain", "must differ from subFailureDomain"),
    ):
        name = f"{source} {place} in zones: {path} {value}"
        yield _bad(source, place, changed(in_zones, {path: value}), f"{field}.{wrong_field}", words, name=name)
    yield _bad(source, place, two_layouts, field, "exactly one of replicated and erasureCoded")
    for path, wrong in _POOL.items():
        yield from _all_bad(source, f"{place}{path}", wrong)
    for chunks, wrong in _CHUNKS.items():
        for value, words in wrong:
            coded = changed(_CODED, {f"erasureCoded.{chunks}": value})
            yield _bad(source, place, coded, f"{field}.erasureCoded.{chunks}", words, name=f"{source} {place} {coded}")


_OPTION = {"who": "osd", "name": "osd_mclock_profile", "value": "high_client_ops"}
_OPTIONS: Mapping[str, Wrong] = {
    "who": (
        (REMOVED, "Required value"),
        *((who, "should match '^osd(") for who in ("global", "osd.", "osd.01", "osd/host:a", 'osd/class:a" name="b')),
        (f"osd/class:{LONGER}", "more than 63"),
    ),
    "name": (
        (REMOVED, "Required value"),
        ("osd mclock", "should match '^[a-z][a-z0-9_]*$'"),
        ("a" * 101, "more than 100"),
    ),
    "value": (
        (REMOVED, "Required value"),
        (4, "must be of type string"),
        *((value, "should match") for value in ("", " a", "--force", "a\nb")),
        ("a" * 257, "more than 256"),
    ),
}
_CONFIG = "spec.storage.rook.config"
_ONE_OF = ("spec.storage.rook", "must have exactly one of pool, existingPool, fileSystem")

_IN_ROOK = [
    *_bad_pools("new pool", "pool"),
    _bad("new pool", "pool", REMOVED, *_ONE_OF),
    _bad("new pool", "existingPool", {"name": "p"}, *_ONE_OF),
    *(
        _bad("new pool", f"cluster.{path}", value, words)
        for path in ("name", "namespace")
        for value, words in ((REMOVED, "Required value"), ("R", "should match"), (LONGER, "more than 63"))
    ),
    *_all_bad("existing pool", "existingPool.name", ((REMOVED, "Required value"), *_NAMES)),
    *_all_bad("existing pool", "existingPool.dataPool", _NAMES),
    *(
        _bad(
            "new pool",
            "config",
            [changed(_OPTION, {path: value})],
            f"{_CONFIG}[0].{path}",
            words,
            name=f"option {path} {value!r}",
        )
        for path, wrong in _OPTIONS.items()
        for value, words in wrong
    ),
    _bad(
        "new pool",
        "config",
        [_OPTION, _OPTION | {"value": "balanced"}],
        "must not have an option twice; set each option of the same OSDs once",
    ),
    _bad("new pool", "config", [_OPTION | {"who": f"osd.{number}"} for number in range(17)], "at most 16 items"),
    *_bad_pools("file system", "fileSystem.metadataPool"),
    *_bad_pools("file system", "fileSystem.dataPools.0"),
    _bad("file system", "pool", ROOK["pool"], "spec.storage.rook", "must have exactly one of"),
    *_all_bad(
        "file system",
        "fileSystem.metadataPool",
        (
            (REMOVED, "Required value"),
            (_CODED, "must be replicated, because Ceph keeps no metadata in erasure"),
        ),
    ),
    *_all_bad(
        "file system",
        "fileSystem.dataPools",
        (
            (REMOVED, "Required value"),
            ([], "at least 1 items"),
            ([{"replicated": {"size": 3}}] * 3, "at most 2 items"),
            ([_CODED], "must have a replicated pool first"),
        ),
    ),
    *_all_bad("file system", "fileSystem.metadataServers", integers(1, 16)[:2]),
    *_all_bad(
        "existing file system",
        "existingFileSystem.name",
        ((REMOVED, "Required value"), ("F", "should match"), ("f" * 41, "more than 40")),
    ),
    *_all_bad("existing file system", "existingFileSystem.dataPool", _NAMES),
    *_all_bad("existing file system", "existingFileSystem.metadataPool", _NAMES),
    *(
        Manifest(name=name, changes={"spec.storage": {"rook": _FILES, "volume": volume}}, says=(field, words))
        for name, volume, field, words in (
            (
                "blocks of a file system",
                {"size": "1Gi", "mode": "Block"},
                f"{VOLUME}.mode",
                "must be Filesystem, because spec.storage.rook has a file system; remove the field",
            ),
            (
                "images of a file system",
                IMAGE,
                f"{VOLUME}.access",
                "must be PVC, because a StorageClass and a file system provide volumes by PVCs only",
            ),
        )
    ),
]

_IN_CEPH = [
    *(_bad("ceph", name, REMOVED, "Required value") for name in CEPH),
    *_all_bad("ceph", "monitors", (([], "at least 1 items"), ([f"m{n}" for n in range(16)], "at most 15 items"))),
    *(
        _bad("ceph", "monitors", ["192.0.2.1", monitor], "spec.storage.ceph.monitors[1]", words)
        for monitor, words in (
            *((text, "should match") for text in ("", "192.0.2.1 192.0.2.2", "192.0.2.1\nlog_file=/x")),
            ("m" * 254, "more than 253"),
        )
    ),
    *(manifest for path in ("user", "pool.name", "pool.dataPool") for manifest in _all_bad("ceph", path, _NAMES)),
    _bad("ceph", "user", "client.a", "must not start with client.; write the name"),
    _bad("ceph", "pool", {}, "spec.storage.ceph.pool.name", "Required value"),
    *_all_bad(
        "ceph",
        "keyringSecret.name",
        ((REMOVED, "Required value"), ("A", "should match"), (LONGER, "more than 63")),
    ),
    *_all_bad(
        "ceph", "keyringSecret.key", (("", "should match"), ("a/b", "should match"), ("k" * 254, "more than 253"))
    ),
]

_GOOD = {"placement": "ClientNodes", "count": 2}
_BAD_SERVERS: tuple[tuple[str, Mapping[str, Any], str, str], ...] = (
    ("without a number", {"count": REMOVED}, ".count", "Required value"),
    ("without a placement", {"placement": REMOVED}, ".placement", "Required"),
    ("on no labels", {"placement": "Selected", "nodeSelector": {}}, ".nodeSelector", "must be set with placement Sel"),
    ("without a selector", {"placement": "Selected"}, ".nodeSelector", "must be set with placement Selected"),
    (
        "with a selector",
        {"nodeSelector": {"disk": "fast"}},
        ".nodeSelector",
        "must be set with placement Selected, and only with it",
    ),
    (
        "on too many labels",
        {"placement": "Selected", "nodeSelector": {f"k{n}": "v" for n in range(33)}},
        ".nodeSelector",
        "at most 32 items",
    ),
    (
        "on a label that is no text",
        {"placement": "Selected", "nodeSelector": {"disk": True}},
        ".nodeSelector.disk",
        "of type string",
    ),
    (
        "on a long label",
        {"placement": "Selected", "nodeSelector": {"disk": "v" * 64}},
        ".nodeSelector.disk",
        "more than 63",
    ),
    ("beside unknown OSDs", {"placement": "StorageNodes"}, ".placement", "cannot be StorageNodes without storage.rook"),
    ("that no tool uses", {}, "", "has no effect, because no workload"),
)


def _servers(name: str, changes: Mapping[str, Any], *says: str) -> Manifest:
    """Return a manifest whose servers are good but for these changes."""
    servers = changed({"servers": _GOOD}, {f"servers.{path}": value for path, value in changes.items()})["servers"]
    return Manifest(name=f"servers {name}", changes={"spec.servers": servers}, says=says)


_SERVERS = [
    *(
        _servers(f"count {str(value)!r}", {"count": value}, "spec.servers.count", words)
        for value, words in (*integers(1, 64), (1.5, "must be of type integer"))
    ),
    _servers(
        "anywhere", {"placement": "other"}, "spec.servers.placement", '"StorageNodes"', '"ClientNodes"', '"Selected"'
    ),
    *(_servers(name, changes, f"spec.servers{field}", words) for name, changes, field, words in _BAD_SERVERS),
    Manifest(
        name="servers beside OSDs that no tool uses",
        changes={
            "spec.storage": {"rook": ROOK, "volume": {"size": "1Gi"}},
            "spec.servers": {**_GOOD, "placement": "StorageNodes"},
        },
        says=("spec.servers", "has no effect, because no workload"),
    ),
    _servers("with an unknown field", {"port": 1}, 'unknown field "spec.servers.port"'),
]

STORAGE = [*_STORAGE, *_IN_ROOK, *_IN_CEPH, *_SERVERS]
