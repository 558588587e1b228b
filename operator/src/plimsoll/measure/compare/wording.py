"""The wording of a comparison in all views."""

from collections.abc import Iterator, Mapping, Sequence

from plimsoll.api.names import Operation
from plimsoll.measure.compare.conclusion import Conclusion
from plimsoll.measure.compare.metrics import Metric
from plimsoll.measure.compare.overall import has_to_decide
from plimsoll.measure.compare.results import Change, Comparison, MeanComparison, MetricComparison, PointComparison

_UNKNOWN = "-"


def place_of(point: PointComparison, metric: MetricComparison) -> str:
    """Return the point, the operation and the metric."""
    return f"{point.baseline} {quantity_text(metric.operation, metric.metric)}"


def quantity_text(operation: Operation, metric: Metric) -> str:
    """Return an operation and a metric: `read iops`. The line is one of all operations together."""
    return metric.value if metric is Metric.LINE else f"{operation} {metric}"


def change_text(ratio: float | None) -> str:
    """Return a ratio of candidate to baseline as a change: `-3.2 %`."""
    return _UNKNOWN if ratio is None else f"{100 * (ratio - 1):+,.1f} %"


def interval_text(change: Change) -> str:
    """Return the 95 % confidence interval of the change: `-5.1 % to +0.2 %`, or its known end: `below -5.1 %`."""
    low, high = change.low, change.high
    if low is not None and high is not None:
        return f"{change_text(low)} to {change_text(high)}"
    if low is not None:
        return f"above {change_text(low)}"
    return _UNKNOWN if high is None else f"below {change_text(high)}"


def mean_text(mean: MeanComparison) -> str:
    """Return what a mean change is of."""
    return f"mean of {mean.points} points"


def passes_text(mean: MeanComparison) -> str:
    """Return the numbers of passes on both sides."""
    return f"{mean.baseline_passes}+{mean.candidate_passes}"


def trials_text(metric: MetricComparison) -> str:
    """Return the numbers of trials on both sides."""
    return f"{metric.baseline.trials}+{metric.candidate.trials}"


def verdict_text(change: Change) -> str:
    """Return the conclusion with what else is known of it."""
    return change.conclusion + (", confirmed" if change.confirmed else ", improved" if change.improved else "")


def conclusion_text(metric: MetricComparison) -> str:
    """Return the conclusion, in brackets if the metric does not gate: its p-value is not adjusted."""
    words = verdict_text(metric) + (", suspected" if metric.suspected else "")
    return words if metric.gates else f"({words})"


def is_left_to_mean(metric: MetricComparison) -> bool:
    """Whether a point leaves open what the mean change of its workload decides."""
    return metric.gates and metric.conclusion is Conclusion.INCONCLUSIVE and not has_to_decide(metric)


def notes_of(comparison: Comparison) -> Mapping[str, Sequence[str]]:
    """Return all notes: each text once -> the places that it applies to."""
    found: dict[str, list[str]] = {}
    for point in comparison.points:
        for note in point.notes:
            found.setdefault(note, []).append(point.baseline)
    for mean in comparison.means:
        for note in _notes(mean):
            found.setdefault(note, []).append(f"{mean.workload} {mean.operation} {mean.metric}, {mean_text(mean)}")
    for point in comparison.points:
        for metric in point.metrics:
            if metric.gates and not is_left_to_mean(metric):
                for note in _notes(metric):
                    found.setdefault(note, []).append(place_of(point, metric))
    return found


def _notes(change: Change) -> Iterator[str]:
    yield from change.notes
    if change.trials_needed is not None:
        yield f"about {change.trials_needed} trials on each side would decide it at this scatter"
