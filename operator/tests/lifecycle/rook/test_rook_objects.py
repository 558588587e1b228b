"""What is made in Rook's namespace."""

from collections import Counter
from typing import Any

import pytest

from plimsoll.ceph.rights import Rights
from plimsoll.lifecycle.ceph.rook_render import (
    KEY_SECRETS,
    has_stripe_unit,
    key_secrets,
    metadata_size,
    needs_storage_class,
    pools,
    storage_class,
    users,
)
from plimsoll.lifecycle.naming import LABEL_RUN_NAMESPACE
from plimsoll.lifecycle.render import teardown
from plimsoll.plan.document import CephTarget
from support.specs import SETTINGS, STORAGE, UID, ceph_run, with_fast_coding

BASE = "plimsoll-rook-images-f94acc63"


CEPH = "20.2.4-0"


def client(name: str, secret: str | None) -> dict[str, Any]:
    return {
        "kind": "CephClient",
        "metadata": {"name": name},
        "spec": {"caps": {}, "secretName": secret} if secret else {},
    }


def test_the_pool_with_the_headers_comes_before_the_one_with_the_data() -> None:
    made = ceph_run("rook-images")
    headers, data = pools(made.run, made.target)
    assert (headers["metadata"]["name"], data["metadata"]["name"]) == (BASE, f"{BASE}-data")
    assert headers["spec"] == {
        "failureDomain": "host",
        "replicated": {"size": 2},
        "deviceClass": "ssd",
        "crushRoot": "fast",
        "parameters": {"pg_num": "16", "pgp_num": "16", "pg_autoscale_mode": "off"},
    }
    assert data["spec"]["erasureCoded"] == {"dataChunks": 2, "codingChunks": 1}
    assert data["spec"]["crushRoot"] == "fast"
    assert data["spec"]["parameters"]["compression_mode"] == "aggressive"


def test_a_stripe_unit_and_optimizations_are_those_of_the_pool_with_the_data() -> None:
    plain, fast = (
        [pool["spec"] for pool in pools(made.run, made.target)]
        for made in (
            ceph_run("rook-images"),
            ceph_run("rook-images", storage=with_fast_coding(STORAGE["rook-images"])),
        )
    )
    assert fast[0] == plain[0]
    assert fast[1]["erasureCoded"] == {"dataChunks": 2, "codingChunks": 1, "stripeUnit": "16Ki"}
    assert fast[1]["parameters"] == plain[1]["parameters"] | {"allow_ec_optimizations": "true"}


def test_a_file_systems_pools_have_them_too() -> None:
    made = ceph_run("rook-files", storage=with_fast_coding(STORAGE["rook-files"]))
    (file_system,) = pools(made.run, made.target)
    first, last = file_system["spec"]["dataPools"]
    assert "allow_ec_optimizations" not in first["parameters"]
    assert last["parameters"]["allow_ec_optimizations"] == "true"
    assert last["erasureCoded"]["stripeUnit"] == "16Ki"
    assert has_stripe_unit(file_system)
    assert not any(map(has_stripe_unit, pools(ceph_run("rook-files").run, ceph_run("rook-files").target)))


def test_optimizations_that_are_not_wanted_are_left_out_because_nothing_turns_them_off() -> None:
    rook = STORAGE["rook-images"]["rook"]
    coded = {"dataChunks": 2, "codingChunks": 1, "optimizations": False}
    storage = {**STORAGE["rook-images"], "rook": {**rook, "pool": {"erasureCoded": coded}}}
    made = ceph_run("rook-images", storage=storage)
    assert "parameters" not in [*pools(made.run, made.target)][1]["spec"]


def test_copies_within_a_failure_domain_are_passed_on() -> None:
    layout = {"size": 4, "replicasPerFailureDomain": 2, "subFailureDomain": "rack"}
    rook = STORAGE["rook-claims"]["rook"] | {"pool": {"replicated": layout, "failureDomain": "zone"}}
    made = ceph_run("rook-claims", storage={**STORAGE["rook-claims"], "rook": rook})
    (found,) = pools(made.run, made.target)
    assert (found["spec"]["replicated"], found["spec"]["failureDomain"]) == (layout, "zone")


def test_a_single_copy_is_said_to_be_meant() -> None:
    made = ceph_run("rook-claims")
    (pool,) = pools(made.run, made.target)
    assert pool["spec"]["replicated"] == {"size": 1, "requireSafeReplicaSize": False}


def test_neither_a_pool_is_made_where_one_is_nor_anything_without_rook() -> None:
    existing, without = ceph_run("rook-existing"), ceph_run("ceph")
    assert list(pools(existing.run, existing.target)) == []
    assert len(list(users(existing.run, existing.target, ("plimsoll-0", "plimsoll-1"), version=CEPH))) == 2
    assert list(users(without.run, without.target, ("plimsoll-0", "plimsoll-1"), version=CEPH)) == []


@pytest.mark.parametrize(("coding_chunks", "size"), [(1, 2), (2, 3), (3, 3), (8, 3)])
def test_metadata_survives_what_the_data_survives_up_to_three_copies(coding_chunks: int, size: int) -> None:
    assert metadata_size(coding_chunks) == size


def test_users_may_do_what_they_have_to_and_no_more() -> None:
    """See operator/tests/ceph/test_rights.py."""
    made = ceph_run("rook-images")
    conductor, agent = users(made.run, made.target, ("plimsoll-3", "plimsoll-5"), version=CEPH)
    data = f"{BASE}-data"
    rights = Rights(pools=(BASE, data), quota_pool=data, record=f"plimsoll/{UID}/options", version=CEPH)
    assert agent["spec"] == {"caps": rights.agent(), "secretName": "plimsoll-5"}
    assert conductor["spec"] == {"caps": rights.conductor(), "secretName": "plimsoll-3"}
    assert "config-key get" not in conductor["spec"]["caps"]["mon"]


def test_a_conductor_may_set_exactly_the_options_of_its_run_and_record_what_they_were() -> None:
    made = ceph_run("rook-files")
    secrets = ("plimsoll-0", "plimsoll-1")
    conductor, agent = (user["spec"]["caps"] for user in users(made.run, made.target, secrets, version=CEPH))
    grants = [grant for grant in conductor["mon"].split(", ") if "config" in grant and "config show" not in grant]
    assert grants == [
        'allow command "config help" with key="osd_mclock_profile"',
        'allow command "config help" with key="osd_memory_target"',
        'allow command "config set" with who="osd" name="osd_mclock_profile"',
        'allow command "config set" with who="osd/class:ssd" name="osd_memory_target"',
        'allow command "config rm" with who="osd" name="osd_mclock_profile"',
        'allow command "config rm" with who="osd/class:ssd" name="osd_memory_target"',
        'allow command "config-key ls"',
        f'allow command "config-key get" with key="plimsoll/{UID}/options"',
        'allow command "config-key get" with key="config/osd/osd_mclock_profile"',
        'allow command "config-key get" with key="config/osd/class:ssd/osd_memory_target"',
        f'allow command "config-key set" with key="plimsoll/{UID}/options"',
        f'allow command "config-key rm" with key="plimsoll/{UID}/options"',
    ]
    assert "config" not in str(agent)


def test_only_the_teardown_of_a_run_with_options_restores_some() -> None:
    def arguments(name: str) -> list[str]:
        made = ceph_run(name)
        record = teardown.record_of(made.plan)
        assert record is not None
        (container,) = teardown.job(made.run, record, SETTINGS)["spec"]["template"]["spec"]["containers"]
        found: list[str] = container["args"]
        return found

    assert "--options" in arguments("rook-files")
    assert "--options" not in arguments("rook-images")


def secrets_of(target: CephTarget, *clients: dict[str, Any], namespace: str = "bench") -> tuple[str, str] | None:
    return key_secrets(namespace, clients).of_run(target)


def test_the_first_free_secrets_are_taken() -> None:
    target = ceph_run("rook-images").target
    assert secrets_of(target) == ("plimsoll-0", "plimsoll-1")
    others = [client("a", "plimsoll-0"), client("b", "plimsoll-2"), client("c", None), client("d", "theirs")]
    assert secrets_of(target, *others) == ("plimsoll-1", "plimsoll-3")


def test_a_run_keeps_the_secrets_that_it_has() -> None:
    target = ceph_run("rook-images").target
    found = [client(target.agent_user, "plimsoll-0"), client("other", "plimsoll-1")]
    assert secrets_of(target, *found) == ("plimsoll-2", "plimsoll-0")
    assert secrets_of(target, *found, client(target.conductor_user, None)) == ("plimsoll-2", "plimsoll-0")
    full = [client(name, name) for name in KEY_SECRETS[2:]]
    assert secrets_of(target, *found, *full) is None
    found.append(client(target.conductor_user, "plimsoll-9"))
    assert secrets_of(target, *found) == ("plimsoll-9", "plimsoll-0")


def test_there_may_be_no_secret_left() -> None:
    target = ceph_run("rook-images").target
    assert secrets_of(target, *(client(name, name) for name in KEY_SECRETS[1:])) is None


def test_namespaces_that_keep_all_that_they_can_leave_secrets_to_others() -> None:
    target, taken, runs = ceph_run("rook-images").target, list[dict[str, Any]](), Counter[str]()
    for namespace in "abcde":
        while secrets := secrets_of(target, *taken, namespace=namespace):
            runs[namespace] += 1
            labels = {LABEL_RUN_NAMESPACE: namespace}
            for secret in secrets:
                metadata = {"name": f"{namespace}-{secret}", "labels": labels}
                taken.append({"metadata": metadata, "spec": {"secretName": secret}})
    assert runs == {"a": 8, "b": 4, "c": 2, "d": 1, "e": 1}


def test_a_new_file_system_does_not_initialise_itself_while_a_run_measures() -> None:
    made = ceph_run("rook-claims")
    found = storage_class(made.run, made.plan, "our.rbd.csi.ceph.com")
    assert found["parameters"]["csi.storage.k8s.io/fstype"] == "ext4"
    assert found["mountOptions"] == ["noinit_itable"]
    files = ceph_run("rook-files")
    assert "mountOptions" not in storage_class(files.run, files.plan, "our.cephfs.csi.ceph.com")


def test_volumes_come_from_the_runs_pool_through_the_driver_that_serves_the_cluster() -> None:
    made = ceph_run("rook-existing")
    found = storage_class(made.run, made.plan, "our.rbd.csi.ceph.com")
    assert found["provisioner"] == "our.rbd.csi.ceph.com"
    assert found["parameters"] == {
        "clusterID": "rook-ceph",
        "pool": "shared",
        "dataPool": "shared-data",
        "imageFormat": "2",
        "imageFeatures": "layering",
        "csi.storage.k8s.io/provisioner-secret-name": "rook-csi-rbd-provisioner",
        "csi.storage.k8s.io/provisioner-secret-namespace": "rook-ceph",
        "csi.storage.k8s.io/node-stage-secret-name": "rook-csi-rbd-node",
        "csi.storage.k8s.io/node-stage-secret-namespace": "rook-ceph",
    }
    assert "mountOptions" not in found
    assert [needs_storage_class(ceph_run(name).plan) for name in ("rook-existing", "rook-images", "ceph")] == [
        True, False, False
    ]  # fmt: skip
