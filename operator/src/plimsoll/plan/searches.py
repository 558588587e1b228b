"""Searches for the line that cannot find one, with their remedies."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import ceil

from plimsoll.api.errors import Problem, field_path
from plimsoll.api.line import LineSearch, Vary
from plimsoll.measure.histogram import MINIMUM_BEYOND
from plimsoll.measure.line.model import Settings
from plimsoll.plan.line import settings_of
from plimsoll.plan.rules import cannot_vary
from plimsoll.plan.sweep import Sweep
from plimsoll.tools.base import Timing, ToolParameters
from plimsoll.tools.registry import TOOLS

_LATENCIES_OF_A_TRIAL = 10
"""In an open loop, a trial lasts at least so many times as long as the highest latency that meets an objective.

A storage that completes less than arrives falls behind ever further; in a short trial no operation would be late yet.
"""

_LOADS = {Vary.RATE: "operations per second", Vary.DEPTH: "operations in flight"}


def impossible_searches(sweep: Sweep, points: Sequence[ToolParameters]) -> Iterator[Problem]:
    """Yield what makes the search of a workload impossible, each problem once; nothing without a search."""
    search = sweep.workload.line
    if search is None:
        return
    if search.vary not in sweep.tool.parameters.load_fields:
        yield _problem(sweep, "line.vary", search.vary, cannot_vary(TOOLS, search.vary))
        return
    found = [problem for parameters in points for problem in _conflicts(sweep, search, parameters)]
    if not found:
        found = [
            problem
            for clients in sweep.clients
            for parameters in points
            for problem in _loads(sweep, search, parameters, clients)
        ]
    yield from dict.fromkeys(found)


def with_a_load(sweep: Sweep, parameters: ToolParameters) -> ToolParameters:
    """Return the parameters of a probe with some load; the same ones without a search, or if it has conflicts."""
    search = sweep.workload.line
    if search is None or search.vary not in parameters.load_fields or any(_conflicts(sweep, search, parameters)):
        return parameters
    return parameters.at_load(search.vary, parameters.load_step(search.vary))


def _conflicts(sweep: Sweep, search: LineSearch, parameters: ToolParameters) -> Iterator[Problem]:
    """Yield parameters that hold the load themselves, or that do not go with a varied load."""
    fixed = parameters.model_dump(mode="json")
    defaults = {str(field.alias): field.default for field in type(parameters).model_fields.values()}
    for name in parameters.load_fields[search.vary]:
        if fixed[name] != defaults[name]:
            remedy = (
                f"must be absent, because line varies it; remove it, or remove line to measure at {name} {fixed[name]} "
                "only"
            )
            yield _problem(sweep, f"{sweep.tool.key}.{name}", None, remedy)
    for name, remedy in parameters.search_conflicts(search.vary):
        yield _problem(sweep, f"{sweep.tool.key}.{name}", None, remedy)


def _loads(sweep: Sweep, search: LineSearch, parameters: ToolParameters, clients: int) -> Iterator[Problem]:
    """Yield bounds between which no load can be offered, and a first load that is too low or a limit too high."""
    step, unit = clients * parameters.load_step(search.vary), _LOADS[search.vary]
    try:
        settings = settings_of(search, parameters, clients)
    except ValueError:
        remedy = (
            f"is lower than every load that {clients} clients and their jobs can share evenly, which are multiples of "
            f"{step} {unit}; raise it to at least {step}"
        )
        yield _problem(sweep, "line.limit", search.limit, remedy)
        return
    workload = sweep.workload
    timing = Timing(ramp_seconds=workload.ramp_seconds, runtime_seconds=workload.runtime_seconds)
    most = clients * parameters.most_load(search.vary, timing)
    if settings.highest > most:
        remedy = (
            f"is more than {clients} clients with {parameters.search_label(search.vary)} can offer, which is {most} "
            f"{unit}; lower it, or raise jobs or clients"
        )
        yield _problem(sweep, "line.limit", search.limit, remedy)
    if search.vary is Vary.RATE:
        yield from _unknown_percentiles(sweep, search, settings, parameters.least_percent)
        yield from _hidden_backlogs(sweep, search)


def _unknown_percentiles(sweep: Sweep, search: LineSearch, settings: Settings, least_percent: int) -> Iterator[Problem]:
    """Yield a first load whose trials have too few operations for a percentile: none of them would count.

    `least_percent` are those of the rarest kind of operation in percent of all.
    """
    runtime = sweep.workload.runtime_seconds
    percentile = max((objective.percentile for objective in search.objectives), key=Fraction)
    needed = ceil(MINIMUM_BEYOND / (1 - Fraction(percentile) / 100) * 100 / least_percent)
    first = settings.offered(search.start)
    if first * runtime < needed:
        remedy = (
            f"offers {first * runtime:.0f} operations in {runtime} s, but percentile {percentile} needs {needed}, so "
            f"that {MINIMUM_BEYOND} are beyond it; raise it to at least {-(-needed // runtime)}, or runtimeSeconds to "
            f"at least {ceil(needed / first)}, or choose a lower percentile"
        )
        yield _problem(sweep, "line.start", search.start, remedy)


def _hidden_backlogs(sweep: Sweep, search: LineSearch) -> Iterator[Problem]:
    """Yield a runtime in which a storage that carries clearly less than the line would not be late yet."""
    runtime = sweep.workload.runtime_seconds
    longest = max(objective.latency_microseconds for objective in search.objectives)
    needed = ceil(Fraction(_LATENCIES_OF_A_TRIAL * longest, 10**6))
    if runtime < needed:
        remedy = (
            f"is less than {_LATENCIES_OF_A_TRIAL} times the {longest / 10**6:.3g} s that operations may take, so "
            f"that a backlog which grows until the end would not be late; raise it to at least {needed}, or lower "
            "latencyMicroseconds"
        )
        yield _problem(sweep, "runtimeSeconds", runtime, remedy)


def _problem(sweep: Sweep, field: str, value: object, remedy: str) -> Problem:
    place = field_path((*sweep.place[:-1], *field.split(".")))
    return Problem(field=place, value="" if value is None else str(value), remedy=remedy)
