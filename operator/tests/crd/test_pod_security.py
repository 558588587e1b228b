"""Every pod of every sample is admitted by the Pod Security profile that the sample names, and of no stricter one.

The profiles are those of the API server, which a namespace enforces by its label. Pods are not stored.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from plimsoll.api.names import RUN_KIND, SUITE_KIND
from plimsoll.api.storage import NamespacedName
from plimsoll.api.suite import load_suite
from plimsoll.lifecycle import naming
from plimsoll.lifecycle.render import client, conductor, teardown
from plimsoll.lifecycle.run import Settings, run_of
from plimsoll.plan.document import ControlPlane
from plimsoll.plan.expand import make_plan
from plimsoll.suite.children import variant_spec
from support.apiserver import Answer, ApiServer, Document, read_yaml
from support.specs import manifest

pytestmark = pytest.mark.crd

DEMOS = Path(__file__).parents[3] / "manifests" / "demos"
SAMPLES = sorted([*DEMOS.glob("*.yaml"), *(DEMOS.parent / "samples").glob("*.yaml")])
STRICTER = {"baseline": "restricted"}
"""Profile -> the next stricter one."""

NAMESPACES = "/api/v1/namespaces"
ENFORCE = "pod-security.kubernetes.io/enforce"
SETTINGS = Settings(runner_image="runner:1", rook_clusters={"rook-ceph/rook-ceph": ("*",)})
HELPER = NamespacedName(namespace="helpers", name="helper")


@pytest.fixture(scope="module")
def profiles(apiserver: ApiServer) -> ApiServer:
    """Return a server with a namespace for each profile, of its name."""
    for profile in ("restricted", "baseline", "privileged"):
        named = {"name": profile, "labels": {ENFORCE: profile}}
        apiserver.request("POST", NAMESPACES, {"metadata": named}).expect(201)
    return apiserver


def admitted(server: ApiServer, pod: Document, profile: str) -> Answer:
    return server.request("POST", f"{NAMESPACES}/{profile}/pods?dryRun=All&fieldValidation=Strict", pod)


def specs_in(path: Path) -> list[Document]:
    """Return the specification of a run, or of each variant of a suite."""
    text = path.read_text()
    document: Document = read_yaml(text)
    if document["kind"] != SUITE_KIND:
        return [document["spec"]]
    suite = load_suite(text).spec
    return [variant_spec(suite.run, variant) for variant in suite.variants]


def pods_of(spec: Document, settings: Settings) -> Iterator[Document]:
    """Yield the pods of a run: the conductor's, the clients' and servers', and the one that cleans up in Ceph."""
    metadata = {"name": "run", "namespace": "bench", "uid": "u", "creationTimestamp": "2026-01-01T12:00:00Z"}
    run = run_of(manifest(RUN_KIND, spec, **metadata), SETTINGS)
    assert run.document is not None, run.spec_problem
    plan = make_plan(run.document, seed=1, runner_image=settings.runner_image)
    control_plane = ControlPlane(helper=HELPER, certificate="the certificate", storage_class="fast")
    # As if the administrator allowed everything.
    plan = plan.model_copy(update={"cache_helper": HELPER, "control_plane": control_plane})
    jobs = [conductor.job(run, plan, settings)]
    jobs += [client.job(run, plan, settings, client=number, attempt=0) for number in range(plan.members)]
    record = teardown.record_of(plan)
    jobs += [] if record is None else [teardown.job(run, record, settings)]
    for job in jobs:
        template = job["spec"]["template"]
        yield {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {**template["metadata"], "name": job["metadata"]["name"]},
            # An admission plugin that tests do without sets the account.
            "spec": {"serviceAccountName": "default", **template["spec"]},
        }


def is_a_client(pod: Document) -> bool:
    return bool(pod["metadata"]["labels"][naming.LABEL_COMPONENT] == naming.CLIENT)


@pytest.mark.parametrize("platform_assigns_user", [False, True], ids=["own user", "user of the platform"])
@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_the_pods_of_a_sample_need_the_profile_that_it_names(
    profiles: ApiServer, path: Path, *, platform_assigns_user: bool
) -> None:
    (profile,) = re.findall(r"^# Pod Security profile of its namespace: (\w+)", path.read_text(), re.MULTILINE)
    settings = replace(SETTINGS, platform_assigns_user=platform_assigns_user)
    pods = [pod for spec in specs_in(path) for pod in pods_of(spec, settings)]
    for pod in pods:
        admitted(profiles, pod, profile if is_a_client(pod) else "restricted").expect(201)
    if stricter := STRICTER.get(profile):
        answers = [admitted(profiles, pod, stricter) for pod in pods if is_a_client(pod)]
        refusals = [answer.message for answer in answers if not answer.accepted]
        assert refusals
        assert all('violates PodSecurity "restricted:latest"' in message for message in refusals)


def test_a_run_that_only_says_what_to_measure_needs_no_more_than_the_restricted_profile(profiles: ApiServer) -> None:
    """Whatever its storage is, unless it asks for raw devices."""
    path = DEMOS / "quickstart.yaml"
    assert "mode:" not in path.read_text()
    (spec,) = specs_in(path)
    for pod in pods_of(spec, SETTINGS):
        admitted(profiles, pod, "restricted").expect(201)
        assert not admitted(profiles, {**pod, "spec": {**pod["spec"], "hostNetwork": True}}, "baseline").accepted
