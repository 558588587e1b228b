"""Runs to measure with: a document, its frozen plan, `plimsoll run`, and what it recorded."""

import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import yaml
from pydantic import JsonValue

from place import fio, fresh
from plimsoll.api.names import Outcome, Verdict
from plimsoll.api.result import Trial
from plimsoll.api.run import BenchmarkRun
from plimsoll.cli import Exit
from plimsoll.conductor.secret import write_session
from plimsoll.conductor.sink import read_results, replace_file
from plimsoll.plan.document import PLAN_FILE, Plan
from plimsoll.plan.expand import make_plan


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What the runs of this bench differ in."""

    name: str
    clients: int
    size: str
    fio: dict[str, JsonValue]
    ramp_seconds: int
    runtime_seconds: int
    repetitions: int


def run_text(shape: Shape) -> str:
    """Return the run as a user would write it."""
    workload: dict[str, JsonValue] = {
        "name": "w",
        "fio": shape.fio,
        "rampSeconds": shape.ramp_seconds,
        "runtimeSeconds": shape.runtime_seconds,
    }
    spec: dict[str, JsonValue] = {
        "storage": {"storageClass": {"name": "any"}, "volume": {"size": shape.size, "mode": "Filesystem"}},
        "clients": {"count": shape.clients},
        "workloads": [workload],
        "repetitions": shape.repetitions,
        "prepare": {"fillPercent": 100, "settleSeconds": 2},
        "timeouts": {"readySeconds": 600, "totalSeconds": 3600},
    }
    metadata = {"name": shape.name}
    return yaml.safe_dump(
        {"apiVersion": "plimsoll.dev/v1alpha1", "kind": "BenchmarkRun", "metadata": metadata, "spec": spec}
    )


def write_plan(shape: Shape, results: Path) -> Plan:
    """Freeze the run into a results directory, for a conductor that is started by hand."""
    run = BenchmarkRun.model_validate(yaml.safe_load(run_text(replace(shape, repetitions=1))))
    # A benchmark may need more trials than the API permits.
    plan = make_plan(run, seed=1)
    more = {"repetitions": shape.repetitions, "order": plan.order * shape.repetitions}
    plan = plan.model_copy(update=more)
    replace_file(results / PLAN_FILE, plan.model_dump_json(), sync=False)
    return plan


def fresh_secret(directory: Path, *, clients: int) -> Path:
    """Return a directory with a new session secret."""
    secret = directory / "secret"
    write_session(secret, clients)
    return secret


def start_locally(shape: Shape) -> tuple["subprocess.Popen[bytes]", Path]:
    """Start `plimsoll run` in a directory of its own; return it and where its results will be."""
    directory = fresh(shape.name)
    file, results, data = directory / "run.yaml", directory / "out", directory / "data"
    file.write_text(run_text(shape))
    data.mkdir()
    where = ["--directory", str(data), "--results", str(results), "--seed", "1", "--fio", fio()]
    with (directory / "log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "plimsoll", "run", str(file), *where],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    return process, results


def check_ended(process: "subprocess.Popen[bytes]", results: Path) -> None:
    """Fail with the run's own words if it could not be measured."""
    words = (results.parent / "log").read_text()[-1000:]
    assert process.returncode in {Exit.DONE, Exit.NOT_VALID}, (
        f"plimsoll run ended with exit code {process.returncode}: {words}"
    )


def attempts(results: Path) -> list[Trial]:
    """Return every recorded attempt, in the order in which they were begun."""
    found = [trial for result in read_results(results) for trial in result.status.trials]
    return sorted(found, key=lambda trial: trial.started_at)


def usable(trials: list[Trial]) -> list[Trial]:
    """Return those that gave numbers that count."""
    return [trial for trial in trials if trial.outcome is Outcome.MEASURED and trial.verdict is not Verdict.INVALID]


def why_not(trials: list[Trial]) -> list[str]:
    """Return what went wrong with the others, in Plimsoll's own words."""
    bad = [trial for trial in trials if trial not in usable(trials)]
    said = (trial.abort.message if trial.abort else "; ".join(item.message for item in trial.findings) for trial in bad)
    return [
        f"pass {trial.pass_number} attempt {trial.attempt}: {words[:200]}"
        for trial, words in zip(bad, said, strict=True)
    ]
