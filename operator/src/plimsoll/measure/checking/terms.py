"""Whether a trial was one measurement: long enough, by one load generator, and shared by all of its clients.

The headline is a sum over the clients. It stands for so many clients only if each has done its part: with a client at a
twentieth of the others' rate, two clients are one. How far rates may differ depends on how much was done: a client that
does n operations where the others do m on average is given 3 sqrt(m) for chance, so that slow storage and low limits
of rates are not taken for uneven clients.
"""

import math
from collections.abc import Iterable, Iterator

from plimsoll.api.names import Operation
from plimsoll.api.result import Finding
from plimsoll.measure.checking import terms_checks as checks
from plimsoll.measure.checking.check import Observation, evaluate
from plimsoll.measure.checking.evidence import Evidence
from plimsoll.measure.intake import Measured, TrialFacts
from plimsoll.measure.provenance import clients_by_version
from plimsoll.measure.window import Interval
from plimsoll.measure.wording import clients_text, number_text

_PERCENT = 100
_CHANCE = 3
"""Standard deviations of a number of operations that come at random."""
_WITHOUT_RAMP = 10
"""The first second fills queues, maps and caches: without a ramp it is measured, and may be a thirtieth of all."""
_NAMED_VERSIONS = 4


def judge_terms(evidence: Evidence) -> tuple[Finding, ...]:
    """Return what does not hold, in the order of the table of checks."""
    return (
        *evaluate(checks.RUNTIME_TOO_SHORT, _runtime(evidence.facts)),
        *evaluate(checks.MIXED_VERSIONS, _versions(evidence.measured)),
        *evaluate(checks.CLIENTS_UNEVEN, _parts(evidence)),
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


def _parts(evidence: Evidence) -> Iterator[Observation]:
    """Look at what each client did inside the window. One whose tool failed is named by another check."""
    span = evidence.span
    if not evidence.facts.windowed or span is None or not span.length:
        return
    done = {item.client: _done(item, span) for item in evidence.measured if not item.answer.failed}
    total = sum(done.values())
    for client, own in done.items():
        others = (total - own) / max(1, len(done) - 1)
        if others:
            detail = (
                f"{number_text(round(own))} operations inside the window, while the others did "
                f"{number_text(round(others))} on average: {_PERCENT * own / others:.3g} %"
            )
            value = _PERCENT * (own + _CHANCE * math.sqrt(others)) / others
            yield Observation(clients=(client,), value=value, detail=detail)


def _done(item: Measured, span: Interval) -> float:
    """Return a client's operations inside the window, without syncs: they carry no data."""
    return sum(share.within(span).ios for share in item.shares if share.sample.operation is not Operation.SYNC)
