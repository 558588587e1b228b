"""The example of a ResourceQuota limits everything that runs store in their namespace."""

from pathlib import Path

import pytest

from plimsoll.lifecycle.render import client, common, conductor, network
from support.apiserver import ApiServer, Document, create, read_yaml
from support.specs import SETTINGS, ceph_run, made_for_ceph

QUOTA: Document = read_yaml((Path(__file__).parents[3] / "manifests" / "quota.yaml").read_text())
COUNTED = {
    "BenchmarkResult": "count/benchmarkresults.plimsoll.dev",
    "ConfigMap": "count/configmaps",
    "Job": "count/jobs.batch",
    "PersistentVolumeClaim": "persistentvolumeclaims",
    "Secret": "count/secrets",
    "Service": "services",
    "ServiceAccount": "count/serviceaccounts",
}
ONE_PER_ACCOUNT = {"NetworkPolicy", "Role", "RoleBinding"}


@pytest.mark.crd
def test_the_api_server_accepts_it(api: ApiServer) -> None:
    assert create(api, "/api/v1/namespaces/default/resourcequotas", QUOTA).accepted


def test_everything_that_a_run_has_in_its_namespace_is_counted() -> None:
    made = ceph_run("rook-claims")
    run, plan = made.run, made.plan
    objects = [
        *made_for_ceph(made),
        *(common.result(run, plan, point) for point in plan.points),
        common.state_config_map(run),
        common.session_secret(run),
        conductor.service_account(run),
        conductor.role(run, plan),
        conductor.role_binding(run),
        conductor.service(run, SETTINGS),
        *network.policies(run, plan, SETTINGS),
        *client.claims(run, plan, "fast"),
    ]
    kinds = {obj["kind"] for obj in objects if obj["metadata"].get("namespace") == run.namespace}
    assert kinds == COUNTED.keys() | ONE_PER_ACCOUNT
    assert set(COUNTED.values()) <= QUOTA["spec"]["hard"].keys()
