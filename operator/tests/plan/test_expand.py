"""From a run to its points, and all refusals."""

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.api.environment import PlatformEnvironment, StorageClassDescription
from plimsoll.api.errors import SpecError
from plimsoll.api.quantity import format_quantity
from plimsoll.api.run import BenchmarkRun, decode_run
from plimsoll.plan.document import MAX_POINTS
from plimsoll.plan.expand import expand, make_plan
from plimsoll.tools.registry import TOOLS

MakeRun = Callable[..., BenchmarkRun]


AXIS = st.lists(st.integers(1, 64), min_size=1, max_size=4, unique=True)
WORKLOADS = st.lists(
    st.fixed_dictionaries(
        {
            "fio": st.fixed_dictionaries(
                {"pattern": st.sampled_from(["randread", "write"])},
                optional={"blockSize": AXIS.map(lambda sizes: [512 * size for size in sizes]), "ioDepth": AXIS},
            )
        },
        optional={"clients": st.lists(st.integers(1, 8), min_size=1, max_size=3, unique=True)},
    ),
    min_size=1,
    max_size=4,
)


def problems(run: BenchmarkRun) -> list[str]:
    with pytest.raises(SpecError) as caught:
        make_plan(run, seed=1)
    return [str(problem) for problem in caught.value.problems]


def run_of(workloads: list[dict[str, Any]]) -> BenchmarkRun:
    """Return a run without the fixture, which Hypothesis would not renew between examples."""
    return decode_run(
        {
            "apiVersion": "plimsoll.dev/v1alpha1",
            "kind": "BenchmarkRun",
            "metadata": {"name": "run"},
            "spec": {
                "storage": {"storageClass": {"name": "fast"}, "volume": {"size": "1Gi"}},
                "clients": {"count": 8},
                "workloads": [{"name": f"w{number}", **fields} for number, fields in enumerate(workloads)],
            },
        }
    )


@given(WORKLOADS)
def test_points_are_the_product_of_the_axes(workloads: list[dict[str, Any]]) -> None:
    points = expand(run_of(workloads))
    expected = [
        (f"w{number}", clients, format_quantity(size), depth)
        for number, fields in enumerate(workloads)
        for clients, size, depth in product(
            fields.get("clients", [8]), fields["fio"].get("blockSize", [4096]), fields["fio"].get("ioDepth", [1])
        )
    ]
    found = [(one.workload, one.clients, one.parameters["blockSize"], one.parameters["ioDepth"]) for one in points]
    assert found == expected
    assert len({one.name for one in points}) == len(points)


@given(WORKLOADS, st.integers(0, 2**63 - 1))
def test_plan_is_the_same_for_a_seed(workloads: list[dict[str, Any]], seed: int) -> None:
    run = run_of(workloads)
    plan = make_plan(run, seed=seed)
    assert plan == make_plan(run, seed=seed)
    assert len(plan.order) == plan.repetitions == 5
    assert all(sorted(order) == list(range(len(plan.points))) for order in plan.order)


def test_last_axis_is_fastest(make_run: MakeRun) -> None:
    fio = {"pattern": "randwrite", "blockSize": ["4Ki", "64Ki"], "ioDepth": [1, 16]}
    points = expand(make_run({"fio": fio, "clients": [1, 4], "runtimeSeconds": 30, "rampSeconds": 5}))
    assert [(one.name, one.clients, one.label) for one in points] == [
        ("w0-000", 1, "randwrite 4Ki qd1"),
        ("w0-001", 1, "randwrite 4Ki qd16"),
        ("w0-002", 1, "randwrite 64Ki qd1"),
        ("w0-003", 1, "randwrite 64Ki qd16"),
        ("w0-004", 4, "randwrite 4Ki qd1"),
        ("w0-005", 4, "randwrite 4Ki qd16"),
        ("w0-006", 4, "randwrite 64Ki qd1"),
        ("w0-007", 4, "randwrite 64Ki qd16"),
    ]
    assert {(one.workload, one.tool, one.runtime_seconds, one.ramp_seconds) for one in points} == {("w0", "fio", 30, 5)}


def test_order_of_the_document_does_not_matter(make_run: MakeRun) -> None:
    """An API server sorts the fields; the plan must not depend on that."""
    one = make_run({"fio": {"ioDepth": [1, 2], "pattern": "write", "blockSize": ["4Ki", "8Ki"]}})
    other = make_run({"fio": {"blockSize": ["4Ki", "8Ki"], "ioDepth": [1, 2], "pattern": "write"}})
    assert make_plan(one, seed=1).model_dump_json() == make_plan(other, seed=1).model_dump_json()


def test_parameters_hold_the_defaults_and_scalars_only(make_run: MakeRun) -> None:
    (point,) = expand(make_run({"fio": {"blockSize": ["8Ki"]}}))
    assert point.parameters["blockSize"] == "8Ki"
    assert point.parameters["directIo"] is True
    assert not [value for value in point.parameters.values() if isinstance(value, list | dict)]


def test_all_clients_take_part_by_default(make_run: MakeRun) -> None:
    (point,) = expand(make_run({"fio": {}}))
    assert point.clients == 8


def test_plan_contains_the_runs_specification(make_run: MakeRun) -> None:
    run = make_run({"fio": {}}, prepare={"settleSeconds": 3}, timeouts={"totalSeconds": 7200})
    plan = make_plan(run, seed=5, runner_image="runner:1")
    assert (plan.run.name, plan.run.namespace, plan.run.uid) == ("run", "bench", "u")
    assert (plan.seed, plan.clients, plan.repetitions, plan.runner_image) == (5, 8, 2, "runner:1")
    assert run.spec.storage is not None
    assert plan.volume == run.spec.storage.volume
    assert (plan.prepare, plan.gates, plan.timeouts) == (run.spec.prepare, run.spec.gates, run.spec.timeouts)


def test_plan_contains_network_and_platform(make_run: MakeRun) -> None:
    run = make_run({"fio": {}}, clients={"networkBytesPerSecond": "1.25G"})
    storage_class = StorageClassDescription(name="fast", parameters={})
    environment = PlatformEnvironment(kubernetes="v1.34.4", storage_class=storage_class)
    plan = make_plan(run, seed=1, environment=environment)
    assert (plan.network_bytes_per_second, plan.environment) == (1_250_000_000, environment)
    local = make_plan(make_run({"fio": {}}), seed=1)
    assert (local.network_bytes_per_second, local.environment.document()) == (None, {})


# Refusals


@pytest.mark.parametrize(
    ("fio", "expected"),
    [
        ({"blockSize": ["4Ki", "5"]}, ['blockSize[1]: "5" must be at least 512']),
        ({"blockSize": ["x", "4Ki"]}, ['blockSize[0]: "x" is not a quantity; write a Kubernetes quantity of whole']),
        ({"blockSize": ["128Mi"]}, ['blockSize[0]: "128Mi" must be at most 67108864 (64Mi)']),
        ({"blockSize": ["4Ki", 4096]}, ["blockSize[1]: 4096 repeats blockSize[0]; remove it"]),
        ({"blockSize": [["4Ki"]]}, ["blockSize[0]: is not a quantity; write"]),
        (
            {"ioDepth": [1, 2, 1, 2]},
            ["ioDepth[2]: 1 repeats ioDepth[0]", "ioDepth[3]: 2 repeats ioDepth[1]"],
        ),
        ({"ioDepth": [1, "2"]}, ['ioDepth[1]: "2" must be a whole number']),
        ({"ioDepth": [True]}, ["ioDepth[0]: true must be a whole number"]),
        ({"ioDepth": [None]}, ["ioDepth[0]: is empty; give it a value, or remove it"]),
        ({"ioDepth": []}, ["ioDepth: must be a list of 1 to 64 values"]),
        ({"ioDepth": 16}, ["ioDepth: 16 must be a list of 1 to 64 values, such as [16]"]),
        ({"blockSize": "4Ki"}, ['blockSize: "4Ki" must be a list of 1 to 64 values, such as [4Ki]']),
        ({"ioDepth": {"from": 1}}, ["ioDepth: must be a list of 1 to 64 values"]),
        ({"ioDepth": list(range(1, 66))}, ["ioDepth: must be a list of 1 to 64 values"]),
        ({"jobs": [1, 2]}, ["jobs: must be a whole number, not a list"]),
        ({"jobs": "4"}, ['jobs: "4" must be a whole number']),
        ({"directIo": "yes"}, ['directIo: "yes" must be true or false']),
        (
            {"pattern": ["read"]},
            ["pattern: must be read, write, randread, randwrite, readwrite, randrw, trim or randt"],
        ),
        ({"iodepth": [1]}, ["iodepth: is not a known field; did you mean ioDepth?"]),
        ({"io_depth": [1]}, ["io_depth: is not a known field; did you mean ioDepth?"]),
        ({"bs": ["4Ki"]}, ["bs: is not a known field; did you mean blockSize?"]),
        ({"runtime": 60}, ["runtime: is not a known field; runtimeSeconds belongs in workloads[]"]),
        (
            {"engine": "psync", "ioDepth": [1, 2]},
            ["ioDepth[1]: 2 has no effect beyond 1 with a synchronous engine; use 1 and raise jobs"],
        ),
        (
            {"blockSize": ["4Ki", "x", "y"], "ioDepth": [0, 1, 9999], "jobs": 0},
            [
                'blockSize[1]: "x" is',
                "ioDepth[0]: 0 must be at",
                "jobs: 0 must",
                'blockSize[2]: "y"',
                "ioDepth[2]: 9999",
            ],
        ),
        ({"blockSize": "4Ki", "ioDepth": 1}, ['blockSize: "4Ki" must be a list', "ioDepth: 1 must be a list"]),
    ],
)
def test_bad_parameter_is_reported_once_at_its_place(
    make_run: MakeRun, fio: dict[str, Any], expected: list[str]
) -> None:
    found = problems(make_run({"fio": fio}))
    assert len(found) == len(expected), found
    for start in expected:
        assert [line for line in found if line.startswith(f"spec.workloads[0].fio.{start}")], (start, found)


def test_problems_of_all_workloads_are_reported(make_run: MakeRun) -> None:
    run = make_run({"fio": {"jobs": 0}}, {"iozone": {}}, {"fio": {"ioDepth": [0]}})
    assert problems(run) == [
        "spec.workloads[0].fio.jobs: 0 must be at least 1",
        f"spec.workloads[1].iozone: is not a known field or tool; the tools are {', '.join(sorted(TOOLS))}",
        "spec.workloads[2].fio.ioDepth[0]: 0 must be at least 1",
    ]


def test_volume_needs_storage(make_run: MakeRun) -> None:
    (problem,) = problems(make_run({"fio": {}}, storage=None))
    assert problem.startswith("spec.storage: must be set with a volume, because fio, ")


def test_number_of_points_is_bounded(make_run: MakeRun) -> None:
    depths = list(range(1, 65))
    assert len(expand(make_run({"fio": {"ioDepth": depths}, "clients": list(range(1, 9))}))) == MAX_POINTS
    run = make_run({"fio": {"ioDepth": depths}, "clients": list(range(1, 9))}, {"fio": {}})
    assert problems(run) == [
        "spec.workloads: expands to 513 points, but a run has at most 512; shorten an axis or split the run"
    ]


def test_points_are_counted_before_the_expansion(make_run: MakeRun) -> None:
    axis = list(range(1, 65))
    fio = {"ioDepth": axis, "blockSize": [512 * size for size in axis]}
    (found,) = problems(make_run(*[{"fio": fio, "clients": axis}] * 32, clients={"count": 64}))
    assert "expands to 8388608 points" in found


@pytest.mark.parametrize(
    ("volume", "expected"),
    [
        ({"size": "4Mi", "mode": "Block"}, None),
        ({"size": "3Mi", "mode": "Block"}, "exceeds the data set of 3Mi; lower it, or raise spec.storage.volume.size"),
        ({"size": "5Mi"}, None),
        ({"size": "4Mi"}, "exceeds the data set of 3Mi; lower it, or raise spec.storage"),
    ],
)
def test_a_precondition_needs_a_data_set_of_at_least_one_block(
    make_run: MakeRun, volume: dict[str, Any], expected: str | None
) -> None:
    storage = {"storageClass": {"name": "fast"}, "volume": volume}
    run = make_run({"fio": {}}, storage=storage, prepare={"precondition": {"blockSize": "4Mi"}})
    if expected is None:
        assert expand(run)
        return
    (found,) = problems(run)
    assert found.startswith(f"spec.prepare.precondition.blockSize: 4Mi {expected}")


# Reads of unwritten extents


@pytest.mark.parametrize("pattern", ["read", "randread", "readwrite", "randrw"])
def test_reads_need_a_prefill(make_run: MakeRun, pattern: str) -> None:
    run = make_run({"fio": {"pattern": "write"}}, {"fio": {"pattern": pattern}}, prepare={"prefill": False})
    assert problems(run) == [
        (
            "spec.prepare.prefill: false must be true, because w1 would read unwritten extents, which are "
            "answered without access to the storage; set it to true, or leave out the workloads that read"
        )
    ]


@pytest.mark.parametrize("pattern", ["write", "randwrite", "trim", "randtrim"])
def test_prefill_is_optional_without_reads(make_run: MakeRun, pattern: str) -> None:
    storage = {"storageClass": {"name": "fast"}, "volume": {"size": "1Gi", "mode": "Block"}}
    assert expand(make_run({"fio": {"pattern": pattern}}, storage=storage, prepare={"prefill": False}))


def test_all_reading_workloads_are_named(make_run: MakeRun) -> None:
    (found,) = problems(make_run({"fio": {}}, {"fio": {}}, prepare={"prefill": False}))
    assert "because w0, w1 would read" in found
