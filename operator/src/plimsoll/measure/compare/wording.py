"""The wording of a comparison in all views."""

from collections.abc import Iterator, Mapping, Sequence

from plimsoll.measure.compare.results import Comparison, MetricComparison, PointComparison

_UNKNOWN = "-"


def place_of(point: PointComparison, metric: MetricComparison) -> str:
    """Return the point, the operation and the metric."""
    return f"{point.baseline} {metric.operation} {metric.metric}"


def change_text(ratio: float | None) -> str:
    """Return a ratio of candidate to baseline as a change: `-3.2 %`."""
    return _UNKNOWN if ratio is None else f"{100 * (ratio - 1):+,.1f} %"


def interval_text(metric: MetricComparison) -> str:
    """Return the 95 % confidence interval of the change."""
    return _UNKNOWN if metric.low is None else f"{change_text(metric.low)} to {change_text(metric.high)}"


def conclusion_text(metric: MetricComparison) -> str:
    """Return the conclusion, in brackets if the metric does not gate: its p-value is not adjusted."""
    words = metric.conclusion + (", confirmed" if metric.confirmed else ", improved" if metric.improved else "")
    return words if metric.gates else f"({words})"


def notes_of(comparison: Comparison) -> Mapping[str, Sequence[str]]:
    """Return all notes: each text once -> the places that it applies to."""
    found: dict[str, list[str]] = {}
    for point in comparison.points:
        for note in point.notes:
            found.setdefault(note, []).append(point.baseline)
    for point in comparison.points:
        for metric in point.metrics:
            for note in _notes(metric):
                found.setdefault(note, []).append(place_of(point, metric))
    return found


def _notes(metric: MetricComparison) -> Iterator[str]:
    if metric.gates:
        yield from metric.notes
        if metric.trials_needed is not None:
            yield f"about {metric.trials_needed} trials on each side would decide it at this scatter"
