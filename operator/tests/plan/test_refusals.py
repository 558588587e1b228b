"""Contradictions in a run on Ceph: the field and the remedy."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from plimsoll.api.errors import SpecError
from plimsoll.api.run import BenchmarkRun
from plimsoll.plan.document import Plan
from plimsoll.plan.expand import expand, make_plan

MakeRun = Callable[..., BenchmarkRun]

ROOK = {"cluster": {"namespace": "r", "name": "r"}, "pool": {"replicated": {"size": 3}}}
CEPH = {"monitors": ["192.0.2.1"], "user": "u", "keyringSecret": {"name": "k"}, "pool": {"name": "p"}}
IMAGES = {"rook": ROOK, "volume": {"size": "4Mi", "access": "LibRBD"}}
CLAIMS = {"rook": ROOK, "volume": {"size": "4Mi"}}
OSD_BENCH: dict[str, Any] = {"osdBench": {"keyringSecret": {"name": "admin"}}}


def problems(run: BenchmarkRun) -> list[str]:
    with pytest.raises(SpecError) as caught:
        expand(run)
    return [str(problem) for problem in caught.value.problems]


@pytest.mark.parametrize("storage", [{"storageClass": {"name": "fast"}, "volume": {"size": "1Gi"}}, None])
@pytest.mark.parametrize("workload", [{"radosBench": {}}, {"rbdBench": {}}, OSD_BENCH], ids=["rados", "rbd", "osd"])
def test_tools_of_ceph_need_a_cluster(
    make_run: MakeRun, workload: dict[str, Any], storage: dict[str, Any] | None
) -> None:
    refused = (
        r"spec\.storage: must have rook or ceph, because radosBench, .* connect to Ceph directly; name the cluster"
    )
    assert any(re.fullmatch(refused, problem) for problem in problems(make_run(workload, storage=storage)))


@pytest.mark.parametrize("tool", ["fio", "rbdBench"])
def test_tools_on_volumes_need_a_volume(make_run: MakeRun, tool: str) -> None:
    (problem,) = problems(make_run({tool: {}}, {"radosBench": {}}, storage={"ceph": CEPH}))
    assert problem.startswith("spec.storage.volume: must be set, because fio, ")


def test_a_new_data_set_for_each_trial_needs_a_data_set(make_run: MakeRun) -> None:
    prepare = {"perTrial": "NewDataSet"}
    assert problems(make_run({"radosBench": {}}, storage={"ceph": CEPH}, prepare=prepare)) == [
        "spec.prepare.perTrial: NewDataSet has no effect, because no workload uses a volume; remove it"
    ]
    assert expand(make_run({"radosBench": {}}, {"rbdBench": {}}, storage=IMAGES, prepare=prepare))


@pytest.mark.parametrize("tool", ["iperf3", "netcat", "ping"])
def test_tools_between_clients_need_no_storage_but_two_clients(make_run: MakeRun, tool: str) -> None:
    run = make_run({tool: {}}, storage=None, clients={"count": 2})
    assert [point.clients for point in expand(run)] == [2]
    (problem,) = problems(make_run({tool: {}}, storage=None, clients={"count": 1}))
    assert problem.startswith(f"spec.workloads[0].{tool}: takes 0 rounds with 1 clients, but 1 to 4096 are possible")


def test_requests_of_ping_must_fit_into_its_output(make_run: MakeRun) -> None:
    (problem,) = problems(make_run({"ping": {}, "runtimeSeconds": 10_000}, storage=None, clients={"count": 2}))
    assert "takes more than 800000 requests in" in problem
    assert "raise intervalMilliseconds" in problem


def test_rbd_bench_needs_an_image(make_run: MakeRun) -> None:
    assert problems(make_run({"rbdBench": {}}, storage=CLAIMS)) == [
        (
            "spec.storage.volume.access: PVC must be LibRBD, because rbdBench runs on an RBD image; set it to LibRBD, "
            "on a pool"
        )
    ]
    assert expand(make_run({"rbdBench": {}}, storage=IMAGES))


SHARED = {"storageClass": {"name": "nfs"}, "volume": {"size": "4Mi", "sharing": "Shared"}}
READ_BACK = {"fio": {"pattern": "read", "readBack": "NextClient"}}


def test_files_of_several_clients_need_a_shared_volume(make_run: MakeRun) -> None:
    storage = {"storageClass": {"name": "nfs"}, "volume": {"size": "4Mi", "mode": "Filesystem"}}
    for fields in (READ_BACK["fio"], {"files": "SharedFile"}):
        (found,) = problems(make_run({"fio": fields}, storage=storage))
        assert found.startswith("spec.storage.volume.sharing: PerClient must be Shared, because a workload has files")
        assert expand(make_run({"fio": fields}, storage=SHARED))


def test_workloads_share_one_kind_of_files(make_run: MakeRun) -> None:
    both = ({"fio": {"files": "SharedFile"}}, {"fio": {"files": "FilePerClient"}})
    assert problems(make_run(*both, storage=SHARED)) == [
        (
            "spec.workloads: cannot have files SharedFile in only some workloads, because clients prefill one kind of "
            "files; set it in all of them, or split the run"
        )
    ]
    assert expand(make_run({"fio": {}}, {"fio": {"files": "FilePerClient"}}, storage=SHARED))


def test_one_client_cannot_read_what_another_one_wrote(make_run: MakeRun) -> None:
    (found,) = problems(make_run({**READ_BACK, "clients": [1, 3]}, storage=SHARED))
    assert found == (
        "spec.workloads[0]: must have at least 2 clients where readBack is NextClient, because each reads what another "
        "one wrote; raise clients, or remove readBack"
    )
    (found,) = problems(make_run(READ_BACK, storage=SHARED, clients={"count": 1}))
    assert found.startswith("spec.workloads[0]: must have at least 2 clients")
    (found,) = problems(make_run({"fio": {}}, {**READ_BACK, "clients": [1]}, storage=SHARED))
    assert found.startswith("spec.workloads[1]: must have at least 2 clients")
    (point,) = expand(make_run({**READ_BACK, "clients": [2]}, storage=SHARED))
    assert (point.reads_next_client, point.shares_file) == (True, False)


@pytest.mark.parametrize(("tool", "axis"), [("fio", "blockSize"), ("rbdBench", "blockSize")], ids=["fio", "rbdBench"])
def test_blocks_must_fit_into_the_image(make_run: MakeRun, tool: str, axis: str) -> None:
    assert expand(make_run({tool: {axis: ["4Mi"]}}, storage=IMAGES))
    (found,) = problems(make_run({tool: {axis: ["4Mi", "8Mi"]}}, storage=IMAGES))
    assert found.startswith(f"spec.workloads[0].{tool}: ")
    assert "8Mi" in found


@pytest.mark.parametrize(
    ("engine", "storage", "accepted"),
    [
        ("rbd", IMAGES, True),
        ("libaio", IMAGES, False),
        ("psync", IMAGES, False),
        ("rbd", CLAIMS, False),
        ("io_uring", CLAIMS, True),
    ],
)
def test_engine_must_match_the_access(
    make_run: MakeRun,
    engine: str,
    storage: dict[str, Any],
    accepted: bool,  # noqa: FBT001 - an expectation
) -> None:
    run = make_run({"fio": {"engine": engine}}, storage=storage)
    if accepted:
        assert expand(run)
        return
    (found,) = problems(run)
    assert found.startswith("spec.workloads[0]: must have engine rbd with access LibRBD and cannot have it without;")


def test_reads_of_images_need_a_prefill_and_those_of_objects_do_not(make_run: MakeRun) -> None:
    workloads: tuple[dict[str, Any], ...] = (
        {"rbdBench": {"operation": "read"}},
        {"radosBench": {"operation": "seq"}},
        {"rbdBench": {}},
    )
    (found,) = problems(make_run(*workloads, storage=IMAGES, prepare={"prefill": False}))
    assert found.startswith("spec.prepare.prefill: false must be true, because w0 would read unwritten extents")
    assert expand(make_run(*workloads[1:], storage=IMAGES, prepare={"prefill": False}))


def test_a_tool_of_one_actor_takes_no_number_of_clients(make_run: MakeRun) -> None:
    for clients in ({}, {"clients": [1]}):
        (point,) = expand(make_run({**OSD_BENCH, **clients}, storage={"ceph": CEPH}))
        assert point.clients == 1
    for wrong in ([2], [1, 2]):
        assert problems(make_run({**OSD_BENCH, "clients": wrong}, storage={"ceph": CEPH})) == [
            "spec.workloads[0].clients: does not apply to osdBench, which one client runs for all; leave it out"
        ]


def test_all_workloads_use_the_same_administrator_key(make_run: MakeRun) -> None:
    spelt_out = {"osdBench": {"keyringSecret": {"name": "admin", "key": "keyring"}}}
    assert expand(make_run(OSD_BENCH, spelt_out, storage={"ceph": CEPH}))
    other = {"osdBench": {"keyringSecret": {"name": "admin", "key": "other"}}}
    assert problems(make_run(OSD_BENCH, other, spelt_out, storage={"ceph": CEPH})) == [
        ("spec.workloads: must name the same keyringSecret in every osdBench; split the run, or put one Secret in all")
    ]


def test_all_problems_are_reported_together(make_run: MakeRun) -> None:
    run = make_run({"fio": {"blockSize": ["8Mi"]}}, storage=IMAGES, prepare={"prefill": False})
    assert [line.partition(": ")[0] for line in problems(run)] == ["spec.prepare.prefill", "spec.workloads[0].fio"]


FILES = {"storageClass": {"name": "fast"}, "volume": {"size": "64Mi", "mode": "Filesystem"}}
BONNIE: dict[str, Any] = {"bonnie": {"files": 1}}


@pytest.mark.parametrize("storage", [{"rook": ROOK, "volume": {"size": "4Mi", "mode": "Block"}}, IMAGES])
def test_bonnie_needs_a_file_system(make_run: MakeRun, storage: dict[str, Any]) -> None:
    (found,) = problems(make_run(BONNIE, storage=storage))
    assert found.startswith("spec.storage.volume.mode: Block must be Filesystem, because bonnie works on files")
    assert "set it to Filesystem, with access PVC" in found
    assert expand(make_run(BONNIE, storage=FILES))
    assert expand(make_run(BONNIE, storage=SHARED | {"volume": {"size": "64Mi", "sharing": "Shared"}}))


def test_bonnie_s_file_must_fit_into_the_filled_part(make_run: MakeRun) -> None:
    assert expand(make_run({"bonnie": {"size": "51Mi"}}, storage=FILES))
    (found,) = problems(make_run({"bonnie": {"size": "52Mi"}}, storage=FILES))
    assert "size 52Mi exceeds the data set of 51Mi; lower size, or raise spec.storage.volume.size" in found


def test_bonnie_shares_no_run_with_tools_that_need_the_data_set(make_run: MakeRun) -> None:
    (contested,) = problems(make_run(BONNIE, {"fio": {}}, storage=FILES))
    assert contested.startswith("spec.workloads: cannot have both bonnie ")
    assert contested.endswith(", because the former uses the space of the data set; split the run")
    (overwritten,) = problems(make_run(BONNIE, storage=FILES, prepare={"precondition": {"blockSize": "4Ki"}}))
    assert overwritten.startswith("spec.prepare.precondition: must be absent, because bonnie ")
    assert overwritten.endswith(" writes files of its own; remove it")


def test_nothing_is_prefilled_for_bonnie(make_run: MakeRun) -> None:
    prepare = {"discard": False, "perTrial": "NewDataSet"}
    plan = make_plan(make_run(BONNIE, storage=FILES, prepare=prepare), seed=1)
    assert (plan.prepare.prefill, plan.prepare.per_trial) == (False, None)
    assert Plan.model_validate_json(plan.model_dump_json()) == plan
    assert make_plan(make_run({"fio": {}}, storage=FILES), seed=1).prepare.prefill
