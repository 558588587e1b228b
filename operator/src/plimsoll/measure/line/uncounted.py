"""Why probes of a search do not count, in words."""

from collections import Counter
from collections.abc import Iterable, Iterator

from plimsoll.api.line import ProbeOutcome
from plimsoll.api.names import Verdict
from plimsoll.api.result import Trial
from plimsoll.measure.summary import last_attempts
from plimsoll.measure.wording import first_few

_WHY = {
    ProbeOutcome.UNKNOWN: "too few operations for the percentile (raise runtimeSeconds)",
    ProbeOutcome.NOT_OFFERED: (
        "clients offered less than half of the load (give each at least two CPUs, use more clients, or lower the loads)"
    ),
}
"""Why a probe with trustworthy numbers does not count."""

_NAMED = 3


def uncounted_text(trials: Iterable[Trial]) -> str:
    """Return why probes do not count, the most frequent reasons first: `RuntimeTooShort in 5 probes, Stalled in 2`.

    Empty if all count. Of each probe the last attempt decides.
    """
    counts = Counter(reason for trial in last_attempts(trials).values() for reason in _reasons(trial))
    texts = [
        f"{reason} in {_probes(count) if number == 0 else count}"
        for number, (reason, count) in enumerate(counts.most_common())
    ]
    return first_few(texts, _NAMED)


def _reasons(trial: Trial) -> Iterator[str]:
    """Yield each reason of a probe that does not count once."""
    if trial.abort is not None:
        yield trial.abort.reason.value
    elif trial.verdict is Verdict.INVALID:
        invalid = [finding.reason for finding in trial.findings if finding.verdict is Verdict.INVALID]
        yield from dict.fromkeys(invalid)
    elif trial.probe is not None and trial.probe.outcome in _WHY:
        yield _WHY[trial.probe.outcome]


def _probes(count: int) -> str:
    return "1 probe" if count == 1 else f"{count} probes"
