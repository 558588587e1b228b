"""The real promtool: it reads rules, and evaluates expressions on series that are made up for it."""

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml


def promtool(*arguments: str | Path) -> str:
    """Run it and return what it says; what it does not accept fails the test, and so does its absence."""
    path = shutil.which(os.environ.get("PLIMSOLL_PROMTOOL", ""))
    if path is None:
        message = "PLIMSOLL_PROMTOOL names no promtool; run `make test`, or PLIMSOLL_PROMTOOL=$(hack/tool.sh promtool)"
        pytest.fail(message, pytrace=False)
    done = subprocess.run([path, *map(str, arguments)], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.fail(f"{done.stdout}\n{done.stderr}", pytrace=False)
    return done.stdout


def evaluate(directory: Path, series: Mapping[str, str], tests: Sequence[Mapping[str, Any]]) -> None:
    """Evaluate expressions, each with what is expected of it, on series that have a value for every minute."""
    inputs = [{"series": name, "values": values} for name, values in series.items()]
    test = {"interval": "1m", "input_series": inputs, "promql_expr_test": list(tests)}
    path = directory / "test.yaml"
    path.write_text(yaml.safe_dump({"rule_files": [], "tests": [test]}, allow_unicode=True))
    promtool("test", "rules", path)
