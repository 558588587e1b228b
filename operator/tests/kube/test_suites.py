"""A real operator process measures suites, with the rights of its role and no others."""

from pathlib import Path
from typing import Any

import pytest

from support.apiserver import ApiServer, operator_config, operator_process, wait_until
from support.specs import suite_document

pytestmark = [pytest.mark.crd, pytest.mark.timeout(600)]

GROUP = "/apis/plimsoll.dev/v1alpha1/namespaces"


def test_it_measures_a_round_also_after_a_restart_and_lets_the_suite_go(
    apiserver: ApiServer, namespace: str, tmp_path: Path
) -> None:
    """The runs fail at once, as their StorageClass does not exist."""
    place = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    apiserver.request("POST", "/api/v1/namespaces", place).expect(201)
    account = operator_config(apiserver, tmp_path, namespace)
    document = suite_document("s", repeat=2, suspend=True)
    apiserver.request("POST", f"{GROUP}/{namespace}/benchmarksuites", document).expect(201)
    path = f"{GROUP}/{namespace}/benchmarksuites/s"

    def status() -> dict[str, Any]:
        found: dict[str, Any] = apiserver.request("GET", path).expect(200).get("status", {})
        return found

    def runs() -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = apiserver.request("GET", f"{GROUP}/{namespace}/benchmarkruns").expect(200)[
            "items"
        ]
        return found

    with operator_process(account, tmp_path / "first.log", "--namespace", namespace):
        wait_until(lambda: status().get("display", {}).get("status") == "Suspended", "the suite is seen")
        apiserver.request("PATCH", path, {"spec": {"suspend": False}}, content="application/merge-patch+json").expect(
            200
        )
        wait_until(lambda: len(runs()) > 0, "the first run exists")
    with operator_process(account, tmp_path / "second.log", "--namespace", namespace):
        wait_until(lambda: bool(status().get("rounds")), "the round has ended", seconds=120)
        (ended,) = status()["rounds"]
        assert ended["verdict"] == "Failed"
        assert len(runs()) == 4
        assert {run["metadata"]["ownerReferences"][0]["kind"] for run in runs()} == {"BenchmarkSuite"}
        assert "annotations" not in apiserver.request("GET", path).expect(200)["metadata"]
        apiserver.request("DELETE", path).expect(200)
        wait_until(lambda: apiserver.request("GET", path).code == 404, "the suite is let go")
    for log in ("first.log", "second.log"):
        assert "Forbidden" not in (tmp_path / log).read_text()
        assert "Traceback" not in (tmp_path / log).read_text()
