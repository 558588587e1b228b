"""The names of all metrics, by the rules of Prometheus."""

import re

import pytest

from plimsoll.metrics.catalogue import METRICS, MetricFamily, MetricType, Sample, Source
from plimsoll.metrics.exposition import families

UNITS = ("seconds", "bytes", "ratio", "per_second", "info", "total")


def test_names_are_unique() -> None:
    names = [metric.name for metric in METRICS]
    assert len(set(names)) == len(names)
    assert {metric.source for metric in METRICS} == set(Source)


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_a_metric_is_named_and_described(metric: MetricFamily) -> None:
    assert re.fullmatch(r"plimsoll_[a-z]+(_[a-z]+)*", metric.name)
    assert metric.name.endswith("_total") == (metric.kind is MetricType.COUNTER)
    assert bool(metric.buckets) == (metric.kind is MetricType.HISTOGRAM)
    assert ("quantile" in metric.labels) == (metric.kind is MetricType.SUMMARY)
    assert all(re.fullmatch("[a-z]+", label) for label in metric.labels)
    assert not {"le", "instance", "job", "pod", "node", "uid"} & set(metric.labels)
    assert metric.help.endswith(".") or metric.help.startswith("1;")
    if metric.kind is MetricType.HISTOGRAM:
        assert metric.name.endswith(UNITS)


def test_a_sample_has_exactly_the_labels_of_its_metric() -> None:
    metric = next(metric for metric in METRICS if metric.labels == ("namespace", "run"))
    with pytest.raises(ValueError, match=r"has \d+ labels, not \d+"):
        Sample(metric, ("bench",), 1)


def test_samples_of_one_metric_make_one_family_wherever_they_stand() -> None:
    one, other = [metric for metric in METRICS if metric.labels == ("namespace", "run")][:2]
    mixed = [Sample(one, ("n", "a"), 1), Sample(other, ("n", "a"), 2), Sample(one, ("n", "b"), 3)]
    found = {family.name: [sample.value for sample in family.samples] for family in families(mixed)}
    assert found == {one.name: [1, 3], other.name: [2]}
