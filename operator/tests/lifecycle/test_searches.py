"""A run that searches for the line, as the operator sees it."""

from typing import Any

from plimsoll.api.line import MOST_PROBES, Ending
from plimsoll.api.names import Verdict
from plimsoll.api.result import BenchmarkResult
from support.pretend_cluster import Document
from support.pretend_conductor import LINE
from support.pretend_world import PretendWorld, run_of

WORKLOAD: dict[str, Any] = {
    "name": "w",
    "fio": {"ioDepth": [64]},
    "runtimeSeconds": 4,
    "rampSeconds": 1,
    "line": {
        "start": 500,
        "limit": 20_000,
        "precisionPercent": 20,
        "objectives": [{"percentile": "99", "latency": "5ms"}],
    },
}


def create(world: PretendWorld) -> str:
    timeouts = {"provisionSeconds": 60, "readySeconds": 60, "totalSeconds": 3600}
    return world.create("a", workloads=[WORKLOAD], timeouts=timeouts)


def result_of(world: PretendWorld, uid: str) -> BenchmarkResult:
    (found,) = world.cluster.of_run("BenchmarkResult", uid)
    return _read(found)


def _trials(world: PretendWorld, uid: str) -> int:
    return sum(len(found.get("status", {}).get("trials", ())) for found in world.cluster.of_run("BenchmarkResult", uid))


def _read(found: Document) -> BenchmarkResult:
    status = {key: value for key, value in found.get("status", {}).items() if key != "display"}
    return BenchmarkResult.model_validate(
        {"metadata": {"name": found["metadata"]["name"], "namespace": "bench"}, "spec": found["spec"], "status": status}
    )


def test_a_search_succeeds_with_a_line_and_without_a_summary(world: PretendWorld) -> None:
    uid = create(world)
    world.until_settled(uid)
    assert world.conditions(uid)["Succeeded"]["status"] == "True"
    assert run_of(world, uid)["status"]["points"] == {"total": 1, "completed": 1, "invalid": 0}
    result = result_of(world, uid)
    assert result.spec.repetitions == MOST_PROBES
    assert result.spec.line is not None
    assert result.spec.line.objectives[0].latency_microseconds == 5000
    status = result.status
    assert (status.summary, status.verdict) == (None, Verdict.VALID)
    assert status.line is not None
    assert status.line.ending is Ending.PRECISE
    assert status.line.low is not None
    assert status.line.high is not None
    assert status.line.low < LINE < status.line.high


def test_a_search_that_is_suspended_continues_with_the_same_loads(world: PretendWorld) -> None:
    other = create(world)
    world.until_settled(other)
    undisturbed = [trial.probe.offered for trial in result_of(world, other).status.trials if trial.probe]
    world.cluster.delete(run_of(world, other))
    world.until(lambda: world.run(other) is None)
    uid = create(world)
    world.until(lambda: _trials(world, uid) > 2)
    world.change(uid, suspend=True)
    world.until(lambda: world.conditions(uid)["Suspended"]["status"] == "True")
    world.change(uid, suspend=False)
    world.until_settled(uid)
    loads = [trial.probe.offered for trial in result_of(world, uid).status.trials if trial.probe and not trial.abort]
    assert loads == undisturbed
    assert any(trial.abort for trial in result_of(world, uid).status.trials)
