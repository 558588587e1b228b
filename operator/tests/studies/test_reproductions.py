"""Every experiment of the studies is reproduced by planned points of their suites, or is one of the impossible ones."""

import re
from pathlib import Path

import pytest

from plimsoll.measure.hypotheses.select import VariantRun, impossible
from plimsoll.studies.library import STUDY_NAMES, load_studies
from plimsoll.studies.model import Experiment, Reproduction, Unavailable
from plimsoll.suite.children import variant_plans
from support.command_line import invoke
from support.studies import FOLDER, OVERLAYS, STUDIES, small_plans, suites_in

EXPERIMENTS = {one.id: one for study in load_studies() for one in study.experiments}
POSSIBLE = [one for one in EXPERIMENTS.values() if one.reproduced_by]
FILES = sorted(FOLDER.glob("*/*.yaml"))
SUITE_FILES = [path for path in FILES if path.name != "kustomization.yaml"]
COMMENT = re.compile(r"#.*")
IN_COMMENT = re.compile(r"\b[A-Z]{3,4}-[A-Z0-9][A-Za-z0-9-]*")

IDS = {
    "KIT": "NET DISK OSD T3 F2ab THR F2c F3 F4ab F4c TCP F5 BUF",
    "ORNL": "DISK T1 NET F1 F2 F3 F4 F5 F6 TWK F7 KRN RA F8",
    "UTSA": "T1 T2 T3 T4 T5 T6 T7 T8 T9",
    "CTU": "NET BOND DISK FULL DRAND OSD IOZ EMPTY REQ SEQ4 RAND LAT SEQ16 SMALL MULTI HASH UTIL SURVEY",
    "BLOG": "FS-A FS-B NFS RBD-A RBD-B ISCSI ISCSI-MD CP OSDFS UTIL",
}
ALL_IDS = [f"{study}-{one}" for study, ids in IDS.items() for one in ids.split()]

UNAVAILABLE = {
    "kernel settings of servers": ["KIT-TCP", "ORNL-F1", "ORNL-F2"],
    "kernel versions of servers": ["ORNL-KRN"],
    "bond and hash policies": ["CTU-BOND", "CTU-HASH"],
    "journals in memory": ["KIT-OSD", "KIT-T3", "KIT-F2ab", "KIT-F3", "KIT-F4ab", "KIT-F5"],
    "netperf": ["ORNL-NET"],
    "IOR itself": ["ORNL-F5", "ORNL-F7", "ORNL-RA", "ORNL-F8"],
    "IOzone": ["CTU-IOZ"],
}
"""What cannot be reproduced, and of which experiments; of the first two it is all that they vary."""

IMPOSSIBLE = ["KIT-TCP", "ORNL-F1", "ORNL-F2", "ORNL-KRN"]


def references() -> list[tuple[Experiment, Reproduction]]:
    return [(one, reproduction) for one in POSSIBLE for reproduction in one.reproduced_by]


def test_all_experiments_are_listed() -> None:
    assert list(EXPERIMENTS) == ALL_IDS
    assert len(ALL_IDS) == 64
    assert STUDY_NAMES == STUDIES


def test_nothing_else_is_impossible() -> None:
    assert [one.id for one in EXPERIMENTS.values() if not one.reproduced_by] == IMPOSSIBLE


def test_what_is_unavailable_is_named_where_it_matters() -> None:
    found: dict[str, list[str]] = {kind.value: [] for kind in Unavailable}
    for one in EXPERIMENTS.values():
        if one.unavailable is not None:
            found[one.unavailable.value].append(one.id)
    assert found == UNAVAILABLE


@pytest.mark.parametrize(
    ("experiment", "reproduction"),
    references(),
    ids=lambda one: one.id if isinstance(one, Experiment) else one.suite,
)
def test_an_experiment_is_reproduced_by_planned_points(experiment: Experiment, reproduction: Reproduction) -> None:
    plans = small_plans()[reproduction.suite]
    for variant in reproduction.variants:
        planned = {point.workload for point in plans[variant].points}
        assert set(reproduction.workloads) <= planned, f"{experiment.id} in {variant}"


def test_every_planned_point_reproduces_an_experiment() -> None:
    planned = {
        (suite, variant, point.workload)
        for suite, plans in small_plans().items()
        for variant, plan in plans.items()
        for point in plan.points
    }
    used = {
        (one.suite, variant, workload)
        for _, one in references()
        for variant in one.variants
        for workload in one.workloads
    }
    assert planned - used == set()


@pytest.mark.parametrize("study", STUDIES)
def test_comments_of_the_suites_name_the_experiments(study: str) -> None:
    text = "\n".join(path.read_text() for path in SUITE_FILES if path.parent.name == study)
    named = set(IN_COMMENT.findall("\n".join(COMMENT.findall(text))))
    expected = {one.id for one in POSSIBLE if one.id.startswith(f"{study.upper()}-")}
    assert expected - named == set()
    assert {one for one in named if one.startswith(f"{study.upper()}-")} - set(EXPERIMENTS) == set()


@pytest.mark.parametrize("path", SUITE_FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_the_command_plans_every_suite(path: Path) -> None:
    assert "without repeated attempts" in invoke("plan", path, "--seed", "1")


@pytest.mark.parametrize("overlay", OVERLAYS, ids=str)
def test_overlays_have_valid_plans_of_all_that_the_small_suites_have(overlay: Path) -> None:
    """A variant of the overlay alone may have what a variant of the small suite measures."""
    small = {name: plans for name, plans in small_plans().items() if name.startswith(overlay.name)}
    for suite in suites_in(overlay):
        before = small.pop(suite.metadata.name)
        found = {name: {point.workload for point in plan.points} for name, plan in variant_plans(suite, seed=1).items()}
        moved = {workload for name, workloads in found.items() if name not in before for workload in workloads}
        for variant, plan in before.items():
            assert {point.workload for point in plan.points} <= found[variant] | moved
    assert small == {}


@pytest.mark.parametrize("form", ["ctu", "overlays/full/ctu"])
def test_only_the_first_of_three_reads_of_discarded_space_may_come_before_a_discard(form: str) -> None:
    (suite,) = [one for one in suites_in(Path(form)) if one.metadata.name == "ctu-parts"]
    plans = [variant_plans(suite, seed=seed)["empty"] for seed in range(1, 9)]
    assert {plan.repetitions for plan in plans} == {3}
    first = {tuple(plan.points[index].workload for index in plan.order[0]) for plan in plans}
    assert first == {("discard", "read"), ("read", "discard")}


@pytest.mark.parametrize("direction", ["read", "write"])
def test_the_full_form_has_dd_and_fio_over_the_same_block_sizes(direction: str) -> None:
    (suite,) = [one for one in suites_in(Path("overlays/full/ctu")) if one.metadata.name == "ctu-parts"]
    sizes: dict[str, list[object]] = {"dd": [], "fio": []}
    for point in variant_plans(suite, seed=1)["disks"].points:
        if point.workload.startswith((f"dd-{direction}", f"fio-{direction}")):
            sizes[point.tool].append(point.parameters["blockSize"])
    assert sorted(map(str, sizes["dd"])) == sorted(map(str, sizes["fio"]))
    assert len(sizes["fio"]) == 18


@pytest.mark.parametrize("overlay", OVERLAYS, ids=str)
def test_planned_points_of_overlays_can_decide_their_hypotheses(overlay: Path) -> None:
    for suite in suites_in(overlay):
        runs = [
            VariantRun(variant=name, name="", points=plan.points) for name, plan in variant_plans(suite, seed=1).items()
        ]
        assert [found for one in suite.spec.hypotheses for found in impossible(one, runs)] == []


def test_every_study_has_both_overlays() -> None:
    expected = [f"overlays/{kind}/{study}" for kind in ("full", "smoke") for study in sorted(STUDIES)]
    assert [str(one) for one in OVERLAYS] == expected
