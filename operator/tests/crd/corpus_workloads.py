"""What can be wrong with the workloads of a run, and with a search for the line."""

from typing import Any

from crd.corpus_tools import SPELLING
from crd.manifests import CEPH, FIO, IMAGE, ROOK, VOLUME, Manifest, bounds, choice, flag, missing, refused, unknown
from plimsoll.api.quantity import LATENCY_RANGE


def _fio(name: str, says: tuple[str, ...], **parameters: Any) -> Manifest:
    return Manifest(name=name, changes={FIO: parameters}, says=says)


def mix(*parts: tuple[int | str, int]) -> list[dict[str, int | str]]:
    return [{"size": size, "percent": percent} for size, percent in parts]


HALVES = mix(("4Ki", 50), ("64Ki", 50))
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
    refused(
        "two without a name",
        "spec.workloads",
        [{"fio": {}}, {"fio": {}}],
        "spec.workloads[1]",
        'Duplicate value: {"name":"main"}',
    ),
    refused("name form", "spec.workloads.0.name", "W", f"{_W}.name", "should match"),
    refused("name empty", "spec.workloads.0.name", "", f"{_W}.name", "should match"),
    refused("name long", "spec.workloads.0.name", "w" * 33, f"{_W}.name", "more than 32"),
    *bounds("spec.workloads.0.runtimeSeconds", 1, 86400),
    *bounds("spec.workloads.0.rampSeconds", 0, 3600),
    *choice("spec.workloads.0.caches", "Warm"),
    Manifest(
        name="ramp as long as runtime",
        changes={"spec.workloads.0.runtimeSeconds": 20, "spec.workloads.0.rampSeconds": 20},
        says=(
            f"{_W}.rampSeconds",
            "must be less than runtimeSeconds; decrease it (default 10)",
        ),
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
    ({}, 1, (f"{_W}.rampSeconds", "must be 0 with until")),
    ({"pattern": "write", "jobs": 2}, 0, (f"{_F}.until", "needs jobs 1, directIo true")),
    ({"pattern": "readwrite"}, 0, (f"{_F}.until", "needs jobs 1, directIo true")),
    ({"directIo": False}, 0, (f"{_F}.until", "needs jobs 1, directIo true")),
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
        name=f"{pattern} of a file, {name}",
        changes={**changes, f"{FIO}.pattern": pattern},
        says=("spec.storage.volume.mode", "must be Block, because a workload trims"),
    )
    for pattern in ("trim", "randtrim")
    for name, changes in (("by default", {}), ("as asked", {f"{VOLUME}.mode": "Filesystem"}))
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

_MIX = f"{_F}.blockSizeMix"
_PLACES = f"{_F}.randomDistribution"
_ACCESS = [
    *(
        _fio(f"mix {name}", (f"{_MIX}{place}", words), blockSizeMix=parts)
        for name, parts, place, words in (
            ("of one size", mix((4096, 100)), "", "at least 2 items"),
            ("of many sizes", mix(*((f"{n}Ki", 1) for n in range(1, 34))), "", "at most 32 items"),
            ("of less", mix(("4Ki", 60), ("64Ki", 39)), "", "must have shares that add up to 100 percent"),
            ("of more", mix(("4Ki", 60), ("64Ki", 41)), "", "must have shares that add up to 100 percent"),
            ("without a share", [{"size": "4Ki"}, {"size": "8Ki", "percent": 99}], "[0].percent", "Required value"),
            ("without a size", [{"percent": 1}, {"size": "8Ki", "percent": 99}], "[0].size", "Required value"),
            ("with all of one", mix(("4Ki", 0), ("64Ki", 100)), "[1].percent", "less than or equal to 99"),
            ("with odd bytes", mix((1000, 50), ("64Ki", 50)), "[0].size", "multiple of 512"),
            ("of few bytes", mix((511, 50), ("64Ki", 50)), "[0].size", "greater than or equal to 512"),
            ("of many bytes", mix((2**26 + 512, 50), ("64Ki", 50)), "[0].size", "less than or equal to 67108864"),
            ("of many digits", mix(("4" * 33, 50), ("64Ki", 50)), "[0].size", "may not be more than 32 bytes"),
            ("of another unit", mix(("4KB", 50), ("64Ki", 50)), "[0].size", "should match"),
        )
    ),
    _fio(
        "mix and size", (f"{_F}.blockSize", "absent with blockSizeMix"), blockSizeMix=HALVES, blockSize=["4Ki", "8Ki"]
    ),
    _fio("mix at an even rate", (f"{_F}.arrivals", "must be Poisson with rateIops"), blockSizeMix=HALVES, rateIops=100),
    Manifest(
        name="mix until done",
        changes={FIO: {"blockSizeMix": HALVES, "until": "DataSetDone"}, "spec.workloads.0.rampSeconds": 0},
        says=(_MIX, "cannot be set with until"),
    ),
    *(
        _fio(f"distribution {value!r}", (_PLACES, words), randomDistribution=value)
        for value, words in (
            *((value, "should match") for value in ("zipf", "normal:20", "zipf:-1", "zipf:1.1234", "pareto:1.5", "")),
            *((value, "with a theta above 0 other than 1") for value in ("zipf:0", "zipf:0.00", "zipf:1", "zipf:1.0")),
            ("zipf:1." + "1" * 16, "may not be more than 16 bytes"),
            *((value, "above 0 and below 0.5") for value in ("pareto:0.0", "pareto:0.5", "pareto:0.51")),
        )
    ),
    _fio("distribution in order", (_PLACES, "only to random patterns"), pattern="read", randomDistribution="zipf:1.1"),
    Manifest(
        name="distribution until done",
        changes={FIO: {"randomDistribution": "zipf:1.1", "until": "DataSetDone"}, "spec.workloads.0.rampSeconds": 0},
        says=(_PLACES, "random patterns without until"),
    ),
    *bounds(f"{FIO}.compressPercent", 1, 99),
    *bounds(f"{FIO}.dedupePercent", 1, 99),
    *(
        Manifest(
            name=f"{field} in one workload",
            changes={"spec.workloads": [{"name": "a", "fio": {}}, {"name": "b", "fio": {field: 50}}]},
            says=("spec.workloads", "must agree on compressPercent and dedupePercent where they use fio"),
        )
        for field in ("compressPercent", "dedupePercent")
    ),
]
ACCESS_ACCEPTED = [
    Manifest(name="no name", changes={"spec.workloads": [{"fio": {}}]}),
    Manifest(name="one of two without a name", changes={"spec.workloads": [{"fio": {}}, {"name": "w", "fio": {}}]}),
    *(
        Manifest(name=f"distribution {value!r}", changes={FIO: {"randomDistribution": value}})
        for value in ("random", "zipf:0.5", "zipf:1.1", "zipf:2", "zipf:0.999", "pareto:0.2", "pareto:0.499")
    ),
    Manifest(name="mix at a rate", changes={FIO: {"blockSizeMix": HALVES, "rateIops": 100, "arrivals": "Poisson"}}),
    Manifest(name="any distribution in order", changes={FIO: {"pattern": "read", "randomDistribution": "random"}}),
    Manifest(
        name="mix", changes={FIO: {"pattern": "randrw", "blockSizeMix": HALVES, "randomDistribution": "zipf:1.1"}}
    ),
    Manifest(
        name="content alike, beside another tool",
        changes={
            "spec.workloads": [
                {"name": "a", "fio": {"compressPercent": 50, "dedupePercent": 20}},
                {"name": "b", "fio": {"compressPercent": 50, "dedupePercent": 20, "pattern": "write"}},
                {"name": "c", "ioping": {}},
            ]
        },
    ),
    *(
        Manifest(
            name=f"mix {name}",
            changes={FIO: {"blockSizeMix": parts}},
            server_accepts="comparing quantities in a list is beyond what a rule may cost; the operator refuses it",
        )
        for name, parts in (
            ("with a size twice", mix(("4Ki", 50), (4096, 50))),
            ("without a common measure", mix(("4Ki", 50), ("6Ki", 50))),
        )
    ),
]

DISTURB = "spec.workloads.0.disturb"
_DISTURB = {"afterSeconds": 30, "osds": {"count": 2, "action": "Out"}, "forSeconds": 60}
_LINE = {"vary": "Depth", "start": 4, "objectives": [{"percentile": "99", "latency": "5ms"}]}
_DOWN = {**_DISTURB, "osds": {"action": "Down"}}


def _disturbed(name: str, *says: str, disturb: Any = _DISTURB, **changes: Any) -> Manifest:
    storage = {"rook": ROOK, "volume": IMAGE}
    workload = {"name": "w", "fio": {}, "runtimeSeconds": 200, "disturb": disturb, **changes.pop("workload", {})}
    workload = {key: value for key, value in workload.items() if value is not None}
    changes = {"spec.storage": storage, "spec.workloads.0": workload, **changes}
    return Manifest(name=f"disturb: {name}", changes=changes, says=says)


_DISTURBANCES = [
    _disturbed("too long", f"{_W}.disturb.forSeconds", "must end before", workload={"runtimeSeconds": 90}),
    _disturbed(
        "down too often", f"{_W}.runtimeSeconds", "at least 120", disturb=_DOWN, workload={"runtimeSeconds": 119}
    ),
    *(
        _disturbed(tool, "spec.workloads", "disturb applies only to fio", workload={"fio": None, tool: {}})
        for tool in ("dd", "iperf3", "ping")
    ),
    _disturbed(
        "until", f"{_W}.fio.until", "with disturb", workload={"fio": {"until": "DataSetDone"}, "rampSeconds": 0}
    ),
    _disturbed(
        "no Ceph",
        "spec.storage",
        "must have rook or ceph",
        **{"spec.storage": {"storageClass": {"name": "fast"}, "volume": {"size": "1Gi"}}},
    ),
    _disturbed("any health", "spec.gates.cephHealth", "must be Required", **{"spec.gates": {"cephHealth": "Ignored"}}),
    _disturbed(
        "no time to recover",
        f"{_W}.disturb.forSeconds",
        "must end before the measurement, with line at least 30 s before",
        workload={"line": _LINE, "runtimeSeconds": 119},
    ),
    *(
        _disturbed(f"{path} {value}", f"{_W}.disturb.{path}", disturb=disturb)
        for path, value, disturb in (
            ("afterSeconds", 9, {**_DISTURB, "afterSeconds": 9}),
            ("afterSeconds", 86401, {**_DISTURB, "afterSeconds": 86401}),
            ("forSeconds", 9, {**_DISTURB, "forSeconds": 9}),
            ("forSeconds", 86401, {**_DISTURB, "forSeconds": 86401}),
            ("osds.count", 0, {**_DISTURB, "osds": {"count": 0, "action": "Out"}}),
            ("osds.count", 65, {**_DISTURB, "osds": {"count": 65, "action": "Out"}}),
            ("osds.action", "Stop", {**_DISTURB, "osds": {"action": "Stop"}}),
            ("osds.action", "missing", {**_DISTURB, "osds": {}}),
            ("osds", "missing", {"afterSeconds": 30}),
        )
    ),
]
DISTURB_ACCEPTED = [
    _disturbed("out"),
    _disturbed("down", disturb=_DOWN, workload={"runtimeSeconds": 120}),
    _disturbed("defaults", disturb={"osds": {"action": "Down"}}),
    _disturbed("line", workload={"line": _LINE, "runtimeSeconds": 120}),
    _disturbed("without Rook", **{"spec.storage": {"ceph": CEPH, "volume": IMAGE}}),
    *(_disturbed(f"by {tool}", workload={"fio": None, tool: {}}) for tool in ("radosBench", "rbdBench")),
]

WORKLOADS = [*_WORKLOADS, *_FIO, *_TRIMS, *_BLOCK_SIZES, *_ACCESS, *_DISTURBANCES]


LINE = "spec.workloads.0.line"
_OBJECTIVES = [{"percentile": "99", "latency": "5ms"}]
_RATE = {"vary": "Rate", "start": 1000, "limit": 20_000, "objectives": _OBJECTIVES}
_DEPTH = {"vary": "Depth", "start": 4, "limit": 512, "objectives": _OBJECTIVES}
_OPEN = {"ioDepth": [64]}
_POISSON = {"rateIops": 99, "arrivals": "Poisson"}
_NO_RAMP = {"spec.workloads.0.rampSeconds": 0}


def _search(name: str, fio: dict[str, Any], line: dict[str, Any], *says: str, **more: Any) -> Manifest:
    changes = {FIO: fio, LINE: line, "spec.workloads.0.rampSeconds": 0}
    return Manifest(name=f"search: {name}", changes=changes, says=says, **more)


LINE_REFUSED = [
    _search("start beyond limit", _OPEN, {**_RATE, "start": 30_000}, f"{_W}.line.start", "at most limit"),
    _search(
        "percentile twice",
        _OPEN,
        {**_RATE, "objectives": [*_OBJECTIVES, {"percentile": "99", "latency": "1us"}]},
        f"{_W}.line.objectives",
        "each percentile once",
    ),
    _search("no objective", _OPEN, {**_RATE, "objectives": []}, f"{_W}.line.objectives", "at least 1 items"),
    Manifest(
        name="search: unknown arrivals",
        changes={FIO: {"rateIops": 99, "arrivals": "Uniform"}},
        says=(f"{_W}.fio.arrivals", "Poisson"),
    ),
    _search("arrivals alone", {"arrivals": "Poisson"}, _DEPTH, f"{_W}.fio.arrivals", "set rateIops, or remove it"),
    _search("rate of its own", {**_OPEN, "rateIops": 99}, _RATE, f"{_W}.fio.rateIops", "which varies the load"),
    _search("depth 1", {}, _RATE, f"{_W}.fio.ioDepth", "must be 2, 4, 8, 16, 32 or 64 with line"),
    _search("depth 24", {"ioDepth": [32, 24]}, _RATE, f"{_W}.fio.ioDepth", "use 64, and more clients"),
    _search("rate and engine", {"engine": "sync"}, _RATE, f"{_W}.fio.engine", "must be asynchronous with line"),
    _search("depth and engine", {"engine": "psync"}, _DEPTH, f"{_W}.fio.engine", "must be asynchronous with line"),
    _search("buffered", {**_OPEN, "directIo": False}, _RATE, f"{_W}.fio.directIo", "must be true with line"),
    _search("until", {**_OPEN, "until": "DataSetDone"}, _RATE, f"{_W}.fio.until", "cannot be set with line"),
    _search("trims", {**_OPEN, "pattern": "randtrim"}, _RATE, f"{_W}.fio.pattern", "cannot be a trim with line"),
    _search("jobs of a rate", {**_OPEN, "jobs": 2}, _RATE, f"{_W}.fio.jobs", "must be 1 with line and vary Rate"),
    _search("syncs of a rate", {**_OPEN, "pattern": "write", "fsyncEvery": 1}, _RATE, f"{_W}.fio.fsyncEvery", "use 0"),
    _search("depth given", {"ioDepth": [1, 2]}, _DEPTH, f"{_W}.fio.ioDepth", "line varies it"),
    _search("rate of depths", {"rateIops": 99}, _DEPTH, f"{_W}.fio.rateIops", "remove it, or remove line"),
    _search("syncs", {"pattern": "write", "fsyncEvery": 1}, _DEPTH, f"{_W}.fio.fsyncEvery", "must be 0 with line"),
    *(
        Manifest(
            name=f"arrivals and {name}", changes={FIO: {**_POISSON, **fio}, **_NO_RAMP}, says=(f"{_W}.{field}", said)
        )
        for name, fio, field, said in (
            ("trims", {"pattern": "randtrim"}, "fio.pattern", "cannot be a trim with arrivals Poisson"),
            ("syncs", {"pattern": "write", "fsyncEvery": 1}, "fio.fsyncEvery", "must be 0 with arrivals Poisson"),
            ("engine", {"engine": "sync"}, "fio.engine", "must be asynchronous with arrivals Poisson"),
            ("jobs", {"jobs": 2}, "fio.jobs", "must be 1 with arrivals Poisson"),
            ("too many", {"rateIops": 50_001}, "fio.arrivals", "more than 50000 IOPS of a client"),
            ("buffered", {"directIo": False}, "fio.directIo", "must be true with arrivals Poisson"),
            ("until", {"until": "DataSetDone"}, "fio.until", "cannot be set with arrivals Poisson"),
        )
    ),
    *(
        Manifest(
            name=f"{name} through librbd",
            changes={"spec.storage": {"rook": ROOK, "volume": IMAGE}, **changes},
            says=("spec.workloads", "fio reads completions of librbd only when its depth is full"),
        )
        for name, changes in (
            ("arrivals", {FIO: _POISSON}),
            ("search: a rate", {FIO: _OPEN, LINE: _RATE, **_NO_RAMP}),
        )
    ),
    Manifest(
        name="search: a tool without loads",
        changes={"spec.workloads.0": {"name": "w", "dd": {}, "line": _DEPTH}},
        says=(f"{_W}.line.vary", "applies only to fio"),
    ),
]


def _without(part: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in part.items() if key != name}


_P99 = _OBJECTIVES[0]
_OUT_OF_BOUNDS = [
    ("objectives", _without(_RATE, "objectives")),
    ("start", _without(_RATE, "start")),
    *((name, {**_RATE, name: value}) for name in ("start", "limit") for value in (0, 2**31)),
    *(("precisionPercent", {**_RATE, "precisionPercent": value}) for value in (0, 51)),
    ("vary", {**_RATE, "vary": "Both"}),
    ("objectives", {**_RATE, "objectives": _OBJECTIVES * 5}),
    ("objectives[0].latency", {**_RATE, "objectives": [{"percentile": "99"}]}),
    ("objectives[0].percentile", {**_RATE, "objectives": [{**_P99, "percentile": "42"}]}),
]
LINE_REFUSED += [
    _search(f"out of bounds {number}: {field}", _OPEN, line, f"{_W}.line.{field}")
    for number, (field, line) in enumerate(_OUT_OF_BOUNDS)
]


def _within(latency: Any) -> dict[str, Any]:
    return {**_RATE, "objectives": [{"latency": latency}]}


_LATENCY = f"{_W}.line.objectives[0].latency"
LINE_REFUSED += [
    *(
        _search(f"latency {value!r}", _OPEN, _within(value), _LATENCY, words)
        for value, words in (
            (5000, "must be of type string"),
            ("5" * 17 + "ms", "may not be more than 16 bytes"),
            *((value, LATENCY_RANGE) for value in ("0us", "0.000ms", "10.001s", "99999.999ms", "5", "", "5 ms", "5ns")),
            *((value, LATENCY_RANGE) for value in ("1m", "-5ms", ".5ms", "0.5us", "0.0001ms", "1s5ms")),
        )
    ),
]

_ARITHMETIC = "the models know the clients that share a load, and the operations of a trial"
LINE_ACCEPTED = [
    Manifest(name="arrivals", changes={FIO: {**_POISSON, "pattern": "randrw", "rateIops": 10_000}}),
    _search("rate", {"ioDepth": [2, 64], "pattern": "randrw"}, _RATE),
    _search("depth", {"jobs": 4, "ioDepth": [1]}, _DEPTH),
    Manifest(
        name="search: a depth through librbd",
        changes={"spec.storage": {"rook": ROOK, "volume": IMAGE}, LINE: _DEPTH, **_NO_RAMP},
    ),
    _search("depths of the default", {}, _DEPTH),
    _search("rate without a limit", _OPEN, _without(_RATE, "limit")),
    _search("depth without a limit", {}, _without(_DEPTH, "limit")),
    _search(
        "start beyond what the clients can offer",
        {},
        {**_without(_DEPTH, "limit"), "start": 10**6},
        server_accepts=_ARITHMETIC,
    ),
    *(
        _search(f"latency {value!r}", _OPEN, _within(value))
        for value in ("500us", "0.5ms", "05.250ms", "0.000200s", "6s")
    ),
    _search("the 99th percentile", _OPEN, {**_RATE, "objectives": [_without(_P99, "percentile")]}),
    _search("shared unevenly", {"jobs": 64}, {**_DEPTH, "limit": 63}, server_accepts=_ARITHMETIC),
    _search("too deep", {}, {**_DEPTH, "limit": 10**6}, server_accepts=_ARITHMETIC),
    _search("few operations", _OPEN, {**_RATE, "start": 1}, server_accepts=_ARITHMETIC),
]
