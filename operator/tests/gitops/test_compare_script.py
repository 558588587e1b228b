"""The suite's step for CI: the compared runs and the exit code. kubectl and plimsoll are fakes."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[3] / "manifests" / "gitops" / "suite" / "compare.sh"

KUBECTL = """#!/bin/sh
echo "kubectl $*" >> "$LOG"
case "$*" in
    *--output\\ name) printf 'benchmarkrun.plimsoll.dev/%s\\n' random-new sequential-new ;;
    *benchmarkrun.plimsoll.dev/"$FAILED"*Succeeded*) printf False ;;
    *Succeeded*) printf True ;;
    *display.message*) echo 'no StorageClass' ;;
esac
"""
PLIMSOLL = """#!/bin/sh
echo "plimsoll $*" >> "$LOG"
case "$3" in */random-new) exit "$RANDOM_CODE" ;; *) exit "$SEQUENTIAL_CODE" ;; esac
"""

Compare = Callable[..., tuple[int, list[str], str]]


@pytest.fixture
def compare(tmp_path: Path) -> Compare:
    """Return a function that runs the script and returns its exit code, its calls and its last output."""
    for name, text in (("kubectl", KUBECTL), ("plimsoll", PLIMSOLL)):
        program = tmp_path / name
        program.write_text(text)
        program.chmod(0o755)
    log = tmp_path / "log"

    def run(random: int, sequential: int, failed: str = "none") -> tuple[int, list[str], str]:
        codes = {"RANDOM_CODE": str(random), "SEQUENTIAL_CODE": str(sequential), "FAILED": failed}
        environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "LOG": str(log), **codes}
        done = subprocess.run([SCRIPT, "old", "new"], env=environment, capture_output=True, text=True, check=False)
        return done.returncode, log.read_text().splitlines(), done.stderr

    return run


@pytest.mark.parametrize(
    ("random", "sequential", "expected"),
    [(0, 0, 0), (0, 3, 3), (3, 0, 3), (4, 0, 4), (0, 4, 4), (4, 3, 3), (3, 4, 3), (1, 0, 1), (0, 2, 2)],
)
def test_the_worst_comparison_decides_and_a_regression_is_worse_than_doubt(
    compare: Compare, random: int, sequential: int, expected: int
) -> None:
    assert compare(random, sequential)[0] == expected


def test_every_run_is_applied_awaited_and_compared_with_its_counterpart(compare: Compare) -> None:
    _, called, _ = compare(3, 0)
    assert called[0] == f"kubectl apply --kustomize {SCRIPT.parent}/overlays/new"
    (waited,) = [line for line in called if line.startswith("kubectl wait")]
    assert "random-new" in waited
    assert "sequential-new" in waited
    assert "completionTime" in waited
    assert [line for line in called if line.startswith("plimsoll")] == [
        "plimsoll compare benchmarks/random-old benchmarks/random-new",
        "plimsoll compare benchmarks/sequential-old benchmarks/sequential-new",
    ]


def test_a_run_that_did_not_succeed_is_not_compared(compare: Compare) -> None:
    code, called, words = compare(0, 0, failed="random-new")
    assert code == 1
    assert "no StorageClass" in words
    assert not [line for line in called if line.startswith("plimsoll")]
