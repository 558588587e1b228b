import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.api.json_reader import OutputError
from plimsoll.api.names import LatencyKind, Operation
from plimsoll.measure.histogram import Histogram
from plimsoll.measure.sample import Measurement
from plimsoll.tools.base import Output, StepKind
from plimsoll.tools.kube_burner import KubeBurner, KubeBurnerParameters
from plimsoll.tools.target import ApiTarget

from .conftest import FILE, step_context

KUBE_BURNER = KubeBurner()

GOLDEN = Path(__file__).parent.parent / "golden" / "kube-burner-2.7.3"
CLAIMS, PODS, SUMMARY = (
    "pvcLatencyMeasurement-pvc-density.json",
    "podLatencyMeasurement-pvc-density.json",
    "jobSummary.json",
)
CONTEXT = step_context(ApiTarget(), 0, 60)
SECOND = 10**9

Documents = list[dict[str, Any]]


def parameters(**fields: object) -> KubeBurnerParameters:
    return KubeBurnerParameters.model_validate(fields)


@cache
def golden() -> Output:
    files = {path.name: path.read_text() for path in GOLDEN.glob("*.json")}
    log = (GOLDEN / "run.log").read_text()
    return Output(exit_code=0, stdout=log, stderr="", files=MappingProxyType(files), launched_at=7)


def parse(output: Output, **fields: object) -> Measurement:
    return KUBE_BURNER.parse(parameters(**fields), CONTEXT, output)


def with_files(files: Mapping[str, str], **output: Any) -> Output:
    return replace(golden(), files={**golden().files, **files}, **output)


def edited(edit: Callable[[Documents], object], name: str = CLAIMS, **output: Any) -> Output:
    """The recorded output with a changed list of documents."""
    documents: Documents = json.loads(golden().files[name])
    edit(documents)
    return with_files({name: json.dumps(documents)}, **output)


def without(number: int, name: str = CLAIMS) -> Output:
    return edited(lambda documents: documents.remove(next(d for d in documents if d["jobIteration"] == number)), name)


def test_claims_and_pods_are_timed_one_by_one() -> None:
    measurement = parse(golden())
    claims, pods = measurement.operations
    assert (claims.operation, claims.ios, claims.bytes) == (Operation.BIND_CLAIM, 10, 0)
    assert (pods.operation, pods.ios, pods.bytes) == (Operation.START_POD, 10, 0)
    assert claims.latency.kind is pods.latency.kind is LatencyKind.FULL
    latency = claims.latency
    assert (latency.count, latency.min_nanoseconds, latency.max_nanoseconds) == (10, 8565 * 10**6, 20379 * 10**6)
    assert latency.mean_nanoseconds == pytest.approx(14027.1e6)
    assert latency.histogram is not None
    # kube-burner's own quantiles say 14529 ms; of ten samples that is the fifth.
    assert Histogram.decode(latency.histogram).percentile(50) == pytest.approx(14529e6, rel=1 / 128)
    assert pods.latency.max_nanoseconds == 21763 * 10**6
    assert (measurement.errors, measurement.warnings, measurement.tool_version) == ((), (), "")


def test_measurement_lasts_from_the_first_creation_until_all_are_ready() -> None:
    measurement = parse(golden())
    assert measurement.started_at == 7
    # Created within the second 29, the last pod was started 21.763 s after that second began.
    assert measurement.runtime == 21763 * 10**6
    assert parse(golden(), pods=False).runtime == pytest.approx(20386e6, abs=1e6)


def test_without_pods_only_claims_are_measured() -> None:
    files = {name: text for name, text in golden().files.items() if name != PODS}
    (claims,) = parse(replace(golden(), files=files), pods=False).operations
    assert claims.operation is Operation.BIND_CLAIM


@pytest.mark.parametrize(("name", "noun", "done"), [(CLAIMS, "PVCs", "bound"), (PODS, "pods", "ready")])
def test_object_that_never_got_there_is_an_error(name: str, noun: str, done: str) -> None:
    measurement = parse(without(4, name), readySeconds=60)
    assert measurement.errors == (f"9 of 10 {noun} were {done} within 60 s; not {done}: number 4",)


def test_latency_of_zero_is_that_of_an_object_that_never_got_there() -> None:
    measurement = parse(edited(lambda documents: documents[0].update(bindingLatency=0)))
    assert measurement.errors == ("9 of 10 PVCs were bound within 300 s; not bound: number 3",)
    assert measurement.operations[0].ios == 9


def test_no_claim_at_all_is_an_error_and_no_measurement() -> None:
    files = {SUMMARY: golden().files[SUMMARY]}
    measurement = parse(replace(golden(), files=files))
    assert measurement.errors[0] == "0 of 10 PVCs were bound within 300 s; not bound: number 0, 1, 2, 3, 4 ..."
    assert measurement.runtime == 0


def test_reasons_come_from_the_events_and_the_log() -> None:
    why = "PersistentVolumeClaim pvc-4-1 is Pending: waiting for a volume to be created"
    log = 'time="2026-11-21 10:03:29" level=error msg="timeout waiting for objects" file="waiters.go:1"\n'
    output = replace(without(4), stderr=log, exit_code=1)
    output = replace(output, files={**output.files, "problems.txt": f"{why}\n"})
    assert parse(output).errors[1:] == (
        why,
        "timeout waiting for objects",
        "kube-burner ended with exit code 1",
    )


def test_job_that_did_not_pass_is_an_error_with_its_own_words() -> None:
    output = edited(lambda jobs: jobs[0].update(passed=False, executionErrors="object verification failed"), SUMMARY)
    assert parse(output).errors == (
        "object verification failed",
        "kube-burner ended with exit code 0 and did not pass",
    )


def test_errors_in_the_log_of_a_good_run_are_warnings() -> None:
    log = 'time="2026-11-21 10:00:29" level=error msg="Retrying object creation" file="create.go:1"\n'
    measurement = parse(replace(golden(), stderr=log))
    assert (measurement.errors, measurement.warnings) == ((), ("Retrying object creation",))


def test_pods_that_start_in_a_few_seconds_are_timed_too_coarsely() -> None:
    def edit(documents: Documents) -> None:
        for document in documents:
            document["containersStartedLatency"] = 1900

    (warning,) = parse(edited(edit, PODS)).warnings
    assert warning == (
        "pods started after 1.9 s on average; each of their times may be up to 1 s too long, because only the second "
        "of a pod's creation is known"
    )


def test_throttling_is_a_warning() -> None:
    text = (
        'I1121 10:00:30.1 1 request.go:729] "Waited for 1.197s due to client-side throttling, not priority and '
        'fairness, request: GET:https://10.0.0.1/api"\n'
        'I1121 10:00:31.1 1 request.go:729] "Waited for 800ms due to client-side throttling, not priority and '
        'fairness, request: GET:https://10.0.0.1/api"\n'
        "the server has received too many requests and has asked us to try again later\n"
    )
    assert parse(replace(golden(), stderr=text)).warnings == (
        "2 API requests waited for client-side throttling",
        "the API server refused 1 requests as too many",
    )


def test_rate_of_creation_is_compared_with_the_requested_one() -> None:
    def spread(seconds: float) -> Output:
        def edit(documents: Documents) -> None:
            for number, document in enumerate(documents):
                document["timestamp"] = f"2026-11-21T10:00:{29 + seconds * number / 9:012.9f}Z"

        return edited(edit)

    assert parse(golden()).pace == 1
    # 20 requests, the first 20 of them at once.
    assert parse(spread(10)).pace == pytest.approx(0.1)
    # 20 requests, 18 of them two in a second.
    assert parse(spread(9), qps=2).pace == 1
    assert parse(spread(19), qps=2).pace == pytest.approx(10 / 19)
    assert parse(spread(9), qps=2, pods=False).pace == pytest.approx(5 / 9)
    assert parse(without(4)).pace is None


def test_churned_claims_are_timed_too() -> None:
    again = edited(lambda documents: documents.append(documents[0]))
    pods = json.loads(golden().files[PODS])
    output = replace(again, files={**again.files, PODS: json.dumps([*pods, pods[0]])})
    measurement = parse(output, churn={"percent": 10})
    assert [sample.ios for sample in measurement.operations] == [11, 11]
    assert (measurement.errors, measurement.pace) == ((), None)
    assert parse(golden(), churn={"percent": 10}).errors[0] == "10 of 11 PVCs were bound within 300 s"


def test_a_pod_that_the_churn_deletes_before_it_is_timed_is_a_warning_unless_it_is_the_last_of_its_number() -> None:
    churn = {"percent": 10}
    again = edited(lambda documents: documents.append(documents[0]))
    measurement = parse(again, churn=churn)
    assert [sample.ios for sample in measurement.operations] == [11, 10]
    lost = "1 of 11 pods were deleted by the churn before kube-burner had timed them"
    assert (measurement.errors, measurement.warnings[0]) == ((), lost)
    left = [document for document in json.loads(again.files[PODS]) if document["jobIteration"] != 3]
    gone = replace(again, files={**again.files, PODS: json.dumps(left)})
    assert parse(gone, churn=churn).errors == ("9 of 11 pods were ready within 300 s; not ready: number 3",)
    unready = replace(again, files={**again.files, "problems.txt": "pod pod-1-1 is Pending: no node\n"})
    assert parse(unready, churn=churn).errors == ("pod pod-1-1 is Pending: no node",)


@pytest.mark.parametrize(
    ("objects", "churn", "claims"),
    [(10, None, 10), (10, {}, 11), (10, {"percent": 5, "cycles": 3}, 13), (200, {"percent": 50, "cycles": 2}, 400)],
)
def test_number_of_claims(objects: int, churn: dict[str, int] | None, claims: int) -> None:
    assert parameters(objects=objects, churn=churn).claims == claims


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda documents: documents.append(documents[0]), "PVC 3 occurs twice"),
        (lambda documents: documents[0].update(uuid="other"), "uuid differs from the one in jobSummary.json"),
        (lambda documents: documents[0].update(size="128Mi"), "size is 128Mi instead of 64Mi"),
        (lambda documents: documents[0].update(size="large"), r"size is not a quantity.*large"),
        (lambda documents: documents[0].update(jobIteration=10), "jobIteration is 10, but there are only 10"),
        (lambda documents: documents[0].update(bindingLatency=-1), "bindingLatency is not a whole number"),
        (lambda documents: documents[0].update(bindingLatency=2.5), "bindingLatency is not a whole number"),
        (lambda documents: documents[0].update(bindingLatency=10**12), "bindingLatency is not a whole number"),
        (lambda documents: documents[0].update(timestamp="noon"), r"\[0\]\.timestamp is not a time: noon"),
        # What Go prints for no time.
        (
            lambda documents: documents[0].update(timestamp="0001-01-01T00:00:00Z"),
            "objects have a timestamp, or were created, 63.* s apart",
        ),
        (lambda documents: documents[0].pop("bindingLatency"), "bindingLatency is missing"),
        (lambda documents: documents.append(7), r"\[10\] is not an object"),
    ],
)
def test_damaged_documents_are_refused(edit: Callable[[Documents], object], message: str) -> None:
    with pytest.raises(OutputError, match=message):
        parse(edited(edit))


def test_more_objects_than_requested_are_refused() -> None:
    with pytest.raises(OutputError, match="jobIteration is 6, but there are only 5"):
        parse(golden(), objects=5)


@pytest.mark.parametrize("name", [CLAIMS, PODS, SUMMARY])
def test_files_that_break_off_are_refused(name: str) -> None:
    text = golden().files[name]
    for end in range(0, len(text.rstrip()), 97):
        with pytest.raises(OutputError, match=f"^{name} is not JSON"):
            parse(with_files({name: text[:end]}))


def test_killed_kube_burner_has_no_summary() -> None:
    with pytest.raises(OutputError, match=r"wrote no jobSummary\.json, exit code -9: no message"):
        parse(Output(exit_code=-9, stdout="", stderr="", files={}))


def test_error_before_the_measurement_is_in_the_message() -> None:
    log = 'time="2026-11-21 10:00:29" level=fatal msg="namespaces is forbidden: User \\"a\\" cannot create" file="x"\n'
    with pytest.raises(OutputError, match="exit code 1: namespaces is forbidden"):
        parse(Output(exit_code=1, stdout=log, stderr="", files={}))


def test_files_of_two_jobs_are_refused() -> None:
    with pytest.raises(OutputError, match="several files"):
        parse(with_files({"pvcLatencyMeasurement-other.json": "[]"}))
    with pytest.raises(OutputError, match="2 jobs instead of one"):
        parse(edited(lambda jobs: jobs.append(jobs[0]), SUMMARY))


def test_field_that_occurs_twice_is_refused() -> None:
    text = golden().files[CLAIMS].replace('"size"', '"size":"1Mi","size"', 1)
    with pytest.raises(OutputError, match=r"\[0\]\.size occurs twice"):
        parse(with_files({CLAIMS: text}))


def test_fields_of_a_later_version_are_ignored() -> None:
    assert parse(edited(lambda documents: documents[0].update(new=1))) == parse(golden())


def test_version_is_that_of_the_summary() -> None:
    output = edited(lambda jobs: jobs[0].update(version="2.7.3@0123abcd"), SUMMARY)
    assert parse(output).tool_version == "2.7.3"


def test_command_contains_all_parameters() -> None:
    argv = KUBE_BURNER.command(parameters(objects=3, churn={"cycles": 2}), CONTEXT).argv
    assert argv[:2] == ("plimsoll", "burn")
    assert parameters(**json.loads(argv[2])) == parameters(objects=3, churn={"cycles": 2})


def test_target_of_another_tool_is_refused() -> None:
    with pytest.raises(TypeError, match="VolumeTarget"):
        KUBE_BURNER.command(parameters(), replace(CONTEXT, target=FILE))


def test_declarations() -> None:
    assert KUBE_BURNER.steps(parameters()) == (StepKind.MEASURE,)
    assert (KUBE_BURNER.runs_alone, KUBE_BURNER.windowed) == (True, False)


@pytest.mark.parametrize(
    ("fields", "label"),
    [
        ({}, "10 PVCs with pods, 20/s"),
        ({"objects": 200, "pods": False, "volumeSize": "1Gi"}, "200 PVCs of 1Gi, 20/s"),
        ({"churn": {"percent": 20, "cycles": 3}}, "10 PVCs with pods, 20/s, churn 20 % x 3"),
    ],
)
def test_label(fields: dict[str, object], label: str) -> None:
    assert parameters(**fields).label() == label


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@given(name=st.sampled_from([CLAIMS, PODS, SUMMARY]), value=JSON)
def test_any_document_is_read_or_refused(name: str, value: object) -> None:
    try:
        parse(with_files({name: json.dumps(value)})).model_dump_json().encode()
    except OutputError as error:
        str(error).encode()


@given(name=st.sampled_from([CLAIMS, PODS]), kept=st.sets(st.integers(0, 9), max_size=9))
def test_missing_documents_are_never_overlooked(name: str, kept: set[int]) -> None:
    def keep(documents: Documents) -> None:
        documents[:] = [document for document in documents if document["jobIteration"] in kept]

    measurement = parse(edited(keep, name))
    assert measurement.errors[0].startswith(f"{len(kept)} of 10 ")
