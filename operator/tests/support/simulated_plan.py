"""A plan of simulated trials, and what its clients send."""

from plimsoll.api.names import LatencyKind, Operation
from plimsoll.api.run import Gates, Timeouts
from plimsoll.api.storage import Prepare, Volume
from plimsoll.measure.sample import Cells, ClientDocument, Clock, LatencySample, Measurement, OperationSample
from plimsoll.plan.document import Plan, Point, RunIdentity
from plimsoll.plan.sweep import shuffled
from support.hosts import quiet_host

SECOND = 10**9
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
    cells = Cells(width_nanoseconds=SECOND, ios=(100.0,) * 4, bytes=(409600.0,) * 4)
    read = OperationSample(
        operation=Operation.READ,
        ios=400,
        bytes=400 * 4096,
        latency=LatencySample(kind=LatencyKind.MEAN_ONLY, count=400, mean_nanoseconds=1e6),
        cells=cells,
    )
    start = t0 + SECOND + int(delay * SECOND)
    return ClientDocument(
        client=client,
        node=node,
        exit_code=exit_code,
        launched_at=t0,
        finished_at=start + 4 * SECOND,
        argv=("fio",),
        measurement=Measurement(
            tool="fio", tool_version="3.39", started_at=start, runtime=4 * SECOND, operations=(read,)
        ),
        clock=Clock(offset=0.0, error=0.0001),
        host=quiet_host(),
    )
