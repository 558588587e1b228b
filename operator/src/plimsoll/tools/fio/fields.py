"""The fields of fio's JSON from 3.33 to 3.42 (fio: `stat.c`), so that new ones are noticed."""

from collections.abc import Iterator

from plimsoll.api.names import Operation
from plimsoll.tools.fio.series import DIRECTIONS
from plimsoll.tools.reading import JsonObject

_ROOT = frozenset(
    {"fio version", "timestamp", "timestamp_ms", "time", "global options", "jobs", "disk_util", "cpu_idleness"}
)
_JOB = frozenset(
    {
        "jobname", "groupid", "job_start", "error", "eta", "elapsed", "job options",
        "read", "write", "trim", "sync", "mixed",
        "job_runtime", "usr_cpu", "sys_cpu", "ctx", "majf", "minf",
        "iodepth_level", "iodepth_submit", "iodepth_complete", "latency_ns", "latency_us", "latency_ms",
        "total_err", "first_error",
        "latency_depth", "latency_target", "latency_target_ns", "latency_percentile", "latency_window",
        "latency_window_us", "desc", "block", "steadystate", "zone_resets",
    }
)  # fmt: skip
_DIRECTION = frozenset(
    {
        "io_bytes", "io_kbytes", "bw_bytes", "bw", "iops", "runtime", "total_ios", "short_ios", "drop_ios",
        "slat_ns", "clat_ns", "lat_ns", "prios", "cachehit",
        "bw_min", "bw_max", "bw_agg", "bw_mean", "bw_dev", "bw_samples",
        "iops_min", "iops_max", "iops_mean", "iops_stddev", "iops_samples",
    }
)  # fmt: skip
_SYNC = frozenset({"total_ios", "lat_ns"})
_LATENCY = frozenset({"min", "max", "mean", "stddev", "N", "percentile", "bins"})


def unknown_fields(root: JsonObject) -> Iterator[str]:
    """Yield the path of every field that is not known."""
    yield from root.unknown(_ROOT)
    for job in root.children("jobs"):
        yield from job.unknown(_JOB)
        for operation in DIRECTIONS:
            direction = job.child(operation)
            yield from direction.unknown(_DIRECTION)
            for kind in ("lat_ns", "clat_ns", "slat_ns"):
                yield from direction.child(kind).unknown(_LATENCY)
        yield from job.child(Operation.SYNC).unknown(_SYNC)
