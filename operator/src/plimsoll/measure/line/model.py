"""A search for the line: what it is asked to do, the loads that it has tried, and what it has found."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from plimsoll.api.line import MOST_PROBES, Line, Probe, ProbeOutcome
from plimsoll.api.names import Verdict
from plimsoll.api.result import Trial
from plimsoll.measure.attempts import last_attempts
from plimsoll.measure.line.observe import BROKEN, in_flight_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Bounds and precision of a search; loads are in operations per second or operations in flight.

    ValueError if no load that the clients share evenly is within the bounds.
    """

    start: float  # the first load
    limit: float  # the highest load that is ever offered
    # The search ends when its interval is at most this wide, in percent of the estimate.
    precision_percent: float = 10.0
    floor: float = 0.0  # the lowest load that is ever offered
    step: float = 1.0  # every load is a multiple of it: the number of clients that share the load evenly
    most_probes: int = MOST_PROBES  # the search ends after this many probes

    def __post_init__(self) -> None:
        if not self.floor:
            object.__setattr__(self, "floor", self.start / 1024)
        if self.lowest > self.highest:
            raise ValueError(f"no multiple of {self.step:g} lies between {self.floor:g} and {self.limit:g}")

    @property
    def lowest(self) -> float:
        """The lowest load that can be offered."""
        return max(1, math.ceil(self.floor / self.step)) * self.step

    @property
    def highest(self) -> float:
        """The highest load that can be offered."""
        return math.floor(self.limit / self.step) * self.step

    def offered(self, load: float) -> float:
        """Return the load closest to this one that can be offered."""
        return min(max(round(load / self.step) * self.step, self.lowest), self.highest)


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """A search for the line after some probes; loads are in operations per second or operations in flight."""

    line: Line  # the line as far as it is known, with the ending of a search that ended
    next_load: float | None  # the next load to offer; None if the search ended
    evidence: float = 0.0  # the Bayes factor behind an ending that doubts the line; 0 of other endings


_SAYS_NOTHING = {ProbeOutcome.UNKNOWN, ProbeOutcome.NOT_OFFERED}

_SHORT = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class TriedLoad:
    """One probe of a search.

    Loads are in the unit of `Vary`.
    """

    offered: float  # the load that was to be offered
    # The load that the storage met: in an open loop that its depth did not fill, the one that arrived, since a client
    # that does not get a processor in time offers less.
    load: float
    outcome: ProbeOutcome  # whether the trial met the objectives
    verdict: Verdict = Verdict.VALID  # of the trial; an Invalid one says nothing about the storage

    @property
    def is_short(self) -> bool:
        """Whether clearly less arrived than was to be offered."""
        return self.load < _SHORT * self.offered

    @property
    def is_broken(self) -> bool:
        """Whether the load was not achieved or an objective not met; only of a probe that counts."""
        return self.outcome in BROKEN

    @property
    def counts(self) -> bool:
        """Whether the probe says anything about the storage."""
        return self.has_numbers and self.outcome not in _SAYS_NOTHING

    @property
    def has_numbers(self) -> bool:
        """Whether its numbers are trustworthy."""
        return self.verdict is not Verdict.INVALID

    @property
    def has_too_few(self) -> bool:
        """Whether its numbers are trustworthy, but of too few operations, which a higher load would have."""
        return self.has_numbers and self.outcome is ProbeOutcome.UNKNOWN


def arrived_load(trial: Trial, probe: Probe) -> float:
    """Return the load that the storage met in a trial with that probe.

    In an open loop that is what arrived, unless the depth was full: what was completed, and what was in flight at the
    end. If that number grew evenly, it was twice the mean, which Little's law gives.
    """
    is_open = probe.depth_full_percent is not None
    if not (is_open and probe.achieved and probe.outcome in {ProbeOutcome.MET, ProbeOutcome.LATE}):
        return probe.offered
    in_flight = in_flight_of(trial.operations)
    seconds = trial.window.seconds if trial.window else 0.0
    left = 2 * in_flight / seconds if in_flight and seconds else 0.0
    return min(probe.offered, probe.achieved + left)


def tried_loads(trials: Iterable[Trial]) -> Sequence[TriedLoad]:
    """Return the probes of a search from its trials: the last attempt at each."""
    return [tried for trial in last_attempts(trials).values() if (tried := _tried(trial))]


def counting_trials(trials: Iterable[Trial]) -> Sequence[Trial]:
    """Return the trials of a search that say anything about the storage, in the order of the probes."""
    return [trial for trial in last_attempts(trials).values() if (tried := _tried(trial)) and tried.counts]


def _tried(trial: Trial) -> TriedLoad | None:
    probe = trial.probe
    # Nothing was tried without a load; only a damaged record has none.
    if probe is None or probe.offered <= 0:
        return None
    return TriedLoad(
        offered=probe.offered, load=arrived_load(trial, probe), outcome=probe.outcome, verdict=trial.verdict
    )


def lower_bound(low: float, limit: float) -> float:
    """Return the lower bound of a line: at most the limit, since no higher load was tried."""
    return min(low, limit)
