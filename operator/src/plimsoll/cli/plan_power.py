"""What a comparison of two runs of a plan could find, in the terminal."""

from collections.abc import Callable
from typing import Any, TypeVar

import click
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from plimsoll.api.names import LatencyKind
from plimsoll.api.run import MAX_REPETITIONS
from plimsoll.measure.compare.noise import Assumptions, Chance, PlannedWorkload, power_of
from plimsoll.measure.compare.tests import MOST_TRIALS
from plimsoll.plan.document import Plan, Point
from plimsoll.tools.registry import TOOLS

_DEFAULT = Assumptions()
_PERCENT = 100
_NEARLY = 0.995
_SEARCHES = (
    "Searches for the line are not included: repetitions do not apply to them, and precisionPercent sets their "
    "precision."
)

F = TypeVar("F", bound=Callable[..., Any])


def power_options(function: F) -> F:
    """Add the options of `assumptions_of`."""
    options = (
        click.option(
            "--scatter-rate",
            type=click.FloatRange(min=0.1, max=100),
            default=_DEFAULT.rate * _PERCENT,
            show_default=True,
            help="Assumed scatter of a point's rate from trial to trial, in percent.",
        ),
        click.option(
            "--scatter-latency",
            type=click.FloatRange(min=0.1, max=100),
            default=_DEFAULT.latency * _PERCENT,
            show_default=True,
            help="Assumed scatter of its p99, in percent.",
        ),
        click.option(
            "--pass-correlation",
            type=click.FloatRange(min=0, max=0.99),
            default=_DEFAULT.correlation,
            show_default=True,
            help="Assumed correlation of the noise of different points in the same pass.",
        ),
    )
    for option in reversed(options):
        function = option(function)
    return function


def assumptions_of(scatter_rate: float, scatter_latency: float, pass_correlation: float) -> Assumptions:
    """Return the assumptions of these options."""
    return Assumptions(rate=scatter_rate / _PERCENT, latency=scatter_latency / _PERCENT, correlation=pass_correlation)


def power_heading(assumed: Assumptions) -> str:
    """Return what the chances in `power_table` are of."""
    rule = assumed.rule
    shared = f"correlates by {assumed.correlation:g} between points" if assumed.correlation else "is each point's own"
    return (
        f"Comparing two such runs, if trials scatter by {_PERCENT * assumed.rate:g} % (rate) and "
        f"{_PERCENT * assumed.latency:g} % (p99), the noise of a pass {shared}, and runs differ in nothing else; "
        f"tolerated are {_PERCENT * rule.rate:g} % less rate and {_PERCENT * rule.latency:g} % more latency:"
    )


def power_table(plan: Plan, assumed: Assumptions) -> RenderableType:
    """Return how likely changes are found with the planned repetitions, and how many make it 90 %."""
    measured = _measured(plan)
    if len(measured) == len(plan.points):
        return _chances(plan, assumed)
    return Group(*([_chances(plan, assumed)] if measured else []), Text(_SEARCHES))


def _chances(plan: Plan, assumed: Assumptions) -> Table:
    power = power_of(_workloads(plan), plan.repetitions, assumed)
    loss = f"{_PERCENT * assumed.loss:g} % less rate"
    table = Table.grid("", "", "", padding=(0, 2, 0, 0))
    several = len(_measured(plan)) > 1
    for name, chance in (
        (f"{loss} at all points of a workload is a Regression", power.everywhere if several else None),
        (f"{loss} at {'one point' if several else 'the point'} is a Regression", power.somewhere),
        ("No change is NoRegression", power.nothing),
    ):
        if chance is not None:
            table.add_row(Text(name), Text(_probability(chance.probability), justify="right"), Text(_enough(chance)))
    return table


def _workloads(plan: Plan) -> list[PlannedWorkload]:
    measured = _measured(plan)
    names = dict.fromkeys(point.workload for point in measured)
    return [_workload([point.tool for point in measured if point.workload == name]) for name in names]


def _measured(plan: Plan) -> list[Point]:
    """Return the points that are measured at one load, with one trial in each pass."""
    return [point for point in plan.points if point.line is None]


def _workload(tools: list[str]) -> PlannedWorkload:
    kinds = {TOOLS[tool].quantities.latency for tool in tools if tool in TOOLS}
    return PlannedWorkload(points=len(tools), has_latency=LatencyKind.FULL in kinds)


def _probability(probability: float) -> str:
    return "> 99 %" if probability > _NEARLY else f"{_PERCENT * probability:.0f} %"


def _enough(chance: Chance) -> str:
    if chance.enough is None:
        return f"90 % would take more than {MOST_TRIALS} repetitions"
    if chance.enough > MAX_REPETITIONS:
        return f"90 % would take {chance.enough} repetitions; a run has at most {MAX_REPETITIONS}"
    return f"90 % from {chance.enough} repetitions on"
