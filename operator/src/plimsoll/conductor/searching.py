"""The search for the line at a point: how far its trials have come, and which load is next.

Everything follows from the recorded trials, so a search continues where it was when its conductor died.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from plimsoll.api.line import LineSearch
from plimsoll.api.result import Trial
from plimsoll.api.state import TrialKey
from plimsoll.conductor.attempts import free_attempts, is_settled
from plimsoll.conductor.size import bare_outcome_of, without_histograms
from plimsoll.measure.line.offer import Offer
from plimsoll.measure.line.probe import tried_loads
from plimsoll.measure.line.result import Progress
from plimsoll.measure.line.search import progress_of
from plimsoll.measure.line.wording import current_text, interval_text, is_known, unit_text
from plimsoll.plan.document import Point
from plimsoll.plan.line import search_settings

_NEIGHBOURS = 2
"""On each side of the line, the trials that keep their histograms: a result has room for a few."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """A search after some trials.

    Attributes:
        progress: what the settled probes show.
        pending: attempts at the probe that needs another one; empty if the next probe is a new one.

    """

    point: Point
    asked: LineSearch
    progress: Progress
    pending: Sequence[Trial]

    @property
    def has_ended(self) -> bool:
        """Whether the search needs no further attempt."""
        return self.progress.next_load is None

    @property
    def next_trial(self) -> TrialKey | None:
        """The next attempt; None if the search has ended."""
        if self.has_ended:
            return None
        number = self.progress.line.probes
        return TrialKey(point=self.point.name, pass_number=number, attempt=len(self.pending))

    @property
    def offer(self) -> Offer | None:
        """The load of the next attempt, which is that of earlier ones at the same probe; None after the end."""
        load = next((trial.probe.offered for trial in self.pending if trial.probe), self.progress.next_load)
        return None if load is None or self.has_ended else Offer(search=self.asked, load=load)

    @property
    def message(self) -> str:
        """Return how far the search is: `line-000: probe 12 of at most 40, line 11,800 to 12,900 IOPS`."""
        line = self.progress.line
        known = f", line {interval_text(line, self.asked)} {unit_text(self.asked)}" if is_known(line) else ""
        return f"{self.point.name}: {current_text(line.probes)}{known}"


def search_at(point: Point, asked: LineSearch, trials: Sequence[Trial]) -> Search:
    """Return the search at a point after its trials."""
    settled: list[Trial] = []
    pending: list[Trial] = []
    ordered = sorted(trials, key=lambda trial: (trial.pass_number, trial.attempt))
    for _, group in groupby(ordered, key=lambda trial: trial.pass_number):
        attempts = [*group]
        if is_settled(attempts, free_attempts(settled)):
            settled += attempts
        else:
            pending = attempts
    progress = progress_of(tried_loads(settled), search_settings(point, asked))
    return Search(point=point, asked=asked, progress=progress, pending=pending)


def recorded(search: Search, trials: Sequence[Trial]) -> tuple[Trial, ...]:
    """Return the trials of a search as they are kept: full histograms only next to the line."""
    near = _near(search, trials)
    last = {trial.pass_number: trial.attempt for trial in trials}
    return tuple(
        bare_outcome_of(trial)
        if trial.attempt < last[trial.pass_number]
        else trial
        if trial.pass_number in near
        else without_histograms(trial)
        for trial in trials
    )


def _near(search: Search, trials: Sequence[Trial]) -> set[int]:
    """Return the probes with the loads next to the line on both sides; before it is known, next to the last load."""
    loads = {trial.pass_number: trial.probe.offered for trial in trials if trial.probe}
    if not loads:
        return set()
    line = search.progress.line
    centre = line.estimate or line.low or line.high or loads[max(loads)]
    below = [number for number, load in loads.items() if load <= centre]
    above = [number for number, load in loads.items() if load > centre]

    def distance(number: int) -> tuple[float, int]:
        """Of equal loads, the last one is nearest."""
        return abs(math.log(loads[number] / centre)), -number

    return {number for side in (below, above) for number in sorted(side, key=distance)[:_NEIGHBOURS]}
