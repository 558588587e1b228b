"""`plimsoll run`: measure on this machine, with conductor and agents as local processes, or in a cluster."""

import asyncio
import json
import os
import shutil
import signal
import sys
import tempfile
import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from plimsoll.api.errors import SpecError
from plimsoll.api.names import RunPhase, Verdict
from plimsoll.api.result import BenchmarkResult
from plimsoll.api.run import BenchmarkRun
from plimsoll.api.status import RunState, TrialKey
from plimsoll.api.suite import BenchmarkSuite
from plimsoll.cli import Exit, exit_on, local_storage, options
from plimsoll.cli.cluster import cluster_options
from plimsoll.cli.cluster_run import Load, cluster_run_options, request_round, run_in_cluster
from plimsoll.cli.launch import Launcher, LaunchError, free_port
from plimsoll.cli.local_storage import PlaceError, Target, fit_to_machine
from plimsoll.cli.results import exit_of_numbers, show_conclusion, show_next_step, show_rounds
from plimsoll.cli.suite_rounds import LocalRound, begin_round, evaluate_rounds, exit_code, resume_round
from plimsoll.cli.tables import Terminal, results_tables
from plimsoll.cli.watch import LivePicture, RunLines, activity_text, trial_text, view_on
from plimsoll.cli.watched import WatchedPoint, WatchedRun
from plimsoll.conductor.main import EXIT_COMPLETE, EXIT_INTERRUPTED
from plimsoll.conductor.secret import write_session
from plimsoll.conductor.sink import read_plan, read_results, read_state, replace_file, result_display
from plimsoll.measure.text import first_few
from plimsoll.plan.document import PLAN_FILE, Plan, Point
from plimsoll.plan.expand import TRIAL_OVERHEAD_SECONDS, most_trials, renewal_seconds
from plimsoll.suite.children import variant_runs

_PLACE_FILE = "place.json"


class LocalProgress:
    """Shows the state that the conductor publishes in a results directory."""

    def __init__(self, view: LivePicture | RunLines, plan: Plan, results: Path) -> None:
        self._view, self._plan, self._results = view, plan, results
        self._start = datetime.now(UTC)
        self._read_at: tuple[int, TrialKey | None] | None = None
        self._recorded: dict[str, BenchmarkResult] = {}

    def update(self) -> None:
        state, plan, now = read_state(self._results), self._plan, time.time()
        if state is None:
            return
        # A search records many trials until its point is done.
        moment = (state.trials_done, state.current.key if state.current else None)
        if moment != self._read_at:
            self._recorded = {result.spec.point: result for result in read_results(self._results)}
            self._read_at = moment
        verdicts = [result.status.verdict for result in self._recorded.values()]
        is_between_trials = state.phase is RunPhase.MEASURING and state.current is None
        message = "" if is_between_trials else describe(state, plan)
        points: list[WatchedPoint] = []
        for point in plan.points:
            row = WatchedPoint(name=point.name, label=point.label, clients=str(point.clients))
            if (result := self._recorded.get(point.name)) is not None:
                display = result_display(result.status, most_trials(plan, point), point.line)
                texts = display.model_dump(exclude_none=True, exclude={"bytes_per_second"})
                row = replace(row, verdict=result.status.verdict or "", **texts)
            points.append(row)
        run = WatchedRun(
            shown_status=state.phase,
            message=message,
            start=self._start,
            estimated_end=datetime.fromtimestamp(now + remaining_seconds(state, plan, now), UTC),
            invalid=verdicts.count(Verdict.INVALID),
            state=state,
            trials=(state.trials_done, state.trials_total),
            points=points,
            passes=plan.repetitions,
            searches={point.workload for point in plan.points if point.line is not None},
            share=done_share(state, plan, now),
        )
        self._view.show(run)


def describe(state: RunState, plan: Plan) -> str:
    if state.current is None:
        return activity_text(state)
    is_probe = plan.point(state.current.key.point).line is not None
    return trial_text(state.current, plan.repetitions, is_probe=is_probe)


def done_share(state: RunState, plan: Plan, now: float) -> float:
    total = remaining_seconds(RunState(), plan, now)
    return 1.0 - min(1.0, remaining_seconds(state, plan, now) / total) if total else 1.0


def remaining_seconds(state: RunState, plan: Plan, now: float) -> float:
    """Return the duration of the remaining trials if none is repeated; at most, if some are searches for the line.

    Completed trials are assumed to be the first ones of the plan's order, as they are without repeated attempts.
    """
    preparing = renewal_seconds(plan)
    trials = [(most_trials(plan, point) if point.line else 1, point) for _, point in plan.pairs[state.trials_done :]]
    left = sum(number * (_seconds(point) + preparing) for number, point in trials)
    if trials:
        left -= state.probes_done * (_seconds(trials[0][1]) + preparing)
    if state.current is None:
        return float(left)
    length = state.current.ends_at - state.current.starts_at + TRIAL_OVERHEAD_SECONDS
    # A trial that overruns does not shorten the following trials.
    return left - preparing - min(max(0.0, now - state.current.starts_at), length)


def _seconds(point: Point) -> int:
    return point.timing.total_seconds + TRIAL_OVERHEAD_SECONDS


def measure(
    run: BenchmarkRun,
    plan: Plan,
    target: Target,
    *,
    results: Path,
    fio: str,
    raw_output: Path | None = None,
    strict: bool = False,
) -> Exit:
    """Run with a temporary data directory and session secret, print the results, and return the exit code."""
    _remove_leftovers(results)
    data = local_storage.make_directory(target.directory, plan) if target.directory is not None else None
    secret = Path(tempfile.mkdtemp(prefix="plimsoll-session-"))
    try:
        if data is not None:
            replace_file(results / _PLACE_FILE, json.dumps({"data": str(data)}), sync=False)
        write_session(secret, plan.clients)
        launcher = Launcher(
            plan=plan,
            results=results,
            secret=secret,
            data=data,
            devices=target.devices,
            fio=shutil.which(fio) or fio,
            raw_output=raw_output,
            port=free_port(),
        )
        with view_on(Terminal(stderr=True), plan.run.name, os.path.relpath(results), waiting="starting") as view:
            code = asyncio.run(_follow(launcher, view, LocalProgress(view, plan, results)))
        recorded = read_results(results)
        for table in results_tables(recorded) if recorded else ():
            Terminal().print(table)
        state = read_state(results)
        if state is not None and state.failure is not None:
            click.echo(f"not measured: {state.failure.reason}: {state.failure.message}", err=True)
        if code == EXIT_INTERRUPTED and state is not None:
            click.echo(
                f"interrupted with {state.trials_done} of {state.trials_total} trials recorded; "
                f"run the same command with --resume to continue",
                err=True,
            )
        click.echo(f"results in {os.path.relpath(results)}", err=True)
        if code != EXIT_COMPLETE:
            return Exit.INTERRUPTED if code == EXIT_INTERRUPTED else Exit.ERROR
        show_next_step(recorded)
        return exit_of_numbers(recorded, strict=strict)
    finally:
        shutil.rmtree(secret, ignore_errors=True)
        if run.spec.cleanup == "Never" and data is not None:
            click.echo(f"The data is kept in {data} (cleanup: Never).", err=True)
        else:
            _remove_leftovers(results)


def _remove_leftovers(results: Path) -> None:
    path = results / _PLACE_FILE
    if path.exists():
        shutil.rmtree(json.loads(path.read_text())["data"], ignore_errors=True)
        path.unlink()


async def _follow(launcher: Launcher, view: LivePicture | RunLines, progress: LocalProgress) -> int:
    """Run the processes and show their progress. The first Ctrl-C stops the run in order, the second kills it."""
    loop = asyncio.get_running_loop()
    task = asyncio.ensure_future(launcher.run(progress.update))

    def interrupt() -> None:
        view.note("interrupted: recording the current trial as aborted; press Ctrl-C again to kill the run")
        launcher.interrupt()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, task.cancel)

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, interrupt)
    try:
        return await task
    except asyncio.CancelledError:
        return EXIT_INTERRUPTED


def new_plan(file: Path, run: BenchmarkRun, results: Path, seed: int | None) -> Plan:
    """Return a new plan, and keep it in the results directory; exits if that has results already."""
    if (results / PLAN_FILE).exists():
        message = f"{results} contains the results of a run; add --resume to continue it, or choose another --results"
        raise click.ClickException(message)
    named = run.model_copy(update={"metadata": run.metadata.model_copy(update={"uid": str(uuid.uuid4())})})
    plan = options.freeze(file, named, seed)
    local_storage.make_results_directory(results)
    replace_file(results / PLAN_FILE, plan.model_dump_json(indent=1), sync=True)
    return plan


def resumed_plan(file: Path, run: BenchmarkRun, results: Path) -> Plan:
    """Return the frozen plan of a results directory, if it still matches the file."""
    with exit_on(OSError, SpecError, what=f"{results} contains no run to resume: "):
        plan = read_plan(results)
    now = options.freeze(file, run, plan.seed).model_copy(update={"run": plan.run, "runner_image": plan.runner_image})
    if now != plan:
        message = f"{file} has changed since the run in {results} started; restore it, or choose another --results"
        raise click.ClickException(message)
    return plan


def targets_of(variants: Sequence[str], directories: Sequence[str], devices: Sequence[str]) -> Mapping[str, Target]:
    """Return the target of each variant, for a run of the one variant ""; exits if one is missing or cannot be used.

    A value is `VARIANT=PATH`, or `PATH` for all variants without a target of their own.
    """
    paths: dict[str, tuple[list[Path], list[Path]]] = {}
    for option, values in (("--directory", directories), ("--device", devices)):
        for value in values:
            variant, equals, path = value.partition("=")
            if not equals or variant not in variants:
                if equals and any(variants) and not Path(value).exists():
                    names = ", ".join(variants)
                    raise click.UsageError(
                        f"{option} {value}: {variant} is not a variant of this suite; it has {names}"
                    )
                variant, path = "", value
            if not Path(path).exists() or Path(path).is_dir() != (option == "--directory"):
                raise click.UsageError(f"{option} {path}: there is no such {option[2:]}")
            paths.setdefault(variant, ([], []))[option == "--device"].append(Path(path))
    targets: dict[str, Target] = {}
    for variant in variants:
        of_variant = f" for variant {variant}" if variant else ""
        own_directories, own_devices = paths.get(variant) or paths.get("", ([], []))
        if len(own_directories) + bool(own_devices) != 1:
            problem = "too much" if own_directories else "nothing"
            remedy = "give one --directory, or one or several --device"
            raise click.UsageError(f"{problem} to measure{of_variant}; {remedy}")
        targets[variant] = Target(directory=next(iter(own_directories), None), devices=tuple(own_devices))
    return targets


_HERE = ("destroy_data", "results", "raw_output", "resume", "seed", "fio")
_GENERATED = tuple(field.name for field in fields(Load))
_IN_CLUSTER = (
    "storage_class",
    *_GENERATED,
    "yes",
    "remove",
    "dry_run",
    "timeout",
    "namespace",
    "context",
    "kubeconfig",
)

_NEW_OR_HERE = ("storage_class", *_GENERATED, "remove", "dry_run", "directories", "devices", *_HERE)


def _refuse_options(names: Sequence[str], reason: str) -> None:
    context = click.get_current_context()
    for parameter in context.command.params:
        name = parameter.name or ""
        if name in names and context.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise click.UsageError(f"{parameter.opts[-1]} {reason}")


@click.command(short_help="Measure a run, a suite or a StorageClass.")
@click.argument("source", metavar="[FILE|-|bsuite/NAME]", required=False)
@cluster_run_options
@click.option(
    "--directory",
    "directories",
    multiple=True,
    metavar="[VARIANT=]DIR",
    help="Measure files in this directory; for a suite, of this variant, or of all variants without their own target.",
)
@click.option(
    "--device",
    "devices",
    multiple=True,
    metavar="[VARIANT=]DEVICE",
    help="Measure this block device; may be repeated. DESTROYS ITS DATA.",
)
@options.destroy_option
@options.results_option
@click.option(
    "--raw-output",
    type=click.Path(file_okay=False, path_type=Path),
    help="On this machine: keep the tools' raw output in this directory, to check numbers with other programs.",
)
@click.option(
    "--resume",
    is_flag=True,
    help="On this machine: continue with the first trial that is missing in the results directory.",
)
@options.load_seed_option
@options.fio_option
@click.option("-y", "--yes", is_flag=True, help="In a cluster: do not ask for a confirmation.")
@click.option("--rm", "remove", is_flag=True, help="In a cluster: remove it at the end, with its results.")
@click.option("--dry-run", is_flag=True, help="Print the manifest instead of creating it; needs no cluster.")
@options.timeout_option("In a cluster: stop watching after this time")
@options.strict_option
@cluster_options
def command(
    *,
    source: str | None,
    generated: Mapping[str, Any] | None,
    directories: tuple[str, ...],
    devices: tuple[str, ...],
    destroy_data: bool,
    results: Path | None,
    raw_output: Path | None,
    resume: bool,
    seed: int | None,
    fio: str,
    yes: bool,
    remove: bool,
    dry_run: bool,
    timeout: int | None,
    strict: bool,
) -> None:
    """Measure a BenchmarkRun FILE, a round of a BenchmarkSuite, or a StorageClass without a FILE.

    In a cluster it prints how much will be written, asks for confirmation, creates the run or suite, and watches it
    like `watch`. Ctrl-C stops only watching. Without a FILE, --storage-class measures random reads and writes of a PVC
    in about two minutes. bsuite/NAME requests a round of a suite that exists. FILE can be - for standard input; in a
    cluster, add --yes then.

    With --directory or --device it measures on this machine, without a cluster: they replace the storage of the FILE.
    Workloads that need a network between nodes or a cluster are refused. Of a suite, each variant is measured `repeat`
    times, one run after the other, in shuffled order; VARIANT=PATH assigns a device or directory to a variant. If a run
    fails, the others are still measured.

    Exits with 0 if all is measured, 1 if the run failed, 5 if a result is Invalid, 6 if it continues after --timeout,
    130 if interrupted; of a suite also with 3 (a regression) and 4 (not enough evidence), like `watch`.
    """
    file = None if source is None else Path(source)
    if source is not None and source.startswith("bsuite/") and not Path(source).exists():
        _refuse_options(_NEW_OR_HERE, "is for a FILE; leave it out to request a round of a suite in the cluster")
        sys.exit(request_round(source, yes=yes, timeout=timeout, strict=strict))
    is_here = bool(directories or devices)
    if is_here:
        _refuse_options(_IN_CLUSTER, "is for a cluster; leave it out, or --directory and --device")
    else:
        _refuse_options(_HERE, "is for a run on this machine; add --directory DIR or --device DEVICE")
    if devices and not destroy_data:
        raise click.UsageError("--device destroys all data on the device; add --destroy-data to confirm")
    if generated is None:
        _refuse_options(_GENERATED, "is for --storage-class NAME; a FILE has its own workloads")
    if file is None and generated is None:
        raise click.UsageError("nothing to measure; give a FILE, or --storage-class NAME")
    if file is not None and generated is not None:
        raise click.UsageError(f"--storage-class replaces a FILE; leave out one of them, or set it in {file}")
    if file is None or not is_here:
        document = options.read_document(file) if file else dict(generated or {})
        named = file or Path("the generated run")
        code = run_in_cluster(named, document, yes=yes, remove=remove, dry_run=dry_run, timeout=timeout, strict=strict)
        sys.exit(code)
    manifest = options.read_file(file)
    results = results or Path("plimsoll-results") / manifest.metadata.name
    if isinstance(manifest, BenchmarkSuite):
        if raw_output is not None:
            raise click.UsageError("--raw-output is for a run; a suite has many")
        places = targets_of([variant.name for variant in manifest.spec.variants], directories, devices)
        round_ = _round(file, manifest, places, results, seed, fio=fio, resuming=resume)
        sys.exit(_run_round(round_, file, places, fio=fio, strict=strict))
    target = targets_of([""], directories, devices)[""]
    run = fit_to_machine(file, manifest, target, fio)
    with target.claimed(run.metadata.name):
        raw = None if raw_output is None else local_storage.make_raw_directory(raw_output, resume=resume)
        plan = resumed_plan(file, run, results) if resume else new_plan(file, run, results, seed)
        sys.exit(measure(run, plan, target, results=results, fio=fio, raw_output=raw, strict=strict))


def _round(
    file: Path,
    suite: BenchmarkSuite,
    places: Mapping[str, Target],
    results: Path,
    seed: int | None,
    *,
    fio: str,
    resuming: bool,
) -> LocalRound:
    """Return the round to measure; exits if a variant cannot be measured on this machine."""
    if file == options.STANDARD_INPUT:
        raise click.UsageError("a suite on this machine needs a FILE, which is kept with its results")
    if resuming and seed is not None:
        raise click.UsageError("--seed applies to a new round; the round that is resumed has its own seed")
    options.freeze_variants(file, suite, 0)
    for name, run in variant_runs(suite).items():
        here = _named(file, name)
        options.freeze(here, fit_to_machine(here, run, places[name], fio), 0)
    return resume_round(results, file, suite, places) if resuming else begin_round(results, file, suite, places, seed)


def _run_round(round_: LocalRound, file: Path, places: Mapping[str, Target], *, fio: str, strict: bool) -> Exit:
    """Measure the remaining runs of a round, print its results, and return the exit code."""
    codes = _measure_all(round_, file, places, fio=fio)
    if Exit.INTERRUPTED in codes.values():
        return Exit.INTERRUPTED
    rounds = evaluate_rounds([round_])
    show_rounds(Terminal(), rounds)
    if failed := [name for name, code in codes.items() if code is Exit.ERROR]:
        click.echo(f"not measured: {first_few(failed)}; run the same command with --resume to try again", err=True)
        return Exit.ERROR
    show_conclusion(rounds)
    return exit_code(rounds.last) or exit_of_numbers(rounds.last_results, strict=strict)


def _measure_all(round_: LocalRound, file: Path, places: Mapping[str, Target], *, fio: str) -> Mapping[str, Exit]:
    """Measure the runs that are not complete, and return the exit code of each; an interruption ends the round."""
    runs, unfinished, total = variant_runs(round_.suite), round_.unfinished, len(round_.turns)
    codes: dict[str, Exit] = {}
    for number, (name, turn) in enumerate(unfinished.items(), start=total - len(unfinished) + 1):
        click.echo(f"run {number} of {total}: {turn.variant}, repeat {turn.repeat + 1}", err=True)
        here, results, target = _named(file, name), round_.directory / name, places[turn.variant]
        metadata = runs[turn.variant].metadata.model_copy(update={"name": name})
        run = fit_to_machine(here, runs[turn.variant].model_copy(update={"metadata": metadata}), target, fio)
        try:
            with target.claimed(name):
                is_begun = (results / PLAN_FILE).exists()
                plan = resumed_plan(here, run, results) if is_begun else new_plan(here, run, results, turn.seed)
                codes[name] = measure(run, plan, target, results=results, fio=fio)
        except (PlaceError, LaunchError) as error:
            click.echo(f"not measured: {error}", err=True)
            codes[name] = Exit.ERROR
        if codes[name] is Exit.INTERRUPTED:
            break
    return codes


def _named(file: Path, name: str) -> Path:
    return Path(f"{file} ({name})")
