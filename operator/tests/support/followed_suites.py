"""A suite as a cluster shows it while it is watched, and its former rounds with their runs and results."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from plimsoll.api.suite import decode_suite
from plimsoll.suite.children import child_name, suite_digest, turns_of
from support.repeated import result, steady, trials_of

Document = dict[str, Any]

NAME, NAMESPACE, UID = "weekly", "bench", "7c9e6679-7425-40de-944b-e07fc1f90ae7"
MINUTE = 29_000_000
TIME = "2026-03-01T03:00:00Z"
RATES = (1000, 1006, 994)

SPEC: Document = {
    "run": {
        "storage": {"storageClass": {"name": "any"}, "volume": {"size": "16Mi"}},
        "workloads": [{"name": "w", "fio": {}}],
    },
    "variants": [{"name": "old"}, {"name": "new", "set": {"workloads": [{"name": "w", "fio": {"ioDepth": [2]}}]}}],
    "comparisons": [{"name": "upgrade", "baseline": {"rounds": "Accepted"}}],
    "hypotheses": [
        {
            "name": "alike",
            "left": {"variant": "new", "workload": "w", "quantity": "iops"},
            "of": {"variant": "old", "workload": "w", "quantity": "iops"},
            "atLeastPercent": 90,
        }
    ],
}


def ended_round(number: int, verdict: str = "NoRegression", cause: str = "Scheduled", **more: Any) -> Document:
    """Return the entry of a former round."""
    return {
        "minute": MINUTE + number,
        "cause": cause,
        "startTime": TIME,
        "completionTime": TIME,
        "verdict": verdict,
        "digest": suite_digest(decode_suite(suite()).spec),
        **more,
    }


def active_round(number: int, done: int = 0, current: str = "", cause: str = "Change") -> Document:
    """Return the entry of the active round, of six runs."""
    children = {"done": done, "total": 6}
    found = {"minute": MINUTE + number, "seed": 1, "cause": cause, "startTime": TIME, "children": children}
    return found | ({"current": current} if current else {})


def suite(*, request: str = "", generation: int = 1, **status: Any) -> Document:
    """Return the document of a suite; `status` are parts of its status."""
    annotations = {"annotations": {"plimsoll.dev/request-round": request}} if request else {}
    return {
        "apiVersion": "plimsoll.dev/v1alpha1",
        "kind": "BenchmarkSuite",
        "metadata": {"name": NAME, "namespace": NAMESPACE, "uid": UID, "generation": generation, **annotations},
        "spec": SPEC,
        "status": {"observedGeneration": 1, "display": {"status": "Idle", "message": "no round is due"}, **status},
    }


def condition(kind: str, reason: str, message: str = "", status: str = "True") -> Document:
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "observedGeneration": 1,
        "lastTransitionTime": TIME,
    }


def measured_runs(
    numbers: Sequence[int], scale: Mapping[int, float] | None = None, *, uid: str = UID
) -> Iterator[Document]:
    """Yield the runs of rounds, each with its result; `scale` is the rate of a round as a part of the others'."""
    decoded = decode_suite(suite())
    for number in numbers:
        for turn in turns_of(decoded.spec, 1):
            name = child_name(decoded, turn, MINUTE + number, uid)
            yield owned_run(name, "True", uid)
            rate = RATES[turn.repeat] * (scale or {}).get(number, 1.0)
            document = result(trials_of(steady(rate)), run=name).model_dump(mode="json", exclude_none=True)
            document["metadata"] |= {"namespace": NAMESPACE, "labels": {"plimsoll.dev/run": name}}
            document["status"]["fingerprint"] |= dict.fromkeys(("identitySha256", "contextSha256"), "0" * 64)
            yield document


def owned_run(name: str, succeeded: str, uid: str = UID) -> Document:
    """Return a run of the suite."""
    owner = {"apiVersion": "plimsoll.dev/v1alpha1", "kind": "BenchmarkSuite", "name": NAME, "uid": uid}
    labels = {"plimsoll.dev/suite": NAME}
    return {
        "apiVersion": "plimsoll.dev/v1alpha1",
        "kind": "BenchmarkRun",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": labels, "ownerReferences": [owner]},
        "spec": {},
        "status": {
            "conditions": [condition("Succeeded", "Valid", status=succeeded)],
            "display": {"status": "Measuring", "progress": "3/12", "message": "trial 4"},
        },
    }
