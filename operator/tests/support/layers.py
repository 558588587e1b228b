"""The results of one run on all layers of a Ceph cluster, with round numbers."""

from plimsoll.api.names import LatencyKind, Operation, Outcome, Verdict
from plimsoll.api.operation import Latency, OperationSummary, Statistic
from plimsoll.api.result import BenchmarkResult, Finding, ResultMeta, ResultSpec, ResultStatus, Summary, Trial
from plimsoll.api.surroundings import Osds, Spread


def statistic(mean: float) -> Statistic:
    return Statistic(trials=1, mean=mean)


def result(
    point: str,
    tool: str,
    rates: dict[Operation, tuple[float, float]],
    *,
    verdict: Verdict = Verdict.VALID,
    osds: Osds | None = None,
    reason: str = "",
) -> BenchmarkResult:
    """Return a result with bytes and operations per second of each operation, and a finding if there is a reason."""
    operations = tuple(
        OperationSummary(
            operation=operation,
            iops=statistic(iops),
            bytes_per_second=statistic(volume),
            latency=Latency(kind=LatencyKind.NONE, count=0),
        )
        for operation, (volume, iops) in rates.items()
    )
    trial = Trial(
        pass_number=0,
        attempt=0,
        epoch="e",
        clients=(0,),
        outcome=Outcome.MEASURED,
        started_at="",
        finished_at="",
        verdict=verdict,
        osds=osds,
    )
    spec = ResultSpec(
        run="r",
        run_uid="u",
        point=point,
        workload="w",
        tool=tool,
        label=point,
        parameters={},
        clients=1,
        runtime_seconds=1,
        ramp_seconds=0,
        repetitions=1,
    )
    findings = (Finding(reason=reason, verdict=Verdict.SUSPECT, message="m"),) if reason else ()
    summary = Summary(trials=1, operations=operations)
    status = ResultStatus(trials=(trial,), summary=summary, verdict=verdict, findings=findings)
    return BenchmarkResult(metadata=ResultMeta(name=f"r-{point}", namespace="n"), spec=spec, status=status)


def osds(count: int, volume: int, iops: float) -> Osds:
    spread = Spread(min=1, median=1, max=1)
    return Osds(count=count, iops=spread, bytes_per_second=spread, mean_iops=iops, mean_bytes_per_second=volume)


READ, WRITE = Operation.READ, Operation.WRITE
RUN = [
    result("o-0", "osdBench", {WRITE: (99, 99)}, osds=osds(3, 300, 30)),
    result("o-1", "osdBench", {WRITE: (99, 99)}, osds=osds(3, 100, 3000)),
    result("r-0", "radosBench", {WRITE: (150, 15)}),
    result("r-1", "radosBench", {WRITE: (240, 10)}),
    result("r-2", "radosBench", {READ: (500, 50)}),
    result("f-0", "fio", {READ: (250, 40), WRITE: (120, 5)}),
    result("f-1", "fio", {READ: (9999, 9999)}, verdict=Verdict.INVALID),
]
