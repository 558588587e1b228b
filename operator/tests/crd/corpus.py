"""Every constraint on a run: what breaks it, and what just does not."""

from crd.corpus_pods import PODS
from crd.corpus_storage import STORAGE
from crd.corpus_tools import TOOLS_ACCEPTED, TOOLS_REFUSED
from crd.corpus_workloads import ACCESS_ACCEPTED, DISTURB_ACCEPTED, LINE_ACCEPTED, LINE_REFUSED, WORKLOADS
from crd.manifests import (
    BY_HAND,
    FIO,
    FULL,
    IMAGE,
    PRECONDITION,
    REMOVED,
    ROOK,
    VOLUME,
    Manifest,
    bounds,
    choice,
    flag,
    refused,
    unknown,
)

_CLIENTS = [
    *bounds("spec.clients.count", 1, 1000),
    *choice("spec.clients.spread", "Required", "Preferred"),
    *(
        refused(f"clients {number} {path}", f"spec.clients.{path}", value, *says, model_accepts=BY_HAND)
        for number, (path, value, says) in enumerate(
            (
                ("nodeSelector", {f"k{n}": "v" for n in range(33)}, ("nodeSelector", "at most 32 items")),
                ("nodeSelector.disk", "v" * 64, ("nodeSelector.disk", "more than 63")),
                ("resources.claims", [], ('unknown field "spec.clients.resources.claims"',)),
                ("resources.requests", {f"r{n}": 1 for n in range(17)}, ("resources.requests", "at most 16 items")),
                ("resources.requests.cpu", "two", ("resources.requests.cpu", "should match")),
                ("resources.requests.cpu", "1" * 33, ("resources.requests.cpu", "may not be more than 32 bytes")),
                ("resources.limits.cpu", "1" * 33, ("resources.limits.cpu", "may not be more than 32 bytes")),
                ("resources.limits", {f"r{n}": 1 for n in range(17)}, ("resources.limits", "at most 16 items")),
                ("resources.limits.memory", "1 GB", ("resources.limits.memory", "should match")),
            )
        )
    ),
    *(
        refused(f"network of {rate!r}", "spec.clients.networkBytesPerSecond", rate, "networkBytesPerSecond", words)
        for rate, words in (
            ("1" + "0" * 32, "may not be more than 32 bytes"),
            ("10Gbit", "should match"),
            (1.5, "must be of type integer,string"),
            (1023, "must be from 1Ki to 1Pi"),
            ("1k", "must be from 1Ki to 1Pi"),
            (2**50 + 1, "must be from 1Ki to 1Pi"),
            ("2Pi", "must be from 1Ki to 1Pi"),
            ("1.1Gi", "must be a whole number of bytes"),
        )
    ),
    refused("selector no text", "spec.clients.nodeSelector", {"disk": True}, "nodeSelector.disk", "of type string"),
]

_BLOCK_SIZE = f"{PRECONDITION}.blockSize"
_PREPARE = [
    *(manifest for name in ("prefill", "discard", "dropCaches") for manifest in flag(f"spec.prepare.{name}")),
    *bounds("spec.prepare.settleSeconds", 0, 86400),
    *bounds("spec.prepare.fillPercent", 1, 100),
    *bounds(f"{PRECONDITION}.seconds", 1, 86400),
    *(
        refused(f"overwriting in {size!r}", _BLOCK_SIZE, size, _BLOCK_SIZE, words)
        for size, words in (
            (0, "greater than or equal to 512"),
            (511, "greater than or equal to 512"),
            (2**26 + 512, "less than or equal to 67108864"),
            (513, "multiple of 512"),
            (1.5, "must be of type integer,string"),
            ("4KB", "should match"),
            ("0Ki", "should match"),
            ("65Mi", "should match"),
            ("1" * 33, "may not be more than 32 bytes"),
        )
    ),
    unknown(f"{PRECONDITION}.blocksize"),
    Manifest(
        name="overwriting without prefill",
        changes={"spec.prepare": {"prefill": False, "precondition": {}}, f"{FIO}.pattern": "write"},
        says=("spec.prepare.prefill", "must be true, because precondition overwrites"),
    ),
    *choice("spec.prepare.perTrial", "NewDataSet"),
    Manifest(
        name="a new data set that nothing renews",
        changes={
            "spec.prepare": {"prefill": False, "discard": False, "perTrial": "NewDataSet"},
            f"{FIO}.pattern": "write",
        },
        says=("spec.prepare.perTrial", "must be absent unless prefill or discard is true"),
    ),
]

_REST = [
    *bounds("spec.repetitions", 1, 10),
    *choice("spec.gates.cephHealth", "Required", "Ignored"),
    *flag("spec.gates.pauseScrub"),
    *bounds("spec.limits.fillPercent", 1, 95),
    *(
        manifest
        for name in ("provisionSeconds", "readySeconds", "totalSeconds")
        for manifest in bounds(f"spec.timeouts.{name}", 1, 2592000)
    ),
    *choice("spec.cleanup", "Always", "OnSuccess", "Never"),
    *choice("spec.results", "Delete", "Retain"),
    *bounds("spec.ttlSecondsAfterFinished", 0, 315360000),
    *flag("spec.suspend"),
    *(
        unknown(f"spec.{path}")
        for path in (
            "repetition",
            "storage.volumes",
            "storage.volume.sizes",
            "storage.storageClass.names",
            "clients.counts",
            "workloads.0.runtimeSecond",
            "prepare.settle_seconds",
            "gates.pauseScrubs",
            "limits.fill",
            "timeouts.total",
        )
    ),
    unknown("specs"),
    refused("no spec", "spec", REMOVED, "spec", "Required value"),
    refused("run's name form", "metadata.name", "run.1", "metadata.name must consist of lower-case letters"),
    refused("run's name long", "metadata.name", "r" * 64, "metadata.name must have at most 63 characters"),
]

REFUSED = [
    *STORAGE,
    *_CLIENTS,
    *PODS,
    *WORKLOADS,
    *TOOLS_REFUSED,
    *LINE_REFUSED,
    *_PREPARE,
    *_REST,
]
"""What the API server refuses, and the models too unless they say why not."""

_512_POINTS = {"ioDepth": list(range(1, 65)), "blockSize": [512 * n for n in range(1, 9)]}
_513_POINTS = [{"name": "w", "fio": _512_POINTS}, {"name": "one-more", "fio": {}}]

ACCEPTED = [
    *LINE_ACCEPTED,
    *ACCESS_ACCEPTED,
    *DISTURB_ACCEPTED,
    Manifest(
        name="until the data set is done",
        changes={FIO: {"until": "DataSetDone", "pattern": "write"}, "spec.workloads.0.rampSeconds": 0},
    ),
    Manifest(name="small", changes={}),
    Manifest(name="full", changes={"spec": FULL["spec"]}),
    *(
        Manifest(name=f"volume of {size!r}", changes={f"{VOLUME}.size": size})
        for size in ("1Mi", "1Pi", "100Ti", "1.5Gi", "0.5Gi", "1048576", 2**20, 2**50, "20G", "2M", "1.25Ti", "999.5Gi")
    ),
    *(
        Manifest(name=f"block size {size!r}", changes={FIO: {"blockSize": [size]}})
        for size in (512, 4096, 2**26, "1Ki", "9999Ki", "1Mi", "64Mi")
    ),
    *(
        Manifest(name=f"network of {rate!r}", changes={"spec.clients.networkBytesPerSecond": rate})
        for rate in ("1Ki", 2**10, "1250M", "1.25G", "12.5G", 2**50, "1Pi")
    ),
    *(
        Manifest(name=f"overwriting by {words}", changes={PRECONDITION: words})
        for words in ({}, {"blockSize": 512}, {"blockSize": "9999Ki", "seconds": 86400}, {"blockSize": "64Mi"})
    ),
    Manifest(
        name="overwriting in blocks larger than the volume",
        changes={f"{VOLUME}.size": "1Mi", PRECONDITION: {"blockSize": "2Mi"}},
        server_accepts="whether the data set is that large depends on more than a rule sees; the operator refuses it",
    ),
    Manifest(name="mode and access", changes={f"{VOLUME}.mode": "Filesystem", f"{VOLUME}.access": "PVC"}),
    Manifest(name="rook", changes={"spec.storage": {"rook": ROOK, "volume": {"size": "1Gi"}}}),
    Manifest(
        name="the only Rook cluster",
        changes={"spec.storage": {"rook": {"pool": ROOK["pool"]}, "volume": {"size": "1Gi"}}},
    ),
    Manifest(
        name="three copies by default",
        changes={"spec.storage": {"rook": {**ROOK, "pool": {"replicated": {}}}, "volume": {"size": "1Gi"}}},
    ),
    Manifest(
        name="shared volume",
        changes={
            VOLUME: {"size": "1Gi", "sharing": "Shared"},
            FIO: {"pattern": "read", "readBack": "NextClient", "files": "SharedFile"},
        },
    ),
    *(
        Manifest(
            name=f"{name} with {volume}",
            changes={"spec.storage": {"rook": {"cluster": ROOK["cluster"], **source}, "volume": volume}},
        )
        for name, source in (
            (
                "file system",
                {
                    "fileSystem": {
                        "metadataPool": {"replicated": {"size": 3}},
                        "dataPools": [
                            {"replicated": {"size": 3}},
                            {"erasureCoded": {"dataChunks": 2, "codingChunks": 1}},
                        ],
                        "metadataServers": 2,
                    }
                },
            ),
            ("existing file system", {"existingFileSystem": {"name": "f", "metadataPool": "m", "dataPool": "d"}}),
        )
        for volume in ({"size": "1Gi"}, {"size": "1Gi", "sharing": "Shared", "mode": "Filesystem"})
    ),
    Manifest(
        name="erasure coded",
        changes={
            "spec.storage": {
                "rook": {**ROOK, "pool": {"erasureCoded": {"dataChunks": 2, "codingChunks": 1}}},
                "volume": {"size": "1Gi"},
            }
        },
    ),
    Manifest(
        name="two copies in each zone",
        changes={
            "spec.storage": {
                "rook": {
                    **ROOK,
                    "pool": {
                        "replicated": {"size": 4, "replicasPerFailureDomain": 2, "subFailureDomain": "rack"},
                        "failureDomain": "zone",
                    },
                },
                "volume": {"size": "1Gi"},
            }
        },
    ),
    Manifest(
        name="erasure coded with optimizations",
        changes={
            "spec.storage": {
                "rook": {
                    **ROOK,
                    "pool": {
                        "erasureCoded": {
                            "dataChunks": 2,
                            "codingChunks": 1,
                            "stripeUnit": "256Ki",
                            "optimizations": True,
                        }
                    },
                },
                "volume": {"size": "1Gi"},
            }
        },
    ),
    Manifest(name="name of 63", changes={"metadata.name": "r" * 63}),
    Manifest(name="512 points", changes={FIO: _512_POINTS}),
    Manifest(name="32 workloads", changes={"spec.workloads": [{"name": f"w{n}", "fio": {}} for n in range(32)]}),
    Manifest(name="1000 clients", changes={"spec.clients.count": 1000, "spec.workloads.0.clients": [1, 1000]}),
    Manifest(name="shortest", changes={"spec.workloads.0.runtimeSeconds": 1, "spec.workloads.0.rampSeconds": 0}),
    *(
        Manifest(name=f"fio {number}", changes={FIO: parameters})
        for number, parameters in enumerate(
            (
                {"engine": "psync", "ioDepth": [1]},
                {"engine": "io_uring", "ioDepth": [1, 1024]},
                {"pattern": "randrw", "readPercent": 70, "fsyncEvery": 1, "rateIops": 10, "jobs": 3},
                {"pattern": "readwrite", "readPercent": 99, "rateIops": 100},
                {"pattern": "readwrite", "readPercent": 1, "jobs": 64, "rateIops": 6400},
                {"pattern": "randrw", "rateIops": 2},
                {"pattern": "randread", "fsyncEvery": 0, "jobs": 4, "rateIops": 4},
            )
        )
    ),
    *(
        Manifest(name=f"{p} without prefill", changes={"spec.prepare": {"prefill": False}, f"{FIO}.pattern": p})
        for p in ("write", "randwrite")
    ),
    *(
        Manifest(
            name=f"trims of {name}",
            changes={
                "spec.storage": {"rook": ROOK, "volume": volume},
                "spec.prepare": {"prefill": False},
                FIO: {"pattern": "randtrim", "directIo": volume is IMAGE},
            },
        )
        for name, volume in (("a device", {"size": "1Gi", "mode": "Block"}), ("an image", IMAGE))
    ),
    Manifest(
        name="blocks larger than the volume",
        changes={f"{VOLUME}.size": "1Mi", FIO: {"blockSize": ["2Mi"]}},
        server_accepts="comparing quantities in a list is beyond what a rule may cost; the operator refuses it",
    ),
    Manifest(
        name="513 points",
        changes={"spec.workloads": _513_POINTS},
        server_accepts="a product of lengths over a list is beyond what a rule may cost; the operator refuses it",
    ),
    Manifest(
        name="one size in two spellings",
        changes={FIO: {"blockSize": ["4Ki", 4096]}},
        server_accepts="reading quantities in a list is beyond what a rule may cost; the operator refuses it",
    ),
    Manifest(
        name="name to be made up",
        changes={"metadata": {"generateName": "run-"}},
        server_accepts="the API server makes a name up; a file has to have one",
    ),
    *TOOLS_ACCEPTED,
]
"""What the API server accepts, and the models too unless the server says why not."""
