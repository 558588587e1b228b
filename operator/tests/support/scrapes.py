"""Scrapes as Prometheus reads them, the real results and run that some of them are of, and a suite."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from prometheus_client import Metric as Family
from prometheus_client.exposition import generate_latest
from prometheus_client.openmetrics import exposition as openmetrics
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text
from prometheus_client.registry import Collector

from plimsoll.metrics.catalogue import METRICS, MetricFamily, MetricType, Sample
from support.suites import FULL_SUITE, FULL_SUITE_STATUS

GOLDEN = Path(__file__).parents[1] / "golden" / "metrics"
RESULTS: list[dict[str, Any]] = json.loads((GOLDEN / "results-demo-ceph.json").read_text())["items"]
RUN: dict[str, Any] = json.loads((GOLDEN / "run-demo-ceph.json").read_text())

SUITE: dict[str, Any] = {
    **FULL_SUITE,
    "metadata": {**FULL_SUITE["metadata"], "creationTimestamp": "2026-01-01T00:00:00Z"},
    "status": FULL_SUITE_STATUS,
}

_BY_NAME = {metric.name: metric for metric in METRICS}
_OF_THE_LIBRARY = ("process_", "python_")
_ENDINGS = ("_bucket", "_count", "_sum")


def values(samples: Iterable[Sample], metric: MetricFamily) -> dict[tuple[str, ...], float]:
    """Return the samples of one metric by their labels; fail if two have the same ones."""
    found = [sample for sample in samples if sample.metric is metric]
    by_labels = {sample.labels: sample.value for sample in found}
    assert len(by_labels) == len(found), "two values for one series"
    return by_labels


def scraped(collector: Collector) -> list[Family]:
    """Return what both formats say, which is the same, after it went through them."""
    families = list(parse_text(generate_latest(collector).decode()))
    text = openmetrics.generate_latest(collector).decode()  # type: ignore[no-untyped-call]
    again = list(parse_openmetrics(text))  # type: ignore[no-untyped-call]
    assert sorted(_series(families)) == sorted(_series(again))
    return families


def check_against_catalogue(families: Iterable[Family]) -> None:
    """Fail if something is exposed that is not in the catalogue, with its type, its labels and its meaning."""
    series = []
    for family in families:
        if family.name.startswith(_OF_THE_LIBRARY):
            continue
        metric = _BY_NAME.get(family.name) or _BY_NAME[f"{family.name}_total"]
        assert family.type == metric.kind.value, metric.name
        assert family.documentation == metric.help
        for sample in family.samples:
            assert set(sample.labels) - {"le"} == set(metric.labels), sample
            assert sample.name == metric.name or (
                metric.kind is MetricType.HISTOGRAM and sample.name.endswith(_ENDINGS)
            )
            series.append((sample.name, *sorted(sample.labels.items())))
    assert len(series) == len(set(series)), "two values for one series"


def _series(families: Iterable[Family]) -> list[tuple[str, tuple[tuple[str, str], ...]]]:
    return [(sample.name, tuple(sorted(sample.labels.items()))) for family in families for sample in family.samples]
