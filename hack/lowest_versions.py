#!/usr/bin/env python3
"""Import every module of Plimsoll and run its commands, in the environment that hack/lowest_versions.sh makes."""

import importlib
import pkgutil
import re
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import plimsoll

ROOT = Path(__file__).resolve().parents[1]
GOLDEN = ROOT / "operator" / "tests" / "golden" / "report"
SWEEPS = (str(GOLDEN / "fio-3.39-sweep.json"), str(GOLDEN / "fio-3.39-sweep-later.json"))
INCONCLUSIVE = 4
COMMANDS = (
    (["--help"], 0),
    (["plan", str(ROOT / "manifests" / "demos" / "quickstart.yaml")], 0),
    (["init", "claim-latency"], 0),
    (["results", SWEEPS[0]], 0),
    (["layers", str(GOLDEN / "ceph-18.2-layers.json")], 0),
    (["compare", *SWEEPS], INCONCLUSIVE),
    (["report", *SWEEPS, "--html", "report.html"], 0),
)


def unsatisfiable_bounds() -> list[str]:
    """Return the declared lower bounds that are below what another dependency allows."""
    project = tomllib.loads((ROOT / "operator" / "pyproject.toml").read_text())["project"]
    wrong = []
    for requirement in [*project["dependencies"], *project["optional-dependencies"]["report"]]:
        name, bound = re.fullmatch(r"([A-Za-z0-9-]+)>=([0-9.]+)(?:,<[0-9.]+)?", requirement).groups()
        installed = version(name)
        if [*map(int, bound.split("."))] != [*map(int, installed.split("."))][: bound.count(".") + 1]:
            wrong.append(f"{requirement}: the lowest version that can be installed is {installed}")
    return wrong


def main() -> None:
    """Exit with the problems."""
    problems = unsatisfiable_bounds()
    for module in pkgutil.walk_packages(plimsoll.__path__, "plimsoll."):
        if module.name != "plimsoll.__main__":
            importlib.import_module(module.name)
    for arguments, expected in COMMANDS:
        command = [sys.executable, "-m", "plimsoll", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != expected:
            problems.append(f"plimsoll {' '.join(arguments)} exits with {done.returncode}:\n{done.stdout}{done.stderr}")
    if problems:
        sys.exit("\n".join(problems))


if __name__ == "__main__":
    main()
