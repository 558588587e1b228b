"""What can be wrong with the workloads of a run."""

from typing import Any

from support.corpus_tools import SPELLING
from support.manifests import CEPH, FIO, IMAGE, VOLUME, Manifest, bounds, choice, flag, missing, refused, unknown


def _fio(name: str, says: tuple[str, ...], **parameters: Any) -> Manifest:
    return Manifest(name=name, changes={FIO: parameters}, says=says)


_W = "spec.workloads[0]"
_WORKLOADS = [
    refused("no workloads", "spec.workloads", [], "spec.workloads", "at least 1 items"),
    missing("spec.workloads"),
    refused(
        "many workloads",
        "spec.workloads",
        [{"name": f"w{n}", "fio": {}} for n in range(33)],
        "spec.workloads",
        "at most 32 items",
    ),
    refused(
        "names alike",
        "spec.workloads",
        [{"name": "w", "fio": {}}, {"name": "w", "fio": {}}],
        "spec.workloads[1]",
        'Duplicate value: {"name":"w"}',
    ),
    refused("no tool", "spec.workloads", [{"name": "w"}], _W, "must have exactly one tool: fio, radosBench"),
    refused("unknown tool", "spec.workloads.0.iozone", {}, 'unknown field "spec.workloads[0].iozone"'),
    refused("no name", "spec.workloads", [{"fio": {}}], f"{_W}.name", "Required value"),
    refused("name form", "spec.workloads.0.name", "W", f"{_W}.name", "should match"),
    refused("name empty", "spec.workloads.0.name", "", f"{_W}.name", "should match"),
    refused("name long", "spec.workloads.0.name", "w" * 33, f"{_W}.name", "more than 32"),
    *bounds("spec.workloads.0.runtimeSeconds", 1, 86400),
    *bounds("spec.workloads.0.rampSeconds", 0, 3600),
    Manifest(
        name="ramp as long as runtime",
        changes={"spec.workloads.0.runtimeSeconds": 20, "spec.workloads.0.rampSeconds": 20},
        says=(f"{_W}.rampSeconds", "must be less than runtimeSeconds; decrease it, or increase runtimeSeconds"),
    ),
    refused("default ramp too long", "spec.workloads.0.runtimeSeconds", 10, f"{_W}.rampSeconds", "must be less than"),
    *(
        refused(f"clients {value}", "spec.workloads.0.clients", value, *says)
        for value, says in (
            (2, (f"{_W}.clients", "must be of type array")),
            ([], (f"{_W}.clients", "at least 1 items")),
            ([0], (f"{_W}.clients[0]", "greater than or equal to 1")),
            ([1001], (f"{_W}.clients[0]", "less than or equal to 1000")),
            (["2"], (f"{_W}.clients[0]", "must be of type integer")),
            ([1, 2, 1], (f"{_W}.clients[2]", "Duplicate value: 1")),
            ([1, 3], ("spec.workloads", "must be at most spec.clients.count; increase that, or decrease the value")),
        )
    ),
    Manifest(
        name="too many clients values",
        changes={"spec.clients.count": 65, "spec.workloads.0.clients": list(range(1, 66))},
        says=(f"{_W}.clients", "at most 64 items"),
    ),
]

_F = f"{_W}.fio"
_LOW_RATES: tuple[dict[str, Any], ...] = (
    {"jobs": 4, "rateIops": 3},
    {"pattern": "randrw", "rateIops": 1},
    {"pattern": "randrw", "readPercent": 99, "rateIops": 99},
    {"pattern": "readwrite", "readPercent": 1, "rateIops": 99},
    {"pattern": "readwrite", "readPercent": 30, "jobs": 2, "rateIops": 6},
    {"pattern": "readwrite", "readPercent": 1, "jobs": 2, "rateIops": 199},
)
_UNTIL: tuple[tuple[dict[str, Any], int, tuple[str, ...]], ...] = (
    ({"until": "Never"}, 0, (f"{_F}.until", 'Unsupported value: "Never"')),
    ({}, 1, (f"{_W}.rampSeconds", "must be 0 with until DataSetDone")),
    ({"pattern": "write", "jobs": 2}, 0, (f"{_F}.until", "use jobs 1")),
    ({"pattern": "readwrite"}, 0, (f"{_F}.until", "use randrw")),
    ({"directIo": False}, 0, (f"{_F}.until", "set directIo true")),
)
_FIO = [
    *choice(f"{FIO}.pattern", "randread", "readwrite"),
    *choice(f"{FIO}.files", "FilePerClient", "SharedFile"),
    *choice(f"{FIO}.readBack", "NextClient"),
    *choice(f"{FIO}.engine", "libaio", "io_uring", "psync", "sync", "rbd"),
    _fio("librbd on a claim", ("spec.workloads", "must have engine rbd with access LibRBD and cannot"), engine="rbd"),
    *(
        Manifest(
            name=f"{engine} on an image",
            changes={"spec.storage": {"ceph": CEPH, "volume": IMAGE}, FIO: {"engine": engine}},
            says=("spec.workloads", "must have engine rbd with access LibRBD"),
        )
        for engine in ("libaio", "psync")
    ),
    Manifest(
        name="buffered on an image",
        changes={"spec.storage": {"ceph": CEPH, "volume": IMAGE}, FIO: {"directIo": False}},
        says=("spec.workloads", "must have directIo true with access LibRBD"),
    ),
    *(
        Manifest(
            name=f"jobs of {pattern} on an image",
            changes={"spec.storage": {"ceph": CEPH, "volume": IMAGE}, FIO: {"jobs": 2, "pattern": pattern}},
            says=("spec.workloads", "cannot have several jobs that write or trim with access LibRBD"),
        )
        for pattern in ("write", "randwrite", "randrw", "readwrite", "trim", "randtrim")
    ),
    *bounds(f"{FIO}.jobs", 1, 64),
    *(
        manifest
        for path, low, high in (("readPercent", 1, 99), ("fsyncEvery", 0, 2**31 - 1), ("rateIops", 1, 2**31 - 1))
        for manifest in bounds(f"{FIO}.{path}", low, high)
    ),
    *flag(f"{FIO}.directIo"),
    *(
        Manifest(
            name=f"until {number}",
            changes={FIO: {"until": "DataSetDone"} | parameters, "spec.workloads.0.rampSeconds": ramp},
            says=says,
        )
        for number, (parameters, ramp, says) in enumerate(_UNTIL)
    ),
    unknown(f"{FIO}.gtodReduce"),
    unknown(f"{FIO}.io_depth"),
    refused("fio is no mapping", FIO, ["randread"], _F, "must be of type object"),
    refused("fio is empty", FIO, None, _W, "for its defaults", model_accepts="YAML's empty value: no parameters"),
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
        for number, parameters in enumerate(_LOW_RATES)
    ),
    *(
        Manifest(
            name=f"{pattern} without prefill",
            changes={"spec.prepare": {"prefill": False}, f"{FIO}.pattern": pattern},
            says=("spec.prepare.prefill", "must be true, because a workload would read unwritten extents"),
        )
        for pattern in ("read", "randread", "readwrite", "randrw")
    ),
]

_TRIMS = [
    Manifest(
        name=f"{pattern} of a file",
        changes={f"{VOLUME}.mode": "Filesystem", f"{FIO}.pattern": pattern},
        says=("spec.storage.volume.mode", "must be Block, because a workload trims"),
    )
    for pattern in ("trim", "randtrim")
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
            ("4" * 33, "may not be more than 32 bytes"),
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
        refused(f"block size {size!r}", FIO, {"blockSize": [size]}, _BLOCK, "should match", model_accepts=SPELLING)
        for size in ("4096", "64k", "0.5Ki", "10240Ki", "04Ki")
    ),
]

WORKLOADS = [*_WORKLOADS, *_FIO, *_TRIMS, *_BLOCK_SIZES]
