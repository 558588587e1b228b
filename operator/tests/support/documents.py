"""Documents of clients that did what was asked of them, to be spoilt one field at a time."""

import dataclasses
from typing import Any

from plimsoll.api.names import LatencyKind, Operation
from plimsoll.api.result import Finding
from plimsoll.measure.histogram import Histogram, bin_index
from plimsoll.measure.intake import TrialFacts
from plimsoll.measure.sample import Cells, ClientDocument, Clock, LatencySample, Measurement, OperationSample
from plimsoll.measure.trial import TrialNumbers, measure_trial
from support.hosts import quiet_host

SECOND = 10**9
T0 = 1_800_000_000 * SECOND
RAMP = 5
RUNTIME = 20
BLOCK = 4096


def facts(clients: int, **changes: Any) -> TrialFacts:  # fields of the dataclass
    whole = TrialFacts(
        clients=tuple(range(clients)),
        runtime_seconds=RUNTIME,
        ramp_seconds=RAMP,
        t0_nanoseconds=T0,
    )
    return dataclasses.replace(whole, **changes)


def latency(ios: int, value: int = 1_000_000) -> LatencySample:
    return LatencySample(
        kind=LatencyKind.FULL,
        count=ios,
        mean_nanoseconds=value,
        min_nanoseconds=value,
        max_nanoseconds=value,
        histogram=Histogram(counts={bin_index(value): ios}).encode(),
    )


def operation(ios_per_second: int = 100, **changes: Any) -> OperationSample:  # fields of the model
    ios = ios_per_second * RUNTIME
    cells = Cells(
        width_nanoseconds=SECOND,
        ios=(float(ios_per_second),) * RUNTIME,
        bytes=(float(ios_per_second * BLOCK),) * RUNTIME,
    )
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
    return measure_trial(facts(count, **changes), {item.client: item for item in documents})


def only(numbers: TrialNumbers, reason: str) -> Finding:
    assert [finding.reason for finding in numbers.findings] == [reason]
    assert numbers.verdict is numbers.findings[0].verdict
    return numbers.findings[0]
