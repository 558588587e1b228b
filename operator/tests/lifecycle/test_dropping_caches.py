"""Which runs may drop caches, and what is frozen into their plans."""

from dataclasses import replace

import pytest

from plimsoll.api.reasons.reason import Reason
from plimsoll.api.storage import NamespacedName
from plimsoll.lifecycle.provisioning import freeze, rejection
from plimsoll.lifecycle.run import Helper, Run, Settings, platform_of, run_of
from plimsoll.plan.document import Plan

HELPER = NamespacedName(namespace="plimsoll-caches", name="plimsoll-caches")
NO_HELPER = Settings(runner_image="runner:1")
BENCH = replace(NO_HELPER, caches=Helper(service=HELPER, namespaces=("bench",)))
ALL = replace(NO_HELPER, caches=Helper(service=HELPER, namespaces=("*",)))


def run_in(namespace: str, *, drops_caches: bool) -> Run:
    spec = {
        "storage": {"storageClass": {"name": "fast"}, "volume": {"size": "1Gi", "mode": "Filesystem"}},
        "clients": {"count": 1},
        "workloads": [{"name": "w", "fio": {}, "runtimeSeconds": 4, "rampSeconds": 1}],
        "prepare": {"dropCaches": drops_caches},
    }
    metadata = {"name": "a", "namespace": namespace, "uid": "u", "creationTimestamp": "2026-01-01T12:00:00Z"}
    return run_of(
        {"apiVersion": "plimsoll.dev/v1alpha1", "kind": "BenchmarkRun", "metadata": metadata, "spec": spec}, NO_HELPER
    )


@pytest.mark.parametrize(
    ("settings", "namespace", "expected"),
    [
        (NO_HELPER, "bench", ("spec.prepare.dropCaches", "not enabled", "caches.enabled", "set it to false")),
        (BENCH, "lab", ("spec.prepare.dropCaches", "namespace lab", "caches.namespaces", "set it to false")),
    ],
)
def test_a_run_that_may_not_drop_caches_is_refused(
    settings: Settings, namespace: str, expected: tuple[str, ...]
) -> None:
    ending = rejection(run_in(namespace, drops_caches=True), settings)
    assert ending is not None
    assert ending.reason is Reason.CACHE_DROPPING_NOT_ALLOWED
    assert all(words in ending.message for words in expected), ending.message
    assert rejection(run_in(namespace, drops_caches=False), settings) is None


@pytest.mark.parametrize("settings", [BENCH, ALL])
def test_a_run_in_a_namespace_that_is_listed_is_not_refused(settings: Settings) -> None:
    assert rejection(run_in("bench", drops_caches=True), settings) is None


@pytest.mark.parametrize("drops_caches", [False, True])
def test_only_the_plan_of_a_run_that_drops_caches_names_the_helper(*, drops_caches: bool) -> None:
    run = run_in("bench", drops_caches=drops_caches)
    assert run.document is not None
    platform = platform_of("v1.34.0", [{"metadata": {"name": "fast"}, "provisioner": "p"}])
    plan = freeze(run, run.document, platform, ALL)
    assert isinstance(plan, Plan)
    assert plan.cache_helper == (HELPER if drops_caches else None)
