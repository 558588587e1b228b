"""One value of a metric, with its labels."""

from dataclasses import dataclass

from plimsoll.metrics.family import MetricFamily


@dataclass(frozen=True, slots=True)
class Sample:
    """A value of a metric; `labels` in the order of the metric's.

    Raises:
        ValueError: the number of labels is not that of the metric.

    """

    metric: MetricFamily
    labels: tuple[str, ...]
    value: float

    def __post_init__(self) -> None:
        if len(self.labels) != len(self.metric.labels):
            raise ValueError(f"{self.metric.name} has {len(self.metric.labels)} labels, not {len(self.labels)}")
