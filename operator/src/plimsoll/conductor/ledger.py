"""What is recorded and what is still to be measured."""

from collections import Counter
from collections.abc import Mapping, Sequence

from pydantic import JsonValue

from plimsoll.api.names import AbortReason, Outcome, Verdict
from plimsoll.api.result import ResultStatus, Trial
from plimsoll.api.state import TrialKey
from plimsoll.conductor.size import fit, outcome_of, without_distributions
from plimsoll.measure.summary import summarise
from plimsoll.plan.document import Plan
from plimsoll.plan.fingerprint import fingerprint

MAX_ATTEMPTS = 3
"""An aborted or invalid trial is repeated at most twice."""

_NOT_THE_TRIALS_FAULT = {AbortReason.INTERRUPTED}
"""The user may interrupt and resume a trial without using up its attempts ..."""

MAX_FREE_ATTEMPTS = 20
"""... this often; results are bounded."""


class Ledger:
    """The recorded trials of a plan, in the order in which they were recorded.

    Attributes:
        added: how many attempts of which outcome and verdict were added here, whatever was recorded before.
        measured: the last of them whose numbers may be believed, with the name of its point; None if none may.

    """

    def __init__(self, plan: Plan, recorded: Mapping[str, Sequence[Trial]] | None = None) -> None:
        """Start from what a sink has kept, by name of the point."""
        self.plan = plan
        self.added: Counter[tuple[Outcome, Verdict]] = Counter()
        self.measured: tuple[str, Trial] | None = None
        self._trials: dict[str, tuple[Trial, ...]] = {point.name: () for point in plan.points}
        for name, trials in (recorded or {}).items():
            self._trials[name] = tuple(trials)

    def next_trial(self) -> TrialKey | None:
        """Return the first attempt that is missing, in the plan's order; None if nothing is."""
        for pass_number, order in enumerate(self.plan.order):
            for index in order:
                point = self.plan.points[index].name
                attempts = self._attempts(point, pass_number)
                if not is_settled(attempts):
                    return TrialKey(point=point, pass_number=pass_number, attempt=len(attempts))
        return None

    def add(self, point: str, trial: Trial) -> None:
        """Record an attempt.

        Raises:
            ValueError: if that attempt is recorded already.

        """
        if self.has(TrialKey(point=point, pass_number=trial.pass_number, attempt=trial.attempt)):
            message = f"{point} pass {trial.pass_number} attempt {trial.attempt} is recorded already"
            raise ValueError(message)
        earlier = (
            outcome_of(attempt) if attempt.pass_number == trial.pass_number else attempt
            for attempt in self._trials[point]
        )
        self.added[trial.outcome, trial.verdict] += 1
        if trial.outcome is Outcome.MEASURED and trial.verdict is not Verdict.INVALID:
            self.measured = (point, trial)
        # The clients of the last attempt stay, whatever its verdict: they are the evidence.
        self._trials[point] = (*earlier, without_distributions(trial) if trial.verdict is Verdict.INVALID else trial)

    def has(self, key: TrialKey) -> bool:
        """Tell whether that attempt is recorded."""
        return any(trial.attempt == key.attempt for trial in self._attempts(key.point, key.pass_number))

    def trials(self, point: str) -> tuple[Trial, ...]:
        """Return every recorded attempt of a point."""
        return self._trials[point]

    @property
    def done(self) -> int:
        """How many (point, pass) pairs need no further attempt."""
        return sum(
            is_settled(self._attempts(point.name, pass_number))
            for point in self.plan.points
            for pass_number in range(self.plan.repetitions)
        )

    @property
    def total(self) -> int:
        """How many (point, pass) pairs were planned."""
        return len(self.plan.points) * self.plan.repetitions

    def status(self, point: str, environment: dict[str, JsonValue]) -> ResultStatus:
        """Return what is known of a point, as its result object shows it.

        `environment` is where its clients run, empty if that is not known now: there is no fingerprint then. What the
        plan knows of the platform is added.
        """
        everything = {**environment, **self.plan.environment}
        trials = self._trials[point]
        numbers = summarise(trials, self.plan.repetitions)
        final = all(is_settled(self._attempts(point, number)) for number in range(self.plan.repetitions))
        status = ResultStatus(
            trials=trials,
            summary=numbers.summary,
            # Before the last trial every point would look as if trials were missing: there is no verdict yet.
            verdict=numbers.verdict if final else None,
            findings=numbers.findings if final else (),
            environment=everything,
            fingerprint=fingerprint(self.plan, self.plan.point(point), everything) if environment else None,
            final=final,
        )
        return fit(status)

    def _attempts(self, point: str, pass_number: int) -> list[Trial]:
        return [trial for trial in self._trials[point] if trial.pass_number == pass_number]


def is_settled(attempts: Sequence[Trial]) -> bool:
    """Tell whether a (point, pass) needs no further attempt: it has believable numbers, or it had its chances."""
    if any(trial.outcome is Outcome.MEASURED and trial.verdict is not Verdict.INVALID for trial in attempts):
        return True
    free = sum(trial.abort is not None and trial.abort.reason in _NOT_THE_TRIALS_FAULT for trial in attempts)
    return len(attempts) - min(free, MAX_FREE_ATTEMPTS) >= MAX_ATTEMPTS
