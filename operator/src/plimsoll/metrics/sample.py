"""One number with its labels, on the way to Prometheus."""

from dataclasses import dataclass

from plimsoll.metrics.catalogue import Metric


@dataclass(frozen=True, slots=True)
class Sample:
    """A value of a metric; `labels` in the order of the metric's.

    Raises:
        ValueError: if there are more or fewer labels than the metric has.

    """

    metric: Metric
    labels: tuple[str, ...]
    value: float

    def __post_init__(self) -> None:
        if len(self.labels) != len(self.metric.labels):
            raise ValueError(f"{self.metric.name} has the labels {self.metric.labels}, not {len(self.labels)} of them")
