"""What a run writes to Ceph, and the memory that its clients need."""

from plimsoll.api.quantity import parse_quantity
from plimsoll.api.run import BenchmarkRun
from plimsoll.plan.document import Plan, Point
from plimsoll.plan.expand import estimate
from plimsoll.tools.base import Timing
from plimsoll.tools.dd import DdParameters
from plimsoll.tools.fio.parameters import FioParameters
from plimsoll.tools.rados_bench import RADOS_BENCH, TAIL_SECONDS, RadosBenchParameters
from plimsoll.tools.registry import TOOLS


def volume_bytes(plan: Plan) -> int:
    """Return what the volumes take in the pools that the run makes, with all copies."""
    return estimate(plan).stored_bytes or 0


def written_seconds(plan: Plan) -> int:
    """Return for how long a trial of `rados bench` writes at most, times the copies of its pool."""
    points = [point for point in plan.points if point.tool == RADOS_BENCH.key]
    if not points:
        return 0
    assert plan.ceph is not None
    assert plan.ceph.made is not None
    replicated = plan.ceph.made.replicated
    assert replicated is not None
    return replicated.size * max(_seconds(point) for point in points)


def client_bytes(run: BenchmarkRun, plan: Plan) -> int:
    """Return the memory of a client: what it requests, its limit, or the largest buffers of a workload."""
    given = [of for of in run.spec.clients.resources.values() if isinstance(of, dict)]
    stated = [parse_quantity(of["memory"]) for of in given if "memory" in of]
    return max(stated + [_buffer_bytes(point) for point in plan.points])


def _seconds(point: Point) -> int:
    """Return how long objects are written before a read, or by a write, whose objects are kept until it ends."""
    parameters = RadosBenchParameters.model_validate(point.parameters)
    timing = Timing(ramp_seconds=point.ramp_seconds, runtime_seconds=point.runtime_seconds)
    if parameters.reads_data:
        return parameters.preparation_seconds(timing)
    return timing.ramp_seconds + timing.runtime_seconds + TAIL_SECONDS


def _buffer_bytes(point: Point) -> int:
    match TOOLS[point.tool].parameters.model_validate(point.parameters):
        case FioParameters(block_size=size, io_depth=depth, jobs=jobs):
            return size * depth * jobs
        case RadosBenchParameters(object_size=size, concurrency=concurrency):
            return size * concurrency
        case DdParameters(block_size=size):
            return size
        case _:
            return 0
