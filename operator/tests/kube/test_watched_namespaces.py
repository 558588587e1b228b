"""A real operator process that looks after one namespace, with rights there only."""

from pathlib import Path

import pytest

from support.apiserver import ApiServer, operator_config, operator_process, wait_until
from support.specs import document

pytestmark = [pytest.mark.crd, pytest.mark.timeout(180)]


def make_run(apiserver: ApiServer, namespace: str) -> str:
    path = f"/apis/plimsoll.dev/v1alpha1/namespaces/{namespace}/benchmarkruns"
    apiserver.request("POST", path, document(suspend=True) | {"metadata": {"name": "rests"}}).expect(201)
    return f"{path}/rests"


def test_it_sees_the_runs_of_its_namespaces_and_no_others(apiserver: ApiServer, namespace: str, tmp_path: Path) -> None:
    other = f"{namespace}-other"
    for name in (namespace, other):
        obj = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        apiserver.request("POST", "/api/v1/namespaces", obj).expect(201)
    account = operator_config(apiserver, tmp_path, namespace)
    seen, unseen = make_run(apiserver, namespace), make_run(apiserver, other)
    with operator_process(account, tmp_path / "log", "--namespace", namespace):
        wait_until(lambda: "conditions" in apiserver.request("GET", seen).body.get("status", {}), "the run is seen")
        apiserver.request("DELETE", seen).expect(200)
        wait_until(lambda: apiserver.request("GET", seen).code == 404, "the run is let go")
        assert "conditions" not in apiserver.request("GET", unseen).body.get("status", {})
        assert "finalizers" not in apiserver.request("GET", unseen).body["metadata"]
    assert "Forbidden" not in (tmp_path / "log").read_text()
