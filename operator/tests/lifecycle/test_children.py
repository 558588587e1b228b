from typing import Any

import pytest

from plimsoll.api.names import RUN_KIND
from plimsoll.lifecycle import naming
from plimsoll.lifecycle.children import belongs_to_same_run, pod_fact


def pod(phase: str, **states: dict[str, Any]) -> dict[str, Any]:
    """Return a pod with containers in these states, by name."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "n", "uid": "u", "creationTimestamp": "2026-01-31T11:59:00Z"},
        "status": {
            "phase": phase,
            "containerStatuses": [{"name": name, "state": state} for name, state in states.items()],
        },
    }


def ended(code: int) -> dict[str, Any]:
    message = {"reason": "Completed", "message": "image in use", "finishedAt": "2026-01-31T12:00:00Z"}
    return {"terminated": {"exitCode": code, **message}}


@pytest.mark.parametrize(
    ("code", "words"), [(0, ""), (1, "exit code 1: image in use"), (137, "exit code 137: image in use")]
)
@pytest.mark.parametrize("phase", ["Running", "Succeeded"])
def test_only_a_container_that_failed_has_last_words(phase: str, code: int, words: str) -> None:
    fact = pod_fact("u", pod(phase, client=ended(code)))
    assert (fact.exit_message, fact.exit_code) == (words, code)


RUNNING: dict[str, Any] = {"running": {}}
WAITING: dict[str, Any] = {"waiting": {"reason": "ImagePullBackOff"}}


@pytest.mark.parametrize("program", ["client", "conductor", "teardown"])
@pytest.mark.parametrize(
    ("of_kubernetes", "own", "others", "phase", "is_held"),
    [
        ("Running", RUNNING, {}, "Running", False),
        ("Running", RUNNING, {"proxy": RUNNING}, "Running", False),
        ("Running", RUNNING, {"proxy": ended(1)}, "Running", False),
        ("Running", ended(0), {}, "Succeeded", False),
        ("Running", ended(0), {"proxy": RUNNING}, "Succeeded", True),
        ("Running", ended(1), {"a": ended(0), "proxy": RUNNING}, "Failed", True),
        ("Pending", ended(0), {"proxy": WAITING}, "Succeeded", True),
        ("Failed", ended(0), {"proxy": ended(143)}, "Succeeded", False),
        ("Succeeded", ended(0), {"proxy": ended(0)}, "Succeeded", False),
        ("Failed", RUNNING, {"proxy": RUNNING}, "Failed", False),
    ],
)
def test_a_pod_has_ended_once_its_own_container_has_ended(
    program: str, of_kubernetes: str, own: Any, others: Any, phase: str, *, is_held: bool
) -> None:
    for states in ({program: own, **others}, {**others, program: own}):
        fact = pod_fact("u", pod(of_kubernetes, **states))
        assert (fact.phase, fact.is_held) == (phase, is_held)
        assert fact.exit_code == own.get("terminated", {}).get("exitCode", 0)


@pytest.mark.parametrize(
    ("of_kubernetes", "own", "init", "problem", "exit_message"),
    [
        ("Pending", {"waiting": {"reason": "PodInitializing"}}, WAITING, "ImagePullBackOff: ", ""),
        (
            "Failed",
            {"waiting": {"reason": "PodInitializing"}},
            ended(2),
            "",
            "container init: exit code 2: image in use",
        ),
        ("Running", RUNNING, {"waiting": {"reason": "CrashLoopBackOff"}}, "", ""),
    ],
)
def test_what_keeps_a_container_from_starting_is_known(
    of_kubernetes: str, own: Any, init: Any, problem: str, exit_message: str
) -> None:
    manifest = pod(of_kubernetes, client=own)
    manifest["status"]["initContainerStatuses"] = [{"name": "init", "state": init}]
    fact = pod_fact("u", manifest)
    assert (fact.problem, fact.exit_message) == (problem, exit_message)


def thing(kind: str, uid: str | None, *owners: tuple[str, str]) -> dict[str, Any]:
    labels = {} if uid is None else {naming.LABEL_RUN_UID: uid}
    references = [{"apiVersion": "v1", "kind": owner, "name": "x", "uid": of} for owner, of in owners]
    return {
        "apiVersion": "v1",
        "kind": kind,
        "metadata": {"name": "x", "labels": labels, "ownerReferences": references},
    }


@pytest.mark.parametrize(("uid", "is_the_same"), [("u", True), ("v", False), (None, False)])
def test_what_exists_outside_the_namespace_of_a_run_is_the_runs_by_its_label(
    uid: str | None, *, is_the_same: bool
) -> None:
    assert belongs_to_same_run(thing("CephClient", uid), thing("CephClient", "u")) is is_the_same
    owned = thing("ConfigMap", "u", (RUN_KIND, "u"))
    assert belongs_to_same_run(thing("ConfigMap", uid, (RUN_KIND, str(uid))), owned) is is_the_same


def test_a_pod_has_the_jobs_that_own_it() -> None:
    obj = pod("Running")
    obj["metadata"]["ownerReferences"] = [{"kind": "Job", "uid": "j"}, {"kind": RUN_KIND, "uid": "u"}]
    assert (pod_fact("u", obj).jobs, pod_fact("u", obj).own) == (frozenset({"j"}), False)
    obj["metadata"]["labels"] = {naming.LABEL_RUN_UID: "u"}
    assert pod_fact("u", obj).own
