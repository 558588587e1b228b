"""`plimsoll suite run FILE`: one round of a suite on this machine."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from plimsoll.api.names import Verdict
from plimsoll.api.suite import BenchmarkSuite
from plimsoll.cli.launch import LaunchError
from plimsoll.cli.local_storage import PlaceError, Target, fit_to_machine
from plimsoll.cli.options import freeze, freeze_variants, read_suite
from plimsoll.cli.run import EXIT_INVALID, measure, new_plan, resumed_plan
from plimsoll.cli.suite_results import show_findings
from plimsoll.cli.suite_round import Round, begin, findings_of, results_of_round, resume, unfinished
from plimsoll.cli.tables import stdout_console
from plimsoll.conductor.main import EXIT_COMPLETE, EXIT_INTERRUPTED
from plimsoll.conductor.sink import PLAN_FILE
from plimsoll.report.view import first_few
from plimsoll.suite.children import Child, variant_runs


def targets_of(variants: Sequence[str], values: Sequence[str]) -> Mapping[str, Target]:
    """Return the target of each variant.

    A value is `VARIANT=PATH`, or `PATH` for all variants without a target of their own.

    Raises:
        click.UsageError: a variant has no target, or a path cannot be one.

    """
    paths: dict[str, list[Path]] = {}
    for value in values:
        name, path = _split(variants, value)
        paths.setdefault(name, []).append(path)
    return {variant: _target(variant, paths.get(variant) or paths.get("", [])) for variant in variants}


def _split(variants: Sequence[str], value: str) -> tuple[str, Path]:
    """Return the variant, empty for all, and the path."""
    name, equals, path = value.partition("=")
    if equals and name in variants:
        return name, Path(path)
    if equals and not Path(value).exists():
        message = f"--target {value}: {name} is no variant of this suite; its variants are {', '.join(variants)}"
        raise click.UsageError(message)
    return "", Path(value)


def _target(variant: str, paths: Sequence[Path]) -> Target:
    if not paths:
        message = f"variant {variant} has no target; give --target {variant}=DIR|DEVICE, or --target DIR|DEVICE for all"
        raise click.UsageError(message)
    absent = next((path for path in paths if not path.exists()), None)
    if absent is not None:
        message = f"--target of {variant}: {absent} does not exist"
        raise click.UsageError(message)
    directories = [path for path in paths if path.is_dir()]
    if directories and len(paths) > 1:
        message = f"variant {variant} has several targets; give one directory, or only devices"
        raise click.UsageError(message)
    return Target(directory=directories[0]) if directories else Target(devices=tuple(paths))


_EXIT_NOT_MEASURED = 1


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--target",
    "targets",
    multiple=True,
    required=True,
    metavar="[VARIANT=]DIR|DEVICE",
    help="Measure files in this directory, or this block device, for a variant, or for all that have no target of "
    "their own; may be repeated, also for several devices of a variant. DESTROYS THE DATA OF DEVICES.",
)
@click.option("--destroy-data", is_flag=True, help="Confirm that the data on the devices may be destroyed.")
@click.option("--output", type=click.Path(file_okay=False, path_type=Path), help="Results [plimsoll-results/NAME].")
@click.option("--resume", "resuming", is_flag=True, help="Continue the round in the results directory.")
@click.option("--seed", type=click.IntRange(min=0), help="Seed of the order and the load; random by default.")
@click.option("--fio", default="fio", envvar="PLIMSOLL_FIO", help="The fio to run.  [env: PLIMSOLL_FIO]")
def command(
    *,
    file: Path,
    targets: tuple[str, ...],
    destroy_data: bool,
    output: Path | None,
    resuming: bool,
    seed: int | None,
    fio: str,
) -> None:
    """Run one round of a BenchmarkSuite FILE on this machine, without a cluster.

    Each variant is measured `repeat` times, one run after the other, in shuffled order. A directory or block devices
    replace the storage of the variants, so that variants may also stand for different devices. If a run fails, the
    others are measured all the same. Exits with 0 if no result is Invalid, 2 if one is, 3 if interrupted, 1 or more
    than 3 if a run could not be measured.
    """
    if resuming and seed is not None:
        message = "--seed applies to a new round; the round that is resumed has its own seed"
        raise click.UsageError(message)
    suite = read_suite(file)
    places = targets_of([variant.name for variant in suite.spec.variants], targets)
    directory = output or Path("plimsoll-results") / suite.metadata.name
    _check(file, suite, places)
    round_ = resume(directory, file, suite, places) if resuming else begin(directory, file, suite, places, seed)
    codes = _measure_all(round_, file, places, destroy=destroy_data, fio=fio)
    sys.exit(_conclude(round_, codes))


def _check(file: Path, suite: BenchmarkSuite, places: Mapping[str, Target]) -> None:
    """Exit before anything is measured if a variant is no valid run, or cannot be measured on this machine."""
    freeze_variants(file, suite, 0)
    for name, run in variant_runs(suite).items():
        here = _named(file, name)
        freeze(here, fit_to_machine(here, run, places[name]), 0)


def _measure_all(
    round_: Round, file: Path, places: Mapping[str, Target], *, destroy: bool, fio: str
) -> Mapping[str, int]:
    """Measure the runs that are not complete, and return the exit code of each; an interruption ends the round."""
    left, total = unfinished(round_), len(round_.children)
    codes: dict[str, int] = {}
    for number, child in enumerate(left, start=total - len(left) + 1):
        click.echo(f"run {number} of {total}: {child.variant}, repeat {child.repeat + 1}", err=True)
        try:
            codes[child.name] = _measure(round_, file, child, places[child.variant], destroy=destroy, fio=fio)
        except (PlaceError, LaunchError) as error:
            click.echo(f"not measured: {error}", err=True)
            codes[child.name] = _EXIT_NOT_MEASURED
        if codes[child.name] == EXIT_INTERRUPTED:
            break
    return codes


def _measure(round_: Round, file: Path, child: Child, target: Target, *, destroy: bool, fio: str) -> int:
    here, results = _named(file, child.name), round_.directory_of(child)
    run = fit_to_machine(here, child.run, target)
    with target.claimed(child.name, destroy=destroy):
        is_begun = (results / PLAN_FILE).exists()
        plan = resumed_plan(here, run, results) if is_begun else new_plan(here, run, results, child.seed)
        return measure(run, plan, target, results=results, fio=fio)


def _conclude(round_: Round, codes: Mapping[str, int]) -> int:
    """Print what the round shows, and return its exit code."""
    if EXIT_INTERRUPTED in codes.values():
        return EXIT_INTERRUPTED
    findings = findings_of(results_of_round(round_))
    show_findings(stdout_console(), findings)
    failed = {name: code for name, code in codes.items() if code not in {EXIT_COMPLETE, EXIT_INVALID}}
    if failed:
        click.echo(f"not measured: {first_few([*failed])}; run the same command with --resume to try again", err=True)
        return next(iter(failed.values()))
    found = (result.status.verdict for runs in findings.runs.values() for run in runs for result in run)
    return EXIT_INVALID if Verdict.INVALID in found else EXIT_COMPLETE


def _named(file: Path, name: str) -> Path:
    """Return the file for messages about one of its runs."""
    return Path(f"{file} ({name})")
