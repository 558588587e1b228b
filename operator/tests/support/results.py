"""A result and a status of a run in which every field has a value."""

from typing import Any

from plimsoll.api.environment import Environment
from plimsoll.api.line import Ending, Line, LineSearch, Objective, Probe, ProbeOutcome, Vary
from plimsoll.api.names import (
    AbortReason,
    ConditionStatus,
    ConditionType,
    LatencyKind,
    Operation,
    Outcome,
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
    SteadyState,
)
from plimsoll.api.result import (
    Abort,
    BenchmarkResult,
    ClientSummary,
    Finding,
    Fingerprint,
    Matrix,
    MatrixMember,
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
from plimsoll.tools.fio.parameters import FioParameters

NOW = "2026-01-31T12:00:00Z"
_RATES = Rates(iops=2**53, bytes_per_second=2**62)
_STATISTIC = Statistic(
    trials=5,
    mean=1e9 / 3,
    standard_deviation=0.1,
    coefficient_of_variation=1e-12,
    low=-1.5,
    high=1.7e308,
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
_STEADINESS = Steadiness(attained=False, rounds=(1e9 / 3,) * 5, range_ratio=0.25, slope_ratio=0.0)
_SPREAD = Spread(min=0.25, median=1e9 / 3, max=1e12)
_HOST = HostSummary(
    cpu=1.5,
    cpu_limit=2.0,
    throttled_seconds=0.25,
    node_cpu_busy=0.9,
    memory_bytes=2**34,
    received_bytes_per_second=2**33,
    sent_bytes_per_second=0,
    device_read_bytes_per_second=2**33,
    device_written_bytes_per_second=0,
    device_busy=1.0,
    device_queue=15.9,
    device_read_request_bytes=4096,
    device_write_request_bytes=2**22,
)
_FINDING = Finding(reason="LowOverlap", verdict=Verdict.SUSPECT, message="m" * 1000, clients=tuple(range(32)))
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
    abort=Abort(reason=AbortReason.LATE_CLIENT, message="m"),
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
            steady_state=SteadyState(round_seconds=12.0, rate=_STEADINESS, p99=_STEADINESS),
        )
        for operation in Operation
    ),
    hosts=Hosts(
        clients=500,
        cpu=_SPREAD,
        throttled_seconds=_SPREAD,
        node_cpu_busy=_SPREAD,
        memory_bytes=_SPREAD,
        received_bytes_per_second=_SPREAD,
        sent_bytes_per_second=_SPREAD,
        device_busy=_SPREAD,
        device_queue=_SPREAD,
        device_read_request_bytes=_SPREAD,
        device_write_request_bytes=_SPREAD,
    ),
    caches=DroppedCaches(
        node_count=500,
        nodes=tuple(
            NodeCaches(node="n" * 253, dropped_at="2026-01-31T12:00:00Z", before_bytes=2**62, after_bytes=0)
            for _ in range(64)
        ),
        osds=OsdCaches(count=2000, osds=tuple(range(64)), reason="r" * 512),
    ),
    slowest=tuple(
        ClientSummary(
            client=number,
            node="n" * 253,
            start_offset_seconds=0.1,
            runtime_seconds=4.0,
            iops=9,
            clock_offset_seconds=-1e-6,
            clock_error_seconds=1e-6,
            stall_seconds=2.0,
            host=_HOST,
        )
        for number in range(8)
    ),
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
        line=Line(ending=Ending.PRECISE, probes=20, counted=19, estimate=12_412.3, low=11_824.7, high=13_001.9),
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

RESULT_DISPLAY = ResultDisplay(
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
FULL_RESULT["status"]["display"] = RESULT_DISPLAY.model_dump(mode="json")
