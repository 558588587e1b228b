"""What can be wrong with a search for the line, and what is just possible."""

from typing import Any

from support.manifests import FIO, IMAGE, ROOK, Manifest

LINE = "spec.workloads.0.line"
_W = "spec.workloads[0]"
_OBJECTIVES = [{"percentile": "99", "latencyMicroseconds": 5000}]
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
        {**_RATE, "objectives": [*_OBJECTIVES, {"percentile": "99", "latencyMicroseconds": 1}]},
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
    _search("rate of its own", {**_OPEN, "rateIops": 99}, _RATE, f"{_W}.fio.rateIops", "line varies it"),
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
    _search("rate of depths", {"rateIops": 99}, _DEPTH, f"{_W}.fio.rateIops", "use vary Rate"),
    _search(
        "syncs", {"pattern": "write", "fsyncEvery": 1}, _DEPTH, f"{_W}.fio.fsyncEvery", "must be 0 with line and vary"
    ),
    *(
        Manifest(
            name=f"arrivals and {name}", changes={FIO: {**_POISSON, **fio}, **_NO_RAMP}, says=(f"{_W}.{field}", said)
        )
        for name, fio, field, said in (
            ("trims", {"pattern": "randtrim"}, "fio.arrivals", "cannot be Poisson for trims"),
            ("syncs", {"pattern": "write", "fsyncEvery": 1}, "fio.arrivals", "cannot be Poisson with fsyncEvery"),
            ("engine", {"engine": "sync"}, "fio.arrivals", "cannot be Poisson with a synchronous engine"),
            ("jobs", {"jobs": 2}, "fio.arrivals", "cannot be Poisson with several jobs"),
            ("too many", {"rateIops": 10_001}, "fio.arrivals", "more than 10000 operations per second of a client"),
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
    ("limit", _without(_RATE, "limit")),
    ("objectives", _without(_RATE, "objectives")),
    ("start", _without(_RATE, "start")),
    *((name, {**_RATE, name: value}) for name in ("start", "limit") for value in (0, 2**31)),
    *(("precisionPercent", {**_RATE, "precisionPercent": value}) for value in (0, 51)),
    ("vary", {**_RATE, "vary": "Both"}),
    ("objectives", {**_RATE, "objectives": _OBJECTIVES * 5}),
    *((f"objectives[0].{name}", {**_RATE, "objectives": [_without(_P99, name)]}) for name in _P99),
    ("objectives[0].percentile", {**_RATE, "objectives": [{**_P99, "percentile": "42"}]}),
    *(
        ("objectives[0].latencyMicroseconds", {**_RATE, "objectives": [{**_P99, "latencyMicroseconds": value}]})
        for value in (0, 10_000_001)
    ),
]
LINE_REFUSED += [
    _search(f"out of bounds {number}: {field}", _OPEN, line, f"{_W}.line.{field}")
    for number, (field, line) in enumerate(_OUT_OF_BOUNDS)
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
    _search("shared unevenly", {"jobs": 64}, {**_DEPTH, "limit": 63}, server_accepts=_ARITHMETIC),
    _search("too deep", {}, {**_DEPTH, "limit": 10**6}, server_accepts=_ARITHMETIC),
    _search("few operations", _OPEN, {**_RATE, "start": 1}, server_accepts=_ARITHMETIC),
]
