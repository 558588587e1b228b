import pytest

from plimsoll.lifecycle.children import pod_fact


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
