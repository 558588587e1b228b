"""What a plan keeps of the cluster, and what a status shows of it."""

from plimsoll.lifecycle.naming import LABEL_RUN_UID
from plimsoll.lifecycle.run import environment_of, platform_of, run_of
from plimsoll.lifecycle.storage.registry import StorageClassProvider
from support.pretend_cluster import STORAGE_CLASS
from support.pretend_world import PretendWorld, make_run
from support.specs import SETTINGS

NOON = "2026-01-31T12:00:00Z"
PLATFORM = platform_of("v1.34.0", [STORAGE_CLASS])


def test_of_a_storage_class_what_may_explain_a_number_is_kept() -> None:
    assert environment_of(PLATFORM, "fast").document() == {
        "kubernetes": "v1.34.0",
        "storageClass": {
            "name": "fast",
            "provisioner": "csi.example.com",
            "reclaimPolicy": "Delete",
            "volumeBindingMode": "WaitForFirstConsumer",
            "allowVolumeExpansion": True,
            "parameters": {"tier": "ssd"},
        },
    }


def test_without_a_volume_no_storage_class_is_looked_for() -> None:
    assert environment_of(PLATFORM, None).document() == {"kubernetes": "v1.34.0"}


def test_a_storage_class_cannot_fill_a_plan() -> None:
    large = STORAGE_CLASS | {"parameters": {f"p{number:03}": "x" * 10_000 for number in range(300)}}
    assert len(environment_of(platform_of("v1", [large]), "fast").model_dump_json()) < 16 * 1024


def test_names_are_listed_as_far_as_a_message_bears_them() -> None:
    body = make_run("a")
    document = run_of(
        {**body, "metadata": {**body["metadata"], "uid": "u", "creationTimestamp": NOON}}, SETTINGS
    ).document
    assert document is not None
    many = [{"metadata": {"name": f"c{number:02}"}} for number in range(12)]
    for classes, names in ((many, "c00, c01, c02, c03, c04, c05, c06, c07, c08, c09 and 2 more"), ([], "none")):
        ending = StorageClassProvider().blocker(document, platform_of("v1", classes))
        assert ending is not None
        assert ending.message.endswith(f"name an existing one: {names}")


def test_the_storage_class_of_another_run_is_refused_and_named_nowhere(world: PretendWorld) -> None:
    """Its volumes would avoid that run's queue and allow-list, and keep it from being cleaned up."""
    labels = {LABEL_RUN_UID: "another"}
    for name in ("plimsoll-victim-01234567", "plimsoll-other-89abcdef"):
        world.cluster.kube.put({**STORAGE_CLASS, "metadata": {"name": name, "labels": labels}})
    for name in ("plimsoll-victim-01234567", "plimsoll-guessed-01234567"):
        ending = world.until_ended(
            world.create(name[:12], storage={"storageClass": {"name": name}, "volume": {"size": "1Gi"}})
        )
        assert (ending["reason"], ending["status"]) == ("StorageClassNotFound", "False")
        assert ending["message"] == (
            f"spec.storage.storageClass.name: StorageClass {name} does not exist, or belongs to another run; create "
            "it, or name an existing one: fast"
        )
    assert not world.cluster.kube.objects("PersistentVolumeClaim")


def test_where_a_run_is_measured_stands_in_its_plan_and_its_status(world: PretendWorld) -> None:
    uid = world.create("a")
    world.until_ended(uid)
    run = world.run(uid)
    assert run is not None
    environment = run["status"]["environment"]
    assert environment["kubernetes"] == "v1.34.0"
    assert (environment["storageClass"], environment["provisioner"]) == ("fast", STORAGE_CLASS["provisioner"])
    assert environment["storageClassParameters"] == "tier ssd"
    assert environment["fio"] == "3.39"
    assert environment["nodes"] == "node-0, node-1"
    asked = [request for request in world.cluster.kube.requests if request in {"get /version", "list StorageClass"}]
    assert sorted(asked) == ["get /version", "list StorageClass"], "asked once, before the plan"


def test_what_is_known_of_a_ceph_cluster_is_shown_as_text_that_cannot_fill_a_status(world: PretendWorld) -> None:
    uid = world.create("a")
    world.until_settled(uid)
    osds = [{"class": "ssd", "count": number} for number in range(1000)]
    facts = {"ceph": {"fsid": "f", "versions": ["18.2.7"], "osds": osds}, "pool": {"layout": {"size": 3}}}
    result = world.cluster.of_run("BenchmarkResult", uid)[0]
    world.cluster.set_status(result, environment=facts)
    run = world.run(uid)
    assert run is not None
    # A change of `cleanup` has a settled run looked at again.
    world.change(uid, ttlSecondsAfterFinished=3600)
    world.round()
    world.round()
    run = world.run(uid)
    assert run is not None
    shown = run["status"]["environment"]
    assert shown["cephFsid"] == "f"
    assert shown["cephVersions"] == "18.2.7"
    assert shown["cephOsds"].startswith("class ssd, count 0, class ssd, count 1, ")
    assert shown["cephOsds"].endswith(", …")
    assert len(shown["cephOsds"]) <= 1024
    assert shown["pool"] == "layout size 3"
