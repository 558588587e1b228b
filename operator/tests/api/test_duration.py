import pytest

from plimsoll.api.names import format_duration


@pytest.mark.parametrize(
    ("nanoseconds", "text"),
    [
        (0, "0 ns"),
        (999, "999 ns"),
        (1000, "1.00 µs"),
        (12_340, "12.3 µs"),
        (612_000, "612 µs"),
        (999_999, "1.00 ms"),
        (9_999_999, "10.0 ms"),
        (12_500_000, "12.5 ms"),
        (99_960_000, "100 ms"),
        (999_600_000, "1.00 s"),
        (1_500_000_000, "1.50 s"),
        (120_000_000_000, "120 s"),
    ],
)
def test_duration_has_three_digits_and_a_unit(nanoseconds: float, text: str) -> None:
    assert format_duration(nanoseconds) == text
