"""The loads that a search has tried, and what each trial says about the storage."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from plimsoll.api.line import ProbeOutcome
from plimsoll.api.names import Verdict
from plimsoll.api.result import Trial
from plimsoll.measure.summary import last_attempts

BROKEN = {ProbeOutcome.LATE, ProbeOutcome.NOT_ACHIEVED, ProbeOutcome.DEPTH_FULL}
"""The outcomes of a trial that broke."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TriedLoad:
    """One probe of a search.

    Attributes:
        load: the load that was offered, in the unit of `Vary`.
        outcome: whether the trial met the objectives.
        verdict: of the trial; an Invalid one says nothing about the storage.

    """

    load: float
    outcome: ProbeOutcome
    verdict: Verdict = Verdict.VALID

    @property
    def is_broken(self) -> bool:
        """Whether the load was not achieved or an objective not met; only of a probe that counts."""
        return self.outcome in BROKEN

    @property
    def counts(self) -> bool:
        """Whether the probe says anything about the storage."""
        return self.has_numbers and self.outcome is not ProbeOutcome.UNKNOWN

    @property
    def has_numbers(self) -> bool:
        """Whether its numbers are trustworthy; if it does not count nevertheless, they were too few."""
        return self.verdict is not Verdict.INVALID


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
    return TriedLoad(load=probe.offered, outcome=probe.outcome, verdict=trial.verdict)
