"""The manifests of runs for tests, and what their results may be on a busy machine."""

import os
from typing import Any

STANDARD = "standard"
STAGE = os.environ.get("PLIMSOLL_STAGE", "")
WORKER = os.environ.get("PYTEST_XDIST_WORKER", "")
STORAGE_CLASS = "-".join(filter(None, (STANDARD, STAGE, WORKER)))
"""Runs on the same class take turns, so each test process has its own, also beside those of other stages."""

RATE = 40
"""Rate limit of each client, in operations per second."""

MEASURED = {"Valid", "Suspect", "InvalidResults"}
CLEAN = {"Removed", "StorageKept", "NothingCreated"}

LATE = {"ClientNotArmed", "LateClient"}
"""Abort reasons of a client that a busy machine armed or started too late."""

LOAD_REASONS = {"LateClient", "LowOverlap", "ShortRun", "Stalled", "ClientStalled"}
"""Why a trial can be Invalid only because the machine does too much else."""

MAX_ATTEMPTS = 3


def workload(**changes: Any) -> dict[str, Any]:
    """Return a rate-limited workload: tests assert reasons and invariants, never speed.

    It is long enough that clients which a busy machine starts half a second apart still overlap, and so slow that a
    tenth of a second without a processor does not look like freezing storage.
    """
    base = {
        "name": "read",
        # Reads of small data sets, which the OSDs hold in memory.
        "caches": "Warm",
        "fio": {"pattern": "randread", "ioDepth": [4], "rateIops": RATE},
        "runtimeSeconds": 8,
        "rampSeconds": 2,
    }
    return base | changes


def run(name: str, namespace: str, **changes: Any) -> dict[str, Any]:
    """Return a run of two clients on a file system each, which is the default; one point, two repetitions."""
    spec: dict[str, Any] = {
        "storage": {"storageClass": {"name": STORAGE_CLASS}, "volume": {"size": "64Mi"}},
        "clients": {"count": 2},
        "workloads": [workload()],
        "repetitions": 2,
        "prepare": {"settleSeconds": 0},
        "timeouts": {"provisionSeconds": 300, "readySeconds": 240, "totalSeconds": 1200},
    }
    return {
        "apiVersion": "plimsoll.dev/v1alpha1",
        "kind": "BenchmarkRun",
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec | changes,
    }


def assert_measured_once(trials: list[dict[str, Any]], passes: int) -> None:
    """Check that in each pass of a point, exactly the last attempt counts.

    Earlier attempts were aborted, or Invalid because the machine was busy; so may be the last one, if there are as many
    as there may be.
    """
    attempts: dict[int, list[dict[str, Any]]] = {number: [] for number in range(passes)}
    for trial in sorted(trials, key=lambda trial: int(trial["attempt"])):
        attempts[trial["passNumber"]].append(trial)
    for number, found in attempts.items():
        assert [trial["attempt"] for trial in found] == list(range(len(found))), f"pass {number}: {found}"
        counts = [trial["outcome"] == "Measured" and trial["verdict"] != "Invalid" for trial in found]
        assert not any(counts[:-1]), f"pass {number}: {found}"
        assert counts[-1] or (len(found) >= MAX_ATTEMPTS and invalid_for_load(found)), f"pass {number}: {found}"


def invalid_for_load(trials: list[dict[str, Any]]) -> bool:
    """Whether a busy machine alone explains why no attempt counts: at least one measured something."""
    reasons = [
        {finding["reason"] for finding in trial["findings"] if finding["verdict"] == "Invalid"}
        for trial in trials
        if trial["outcome"] == "Measured"
    ]
    return bool(reasons) and all(found and found <= LOAD_REASONS for found in reasons)
