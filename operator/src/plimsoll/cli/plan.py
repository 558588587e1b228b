"""`plimsoll plan FILE`: points, time and capacity before anything is touched."""

from datetime import timedelta
from pathlib import Path

import click
from rich.filesize import decimal
from rich.table import Table
from rich.text import Text

from plimsoll.api.quantity import format_quantity
from plimsoll.api.run import BenchmarkRun
from plimsoll.cli.document import freeze, read_run
from plimsoll.cli.fitted import stdout_console
from plimsoll.plan.document import Plan
from plimsoll.plan.estimate import ASSUMED_PREFILL_BYTES_PER_SECOND, Estimate, estimate

# What the columns that may be folded need at least.
_NAME_COLUMNS = 20
_LABEL_COLUMNS = 14


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("-o", "--output", type=click.Choice(["table", "json"]), default="table", show_default=True)
@click.option("--seed", type=click.IntRange(min=0), help="Seed of the order; random if not given.")
def command(*, file: Path, output: str, seed: int | None) -> None:
    """Show what a BenchmarkRun FILE will do: its points, how long it takes, how much room it needs."""
    run = read_run(file)
    plan = freeze(file, run, seed)
    if output == "json":
        click.echo(plan.model_dump_json(indent=1))
        return
    console = stdout_console()
    for part in (plan.run.name, _table(plan), "", _costs(run, plan)):
        console.print(part, highlight=False)


def _table(plan: Plan) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    longest = max(len(point.name) for point in plan.points)
    table.add_column("Point", overflow="fold", min_width=min(longest, _NAME_COLUMNS))
    table.add_column("Tool", no_wrap=True)
    table.add_column("Parameters", overflow="fold", min_width=_LABEL_COLUMNS)
    for heading in ("Clients", "Ramp + run"):
        table.add_column(heading, justify="right", no_wrap=True)
    for point in plan.points:
        table.add_row(
            point.name,
            point.tool,
            Text(point.label),
            f"{point.clients}/{plan.clients}",
            f"{point.ramp_seconds} + {point.runtime_seconds} s",
        )
    return table


def _costs(run: BenchmarkRun, plan: Plan) -> Table:
    cost = estimate(plan, run.spec.storage)
    rate = format_quantity(ASSUMED_PREFILL_BYTES_PER_SECOND)
    limit = timedelta(seconds=plan.timeouts.total_seconds)
    table = Table.grid("", "", padding=(0, 2, 0, 0))
    for name, text in (
        ("Points", f"{cost.points} in {plan.repetitions} passes, each in its own shuffled order (seed {plan.seed})"),
        ("Trials", f"{cost.trials}, and repeated attempts"),
        ("Measuring", f"{timedelta(seconds=cost.measuring_seconds)} without repeated attempts"),
        ("Prefill", _prefill(plan, cost, rate)),
        ("Settling", f"{cost.settle_seconds} s"),
        ("Total", f"{timedelta(seconds=cost.total_seconds)} of at most {limit} (timeouts.totalSeconds)"),
        ("Capacity", f"{_size(cost.data_bytes)} of data, {_size(cost.stored_bytes)} with replicas or coding chunks"),
    ):
        table.add_row(Text(name, style="bold"), Text(text))
    return table


def _prefill(plan: Plan, cost: Estimate, rate: str) -> str:
    if not plan.prepare.prefill:
        return "none"
    return f"{timedelta(seconds=cost.prefill_seconds)} if every client writes {rate}/s"


def _size(size: int) -> str:
    return decimal(size, separator=" ")
