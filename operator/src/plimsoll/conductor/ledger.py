"""The recorded trials of a plan, and the next one to measure."""

from collections import Counter
from collections.abc import Mapping, Sequence

from plimsoll.api.environment import Environment
from plimsoll.api.matrix import Matrix
from plimsoll.api.names import AbortReason, Outcome, Verdict
from plimsoll.api.result import Fingerprint, ResultStatus, Trial
from plimsoll.api.state import TrialKey
from plimsoll.conductor.size import fit, outcome_of, without_distributions
from plimsoll.measure.matrix import MatrixCell, extended, matrix_of
from plimsoll.measure.summary import summarise
from plimsoll.plan.document import Plan
from plimsoll.plan.fingerprint import fingerprint

MAX_ATTEMPTS = 3
"""An aborted or invalid trial is repeated at most twice."""

_FREE_ABORTS = {AbortReason.INTERRUPTED}
"""Interruptions by the user do not use up a trial's attempts ..."""

MAX_FREE_ATTEMPTS = 20
"""... up to this number, because the size of results is bounded."""


class Ledger:
    """The recorded trials of a plan, in the order of recording.

    Attributes:
        added: number of attempts that this ledger has added, by outcome and verdict.
        measured: the last of them with trustworthy numbers, and the name of its point; None if there is none.

    """

    def __init__(
        self,
        plan: Plan,
        recorded: Mapping[str, Sequence[Trial]] | None = None,
        matrices: Mapping[str, Matrix] | None = None,
    ) -> None:
        """Continue with the recorded trials, and the matrices of those that count, by point."""
        self.plan = plan
        self._matrices = dict(matrices or {})
        self.added: Counter[tuple[Outcome, Verdict]] = Counter()
        self.measured: tuple[str, Trial] | None = None
        self._trials: dict[str, tuple[Trial, ...]] = {point.name: () for point in plan.points}
        for name, trials in (recorded or {}).items():
            self._trials[name] = tuple(trials)

    def next_trial(self) -> TrialKey | None:
        """Return the first missing attempt in the plan's order; None if none is missing."""
        for pass_number, order in enumerate(self.plan.order):
            for index in order:
                point = self.plan.points[index].name
                attempts = self._attempts(point, pass_number)
                if not is_settled(attempts):
                    return TrialKey(point=point, pass_number=pass_number, attempt=len(attempts))
        return None

    def add(self, point: str, trial: Trial, cells: Sequence[MatrixCell] = ()) -> None:
        """Record an attempt with the cells of its matrix; ValueError if it is already recorded."""
        if self.has(TrialKey(point=point, pass_number=trial.pass_number, attempt=trial.attempt)):
            raise ValueError(f"{point} pass {trial.pass_number} attempt {trial.attempt} is already recorded")
        earlier = (
            outcome_of(attempt) if attempt.pass_number == trial.pass_number else attempt
            for attempt in self._trials[point]
        )
        self.added[trial.outcome, trial.verdict] += 1
        if trial.outcome is Outcome.MEASURED and trial.verdict is not Verdict.INVALID:
            self.measured = (point, trial)
            # A trial that counts is the last one of its pass, so its cells never have to be taken out again.
            if matrix := matrix_of(cells):
                self._matrices[point] = extended(self._matrices.get(point), matrix)
        # The last attempt keeps its clients whatever its verdict, as evidence.
        self._trials[point] = (*earlier, without_distributions(trial) if trial.verdict is Verdict.INVALID else trial)

    def has(self, key: TrialKey) -> bool:
        """Whether an attempt is recorded."""
        return any(trial.attempt == key.attempt for trial in self._attempts(key.point, key.pass_number))

    def trials(self, point: str) -> tuple[Trial, ...]:
        """Return every recorded attempt of a point."""
        return self._trials[point]

    @property
    def done(self) -> int:
        """Number of (point, pass) pairs that need no further attempt."""
        return sum(
            is_settled(self._attempts(point.name, pass_number))
            for point in self.plan.points
            for pass_number in range(self.plan.repetitions)
        )

    @property
    def total(self) -> int:
        """Number of planned (point, pass) pairs."""
        return len(self.plan.points) * self.plan.repetitions

    def status(self, point: str, environment: Environment | None) -> ResultStatus:
        """Return the status of a point's result.

        `environment` describes the clients; without it there is no fingerprint. The plan's description of the platform
        is added.
        """
        everything = (environment or Environment()).merged(self.plan.environment)
        trials = self._trials[point]
        numbers = summarise(trials, self.plan.repetitions, self._matrices.get(point))
        final = all(is_settled(self._attempts(point, number)) for number in range(self.plan.repetitions))
        status = ResultStatus(
            trials=trials,
            summary=numbers.summary,
            # Before its last trial, every point would be judged for missing trials.
            verdict=numbers.verdict if final else None,
            findings=numbers.findings if final else (),
            environment=everything,
            fingerprint=self._fingerprint(point, everything) if environment is not None else None,
            final=final,
        )
        return fit(status)

    def _fingerprint(self, point: str, environment: Environment) -> Fingerprint:
        drops = [trial.caches.osds for trial in self._trials[point] if trial.caches and trial.caches.osds]
        return fingerprint(self.plan, self.plan.point(point), environment, osd_caches=drops)

    def _attempts(self, point: str, pass_number: int) -> list[Trial]:
        return [trial for trial in self._trials[point] if trial.pass_number == pass_number]


def is_settled(attempts: Sequence[Trial]) -> bool:
    """Whether a (point, pass) needs no further attempt: it has trustworthy numbers, or has used up its attempts."""
    if any(trial.outcome is Outcome.MEASURED and trial.verdict is not Verdict.INVALID for trial in attempts):
        return True
    free = sum(trial.abort is not None and trial.abort.reason in _FREE_ABORTS for trial in attempts)
    return len(attempts) - min(free, MAX_FREE_ATTEMPTS) >= MAX_ATTEMPTS
