"""Arguments of a measuring fio.

Sources: fio's HOWTO; what 3.33 and 3.39 were seen to do is said where it decides something.
"""

from collections.abc import Iterator

from plimsoll.api.names import Operation
from plimsoll.api.quantity import format_quantity
from plimsoll.measure.latency import PERCENTILES
from plimsoll.tools.base import Command, DataSet, StepContext, Timing
from plimsoll.tools.fio.parameters import FioParameters
from plimsoll.tools.fio.target import data_set, environment, offset_of, refuse_unfit, target_arguments

JOB = "measure"
"""Name of every measuring job; the document is read by it."""
DOCUMENT = "fio.json"
LOG_MILLISECONDS = 1000
"""Width of an interval of the logs of rates."""
GAP_MILLISECONDS = (10, 20, 25, 50, 100, 200, 250, 500, LOG_MILLISECONDS)
"""Possible widths of an interval of the log of latency, from which gaps between completions are read."""

STATUS_SECONDS = 2
"""How often fio tells its rates, which are then those of that time."""

_LOG_PREFIX = "fio"
_MAX_SEED = 2**63 - 1
_MAX_GAP_LINES = 100_000
_SLICES = 20
_LARGE_BLOCK = 64 * 2**10
"""As large as what storage compresses at once: Ceph's blobs have at most so many bytes."""


def measure_command(parameters: FioParameters, context: StepContext) -> Command:
    """Return the command of a measurement.

    Raises:
        ValueError: the target is too small for the block size and the jobs, is a file that is to be trimmed, or is
            reached in another way than the parameters say.

    """
    target = data_set(context)
    refuse_unfit(parameters, target)
    return Command(
        argv=(
            "fio",
            *output_arguments(context.work_directory),
            *_status(),
            f"--name={JOB}",
            *target_arguments(target, parameters.engine, direct=parameters.direct_io),
            *_slice(parameters, target),
            *_load(parameters),
            *_timing(context),
            *seed_arguments(context.seed),
            *_report(parameters, context.timing, context.work_directory),
        ),
        environment=environment(target),
    )


def output_arguments(work_directory: str) -> Iterator[str]:
    """Yield where the document goes, and in which form."""
    yield f"--output={work_directory}/{DOCUMENT}"
    yield "--output-format=json+"


def _status() -> Iterator[str]:
    """Yield how fio tells its rates while it runs.

    About 100 bytes each time. `--status-interval` is nothing for this: with it fio before 3.42 can come to a stop.
    """
    yield "--eta=always"
    yield f"--eta-interval={STATUS_SECONDS}s"


def seed_arguments(seed: int) -> Iterator[str]:
    """Yield the seed; fio multiplies it by the number of the job, so no two jobs go the same way.

    fio 3.33 ignores the seed unless `randrepeat` is off; a seed of 0 would make all jobs alike, and one beyond 63 bits
    is refused.
    """
    yield "--randrepeat=0"
    yield f"--randseed={1 + seed % _MAX_SEED}"
    yield "--random_generator=tausworthe64"


def slice_seconds(timing: Timing) -> int:
    """Return the width of a slice of latency over time: a twentieth of the runtime, in whole seconds.

    For each slice, direction and job fio writes 1856 numbers, 6 to 20 KB, and holds 15 KB until it ends. So there are
    never more than 39 slices, and a job's log stays below 2 MiB however long it runs.
    """
    return max(1, timing.runtime_seconds // _SLICES)


def gap_milliseconds(parameters: FioParameters, timing: Timing) -> int:
    """Return the width of an interval of the log of latency.

    For each of them, direction and job fio writes a line of some 25 bytes, to three logs alike, and holds 48 bytes. So
    each kind of log stays below 3 MB, but for runs of many hours and jobs, whose intervals are a second long.
    """
    logged = 1000 * timing.runtime_seconds * parameters.jobs * len(parameters.pattern.operations)
    return next((width for width in GAP_MILLISECONDS if logged <= _MAX_GAP_LINES * width), GAP_MILLISECONDS[-1])


def log_name(kind: str, job: int) -> str:
    """Return the name of a log file in the work directory: `fio_bw.1.log`; jobs count from 1."""
    return f"{_LOG_PREFIX}_{kind}.{job}.log"


def _slice(parameters: FioParameters, target: DataSet) -> Iterator[str]:
    """Yield which part of the target each job uses, in whole blocks.

    Sequential jobs over the same range would run in step and find each other's blocks in a cache, so each gets its own;
    less than one block for each job is left over at the end of the target.
    """
    parts = 1 if parameters.pattern.is_random else parameters.jobs
    size = target.size // parts // parameters.block_size * parameters.block_size
    if not size:
        least = format_quantity(parts * parameters.block_size)
        raise ValueError(f"the target has {format_quantity(target.size)}, but {parameters.label()} needs {least}")
    yield f"--offset={offset_of(target)}"
    yield f"--size={size}"
    if parts > 1:
        yield f"--offset_increment={size}"


def _load(parameters: FioParameters) -> Iterator[str]:
    yield f"--rw={parameters.pattern}"
    if parameters.pattern.is_mixed:
        yield f"--rwmixread={parameters.shares[Operation.READ]}"
    yield f"--bs={parameters.block_size}"
    yield f"--iodepth={parameters.io_depth}"
    yield f"--numjobs={parameters.jobs}"
    yield "--thread=1"
    yield "--norandommap=1"
    yield "--allow_file_create=0"
    yield "--continue_on_error=none"
    if parameters.pattern.writes:
        # New random data for every write is made by the submitting thread: at depth 1 that took 40 % of the time of a
        # 1 MiB write. Scrambling changes some bytes in every 512 instead, so that no two writes are alike and none
        # compresses by more than a tenth; but small writes that storage joins would compress together, to a twentieth.
        yield "--scramble_buffers=1" if parameters.block_size >= _LARGE_BLOCK else "--refill_buffers=1"
    if parameters.fsync_every:
        yield f"--fsync={parameters.fsync_every}"
    if parameters.rate_per_job:
        # In the order read, write; a single value holds for whatever the pattern does.
        yield f"--rate_iops={','.join(map(str, parameters.rate_per_job.values()))}"


def _timing(context: StepContext) -> Iterator[str]:
    yield "--time_based=1"
    yield f"--ramp_time={context.timing.ramp_seconds}s"
    yield f"--runtime={context.timing.runtime_seconds}s"


def _report(parameters: FioParameters, timing: Timing, work_directory: str) -> Iterator[str]:
    """Yield what the parser needs: latency histograms, and the logs of each job."""
    yield "--group_reporting=0"
    for kind in ("lat", "clat", "slat"):
        yield f"--{kind}_percentiles=1"
    yield f"--percentile_list={':'.join(map(str, PERCENTILES))}"
    for kind in ("iops", "bw", "hist", "lat"):
        yield f"--write_{kind}_log={work_directory}/{_LOG_PREFIX}"
    # The interval of all logs but that of histograms; those of rates get no more lines than they have samples.
    yield f"--log_avg_msec={gap_milliseconds(parameters, timing)}"
    for kind in ("bw", "iops"):
        yield f"--{kind}avgtime={LOG_MILLISECONDS}"
    yield f"--log_hist_msec={1000 * slice_seconds(timing)}"
    yield "--per_job_logs=1"
