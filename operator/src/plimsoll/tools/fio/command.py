"""Arguments of fio. Comments name behaviour observed with 3.33 and 3.39."""

from collections.abc import Iterator, Mapping

from plimsoll.api.line import Vary
from plimsoll.api.names import Operation
from plimsoll.api.quantity import format_quantity
from plimsoll.api.storage import RANDOM_DATA, DataContent
from plimsoll.measure.histogram import PERCENTILES
from plimsoll.measure.line.observe import ALLOWED_SECONDS
from plimsoll.tools.base import Command, HeldInput, StepContext, Timing
from plimsoll.tools.fio.distribution import scattered_blocks
from plimsoll.tools.fio.parameters import SPARE_SECONDS, Engine, FioParameters, Trace, traced_seconds
from plimsoll.tools.fio.rules import MAX_ARRIVALS
from plimsoll.tools.target import DataSet, ImageTarget, VolumeTarget

JOB = "measure"  # name of every measuring job in the document
DOCUMENT = "fio.json"
LOG_MILLISECONDS = 1000  # interval of the rate logs
_LOG_PREFIX = "fio"
_TRACE = "arrivals"


def measure_command(parameters: FioParameters, context: StepContext) -> Command:
    """Return the command of a measurement; ValueError if the target is too small, or there are too many arrivals."""
    target, timing = data_set(context), context.timing
    size = _slice_bytes(parameters, target)
    most, seconds = parameters.most_load(Vary.RATE, timing), traced_seconds(timing)
    if parameters.is_open_loop and (parameters.rate_iops or 0) > most:
        raise ValueError(
            f"rateIops {parameters.rate_iops} with arrivals Poisson offers more than {MAX_ARRIVALS} operations in "
            f"{seconds} s, including {SPARE_SECONDS} s of reserve; lower it to at most {most}, or shorten "
            "runtimeSeconds, or use more clients"
        )
    return Command(
        argv=(
            "fio",
            *output_arguments(context.work_directory),
            # Rates while it runs. With `--status-interval`, fio before 3.42 can hang.
            "--eta=always",
            "--eta-interval=2s",
            f"--name={JOB}",
            *target_arguments(target, parameters.engine, direct=parameters.direct_io),
            f"--offset={offset_of(target)}",
            f"--size={size}",
            *([f"--offset_increment={size}"] if parameters.jobs > 1 and not parameters.pattern.is_random else []),
            *_load(parameters),
            # The trace, whose file is replaced by the target. fio reads it as a whole before it begins: in portions, it
            # would stop for milliseconds to read each.
            *(
                [
                    f"--read_iolog={_escaped(context.prepared_directory)}/{_TRACE}",
                    f"--replay_redirect={context.target_of(VolumeTarget).path}",
                ]
                if parameters.is_open_loop
                else []
            ),
            *(["--time_based=1"] if parameters.until is None else []),
            f"--ramp_time={timing.ramp_seconds}s",
            f"--runtime={timing.runtime_seconds}s",
            *seed_arguments(context.seed),
            # What the parser needs: latency histograms, and logs of each job.
            "--group_reporting=0",
            *(f"--{kind}_percentiles=1" for kind in ("lat", "clat", "slat")),
            f"--percentile_list={':'.join(map(str, PERCENTILES))}",
            *(f"--write_{kind}_log={context.work_directory}/{_LOG_PREFIX}" for kind in ("iops", "bw", "hist", "lat")),
            # The interval of all logs except the histogram log; rate logs get at most one line per sample.
            f"--log_avg_msec={gap_milliseconds(parameters, timing)}",
            *(f"--{kind}avgtime={LOG_MILLISECONDS}" for kind in ("bw", "iops")),
            f"--log_hist_msec={1000 * timing.slice_seconds}",
            "--per_job_logs=1",
            # Without it, fio calibrates the processor's clock for 64 ms, after it has read its input.
            "--clocksource=clock_gettime",
        ),
        # A second file of jobs, without any: fio reads it before it opens the target, and refuses half a name.
        held=HeldInput(arguments=("-",), unfinished="[global]\ndescript", rest="ion=T0\n"),
        environment=cache_environment(target),
    )


def trace_command(parameters: FioParameters, context: StepContext) -> Command:
    """Return the command of the step that writes the arrivals; raises as `measure_command` does."""
    target = data_set(context)
    trace = Trace(
        seed=context.seed,
        rate=parameters.rate_iops or 0,
        seconds=traced_seconds(context.timing),
        block_sizes=parameters.block_sizes,
        offset=offset_of(target),
        blocks=_slice_bytes(parameters, target) // min(parameters.block_sizes),
        is_random=parameters.pattern.is_random,
        skew=parameters.skew,
        read_percent=parameters.shares.get(Operation.READ, 0),
        delay=1e6 * ALLOWED_SECONDS,
    )
    return Command(argv=(), inputs={_TRACE: trace})


def data_set(context: StepContext) -> DataSet:
    """Return the target of a step; TypeError if it is neither a volume nor an image."""
    return context.target if isinstance(context.target, ImageTarget) else context.target_of(VolumeTarget)


def output_arguments(work_directory: str) -> tuple[str, str]:
    return f"--output={work_directory}/{DOCUMENT}", "--output-format=json+"


def target_arguments(target: DataSet, engine: Engine | None = None, *, direct: bool = True) -> Iterator[str]:
    """Yield the file, device or image, and whether its cache is bypassed, for librbd as in `cache_environment`."""
    if isinstance(target, ImageTarget):
        yield from (f"--ioengine={Engine.RBD}", f"--pool={target.pool}", f"--rbdname={target.image}")
        yield from (f"--clientname={target.user}", f"--direct={int(not target.cache)}")
    else:
        yield f"--filename={_escaped(target.path)}"
        yield from (f"--ioengine={engine or Engine.LIBAIO}", f"--direct={int(direct)}")


def cache_environment(target: DataSet) -> Mapping[str, str]:
    """Return the environment that turns librbd's cache on or off, except if `rbd config` of image or pool does."""
    return {"CEPH_ARGS": f"--rbd_cache={str(target.cache).lower()}"} if isinstance(target, ImageTarget) else {}


def seed_arguments(seed: int) -> tuple[str, ...]:
    """Return the seed, which fio multiplies by the job's number so that jobs differ."""
    # fio 3.33 ignores it unless `randrepeat` is off. A seed of 0 makes all jobs alike; fio refuses one beyond 63 bits.
    return "--randrepeat=0", f"--randseed={1 + seed % (2**63 - 1)}", "--random_generator=tausworthe64"


def content_arguments(content: DataContent) -> Iterator[str]:
    """Yield how far written data can be compressed and deduplicated; needs buffers that are refilled."""
    if content.compress_percent:
        yield f"--buffer_compress_percentage={content.compress_percent}"
    if content.dedupe_percent:
        yield f"--dedupe_percentage={content.dedupe_percent}"


def offset_of(target: DataSet) -> int:
    """Return the byte at which the data set begins."""
    return target.offset if isinstance(target, VolumeTarget) else 0


def work_bytes(parameters: FioParameters, target: DataSet) -> int | None:
    """Return the bytes after which the only job ends; None if it ends when the runtime is over."""
    return None if parameters.until is None else _slice_bytes(parameters, target)


def gap_milliseconds(parameters: FioParameters, timing: Timing) -> int:
    """Return the interval of the latency log, for logs below 3 MB except with many jobs for hours."""
    logged = 1000 * timing.runtime_seconds * parameters.jobs * len(parameters.pattern.operations)
    widths = (10, 20, 25, 50, 100, 200, 250, 500)
    return next((width for width in widths if logged <= 100_000 * width), LOG_MILLISECONDS)


def log_name(kind: str, job: int) -> str:
    """Return the name of a log file in the work directory: `fio_bw.1.log`; jobs count from 1."""
    return f"{_LOG_PREFIX}_{kind}.{job}.log"


def _escaped(path: str) -> str:
    """Return a path in which colons do not separate two names."""
    return path.replace(":", "\\:")


def _slice_bytes(parameters: FioParameters, target: DataSet) -> int:
    """Return the bytes of the target that each job uses; sequential jobs would find each other's blocks in a cache."""
    parts = 1 if parameters.pattern.is_random else parameters.jobs
    unit, largest = min(parameters.block_sizes), max(parameters.block_sizes)
    blocks = target.size // parts // unit
    size = (blocks if parameters.skew is None else scattered_blocks(blocks)) * unit
    if size < largest:
        least = format_quantity(parts * largest)
        raise ValueError(f"the target has {format_quantity(target.size)}, but {parameters.label()} needs {least}")
    return size


def _load(parameters: FioParameters) -> Iterator[str]:
    yield f"--rw={parameters.pattern}"
    if parameters.pattern.is_mixed:
        yield f"--rwmixread={parameters.shares[Operation.READ]}"
    sizes = parameters.block_sizes
    if parameters.block_size_mix is None:
        yield f"--bs={parameters.block_size}"
    else:
        yield f"--bssplit={':'.join(f'{size}/{percent}' for size, percent in sizes.items())}"
    if parameters.skew is not None and not parameters.is_open_loop:
        yield f"--random_distribution={parameters.random_distribution}"
    yield from (f"--iodepth={parameters.io_depth}", f"--numjobs={parameters.jobs}", "--thread=1")
    # A map of visited blocks, which costs memory and time, only where each block is to be visited once.
    yield f"--norandommap={int(parameters.until is None)}"
    yield from ("--allow_file_create=0", "--continue_on_error=none")
    if parameters.pattern.writes:
        # Generating new random data took 40 % of a 1 MiB write at depth 1. Scrambling changes some bytes in every 512
        # instead: no write compresses by more than a tenth. But writes below 64 KiB, Ceph's largest blob, would
        # compress together, to a twentieth.
        is_scrambled = min(sizes) >= 64 * 2**10 and parameters.content == RANDOM_DATA
        yield "--scramble_buffers=1" if is_scrambled else "--refill_buffers=1"
        yield from content_arguments(parameters.content)
    if parameters.fsync_every:
        yield f"--fsync={parameters.fsync_every}"
    if parameters.rate_per_job and not parameters.is_open_loop:
        # In the order read, write; a single value applies to the only operation.
        yield f"--rate_iops={','.join(map(str, parameters.rate_per_job.values()))}"
