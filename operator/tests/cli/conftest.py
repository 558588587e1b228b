"""Results of runs, and a pretended cluster."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue

from plimsoll.api.names import LatencyKind, Operation, Outcome, Verdict
from plimsoll.api.operation import Latency, OperationSummary, Statistic
from plimsoll.api.result import BenchmarkResult, Finding, ResultMeta, ResultSpec, ResultStatus, Summary, Trial
from plimsoll.conductor.sink import RESULTS_DIRECTORY, replace_file
from support.command_line import ConnectedKube, context_file


@pytest.fixture(autouse=True)
def _without_fio(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let commands find a program in place of fio, which most tests do without."""
    if request.node.get_closest_marker("fio") is None:
        monkeypatch.setenv("PLIMSOLL_FIO", "sh")


def statistic(mean: float, half_width: float | None = None) -> Statistic:
    if half_width is None:
        return Statistic(trials=1, mean=mean)
    return Statistic(
        trials=3,
        mean=mean,
        standard_deviation=half_width / 2.5,
        coefficient_of_variation=half_width / 2.5 / mean,
        low=mean - half_width,
        high=mean + half_width,
    )


def operation(kind: Operation, iops: Statistic) -> OperationSummary:
    return OperationSummary(
        operation=kind,
        iops=iops,
        bytes_per_second=statistic(iops.mean * 4096),
        mean_latency=statistic(712_345.6),
        percentiles={"50": statistic(612_000), "99": statistic(12_500_000)},
        latency=Latency(kind=LatencyKind.FULL, count=1000, max_nanoseconds=31_000_000),
    )


def result(name: str = "random-read-000", **changes: Any) -> BenchmarkResult:
    """Return the final, valid result of three repetitions; `changes` of its spec and status."""
    status: dict[str, Any] = {
        "trials": tuple(aborted_trial(number) for number in range(3)),
        "summary": Summary(trials=3, operations=(operation(Operation.READ, statistic(21_700.4, 9_503.2)),)),
        "verdict": Verdict.VALID,
        "final": True,
    }
    spec: dict[str, JsonValue] = {"workload": "random-read", "label": "randread 4Ki qd16", "clients": 2}
    given = {key: changes.pop(key) for key in list(changes) if key in ResultSpec.model_fields}
    return BenchmarkResult(
        metadata=ResultMeta(name=f"quickstart-{name}", namespace="default"),
        spec=ResultSpec.model_validate(
            {
                "run": "quickstart",
                "run_uid": "u",
                "point": name,
                "tool": "fio",
                "parameters": {"pattern": "randread"},
                "runtime_seconds": 3,
                "ramp_seconds": 1,
                "repetitions": 3,
            }
            | spec
            | given
        ),
        status=ResultStatus(**(status | changes)),
    )


def aborted_trial(number: int) -> Trial:
    return Trial(
        pass_number=number,
        attempt=0,
        epoch="e",
        clients=(0, 1),
        outcome=Outcome.ABORTED,
        started_at="2026-01-01T00:00:00.000Z",
        finished_at="2026-01-01T00:00:04.000Z",
        verdict=Verdict.INVALID,
    )


def finding(reason: str, verdict: Verdict = Verdict.SUSPECT) -> Finding:
    return Finding(reason=reason, verdict=verdict, message="measured 1, limit 2")


@pytest.fixture
def connected(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> ConnectedKube:
    """Return the empty cluster of the current context, `here`."""
    kube = ConnectedKube()
    config = context_file(tmp_path_factory.mktemp("config") / "config", current="here", contexts={"here": None})
    monkeypatch.setenv("KUBECONFIG", config)
    monkeypatch.setattr("plimsoll.kube.client.AioKube", lambda **_: kube)
    return kube


@pytest.fixture
def results() -> list[BenchmarkResult]:
    """Return one result of every kind: Valid, Suspect with two operations, Invalid without numbers, unfinished."""
    both = (
        operation(Operation.READ, statistic(1_234_567.0, 123_456.0)),
        operation(Operation.WRITE, statistic(528.0)),
    )
    return [
        result(),
        result(
            "mixed-with-quite-a-long-name-000",
            workload="mixed-with-quite-a-long-name",
            label="randrw 70/30 64Ki qd128 x16 jobs io_uring max 100000 IOPS",
            summary=Summary(trials=2, operations=both),
            verdict=Verdict.SUSPECT,
            findings=(finding("PassesMissing"), finding("LowOverlap"), finding("LowOverlap")),
        ),
        result(
            "random-write-000",
            workload="random-write",
            label="randwrite 4Ki qd1",
            summary=None,
            verdict=Verdict.INVALID,
            findings=(finding("NoTrialCounts", Verdict.INVALID),),
        ),
        result("random-write-001", workload="random-write", label="randwrite 4Ki qd16", verdict=None, final=False),
    ]


@pytest.fixture
def directory(tmp_path: Path, results: list[BenchmarkResult]) -> Path:
    """Return a results directory with them."""
    save(tmp_path, results)
    return tmp_path


def save(directory: Path, results: list[BenchmarkResult]) -> None:
    for one in results:
        path = directory / RESULTS_DIRECTORY / f"{one.metadata.name}.json"
        replace_file(path, one.model_dump_json(indent=1), sync=False)
