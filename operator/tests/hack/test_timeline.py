"""The stages that `make bench-cluster` prints, from documents like those of a real API server."""

import importlib
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

TESTS = Path(__file__).parents[3] / "e2e" / "tests"
BEGUN = 1_700_000_000.0
UID = "0b1f2e3d-0000-4000-8000-000000000001"


@pytest.fixture
def timeline(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(TESTS))
    return importlib.import_module("timeline")


def metadata(name: str, **labels: str) -> dict[str, Any]:
    ours = {"app.kubernetes.io/managed-by": "plimsoll", "plimsoll.dev/run": "timed", "plimsoll.dev/run-uid": UID}
    return {
        "name": name,
        "namespace": "plimsoll-bench",
        "uid": f"uid-of-{name}",
        "resourceVersion": "1234",
        "creationTimestamp": "2023-11-14T22:13:20Z",
        "labels": {**ours, **labels},
        "managedFields": [{"manager": "plimsoll", "operation": "Update", "time": "2023-11-14T22:13:20Z"}],
    }


def pod(name: str, labels: dict[str, str], *, phase: str = "Pending", scheduled: bool = False) -> dict[str, Any]:
    status: dict[str, Any] = {"phase": phase, "qosClass": "Burstable"}
    if scheduled:
        condition = {"lastProbeTime": None, "lastTransitionTime": "2023-11-14T22:13:22Z", "status": "True"}
        status["conditions"] = [
            {**condition, "type": "PodScheduled"},
            {**condition, "type": "Ready", "status": "False", "reason": "ContainersNotReady"},
        ]
        waiting = {"waiting": {"reason": "ContainerCreating"}}
        states = {
            "Pending": waiting,
            "Running": {"running": {"startedAt": "2023-11-14T22:13:24Z"}},
            "Succeeded": {"terminated": {"exitCode": 0, "reason": "Completed"}},
        }
        status["containerStatuses"] = [{"name": "agent", "ready": False, "restartCount": 0, "state": states[phase]}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata(name, **labels),
        "spec": {"containers": [{"name": "agent"}]},
        "status": status,
    }


def client(number: int, **status: Any) -> dict[str, Any]:
    labels = {
        "app.kubernetes.io/component": "client",
        "plimsoll.dev/client": str(number),
        "plimsoll.dev/attempt": "0",
        "batch.kubernetes.io/job-name": f"timed-client-{number}-0",
    }
    return pod(f"timed-client-{number}-0-x7k2p", labels, **status)


def conductor(**status: Any) -> dict[str, Any]:
    return pod("timed-conductor-b8d4c", {"app.kubernetes.io/component": "conductor"}, **status)


def claim(number: int, phase: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": metadata(f"timed-client-{number}", **{"plimsoll.dev/client": str(number)}),
        "spec": {"storageClassName": "standard", "volumeMode": "Filesystem"},
        "status": {"phase": phase},
    }


def run(**conditions: str) -> dict[str, Any]:
    entries = [
        {
            "type": kind,
            "status": "False" if reason == "InProgress" else "True",
            "reason": reason,
            "message": "",
            "lastTransitionTime": "2023-11-14T22:13:21Z",
            "observedGeneration": 1,
        }
        for kind, reason in conditions.items()
    ]
    status = {"observedGeneration": 1, "conditions": entries}
    return {
        "apiVersion": "plimsoll.dev/v1alpha1",
        "kind": "BenchmarkRun",
        "metadata": {**metadata("timed"), "labels": {}},
        "spec": {},
        "status": status if entries else {"observedGeneration": -1},
    }


def state(**fields: Any) -> dict[str, Any]:
    document = {
        "schemaVersion": 1,
        "epoch": "",
        "phase": "Gathering",
        "message": "",
        "registered": [],
        "missing": [],
        "prefill": {"doneBytes": 0, "totalBytes": 0},
        "current": None,
        **fields,
    }
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata("timed-state"),
        "data": {"state.json": json.dumps(document)},
    }


ROOT_CA = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kube-root-ca.crt"}, "data": {"ca.crt": ""}}
CURRENT = {"key": {"point": "read-000", "passNumber": 0, "attempt": 0}, "startsAt": BEGUN + 5.5, "endsAt": BEGUN + 15.5}
TRIALS = [
    {"outcome": "Aborted", "finishedAt": "2023-11-14T22:13:30.000Z", "abort": {"reason": "LateClient"}},
    {
        "outcome": "Measured",
        "finishedAt": "2023-11-14T22:13:36.500Z",
        "window": {"startNanoseconds": int((BEGUN + 5.9) * 1e9), "endNanoseconds": int((BEGUN + 15.9) * 1e9)},
    },
]
STORY = [
    (0.1, ROOT_CA),
    (0.2, run()),
    (0.6, run(Admitted="Admitted")),
    (0.7, state()),
    (0.8, claim(0, "Pending")),
    (0.8, claim(1, "Pending")),
    (1.0, client(0)),
    (1.1, client(1)),
    (1.2, conductor()),
    (2.0, claim(0, "Bound")),
    (2.1, claim(1, "Bound")),
    (2.2, client(0, scheduled=True)),
    (2.3, client(1, scheduled=True)),
    (2.4, conductor(phase="Running", scheduled=True)),
    (3.0, state(epoch="uid-1", missing=[0, 1])),
    (3.4, client(0, phase="Running", scheduled=True)),
    (3.5, client(1, phase="Running", scheduled=True)),
    (4.0, state(epoch="uid-1", phase="Preparing", registered=[0, 1])),
    (4.9, state(epoch="uid-1", phase="Measuring", registered=[0, 1])),
    (5.0, state(epoch="uid-1", phase="Measuring", registered=[0, 1], current=CURRENT)),
    (17.0, conductor(phase="Succeeded", scheduled=True)),
    (17.2, run(Admitted="Admitted", Measured="AllFinal", CleanedUp="InProgress")),
    (19.0, run(Admitted="Admitted", Measured="AllFinal", CleanedUp="Removed")),
]
EXPECTED = {
    "admitted": 0.6,
    "clients' pods created": 1.1,
    "conductor's pod created": 1.2,
    "PVCs bound": 2.1,
    "pods scheduled": 2.3,
    "conductor's container started": 2.4,
    "conductor active": 3.0,
    "containers started": 3.5,
    "clients registered": 4.0,
    "prefill done": 4.9,
    "first T0": 5.5,
    "start of first trial's window": 5.9,
    "end of last trial's window": 15.9,
    "last trial judged": 16.5,
    "conductor succeeded": 17.0,
    "Measured": 17.2,
    "finished and clean": 19.0,
}


def stages(timeline: Any, story: list[tuple[float, dict[str, Any]]], trials: list[dict[str, Any]]) -> list[Any]:
    changes = [timeline.Change(BEGUN + seconds, obj) for seconds, obj in story]
    found: list[Any] = timeline.stages(changes, trials, run="timed", clients=2)
    return found


def test_a_stage_is_reached_when_its_last_object_reaches_it(timeline: Any) -> None:
    found = stages(timeline, STORY, TRIALS)
    assert [stage.name for stage in found] == list(EXPECTED)
    assert [round(stage.seconds - BEGUN, 3) for stage in found] == list(EXPECTED.values())


def test_changes_may_arrive_out_of_order(timeline: Any) -> None:
    assert stages(timeline, STORY[::-1], TRIALS) == stages(timeline, STORY, TRIALS)


def test_a_run_that_stops_early_has_the_stages_that_it_reached(timeline: Any) -> None:
    found = stages(timeline, STORY[:9], [])
    assert [stage.name for stage in found] == ["admitted", "clients' pods created", "conductor's pod created"]


def test_a_replaced_client_counts_once_it_runs(timeline: Any) -> None:
    lost = client(1, phase="Succeeded", scheduled=True)
    story = [entry for entry in STORY if entry[0] != 3.5] + [(3.6, lost)]
    found = {stage.name: stage.seconds - BEGUN for stage in stages(timeline, story, TRIALS)}
    assert found["containers started"] == pytest.approx(3.6)


def test_concurrent_stages_share_their_time(timeline: Any) -> None:
    names = [timeline.Stage("one", 10.0), timeline.Stage("beside it", 9.5), timeline.Stage("after", 12.0)]
    assert list(timeline.rows(names, 9.0)) == [("one", 1.0, 1.0), ("beside it", 0.5, 0.0), ("after", 3.0, 2.0)]


def test_a_recorder_dates_changes_and_fails_if_a_watch_fails(timeline: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = importlib.import_module("recorder")

    class Api:
        def watch(self, kind: str, namespace: str) -> Any:
            assert namespace == "plimsoll-bench"
            if kind == "pods":
                yield {"type": "ADDED", "object": client(0)}
                yield {"type": "DELETED", "object": client(0)}
            if kind == "configmaps":
                yield {"type": "ERROR", "object": {"kind": "Status", "code": 410}}

    monkeypatch.setattr(recorder, "time", SimpleNamespace(time=lambda: BEGUN))
    kept = recorder.Recorder(Api(), "plimsoll-bench")
    for kind in ("pods", "persistentvolumeclaims"):
        kept._watch(kind)
    assert kept.changes() == [timeline.Change(BEGUN, client(0))]
    kept._watch("configmaps")
    with pytest.raises(AssertionError, match="410"), kept.recording():
        pass
