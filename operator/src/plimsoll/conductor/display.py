"""A result in words, for `kubectl get`. Programs read the numbers; these texts are for people and bounded."""

from collections.abc import Callable, Iterable

from plimsoll.api.duration import format_duration
from plimsoll.api.names import Operation
from plimsoll.api.result import OperationSummary, ResultStatus, Statistic
from plimsoll.api.status import ResultDisplay
from plimsoll.measure.checking.reasons import reasons_of
from plimsoll.measure.rates import rate_text

_MAX_CHARACTERS = 64
_MEBIBYTE = 2**20


def result_display(status: ResultStatus, repetitions: int) -> ResultDisplay:
    """Return what a table shows of a point; a point without numbers shows only that it has none, and why."""
    summary = status.summary
    trials = f"{summary.trials if summary else 0}/{repetitions}"
    shown = _shown(summary.operations) if summary else ()
    reason = _reason(status)
    if not shown:
        return ResultDisplay(trials=trials, reason=reason)
    return ResultDisplay(
        operation=_joined(shown, lambda operation: operation.operation.value),
        iops=_joined(shown, lambda operation: _rate(operation.iops)),
        bytes_per_second=_joined(shown, lambda operation: f"{operation.bytes_per_second.mean / _MEBIBYTE:,.1f} MiB/s"),
        p99=_joined(shown, _p99),
        trials=trials,
        reason=reason,
    )


def _reason(status: ResultStatus) -> str | None:
    """Return the reason of a verdict, and how many more there are: `ClientThrottled +2`. None if all is well."""
    reasons = reasons_of(status)
    more = f" +{len(reasons) - 1}" if len(reasons) > 1 else ""
    return f"{reasons[0]}{more}"[:_MAX_CHARACTERS] if reasons else None


def _shown(operations: Iterable[OperationSummary]) -> tuple[OperationSummary, ...]:
    """Return what moves data, if anything does: what a sync takes is in the numbers."""
    everything = tuple(operations)
    return tuple(operation for operation in everything if operation.operation is not Operation.SYNC) or everything


def _joined(operations: Iterable[OperationSummary], text: Callable[[OperationSummary], str]) -> str:
    return " / ".join(map(text, operations))[:_MAX_CHARACTERS]


def _rate(statistic: Statistic) -> str:
    if statistic.low is None or statistic.high is None:
        return rate_text(statistic.mean)
    return rate_text(statistic.mean, (statistic.high - statistic.low) / 2)


def _p99(operation: OperationSummary) -> str:
    percentile = operation.percentiles.get("99")
    return "-" if percentile is None else format_duration(percentile.mean)
