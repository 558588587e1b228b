"""GitOps tools with a real API server: apply the suite, and evaluate Flux's health expressions of runs."""

import json
import os
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from crd.manifests import SMALL
from support.apiserver import RUNS, ApiServer, Document, create, delete, patch, wait_until

pytestmark = pytest.mark.crd

ROOT = Path(__file__).parents[3]
GITOPS = ROOT / "manifests" / "gitops"
TESTDATA = GITOPS / "argocd" / "plimsoll.dev" / "BenchmarkRun" / "testdata"
SAMPLES = sorted(path for name in ("samples", "demos") for path in (ROOT / "manifests" / name).glob("*.yaml"))
POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
WORDS = ("inProgress", "failed", "current")
BINDINGS = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"

Judge = Callable[[Document], set[str]]


@pytest.fixture(scope="module")
def bench(api: ApiServer) -> None:
    """Create the suite's namespace. It remains, because no controller here would empty it."""
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "bench"}}
    api.request("POST", "/api/v1/namespaces", namespace).expect(201)


@pytest.mark.usefixtures("bench")
def test_the_suite_is_accepted_in_its_namespace(kubectl: Any) -> None:
    arguments = ["--dry-run=server", "--validate=strict", "--output=json", f"--kustomize={GITOPS / 'suite'}"]
    suite = json.loads(kubectl("apply", "--server-side", *arguments))
    assert (suite["kind"], suite["metadata"]["namespace"]) == ("BenchmarkSuite", "bench")
    assert suite["status"] == {"observedGeneration": -1}


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.stem)
def test_samples_are_accepted(kubectl: Any, sample: Path) -> None:
    kubectl("create", "--dry-run=server", "--validate=strict", f"--filename={sample}")


@pytest.mark.chart
def test_a_run_that_was_just_created_is_in_progress_for_kstatus(api: ApiServer) -> None:
    created = create(api, RUNS, dict(SMALL)).expect(201)
    program = os.environ["PLIMSOLL_KSTATUS"]
    answer = subprocess.run([program], input=json.dumps(created), capture_output=True, text=True, check=True)
    assert answer.stdout.startswith("InProgress\t")


# -- Flux's expressions, evaluated by the API server's own CEL


def policy() -> Document:
    """Return a policy that rejects every status of a run with the values of the sample's expressions."""
    (flux,) = yaml.safe_load_all((GITOPS / "flux" / "run.yaml").read_text())
    (checks,) = flux["spec"]["healthCheckExprs"]
    assert (checks["apiVersion"], checks["kind"]) == ("plimsoll.dev/v1alpha1", "BenchmarkRun")
    told = " + ' ' + ".join(f"string({_of_object(checks[word])})" for word in WORDS)
    rule = {
        "apiGroups": ["plimsoll.dev"],
        "apiVersions": ["v1alpha1"],
        "operations": ["UPDATE"],
        "resources": ["benchmarkruns/status"],
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "expressions"},
        "spec": {
            "matchConstraints": {"resourceRules": [rule]},
            "validations": [{"expression": "false", "messageExpression": f"'told: ' + {told}"}],
        },
    }


def _of_object(expression: str) -> str:
    """Return an expression on what the API server calls `object`: Flux gives it the object's own fields."""
    return re.sub(r"\b(status|metadata)\.", r"object.\1.", expression)


BINDING = {
    "apiVersion": "admissionregistration.k8s.io/v1",
    "kind": "ValidatingAdmissionPolicyBinding",
    "metadata": {"name": "expressions"},
    "spec": {"policyName": "expressions", "validationActions": ["Deny"]},
}


@pytest.fixture(scope="module")
def judge(api: ApiServer) -> Iterator[Judge]:
    """Return a function that returns the expressions that are true for a status."""
    created = create(api, RUNS, {**SMALL, "metadata": {"name": "judged"}}, keep=True).expect(201)
    path = f"{RUNS}/{created['metadata']['name']}"
    api.request("POST", POLICIES, policy()).expect(201)
    api.request("POST", BINDINGS, BINDING).expect(201)

    def judged(status: Document) -> set[str]:
        answer = patch(api, f"{path}/status", {"status": status})
        _, _, told = answer.message.partition("told: ")
        assert told, answer.message
        return {word for word, holds in zip(WORDS, told.split(), strict=True) if holds == "true"}

    def accepted() -> bool:
        return patch(api, f"{path}/status", {"status": {"points": {"total": 1}}}).accepted

    wait_until(lambda: not accepted(), "the policy is enforced")
    yield judged
    for collection in (BINDINGS, POLICIES):
        delete(api, f"{collection}/expressions")
    wait_until(accepted, "the policy is not enforced any more, or it would refuse what other tests write")
    delete(api, path)


@pytest.mark.parametrize("path", sorted(TESTDATA.glob("*.yaml")), ids=lambda path: path.stem)
def test_exactly_one_of_flux_expressions_holds_for_what_a_cluster_really_held(judge: Judge, path: Path) -> None:
    run = yaml.safe_load(path.read_text())
    status = run["status"]
    if status["observedGeneration"] == run["metadata"]["generation"]:
        status = {**status, "observedGeneration": 1}  # The generation of the run that is judged.
    ends = {"suspect": "current", "no-storage-class": "failed"}
    assert judge(status) == {ends.get(path.stem, "inProgress")}


def test_an_end_that_was_seen_of_an_earlier_specification_does_not_count(judge: Judge) -> None:
    status = yaml.safe_load((TESTDATA / "suspect.yaml").read_text())["status"]
    assert "inProgress" in judge({**status, "observedGeneration": 0})
