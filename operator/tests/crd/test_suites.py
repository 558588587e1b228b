"""Suites on a real API server: what it refuses, and that it stores the parts of a run as written."""

from collections.abc import Callable
from typing import Any

import pytest

from crd.corpus_suites import OPEN_SUITES, REFUSED_SUITES
from crd.manifests import Manifest, changed
from crd.schemas import Schema, refusable, schema_of, seen, unseen, violations
from plimsoll.api.names import SUITE_KIND
from plimsoll.api.suite import decode_suite
from plimsoll.suite.children import merged_spec
from support.apiserver import SUITES, Answer, ApiServer, Document, apply, create, delete, patch, rows
from support.full_documents import FULL_SUITE
from support.specs import suite_document

pytestmark = pytest.mark.crd
RUN = {"workloads": [{"name": "a", "fio": {"ioDepth": [8]}, "runtimeSeconds": 20}]}
ROOK = {"cluster": {"namespace": "rook-ceph", "name": "rook-ceph"}}
REPLICATED: Document = {"replicated": {"size": 3}, "failureDomain": "osd"}
CODED: Document = {"erasureCoded": {"dataChunks": 4, "codingChunks": 2}}


def stored(api: ApiServer, **spec: Any) -> Document:
    """Return the specification of a suite as the API server stores it."""
    found: Document = create(api, SUITES, suite_document(**spec)).expect(201)["spec"]
    return found


@pytest.mark.parametrize("manifest", REFUSED_SUITES, ids=lambda manifest: manifest.name)
def test_refused(refusal: Callable[[str, Manifest], Answer], manifest: Manifest) -> None:
    answer = refusal(SUITES, manifest)
    assert answer.code in (400, 422), answer.body
    assert manifest.says
    for words in manifest.says:
        assert words in answer.message.replace('\\"', '"')


@pytest.mark.parametrize("manifest", OPEN_SUITES, ids=lambda manifest: manifest.name)
def test_left_to_the_operator(api: ApiServer, manifest: Manifest) -> None:
    create(api, SUITES, manifest.document).expect(201)


def without_parts(schema: Schema) -> Schema:
    """Return the schema of a suite's specification without those of the parts of a run."""
    variants = schema["properties"]["variants"]
    entry = {**variants["items"], "properties": {"name": variants["items"]["properties"]["name"]}}
    own = {name: field for name, field in schema["properties"].items() if name != "run"}
    return {**schema, "properties": own | {"variants": {**variants, "items": entry}}}


def test_every_constraint_of_a_suite_is_seen_to_refuse(
    refusal: Callable[[str, Manifest], Answer], definitions: dict[str, Document]
) -> None:
    schema = without_parts(schema_of(definitions[SUITE_KIND])["properties"]["spec"])
    found = seen(refusal(SUITES, manifest) for manifest in REFUSED_SUITES)
    assert unseen(schema, "spec", found) == []


@pytest.mark.parametrize("path", ["run", "variants[].set"])
def test_every_constraint_of_a_part_is_seen_to_refuse(
    api: ApiServer, definitions: dict[str, Document], path: str
) -> None:
    spec = schema_of(definitions[SUITE_KIND])["properties"]["spec"]["properties"]
    schema = spec["run"] if path == "run" else spec["variants"]["items"]["properties"]["set"]
    answers = [_with_part(api, path, value) for value in violations(schema)]
    assert {answer.code for answer in answers} == {422}
    assert unseen(schema, f"spec.{path}", seen(answers)) == []
    assert len(list(refusable(schema))) > 100


def _with_part(api: ApiServer, path: str, part: Any) -> Answer:
    if path == "run":
        return create(api, SUITES, suite_document(run=part))
    return create(api, SUITES, suite_document(variants=[{"name": "small", "set": part}]))


def test_nothing_of_a_full_suite_is_changed(api: ApiServer) -> None:
    assert create(api, SUITES, dict(FULL_SUITE)).expect(201)["spec"] == FULL_SUITE["spec"]


def test_parts_get_no_defaults(api: ApiServer) -> None:
    changes = {"repetitions": 3, "workloads": [{"name": "a", "fio": {}}]}
    spec = stored(api, run=RUN, variants=[{"name": "two-fields", "set": changes}])
    assert spec["run"] == RUN
    assert spec["variants"] == [{"name": "two-fields", "set": changes, "unset": []}]


def test_what_surrounds_parts_has_the_defaults_of_the_models(api: ApiServer) -> None:
    comparison = {"name": "upgrade", "baseline": {"rounds": "Accepted"}}
    spec = stored(api, run=RUN, variants=[{"name": "only"}], comparisons=[comparison], schedule={"cron": "0 3 * * 0"})
    assert spec == {
        "run": RUN,
        "variants": [{"name": "only", "set": {}, "unset": []}],
        "repeat": 3,
        "keep": 10,
        "triggers": {"cephVersion": False},
        "comparisons": [comparison | {"allow": {"ratePercent": 5, "latencyPercent": 10}}],
        "hypotheses": [],
        "schedule": {"cron": "0 3 * * 0", "timeZone": "Etc/UTC"},
        "gate": False,
        "suspend": False,
    }
    assert decode_suite(suite_document(**spec)) == decode_suite(
        suite_document(run=RUN, variants=[{"name": "only"}], comparisons=[comparison], schedule={"cron": "0 3 * * 0"})
    )


@pytest.mark.parametrize(
    ("run", "changes", "merged"),
    [
        ({"repetitions": 5}, {"repetitions": 3}, {"repetitions": 3}),
        (
            {"clients": {"count": 4}},
            {"clients": {"spread": "Preferred"}},
            {"clients": {"count": 4, "spread": "Preferred"}},
        ),
        (
            {"gates": {"acceptedHealthChecks": ["MON_DISK_LOW"]}},
            {"gates": {"acceptedHealthChecks": ["OSD_NEARFULL"]}},
            {"gates": {"acceptedHealthChecks": ["OSD_NEARFULL"]}},
        ),
        (
            RUN,
            {"workloads": [{"name": "b", "fio": {}}, {"name": "a", "fio": {"ioDepth": [1]}}]},
            {
                "workloads": [
                    {"name": "a", "fio": {"ioDepth": [1]}, "runtimeSeconds": 20},
                    {"name": "b", "fio": {}},
                ]
            },
        ),
        (
            {"storage": {"rook": ROOK | {"pool": REPLICATED}}},
            {"storage": {"rook": {"pool": CODED}}},
            {"storage": {"rook": ROOK | {"pool": {"failureDomain": "osd"} | CODED}}},
        ),
        (RUN, {"workloads": [{"name": "a", "dd": {}}]}, {"workloads": [{"name": "a", "runtimeSeconds": 20, "dd": {}}]}),
    ],
    ids=[
        "value",
        "mapping",
        "list",
        "workloads by name",
        "union",
        "tool",
    ],
)
def test_what_is_stored_merges_as_documented(
    api: ApiServer, run: Document, changes: Document, merged: Document
) -> None:
    spec = stored(api, run=run, variants=[{"name": "changed", "set": changes}])
    assert (spec["run"], spec["variants"][0]["set"]) == (run, changes)
    assert merged_spec(spec["run"], spec["variants"][0]["set"]) == merged


def test_null_is_refused_and_what_is_unset_survives_every_way_of_applying(api: ApiServer) -> None:
    path, variants = f"{SUITES}/sizes", [{"name": "a", "unset": ["clients.count"], "set": {"repetitions": 3}}]
    refused = [{"name": "a", "set": {"clients": {"spread": None}}}]
    apply(api, path, suite_document(variants=refused)).expect(422)
    assert apply(api, path, suite_document(variants=variants)).expect(201)["spec"]["variants"] == variants
    try:
        variants[0]["unset"] = ["repetitions", "workloads.a.runtimeSeconds"]
        changed = patch(api, path, {"spec": {"variants": variants}}).expect(200)
        assert changed["spec"]["variants"] == variants
    finally:
        delete(api, path)


def test_two_managers_can_own_different_variants(api: ApiServer) -> None:
    path = f"{SUITES}/sizes"
    apply(api, path, suite_document(variants=[{"name": "a"}]), manager="one").expect(201)
    try:
        found = apply(api, path, suite_document(variants=[{"name": "b"}]), manager="two").expect(200)
        assert [variant["name"] for variant in found["spec"]["variants"]] == ["a", "b"]
    finally:
        delete(api, path)


def test_a_new_suite_is_not_observed_yet(api: ApiServer) -> None:
    create(api, SUITES, changed(FULL_SUITE, {"metadata.name": "fresh"}), keep=True).expect(201)
    try:
        assert api.request("GET", f"{SUITES}/fresh").expect(200)["status"] == {"observedGeneration": -1}
        columns, _ = rows(api, SUITES)
        shown = [column["name"] for column in columns if column["priority"] == 0]
        assert shown == ["Name", "Status", "Progress", "Verdict", "Next", "Age"]
    finally:
        delete(api, f"{SUITES}/fresh")
