"""Fields of fio's JSON from 3.33 to 3.42, so that a new one is noticed (fio: `stat.c`)."""

ROOT_FIELDS = frozenset(
    {"fio version", "timestamp", "timestamp_ms", "time", "global options", "jobs", "disk_util", "cpu_idleness"}
)
JOB_FIELDS = frozenset(
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
DIRECTION_FIELDS = frozenset(
    {
        "io_bytes", "io_kbytes", "bw_bytes", "bw", "iops", "runtime", "total_ios", "short_ios", "drop_ios",
        "slat_ns", "clat_ns", "lat_ns", "prios", "cachehit",
        "bw_min", "bw_max", "bw_agg", "bw_mean", "bw_dev", "bw_samples",
        "iops_min", "iops_max", "iops_mean", "iops_stddev", "iops_samples",
    }
)  # fmt: skip
SYNC_FIELDS = frozenset({"total_ios", "lat_ns"})
LATENCY_FIELDS = frozenset({"min", "max", "mean", "stddev", "N", "percentile", "bins"})
