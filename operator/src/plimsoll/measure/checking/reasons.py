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

    Before there is a verdict they are those of the last attempt. `NoTrialCounts` is a consequence: in its place appear
    the reasons of all attempts, those first that most of them have.
    """
    if not status.final:
        return _attempt_reasons(status.trials[-1]) if status.trials else ()
    causes = [finding for finding in status.findings if finding.reason != NO_TRIAL_COUNTS.reason]
    if causes or not status.findings:
        return _ordered(causes)
    return _most_frequent_first(status.trials) or (NO_TRIAL_COUNTS.reason,)


def main_reasons(reasons: Iterable[str]) -> str:
    """Return the reasons of points, the most frequent first: `ClientStalled, LateClient (2 points)`."""
    counts = Counter(reason for reason in reasons if reason)
    texts = [f"{reason} ({count} points)" if count > 1 else reason for reason, count in counts.most_common()]
    return first_few(texts, _NAMED)


def _most_frequent_first(trials: Sequence[Trial]) -> tuple[str, ...]:
    """Return what made attempts not count, then what made them Suspect; of equally frequent ones, the latest first."""
    against = Counter[str]()
    doubts = Counter[str]()
    for trial in reversed(trials):
        against.update([trial.abort.reason.value] if trial.abort else _of(Verdict.INVALID, trial.findings))
        doubts.update(() if trial.abort else _of(Verdict.SUSPECT, trial.findings))
    ranked = [reason for counts in (against, doubts) for reason, _ in counts.most_common()]
    return tuple(dict.fromkeys(ranked))


def _attempt_reasons(trial: Trial) -> tuple[str, ...]:
    return (trial.abort.reason.value,) if trial.abort else _ordered(trial.findings)


def _ordered(findings: Sequence[Finding]) -> tuple[str, ...]:
    return tuple(reason for verdict in _WORST_FIRST for reason in _of(verdict, findings))


def _of(verdict: Verdict, findings: Sequence[Finding]) -> tuple[str, ...]:
    return tuple(finding.reason for finding in findings if finding.verdict is verdict)
