"""When pods started according to the cluster: kube-burner misses the start of a pod whose events reach it late.

kube-burner handles one pod after the other and waits at most 3.1 s for the event that its container has started, and up
to 51 s for that of its scheduling; a pod that it does not get to has no time. The same events are in the cluster
afterwards. Source: kube-burner 2.7.3, `getStartedTimeFromEvent`, `getScheduledTimeFromEvent`.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from plimsoll.tools.base import Output, OutputError
from plimsoll.tools.kube_burner.documents import documents_of
from plimsoll.tools.reading import JsonObject, nanoseconds_of, printable

PODS_FILE = "pods.json"
"""Written by the helper beside kube-burner's files: a list with `name`, `created` and, of a pod that has started,
`started` in Unix nanoseconds and `exact`, which is false if only its second is known."""

STARTED = "Started"
"""Reason of the event of a container's start."""

_SECOND = 10**9
_NAME = re.compile(r"pod-(?P<iteration>\d{1,6})-\d{1,6}", re.ASCII)
_EVENT = re.compile(r".+\.(?P<time>[0-9a-f]{15,16})", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class StartedPod:
    """A ready pod; times in Unix nanoseconds, its creation in whole seconds."""

    name: str
    iteration: int
    created: int
    started: int
    exact: bool


def pods_text(pods: Sequence[Mapping[str, Any]], events: Sequence[Mapping[str, Any]]) -> str:
    """Return the content of PODS_FILE from pods and events as the API server returns them; empty without ready pods.

    Others may create pods in every namespace of a cluster: only those with names of kube-burner's template count.
    """
    times = _event_times(events)
    own = [pod for pod in pods if _NAME.fullmatch(pod["metadata"]["name"])]
    entries = [entry for pod in own if is_ready(pod) and (entry := _entry(pod, times))]
    return json.dumps(entries) if entries else ""


def is_ready(pod: Mapping[str, Any]) -> bool:
    """Return whether a pod is ready."""
    conditions = pod.get("status", {}).get("conditions") or ()
    return any(one.get("type") == "Ready" and one.get("status") == "True" for one in conditions)


def started_pods(output: Output) -> list[StartedPod]:
    """Read PODS_FILE; there is none from a helper of an earlier version.

    Raises:
        OutputError: the file is malformed.

    """
    documents = documents_of(output, PODS_FILE) if PODS_FILE in output.files else []
    return [_pod(document) for document in documents]


def _entry(pod: Mapping[str, Any], times: Mapping[str, int]) -> Mapping[str, object] | None:
    metadata = pod["metadata"]
    exact = times.get(metadata["uid"])
    started = exact or _started(pod)
    if not started:
        return None
    created = nanoseconds_of(metadata["creationTimestamp"])
    return {"name": metadata["name"], "created": created, "started": started, "exact": exact is not None}


def _started(pod: Mapping[str, Any]) -> int | None:
    """Return the end of the second in which the last container started: a pod's time is never too short."""
    states = [one.get("state", {}).get("running") or {} for one in pod["status"].get("containerStatuses") or ()]
    stamps = [state["startedAt"] for state in states if state.get("startedAt")]
    return max(map(nanoseconds_of, stamps)) + _SECOND if stamps else None


def _event_times(events: Sequence[Mapping[str, Any]]) -> Mapping[str, int]:
    """Return when the last container of each pod started, by the pod's UID.

    The name of an event ends with its time in hexadecimal nanoseconds. Source: client-go 0.34, `makeEvent`.
    """
    return dict(sorted(_started_events(events), key=lambda one: one[1]))


def _started_events(events: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, int]]:
    for event in events:
        if event.get("reason") == STARTED and (found := _EVENT.fullmatch(event["metadata"]["name"])):
            yield event.get("involvedObject", {}).get("uid", ""), int(found["time"], 16)


def _pod(document: JsonObject) -> StartedPod:
    name = document.text("name")
    found = _NAME.fullmatch(name)
    if found is None:
        raise OutputError(f"{document.path}.name is not that of a pod of kube-burner: {printable(name)}")
    created, started = document.count("created"), document.count("started")
    if started <= created:
        raise OutputError(f"{document.path}.started is not after its creation")
    return StartedPod(
        name=name,
        iteration=int(found["iteration"]),
        created=created,
        started=started,
        exact=document.flag("exact"),
    )
