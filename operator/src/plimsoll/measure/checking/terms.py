"""Whether a trial was one measurement: long enough, by one load generator, and shared by all of its clients.

How far clients may differ is the business of `evenness`.
"""

from collections.abc import Iterable, Iterator

from plimsoll.api.result import Finding
from plimsoll.measure.checking import terms_checks as checks
from plimsoll.measure.checking.check import Observation, evaluate
from plimsoll.measure.checking.evenness import uneven
from plimsoll.measure.checking.evidence import Evidence
from plimsoll.measure.intake import Measured, TrialFacts
from plimsoll.measure.provenance import clients_by_version
from plimsoll.measure.wording import clients_text

_PERCENT = 100
_WITHOUT_RAMP = 10
"""The first second fills queues, maps and caches: without a ramp it is measured, and may be a thirtieth of all."""
_NAMED_VERSIONS = 4


def judge_terms(evidence: Evidence) -> tuple[Finding, ...]:
    """Return what does not hold, in the order of the table of checks."""
    return (
        *evaluate(checks.RUNTIME_TOO_SHORT, _runtime(evidence.facts)),
        *evaluate(checks.MIXED_VERSIONS, _versions(evidence.measured)),
        *evaluate(checks.CLIENTS_UNEVEN, uneven(evidence)),
    )


def _runtime(facts: TrialFacts) -> Iterator[Observation]:
    """Look at what was asked for; whether the tool did it is another check's matter."""
    least = facts.least_runtime_seconds * (1 if facts.ramp_seconds else _WITHOUT_RAMP)
    if facts.windowed and least:
        asked = f"{facts.runtime_seconds} s after a ramp of {facts.ramp_seconds} s were asked for"
        part = _PERCENT * facts.runtime_seconds / least
        yield Observation(value=part, detail=f"{asked}, {part:.3g} % of the {least} s that mean something")


def _versions(measured: Iterable[Measured]) -> Iterator[Observation]:
    """Name the clients of all versions but the most frequent."""
    found = clients_by_version(measured)
    if len(found) > 1:
        ordered = sorted(found.items(), key=lambda item: (-len(item[1]), item[0]))
        named = "; ".join(f"{version}: {clients_text(clients)}" for version, clients in ordered[:_NAMED_VERSIONS])
        others = tuple(client for _, clients in ordered[1:] for client in clients)
        yield Observation(clients=others, value=len(found), detail=f"{len(found)} versions of the tool ({named})")
