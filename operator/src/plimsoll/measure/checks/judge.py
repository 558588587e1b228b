"""All checks in their order, the findings on a trial, and the reasons of a point's verdict.

Each check is a function in the module of its subject, with its limits and its remedy: `documents` (what the clients
sent), `hosts` (their machines), `load` and `outliers` (their I/O), `cluster` (Ceph), `repetitions`. "Follow a reason"
in CONTRIBUTING.md has the way from a check to the verdict of a point.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

from plimsoll.api.names import Cause, Verdict
from plimsoll.api.reasons.attempts import ATTEMPT_REASONS
from plimsoll.api.result import Finding, ResultStatus, Trial
from plimsoll.measure.checks import cluster, documents, hosts, load, outliers, repetitions
from plimsoll.measure.checks.check import Check, Evidence, TrialCheck
from plimsoll.measure.line import curve
from plimsoll.measure.text import first_few

TRIAL_CHECKS = tuple(
    check
    for module in (documents, hosts, load, cluster, outliers)
    for check in vars(module).values()
    if isinstance(check, TrialCheck)
)
"""Causes before their effects, because the first reasons are shown; those of a module in order of definition."""

NO_TRIAL_COUNTS = Check(
    reason="NoTrialCounts",
    what="repetitions that count",
    invalid=1,
    is_low_bad=True,
    remedy="fix the causes that the trials name, then run again",
)
PASSES_MISSING = Check(
    reason="PassesMissing",
    what="planned repetitions, or probes of a search, that do not count",
    suspect=0,
    remedy="fix the causes, then run again; the numbers come from the remaining ones",
)
ATTEMPTS_REPLACED = Check(
    reason="AttemptsReplaced",
    what="attempts that were replaced by another",
    suspect=0,
    remedy="fix the causes, then run again; repeating bad attempts makes the storage look better than it is",
)
UNREPLICATED = Check(
    reason="Unreplicated",
    what="repetitions that count",
    suspect=2,
    is_low_bad=True,
    remedy="set repetitions to 3 or more, or run again; one trial does not show how much trials differ",
)
VERSIONS_CHANGED = Check(
    reason="VersionsChanged",
    what="versions of the tool in the repetitions that count",
    suspect=1,
    remedy="run again with one version; a mean over two versions describes neither",
)

CHECKS: tuple[Check, ...] = (
    *TRIAL_CHECKS,
    outliers.LINK_OUTLIER,
    outliers.ROUND_TRIP_OUTLIER,
    outliers.LOCAL_PAIRS,
    curve.NOT_MONOTONE,
    curve.LINE_DRIFTING,
    NO_TRIAL_COUNTS,
    VERSIONS_CHANGED,
    repetitions.CLIENTS_CHANGED,
    *chain.from_iterable(zip(repetitions.AGREEMENT, repetitions.OFFERED_LATENCIES, strict=True)),
    repetitions.CLOSED_LOOP_SCATTERED,
    ATTEMPTS_REPLACED,
    PASSES_MISSING,
    UNREPLICATED,
)
"""The table of checks of a trial, of all its rounds, of a search, and of a point; some of them share a reason."""

_CAUSES: Mapping[str, Cause | None] = {check.reason: check.cause for check in CHECKS if check.invalid is not None}
_ORDER = {check.reason: place for place, check in enumerate(CHECKS)}


def judge(evidence: Evidence) -> tuple[tuple[Finding, ...], tuple[Finding, ...]]:
    """Return the findings on a trial, by check, and apart those that a load that broke, or OSDs away, explain."""
    findings = list[Finding](), list[Finding]()
    for check in TRIAL_CHECKS:
        by_load, by_outage = check.load_explains and evidence.is_broken, check.outage_explains and evidence.facts.outage
        findings[bool(by_load or by_outage)].extend(check.judge(evidence))
    return tuple(findings[False]), tuple(findings[True])


def in_order(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return findings, the worst verdict first, then in the order of `CHECKS`; status and tables show the first one."""
    return tuple(sorted(findings, key=lambda it: (-it.verdict.severity, _ORDER.get(it.reason, len(_ORDER)))))


def cause_of(finding: Finding) -> Cause | None:
    """Return what an Invalid finding shows: of an unknown reason the storage; None if only other attempts show it."""
    return finding.cause or _CAUSES.get(finding.reason, Cause.STORAGE)


def remedy_of(reason: str, status: ResultStatus) -> str:
    """Return what to do about one of the `reasons_of` a result, by the check that found it; empty if it is unknown."""
    findings = chain(status.findings, *(trial.findings for trial in status.trials))
    message = next((finding.message for finding in findings if finding.reason == reason), "")
    remedies = [check.remedy for check in CHECKS if check.reason == reason]
    remedies += [entry.advice for abort, entry in ATTEMPT_REASONS.items() if abort == reason]
    return next(filter(message.endswith, remedies), next(iter(remedies), ""))


def markdown_table(checks: Sequence[Check] = CHECKS) -> str:
    rows = ["| Reason | What is measured | Suspect | Invalid | Cause | What to do |", "|---|---|---|---|---|---|"]
    for check in checks:
        limits = f"{check.limit_text(check.suspect)} | {check.limit_text(check.invalid)}"
        cause = (check.cause or "either") if check.invalid is not None else "-"
        rows.append(f"| `{check.reason}` | {check.what} | {limits} | {cause} | {check.remedy} |")
    return "\n".join(rows) + "\n"


def reasons_of(status: ResultStatus) -> tuple[str, ...]:
    """Return the reasons of a point's verdict, of the worst verdict first; empty if it is Valid.

    Before there is a verdict they are the last attempt's. `NoTrialCounts` is a consequence: the reasons of all attempts
    take its place, the most frequent first. Causes precede the reasons that attempts do not count, or were replaced.
    """
    if not status.final:
        return _most_frequent_first(status.trials[-1:])
    causes = [finding for finding in status.findings if finding.reason != NO_TRIAL_COUNTS.reason]
    if causes or not status.findings:
        reasons = (*_reasons_with(Verdict.INVALID, causes), *_reasons_with(Verdict.SUSPECT, causes))
        # These follow from the reasons of attempts that do not count.
        follow = (ATTEMPTS_REPLACED.reason, PASSES_MISSING.reason)
        place = next((place for place, reason in enumerate(reasons) if reason in follow), None)
        why = _why_uncounted(status.trials)
        return reasons if place is None else tuple(dict.fromkeys((*reasons[:place], *why, *reasons[place:])))
    return _most_frequent_first(status.trials) or (NO_TRIAL_COUNTS.reason,)


def _reasons_with(verdict: Verdict, findings: Sequence[Finding]) -> list[str]:
    return [finding.reason for finding in findings if finding.verdict is verdict]


def _most_frequent_first(trials: Sequence[Trial]) -> tuple[str, ...]:
    """Return why attempts do not count, then what made them Suspect; of equally frequent reasons, the latest first."""
    suspect = Counter[str]()
    for trial in reversed(trials):
        if not trial.abort:
            suspect.update(_reasons_with(Verdict.SUSPECT, trial.findings))
    return tuple(dict.fromkeys((*_why_uncounted(trials), *(reason for reason, _ in suspect.most_common()))))


def _why_uncounted(trials: Sequence[Trial]) -> list[str]:
    """Return why attempts do not count, in the same order."""
    invalid = Counter[str]()
    for trial in reversed(trials):
        invalid.update([trial.abort.reason.value] if trial.abort else _reasons_with(Verdict.INVALID, trial.findings))
    return [reason for reason, _ in invalid.most_common()]


def ranked(reasons: Iterable[str]) -> Mapping[str, int]:
    """Return how many points have each reason, the most frequent first; of equally frequent ones, causes first."""
    counts = Counter(reason for reason in reasons if reason)
    order = sorted(counts, key=lambda reason: (-counts[reason], _ORDER.get(reason, len(_ORDER))))
    return {reason: counts[reason] for reason in order}


def main_reasons(reasons: Iterable[str]) -> str:
    """Return the reasons of points, as ranked: `NoIo (2 points), ShortIo`."""
    counts = ranked(reasons)
    texts = [f"{reason} ({count} points)" if count > 1 else reason for reason, count in counts.items()]
    return first_few(texts, 3)
