"""Latencies as text."""

_UNITS = (("s", 10**9), ("ms", 10**6), ("µs", 10**3))


def format_duration(nanoseconds: float) -> str:
    """Return a latency with three significant digits and a suitable unit: 1234567 -> `1.23 ms`."""
    rounded = float(f"{nanoseconds:.2e}")  # before the unit is chosen: 999.9 µs is 1.00 ms
    for unit, size in _UNITS:
        if rounded >= size:
            value = rounded / size
            digits = 2 if value < 10 else 1 if value < 100 else 0  # noqa: PLR2004 - powers of ten
            return f"{value:.{digits}f} {unit}"
    return f"{nanoseconds:.0f} ns"
