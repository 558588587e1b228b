"""Results in files, which commands compare."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from plimsoll.api.result import BenchmarkResult
from plimsoll.cli import main
from support.repeated import result, steady, trials_of


@pytest.fixture
def saved_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Provide a directory with the runs `baseline`, `same` and `slower`."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")
    save("same", [run("same", 1000)])
    save("baseline", [run("baseline", 1000)])
    save("slower", [run("slower", 800)])


def run(name: str, rate: float, **changes: Any) -> BenchmarkResult:
    """Return the result of a run with a steady rate."""
    return result(trials_of(steady(rate)), run=name, context={"seed": len(name)}, **changes)


def save(name: str, results: Sequence[BenchmarkResult]) -> None:
    """Write results into a file of that name."""
    Path(name).write_text(json.dumps([one.model_dump(mode="json") for one in results]))


def invoke(*arguments: str, code: int) -> str:
    """Return the output of a command that ends with that exit code."""
    found = CliRunner().invoke(main, [*arguments])
    assert found.exit_code == code, found.output
    return found.output
