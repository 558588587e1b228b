"""Whether the clients of a trial shared its load.

The headline is a sum over the clients. It stands for so many clients only if each has done its part: with a client at a
twentieth of the others' rate, two clients are one; and with one at nine times the others' rate, as if a cache answered
it, half of the sum is that one's. So a client is compared on both sides, with the same limits:

    slow:  own operations           / mean of the others'
    fast:  median of the others'    / own operations

The median, because a second fast client must not hide the first. Clients that share a node may share what limits them,
so a client is fast only if it also is when every client's operations are multiplied by the clients of its node: one
that has its node for itself may do as much as the two of another node together.

How far rates may differ depends on how much was done: of n operations, the larger of the two numbers, 3 sqrt(n) are
left to chance, so that slow storage and low limits of rates are not taken for uneven clients.

Fast clients pull up the mean, so that all others may seem slow. If the fast ones are fewer than half of the clients,
the others are not named for that; otherwise the slow ones are named. The verdict is the worst of both sides all the
same.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from plimsoll.api.names import Operation, Verdict
from plimsoll.measure.checking import terms_checks as checks
from plimsoll.measure.checking.check import Observation
from plimsoll.measure.checking.evidence import Evidence
from plimsoll.measure.intake import Measured
from plimsoll.measure.window import NANOSECONDS, Interval
from plimsoll.measure.wording import number_text

_PERCENT = 100
_CHANCE = 3
"""Standard deviations of a number of operations that come at random."""
_PAIR = 2
_LIMIT = checks.CLIENTS_UNEVEN


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """What one client did inside the window.

    Attributes:
        ios: its operations.
        sharing: clients on its node, itself included.

    """

    client: int
    ios: float
    sharing: int


def uneven(evidence: Evidence) -> list[Observation]:
    """Compare each client with the others. One whose tool failed is named by another check."""
    span = evidence.span
    if not evidence.facts.windowed or span is None or not span.length:
        return []
    parts = _parts([item for item in evidence.measured if not item.answer.failed], span)
    slow = [(part, found) for part in parts if (found := _slow(part, parts)) and _is_bad(found)]
    fast = [found for part in parts if (found := _fast(part, parts, span)) and _is_bad(found)]
    if 2 * len(fast) < len(parts):
        usual = median(part.ios for part in parts)
        # Idle clients are at fault, not the one that works; the verdict is as severe.
        named = [found for part, found in slow if _is_slow_beside(usual, part)] + (fast if usual else [])
    else:
        named = [found for _, found in slow]
    everything = [found for _, found in slow] + fast
    return named if _worst(named) is _worst(everything) else everything


def _is_bad(observation: Observation) -> bool:
    return _LIMIT.verdict(observation.value) is not Verdict.VALID


def _worst(observations: Iterable[Observation]) -> Verdict:
    return _LIMIT.verdict(min((found.value for found in observations), default=_PERCENT))


def _is_slow_beside(usual: float, part: _Part) -> bool:
    """Return whether a client does little beside the median of all, and not only beside what fast ones pull up."""
    return not usual or _LIMIT.verdict(_PERCENT * part.ios / usual) is not Verdict.VALID


def _parts(measured: Sequence[Measured], span: Interval) -> list[_Part]:
    nodes = Counter(item.node for item in measured)
    return [_Part(client=item.client, ios=_done(item, span), sharing=nodes[item.node]) for item in measured]


def _done(item: Measured, span: Interval) -> float:
    """Return a client's operations inside the window, without syncs: they carry no data."""
    return sum(share.within(span).ios for share in item.shares if share.sample.operation is not Operation.SYNC)


def _slow(part: _Part, parts: Sequence[_Part]) -> Observation | None:
    others = (sum(one.ios for one in parts) - part.ios) / max(1, len(parts) - 1)
    if not others:
        return None
    detail = (
        f"{number_text(round(part.ios))} operations inside the window, while the others did "
        f"{number_text(round(others))} on average: {_PERCENT * part.ios / others:.3g} %"
    )
    if len(parts) == _PAIR:
        detail = f"{detail}, and either of two may be the odd one"
    value = _PERCENT * (part.ios + _CHANCE * math.sqrt(others)) / others
    return Observation(clients=(part.client,), value=value, detail=detail)


def _fast(part: _Part, parts: Sequence[_Part], span: Interval) -> Observation | None:
    others = [one for one in parts if one is not part]
    if not others or not part.ios:
        return None
    usual = median(one.ios for one in others)
    by_node = median(one.ios * one.sharing for one in others) / part.sharing
    seconds = span.length / NANOSECONDS
    times = f"{part.ios / usual:.3g} times the" if usual else "beside a"
    detail = (
        f"{number_text(part.ios / seconds)} operations/s inside the window, {times} median of "
        f"the others, {number_text(usual / seconds)}: they did {_PERCENT * usual / part.ios:.3g} % of it"
    )
    value = _PERCENT * (max(usual, by_node) + _CHANCE * math.sqrt(part.ios)) / part.ios
    return Observation(clients=(part.client,), value=value, detail=detail)
