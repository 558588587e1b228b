"""`plimsoll run` of a suite with real processes and a real fio: interrupted, resumed, and its results read."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from plimsoll.cli import Exit
from plimsoll.conductor.sink import read_results, read_state
from support.local_run import make_spec, wait_for

pytestmark = [pytest.mark.system, pytest.mark.fio, pytest.mark.usefixtures("own_disk")]

RUN = {**make_spec()["spec"], "repetitions": 1}
SUITE: dict[str, Any] = {
    "apiVersion": "plimsoll.dev/v1alpha1",
    "kind": "BenchmarkSuite",
    "metadata": {"name": "sizes"},
    "spec": {
        "repeat": 2,
        "run": RUN,
        "variants": [
            {"name": "small"},
            {"name": "large", "set": {"workloads": [{"name": "read", "fio": {"blockSize": ["16Ki"]}}]}},
        ],
        "comparisons": [{"name": "costs", "baseline": {"variant": "small"}, "candidate": {"variant": "large"}}],
    },
}


class LocalSuite:
    """A suite in a directory, and processes that work on it."""

    def __init__(self, directory: Path, fio: str) -> None:
        self.results = directory / "results"
        self._data, self._file, self._fio = directory / "data", directory / "suite.yaml", fio
        self._data.mkdir(exist_ok=True)
        self._file.write_text(yaml.safe_dump(SUITE))

    def start(self, *options: str) -> "subprocess.Popen[str]":
        target = ("--directory", str(self._data), "--results", str(self.results), "--fio", self._fio)
        return self._plimsoll("run", str(self._file), *target, *options)

    def document(self) -> tuple[int, dict[str, Any]]:
        """Return the exit code and the document of `plimsoll results`."""
        process = self._plimsoll("results", str(self.results), "-o", "json")
        output, _ = process.communicate(timeout=60)
        return process.returncode, json.loads(output)

    def runs(self) -> list[Path]:
        return sorted(path for path in self.results.iterdir() if path.is_dir())

    @staticmethod
    def _plimsoll(*arguments: str) -> "subprocess.Popen[str]":
        command = (sys.executable, "-m", "plimsoll", *arguments)
        environment = {**os.environ, "COLUMNS": "200"}
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


@pytest.mark.essential
def test_an_interrupted_round_is_resumed_where_it_was(tmp_path: Path, fio: str) -> None:
    suite = LocalSuite(tmp_path, fio)
    first = suite.start("--seed", "1")
    wait_for(first, lambda: suite.results.is_dir() and len(suite.runs()) == 2)
    second_run = suite.runs()[-1] if read_results(suite.runs()[0]) else suite.runs()[0]
    wait_for(first, lambda: (state := read_state(second_run)) is not None and state.current is not None)
    first.send_signal(signal.SIGINT)
    output, errors = first.communicate(timeout=60)
    assert first.returncode == Exit.INTERRUPTED, errors
    assert "run 1 of 4" in errors
    assert "run 2 of 4" in errors
    assert "run 3 of 4" not in errors

    again = suite.start("--resume")
    output, errors = again.communicate(timeout=180)
    assert "run 1 of 4" not in errors
    assert "run 2 of 4" in errors
    assert "small: 2 of 2 runs, each counted as a trial" in output
    assert "costs: is large worse than small?" in output
    assert len(suite.runs()) == 4
    names = [path.name.rsplit("-", 2) for path in suite.runs()]
    assert {name for name, _, _ in names} == {"sizes-small", "sizes-large"}
    assert len({minute for _, minute, _ in names}) == 1, "one round"

    code, document = suite.document()
    assert code in {Exit.DONE, Exit.REGRESSION, Exit.NOT_ENOUGH_EVIDENCE}
    assert again.returncode in {code, Exit.NOT_VALID}, errors
    assert [(one["name"], len(one["runs"])) for one in document["variants"]] == [("small", 2), ("large", 2)]
    (compared,) = document["comparisons"]
    assert not compared["countsRuns"], "two runs do not show their noise"
    assert any(one["key"] == "parameters.blockSize" for one in compared["differences"])
    assert list((tmp_path / "data").iterdir()) == []


def test_a_round_is_not_begun_twice_nor_resumed_with_another_suite(tmp_path: Path, fio: str) -> None:
    suite = LocalSuite(tmp_path, fio)
    (suite.results).mkdir()
    (suite.results / "round.json").write_text('{"minute": 1, "seed": 1, "digest": "of another one", "targets": {}}')
    process = suite.start()
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "contains a round of a suite; add --resume to continue it" in errors
    (suite.results / "suite.yaml").write_text(yaml.safe_dump(SUITE))
    process = suite.start("--resume")
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "has other variants, or another run or repeat, than the round measured" in errors
    assert suite.runs() == []
