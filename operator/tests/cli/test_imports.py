"""The imports of the programs in pods: they delay the start of every pod, and a run waits for the slowest one."""

import subprocess
import sys

import pytest

OPERATORS = {"kopf", "kubernetes", "urllib3", "requests", "cryptography"}
COMMANDS = {"jinja2", "markupsafe", "plotly", "rich", "yaml"}
PROGRAM = """
import importlib, sys
importlib.import_module("plimsoll.cli")
importlib.import_module(sys.argv[1])
print(*sys.modules)
"""


def imported(module: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, module], capture_output=True, text=True, check=True, timeout=60
    )
    return set(done.stdout.split())


@pytest.mark.parametrize("program", ["plimsoll.programs.agent", "plimsoll.programs.conductor"])
def test_a_program_in_a_pod_imports_only_what_it_needs_to_start(program: str) -> None:
    modules = imported(program)
    assert program in modules
    assert modules & (OPERATORS | COMMANDS) == set()


def test_an_agent_does_not_import_the_checks_the_plan_and_the_operator() -> None:
    modules = imported("plimsoll.programs.agent")
    others = ("checks", "compare")
    unwanted = [
        "plimsoll.plan",
        "plimsoll.lifecycle",
        "plimsoll.kube",
        *(f"plimsoll.measure.{name}" for name in others),
    ]
    assert [name for name in unwanted if name in modules] == []


def test_a_conductor_imports_the_ceph_modules_only_on_ceph() -> None:
    modules = imported("plimsoll.programs.conductor")
    assert not {name for name in modules if name.startswith("plimsoll.conductor.ceph.")}
