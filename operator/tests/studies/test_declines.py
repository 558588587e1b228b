"""The slow decline that UTSA claims, decided on its own tables by the hypotheses of the suite's full form."""

from pathlib import Path

import pytest

from plimsoll.api.hypothesis import Hypothesis
from plimsoll.api.names import Metric
from plimsoll.measure.hypotheses.decide import decide
from plimsoll.studies.library import load_study
from support.results import point, run_of_points
from support.studies import small_suites, suites_in

SCATTER = (0.99, 1.0, 1.01)
GUIDE = (Path(__file__).parents[3] / "docs" / "how-to" / "studies.md").read_text()


def full_only() -> dict[str, Hypothesis]:
    small = {one.name for one in small_suites()["utsa"].spec.hypotheses}
    (full,) = suites_in(Path("overlays/full/utsa"))
    return {one.name: one for one in full.spec.hypotheses if one.name not in small}


def by_threads(table: str) -> dict[int, float]:
    return {
        int(one.conditions["threads"]): one.value
        for one in load_study("utsa").values
        if (one.experiment, one.quantity) == (f"UTSA-{table}", "bandwidth")
    }


@pytest.mark.parametrize(
    ("name", "table", "verdict"),
    [
        ("bonnie-declines-slowly", "T1", "Held"),
        ("file-reads-decline-slowly", "T3", "Held"),
        ("file-writes-decline-slowly", "T4", "Held"),
        ("bonnie-declines-slowly", "T5", "Refuted"),
        ("bonnie-declines-slowly", "T7", "Refuted"),
    ],
)
def test_tables_decline_or_not(name: str, table: str, verdict: str) -> None:
    stated = full_only()[name].model_dump(mode="json", exclude_none=True)
    stated["left"] = {"workload": "left", "quantity": Metric.IOPS.value}
    points = [
        point(f"left-{number:03d}", [value * one for one in SCATTER], clients=threads)
        for number, (threads, value) in enumerate(by_threads(table).items())
    ]
    (decision,) = decide(Hypothesis.model_validate(stated), [run_of_points(*points)])
    assert decision.verdict == verdict


def test_the_guide_names_them() -> None:
    assert set(full_only()) == {"bonnie-declines-slowly", "file-reads-decline-slowly", "file-writes-decline-slowly"}
    assert all(f"`{name}`" in GUIDE for name in full_only())
