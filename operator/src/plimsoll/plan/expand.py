"""Sweep expansion: a workload whose parameters may be lists becomes one point per combination."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product

from pydantic import JsonValue, ValidationError

from plimsoll.api.errors import Problem, SpecError, field_path, problems_of, shown
from plimsoll.api.run import MAX_AXIS_VALUES, BenchmarkRun, Workload
from plimsoll.plan.document import MAX_POINTS, Plan, Point, RunIdentity
from plimsoll.plan.order import shuffled
from plimsoll.tools.base import TargetKind, Tool, ToolParameters
from plimsoll.tools.registry import TOOLS

Path = tuple[int | str, ...]


def make_plan(run: BenchmarkRun, *, seed: int, runner_image: str = "") -> Plan:
    """Freeze a run.

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
        order=tuple(
            shuffled(seed, pass_number=number, points=len(points)) for number in range(spec.repetitions)
        ),
        volume=spec.storage.volume if spec.storage else None,
        prepare=spec.prepare,
        gates=spec.gates,
        timeouts=spec.timeouts,
    )


def expand(run: BenchmarkRun) -> tuple[Point, ...]:
    """Return the points of a run, workload by workload, the last axis fastest.

    Raises:
        SpecError: with every problem of every workload.

    """
    points: list[Point] = []
    problems: list[Problem] = []
    for index, workload in enumerate(run.spec.workloads):
        try:
            points += _points_of(workload, index, run)
        except SpecError as error:
            problems += error.problems
    if not problems and len(points) > MAX_POINTS:
        remedy = f"expands to {len(points)} points, but a run has at most {MAX_POINTS}; shorten an axis or split the run"
        problems.append(Problem(field="spec.workloads", remedy=remedy))
    if problems:
        raise SpecError(problems)
    return tuple(points)


def _points_of(workload: Workload, index: int, run: BenchmarkRun) -> Iterator[Point]:
    place: Path = ("spec", "workloads", index, workload.tool)
    tool = _tool_of(workload, place)
    if tool.target is TargetKind.VOLUME and run.spec.storage is None:
        remedy = f"is required, because workload {workload.name} runs {tool.key} on a volume; add storage with a volume"
        raise SpecError([Problem(field="spec.storage", remedy=remedy)])
    combinations = _combinations(tool, workload.parameters, place)
    counts = workload.clients or (run.spec.clients.count,)
    for number, (clients, parameters) in enumerate(product(counts, combinations)):
        yield Point(
            name=f"{workload.name}-{number:03d}",
            workload=workload.name,
            tool=tool.key,
            parameters=parameters.model_dump(mode="json"),
            label=parameters.label(),
            clients=clients,
            runtime_seconds=workload.runtime_seconds,
            ramp_seconds=workload.ramp_seconds,
        )


def _tool_of(workload: Workload, place: Path) -> Tool:
    tool = TOOLS.get(workload.tool)
    if tool is None:
        remedy = f"is not a known field or tool; the tools are {', '.join(sorted(TOOLS))}"
        raise SpecError([Problem(field=field_path(place), remedy=remedy)])
    return tool


def _combinations(tool: Tool, parameters: Mapping[str, JsonValue], place: Path) -> Sequence[ToolParameters]:
    """Return the typed parameters of every combination of axis values.

    Every value is tried once on its own first, so that a bad one is reported once and at its own place.
    """
    axes = {name: _axis(name, value, place) for name, value in parameters.items() if name in tool.parameters.axes}
    fixed = {name: value for name, value in parameters.items() if name not in axes}
    first = fixed | {name: values[0] for name, values in axes.items()}
    problems = list(_problems(tool, first, dict.fromkeys(axes, 0), place))
    for name, values in axes.items():
        for number, value in enumerate(values[1:], start=1):
            found = _problems(tool, first | {name: value}, dict.fromkeys(axes, 0) | {name: number}, place)
            problems += [problem for problem in found if problem not in problems]
    if problems:
        raise SpecError(problems)
    return [
        _decode(tool, fixed | dict(zip(axes, values, strict=True)), place) for values in product(*axes.values())
    ]


def _axis(name: str, value: JsonValue, place: Path) -> list[JsonValue]:
    if not isinstance(value, list) or not 1 <= len(value) <= MAX_AXIS_VALUES:
        remedy = f"must be a list of 1 to {MAX_AXIS_VALUES} values, such as [{value if not isinstance(value, list) else '…'}]"
        raise SpecError([Problem(field=field_path((*place, name)), value=shown(value), remedy=remedy)])
    texts = [str(item) for item in value]
    if len(set(texts)) != len(texts):
        remedy = "lists a value twice; every value of an axis must occur once"
        raise SpecError([Problem(field=field_path((*place, name)), remedy=remedy)])
    return value


def _problems(
    tool: Tool, parameters: Mapping[str, JsonValue], numbers: Mapping[str, int], place: Path
) -> Iterator[Problem]:
    try:
        tool.parameters.model_validate(parameters)
    except ValidationError as error:
        for problem in problems_of(error, prefix=place):
            yield _at_its_number(problem, numbers, place)


def _at_its_number(problem: Problem, numbers: Mapping[str, int], place: Path) -> Problem:
    """Point at `blockSize[1]` where the validation of one combination knows only `blockSize`."""
    for name, number in numbers.items():
        if problem.field == field_path((*place, name)):
            return Problem(field=f"{problem.field}[{number}]", value=problem.value, remedy=problem.remedy)
    return problem


def _decode(tool: Tool, parameters: Mapping[str, JsonValue], place: Path) -> ToolParameters:
    try:
        return tool.parameters.model_validate(parameters)
    except ValidationError as error:
        raise SpecError(problems_of(error, prefix=place)) from error
