"""The table of faults follows from the tests' markers, which name only reasons that the tests assert."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[3]
MARKER = 'pytest.mark.fault("Nodes", "A node fails", "while measuring", ends="it ends (`ClientLost`)", within="20 s")'
LEAST_CASES = 40


@pytest.fixture(scope="module")
def script() -> ModuleType:
    specification = importlib.util.spec_from_file_location("faults_table", ROOT / "hack" / "faults_table.py")
    assert specification is not None
    assert specification.loader is not None
    sys.path.append(str(ROOT / "hack"))
    script = importlib.util.module_from_spec(specification)
    sys.modules[specification.name] = script
    specification.loader.exec_module(script)
    return script


def faults(script: ModuleType, marker: str, asserts: str) -> list[tuple[str, str]]:
    text = f"@{marker}\ndef test_it():\n    assert reason == {asserts}\n"
    return [(fault.fault, level) for fault, level in script.faults_of(ROOT / "operator" / "tests" / "test_it.py", text)]


@pytest.mark.parametrize("asserts", ["'ClientLost'", "AbortReason.CLIENT_LOST"])
def test_a_marker_becomes_a_row(script: ModuleType, asserts: str) -> None:
    assert faults(script, MARKER, asserts) == [("A node fails", "simulation")]


@pytest.mark.parametrize(
    ("marker", "problem"),
    [
        (MARKER, "names ClientLost, which nothing there asserts"),
        (MARKER.replace("Nodes", "Moons"), "a group among API server"),
        (MARKER.replace(', within="20 s"', ""), "within=..."),
        (MARKER.replace('"A node fails"', "NAME"), "with plain texts"),
    ],
)
def test_a_marker_that_cannot_be_a_row_is_refused(script: ModuleType, marker: str, problem: str) -> None:
    with pytest.raises(script.MarkerError, match=problem):
        faults(script, marker, "''")


def test_enough_faults_need_no_cluster(script: ModuleType) -> None:
    assert sum(levels != {script.CLUSTER} for levels in script.rows().values()) >= LEAST_CASES
