"""What can be wrong with a Ceph cluster that a run names."""

from collections.abc import Mapping
from typing import Any

from support.manifests import CEPH, IMAGE, LONGER, REMOVED, ROOK, Manifest, changed

_POOL = "spec.storage.rook.pool"
_EXISTING = "spec.storage.rook.existingPool"
_CEPH = "spec.storage.ceph"
_NAME_WORDS = "should match '^[A-Za-z0-9][-._A-Za-z0-9]*$'"
_BAD_NAMES: tuple[tuple[Any, str], ...] = (
    ("", _NAME_WORDS),
    ("-rm", _NAME_WORDS),
    ("a/b", _NAME_WORDS),
    ("a@b", _NAME_WORDS),
    ("a\nb", _NAME_WORDS),
    ("n" * 129, "more than 128"),
    (7, "must be of type string"),
)


def _storage(source: Mapping[str, Any], changes: Mapping[str, Any], name: str, *says: str) -> Manifest:
    """Return a manifest with that storage and a few changes of it."""
    storage = changed({"storage": {**source, "volume": IMAGE}}, changes)["storage"]
    return Manifest(name=name, changes={"spec.storage": storage}, says=says)


def _rook(name: str, changes: Mapping[str, Any], *says: str) -> Manifest:
    return _storage({"rook": ROOK}, {f"storage.rook.{key}": value for key, value in changes.items()}, name, *says)


def _ceph(name: str, changes: Mapping[str, Any], *says: str) -> Manifest:
    return _storage({"ceph": CEPH}, {f"storage.ceph.{key}": value for key, value in changes.items()}, name, *says)


_BAD_POOL: tuple[tuple[str, Any, str], ...] = (
    ("replicated.size", 0, "greater than or equal to 1"),
    ("replicated.size", 11, "less than or equal to 10"),
    ("replicated.size", REMOVED, "Required value"),
    ("failureDomain", "A B", "should match"),
    ("failureDomain", LONGER, "more than 63"),
    ("deviceClass", "A B", "should match"),
    ("deviceClass", LONGER, "more than 63"),
    ("crushRoot", "-rm", _NAME_WORDS),
    ("crushRoot", "n" * 129, "more than 128"),
    ("compressionMode", "on", 'supported values: "none", "passive", "aggressive", "force"'),
    ("placementGroups", 0, "greater than or equal to 1"),
    ("placementGroups", 32769, "less than or equal to 32768"),
)
_CODED = {"erasureCoded": {"dataChunks": 4, "codingChunks": 2}}
_BAD_CHUNKS: tuple[tuple[str, Any, str], ...] = (
    ("dataChunks", 1, "greater than or equal to 2"),
    ("dataChunks", 33, "less than or equal to 32"),
    ("dataChunks", REMOVED, "Required value"),
    ("codingChunks", 0, "greater than or equal to 1"),
    ("codingChunks", 33, "less than or equal to 32"),
    ("codingChunks", REMOVED, "Required value"),
)

_POOLS = [
    _rook("pool without layout", {"pool": {}}, _POOL, "exactly one of replicated and erasureCoded"),
    _rook(
        "pool with two layouts",
        {"pool.erasureCoded": {"dataChunks": 4, "codingChunks": 2}},
        _POOL,
        "exactly one of replicated and erasureCoded",
    ),
    *(
        _rook(f"pool with {path} {value!r}", {f"pool.{path}": value}, f"{_POOL}.{path}", words)
        for path, value, words in _BAD_POOL
    ),
    *(
        _rook(
            f"chunks with {path} {value!r}",
            {"pool": changed(_CODED, {f"erasureCoded.{path}": value})},
            f"{_POOL}.erasureCoded.{path}",
            words,
        )
        for path, value, words in _BAD_CHUNKS
    ),
]

_ROOK = [
    _rook("no pool", {"pool": REMOVED}, "spec.storage.rook", "must have exactly one of pool, existingPool, fileSystem"),
    _rook(
        "two pools", {"existingPool": {"name": "p"}}, "spec.storage.rook", "must have exactly one of pool, existingP"
    ),
    _rook("no cluster", {"cluster": REMOVED}, "spec.storage.rook.cluster", "Required value"),
    *(
        _rook(f"cluster {path} {value[:9]}", {f"cluster.{path}": value}, f"spec.storage.rook.cluster.{path}", words)
        for path in ("name", "namespace")
        for value, words in ((REMOVED, "Required value"), ("R", "should match"), (LONGER, "more than 63"))
    ),
    _rook("existing pool nameless", {"pool": REMOVED, "existingPool": {}}, f"{_EXISTING}.name", "Required value"),
    *(
        _rook(
            f"existing pool {path} {str(value)[:9]!r}",
            {"pool": REMOVED, "existingPool": {"name": "p", path: value}},
            f"{_EXISTING}.{path}",
            words,
        )
        for path in ("name", "dataPool")
        for value, words in _BAD_NAMES
    ),
]

_OPTION = {"who": "osd", "name": "osd_mclock_profile", "value": "high_client_ops"}
_BAD_OPTIONS: tuple[tuple[str, Any, str], ...] = (
    ("who", REMOVED, "Required value"),
    ("who", "global", "should match '^osd("),
    ("who", "osd.", "should match '^osd("),
    ("who", "osd.01", "should match '^osd("),
    ("who", "osd/host:a", "should match '^osd("),
    ("who", 'osd/class:a" name="b', "should match '^osd("),
    ("who", f"osd/class:{LONGER}", "more than 63"),
    ("name", REMOVED, "Required value"),
    ("name", "osd mclock", "should match '^[a-z][a-z0-9_]*$'"),
    ("name", "a" * 101, "more than 100"),
    ("value", REMOVED, "Required value"),
    ("value", 4, "must be of type string"),
    ("value", "", "should match"),
    ("value", " a", "should match"),
    ("value", "--force", "should match"),
    ("value", "a\nb", "should match"),
    ("value", "a" * 257, "more than 256"),
)

_OPTIONS = [
    *(
        _rook(
            f"option with {path} {str(value)[:20]!r}",
            {"config": [changed(_OPTION, {path: value})]},
            f"spec.storage.rook.config[0].{path}",
            words,
        )
        for path, value, words in _BAD_OPTIONS
    ),
    _rook(
        "the same option twice",
        {"config": [_OPTION, _OPTION | {"value": "balanced"}]},
        "spec.storage.rook.config",
        "must not have an option twice; set each option of the same OSDs once",
    ),
    _rook(
        "too many options",
        {"config": [_OPTION | {"who": f"osd.{number}"} for number in range(17)]},
        "spec.storage.rook.config",
        "at most 16 items",
    ),
]

_FILES: Mapping[str, Any] = {
    "cluster": ROOK["cluster"],
    "fileSystem": {"metadataPool": {"replicated": {"size": 3}}, "dataPools": [{"replicated": {"size": 3}}]},
}
_MADE = "spec.storage.rook.fileSystem"
_PLACES = (("metadataPool", "metadataPool"), ("dataPools.0", "dataPools[0]"))
_ONE_LAYOUT = "exactly one of replicated and erasureCoded"


def _files(name: str, changes: Mapping[str, Any], *says: str, volume: Mapping[str, Any] | None = None) -> Manifest:
    """Return a manifest with a file system, and a few changes of the storage."""
    storage = changed({"storage": {"rook": _FILES, "volume": volume or {"size": "1Gi"}}}, changes)["storage"]
    return Manifest(name=name, changes={"spec.storage": storage}, says=says)


_POOLS_OF_FILES = [
    *(
        _files(f"{path} with {layout!r}", {f"storage.rook.fileSystem.{path}": layout}, f"{_MADE}.{field}", _ONE_LAYOUT)
        for path, field in _PLACES
        for layout in ({}, {"replicated": {"size": 3}, **_CODED})
    ),
    *(
        _files(
            f"{place} with {path} {str(value)[:9]!r}",
            {f"storage.rook.fileSystem.{place}.{path}": value},
            f"{_MADE}.{field}.{path}",
            words,
        )
        for place, field in _PLACES
        for path, value, words in _BAD_POOL
    ),
    *(
        _files(
            f"{place} with chunks of {path} {value!r}",
            {f"storage.rook.fileSystem.{place}": changed(_CODED, {f"erasureCoded.{path}": value})},
            f"{_MADE}.{field}.erasureCoded.{path}",
            words,
        )
        for place, field in _PLACES
        for path, value, words in _BAD_CHUNKS
    ),
]

_FILE_SYSTEMS = [
    *_POOLS_OF_FILES,
    _storage(
        {"rook": {"cluster": ROOK["cluster"], "existingFileSystem": {}}},
        {"storage.volume": {"size": "1Gi"}},
        "existing file system nameless",
        "spec.storage.rook.existingFileSystem.name",
        "Required value",
    ),
    _files(
        "file system and pool", {"storage.rook.pool": ROOK["pool"]}, "spec.storage.rook", "must have exactly one of"
    ),
    *(
        _files(
            f"file system {path} {str(value)[:20]}",
            {f"storage.rook.fileSystem.{path}": value},
            f"{_MADE}.{field}",
            words,
        )
        for path, value, field, words in (
            ("metadataPool", REMOVED, "metadataPool", "Required value"),
            ("metadataPool", _CODED, "metadataPool", "must be replicated, because Ceph keeps no metadata in erasure"),
            ("dataPools", REMOVED, "dataPools", "Required value"),
            ("dataPools", [], "dataPools", "at least 1 items"),
            ("dataPools", [{"replicated": {"size": 3}}] * 3, "dataPools", "at most 2 items"),
            ("dataPools", [_CODED], "dataPools", "must have a replicated pool first"),
            ("metadataServers", 0, "metadataServers", "greater than or equal to 1"),
            ("metadataServers", 17, "metadataServers", "less than or equal to 16"),
        )
    ),
    *(
        _storage(
            {"rook": {"cluster": ROOK["cluster"], "existingFileSystem": {"name": "f", path: value}}},
            {"storage.volume": {"size": "1Gi"}},
            f"existing file system {path} {str(value)[:9]!r}",
            f"spec.storage.rook.existingFileSystem.{path}",
            words,
        )
        for path, value, words in (
            ("name", "F", "should match"),
            ("name", "f" * 41, "more than 40"),
            *((pool, *bad) for pool in ("dataPool", "metadataPool") for bad in _BAD_NAMES),
        )
    ),
    _files(
        "blocks of a file system",
        {},
        "spec.storage.volume.mode",
        "must be Filesystem, because spec.storage.rook has a file system; remove the field",
        volume={"size": "1Gi", "mode": "Block"},
    ),
    _files(
        "images of a file system",
        {},
        "spec.storage.volume.access",
        "must be PVC, because spec.storage.rook has a file system, which has no RBD images",
        volume={"size": "1Gi", "access": "LibRBD"},
    ),
    Manifest(
        name="shared image",
        changes={"spec.storage": {"rook": ROOK, "volume": {"size": "1Gi", "sharing": "Shared"}}},
        says=("spec.storage.volume.sharing", "must be PerClient, because pods cannot share an RBD image"),
    ),
    Manifest(
        name="shared image through librbd",
        changes={"spec.storage": {"ceph": CEPH, "volume": {**IMAGE, "sharing": "Shared"}}},
        says=("spec.storage.volume.sharing", "only one client can open an image"),
    ),
]

_OTHERS = [
    Manifest(
        name="claims without Rook",
        changes={"spec.storage": {"ceph": CEPH, "volume": {"size": "1Gi"}}},
        says=(
            "spec.storage.volume.access",
            "must be LibRBD, because a Ceph cluster without Rook has no StorageClass; set it to LibRBD",
        ),
    ),
    *(_ceph(f"ceph without {name}", {name: REMOVED}, f"{_CEPH}.{name}", "Required value") for name in CEPH),
    _ceph("no monitors", {"monitors": []}, f"{_CEPH}.monitors", "at least 1 items"),
    _ceph("many monitors", {"monitors": [f"m{n}" for n in range(16)]}, f"{_CEPH}.monitors", "at most 15 items"),
    *(
        _ceph(f"monitor {value[:15]!r}", {"monitors": ["192.0.2.1", value]}, f"{_CEPH}.monitors[1]", words)
        for value, words in (
            ("", "should match"),
            ("192.0.2.1 192.0.2.2", "should match"),
            ("192.0.2.1\nlog_file=/x", "should match"),
            ("m" * 254, "more than 253"),
        )
    ),
    *(
        _ceph(f"ceph {path} {str(value)[:9]!r}", {path: value}, f"{_CEPH}.{path}", words)
        for path in ("user", "pool.name", "pool.dataPool")
        for value, words in _BAD_NAMES
    ),
    _ceph("user with its type", {"user": "client.a"}, f"{_CEPH}.user", "must not start with client.; write the name"),
    _ceph("ceph pool without a name", {"pool": {}}, f"{_CEPH}.pool.name", "Required value"),
    *(
        _ceph(f"keyring {path} {str(value)[:9]!r}", {f"keyringSecret.{path}": value}, f"keyringSecret.{path}", words)
        for path, value, words in (
            ("name", REMOVED, "Required value"),
            ("name", "A", "should match"),
            ("name", LONGER, "more than 63"),
            ("key", "", "should match"),
            ("key", "a/b", "should match"),
            ("key", "k" * 254, "more than 253"),
        )
    ),
]

CEPHS = [*_POOLS, *_ROOK, *_OPTIONS, *_FILE_SYSTEMS, *_OTHERS]
