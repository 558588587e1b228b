"""Every possible experiment of the studies was measured in its small form on the test cluster.

`golden/studies` has what `make studies` recorded (`e2e/studies/record.py`), on Ceph 18.2.7 with three OSDs.
"""

import csv
from functools import cache
from pathlib import Path

import pytest

from plimsoll.studies.library import load_studies
from plimsoll.studies.model import Experiment
from support.studies import STUDIES, small_plans

RECORDED = Path(__file__).parents[1] / "golden" / "studies"

EXPERIMENTS = [one for study in load_studies() for one in study.experiments if one.reproduced_by]
Point = tuple[str, str, str, str, int]


@cache
def measured() -> dict[Point, float]:
    """Return the rate of each point: operations per second or, if its tool counts none, bytes per second."""
    rates: dict[Point, float] = {}
    for study in STUDIES:
        with (RECORDED / f"{study}.csv").open() as lines:
            for line in csv.DictReader(lines):
                point = line["suite"], line["variant"], line["workload"], line["label"], int(line["clients"])
                rates[point] = max(rates.get(point, 0), float(line["iops"]), float(line["bytesPerSecond"] or 0))
    return rates


def test_what_was_measured_is_what_is_planned() -> None:
    planned = {
        (suite, variant, point.workload, point.label, point.clients)
        for suite, plans in small_plans().items()
        for variant, plan in plans.items()
        for point in plan.points
    }
    assert planned == set(measured())


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda one: one.id)
def test_an_experiment_was_measured(experiment: Experiment) -> None:
    for reproduction in experiment.reproduced_by:
        for variant in reproduction.variants:
            for workload in reproduction.workloads:
                rates = [
                    rate for point, rate in measured().items() if point[:3] == (reproduction.suite, variant, workload)
                ]
                assert rates, f"{workload} of {variant}"
                assert all(rate > 0 for rate in rates)
