"""Which attempts of a trial count, which came first, and why attempts do not count.

An attempt without trustworthy numbers is repeated, so the attempts that count are a selection: of storage that
collapses in every tenth trial, they show only the other nine. The first attempt of each trial that the harness alone
did not spoil is none. So comparisons, rounds of suites and hypotheses are decided on both (`on_first_attempts`).
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from statistics import median

from plimsoll.api.line import ProbeOutcome
from plimsoll.api.names import AbortReason, Cause, Operation, Outcome, Verdict
from plimsoll.api.reasons.attempts import ATTEMPT_REASONS
from plimsoll.api.result import BenchmarkResult, Finding, Trial
from plimsoll.measure.checks.check import CheckedValue, evaluate, invalid_reasons
from plimsoll.measure.checks.judge import ATTEMPTS_REPLACED, cause_of
from plimsoll.measure.rates import grouped
from plimsoll.measure.text import numbered

_MOST_COST = 2  # operations, or bytes, of the run that one of a neighbour's can cost, if it writes where the run reads
MAX_REPLACED = 0.2  # of more attempts that were replaced or do not count, the numbers describe selected moments only
_HABIT = 2  # so many at one point are more than a chance that any of many points may meet


def counted(trials: Iterable[Trial]) -> list[Trial]:
    """Return the trials that count, by pass: the last attempt of each, if it was measured and is not Invalid."""
    return [trial for trial in last_attempts(trials).values() if counts(trial)]


def counts(trial: Trial) -> bool:
    return trial.outcome is Outcome.MEASURED and trial.verdict is not Verdict.INVALID


def last_attempts(trials: Iterable[Trial]) -> dict[int, Trial]:
    """Return the last attempt of every recorded pass, by ascending pass."""
    return {trial.pass_number: trial for trial in _ordered(trials)}


def first_attempts(trials: Iterable[Trial]) -> list[Trial]:
    """Return the first attempt of every pass that counts or that the storage spoiled, by ascending pass."""
    trials = [*trials]
    able = [trial for trial in _ordered(trials) if counts(trial) or spoiled_by(trial, trials) is Cause.STORAGE]
    first = {trial.pass_number: trial for trial in reversed(able)}
    return [first[number] for number in sorted(first)]


def spoiled_by(trial: Trial, trials: Iterable[Trial]) -> Cause:
    """Return what spoiled an attempt of a point with these trials: the storage if a reason says so, or without any."""
    if trial.abort is not None:
        return trial.abort.cause or ATTEMPT_REASONS[trial.abort.reason].cause
    causes = {cause_of(finding) for finding in trial.findings if finding.verdict is Verdict.INVALID}
    is_of_storage = Cause.STORAGE in causes or not causes or (None in causes and _lost_more_than_taken(trial, trials))
    return Cause.STORAGE if is_of_storage else Cause.HARNESS


def is_undecided(trial: Trial) -> bool:
    """Whether only other attempts can show what spoiled an attempt."""
    return trial.abort is None and any(it.verdict is Verdict.INVALID and cause_of(it) is None for it in trial.findings)


def _lost_more_than_taken(trial: Trial, trials: Iterable[Trial]) -> bool:
    """Whether an attempt with foreign load lost more than twice the neighbours' rate.

    The foreign load then explains nothing: it is a large part of the run's only because the storage collapsed. The loss
    is relative to the median of the attempts that count, in a search of those at the same load. False if unknown.
    """
    like = [other for other in trials if trial.probe is None or other.pass_number == trial.pass_number]
    usual, cluster = [_rate_of(other) for other in like if counts(other)], trial.cluster
    if cluster is None or cluster.foreign_operations_per_second is None or not trial.operations or not usual:
        return False
    wholes = [median(values) for values in zip(*usual, strict=True)]
    foreign = (cluster.foreign_operations_per_second, cluster.foreign_bytes_per_second or 0)
    lost = [1 - part / whole for part, whole in zip(_rate_of(trial), wholes, strict=True) if whole]
    taken = [part / whole for part, whole in zip(foreign, wholes, strict=True) if whole]
    return bool(lost) and max(lost) > _MOST_COST * max(taken)


def _rate_of(trial: Trial) -> tuple[float, float]:
    rates = [result.rates for result in trial.operations if result.operation is not Operation.SYNC]
    return sum(rate.iops for rate in rates), sum(rate.bytes_per_second for rate in rates)


def spoiled_attempts(results: Iterable[BenchmarkResult]) -> list[Trial]:
    """Return the first attempts of all points that do not count, each because of the storage."""
    return [trial for result in results for trial in first_attempts(result.status.trials) if not counts(trial)]


def _ordered(trials: Iterable[Trial]) -> list[Trial]:
    return sorted(trials, key=lambda trial: (trial.pass_number, trial.attempt))


def why_not_counted(trial: Trial) -> tuple[str, ...]:
    """Return the reasons why an attempt has no trustworthy numbers; empty if it has."""
    if counts(trial):
        return ()
    if trial.abort is not None:
        return (trial.abort.reason.value,)
    return tuple(invalid_reasons(trial.findings)) or ("no reason is recorded",)


def on_first_attempts(result: BenchmarkResult) -> BenchmarkResult:
    """Return a result in which the first attempts count; the result itself if they are the attempts that count.

    A first attempt without numbers counts as a trial without values, so that no metric has a value at this point. In a
    search, every attempt that the storage spoiled is a probe that broke, and `status.first_line` is the line.
    """
    status, first = result.status, first_attempts(result.status.trials)
    if all(map(counts, first)):
        return result
    update = {
        "trials": tuple(trial if counts(trial) else as_counted(trial) for trial in first),
        "line": status.first_line or status.line,
        "verdict": Verdict.SUSPECT if status.verdict is Verdict.INVALID else status.verdict,
    }
    return result.model_copy(update={"status": status.model_copy(update=update)})


def runs_on_first_attempts(runs: Sequence[Sequence[BenchmarkResult]]) -> list[list[BenchmarkResult]] | None:
    """Return the results of runs in which the first attempts count; None if these are the attempts that count."""
    first = [[on_first_attempts(result) for result in run] for run in runs]
    is_same = all(new is old for new, old in zip(chain(*first), chain(*runs), strict=True))
    return None if is_same else first


def as_counted(trial: Trial) -> Trial:
    """Return an attempt that the storage spoiled as one that counts: its numbers, and the load of a search broke."""
    probe = trial.probe and trial.probe.model_copy(update={"outcome": ProbeOutcome.LATE})
    return trial.model_copy(
        update={"outcome": Outcome.MEASURED, "verdict": Verdict.SUSPECT, "abort": None, "probe": probe}
    )


def replaced_attempts(trials: Iterable[Trial]) -> list[Trial]:
    """Return the replaced attempts, except those that ended before a user could have seen their numbers."""
    trials = list(trials)
    last = last_attempts(trials)
    interruptions = (AbortReason.INTERRUPTED, AbortReason.CONDUCTOR_RESTARTED)
    replaced = [trial for trial in trials if trial.attempt < last[trial.pass_number].attempt]
    return [it for it in replaced if not it.abort or it.abort.reason not in interruptions or it.abort.after_start]


def judge_replaced(trials: Sequence[Trial], noun: str = "pass") -> tuple[Finding, ...]:
    """Return the finding on attempts that were replaced, with the numbers of all that have them."""
    replaced = replaced_attempts(trials)
    detail = f"{len(replaced)} of {len(trials)} attempts: {reasons_text(replaced, noun)}"
    return evaluate(ATTEMPTS_REPLACED, [CheckedValue(value=len(replaced), detail=detail)])


def reasons_text(trials: Iterable[Trial], noun: str = "") -> str:
    """Return why attempts do not count, most frequent first: `Stalled (passes 0 and 2)`, without noun `Stalled (2)`."""
    by_reason = grouped(trials, lambda trial: ", ".join(why_not_counted(trial)))
    texts = []
    for reason, cases in sorted(by_reason.items(), key=lambda item: -len(item[1])):
        times = f" ({len(cases)})" if len(cases) > 1 else ""
        texts.append(reason + (f" ({numbered(noun, {trial.pass_number for trial in cases})})" if noun else times))
    return "; ".join(texts[:8])


def repeated_too_often(name: str, results: Sequence[BenchmarkResult]) -> Iterator[str]:
    """Yield that too many attempts of a run were replaced or do not count, if so: the others are a selection.

    The limit also applies at each point to those that the harness alone spoiled, as users can: to two or more.
    """
    all_failed, places = list[Trial](), []
    for result in results:
        trials = result.status.trials
        replaced, last = replaced_attempts(trials), last_attempts(trials).values()
        failed = [*replaced, *(trial for trial in last if not counts(trial))]
        chosen = [trial for trial in failed if spoiled_by(trial, trials) is Cause.HARNESS]
        places.append((f" at {result.spec.label}", chosen, len(replaced) + len(last), _HABIT))
        all_failed += failed
    for where, failed, number, least in [("", all_failed, sum(number for _, _, number, _ in places), 1), *places]:
        if len(failed) > MAX_REPLACED * number and len(failed) >= least:
            yield (
                f"{len(failed)} of {number} attempts of {name}{where} were replaced or do not count "
                f"(limit {100 * MAX_REPLACED:g} %): {reasons_text(failed)}; find the cause, then measure again"
            )
            return
