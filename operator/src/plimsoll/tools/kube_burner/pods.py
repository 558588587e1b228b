"""When pods started according to the cluster: kube-burner misses the start of a pod whose events reach it late.

kube-burner handles one pod after the other and waits at most 3.1 s for the event that its container has started, and up
to 51 s for that of its scheduling; a pod that it does not get to has no time. The same events are in the cluster
afterwards. Source: kube-burner 2.7.3, `getStartedTimeFromEvent`, `getScheduledTimeFromEvent`.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from plimsoll.tools.command import Output, OutputError
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

_Times: TypeAlias = Mapping[tuple[str, str], int]
"""When a container started, in Unix nanoseconds, by the UID of its pod and its path there: `spec.containers{NAME}`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StartedPod:
    """A ready pod; times in Unix nanoseconds, its creation in whole seconds.

    With a kubelet whose clock is behind that of the API server, `started` may be before `created`.
    """

    name: str
    iteration: int
    created: int
    started: int
    exact: bool


def pods_text(pods: Sequence[Mapping[str, Any]], events: Sequence[Mapping[str, Any]]) -> str:
    """Return the content of PODS_FILE from pods and events as the API server returns them; empty without ready pods.

    Others may create pods in every namespace of a cluster: only those with names of kube-burner's template count. A pod
    that is being deleted does not: a churn may have created it again.
    """
    times = _event_times(events)
    own = [pod for pod in pods if _NAME.fullmatch(pod["metadata"]["name"]) and not is_going(pod)]
    entries = [entry for pod in own if is_ready(pod) and (entry := _entry(pod, times))]
    return json.dumps(entries) if entries else ""


def is_going(obj: Mapping[str, Any]) -> bool:
    """Return whether an object is being deleted."""
    return "deletionTimestamp" in obj["metadata"]


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


def _entry(pod: Mapping[str, Any], times: _Times) -> Mapping[str, object] | None:
    metadata, second = pod["metadata"], _last_second(pod)
    exact = _exact(pod, times)
    if exact is not None and second is not None and exact < second:
        # Events of the last container's start are missing.
        exact = None
    # The end of the second: a pod's time is never too short.
    started = exact if exact is not None else second and second + _SECOND
    if started is None:
        return None
    created = nanoseconds_of(metadata["creationTimestamp"])
    return {"name": metadata["name"], "created": created, "started": started, "exact": exact is not None}


def _last_second(pod: Mapping[str, Any]) -> int | None:
    """Return the beginning of the second in which the last container started; None if that is unknown."""
    states = [one.get("state", {}).get("running") or {} for one in pod["status"].get("containerStatuses") or ()]
    stamps = [state["startedAt"] for state in states if state.get("startedAt")]
    return max(map(nanoseconds_of, stamps)) if stamps else None


def _exact(pod: Mapping[str, Any], times: _Times) -> int | None:
    """Return when the last container of a pod started; None without an event of each. Init containers do not count."""
    names = [container["name"] for container in pod.get("spec", {}).get("containers") or ()]
    found = [times.get((pod["metadata"]["uid"], f"spec.containers{{{name}}}")) for name in names]
    known = [time for time in found if time is not None]
    return max(known) if known and len(known) == len(names) else None


def _event_times(events: Sequence[Mapping[str, Any]]) -> _Times:
    """Return when each container last started, by its pod's UID and its path in the pod.

    The name of an event ends with its time in hexadecimal nanoseconds. Source: client-go 0.34, `makeEvent`.
    """
    return dict(sorted(_started_events(events), key=lambda one: one[1]))


def _started_events(events: Sequence[Mapping[str, Any]]) -> Iterator[tuple[tuple[str, str], int]]:
    for event in events:
        if event.get("reason") == STARTED and (found := _EVENT.fullmatch(event["metadata"]["name"])):
            about = event.get("involvedObject", {})
            yield (about.get("uid", ""), about.get("fieldPath", "")), int(found["time"], 16)


def _pod(document: JsonObject) -> StartedPod:
    name = document.text("name")
    found = _NAME.fullmatch(name)
    if found is None:
        raise OutputError(f"{document.path}.name is not that of a pod of kube-burner: {printable(name)}")
    return StartedPod(
        name=name,
        iteration=int(found["iteration"]),
        created=document.count("created"),
        started=document.count("started"),
        exact=document.flag("exact"),
    )
