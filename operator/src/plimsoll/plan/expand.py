"""Sweep expansion: a workload becomes one point per combination of axis values."""

from collections.abc import Iterator, Sequence
from itertools import product

from pydantic import JsonValue

from plimsoll.api.environment import PlatformEnvironment
from plimsoll.api.errors import Problem, SpecError
from plimsoll.api.line import LineSearch
from plimsoll.api.run import BenchmarkRun
from plimsoll.api.storage import Prepare
from plimsoll.plan.ceph import ceph_target
from plimsoll.plan.document import MAX_POINTS, Plan, Point, RunIdentity
from plimsoll.plan.order import shuffled
from plimsoll.plan.refusals import contradictions, missing_storage
from plimsoll.plan.sweep import Sweep, combinations, parse_sweep
from plimsoll.tools.base import ToolParameters
from plimsoll.tools.registry import TOOLS


def make_plan(
    run: BenchmarkRun, *, seed: int, runner_image: str = "", environment: PlatformEnvironment | None = None
) -> Plan:
    """Freeze a run. `environment` are the known facts of the platform: see `Plan`.

    Raises:
        SpecError: a tool or parameter is unknown or impossible, or there are more than 512 points.

    """
    points = expand(run)
    spec = run.spec
    return Plan(
        run=RunIdentity(name=run.metadata.name, namespace=run.metadata.namespace, uid=run.metadata.uid),
        runner_image=runner_image,
        seed=seed,
        clients=spec.clients.count,
        servers=spec.servers,
        repetitions=spec.repetitions,
        points=points,
        order=tuple(shuffled(seed, pass_number=number, points=len(points)) for number in range(spec.repetitions)),
        volume=spec.storage.volume if spec.storage and any(map(_needs_volume, points)) else None,
        ceph=ceph_target(run),
        network_bytes_per_second=spec.clients.network_bytes_per_second,
        environment=environment or PlatformEnvironment(),
        prepare=_preparation(spec.prepare, points),
        gates=spec.gates,
        timeouts=spec.timeouts,
    )


def expand(run: BenchmarkRun) -> tuple[Point, ...]:
    """Return the points of a run, workload by workload; the last axis varies fastest.

    Raises:
        SpecError: with all problems of all workloads.

    """
    sweeps = _sweeps(run)
    expanded = [(sweep, combinations(sweep)) for sweep in sweeps]
    if problems := list(contradictions(run.spec, expanded)):
        raise SpecError(problems)
    return tuple(point for sweep, parameters in expanded for point in _points(sweep, parameters))


def _sweeps(run: BenchmarkRun) -> list[Sweep]:
    """Return the sweeps of all workloads, or raise SpecError with all their problems."""
    sweeps: list[Sweep] = []
    problems: list[Problem] = []
    for index, workload in enumerate(run.spec.workloads):
        try:
            sweep = parse_sweep(workload, index, run.spec)
        except SpecError as error:
            problems += error.problems
            continue
        sweeps.append(sweep)
        problems += missing_storage(sweep, run.spec)
    # Counted before the expansion: a few long axes can yield millions of points.
    count = sum(sweep.points for sweep in sweeps)
    if count > MAX_POINTS:
        remedy = f"expands to {count} points, but a run has at most {MAX_POINTS}; shorten an axis or split the run"
        problems.append(Problem(field="spec.workloads", remedy=remedy))
    if problems:
        raise SpecError(problems)
    return sweeps


def _points(sweep: Sweep, combined: Sequence[ToolParameters]) -> Iterator[Point]:
    workload = sweep.workload
    for number, (clients, parameters) in enumerate(product(sweep.clients, combined)):
        yield Point(
            name=f"{workload.name}-{number:03d}",
            workload=workload.name,
            tool=sweep.tool.key,
            parameters=_parameters_of(parameters, workload.line),
            label=parameters.search_label(workload.line.vary) if workload.line else parameters.label(),
            clients=clients,
            runtime_seconds=workload.runtime_seconds,
            ramp_seconds=workload.ramp_seconds,
            shares_file=parameters.shares_file,
            reads_next_client=parameters.reads_next_client,
            line=workload.line,
        )


def _parameters_of(parameters: ToolParameters, search: LineSearch | None) -> dict[str, JsonValue]:
    """Return the parameters of a point, without those that its search varies."""
    varied = parameters.load_fields[search.vary] if search else ()
    return {name: value for name, value in parameters.model_dump(mode="json").items() if name not in varied}


def _preparation(prepare: Prepare, points: Sequence[Point]) -> Prepare:
    """Return the preparation, without a data set for tools that need its space."""
    needless = any(TOOLS[point.tool].own_files for point in points)
    return prepare.model_copy(update={"prefill": False, "per_trial": None}) if needless else prepare


def _needs_volume(point: Point) -> bool:
    return TOOLS[point.tool].target.is_data_set
