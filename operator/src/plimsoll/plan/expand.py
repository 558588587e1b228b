"""Sweep expansion: a workload whose parameters may be lists becomes one point per combination."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod

from pydantic import JsonValue, ValidationError

from plimsoll.api.errors import Problem, SpecError, field_path, problems_of
from plimsoll.api.quantity import format_quantity
from plimsoll.api.run import MAX_AXIS_VALUES, BenchmarkRun, RunSpec, Workload
from plimsoll.api.storage import Volume
from plimsoll.api.wording import shown
from plimsoll.plan.ceph import ceph_target
from plimsoll.plan.document import MAX_POINTS, Plan, Point, RunIdentity
from plimsoll.plan.order import shuffled
from plimsoll.tools.base import (
    DataSet,
    ImageTarget,
    Roles,
    StepContext,
    StepKind,
    TargetKind,
    Timing,
    Tool,
    ToolParameters,
    VolumeKind,
    VolumeTarget,
)
from plimsoll.tools.registry import TOOLS

_MIB = 2**20

Path = tuple[int | str, ...]

_PREFILLED = (TargetKind.VOLUME, TargetKind.IMAGE)
"""Targets that hold nothing before somebody writes to them: each client's data set."""

_OF_CEPH = (TargetKind.IMAGE, TargetKind.POOL, TargetKind.OSDS)


def make_plan(
    run: BenchmarkRun, *, seed: int, runner_image: str = "", environment: Mapping[str, JsonValue] | None = None
) -> Plan:
    """Freeze a run. `environment` is what is known of the platform: see `Plan`.

    Raises:
        SpecError: if a tool or a parameter is not known or not possible, or there are more than 512 points.

    """
    points = expand(run)
    spec = run.spec
    return Plan(
        run=RunIdentity(name=run.metadata.name, namespace=run.metadata.namespace, uid=run.metadata.uid),
        runner_image=runner_image,
        seed=seed,
        clients=spec.clients.count,
        repetitions=spec.repetitions,
        points=points,
        order=tuple(shuffled(seed, pass_number=number, points=len(points)) for number in range(spec.repetitions)),
        volume=spec.storage.volume if spec.storage and any(map(_needs_volume, points)) else None,
        ceph=ceph_target(run),
        network_bytes_per_second=spec.clients.network_bytes_per_second,
        environment=dict(environment or {}),
        prepare=spec.prepare,
        gates=spec.gates,
        timeouts=spec.timeouts,
    )


def expand(run: BenchmarkRun) -> tuple[Point, ...]:
    """Return the points of a run, workload by workload, the last axis fastest.

    Raises:
        SpecError: with every problem of every workload.

    """
    sweeps: list[_Sweep] = []
    problems: list[Problem] = []
    for index, workload in enumerate(run.spec.workloads):
        try:
            sweeps.append(_sweep(workload, index, run))
        except SpecError as error:
            problems += error.problems
    # Counted before it is made: a few long axes would be millions of points.
    count = sum(sweep.points for sweep in sweeps)
    if count > MAX_POINTS:
        remedy = f"expands to {count} points, but a run has at most {MAX_POINTS}; shorten an axis or split the run"
        problems.append(Problem(field="spec.workloads", remedy=remedy))
    if problems:
        raise SpecError(problems)
    combinations = [_combinations(sweep) for sweep in sweeps]
    if not run.spec.prepare.prefill:
        _refuse_reads(sweeps, combinations)
    _refuse_large_overwrites(run.spec)
    _refuse_unfit(run, sweeps, combinations)
    return tuple(
        point for sweep, parameters in zip(sweeps, combinations, strict=True) for point in _points(sweep, parameters)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sweep:
    """One workload, taken apart. `place` is where its tool's parameters stand in the document."""

    workload: Workload
    tool: Tool
    place: Path
    clients: tuple[int, ...]
    fixed: Mapping[str, JsonValue]
    axes: Mapping[str, Sequence[JsonValue]]

    @property
    def points(self) -> int:
        """Return how many there will be."""
        return len(self.clients) * prod(map(len, self.axes.values()))


def _sweep(workload: Workload, index: int, run: BenchmarkRun) -> _Sweep:
    place: Path = ("spec", "workloads", index, workload.tool)
    tool = _tool_of(workload, place)
    _refuse_without_storage(tool, workload, run.spec)
    parameters = workload.parameters
    axes = _axes(tool, parameters, place)
    sweep = _Sweep(
        workload=workload,
        tool=tool,
        place=place,
        clients=_clients_axis(tool, workload, run.spec, place),
        fixed={name: value for name, value in parameters.items() if name not in axes},
        axes=axes,
    )
    _check_values(sweep)
    return sweep


def _refuse_without_storage(tool: Tool, workload: Workload, spec: RunSpec) -> None:
    """Refuse a tool that has nothing to work on."""
    storage = spec.storage
    runs = f"because workload {workload.name} runs {tool.key}"
    if tool.target in _PREFILLED and (storage is None or storage.volume is None):
        field = "spec.storage" if storage is None else "spec.storage.volume"
        raise SpecError([Problem(field=field, remedy=f"is required, {runs} on a volume; add storage with a volume")])
    if tool.target in _OF_CEPH and (storage is None or (storage.rook is None and storage.ceph is None)):
        remedy = f"must have rook or ceph, {runs}, which talks to Ceph itself; name the cluster"
        raise SpecError([Problem(field="spec.storage", remedy=remedy)])
    if tool.target is TargetKind.IMAGE and storage and storage.volume and storage.volume.access != "LibRBD":
        remedy = f"must be LibRBD, {runs} on an RBD image; set it to LibRBD"
        raise SpecError([Problem(field="spec.storage.volume.access", value=storage.volume.access, remedy=remedy)])


def _clients_axis(tool: Tool, workload: Workload, spec: RunSpec, place: Path) -> tuple[int, ...]:
    """Return how many clients take part in the points of a workload."""
    if tool.roles is not Roles.ACTOR:
        return workload.clients or (spec.clients.count,)
    if workload.clients not in {None, (1,)}:
        remedy = f"has no meaning for {tool.key}, which one client runs for all; leave it out"
        raise SpecError([Problem(field=field_path((*place[:-1], "clients")), remedy=remedy)])
    return (1,)


def _needs_volume(point: Point) -> bool:
    return TOOLS[point.tool].target in _PREFILLED


def _points(sweep: _Sweep, combinations: Sequence[ToolParameters]) -> Iterator[Point]:
    workload = sweep.workload
    for number, (clients, parameters) in enumerate(product(sweep.clients, combinations)):
        yield Point(
            name=f"{workload.name}-{number:03d}",
            workload=workload.name,
            tool=sweep.tool.key,
            parameters=parameters.model_dump(mode="json"),
            label=parameters.label(),
            clients=clients,
            runtime_seconds=workload.runtime_seconds,
            ramp_seconds=workload.ramp_seconds,
        )


def _refuse_unfit(
    run: BenchmarkRun, sweeps: Sequence[_Sweep], combinations: Sequence[Sequence[ToolParameters]]
) -> None:
    """Refuse what a tool cannot do on the planned volume: blocks larger than it, a trim in a file system."""
    problems: list[Problem] = []
    for sweep, points in zip(sweeps, combinations, strict=True):
        volume = run.spec.storage.volume if run.spec.storage else None
        if volume is None or sweep.tool.target not in _PREFILLED:
            continue
        for parameters in points:
            context = _planned_context(volume, run.spec.prepare.fill_percent, sweep.workload)
            try:
                sweep.tool.command(parameters, context)
            except ValueError as error:
                problems.append(Problem(field=field_path(sweep.place), remedy=f"{parameters.label()}: {error}"))
    if problems:
        raise SpecError(problems)


def _refuse_large_overwrites(spec: RunSpec) -> None:
    """Refuse to overwrite in blocks of which not one fits into the data set."""
    precondition = spec.prepare.precondition
    if spec.storage is None or spec.storage.volume is None or precondition is None:
        return
    size = _planned_size(spec.storage.volume, spec.prepare.fill_percent)
    if precondition.block_size > size:
        remedy = f"is more than the data set of {format_quantity(size)}; lower it, or enlarge spec.storage.volume.size"
        value = format_quantity(precondition.block_size)
        raise SpecError([Problem(field="spec.prepare.precondition.blockSize", value=value, remedy=remedy)])


def _planned_size(volume: Volume, fill_percent: int) -> int:
    """Return the bytes of one client's data set: whole MiB."""
    size = volume.size if volume.mode == "Block" else volume.size * fill_percent // 100
    return max(1, size // _MIB) * _MIB


def _planned_context(volume: Volume, fill_percent: int, workload: Workload) -> StepContext:
    return StepContext(
        step=StepKind.MEASURE,
        target=_planned_target(volume, _planned_size(volume, fill_percent)),
        timing=Timing(ramp_seconds=workload.ramp_seconds, runtime_seconds=workload.runtime_seconds),
        seed=1,
        work_directory="planned",
    )


def _planned_target(volume: Volume, size: int) -> DataSet:
    if volume.access == "LibRBD":
        return ImageTarget(pool="planned", image="planned", user="planned", size=size, cache=volume.rbd_cache)
    kind = VolumeKind.DEVICE if volume.mode == "Block" else VolumeKind.FILE
    return VolumeTarget(kind=kind, path="planned", size=size)


def _refuse_reads(sweeps: Sequence[_Sweep], combinations: Sequence[Sequence[ToolParameters]]) -> None:
    """Refuse to read what nobody wrote; the numbers would be those of the client's memory."""
    reading = [
        sweep.workload.name
        for sweep, parameters in zip(sweeps, combinations, strict=True)
        if sweep.tool.target in _PREFILLED and any(one.reads_data for one in parameters)
    ]
    if reading:
        remedy = (
            f"must be true, because {', '.join(reading)} would read extents that nobody wrote, and such reads are "
            "answered without touching the storage; set it to true, or leave out the workloads that read"
        )
        raise SpecError([Problem(field="spec.prepare.prefill", value="false", remedy=remedy)])


def _tool_of(workload: Workload, place: Path) -> Tool:
    tool = TOOLS.get(workload.tool)
    if tool is None:
        remedy = f"is not a known field or tool; the tools are {', '.join(sorted(TOOLS))}"
        raise SpecError([Problem(field=field_path(place), remedy=remedy)])
    return tool


def _axes(tool: Tool, parameters: Mapping[str, JsonValue], place: Path) -> Mapping[str, Sequence[JsonValue]]:
    """Return the axes in the order of the tool's fields: an API server does not keep that of the document."""
    axes: dict[str, Sequence[JsonValue]] = {}
    problems: list[Problem] = []
    fields = [str(field.alias) for field in tool.parameters.model_fields.values()]
    for name in (field for field in fields if field in tool.parameters.axes and field in parameters):
        try:
            axes[name] = _axis(name, parameters[name], place)
        except SpecError as error:
            problems += error.problems
    if problems:
        raise SpecError(problems)
    return axes


def _check_values(sweep: _Sweep) -> None:
    """Try every value of every axis on its own, so that a bad one is reported once and at its own place.

    Raises:
        SpecError: with every problem of the workload's parameters.

    """
    problems: list[Problem] = []
    for name in sweep.axes or ("",):
        problems += _axis_problems(sweep, name)
    if problems:
        # A fixed parameter is as wrong with every value of an axis.
        raise SpecError(list(dict.fromkeys(problems)))


def _axis_problems(sweep: _Sweep, axis: str) -> Iterator[Problem]:
    """Try the values of one axis with the first value of every other. Of equal values all but one are problems."""
    first = {**sweep.fixed, **{name: values[0] for name, values in sweep.axes.items()}}
    seen: dict[ToolParameters, int] = {}
    for number, value in enumerate(sweep.axes.get(axis, [None])):
        parameters = {**first, axis: value} if axis else first
        try:
            typed = _validated(sweep, parameters)
        except ValidationError as error:
            numbers = dict.fromkeys(sweep.axes, 0) | {axis: number}
            found = problems_of(error, prefix=sweep.place)
            yield from (_at_its_number(problem, numbers, sweep.place) for problem in found)
            continue
        if seen.setdefault(typed, number) != number:
            remedy = f"is the same as {axis}[{seen[typed]}]; every value must occur once"
            yield Problem(field=field_path((*sweep.place, axis, number)), value=shown(value), remedy=remedy)


def _combinations(sweep: _Sweep) -> list[ToolParameters]:
    """Return the typed parameters of every combination of axis values."""
    return [_decode(sweep, dict(zip(sweep.axes, values, strict=True))) for values in product(*sweep.axes.values())]


def _axis(name: str, value: JsonValue, place: Path) -> Sequence[JsonValue]:
    if not isinstance(value, list) or not 1 <= len(value) <= MAX_AXIS_VALUES:
        example = f", such as [{value}]" if isinstance(value, str | int | float) else ""
        remedy = f"must be a list of 1 to {MAX_AXIS_VALUES} values{example}"
        raise SpecError([Problem(field=field_path((*place, name)), value=shown(value), remedy=remedy)])
    return value


def _at_its_number(problem: Problem, numbers: Mapping[str, int], place: Path) -> Problem:
    """Point at `blockSize[1]` where the validation of one combination knows only `blockSize`."""
    for name, number in numbers.items():
        if problem.field == field_path((*place, name)):
            return replace(problem, field=f"{problem.field}[{number}]")
    return problem


def _decode(sweep: _Sweep, values: Mapping[str, JsonValue]) -> ToolParameters:
    try:
        return _validated(sweep, {**sweep.fixed, **values})
    except ValidationError as error:
        numbers = {name: sweep.axes[name].index(value) for name, value in values.items()}
        found = problems_of(error, prefix=sweep.place)
        raise SpecError([_at_its_number(problem, numbers, sweep.place) for problem in found]) from error


def _validated(sweep: _Sweep, parameters: Mapping[str, JsonValue]) -> ToolParameters:
    # By alias alone: `io_depth` is no name that the API server knows, nor that of an axis.
    return sweep.tool.parameters.model_validate(parameters, by_alias=True, by_name=False)
