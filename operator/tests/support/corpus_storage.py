"""What can be wrong with the storage of a run."""

from support.manifests import FIO, REMOVED, ROOK, VOLUME, Manifest, choice, flag, refused

_SHARED = {"size": "1Gi", "sharing": "Shared"}

_STORAGE = [
    refused("no source", "spec.storage.storageClass", REMOVED, "spec.storage", "exactly one of rook, ceph and storage"),
    refused("two sources", "spec.storage.rook", ROOK, "spec.storage", "exactly one of rook, ceph and storageClass"),
    refused(
        "no storage for fio",
        "spec.storage",
        REMOVED,
        "spec.storage",
        "because fio, rbdBench, dd, ioping and",
    ),
    refused("no volume for fio", VOLUME, REMOVED, "spec.storage.volume", "Required value: must be set, because fio"),
    refused("no size", VOLUME, {}, "spec.storage.volume.size", "Required value"),
    *choice("spec.storage.volume.mode", "Block", "Filesystem"),
    *choice("spec.storage.volume.access", "PVC", "LibRBD"),
    *choice("spec.storage.volume.sharing", "PerClient", "Shared"),
    Manifest(
        name="shared device",
        changes={VOLUME: {"size": "1Gi", "sharing": "Shared", "mode": "Block"}},
        says=(f"{VOLUME}.mode", "must be Filesystem, because sharing is Shared, and clients can share only files"),
    ),
    *(
        Manifest(
            name=f"{words} without sharing",
            changes={f"{VOLUME}.mode": "Filesystem", FIO: parameters},
            says=(f"{VOLUME}.sharing", "must be Shared, because a workload has files SharedFile or readBack"),
        )
        for words, parameters in (
            ("one file", {"files": "SharedFile"}),
            ("reading back", {"pattern": "read", "readBack": "NextClient"}),
        )
    ),
    Manifest(
        name="files of two kinds",
        changes={
            VOLUME: _SHARED,
            "spec.workloads": [{"name": "a", "fio": {"files": "SharedFile"}}, {"name": "b", "fio": {}}],
        },
        says=("spec.workloads", "cannot have files SharedFile in only some workloads"),
    ),
    *(
        Manifest(
            name=f"reading back with one client of {where}",
            changes={VOLUME: _SHARED, FIO: {"pattern": "read", "readBack": "NextClient"}, **changes},
            says=("spec.workloads", "must have at least 2 clients where readBack is NextClient"),
        )
        for where, changes in (
            ("the workload", {"spec.workloads.0.clients": [1, 2]}),
            ("the run", {"spec.clients.count": 1}),
        )
    ),
    Manifest(
        name="reading back what is written",
        changes={VOLUME: _SHARED, FIO: {"pattern": "randrw", "readBack": "NextClient"}},
        says=("spec.workloads[0].fio.readBack", "applies only to the patterns read and randread"),
    ),
    *flag("spec.storage.volume.rbdCache"),
    refused("librbd without Ceph", f"{VOLUME}.access", "LibRBD", f"{VOLUME}.access", "must be PVC, because a Storage"),
    Manifest(
        name="cache of a claim",
        changes={f"{VOLUME}.rbdCache": True},
        says=(f"{VOLUME}.rbdCache", "has no effect unless access is LibRBD; remove the field"),
    ),
    Manifest(
        name="file system through librbd",
        changes={"spec.storage": {"rook": ROOK, "volume": {"size": "1Gi", "access": "LibRBD", "mode": "Filesystem"}}},
        says=(
            "spec.storage.volume.mode",
            "must be Block, because access is LibRBD, which does not support file systems; remove the field",
        ),
    ),
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


STORAGE = [*_STORAGE, *_SIZES]
