"""`plimsoll plan FILE`: points, time and capacity before anything is touched."""

from datetime import timedelta
from pathlib import Path

import click
from rich.console import Console
from rich.filesize import decimal
from rich.table import Table

from plimsoll.api.quantity import format_quantity
from plimsoll.api.run import BenchmarkRun
from plimsoll.cli.document import freeze, read_run
from plimsoll.plan.document import Plan
from plimsoll.plan.estimate import ASSUMED_PREFILL_BYTES_PER_SECOND, estimate


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
    console = Console()
    console.print(_table(plan))
    console.print(_costs(run, plan), highlight=False)


def _table(plan: Plan) -> Table:
    table = Table(title=f"{plan.run.name}: {len(plan.points)} points, {plan.repetitions} passes")
    for heading in ("Point", "Tool", "Parameters"):
        table.add_column(heading, overflow="fold")
    for heading in ("Clients", "Ramp", "Runtime"):
        table.add_column(heading, justify="right")
    for point in plan.points:
        table.add_row(
            point.name,
            point.tool,
            point.label,
            f"{point.clients}/{plan.clients}",
            f"{point.ramp_seconds} s",
            f"{point.runtime_seconds} s",
        )
    return table


def _costs(run: BenchmarkRun, plan: Plan) -> str:
    cost = estimate(plan, run.spec.storage)
    rate = format_quantity(ASSUMED_PREFILL_BYTES_PER_SECOND)
    lines = [
        f"Trials     {cost.trials}, each pass in its own shuffled order (seed {plan.seed})",
        f"Measuring  {timedelta(seconds=cost.measuring_seconds)} without repeated attempts",
        f"Prefill    {timedelta(seconds=cost.prefill_seconds)} if every client writes {rate}/s, "
        f"then {cost.settle_seconds} s to settle",
        f"Total      {timedelta(seconds=cost.total_seconds)} of at most "
        f"{timedelta(seconds=plan.timeouts.total_seconds)} (timeouts.totalSeconds)",
        f"Capacity   {_size(cost.data_bytes)} of data, {_size(cost.stored_bytes)} with replicas or coding chunks",
    ]
    return "\n".join(lines)


def _size(size: int) -> str:
    return decimal(size, separator=" ")
