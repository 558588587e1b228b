"""Results and statuses in which every field has a value, and parts of results that are larger than real ones."""

import math
import random
from collections.abc import Mapping
from typing import Any

from pydantic import JsonValue

from plimsoll.api import names
from plimsoll.api.environment import Environment
from plimsoll.api.line import Ending, Line, LineSearch, Objective, OfferedLoad, Probe, ProbeOutcome, Vary
from plimsoll.api.names import (
    AbortReason,
    ConditionStatus,
    ConditionType,
    LatencyKind,
    Operation,
    Outcome,
    SuiteConditionType,
    Verdict,
)
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
    Abort,
    BenchmarkResult,
    ClientPlace,
    ClientSummary,
    Finding,
    Fingerprint,
    InFlight,
    Matrix,
    MatrixMember,
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
from plimsoll.api.status import (
    MAX_HEADLINES,
    BenchmarkRunStatus,
    Condition,
    Display,
    Headline,
    HeadlineLatency,
    HeadlineLine,
    Hold,
    Points,
    ResultDisplay,
    SuiteCondition,
)
from plimsoll.api.suite_status import (
    ActiveRound,
    Baseline,
    BenchmarkSuiteStatus,
    Cause,
    ComparisonOutcome,
    Conclusion,
    EndedRound,
    HypothesisResult,
    HypothesisVerdict,
    RoundChildren,
    RoundVerdict,
    SuiteDisplay,
)
from plimsoll.api.surroundings import (
    ClusterSummary,
    DroppedCaches,
    Hosts,
    HostSummary,
    NodeCaches,
    OsdCaches,
    OsdResult,
    Osds,
    Spread,
)
from plimsoll.measure.histogram import Histogram
from plimsoll.tools.fio.parameters import FioParameters

NOW = "2026-01-31T12:00:00Z"
_RATES = Rates(iops=2**53, bytes_per_second=2**62)
_STATISTIC = Statistic(
    trials=5, mean=1e9 / 3, standard_deviation=0.1, coefficient_of_variation=1e-12, low=-1.5, high=1.7e308
)
_LATENCY = Latency(
    kind=LatencyKind.FULL,
    count=2**53,
    mean_nanoseconds=1e6 / 3,
    standard_deviation_nanoseconds=1.0,
    min_nanoseconds=0,
    max_nanoseconds=2**62,
    percentiles={"50": 10, "99.9": 20},
    histogram="fio-plat-6-29:" + "A" * 100,
)
_SPREAD = Spread(min=0.25, median=1e9 / 3, max=1e12)
_SPREADS: dict[str, Any] = dict.fromkeys([name for name in Hosts.model_fields if name != "clients"], _SPREAD)
STEADINESS = Steadiness(
    state=SteadinessState.NOT_STEADY,
    start_seconds=1234.123456,
    end_seconds=12345.123456,
    inside=12345678.123456,
    outside=12345678.123456,
    change=-0.123456,
    deviation=0.012345,
)
HOST = HostSummary(
    cpu=1.2345678901234567,
    cpu_limit=2.0,
    throttled_seconds=12.345678901234567,
    node_cpu_busy=0.12345678901234567,
    memory_bytes=10**11,
    received_bytes_per_second=10**10,
    sent_bytes_per_second=10**10,
    device_read_bytes_per_second=10**10,
    device_written_bytes_per_second=10**10,
    device_busy=0.12345678901234567,
    device_queue=123.45678901234567,
    device_read_request_bytes=2**24,
    device_write_request_bytes=2**24,
)


def _slowest_clients(node: str) -> tuple[ClientSummary, ...]:
    return tuple(
        ClientSummary(
            client=number,
            node=node,
            start_offset_seconds=0.123456789,
            runtime_seconds=300.123456789,
            iops=10**6,
            clock_offset_seconds=-0.000123456789,
            clock_error_seconds=0.000123456789,
            stall_seconds=12.345678901234567,
            host=HOST,
        )
        for number in range(8)
    )


_FINDING = Finding(
    reason="LowOverlap",
    verdict=Verdict.SUSPECT,
    message="m" * 1000,
    clients=tuple(range(32)),
    cause=names.Cause.STORAGE,
)
_TRIAL = Trial(
    pass_number=1,
    attempt=2,
    epoch="d9428888-122b-11e1-b85c-61cd3cbb3210",
    clients=tuple(range(0, 1000, 2)),
    new_data_set=True,
    probe=Probe(offered=12_000, achieved=11_990.5, depth_full_percent=0.02, outcome=ProbeOutcome.MET),
    outcome=Outcome.MEASURED,
    started_at="2026-01-01T00:00:00.000Z",
    finished_at="2026-01-01T00:01:00.000Z",
    abort=Abort(reason=AbortReason.LATE_CLIENT, message="m", after_start=True, cause=names.Cause.HARNESS),
    verdict=Verdict.SUSPECT,
    findings=(_FINDING,),
    window=Window(
        start_nanoseconds=1,
        end_nanoseconds=-1,
        last_end_nanoseconds=2,
        seconds=1e-9,
        whole_seconds=1e-9,
        spread_seconds=0.0,
        overlap=0.97,
    ),
    stalls=Stalls(seconds=0.0, worst_client_seconds=2.0, worst_client=999),
    steadiness=STEADINESS,
    operations=tuple(
        OperationResult(
            operation=operation,
            ios=1,
            bytes=4096,
            rates=_RATES,
            whole_run=_RATES,
            sum_of_rates=_RATES,
            bias=-0.01,
            latency=_LATENCY,
            processor_percent=2.5,
            series=Series(interval_seconds=1, iops=(0.0, 2.5) * 60, bytes_per_second=(0, 2**62) * 60),
            p50_steadiness=STEADINESS,
            p99_steadiness=STEADINESS,
        )
        for operation in Operation
    ),
    hosts=Hosts(clients=500, **_SPREADS),
    caches=DroppedCaches(
        node_count=500,
        nodes=tuple(
            NodeCaches(node="n" * 253, dropped_at="2026-01-31T12:00:00Z", before_bytes=2**62, after_bytes=0)
            for _ in range(64)
        ),
        osds=OsdCaches(count=2000, osds=tuple(range(64)), reason="r" * 512),
    ),
    slowest=_slowest_clients("n" * 253),
    places=(ClientPlace(client=1000, node="n" * 253, volume="v" * 256),),
    place_digests=PlaceDigests(clients=tuple(range(0, 1000, 2)), digests="q" * 5336),
    load=OfferedLoad(offered=1e9 / 3, achieved=1e9 / 3, depth_full_percent=99.5),
    osds=Osds(
        count=2000,
        iops=_SPREAD,
        bytes_per_second=_SPREAD,
        mean_iops=1e9 / 3,
        mean_bytes_per_second=2**62,
        slowest=tuple(OsdResult(osd=number, iops=1e9 / 3, bytes_per_second=2**62) for number in range(32)),
    ),
    cluster=ClusterSummary(
        samples=20,
        failed=1,
        worst_health="HEALTH_WARN",
        problems=("p" * 300,) * 8,
        used_ratio=0.25,
        read_bytes_per_second=2**62,
        written_bytes_per_second=0,
        operations_per_second=1e9 / 3,
        foreign_operations_per_second=0.125,
        foreign_bytes_per_second=2**62,
        data_set_bytes=2**62,
        osd_memory_bytes=2**62,
    ),
    tool=ToolUse(versions=("fio 3.39",) * 8, argv=("a" * 512,) * 40, argv_client=3, raw_sha256="0" * 64),
    warnings=("w",) * 20,
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
        line=LineSearch(start=500, limit=200_000, objectives=(Objective(percentile="99", latency_microseconds=5000),)),
    ),
    status=ResultStatus(
        trials=(_TRIAL,),
        in_flight=InFlight(pass_number=1, attempt=0, started_at=NOW, t0_nanoseconds=1_769_860_800_000_000_000),
        line=Line(ending=Ending.PRECISE, probes=20, counted=19, estimate=12_412.3, low=11_824.7, high=13_001.9),
        first_line=Line(ending=Ending.PRECISE, probes=20, counted=19, estimate=12_412.3, low=11_824.7, high=13_001.9),
        summary=Summary(
            trials=1,
            operations=(
                OperationSummary(
                    operation=Operation.READ,
                    iops=_STATISTIC,
                    bytes_per_second=_STATISTIC,
                    mean_latency=_STATISTIC,
                    percentiles={"99": _STATISTIC},
                    latency=_LATENCY,
                ),
            ),
            matrix=Matrix(
                trials=5,
                members=(MatrixMember(number=0, node="n" * 253), MatrixMember(number=1, node="b")),
                clients=(0,),
                peers=(1,),
                bytes_per_second=(2**62,),
                least_bytes_per_second=(0,),
                iops=(1e9 / 3,),
                least_iops=(0.5,),
                retransmits=(3,),
                outliers=(0,),
            ),
        ),
        verdict=Verdict.VALID,
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
        final=True,
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

RUN_STATUS = BenchmarkRunStatus(
    observed_generation=1,
    conditions=tuple(
        Condition(
            type=kind,
            status=ConditionStatus.UNKNOWN,
            observed_generation=1,
            last_transition_time=NOW,
            reason="Measuring",
            message="m" * 32768,
        )
        for kind in ConditionType
    ),
    start_time=NOW,
    conductor_start_time=NOW,
    namespace_served_time=NOW,
    completion_time=NOW,
    estimated_completion_time=NOW,
    plan_sha256="0123456789abcdef" * 4,
    hold=Hold(seconds=59, since=NOW, measured_trials=7),
    points=Points(total=512, completed=7, invalid=1),
    headline=tuple(
        Headline(
            workload="w" * 32,
            point=f"{'w' * 32}-{number:03d}",
            label="randwrite 4Ki qd16",
            operation=Operation.WRITE,
            iops=2**53,
            bytes_per_second=2**62,
            latency_nanoseconds=HeadlineLatency(p50=10**6, p99=10**7),
            line=HeadlineLine(
                text="carries 12,400 ± 600 IOPS at p99 <= 5 ms",
                vary=Vary.RATE,
                ending=Ending.PRECISE,
                estimate=12_412.3,
                low=11_824.7,
                high=13_001.9,
            ),
            verdict=Verdict.SUSPECT,
        )
        for number in range(MAX_HEADLINES)
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


_TIME = "2026-03-01T03:00:00Z"
_SELECTOR = {
    "workload": "w",
    "where": {"blockSize": "4Ki", "ioDepth": 1, "directIo": True, "clients": 2},
    "quantity": "iops",
}
_OTHER = {"workload": "w", "where": {"ioDepth": 16, "clients": 2}, "quantity": "iops"}

FULL_SUITE: Mapping[str, Any] = {
    "apiVersion": "plimsoll.dev/v1alpha1",
    "kind": "BenchmarkSuite",
    "metadata": {"name": "layouts", "namespace": "default"},
    "spec": {
        "schedule": {"cron": "0 3 * * 0", "timeZone": "Europe/Berlin", "startingDeadlineSeconds": 3600},
        "triggers": {"cephVersion": True},
        "repeat": 5,
        "keep": 20,
        "run": {
            "storage": {"storageClass": {"name": "fast"}, "volume": {"size": "1Gi"}},
            "clients": {"count": 2, "nodeSelector": {"disk": "ssd"}},
            "workloads": [{"name": "w", "fio": {"blockSize": ["4Ki"], "ioDepth": [1, 4, 16]}, "clients": [1, 2]}],
        },
        "variants": [
            {"name": "a", "unset": [], "set": {}},
            {"name": "b", "unset": ["clients.nodeSelector.disk"], "set": {"repetitions": 3}},
        ],
        "comparisons": [
            {
                "name": "costs",
                "baseline": {"variant": "a"},
                "candidate": {"variant": "b"},
                "allow": {"ratePercent": 6, "latencyPercent": 12},
            },
            {"name": "upgrade", "baseline": {"rounds": "Accepted"}, "allow": {"ratePercent": 5, "latencyPercent": 10}},
        ],
        "hypotheses": [
            {
                "name": "deep",
                "left": _OTHER | {"variant": "a", "operation": "read"},
                "of": _SELECTOR | {"variant": "b", "operation": "read"},
                "atLeastPercent": 100,
                "atMostPercent": 900,
            },
            {
                "name": "scales",
                "left": {"workload": "w", "where": {"clients": 2}, "quantity": "bytesPerSecond"},
                "over": "ioDepth",
                "range": {"first": 1, "last": "1Ki"},
                "exponentAtLeast": "0.1",
                "exponentAtMost": "1.1",
            },
        ],
        "gate": True,
        "suspend": False,
    },
}

_SUITE_STATUS = BenchmarkSuiteStatus(
    observed_generation=1,
    conditions=tuple(
        SuiteCondition(
            type=kind,
            status=ConditionStatus.UNKNOWN,
            observed_generation=1,
            last_transition_time=_TIME,
            reason="Measuring",
            message="round 29540340: run 3 of 10",
        )
        for kind in SuiteConditionType
    ),
    digest="0123456789abcdef" * 4,
    requested_round="before the upgrade",
    requested_minute=29540340,
    accepted_round="29540340",
    next_schedule_time=_TIME,
    last_schedule_time=_TIME,
    ceph_version="18.2.7",
    round=ActiveRound(
        minute=29540340,
        seed=29540340,
        cause=Cause.SCHEDULED,
        start_time=_TIME,
        children=RoundChildren(done=2, total=10),
        current="layouts-a-4d2f5-29540340-1",
        current_uid="01234567-89ab-cdef-0123-456789abcdef",
    ),
    abandoned_run="layouts-b-4d2f5-29530260-0",
    rounds=(
        EndedRound(
            minute=29530260,
            cause=Cause.CHANGE,
            start_time=_TIME,
            completion_time=_TIME,
            verdict=RoundVerdict.NO_REGRESSION,
            complete=True,
            accepted=True,
            pinned=True,
            former=True,
            digest="0123456789abcdef" * 4,
            environment={"ceph": "18.2.7", "kernel": "6.1.0", "kubernetes": "1.34.1"},
            comparisons={"NoRegression": 2, "Inconclusive": 1},
        ),
    ),
    baseline=Baseline(first=29530260, since=29530270),
    dropped=(29520180, 29510100),
    comparisons=(
        ComparisonOutcome(
            name="costs",
            variant="b",
            verdict=Conclusion.REGRESSION,
            message="b has 12 % less IOPS than a",
            estimate=-0.12,
            low=-0.15,
            high=-0.09,
            drift=False,
        ),
    ),
    comparisons_left_out=384,
    hypotheses_left_out=1,
    hypotheses=(
        HypothesisResult(
            name="deep",
            variant="a",
            verdict=HypothesisVerdict.HELD,
            message="w reaches 400 % (380 to 420) of the IOPS of w: Held.",
            estimate=4.0,
            low=3.8,
            high=4.2,
        ),
    ),
    display=SuiteDisplay(status="Measuring", progress="2/10", verdict="NoRegression", message="run 3 of 10"),
)
FULL_SUITE_STATUS: dict[str, Any] = _SUITE_STATUS.model_dump(mode="json", exclude_none=True)
