"""A result as text for `kubectl get`. These texts are for people, and bounded; programs read the numbers."""

from collections.abc import Callable, Iterable

from plimsoll.api.duration import format_duration
from plimsoll.api.line import NOTHING_TRIED, LineSearch
from plimsoll.api.names import Operation
from plimsoll.api.operation import OperationSummary
from plimsoll.api.result import ResultStatus
from plimsoll.api.status import ResultDisplay
from plimsoll.measure.checks.judge import reasons_of
from plimsoll.measure.line.summary import progress_text, short_text
from plimsoll.measure.rates import rate_text
from plimsoll.measure.summary import iops_of

_MAX_CHARACTERS = 64
_MEBIBYTE = 2**20


def result_display(status: ResultStatus, repetitions: int, search: LineSearch | None = None) -> ResultDisplay:
    """Return a point's columns; a point without numbers shows only its number of trials and the reason.

    Of a search the trials are its probes, and the line replaces rates and latencies.
    """
    if search is not None:
        return _search_display(status, search)
    summary = status.summary
    trials = f"{summary.trials if summary else 0}/{repetitions}"
    shown = _shown(summary.operations) if summary else ()
    reason = _reason(status)
    if not shown:
        return ResultDisplay(trials=trials, reason=reason)
    return ResultDisplay(
        operation=_joined(shown, lambda operation: operation.operation.value),
        iops=_joined(shown, _rate),
        bytes_per_second=_joined(shown, lambda operation: f"{operation.bytes_per_second.mean / _MEBIBYTE:,.1f} MiB/s"),
        p99=_joined(shown, _p99),
        trials=trials,
        reason=reason,
    )


def _search_display(status: ResultStatus, search: LineSearch) -> ResultDisplay:
    line, reason = status.line, _reason(status)
    trials = progress_text(line or NOTHING_TRIED)
    text = short_text(line, search)[:_MAX_CHARACTERS] if line else None
    return ResultDisplay(line=text, trials=trials, reason=reason)


def _reason(status: ResultStatus) -> str | None:
    """Return the main reason of the verdict and the number of others: `ClientThrottled +2`. None if there is none."""
    reasons = reasons_of(status)
    more = f" +{len(reasons) - 1}" if len(reasons) > 1 else ""
    return f"{reasons[0]}{more}"[:_MAX_CHARACTERS] if reasons else None


def _shown(operations: Iterable[OperationSummary]) -> tuple[OperationSummary, ...]:
    """Return the operations without syncs, unless there are only syncs."""
    everything = tuple(operations)
    return tuple(one for one in everything if one.operation is not Operation.SYNC) or everything


def _joined(operations: Iterable[OperationSummary], text: Callable[[OperationSummary], str]) -> str:
    return " / ".join(map(text, operations))[:_MAX_CHARACTERS]


def _rate(operation: OperationSummary) -> str:
    """Return the operations per second; a dash if they are not counted."""
    statistic = iops_of(operation)
    if statistic is None:
        return "-"
    if statistic.low is None or statistic.high is None:
        return rate_text(statistic.mean)
    return rate_text(statistic.mean, (statistic.high - statistic.low) / 2)


def _p99(operation: OperationSummary) -> str:
    percentile = operation.percentiles.get("99")
    return "-" if percentile is None else format_duration(percentile.mean)
