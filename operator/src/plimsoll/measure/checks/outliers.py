"""Whether one OSD, client or link is far from the others.

OSDs and links are compared with the median of the others. If most are slow, the median is slow too: then 70 % of what
the fastest others reach counts, a third of the OSDs or a sixth of the links, as many as half of four nodes have between
them. Of two pairs, or the two directions between two clients, the slower one is compared with the faster one.

In a matrix only like pairs are compared, with as many pairs from the client's node, and to the server's node, in their
round, since pairs of a round share links. Traffic between two clients on one node crosses no link.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from statistics import median
from typing import NamedTuple

from plimsoll.api.names import LatencyKind, Operation, Verdict, format_duration
from plimsoll.api.result import Finding
from plimsoll.measure.checks.check import (
    Check,
    CheckedValue,
    CheckedValues,
    Evidence,
    TrialCheck,
    client_value,
    evaluate,
)
from plimsoll.measure.cluster import speeds_of
from plimsoll.measure.histogram import histogram_of
from plimsoll.measure.matrix import MatrixCell
from plimsoll.measure.rates import grouped
from plimsoll.measure.text import bits_text, first_few, number_text, percent_text, quote
from plimsoll.measure.timeline import NANOSECONDS, Interval, add

_FASTEST_OSDS = 1 / 3
_FASTEST_LINKS = 1 / 6
_OF_FASTEST = 0.7
_CHANCE = 3  # standard deviations, sqrt(n) of n operations, that are chance: slow storage is not uneven
_PAIR = 2
_EITHER = "; either of the two may be the outlier"
_LEAST_LINKS = 2
_UNEVEN_REMEDY = "check the client's node, network and volume, and a fast client for a cache or another device"
_SHORTEST_ROUND_TRIP = 200_000.0


@TrialCheck(
    reason="OsdOutlier",
    what="rate of an OSD, as a part of the others' median in its device class, or of 70 % of their fastest third",
    unit="%",
    suspect=70,
    is_low_bad=True,
    remedy="check that OSD's device, firmware and node; the slowest OSD sets the pace of the whole pool",
)
def osd_outlier(evidence: Evidence) -> CheckedValues:
    # Unknown device classes count as one.
    speeds_of_all = speeds_of(item.measurement for item in evidence.measured)
    by_class = grouped(speeds_of_all, lambda speed: evidence.facts.osd_classes.get(speed.osd, ""))
    slow = []
    for name, speeds in by_class.items():
        of = f" of class {quote(name, 40)}" if name else ""
        rates = [speed.bytes_per_second for speed in speeds]
        for speed, rate, others in zip(speeds, rates, _others_of(rates, _FASTEST_OSDS), strict=False):
            if osd_outlier.fails(others.part(rate)):
                slow.append((others.part(rate), speed.osd, f"osd.{speed.osd} at {others.compared(rate)}{of}"))
    slow.sort()
    if slow:
        yield CheckedValue(value=slow[0][0], detail=f"slow OSDs: {first_few([text for _, _, text in slow])}")


@dataclass(frozen=True, slots=True)
class _Others:
    """The rates of the others like one OSD or link; in the same unit as its rate."""

    median: float
    fastest: float  # reached by a stated part of the others

    @property
    def usual(self) -> float:
        return max(self.median, _OF_FASTEST * self.fastest)

    def part(self, rate: float) -> float:
        """Return the rate in percent of the usual one; one of 0 shows nothing."""
        return 100 * rate / self.usual if self.usual else 100.0

    def compared(self, rate: float, show: Callable[[float], str] | None = None) -> str:
        """Return how the rate compares, in words, and the others' rate if `show` prints it."""
        slower = self.usual == self.median
        which = "the median of the others" if slower else f"{percent_text(100 * _OF_FASTEST)} of the fastest others"
        shown = f", {show(self.median if slower else self.fastest)}" if show else ""
        return f"{percent_text(self.part(rate))} of {which}{shown}{'' if slower else ': they or it are the outliers'}"


def _others_of(rates: Sequence[float], fastest: float) -> Iterator[_Others]:
    """Yield for each rate the median of the others, and what this part of them, 0 to 1, reach; nothing for one rate."""
    if (others := len(rates) - 1) > 0:
        reached = _at_of_others(rates, others - math.ceil(fastest * others))
        yield from map(_Others, _medians_of_others(rates), reached)


@TrialCheck(
    reason="ClientsUneven",
    outage_explains=True,
    what="operations of a client, as a part of the others' mean, or the others' median as a part of a fast client's",
    unit="%",
    suspect=50,
    invalid=10,
    is_low_bad=True,
    remedy=_UNEVEN_REMEDY,
)
def clients_uneven(evidence: Evidence) -> CheckedValues:
    # Clients whose tool failed are named by another check, and cells of a matrix compared by LinkOutlier.
    measured = [item for item in evidence.measured if not item.answer.failed]
    facts, span, when = evidence.facts, evidence.span, "in the window"
    if not facts.windowed:
        # Clients that do an amount of work are compared until the first is done. In the end all have done the same.
        when = "until the first client was done"
        start = min((item.interval.start for item in measured), default=0)
        end = min((item.interval.end for item in measured), default=0)
        span = Interval(start=start, end=end) if facts.ends_when_done and end > start else None
    if span is None or not span.length or facts.quantities.cells:
        return
    unit, nodes = facts.quantities.unit, Counter(item.node for item in measured)
    # Syncs carry no data.
    shares = ([it for it in item.shares if it.sample.operation is not Operation.SYNC] for item in measured)
    done = (add([share.within(span) for share in of_client]) for of_client in shares)
    amounts = [facts.quantities.amount(amount.ios, amount.bytes) for amount in done]
    if len(measured) < _PAIR:
        return
    total, seconds, fails = sum(amounts), span.length / NANOSECONDS, clients_uneven.fails
    either = _EITHER if len(measured) == _PAIR else ""
    weighted = [amount * nodes[item.node] for item, amount in zip(measured, amounts, strict=True)]
    medians, medians_of_nodes = _medians_of_others(amounts), _medians_of_others(weighted)
    slow, fast = list[tuple[float, CheckedValue]](), list[CheckedValue]()
    for item, amount, usual, of_nodes in zip(measured, amounts, medians, medians_of_nodes, strict=True):
        if mean := (total - amount) / (len(measured) - 1):
            detail = (
                f"completed {amount:.0f} {unit} {when}, {percent_text(100 * amount / mean)} of the others' mean of "
                f"{mean:.0f}{either}"
            )
            if fails(part := 100 * (amount + _CHANCE * math.sqrt(mean)) / mean):
                slow.append((amount, client_value(item.client, part, detail)))
        if amount:
            times = f"{number_text(amount / usual)} times" if usual else "compared with"
            detail = (
                f"{number_text(amount / seconds)} {unit}/s {when}, {times} the others' median of "
                f"{number_text(usual / seconds)}, which is {percent_text(100 * usual / amount)} of it"
            )
            if fails(part := 100 * (max(usual, of_nodes / nodes[item.node]) + _CHANCE * math.sqrt(amount)) / amount):
                fast.append(client_value(item.client, part, detail))
    named = [value for _, value in slow]
    outliers = named + fast
    if 2 * len(fast) < len(amounts):
        usual = median(amounts)
        # Not those that are slow only for a mean that fast clients raise. If most are idle, they are the problem.
        named = [value for amount, value in slow if not usual or fails(100 * amount / usual)]
        named += fast if usual else []
    yield from named if _worst_verdict(named) is _worst_verdict(outliers) else outliers


def _worst_verdict(values: Iterable[CheckedValue]) -> Verdict:
    return clients_uneven.verdict(min((value.value for value in values), default=100))


def _medians_of_others(values: Sequence[float]) -> list[float]:
    return _at_of_others(values, (len(values) - 2) // 2, (len(values) - 1) // 2)


def _at_of_others(values: Sequence[float], *ranks: int) -> list[float]:
    """Return for each value the mean of the others at these ascending ranks, without sorting thousands for each."""
    ordered = sorted(values)
    places = {value: place for place, value in enumerate(ordered)}
    return [sum(ordered[rank + (rank >= places[value])] for rank in ranks) / len(ranks) for value in values]


@TrialCheck(
    reason="ClientsUneven",
    outage_explains=True,
    what="where the workload sets the rate: the others' median latency, as a part of a slow client's, or vice versa",
    unit="%",
    suspect=50,
    is_low_bad=True,
    remedy=_UNEVEN_REMEDY,
)
def client_latencies_uneven(evidence: Evidence) -> CheckedValues:
    offer = evidence.facts.offer
    if offer is None or offer.search is not None:
        return
    for operation in (result.operation for result in evidence.operations if result.operation is not Operation.SYNC):
        speeds = [*_client_speeds(evidence, operation)]
        if len(speeds) < _PAIR:
            continue
        _, *ends = zip(*speeds, strict=True)
        least, usual, most = map(_medians_of_others, ends)
        slow, fast = list[CheckedValue](), list[CheckedValue]()
        either = _EITHER if len(speeds) == _PAIR else ""
        for place, speed in enumerate(speeds):
            detail = (
                f"{operation} p50 of {format_duration(1 / speed.middle)}, {number_text(usual[place] / speed.middle)} "
                f"times the others' median of {format_duration(1 / usual[place])}{either}"
            )
            slow.append(client_value(speed.client, 100 * speed.most / least[place], detail))
            fast.append(client_value(speed.client, 100 * most[place] / speed.least, detail))
        # The clients of the side with fewer, or of both sides.
        slow, fast = ([value for value in side if client_latencies_uneven.fails(value.value)] for side in (slow, fast))
        fewest = min(len(side) for side in (slow, fast) if side) if slow or fast else 0
        yield from (value for side in (slow, fast) if len(side) == fewest for value in side)


class _Speed(NamedTuple):
    """The reciprocal of a client's median latency in nanoseconds, with the ends of what chance explains."""

    client: int
    least: float
    middle: float
    most: float


def _client_speeds(evidence: Evidence, operation: Operation) -> Iterator[_Speed]:
    """Yield the speeds of clients whose tool did not fail, within three deviations of the median's rank."""
    for item in evidence.measured:
        for sample in () if item.answer.failed else item.measurement.operations:
            if sample.operation is not operation or sample.latency.kind is not LatencyKind.FULL or not sample.ios:
                continue
            # The rank of the median scatters by half the square root of the number of operations.
            margin = 100 * _CHANCE / 2 / math.sqrt(sample.ios)
            # Without a usable histogram, or with too few operations.
            with suppress(ValueError):
                low, middle, high = map(histogram_of(sample.latency).percentile, (50 - margin, 50, 50 + margin))
                if low and middle and high:
                    yield _Speed(client=item.client, least=1 / high, middle=1 / middle, most=1 / low)


LINK_OUTLIER = Check(
    reason="LinkOutlier",
    what="rate between two clients, as a part of the median of similar pairs, or of 70 % of their fastest sixth",
    unit="%",
    # Healthy links between like nodes differ by 1 to 2 %, virtual machines by 10 %; another flow on a link leaves half.
    suspect=70,
    is_low_bad=True,
    remedy="check cable, port, negotiated speed, MTU and bond of the node, and what else uses the link",
)

LOCAL_PAIRS = Check(
    reason="LocalPairs",
    what="pairs of clients on one node: their traffic crosses no network, and is not in the rates",
    suspect=0,
    remedy="use as many nodes as clients and servers, or pairing EachPair; such pairs do not measure the network",
)


ROUND_TRIP_OUTLIER = Check(
    reason="LinkOutlier",
    what="usual median round trip of the other pairs, in percent of a pair's own; one below 0.2 ms counts as 0.2 ms",
    unit="%",
    # Racks, virtual switches and sleeping processors make healthy round trips two to three times as long as others.
    suspect=20,
    is_low_bad=True,
    remedy="check the route between these nodes, what else uses the links, and the power saving of the processors",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Link:
    """One cell that is compared with the others of its kind, by one quantity."""

    check: Check
    cell: MatrixCell
    rate: float  # of round trips, those in a second if one followed the other
    others: _Others
    show: Callable[[float], str]

    @property
    def is_outlier(self) -> bool:
        return self.check.fails(self.others.part(self.rate))


def judge_links(rounds: Sequence[Sequence[MatrixCell]]) -> tuple[tuple[MatrixCell, ...], tuple[Finding, ...]]:
    """Return the cells of all rounds of a trial, with the outliers marked, and the findings on them."""
    cells = [cell for round_cells in rounds for cell in round_cells]
    links = _links(rounds, LINK_OUTLIER, lambda cell: cell.bytes_per_second, lambda rate: bits_text(8 * rate))
    if not any(cell.bytes_per_second for cell in cells):
        links = _links(rounds, LINK_OUTLIER, lambda cell: cell.iops, lambda rate: f"{number_text(rate)} operations/s")
    slow = _links(
        rounds,
        ROUND_TRIP_OUTLIER,
        lambda cell: None if (time := cell.round_trip_nanoseconds) is None else 1e9 / max(_SHORTEST_ROUND_TRIP, time),
        lambda rate: format_duration(1e9 / rate),
    )
    pairs = {(link.cell.client, link.cell.peer) for link in (*links, *slow) if link.is_outlier}
    marked = tuple(replace(cell, is_outlier=(cell.client, cell.peer) in pairs) for cell in cells)
    return marked, (
        *evaluate(LINK_OUTLIER, _outliers(links)),
        *evaluate(ROUND_TRIP_OUTLIER, _outliers(slow)),
        *evaluate(LOCAL_PAIRS, _local_pairs(rounds)),
    )


def _outliers(links: Sequence[_Link]) -> CheckedValues:
    shown, nodes = {(link.cell.client, link.cell.peer): link.show(link.rate) for link in links}, _nodes_text(links)
    for link in (link for link in links if link.is_outlier):
        cell, pair = link.cell, (link.cell.client, link.cell.peer)
        back = shown.get(pair[::-1])
        detail = (
            f"{_named(cell.client, cell.client_node)} to {_named(cell.peer, cell.peer_node)}: {link.show(link.rate)}"
            f"{f' (other direction {back})' if back else ''}, {link.others.compared(link.rate, link.show)}{nodes}"
        )
        yield CheckedValue(clients=pair, value=link.others.part(link.rate), detail=detail, detail_names_clients=True)


def _local_pairs(rounds: Sequence[Sequence[MatrixCell]]) -> CheckedValues:
    """Yield the number of pairs on one node that disturbed others, or of all pairs if there are only such."""
    are_all_local = all(cell.is_local for cells in rounds for cell in cells)
    mixed = [cells for cells in rounds if are_all_local or len({cell.is_local for cell in cells}) > 1]
    active = [cell.is_local for cells in mixed for cell in cells]
    local = sum(active)
    detail = f"{local} of {len(active)} pairs are on one node and not in the rates"
    if local == len(active):
        detail = f"all {local} pairs are on one node, so there are no rates of the network"
    yield CheckedValue(value=local, detail=detail)


def _links(
    rounds: Sequence[Sequence[MatrixCell]],
    check: Check,
    rate_of: Callable[[MatrixCell], float | None],
    show: Callable[[float], str],
) -> list[_Link]:
    """Return the cells between nodes that are compared: with those whose nodes' links as many cells share."""
    kinds = defaultdict[tuple[int, int], list[tuple[MatrixCell, float]]](list)
    for round_cells in rounds:
        cells = [cell for cell in round_cells if not cell.is_local]
        # A client on an unknown node counts as alone on it.
        ends = [(cell.client_node or cell.client, cell.peer_node or cell.peer) for cell in cells]
        leaving, arriving = Counter(start for start, _ in ends), Counter(end for _, end in ends)
        for cell, (start, end) in zip(cells, ends, strict=True):
            if (rate := rate_of(cell)) is not None:
                kinds[leaving[start], arriving[end]].append((cell, rate))
    return [
        _Link(check=check, cell=cell, rate=rate, others=others, show=show)
        for rated in kinds.values()
        for (cell, rate), others in zip(rated, _others_of([rate for _, rate in rated], _FASTEST_LINKS), strict=False)
    ]


def _named(client: int, node: str) -> str:
    return f"client {client} (node {node})" if node else f"client {client}"


def _nodes_text(links: Sequence[_Link]) -> str:
    sent, received = defaultdict[str, list[bool]](list), defaultdict[str, list[bool]](list)
    for link in links:
        sent[link.cell.client_node].append(link.is_outlier)
        received[link.cell.peer_node].append(link.is_outlier)
    texts = []
    for node in sorted(filter(None, {*sent, *received})):
        ways = {"of": [*sent[node], *received[node]], "from": sent[node], "to": received[node]}
        way = next((way for way, bad in ways.items() if len(bad) >= _LEAST_LINKS and all(bad)), None)
        if way:
            texts.append(f"all {len(ways[way])} links {way} node {node} are outliers")
    return f"; {first_few(texts, 3)}" if texts else ""
