"""Pods whose start kube-burner has missed, timed by what the cluster says of them."""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.api.json_reader import OutputError
from plimsoll.tools.base import Output
from plimsoll.tools.kube_burner import PODS_FILE, pods_text, started_pods
from plimsoll.tools.reading import nanoseconds_of

from .test_kube_burner import CLAIMS, PODS, SECOND, edited, golden, parse, with_files

CREATED = "2026-11-21T10:00:29Z"
START = nanoseconds_of(CREATED)


def pod(
    name: str = "pod-4-1",
    *,
    created: str = CREATED,
    ready: str = "True",
    started: str = "",
    containers: Sequence[str] = ("sleep",),
    **metadata: str,
) -> dict[str, Any]:
    state = {"running": {"startedAt": started}} if started else {"waiting": {}}
    status = {"conditions": [{"type": "Ready", "status": ready}], "containerStatuses": [{"state": state}]}
    return {
        "metadata": {"name": name, "uid": f"uid-{name}", "creationTimestamp": created, **metadata},
        "spec": {"containers": [{"name": container} for container in containers]},
        "status": status,
    }


def event(
    time: int, *, name: str = "pod-4-1", reason: str = "Started", path: str = "spec.containers{sleep}"
) -> dict[str, Any]:
    about = {"uid": f"uid-{name}", "fieldPath": path}
    return {"metadata": {"name": f"{name}.{time:x}"}, "reason": reason, "involvedObject": about}


def missed(number: int, text: str, *, latency: int | None = None) -> Output:
    """The recorded output without the time of a pod, of which the cluster knows more."""

    def edit(documents: list[dict[str, Any]]) -> None:
        document = next(document for document in documents if document["jobIteration"] == number)
        documents.remove(document) if latency is None else document.update(containersStartedLatency=latency)

    return with_files({**edited(edit, PODS).files, PODS_FILE: text})


def test_start_is_that_of_the_event() -> None:
    late = START + 18_364_000_000
    text = pods_text(
        [pod(started="2026-11-21T10:00:47Z")], [event(START + 5), event(late), event(late + 9, reason="Pulled")]
    )
    assert json.loads(text) == [{"name": "pod-4-1", "created": START, "started": late, "exact": True}]


def test_start_without_an_event_is_the_end_of_its_second() -> None:
    text = pods_text([pod(started="2026-11-21T10:00:47Z")], [event(START + 5, name="pod-3-1")])
    assert json.loads(text) == [{"name": "pod-4-1", "created": START, "started": START + 19 * SECOND, "exact": False}]


@pytest.mark.parametrize("path", ["", "spec.initContainers{sleep}", "spec.containers{other}", "spec.containers{slee}"])
def test_events_of_other_containers_are_not_the_start(path: str) -> None:
    """Others may add containers to a pod, which start before its own."""
    text = pods_text([pod(started="2026-11-21T10:00:47Z")], [event(START + 30 * SECOND, path=path)])
    assert json.loads(text)[0] == {"name": "pod-4-1", "created": START, "started": START + 19 * SECOND, "exact": False}


def test_start_is_that_of_the_last_container_if_each_has_an_event() -> None:
    ready = pod(started="2026-11-21T10:00:47Z", containers=("sleep", "proxy"))
    first, last = START + 18_100_000_000, START + 18_900_000_000
    events = [event(last, path="spec.containers{proxy}"), event(first)]
    assert [(each["started"], each["exact"]) for each in json.loads(pods_text([ready], events))] == [(last, True)]
    for some in (events[:1], events[1:]):
        (found,) = json.loads(pods_text([ready], some))
        assert (found["started"], found["exact"]) == (START + 19 * SECOND, False)


def test_event_before_the_second_in_which_a_container_started_is_of_another_start() -> None:
    text = pods_text([pod(started="2026-11-21T10:00:47Z")], [event(START + 17_999_999_999)])
    assert json.loads(text)[0]["started"] == START + 19 * SECOND
    assert not json.loads(text)[0]["exact"]


@given(
    seconds=st.lists(st.integers(1, 100), min_size=1, max_size=3),
    events=st.lists(st.tuples(st.integers(1, 120 * SECOND), st.integers(0, 3))),
)
def test_no_time_is_below_that_of_the_containers_status(seconds: list[int], events: list[tuple[int, int]]) -> None:
    ready = pod(containers=[f"c{number}" for number in range(len(seconds))])
    stamps = [
        datetime.fromtimestamp(START // SECOND + second, UTC).strftime("%Y-%m-%dT%H:%M:%SZ") for second in seconds
    ]
    ready["status"]["containerStatuses"] = [{"state": {"running": {"startedAt": stamp}}} for stamp in stamps]
    seen = [event(START + time, path=f"spec.containers{{c{number}}}") for time, number in events]
    (found,) = json.loads(pods_text([ready], seen))
    assert found["started"] >= START + max(seconds) * SECOND
    if not found["exact"]:
        assert found["started"] == START + (max(seconds) + 1) * SECOND


@pytest.mark.parametrize("unready", [pod(ready="False", started=CREATED), pod()])
def test_pod_that_is_not_ready_or_has_no_start_is_left_out(unready: dict[str, Any]) -> None:
    assert pods_text([unready], []) == ""


def test_pods_of_others_are_left_out() -> None:
    other = pod("agent-x7k2p", started=CREATED)
    assert pods_text([other], [event(START + SECOND, name="agent-x7k2p")]) == ""


def test_pod_that_is_being_deleted_is_left_out() -> None:
    """A churn creates pods of the same names: an old one must not stand for one that never started."""
    old = pod(started="2026-11-21T10:00:47Z", deletionTimestamp=CREATED)
    assert pods_text([old], [event(START + 19 * SECOND)]) == ""


def test_pod_that_started_too_late_is_an_error() -> None:
    late = missed(4, pods_text([pod()], [event(START + 62 * SECOND)]))
    measurement = parse(late, readySeconds=60)
    assert measurement.errors == ("9 of 10 pods were ready within 60 s; not ready: number 4",)
    assert parse(late, readySeconds=62).errors == ()


@pytest.mark.parametrize("latency", [None, 0])
def test_pod_that_kube_burner_missed_has_the_time_of_the_cluster(latency: int | None) -> None:
    output = missed(4, pods_text([pod()], [event(START + 18_364_000_000)]), latency=latency)
    measurement, whole = parse(output), parse(golden())
    assert measurement.errors == ()
    assert measurement.operations == whole.operations
    assert measurement.runtime == whole.runtime
    warning = "kube-burner missed the start of 1 of 10 pods; their times are from the cluster's own events"
    assert warning in measurement.warnings


@pytest.mark.parametrize("name", [CLAIMS, PODS])
def test_who_timed_an_object_does_not_matter_for_whether_it_was_in_time(name: str) -> None:
    """kube-burner waits for one kind of object after the other, so that it may wait twice as long."""
    field = "bindingLatency" if name == CLAIMS else "containersStartedLatency"

    def edit(documents: list[dict[str, Any]]) -> None:
        document = next(document for document in documents if document["jobIteration"] == 4)
        document.update({field: 62_000})

    late = edited(edit, name)
    noun, done = ("PVCs", "bound") if name == CLAIMS else ("pods", "ready")
    assert parse(late, readySeconds=62).errors == ()
    assert parse(late, readySeconds=60).errors == (f"9 of 10 {noun} were {done} within 60 s; not {done}: number 4",)


def test_time_in_whole_seconds_is_said_to_be_one() -> None:
    measurement = parse(missed(4, pods_text([pod(started="2026-11-21T10:00:47Z")], [])))
    assert measurement.errors == ()
    assert "1 of 10 pods have no event of their start; their times may be up to 2 s too long" in measurement.warnings


def test_times_of_kube_burner_come_first() -> None:
    output = with_files({PODS_FILE: pods_text([pod()], [event(START + 999 * SECOND)])})
    assert parse(output) == parse(golden())


def test_pod_that_nobody_timed_is_an_error() -> None:
    measurement = parse(missed(4, "[]"))
    assert measurement.errors == ("9 of 10 pods were ready within 300 s; not ready: number 4",)


@pytest.mark.parametrize(
    ("name", "created", "message"),
    [("pod-10-1", CREATED, "more pods than the 10"), ("pod-4-1", "2026-11-21T10:00:30Z", "pod 4 occurs twice")],
)
def test_pods_of_another_job_are_refused(name: str, created: str, message: str) -> None:
    text = pods_text([pod(name, created=created)], [event(START + 20 * SECOND, name=name)])
    with pytest.raises(OutputError, match=message):
        parse(with_files({PODS_FILE: text}))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[", "is not JSON"),
        ("{}", "list"),
        ('[{"name": "x", "created": 1, "started": 2, "exact": true}]', "not the name of a pod"),
    ],
)
def test_malformed_file_is_refused(text: str, message: str) -> None:
    with pytest.raises(OutputError, match=message):
        parse(with_files({PODS_FILE: text}))


def test_pod_that_started_before_its_creation_is_refused_only_if_it_is_used() -> None:
    """Then the clock of its kubelet is behind."""
    text = pods_text([pod()], [event(START - 1)])
    assert parse(with_files({PODS_FILE: text})) == parse(golden())
    with pytest.raises(OutputError, match="pod-4-1 started before it was created; synchronise the nodes' clocks"):
        parse(missed(4, text))


def test_part_of_inexact_times_is_known() -> None:
    assert parse(golden()).inexact == 0
    assert parse(missed(4, pods_text([pod()], [event(START + 18 * SECOND)]))).inexact == 0
    assert parse(missed(4, pods_text([pod(started="2026-11-21T10:00:47Z")], []))).inexact == 0.1
    assert parse(golden(), pods=False).inexact is None


def test_what_was_lost_is_beside_what_is_missing() -> None:
    log = 'level=error msg="when pods started is unknown: list Pod x: timeout"\n'
    known = replace(golden(), stderr=log)
    assert parse(known).errors == ()
    assert "when pods started is unknown: list Pod x: timeout" in parse(known).warnings
    assert parse(replace(missed(4, "[]"), stderr=log)).errors == (
        "9 of 10 pods were ready within 300 s; not ready: number 4",
        "when pods started is unknown: list Pod x: timeout",
    )


@given(
    st.text()
    | st.lists(
        st.dictionaries(st.sampled_from(["name", "created", "started", "exact"]), st.integers() | st.text())
    ).map(json.dumps)
)
def test_any_file_is_read_or_refused(text: str) -> None:
    try:
        started_pods(with_files({PODS_FILE: text}))
    except OutputError as error:
        str(error).encode()
