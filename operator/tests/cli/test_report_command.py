"""`plimsoll report`: its output, and its errors."""

import builtins
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from plimsoll.cli import main
from plimsoll.cli.report import MOST_RUNS
from plimsoll.conductor.sink import RESULTS_DIRECTORY
from support.goldens import CEPH, LATER, SWEEP


def report(*arguments: object, code: int = 0) -> Result:
    found = CliRunner().invoke(main, ["report", *map(str, arguments)])
    assert found.exit_code == code, found.output
    return found


def test_a_run_becomes_one_file(tmp_path: Path) -> None:
    output = tmp_path / "report.html"
    found = report(SWEEP, "--html", output)
    assert found.output == f"{output}: 10 points of sweep; open it in a browser\n"
    text = output.read_text()
    assert text.startswith("<!DOCTYPE html>")
    assert "random-read-015" in text


def test_a_results_directory_is_read(tmp_path: Path, directory: Path) -> None:
    assert (directory / RESULTS_DIRECTORY).is_dir()
    assert "4 points of quickstart" in report(directory, "--html", tmp_path / "r.html").output


def test_further_runs_are_compared_with_the_first(tmp_path: Path) -> None:
    output = tmp_path / "report.html"
    report(SWEEP, LATER, "--html", output)
    assert "sweep-later against sweep: " in output.read_text()


def test_a_run_on_ceph_shows_its_layers_and_one_elsewhere_does_not(tmp_path: Path) -> None:
    report(CEPH, "--html", tmp_path / "ceph.html")
    report(SWEEP, "--html", tmp_path / "local.html")
    assert 'id="layers"' in (tmp_path / "ceph.html").read_text()
    assert 'id="layers"' not in (tmp_path / "local.html").read_text()


def test_run_given_twice_is_refused(tmp_path: Path) -> None:
    found = report(SWEEP, SWEEP, "--html", tmp_path / "r.html", code=1)
    assert "run default/sweep is given more than once; name each run once" in found.output


def test_too_many_runs_are_refused(tmp_path: Path) -> None:
    text = LATER.read_text()
    (uid,) = {line.split('"runUid":"')[1].split('"')[0] for line in text.splitlines() if "runUid" in line}
    files = [tmp_path / f"{number}.json" for number in range(MOST_RUNS + 1)]
    for number, file in enumerate(files):
        file.write_text(text.replace(uid, f"uid-{number}"))
    found = report(*files, "--html", tmp_path / "r.html", code=1)
    assert f"{MOST_RUNS + 1} runs are too many for one report; name at most {MOST_RUNS}" in found.output


def test_unwritable_file_is_reported(tmp_path: Path) -> None:
    output = tmp_path / "absent" / "r.html"
    assert f"{output} cannot be written: No such file or directory" in report(SWEEP, "--html", output, code=1).output


@pytest.mark.parametrize("absent", ["plotly", "jinja2"])
def test_missing_library_is_reported(absent: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(__import__("sys").modules, "plimsoll.report.render", raising=False)
    real = builtins.__import__

    def without(name: str, *arguments: Any, **more: Any) -> Any:
        if name.partition(".")[0] == absent:
            raise ModuleNotFoundError(name=absent)
        return real(name, *arguments, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    found = report(SWEEP, "--html", tmp_path / "r.html", code=1)
    assert f"a report requires {absent}, which is not installed; run pip install plotly jinja2" in found.output
    assert not (tmp_path / "r.html").exists()
