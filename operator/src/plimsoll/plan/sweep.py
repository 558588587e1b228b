"""The sweep of one workload: fixed parameters, axes, and the typed parameters of each combination."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from itertools import product
from math import prod

from pydantic import JsonValue, ValidationError

from plimsoll.api.errors import Problem, SpecError, did_you_mean, field_path, problems_of, shown
from plimsoll.api.run import MAX_AXIS_VALUES, RunSpec, Workload
from plimsoll.tools.base import AnyTool, Timing, ToolParameters
from plimsoll.tools.registry import TOOLS

Path = tuple[int | str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """One workload with its axes. `place` is the path of its tool's parameters in the document."""

    workload: Workload
    tool: AnyTool
    place: Path
    clients: tuple[int, ...]
    fixed: Mapping[str, JsonValue]
    axes: Mapping[str, Sequence[JsonValue]]

    @property
    def timing(self) -> Timing:
        return Timing(ramp_seconds=self.workload.ramp_seconds, runtime_seconds=self.workload.runtime_seconds)

    @property
    def points(self) -> int:
        return len(self.clients) * prod(map(len, self.axes.values()))


def parse_sweep(workload: Workload, index: int, spec: RunSpec) -> Sweep:
    """Return the sweep of the workload with that index; SpecError has all problems of the workload's own fields."""
    place: Path = ("spec", "workloads", index, workload.tool)
    tool = TOOLS.get(workload.tool)
    if tool is None:
        suggestion = did_you_mean(workload.tool, TOOLS, 1) or f"the tools are {', '.join(sorted(TOOLS))}"
        remedy = f"is not a known field or tool; {suggestion}"
        raise SpecError([Problem(field=field_path(place), remedy=remedy)])
    axes = _axes(tool, workload.parameters, place)
    sweep = Sweep(
        workload=workload,
        tool=tool,
        place=place,
        clients=(1,) if tool.runs_alone else workload.clients or (spec.clients.count,),
        fixed={name: value for name, value in workload.parameters.items() if name not in axes},
        axes=axes,
    )
    # Each value of each axis is tried separately, so that an invalid one is reported once, at its own place. An invalid
    # fixed parameter is reported with every value.
    problems = [problem for axis in sweep.axes or ("",) for problem in _axis_problems(sweep, axis)]
    if problems:
        raise SpecError(list(dict.fromkeys(problems)))
    return sweep


def combinations(sweep: Sweep) -> list[ToolParameters]:
    """Return the typed parameters of every combination of axis values; SpecError if they contradict each other."""
    combined = []
    for values in product(*sweep.axes.values()):
        named = dict(zip(sweep.axes, values, strict=True))
        try:
            combined.append(_validated(sweep, {**sweep.fixed, **named}))
        except ValidationError as error:
            numbers = {name: sweep.axes[name].index(value) for name, value in named.items()}
            raise SpecError(list(_problems_at(sweep, numbers, error))) from error
    return combined


def _axes(tool: AnyTool, parameters: Mapping[str, JsonValue], place: Path) -> Mapping[str, Sequence[JsonValue]]:
    """Return the axes in the order of the tool's fields; an API server does not keep the document's order."""
    axes: dict[str, Sequence[JsonValue]] = {}
    problems: list[Problem] = []
    fields = [str(field.alias) for field in tool.parameters.model_fields.values()]
    for name in (field for field in fields if field in tool.parameters.axes and field in parameters):
        value = parameters[name]
        if isinstance(value, list) and 1 <= len(value) <= MAX_AXIS_VALUES:
            axes[name] = value
            continue
        example = f", such as [{value}]" if isinstance(value, str | int | float) else ""
        remedy = f"must be a list of 1 to {MAX_AXIS_VALUES} values{example}"
        problems.append(Problem(field=field_path((*place, name)), value=shown(value), remedy=remedy))
    if problems:
        raise SpecError(problems)
    return axes


def _axis_problems(sweep: Sweep, axis: str) -> Iterator[Problem]:
    """Try the values of one axis with the first values of all others; repeated values are problems."""
    first = {**sweep.fixed, **{name: values[0] for name, values in sweep.axes.items()}}
    seen: dict[ToolParameters, int] = {}
    for number, value in enumerate(sweep.axes.get(axis, [None])):
        parameters = {**first, axis: value} if axis else first
        try:
            typed = _validated(sweep, parameters)
        except ValidationError as error:
            yield from _problems_at(sweep, dict.fromkeys(sweep.axes, 0) | {axis: number}, error)
            continue
        if seen.setdefault(typed, number) != number:
            remedy = f"repeats {axis}[{seen[typed]}]; remove it"
            yield Problem(field=field_path((*sweep.place, axis, number)), value=shown(value), remedy=remedy)


def _problems_at(sweep: Sweep, numbers: Mapping[str, int], error: ValidationError) -> Iterator[Problem]:
    """Yield the problems of one combination, at `blockSize[1]` where its validation knows only `blockSize`."""
    places = {field_path((*sweep.place, axis)): number for axis, number in numbers.items()}
    for problem in problems_of(error, prefix=sweep.place, model=sweep.tool.parameters, whole=RunSpec):
        number = places.get(problem.field)
        yield problem if number is None else replace(problem, field=f"{problem.field}[{number}]")


def _validated(sweep: Sweep, parameters: Mapping[str, JsonValue]) -> ToolParameters:
    # Only by alias: the API server and the axes do not use names such as `io_depth`.
    typed: ToolParameters = sweep.tool.parameters.model_validate(parameters, by_alias=True, by_name=False)
    return typed


def _hash(*parts: int | str) -> bytes:
    return sha256("/".join(map(str, parts)).encode()).digest()


def shuffled(seed: int, *, pass_number: int, points: int) -> tuple[int, ...]:
    """Return the indices 0 to points-1 in the order of one pass."""
    return tuple(sorted(range(points), key=lambda point: _hash("order", seed, pass_number, point)))


def client_seed(seed: int, *, point: str, pass_number: int, client: int, attempt: int = 0) -> int:
    """Return a tool's random seed, 1 to 2**31 - 1: another one for each client, pass and attempt, because of caches."""
    later = (attempt,) if attempt else ()
    return int.from_bytes(_hash("client", seed, point, pass_number, client, *later)[:8], "big") % (2**31 - 1) + 1


def child_seed(seed: int, *, variant: str, repeat: int) -> int:
    """Return the seed of a run of a suite, so that its repetitions differ in order and load."""
    return int.from_bytes(_hash("child", seed, variant, repeat)[:7], "big")


def run_seed(uid: str) -> int:
    """Return the seed of a run that specifies none; it depends only on the object's UID."""
    return int.from_bytes(_hash("run", uid)[:7], "big")
