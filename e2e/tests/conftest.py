"""Fixtures of the end-to-end tests, which run only on the cluster of e2e/cluster with the operator installed."""

import signal
import uuid
from collections.abc import Generator, Iterator
from types import FrameType

import pytest

from ceph import Ceph
from runs import STANDARD, STORAGE_CLASS
from support import Cluster

OURS = "kind-plimsoll"

FAILED = pytest.StashKey[bool]()


def pytest_configure() -> None:
    """Clean up also after SIGTERM: a test may have cordoned nodes, or changed the release."""
    signal.signal(signal.SIGTERM, _interrupt)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    # make forwards the signal that the whole group already received; a second one would interrupt the cleanup.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise KeyboardInterrupt


LONGEST = ("test_trust", "test_faults", "test_measuring")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the longest tests first, so that no process waits for them at the end, and last those that delay others."""

    def place(item: pytest.Item) -> tuple[bool, int]:
        kills = item.get_closest_marker("kills") is not None
        return kills, LONGEST.index(item.path.stem) if item.path.stem in LONGEST else len(LONGEST)

    items.sort(key=place)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Record which tests failed, so that their runs are shown before they are deleted."""
    report = yield
    item.stash[FAILED] = item.stash.get(FAILED, False) or report.failed
    return report


@pytest.fixture(scope="session")
def cluster() -> Cluster:
    """Return the cluster of e2e/cluster; refuse any other."""
    cluster = Cluster()
    context = cluster.kubectl("config", "current-context").strip()
    if context != OURS:
        pytest.exit(f"these tests delete objects: they run only on {OURS}, not on {context}", returncode=2)
    cluster.kubectl("rollout", "status", "deployment/plimsoll", "-n", "plimsoll-system", "--timeout=240s")
    if STORAGE_CLASS != STANDARD:
        cluster.make_storage_class()
    return cluster


@pytest.fixture(scope="session")
def left(cluster: Cluster) -> Iterator[list[str]]:
    """Return the namespaces of finished tests, which are being deleted; wait for their end."""
    names: list[str] = []
    yield names
    for name in names:
        cluster.until_gone(name)


@pytest.fixture
def namespace(cluster: Cluster, left: list[str], request: pytest.FixtureRequest) -> Iterator[str]:
    """Return a new namespace, which enforces the restricted profile and is deleted after the test.

    The next test does not wait for the deletion, unless this test checks for leaks in Ceph.
    """
    name = f"e2e-{uuid.uuid4().hex[:8]}"
    cluster.make_namespace(name)
    yield name
    if request.node.stash.get(FAILED, False):
        for found in cluster.api.objects("benchmarkruns", name):
            state = cluster.diagnosis(found["metadata"]["name"], name)
            request.node.add_report_section("teardown", found["metadata"]["name"], state)
    cluster.kubectl("delete", "namespace", name, "--ignore-not-found", "--wait=false")
    if "clean" in request.fixturenames:
        cluster.until_gone(name)
    else:
        left.append(name)


@pytest.fixture(scope="session")
def ceph(cluster: Cluster) -> Iterator[Ceph]:
    """Return a Ceph without objects of runs, with the stand-in for Rook; like the cluster, both keep running."""
    ceph = Ceph(cluster)
    ceph.up()
    assert ceph.leftovers() == []
    yield ceph
    ceph.forget_runs()


@pytest.fixture
def clean(ceph: Ceph) -> Iterator[Ceph]:
    """Return that Ceph, healthy, and check that runs leave nothing behind."""
    ceph.until_healthy()
    yield ceph
    assert ceph.leftovers() == []


@pytest.fixture(scope="session")
def foreign_pool(ceph: Ceph) -> Iterator[list[str]]:
    """Create a pool that does not belong to a run; return its foreign content."""
    ceph.make_pool()
    yield ceph.contents()
    ceph.remove_pool()


@pytest.fixture
def existing(foreign_pool: list[str], clean: Ceph) -> Iterator[Ceph]:
    """Return that Ceph with a pool that does not belong to a run, and check that it is unchanged afterwards."""
    yield clean
    assert [each for each in clean.contents() if each not in foreign_pool] == []
    assert clean.flags() == {"noscrub"}
