"""`hack/quickstart.sh`, with a plimsoll that only records what it is asked to do."""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SCRIPT = ROOT / "hack" / "quickstart.sh"
FAKE_PLIMSOLL = """#!/bin/sh
echo "$*" >> {calls}
echo "output of $1"
[ "$1" = run ] && exit {code}
exit 0
"""


def quickstart(directory: Path, *, code: int) -> tuple[subprocess.CompletedProcess[str], list[str]]:
    """Run it, with runs that end with that code; return its answer and the calls."""
    program, calls = directory / "bin" / "plimsoll", directory / "calls"
    program.parent.mkdir()
    program.write_text(FAKE_PLIMSOLL.format(calls=calls, code=code))
    program.chmod(0o755)
    answer = subprocess.run(
        [str(SCRIPT), str(directory / "out")],
        env=os.environ | {"PLIMSOLL_VENV": str(directory), "PLIMSOLL_FIO": "/opt/fio"},
        capture_output=True,
        text=True,
        check=False,
    )
    return answer, calls.read_text().splitlines()


@pytest.mark.parametrize("code", [0, 5])
def test_it_succeeds_whatever_the_verdicts_are(tmp_path: Path, code: int) -> None:
    answer, calls = quickstart(tmp_path, code=code)
    out = tmp_path / "out"
    assert answer.returncode == 0, answer.stderr
    samples = [(name, ROOT / "manifests" / "demos" / f"{name}.yaml") for name in ("quickstart", "page-cache")]
    first, second = (
        f"run {sample} --fio /opt/fio --directory {out}/data --results {out}/{name}" for name, sample in samples
    )
    assert calls == [
        first,
        f"results {out}/quickstart",
        second,
        f"report {out}/quickstart {out}/page-cache --html {out}/report.html",
        f"results {out}/page-cache",
    ]
    assert answer.stdout.count("output of run") == 0
    assert answer.stdout.endswith("output of results\n")


def test_it_fails_if_a_run_could_not_be_measured(tmp_path: Path) -> None:
    answer, calls = quickstart(tmp_path, code=1)
    assert answer.returncode == 1
    assert [call.split()[0] for call in calls] == ["run"]


def test_it_replaces_what_it_wrote_before(tmp_path: Path) -> None:
    old = [tmp_path / "out" / name / "old" for name in ("data", "quickstart", "page-cache")]
    for file in old:
        file.parent.mkdir(parents=True)
        file.touch()
    kept = tmp_path / "out" / "mine"
    kept.touch()
    quickstart(tmp_path, code=0)
    assert not any(file.exists() for file in old)
    assert kept.exists()
