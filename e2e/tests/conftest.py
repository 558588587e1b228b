"""Fixtures of the end-to-end tests: the cluster that e2e/cluster made, with the operator installed, and no other."""

import uuid
from collections.abc import Iterator

import pytest

from support import Cluster

OURS = "kind-plimsoll"


@pytest.fixture(scope="session")
def cluster() -> Cluster:
    """Return the cluster; refuses any that e2e/cluster did not make."""
    cluster = Cluster()
    context = cluster.kubectl("config", "current-context").strip()
    if context != OURS:
        pytest.exit(f"these tests delete things: they run against {OURS} only, not against {context}", returncode=2)
    cluster.kubectl("rollout", "status", "deployment/plimsoll", "-n", "plimsoll-system", "--timeout=120s")
    return cluster


@pytest.fixture
def namespace(cluster: Cluster) -> Iterator[str]:
    """Return a namespace of the test's own; afterwards it goes, with all that is in it."""
    name = f"e2e-{uuid.uuid4().hex[:8]}"
    cluster.kubectl("create", "namespace", name)
    cluster.kubectl("label", "namespace", name, "pod-security.kubernetes.io/enforce=baseline")
    yield name
    cluster.kubectl("delete", "namespace", name, "--ignore-not-found", "--wait=false")
    cluster.until(lambda: not cluster.exists("namespace", name), seconds=120, what=f"namespace {name} goes")
    cluster.recycle()
