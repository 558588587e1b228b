from collections.abc import Mapping
from hashlib import sha256
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from plimsoll.api.environment import CephOption, Environment, PlatformEnvironment
from plimsoll.api.result import Fingerprint
from plimsoll.api.run import Gates
from plimsoll.api.storage import Pool, Precondition, Prepare, Replicated, Volume
from plimsoll.api.surroundings import OsdCaches
from plimsoll.plan.document import CephTarget, RunIdentity, base_name
from plimsoll.plan.fingerprint import Difference, differences, digest, fingerprint
from support.client_documents import make_plan

STORAGE_CLASS: dict[str, JsonValue] = {
    "name": "fast",
    "provisioner": "rbd.csi.ceph.com",
    "parameters": {"pool": "p"},
    "reclaimPolicy": "Delete",
}
ENVIRONMENT: dict[str, JsonValue] = {
    "nodes": ["a", "b"],
    "dataSetBytes": {"min": 2**30, "max": 2**30},
    "kernel": "6.1",
    "processors": 8,
    "tools": {"fio": "fio-3.39", "other": "1"},
    "storageClass": STORAGE_CLASS,
}


def taken(
    facts: Mapping[str, JsonValue] = ENVIRONMENT, *, point: Mapping[str, Any] | None = None, **changes: Any
) -> Fingerprint:
    """Return the fingerprint of the first point of a plan, with changes of the plan and of that point."""
    plan = make_plan().model_copy(update=changes)
    return fingerprint(plan, plan.points[0].model_copy(update=dict(point or {})), Environment.model_validate(facts))


def changed(fact: str, value: JsonValue) -> dict[str, JsonValue]:
    return ENVIRONMENT | {fact: value}


BASE = taken()


@pytest.mark.parametrize(
    ("key", "other"),
    [
        ("tool", taken(point={"tool": "rbdBench"})),
        ("parameters.blockSize", taken(point={"parameters": {"blockSize": 8192}})),
        ("toolVersions", taken(changed("tools", {"fio": "fio-3.40", "other": "1"}))),
        ("toolVersions", taken(changed("tools", [{"fio": "fio-3.39", "other": "1"}, {"fio": "fio-3.40"}]))),
        ("clients", taken(point={"clients": 1})),
        ("runtimeSeconds", taken(point={"runtime_seconds": 5})),
        ("rampSeconds", taken(point={"ramp_seconds": 2})),
        ("volume.size", taken(volume=Volume(size=2**31, mode="Filesystem"))),
        ("volume.mode", taken(volume=Volume(size=2**30, mode="Block"))),
        ("prepare.prefill", taken(prepare=Prepare(settle_seconds=2, prefill=False))),
        ("prepare.discard", taken(prepare=Prepare(settle_seconds=2, discard=False))),
        ("prepare.fillPercent", taken(prepare=Prepare(settle_seconds=2, fill_percent=50))),
        ("dataSetBytes.max", taken(changed("dataSetBytes", {"min": 2**30, "max": 2**31}))),
        ("storageClass.name", taken(changed("storageClass", STORAGE_CLASS | {"name": "slow"}))),
        ("pool.size", taken(changed("pool", {"size": 3}))),
    ],
)
def test_the_specification_is_identity(key: str, other: Fingerprint) -> None:
    assert key in [found.key for found in differences(BASE, other) if found.part == "identity"]
    assert other.identity_sha256 != BASE.identity_sha256


@pytest.mark.parametrize(
    ("key", "other"),
    [
        ("nodes", taken(changed("nodes", ["a"]))),
        ("kernel", taken(changed("kernel", "6.2"))),
        ("processors", taken(changed("processors", [8, 16]))),
        ("kubernetes", taken(changed("kubernetes", "v1.34.0"))),
        ("otherTools.other", taken(changed("tools", {"fio": "fio-3.39", "other": "2"}))),
        ("seed", taken(seed=2)),
        ("runClients", taken(clients=3)),
        ("runnerImage", taken(runner_image="runner")),
        ("settleSeconds", taken(prepare=Prepare(settle_seconds=3))),
        ("gates.pauseScrub", taken(gates=Gates(pause_scrub=False))),
        ("networkBytesPerSecond", taken(network_bytes_per_second=10**9)),
        ("storageClass.reclaimPolicy", taken(changed("storageClass", STORAGE_CLASS | {"reclaimPolicy": "Retain"}))),
    ],
)
def test_everything_else_is_context_and_nothing_is_both(key: str, other: Fingerprint) -> None:
    assert [(found.part, found.key) for found in differences(BASE, other)] == [("context", key)]
    assert other.identity_sha256 == BASE.identity_sha256
    assert other.context_sha256 != BASE.context_sha256


def test_preconditioning_is_identity() -> None:
    other = taken(prepare=Prepare(settle_seconds=2, precondition=Precondition(seconds=60)))
    assert [found.key for found in differences(BASE, other)] == [
        "prepare.precondition.blockSize",
        "prepare.precondition.seconds",
    ]


def test_the_content_of_the_data_set_is_identity_of_all_that_read_it() -> None:
    other, first = {"point": {"tool": "ioping"}}, make_plan().points[0]
    filling = first.model_copy(update={"parameters": {**first.parameters, "compressPercent": 90}})
    found = differences(taken(**other), taken(**other, points=(first, filling)))
    assert [(each.part, each.key, each.candidate) for each in found] == [
        ("identity", "dataContent.compressPercent", 90)
    ]


def test_a_new_data_set_for_each_trial_is_identity() -> None:
    other = taken(prepare=Prepare(settle_seconds=2, per_trial="NewDataSet"))
    assert [(found.key, found.baseline, found.candidate) for found in differences(BASE, other)] == [
        ("prepare.perTrial", None, "NewDataSet")
    ]
    assert "perTrial" not in str(BASE.identity)


@pytest.mark.parametrize(
    ("reasons", "expected"),
    [((), None), ((None,), "Dropped"), (("no key",), "Kept"), ((None, "no key"), "DroppedInPart")],
)
def test_whether_osds_dropped_their_caches_is_identity(reasons: tuple[str | None, ...], expected: str | None) -> None:
    plan = make_plan()
    caches = [OsdCaches(count=3 if reason is None else 0, reason=reason) for reason in reasons]
    found = fingerprint(plan, plan.points[0], Environment.model_validate(ENVIRONMENT), osd_caches=caches)
    assert found.identity.get("osdCaches") == expected


def test_the_number_of_metadata_servers_is_identity() -> None:
    one, two = (
        taken(changed("ceph", {"fileSystem": {"name": "f", "metadataServers": count, "dataPools": 1}}))
        for count in (1, 2)
    )
    assert "fileSystem.metadataServers" in [found.key for found in differences(one, two) if found.part == "identity"]


def test_options_set_for_the_run_are_identity_with_their_values_as_ceph_stores_them() -> None:
    def of_options(stored: dict[str, JsonValue], *options: CephOption) -> Fingerprint:
        target = CephTarget(pool="p", conductor_user="c", agent_user="a", options=options)
        return taken({**ENVIRONMENT, "ceph": {"fsid": "f", **stored}}, ceph=target)

    one = CephOption(who="osd", name="osd_memory_target", value="4Gi")
    other = CephOption(who="osd.0", name="osd_mclock_profile", value="custom")
    read = of_options({"options": {"osd": {"osd_memory_target": "4294967296"}}}, one)
    assert read.identity["cephOptions"] == {"osd": {"osd_memory_target": "4294967296"}}
    found = differences(of_options({}, one), of_options({}, other))
    assert [(each.key, each.baseline, each.candidate) for each in found] == [
        ("cephOptions.osd.0.osd_mclock_profile", None, "custom"),
        ("cephOptions.osd.osd_memory_target", "4Gi", None),
    ]
    assert "cephOptions" not in of_options({}).identity


def of_a_made_pool(uid: str, facts: Mapping[str, JsonValue], **pool: Any) -> Fingerprint:
    """Return the fingerprint of a run whose pool and StorageClass were created for it."""
    run = RunIdentity(name="run", namespace="default", uid=uid)
    base = base_name("run", uid)
    made = Pool(**({"replicated": Replicated(size=3)} | pool))
    target = CephTarget(pool=base, made=made, conductor_user=f"{base}-conductor", agent_user=f"{base}-agent")
    storage_class = STORAGE_CLASS | {"name": base, "parameters": {"pool": base, "clusterID": "rook-ceph"}}
    return taken({**facts, "storageClass": storage_class}, run=run, ceph=target)


def test_names_derived_from_the_run_are_not_identity() -> None:
    layout: dict[str, JsonValue] = {**ENVIRONMENT, "pool": {"type": "replicated", "size": 3}}
    one, other = of_a_made_pool("one", layout), of_a_made_pool("other", layout)
    assert one.identity_sha256 == other.identity_sha256
    assert one.identity["storageClass"] == {
        "provisioner": "rbd.csi.ceph.com",
        "parameters": {"clusterID": "rook-ceph"},
    }
    assert one.identity["pool"] == layout["pool"]


def test_an_unread_pool_is_the_requested_one() -> None:
    one, other = of_a_made_pool("u", ENVIRONMENT), of_a_made_pool("u", ENVIRONMENT, failure_domain="osd")
    assert [found.key for found in differences(one, other)] == ["pool.failureDomain"]


def test_number_and_names_of_points_do_not_matter() -> None:
    assert taken(point={"name": "w-007", "workload": "v", "label": "l"}) == BASE
    plan = make_plan(points=5)
    assert fingerprint(plan, plan.points[4], Environment.model_validate(ENVIRONMENT)) == BASE


def test_repetitions_are_context() -> None:
    plan = make_plan(repetitions=5)
    found = differences(BASE, fingerprint(plan, plan.points[0], Environment.model_validate(ENVIRONMENT)))
    assert found == [Difference(part="context", key="repetitions", baseline=2, candidate=5)]


def test_the_plans_facts_about_the_platform_are_added() -> None:
    own: dict[str, JsonValue] = {name: ENVIRONMENT[name] for name in ("nodes", "dataSetBytes", "tools")}
    known = {name: value for name, value in ENVIRONMENT.items() if name not in own}
    assert taken(own, environment=PlatformEnvironment.model_validate(known)) == BASE


def test_bare_name_of_a_storage_class_is_identity() -> None:
    assert taken(changed("storageClass", "fast")).identity["storageClass"] == "fast"


def test_unknown_values_are_absent_at_every_depth() -> None:
    plan = make_plan()
    point = plan.points[0].model_copy(update={"parameters": {"readPercent": None, "blockSize": 4096}})
    found = fingerprint(plan, point, Environment.model_validate({"kernel": None}))
    assert found.identity["parameters"] == {"blockSize": 4096}
    assert not {"toolVersions", "storageClass", "pool", "dataSetBytes"} & found.identity.keys()
    assert "kernel" not in found.context
    stored = Fingerprint.model_validate(found.model_dump(mode="json", exclude_none=True))
    assert digest(stored.identity) == found.identity_sha256


def test_digest_is_that_of_canonical_json() -> None:
    assert (
        digest({"b": 1, "a": {"d": [1, "ü"], "c": True}})
        == sha256('{"a":{"c":true,"d":[1,"ü"]},"b":1}'.encode()).hexdigest()
    )


def test_absent_values_differ_as_none() -> None:
    one = Fingerprint(identity={"a": {"b": 1}}, context={}, identity_sha256="", context_sha256="")
    other = Fingerprint(identity={"a": {}}, context={"c": "x"}, identity_sha256="", context_sha256="")
    assert differences(one, other) == [
        Difference(part="identity", key="a", baseline=None, candidate={}),
        Difference(part="identity", key="a.b", baseline=1, candidate=None),
        Difference(part="context", key="c", baseline=None, candidate="x"),
    ]


documents = st.recursive(
    st.integers(-9, 9) | st.text(max_size=2),
    lambda inner: st.dictionaries(st.sampled_from("abc"), inner, max_size=3) | st.lists(inner, max_size=2),
    max_leaves=6,
).filter(lambda value: isinstance(value, dict))


@given(documents, documents)
def test_parts_have_no_difference_exactly_if_their_digests_are_equal(
    one: dict[str, JsonValue], other: dict[str, JsonValue]
) -> None:
    prints = [
        Fingerprint(identity=part, context={}, identity_sha256=digest(part), context_sha256="") for part in (one, other)
    ]
    assert (differences(*prints) == []) == (prints[0].identity_sha256 == prints[1].identity_sha256)


def test_credentials_are_not_part_of_the_fingerprint() -> None:
    def of(user: str) -> Fingerprint:
        parameters = {"blockSize": 4096, "user": user, "keyringSecret": {"name": user, "key": "keyring"}}
        return taken(point={"tool": "osdBench", "parameters": parameters})

    assert of("admin").identity_sha256 == of("bench").identity_sha256
