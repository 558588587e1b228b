"""Whether a trial was one measurement: long enough, by one load generator, and shared by all clients.

The headline is a sum over the clients, so each must have done its part. A client is compared with the others on both
sides, with the same limits:

    slow:  own operations           / mean of the others'
    fast:  median of the others'    / own operations

The median keeps a second fast client from hiding the first. Clients that share a node may share a bottleneck, so a
client is fast only if it still is after every client's operations are multiplied by the number of clients on its node.
Fast clients raise the mean, so that all others may seem slow: if they are fewer than half, only they are named.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from plimsoll.api.names import Operation, Verdict
from plimsoll.api.result import Finding
from plimsoll.measure.checking import checks
from plimsoll.measure.checking.check import CheckedValue, evaluate
from plimsoll.measure.checking.evidence import Evidence
from plimsoll.measure.intake import ClientMeasurement
from plimsoll.measure.provenance import clients_by_version
from plimsoll.measure.quantities import Quantities
from plimsoll.measure.window import NANOSECONDS, Interval
from plimsoll.measure.wording import clients_text, number_text, percent_text

_WITHOUT_RAMP = 10
"""Without a ramp the first second is measured, which fills queues and caches: it may be a thirtieth of the whole."""
_NAMED_VERSIONS = 4
_CHANCE = 3
"""Standard deviations, sqrt(n) of n operations, that are left to chance: slow storage is not uneven."""
_PAIR = 2
_LIMIT = checks.CLIENTS_UNEVEN


def judge_terms(evidence: Evidence) -> tuple[Finding, ...]:
    """Return the findings, in the order of the table of checks."""
    return (
        *evaluate(checks.RUNTIME_TOO_SHORT, _runtime(evidence)),
        *evaluate(checks.MIXED_VERSIONS, _versions(evidence.measured)),
        *evaluate(checks.CLIENTS_UNEVEN, _uneven(evidence)),
    )


def _runtime(evidence: Evidence) -> Iterator[CheckedValue]:
    """Check the requested runtime, or the time of work that ends; whether it was all done is another check."""
    facts = evidence.facts
    has_ramp = facts.windowed and facts.ramp_seconds
    least = facts.least_runtime_seconds * (1 if has_ramp else _WITHOUT_RAMP)
    if not least or not (facts.windowed or facts.ends_when_done):
        return
    worked = [item.interval.length for item in evidence.measured] if facts.ends_when_done else []
    seconds = min(worked) / NANOSECONDS if worked else facts.runtime_seconds
    part = 100 * seconds / least
    runtime = (
        f"the first client ended after {number_text(seconds)} s"
        if worked
        else f"the requested runtime is {facts.runtime_seconds} s after a ramp of {facts.ramp_seconds} s"
    )
    yield CheckedValue(value=part, detail=f"{runtime}, {percent_text(part)} of the minimum of {least} s")


def _versions(measured: Iterable[ClientMeasurement]) -> Iterator[CheckedValue]:
    """Name the clients of all versions but the most frequent."""
    found = clients_by_version(measured)
    if len(found) > 1:
        ordered = sorted(found.items(), key=lambda item: (-len(item[1]), item[0]))
        named = "; ".join(f"{version}: {clients_text(clients)}" for version, clients in ordered[:_NAMED_VERSIONS])
        others = tuple(client for _, clients in ordered[1:] for client in clients)
        yield CheckedValue(clients=others, value=len(found), detail=f"{len(found)} versions of the tool ({named})")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """What one client did in the compared time.

    Attributes:
        amount: operations, or bytes if the tool does not count operations.
        unit: of the amount.
        sharing: clients on its node, itself included.
        when: the compared time, in words.

    """

    client: int
    amount: float
    unit: str
    sharing: int
    when: str


def _uneven(evidence: Evidence) -> list[CheckedValue]:
    """Compare each client with the others, without those whose tool failed: another check names them.

    Cells of a matrix are compared by another check, which knows how many of them share a link.
    """
    span = _compared_time(evidence)
    if span is None or not span.length or evidence.facts.quantities.cells:
        return []
    parts = _parts(evidence, [item for item in evidence.measured if not item.answer.failed], span)
    slow = [(part, found) for part in parts if (found := _slow(part, parts)) and _is_bad(found)]
    fast = [found for part in parts if (found := _fast(part, parts, span)) and _is_bad(found)]
    named = [found for _, found in slow]
    everything = named + fast
    if 2 * len(fast) < len(parts):
        usual = median(part.amount for part in parts)
        # If most clients are idle, they are the problem and not the one that works; the verdict is as severe.
        named = [found for part, found in slow if _is_slow_beside(usual, part)] + (fast if usual else [])
    return named if _worst(named) is _worst(everything) else everything


def _compared_time(evidence: Evidence) -> Interval | None:
    """Return the time in which the clients are compared; None if they cannot be.

    Clients that do an amount of work are compared until the first one is done. They all do the same in the end.
    """
    intervals = [item.interval for item in evidence.measured if not item.answer.failed]
    if evidence.facts.windowed or not intervals:
        return evidence.span if evidence.facts.windowed else None
    first = Interval(start=min(one.start for one in intervals), end=min(one.end for one in intervals))
    return first if evidence.facts.ends_when_done and first.end > first.start else None


def _is_bad(value: CheckedValue) -> bool:
    return _LIMIT.verdict(value.value) is not Verdict.VALID


def _worst(values: Iterable[CheckedValue]) -> Verdict:
    return _LIMIT.verdict(min((found.value for found in values), default=100))


def _is_slow_beside(usual: float, part: _Part) -> bool:
    """Whether a client is slow compared with the median of all, and not only with a mean that fast clients raise."""
    return not usual or _LIMIT.verdict(100 * part.amount / usual) is not Verdict.VALID


def _parts(evidence: Evidence, measured: Sequence[ClientMeasurement], span: Interval) -> list[_Part]:
    nodes = Counter(item.node for item in measured)
    quantities = evidence.facts.quantities
    return [
        _Part(
            client=item.client,
            amount=_done(item, span, quantities),
            unit=quantities.unit,
            sharing=nodes[item.node],
            when="in the window" if evidence.facts.windowed else "until the first client was done",
        )
        for item in measured
    ]


def _done(item: ClientMeasurement, span: Interval, quantities: Quantities) -> float:
    """Return what a client did in the window, without syncs: they carry no data."""
    done = [share.within(span) for share in item.shares if share.sample.operation is not Operation.SYNC]
    return sum(quantities.amount(amount.ios, amount.bytes) for amount in done)


def _slow(part: _Part, parts: Sequence[_Part]) -> CheckedValue | None:
    others = (sum(one.amount for one in parts) - part.amount) / max(1, len(parts) - 1)
    if not others:
        return None
    detail = (
        f"completed {part.amount:.0f} {part.unit} {part.when}, {percent_text(100 * part.amount / others)} of the "
        f"others' mean of {others:.0f}"
    )
    if len(parts) == _PAIR:
        detail = f"{detail}; either of the two may be the outlier"
    value = 100 * (part.amount + _CHANCE * math.sqrt(others)) / others
    return CheckedValue(clients=(part.client,), value=value, detail=detail)


def _fast(part: _Part, parts: Sequence[_Part], span: Interval) -> CheckedValue | None:
    others = [one for one in parts if one is not part]
    if not others or not part.amount:
        return None
    usual = median(one.amount for one in others)
    by_node = median(one.amount * one.sharing for one in others) / part.sharing
    seconds = span.length / NANOSECONDS
    times = f"{number_text(part.amount / usual)} times" if usual else "compared with"
    detail = (
        f"{number_text(part.amount / seconds)} {part.unit}/s {part.when}, {times} the others' median of "
        f"{number_text(usual / seconds)}, which is {percent_text(100 * usual / part.amount)} of it"
    )
    value = 100 * (max(usual, by_node) + _CHANCE * math.sqrt(part.amount)) / part.amount
    return CheckedValue(clients=(part.client,), value=value, detail=detail)
