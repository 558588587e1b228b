"""Argo CD's health of Plimsoll's kinds: for recorded objects, and for every status that the operator writes."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from lupa.lua51 import LuaRuntime, lua_type  # type: ignore[import-untyped]

from plimsoll.api.names import FailureReason, Verdict
from plimsoll.api.suite_status import RoundVerdict
from support.pretend_cluster import Document
from support.pretend_suites import PretendSuites, suite_object, suite_stages
from support.pretend_world import PretendWorld, create, stages, story

_LIBRARIES = frozenset({"string", "table"})
_BASE = frozenset({"assert", "error", "ipairs", "next", "pairs", "pcall", "select", "tonumber", "tostring", "type"})
HEALTHS = frozenset({"Healthy", "Progressing", "Degraded", "Suspended", "Missing", "Unknown"})


@dataclass(frozen=True, slots=True)
class Health:
    """What Argo CD shows of a resource."""

    status: str
    message: str


def health_of(script: Path, obj: dict[str, Any]) -> Health:
    """Run a health script on an object.

    Raises:
        lupa.lua51.LuaError: if the script fails, or uses what Argo CD does not give it.

    """
    lua = LuaRuntime(register_eval=False, register_builtins=False)
    names = lua.globals()
    for name in [str(name) for name in names]:
        if name not in _LIBRARIES | _BASE:
            names[name] = None
    names["obj"] = _to_lua(lua, obj)
    returned = lua.execute(script.read_text())
    assert lua_type(returned) == "table", returned
    health = dict(returned.items())
    assert set(health) == {"status", "message"}
    assert health["status"] in HEALTHS
    assert isinstance(health["message"], str)
    return Health(health["status"], health["message"])


def _to_lua(lua: LuaRuntime, value: Any) -> Any:
    """Return what Argo CD makes of JSON: every number is a float there."""
    match value:
        case dict():
            return lua.table_from({key: _to_lua(lua, part) for key, part in value.items()})
        case list():
            return lua.table_from([_to_lua(lua, part) for part in value])
        case bool():
            return value
        case int():
            return float(value)
    return value


ARGOCD = Path(__file__).parents[3] / "manifests" / "gitops" / "argocd"
KINDS = ARGOCD / "plimsoll.dev"
RUN = KINDS / "BenchmarkRun" / "health.lua"
RESULT = KINDS / "BenchmarkResult" / "health.lua"
SUITE = KINDS / "BenchmarkSuite" / "health.lua"


def cases() -> list[tuple[Path, Path, Health]]:
    """Return script, input and expectation of every case in the test files, in Argo CD's own format."""
    found = []
    for file in sorted(KINDS.glob("*/health_test.yaml")):
        for case in yaml.safe_load(file.read_text())["tests"]:
            expected = Health(case["healthStatus"]["status"], case["healthStatus"]["message"])
            found.append((file.parent / "health.lua", file.parent / case["inputPath"], expected))
    return found


@pytest.mark.parametrize(("script", "path", "expected"), cases(), ids=lambda value: getattr(value, "stem", ""))
def test_the_script_says_of_its_inputs_what_the_test_file_says(script: Path, path: Path, expected: Health) -> None:
    assert health_of(script, yaml.safe_load(path.read_text())) == expected


def test_every_input_is_in_a_test_file() -> None:
    assert {path for _, path, _ in cases()} == set(KINDS.glob("*/testdata/*.yaml"))


def test_the_patch_for_argocd_has_the_scripts_as_they_are() -> None:
    data = yaml.safe_load((ARGOCD / "argocd-cm.yaml").read_text())["data"]
    assert data == {
        f"resource.customizations.health.plimsoll.dev_{script.parent.name}": script.read_text()
        for script in (RUN, RESULT, SUITE)
    }


def healths(world: PretendWorld, uid: str) -> list[str]:
    return story(health_of(RUN, run).status for run in stages(world, uid))


def test_a_run_is_healthy_at_its_very_end_and_not_before(world: PretendWorld) -> None:
    uid, last = world.create("a"), Health("", "")
    for run in stages(world, uid):
        assert last.status in {"", "Progressing"}
        last = health_of(RUN, run)
    assert last == Health("Healthy", "Valid: all 2 points are measured and Valid")
    assert world.conditions(uid)["CleanedUp"]["status"] == "True"


def test_so_is_a_run_on_rook(world: PretendWorld) -> None:
    assert healths(world, create(world)) == ["Progressing", "Healthy"]


def test_a_run_whose_storage_is_kept_is_healthy_too(world: PretendWorld) -> None:
    assert healths(world, world.create("a", cleanup="Never")) == ["Progressing", "Healthy"]


@pytest.mark.parametrize(
    ("verdict", "status", "word"),
    [(Verdict.SUSPECT, "Healthy", "Suspect: "), (Verdict.INVALID, "Degraded", "InvalidResults: ")],
)
def test_numbers_to_be_doubted_are_named_and_numbers_not_to_be_believed_are_no_health(
    world: PretendWorld, verdict: Verdict, status: str, word: str
) -> None:
    world.conductors.knobs.verdict = verdict
    *before, last = [health_of(RUN, run) for run in stages(world, world.create("a"))]
    assert last.status == status
    assert last.message.startswith(word)
    assert before[0].status == "Progressing"
    assert {health.status for health in before} <= {"Progressing", status}


def test_a_run_that_cannot_be_measured_is_degraded_with_the_reason_and_stays_so(world: PretendWorld) -> None:
    uid = world.create("a")
    world.conductors.knobs.fails[uid] = FailureReason.PREPARATION_FAILED
    told = [health_of(RUN, run) for run in stages(world, uid)]
    assert story(health.status for health in told) == ["Progressing", "Degraded"]
    assert told[-1] == Health("Degraded", "PreparationFailed: as it was told")


def test_a_refused_run_is_degraded(world: PretendWorld) -> None:
    missing = {"storageClass": {"name": "nowhere"}, "volume": {"size": "1Gi"}}
    assert healths(world, world.create("a", storage=missing)) == ["Progressing", "Degraded"]


def test_a_run_that_rests_is_suspended_and_goes_on(world: PretendWorld) -> None:
    uid = world.create("a", suspend=True)
    assert healths(world, uid) == ["Progressing", "Suspended"]
    world.change(uid, suspend=False)
    assert healths(world, uid) == ["Progressing", "Healthy"]


def test_a_run_that_ended_is_not_suspended_by_asking_for_it(world: PretendWorld) -> None:
    uid = world.create("a")
    assert healths(world, uid)[-1] == "Healthy"
    world.change(uid, suspend=True)
    assert healths(world, uid) == ["Progressing", "Healthy"]


@pytest.mark.parametrize(
    "status",
    [
        None,
        {},
        {"observedGeneration": -1},
        {"observedGeneration": 1},
        {"observedGeneration": 2},
        {"observedGeneration": 2, "conditions": []},
        {"observedGeneration": 2, "conditions": [{"type": "Succeeded", "status": "Unknown", "reason": "R"}]},
    ],
)
def test_a_run_of_which_little_is_said_is_progressing(status: Document | None) -> None:
    run: Document = {"metadata": {"generation": 2}}
    assert health_of(RUN, run if status is None else {**run, "status": status}).status == "Progressing"


def result_of(**status: object) -> Health:
    return health_of(RESULT, {"metadata": {"generation": 1}, "status": status})


def test_a_result_is_healthy_when_it_is_final_and_to_be_believed() -> None:
    assert health_of(RESULT, {"metadata": {}}).status == "Progressing"
    assert result_of(final=False, verdict="Valid").status == "Progressing"
    assert result_of(final=True, verdict="Valid") == Health("Healthy", "Valid")
    assert result_of(final=True, verdict="Suspect", display={"reason": "LowOverlap"}) == Health(
        "Healthy", "Suspect: LowOverlap"
    )
    assert result_of(final=True, verdict="Invalid", display={"reason": "LowOverlap"}) == Health(
        "Degraded", "Invalid: LowOverlap"
    )


def suite_healths(world: PretendSuites) -> list[str]:
    return story(health_of(SUITE, suite).status for suite in suite_stages(world))


def test_a_suite_is_progressing_while_a_change_is_measured_and_only_then() -> None:
    world = PretendSuites(spec={"repeat": 1})
    assert suite_healths(world) == ["Progressing", "Healthy"]
    world.annotations["plimsoll.dev/request-round"] = "again"
    assert suite_healths(world) == ["Healthy"]
    world.change(repeat=2)
    assert suite_healths(world) == ["Progressing", "Healthy"]


def test_a_regression_is_told_and_degrades_a_suite_that_is_a_gate() -> None:
    world = PretendSuites(spec={"repeat": 1}, verdicts=[RoundVerdict.REGRESSED])
    *_, last = [health_of(SUITE, suite) for suite in suite_stages(world)]
    assert last.status == "Healthy"
    assert last.message.startswith("Regressed: ")
    world.change(gate=True)
    assert suite_healths(world) == ["Progressing", "Degraded"]
    world.annotations["plimsoll.dev/request-round"] = "repaired"
    assert suite_healths(world) == ["Degraded", "Healthy"]


def test_a_suite_that_rests_is_suspended_and_goes_on() -> None:
    world = PretendSuites(spec={"repeat": 1})
    world.measure_round()
    world.change(suspend=True)
    assert suite_healths(world) == ["Progressing", "Suspended"]
    world.change(suspend=False)
    assert suite_healths(world) == ["Progressing", "Healthy"]


def test_a_suite_whose_variant_is_refused_is_degraded_with_the_reason() -> None:
    world = PretendSuites(refuses={"small": "exceeded quota"})
    assert suite_healths(world) == ["Progressing", "Degraded"]
    assert health_of(SUITE, suite_object(world)).message.startswith("VariantRefused: variant small: exceeded quota")
