"""Fixtures of the end-to-end tests: the cluster that e2e/cluster made, with the operator installed, and no other."""

import signal
import uuid
from collections.abc import Generator, Iterator
from types import FrameType

import pytest

from ceph import Ceph
from support import WORKER, Cluster

OURS = "kind-plimsoll"

FAILED = pytest.StashKey[bool]()


def pytest_configure() -> None:
    """Clean up when terminated too: a test may have cordoned nodes, or changed the release."""
    signal.signal(signal.SIGTERM, _interrupt)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    # make forwards the signal that the whole group already received; a second one would interrupt the cleanup.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise KeyboardInterrupt


LONGEST = ("test_trust", "test_faults", "test_measuring")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run first what takes longest, so that no process waits for it in the end, and last what delays others."""

    def place(item: pytest.Item) -> tuple[bool, int]:
        kills = item.get_closest_marker("kills") is not None
        return kills, LONGEST.index(item.path.stem) if item.path.stem in LONGEST else len(LONGEST)

    items.sort(key=place)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Note which tests failed, so that their runs are shown before they are deleted."""
    report = yield
    item.stash[FAILED] = item.stash.get(FAILED, False) or report.failed
    return report


@pytest.fixture(scope="session")
def cluster() -> Cluster:
    """Return the cluster; refuses any that e2e/cluster did not make."""
    cluster = Cluster()
    context = cluster.kubectl("config", "current-context").strip()
    if context != OURS:
        pytest.exit(f"these tests delete things: they run against {OURS} only, not against {context}", returncode=2)
    cluster.kubectl("rollout", "status", "deployment/plimsoll", "-n", "plimsoll-system", "--timeout=120s")
    if WORKER:
        cluster.make_storage_class()
    return cluster


@pytest.fixture(scope="session")
def left(cluster: Cluster) -> Iterator[list[str]]:
    """Return the namespaces that tests have left and that are going; in the end all are gone."""
    names: list[str] = []
    yield names
    for name in names:
        until_gone(cluster, name)


@pytest.fixture
def namespace(cluster: Cluster, left: list[str], request: pytest.FixtureRequest) -> Iterator[str]:
    """Return a namespace of the test's own; afterwards it goes, with all that is in it.

    The next test does not wait for that, unless what is left in Ceph is looked at.
    """
    name = f"e2e-{uuid.uuid4().hex[:8]}"
    labels = {"pod-security.kubernetes.io/enforce": "baseline"}
    cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})
    cluster.namespaces.append(name)
    yield name
    if request.node.stash.get(FAILED, False):
        for found in cluster.api.objects("benchmarkruns", name):
            state = cluster.tell(found["metadata"]["name"], name)
            request.node.add_report_section("teardown", found["metadata"]["name"], state)
    cluster.kubectl("delete", "namespace", name, "--ignore-not-found", "--wait=false")
    if "clean" in request.fixturenames:
        until_gone(cluster, name)
    else:
        left.append(name)


def until_gone(cluster: Cluster, namespace: str) -> None:
    """Return when a namespace is gone; fails if that takes too long."""
    cluster.until(lambda: not cluster.exists("namespaces", namespace), seconds=180, what=f"namespace {namespace} goes")


@pytest.fixture(scope="session")
def ceph(cluster: Cluster) -> Iterator[Ceph]:
    """Return a Ceph without anything of a run, with the stand-in for Rook; both stay, as the cluster does."""
    ceph = Ceph(cluster)
    ceph.up()
    assert ceph.leftovers() == []
    yield ceph
    ceph.forget_profiles()


@pytest.fixture
def clean(ceph: Ceph) -> Iterator[Ceph]:
    """Return that Ceph, healthy; and see that nothing of a run is left afterwards."""
    ceph.until_healthy()
    yield ceph
    assert ceph.leftovers() == []


@pytest.fixture(scope="session")
def foreign_pool(ceph: Ceph) -> Iterator[list[str]]:
    """Make a pool that is not a run's; return what others keep in it."""
    ceph.make_pool()
    yield ceph.contents()
    ceph.remove_pool()


@pytest.fixture
def existing(foreign_pool: list[str], clean: Ceph) -> Iterator[Ceph]:
    """Return that Ceph with a pool that is not a run's, and see that it stays as it was."""
    yield clean
    assert [each for each in clean.contents() if each not in foreign_pool] == []
    assert clean.flags() == {"noscrub"}
