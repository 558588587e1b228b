"""GitOps tools with a real API server: apply the suite, and evaluate Flux's health expressions of runs and suites."""

import json
import os
import re
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from crd.manifests import SMALL
from support.apiserver import RUNS, SUITES, ApiServer, Document, create, delete, patch, wait_until

pytestmark = pytest.mark.crd

ROOT = Path(__file__).parents[3]
GITOPS = ROOT / "manifests" / "gitops"
TESTDATA = GITOPS / "argocd" / "plimsoll.dev"
REQUEST = "plimsoll.dev/request-round"
SAMPLES = sorted(path for name in ("samples", "demos") for path in (ROOT / "manifests" / name).glob("*.yaml"))
POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
WORDS = ("inProgress", "failed", "current")
BINDINGS = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"

Judge = Callable[..., set[str]]


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


def policy(sample: str, kind: str) -> Document:
    """Return a policy that rejects every status of a kind with the values of the sample's expressions."""
    *_, flux = yaml.safe_load_all((GITOPS / "flux" / sample).read_text())
    (checks,) = flux["spec"]["healthCheckExprs"]
    assert (checks["apiVersion"], checks["kind"]) == ("plimsoll.dev/v1alpha1", kind)
    told = " + ' ' + ".join(f"string({_of_object(checks[word])})" for word in WORDS)
    rule = {
        "apiGroups": ["plimsoll.dev"],
        "apiVersions": ["v1alpha1"],
        "operations": ["UPDATE"],
        "resources": [f"{kind.lower()}s/status"],
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": kind.lower()},
        "spec": {
            "matchConstraints": {"resourceRules": [rule]},
            "validations": [{"expression": "false", "messageExpression": f"'told: ' + {told}"}],
        },
    }


def _of_object(expression: str) -> str:
    """Return an expression on what the API server calls `object`: Flux gives it the object's own fields."""
    return re.sub(r"\b(status|metadata)\.", r"object.\1.", expression)


@contextmanager
def judging(api: ApiServer, sample: str, collection: str, manifest: Document) -> Iterator[Judge]:
    """Yield a function that returns the expressions that are true for a status and annotations."""
    created = create(api, collection, {**manifest, "metadata": {"name": "judged"}}, keep=True).expect(201)
    path = f"{collection}/{created['metadata']['name']}"
    enforced = policy(sample, created["kind"])
    name = enforced["metadata"]["name"]
    binding = {
        "apiVersion": enforced["apiVersion"],
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": {"policyName": name, "validationActions": ["Deny"]},
    }
    api.request("POST", POLICIES, enforced).expect(201)
    api.request("POST", BINDINGS, binding).expect(201)

    def judged(status: Document, **annotations: str) -> set[str]:
        patch(api, path, {"metadata": {"annotations": annotations or None}}).expect(200)
        answer = patch(api, f"{path}/status", {"status": status})
        _, _, told = answer.message.partition("told: ")
        assert told, answer.message
        return {word for word, holds in zip(WORDS, told.split(), strict=True) if holds == "true"}

    def accepted() -> bool:
        return patch(api, f"{path}/status", {"status": {"observedGeneration": 0}}).accepted

    wait_until(lambda: not accepted(), "the policy is enforced")
    yield judged
    for kind in (BINDINGS, POLICIES):
        delete(api, f"{kind}/{name}")
    wait_until(accepted, "the policy is not enforced any more, or it would refuse what other tests write")
    delete(api, path)


@pytest.fixture(scope="module")
def judge(api: ApiServer) -> Iterator[Judge]:
    with judging(api, "run.yaml", RUNS, dict(SMALL)) as judged:
        yield judged


@pytest.mark.parametrize(
    "path", sorted((TESTDATA / "BenchmarkRun" / "testdata").glob("*.yaml")), ids=lambda path: path.stem
)
def test_exactly_one_of_flux_expressions_holds_for_what_a_cluster_really_held(judge: Judge, path: Path) -> None:
    run = yaml.safe_load(path.read_text())
    status = run["status"]
    if status["observedGeneration"] == run["metadata"]["generation"]:
        status = {**status, "observedGeneration": 1}  # The generation of the run that is judged.
    ends = {"suspect": "current", "no-storage-class": "failed"}
    assert judge(status) == {ends.get(path.stem, "inProgress")}


def test_an_end_that_was_seen_of_an_earlier_specification_does_not_count(judge: Judge) -> None:
    status = yaml.safe_load((TESTDATA / "BenchmarkRun" / "testdata" / "suspect.yaml").read_text())["status"]
    assert "inProgress" in judge({**status, "observedGeneration": 0})


@pytest.fixture(scope="module")
def judge_suite(api: ApiServer) -> Iterator[Callable[..., str]]:
    """Return a function that returns the expression that Flux follows: the first that is true."""
    with judging(api, "suite.yaml", SUITES, yaml.safe_load((GITOPS / "suite" / "suite.yaml").read_text())) as judged:

        def followed(status: Document, request: str = "") -> str:
            true = judged(status, **({REQUEST: request} if request else {}))
            return next((word for word in WORDS if word in true), "inProgress")

        yield followed


def suite_status(name: str) -> Document:
    path = TESTDATA / "BenchmarkSuite" / "testdata" / f"{name}.yaml"
    status: Document = yaml.safe_load(path.read_text())["status"]
    return status


ANSWERED = {"requestedRound": "again", "requestedMinute": 29926801}


@pytest.mark.parametrize(
    ("name", "change", "expected"),
    [
        ("measuring-a-change", {}, "inProgress"),
        ("idle", {}, "current"),
        ("regressed", {}, "current"),
        ("gate-closed", {}, "failed"),
        ("round-failed", {}, "failed"),
        ("variant-refused", {}, "failed"),
        ("suspended", {}, "current"),
        ("measuring-a-request", ANSWERED, "inProgress"),
        ("measuring-a-request", ANSWERED | {"requestedMinute": 29926800}, "current"),
        ("idle", ANSWERED, "current"),
    ],
)
def test_flux_waits_for_changes_and_requests(
    judge_suite: Callable[..., str], name: str, change: Document, expected: str
) -> None:
    assert judge_suite(suite_status(name) | change, ANSWERED["requestedRound"] if change else "") == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("idle", "inProgress"),
        ("gate-closed", "inProgress"),
        ("round-failed", "inProgress"),
        ("variant-refused", "failed"),
        ("suspended", "current"),
    ],
)
def test_flux_waits_for_a_request_that_the_operator_has_not_seen_unless_none_can_be_measured(
    judge_suite: Callable[..., str], name: str, expected: str
) -> None:
    assert judge_suite(suite_status(name), "new") == expected
