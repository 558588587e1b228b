"""What a refusal proposes is accepted: each remedy is applied to the run that was refused."""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

import pytest

from plimsoll.api.errors import SpecError
from plimsoll.api.model import Rule
from plimsoll.plan.expand import check_fits_deadline, make_plan
from plimsoll.plan.refusals import rules_of_workload, run_rules
from plimsoll.tools.registry import TOOLS
from plimsoll.tools.target import TargetKind

from .conftest import _run

Fields = Mapping[str, Any]
REMOVED = object()
DISTURBED = {"disturb": {"osds": {"action": "Out"}}, "runtimeSeconds": 200}

ROOK = {"cluster": {"namespace": "r", "name": "r"}, "pool": {"replicated": {"size": 3}}}
ROOK_FILES = {"cluster": {"namespace": "r", "name": "r"}, "existingFileSystem": {"name": "fs"}}
CEPH = {"monitors": ["192.0.2.1"], "user": "u", "keyringSecret": {"name": "k"}, "pool": {"name": "p"}}
CLASS = {"storageClass": {"name": "fast"}, "volume": {"size": "1Gi"}}
IMAGE = {"rook": ROOK, "volume": {"size": "1Gi", "access": "LibRBD"}}
CLAIM = {"rook": ROOK, "volume": {"size": "1Gi"}}
OF_CEPH = {"ceph": CEPH, "volume": {"size": "1Gi", "access": "LibRBD"}}
DEVICE = {"storageClass": {"name": "fast"}, "volume": {"size": "1Gi", "mode": "Block"}}
FILES = {"storageClass": {"name": "fast"}, "volume": {"size": "1Gi", "mode": "Filesystem"}}
SHARED = {"storageClass": {"name": "nfs"}, "volume": {"size": "1Gi", "sharing": "Shared"}}
ON_ROOK_FILES = {"rook": ROOK_FILES, "volume": {"size": "1Gi"}}

P99 = [{"percentile": "99", "latency": "5ms"}]
RATE = {"vary": "Rate", "start": 800, "limit": 8000, "objectives": P99}
DEPTH = {"vary": "Depth", "start": 8, "limit": 64, "objectives": P99}
OPEN = {"fio": {"ioDepth": [64]}, "line": RATE}
CLOSED = {"fio": {}, "line": DEPTH}
MIX: Sequence[Fields] = [{"size": "4Ki", "percent": 60}, {"size": "64Ki", "percent": 40}]
POISSON = {"rateIops": 100, "arrivals": "Poisson"}
KEY = {"keyringSecret": {"name": "admin"}}
WITH_FILES = [key for key, tool in TOOLS.items() if tool.own_files]
ON_KERNEL_VOLUMES = [
    key
    for key, tool in TOOLS.items()
    if tool.target is TargetKind.VOLUME and not tool.opens_images and not tool.own_files
]


def fio(remedies: Sequence[Fields], words: str, **fields: Any) -> Any:
    """Parameters of fio alone."""
    changes = [{f"workloads.0.fio.{name}": value for name, value in remedy.items()} for remedy in remedies]
    workload = {"fio": fields, "rampSeconds": 0 if "until" in fields else 10}
    return pytest.param({"workloads": [workload]}, words, changes, id=words[:60])


def search(base: Fields, wrong: Fields, remedies: Sequence[Fields], words: str, **spec: Any) -> Any:
    """A search of fio, of which `wrong` changes fields."""
    document = {"workloads": [changed(base, wrong)], **spec}
    changes = [{f"workloads.0.{name}": value for name, value in remedy.items()} for remedy in remedies]
    return pytest.param(document, words, changes, id=words[:60])


def run(words: str, workloads: Sequence[Fields], remedies: Sequence[Fields], **spec: Any) -> Any:
    return pytest.param({"workloads": [*workloads], **spec}, words, [*remedies], id=words[:60])


def changed(document: Fields, changes: Fields) -> dict[str, Any]:
    """Return a document with other values at paths such as `workloads.0.fio.jobs`."""
    result: dict[str, Any] = deepcopy(dict(document))
    for path, value in changes.items():
        *parents, last = path.split(".")
        place: Any = result
        for name in parents:
            place = place[int(name)] if isinstance(place, list) else place.setdefault(name, {})
        if value is REMOVED:
            del place[int(last) if isinstance(place, list) else last]
        else:
            place[int(last) if isinstance(place, list) else last] = value
    return result


def violations(document: Fields) -> list[str]:
    try:
        spec = dict(document)
        check_fits_deadline(make_plan(_run(*spec.pop("workloads"), **spec), seed=1))
    except SpecError as error:
        return [str(problem) for problem in error.problems]
    return []


CASES = [
    fio([{"jobs": 1}, {"until": REMOVED}], "needs jobs 1, directIo true", until="DataSetDone", jobs=2),
    fio(
        [{"pattern": "randrw"}, {"until": REMOVED}],
        "needs jobs 1, directIo true",
        until="DataSetDone",
        pattern="readwrite",
    ),
    fio([{"directIo": True}], "needs jobs 1, directIo true", until="DataSetDone", directIo=False),
    fio([{"rateIops": 5}, {"arrivals": REMOVED}], "set rateIops, or remove it", arrivals="Even"),
    fio([{"pattern": "randread"}, {"pattern": "write"}], "use reads or writes", **POISSON, pattern="randtrim"),
    fio(
        [{"fsyncEvery": 0}, {"arrivals": REMOVED}],
        "wait for each sync; use 0",
        **POISSON,
        pattern="write",
        fsyncEvery=1,
    ),
    fio([{"engine": "libaio"}], "can be in flight; use libaio", **POISSON, engine="psync"),
    fio([{"rateIops": 50_000}], "lower rateIops", rateIops=50_001, arrivals="Poisson"),
    fio([{"jobs": 1}], "must be 1 with arrivals Poisson", **POISSON, jobs=2),
    fio([{"directIo": REMOVED}], "submitted one after the other; remove it", **POISSON, directIo=False),
    fio([{"until": REMOVED}], "after a given time; remove it", **POISSON, until="DataSetDone"),
    fio(
        [{"ioDepth": [1], "jobs": 4}, {"engine": "libaio"}, {"engine": "io_uring"}],
        "use 1 and raise jobs, or use libaio or io_uring",
        engine="sync",
        ioDepth=[4],
    ),
    fio(
        [{"readPercent": REMOVED}, {"pattern": "readwrite"}, {"pattern": "randrw"}],
        "remove it, or use readwrite or randrw",
        readPercent=30,
    ),
    fio([{"fsyncEvery": 0}], "does not write; remove it", fsyncEvery=1),
    fio(
        [{"blockSize": REMOVED}, {"blockSizeMix": REMOVED}],
        "which has the sizes; remove one of them",
        blockSize=["4Ki", "8Ki"],
        blockSizeMix=MIX,
    ),
    fio([{"blockSizeMix.0.percent": 60}], "make them 100 together", blockSizeMix=[{**MIX[0], "percent": 61}, MIX[1]]),
    fio(
        [{"until": REMOVED}, {"blockSizeMix": REMOVED, "blockSize": ["4Ki"]}],
        "use blockSize, or remove until",
        blockSizeMix=MIX,
        until="DataSetDone",
    ),
    fio(
        [{"arrivals": "Poisson"}, {"blockSizeMix": REMOVED}, {"rateIops": REMOVED}],
        "set it to Poisson, or use blockSize, or remove rateIops",
        blockSizeMix=MIX,
        rateIops=100,
    ),
    fio(
        [{"randomDistribution": REMOVED}, *({"pattern": pattern} for pattern in ("randread", "randwrite", "randrw"))],
        "applies only to random patterns",
        pattern="read",
        randomDistribution="zipf:1.1",
    ),
    fio(
        [{"randomDistribution": REMOVED}, {"until": REMOVED}],
        "random patterns without until",
        randomDistribution="pareto:0.2",
        until="DataSetDone",
    ),
    fio(
        [{"rateIops": 400}, {"jobs": 1}],
        "use at least 400, or lower jobs",
        pattern="randrw",
        readPercent=99,
        jobs=4,
        rateIops=100,
    ),
    search(OPEN, {"fio.rateIops": 500}, [{"fio.rateIops": REMOVED}, {"line": REMOVED}], "which varies the load"),
    search(OPEN, {"fio.ioDepth": [3]}, [{"fio.ioDepth": [64]}, {"fio.ioDepth": [2]}], "must be 2, 4, 8, 16, 32 or 64"),
    search(OPEN, {"fio.jobs": 2}, [{"fio.jobs": 1}], "must be 1 with line"),
    search(OPEN, {"fio.pattern": "write", "fio.fsyncEvery": 1}, [{"fio.fsyncEvery": 0}], "must be 0 with line"),
    search(
        OPEN,
        {"fio": {"engine": "psync"}},
        # Both problems are reported together.
        [{"fio.engine": "libaio", "fio.ioDepth": [64]}],
        "more than one operation can be in flight; use libaio",
    ),
    search(OPEN, {"fio.directIo": False}, [{"fio.directIo": REMOVED}, {"line": REMOVED}], "must be true with line"),
    search(
        CLOSED, {"fio.pattern": "trim"}, [{"fio.pattern": "read"}, {"fio.pattern": "write"}], "cannot be a trim with"
    ),
    search(
        CLOSED,
        {"fio.until": "DataSetDone", "rampSeconds": 0},
        [{"fio.until": REMOVED}, {"line": REMOVED}],
        "cannot be set with line",
    ),
    search(CLOSED, {"fio.engine": "sync"}, [{"fio.engine": "libaio"}], "must be asynchronous with line"),
    search(CLOSED, {"fio.rateIops": 9}, [{"fio.rateIops": REMOVED}, {"line": REMOVED}], "which varies the load"),
    search(
        CLOSED,
        {"fio.pattern": "write", "fio.fsyncEvery": 1},
        [{"fio.fsyncEvery": 0}, {"line": REMOVED}],
        "must be 0 with line",
    ),
    search(CLOSED, {"fio.ioDepth": [4]}, [{"fio.ioDepth": REMOVED}, {"line": REMOVED}], "must be absent, because line"),
    search(
        OPEN,
        {"line.limit": 450_000},
        [{"line.limit": 400_000}],
        "lower it to at most 400000, or raise clients",
    ),
    search(
        OPEN,
        {"line.limit": 450_000, "line.start": 425_000},
        [{"line.start": 400_000, "line.limit": 400_000}],
        "lower start and limit to at most 400000, or raise clients",
    ),
    search(
        OPEN,
        {"line.start": 450_000, "line.limit": REMOVED},
        [{"line.start": 400_000}],
        "400000 operations per second; lower it to at most 400000, or raise clients",
    ),
    search(CLOSED, {"line.limit": 9000}, [{"line.limit": 8192}, {"fio.jobs": 2}], "at most 8192, or raise jobs"),
    search(
        OPEN,
        {"line.start": 1, "line.limit": 7, "line.objectives.0.percentile": "50"},
        [{"line.limit": 8}],
        "raise it to at least 8",
    ),
    search(
        OPEN,
        {"line.start": 80, "rampSeconds": 1, "runtimeSeconds": 10},
        [{"line.start": 104}, {"runtimeSeconds": 13}, {"line.objectives.0.percentile": "95"}],
        "raise it to at least 104, or runtimeSeconds to at least 13, or choose a lower percentile",
    ),
    search(
        OPEN,
        {"line.start": 8, "line.limit": 100, "line.objectives.0.percentile": "99.99"},
        [{"line.start": 1672, "line.limit": 1672}, {"line.objectives.0.percentile": "90", "line.start": 16}],
        "raise start and limit to at least 1672",
        timeouts={"totalSeconds": 30 * 24 * 3600},
    ),
    search(
        OPEN,
        {"line.objectives.0.latency": "7s"},
        [{"runtimeSeconds": 70}, {"line.objectives.0.latency": "6s"}],
        "raise it to at least 70, or lower latency",
    ),
    run("set it to 0", [{"fio": {"until": "DataSetDone"}}], [{"workloads.0.rampSeconds": 0}]),
    run(
        "one client runs for all; leave it out",
        [{"osdBench": KEY, "clients": [2]}],
        [{"workloads.0.clients": REMOVED}],
        storage={"ceph": CEPH},
    ),
    run(
        "does not apply to kubeBurner",
        [{"kubeBurner": {}, "clients": [2]}],
        [{"workloads.0.clients": REMOVED}],
    ),
    run(
        "must be at most 60 with iperf3",
        [{"iperf3": {}, "rampSeconds": 61, "runtimeSeconds": 62}],
        [{"workloads.0.rampSeconds": 60}],
        storage=None,
    ),
    run("must be set with a volume", [{"fio": {}}], [{"storage": CLASS}, {"storage": IMAGE}], storage=None),
    run(
        "must be set, because fio",
        [{"fio": {}}],
        [{"storage.volume": {"size": "1Gi"}}],
        storage={"storageClass": {"name": "fast"}},
    ),
    run("name the cluster", [{"radosBench": {}}], [{"storage": {"ceph": CEPH}}, {"storage": CLAIM}], storage=CLASS),
    run(
        "set it to true, or leave out the workloads that read",
        [{"fio": {}}, {"fio": {"pattern": "write"}}],
        [{"prepare.prefill": True}, {"workloads.0": REMOVED}],
        prepare={"prefill": False},
    ),
    run(
        "remove it, or add such a workload",
        [{"fio": {}}],
        [{"servers": REMOVED}, {"workloads": [{"fio": {}}, {"ping": {}}]}],
        servers={"placement": "ClientNodes", "count": 1},
    ),
    run(
        "uses the space of the data set; split the run",
        [{"bonnie": {}}, {"fio": {}}],
        [{"workloads.0": REMOVED}, {"workloads.1": REMOVED}],
        storage=FILES,
    ),
    run(
        "writes files of its own; remove it",
        [{"bonnie": {}}],
        [{"prepare.precondition": REMOVED}],
        storage=FILES,
        prepare={"precondition": {"seconds": 1}},
    ),
    run(
        "set it in all of them, or split the run",
        [{"fio": {"files": "SharedFile"}}, {"fio": {}}],
        [{"workloads.1.fio.files": "SharedFile"}, {"workloads.0": REMOVED}, {"workloads.1": REMOVED}],
        storage=SHARED,
    ),
    *(
        run(
            "set the same in all of them, or split the run",
            [{"fio": {field: 50}}, {"fio": {}}],
            [{f"workloads.1.fio.{field}": 50}, {"workloads.0": REMOVED}, {"workloads.1": REMOVED}],
        )
        for field in ("compressPercent", "dedupePercent")
    ),
    run(
        "raise clients, or remove readBack",
        [{"fio": {"readBack": "NextClient"}, "clients": [1, 2]}],
        [{"workloads.0.clients": [2]}, {"workloads.0.fio.readBack": REMOVED}],
        storage=SHARED,
    ),
    run(
        "split the run, or put one Secret in all",
        [{"osdBench": KEY}, {"osdBench": {"keyringSecret": {"name": "other"}}}],
        [{"workloads.1": REMOVED}, {"workloads.1.osdBench": KEY}],
        storage={"ceph": CEPH},
    ),
    *(
        run(
            "set it to LibRBD, on a pool",
            [{"rbdBench": {}}],
            [{"storage": IMAGE}],
            storage=storage,
        )
        for storage in (CLAIM, ON_ROOK_FILES)
    ),
    *(
        run(
            "use access PVC, which storage.ceph does not have, or use fio",
            [{tool: {}}],
            [{"storage": CLAIM}, {"workloads": [{"fio": {}}]}],
            storage=storage,
        )
        for tool in ON_KERNEL_VOLUMES
        for storage in (IMAGE, OF_CEPH)
    ),
    *(
        run(
            "arrivals Even, or vary Depth without ioDepth",
            [workload],
            [{"storage": CLAIM}, other],
            storage=storage,
        )
        for storage in (IMAGE, OF_CEPH)
        for workload, other in (
            ({"fio": POISSON}, {"workloads.0.fio.arrivals": "Even"}),
            (OPEN, {"workloads.0.line": DEPTH, "workloads.0.fio.ioDepth": REMOVED}),
        )
    ),
    *(
        run(
            "set it to Shared on a file system of Rook or a StorageClass",
            [{"fio": {"files": "SharedFile"}}],
            [
                {"storage": SHARED},
                {"storage": {"rook": ROOK_FILES, "volume": {"size": "1Gi", "sharing": "Shared"}}},
                {"workloads.0.fio.files": REMOVED},
            ],
            storage=storage,
        )
        for storage in (CLAIM, FILES, IMAGE)
    ),
    *(
        run("use a volume of mode Block", [{"fio": {"pattern": "trim"}}], [{"storage": DEVICE}], storage=storage)
        for storage in (CLASS, SHARED, ON_ROOK_FILES)
    ),
    *(
        run(
            "set it to Filesystem, with access PVC, which storage.ceph does not have",
            [{tool: {}}],
            [{"storage": FILES}],
            storage=storage,
        )
        for tool in WITH_FILES
        for storage in (DEVICE, IMAGE, OF_CEPH)
    ),
    *(
        run("leave engine out", [{"fio": {"engine": engine}}], [{"workloads.0.fio.engine": REMOVED}], storage=storage)
        for engine, storage in (("rbd", CLASS), ("libaio", IMAGE), ("libaio", OF_CEPH))
    ),
    run("librbd's own cache is", [{"fio": {"directIo": False}}], [{"workloads.0.fio.directIo": True}], storage=IMAGE),
    *(
        run(
            "raise ioDepth, or the number of clients",
            [{"fio": {"pattern": pattern, "jobs": 2}}],
            [{"workloads.0.fio.jobs": 1, "workloads.0.fio.ioDepth": [2]}, {"workloads.0.fio.pattern": "read"}],
            storage=IMAGE,
        )
        for pattern in ("randwrite", "randrw", "trim")
    ),
    run(
        "must be false with directIo",
        [{"bonnie": {"directIo": True}}],
        [{"workloads.0.bonnie.characters": False}],
        storage=FILES,
    ),
    run(
        "remove it, or raise files",
        [{"bonnie": {"files": 0, "maxFileSize": "4Ki"}}],
        [{"workloads.0.bonnie.maxFileSize": REMOVED}, {"workloads.0.bonnie.files": 1}],
        storage=FILES,
    ),
    run(
        "remove it, or set maxFileSize too",
        [{"bonnie": {"minFileSize": "4Ki"}}],
        [{"workloads.0.bonnie.minFileSize": REMOVED}, {"workloads.0.bonnie.maxFileSize": "8Ki"}],
        storage=FILES,
    ),
    run(
        "remove it, or Read from operation",
        [{"dd": {"operation": ["Read"], "fdatasync": True}}],
        [{"workloads.0.dd.fdatasync": REMOVED}, {"workloads.0.dd.operation": ["Write", "Copy"]}],
    ),
    run(
        "set the bits per second of a stream",
        [{"iperf3": {"protocol": ["UDP"]}}],
        [{"workloads.0.iperf3.bitrate": "1M"}],
        storage=None,
    ),
    run(
        "remove it, or use seq or rand",
        [{"radosBench": {"writeSeconds": 5}}],
        [
            {"workloads.0.radosBench.writeSeconds": REMOVED},
            {"workloads.0.radosBench.operation": "seq"},
            {"workloads.0.radosBench.operation": "rand"},
        ],
        storage={"ceph": CEPH},
    ),
    run(
        "remove it, or use one of them",
        [{"fio": {"pattern": "write", "readBack": "NextClient"}}],
        [{"workloads.0.fio.readBack": REMOVED}, {"workloads.0.fio.pattern": "read"}],
        storage=SHARED,
    ),
    run(
        "disturb applies only to fio",
        [{"ping": {}, **DISTURBED}, {"name": "w", "fio": {}}],
        [{"workloads.0": {"ping": {}, "clients": [2]}}, {"workloads.0": {"rbdBench": {}, **DISTURBED}}],
        storage=OF_CEPH,
    ),
    run(
        "cannot be set with disturb",
        [{"fio": {"until": "DataSetDone"}, "rampSeconds": 0, **DISTURBED}],
        [{"workloads.0.fio.until": REMOVED}, {"workloads.0.disturb": REMOVED}],
        storage=OF_CEPH,
    ),
    run(
        "choose at least 2 clients, or add spec.servers",
        [{"ping": {}, "clients": [1]}],
        [{"workloads.0.clients": [2]}, {"servers": {"placement": "ClientNodes", "count": 1}}],
        storage=None,
    ),
    run(
        "raise it, shorten runtimeSeconds",
        [{"fio": {}}],
        [{"timeouts.totalSeconds": 200}, {"workloads.0.runtimeSeconds": 20}],
        timeouts={"totalSeconds": 100},
        prepare={"settleSeconds": 0},
    ),
]


@pytest.mark.parametrize(("document", "words", "remedies"), CASES)
def test_what_a_refusal_proposes_is_accepted(document: Fields, words: str, remedies: Sequence[Fields]) -> None:
    found = violations(document)
    assert any(words in problem for problem in found), found
    for remedy in remedies:
        assert violations(changed(document, remedy)) == [], remedy


def test_every_rule_of_tools_has_a_case() -> None:
    """Rules without `holds` are those of the API server alone."""
    refused = "\n".join(problem for case in CASES for problem in violations(case.values[0]))
    rules: list[Rule] = [*run_rules(TOOLS)]
    for tool in TOOLS.values():
        rules += [*tool.parameters.rules, *rules_of_workload(tool)]
    assert [rule.message for rule in rules if rule.holds and not rule.remedy and rule.message not in refused] == []
