"""No test is left out of `make test-all`, and none runs twice."""

import importlib.util
import json
import os
import re
import subprocess
import sys
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

import pytest
from _pytest.mark.expression import Expression, ExpressionMatcher

ROOT = Path(__file__).parents[3]
BY_NAME = ["disturbance", "outage", "thorough"]
"""End-to-end tests that `make test-all` has no time for: a stage runs them if it is named."""
STORM = "storm"
"""The marker of the operator's tests that only `make storms` has time for."""
RECORDER = """
import json, os
from pathlib import Path

def pytest_collection_modifyitems(items):
    found = [sorted({marker.name for marker in item.iter_markers()}) for item in items]
    Path(os.environ["MARKERS"]).write_text(json.dumps(found))
"""


def commands() -> list[str]:
    """Return the commands of all stages that run without being named."""
    specification = importlib.util.spec_from_file_location("stages_of_selections", ROOT / "hack" / "stages.py")
    assert specification is not None
    assert specification.loader is not None
    stages = importlib.util.module_from_spec(specification)
    sys.modules[specification.name] = stages
    sys.path.append(str(ROOT / "hack"))
    specification.loader.exec_module(stages)
    return [stage.command for stage in stages.select(stages.read_stages(stages.DEFINITIONS.read_text()), [])]


def selections(target: str) -> list[str]:
    """Return the expressions with which stages call a target of the Makefile."""
    found = (re.findall(rf"make {target} (?:SELECT='([^']+)'|MARK=(\w+))", command) for command in commands())
    return [select or mark for matches in found for select, mark in matches]


def among(names: Collection[str]) -> ExpressionMatcher:
    """Return whether a marker is one of these, as pytest asks for it."""

    def matches(name: str, /, **_: str | float | bool | None) -> bool:
        return name in names

    return matches


def not_in_one(markers: Iterable[Iterable[str]], expressions: list[str]) -> dict[str, list[str]]:
    """Return the sets of markers that not exactly one expression selects, with those that do."""
    compiled = {text: Expression.compile(text) for text in expressions}
    assert len(compiled) == len(expressions), "an expression occurs twice"
    wrong = {}
    for names in {frozenset(each) for each in markers}:
        selecting = [text for text, expression in compiled.items() if expression.evaluate(among(names))]
        if len(selecting) != 1:
            wrong[" ".join(sorted(names)) or "no marker"] = selecting
    return wrong


def test_every_test_of_the_operator_is_in_one_stage(collected_markers: Mapping[frozenset[str], set[Path]]) -> None:
    (real,) = re.findall(r"^REAL := (.+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    named = [f"not ({real})", "network", *selections("test-real"), *selections("test-marked"), STORM]
    for target in ("test-fast", "test-network"):
        assert [command for command in commands() if command == f"make {target}"]
    assert not_in_one(collected_markers, named) == {}


def test_make_finds_the_files_of_a_marker(collected_markers: Mapping[frozenset[str], set[Path]]) -> None:
    """It passes only files to pytest that contain the marker's name: collecting all takes longer than some tests."""
    for marker in ("essential", *selections("test-marked")):
        for path in set().union(*(paths for markers, paths in collected_markers.items() if marker in markers)):
            assert f"mark.{marker}" in path.read_text()


def test_every_end_to_end_test_is_in_one_stage(tmp_path: Path) -> None:
    (tmp_path / "marker_recorder.py").write_text(RECORDER)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "MARKERS": str(tmp_path / "markers")}
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "marker_recorder"]
    environment.pop("PYTEST_ADDOPTS", None)
    done = subprocess.run(command, cwd=ROOT / "e2e" / "tests", env=environment, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout.decode()
    markers = json.loads((tmp_path / "markers").read_text())
    assert len(markers) > 50
    assert not_in_one(markers, [*selections("test-e2e"), *BY_NAME]) == {}


@pytest.mark.parametrize("expressions", [["not b"], ["a or b", "b"]])
def test_a_test_in_no_stage_or_in_two_is_named(expressions: list[str]) -> None:
    assert not_in_one([["a"], ["b"]], expressions).keys() == {"b"}
