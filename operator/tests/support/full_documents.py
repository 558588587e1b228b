"""Results and statuses in which every field has a value, and parts of results that are larger than real ones."""

import math
import random
from collections.abc import Mapping, Sequence
from enum import Enum
from types import UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

import yaml
from pydantic import JsonValue

from plimsoll.api.environment import Environment
from plimsoll.api.line import LineSearch, Objective
from plimsoll.api.model import Model
from plimsoll.api.names import ConditionType, LatencyKind, Operation, SuiteConditionType, Verdict
from plimsoll.api.operation import (
    Latency,
    OperationResult,
    OperationSummary,
    Rates,
    Series,
    Statistic,
    Steadiness,
    SteadinessState,
)
from plimsoll.api.result import (
    BenchmarkResult,
    ClientPlace,
    ClientSummary,
    Finding,
    Fingerprint,
    InFlight,
    Matrix,
    PlaceDigests,
    ResultMeta,
    ResultSpec,
    ResultStatus,
    Stalls,
    Summary,
    ToolUse,
    Trial,
    Window,
)
from plimsoll.api.status import MAX_HEADLINES, BenchmarkRunStatus, Condition, Display, Headline, ResultDisplay
from plimsoll.api.surroundings import ClusterSummary, DroppedCaches, HostSummary, NodeCaches, OsdCaches, OsdResult, Osds
from plimsoll.measure.histogram import Histogram
from plimsoll.tools.fio.parameters import FioParameters

M = TypeVar("M", bound=Model)
NOW = "2026-01-31T12:00:00Z"


def filled(model: type[M], **values: Any) -> M:
    """Return a model in which every field has a value: these, and in all other fields a large one of their types."""
    others = {
        name: _value(field.annotation, field.metadata)
        for name, field in model.model_fields.items()
        if name not in values
    }
    return model(**others, **values)


def _value(annotation: Any, constraints: Sequence[Any] = ()) -> Any:
    kind, arguments = get_origin(annotation) or annotation, get_args(annotation)
    while kind in {Annotated, Union, UnionType}:
        annotation, *constraints = arguments if kind is Annotated else (arguments[0], *constraints)
        kind, arguments = get_origin(annotation) or annotation, get_args(annotation)
    if kind is Literal:
        return arguments[0]
    if kind is tuple:
        return (_value(arguments[0]),)
    if issubclass(kind, Mapping):
        return {"a": _value(arguments[1])}
    if issubclass(kind, Model):
        return filled(kind)
    if issubclass(kind, Enum):
        return next(iter(kind))
    formats = {getattr(constraint, "format", None) for constraint in constraints}
    text = NOW if "date-time" in formats else "w"
    return {bool: True, int: 7 if "int32" in formats else 2**62, float: 1e9 / 3, str: text}[kind]


STEADINESS = filled(Steadiness, state=SteadinessState.NOT_STEADY)
HOST = filled(HostSummary)


def _slowest_clients(node: str) -> tuple[ClientSummary, ...]:
    return tuple(filled(ClientSummary, client=number, node=node) for number in range(8))


_LATENCY = filled(
    Latency, min_nanoseconds=0, percentiles={"50": 10, "99.9": 20}, histogram="fio-plat-6-29:" + "A" * 100
)
_STATISTIC = filled(Statistic, coefficient_of_variation=1e-12, low=-1.5, high=1.7e308)
_FINDING = filled(Finding, reason="LowOverlap", verdict=Verdict.SUSPECT, message="m" * 1000, clients=tuple(range(32)))
_SERIES = Series(interval_seconds=1, iops=(0.0, 2.5) * 60, bytes_per_second=(0, 2**62) * 60, p99_nanoseconds=(9,) * 120)
_TRIAL = filled(
    Trial,
    clients=tuple(range(0, 1000, 2)),
    started_at="2026-01-01T00:00:00.000Z",
    finished_at="2026-01-01T00:01:00.000Z",
    verdict=Verdict.SUSPECT,
    findings=(_FINDING,),
    window=filled(Window, end_nanoseconds=-1, seconds=1e-9, spread_seconds=0.0),
    stalls=filled(Stalls, seconds=0.0),
    steadiness=STEADINESS,
    operations=tuple(
        filled(OperationResult, operation=operation, bias=-0.01, latency=_LATENCY, series=_SERIES)
        for operation in Operation
    ),
    caches=filled(
        DroppedCaches,
        nodes=(filled(NodeCaches, node="n" * 253, after_bytes=0),) * 64,
        osds=filled(OsdCaches, osds=tuple(range(64)), reason="r" * 512),
    ),
    slowest=_slowest_clients("n" * 253),
    places=(filled(ClientPlace, node="n" * 253, volume="v" * 256),),
    place_digests=PlaceDigests(clients=tuple(range(0, 1000, 2)), digests="q" * 5336),
    osds=filled(Osds, slowest=(filled(OsdResult),) * 32),
    cluster=filled(ClusterSummary, problems=("p" * 300,) * 8, written_bytes_per_second=0),
    tool=filled(ToolUse, versions=("fio 3.39",) * 8, argv=("a" * 512,) * 40, raw_sha256="0" * 64),
)

RESULT = BenchmarkResult(
    metadata=ResultMeta(name="rbd-size3-w-000", namespace="default", labels={"plimsoll.dev/run": "rbd-size3"}),
    spec=ResultSpec(
        run="rbd-size3",
        run_uid="d9428888-122b-11e1-b85c-61cd3cbb3210",
        point="w-000",
        workload="w",
        tool="fio",
        label=FioParameters().label(),
        parameters=FioParameters().model_dump(mode="json"),
        clients=1000,
        runtime_seconds=60,
        ramp_seconds=10,
        repetitions=5,
        line=LineSearch(start=500, limit=200_000, objectives=(Objective(percentile="99", latency="5ms"),)),
    ),
    status=filled(
        ResultStatus,
        trials=(_TRIAL,),
        in_flight=filled(InFlight, started_at=NOW),
        summary=Summary(
            trials=1,
            operations=(
                filled(
                    OperationSummary,
                    iops=_STATISTIC,
                    bytes_per_second=_STATISTIC,
                    mean_latency=_STATISTIC,
                    percentiles={"99": _STATISTIC},
                    latency=_LATENCY,
                ),
            ),
            matrix=filled(Matrix, outliers=(0,)),
        ),
        findings=(_FINDING,),
        environment=Environment.model_validate(
            {"nodes": ["a", "b"], "fio": "3.39", "dataSetBytes": {"min": 0, "max": 2**50}}
        ),
        fingerprint=Fingerprint(
            identity={"tool": "fio", "clients": 1000},
            context={"nodes": ["a", "b"]},
            identity_sha256="0123456789abcdef" * 4,
            context_sha256="f" * 64,
        ),
    ),
)

_RESULT_DISPLAY = ResultDisplay(
    operation="read",
    iops="12.3k ± 0.1k",
    bytes_per_second="48.0 MiB/s",
    p99="1.2 ms",
    line="12,400 ± 600 at p99 <= 5 ms",
    trials="4/5",
    reason="LowOverlap +2",
)

RUN_STATUS = filled(
    BenchmarkRunStatus,
    observed_generation=1,
    conditions=tuple(
        filled(Condition, type=kind, observed_generation=1, reason="Measuring", message="m" * 32768)
        for kind in ConditionType
    ),
    headline=tuple(
        filled(Headline, point=f"{'w' * 32}-{number:03d}", operation=Operation.WRITE) for number in range(MAX_HEADLINES)
    ),
    environment={"ceph": "19.2.3", "fio": "3.39", "nodes": "a, b"},
    display=Display(
        workloads="w",
        progress="7/24",
        status="Measuring",
        message="m",
        iops="12.3k",
        p99="1.2 ms",
        line="12,400 ± 600 at p99 <= 5 ms +2",
        verdict="Valid",
    ),
)

FULL_STATUS: dict[str, Any] = RUN_STATUS.model_dump(mode="json", exclude_none=True)
FULL_RESULT: dict[str, Any] = RESULT.model_dump(mode="json", exclude_none=True)
FULL_RESULT["status"]["display"] = _RESULT_DISPLAY.model_dump(mode="json")


def full_operation(operation: Operation, seed: int) -> OperationResult:
    """Return a result larger than real ones: noisy counts in hundreds of bins, from microseconds to seconds."""
    chance = random.Random(seed)  # noqa: S311 - numbers, not secrets
    counts = {
        index: 1 + int(1e6 * math.exp(-(((index - 800) / 200) ** 2)) * chance.uniform(0.9, 1.1))
        for index in range(400, 1200)
    }
    return OperationResult(
        operation=operation,
        ios=10**12,
        bytes=10**15,
        rates=Rates(iops=10**7, bytes_per_second=10**11),
        whole_run=Rates(iops=10**7, bytes_per_second=10**11),
        sum_of_rates=Rates(iops=10**7, bytes_per_second=10**11),
        bias=-0.12345678901234567,
        latency=Latency(
            kind=LatencyKind.FULL,
            count=10**12,
            mean_nanoseconds=123456789.12345678,
            standard_deviation_nanoseconds=123456789.12345678,
            min_nanoseconds=10**6,
            max_nanoseconds=10**10,
            percentiles=dict.fromkeys(("50", "90", "95", "99", "99.9", "99.99"), 10**9),
            histogram=Histogram(counts=counts).encode(),
        ),
        series=Series(
            interval_seconds=3,
            iops=tuple(chance.randrange(10**6, 10**7) for _ in range(120)),
            bytes_per_second=tuple(chance.randrange(10**10, 10**11) for _ in range(120)),
        ),
        p50_steadiness=STEADINESS,
        p99_steadiness=STEADINESS,
    )


FACTS: dict[str, JsonValue] = {f"fact{n}": [f"{m:02d}" * 20 for m in range(16)] for n in range(8)}
"""More facts of the clients than there are."""


def worst_fields() -> dict[str, Any]:
    """Return the largest fields of a trial of a mixed workload with syncs on 1000 clients."""
    return {
        "steadiness": STEADINESS,
        "operations": tuple(full_operation(kind, 1) for kind in (Operation.READ, Operation.WRITE, Operation.SYNC)),
        "slowest": _slowest_clients("node-" + "x" * 40),
        "findings": tuple(
            Finding(reason=f"Reason{n}", verdict=Verdict.SUSPECT, message="x" * 300, clients=tuple(range(32)))
            for n in range(3)
        ),
        "clients": tuple(range(1000)),
        "places": tuple(ClientPlace(client=number, node="node-" + "x" * 40, volume="v" * 40) for number in range(1000)),
    }


FULL_SUITE: Mapping[str, Any] = yaml.safe_load("""
apiVersion: plimsoll.dev/v1alpha1
kind: BenchmarkSuite
metadata: {name: layouts, namespace: default}
spec:
  schedule: {cron: 0 3 * * 0, timeZone: Europe/Berlin, startingDeadlineSeconds: 3600}
  triggers: {cephVersion: true}
  repeat: 5
  keep: 20
  run:
    storage: {storageClass: {name: fast}, volume: {size: 1Gi}}
    clients: {count: 2, nodeSelector: {disk: ssd}}
    workloads: [{name: w, fio: {blockSize: [4Ki], ioDepth: [1, 4, 16]}, clients: [1, 2]}]
  variants:
  - {name: a, unset: [], set: {}}
  - {name: b, unset: [clients.nodeSelector.disk], set: {repetitions: 3}}
  comparisons:
  - {name: costs, baseline: {variant: a}, candidate: {variant: b}, allow: {ratePercent: 6, latencyPercent: 12}}
  - {name: upgrade, baseline: {rounds: Accepted}, allow: {ratePercent: 5, latencyPercent: 10}}
  hypotheses:
  - name: deep
    left: {workload: w, where: {ioDepth: 16, clients: 2}, quantity: iops, variant: a, operation: read}
    of:
      workload: w
      where: {blockSize: 4Ki, ioDepth: 1, directIo: true, clients: 2}
      quantity: iops
      variant: b
      operation: read
    atLeastPercent: 100
    atMostPercent: 900
  - name: scales
    left: {workload: w, where: {clients: 2}, quantity: bytesPerSecond}
    over: ioDepth
    range: {first: 1, last: 1Ki}
    exponentAtLeast: "0.1"
    exponentAtMost: "1.1"
  gate: true
  suspend: false
""")

_CONDITION: dict[str, Any] = {
    "status": "Unknown",
    "observedGeneration": 1,
    "lastTransitionTime": "2026-03-01T03:00:00Z",
    "reason": "Measuring",
    "message": "round 29540340: run 3 of 10",
}
FULL_SUITE_STATUS: dict[str, Any] = yaml.safe_load("""
observedGeneration: 1
digest: &digest 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
requestedRound: before the upgrade
requestedMinute: 29540340
acceptedRound: "29540340"
nextScheduleTime: &time "2026-03-01T03:00:00Z"
lastScheduleTime: *time
cephVersion: 18.2.7
round:
  minute: 29540340
  seed: 29540340
  cause: Scheduled
  startTime: *time
  children: {done: 2, total: 10}
  current: layouts-a-4d2f5-29540340-1
  currentUid: 01234567-89ab-cdef-0123-456789abcdef
abandonedRun: layouts-b-4d2f5-29530260-0
rounds:
- minute: 29530260
  cause: Change
  startTime: *time
  completionTime: *time
  verdict: NoRegression
  complete: true
  accepted: true
  pinned: true
  former: true
  digest: *digest
  environment: {ceph: 18.2.7, kernel: 6.1.0, kubernetes: 1.34.1}
  comparisons: {NoRegression: 2, Inconclusive: 1}
baseline: {first: 29530260, since: 29530270}
dropped: [29520180, 29510100]
comparisons:
- name: costs
  variant: b
  verdict: Regression
  message: b has 12 % less IOPS than a
  estimate: -0.12
  low: -0.15
  high: -0.09
  drift: false
comparisonsLeftOut: 384
hypotheses:
- name: deep
  variant: a
  verdict: Held
  message: "w reaches 400 % (380 to 420) of the IOPS of w: Held."
  estimate: 4.0
  low: 3.8
  high: 4.2
hypothesesLeftOut: 1
display: {status: Measuring, progress: 2/10, verdict: NoRegression, message: run 3 of 10}
""") | {"conditions": [{"type": kind.value, **_CONDITION} for kind in SuiteConditionType]}
