"""`plimsoll run FILE`: run a benchmark on this machine, with conductor and agents as local processes."""

import sys
from pathlib import Path

import click

from plimsoll.cli.document import read_run
from plimsoll.cli.launch import LaunchError
from plimsoll.cli.local_plan import new_plan, resumed_plan
from plimsoll.cli.machine import Target, fit_to_machine
from plimsoll.cli.measuring import measure
from plimsoll.cli.place import PlaceError, make_raw_directory


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--directory", type=click.Path(exists=True, file_okay=False, path_type=Path), help="Measure files here.")
@click.option(
    "--device",
    "devices",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Measure this block device; may be repeated. DESTROYS ITS DATA.",
)
@click.option("--destroy-data", is_flag=True, help="Confirm that the data on the devices may be destroyed.")
@click.option("--output", type=click.Path(file_okay=False, path_type=Path), help="Results [plimsoll-results/NAME].")
@click.option(
    "--raw-output",
    type=click.Path(file_okay=False, path_type=Path),
    help="Keep the raw output of the tools in this directory, to check numbers with other programs.",
)
@click.option("--resume", is_flag=True, help="Continue with the first trial that is missing in the results directory.")
@click.option("--seed", type=click.IntRange(min=0), help="Seed of the order and the load; random by default.")
@click.option("--fio", default="fio", envvar="PLIMSOLL_FIO", help="The fio to run.  [env: PLIMSOLL_FIO]")
def command(
    *,
    file: Path,
    directory: Path | None,
    devices: tuple[Path, ...],
    destroy_data: bool,
    output: Path | None,
    raw_output: Path | None,
    resume: bool,
    seed: int | None,
    fio: str,
) -> None:
    """Run a BenchmarkRun FILE on this machine, without a cluster.

    A directory or block devices replace its storage; everything else is as in a cluster. Exits with 0 if no result is
    Invalid, 2 if one is, 3 if interrupted, 1 or more than 3 if the run could not be measured. A line that is only a
    bound, because the search ended with NeverBroke or BrokenAtFirst, is a Valid result.
    """
    run = read_run(file)
    results = output or Path("plimsoll-results") / run.metadata.name
    if (directory is None) == (not devices):
        message = "nothing to measure; give either --directory DIR or --device DEV"
        raise click.UsageError(message)
    target = Target(directory=directory, devices=devices)
    run = fit_to_machine(file, run, target)
    try:
        with target.claimed(run.metadata.name, destroy=destroy_data):
            raw = None if raw_output is None else make_raw_directory(raw_output, resume=resume)
            plan = resumed_plan(file, run, results) if resume else new_plan(file, run, results, seed)
            sys.exit(measure(run, plan, target, results=results, fio=fio, raw_output=raw))
    except (PlaceError, LaunchError) as error:
        raise click.ClickException(str(error)) from error
