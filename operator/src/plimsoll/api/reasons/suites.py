"""The reasons of a suite's conditions: their meanings and remedies."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from enum import StrEnum
from functools import partial

from plimsoll.api.reasons.reason import Explanation, Severity


class SuiteReason(StrEnum):
    """Why a condition of a `BenchmarkSuite` holds or does not: the closed vocabulary of this version."""

    INVALID_SPEC = "InvalidSpec"
    STATUS_LOST = "StatusLost"
    VARIANT_REFUSED = "VariantRefused"
    NAME_TAKEN = "NameTaken"
    RUN_REFUSED = "RunRefused"
    CHECKING_VARIANTS = "CheckingVariants"
    WAITING_FOR_RUN = "WaitingForRun"
    MEASURING = "Measuring"
    SUSPENDED = "Suspended"
    IDLE = "Idle"
    ROUND_FAILED = "RoundFailed"
    REGRESSED = "Regressed"
    NO_REGRESSION = "NoRegression"
    ACCEPTED = "Accepted"
    INCONCLUSIVE = "Inconclusive"
    NOT_EVALUATED = "NotEvaluated"


@dataclass(frozen=True, slots=True)
class SuiteReasonEntry:
    """A reason of a suite's conditions."""

    reason: SuiteReason
    conditions: tuple[str, ...]  # names of the conditions with this reason
    meaning: str  # a row of the documentation, in Markdown: what happened, and what to do about it
    advice: str = "nothing"
    _: KW_ONLY
    remedy: str = ""  # what to do, as the last clause of a message; empty if nothing has to be done
    severity: Severity = Severity.NORMAL  # of the event about a condition that gets this reason

    @property
    def explanation(self) -> Explanation:
        """The row of the documentation."""
        return Explanation(self.meaning, self.advice)


_STALLED = ("Stalled", "Ready")
_UNDER_WAY = ("Reconciling", "Ready")
_REGRESSED = ("Regressed",)

_warning = partial(SuiteReasonEntry, severity=Severity.WARNING)

SUITE_REASONS = (
    _warning(
        SuiteReason.STATUS_LOST,
        _STALLED,
        "the suite owns runs of rounds that are missing in its status: the status was lost, or replaced by an older "
        "one. Nothing is measured or deleted; a run that is active continues",
        "restore the status from a backup, or delete the runs of the rounds that the message names; if none of its "
        "former runs are left, the suite starts with a new baseline",
    ),
    _warning(
        SuiteReason.INVALID_SPEC,
        _STALLED,
        "a variant is not a valid run, has no plan, or cannot answer a comparison or hypothesis, a round would have "
        "too many trials, or the schedule is invalid. No run is created; one that is active continues",
        "the message names the fields and the remedies; `plimsoll plan` reports the same beforehand",
    ),
    _warning(
        SuiteReason.VARIANT_REFUSED,
        _STALLED,
        "before a round of a changed suite, the API server refused the run of a variant in a dry run; the message "
        "quotes it. The operator tries again every 5 minutes",
        "change the variant, or the policy that refuses it",
        remedy="change the variant, or the admission policy or quota that refuses it",
    ),
    _warning(
        SuiteReason.NAME_TAKEN,
        _STALLED,
        "another BenchmarkRun has the name of a run of the suite: the suite does not own it, or its specification "
        "differs from the suite's. The operator tries again every minute",
        "delete that run, or change what the suite measures, which starts another round. If an admission policy "
        "changes the runs, exempt runs with the label `plimsoll.dev/suite`, or set the same fields in `spec.run`",
        remedy="delete that run, or rename the suite",
    ),
    _warning(
        SuiteReason.RUN_REFUSED,
        _STALLED,
        "the API server refuses to create the next run; the message quotes it. The operator tries again every minute",
        "raise the quota, or change the admission policy that refuses it",
        remedy="raise the quota, or change the admission policy that refuses it",
    ),
    SuiteReasonEntry(
        SuiteReason.CHECKING_VARIANTS, _UNDER_WAY, "the API server checks the run of each variant before a round"
    ),
    _warning(
        SuiteReason.WAITING_FOR_RUN,
        ("Reconciling", *_STALLED),
        "the next run cannot start, because another run of the suite is unfinished: a run of an abandoned round that "
        "is being deleted, or one that another user created with the suite as owner. After 10 minutes the suite is "
        "Stalled",
        "check the condition CleanedUp of the run that the message names; delete the run if it never ends",
        remedy="check its condition CleanedUp, and delete it if it never ends",
    ),
    SuiteReasonEntry(
        SuiteReason.MEASURING,
        _UNDER_WAY,
        "a round is being measured or evaluated. During a round after a change, the suite is Reconciling; during all "
        "other rounds it remains Ready",
    ),
    SuiteReasonEntry(
        SuiteReason.SUSPENDED,
        ("Ready",),
        "`suspend: true`: no run is created; one that is active continues",
        "set it to false",
    ),
    SuiteReasonEntry(SuiteReason.IDLE, ("Ready",), "no round is due"),
    _warning(
        SuiteReason.ROUND_FAILED,
        _STALLED,
        "the round of the last change or the last request measured too little to be evaluated, and no later round was "
        "evaluated. Further rounds are measured nevertheless",
        "the conditions of its runs have the reason; then request a round",
        remedy="find the reason in the conditions of its runs, and request a round",
    ),
    _warning(
        SuiteReason.REGRESSED,
        (*_REGRESSED, *_STALLED),
        "a round was worse than its baseline, and no later round showed that the regression is gone; an Inconclusive "
        "or Failed round changes nothing. With `gate: true` the suite is Stalled",
        "read `status.comparisons`; fix the cause and request a round, or accept the round, or a later one, with the "
        "annotation `plimsoll.dev/accept-round`; only a round with all of its runs can be accepted",
        remedy="fix the cause and request a round, or accept one with annotation plimsoll.dev/accept-round",
    ),
    SuiteReasonEntry(SuiteReason.NO_REGRESSION, _REGRESSED, "the last evaluated round is not worse than its baseline"),
    SuiteReasonEntry(SuiteReason.ACCEPTED, _REGRESSED, "the last evaluated round regressed, and a user accepted it"),
    SuiteReasonEntry(
        SuiteReason.INCONCLUSIVE,
        _REGRESSED,
        "the last evaluated round does not show whether there is a regression",
        "read `status.comparisons`; repeat the round, or raise `repeat`",
        remedy="read status.comparisons; request a round, or raise spec.repeat",
    ),
    SuiteReasonEntry(SuiteReason.NOT_EVALUATED, _REGRESSED, "no round has been evaluated yet"),
)
"""All reasons, in the order of the documentation."""

MEASURES_NEVERTHELESS = frozenset({SuiteReason.ROUND_FAILED, SuiteReason.REGRESSED})
"""Reasons of a stalled suite that further rounds are measured in spite of."""

SUITE_TABLE: Mapping[SuiteReason, SuiteReasonEntry] = {entry.reason: entry for entry in SUITE_REASONS}
