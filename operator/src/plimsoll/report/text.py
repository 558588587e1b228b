"""How tables, figures and messages write counts, names, rates, latencies and ratios."""

from collections.abc import Iterable, Iterator, Sequence

from plimsoll.api.duration import format_duration
from plimsoll.api.names import Layer
from plimsoll.measure.compare.values import Metric
from plimsoll.measure.limits import Best, LayerRow
from plimsoll.measure.rates import rate_text

MEBIBYTE = 2**20
NONE = "-"
_LIMITS = {Layer.NETWORK: "the clients' network", Layer.DEVICE: "the devices", Layer.OSD: "the OSDs"}


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
    if metric in (Metric.IOPS, Metric.LINE):
        return NONE if value is None else rate_text(value)
    return duration_text(value)


def layer_sentences(rows: Iterable[LayerRow]) -> Iterator[str]:
    """Yield what each layer reaches, in bytes, and what limits it."""
    for row in rows:
        best = row.bytes_per_second
        if best is not None and best.limited_by is not None:
            part = ratio_text(best.efficiency)
            yield f"{row.layer} {row.operation}s reach {part} of the limit set by {limiting_text(row.layer, best)}."


def limiting_text(layer: Layer, best: Best) -> str:
    """Return what limits a layer; a dash without a limit."""
    if best.limited_by is None:
        return NONE
    is_stated = best.limited_by is layer
    return "clients.networkBytesPerSecond" if is_stated else _LIMITS.get(best.limited_by, best.limited_by.value)


def ratio_text(ratio: float | None, decimals: int = 0) -> str:
    """Return a ratio in percent."""
    return NONE if ratio is None else f"{100 * ratio:.{decimals}f} %"
