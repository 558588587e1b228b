"""What a plan with searches for the line says about comparisons."""

import io
from pathlib import Path

from rich.console import Console

from plimsoll.api.run import load_run
from plimsoll.cli.plan import assumptions_of, power_table
from plimsoll.plan.document import Plan
from plimsoll.plan.expand import make_plan
from support.line_results import SEARCH

QUICKSTART = Path(__file__).parents[1] / "golden" / "plan-v1-quickstart.yaml"
NOTE = "Searches for the line are not included"


def power(plan: Plan) -> list[str]:
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(power_table(plan, assumptions_of(3, 8, 0)))
    return console.export_text().splitlines()


def plan_with(searches: int) -> Plan:
    """Return the quick start's plan, whose first points are searches."""
    plan = make_plan(load_run(QUICKSTART.read_text()), seed=1)
    points = tuple(
        point.model_copy(update={"line": SEARCH if number < searches else None})
        for number, point in enumerate(plan.points)
    )
    return plan.model_copy(update={"points": points})


def test_searches_do_not_count_as_points_with_trials() -> None:
    everything = power(plan_with(0))
    assert not any(NOTE in line for line in everything)
    last_but_one = power(plan_with(len(plan_with(0).points) - 1))
    assert last_but_one[0].startswith("10 % less rate at the point is a Regression")
    assert last_but_one[-1].startswith(NOTE)


def test_a_plan_of_searches_has_only_the_note() -> None:
    (line,) = power(plan_with(len(plan_with(0).points)))
    assert line.startswith(NOTE)
