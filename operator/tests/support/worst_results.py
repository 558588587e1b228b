"""Parts of results that are larger than real ones."""

import math
import random
from typing import Any

from pydantic import JsonValue

from plimsoll.api.names import LatencyKind, Operation, Verdict
from plimsoll.api.operation import Latency, OperationResult, Rates, Series, Steadiness, SteadyState
from plimsoll.api.result import ClientSummary, Finding
from plimsoll.api.surroundings import HostSummary
from plimsoll.measure.histogram import Histogram

STEADINESS = Steadiness(
    attained=False, rounds=(12345678.123456789,) * 5, range_ratio=0.12345678901234567, slope_ratio=0.12345678901234567
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
        steady_state=SteadyState(round_seconds=72.1234567891, rate=STEADINESS, p99=STEADINESS),
    )


FACTS: dict[str, JsonValue] = {f"fact{n}": [f"{m:02d}" * 20 for m in range(16)] for n in range(8)}
"""More facts of the clients than there are."""


def worst_fields() -> dict[str, Any]:
    """Return the largest fields of a trial of a mixed workload with syncs on 1000 clients."""
    operations = tuple(full_operation(operation, 1) for operation in (Operation.READ, Operation.WRITE, Operation.SYNC))
    slowest = tuple(
        ClientSummary(
            client=n,
            node="node-" + "x" * 40,
            start_offset_seconds=0.123456789,
            runtime_seconds=300.123456789,
            iops=10**6,
            clock_offset_seconds=0.000123456789,
            clock_error_seconds=0.000123456789,
            stall_seconds=12.345678901234567,
            host=HOST,
        )
        for n in range(8)
    )
    findings = tuple(
        Finding(reason=f"Reason{n}", verdict=Verdict.SUSPECT, message="x" * 300, clients=tuple(range(32)))
        for n in range(3)
    )
    return {"operations": operations, "slowest": slowest, "findings": findings, "clients": tuple(range(1000))}
