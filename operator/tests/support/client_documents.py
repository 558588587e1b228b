"""Plans of trials, and documents of clients that did what was asked of them, to be spoilt one field at a time."""

import dataclasses
from typing import Any

from plimsoll.api.names import LatencyKind, Operation
from plimsoll.api.result import Finding
from plimsoll.api.run import Gates, Timeouts
from plimsoll.api.storage import Prepare, Volume
from plimsoll.ceph.watch import ClusterStatus
from plimsoll.measure.histogram import Histogram, bin_index
from plimsoll.measure.intake import TrialFacts
from plimsoll.measure.sample import (
    Cells,
    ClientDocument,
    Clock,
    CpuUse,
    DeviceUse,
    HostUse,
    LatencySample,
    Measurement,
    MemoryUse,
    NetworkUse,
    OperationSample,
)
from plimsoll.measure.trial import TrialNumbers, measure_round
from plimsoll.plan.document import Plan, Point, RunIdentity
from plimsoll.plan.sweep import shuffled

GIBIBYTE = 2**30


def quiet_host(seconds: float = 22.0, *, device: DeviceUse | None = None) -> HostUse:
    """Return a host on which no check finds anything."""
    return HostUse(
        seconds=seconds,
        cpu=CpuUse(limit=2, used=0.5, throttled_periods=0, throttled_seconds=0, node_busy=0.25, node_processors=8),
        memory=MemoryUse(limit=GIBIBYTE, used=GIBIBYTE // 4, node_total=16 * GIBIBYTE, node_available=8 * GIBIBYTE),
        network=NetworkUse(received=1e6, sent=2e6),
        device=device,
    )


QUIET_CLUSTER = ClusterStatus(
    health="HEALTH_OK",
    checks={},
    pg_states={"active+clean": 8},
    osds=3,
    osds_up=3,
    osds_in=3,
    osds_up_since="1",
    osds_in_since="1",
    remapped_pgs=0,
    recovering_bytes_per_second=0,
    used_bytes=1,
    total_bytes=4,
)
"""One in which no check finds anything."""

SECOND = 10**9
T0 = 1_800_000_000 * SECOND
RAMP = 5
RUNTIME = 20
BLOCK = 4096


def facts(clients: int, **changes: Any) -> TrialFacts:  # fields of the dataclass
    times: dict[str, Any] = {"runtime_seconds": RUNTIME, "ramp_seconds": RAMP, "t0_nanoseconds": T0}
    return dataclasses.replace(TrialFacts(clients=tuple(range(clients)), **times), **changes)


def even_cells(ios_per_second: float, seconds: int) -> Cells:
    rates = (float(ios_per_second),) * seconds
    return Cells(width_nanoseconds=SECOND, ios=rates, bytes=tuple(BLOCK * rate for rate in rates))


def latency(ios: int, value: int = 1_000_000) -> LatencySample:
    return LatencySample(
        kind=LatencyKind.FULL,
        count=ios,
        mean_nanoseconds=value,
        standard_deviation_nanoseconds=0.0,
        min_nanoseconds=value,
        max_nanoseconds=value,
        histogram=Histogram(counts={bin_index(value): ios}).encode(),
    )


def operation(ios_per_second: int = 100, **changes: Any) -> OperationSample:  # fields of the model
    ios = ios_per_second * RUNTIME
    cells = even_cells(ios_per_second, RUNTIME)
    whole = OperationSample(operation=Operation.WRITE, ios=ios, bytes=ios * BLOCK, latency=latency(ios), cells=cells)
    return whole.model_copy(update=changes)


def measurement(*operations: OperationSample, late: float = 0.0, **changes: Any) -> Measurement:
    whole = Measurement(
        tool="fio",
        tool_version="3.39",
        started_at=T0 + int((RAMP + late) * SECOND),
        runtime=RUNTIME * SECOND,
        operations=operations or (operation(),),
    )
    return whole.model_copy(update=changes)


def document(client: int, measured: Measurement | None = None, **changes: Any) -> ClientDocument:
    whole = ClientDocument(
        client=client,
        node=f"node-{client}",
        exit_code=0,
        launched_at=T0,
        finished_at=T0 + (RAMP + RUNTIME) * SECOND,
        argv=("fio",),
        measurement=measured or measurement(),
        clock=Clock(offset=0.0001, error=0.0005),
        data_set_bytes=2**40,
        host=quiet_host(),
    )
    return whole.model_copy(update=changes)


def measure(*documents: ClientDocument, planned: int | None = None, **changes: Any) -> TrialNumbers:
    """Measure a trial of which nothing was planned but what came back, unless `planned` or `changes` say so."""
    count = len(documents) if planned is None else planned
    return measure_round(facts(count, **changes), {item.client: item for item in documents})


def only(numbers: TrialNumbers, reason: str) -> Finding:
    assert [finding.reason for finding in numbers.findings] == [reason]
    assert numbers.verdict is numbers.findings[0].verdict
    return numbers.findings[0]


EPOCH = 1_795_000_000 * SECOND


def make_plan(
    *,
    points: int = 2,
    clients: int = 2,
    taking_part: int | None = None,
    repetitions: int = 2,
    total_seconds: int = 2_000_000,
    reads: bool = False,
    renews: bool = False,
    drops_caches: bool = False,
) -> Plan:
    """Return a plan of points with a ramp of 1 s and a runtime of 4 s.

    With `reads`, clients write data first; with `renews`, every attempt begins with a new data set.
    """
    return Plan(
        run=RunIdentity(name="simulated", namespace="default", uid="u"),
        seed=1,
        clients=clients,
        repetitions=repetitions,
        points=tuple(
            Point(
                name=f"w-{number:03d}",
                workload="w",
                tool="radosBench" if reads else "fio",
                parameters={"operation": "rand"} if reads else {},
                label=f"point {number}",
                clients=taking_part or clients,
                runtime_seconds=4,
                ramp_seconds=1,
            )
            for number in range(points)
        ),
        order=tuple(shuffled(1, pass_number=number, points=points) for number in range(repetitions)),
        volume=Volume(size=2**30, mode="Filesystem"),
        prepare=Prepare(settle_seconds=2, per_trial="NewDataSet" if renews else None, drop_caches=drops_caches),
        gates=Gates(),
        timeouts=Timeouts(ready_seconds=1000, total_seconds=total_seconds),
    )


def make_document(client: int, t0: int, *, node: str = "n", exit_code: int = 0, delay: float = 0.01) -> ClientDocument:
    """Return what a client with 100 IOPS sends after a ramp of 1 s and a runtime of 4 s."""
    mean = LatencySample(kind=LatencyKind.MEAN_ONLY, count=400, mean_nanoseconds=1e6)
    counts: dict[str, Any] = {"ios": 400, "bytes": 400 * BLOCK, "latency": mean, "cells": even_cells(100, 4)}
    start = t0 + SECOND + int(delay * SECOND)
    return document(
        client,
        measurement(operation(operation=Operation.READ, **counts), started_at=start, runtime=4 * SECOND),
        node=node,
        exit_code=exit_code,
        launched_at=t0,
        finished_at=start + 4 * SECOND,
        clock=Clock(offset=0.0, error=0.0001),
        data_set_bytes=0,
    )
