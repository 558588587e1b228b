"""Between two variants exactly the fields that they set differently may differ in the identity of results."""

from typing import Any

import pytest

from plimsoll.api.environment import Environment
from plimsoll.api.suite import BenchmarkSuite, decode_suite
from plimsoll.plan.fingerprint import Difference, differences, fingerprint
from plimsoll.suite.children import changes_between, unexplained, variant_plans
from support.specs import RUN, suite_document

ROOK = {"cluster": {"namespace": "r", "name": "r"}, "pool": {"replicated": {"size": 3}}}
SEARCHING = {
    "workloads": [
        {
            "name": "reads",
            "fio": {"ioDepth": [64]},
            "line": {
                "vary": "Rate",
                "start": 1000,
                "limit": 20_000,
                "objectives": [{"percentile": "99", "latency": "5ms"}],
            },
        }
    ]
}
ON_ROOK = {"storage": {"rook": ROOK, "volume": {"size": "1Gi"}}}


def suite_of(own: dict[str, Any], run: dict[str, Any]) -> BenchmarkSuite:
    """Return a suite with a variant without changes, and another one."""
    return decode_suite(suite_document(run=RUN | run, variants=[{"name": "plain"}, {"name": "own", "set": own}]))


def planned(suite: BenchmarkSuite) -> list[tuple[str, list[Difference]]]:
    """Return the planned differences between the two variants for each point, with its workload."""
    plans = variant_plans(suite, seed=1)
    plain = {point.name: fingerprint(plans["plain"], point, Environment()) for point in plans["plain"].points}
    return [
        (point.workload, differences(plain[point.name], fingerprint(plans["own"], point, Environment())))
        for point in plans["own"].points
        if point.name in plain
    ]


def identity_keys(pairs: list[tuple[str, list[Difference]]]) -> set[str]:
    return {one.key for _, found in pairs for one in found if one.part == "identity"}


@pytest.mark.parametrize(
    ("own", "run", "keys"),
    [
        ({"clients": {"count": 4}}, {}, {"clients"}),
        ({"workloads": [{"name": "reads", "runtimeSeconds": 30}]}, {}, {"runtimeSeconds"}),
        ({"workloads": [{"name": "writes", "clients": [1]}]}, {}, {"clients"}),
        ({"workloads": [{"name": "writes", "fio": {"jobs": 2}}]}, {}, {"parameters.jobs"}),
        ({"storage": {"volume": {"size": "2Gi"}}}, {}, {"volume.size"}),
        (
            {"workloads": [{"name": "reads", "line": {"objectives": [{"percentile": "95", "latency": "9us"}]}}]},
            SEARCHING,
            {"line.latency.99", "line.latency.95"},
        ),
        ({"workloads": [{"name": "reads", "line": {"start": 2000}}]}, SEARCHING, set()),
        ({"prepare": {"fillPercent": 70}}, {}, {"prepare.fillPercent"}),
        (
            {"prepare": {"precondition": {"seconds": 60}}},
            {},
            {"prepare.precondition.seconds", "prepare.precondition.blockSize"},
        ),
        ({"storage": {"rook": {"pool": {"replicated": {"size": 2}}}}}, ON_ROOK, {"pool.replicated.size"}),
        (
            {"storage": {"rook": {"existingFileSystem": {"name": "files"}}}},
            ON_ROOK,
            {"pool.replicated.size", "pool.failureDomain"},
        ),
        ({"storage": {"volume": {"mode": "Block"}}}, {}, {"volume.mode"}),
    ],
)
def test_planned_differences_are_explained(own: dict[str, Any], run: dict[str, Any], keys: set[str]) -> None:
    suite = suite_of(own, run)
    changes, pairs = changes_between(suite.spec, "plain", "own"), planned(suite)
    assert identity_keys(pairs) == keys
    for workload, found in pairs:
        assert unexplained(changes, workload, found) == ()
        # Without the changes, each of them is unexpected.
        assert {one.key for one in unexplained((), workload, found)} == identity_keys([(workload, found)])


def test_another_tool_explains_its_parameters_and_versions() -> None:
    suite = suite_of({"workloads": [{"name": "writes", "dd": {}}]}, {})
    changes, pairs = changes_between(suite.spec, "plain", "own"), planned(suite)
    assert {"tool", "parameters.pattern"} < identity_keys(pairs)
    assert all(unexplained(changes, workload, found) == () for workload, found in pairs)
    versions = Difference(part="identity", key="toolVersions", baseline=["fio-3.39"], candidate=["9.1"])
    assert unexplained(changes, "writes", [versions]) == ()
    assert unexplained(changes, "reads", [versions]) == (versions,)


@pytest.mark.parametrize(
    ("own", "key", "explained"),
    [
        ({"workloads": [{"name": "reads", "fio": {"jobs": 2}}]}, "parameters.jobs", True),
        ({"workloads": [{"name": "reads", "fio": {"jobs": 2}}]}, "parameters.ioDepth", False),
        ({"workloads": [{"name": "writes", "fio": {"jobs": 2}}]}, "parameters.jobs", False),
        ({"workloads": [{"name": "reads", "fio": {"jobs": 2}}]}, "toolVersions", False),
        ({"storage": {"storageClass": {"name": "slow"}}}, "storageClass.parameters.pool", True),
        ({"storage": {"storageClass": {"name": "slow"}}}, "parameters.jobs", False),
        ({"storage": {"volume": {"size": "2Gi"}}}, "dataSetBytes.least", True),
        ({"clients": {"count": 4}}, "dataSetBytes", True),
        ({"clients": {"spread": "Preferred"}}, "clients", False),
        ({"prepare": {"fillPercent": 70}}, "dataSetBytes", True),
        ({"prepare": {"dropCaches": True}}, "osdCaches", True),
        ({"prepare": {"discard": False}}, "prepare.dropCaches", False),
        ({"repetitions": 5}, "volume.size", False),
    ],
)
def test_difference_is_explained_by_the_fields_that_it_follows_from(
    own: dict[str, Any],
    key: str,
    explained: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    changes = changes_between(suite_of(own, {}).spec, "plain", "own")
    found = Difference(part="identity", key=key, baseline=1, candidate=2)
    assert unexplained(changes, "reads", [found]) == (() if explained else (found,))


def test_context_may_differ() -> None:
    assert unexplained((), "reads", [Difference(part="context", key="seed", baseline=1, candidate=2)]) == ()
