"""The guide to the studies agrees with their data, their suites and the estimates of these."""

import re
from math import ceil
from pathlib import Path

import pytest

from plimsoll.api.suite import BenchmarkSuite
from plimsoll.measure.hypotheses.judge import MINIMUM_REPLICATES
from plimsoll.plan.document import Plan
from plimsoll.plan.expand import estimate
from plimsoll.studies.library import load_studies
from plimsoll.studies.model import Experiment, Study, Unavailable
from plimsoll.suite.children import variant_plans, variant_runs
from support.published import in_layouts, on_values
from support.space import client_bytes, volume_bytes, written_seconds
from support.studies import OVERLAYS, small_plans, small_suites, suites_in

ROOT = Path(__file__).parents[3]
GUIDE = (ROOT / "docs" / "studies.md").read_text()
STUDIES = load_studies()
FULL = [suite for overlay in OVERLAYS if overlay.parts[1] == "full" for suite in suites_in(overlay)]
MEASURED = [*small_suites().values(), *FULL]
GIGABYTE = 10**9


def rows(after: str, heading: str) -> list[list[str]]:
    """Return the cells of the first table with that first heading after a text."""
    rest = GUIDE[GUIDE.index(after) :]
    lines = rest[rest.index(f"| {heading} |") :].partition("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def listed(names: tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def reproduction(experiment: Experiment) -> str:
    texts = [f"`{one.suite}`, {listed(one.variants)}: {listed(one.workloads)}" for one in experiment.reproduced_by]
    return "; ".join(texts) or "impossible"


@pytest.mark.parametrize("study", STUDIES, ids=lambda one: one.key)
def test_experiments_are_those_of_the_data(study: Study) -> None:
    found = rows(f"## {study.key}\n", "experiment")
    assert [row[:3] for row in found] == [[one.id, one.title, reproduction(one)] for one in study.experiments]
    assert all(row[3] for row in found)


def test_what_is_unavailable_is_that_of_the_data() -> None:
    of = {
        kind: ", ".join(one.id for study in STUDIES for one in study.experiments if one.unavailable is kind)
        for kind in Unavailable
    }
    assert [row[:2] for row in rows("## What cannot be reproduced\n", "what")] == [
        [kind.value, ids] for kind, ids in of.items()
    ]


def seconds(plans: dict[str, Plan], suite: BenchmarkSuite) -> int:
    return suite.spec.repeat * sum(estimate(plan).total_seconds for plan in plans.values())


def scaled(kind: str) -> dict[str, int]:
    """Return the seconds of the suites of an overlay."""
    suites = [suite for overlay in OVERLAYS if overlay.parts[1] == kind for suite in suites_in(overlay)]
    return {suite.metadata.name: seconds(variant_plans(suite, seed=1), suite) for suite in suites}


def test_estimates_are_those_of_the_plans() -> None:
    full, smoke = scaled("full"), scaled("smoke")
    expected = []
    for name, suite in small_suites().items():
        plans = small_plans()[name]
        points = sum(len(plan.points) for plan in plans.values())
        costs = [ceil(smoke[name] / 60), ceil(seconds(plans, suite) / 60), ceil(full[name] / 3600)]
        texts = [f"{cost} {unit}" for cost, unit in zip(costs, ("min", "min", "h"), strict=True)]
        expected.append([f"`{name}`", str(len(plans)), str(points), *texts])
    found = rows("## Suites\n", "suite")
    assert [[row[0], *row[2:]] for row in found] == expected


def test_small_suites_take_minutes() -> None:
    for plans in small_plans().values():
        assert sum(estimate(plan).total_seconds for plan in plans.values()) < 20 * 60


@pytest.mark.parametrize("suite", MEASURED, ids=lambda suite: f"{suite.metadata.name}-{len(suite.spec.variants)}")
def test_every_hypothesis_has_points_with_three_trials(suite: BenchmarkSuite) -> None:
    plans = variant_plans(suite, seed=1)
    assert suite.spec.hypotheses
    for hypothesis in suite.spec.hypotheses:
        for _, selector in hypothesis.selectors:
            variants = [selector.variant] if selector.variant else [*plans]
            trials = [plans[variant].repetitions * suite.spec.repeat for variant in variants]
            assert min(trials) >= MINIMUM_REPLICATES, hypothesis.name


def test_the_space_of_the_full_forms_is_that_of_the_plans() -> None:
    expected = {}
    for suite in FULL:
        runs, plans = variant_runs(suite), variant_plans(suite, seed=1)
        volumes = max(map(volume_bytes, plans.values()))
        seconds = max(map(written_seconds, plans.values()))
        total = max(volume_bytes(plan) + GIGABYTE * written_seconds(plan) for plan in plans.values())
        memory = max(client_bytes(runs[name], plan) for name, plan in plans.items())
        expected[f"`{suite.metadata.name}`"] = [
            f"{ceil(volumes / 2**30)} GiB",
            str(seconds),
            f"{ceil(total / GIGABYTE)} GB",
            f"{ceil(memory / 2**30)} GiB",
        ]
    found = rows("### The space that the full forms need\n", "suite")
    assert {name: rest for name, *rest in found} == expected


def test_numbers_of_values_are_those_of_the_data() -> None:
    expected = [[study.key, str(len(study.experiments)), str(len(study.values))] for study in STUDIES]
    assert [row[:3] for row in rows("## Published values\n", "study")] == expected


def test_checks_are_those_of_the_table() -> None:
    known = set(re.findall(r"^\| `(\w+)`", (ROOT / "docs" / "trust.md").read_text(), re.MULTILINE))
    named = {
        check
        for study in STUDIES
        for row in rows(f"## {study.key}\n", "numbers")
        for check in re.findall(r"`(\w+)`", row[1])
    }
    assert len(named) >= 10
    assert named <= known


@pytest.mark.parametrize("study", ["KIT", "ORNL", "UTSA"])
def test_hypotheses_have_the_verdicts_of_the_published_values(study: str) -> None:
    found = {row[0].strip("`"): row[1] for row in rows(f"## {study}\n", "hypothesis")}
    names = [one.name for one in small_suites()[study.lower()].spec.hypotheses]
    verdicts = on_values(study.lower())
    assert found == {name: verdicts.get(name, "no numbers") for name in names}


def test_hypotheses_of_ctu_have_the_verdicts_of_its_layouts() -> None:
    counts = in_layouts()
    assert {sum(count.values()) for count in counts.values()} == {15}
    assert [[row[0], *map(int, row[1:])] for row in rows("## CTU\n", "hypothesis")] == [
        [f"`{name}`", *(count[verdict] for verdict in ("Held", "Refuted", "Undecided"))]
        for name, count in counts.items()
    ]
