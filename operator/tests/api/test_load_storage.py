"""Errors in the storage of a run."""

from typing import Any

import pytest

from plimsoll.api.run import decode_run
from support.specs import document, problems

CLUSTER = {"namespace": "r", "name": "r"}
CEPH = {"monitors": ["192.0.2.1"], "user": "u", "keyringSecret": {"name": "k"}, "pool": {"name": "p"}}

REPLICATED = {"replicated": {"size": 3}}
CODED: dict[str, Any] = {"erasureCoded": {"dataChunks": 2, "codingChunks": 1}}


def file_system(**fields: Any) -> dict[str, Any]:
    parts = {"metadataPool": REPLICATED, "dataPools": [REPLICATED]}
    return {"cluster": CLUSTER, "fileSystem": parts | fields}


FILES = file_system()


@pytest.mark.parametrize(
    ("storage", "mode"),
    [
        ({"rook": FILES, "volume": {"size": "1Gi"}}, "Filesystem"),
        ({"rook": {"cluster": CLUSTER, "existingFileSystem": {"name": "f"}}, "volume": {"size": "1Gi"}}, "Filesystem"),
        ({"storageClass": {"name": "a"}, "volume": {"size": "1Gi", "sharing": "Shared"}}, "Filesystem"),
        ({"storageClass": {"name": "a"}, "volume": {"size": "1Gi"}}, "Filesystem"),
        ({"storageClass": {"name": "a"}, "volume": {"size": "1Gi", "mode": "Block"}}, "Block"),
        ({"rook": {"cluster": CLUSTER, "existingPool": {"name": "p"}}, "volume": {"size": "1Gi"}}, "Filesystem"),
        ({"ceph": CEPH, "volume": {"size": "1Gi", "access": "LibRBD"}}, "Block"),
    ],
)
def test_only_images_and_claims_that_ask_for_it_are_devices(storage: dict[str, Any], mode: str) -> None:
    found = decode_run(document(storage=storage, workloads=[{"name": "w", "fio": {}}])).spec.storage
    assert found is not None
    assert found.volume is not None
    assert found.volume.mode == mode


def test_storage_may_be_without_volumes() -> None:
    storage = decode_run(document(storage={"ceph": CEPH})).spec.storage
    assert storage is not None
    assert storage.volume is None
    assert storage.ceph is not None
    assert storage.ceph.keyring_secret.key == "keyring"


def test_image_is_not_cached_unless_asked_for() -> None:
    for asked in (None, False, True):
        volume = {"size": "1Gi", "access": "LibRBD"} | ({} if asked is None else {"rbdCache": asked})
        storage = decode_run(document(storage={"ceph": CEPH, "volume": volume})).spec.storage
        assert storage is not None
        assert storage.volume is not None
        assert storage.volume.rbd_cache is bool(asked)


@pytest.mark.parametrize(
    ("storage", "expected"),
    [
        ({"volume": {"size": "1Gi"}}, "spec.storage: must have exactly one of rook, ceph and storageClass"),
        ({"storageClass": {"name": "a"}, "volume": {}}, "spec.storage.volume.size: is required; add it"),
        (
            {"storageClass": {"name": "a"}, "volume": {"size": "20GB"}},
            'spec.storage.volume.size: "20GB" is not a quantity; write a Kubernetes quantity',
        ),
        (
            {"storageClass": {"name": "a"}, "volume": {"size": 0}},
            "spec.storage.volume.size: 0 must be at least 1048576 (1Mi)",
        ),
        (
            {"storageClass": {"name": "a"}, "volume": {"size": "2Pi"}},
            'spec.storage.volume.size: "2Pi" must be at most 1125899906842624 (1Pi)',
        ),
        (
            {"storageClass": {"name": "a"}, "volume": {"size": ["1Gi", "2Gi"]}},
            "spec.storage.volume.size: is not a quantity",
        ),
        (
            {"rook": {"cluster": {"namespace": "r", "name": "r"}, "pool": {}}, "volume": {"size": "1Gi"}},
            "spec.storage.rook.pool: must have exactly one of replicated and erasureCoded",
        ),
        (
            {
                "rook": {
                    "cluster": {"namespace": "r", "name": "r"},
                    "pool": {"erasureCoded": {"dataChunks": 1, "codingChunks": 2}},
                },
                "volume": {"size": "1Gi"},
            },
            "spec.storage.rook.pool.erasureCoded.dataChunks: 1 must be at least 2",
        ),
        (
            {"rook": {"cluster": CLUSTER, "pool": {"erasureCoded": CODED["erasureCoded"] | {"stripeUnit": "8Ki"}}}},
            'spec.storage.rook.pool.erasureCoded.stripeUnit: "8Ki" must be 4Ki, 16Ki, 64Ki, 256Ki or 1Mi',
        ),
        (
            {"rook": {"cluster": CLUSTER}},
            "spec.storage.rook: must have exactly one of pool, existingPool, fileSystem and existingFileSystem",
        ),
        (
            {"rook": {"cluster": CLUSTER, "pool": {"replicated": {"size": 1}}, "existingPool": {"name": "p"}}},
            "spec.storage.rook: must have exactly one of pool, existingPool, fileSystem and existingFileSystem",
        ),
        (
            {"rook": {"cluster": CLUSTER, "pool": {"replicated": {"size": 1}, "compressionMode": "on"}}},
            'spec.storage.rook.pool.compressionMode: "on" must be none, passive, aggressive or force',
        ),
        (
            {"rook": {"cluster": CLUSTER, "existingPool": {"name": "rbd/image"}}},
            "spec.storage.rook.existingPool.name: \"rbd/image\" must consist of letters, digits, '-', '_' and '.'",
        ),
        (
            {"ceph": CEPH | {"user": "a b"}},
            "spec.storage.ceph.user: \"a b\" must consist of letters, digits, '-', '_' and '.', and begin with",
        ),
        (
            {"ceph": CEPH | {"user": "client.u"}},
            'spec.storage.ceph.user: "client.u" must not start with client.; write the name after it',
        ),
        (
            {"ceph": CEPH | {"monitors": ["192.0.2.1", "a b"]}},
            'spec.storage.ceph.monitors[1]: "a b" must be an address such as 192.0.2.1:6789 or [v2:192.0.2.1:3300]',
        ),
        (
            {"ceph": CEPH | {"keyringSecret": {"name": "k", "key": "a/b"}}},
            "spec.storage.ceph.keyringSecret.key: \"a/b\" must consist of letters, digits, '-', '_' and '.'",
        ),
        (
            {"ceph": CEPH, "volume": {"size": "1Gi"}},
            (
                "spec.storage.volume.access: PVC must be LibRBD, because a Ceph cluster without Rook has no "
                "StorageClass; set it to LibRBD"
            ),
        ),
        (
            {"storageClass": {"name": "a"}, "volume": {"size": "1Gi", "access": "LibRBD"}},
            "spec.storage.volume.access: LibRBD must be PVC, because a StorageClass and a file system provide",
        ),
        (
            {"ceph": CEPH, "volume": {"size": "1Gi", "access": "LibRBD", "mode": "Filesystem"}},
            (
                "spec.storage.volume.mode: Filesystem must be Block, because access is LibRBD, which does not "
                "support file systems; remove the field"
            ),
        ),
        (
            {"rook": FILES, "volume": {"size": "1Gi", "mode": "Block"}},
            "spec.storage.volume.mode: Block must be Filesystem, because spec.storage.rook has a file system; remove",
        ),
        (
            {"rook": FILES, "volume": {"size": "1Gi", "access": "LibRBD"}},
            "spec.storage.volume.access: LibRBD must be PVC, because a StorageClass and a file system provide volumes",
        ),
        (
            {
                "rook": {"cluster": CLUSTER, "existingPool": {"name": "p"}},
                "volume": {"size": "1Gi", "sharing": "Shared"},
            },
            "spec.storage.volume.sharing: Shared must be PerClient, because pods cannot share an RBD image; remove the",
        ),
        (
            {"rook": file_system(metadataPool=CODED)},
            "spec.storage.rook.fileSystem.metadataPool: must be replicated, because Ceph keeps no metadata in erasure-",
        ),
        (
            {"rook": file_system(dataPools=[CODED])},
            "spec.storage.rook.fileSystem.dataPools: must have a replicated pool first, because the first one also",
        ),
        (
            {"rook": {"cluster": CLUSTER, "existingFileSystem": {"name": "f" * 41}}},
            "spec.storage.rook.existingFileSystem.name: ",
        ),
        (
            {"storageClass": {"name": "a"}, "volume": {"size": "1Gi", "sharing": "Shared", "mode": "Block"}},
            (
                "spec.storage.volume.sharing: Shared must be PerClient, because clients can share only files; remove "
                "the field, or use access PVC and mode Filesystem"
            ),
        ),
        (
            {"ceph": CEPH, "volume": {"size": "1Gi", "sharing": "Shared", "access": "LibRBD"}},
            "spec.storage.volume.sharing: Shared must be PerClient, because clients can share only files; remove",
        ),
        (
            {"storageClass": {"name": "a"}, "volume": {"size": "1Gi", "rbdCache": True}},
            "spec.storage.volume.rbdCache: true has no effect unless access is LibRBD; remove the field",
        ),
    ],
)
def test_storage(storage: dict[str, Any], expected: str) -> None:
    (found,) = problems(document(storage=storage))
    assert found.startswith(expected)
