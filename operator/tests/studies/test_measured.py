"""Every possible experiment of the studies was measured in its small form on the test cluster.

`golden/studies` has what `make studies` recorded (`e2e/studies/record.py`), on Ceph 18.2.7 with three OSDs. The test
cluster does not have the studies' other storage: CTU's array and all raw devices are local block volumes (StorageClass
`block`), and NFS, ISCSI and ISCSI-MD of BLOG are local directories (`standard`). Their points show that the suites run,
not that NFS, iSCSI or an array were measured.
"""

import csv
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import product
from pathlib import Path

import pytest

from plimsoll.studies.library import load_studies
from plimsoll.studies.model import Experiment
from support.studies import STUDIES, small_plans

RECORDED = Path(__file__).parents[1] / "golden" / "studies"
RATES = ("iops", "bytesPerSecond")

EXPERIMENTS = [one for study in load_studies() for one in study.experiments if one.reproduced_by]
Point = tuple[str, str, str, str, int]
Line = Mapping[str, str]


@cache
def measured() -> dict[Point, list[Line]]:
    """Return the lines of each point, one for each operation."""
    found: defaultdict[Point, list[Line]] = defaultdict(list)
    for study in STUDIES:
        with (RECORDED / f"{study}.csv").open() as lines:
            for line in csv.DictReader(lines):
                point = line["suite"], line["variant"], line["workload"], line["label"], int(line["clients"])
                found[point].append(line)
    return dict(found)


def counts(line: Line) -> bool:
    """Whether an operation has a rate, of operations or of bytes, that is not Invalid."""
    return line["verdict"] in ("Valid", "Suspect") and max(float(line[rate] or 0) for rate in RATES) > 0


def points_of(experiment: Experiment) -> Iterator[tuple[tuple[str, str, str], list[list[Line]]]]:
    """Yield suite, variant and workload of what reproduces an experiment, each with the lines of its points."""
    for one in experiment.reproduced_by:
        for selected in product([one.suite], one.variants, one.workloads):
            yield selected, [lines for point, lines in measured().items() if point[:3] == selected]


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
    for selected, points in points_of(experiment):
        assert points, selected
        assert all(any(map(counts, lines)) for lines in points), selected
