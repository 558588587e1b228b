"""A result in the API server."""

from collections.abc import Iterator

import pytest

from crd.manifests import changed
from plimsoll.api.result import BenchmarkResult, ResultStatus
from support.apiserver import RESULTS, ApiServer, create, delete, patch, rows
from support.full_documents import FULL_RESULT, RESULT

pytestmark = pytest.mark.crd


@pytest.fixture
def result(api: ApiServer) -> Iterator[str]:
    """Create a result and return its path."""
    path = f"{RESULTS}/{FULL_RESULT['metadata']['name']}"
    create(api, RESULTS, {key: value for key, value in FULL_RESULT.items() if key != "status"}, keep=True).expect(201)
    yield path
    delete(api, path)


def test_result_of_the_models_is_stored_unchanged(api: ApiServer, result: str) -> None:
    document = RESULT.model_dump(mode="json", exclude_none=True)
    body = patch(api, f"{result}/status", {"status": document["status"]}).expect(200)
    assert body["status"] == document["status"]
    assert body["spec"] == document["spec"]
    read = {**body, "metadata": {key: body["metadata"][key] for key in ("name", "namespace", "labels")}}
    assert BenchmarkResult.model_validate(read) == RESULT.model_copy(
        update={"spec": RESULT.spec.model_copy(update={"parameters": read["spec"]["parameters"]})}
    )


def test_status_without_any_numbers_is_accepted(api: ApiServer, result: str) -> None:
    document = ResultStatus().model_dump(mode="json", exclude_none=True)
    assert patch(api, f"{result}/status", {"status": document}).expect(200)["status"] == document


def test_largest_histogram_fits(api: ApiServer, result: str) -> None:
    latency = "trials.0.operations.0.latency.histogram"
    status = changed(FULL_RESULT["status"], {latency: "A" * 64 * 1024})
    patch(api, f"{result}/status", {"status": status}).expect(200)


def test_list_of_trials_is_replaced_as_a_whole(api: ApiServer, result: str) -> None:
    (trial,) = FULL_RESULT["status"]["trials"]
    patch(api, f"{result}/status", {"status": {"trials": [trial, trial]}}).expect(200)
    body = patch(api, f"{result}/status", {"status": {"trials": [trial]}}).expect(200)
    assert body["status"]["trials"] == [trial]


@pytest.mark.parametrize("field", [field for field in FULL_RESULT["spec"] if field != "parameters"])
def test_specification_is_immutable(api: ApiServer, result: str, field: str) -> None:
    value = FULL_RESULT["spec"][field]
    other: object = value + 1 if isinstance(value, int) else f"{value}x"
    answer = patch(api, result, {"spec": {field: {"limit": value["limit"] + 1} if field == "line" else other}})
    assert answer.code == 422
    assert answer.causes["spec"] == "Forbidden: cannot be changed, because it identifies the numbers"


def test_name_is_that_of_run_and_point(api: ApiServer) -> None:
    answer = create(api, RESULTS, changed(FULL_RESULT, {"metadata.name": "other"}))
    assert answer.code == 422
    assert "metadata.name must be the name of the run, a hyphen and the name of the point" in answer.message


@pytest.mark.parametrize("field", ["spec.tools", "spec.labels", "statuses"])
def test_unknown_fields_are_refused(api: ApiServer, field: str) -> None:
    answer = create(api, RESULTS, changed(FULL_RESULT, {field: 1}))
    assert answer.code == 400
    assert f'unknown field "{field}"' in answer.message.replace('\\"', '"')


@pytest.mark.parametrize("field", ["verdicts", "summary.means", "trials.0.windows", "trials.0.operations.0.p99"])
def test_unknown_fields_of_the_numbers_are_refused(api: ApiServer, result: str, field: str) -> None:
    status = changed(FULL_RESULT["status"], {field: 1})
    answer = patch(api, f"{result}/status", {"status": status})
    assert answer.code == 422
    assert f'unknown field "status.{field.replace(".0", "[0]")}"' in answer.message.replace('\\"', '"')


def test_columns(api: ApiServer, result: str) -> None:
    patch(api, f"{result}/status", {"status": FULL_RESULT["status"]}).expect(200)
    columns, ((*cells,),) = rows(api, result)
    usual = {column["name"]: cell for column, cell in zip(columns, cells, strict=True) if not column["priority"]}
    assert usual.pop("Age")
    assert usual == {
        "Name": "rbd-size3-w-000",
        "Run": "rbd-size3",
        "Point": "randread 4Ki qd1",
        "Clients": 1000,
        "Op": "read",
        "IOPS": "12.3k ± 0.1k",
        "P99": "1.2 ms",
        "Line": "12,400 ± 600 at p99 <= 5 ms",
        "Trials": "4/5",
        "Verdict": "Valid",
        "Reason": "LowOverlap +2",
    }
    more = {column["name"]: cell for column, cell in zip(columns, cells, strict=True) if column["priority"]}
    assert more == {"Workload": "w", "Tool": "fio", "Bytes/s": "48.0 MiB/s", "Final": True}
