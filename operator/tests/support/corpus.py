"""Every constraint on a run: what breaks it, and what just does not."""

from typing import Any

from support.manifests import CEPH, FIO, FULL, REMOVED, ROOK, VOLUME, Manifest

_LONGER = "a" * 64
_BY_HAND = "the models hand it to Kubernetes as it is, which would refuse it later"
_SPELLING = "sizes in lists are bounded by a pattern, which allows the usual spellings only"


def _refused(name: str, path: str, value: Any, *says: str, model_accepts: str = "") -> Manifest:
    return Manifest(name=name, changes={path: value}, says=says, model_accepts=model_accepts)


def _fio(name: str, says: tuple[str, ...], **parameters: Any) -> Manifest:
    return Manifest(name=name, changes={FIO: parameters}, says=says)


def _bounds(path: str, low: int, high: int) -> list[Manifest]:
    """Return what is below and above the bounds of a number, and what is no whole number."""
    field = path.replace(".0", "[0]")
    return [
        _refused(f"{path} too low", path, low - 1, field, f"greater than or equal to {low}"),
        _refused(f"{path} too high", path, high + 1, field, f"less than or equal to {high}"),
        _refused(f"{path} text", path, str(low), field, "must be of type integer"),
        _refused(f"{path} fraction", path, low + 0.5, field, "must be of type integer"),
    ]


def _choice(path: str, *values: str) -> list[Manifest]:
    return [_refused(f"{path} unknown", path, "other", path.replace(".0", "[0]"), *(f'"{value}"' for value in values))]


def _flag(path: str) -> list[Manifest]:
    return [_refused(f"{path} text", path, "yes", path.replace(".0", "[0]"), "must be of type boolean")]


def _label(path: str) -> list[Manifest]:
    field = path.replace(".0", "[0]")
    return [
        _refused(f"{path} form", path, "Not_a_label", field, "should match"),
        _refused(f"{path} long", path, _LONGER, field, "may not be more than 63"),
    ]


def _missing(path: str) -> Manifest:
    return _refused(f"{path} missing", path, REMOVED, path.replace(".0", "[0]"), "Required value")


def _unknown(path: str) -> Manifest:
    return _refused(f"{path} unknown", path, 1, f'unknown field "{path.replace(".0", "[0]")}"')


_STORAGE = [
    _refused("no source", "spec.storage.storageClass", REMOVED, "spec.storage", "exactly one of rook, ceph and storage"),
    _refused("two sources", "spec.storage.rook", ROOK, "spec.storage", "exactly one of rook, ceph and storageClass"),
    _refused("no storage for fio", "spec.storage", REMOVED, "spec.storage", "because fio runs on a volume"),
    _missing("spec.storage.volume"),
    _refused("no size", VOLUME, {}, "spec.storage.volume.size", "Required value"),
    *_choice("spec.storage.volume.mode", "Block", "Filesystem"),
    *_choice("spec.storage.volume.access", "PVC", "LibRBD"),
    _refused("StorageClass without a name", "spec.storage.storageClass", {}, "storageClass.name", "Required value"),
    _refused("StorageClass empty", "spec.storage.storageClass.name", "", "storageClass.name", "at least 1 chars"),
    _refused("StorageClass long", "spec.storage.storageClass.name", "s" * 254, "storageClass.name", "more than 253"),
]

_SIZES = [
    *(
        _refused(f"volume of {size!r}", f"{VOLUME}.size", size, "spec.storage.volume.size", words)
        for size, words in (
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
    _rook("device class long", {"replicated": {"size": 3}, "deviceClass": _LONGER}, "deviceClass", "more than 63"),
    _rook("domain long", {"replicated": {"size": 3}, "failureDomain": _LONGER}, "failureDomain", "more than 63"),
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
            ("name long", {"cluster": {"name": _LONGER, "namespace": "r"}}, ("cluster.name", "more than 63")),
            ("namespace long", {"cluster": {"name": "r", "namespace": _LONGER}}, ("namespace", "more than 63")),
        )
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
        ("empty monitor", {"monitors": [""]}, ("ceph.monitors[0]", "at least 1 chars"), _BY_HAND),
        ("long monitor", {"monitors": ["m" * 254]}, ("ceph.monitors[0]", "more than 253"), _BY_HAND),
        ("no user", {"user": ""}, ("ceph.user", "at least 1 chars"), ""),
        ("long user", {"user": "u" * 129}, ("ceph.user", "more than 128"), ""),
        ("secret form", {"keyringSecret": {"name": "A"}}, ("ceph.keyringSecret.name", "should match"), ""),
        ("secret long", {"keyringSecret": {"name": _LONGER}}, ("ceph.keyringSecret.name", "more than 63"), ""),
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

_CLIENTS = [
    *_bounds("spec.clients.count", 1, 1000),
    *_choice("spec.clients.spread", "Required", "Preferred"),
    *_label("spec.clients.imagePullSecrets.0.name"),
    _refused("pull secret without a name", "spec.clients.imagePullSecrets", [{}], "[0].name", "Required value"),
    *(
        _refused(f"clients {path}", f"spec.clients.{path}", value, *says, model_accepts=_BY_HAND)
        for path, value, says in (
            ("imagePullSecrets", [{"name": "s"}] * 17, ("imagePullSecrets", "at most 16 items")),
            ("nodeSelector", {f"k{n}": "v" for n in range(33)}, ("nodeSelector", "at most 32 items")),
            ("nodeSelector.disk", "v" * 64, ("nodeSelector.disk", "more than 63")),
            ("priorityClassName", "p" * 254, ("priorityClassName", "more than 253")),
            ("resources.claims", [], ('unknown field "spec.clients.resources.claims"',)),
            ("resources.requests", {f"r{n}": 1 for n in range(17)}, ("resources.requests", "at most 16 items")),
            ("resources.requests.cpu", "two", ("resources.requests.cpu", "should match")),
            ("resources.limits", {f"r{n}": 1 for n in range(17)}, ("resources.limits", "at most 16 items")),
            ("resources.limits.memory", "1 GB", ("resources.limits.memory", "should match")),
            ("tolerations", [{"key": "k"}] * 33, ("tolerations", "at most 32 items")),
            ("tolerations", [{"keys": "k"}], ('unknown field "spec.clients.tolerations[0].keys"',)),
            ("tolerations", [{"key": "k" * 317}], ("tolerations[0].key", "more than 316")),
            ("tolerations", [{"operator": "Is"}], ("tolerations[0].operator", '"Exists"', '"Equal"')),
            ("tolerations", [{"value": "v" * 64}], ("tolerations[0].value", "more than 63")),
            ("tolerations", [{"effect": "No"}], ("tolerations[0].effect", '"NoExecute"')),
            ("tolerations", [{"tolerationSeconds": -1}], ("tolerationSeconds", "equal to 0")),
            ("tolerations", [{"tolerationSeconds": 315360001}], ("tolerationSeconds", "equal to 315360000")),
        )
    ),
    _refused("selector no text", "spec.clients.nodeSelector", {"disk": True}, "nodeSelector.disk", "of type string"),
]

_W = "spec.workloads[0]"
_WORKLOADS = [
    _refused("no workloads", "spec.workloads", [], "spec.workloads", "at least 1 items"),
    _missing("spec.workloads"),
    _refused(
        "many workloads",
        "spec.workloads",
        [{"name": f"w{n}", "fio": {}} for n in range(33)],
        "spec.workloads",
        "at most 32 items",
    ),
    _refused(
        "names alike",
        "spec.workloads",
        [{"name": "w", "fio": {}}, {"name": "w", "fio": {}}],
        "spec.workloads[1]",
        'Duplicate value: {"name":"w"}',
    ),
    _refused("no tool", "spec.workloads", [{"name": "w"}], _W, "must have exactly one tool: fio"),
    _refused("unknown tool", "spec.workloads.0.bonnie", {}, 'unknown field "spec.workloads[0].bonnie"'),
    _refused("no name", "spec.workloads", [{"fio": {}}], f"{_W}.name", "Required value"),
    _refused("name form", "spec.workloads.0.name", "W", f"{_W}.name", "should match"),
    _refused("name empty", "spec.workloads.0.name", "", f"{_W}.name", "should match"),
    _refused("name long", "spec.workloads.0.name", "w" * 33, f"{_W}.name", "more than 32"),
    *_bounds("spec.workloads.0.runtimeSeconds", 1, 86400),
    *_bounds("spec.workloads.0.rampSeconds", 0, 3600),
    Manifest(
        name="ramp as long as runtime",
        changes={"spec.workloads.0.runtimeSeconds": 20, "spec.workloads.0.rampSeconds": 20},
        says=(f"{_W}.rampSeconds", "must be less than runtimeSeconds; lower it, or measure for longer"),
    ),
    _refused("default ramp too long", "spec.workloads.0.runtimeSeconds", 10, f"{_W}.rampSeconds", "must be less than"),
    *(
        _refused(f"clients {value}", "spec.workloads.0.clients", value, *says)
        for value, says in (
            (2, (f"{_W}.clients", "must be of type array")),
            ([], (f"{_W}.clients", "at least 1 items")),
            ([0], (f"{_W}.clients[0]", "greater than or equal to 1")),
            ([1001], (f"{_W}.clients[0]", "less than or equal to 1000")),
            (["2"], (f"{_W}.clients[0]", "must be of type integer")),
            ([1, 2, 1], (f"{_W}.clients[2]", "Duplicate value: 1")),
            ([1, 3], ("spec.workloads", "must be at most spec.clients.count; raise that or lower the axis")),
        )
    ),
    Manifest(
        name="too many clients values",
        changes={"spec.clients.count": 65, "spec.workloads.0.clients": list(range(1, 66))},
        says=(f"{_W}.clients", "at most 64 items"),
    ),
]

_F = f"{_W}.fio"
_FIO = [
    *_choice(f"{FIO}.pattern", "randread", "readwrite"),
    *_choice(f"{FIO}.engine", "libaio", "io_uring", "psync", "sync"),
    *_bounds(f"{FIO}.jobs", 1, 64),
    *(
        manifest
        for path, low, high in (("readPercent", 0, 100), ("fsyncEvery", 0, 2**31 - 1), ("rateIops", 1, 2**31 - 1))
        for manifest in _bounds(f"{FIO}.{path}", low, high)
    ),
    *_flag(f"{FIO}.directIo"),
    _unknown(f"{FIO}.gtodReduce"),
    _unknown(f"{FIO}.io_depth"),
    _refused("fio is no mapping", FIO, ["randread"], _F, "must be of type object"),
    _refused("fio is empty", FIO, None, _F, "must be of type object", model_accepts="YAML's empty value: no parameters"),
    _fio("depth is no list", (f"{_F}.ioDepth", "must be of type array"), ioDepth=1),
    _fio("depth list empty", (f"{_F}.ioDepth", "at least 1 items"), ioDepth=[]),
    _fio("depth list long", (f"{_F}.ioDepth", "at most 64 items"), ioDepth=list(range(1, 66))),
    _fio("depth 0", (f"{_F}.ioDepth[0]", "greater than or equal to 1"), ioDepth=[0]),
    _fio("depth 1025", (f"{_F}.ioDepth[0]", "less than or equal to 1024"), ioDepth=[1025]),
    _fio("depth text", (f"{_F}.ioDepth[0]", "must be of type integer"), ioDepth=["1"]),
    _fio("depth twice", (f"{_F}.ioDepth[1]", "Duplicate value: 4"), ioDepth=[4, 4]),
    _fio("pattern list", (f"{_F}.pattern", "must be of type string"), pattern=["randread", "randwrite"]),
    *(
        _fio(f"depth with {engine}", (f"{_F}.ioDepth", "use 1 and raise jobs"), engine=engine, ioDepth=[1, 2])
        for engine in ("psync", "sync")
    ),
    *(
        _fio(f"share of {p}", (f"{_F}.readPercent", "use readwrite or randrw"), pattern=p, readPercent=50)
        for p in ("read", "write", "randread", "randwrite", "trim", "randtrim")
    ),
    *(
        _fio(f"fsync of {p}", (f"{_F}.fsyncEvery", "does not write; remove it"), pattern=p, fsyncEvery=1)
        for p in ("read", "randread", "trim", "randtrim")
    ),
    *(
        _fio(f"rate {number}", (f"{_F}.rateIops", "at least one operation per second for every job"), **parameters)
        for number, parameters in enumerate(
            (
                {"jobs": 4, "rateIops": 3},
                {"pattern": "randrw", "rateIops": 1},
                {"pattern": "randrw", "readPercent": 99, "rateIops": 99},
                {"pattern": "readwrite", "readPercent": 1, "rateIops": 99},
                {"pattern": "readwrite", "readPercent": 30, "jobs": 2, "rateIops": 6},
                {"pattern": "readwrite", "readPercent": 0, "jobs": 2, "rateIops": 1},
            )
        )
    ),
    *(
        Manifest(
            name=f"{pattern} without prefill",
            changes={"spec.prepare": {"prefill": False}, f"{FIO}.pattern": pattern},
            says=("spec.prepare.prefill", "must be true, because a workload reads"),
        )
        for pattern in ("read", "randread", "readwrite", "randrw")
    ),
]

_BLOCK = f"{_F}.blockSize"
_BLOCK_SIZES = [
    _fio("block size is no list", (_BLOCK, "must be of type array"), blockSize="4Ki"),
    _fio("block sizes empty", (_BLOCK, "at least 1 items"), blockSize=[]),
    _fio("block sizes many", (_BLOCK, "at most 64 items"), blockSize=[f"{n}Ki" for n in range(1, 66)]),
    _fio("block size twice", (f"{_BLOCK}[1]", 'Duplicate value: "4Ki"'), blockSize=["4Ki", "4Ki"]),
    *(
        _fio(f"block size {size!r}", (f"{_BLOCK}[0]", words), blockSize=[size])
        for size, words in (
            (0, "greater than or equal to 512"),
            (511, "greater than or equal to 512"),
            (1000, "multiple of 512"),
            (2**26 + 512, "less than or equal to 67108864"),
            ("4KB", "should match"),
            ("0Ki", "should match"),
            ("65Mi", "should match"),
            ("65537Ki", "should match"),
            ("1Gi", "should match"),
            ("-4Ki", "should match"),
            ("1.2Ki", "should match"),
            ("1000", "should match"),
            (True, "blockSize[0]"),
            (4096.5, "blockSize[0]"),
        )
    ),
    *(
        _refused(f"block size {size!r}", FIO, {"blockSize": [size]}, _BLOCK, "should match", model_accepts=_SPELLING)
        for size in ("4096", "64k", "0.5Ki", "10240Ki", "04Ki")
    ),
]

_REST = [
    *_bounds("spec.repetitions", 1, 10),
    *(manifest for name in ("prefill", "discard", "dropCaches") for manifest in _flag(f"spec.prepare.{name}")),
    *_bounds("spec.prepare.settleSeconds", 0, 86400),
    *_bounds("spec.prepare.fillPercent", 1, 100),
    *_choice("spec.gates.cephHealth", "Required", "Ignored"),
    *_flag("spec.gates.pauseScrub"),
    *(
        manifest
        for name in ("provisionSeconds", "readySeconds", "totalSeconds")
        for manifest in _bounds(f"spec.timeouts.{name}", 1, 2592000)
    ),
    *_choice("spec.cleanup", "Always", "OnSuccess", "Never"),
    *_choice("spec.results", "Delete", "Retain"),
    *_bounds("spec.ttlSecondsAfterFinished", 0, 315360000),
    *_flag("spec.suspend"),
    *(
        _unknown(f"spec.{path}")
        for path in (
            "repetition",
            "storage.volumes",
            "storage.volume.sizes",
            "storage.storageClass.names",
            "clients.counts",
            "workloads.0.runtimeSecond",
            "prepare.settle_seconds",
            "gates.pauseScrubs",
            "timeouts.total",
        )
    ),
    _unknown("specs"),
    _refused("no spec", "spec", REMOVED, "spec", "Required value"),
    _refused("name form", "metadata.name", "run.1", "metadata.name", "must consist of lower-case letters, digits and"),
    _refused("name long", "metadata.name", "r" * 64, "metadata.name", "must have at most 63 characters"),
]

REFUSED = [
    *_STORAGE,
    *_SIZES,
    *_ROOK,
    *_CEPH,
    *_CLIENTS,
    *_WORKLOADS,
    *_FIO,
    *_BLOCK_SIZES,
    *_REST,
]
"""What the API server refuses, and the models too unless they say why not."""

_512_POINTS = {"ioDepth": list(range(1, 65)), "blockSize": [512 * n for n in range(1, 9)]}
_513_POINTS = [{"name": "w", "fio": _512_POINTS}, {"name": "one-more", "fio": {}}]

ACCEPTED = [
    Manifest(name="small", changes={}),
    Manifest(name="full", changes={"spec": FULL["spec"]}),
    *(Manifest(name=f"volume of {size!r}", changes={f"{VOLUME}.size": size}) for size in
      ("1Mi", "1Pi", "100Ti", "1.5Gi", "0.5Gi", "1048576", 2**20, 2**50, "20G", "2M", "1.25Ti", "999.5Gi")),
    *(Manifest(name=f"block size {size!r}", changes={FIO: {"blockSize": [size]}}) for size in
      (512, 4096, 2**26, "1Ki", "9999Ki", "1Mi", "64Mi")),
    Manifest(name="mode and access", changes={f"{VOLUME}.mode": "Filesystem", f"{VOLUME}.access": "LibRBD"}),
    Manifest(name="rook", changes={"spec.storage": {"rook": ROOK, "volume": {"size": "1Gi"}}}),
    Manifest(
        name="erasure coded",
        changes={
            "spec.storage": {
                "rook": {**ROOK, "pool": {"erasureCoded": {"dataChunks": 2, "codingChunks": 1}}},
                "volume": {"size": "1Gi"},
            }
        },
    ),
    Manifest(name="ceph", changes={"spec.storage": {"ceph": CEPH, "volume": {"size": "1Gi"}}}),
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
                {"pattern": "readwrite", "readPercent": 100, "rateIops": 1},
                {"pattern": "readwrite", "readPercent": 0, "jobs": 64, "rateIops": 64},
                {"pattern": "randrw", "readPercent": 99, "rateIops": 100},
                {"pattern": "randrw", "rateIops": 2},
                {"pattern": "trim", "directIo": False},
                {"pattern": "randread", "fsyncEvery": 0, "jobs": 4, "rateIops": 4},
            )
        )
    ),
    *(
        Manifest(name=f"{p} without prefill", changes={"spec.prepare": {"prefill": False}, f"{FIO}.pattern": p})
        for p in ("write", "randwrite", "trim", "randtrim")
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
]
"""What the API server accepts, and the models too unless the server says why not."""
