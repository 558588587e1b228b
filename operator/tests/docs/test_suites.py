"""The examples in the guide to suites are those of the code."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from plimsoll.api.hypothesis import Hypothesis
from plimsoll.api.model import Model
from plimsoll.api.storage import Pool, RookStorage, Storage
from plimsoll.api.suite import SuiteComparison, decode_suite
from plimsoll.suite.children import merged_spec, variant_plans
from support.command_line import invoke

ROOT = Path(__file__).parents[3]
GUIDE = (ROOT / "docs" / "how-to" / "suites.md").read_text()
CELL = re.compile(r"`([^`]*)`")
EXAMPLE, HYPOTHESES, OVER_TIME = re.findall(r"^```yaml\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)


def rows(heading: str) -> list[list[str]]:
    """Return the cells of the table with that first heading."""
    lines = GUIDE[GUIDE.index(f"| {heading} |") :].partition("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def examples() -> list[tuple[str, Any, Any, Any]]:
    return [(rule, *(yaml.safe_load(cell.strip("`")) for cell in cells)) for rule, *cells in rows("rule")]


@pytest.mark.parametrize(("rule", "run", "changes", "merged"), examples())
def test_rule_has_a_true_example(rule: str, run: Any, changes: Any, merged: Any) -> None:
    assert merged_spec(run, changes) == merged
    assert merged_spec(run, changes) != run


def test_unions_are_those_of_the_models() -> None:
    unions = {CELL.sub(r"\1", place): CELL.findall(members) for place, members in rows("in")}
    models: dict[str, type[Model]] = {"storage": Storage, "storage.rook": RookStorage, "a pool": Pool}
    for place, model in models.items():
        assert unions.pop(place) == [model.model_fields[name].alias for name in model.one_of]
    assert unions == {"a workload": []}


def test_example_has_a_plan() -> None:
    suite = decode_suite(yaml.safe_load(EXAMPLE))
    assert list(variant_plans(suite, seed=1)) == ["size-3", "ec-4-2"]


def test_hypotheses_are_valid() -> None:
    found = [Hypothesis.model_validate(one) for one in yaml.safe_load(HYPOTHESES)["hypotheses"]]
    assert [one.name for one in found] == ["rbd-close-to-rados", "journal-limits", "scales-with-clients"]


def test_comparison_with_accepted_rounds_is_valid() -> None:
    (found,) = [SuiteComparison.model_validate(one) for one in yaml.safe_load(OVER_TIME)["comparisons"]]
    assert found.baseline.rounds == "Accepted"


def test_error_is_the_one_shown(tmp_path: Path) -> None:
    file = tmp_path / "layouts.yaml"
    file.write_text(EXAMPLE.replace("dataChunks: 4", "dataChunk: 4"))
    said = invoke("plan", file, code=1).splitlines()
    shown = GUIDE.partition("$ plimsoll plan layouts.yaml\n")[2].partition("```")[0].splitlines()
    assert shown[1] in said


def test_plan_of_the_sample_is_the_one_shown() -> None:
    sample = "manifests/local/suite.yaml"
    shown = GUIDE.partition(f"$ plimsoll plan {sample} --seed 1\n")[2].partition("```")[0].splitlines()
    printed = invoke("plan", ROOT / sample, "--seed", "1")
    assert [line.rstrip() for line in printed.splitlines()] == shown
