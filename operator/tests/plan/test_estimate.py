from collections.abc import Callable
from typing import Any

import pytest

from plimsoll.api.errors import SpecError
from plimsoll.api.run import BenchmarkRun
from plimsoll.plan.document import Plan
from plimsoll.plan.expand import (
    TRIAL_OVERHEAD_SECONDS,
    Estimate,
    check_fits_deadline,
    estimate,
    estimate_writes,
    make_plan,
)
from plimsoll.tools.base import ASSUMED_WRITE_BYTES_PER_SECOND

MakeRun = Callable[..., BenchmarkRun]

WRITE = {"pattern": "randwrite"}
ROOK = {"cluster": {"namespace": "r", "name": "r"}}
CEPH = {"monitors": ["192.0.2.1"], "user": "u", "keyringSecret": {"name": "k"}, "pool": {"name": "p"}}


def cost_of(run: BenchmarkRun) -> Estimate:
    return estimate(make_plan(run, seed=1))


def storage(size: str, mode: str = "Block", **pool: Any) -> dict[str, Any]:
    source: dict[str, Any] = {"rook": ROOK | {"pool": pool}} if pool else {}
    return (source or {"storageClass": {"name": "fast"}}) | {"volume": {"size": size, "mode": mode}}


def test_measuring_time_covers_all_trials(make_run: MakeRun) -> None:
    run = make_run(
        {"fio": {"ioDepth": [1, 2, 4]}, "runtimeSeconds": 30, "rampSeconds": 5},
        {"fio": WRITE, "runtimeSeconds": 60, "rampSeconds": 0, "clients": [1, 8]},
        repetitions=3,
        prepare={"settleSeconds": 7},
    )
    cost = cost_of(run)
    assert (cost.points, cost.trials, cost.settle_seconds) == (5, 15, 7)
    assert cost.measuring_seconds == 3 * (3 * 35 + 2 * 60 + 5 * TRIAL_OVERHEAD_SECONDS)
    assert cost.total_seconds == cost.measuring_seconds + cost.prefill_seconds + 7


def test_every_client_prefills_its_own_volume_at_the_same_time(make_run: MakeRun) -> None:
    cost = cost_of(make_run({"fio": {}}, storage=storage("10Gi")))
    assert cost.prefill_seconds == 10 * 2**30 // ASSUMED_WRITE_BYTES_PER_SECOND + 1
    assert cost.data_bytes == 8 * 10 * 2**30


def test_a_precondition_takes_its_specified_time(make_run: MakeRun) -> None:
    run = make_run({"fio": {}}, prepare={"precondition": {"seconds": 900}, "settleSeconds": 7})
    cost = cost_of(run)
    assert cost.precondition_seconds == 900
    assert cost.total_seconds == cost.measuring_seconds + cost.prefill_seconds + 900 + 7
    without_volume = make_plan(run, seed=1).model_copy(update={"volume": None})
    assert estimate(without_volume).precondition_seconds == 0


def test_a_new_data_set_for_each_trial_takes_the_whole_preparation_each_time(make_run: MakeRun) -> None:
    prepare = {"precondition": {"seconds": 900}, "settleSeconds": 7}
    workload = {"fio": {"ioDepth": [1, 2]}}
    once = cost_of(make_run(workload, repetitions=3, prepare=prepare))
    each = cost_of(make_run(workload, repetitions=3, prepare=prepare | {"perTrial": "NewDataSet"}))
    assert (once.preparations, each.preparations) == (1, 6)
    assert each.preparation_seconds == each.prefill_seconds + 900 + 7
    assert each.total_seconds == once.total_seconds + 5 * each.preparation_seconds
    assert each.data_bytes == once.data_bytes


def test_part_of_a_second_counts_as_one(make_run: MakeRun) -> None:
    assert cost_of(make_run({"fio": {}}, storage=storage("1Mi"))).prefill_seconds == 1


def test_without_prefill_the_capacity_is_still_needed(make_run: MakeRun) -> None:
    cost = cost_of(make_run({"fio": WRITE}, storage=storage("1Gi"), prepare={"prefill": False}))
    assert cost.prefill_seconds == 0
    assert cost.data_bytes == 8 * 2**30


def test_file_system_is_filled_to_a_share(make_run: MakeRun) -> None:
    run = make_run({"fio": {}}, storage=storage("1Gi", "Filesystem"), prepare={"fillPercent": 50})
    assert cost_of(run).data_bytes == 8 * 2**29


@pytest.mark.parametrize(
    ("pool", "stored"),
    [
        ({"replicated": {"size": 3}}, 3 * 8 * 2**30),
        ({"replicated": {"size": 1}}, 8 * 2**30),
        ({"erasureCoded": {"dataChunks": 4, "codingChunks": 2}}, 12 * 2**30),
        ({"erasureCoded": {"dataChunks": 3, "codingChunks": 2}}, 14316557654),
    ],
)
def test_stored_bytes_include_replicas_or_chunks(make_run: MakeRun, pool: dict[str, Any], stored: int) -> None:
    cost = cost_of(make_run({"fio": {}}, storage=storage("1Gi", **pool)))
    assert cost.data_bytes == 8 * 2**30
    assert cost.stored_bytes == stored


@pytest.mark.parametrize(
    "source",
    [
        storage("1Gi"),
        {"rook": ROOK | {"existingPool": {"name": "p"}}, "volume": {"size": "1Gi", "mode": "Block"}},
        {"ceph": CEPH, "volume": {"size": "1Gi", "access": "LibRBD"}},
    ],
)
def test_stored_bytes_of_existing_storage_are_unknown(make_run: MakeRun, source: dict[str, Any]) -> None:
    cost = cost_of(make_run({"fio": {}}, storage=source))
    assert (cost.data_bytes, cost.stored_bytes) == (8 * 2**30, None)


@pytest.mark.parametrize("volume", [{"volume": {"size": "1Gi"}}, {}], ids=["unused volume", "no volume"])
def test_without_a_volume_there_is_nothing_to_prepare(make_run: MakeRun, volume: dict[str, Any]) -> None:
    source = {"rook": ROOK | {"pool": {"replicated": {"size": 3}}}, **volume}
    cost = cost_of(make_run({"radosBench": {}}, storage=source, prepare={"precondition": {}}))
    assert (cost.data_bytes, cost.stored_bytes, cost.prefill_seconds, cost.precondition_seconds) == (0, 0, 0, 0)


def test_the_prepare_steps_of_trials_take_time(make_run: MakeRun) -> None:
    """A sequential read ends when all objects were read once, so more are written than are read."""
    timing = {"runtimeSeconds": 30, "rampSeconds": 5}
    for parameters, staging in (
        ({"operation": "write"}, 0),
        ({"operation": "rand"}, 35),
        ({"operation": "seq"}, 3 * 35),
        ({"operation": "seq", "writeSeconds": 50}, 50),
    ):
        cost = cost_of(make_run({"radosBench": parameters, **timing}, storage={"ceph": CEPH}))
        assert cost.measuring_seconds == 2 * (staging + 35 + TRIAL_OVERHEAD_SECONDS)


@pytest.mark.parametrize(
    ("prepare", "seconds", "words"),
    [
        ({}, 10, "2 trials"),
        ({"precondition": {"seconds": 600}, "settleSeconds": 0}, 600, "2 trials and 600 s of preconditioning"),
        (
            {"precondition": {"seconds": 600}, "settleSeconds": 20, "perTrial": "NewDataSet"},
            2 * (600 + 20),
            "2 trials, each on a new data set, and 1200 s of preconditioning",
        ),
    ],
    ids=["trials", "precondition", "new data sets"],
)
def test_a_run_longer_than_its_deadline_is_refused(
    make_run: MakeRun, prepare: dict[str, Any], seconds: int, words: str
) -> None:
    def with_deadline(total: int) -> Plan:
        workload = {"fio": {}, "runtimeSeconds": 100, "rampSeconds": 0}
        return make_plan(make_run(workload, prepare=prepare, timeouts={"totalSeconds": total}), seed=1)

    needed = 2 * (100 + TRIAL_OVERHEAD_SECONDS) + seconds
    check_fits_deadline(with_deadline(needed))
    with pytest.raises(SpecError) as caught:
        check_fits_deadline(with_deadline(needed - 1))
    assert str(caught.value) == (
        f"spec.timeouts.totalSeconds: {needed - 1} is less than the {needed} s that {words} take without prefill; "
        "raise it, shorten runtimeSeconds or an axis, or lower repetitions"
    )


@pytest.mark.parametrize(
    ("workload", "per_client"),
    [
        ({"fio": {"pattern": "randread"}}, 0),
        ({"fio": WRITE}, 60 * ASSUMED_WRITE_BYTES_PER_SECOND),
        ({"fio": {"pattern": "randrw"}}, 60 * ASSUMED_WRITE_BYTES_PER_SECOND),
        ({"fio": WRITE | {"rateIops": 100}}, 60 * 100 * 4096),
        ({"fio": {"pattern": "randrw", "readPercent": 70, "rateIops": 100}}, 60 * 30 * 4096),
        ({"dd": {"operation": ["Read"]}}, 0),
        ({"dd": {"operation": ["Copy"]}}, 60 * ASSUMED_WRITE_BYTES_PER_SECOND),
        ({"ioping": {"operation": ["Read"]}}, 0),
        ({"iperf3": {}}, 0),
    ],
)
def test_trials_write_at_their_rate_or_at_an_assumed_one(
    make_run: MakeRun, workload: dict[str, Any], per_client: int
) -> None:
    run = make_run(
        workload | {"runtimeSeconds": 50, "rampSeconds": 10}, repetitions=3, storage=storage("1Gi", "Filesystem")
    )
    assert estimate_writes(make_plan(run, seed=1)).loading == 3 * 8 * per_client


@pytest.mark.parametrize(("disturb", "probes"), [(None, 40 * 60), (60, 40 * 60 + 20 * 180)])
def test_a_search_writes_at_its_highest_rate(make_run: MakeRun, disturb: int | None, probes: int) -> None:
    """With a disturbance it makes 40 probes of 60 s for the calm line, and 20 of 180 s for the storm line."""
    line = {"start": 800, "limit": 8100, "objectives": [{"latency": "5ms"}]}
    workload: dict[str, Any] = {"fio": WRITE | {"ioDepth": [64]}, "line": line, "rampSeconds": 0}
    if disturb is not None:
        outage = {"afterSeconds": 60, "forSeconds": disturb, "osds": {"action": "Down"}}
        workload |= {"disturb": outage, "runtimeSeconds": 180}
    run = make_run(workload, storage=storage("1Gi", replicated={"size": 3}))
    highest = 8096  # that eight clients share evenly
    assert estimate_writes(make_plan(run, seed=1)).loading == probes * highest * 4096


def test_trims_write_nothing(make_run: MakeRun) -> None:
    run = make_run({"fio": {"pattern": "randtrim"}}, storage=storage("1Gi"))
    assert estimate_writes(make_plan(run, seed=1)).loading == 0


def test_objects_are_written_before_they_are_read(make_run: MakeRun) -> None:
    ceph = {"ceph": CEPH}
    write, read = (
        make_run({"radosBench": {"operation": operation}, "runtimeSeconds": 50, "rampSeconds": 10}, storage=ceph)
        for operation in ("write", "rand")
    )
    assert estimate_writes(make_plan(write, seed=1)) == estimate_writes(make_plan(read, seed=1))
    assert estimate_writes(make_plan(read, seed=1)).loading > 0


@pytest.mark.parametrize(
    ("prepare", "times", "overwriting"),
    [
        ({}, 1, 0),
        ({"precondition": {"seconds": 900}}, 1, 900),
        ({"precondition": {"seconds": 900}, "perTrial": "NewDataSet"}, 2, 900),
    ],
)
def test_every_preparation_writes_the_data_sets(
    make_run: MakeRun, prepare: dict[str, Any], times: int, overwriting: int
) -> None:
    writes = estimate_writes(make_plan(make_run({"fio": {}}, prepare=prepare, storage=storage("1Gi")), seed=1))
    assert writes.preparing == times * 8 * 2**30
    assert writes.loading == times * 8 * overwriting * ASSUMED_WRITE_BYTES_PER_SECOND


def test_without_a_prefill_only_trials_write(make_run: MakeRun) -> None:
    writes = estimate_writes(make_plan(make_run({"fio": WRITE}, prepare={"prefill": False}), seed=1))
    assert writes.preparing == 0
    assert writes.loading > 0
