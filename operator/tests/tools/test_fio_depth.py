import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.api.json_reader import JsonNode
from plimsoll.tools.fio.tool import EXACT_DEPTHS, depth_full_share

from .conftest import Golden, load

_BUCKETS = ("1", "2", "4", "8", "16", "32", ">=64")


def job(ios: int, percent: float, bucket: str) -> JsonNode:
    levels = {**dict.fromkeys(_BUCKETS, 0.0), bucket: percent}
    counts = {name: {"total_ios": ios if name == "read" else 0} for name in ("read", "write", "trim")}
    return JsonNode({**counts, "iodepth_level": levels}, "job")


def test_random_arrivals_fill_the_depth_at_times() -> None:
    case = load("3.39", "replay")
    (job_of_case,) = json.loads(case.document)["jobs"]
    share = case.parse().depth_full_share
    assert share == pytest.approx(job_of_case["iodepth_level"]["4"] / 100)
    assert share is not None
    assert 0 < share < 0.5


def test_random_arrivals_are_measured_as_any_others() -> None:
    measurement = load("3.39", "replay").parse()
    assert measurement.errors == ()
    assert measurement.warnings == ()
    assert measurement.runtime == pytest.approx(4 * 10**9, rel=0.02)
    assert measurement.gaps is not None
    read, write = measurement.operations
    assert read.slices is not None
    assert write.slices is not None
    # 4 s of a Poisson process of 1000 operations per second, which fio replays a little slower.
    assert 0.9 * 4000 < read.ios + write.ios < 4000 + 3 * 4000**0.5
    assert read.ios / (read.ios + write.ios) == pytest.approx(0.7, abs=0.03)


def test_a_depth_of_1_is_always_full(version: str) -> None:
    assert load(version, "randwrite-4k-qd1").parse().depth_full_share == 1


def test_share_is_unknown_for_a_depth_that_shares_its_bucket() -> None:
    assert depth_full_share([job(100, 50, "16")], 24) is None
    assert depth_full_share([job(100, 50, ">=64")], 128) is None


def test_share_is_unknown_if_nothing_was_submitted() -> None:
    assert depth_full_share([job(0, 0, "16")], 16) is None


def test_missing_shares_are_an_error_that_names_the_field(one_golden: Golden) -> None:
    document = json.loads(one_golden.document[one_golden.document.index("{\n") :])
    del document["jobs"][0]["iodepth_level"]
    with pytest.raises(ValueError, match=r"jobs\[0\]\.iodepth_level is missing"):
        one_golden.with_document(json.dumps(document)).parse()


@given(
    depth=st.sampled_from(EXACT_DEPTHS),
    jobs=st.lists(st.tuples(st.integers(1, 10**9), st.floats(0, 100)), min_size=1, max_size=4),
)
def test_share_lies_between_those_of_the_jobs(depth: int, jobs: list[tuple[int, float]]) -> None:
    bucket = f">={depth}" if depth == EXACT_DEPTHS[-1] else str(depth)
    share = depth_full_share([job(ios, percent, bucket) for ios, percent in jobs], depth)
    shares = [percent / 100 for _, percent in jobs]
    assert share is not None
    assert min(shares) - 1e-9 <= share <= max(shares) + 1e-9


@pytest.mark.parametrize(
    ("case", "percent"),
    [
        ("randread-4k-qd16", 10.2),
        ("gaps-randrw-jobs2", 6.9),  # the busier one of two jobs
        ("replay", None),  # it looks at the clock until the next arrival
        ("write-fsync", None),
        ("trim", None),
    ],
)
def test_the_busiest_job_of_a_closed_loop_shows_whether_its_thread_is_the_limit(
    case: str, percent: float | None
) -> None:
    found = load("3.41", case).parse().thread_percent
    assert found == (None if percent is None else pytest.approx(percent, abs=0.1))
