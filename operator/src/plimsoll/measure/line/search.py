"""The search for the line: the loads that were tried, and the next load or the result.

It is a pure function of the probes so far, so a search can stop and resume after any of them:

1. a ladder of loads brackets the line (`next_rung`);
2. then each load is chosen to leave the least variance of the line's position (`curve`), and every third one next to
   that load, to show how much the storage scatters; where the line seems to be beyond the highest or the lowest load,
   that load is repeated until this is proven (`claim_e_value`). The lowest load is then the lowest with enough
   operations for the percentiles, which is found by halving the gap above the loads with too few;
3. where the interval is narrow enough, a load far from the line with an unexpected outcome is tried again: it may not
   be a lapse but a load that the storage handles worse than higher ones;
4. the end checks whether there is one line, and whether it moved (`exception_bayes_factor`, `drift_bayes_factor`).
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import takewhile

from plimsoll.api.line import MOST_PROBES, Ending, Line, Probe, ProbeOutcome
from plimsoll.api.names import Verdict
from plimsoll.api.result import Trial as Attempt
from plimsoll.api.storage import OsdsAway
from plimsoll.measure.attempts import as_counted, counts, first_attempts, last_attempts
from plimsoll.measure.line.curve import (
    LINE_DRIFTING,
    NEEDED,
    NOT_MONOTONE,
    Posterior,
    Trial,
    claim_e_value,
    drift_bayes_factor,
    exception_bayes_factor,
    posterior,
)
from plimsoll.measure.line.observe import BROKEN, in_flight_of
from plimsoll.measure.rates import grouped
from plimsoll.measure.statistics import CONFIDENCE

_IN_A_ROW = 2
_OFFSETS = tuple(step / 2 for step in range(-4, 5))  # candidates: deviations from the median of the line's position
_EDGE_EVERY = 3
_EDGE = 1.2
"""Each third load is this many spreads above or below the estimate, in turn: only such trials show how large the spread
is, and with too small a spread the interval would be too narrow."""
_FAR = 3  # this many spreads from the line nearly all trials have the same outcome
_CHECKS = 5  # trials at a load far from the line, half or more with the other outcome
_MOST_VAIN = 4  # probes that do not count, in a row or at one load; more would not either, each had three attempts
_ARRIVED = 0.99  # by chance, this part of a load arrives in nearly every trial with many operations
_GAP = 1.1  # loads are this far above one with too few operations, since their number scatters by a few percent


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Bounds and precision of a search, in the load's unit; ValueError if no evenly shared load is within."""

    start: float  # the first load
    limit: float  # the highest load that is ever offered
    precision_percent: float = 10.0  # the search ends at an interval of at most this width, in percent of the estimate
    floor: float = 0.0  # the lowest load that is ever offered
    step: float = 1.0  # every load is a multiple of it: the number of clients that share the load evenly
    most_probes: int = MOST_PROBES  # the search ends after this many probes
    storm: OsdsAway | None = None  # the OSDs that are away in each probe; None in a search for the calm line
    calm: Line | None = None  # the line that limits a search for the storm line; None if no reliable one does

    def __post_init__(self) -> None:
        if not self.floor:
            object.__setattr__(self, "floor", self.start / 1024)
        if self.lowest > self.highest:
            raise ValueError(f"no multiple of {self.step:g} lies between {self.floor:g} and {self.limit:g}")

    @property
    def lowest(self) -> float:
        return max(1, math.ceil(self.floor / self.step)) * self.step

    @property
    def highest(self) -> float:
        return math.floor(self.limit / self.step) * self.step

    def offered(self, load: float) -> float:
        """Return the load closest to this one that can be offered."""
        return min(max(round(load / self.step) * self.step, self.lowest), self.highest)

    def below(self, calm: Line) -> "Settings":
        """Return these settings for a storm line, which does not exceed the calm one: the first load is half of that.

        Below a line without a lower bound, one probe shows as much as many: each takes OSDs away.
        """
        limit = max(self.lowest, min(self.limit, calm.high or self.limit))
        if not (known := calm.estimate or calm.low):
            return replace(self, start=self.lowest, limit=limit, most_probes=1)
        is_reliable = calm.high == limit and calm.ending in {Ending.PRECISE, Ending.PROBES_USED_UP}
        return replace(self, start=min(known / 2, limit), limit=limit, calm=calm if is_reliable else None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """A search for the line after some probes; loads are in operations per second or operations in flight."""

    line: Line  # the line as far as it is known, with the ending of a search that ended
    next_load: float | None  # the next load to offer; None if the search ended
    evidence: float = 0.0  # the Bayes factor behind an ending that doubts the line; 0 of other endings


@dataclass(frozen=True, slots=True, kw_only=True)
class TriedLoad:
    """One probe of a search. Loads are in the unit of `Vary`."""

    offered: float  # the load that was to be offered
    # The load that the storage met: in an open loop that its depth did not fill, what arrived, since a client that does
    # not get a processor in time offers less.
    load: float
    outcome: ProbeOutcome | None  # whether the trial met the objectives; None of an Invalid one, which says nothing

    @property
    def is_short(self) -> bool:
        """Whether clearly less arrived than was to be offered."""
        return self.load < 0.95 * self.offered

    @property
    def is_broken(self) -> bool:
        """Whether the load was not achieved or an objective not met; only of a probe that counts."""
        return self.outcome in BROKEN

    @property
    def counts(self) -> bool:
        """Whether the probe says anything about the storage."""
        return self.outcome in BROKEN | {ProbeOutcome.MET}

    @property
    def has_too_few(self) -> bool:
        """Whether its numbers are trustworthy, but of too few operations, which a higher load would have."""
        return self.outcome is ProbeOutcome.UNKNOWN


def arrived_load(trial: Attempt, probe: Probe) -> float:
    """Return the load that the storage met in a trial with that probe.

    In an open loop that is what arrived, unless the depth was full: what was completed, and what was in flight at the
    end: if that number grew evenly, twice the mean of Little's law.
    """
    says_what_arrived = probe.depth_full_percent is not None and probe.outcome in {ProbeOutcome.MET, ProbeOutcome.LATE}
    if not (says_what_arrived and probe.achieved):
        return probe.offered
    in_flight, seconds = in_flight_of(trial.operations), trial.window.seconds if trial.window else 0.0
    left = 2 * in_flight / seconds if in_flight and seconds else 0.0
    return min(probe.offered, probe.achieved + left)


def tried_loads(trials: Iterable[Attempt]) -> Sequence[TriedLoad]:
    """Return the probes of a search from its trials: the last attempt at each."""
    return [tried for trial in last_attempts(trials).values() if (tried := _tried(trial))]


def counting_trials(trials: Iterable[Attempt]) -> Sequence[Attempt]:
    """Return the trials of a search that say anything about the storage, in the order of the probes."""
    return [trial for trial in last_attempts(trials).values() if (tried := _tried(trial)) and tried.counts]


def _tried(trial: Attempt) -> TriedLoad | None:
    probe = trial.probe
    # Nothing was tried without a load; only a damaged record has none.
    if probe is None or probe.offered <= 0:
        return None
    outcome = None if trial.verdict is Verdict.INVALID else probe.outcome
    return TriedLoad(offered=probe.offered, load=arrived_load(trial, probe), outcome=outcome)


def next_rung(broken: Mapping[float, bool], settings: Settings) -> float | None:
    """Return the load to try next, or None if the line is bracketed as far as the limits permit.

    `broken` maps a load to whether its first trial broke; to False if the load yields too few operations to know that,
    because higher loads yield more.
    """
    # The start, and halves of it down to the lowest load.
    descent = [start := settings.offered(settings.start)]
    while descent[-1] > settings.lowest:
        descent.append(settings.offered(descent[-1] / 2))
    # The highest rung of the descent that is not known to break, or the lowest load.
    foot = next((rung for rung in descent if not broken.get(rung, False)), settings.lowest)
    ascent = [rung for rung in reversed(descent) if rung >= foot]
    while ascent[-1] < settings.highest:
        ascent.append(settings.offered(2 * ascent[-1]))
    in_a_row = 0
    for rung in ascent:
        if rung not in broken:
            return rung
        in_a_row = in_a_row + 1 if broken[rung] else 0
        if in_a_row >= _IN_A_ROW and (rung > start or not broken[foot]):
            break
    return None


def progress_of(probes: Sequence[TriedLoad], settings: Settings) -> Progress:
    """Return what the probes show, and the next load unless the search ended."""
    return _Search(probes, settings).progress()


def first_line_of(trials: Sequence[Attempt], settings: Settings, line: Line) -> Line | None:
    """Return the line as first attempts show it, with the ending of `line`; None if all of these count."""
    if all(map(counts, first := first_attempts(trials))):
        return None
    probes = tried_loads([trial if counts(trial) else as_counted(trial) for trial in first])
    return progress_of(probes, settings).line.model_copy(update={"ending": line.ending})


@dataclass(frozen=True)
class _Search:
    probes: Sequence[TriedLoad]
    settings: Settings

    def progress(self) -> Progress:
        outcomes = dict.fromkeys(self.sparse, False)
        for probe in self.counted:
            outcomes.setdefault(probe.offered, probe.is_broken)
        rung = next_rung(outcomes, self.settings)
        # Before the ladder brackets the line, nothing is known beyond the loads that were tried.
        make_line = self._made if rung is not None else self._line
        last = takewhile(lambda probe: not probe.counts, reversed(self.probes))
        useful = {probe.offered for probe in self.counted}
        vain = Counter(probe.offered for probe in self.probes if self._is_vain(probe) and probe.offered not in useful)
        are_vain = max([sum(map(self._is_vain, last)), *vain.values()]) >= _MOST_VAIN
        if are_vain or (rung is None and not self.trials):
            return Progress(line=make_line(Ending.PROBES_DO_NOT_COUNT), next_load=None)
        ending = self._ending() if rung is None else None
        load = rung if rung is not None else self._doubtful() if ending else self._placed()
        if load is not None and len(self.probes) < self.settings.most_probes:
            return Progress(line=make_line(), next_load=load)
        doubts = (
            (NOT_MONOTONE, exception_bayes_factor, Ending.NOT_MONOTONE),
            (LINE_DRIFTING, drift_bayes_factor, Ending.DRIFTING),
        )
        for check, bayes_factor, doubtful in doubts if self.trials else ():
            if check.verdict(evidence := bayes_factor(self.trials)) is not Verdict.VALID:
                return Progress(line=self._line(doubtful), next_load=None, evidence=evidence)
        return Progress(line=self._line(ending if ending and load is None else Ending.PROBES_USED_UP), next_load=None)

    @cached_property
    def counted(self) -> Sequence[TriedLoad]:
        return [probe for probe in self.probes if probe.counts]

    @cached_property
    def trials(self) -> Sequence[Trial]:
        return [Trial(math.log(probe.load), met=not probe.is_broken) for probe in self.counted]

    @cached_property
    def posterior(self) -> Posterior:
        return posterior(self.trials)

    @cached_property
    def interval(self) -> tuple[float, float, float]:
        """The estimate and the ends of its interval, as loads."""
        median, low, high = map(math.exp, self.posterior.interval(CONFIDENCE))
        return median, low, high

    @cached_property
    def enough(self) -> float:
        """The lowest load of a probe that counts; infinite if none does."""
        return min((probe.offered for probe in self.counted), default=math.inf)

    @cached_property
    def sparse(self) -> set[float]:
        """The loads that yield too few operations: below all loads that count, since chance explains it elsewhere."""
        return {probe.offered for probe in self.probes if probe.has_too_few and probe.offered < self.enough}

    @cached_property
    def least(self) -> float:
        """The lowest load that yields enough operations, as far as that is known; below it nothing can be learned."""
        if not self.sparse or not self.counted:
            return self.settings.lowest
        sparse = max(self.sparse)
        middle = math.sqrt(sparse * self.enough) if self.enough > _GAP * sparse else self.enough
        return min(max(self.settings.offered(middle), self.settings.offered(sparse + self.settings.step)), self.enough)

    @cached_property
    def breaks_at_least(self) -> bool:
        """Whether it is proven that most trials at the lowest load with enough operations break."""
        tried = [probe for probe in self.probes if probe.offered == self.least]
        # To give up blames nothing on the storage, so it does not matter there if clients offered too little.
        fair = [probe for probe in tried if self.least > self.settings.lowest or not probe.is_short]
        return claim_e_value([probe.is_broken for probe in fair if probe.counts or probe.has_too_few]) >= NEEDED

    def _is_vain(self, probe: TriedLoad) -> bool:
        return not probe.counts and (probe.offered not in self.sparse or not probe.has_too_few)

    def _ending(self) -> Ending | None:
        estimate, low, high = self.interval
        lowest, highest = self.settings.lowest, self.settings.highest
        # Where slow clients let less arrive, the interval begins below the highest load.
        at_highest = [not probe.is_broken for probe in self.counted if probe.offered == highest]
        if estimate >= highest and claim_e_value(at_highest) >= NEEDED:
            return Ending.NEVER_BROKE
        if low >= highest:
            return None
        if high <= self.least:
            if self.least == lowest:
                return Ending.BROKEN_AT_FIRST if self.breaks_at_least else None
            # Each probe of a storm takes OSDs away.
            return Ending.PROBES_DO_NOT_COUNT if self.settings.storm or self.breaks_at_least else None
        is_narrow = high - low <= max(self.settings.precision_percent / 100 * estimate, self.settings.step)
        return Ending.PRECISE if is_narrow and self._line().estimate is not None else None

    def _placed(self) -> float:
        median, low, high = self.interval
        if low >= self.settings.highest or high <= self.settings.lowest:
            return self._offered(low)
        if len(self.probes) % _EDGE_EVERY == 0:
            side = _EDGE if len(self.probes) // _EDGE_EVERY % 2 else -_EDGE
            return self._offered(median * math.exp(side * self.posterior.usual_spread))
        deviation = (math.log(high) - math.log(low)) / 4
        loads = {self._offered(math.exp(math.log(median) + offset * deviation)) for offset in _OFFSETS}
        return min(sorted(loads), key=lambda load: self.posterior.expected_variance(math.log(load)))

    def _offered(self, load: float) -> float:
        return max(self.settings.offered(load), self.least)

    def _doubtful(self) -> float | None:
        """Return the lowest load far from the line with unexpected outcomes and few trials."""
        far, estimate = _FAR * self.posterior.usual_spread, self.interval[0]
        for load, probes in sorted(grouped(self.counted, lambda probe: probe.offered).items()):
            as_expected = sum(probe.is_broken is (load >= estimate) for probe in probes)
            is_far = abs(math.log(load / estimate)) > far
            if is_far and len(probes) < _CHECKS and 2 * as_expected <= len(probes):
                return load
        return None

    def _line(self, ending: Ending | None = None) -> Line:
        made = self._made(ending)
        if not self.trials:
            return made
        estimate, low, high = self.interval
        highest = self.settings.highest
        held = [probe.load for probe in self.counted if not probe.is_broken and probe.load <= estimate]
        broken = [probe for probe in self.counted if probe.is_broken and probe.load >= estimate]
        # Clients without enough of a processor offer less, and are late without the storage's fault: where no load
        # held, nothing shows that the storage was.
        broke = [probe.load for probe in broken if held or not probe.is_short]
        proven = ending is Ending.NEVER_BROKE
        if proven or low >= highest:
            below = self._held_for_sure() if ending is None else max((it for it in held if it < highest), default=None)
            if proven:
                # What arrived in every trial that held at the highest load: with slow clients, less than that.
                below = min(it.load for it in self.counted if it.offered == highest and not it.is_broken)
                below = highest if below >= _ARRIVED * highest else below
                if (calm := self.settings.calm) and calm.low and below >= calm.low:
                    ends = {"estimate": calm.estimate, "low": calm.low, "high": calm.high}
                    return made.model_copy(update={"ending": Ending.EQUALS_CALM, **ends})
            return made.model_copy(update={"low": below})
        if high <= self.least:
            # The end of the interval is below all loads that count, where nothing is known.
            gave_up = ending in {Ending.BROKEN_AT_FIRST, Ending.PROBES_DO_NOT_COUNT}
            is_proven = bool(broke) and gave_up and self.breaks_at_least
            above = self.least if is_proven else min((load for load in broke if load > self.least), default=None)
            return made.model_copy(update={"high": above})
        is_known = held and broke and self.least <= estimate <= highest
        if ending is None and not broke:
            return made.model_copy(update={"low": self._held_for_sure()})
        return made.model_copy(
            update={
                "estimate": estimate if is_known else None,
                "low": low if held and estimate >= self.least else None,
                "high": high if broke else None,
            }
        )

    def _held_for_sure(self) -> float | None:
        """Return a bound while nothing has broken: far enough below the highest load not to fall when it is proven."""
        loads = (it.load for it in self.counted if not it.is_broken and it.offered <= self.settings.highest / 2)
        return max(loads, default=None)

    def _made(self, ending: Ending | None = None) -> Line:
        return Line(ending=ending, probes=len(self.probes), counted=len(self.counted), storm=self.settings.storm)
