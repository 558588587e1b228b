"""A real operator process on a real API server, while a user of a namespace creates what looks like a run's objects."""

import urllib.request
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from plimsoll.lifecycle.naming import LABEL_MANAGED_BY, LABEL_RUN_UID, MANAGED_BY
from support.apiserver import ApiServer, operator_config, operator_process, wait_until
from support.specs import document

pytestmark = [pytest.mark.crd, pytest.mark.timeout(600)]

STRANGERS = 24
"""Each is 10 MiB as Python objects."""

KEYS = 42_000
MOST_MEBIBYTES = 60


def resident_mebibytes(port: int) -> float:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
        families = text_string_to_metric_families(answer.read().decode())
    samples = (sample for family in families for sample in family.samples)
    return next(sample.value for sample in samples if sample.name == "process_resident_memory_bytes") / 2**20


def test_config_maps_of_a_stranger_with_thousands_of_keys_do_not_fill_the_operators_memory(
    apiserver: ApiServer, namespace: str, tmp_path: Path
) -> None:
    place = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    apiserver.request("POST", "/api/v1/namespaces", place).expect(201)
    storage_class = {"metadata": {"name": namespace}, "provisioner": "csi.example.com"}
    apiserver.request("POST", "/apis/storage.k8s.io/v1/storageclasses", storage_class).expect(201)
    runs, maps = f"/apis/plimsoll.dev/v1alpha1/namespaces/{namespace}/benchmarkruns", "/api/v1/namespaces/{}/configmaps"

    def run(name: str) -> str:
        """Create a run, wait until the operator has frozen its plan, and return its UID."""
        body = document(storage={"storageClass": {"name": namespace}, "volume": {"size": "1Gi"}})
        body["metadata"] = {**body["metadata"], "name": name}
        uid = apiserver.request("POST", runs, body).expect(201)["metadata"]["uid"]
        plan = f"{maps.format(namespace)}/{name}-plan"
        wait_until(lambda: apiserver.request("GET", plan).accepted, f"the plan of {name}", seconds=60)
        return str(uid)

    account = operator_config(apiserver, tmp_path, namespace)
    with operator_process(account, tmp_path / "log", "--namespace", namespace) as port:
        uid = run("first")
        before = resident_mebibytes(port)
        for number in range(STRANGERS):
            labels = {LABEL_MANAGED_BY: MANAGED_BY, LABEL_RUN_UID: uid if number % 2 else "another"}
            metadata = {"name": f"stranger-{number}", "namespace": namespace, "labels": labels}
            data = {f"k{key:05}": "" for key in range(KEYS)}
            apiserver.request("POST", maps.format(namespace), {"metadata": metadata, "data": data}).expect(201)
        # The operator is still at work.
        run("second")
        assert resident_mebibytes(port) - before < MOST_MEBIBYTES
