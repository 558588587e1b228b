"""What Plimsoll makes in Rook's namespace is what Rook's own schemas take, unknown fields refused.

Rook's definitions are not part of this repository: PLIMSOLL_ROOK_CRDS names directories with them, one for each of its
versions, separated by colons.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from plimsoll.lifecycle.ceph.rook_render import BLOCK_POOL, CEPH_CLIENT, FILE_SYSTEM
from support.apiserver import ApiServer, Document, create, read_yaml, wait_until
from support.specs import STORAGE, ceph_run, made_in_rook, with_fast_coding

pytestmark = pytest.mark.crd
COLLECTIONS = {
    BLOCK_POOL: "/apis/ceph.rook.io/v1/namespaces/rook-ceph/cephblockpools",
    CEPH_CLIENT: "/apis/ceph.rook.io/v1/namespaces/rook-ceph/cephclients",
    FILE_SYSTEM: "/apis/ceph.rook.io/v1/namespaces/rook-ceph/cephfilesystems",
}


DIRECTORIES = os.environ.get("PLIMSOLL_ROOK_CRDS", "").split(os.pathsep)


@pytest.fixture(scope="module", params=DIRECTORIES, ids=lambda directory: Path(directory).parent.name or "none")
def rook(api: ApiServer, request: pytest.FixtureRequest) -> Iterator[ApiServer]:
    """An API server with the CRDs of one version of Rook during these tests."""
    directory: str = request.param
    if not directory:
        pytest.skip("PLIMSOLL_ROOK_CRDS names no directory with Rook's definitions: nothing is compared with them")
    documents = [read_yaml(path.read_text()) for path in sorted(Path(directory).glob("*.yaml"))]
    definitions = [one for one in documents if one["spec"]["names"]["kind"] in COLLECTIONS]
    assert {one["spec"]["names"]["kind"] for one in definitions} == COLLECTIONS.keys()
    for definition in definitions:
        api.define(definition)
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "rook-ceph"}}
    assert api.request("POST", "/api/v1/namespaces", namespace).code in {201, 409}
    yield api
    for definition in definitions:
        path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        api.request("DELETE", f"{path}/{definition['metadata']['name']}").expect(200)
    # Otherwise the next version's would be compared with what this one still serves.
    wait_until(lambda: not any(api.request("GET", path).accepted for path in COLLECTIONS.values()), "they are gone")


@pytest.mark.parametrize("name", [name for name in STORAGE if name.startswith("rook-")])
def test_rooks_schemas_take_what_a_run_makes(rook: ApiServer, name: str) -> None:
    for obj in made_in_rook(ceph_run(name)):
        created = create(rook, COLLECTIONS[obj["kind"]], dict(obj)).expect(201)
        for field, value in obj["spec"].items():
            assert created["spec"][field] == value


@pytest.mark.parametrize("name", ["rook-images", "rook-files"])
def test_only_a_newer_rook_takes_a_stripe_unit_and_a_dry_run_shows_it(
    rook: ApiServer, request: pytest.FixtureRequest, name: str
) -> None:
    directory = Path(request.node.callspec.params["rook"])
    is_known = any("stripeUnit" in path.read_text() for path in directory.glob("*.yaml"))
    assert is_known == ("1.18" not in directory.parent.name)
    fast = ceph_run(name, storage=with_fast_coding(STORAGE[name]))
    *_, obj = (pool for pool in made_in_rook(fast) if pool["kind"] in {BLOCK_POOL, FILE_SYSTEM})
    answer = create(rook, COLLECTIONS[obj["kind"]], {**obj, "metadata": {"name": "fast"}}, keep=False)
    if is_known:
        created = answer.expect(201)
        for field, value in obj["spec"].items():
            assert created["spec"][field] == value
    else:
        assert "strict decoding error: unknown field" in answer.message
        assert "stripeUnit" in answer.message


@pytest.mark.parametrize(("kind", "spec"), [(BLOCK_POOL, {"replicas": 3}), (CEPH_CLIENT, {"caps": {}, "secret": "x"})])
def test_rooks_schemas_refuse_a_typing_error(rook: ApiServer, kind: str, spec: Document) -> None:
    obj = {"apiVersion": "ceph.rook.io/v1", "kind": kind, "metadata": {"name": "x"}, "spec": spec}
    assert "unknown field" in create(rook, COLLECTIONS[kind], obj).message
