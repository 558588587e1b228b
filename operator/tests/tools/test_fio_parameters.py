import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue, ValidationError

from plimsoll.api.errors import problems_of
from plimsoll.api.line import Vary
from plimsoll.api.names import Operation
from plimsoll.tools.base import Timing
from plimsoll.tools.fio.parameters import Engine, FioParameters, Pattern

POISSON: dict[str, JsonValue] = {"rateIops": 100, "arrivals": "Poisson"}


def mix(*percents: int) -> list[JsonValue]:
    return [{"size": 4096 * 2**number, "percent": percent} for number, percent in enumerate(percents)]


HALVES: list[JsonValue] = [{"size": "4Ki", "percent": 50}, {"size": "64Ki", "percent": 50}]


def parameters(**fields: JsonValue) -> FioParameters:
    return FioParameters.model_validate(fields)


def problem(**fields: JsonValue) -> tuple[str, str]:
    with pytest.raises(ValidationError) as caught:
        parameters(**fields)
    (found,) = problems_of(caught.value)
    return found.field, found.remedy


def test_defaults_are_a_small_random_read() -> None:
    assert parameters().label() == "randread 4Ki qd1"
    assert parameters().direct_io


@pytest.mark.parametrize(
    ("fields", "label"),
    [
        ({"pattern": "randwrite", "ioDepth": 16}, "randwrite 4Ki qd16"),
        (
            {"pattern": "randrw", "readPercent": 70, "blockSize": "8Ki", "ioDepth": 4, "jobs": 2},
            "randrw 70/30 8Ki qd4 x2 jobs",
        ),
        ({"pattern": "readwrite"}, "readwrite 50/50 4Ki qd1"),
        ({"pattern": "write", "engine": "psync", "fsyncEvery": 8}, "write 4Ki qd1 psync fsync/8"),
        ({"rateIops": 500, "directIo": False}, "randread 4Ki qd1 max 500 IOPS buffered"),
        ({"rateIops": 500, "arrivals": "Poisson", "ioDepth": 64}, "randread 4Ki qd64 offers 500 IOPS"),
        ({"rateIops": 500, "arrivals": "Even"}, "randread 4Ki qd1 max 500 IOPS"),
        ({"pattern": "write", "files": "SharedFile"}, "write 4Ki qd1 shared file"),
        (
            {"blockSizeMix": HALVES, "ioDepth": 16, "randomDistribution": "zipf:1.1"},
            "randread 4Ki/50+64Ki/50 qd16 zipf 1.1",
        ),
        ({"blockSizeMix": mix(25, 25, 25, 25), "randomDistribution": "random"}, "randread 4Ki to 32Ki qd1"),
        (
            {"pattern": "randwrite", "compressPercent": 50, "dedupePercent": 20},
            "randwrite 4Ki qd1 compress/50 dedupe/20",
        ),
        ({"pattern": "read", "readBack": "NextClient", "files": "FilePerClient"}, "read 4Ki qd1 of the next client"),
    ],
)
def test_label_names_what_differs_from_the_defaults(fields: dict[str, JsonValue], label: str) -> None:
    assert parameters(**fields).label() == label


@pytest.mark.parametrize(
    ("fields", "field", "words"),
    [
        ({"blockSize": 100}, "blockSize", "512"),
        ({"arrivals": "Poisson"}, "arrivals", "set rateIops, or remove it"),
        ({"arrivals": "Random", "rateIops": 5}, "arrivals", "Poisson"),
        ({**POISSON, "pattern": "randtrim"}, "pattern", "one after the other; use reads or writes"),
        ({**POISSON, "pattern": "write", "fsyncEvery": 1}, "fsyncEvery", "wait for each sync; use 0"),
        ({**POISSON, "engine": "psync"}, "engine", "use libaio"),
        ({**POISSON, "jobs": 2}, "jobs", "with arrivals Poisson"),
        ({**POISSON, "rateIops": 50_001}, "arrivals", "more than 50000 IOPS of a client"),
        ({**POISSON, "directIo": False}, "directIo", "submitted one after the other"),
        ({**POISSON, "until": "DataSetDone"}, "until", "cannot be set with arrivals Poisson"),
        ({"pattern": "randrw", "readBack": "NextClient"}, "readBack", "applies only to the patterns read and randread"),
        ({"pattern": "write", "readBack": "NextClient"}, "readBack", "remove it, or use one of them"),
        ({"blockSize": 1000}, "blockSize", "multiple of 512"),
        ({"blockSize": "4k"}, "blockSize", "multiple of 512, but is 4000; did you mean 4Ki?"),
        ({"blockSize": "65Mi"}, "blockSize", "67108864"),
        ({"ioDepth": 0}, "ioDepth", "1"),
        ({"ioDepth": 1025}, "ioDepth", "1024"),
        ({"engine": "psync", "ioDepth": 2}, "ioDepth", "raise jobs, or use libaio"),
        ({"engine": "sync", "ioDepth": 2}, "ioDepth", "raise jobs, or use libaio"),
        ({"pattern": "randread", "readPercent": 70}, "readPercent", "use readwrite or randrw"),
        ({"pattern": "trim", "fsyncEvery": 1}, "fsyncEvery", "does not write"),
        ({"jobs": 4, "rateIops": 3}, "rateIops", "at least 4"),
        ({"pattern": "randrw", "readPercent": 100}, "readPercent", "99"),
        ({"pattern": "randrw", "readPercent": 99, "rateIops": 10}, "rateIops", "at least 100"),
        ({"blockSizeMix": mix(60, 39)}, "blockSizeMix", "add up to 99 percent; make them 100 together"),
        ({"blockSizeMix": [*HALVES, *HALVES]}, "blockSizeMix", "4Ki twice; add up its percent"),
        (
            {"blockSizeMix": [{"size": "6Ki", "percent": 50}, {"size": "4Ki", "percent": 50}]},
            "blockSizeMix",
            "6Ki is no multiple of 4Ki",
        ),
        ({"blockSizeMix": HALVES, "blockSize": 4096}, "blockSize", "which has the sizes"),
        ({"blockSize": None}, "blockSize", "must be absent with blockSizeMix"),
        ({"randomDistribution": "zipf:1.0"}, "randomDistribution", "other than 1, such as zipf:1.1"),
        ({"gtodReduce": True}, "gtodReduce", "not a known field"),
    ],
)
def test_problems_are_reported_at_the_field_to_change(fields: dict[str, JsonValue], field: str, words: str) -> None:
    where, remedy = problem(**fields)
    assert where == field
    assert words in remedy


def test_bytes_that_are_due_are_those_of_the_mean_size() -> None:
    mixed = parameters(pattern="randwrite", blockSizeMix=HALVES, **POISSON)
    assert mixed.most_written_per_second == 100 * (4096 + 65536) / 2


def test_rate_is_divided_over_directions_and_jobs() -> None:
    mixed = parameters(pattern="randrw", readPercent=70, jobs=2, rateIops=1000)
    assert mixed.rate_per_job == {Operation.READ: 350, Operation.WRITE: 150}


@given(
    pattern=st.sampled_from(Pattern),
    percent=st.integers(1, 99),
    jobs=st.integers(1, 64),
    rate=st.integers(1, 10**6),
)
def test_rate_of_all_jobs_never_exceeds_the_cap(pattern: Pattern, percent: int, jobs: int, rate: int) -> None:
    try:
        given_rate = FioParameters(
            pattern=pattern, read_percent=percent if pattern.is_mixed else None, jobs=jobs, rate_iops=rate
        )
    except ValidationError:
        return
    per_job = given_rate.rate_per_job
    assert sum(per_job.values()) * jobs <= rate
    assert all(per_job[operation] > 0 for operation in given_rate.shares)


@given(
    pattern=st.sampled_from(Pattern),
    engine=st.sampled_from(Engine),
    depth=st.integers(1, 1024),
    blocks=st.integers(1, 2**17),
)
def test_parameters_survive_a_plan(pattern: Pattern, engine: Engine, depth: int, blocks: int) -> None:
    original = FioParameters(
        pattern=pattern, engine=engine, io_depth=1 if engine.is_synchronous else depth, block_size=512 * blocks
    )
    assert FioParameters.model_validate(original.model_dump(mode="json")) == original


patterns = st.sampled_from(Pattern)
job_counts = st.integers(1, 64)
shares_of_reads = st.integers(1, 99)


def mixable(pattern: Pattern, percent: int, jobs: int) -> FioParameters:
    return FioParameters(pattern=pattern, read_percent=percent if pattern.is_mixed else None, jobs=jobs)


@given(
    pattern=st.sampled_from([pattern for pattern in Pattern if "trim" not in pattern]),
    percent=shares_of_reads,
    share=st.floats(0, 1),
)
def test_every_multiple_of_the_step_can_be_offered(pattern: Pattern, percent: int, share: float) -> None:
    base = mixable(pattern, percent, jobs=1)
    step = base.load_step(Vary.RATE)
    most = base.most_load(Vary.RATE, Timing(ramp_seconds=0, runtime_seconds=1)) // step * step
    load = max(step, round(share * most / step) * step)
    offering = base.at_load(Vary.RATE, load)
    assert (offering.rate_iops, offering.is_open_loop, offering.in_flight) == (load, True, None)


@given(jobs=job_counts, depth=st.integers(1, 1024))
def test_depth_is_exactly_that_of_all_jobs(jobs: int, depth: int) -> None:
    base = FioParameters(jobs=jobs)
    load = depth * base.load_step(Vary.DEPTH)
    assert base.at_load(Vary.DEPTH, load).in_flight == load


def test_load_beyond_the_greatest_depth_is_an_error() -> None:
    with pytest.raises(ValidationError, match="1024"):
        FioParameters().at_load(Vary.DEPTH, 1025)
