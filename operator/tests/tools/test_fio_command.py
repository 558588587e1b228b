from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.tools.base import StepContext, Timing
from plimsoll.tools.fio.command import gap_milliseconds, measure_command, work_bytes
from plimsoll.tools.fio.parameters import Engine, FioParameters, Pattern
from plimsoll.tools.fio.tool import Fio
from plimsoll.tools.target import VolumeKind, VolumeTarget

from .conftest import step_context

FIO = Fio()

MEBIBYTE = 2**20
SEQUENTIAL = [pattern for pattern in Pattern if not pattern.is_random]


def context_of(target: VolumeTarget, seed: int = 5) -> StepContext:
    return step_context(target, 3, 60, seed=seed)


def device(size: int = 64 * MEBIBYTE, offset: int = 0, path: str = "/dev/volume") -> VolumeTarget:
    return VolumeTarget(kind=VolumeKind.DEVICE, path=path, size=size, offset=offset)


def options(argv: Sequence[str]) -> dict[str, str]:
    assert argv[0] == "fio"
    pairs = [argument.removeprefix("--").partition("=") for argument in argv[1:]]
    names = [name for name, _, _ in pairs]
    assert len(set(names)) == len(names), "an option is given twice"
    return {name: value for name, _, value in pairs}


def measured(parameters: FioParameters, target: VolumeTarget, seed: int = 5) -> dict[str, str]:
    return options(FIO.command(parameters, context_of(target, seed)).argv)


@st.composite
def any_parameters(draw: st.DrawFn) -> FioParameters:
    pattern = draw(st.sampled_from(Pattern))
    engine = draw(st.none() | st.sampled_from([engine for engine in Engine if engine is not Engine.RBD]))
    return FioParameters(
        pattern=pattern,
        engine=engine,
        block_size=512 * draw(st.integers(1, 2**11)),
        io_depth=1 if engine is not None and engine.is_synchronous else draw(st.integers(1, 1024)),
        jobs=draw(st.integers(1, 16)),
        read_percent=draw(st.integers(1, 99)) if pattern.is_mixed else None,
        fsync_every=draw(st.integers(0, 100)) if pattern.writes else 0,
        rate_iops=draw(st.none() | st.integers(2000, 10**6)),
        direct_io=draw(st.booleans()),
    )


targets = st.builds(
    device,
    size=st.integers(16, 4096).map(lambda n: n * MEBIBYTE),
    offset=st.integers(0, 99).map(lambda n: n * MEBIBYTE),
)


@pytest.mark.parametrize("fields", [{"files": "SharedFile"}, {"pattern": "read", "readBack": "NextClient"}])
def test_a_client_uses_its_region_of_a_shared_file(fields: dict[str, str]) -> None:
    file = VolumeTarget(kind=VolumeKind.FILE, path="/data/f", size=MEBIBYTE, offset=2 * MEBIBYTE, shared=True)
    assert measured(FioParameters.model_validate(fields), file)["offset"] == str(2 * MEBIBYTE)


@given(any_parameters(), targets, st.integers(-(2**70), 2**70))
def test_required_options_are_always_set(parameters: FioParameters, target: VolumeTarget, seed: int) -> None:
    given_options = measured(parameters, target, seed)
    always = {
        "time_based": "1", "runtime": "60s", "ramp_time": "3s", "norandommap": "1", "random_generator": "tausworthe64",
        "thread": "1", "group_reporting": "0", "allow_file_create": "0", "continue_on_error": "none",
        "lat_percentiles": "1", "clat_percentiles": "1", "slat_percentiles": "1", "per_job_logs": "1",
        "percentile_list": "50:90:95:99:99.9:99.99", "bwavgtime": "1000", "iopsavgtime": "1000",
        "output": "/work/fio.json",
        "output-format": "json+", "eta": "always", "eta-interval": "2s",
        "write_iops_log": "/work/fio", "write_bw_log": "/work/fio", "write_lat_log": "/work/fio",
        "randrepeat": "0", "write_hist_log": "/work/fio", "log_hist_msec": "3000",
    }  # fmt: skip
    assert always.items() <= given_options.items()
    assert given_options["direct"] == str(int(parameters.direct_io))
    assert given_options["numjobs"] == str(parameters.jobs)
    assert ("refill_buffers" in given_options) == (
        parameters.pattern.writes and min(parameters.block_sizes) < 64 * 2**10
    )
    assert ("scramble_buffers" in given_options) == (
        parameters.pattern.writes and min(parameters.block_sizes) >= 64 * 2**10
    )
    assert 1 <= int(given_options["randseed"]) < 2**63


@given(any_parameters(), targets)
def test_no_option_falsifies_results_or_executes_commands(parameters: FioParameters, target: VolumeTarget) -> None:
    forbidden = {"gtod_reduce", "disable_lat", "unified_rw_reporting", "steadystate", "server", "client", "verify"}
    given_options = measured(parameters, target)
    assert not forbidden & given_options.keys()
    assert not any(name.startswith("exec_") for name in given_options)


def test_a_load_that_ends_with_its_data_set_visits_each_block_once() -> None:
    until = FioParameters.model_validate({"until": "DataSetDone", "blockSize": "1Mi"})
    context = replace(context_of(device()), timing=Timing(ramp_seconds=0, runtime_seconds=60))
    found = options(FIO.command(until, context).argv)
    assert "time_based" not in found
    assert (found["norandommap"], found["size"], found["runtime"]) == ("0", str(64 * MEBIBYTE), "60s")


def test_work_is_the_whole_blocks_of_the_data_set() -> None:
    until = FioParameters.model_validate({"until": "DataSetDone", "pattern": "write", "blockSize": "3Mi"})
    assert work_bytes(until, device(size=64 * MEBIBYTE)) == 63 * MEBIBYTE
    assert work_bytes(FioParameters(), device()) is None


@given(st.sampled_from(SEQUENTIAL), st.integers(1, 16), st.integers(1, 2**11), targets)
def test_sequential_jobs_have_disjoint_slices_that_cover_the_target(
    pattern: Pattern, jobs: int, blocks: int, target: VolumeTarget
) -> None:
    block_size = 512 * blocks
    given_options = measured(FioParameters(pattern=pattern, jobs=jobs, block_size=block_size), target)
    offset, size = int(given_options["offset"]), int(given_options["size"])
    increment = int(given_options.get("offset_increment", size))
    slices = [(offset + job * increment, offset + job * increment + size) for job in range(jobs)]
    assert size % block_size == 0
    assert slices[0][0] == target.offset
    assert all(end == start for (_, end), (start, _) in pairwise(slices))
    left_over = target.offset + target.size - slices[-1][1]
    assert 0 <= left_over < jobs * block_size


@given(st.sampled_from([pattern for pattern in Pattern if pattern.is_random]), st.integers(1, 16))
def test_random_jobs_share_the_whole_target(pattern: Pattern, jobs: int) -> None:
    given_options = measured(FioParameters(pattern=pattern, jobs=jobs), device(offset=MEBIBYTE))
    assert (given_options["offset"], given_options["size"]) == (str(MEBIBYTE), str(64 * MEBIBYTE))
    assert "offset_increment" not in given_options


@given(st.integers(1, 24 * 3600))
def test_latency_is_logged_in_slices_that_are_neither_short_nor_many(runtime: int) -> None:
    """A line of the log has 1856 numbers; their count bounds what fio and the agent hold in memory."""
    seconds = Timing(ramp_seconds=0, runtime_seconds=runtime).slice_seconds
    assert seconds >= 1
    assert runtime // seconds <= 120
    assert runtime < 20 or runtime // seconds >= 20
    assert runtime > 600 or seconds <= 5, "as long as a polling interval"
    digits = 15
    assert 2 * 120 * 1856 * (digits + len(", ")) < 64 * MEBIBYTE


@given(any_parameters(), st.integers(1, 24 * 3600))
def test_gaps_are_logged_as_finely_as_keeps_the_log_small(parameters: FioParameters, runtime: int) -> None:
    width = gap_milliseconds(parameters, Timing(ramp_seconds=0, runtime_seconds=runtime))
    lines = 1000 * runtime * parameters.jobs * len(parameters.pattern.operations) / width
    assert width in {10, 20, 25, 50, 100, 200, 250, 500, 1000}
    assert lines <= 100_000 or width == 1000
    assert width == 10 or 2.5 * lines >= 100_000


def test_a_minute_of_one_job_is_logged_in_hundredths_of_a_second() -> None:
    assert measured(FioParameters(), device())["log_avg_msec"] == "10"


def test_mixed_pattern_names_share_and_rates() -> None:
    parameters = FioParameters(pattern=Pattern.RANDRW, read_percent=70, rate_iops=1000, jobs=2)
    given_options = measured(parameters, device())
    assert (given_options["rwmixread"], given_options["rate_iops"]) == ("70", "350,150")


def test_random_arrivals_are_requested_only_if_asked_for() -> None:
    poisson = measured(FioParameters.model_validate({"rateIops": 100, "arrivals": "Poisson"}), device(path="/dev/a:b"))
    assert poisson["read_iolog"] == "/prepare/arrivals"
    # Unlike in `filename`, a colon separates nothing.
    assert (poisson["replay_redirect"], poisson["filename"]) == ("/dev/a:b", r"/dev/a\:b")
    assert "rate_iops" not in poisson
    for fields in ({"rateIops": 100, "arrivals": "Even"}, {"rateIops": 100}):
        even = measured(FioParameters.model_validate(fields), device())
        assert not {"read_iolog", "replay_redirect"} & even.keys()


def test_more_arrivals_than_fio_can_hold_are_refused() -> None:
    parameters = FioParameters.model_validate({"rateIops": 50_000, "arrivals": "Poisson"})
    context = context_of(device())
    FIO.command(parameters, replace(context, timing=Timing(ramp_seconds=10, runtime_seconds=60)))
    with pytest.raises(ValueError, match=r"more than 4000000 operations in 500 s.*at most 8000, or shorten"):
        FIO.command(parameters, replace(context, timing=Timing(ramp_seconds=90, runtime_seconds=400)))


def test_colons_in_a_path_do_not_separate_files() -> None:
    assert measured(FioParameters(), device(path="/dev/disk/by-path/pci-0:1"))["filename"] == (
        r"/dev/disk/by-path/pci-0\:1"
    )


@pytest.mark.parametrize(("pattern", "jobs"), [(Pattern.RANDREAD, 1), (Pattern.READ, 4)])
def test_target_must_hold_a_block_for_each_slice(pattern: Pattern, jobs: int) -> None:
    parameters = FioParameters(pattern=pattern, jobs=jobs, block_size=2 * MEBIBYTE)
    with pytest.raises(ValueError, match=f"needs {2 * jobs}Mi"):
        measure_command(parameters, context_of(device(size=2 * jobs * MEBIBYTE - MEBIBYTE)))
