"""What decisions need from a result: its run, and a digest of its status without distributions and series.

A status may have 256 KiB and a run 512 results; a digest has a few hundred bytes per trial.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from plimsoll.api.environment import Environment
from plimsoll.api.line import Line
from plimsoll.api.names import Operation, Outcome, Verdict
from plimsoll.api.operation import OperationSummary
from plimsoll.api.result import ResultStatus, Trial
from plimsoll.lifecycle.children import Object
from plimsoll.lifecycle.ownership import is_departing
from plimsoll.measure.checks.judge import reasons_of

_SHOWN_PERCENTILES = ("50", "99")


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialFact:
    """When an attempt took place, by the conductor's clock, and how it ended."""

    epoch: str
    outcome: Outcome
    started: datetime
    finished: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationFact:
    """The means of one operation over the trials that count.

    Attributes:
        percentiles: those that a headline shows: `"99"` -> nanoseconds.

    """

    operation: Operation
    iops: float
    bytes_per_second: float
    percentiles: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """The digest of a result's status.

    Attributes:
        reason: the first reason of its verdict; empty if it is Valid.
        line: of a search, as far as it is known.

    """

    final: bool = False
    verdict: Verdict | None = None
    reason: str = ""
    operations: tuple[OperationFact, ...] = ()
    line: Line | None = None
    trials: tuple[TrialFact, ...] = ()
    environment: Environment = field(default_factory=Environment)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultFact:
    """A result.

    Attributes:
        version: its resourceVersion.
        run_uid: of the run that its specification names; users may change its labels.
        departing: whether it is deleted with a run, or is being deleted.
        measured: None if this version cannot read its status.

    """

    name: str
    uid: str
    version: str
    run_uid: str
    point: str
    departing: bool
    measured: Measured | None


def result_fact(obj: Object) -> ResultFact:
    """Read a result."""
    metadata, spec = obj["metadata"], obj.get("spec") or {}
    return ResultFact(
        name=metadata["name"],
        uid=metadata["uid"],
        version=metadata["resourceVersion"],
        run_uid=str(spec.get("runUid", "")),
        point=str(spec.get("point", "")),
        departing=is_departing(obj),
        measured=_measured(obj),
    )


def digest(status: ResultStatus) -> Measured:
    """Return what decisions need from a status.

    Raises:
        ValueError: if a time is invalid.

    """
    return Measured(
        final=status.final,
        verdict=status.verdict,
        reason=next(iter(reasons_of(status)), ""),
        operations=tuple(_operations(status)),
        line=status.line,
        trials=tuple(map(_trial, status.trials)),
        environment=status.environment,
    )


def _measured(obj: Object) -> Measured | None:
    """Return the digest of a result's status; None if it cannot be read. `display` is never read back."""
    status = {key: value for key, value in (obj.get("status") or {}).items() if key != "display"}
    try:
        return digest(ResultStatus.model_validate(status))
    except ValueError:
        return None


def _operations(status: ResultStatus) -> Iterator[OperationFact]:
    for summary in status.summary.operations if status.summary else ():
        yield OperationFact(
            operation=summary.operation,
            iops=summary.iops.mean,
            bytes_per_second=summary.bytes_per_second.mean,
            percentiles=_percentiles(summary),
        )


def _percentiles(summary: OperationSummary) -> dict[str, float]:
    known = summary.percentiles
    return {percentile: known[percentile].mean for percentile in _SHOWN_PERCENTILES if percentile in known}


def _trial(trial: Trial) -> TrialFact:
    return TrialFact(
        epoch=trial.epoch,
        outcome=trial.outcome,
        started=datetime.fromisoformat(trial.started_at),
        finished=datetime.fromisoformat(trial.finished_at),
    )
