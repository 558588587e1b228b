"""The reasons of a suite's conditions: their meanings and remedies."""

from functools import partial

from plimsoll.api.reasons.entry import ExplainedReason, ReasonEntry, Severity

_STALLED = ("Stalled", "Ready")
_UNDER_WAY = ("Reconciling", "Ready")
_REGRESSED = ("Regressed",)

_normal = partial(ReasonEntry, severity=Severity.NORMAL)
_stalled = partial(ReasonEntry, _STALLED)


class SuiteReason(ExplainedReason):
    """Why a condition of a `BenchmarkSuite` holds or does not: the closed vocabulary of this version."""

    STATUS_LOST = _stalled(
        "StatusLost",
        "the suite owns runs of rounds that are missing in its status: the status was lost, or replaced by an older "
        "one. Nothing is measured or deleted; a run that is active continues",
        "restore the status from a backup, or delete the runs of the rounds that the message names; if none of its "
        "former runs are left, the suite starts with a new baseline",
        own_remedy="",
    )
    INVALID_SPEC = _stalled(
        "InvalidSpec",
        "a variant is not a valid run, has no plan, or cannot answer a comparison or hypothesis, a round would have "
        "too many trials, or the schedule is invalid. No run is created; one that is active continues",
        "the message names the fields and the remedies; `plimsoll plan` reports the same beforehand",
        own_remedy="",
    )
    VARIANT_REFUSED = _stalled(
        "VariantRefused",
        "before a round of a changed suite, the API server refused the run of a variant in a dry run; the message "
        "quotes it. The operator tries again every 5 minutes",
        "change the variant, or the admission policy or quota that refuses it",
    )
    NAME_TAKEN = _stalled(
        "NameTaken",
        "another BenchmarkRun has the name of a run of the suite: the suite does not own it, or its specification "
        "differs from the suite's. The operator tries again every minute",
        "delete that run, or change what the suite measures, which starts another round. If an admission policy "
        "changes the runs, exempt runs with the label `plimsoll.dev/suite`, or set the same fields in `spec.run`",
        own_remedy="delete that run, or rename the suite",
    )
    RUN_REFUSED = _stalled(
        "RunRefused",
        "the API server refuses to create the next run; the message quotes it. The operator tries again every minute",
        "raise the quota, or change the admission policy that refuses it",
    )
    CHECKING_VARIANTS = _normal(
        _UNDER_WAY, "CheckingVariants", "the API server checks the run of each variant before a round"
    )
    WAITING_FOR_RUN = ReasonEntry(
        ("Reconciling", *_STALLED),
        "WaitingForRun",
        "the next run cannot start, because another run of the suite is unfinished: a run of an abandoned round that "
        "is being deleted, or one that another user created with the suite as owner. After 10 minutes the suite is "
        "Stalled",
        "check its condition CleanedUp, and delete it if it never ends",
    )
    MEASURING = _normal(
        _UNDER_WAY,
        "Measuring",
        "a round is being measured or evaluated. During a round after a change, the suite is Reconciling; during all "
        "other rounds it remains Ready",
    )
    SUSPENDED = _normal(
        ("Ready",),
        "Suspended",
        "`suspend: true`: no run is created; one that is active continues",
        "set it to false",
        own_remedy="",
    )
    IDLE = _normal(("Ready",), "Idle", "no round is due")
    ROUND_FAILED = _stalled(
        "RoundFailed",
        "the round of the last change or the last request measured too little to be evaluated, and no later round was "
        "evaluated. Further rounds are measured nevertheless",
        "find the reason in the conditions of its runs, and request a round",
    )
    REGRESSED = ReasonEntry(
        (*_REGRESSED, *_STALLED),
        "Regressed",
        "a round was worse than its baseline, and no later round showed that the regression is gone; an Inconclusive "
        "or Failed round changes nothing. With `gate: true` the suite is Stalled",
        "read `status.comparisons`; fix the cause and request a round, or accept the round, or a later one, with the "
        "annotation `plimsoll.dev/accept-round`; only a round with all of its runs can be accepted",
        own_remedy="fix the cause and request a round, or accept one with annotation plimsoll.dev/accept-round",
    )
    NO_REGRESSION = _normal(_REGRESSED, "NoRegression", "the last evaluated round is not worse than its baseline")
    ACCEPTED = _normal(_REGRESSED, "Accepted", "the last evaluated round regressed, and a user accepted it")
    INCONCLUSIVE = _normal(
        _REGRESSED,
        "Inconclusive",
        "the last evaluated round does not show whether there is a regression",
        "read `status.comparisons`; request a round, or raise `spec.repeat`",
    )
    NOT_EVALUATED = _normal(_REGRESSED, "NotEvaluated", "no round has been evaluated yet")


MEASURES_NEVERTHELESS = frozenset({SuiteReason.ROUND_FAILED, SuiteReason.REGRESSED})
"""Reasons of a stalled suite that further rounds are measured in spite of."""
