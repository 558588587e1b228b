"""What an administrator allows."""

from plimsoll.api.storage import NamespacedName
from plimsoll.lifecycle.run import Settings

CLUSTER = NamespacedName(namespace="rook-ceph", name="one")


def test_nobody_may_use_a_rook_cluster_that_no_administrator_has_given() -> None:
    assert not Settings(runner_image="r").allows(CLUSTER, "bench")
    others = {"rook-ceph/other": ("*",), "other/one": ("*",)}
    assert not Settings(runner_image="r", rook_clusters=others).allows(CLUSTER, "bench")


def test_a_cluster_is_given_to_namespaces_or_to_all() -> None:
    some = Settings(runner_image="r", rook_clusters={"rook-ceph/one": ("bench", "team")})
    assert some.allows(CLUSTER, "bench")
    assert not some.allows(CLUSTER, "benc")
    assert Settings(runner_image="r", rook_clusters={"rook-ceph/one": ("*",)}).allows(CLUSTER, "anything")
