"""What a ResourceQuota or LimitRange refuses is named as such, whatever the words of the API server are.

The quota controller does not run: the tests write the status of quotas.
"""

import json
from dataclasses import dataclass, field

import pytest

from plimsoll.api.run import decode_run
from plimsoll.kube.port import error_of
from plimsoll.lifecycle.refusals import reason_of_words
from plimsoll.lifecycle.render import client
from plimsoll.lifecycle.run import run_of
from plimsoll.operator.execute import refusal_of
from plimsoll.plan.expand import make_plan
from support.apiserver import Answer, ApiServer, Document, create, patch, wait_until
from support.specs import SETTINGS, document

pytestmark = pytest.mark.crd

POD, JOB, CLAIM = "api/v1 pods", "apis/batch/v1 jobs", "api/v1 persistentvolumeclaims"
REQUESTED = {"requests": {"memory": "256Mi"}}
BOUNDED = {**REQUESTED, "limits": {"memory": "1Gi"}}


@dataclass(frozen=True, kw_only=True)
class Case:
    """What limits a namespace of that name, and what that refuses of a run with such clients."""

    name: str
    says: str
    refused: str = POD
    hard: Document = field(default_factory=dict)  # of a ResourceQuota
    used: Document = field(default_factory=dict)
    limits: Document = field(default_factory=dict)  # of a LimitRange
    resources: Document = field(default_factory=dict)


CASES = [
    Case(name="pods", hard={"pods": "1"}, used={"pods": "1"}, says="exceeded quota: tight, requested: pods=1"),
    Case(name="jobs", refused=JOB, hard={"count/jobs.batch": "0"}, says="exceeded quota: tight"),
    Case(name="storage", refused=CLAIM, hard={"requests.storage": "1Ki"}, says="exceeded quota: tight"),
    Case(name="limits", hard={"limits.memory": "512Mi"}, resources=BOUNDED, says="exceeded quota: tight"),
    Case(name="no-limit", hard={"limits.memory": "2Gi"}, resources=REQUESTED, says="must specify limits.memory"),
    Case(
        name="ratio",
        limits={"type": "Container", "maxLimitRequestRatio": {"memory": "2"}},
        resources=BOUNDED,
        says="memory max limit to request ratio per Container is 2, but provided ratio is 4",
    ),
    Case(
        name="no-ratio",
        limits={"type": "Pod", "maxLimitRequestRatio": {"memory": "2"}},
        says="memory max limit to request ratio per Pod is 2, but no request is specified",
    ),
    Case(name="least", limits={"type": "Pod", "min": {"cpu": "2"}}, says="minimum cpu usage per Pod is 2"),
    Case(
        name="several",
        limits={"type": "Container", "max": {"memory": "1Mi"}, "maxLimitRequestRatio": {"memory": "2"}},
        resources=BOUNDED,
        says="is forbidden: [maximum ",
    ),
    Case(
        name="default-limit",  # a LimitRange's maximum, if it has no default
        limits={"type": "Container", "max": {"memory": "64Mi"}},
        resources=REQUESTED,
        says="must be less than or equal to memory limit",
    ),
    Case(
        name="small-claim",
        refused=CLAIM,
        limits={"type": "PersistentVolumeClaim", "min": {"storage": "1Ti"}},
        says="minimum storage usage per PersistentVolumeClaim is 1Ti",
    ),
]


def attempt(api: ApiServer, case: Case) -> Answer:
    """Try to create the object, as the operator or the Job controller would."""
    parts = document(clients={"count": 1, **({"resources": case.resources} if case.resources else {})})
    parts["metadata"] |= {"namespace": case.name, "uid": "u", "creationTimestamp": "2026-01-01T12:00:00Z"}
    run, plan = run_of(parts, SETTINGS), make_plan(decode_run(parts), seed=1, runner_image="runner:1")
    job = client.job(run, plan, SETTINGS, client=0, attempt=0)
    template = job["spec"]["template"]
    # An admission plugin that tests do without sets the account.
    spec = {"serviceAccountName": "default", **template["spec"]}
    pod = {"metadata": template["metadata"], "spec": spec}
    (claim,) = client.claims(run, plan, "fast")
    group, plural = case.refused.split()
    obj = {POD: pod, JOB: job, CLAIM: claim}[case.refused]
    # Quotas do not count dry runs. What is created before the plugin has seen the quota does not matter.
    metadata = {key: value for key, value in obj["metadata"].items() if key != "name"} | {"generateName": "quota-"}
    return create(api, f"/{group}/namespaces/{case.name}/{plural}", {**obj, "metadata": metadata}, keep=True)


def refused(api: ApiServer, case: Case, says: str) -> Answer:
    """Return the refusal with these words, once the admission plugins have seen the limits."""
    wait_until(lambda: says in attempt(api, case).message, f"{case.name} is refused", 20)
    return attempt(api, case)


def reasons_of(answer: Answer) -> set[str]:
    """Return the reasons that the operator gives for it, to its own request and to that of the Job controller."""
    refusal = refusal_of(error_of("create", answer.code, json.dumps(answer.body), {}))
    return {refusal.reason, reason_of_words(f"FailedCreate: Error creating: {answer.message}")}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_quota_or_limit_range_that_refuses_an_object_is_named(api: ApiServer, case: Case) -> None:
    namespace = f"/api/v1/namespaces/{case.name}"
    api.request("POST", "/api/v1/namespaces", {"metadata": {"name": case.name}}).expect(201)
    tight = {"name": "tight"}
    if case.limits:
        spec = {"limits": [case.limits]}
        api.request("POST", f"{namespace}/limitranges", {"metadata": tight, "spec": spec}).expect(201)
    else:
        quota = {"metadata": tight, "spec": {"hard": case.hard}}
        api.request("POST", f"{namespace}/resourcequotas", quota).expect(201)
        status, used = f"{namespace}/resourcequotas/tight/status", dict.fromkeys(case.hard, "0") | case.used
        patch(api, status, {"status": {"hard": case.hard}}).expect(200)
        assert reasons_of(refused(api, case, "quota: tight")) == {"QuotaExceeded"}
        patch(api, status, {"status": {"used": used}}).expect(200)
    assert reasons_of(refused(api, case, case.says)) == {"QuotaExceeded"}


def test_a_run_that_requests_more_than_its_limit_meets_no_quota(api: ApiServer) -> None:
    case = Case(name="more", refused=JOB, says="", resources={"requests": {"cpu": "2"}, "limits": {"cpu": "1"}})
    api.request("POST", "/api/v1/namespaces", {"metadata": {"name": case.name}}).expect(201)
    answer = attempt(api, case)
    assert "must be less than or equal to cpu limit" in answer.message
    assert reasons_of(answer) == {"ApiRefused"}


def test_a_pod_security_level_is_no_quota(api: ApiServer) -> None:
    """Even if the run is named `quota`."""
    case = Case(name="strict", says="")
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    api.request("POST", "/api/v1/namespaces", {"metadata": {"name": case.name, "labels": labels}}).expect(201)
    attempt(api, case).expect(201)
    pod = {
        "metadata": {"name": "quota-client-0"},
        "spec": {"hostNetwork": True, "containers": [{"name": "a", "image": "b"}]},
    }
    answer = create(api, f"/api/v1/namespaces/{case.name}/pods", pod)
    assert 'violates PodSecurity "restricted:latest"' in answer.message
    assert reasons_of(answer) == {"ApiRefused"}
