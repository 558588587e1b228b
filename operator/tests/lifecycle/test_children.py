from typing import Any

import pytest

from plimsoll.api.names import RUN_KIND
from plimsoll.lifecycle import naming
from plimsoll.lifecycle.children import belongs_to_same_run, member, pod_fact


@pytest.mark.parametrize(
    ("code", "words"), [(0, ""), (1, "exit code 1: image in use"), (137, "exit code 137: image in use")]
)
@pytest.mark.parametrize("phase", ["Running", "Succeeded"])
def test_only_a_container_that_failed_has_last_words(phase: str, code: int, words: str) -> None:
    ended = {"exitCode": code, "reason": "Completed", "message": "image in use", "finishedAt": "2026-01-31T12:00:00Z"}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "n", "uid": "u", "creationTimestamp": "2026-01-31T11:59:00Z"},
        "status": {"phase": phase, "containerStatuses": [{"state": {"terminated": ended}}]},
    }
    assert (pod_fact(pod).exit_message, pod_fact(pod).exit_code) == (words, code)


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


def test_only_pods_have_jobs() -> None:
    owners = ("Job", "j"), (RUN_KIND, "u")
    assert member(lambda obj: obj["kind"], "u", thing("Pod", "u", *owners)).jobs == {"j"}
    assert member(lambda obj: obj["kind"], "u", thing("Role", "u", *owners)).jobs == frozenset()
