"""The reasons why a point is not Valid, for programs and tables."""

from collections import Counter
from collections.abc import Iterable, Sequence

from plimsoll.api.names import Verdict
from plimsoll.api.result import Finding, ResultStatus, Trial
from plimsoll.measure.checking.checks import NO_TRIAL_COUNTS
from plimsoll.measure.wording import first_few

_NAMED = 3
_WORST_FIRST = (Verdict.INVALID, Verdict.SUSPECT)


def reasons_of(status: ResultStatus) -> tuple[str, ...]:
    """Return the reasons of a point's verdict, those of the worst verdict first; empty if it is Valid.

    Before there is a verdict they are those of the last attempt. `NoTrialCounts` is a consequence, and appears only if
    there is no other reason.
    """
    last = _attempt_reasons(status.trials[-1]) if status.trials else ()
    if not status.final:
        return last
    causes = [finding for finding in status.findings if finding.reason != NO_TRIAL_COUNTS.reason]
    if causes or not status.findings:
        return _ordered(causes)
    return last or (NO_TRIAL_COUNTS.reason,)


def main_reasons(reasons: Iterable[str]) -> str:
    """Return the reasons of points, the most frequent first: `ClientStalled, LateClient (2 points)`."""
    counts = Counter(reason for reason in reasons if reason)
    texts = [f"{reason} ({count} points)" if count > 1 else reason for reason, count in counts.most_common()]
    return first_few(texts, _NAMED)


def _attempt_reasons(trial: Trial) -> tuple[str, ...]:
    return (trial.abort.reason.value,) if trial.abort else _ordered(trial.findings)


def _ordered(findings: Sequence[Finding]) -> tuple[str, ...]:
    return tuple(finding.reason for verdict in _WORST_FIRST for finding in findings if finding.verdict is verdict)
