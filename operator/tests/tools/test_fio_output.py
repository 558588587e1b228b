import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.api.json_reader import OutputError
from plimsoll.measure.histogram import Histogram
from plimsoll.measure.sample import LatencySample
from plimsoll.tools.base import Output
from plimsoll.tools.fio.parameters import FioParameters
from plimsoll.tools.reading import bounded

from .conftest import Golden, load, parse

Goldens = Callable[..., Golden]


def decoded(golden: Golden) -> Any:  # a document of any shape
    return json.loads(golden.document[golden.document.index("{\n") :])


def changed(golden: Golden, path: str, value: object) -> Golden:
    """Set a field, or remove it if the value is None."""
    document = decoded(golden)
    node, *parents, last = document, *path.split(".")
    for key in parents:
        node = node[int(key) if isinstance(node, list) else key]
    place = int(last) if isinstance(node, list) else last
    if value is None:
        del node[place]
    else:
        node[place] = value
    return golden.with_document(json.dumps(document))


EXPECTED = {
    ("randread-4k-qd16", "3.33"): {"read": (10000, 40960000)},
    ("randread-4k-qd16", "3.39"): {"read": (10000, 40960000)},
    ("randread-4k-qd16", "3.41"): {"read": (10000, 40960000)},
    ("randwrite-4k-qd1", "3.33"): {"write": (2500, 10240000)},
    ("randwrite-4k-qd1", "3.39"): {"write": (2500, 10240000)},
    ("randwrite-4k-qd1", "3.41"): {"write": (2500, 10240000)},
    ("randrw70-8k", "3.33"): {"read": (3500, 28672000), "write": (1500, 12288000)},
    ("randrw70-8k", "3.39"): {"read": (3500, 28672000), "write": (1500, 12288000)},
    ("randrw70-8k", "3.41"): {"read": (3500, 28672000), "write": (1500, 12288000)},
    ("write-fsync", "3.33"): {"write": (2500, 10240000), "sync": (312, 0)},
    ("write-fsync", "3.39"): {"write": (2500, 10240000), "sync": (312, 0)},
    ("write-fsync", "3.41"): {"write": (2501, 10244096), "sync": (312, 0)},
    ("numjobs2", "3.33"): {"read": (8000, 32768000)},
    ("numjobs2", "3.39"): {"read": (8000, 32768000)},
    ("numjobs2", "3.41"): {"read": (8000, 32768000)},
    ("randrw-jobs2-ramp", "3.33"): {"read": (3501, 28680192), "write": (1501, 12296192)},
    ("randrw-jobs2-ramp", "3.39"): {"read": (3501, 28680192), "write": (1501, 12296192)},
    ("randrw-jobs2-ramp", "3.41"): {"read": (3501, 28680192), "write": (1501, 12296192)},
    ("read-128k-qd256", "3.33"): {"read": (5000, 655360000)},
    ("read-128k-qd256", "3.39"): {"read": (5000, 655360000)},
    ("read-128k-qd256", "3.41"): {"read": (5000, 655360000)},
    ("trim", "3.33"): {"trim": (2500, 163840000)},
    ("trim", "3.39"): {"trim": (2496, 163577856)},
    ("trim", "3.41"): {"trim": (2501, 163905536)},
}


@pytest.mark.parametrize("case", sorted({case for case, _ in EXPECTED}))
def test_totals_are_those_of_the_document(golden: Goldens, version: str, case: str) -> None:
    measurement = golden(case).parse()
    assert (measurement.tool, measurement.tool_version) == ("fio", version)
    assert measurement.runtime == pytest.approx(5 * 10**9, abs=2_000_000)
    assert (measurement.errors, measurement.warnings) == ((), ())
    found = {sample.operation: (sample.ios, sample.bytes) for sample in measurement.operations}
    assert found == EXPECTED[case, version]


@pytest.mark.parametrize("case", ["randread-4k-qd16", "randrw70-8k", "write-fsync", "trim", "ramp", "stall"])
def test_percentiles_of_the_histogram_are_those_fio_printed(golden: Goldens, case: str) -> None:
    (job,) = decoded(golden(case))["jobs"]
    for sample in golden(case).parse().operations:
        printed = job[sample.operation]["lat_ns"]
        histogram = histogram_of(sample.latency)
        assert {key: histogram.percentile(float(key)) for key in printed["percentile"]} == printed["percentile"]
        assert histogram.total == sample.latency.count == sample.ios
        assert sample.latency.mean_nanoseconds == pytest.approx(printed["mean"])
        assert sample.latency.standard_deviation_nanoseconds == pytest.approx(printed["stddev"])
        assert sample.latency.max_nanoseconds == printed["max"]


def histogram_of(latency: LatencySample) -> Histogram:
    assert latency.histogram is not None
    return Histogram.decode(latency.histogram)


def test_jobs_are_merged_exactly(golden: Goldens) -> None:
    jobs = [job["read"]["lat_ns"] for job in decoded(golden("numjobs2"))["jobs"]]
    latency = golden("numjobs2").operation("read").latency
    assert latency.count == sum(job["N"] for job in jobs)
    assert latency.mean_nanoseconds == pytest.approx(sum(job["mean"] * job["N"] for job in jobs) / latency.count)
    assert latency.min_nanoseconds == min(job["min"] for job in jobs)
    assert latency.max_nanoseconds == max(job["max"] for job in jobs)
    assert histogram_of(latency).total == latency.count


def test_other_jobs_make_no_difference(golden: Goldens) -> None:
    original = golden("numjobs2")
    document = decoded(original)
    document["jobs"].insert(0, {**document["jobs"][0], "jobname": "other"})
    measurement = original.with_document(json.dumps(document)).parse()
    assert measurement.operations == original.parse().operations


@pytest.mark.parametrize("case", ["randread-4k-qd16", "randrw70-8k", "numjobs2", "trim", "ramp", "stall", "sigterm"])
def test_cells_add_up_to_the_totals(golden: Goldens, case: str) -> None:
    measurement = golden(case).parse()
    for sample in measurement.operations:
        assert sample.cells is not None
        assert sum(sample.cells.ios) == pytest.approx(sample.ios)
        assert sum(sample.cells.bytes) == pytest.approx(sample.bytes)
        assert len(sample.cells.ios) == -(-measurement.runtime // sample.cells.width_nanoseconds)


def test_stall_shows_as_cells_without_io(golden: Goldens) -> None:
    cells = golden("stall").operation("read").cells
    assert cells is not None
    assert [round(count, -2) for count in cells.ios[:8]] == [500, 0, 500, 0, 0, 500, 0, 500]
    assert cells.ios[1] == cells.ios[3] == cells.ios[4] == cells.ios[6] == 0


def test_series_counts_from_the_end_of_the_ramp(golden: Goldens) -> None:
    measurement = golden("ramp").parse()
    cells = measurement.operations[0].cells
    assert measurement.runtime == 4_001_000_000
    assert cells is not None
    assert [round(count, -1) for count in cells.ios] == [1000, 1000, 1000, 1000, 0]


def test_start_is_printed_by_new_versions_and_estimated_for_old_ones(golden: Goldens, version: str) -> None:
    case = golden("ramp")
    document, measurement = decoded(case), case.parse()
    job_start = document["jobs"][0].get("job_start")
    assert measurement.start_is_estimated == (version == "3.33") == (job_start is None)
    assert measurement.started_at == (job_start or document["timestamp_ms"] - 4001) * 10**6


def test_recorded_versions_end_their_ramp_in_time(golden: Goldens) -> None:
    case = golden("ramp")
    assert parse(case.parameters, case.output, ramp=2).ramp_step == 0


@pytest.mark.parametrize(
    ("number", "step"),
    [("3.36", 0), ("3.41", 0), ("3.42", 10**9), ("3.42-12-g0a1b2c3", 10**9), ("4.0", 10**9), ("nightly", 0)],
)
def test_later_versions_look_once_a_second_whether_their_ramp_is_over(number: str, step: int) -> None:
    case = changed(load("3.41", "ramp"), "fio version", f"fio-{number}")
    assert parse(case.parameters, case.output, ramp=2).ramp_step == step
    assert parse(case.parameters, case.output, ramp=0).ramp_step == 0, "it has no ramp"


def test_window_is_the_common_time_of_all_jobs(one_golden: Golden) -> None:
    two = load("3.39", "numjobs2")
    start = decoded(two)["jobs"][0]["job_start"]
    measurement = changed(two, "jobs.1.job_start", start + 200).parse()
    assert measurement.started_at == (start + 200) * 10**6
    assert measurement.runtime == 4_801_000_000


def test_jobs_that_start_far_apart_have_no_series() -> None:
    two = load("3.39", "numjobs2")
    measurement = changed(two, "jobs.1.job_start", decoded(two)["jobs"][0]["job_start"] + 700).parse()
    assert measurement.operations[0].cells is None
    assert measurement.warnings == (
        "no series, and so no latency over time, of read operations: the jobs began to measure 700 ms apart",
    )


def test_jobs_without_series_have_the_sum_of_their_rates() -> None:
    """Sixteen jobs of slow operations, each of which ends with its last one: 60 to 75 s."""
    two = load("3.39", "numjobs2")
    document = decoded(two)
    job, runtimes = document["jobs"][0], [60_000 + 1000 * number for number in range(16)]
    document["jobs"] = [with_runtime(job, runtime) for runtime in runtimes]
    parameters = FioParameters.model_validate({**two.parameters.model_dump(mode="json", by_alias=False), "jobs": 16})
    files = {**two.output.files, "fio.json": json.dumps(document)}
    measurement = parse(parameters, two.with_files(files).output)
    (sample,) = measurement.operations
    each = sample.ios // 16
    assert sample.cells is None
    rate = sample.ios / measurement.runtime * 10**9
    assert rate == pytest.approx(sum(each / runtime * 1000 for runtime in runtimes), rel=1e-6)


def with_runtime(job: dict[str, Any], milliseconds: int) -> dict[str, Any]:
    read = {**job["read"], "runtime": milliseconds}
    return {**job, "job_runtime": milliseconds, "read": read}


def test_missing_target_is_an_error_in_fios_words(golden: Goldens) -> None:
    measurement = golden("missing-file").parse()
    assert measurement.errors == ("fio: file creation disallowed by allow_file_create=0",)
    assert measurement.operations[0].ios == 0


@pytest.mark.parametrize(("case", "name"), [("io-error", "EIO (error 5)"), ("no-space", "ENOSPC (error 28)")])
def test_error_of_a_job_is_named(golden: Goldens, case: str, name: str) -> None:
    measurement = golden(case).parse()
    assert measurement.errors[0] == f"job 1 of 1 failed: {name}"
    assert measurement.errors[1].startswith("fio: io_u error on file")
    assert any(re.fullmatch(r"[24] of \d+ \w+ operations did not complete", text) for text in measurement.warnings)


def test_terminated_fio_leaves_a_short_run(golden: Goldens) -> None:
    measurement = golden("sigterm").parse()
    assert measurement.errors == ("fio: terminating on signal 15",)
    assert measurement.runtime < 4 * 10**9
    assert measurement.operations[0].cells is not None


def test_killed_fio_leaves_no_document(golden: Goldens) -> None:
    with pytest.raises(OutputError, match="it is empty"):
        golden("sigkill").parse()


def test_fio_that_never_began_leaves_no_file() -> None:
    output = Output(exit_code=1, stdout="", stderr="fio: bad option\n", files={})
    with pytest.raises(OutputError, match=r"left no fio\.json, exit code 1: fio: bad option"):
        parse(load("3.39", "ramp").parameters, output)


def test_last_of_several_documents_is_used(golden: Goldens) -> None:
    case = golden("status-interval")
    last = json.loads(case.document[case.document.rindex("\n{\n") :])
    measurement = case.parse()
    assert measurement.warnings == ("5 documents in the output; the last one was taken",)
    assert measurement.operations[0].ios == last["jobs"][0]["read"]["lat_ns"]["N"] > 700


def test_remark_of_a_successful_run_is_a_warning(golden: Goldens) -> None:
    measurement = golden("noise").parse()
    assert measurement.errors == ()
    assert any("queue depth will be capped" in text for text in measurement.warnings)


def test_ramp_that_never_ended_is_an_error(one_golden: Golden) -> None:
    empty = {"min": 0, "max": 0, "mean": 0.0, "stddev": 0.0, "N": 0}
    measurement = changed(one_golden, "jobs.0.read.lat_ns", empty).parse()
    assert measurement.errors == ("none of 10000 read operations was timed: fio ended before its ramp did",)
    assert (measurement.operations[0].ios, measurement.operations[0].bytes) == (0, 0)


REQUIRED = [
    "fio version", "timestamp_ms", "jobs", "jobs.0.jobname", "jobs.0.error", "jobs.0.read", "jobs.0.trim",
    "jobs.0.sync", "jobs.0.read.io_bytes", "jobs.0.read.total_ios", "jobs.0.read.runtime", "jobs.0.read.short_ios",
    "jobs.0.read.drop_ios", "jobs.0.read.lat_ns", "jobs.0.read.lat_ns.N", "jobs.0.read.lat_ns.bins",
    "jobs.0.read.lat_ns.mean", "jobs.0.read.lat_ns.stddev", "jobs.0.read.lat_ns.min", "jobs.0.read.lat_ns.max",
    "jobs.0.sync.lat_ns.N", "jobs.0.job_runtime", "jobs.0.read.slat_ns", "jobs.0.read.slat_ns.N",
    "jobs.0.read.slat_ns.mean", "jobs.0.read.slat_ns.bins", "jobs.0.read.clat_ns",
    "jobs.0.read.clat_ns.N", "jobs.0.read.clat_ns.bins",
]  # fmt: skip


@pytest.mark.parametrize("path", REQUIRED)
def test_missing_field_is_an_error_that_names_it(one_golden: Golden, path: str) -> None:
    name = path.replace("jobs.0", "jobs[0]")
    with pytest.raises(OutputError, match=f"^{re.escape(name)} is missing$"):
        changed(one_golden, path, None).parse()


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("jobs.0.read.io_bytes", -1, r"^jobs\[0\]\.read\.io_bytes is not a whole number"),
        ("jobs.0.read.lat_ns.mean", float("nan"), r"^jobs\[0\]\.read\.lat_ns\.mean is not a number"),
        ("jobs.0.read.lat_ns.N", 9999, r"^jobs\[0\]\.read\.lat_ns\.bins holds 10000 operations, but N is 9999$"),
        ("jobs.0.read.lat_ns.bins.128", 1, r"bins\.128 is not a bin of the known histogram layout"),
        ("jobs.0.read.lat_ns.bins.fast", 1, r"bins\.fast is not a bin of the known histogram layout"),
        ("jobs.0.read.lat_ns.min", 1, r"^jobs\[0\]\.read\.lat_ns\.min is 1, but the outermost bin is \d+$"),
        ("jobs.0.read.lat_ns.max", 10**12, r"^jobs\[0\]\.read\.lat_ns\.max is 10{12}, but the outermost bin"),
        ("jobs.0.read.lat_ns.mean", 1.5, r"^jobs\[0\]\.read\.lat_ns\.mean is 1\.5, but the bins yield about \d+$"),
        ("jobs.0.read.lat_ns.stddev", 0.5, r"^jobs\[0\]\.read\.lat_ns\.stddev is 0\.5, but the bins yield about"),
        ("jobs.0.read.slat_ns.mean", 10**12, r"^jobs\[0\]\.read\.slat_ns\.mean is 10{12}\.0, but the bins yield"),
        (
            "jobs.0.read.io_bytes",
            4096,
            r"^jobs\[0\]\.read\.io_bytes is 4096, but by lat_ns\.N 10000 operations of 4096 bytes completed",
        ),
        ("jobs.0.job_runtime", 1, r"^jobs\[0\]\.job_runtime is 1 ms, but the longest runtime of a direction 5001 ms$"),
        ("jobs.0.job_start", 10**15, r"^jobs\[0\]\.job_start is not a whole number"),
        ("jobs.0.jobname", "other", r"^jobs has 0 jobs named measure, but 1 were started$"),
    ],
)
def test_wrong_value_is_an_error_that_names_it(one_golden: Golden, path: str, value: object, words: str) -> None:
    with pytest.raises(OutputError, match=words):
        changed(one_golden, path, value).parse()


UNKNOWN = [
    "new", "jobs.0.new", "jobs.0.read.new", "jobs.0.sync.new", "jobs.0.read.lat_ns.new", "jobs.0.read.clat_ns.new",
    "jobs.0.trim.slat_ns.new",
]  # fmt: skip


@pytest.mark.parametrize("path", UNKNOWN)
def test_unknown_fields_are_ignored(one_golden: Golden, path: str) -> None:
    assert changed(one_golden, path, 1).parse() == one_golden.parse()


def test_messages_are_bounded() -> None:
    assert bounded(map(str, range(99)))[-1] == "and 49 more"


def test_missing_log_leaves_everything_but_the_series(one_golden: Golden) -> None:
    measurement = one_golden.with_files({"fio.json": one_golden.document}).parse()
    assert measurement.operations[0].cells is None
    assert measurement.operations[0].ios == 10000
    words = "no series, and so no latency over time, of read operations: fio_bw.1.log is missing"
    assert measurement.warnings == (words,)


def attempt(golden: Golden) -> None:
    """Parse, and send what comes of it as an agent would."""
    try:
        text = golden.parse().model_dump_json()
    except OutputError as error:
        text = str(error)
    text.encode()


def test_truncated_document_is_never_accepted(one_golden: Golden) -> None:
    document = one_golden.document.rstrip()
    # Every place in what is read first and last, and a sample of the long middle.
    for end in (*range(3000), *range(3000, len(document) - 1500, 97), *range(len(document) - 1500, len(document))):
        with pytest.raises(OutputError):
            one_golden.with_document(document[:end]).parse()


TOKENS = ["-1", "NaN", "1e999", "null", "[]", "{}", '"\\ud800"', "9" * 5000, "true", "0", "", "{", "}", "\n{", "\x00"]


@settings(max_examples=300)
@given(data=st.data())
def test_mutated_document_is_a_measurement_or_an_output_error(one_golden: Golden, data: st.DataObject) -> None:
    document = one_golden.document
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(document)))
        length = data.draw(st.integers(0, 12))
        document = (
            document[:start] + data.draw(st.sampled_from(TOKENS) | st.text(max_size=5)) + document[start + length :]
        )
    attempt(one_golden.with_document(document))


@given(log=st.text(max_size=200) | st.from_regex(r"(\d{1,16}, \d{1,16}, [0-3], 0, 0\n){0,9}"))
def test_any_log_is_a_series_or_a_warning(one_golden: Golden, log: str) -> None:
    measurement = one_golden.with_files({**one_golden.output.files, "fio_bw.1.log": log}).parse()
    cells = measurement.operations[0].cells
    assert (cells is None) == bool(measurement.warnings)
    assert cells is None or sum(cells.ios) == pytest.approx(10000)


@pytest.mark.parametrize("case", ["randread-4k-qd16", "randrw70-8k", "randrw-jobs2-ramp"])
def test_submission_is_timed_over_all_jobs(golden: Goldens, case: str) -> None:
    jobs = decoded(golden(case))["jobs"]
    for sample in golden(case).parse().operations:
        timed = [job[sample.operation]["slat_ns"] for job in jobs]
        mean = sum(each["mean"] * each["N"] for each in timed) / sum(each["N"] for each in timed)
        assert sample.submission_nanoseconds == pytest.approx(mean)


@pytest.mark.parametrize("case", ["noise", "trim"])
def test_submission_that_is_the_operation_itself_is_not_timed(golden: Goldens, case: str) -> None:
    (sample,) = golden(case).parse().operations
    assert sample.submission_nanoseconds is None


def test_in_flight_is_known_only_for_closed_loops(golden: Goldens) -> None:
    measurement = golden("randrw-jobs2-ramp").parse()
    assert (measurement.submitters, measurement.in_flight, measurement.bypasses_cache) == (2, 8, True)
    assert golden("write-fsync").parse().in_flight is None
    assert golden("trim").parse().in_flight is None
    limited = FioParameters.model_validate({"rateIops": 100, "ioDepth": 16, "directIo": False})
    measurement = parse(limited, golden("randread-4k-qd16").output)
    assert (measurement.in_flight, measurement.bypasses_cache) == (None, False)
