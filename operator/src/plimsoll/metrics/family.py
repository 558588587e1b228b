"""What a metric is: its name, type, labels and meaning."""

from dataclasses import dataclass
from enum import StrEnum

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class MetricType(StrEnum):
    """The Prometheus type."""

    GAUGE = "gauge"
    COUNTER = "counter"
    HISTOGRAM = "histogram"
    SUMMARY = "summary"
    """Only quantiles, without count and sum: only a summary may have the label `quantile`."""


class Source(StrEnum):
    """The program that exposes a metric, and its subject."""

    RESULTS = "results"
    RUNS = "runs"
    SUITES = "suites"
    OPERATOR = "operator"
    CONDUCTOR = "conductor"


@dataclass(frozen=True, slots=True)
class MetricFamily:
    """One metric family.

    Attributes:
        name: with the unit, and `_total` for a counter.
        labels: names of all its labels, in order.
        help: one sentence: the meaning of a value, and when there is none.
        buckets: upper edges of a histogram.

    """

    name: str
    kind: MetricType
    source: Source
    labels: tuple[str, ...]
    help: str
    buckets: tuple[float, ...] = ()


def gauge(source: Source, name: str, labels: tuple[str, ...], text: str) -> MetricFamily:
    """Return a gauge."""
    return MetricFamily(f"plimsoll_{name}", MetricType.GAUGE, source, labels, text)


def quantiles(source: Source, name: str, labels: tuple[str, ...], text: str) -> MetricFamily:
    """Return a summary of which only quantiles are exposed."""
    return MetricFamily(f"plimsoll_{name}", MetricType.SUMMARY, source, (*labels, "quantile"), text)


def counter(source: Source, name: str, labels: tuple[str, ...], text: str) -> MetricFamily:
    """Return a counter."""
    return MetricFamily(f"plimsoll_{name}_total", MetricType.COUNTER, source, labels, text)


def histogram(source: Source, name: str, labels: tuple[str, ...], text: str) -> MetricFamily:
    """Return a histogram of seconds."""
    return MetricFamily(f"plimsoll_{name}_seconds", MetricType.HISTOGRAM, source, labels, text, _SECONDS)
