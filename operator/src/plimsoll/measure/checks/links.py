"""Whether a link of a matrix is far slower than the others.

The rounds of a trial have to be complete, because a pair may have a round of its own. Only like pairs are compared:

    value = own rate / median of the other pairs with as many pairs from the client's node, and to the server's node

counted in the pair's round, since those share a link. Traffic between two clients on one node crosses no link.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from plimsoll.api.names import Verdict
from plimsoll.api.result import Finding
from plimsoll.measure.checks.check import CheckedValue, bits_text, evaluate, first_few, number_text, percent_text
from plimsoll.measure.checks.registry import LINK_OUTLIER
from plimsoll.measure.matrix import MatrixCell

_LEAST_CELLS = 3
_LEAST_LINKS = 2
_NAMED_NODES = 3
_BITS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class _Link:
    """One cell that is compared: its rate, and the median of the others of its kind."""

    cell: MatrixCell
    rate: float
    usual: float

    @property
    def part(self) -> float:
        """The rate in percent of the median; a median of 0 shows nothing."""
        return 100 * self.rate / self.usual if self.usual else 100.0

    @property
    def is_outlier(self) -> bool:
        """Whether the check fails."""
        return LINK_OUTLIER.verdict(self.part) is not Verdict.VALID


def judge_links(rounds: Sequence[Sequence[MatrixCell]]) -> tuple[tuple[MatrixCell, ...], tuple[Finding, ...]]:
    """Return the cells of all rounds of a trial, with the outliers marked, and the finding that names them."""
    cells = [cell for one in rounds for cell in one]
    by_bytes = any(cell.bytes_per_second for cell in cells)
    links = [link for kind in _kinds(rounds) for link in _links(kind, by_bytes=by_bytes)]
    outliers = [link for link in links if link.is_outlier]
    pairs = {(link.cell.client, link.cell.peer) for link in outliers}
    marked = tuple(replace(cell, is_outlier=(cell.client, cell.peer) in pairs) for cell in cells)
    nodes = _nodes_text(links) if outliers else ""
    rates = {(cell.client, cell.peer): _rate(cell, by_bytes=by_bytes) for cell in cells}
    values = []
    for link in outliers:
        both = (link.cell.client, link.cell.peer)
        back = rates.get((link.cell.peer, link.cell.client))
        reverse = "" if back is None else f" (other direction {_text(back, by_bytes=by_bytes)})"
        detail = (
            f"{_named(link.cell.client, link.cell.client_node)} to {_named(link.cell.peer, link.cell.peer_node)}: "
            f"{_text(link.rate, by_bytes=by_bytes)}{reverse}, {percent_text(link.part)} of the median "
            f"{_text(link.usual, by_bytes=by_bytes)}{nodes}"
        )
        values.append(CheckedValue(clients=both, value=link.part, detail=detail, detail_names_clients=True))
    return marked, evaluate(LINK_OUTLIER, values)


def _kinds(rounds: Sequence[Sequence[MatrixCell]]) -> list[list[MatrixCell]]:
    """Group the cells between nodes by the number of cells that share their nodes' links."""
    found: dict[tuple[int, int], list[MatrixCell]] = {}
    for one in rounds:
        cells = [cell for cell in one if not cell.is_local]
        leaving = Counter(_end(cell.client, cell.client_node) for cell in cells)
        arriving = Counter(_end(cell.peer, cell.peer_node) for cell in cells)
        for cell in cells:
            kind = (leaving[_end(cell.client, cell.client_node)], arriving[_end(cell.peer, cell.peer_node)])
            found.setdefault(kind, []).append(cell)
    return [*found.values()]


def _end(number: int, node: str) -> str:
    """Return a name for one end of a link; a client on an unknown node counts as alone on it."""
    return node or f"client {number}"


def _links(cells: Sequence[MatrixCell], *, by_bytes: bool) -> Iterator[_Link]:
    if len(cells) < _LEAST_CELLS:
        return
    rates = [_rate(cell, by_bytes=by_bytes) for cell in cells]
    ordered = sorted(rates)
    places = {rate: place for place, rate in enumerate(ordered)}
    # The median without the link's own rate, without sorting thousands of cells for each.
    left = len(ordered) - 1
    for cell, rate in zip(cells, rates, strict=True):
        middle = [(left - 1) // 2, left // 2]
        low, high = (ordered[index if index < places[rate] else index + 1] for index in middle)
        yield _Link(cell=cell, rate=rate, usual=(low + high) / 2)


def _rate(cell: MatrixCell, *, by_bytes: bool) -> float:
    return cell.bytes_per_second if by_bytes else cell.iops


def _named(client: int, node: str) -> str:
    return f"client {client} (node {node})" if node else f"client {client}"


def _text(rate: float, *, by_bytes: bool) -> str:
    return bits_text(_BITS * rate) if by_bytes else f"{number_text(rate)} operations/s"


def _nodes_text(links: Sequence[_Link]) -> str:
    """Name the nodes whose links are all outliers, or all in one direction; empty if there are none."""
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
    return f"; {first_few(texts, _NAMED_NODES)}" if texts else ""
