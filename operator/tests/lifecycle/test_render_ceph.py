"""The objects of a run on Ceph as they are sent to the API: golden files, and what must hold for its pods.

`PLIMSOLL_WRITE_GOLDEN=1 pytest tests/lifecycle/test_render_ceph.py` writes the files anew; read the difference.
"""

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from plimsoll.lifecycle import naming
from plimsoll.lifecycle.ceph.common import CephProvider
from plimsoll.lifecycle.ceph.rook_render import storage_class
from plimsoll.lifecycle.render import ceph, client, network, teardown
from plimsoll.lifecycle.run import NetworkPolicies
from plimsoll.protocol.assignment import Assignment, RbdImage
from plimsoll.tools.cast import ACTOR_CLIENT
from support.apiserver import read_yamls
from support.specs import MONITORS, SETTINGS, STORAGE, UID, CephRun, ceph_run, made_for_ceph
from support.tooling import baseline, restricted, unsaid

GOLDEN = Path(__file__).parents[1] / "golden" / "render"
RADOS = {"name": "r", "radosBench": {}, "runtimeSeconds": 4, "rampSeconds": 1}
OWN_PORT = {"to": [{"ipBlock": {"cidr": "192.0.2.1/32"}}], "ports": [{"port": 16789, "protocol": "TCP"}]}
OSDS = {"name": "o", "osdBench": {"keyringSecret": {"name": "administrators", "key": "admin.keyring"}}}


@pytest.mark.parametrize("name", STORAGE)
def test_objects_are_what_the_golden_file_says(name: str) -> None:
    objects = made_for_ceph(ceph_run(name))
    path = GOLDEN / f"{name}.yaml"
    if os.environ.get("PLIMSOLL_WRITE_GOLDEN"):
        path.write_text(yaml.safe_dump_all(objects, sort_keys=False, width=120))
    assert read_yamls(path.read_text()) == objects


def pods(made: CephRun) -> dict[str, Mapping[str, Any]]:
    jobs = [obj for obj in made_for_ceph(made) if obj["kind"] == "Job"]
    return {job["metadata"]["labels"][naming.LABEL_COMPONENT]: job["spec"]["template"]["spec"] for job in jobs}


def pods_labels(made: CephRun) -> dict[str, Mapping[str, str]]:
    jobs = [obj for obj in made_for_ceph(made) if obj["kind"] == "Job"]
    templates = [job["spec"]["template"]["metadata"]["labels"] for job in jobs]
    return {labels[naming.LABEL_COMPONENT]: labels for labels in templates}


def arguments(made: CephRun, component: str) -> list[str]:
    (container,) = pods(made)[component]["containers"]
    return list(container["args"])


def assignment(made: CephRun) -> Assignment:
    """What the first client's agent reads."""
    jobs = [obj for obj in made_for_ceph(made) if obj["kind"] == "Job"]
    (job,) = [job for job in jobs if job["metadata"]["labels"][naming.LABEL_COMPONENT] == naming.CLIENT]
    annotations = job["spec"]["template"]["metadata"]["annotations"]
    return Assignment.model_validate_json(annotations[naming.ANNOTATION_ASSIGNMENT])


@pytest.mark.parametrize("name", STORAGE)
def test_only_a_raw_device_takes_more_than_the_restricted_profile(name: str) -> None:
    for component, spec in pods(ceph_run(name)).items():
        assert list(baseline(spec)) == []
        raw_device = name == "rook-existing" and component == naming.CLIENT
        assert bool(list(restricted(spec))) == raw_device


@pytest.mark.parametrize("name", STORAGE)
def test_only_the_conductor_has_a_token(name: str) -> None:
    found = {component: spec["automountServiceAccountToken"] for component, spec in pods(ceph_run(name)).items()}
    assert found == {"conductor": True, "client": False, "teardown": False}
    assert [problem for spec in pods(ceph_run(name)).values() for problem in unsaid(spec)] == []


@pytest.mark.parametrize("name", STORAGE)
def test_what_is_outside_the_runs_namespace_has_its_labels_and_no_owner(name: str) -> None:
    for obj in made_for_ceph(ceph_run(name)):
        labels = obj["metadata"]["labels"]
        assert labels[naming.LABEL_RUN_UID] == UID
        elsewhere = obj["metadata"].get("namespace") != "bench"
        assert ("ownerReferences" not in obj["metadata"]) == elsewhere
        assert (labels.get(naming.LABEL_RUN_NAMESPACE) == "bench") == elsewhere


@pytest.mark.parametrize("name", STORAGE)
def test_no_object_has_a_key_in_it(name: str) -> None:
    for obj in made_for_ceph(ceph_run(name)):
        assert obj["kind"] != "Secret" or not obj.keys() & {"data", "stringData"}


@pytest.mark.parametrize(("name", "gets_key"), [("rook-claims", False), ("rook-images", True), ("ceph", True)])
def test_clients_get_a_key_and_a_way_to_ceph_only_if_they_talk_to_it(name: str, gets_key: bool) -> None:  # noqa: FBT001
    made = ceph_run(name)
    spec = pods(made)[naming.CLIENT]
    assert ceph.clients_use_ceph(made.plan) == gets_key
    assert any("projected" in volume for volume in spec["volumes"]) == gets_key
    assert {"name": "CEPH_CONF", "value": "/etc/plimsoll/ceph/ceph.conf"} in spec["containers"][0][
        "env"
    ] or not gets_key
    client_policy, _ = network.policies(made.run, made.plan, SETTINGS)
    ports = [port["port"] for rule in client_policy["spec"]["egress"] for port in rule["ports"]]
    assert (6789 in ports) == gets_key


def test_ports_of_monitors_that_are_not_cephs_own_are_open_to_these_monitors_only() -> None:
    made = ceph_run("ceph")
    client_policy, _ = network.policies(made.run, made.plan, SETTINGS)
    daemons, monitor = client_policy["spec"]["egress"][-2:]
    ports = [(port["port"], port.get("endPort")) for port in daemons["ports"]]
    assert ports == [(3300, None), (6789, None), (6800, 7568)]
    assert monitor == OWN_PORT


def test_networks_of_ceph_are_open_on_all_ports_instead_of_a_range() -> None:
    """For network plugins that ignore the end of a range; the other ports remain open."""
    made = ceph_run("ceph")
    allowed = NetworkPolicies(ceph_networks=("192.0.2.0/24", "2001:db8::/64"))
    settings, record = replace(SETTINGS, network_policies=allowed), teardown.record_of(made.plan)
    assert record is not None
    client_policy, _ = network.policies(made.run, made.plan, settings)
    for policy in (client_policy, teardown.network_policy(made.run, record, settings)):
        monitors, daemons, monitor = policy["spec"]["egress"][-3:]
        assert [port["port"] for port in monitors["ports"]] == [3300, 6789]
        networks = [{"ipBlock": {"cidr": cidr}} for cidr in ("192.0.2.0/24", "2001:db8::/64")]
        assert daemons == {"to": networks, "ports": [{"protocol": "TCP"}]}
        assert monitor == OWN_PORT
        assert "endPort" not in str(policy)


def test_a_client_has_an_image_of_its_own() -> None:
    found = assignment(ceph_run("rook-images"))
    pool = "plimsoll-rook-images-f94acc63"
    assert found.volume == RbdImage(
        pool=pool, image=f"plimsoll-{UID}-0", user=f"{pool}-agent", size=1073741824, cache=True
    )
    assert found.tools == ("fio",)
    assert found.rados is None


def test_objects_go_to_the_pool_that_has_the_data_and_into_a_namespace_of_the_clients_own() -> None:
    made = ceph_run("rook-images", RADOS)
    found = assignment(made)
    assert found.rados is not None
    assert (found.rados.pool, found.rados.namespace) == (made.target.data_pool, f"plimsoll-{UID}-0")
    assert "radosBench" in found.tools


def test_the_administrators_key_is_there_only_for_who_loads_the_osds() -> None:
    without, with_osds = ceph_run("ceph", RADOS), ceph_run("ceph", RADOS, OSDS)
    assert assignment(without).osd_keyring is None
    assert assignment(with_osds).osd_keyring == "/etc/plimsoll/osd-bench/keyring"
    (secret,) = [volume["secret"] for volume in pods(with_osds)["client"]["volumes"] if volume["name"] == "osd-bench"]
    assert secret["secretName"] == "administrators"
    assert secret["items"] == [{"key": "admin.keyring", "path": "keyring"}]
    assert "administrators" not in str(pods(without))
    assert "administrators" not in str(pods(with_osds)["conductor"]["volumes"])


def test_of_several_clients_only_the_one_that_loads_the_osds_has_the_administrators_key() -> None:
    made = ceph_run("ceph", RADOS, OSDS)
    for number in range(3):
        job = client.job(made.run, made.plan, SETTINGS, client=number, attempt=2)
        assert ("administrators" in str(job)) == (number == ACTOR_CLIENT)
        assert ("osd-bench" in str(job)) == (number == ACTOR_CLIENT)


def test_the_teardown_reaches_dns_and_ceph_and_nobody_reaches_it() -> None:
    made = ceph_run("ceph")
    record = teardown.record_of(made.plan)
    assert record is not None
    policy = teardown.network_policy(made.run, record, SETTINGS)
    labels = pods_labels(made)[naming.TEARDOWN]
    assert policy["spec"]["podSelector"]["matchLabels"].items() <= labels.items()
    assert policy["metadata"]["namespace"] == SETTINGS.teardown_namespace
    assert policy["spec"]["ingress"] == []
    *open_to_all, monitor = policy["spec"]["egress"]
    assert [port["port"] for rule in open_to_all for port in rule["ports"]] == [53, 53, 3300, 6789, 6800]
    assert not any("to" in rule for rule in open_to_all)
    assert monitor == OWN_PORT


@pytest.mark.parametrize(
    ("monitor", "block"),
    [
        ("192.0.2.1:16789", "192.0.2.1/32"),
        ("[v2:192.0.2.1:16789/0]", "192.0.2.1/32"),
        ("[2001:db8::1]:16789", "2001:db8::1/128"),
    ],
)
def test_the_port_of_a_monitor_is_found_in_every_form_of_its_address(monitor: str, block: str) -> None:
    _, rule = network.to_ceph([monitor], SETTINGS.network_policies)
    assert rule == {"to": [{"ipBlock": {"cidr": block}}], "ports": [{"port": 16789, "protocol": "TCP"}]}
    assert network.unreachable_monitor([monitor]) == ""
    assert (
        len(
            network.to_ceph(
                ["192.0.2.1", "2001:db8::6790", "host", "host:3300", "host:99999"], SETTINGS.network_policies
            )
        )
        == 1
    )


def test_a_monitor_with_a_name_and_a_port_of_its_own_is_refused_and_others_with_names_are_not() -> None:
    assert network.unreachable_monitor(["a.example.com", "b.example.com:3300", "192.0.2.1:16789"]) == ""
    run = ceph_run("ceph").run
    assert CephProvider().rejection(run, SETTINGS) is None
    monitors = {"ceph": {**STORAGE["ceph"]["ceph"], "monitors": ["192.0.2.1", "v1:mon.example.com:443"]}}
    ending = CephProvider().rejection(ceph_run("ceph", storage={**STORAGE["ceph"], **monitors}).run, SETTINGS)
    assert ending is not None
    assert ending.message == (
        "spec.storage.ceph.monitors: v1:mon.example.com:443 has a name, and another port than 3300 and 6789, and a "
        "NetworkPolicy cannot name hosts; write its IP address"
    )
    without = replace(SETTINGS, network_policies=NetworkPolicies(enabled=False))
    assert CephProvider().rejection(ceph_run("ceph", storage={**STORAGE["ceph"], **monitors}).run, without) is None


def test_a_record_says_all_that_the_teardown_needs() -> None:
    made = ceph_run("rook-images")
    record = teardown.record_of(made.plan)
    assert record is not None
    config_map = teardown.record_config_map(made.run, record, MONITORS, SETTINGS)
    assert teardown.read_record(config_map) == record
    pool = "plimsoll-rook-images-f94acc63"
    assert arguments(made, naming.TEARDOWN) == [
        "teardown",
        f"--uid={UID}",
        "--clients=1",
        f"--pool={pool}",
        f"--other-pool={pool}-data",
        f"--user={pool}-conductor",
        "--termination-log=/dev/termination-log",
    ]


@pytest.mark.parametrize("text", ["", "{}", '{"schemaVersion": 2}'])
def test_a_damaged_record_is_not_read(text: str) -> None:
    assert teardown.read_record({"data": {teardown.RECORD_FILE: text}}) is None


def test_a_run_without_ceph_leaves_nothing_to_undo() -> None:
    plan = ceph_run("ceph").plan.model_copy(update={"ceph": None})
    assert teardown.record_of(plan) is None


def test_a_run_without_claims_has_no_storage_class() -> None:
    made = ceph_run("rook-images")
    with pytest.raises(ValueError, match="needs no StorageClass"):
        storage_class(made.run, made.plan, "our.rbd.csi.ceph.com")
