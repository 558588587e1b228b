"""Converts samples to metric families of the Prometheus library."""

from collections.abc import Iterable, Iterator

import prometheus_client

from plimsoll.metrics.sample import Sample


def families(samples: Iterable[Sample]) -> Iterator[prometheus_client.Metric]:
    """Yield a family for every metric that has samples, in the order of their first ones."""
    found: dict[str, prometheus_client.Metric] = {}
    for sample in samples:
        metric = sample.metric
        family = found.get(metric.name)
        if family is None:
            family = prometheus_client.Metric(metric.name.removesuffix("_total"), metric.help, metric.kind.value)
            found[metric.name] = family
        family.add_sample(metric.name, dict(zip(metric.labels, sample.labels, strict=True)), sample.value)
    yield from found.values()
