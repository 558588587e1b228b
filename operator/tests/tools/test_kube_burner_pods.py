"""Pods whose start kube-burner has missed, timed by what the cluster says of them."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.tools.base import Output, OutputError
from plimsoll.tools.kube_burner.pods import PODS_FILE, pods_text, started_pods
from plimsoll.tools.reading import nanoseconds_of

from .test_kube_burner import PODS, SECOND, edited, golden, parse, with_files

CREATED = "2026-11-21T10:00:29Z"
START = nanoseconds_of(CREATED)


def pod(name: str = "pod-4-1", *, created: str = CREATED, ready: str = "True", started: str = "") -> dict[str, Any]:
    state = {"running": {"startedAt": started}} if started else {"waiting": {}}
    status = {"conditions": [{"type": "Ready", "status": ready}], "containerStatuses": [{"state": state}]}
    return {"metadata": {"name": name, "uid": f"uid-{name}", "creationTimestamp": created}, "status": status}


def event(time: int, *, name: str = "pod-4-1", reason: str = "Started") -> dict[str, Any]:
    return {"metadata": {"name": f"{name}.{time:x}"}, "reason": reason, "involvedObject": {"uid": f"uid-{name}"}}


def missed(number: int, text: str, *, latency: int | None = None) -> Output:
    """The recorded output without the time of a pod, of which the cluster knows more."""

    def edit(documents: list[dict[str, Any]]) -> None:
        one = next(document for document in documents if document["jobIteration"] == number)
        documents.remove(one) if latency is None else one.update(containersStartedLatency=latency)

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


@pytest.mark.parametrize("one", [pod(ready="False", started=CREATED), pod()])
def test_pod_that_is_not_ready_or_has_no_start_is_left_out(one: dict[str, Any]) -> None:
    assert pods_text([one], []) == ""


def test_pods_of_others_are_left_out() -> None:
    other = pod("agent-x7k2p", started=CREATED)
    assert pods_text([other], [event(START + SECOND, name="agent-x7k2p")]) == ""


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
        ("[", "no JSON document"),
        ("{}", "list"),
        ('[{"name": "x", "created": 1, "started": 2, "exact": true}]', "not that of a pod"),
        ('[{"name": "pod-1-1", "created": 2, "started": 2, "exact": true}]', "not after its creation"),
    ],
)
def test_malformed_file_is_refused(text: str, message: str) -> None:
    with pytest.raises(OutputError, match=message):
        parse(with_files({PODS_FILE: text}))


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
