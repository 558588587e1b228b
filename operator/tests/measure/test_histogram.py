import base64
import json
import zlib
from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.measure.histogram import (
    BIN_COUNT,
    LAYOUT,
    OPEN_BIN,
    Histogram,
    HistogramError,
    UnknownBinError,
    bin_bounds,
    bin_index,
    bin_midpoint,
    index_of_midpoint,
)

HOUR = 3600 * 10**9

histograms = st.builds(
    Histogram, counts=st.dictionaries(st.integers(0, BIN_COUNT - 1), st.integers(0, 10**9), max_size=60)
)
latencies = st.lists(st.integers(0, HOUR), min_size=1, max_size=200)


def of(values: list[int]) -> Histogram:
    counts: dict[int, int] = {}
    for value in values:
        counts[bin_index(value)] = counts.get(bin_index(value), 0) + 1
    return Histogram(counts=counts)


def written(content: object) -> str:
    return f"{LAYOUT}:{base64.b64encode(zlib.compress(json.dumps(content).encode())).decode()}"


def test_layout_is_that_of_fio() -> None:
    assert BIN_COUNT == 1856
    assert [bin_index(value) for value in (0, 1, 127, 128, 129, 130)] == [0, 1, 127, 128, 128, 129]
    assert bin_bounds(index_of_midpoint(87552)) == (87040, 88064)
    assert bin_midpoint(BIN_COUNT - 1) == 17_112_760_320
    assert bin_bounds(BIN_COUNT - 1)[0] == 17_045_651_456
    assert bin_index(HOUR) == BIN_COUNT - 1


def test_bins_follow_each_other_without_a_gap() -> None:
    bounds = [bin_bounds(index) for index in range(BIN_COUNT)]
    assert bounds[0][0] == 0
    assert all(before[1] == after[0] for before, after in pairwise(bounds))


@pytest.mark.parametrize("index", range(0, BIN_COUNT, 5))
def test_midpoint_leads_back_to_its_bin(index: int) -> None:
    assert index_of_midpoint(bin_midpoint(index)) == index == bin_index(bin_midpoint(index))


@given(st.integers(0, 17_112_760_319))
def test_value_lies_in_its_bin_and_near_its_midpoint(value: int) -> None:
    lower, upper = bin_bounds(bin_index(value))
    assert lower <= value < upper
    assert abs(bin_midpoint(bin_index(value)) - value) * 128 <= max(value, 128)


@pytest.mark.parametrize("key", [-1, 128, 87553, 17_112_760_321])
def test_unknown_key_is_refused_by_name(key: int) -> None:
    with pytest.raises(UnknownBinError, match=f"{key} ns is not the midpoint"):
        index_of_midpoint(key)


@pytest.mark.parametrize("index", [-1, BIN_COUNT])
def test_unknown_bin_is_refused(index: int) -> None:
    with pytest.raises(UnknownBinError, match=f"no bin {index}"):
        bin_bounds(index)
    with pytest.raises(UnknownBinError):
        Histogram(counts={index: 1})


def test_negative_latency_and_count_are_refused() -> None:
    with pytest.raises(ValueError, match="negative"):
        bin_index(-1)
    with pytest.raises(HistogramError, match="-3"):
        Histogram(counts={5: -3})


@given(histograms, histograms, histograms)
def test_merging_is_associative_and_commutative_and_keeps_totals(a: Histogram, b: Histogram, c: Histogram) -> None:
    merged = Histogram.merge([a, b, c])
    assert Histogram.merge([Histogram.merge([a, b]), c]) == Histogram.merge([a, Histogram.merge([b, c])]) == merged
    assert Histogram.merge([c, b, a]) == merged
    assert merged.total == a.total + b.total + c.total


@given(st.lists(latencies, min_size=1, max_size=5))
def test_merging_equals_pooling_the_raw_samples(clients: list[list[int]]) -> None:
    pooled = [value for client in clients for value in client]
    assert Histogram.merge(of(client) for client in clients) == of(pooled)


@given(st.lists(latencies, min_size=1, max_size=5), st.floats(0.001, 100))
def test_merged_percentile_lies_in_the_bin_of_the_pooled_sample(clients: list[list[int]], p: float) -> None:
    pooled = sorted(value for client in clients for value in client)
    rank = next(n for n in range(1, len(pooled) + 1) if n >= Fraction(p) / 100 * len(pooled))
    merged = Histogram.merge(of(client) for client in clients)
    index = bin_index(pooled[rank - 1])
    assert merged.percentile(p) == (None if index == OPEN_BIN else bin_midpoint(index))


def fio_percentile(dense: list[int], p: float) -> int | None:
    """Read a percentile the way fio's `calc_clat_percentiles` walks its dense array, but for the open bin."""
    needed, cumulative = Fraction(p) * sum(dense), 0
    for index, count in enumerate(dense):
        cumulative += count
        if count and cumulative * 100 >= needed:
            return None if index == OPEN_BIN else bin_midpoint(index)
    raise AssertionError


@given(histograms.filter(lambda histogram: histogram.total > 0), st.floats(0.0001, 100))
@settings(deadline=None)  # slow under load, not stuck
def test_percentile_equals_fio_rule(histogram: Histogram, p: float) -> None:
    dense = [histogram.counts.get(index, 0) for index in range(BIN_COUNT)]
    for percentile in (p, 50, 90, 95, 99, 99.9, 99.99, 100):
        assert histogram.percentile(percentile) == fio_percentile(dense, percentile)


def test_percentile_beyond_the_last_bound_is_not_known() -> None:
    histogram = Histogram(counts={bin_index(10**9): 50, bin_index(60 * 10**9): 50})
    assert histogram.percentile(50) == bin_midpoint(bin_index(10**9))
    assert histogram.percentile(51) is None


def test_percentile_takes_the_double_at_its_word() -> None:
    # The double 99.9 is a hair above 99.9, so of 1000 samples the 999th does not reach it.
    histogram = Histogram(counts={1: 999, 2: 1})
    assert histogram.percentile(99.9) == 2
    assert histogram.percentile(99) == 1


@pytest.mark.parametrize("p", [0, -1, 100.1])
def test_percentile_out_of_range_is_refused(p: float) -> None:
    with pytest.raises(ValueError, match="percentile"):
        Histogram(counts={1: 1}).percentile(p)


def test_empty_histogram_has_no_percentile_rather_than_an_absurd_one() -> None:
    empty = Histogram(counts={})
    assert empty.percentile(99) is None
    assert empty.total == 0
    assert Histogram.merge([]) == empty
    assert Histogram.decode(empty.encode()) == empty


def test_samples_beyond_are_counted_in_decimal() -> None:
    assert Histogram(counts={1: 10_000}).samples_beyond(99.9) == 10
    assert Histogram(counts={1: 9_999}).samples_beyond(99.9) == 9
    assert Histogram(counts={1: 100_000}).samples_beyond(99.99) == 10


@given(histograms)
def test_text_form_gives_the_histogram_back(histogram: Histogram) -> None:
    text = histogram.encode()
    assert text.startswith(f"{LAYOUT}:")
    assert text.isascii()
    assert Histogram.decode(text) == histogram


def test_text_form_of_a_usual_histogram_is_small() -> None:
    usual = Histogram(counts={index: 1000 + index * index % 7919 for index in range(400, 690)})
    assert len(usual.encode()) < 2048


def test_largest_histogram_can_be_written_and_read() -> None:
    # Counts without a pattern, so that nothing is gained by compression.
    largest = Histogram(counts={index: 2**63 - 1 - pow(7919, index, 2**61 - 1) for index in range(BIN_COUNT)})
    assert Histogram.decode(largest.encode()) == largest


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "layout ''"),
        ("fio-plat-5-19:AAAA", "fio-plat-5-19"),
        (LAYOUT, "cut off"),
        (f"{LAYOUT}:", "damaged|cut off"),
        (f"{LAYOUT}:é", "damaged"),
        (f"{LAYOUT}:!!!!", "damaged"),
        (f"{LAYOUT}:AAAA", "damaged"),
        (f"{LAYOUT}:" + "A" * 10**6, "longer"),
        (Histogram(counts={5: 9}).encode()[:-8], "damaged|cut off"),
        (written({"5": 9}), "not a list"),
        (written([5]), r"array.*\$\[0\]"),
        (written([[1, 2, 3]]), r"length 2.*\$\[0\]"),
        (written([[1], [2, 3, 4]]), r"length 2.*\$\[0\]"),
        (written([[[1, 2]]]), r"\$\[0\]"),
        (written([[1, 1], [1, True]]), r"bool.*\$\[1\]\[1\]"),
        (written([[1.0, 1]]), r"float.*\$\[0\]\[0\]"),
        (written([[1, 1], [0, 1]]), r"not ascend at.*\$\[1\]"),
        (written([[-1, 1]]), r">= 0.*\$\[0\]\[0\]"),
        (written([[1, 0]]), r">= 1.*\$\[0\]\[1\]"),
        (written([[1, -1]]), r">= 1.*\$\[0\]\[1\]"),
        (written([[1, 1], [1, 2**63]]), r"<=.*\$\[1\]\[1\]"),
        (written([[BIN_COUNT, 1]]), f"no bin {BIN_COUNT}"),
        (written([[BIN_COUNT - 1, 1], [1, 1]]), f"no bin {BIN_COUNT}"),
        (written([[10**4000, 1]]), r"<=.*\$\[0\]\[0\]"),
    ],
)
def test_anything_else_is_refused(text: str, message: str) -> None:
    with pytest.raises(HistogramError, match=message):
        Histogram.decode(text)


@pytest.mark.parametrize("text", ["[[,1]]", "[[1,]]", "[[01,1]]", "[[1,1],]", "[[1,1][,]]"])
def test_brackets_without_numbers_are_rejected(text: str) -> None:
    with pytest.raises(HistogramError):
        Histogram.decode(f"{LAYOUT}:{base64.b64encode(zlib.compress(text.encode())).decode()}")


@given(st.lists(histograms, max_size=5))
def test_merging_texts_equals_merging_their_histograms(found: list[Histogram]) -> None:
    assert Histogram.merge_texts(histogram.encode() for histogram in found) == Histogram.merge(found)


def packed(content: bytes) -> str:
    return f"{LAYOUT}:{base64.b64encode(content).decode()}"


@pytest.mark.parametrize(
    "content",
    [
        zlib.compress(b" " * 10**7 + b"[]"),
        zlib.compress(b"[" * 60_000),
        zlib.compress(b"not json"),
        zlib.compress(b"\xff\xfe\x00"),
        zlib.compress(b"[]") + b"more",
        zlib.compress(b"[[1,1],[1,1]]")[:-4],
    ],
    ids=["bomb", "deep", "words", "bytes", "trailing", "cut"],
)
def test_hostile_stream_is_refused(content: bytes) -> None:
    with pytest.raises(HistogramError):
        Histogram.decode(packed(content))


@given(st.text(max_size=60), st.binary(max_size=60))
def test_noise_is_refused_and_nothing_else_happens(text: str, content: bytes) -> None:
    for candidate in (text, f"{LAYOUT}:{text}", packed(content), packed(zlib.compress(content))):
        try:
            Histogram.decode(candidate)
        except HistogramError:
            continue
