"""The recorded trials of a plan, and the next one to measure."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence

from plimsoll.api.environment import Environment
from plimsoll.api.line import Line
from plimsoll.api.matrix import Matrix
from plimsoll.api.names import Outcome, Verdict
from plimsoll.api.result import Finding, Fingerprint, ResultStatus, Summary, Trial
from plimsoll.api.state import TrialKey
from plimsoll.conductor.attempts import is_settled, next_attempt
from plimsoll.conductor.searching import Search, recorded, search_at
from plimsoll.conductor.size import fit, outcome_of, without_distributions
from plimsoll.measure.intake import Offer
from plimsoll.measure.line.summary import summarise_search
from plimsoll.measure.matrix import MatrixCell, extended, matrix_of
from plimsoll.measure.summary import summarise
from plimsoll.plan.document import Plan
from plimsoll.plan.fingerprint import fingerprint


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
        ended: Collection[str] = (),
    ) -> None:
        """Continue with the recorded trials, and the matrices of those that count, by point.

        `ended` are the points whose results say that their searches ended. To compute that again for all of them would
        keep a conductor busy for longer than its clients wait.
        """
        self.plan = plan
        self._ended = frozenset(ended)
        self._matrices = dict(matrices or {})
        self.added: Counter[tuple[Outcome, Verdict]] = Counter()
        self.measured: tuple[str, Trial] | None = None
        self._searches: dict[str, Search] = {}
        self._trials: dict[str, tuple[Trial, ...]] = {point.name: () for point in plan.points}
        for name, trials in (recorded or {}).items():
            self._trials[name] = tuple(trials)

    def next_trial(self) -> TrialKey | None:
        """Return the first missing attempt in the plan's order; None if none is missing.

        A search belongs to the first pass as a whole.
        """
        return next(self._all_missing(), None)

    def offer(self, key: TrialKey) -> Offer | None:
        """Return the load of the next attempt at a point if that is a search's; None otherwise."""
        search = self.search(key.point)
        return search.offer if search is not None and search.next_trial == key else None

    def search(self, point: str) -> Search | None:
        """Return how far the search at a point has come; None without a search."""
        planned = self.plan.point(point)
        if planned.line is None:
            return None
        if point not in self._searches:
            self._searches[point] = search_at(planned, planned.line, self._trials[point])
        return self._searches[point]

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
        self._searches.pop(point, None)
        if (search := self.search(point)) is not None:
            self._trials[point] = recorded(search, self._trials[point])

    def has(self, key: TrialKey) -> bool:
        """Whether an attempt is recorded."""
        return any(trial.attempt == key.attempt for trial in self._attempts(key.point, key.pass_number))

    def trials(self, point: str) -> tuple[Trial, ...]:
        """Return every recorded attempt of a point."""
        return self._trials[point]

    @property
    def done(self) -> int:
        """Number of (point, pass) pairs that need no further attempt; a search is one pair."""
        return self.total - sum(1 for _ in self._all_missing())

    @property
    def total(self) -> int:
        """Number of planned (point, pass) pairs."""
        return len(self.plan.pairs)

    def status(self, point: str, environment: Environment | None) -> ResultStatus:
        """Return the status of a point's result.

        `environment` describes the clients; without it there is no fingerprint. The plan's description of the platform
        is added.
        """
        everything = (environment or Environment()).merged(self.plan.environment)
        summary, line, verdict, findings = self._numbers(point)
        final = all(key.point != point for key in self._all_missing())
        status = ResultStatus(
            trials=self._trials[point],
            summary=summary,
            line=line,
            # Before its last trial, every point would be judged for missing trials.
            verdict=verdict if final else None,
            findings=findings if final else (),
            environment=everything,
            fingerprint=self._fingerprint(point, everything) if environment is not None else None,
            final=final,
        )
        return fit(status)

    def _numbers(self, point: str) -> tuple[Summary | None, Line | None, Verdict, tuple[Finding, ...]]:
        trials, search = self._trials[point], self.search(point)
        if search is None:
            numbers = summarise(trials, self.plan.repetitions, self._matrices.get(point))
            return numbers.summary, None, numbers.verdict, numbers.findings
        found = summarise_search(trials, search.progress)
        return None, found.line, found.verdict, found.findings

    def _all_missing(self) -> Iterator[TrialKey]:
        """Yield the next attempt at each (pass, point) pair that needs another one."""
        for pass_number, point in self.plan.pairs:
            if (key := self._missing(point.name, pass_number)) is not None:
                yield key

    def _missing(self, point: str, pass_number: int) -> TrialKey | None:
        """Return the next attempt at a point in a pass, or in its search; None if it needs no further one."""
        if point in self._ended:
            return None
        if (search := self.search(point)) is not None:
            return search.next_trial
        attempts = self._attempts(point, pass_number)
        if is_settled(attempts):
            return None
        return TrialKey(point=point, pass_number=pass_number, attempt=next_attempt(attempts))

    def _fingerprint(self, point: str, environment: Environment) -> Fingerprint:
        drops = [trial.caches.osds for trial in self._trials[point] if trial.caches and trial.caches.osds]
        return fingerprint(self.plan, self.plan.point(point), environment, osd_caches=drops)

    def _attempts(self, point: str, pass_number: int) -> list[Trial]:
        return [trial for trial in self._trials[point] if trial.pass_number == pass_number]
