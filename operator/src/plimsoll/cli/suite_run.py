"""`plimsoll suite run FILE`: one round of a suite on this machine."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from plimsoll.api.names import Verdict
from plimsoll.cli.launch import LaunchError
from plimsoll.cli.local_storage import PlaceError, Target, fit_to_machine
from plimsoll.cli.options import (
    destroy_option,
    fio_option,
    freeze,
    freeze_variants,
    load_seed_option,
    read_suite,
    results_option,
)
from plimsoll.cli.run import EXIT_INVALID, measure, new_plan, resumed_plan
from plimsoll.cli.suite_results import show_rounds
from plimsoll.cli.suite_rounds import LocalRound, begin, evaluate_rounds, resume
from plimsoll.cli.tables import Terminal
from plimsoll.conductor.main import EXIT_COMPLETE, EXIT_INTERRUPTED
from plimsoll.measure.text import first_few
from plimsoll.plan.document import PLAN_FILE
from plimsoll.suite.children import variant_runs


def targets_of(variants: Sequence[str], values: Sequence[str]) -> Mapping[str, Target]:
    """Return the target of each variant; exits if a variant has none, or a path cannot be one.

    A value is `VARIANT=PATH`, or `PATH` for all variants without a target of their own.
    """
    paths: dict[str, list[Path]] = {}
    for value in values:
        name, equals, path = value.partition("=")
        if equals and name in variants:
            paths.setdefault(name, []).append(Path(path))
            continue
        if equals and not Path(value).exists():
            raise click.UsageError(
                f"--target {value}: {name} is no variant of this suite; its variants are {', '.join(variants)}"
            )
        paths.setdefault("", []).append(Path(value))
    targets: dict[str, Target] = {}
    for variant in variants:
        if not (own := paths.get(variant) or paths.get("", [])):
            remedy = f"give --target {variant}=DIR|DEVICE, or --target DIR|DEVICE for all"
            raise click.UsageError(f"variant {variant} has no target; {remedy}")
        if absent := [path for path in own if not path.exists()]:
            raise click.UsageError(f"--target of {variant}: {absent[0]} does not exist")
        directories = [path for path in own if path.is_dir()]
        if directories and len(own) > 1:
            raise click.UsageError(f"variant {variant} has several targets; give one directory, or only devices")
        targets[variant] = Target(directory=directories[0]) if directories else Target(devices=tuple(own))
    return targets


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
@destroy_option
@results_option
@click.option("--resume", "resuming", is_flag=True, help="Continue the round in the results directory.")
@load_seed_option
@fio_option
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
        raise click.UsageError("--seed applies to a new round; the round that is resumed has its own seed")
    suite = read_suite(file)
    places = targets_of([variant.name for variant in suite.spec.variants], targets)
    directory = output or Path("plimsoll-results") / suite.metadata.name
    # Before anything is measured: every variant is a valid run that can be measured on this machine.
    freeze_variants(file, suite, 0)
    for name, run in variant_runs(suite).items():
        here = _named(file, name)
        freeze(here, fit_to_machine(here, run, places[name]), 0)
    round_ = resume(directory, file, suite, places) if resuming else begin(directory, file, suite, places, seed)
    codes = _measure_all(round_, file, places, destroy=destroy_data, fio=fio)
    if EXIT_INTERRUPTED in codes.values():
        sys.exit(EXIT_INTERRUPTED)
    rounds = evaluate_rounds([round_])
    show_rounds(Terminal(), rounds)
    failed = {name: code for name, code in codes.items() if code not in {EXIT_COMPLETE, EXIT_INVALID}}
    if failed:
        click.echo(f"not measured: {first_few([*failed])}; run the same command with --resume to try again", err=True)
        sys.exit(next(iter(failed.values())))
    verdicts = (result.status.verdict for runs in rounds.results.complete.values() for run in runs for result in run)
    sys.exit(EXIT_INVALID if Verdict.INVALID in verdicts else EXIT_COMPLETE)


def _measure_all(
    round_: LocalRound, file: Path, places: Mapping[str, Target], *, destroy: bool, fio: str
) -> Mapping[str, int]:
    """Measure the runs that are not complete, and return the exit code of each; an interruption ends the round."""
    runs, unfinished, total = variant_runs(round_.suite), round_.unfinished, len(round_.turns)
    codes: dict[str, int] = {}
    for number, (name, turn) in enumerate(unfinished.items(), start=total - len(unfinished) + 1):
        click.echo(f"run {number} of {total}: {turn.variant}, repeat {turn.repeat + 1}", err=True)
        here, results, target = _named(file, name), round_.directory / name, places[turn.variant]
        metadata = runs[turn.variant].metadata.model_copy(update={"name": name})
        run = fit_to_machine(here, runs[turn.variant].model_copy(update={"metadata": metadata}), target)
        try:
            with target.claimed(name, destroy=destroy):
                is_begun = (results / PLAN_FILE).exists()
                plan = resumed_plan(here, run, results) if is_begun else new_plan(here, run, results, turn.seed)
                codes[name] = measure(run, plan, target, results=results, fio=fio)
        except (PlaceError, LaunchError) as error:
            click.echo(f"not measured: {error}", err=True)
            codes[name] = 1
        if codes[name] == EXIT_INTERRUPTED:
            break
    return codes


def _named(file: Path, name: str) -> Path:
    """Return the file for messages about one of its runs."""
    return Path(f"{file} ({name})")
