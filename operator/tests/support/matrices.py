"""Results with a matrix: rates in Mbit/s by client and the one that served it."""

from collections.abc import Iterable, Mapping
from typing import Any

from plimsoll.api.names import LatencyKind, Operation, Verdict
from plimsoll.api.result import BenchmarkResult, Matrix
from plimsoll.measure.checks.links import judge_links
from plimsoll.measure.matrix import MatrixCell, matrix_of
from support.repeated import measured, result, trial

MEGABIT = 10**6 / 8
Mesh = Mapping[tuple[int, int], float]


def full_mesh(clients: Iterable[int], servers: Iterable[int], rate: float = 937) -> dict[tuple[int, int], float]:
    peers = list(servers)
    return {(client, peer): rate for client in clients for peer in peers if client != peer}


def matrix(mesh: Mesh, *, by_bytes: bool = True, retransmits: int | None = None) -> Matrix:
    """Return the matrix of a trial in which each pair had a round of its own; client n is on node n<n>."""
    cells = [
        MatrixCell(
            client=client,
            peer=peer,
            client_node=f"n{client}",
            peer_node=f"n{peer}",
            iops=0 if by_bytes else rate,
            bytes_per_second=rate * MEGABIT if by_bytes else 0,
            retransmits=retransmits,
        )
        for (client, peer), rate in mesh.items()
    ]
    found = matrix_of(judge_links([[cell] for cell in cells])[0])
    assert found is not None
    return found


def point(found: Matrix | None, *, verdict: Verdict = Verdict.VALID, **fields: Any) -> BenchmarkResult:
    """Return a result with that matrix."""
    written = measured(1000, operation=Operation.WRITE, kind=LatencyKind.NONE)
    trials = [trial(number, written, verdict=verdict) for number in range(3)]
    return result(trials, matrix=None if verdict is Verdict.INVALID else found, **fields)
