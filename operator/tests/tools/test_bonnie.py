"""The command of bonnie++, and the lines of comma-separated values that real ones printed."""

import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from plimsoll.api.json_reader import OutputError
from plimsoll.api.names import LatencyKind, Operation
from plimsoll.measure.sample import Measurement, OperationSample
from plimsoll.tools.base import Output, StepContext, StepKind
from plimsoll.tools.bonnie import FORMAT, PHASES, Bonnie, BonnieParameters, read_report
from plimsoll.tools.target import VolumeKind, VolumeTarget
from support.goldens import recorded

from .conftest import replaced, step_context

BONNIE = Bonnie()

MEBIBYTE = 2**20
FILE = VolumeTarget(kind=VolumeKind.FILE, path="/data/plimsoll.data", size=64 * MEBIBYTE)
CONTEXT = step_context(FILE, 0, 60)
GOLDEN = Path(__file__).parent.parent / "golden"
RECORDED: dict[str, dict[str, JsonValue]] = {
    "full": {"size": "128Mi", "chunkSize": "1Ki", "seeks": 16000, "files": 32},
    "small-files": {
        "chunkSize": "1Ki",
        "seeks": 2000,
        "seekProcesses": 2,
        "characters": False,
        "files": 4,
        "maxFileSize": "2Ki",
        "minFileSize": "1Ki",
        "directories": 4,
    },
    "no-characters": {"chunkSize": "1Ki", "characters": False, "files": 4},
    "no-files": {"chunkSize": "1Ki", "files": 0},
    "direct": {
        "size": "16Mi", "chunkSize": "4Ki", "characters": False, "files": 0, "directIo": True, "sync": True
    },
    "too-fast": {"size": "16Mi", "characters": False, "files": 1},
    "stall": {
        "size": "512Mi", "chunkSize": "1Ki", "seeks": 2000, "seekProcesses": 2, "characters": False, "files": 0
    },
}  # fmt: skip
FAILED: dict[str, dict[str, JsonValue]] = {
    "killed": {"files": 1},
    "terminated": {"files": 1},
    "no-space": {"size": "16Mi", "characters": False, "files": 0},
    "no-space-for-characters": {"size": "16Mi", "files": 0},
    "no-inodes": {"size": "16Mi", "characters": False, "files": 1},
}
FILES = [operation for operation in PHASES if "Sequential" in operation or "Random" in operation]
CHARACTERS = [Operation.WRITE_CHARACTERS, Operation.READ_CHARACTERS]


def golden(case: str) -> Output:
    return recorded(f"bonnie-2.00a-{case}")


def parsed(case: str, edit: Callable[[str], str] = str) -> Measurement:
    parameters = BonnieParameters.model_validate({**RECORDED, **FAILED}[case])
    output = golden(case)
    return BONNIE.parse(parameters, CONTEXT, replace(output, stdout=edit(output.stdout)))


def samples(measurement: Measurement) -> dict[Operation, OperationSample]:
    return {sample.operation: sample for sample in measurement.operations}


def command(context: StepContext = CONTEXT, **fields: JsonValue) -> tuple[str, ...]:
    return BONNIE.command(BonnieParameters.model_validate(fields), context).argv


def test_command_is_that_of_the_recordings() -> None:
    assert command(
        replace(CONTEXT, target=replace(FILE, size=128 * MEBIBYTE)), chunkSize="1Ki", seeks=16000, files=32
    ) == (
        *("bonnie++", "-q", "-d", "/data/plimsoll.data.0.files", "-m", "client-0", "-z", "1", "-r", "0"),
        *("-s", "128:1024:16000:5", "-n", "32:0:0:1", "-f3"),
    )


def test_options_follow_the_parameters() -> None:
    assert command(CONTEXT, **RECORDED["small-files"])[-5:] == ("-s", "64:1024:2000:2", "-n", "4:2048:1024:4", "-f")
    assert command(CONTEXT, **RECORDED["direct"])[-7:] == ("-s", "16:4096:8192:5", "-n", "0", "-f", "-b", "-D")
    assert command(size="2Mi")[-1] == "-f2"


def test_options_follow_the_context() -> None:
    assert "-u" not in command()
    assert command(replace(CONTEXT, as_root=True))[-2:] == ("-u", "0:0")
    assert command(replace(CONTEXT, seed=2**62 + 5))[7] == "5"


def test_every_client_has_a_directory_of_its_own() -> None:
    shared = replace(CONTEXT, target=replace(FILE, path="/data/shared.data", shared=True))
    places = {command(replace(shared, client=client))[3] for client in range(12)}
    assert len(places) == 12
    assert {str(Path(place).parent) for place in places} == {"/data"}


def test_steps_make_the_directory_and_remove_it() -> None:
    prepare, measure, clean_up = (replace(CONTEXT, step=step) for step in BONNIE.steps(BonnieParameters()))
    directory = CONTEXT.own_directory
    assert command(prepare) == ("sh", "-c", 'rm -rf -- "$1" && mkdir -- "$1"', "sh", directory)
    assert command(measure)[0] == "bonnie++"
    assert command(clean_up) == ("rm", "-rf", "--", directory)


def test_directory_is_new(tmp_path: Path) -> None:
    context = replace(CONTEXT, step=StepKind.PREPARE, target=replace(FILE, path=str(tmp_path / "data")))
    (left := Path(context.own_directory) / "left").mkdir(parents=True)
    subprocess.run(command(context), check=True)
    assert [*left.parent.iterdir()] == []


def test_large_file_must_fit() -> None:
    with pytest.raises(ValueError, match="size 65Mi exceeds the data set of 64Mi; lower size, or raise"):
        command(size="65Mi")
    with pytest.raises(ValueError, match="raise chunkSize, or lower size"):
        command(replace(CONTEXT, target=replace(FILE, size=2**44)), chunkSize="1Ki")


def test_label() -> None:
    assert BonnieParameters().label() == "bonnie++ by 8Ki, 16384 files"
    assert BonnieParameters.model_validate(RECORDED["direct"]).label() == "bonnie++ 16Mi by 4Ki, no files"


def test_version_is_in_the_usage_that_bonnie_prints() -> None:
    usage = (GOLDEN / "bonnie-2.00a-version.stderr").read_text()
    output = Output(exit_code=1, stdout="", stderr=usage, files={})
    assert BONNIE.version(output) == "bonnie++ 2.00a"
    assert BONNIE.version(replace(output, stderr="setpriv: failed to execute bonnie++")) is None


def test_every_phase_of_a_full_run_has_its_own_time() -> None:
    measured = parsed("full")
    found = samples(measured)
    assert list(found) == [operation for operation in PHASES if operation is not Operation.STAT_RANDOM]
    assert (measured.tool_version, measured.untimed, measured.errors) == ("2.00a", (Operation.STAT_RANDOM,), ())
    assert (measured.data_bytes, measured.bypasses_cache, measured.flushes) == (128 * MEBIBYTE, False, True)
    assert {found[operation].bytes for operation in CHARACTERS} == {3 * MEBIBYTE}
    assert {found[operation].ios for operation in CHARACTERS} == {3 * MEBIBYTE}
    for operation in (Operation.WRITE, Operation.REWRITE, Operation.READ):
        assert (found[operation].ios, found[operation].bytes) == (131072, 128 * MEBIBYTE)
    assert found[Operation.SEEK].ios == 16000
    assert {(found[phase].ios, found[phase].bytes) for phase in FILES if phase in found} == {(32768, 0)}
    assert sum(sample.runtime or 0 for sample in measured.operations) <= measured.runtime


@pytest.mark.parametrize("case", RECORDED)
def test_every_column_is_in_the_result(case: str) -> None:
    """Rates, CPU time and the longest operation; the other columns repeat the parameters, and are checked."""
    columns = golden(case).stdout.strip().split(",")
    measured = parsed(case)
    found = samples(measured)
    assert len(measured.warnings) == len(measured.untimed), "tables are no remarks"
    for operation, (_, column, latency) in PHASES.items():
        rate, percent, longest = columns[column - 1], columns[column], columns[latency - 1]
        if not rate:
            assert operation not in found
            assert operation not in measured.untimed
        elif rate == "+++++":
            assert operation not in found
            assert operation in measured.untimed
            assert any(line.startswith(f"{operation} was too fast") for line in measured.warnings)
        else:
            sample = found[operation]
            unit = 1 if operation is Operation.SEEK or operation in FILES else 1024
            amount = sample.ios if unit == 1 else sample.bytes / unit
            assert amount / ((sample.runtime or 0) / 10**9) == pytest.approx(float(rate), rel=1e-6)
            assert sample.processor_percent == int(percent)
            assert sample.latency.kind is LatencyKind.MAX_ONLY
            assert sample.latency.max_nanoseconds == nanoseconds(longest)


def nanoseconds(text: str) -> int:
    for suffix, factor in (("us", 10**3), ("ms", 10**6), ("s", 10**9)):
        if text.endswith(suffix):
            return int(text.removesuffix(suffix)) * factor
    raise AssertionError(text)


def test_phases_that_were_left_out_are_absent() -> None:
    assert not {*samples(parsed("no-characters")), *parsed("no-characters").untimed} & {*CHARACTERS}
    assert not {*samples(parsed("no-files")), *parsed("no-files").untimed} & {*FILES}


def test_what_is_too_fast_to_be_timed_is_absent_and_not_0() -> None:
    measured = parsed("too-fast")
    assert Operation.READ in measured.untimed
    assert all(sample.runtime and sample.ios for sample in measured.operations)


@pytest.mark.parametrize("case", FAILED)
def test_a_run_that_failed_has_no_measurement(case: str) -> None:
    with pytest.raises(OutputError, match=f"^bonnie.* failed with exit code {golden(case).exit_code}"):
        parsed(case)


def test_what_the_device_said_is_in_the_error() -> None:
    with pytest.raises(OutputError, match="No space left on device"):
        parsed("no-space")
    with pytest.raises(OutputError, match="disk full"):
        parsed("no-space-for-characters")


@pytest.mark.parametrize(
    ("pattern", "by", "words"),
    [
        (r"^1\.98", "1.97", "the format is 1.97, but only 1.98"),
        (r",2\.00a,", ",,", "bonnie_version"),
        (r"client-0", "client-1", "name is client-1 instead of client-0"),
        (r"client-0,1,1", "client-0,1,2", "seed is 2 instead of 1"),
        (r"client-0,1,1", "client-0,4,1", "concurrency is 4 instead of 1"),
        (r"128M", "64M", "file_size is 64 MiB instead of 128"),
        (r"128M", "128", "file_size is not a size"),
        (r"128M,,16000,5", "128M,,8192,5", "seeks is 8192 instead of 16000"),
        (r"128M,,16000,5", "128M,,16000,2", "seek_processes is 2"),
        (r",5,\d+,", ",5,0,", "putc is 0"),
        (r",5,\d+,", ",5,-1,", "putc is not a rate"),
        (r",5,\d+,\d+,", ",5,,,", "putc is missing"),
        (r",5,\d+,\d+,", ",5,+++++,10,", "putc was too fast to be timed, but not its CPU time"),
        (r",5,(\d+),\d+,", r",5,\1,+++,", "putc_cpu is not a whole number"),
        (r",5,\d+,", ",5,1,", "by their rates, the phases took"),
        (r"us,", "ns,", "_latency is not a time"),
        (r"\n$", ",\n", "51 columns instead of 50"),
        (r"\n$", "", "breaks off"),
        (r"(?s)^.*$", "", "0 lines of results instead of one"),
        (r"(?s)^(.*)$", r"\1\1", "2 lines of results instead of one"),
    ],
)
def test_a_line_that_is_wrong_is_refused(pattern: str, by: str, words: str) -> None:
    with pytest.raises(OutputError, match=words):
        parsed("full", replaced(pattern, by))


def test_phases_must_be_those_requested() -> None:
    output = golden("full")
    for fields, words in (
        ({"characters": False}, "putc was not requested"),
        ({"files": 0}, "num_files is 32 instead of empty"),
    ):
        parameters = BonnieParameters.model_validate({**RECORDED["full"], **fields})
        with pytest.raises(OutputError, match=words):
            BONNIE.parse(parameters, CONTEXT, output)
    with pytest.raises(OutputError, match="putc is missing"):
        BONNIE.parse(
            BonnieParameters.model_validate({**RECORDED["no-characters"], "characters": True}),
            CONTEXT,
            golden("no-characters"),
        )


def test_remarks_are_warnings() -> None:
    assert parsed("no-characters", lambda text: f"something else\n{text}").warnings[0] == "unknown line: something else"
    output = replace(golden("full"), stderr="Can't read a full block, only got 512 bytes.\n")
    measured = BONNIE.parse(BonnieParameters.model_validate(RECORDED["full"]), CONTEXT, output)
    assert measured.warnings[-1] == "Can't read a full block, only got 512 bytes."


RATES = st.one_of(st.just("+++++"), st.integers(1, 10**9).map(str), st.integers(1, 9999).map(lambda n: f"{n / 10:.1f}"))
LATENCIES = st.tuples(st.integers(0, 99_999), st.sampled_from(["us", "ms", "s"])).map(
    lambda pair: f"{pair[0]}{pair[1]}"
)


@given(
    rates=st.fixed_dictionaries(
        {operation: st.one_of(st.just(""), RATES) for operation in PHASES},
    ),
    latency=LATENCIES,
    percent=st.integers(0, 9999),
)
def test_any_line_of_the_format_is_read_as_it_is(rates: dict[Operation, str], latency: str, percent: int) -> None:
    columns = [""] * 50
    columns[:6] = [FORMAT, "2.00a", "client-0", "1", "1", "1G"]
    for operation, rate in rates.items():
        _, column, last = PHASES[operation]
        if rate:
            columns[column - 1], columns[last - 1] = rate, latency
            columns[column] = "+++" if rate == "+++++" else str(percent)
    report = read_report(Output(exit_code=0, stdout=",".join(columns) + "\n", stderr="", files={}))
    if any(rate and rate != "+++++" and not float(rate) for rate in rates.values()):
        raise AssertionError("a rate is never 0")
    assert set(report.phases) == {operation for operation, rate in rates.items() if rate}
    assert report.mebibytes == 1024
    for operation, phase in report.phases.items():
        assert phase.rate == (None if rates[operation] == "+++++" else float(rates[operation]))
        assert phase.percent == (None if phase.rate is None else percent)
        assert phase.longest == nanoseconds(latency)


@given(st.text(alphabet="0123456789+,.aMGmsu-\n\x00é", max_size=200))
def test_any_other_text_is_an_error(text: str) -> None:
    output = Output(exit_code=0, stdout=f"1.98,{text}", stderr="", files={})
    with pytest.raises(OutputError):
        BONNIE.parse(BonnieParameters(), CONTEXT, output)
