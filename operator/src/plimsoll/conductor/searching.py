"""The search for the line at a point: how far its trials have come, and which load is next.

Everything follows from the recorded trials, so a search continues where it was when its conductor died.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from plimsoll.api.line import LineSearch
from plimsoll.api.result import Trial
from plimsoll.api.state import TrialKey
from plimsoll.conductor.attempts import free_attempts, is_settled, next_attempt
from plimsoll.conductor.size import bare_outcome_of, without_histograms
from plimsoll.measure.intake import Offer
from plimsoll.measure.line.model import Progress, Settings, arrived_load, tried_loads
from plimsoll.measure.line.search import progress_of
from plimsoll.measure.line.summary import current_text, interval_text, is_known, unit_text
from plimsoll.plan.document import Point
from plimsoll.plan.line import offer_at, search_settings

_NEIGHBOURS = 2
"""On each side of the line, the trials that keep their histograms: a result has room for a few."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """A search after some trials.

    Attributes:
        progress: what the settled probes show.
        number: of the next probe: the one that needs another attempt, or a new one.
        attempt: of the next attempt at it.

    """

    point: Point
    asked: LineSearch
    progress: Progress
    number: int
    attempt: int

    @property
    def has_ended(self) -> bool:
        """Whether the search needs no further attempt."""
        return self.progress.next_load is None

    @property
    def next_trial(self) -> TrialKey | None:
        """The next attempt; None if the search has ended."""
        if self.has_ended:
            return None
        return TrialKey(point=self.point.name, pass_number=self.number, attempt=self.attempt)

    @property
    def offer(self) -> Offer | None:
        """The load of the next attempt, which is that of earlier ones at the same probe; None after the end."""
        load = self.progress.next_load
        return None if load is None else offer_at(self.point, self.asked, load)

    @property
    def message(self) -> str:
        """Return how far the search is: `line-000: probe 12 of at most 40, line 11,800 to 12,900 IOPS`."""
        line = self.progress.line
        known = f", line {interval_text(line, self.asked)} {unit_text(self.asked)}" if is_known(line) else ""
        return f"{self.point.name}: {current_text(self.number)}{known}"


def search_at(point: Point, asked: LineSearch, trials: Sequence[Trial]) -> Search:
    """Return the search at a point after its trials.

    They may be those of another version, or damaged: a trial without a load tells nothing, but its number is used up,
    and so is that of a pending probe whose load is not the next one.
    """
    settings = search_settings(point, asked)
    probes = _by_number(trials)
    last = max(probes, default=-1)
    earlier = [trial for number in sorted(probes) if number != last for trial in probes[number]]
    attempts = probes.get(last, [])
    if not is_settled(attempts, free_attempts(earlier)):
        number = max(last, 0)
        progress = _progress(earlier, number, settings)
        if all(trial.probe is not None and trial.probe.offered == progress.next_load for trial in attempts):
            return Search(point=point, asked=asked, progress=progress, number=number, attempt=next_attempt(attempts))
    progress = _progress([*earlier, *attempts], last + 1, settings)
    return Search(point=point, asked=asked, progress=progress, number=last + 1, attempt=0)


def _by_number(trials: Sequence[Trial]) -> dict[int, list[Trial]]:
    ordered = sorted(trials, key=lambda trial: (trial.pass_number, trial.attempt))
    return {number: [*group] for number, group in groupby(ordered, key=lambda trial: trial.pass_number)}


def _progress(trials: Sequence[Trial], number: int, settings: Settings) -> Progress:
    """Return what trials show before the probe of this number; numbers without a load are used up."""
    tried = tried_loads(trials)
    lost = number - len(tried)
    return progress_of(tried, replace(settings, most_probes=max(1, settings.most_probes - lost)))


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
    loads = {
        trial.pass_number: arrived_load(trial, trial.probe)
        for trial in trials
        if trial.probe and trial.probe.offered > 0
    }
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
