"""The policies accept every request that the operator makes, on a real API server with the chart's rights."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

import pytest

from chart.admission import BENCH, TEARDOWN, Installation, create, delete
from plimsoll.api.storage import NamespacedName
from plimsoll.cli.init import JOBS, manifest
from plimsoll.lifecycle.ceph.rook_render import users
from plimsoll.lifecycle.render import client, conductor
from plimsoll.plan.document import ControlPlane
from plimsoll.plan.windows import WINDOWS
from plimsoll.tools.registry import TOOLS
from support import pretend_world
from support.apiserver import ApiServer, read_yaml, read_yamls
from support.fake_kube import FakeKube, copy_of
from support.played_suites import Mortal, PlayedSuite
from support.pretend_rook import ROOK
from support.pretend_world import CLAIMS, ERASURE_CODED, FILE_SYSTEM, LIBRBD, PretendWorld
from support.pretend_world import create as create_run
from support.specs import SETTINGS, STORAGE, UID, ceph_run, made_for_ceph, suite_document

pytestmark = [pytest.mark.chart, pytest.mark.crd]

GOLDEN = Path(__file__).parents[1] / "golden" / "render"
REMOVED = {"CephBlockPool", "CephClient", "CephFilesystem", "Job", "NetworkPolicy", "PersistentVolumeClaim", "Role"} | {
    "RoleBinding", "Service", "ServiceAccount", "StorageClass"
}  # fmt: skip
"""Kinds that the operator deletes wherever they are."""

CEPH: Mapping[str, Mapping[str, Any]] = {
    "claims": {"rook": ROOK, "volume": CLAIMS},
    "images": {"rook": ERASURE_CODED, "volume": LIBRBD},
    "files": {"rook": FILE_SYSTEM, "volume": CLAIMS},
}


@dataclass(frozen=True, slots=True)
class Change:
    """A creation, or the deletion of an object with only a name."""

    verb: str
    obj: Any
    dry_run: bool = False


def recorded(kube: FakeKube) -> list[Change]:
    """Return the creations and deletions that will have been requested."""
    changes: list[Change] = []
    passed_create, passed_delete = kube.create, kube.delete

    async def recorded_create(obj: Any, *, dry_run: bool = False) -> bool:
        changes.append(Change("create", copy_of(dict(obj)), dry_run))
        return await passed_create(obj, dry_run=dry_run)

    async def recorded_delete(kind: Any, name: str, namespace: str | None = None, **options: Any) -> bool:
        metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
        changes.append(Change("delete", {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata}))
        return await passed_delete(kind, name, namespace, **options)

    kube.create, kube.delete = recorded_create, recorded_delete  # type: ignore[method-assign]
    return changes


def replay(operator: ApiServer, changes: list[Change]) -> set[str]:
    """Make these requests; return the kinds that were created. Pods exist only in the world that was recorded."""
    for change in changes:
        if change.verb == "create":
            answer = create(operator, change.obj, dry_run=change.dry_run)
            # One that exists has passed the policies before.
            assert answer.code in {201, 409}, f"{change.obj['kind']} {change.obj['metadata']['name']}: {answer.message}"
        else:
            answer = delete(operator, change.obj)
            assert answer.code in {200, 202, 404}, f"{change.obj}: {answer.message}"
    return {change.obj["kind"] for change in changes if change.verb == "create" and not change.dry_run}


LONG = "a-name-of-as-many-characters-as-a-label-may-have-" + "0123456789abcd"


@pytest.mark.parametrize("name", [LONG, *CEPH])
def test_a_run_is_measured_and_removed(cluster: Installation, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    # Conductors get maintenance windows, if there are any, as a variable.
    always = WINDOWS.validate_python([{"from": "00:00", "to": "24:00"}])
    monkeypatch.setattr(pretend_world, "SETTINGS", replace(pretend_world.SETTINGS, windows=always))
    with PretendWorld() as world:
        changes = recorded(world.cluster.kube)
        uid = create_run(world, name, **CEPH[name]) if name in CEPH else world.create(name)
        world.until_settled(uid)
        assert world.conditions(uid)["Succeeded"]["status"] == "True"
    made = replay(cluster.operator, changes)
    assert made >= {"ConfigMap", "Job", "NetworkPolicy", "Role", "RoleBinding", "Secret", "Service", "ServiceAccount"}


async def test_a_suite_creates_and_deletes_runs(cluster: Installation) -> None:
    kube = FakeKube(namespaces=(BENCH,))
    changes = recorded(kube)
    played = PlayedSuite(kube=kube, operator=Mortal(kube), namespace=BENCH)
    await played.create(suite_document(repeat=1))
    await played.settle()
    await played.change(repeat=2)
    await played.measure_round(small=1000, large=1000)
    runs = [change for change in changes if change.obj["kind"] == "BenchmarkRun"]
    replay(cluster.operator, runs)
    assert {change.verb for change in runs} == {"create", "delete"}


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.yaml")), ids=lambda path: path.stem)
def test_every_rendered_object_is_accepted_and_deleted(cluster: Installation, path: Path) -> None:
    """Whatever the storage, the tools and the options of the run."""
    objects = read_yamls(path.read_text().replace(UID, str(uuid5(NAMESPACE_URL, path.stem))))
    for obj in objects:
        # A file may have variants of an object.
        assert create(cluster.operator, obj).code in {201, 409}, obj["metadata"]
    for obj in objects:
        if obj["kind"] in REMOVED or obj["metadata"].get("namespace") == TEARDOWN:
            assert delete(cluster.operator, obj).code in {200, 404}


@pytest.mark.parametrize("version", ["", "20.2.3-0", "20.2.4-0"])
@pytest.mark.parametrize("name", sorted(STORAGE))
def test_the_users_of_a_run_are_accepted_for_every_version_of_ceph(
    cluster: Installation, name: str, version: str
) -> None:
    made = ceph_run(name)
    found = [*users(made.run, made.target, ("plimsoll-0", "plimsoll-31"), version=version)]
    assert bool(found) == ("rook" in STORAGE[name])
    for user in found:
        create(cluster.operator, dict(user), dry_run=True).expect(201)


def test_the_pods_of_every_tool_are_accepted(cluster: Installation) -> None:
    """Those whose pods need something of their own: tokens for the helpers, keyrings, sysctls."""
    made = ceph_run("rook-images")
    cold = made.plan.model_copy(
        update={"cache_helper": NamespacedName(namespace="plimsoll-caches", name="plimsoll-caches")}
    )
    helper = NamespacedName(namespace="plimsoll-kube-burner", name="plimsoll-kube-burner")
    control_plane = ControlPlane(helper=helper, certificate="the certificate", storage_class="fast")
    burning = made.plan.model_copy(update={"control_plane": control_plane})
    osds = {"name": "o", "osdBench": {"keyringSecret": {"name": "administrators", "key": "admin.keyring"}}}
    jobs = [
        conductor.job(made.run, cold, SETTINGS),
        client.job(made.run, burning, SETTINGS, client=0, attempt=0),
        client.job(made.run, cold, SETTINGS, client=0, attempt=0),
        *(obj for obj in made_for_ceph(ceph_run("rook-images", osds)) if obj["kind"] == "Job"),
    ]
    sysctls = {name for tool in TOOLS.values() for name in tool.sysctls}
    for job in jobs:
        create(cluster.operator, dict(job), dry_run=True).expect(201)
    ping = next(obj for obj in read_yamls((GOLDEN / "pings.yaml").read_text()) if obj["kind"] == "Job")
    assert {one["name"] for one in ping["spec"]["template"]["spec"]["securityContext"]["sysctls"]} == sysctls


@pytest.mark.parametrize("image", ["runner:2", "runner@sha256:0123", "registry.example.com:5000/earlier/runner:1"])
def test_runs_that_began_with_another_image_of_an_allowed_repository_continue(
    cluster: Installation, image: str
) -> None:
    """After an upgrade, running benchmarks keep the image in their plan."""
    for job in (obj for obj in made_for_ceph(ceph_run("rook-claims")) if obj["kind"] == "Job"):
        changed = copy_of(dict(job))
        changed["spec"]["template"]["spec"]["containers"][0]["image"] = image
        create(cluster.operator, changed, dry_run=True).expect(201)


@pytest.mark.parametrize("job", JOBS)
def test_a_user_may_create_what_init_prints(cluster: Installation, job: str) -> None:
    document = read_yaml(manifest(job))
    document["metadata"]["namespace"] = BENCH
    create(cluster.tenant, document, dry_run=True).expect(201)
