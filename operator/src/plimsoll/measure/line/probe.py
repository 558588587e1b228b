"""The loads that a search has tried, and what each trial says about the storage."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from plimsoll.api.line import Probe, ProbeOutcome
from plimsoll.api.names import Verdict
from plimsoll.api.result import Trial
from plimsoll.measure.line.load import mean_in_flight
from plimsoll.measure.summary import last_attempts

BROKEN = {ProbeOutcome.LATE, ProbeOutcome.NOT_ACHIEVED, ProbeOutcome.DEPTH_FULL}
"""The outcomes of a trial that broke."""

_SAYS_NOTHING = {ProbeOutcome.UNKNOWN, ProbeOutcome.NOT_OFFERED}

_SHORT = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class TriedLoad:
    """One probe of a search.

    Loads are in the unit of `Vary`.

    Attributes:
        offered: the load that was to be offered.
        load: the load that the storage met: in an open loop that its depth did not fill, the one that arrived, since a
            client that does not get a processor in time offers less.
        outcome: whether the trial met the objectives.
        verdict: of the trial; an Invalid one says nothing about the storage.

    """

    offered: float
    load: float
    outcome: ProbeOutcome
    verdict: Verdict = Verdict.VALID

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
    return min(probe.offered, probe.achieved + _left_in_flight(trial))


def _left_in_flight(trial: Trial) -> float:
    """Return the operations in flight at the end, for each second of the trial."""
    rates = [(one.rates.iops, one.latency.mean_nanoseconds) for one in trial.operations]
    in_flight = mean_in_flight(rates)
    seconds = trial.window.seconds if trial.window else 0.0
    return 2 * in_flight / seconds if in_flight and seconds else 0.0


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
