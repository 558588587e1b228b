from contextlib import suppress
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.api.quantity import format_quantity, normal_latency, parse_amount, parse_latency, parse_quantity


@pytest.mark.parametrize(
    ("written", "size"),
    [
        ("4Ki", 4096),
        ("20Gi", 20 * 2**30),
        ("1Ei", 2**60),
        ("1k", 1000),
        ("1M", 10**6),
        ("0.5Ki", 512),
        ("1.5Gi", 3 * 2**29),
        ("512", 512),
        (4096, 4096),
        (0, 0),
        ("0", 0),
    ],
)
def test_quantity_is_a_number_of_bytes(written: object, size: int) -> None:
    assert parse_quantity(written) == size


@pytest.mark.parametrize(
    ("written", "amount"),
    [
        ("100m", "0.1"),
        ("7910m", "7.91"),
        ("4", "4"),
        (4, "4"),
        ("1e3", "1000"),
        ("2Ki", "2048"),
        ("-1", "-1"),
        ("5n", "5e-9"),
    ],
)
def test_amount_of_any_resource_is_a_number(written: object, amount: str) -> None:
    assert parse_amount(written) == Decimal(amount)


@pytest.mark.parametrize("written", ["", "4KB", "m", "1e", None])
def test_what_is_no_amount_is_refused(written: object) -> None:
    with pytest.raises(ValueError, match="is not a quantity"):
        parse_amount(written)


@pytest.mark.parametrize(
    "written",
    [
        "",
        " 4Ki",
        "4 Ki",
        "4Ki\n",
        "4KB",
        "4kb",
        "4K",
        "4KiB",
        "-4Ki",
        "+4",
        "4e3",
        "100m",
        ".5Ki",
        "1.",
        "Ki",
        "٤",
        "4,0",
    ],
)
def test_invalid_quantity_is_refused_with_an_example(written: str) -> None:
    with pytest.raises(ValueError, match=r"is not a quantity; write a Kubernetes quantity .* such as 4Ki"):
        parse_quantity(written)


@pytest.mark.parametrize("value", [True, 1.0, None, [], {}, -1, b"4Ki"])
def test_values_of_another_type_are_refused(value: object) -> None:
    with pytest.raises(ValueError, match="is not a quantity"):
        parse_quantity(value)


@pytest.mark.parametrize("written", ["0.5", "0.3Ki", "1.0001k", "0.000000001Ki"])
def test_part_of_a_byte_is_refused(written: str) -> None:
    with pytest.raises(ValueError, match="is not a whole number of bytes"):
        parse_quantity(written)


def test_length_of_a_number_is_bounded() -> None:
    with pytest.raises(ValueError, match="is not a quantity"):
        parse_quantity("9" * 5000)


@given(st.integers(0, 10**18 - 1))
def test_round_trip_of_a_number(size: int) -> None:
    assert parse_quantity(format_quantity(size)) == size


@given(st.integers(1, 1023), st.sampled_from(["Ki", "Mi", "Gi", "Ti", "Pi"]))
def test_round_trip_of_a_quantity(number: int, suffix: str) -> None:
    assert format_quantity(parse_quantity(f"{number}{suffix}")) == f"{number}{suffix}"


@given(st.text(max_size=8))
def test_any_text_is_read_or_refused(text: str) -> None:
    with suppress(ValueError):
        assert parse_quantity(text) >= 0


@pytest.mark.parametrize(
    ("written", "microseconds", "normal"),
    [
        ("1us", 1, "1us"),
        ("1250us", 1250, "1.25ms"),
        ("0.5ms", 500, "500us"),
        ("5.000ms", 5000, "5ms"),
        ("0.000001s", 1, "1us"),
        ("9.999999s", 9_999_999, "9.999999s"),
        ("10000ms", 10**7, "10s"),
    ],
)
def test_latency_is_a_number_of_microseconds(written: str, microseconds: int, normal: str) -> None:
    assert (parse_latency(written), normal_latency(written)) == (microseconds, normal)


@given(st.integers(1, 10**7))
def test_round_trip_of_a_latency(microseconds: int) -> None:
    assert parse_latency(normal_latency(f"{microseconds}us")) == microseconds


@pytest.mark.parametrize("value", [5000, None, ["5ms"], "5", "5 ms", "5ms\n", "٤ms", "0us", "10.000001s", "0.0005ms"])
def test_what_is_no_latency_is_refused_with_an_example(value: object) -> None:
    with pytest.raises(ValueError, match=r"must be whole microseconds from 1us to 10s, such as 500us, 2\.5ms or 1s"):
        parse_latency(value)
