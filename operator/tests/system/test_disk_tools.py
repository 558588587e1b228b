"""Local mode with the real dd and ioping beside fio, and what their trials are worth."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from plimsoll.api.names import Operation, Verdict
from plimsoll.api.result import BenchmarkResult
from support.local_run import LocalRun, invalid_for_load, make_spec

pytestmark = [pytest.mark.system, pytest.mark.fio, pytest.mark.usefixtures("own_disk")]

MEBIBYTE = 2**20
DD = {"name": "dd", "dd": {"operation": ["Read", "Write", "Copy"], "blockSize": ["64Ki"]}, "runtimeSeconds": 30}
PINGS: Mapping[str, Any] = {
    "name": "pings",
    "ioping": {"operation": ["Read", "Write"], "intervalMilliseconds": 2},
    "runtimeSeconds": 4,
    "rampSeconds": 1,
}


def by_label(run: LocalRun) -> dict[str, BenchmarkResult]:
    return {result.spec.label: result for result in run.found()}


def reasons_of(result: BenchmarkResult) -> set[str]:
    return {finding.reason for finding in result.status.findings}


@pytest.mark.essential
def test_dd_and_ioping_measure_the_data_sets_of_clients(tmp_path: Path, fio: str) -> None:
    with LocalRun(tmp_path, fio, make_spec(workloads=[DD, dict(PINGS)], repetitions=1)) as run:
        out = run.complete()
    results = by_label(run)
    assert set(results) == {
        "dd read 64Ki", "dd write 64Ki", "dd copy 64Ki", "ioping read 4Ki every 2 ms", "ioping write 4Ki every 2 ms",
    }  # fmt: skip
    # A file system is filled to three quarters of its 16 MiB.
    for label, size in (("dd read 64Ki", 12), ("dd write 64Ki", 12), ("dd copy 64Ki", 6)):
        assert_read_or_written_once(results[label], size * MEBIBYTE)
    for label, operation in (("ioping read 4Ki every 2 ms", "read"), ("ioping write 4Ki every 2 ms", "write")):
        if not invalid_for_load(results[label].status.trials):
            assert_timed(results[label], Operation(operation))
    assert "dd copy 64Ki" in out
    assert list(run.data.iterdir()) == [], "the data is removed"


def assert_read_or_written_once(result: BenchmarkResult, size: int) -> None:
    """Check that each of two clients did all its work, which is far too little for a measurement."""
    trial = result.status.trials[-1]
    assert {operation.bytes for operation in trial.operations} == {2 * size}, trial.findings
    assert result.status.verdict is Verdict.SUSPECT, result.status.findings
    assert "RuntimeTooShort" in reasons_of(result)
    assert trial.window is None
    assert trial.tool is not None
    (version,) = trial.tool.versions
    assert version.startswith("dd (coreutils) ")
    assert "\n" not in version


def assert_timed(result: BenchmarkResult, operation: Operation) -> None:
    trial = result.status.trials[-1]
    (found,) = trial.operations
    assert found.operation is operation
    # At most one request every 2 ms of two clients; on a busy machine fewer.
    assert 100 < found.rates.iops <= 1010
    assert found.latency.percentiles["50"] > 0
    assert trial.window is not None
    assert result.status.verdict is not Verdict.INVALID, result.status.findings
    assert not reasons_of(result) & {"OutputUnreadable", "HistogramMismatch", "SeriesIncomplete", "ToolTooOld"}


def test_buffered_tools_measure_the_memory(tmp_path: Path, fio: str) -> None:
    dd = {"name": "dd", "dd": {"operation": ["Write"], "direct": False}, "runtimeSeconds": 30}
    pings = {**PINGS, "ioping": {"direct": False, "intervalMilliseconds": 2}}
    with LocalRun(tmp_path, fio, make_spec(workloads=[dd, pings], repetitions=1)) as run:
        run.complete()
    for label, result in by_label(run).items():
        assert "CacheSized" in reasons_of(result), label
