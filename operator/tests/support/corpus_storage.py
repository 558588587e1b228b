"""What can be wrong with the storage of a run."""

from typing import Any

from support.manifests import BY_HAND, CEPH, LONGER, REMOVED, ROOK, VOLUME, Manifest, choice, missing, refused

_STORAGE = [
    refused("no source", "spec.storage.storageClass", REMOVED, "spec.storage", "exactly one of rook, ceph and storage"),
    refused("two sources", "spec.storage.rook", ROOK, "spec.storage", "exactly one of rook, ceph and storageClass"),
    refused("no storage for fio", "spec.storage", REMOVED, "spec.storage", "because fio runs on a volume"),
    missing("spec.storage.volume"),
    refused("no size", VOLUME, {}, "spec.storage.volume.size", "Required value"),
    *choice("spec.storage.volume.mode", "Block", "Filesystem"),
    *choice("spec.storage.volume.access", "PVC", "LibRBD"),
    refused("StorageClass without a name", "spec.storage.storageClass", {}, "storageClass.name", "Required value"),
    refused("StorageClass empty", "spec.storage.storageClass.name", "", "storageClass.name", "at least 1 chars"),
    refused("StorageClass long", "spec.storage.storageClass.name", "s" * 254, "storageClass.name", "more than 253"),
]

_SIZES = [
    *(
        refused(f"volume of {size!r}", f"{VOLUME}.size", size, "spec.storage.volume.size", words)
        for size, words in (
            ("1" + "0" * 32, "may not be more than 32 bytes"),
            ("20GB", "should match"),
            ("-1Gi", "should match"),
            ("1e9", "should match"),
            ("5000m", "should match"),
            ("", "should match"),
            (1.5, "must be of type integer,string"),
            (0, "must be from 1Mi to 1Pi"),
            (2**20 - 1, "must be from 1Mi to 1Pi"),
            (2**50 + 1, "must be from 1Mi to 1Pi"),
            ("1048575", "must be from 1Mi to 1Pi"),
            ("1023Ki", "must be from 1Mi to 1Pi"),
            ("2Pi", "must be from 1Mi to 1Pi"),
            ("999999999999999999Ei", "must be from 1Mi to 1Pi"),
            ("1.1Gi", "must be a whole number of bytes"),
            ("1048576.5", "must be a whole number of bytes"),
            ("1.000000001Mi", "must be a whole number of bytes"),
        )
    ),
]


def _rook(name: str, pool: dict[str, Any], *says: str) -> Manifest:
    storage = {"rook": {**ROOK, "pool": pool}, "volume": {"size": "1Gi"}}
    return Manifest(name=name, changes={"spec.storage": storage}, says=says)


_POOL = "spec.storage.rook.pool"
_ROOK = [
    _rook("pool without layout", {}, _POOL, "exactly one of replicated and erasureCoded"),
    _rook(
        "pool with two layouts",
        {"replicated": {"size": 3}, "erasureCoded": {"dataChunks": 4, "codingChunks": 2}},
        _POOL,
        "exactly one of replicated and erasureCoded",
    ),
    _rook("no copies", {"replicated": {"size": 0}}, f"{_POOL}.replicated.size", "greater than or equal to 1"),
    _rook("many copies", {"replicated": {"size": 11}}, f"{_POOL}.replicated.size", "less than or equal to 10"),
    _rook("copies missing", {"replicated": {}}, f"{_POOL}.replicated.size", "Required value"),
    _rook("k too low", {"erasureCoded": {"dataChunks": 1, "codingChunks": 1}}, "dataChunks", "equal to 2"),
    _rook("k too high", {"erasureCoded": {"dataChunks": 33, "codingChunks": 1}}, "dataChunks", "equal to 32"),
    _rook("m too low", {"erasureCoded": {"dataChunks": 2, "codingChunks": 0}}, "codingChunks", "equal to 1"),
    _rook("m too high", {"erasureCoded": {"dataChunks": 2, "codingChunks": 33}}, "codingChunks", "equal to 32"),
    _rook("k missing", {"erasureCoded": {"codingChunks": 2}}, "dataChunks", "Required value"),
    _rook("m missing", {"erasureCoded": {"dataChunks": 2}}, "codingChunks", "Required value"),
    _rook("failure domain", {"replicated": {"size": 3}, "failureDomain": "A B"}, "failureDomain", "should match"),
    _rook("device class", {"replicated": {"size": 3}, "deviceClass": "A B"}, "deviceClass", "should match"),
    _rook("device class long", {"replicated": {"size": 3}, "deviceClass": LONGER}, "deviceClass", "more than 63"),
    _rook("domain long", {"replicated": {"size": 3}, "failureDomain": LONGER}, "failureDomain", "more than 63"),
    _rook("no groups", {"replicated": {"size": 3}, "placementGroups": 0}, "placementGroups", "equal to 1"),
    _rook("many groups", {"replicated": {"size": 3}, "placementGroups": 32769}, "placementGroups", "equal to 32768"),
    *(
        Manifest(
            name=f"rook {name}",
            changes={"spec.storage": {"rook": {**ROOK, **part}, "volume": {"size": "1Gi"}}},
            says=says,
        )
        for name, part, says in (
            ("cluster without a name", {"cluster": {"namespace": "r"}}, ("rook.cluster.name", "Required value")),
            ("cluster without a namespace", {"cluster": {"name": "r"}}, ("rook.cluster.namespace", "Required value")),
            ("name form", {"cluster": {"name": "R", "namespace": "r"}}, ("rook.cluster.name", "should match")),
            ("namespace form", {"cluster": {"name": "r", "namespace": "R"}}, ("cluster.namespace", "should match")),
            ("name long", {"cluster": {"name": LONGER, "namespace": "r"}}, ("cluster.name", "more than 63")),
            ("namespace long", {"cluster": {"name": "r", "namespace": LONGER}}, ("namespace", "more than 63")),
        )
    ),
    Manifest(
        name="rook without a cluster",
        changes={"spec.storage": {"rook": {"pool": ROOK["pool"]}, "volume": {"size": "1Gi"}}},
        says=("spec.storage.rook.cluster", "Required value"),
    ),
    Manifest(
        name="rook without a pool",
        changes={"spec.storage": {"rook": {"cluster": ROOK["cluster"]}, "volume": {"size": "1Gi"}}},
        says=("spec.storage.rook.pool", "Required value"),
    ),
]

_CEPH = [
    Manifest(
        name=f"ceph {name}",
        changes={"spec.storage": {"ceph": {**CEPH, **part}, "volume": {"size": "1Gi"}}},
        says=says,
        model_accepts=model_accepts,
    )
    for name, part, says, model_accepts in (
        ("no monitors", {"monitors": []}, ("ceph.monitors", "at least 1 items"), ""),
        ("many monitors", {"monitors": [f"m{n}" for n in range(16)]}, ("monitors", "at most 15 items"), ""),
        ("empty monitor", {"monitors": [""]}, ("ceph.monitors[0]", "at least 1 chars"), BY_HAND),
        ("long monitor", {"monitors": ["m" * 254]}, ("ceph.monitors[0]", "more than 253"), BY_HAND),
        ("no user", {"user": ""}, ("ceph.user", "at least 1 chars"), ""),
        ("long user", {"user": "u" * 129}, ("ceph.user", "more than 128"), ""),
        ("secret form", {"keyringSecret": {"name": "A"}}, ("ceph.keyringSecret.name", "should match"), ""),
        ("secret long", {"keyringSecret": {"name": LONGER}}, ("ceph.keyringSecret.name", "more than 63"), ""),
        ("secret without a name", {"keyringSecret": {}}, ("ceph.keyringSecret.name", "Required value"), ""),
        ("pool without a name", {"pool": {}}, ("ceph.pool.name", "Required value"), ""),
        ("pool empty", {"pool": {"name": ""}}, ("ceph.pool.name", "at least 1 chars"), ""),
        ("pool long", {"pool": {"name": "p" * 129}}, ("ceph.pool.name", "more than 128"), ""),
    )
] + [
    Manifest(
        name=f"ceph without {left_out}",
        changes={
            "spec.storage": {
                "ceph": {key: value for key, value in CEPH.items() if key != left_out},
                "volume": {"size": "1Gi"},
            }
        },
        says=(f"spec.storage.ceph.{left_out}", "Required value"),
    )
    for left_out in CEPH
]

STORAGE = [*_STORAGE, *_SIZES, *_ROOK, *_CEPH]
