"""What Plimsoll makes in Rook's namespace is what Rook's own schemas take, unknown fields refused.

Rook's definitions are not part of this repository: PLIMSOLL_ROOK_CRDS names directories with them, one for each of its
versions, separated by colons. Those of its stand-in are.
"""

import json
import os
import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pytest

from plimsoll.api.storage import Pool, Replicated
from plimsoll.lifecycle.ceph.rook_render import BLOCK_POOL, CEPH_CLIENT, FILE_SYSTEM, pool_spec
from support.apiserver import ApiServer, Document, create, patch, read_yamls, wait_until
from support.specs import STORAGE, ceph_run, made_in_rook, with_fast_coding

pytestmark = pytest.mark.crd
COLLECTIONS = {
    BLOCK_POOL: "/apis/ceph.rook.io/v1/namespaces/rook-ceph/cephblockpools",
    CEPH_CLIENT: "/apis/ceph.rook.io/v1/namespaces/rook-ceph/cephclients",
    FILE_SYSTEM: "/apis/ceph.rook.io/v1/namespaces/rook-ceph/cephfilesystems",
}


ROOT = Path(__file__).parents[3]
DIRECTORIES = os.environ.get("PLIMSOLL_ROOK_CRDS", "").split(os.pathsep)
STAND_IN = str(ROOT / "e2e" / "rook")


@pytest.fixture(
    scope="module", params=[*DIRECTORIES, STAND_IN], ids=lambda directory: Path(directory).parent.name or "none"
)
def rook(api: ApiServer, request: pytest.FixtureRequest) -> Iterator[ApiServer]:
    """An API server with the CRDs of one version of Rook during these tests."""
    directory: str = request.param
    if not directory:
        pytest.skip("PLIMSOLL_ROOK_CRDS names no directory with Rook's definitions: nothing is compared with them")
    documents = chain.from_iterable(read_yamls(path.read_text()) for path in sorted(Path(directory).glob("*.yaml")))
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


def test_rooks_schemas_have_the_fields_of_stretched_pools(rook: ApiServer) -> None:
    layout = Replicated(size=4, replicas_per_failure_domain=2, sub_failure_domain="host")
    spec = pool_spec(Pool(replicated=layout, failure_domain="zone"))
    pool = {"apiVersion": "ceph.rook.io/v1", "kind": BLOCK_POOL, "metadata": {"name": "stretched"}, "spec": spec}
    created = create(rook, COLLECTIONS[BLOCK_POOL], pool, keep=False).expect(201)
    assert created["spec"]["replicated"] == spec["replicated"]


@pytest.mark.parametrize("name", ["rook-images", "rook-files"])
def test_only_a_newer_rook_takes_a_stripe_unit_and_a_dry_run_shows_it(
    rook: ApiServer, request: pytest.FixtureRequest, name: str
) -> None:
    is_known = knows(request, "stripeUnit")
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


def knows(request: pytest.FixtureRequest, field: str) -> bool:
    """Whether the definitions have a field that Rook 1.18 does not know."""
    directory = Path(request.node.callspec.params["rook"])
    is_known = any(field in path.read_text() for path in directory.glob("*.yaml"))
    assert is_known == ("1.18" not in directory.parent.name)
    return is_known


def test_the_documented_change_of_a_key_is_taken_by_a_newer_rook_and_cannot_be_taken_back(
    rook: ApiServer, request: pytest.FixtureRequest
) -> None:
    (text,) = re.findall(
        r"patch cephclient NAME --type merge -p '([^']*)'", (ROOT / "docs" / "reference" / "ceph.md").read_text()
    )
    user = {"apiVersion": "ceph.rook.io/v1", "kind": CEPH_CLIENT, "metadata": {"name": "rotated"}, "spec": {"caps": {}}}
    create(rook, COLLECTIONS[CEPH_CLIENT], user, keep=True).expect(201)
    path, change = f"{COLLECTIONS[CEPH_CLIENT]}/rotated", json.loads(text)
    answer = patch(rook, path, change)
    if not knows(request, "keyType"):
        assert 'unknown field "spec.security.cephx.keyType"' in answer.message
        return
    assert answer.expect(200)["spec"]["security"] == change["spec"]["security"]
    for generation, problem in ((1, "cannot be decreased"), (None, "cannot be removed once set")):
        back = {"spec": {"security": {"cephx": {"keyGeneration": generation}}}}
        assert f"keyGeneration {problem}" in patch(rook, path, back).message


def test_failure_domains_of_chunks_come_with_their_number_of_osds(
    rook: ApiServer, request: pytest.FixtureRequest
) -> None:
    if not knows(request, "crushNumFailureDomains"):
        return
    chunks = {"dataChunks": 4, "codingChunks": 2, "crushNumFailureDomains": 3}
    pool = {"apiVersion": "ceph.rook.io/v1", "kind": BLOCK_POOL, "metadata": {"name": "spread"}}
    answer = create(rook, COLLECTIONS[BLOCK_POOL], pool | {"spec": {"erasureCoded": chunks}})
    assert "must be specified together" in answer.message
    chunks["crushOSDsPerFailureDomain"] = 2
    create(rook, COLLECTIONS[BLOCK_POOL], pool | {"spec": {"erasureCoded": chunks}}).expect(201)


@pytest.mark.parametrize(("kind", "spec"), [(BLOCK_POOL, {"replicas": 3}), (CEPH_CLIENT, {"caps": {}, "secret": "x"})])
def test_rooks_schemas_refuse_a_typing_error(rook: ApiServer, kind: str, spec: Document) -> None:
    obj = {"apiVersion": "ceph.rook.io/v1", "kind": kind, "metadata": {"name": "x"}, "spec": spec}
    assert "unknown field" in create(rook, COLLECTIONS[kind], obj).message
