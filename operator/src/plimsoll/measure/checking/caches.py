"""Whether the data went through a page cache that may have answered in the storage's place.

The cache of a node is no larger than its memory, and what a pod's I/O puts into it counts against the pod's own limit.
So the memory that may hold the data of a node's clients is the lesser of the node's and of their limits' sum.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator

from plimsoll.api.names import Operation
from plimsoll.measure.checking.check import Observation
from plimsoll.measure.intake import Measured
from plimsoll.measure.sample import HostUse
from plimsoll.measure.wording import quote

_NODE_CHARACTERS = 80

Observed = tuple[Measured, HostUse]


def cached(known: Iterable[Observed]) -> Iterator[Observation]:
    """Look at what the clients of a node read through the cache, and what they wrote without making it durable.

    Without a data set on the client there is nothing that its page cache could hold.
    """
    buffered = [
        (item, host)
        for item, host in known
        if not item.measurement.bypasses_cache and item.answer.document.data_set_bytes
    ]
    for node, clients in by_node(buffered).items():
        reading = [(item, host) for item, host in clients if _does(item, Operation.READ)]
        writing = [(item, host) for item, host in clients if _leaves_writes(item)]
        if reading:
            yield _against_memory(f"data sets read on {quote(node, _NODE_CHARACTERS)}", reading, _data_sets(reading))
        if writing:
            yield _against_memory(
                f"writes without fsync on {quote(node, _NODE_CHARACTERS)}", writing, _written(writing)
            )


def by_node(known: Iterable[Observed]) -> dict[str, list[Observed]]:
    """Group clients by where they ran."""
    nodes = defaultdict[str, list[Observed]](list)
    for item, host in known:
        nodes[item.node].append((item, host))
    return nodes


def numbers_of(clients: Iterable[Observed]) -> tuple[int, ...]:
    """Return the clients' numbers."""
    return tuple(item.client for item, _ in clients)


def _does(item: Measured, operation: Operation) -> bool:
    return any(sample.operation is operation and sample.ios for sample in item.measurement.operations)


def _leaves_writes(item: Measured) -> bool:
    return _does(item, Operation.WRITE) and not _does(item, Operation.SYNC)


def _data_sets(clients: Iterable[Observed]) -> int:
    return sum(item.answer.document.data_set_bytes for item, _ in clients)


def _written(clients: Iterable[Observed]) -> int:
    """Return how much of the data sets the writes can have changed: what is written twice takes no more memory."""
    return sum(min(item.answer.document.data_set_bytes, _bytes_written(item)) for item, _ in clients)


def _bytes_written(item: Measured) -> int:
    return sum(sample.bytes for sample in item.measurement.operations if sample.operation is Operation.WRITE)


def _against_memory(what: str, clients: Collection[Observed], size: int) -> Observation:
    memory = _usable(clients)
    detail = (
        f"{what} through the page cache: {size} bytes, {size / memory:.3g} times the {memory} bytes of memory "
        "that may hold them"
    )
    return Observation(clients=numbers_of(clients), value=size / memory, detail=detail)


def _usable(clients: Collection[Observed]) -> int:
    node = max(host.memory.node_total for _, host in clients)
    limits = [host.memory.limit for _, host in clients if host.memory.limit]
    return min(node, sum(limits)) if len(limits) == len(clients) else node
