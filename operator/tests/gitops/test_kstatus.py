"""The kstatus of a run and of a suite, as Flux and others compute it, for every status that the operator writes."""

import json
import subprocess
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml

from plimsoll.api.names import FailureReason, Verdict
from plimsoll.api.suite_status import RoundVerdict
from support.pretend_cluster import Document
from support.pretend_suites import PretendSuites, suite_object, suite_stages
from support.pretend_world import PretendWorld, create, stages, story
from support.tooling import kstatus

pytestmark = pytest.mark.chart

TESTDATA = Path(__file__).parents[3] / "manifests" / "gitops" / "argocd" / "plimsoll.dev"

Compute = Callable[[Document], str]


@pytest.fixture
def compute(kstatus_program: Path) -> Compute:
    """Return a function that computes an object's kstatus, and checks that the tests' own rules agree."""

    def computed(obj: Document) -> str:
        answer = subprocess.run([kstatus_program], input=json.dumps(obj), capture_output=True, text=True, check=True)
        word = answer.stdout.partition("\t")[0]
        assert word == kstatus(obj)
        return word

    return computed


def words(compute: Compute, world: PretendWorld, uid: str) -> list[str]:
    return story(map(compute, stages(world, uid)))


def test_a_run_is_in_progress_until_it_is_measured_and_clean(world: PretendWorld, compute: Compute) -> None:
    uid = world.create("a")
    runs = list(stages(world, uid))
    assert runs[0]["status"] == {"observedGeneration": -1}
    assert story(map(compute, runs)) == ["InProgress", "Current"]
    current = next(run for run in runs if compute(run) == "Current")
    said = {entry["type"]: entry["status"] for entry in current["status"]["conditions"]}
    assert (said["Succeeded"], said["CleanedUp"]) == ("True", "True")


def test_so_is_a_run_on_rook(world: PretendWorld, compute: Compute) -> None:
    assert words(compute, world, create(world)) == ["InProgress", "Current"]


@pytest.mark.parametrize(
    "spec",
    [
        {"storage": {"storageClass": {"name": "nowhere"}, "volume": {"size": "1Gi"}}},
        {"timeouts": {"provisionSeconds": 60, "readySeconds": 60, "totalSeconds": 1}},
    ],
    ids=["no StorageClass", "no time"],
)
def test_a_run_that_is_refused_has_failed(world: PretendWorld, compute: Compute, spec: dict[str, Any]) -> None:
    assert words(compute, world, world.create("a", **spec)) == ["InProgress", "Failed"]


def test_a_run_that_cannot_be_measured_has_failed(world: PretendWorld, compute: Compute) -> None:
    uid = world.create("a")
    world.conductors.knobs.fails[uid] = FailureReason.DEADLINE_EXCEEDED
    assert words(compute, world, uid) == ["InProgress", "Failed"]


def test_a_run_with_invalid_numbers_has_failed_and_one_with_suspect_ones_has_not(
    world: PretendWorld, compute: Compute
) -> None:
    world.conductors.knobs.verdict = Verdict.INVALID
    assert words(compute, world, world.create("a")) == ["InProgress", "Failed"]
    world.conductors.knobs.verdict = Verdict.SUSPECT
    assert words(compute, world, world.create("b")) == ["InProgress", "Current"]


def test_a_run_that_rests_is_what_it_was_asked_to_be(world: PretendWorld, compute: Compute) -> None:
    uid = world.create("a", suspend=True)
    assert words(compute, world, uid) == ["InProgress", "Current"]
    world.change(uid, suspend=False)
    assert words(compute, world, uid) == ["InProgress", "Current"]


def test_a_run_that_stops_for_a_suspension_is_in_progress_until_its_pods_are_gone(
    world: PretendWorld, compute: Compute
) -> None:
    uid = world.create("a")
    world.until(lambda: world.conductors.loads)
    world.change(uid, suspend=True)
    assert words(compute, world, uid) == ["InProgress", "Current"]
    assert not world.client_pods(uid)


def test_a_run_that_is_deleted_is_terminating(world: PretendWorld, compute: Compute) -> None:
    uid = world.create("a")
    world.until(lambda: world.conductors.loads)
    run = world.run(uid)
    assert run is not None
    world.cluster.delete(run)
    assert words(compute, world, uid) == ["Terminating"]
    assert world.run(uid) is None


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("new", "InProgress"),
        ("claims-not-bound", "InProgress"),
        ("measuring", "InProgress"),
        ("stopping", "InProgress"),
        ("suspended", "Current"),
        ("suspect", "Current"),
        ("no-storage-class", "Failed"),
    ],
)
def test_what_a_cluster_really_held_is_read_as_it_should_be(compute: Compute, name: str, expected: str) -> None:
    run = yaml.safe_load((TESTDATA / "BenchmarkRun" / "testdata" / f"{name}.yaml").read_text())
    assert compute(run) == expected


def test_a_result_is_current_from_its_creation_on_so_one_waits_for_the_run(compute: Compute) -> None:
    """It has no conditions and no observedGeneration, as nothing is ever reconciled towards its specification."""
    results = TESTDATA / "BenchmarkResult" / "testdata"
    final = yaml.safe_load((results / "suspect.yaml").read_text())
    unfinished = deepcopy(final)
    unfinished["status"] = {"final": False}
    assert (compute(unfinished), compute(final)) == ("Current", "Current")


def suite_words(compute: Compute, world: PretendSuites) -> list[str]:
    return story(map(compute, suite_stages(world)))


def test_only_the_round_of_a_change_makes_a_suite_in_progress(compute: Compute) -> None:
    world = PretendSuites(spec={"repeat": 1})
    assert suite_words(compute, world) == ["InProgress", "Current"]
    world.annotations["plimsoll.dev/request-round"] = "again"
    assert suite_words(compute, world) == ["Current"]
    world.change(repeat=2)
    assert suite_words(compute, world) == ["InProgress", "Current"]


def test_a_regression_fails_a_suite_that_is_a_gate_until_it_is_gone(compute: Compute) -> None:
    world = PretendSuites(spec={"repeat": 1, "gate": True}, verdicts=[RoundVerdict.REGRESSED])
    assert suite_words(compute, world) == ["InProgress", "Failed"]
    world.annotations["plimsoll.dev/request-round"] = "repaired"
    assert suite_words(compute, world) == ["Failed", "Current"]


def test_a_change_that_could_not_be_measured_fails_a_suite_until_a_round_is_evaluated(compute: Compute) -> None:
    world = PretendSuites(spec={"repeat": 1})
    world.measure_round(succeeded=False)
    assert compute(suite_object(world)) == "Failed"
    world.annotations["plimsoll.dev/request-round"] = "repaired"
    assert suite_words(compute, world) == ["Failed", "Current"]


def test_a_regression_does_not_fail_any_other_suite(compute: Compute) -> None:
    world = PretendSuites(spec={"repeat": 1}, verdicts=[RoundVerdict.REGRESSED])
    assert suite_words(compute, world) == ["InProgress", "Current"]


def test_a_suite_that_cannot_measure_has_failed(compute: Compute) -> None:
    assert suite_words(compute, PretendSuites(refuses={"small": "exceeded quota"})) == ["InProgress", "Failed"]


@pytest.mark.parametrize(
    "path", sorted((TESTDATA / "BenchmarkSuite" / "testdata").glob("*.yaml")), ids=lambda p: p.stem
)
def test_argocd_and_kstatus_agree_on_a_suite(compute: Compute, path: Path) -> None:
    cases = yaml.safe_load((TESTDATA / "BenchmarkSuite" / "health_test.yaml").read_text())["tests"]
    health = next(one["healthStatus"]["status"] for one in cases if Path(one["inputPath"]).stem == path.stem)
    same = {"Progressing": "InProgress", "Degraded": "Failed", "Healthy": "Current", "Suspended": "Current"}
    assert compute(yaml.safe_load(path.read_text())) == same[health]
