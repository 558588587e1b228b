"""The plan of a run on this machine: a new one, or the frozen one of a results directory."""

import uuid
from pathlib import Path

import click

from plimsoll.api.errors import SpecError
from plimsoll.api.names import Outcome
from plimsoll.api.run import BenchmarkRun
from plimsoll.cli.document import freeze
from plimsoll.conductor.sink import PLAN_FILE, read_plan, read_results, replace_file
from plimsoll.plan.document import Plan
from plimsoll.tools.registry import TOOLS


def new_plan(file: Path, run: BenchmarkRun, results: Path, seed: int | None) -> Plan:
    """Return a new plan, and keep it in the results directory; exits if that has results already."""
    if (results / PLAN_FILE).exists():
        message = f"{results} contains the results of a run; add --resume to continue it, or choose another --output"
        raise click.ClickException(message)
    named = run.model_copy(update={"metadata": run.metadata.model_copy(update={"uid": str(uuid.uuid4())})})
    plan = freeze(file, named, seed)
    replace_file(results / PLAN_FILE, plan.model_dump_json(indent=1), sync=True)
    return plan


def resumed_plan(file: Path, run: BenchmarkRun, results: Path) -> Plan:
    """Return the frozen plan of a results directory, if it still matches the file."""
    try:
        plan = read_plan(results)
    except (OSError, SpecError) as error:
        message = f"{results} contains no run to resume: {error}"
        raise click.ClickException(message) from error
    now = freeze(file, run, plan.seed).model_copy(update={"run": plan.run, "runner_image": plan.runner_image})
    if not _is_same(now, plan):
        message = f"{file} has changed since the run in {results} started; restore it, or choose another --output"
        raise click.ClickException(message)
    if plan.prepare.drop_caches and _has_warm_trials(results):
        message = (
            f"the trials in {results} were measured with warm caches, by a version that ignored prepare.dropCaches; "
            "choose another --output"
        )
        raise click.ClickException(message)
    return plan


def _has_warm_trials(results: Path) -> bool:
    trials = (trial for result in read_results(results) for trial in result.status.trials)
    return any(trial.outcome is Outcome.MEASURED and trial.caches is None for trial in trials)


def _is_same(now: Plan, plan: Plan) -> bool:
    try:
        return _with_all_parameters(now) == _with_all_parameters(plan)
    except (KeyError, ValueError):
        # A tool or a parameter of another version.
        return False


def _with_all_parameters(plan: Plan) -> Plan:
    """Return a plan with the defaults of parameters that its version did not have yet."""
    points = tuple(
        point.model_copy(
            update={"parameters": TOOLS[point.tool].parameters.model_validate(point.parameters).model_dump(mode="json")}
        )
        for point in plan.points
    )
    return plan.model_copy(update={"points": points})
