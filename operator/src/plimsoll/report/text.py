"""How tables, figures and messages write counts, names, rates, latencies and ratios."""

from collections.abc import Sequence

from plimsoll.api.duration import format_duration
from plimsoll.measure.compare.metrics import Metric
from plimsoll.measure.rates import rate_text

MEBIBYTE = 2**20
NONE = "-"


def count_text(number: int, noun: str) -> str:
    """Return a number of things: `1 client`, `2 clients`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def first_few(names: Sequence[str], limit: int = 1) -> str:
    """Return the first few of many names: `a, b and 3 more`."""
    more = f" and {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + more


def duration_text(nanoseconds: float | None) -> str:
    """Return a latency with the unit that suits it."""
    return NONE if nanoseconds is None else format_duration(nanoseconds)


def mebibytes(bytes_per_second: float | None) -> str:
    """Return a rate in MiB/s without its unit."""
    return NONE if bytes_per_second is None else f"{bytes_per_second / MEBIBYTE:,.1f}"


def bytes_rate_text(bytes_per_second: float | None) -> str:
    """Return a rate in MiB/s."""
    return NONE if bytes_per_second is None else f"{mebibytes(bytes_per_second)} MiB/s"


def metric_text(metric: Metric, value: float | None) -> str:
    """Return a value of a compared metric."""
    if metric is Metric.BYTES:
        return bytes_rate_text(value)
    if metric is Metric.IOPS:
        return NONE if value is None else rate_text(value)
    return duration_text(value)


def ratio_text(ratio: float | None, decimals: int = 0) -> str:
    """Return a ratio in percent."""
    return NONE if ratio is None else f"{100 * ratio:.{decimals}f} %"
