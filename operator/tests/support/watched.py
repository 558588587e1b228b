"""A run as a cluster shows it while it is watched."""

import json
from typing import Any

from plimsoll.api.names import Operation, RunPhase
from plimsoll.api.status import CurrentTrial, Live, LiveRate, RunState, TrialKey
from plimsoll.cli.watched import WatchedPoint, WatchedRun, watched_run, watched_state

Document = dict[str, Any]

UID = "1b671a64-40d5-491e-99b0-da01ff1f3341"
LABELS = {"plimsoll.dev/run": "nightly", "plimsoll.dev/run-uid": UID}


def condition(kind: str, status: str, message: str = "", reason: str = "Because") -> Document:
    return {"type": kind, "status": status, "reason": reason, "message": message}


def run(*conditions: Document, status: str = "Measuring", message: str = "", **changes: Any) -> Document:
    """Return the document of a run that is `1/4` measured; `changes` of its status."""
    display = {"progress": "1/4", "status": status, "message": message, "workloads": "w"}
    return {
        "apiVersion": "plimsoll.dev/v1alpha1",
        "kind": "BenchmarkRun",
        "metadata": {"name": "nightly", "namespace": "bench", "uid": UID},
        "spec": {},
        "status": {
            "conditions": [*conditions],
            "points": {"total": 2, "completed": 0, "invalid": 0},
            "display": display,
            "somethingNew": True,
            **changes,
        },
    }


def ended(succeeded: bool = True, message: str = "all 2 points are measured") -> Document:  # noqa: FBT001, FBT002
    reason = "Valid" if succeeded else "InvalidResults"
    summary = condition("Succeeded", str(succeeded), message, reason)
    return run(summary, status=reason, message=message, completionTime="2026-01-31T12:00:00Z")


def config_map(state: RunState, **changes: Any) -> Document:
    """Return the state's ConfigMap; `changes` of the state's JSON."""
    document = json.loads(state.model_dump_json()) | changes
    metadata = {"name": "nightly-state", "namespace": "bench", "labels": LABELS}
    data = {"state.json": json.dumps(document)}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def measuring(done: int = 1, *, attempt: int = 0, live: Live | None = None) -> RunState:
    """Return the state in which trial `done + 1` of four runs from second 1000 to 1060."""
    key = TrialKey(point="w-001", pass_number=0, attempt=attempt)
    current = CurrentTrial(key=key, label="randread 4Ki qd16", clients=(0, 1), starts_at=1000.0, ends_at=1060.0)
    return RunState(phase=RunPhase.MEASURING, current=current, live=live, trials_done=done, trials_total=4)


def live(clients: int = 2) -> Live:
    rates = (LiveRate(operation=Operation.READ, iops=12_345.6, bytes_per_second=50_568_192),)
    return Live(clients=clients, rates=rates)


def point(number: int = 0, **changes: str) -> WatchedPoint:
    known = {
        "name": f"w-{number:03d}",
        "label": "randread 4Ki qd16",
        "clients": "2",
        "operation": "read",
        "iops": "12,345 ± 678",
        "p99": "1.23 ms",
        "trials": "1/2",
        "verdict": "Suspect",
        "reason": "LowOverlap +1",
    }
    return WatchedPoint(**(known | changes))


def unmeasured(number: int) -> WatchedPoint:
    return point(number, operation="", iops="", p99="", trials="", verdict="", reason="")


def seen(document: Document, state: RunState | None = None, *points: WatchedPoint) -> WatchedRun:
    read = watched_state(config_map(state), UID) if state is not None else None
    return watched_run(document, read, points)
