"""The recorded trials of a plan, and the next one to measure."""

import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby

from plimsoll.api.environment import Environment
from plimsoll.api.line import Line, LineSearch
from plimsoll.api.names import AbortReason, Outcome, Verdict
from plimsoll.api.result import Matrix, ResultStatus, Summary, Trial
from plimsoll.api.status import TrialKey
from plimsoll.conductor.size import bare_attempt, fit, replaced_attempt, without_distributions, without_histograms
from plimsoll.measure.attempts import counts, first_attempts, is_undecided
from plimsoll.measure.checks.repetitions import new_places
from plimsoll.measure.intake import Offer
from plimsoll.measure.line.search import Progress, Settings, arrived_load, first_line_of, progress_of, tried_loads
from plimsoll.measure.line.summary import current_text, interval_text, is_known, summarise_search, unit_text
from plimsoll.measure.matrix import MatrixCell, extended, matrix_of
from plimsoll.measure.summary import summarise
from plimsoll.plan.document import Plan, Point
from plimsoll.plan.fingerprint import fingerprint
from plimsoll.plan.refusals import offer_at, search_settings

MAX_ATTEMPTS = 3  # an aborted or invalid trial is repeated at most twice
# Up to this number, interruptions by the user do not use up a trial's attempts; in a search, over all its probes.
MAX_UNCHARGED_ATTEMPTS = 20
_NEIGHBOURS = 2  # on each side of the line, the trials that keep their histograms: a result has room for a few


def is_settled(attempts: Sequence[Trial], uncharged_before: int = 0) -> bool:
    """Whether a (point, pass) needs no further attempt: it has trustworthy numbers, or has used up its attempts."""
    if any(map(counts, attempts)):
        return True
    # In a search, uncharged attempts at other passes share the limit.
    uncharged = min(uncharged_attempts(attempts), max(0, MAX_UNCHARGED_ATTEMPTS - uncharged_before))
    return len(attempts) - uncharged >= MAX_ATTEMPTS


def next_attempt(attempts: Sequence[Trial]) -> int:
    """Return the number of the next attempt; one may be missing among those that were recorded."""
    return max((trial.attempt for trial in attempts), default=-1) + 1


def uncharged_attempts(attempts: Sequence[Trial]) -> int:
    """Return how many attempts the user interrupted; one that the conductor died in may have killed it, and counts."""
    return sum(trial.abort is not None and trial.abort.reason is AbortReason.INTERRUPTED for trial in attempts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """A search after some trials."""

    point: Point
    asked: LineSearch
    progress: Progress  # what the settled probes show
    number: int  # of the next probe, which is new or needs another attempt
    attempt: int  # of the next attempt at it
    settings: Settings

    @property
    def next_trial(self) -> TrialKey | None:
        """The next attempt; None if the search has ended."""
        if self.progress.next_load is None:
            return None
        return TrialKey(point=self.point.name, pass_number=self.number, attempt=self.attempt)

    @property
    def offer(self) -> Offer | None:
        """The load of the next attempt, the same in all attempts at a probe; None after the end."""
        load = self.progress.next_load
        return None if load is None else offer_at(self.point, self.asked, load)

    @property
    def message(self) -> str:
        """Return how far the search is: `line-000: probe 12 of at most 40, line 11,800 to 12,900 IOPS`."""
        line = self.progress.line
        interval = f", line {interval_text(line, self.asked)} {unit_text(self.asked)}" if is_known(line) else ""
        return f"{self.point.name}: {current_text(self.number, line.most_probes)}{interval}"


def search_at(point: Point, asked: LineSearch, trials: Sequence[Trial], calm: Line | None = None) -> Search:
    """Return the search at a point after its trials; one for the storm line after that for the `calm` line."""
    settings = search_settings(point, asked)
    if calm is not None and calm.ending is not None:
        settings = settings.below(calm)
    search = partial(Search, point=point, asked=asked, settings=settings)
    ordered = sorted(trials, key=lambda trial: (trial.pass_number, trial.attempt))
    probes = {number: [*group] for number, group in groupby(ordered, key=lambda trial: trial.pass_number)}
    last = max(probes, default=-1)
    earlier = [trial for number in sorted(probes) if number != last for trial in probes[number]]
    attempts = probes.get(last, [])
    if not is_settled(attempts, uncharged_attempts(earlier)):
        # A pending probe whose load is not the next one tells nothing, but uses up its number.
        number = max(last, 0)
        progress = _progress(earlier, number, settings)
        if all(trial.probe is not None and trial.probe.offered == progress.next_load for trial in attempts):
            return search(progress=progress, number=number, attempt=next_attempt(attempts))
    progress = _progress([*earlier, *attempts], last + 1, settings)
    return search(progress=progress, number=last + 1, attempt=0)


def _progress(trials: Sequence[Trial], number: int, settings: Settings) -> Progress:
    """Return what trials show before the probe of this number; trials without a load use up numbers."""
    tried = tried_loads(trials)
    unused = settings.most_probes - (number - len(tried))
    return progress_of(tried, replace(settings, most_probes=max(1, unused)))


def recorded(search: Search, trials: Sequence[Trial]) -> tuple[Trial, ...]:
    """Return the trials of a search as they are kept: full histograms only next to the line."""
    near = _near(search, trials)
    last = {trial.pass_number: trial.attempt for trial in trials}
    first = {(trial.pass_number, trial.attempt) for trial in first_attempts(trials)}

    def reduced(trial: Trial) -> Trial:
        if trial.attempt < last[trial.pass_number]:
            has_rates = (trial.pass_number, trial.attempt) in first or is_undecided(trial)
            return bare_attempt(trial, has_rates=has_rates)
        return trial if trial.pass_number in near else without_histograms(trial)

    return tuple(map(reduced, trials))


def _near(search: Search, trials: Sequence[Trial]) -> set[int]:
    """Return the probes with the loads next to the line on both sides; before it is known, next to the last load."""
    probed = ((trial.pass_number, trial, trial.probe) for trial in trials if trial.probe)
    loads = {number: arrived_load(trial, probe) for number, trial, probe in probed if probe.offered > 0}
    if not loads:
        return set()
    line = search.progress.line
    centre = line.estimate or line.low or line.high or loads[max(loads)]
    # The nearest first; of equal loads, the last.
    ordered = sorted(loads, key=lambda number: (abs(math.log(loads[number] / centre)), -number))
    below = [number for number in ordered if loads[number] <= centre]
    above = [number for number in ordered if loads[number] > centre]
    return {*below[:_NEIGHBOURS], *above[:_NEIGHBOURS]}


class Ledger:
    """The recorded trials of a plan, in the order of recording."""

    def __init__(
        self,
        plan: Plan,
        recorded: Mapping[str, Sequence[Trial]] | None = None,
        matrices: Mapping[str, Matrix] | None = None,
        ended: Collection[str] = (),
    ) -> None:
        """Continue with the recorded trials, matrices of those that count, and points whose searches have `ended`."""
        self.plan = plan
        self._ended = frozenset(ended)  # as their results say: to compute it takes longer than clients wait
        self._matrices = dict(matrices or {})
        # Number of attempts that this ledger has added, and the last one with trustworthy numbers, with its point.
        self.added: Counter[tuple[Outcome, Verdict]] = Counter()
        self.measured: tuple[str, Trial] | None = None
        self._searches: dict[str, Search] = {}
        self.trials: dict[str, tuple[Trial, ...]] = {point.name: () for point in plan.points}
        self.trials |= {name: tuple(trials) for name, trials in (recorded or {}).items()}

    def next_trial(self) -> TrialKey | None:
        """Return the first missing attempt in the plan's order, a search in the first pass; None if none is missing."""
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
            calm = self.search(planned.calm) if planned.calm else None
            search = search_at(planned, planned.line, self.trials[point], calm.progress.line if calm else None)
            if calm is not None and calm.next_trial is not None:
                return search
            self._searches[point] = search
        return self._searches[point]

    def add(self, point: str, trial: Trial, cells: Sequence[MatrixCell] = ()) -> None:
        """Record an attempt with the cells of its matrix; ValueError if it is already recorded."""
        if self.has(TrialKey(point=point, pass_number=trial.pass_number, attempt=trial.attempt)):
            raise ValueError(f"{point} pass {trial.pass_number} attempt {trial.attempt} is already recorded")
        earlier = (
            replaced_attempt(attempt) if attempt.pass_number == trial.pass_number else attempt
            for attempt in self.trials[point]
        )
        self.added[trial.outcome, trial.verdict] += 1
        if counts(trial):
            self.measured = (point, trial)
            # A trial that counts is the last of its pass, so its cells are never removed.
            if matrix := matrix_of(cells):
                self._matrices[point] = extended(self._matrices.get(point), matrix)
        trial = trial.model_copy(update={"places": new_places(self.trials[point], trial.places)})
        # Even an Invalid last attempt keeps its clients, as evidence.
        self.trials[point] = (*earlier, without_distributions(trial) if trial.verdict is Verdict.INVALID else trial)
        self._searches.pop(point, None)
        if (search := self.search(point)) is not None:
            self.trials[point] = recorded(search, self.trials[point])

    def has(self, key: TrialKey) -> bool:
        return any(trial.attempt == key.attempt for trial in self._attempts(key.point, key.pass_number))

    @property
    def done(self) -> int:
        """Number of (point, pass) pairs that need no further attempt; a search is one pair."""
        return self.total - sum(1 for _ in self._all_missing())

    @property
    def total(self) -> int:
        """Number of planned (point, pass) pairs."""
        return len(self.plan.pairs)

    def status(self, point: str, environment: Environment | None) -> ResultStatus:
        """Return the status of a point's result; without the clients' `environment`, it has no fingerprint."""
        everything = (environment or Environment()).merged(self.plan.environment)
        trials, search = self.trials[point], self.search(point)
        summary: Summary | None = None
        line: Line | None = None
        first_line: Line | None = None
        if search is None:
            numbers = summarise(trials, self.plan.repetitions, self._matrices.get(point))
            summary, verdict, findings = numbers.summary, numbers.verdict, numbers.findings
        else:
            numbers = summarise_search(trials, search.progress)
            line, verdict, findings = search.progress.line, numbers.verdict, numbers.findings
            first_line = first_line_of(trials, search.settings, line)
        final = all(key.point != point for key in self._all_missing())
        drops = [trial.caches.osds for trial in trials if trial.caches and trial.caches.osds]
        planned = self.plan.point(point)
        status = ResultStatus(
            trials=trials,
            summary=summary,
            line=line,
            first_line=first_line,
            # Before its last trial, every point would be judged for missing trials.
            verdict=verdict if final else None,
            findings=findings if final else (),
            environment=everything,
            fingerprint=None if environment is None else fingerprint(self.plan, planned, everything, osd_caches=drops),
            final=final,
        )
        return fit(status)

    def _all_missing(self) -> Iterator[TrialKey]:
        """Yield the next attempt at each (pass, point) pair, or in each search, that needs one."""
        for pass_number, point in self.plan.pairs:
            if point.name in self._ended:
                continue
            if (search := self.search(point.name)) is not None:
                if search.next_trial is not None:
                    yield search.next_trial
                continue
            attempts = self._attempts(point.name, pass_number)
            if not is_settled(attempts):
                yield TrialKey(point=point.name, pass_number=pass_number, attempt=next_attempt(attempts))

    def _attempts(self, point: str, pass_number: int) -> list[Trial]:
        return [trial for trial in self.trials[point] if trial.pass_number == pass_number]
