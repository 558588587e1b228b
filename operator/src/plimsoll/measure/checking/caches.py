"""Whether a page cache may have answered in the storage's place.

A node's page cache is no larger than its memory, and a pod's cache counts against the pod's memory limit. So the memory
that may hold the data of a node's clients is the smaller of the node's memory and the sum of their limits.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator

from plimsoll.api.names import Operation
from plimsoll.measure.checking.check import CheckedValue
from plimsoll.measure.intake import ClientMeasurement
from plimsoll.measure.sample import HostUse
from plimsoll.measure.wording import number_text, quote, size_text

_NODE_CHARACTERS = 80
_READS = (Operation.READ, Operation.READ_CHARACTERS, Operation.REWRITE, Operation.SEEK)

ObservedClient = tuple[ClientMeasurement, HostUse]


def cached(known: Iterable[ObservedClient]) -> Iterator[CheckedValue]:
    """Yield how much the clients of a node read through the cache, and wrote through it without making it durable.

    Clients without a data set have nothing that their page cache could hold.
    """
    buffered = [(item, host) for item, host in known if not item.measurement.bypasses_cache and _data_bytes(item)]
    for node, clients in by_node(buffered).items():
        name = quote(node, _NODE_CHARACTERS)
        if reading := [(item, host) for item, host in clients if _reads(item)]:
            size = sum(_data_bytes(item) for item, _ in reading)
            yield _compared_with_memory(f"data sets read on {name}", reading, size)
        if writing := [(item, host) for item, host in clients if _leaves_writes(item)]:
            # Overwriting the same data takes no more memory.
            size = sum(min(_data_bytes(item), _bytes_written(item)) for item, _ in writing)
            yield _compared_with_memory(f"writes without fsync on {name}", writing, size)


def by_node(known: Iterable[ObservedClient]) -> dict[str, list[ObservedClient]]:
    """Group clients by node."""
    nodes = defaultdict[str, list[ObservedClient]](list)
    for item, host in known:
        nodes[item.node].append((item, host))
    return nodes


def numbers_of(clients: Iterable[ObservedClient]) -> tuple[int, ...]:
    """Return the clients' numbers."""
    return tuple(item.client for item, _ in clients)


def _data_bytes(item: ClientMeasurement) -> int:
    """Return the size of what the tool worked on: of its files, or of the data set."""
    own = item.measurement.data_bytes
    return item.answer.document.data_set_bytes if own is None else own


def _reads(item: ClientMeasurement) -> bool:
    """Whether a tool read data. If it was too fast to be timed, a cache is even more likely."""
    return any(operation in item.measurement.untimed or _does(item, operation) for operation in _READS)


def _does(item: ClientMeasurement, operation: Operation) -> bool:
    return any(one.operation is operation and (one.ios or one.bytes) for one in item.measurement.operations)


def _leaves_writes(item: ClientMeasurement) -> bool:
    return _does(item, Operation.WRITE) and not (_does(item, Operation.SYNC) or item.measurement.flushes)


def _bytes_written(item: ClientMeasurement) -> int:
    return sum(sample.bytes for sample in item.measurement.operations if sample.operation is Operation.WRITE)


def _compared_with_memory(what: str, clients: Collection[ObservedClient], size: int) -> CheckedValue:
    memory = _usable_memory(clients)
    detail = (
        f"{what} through the page cache: {size_text(size)}, {number_text(size / memory)} times the {size_text(memory)} "
        "of memory that may hold them"
    )
    return CheckedValue(clients=numbers_of(clients), value=size / memory, detail=detail)


def _usable_memory(clients: Collection[ObservedClient]) -> int:
    node = max(host.memory.node_total for _, host in clients)
    limits = [host.memory.limit for _, host in clients if host.memory.limit]
    return min(node, sum(limits)) if len(limits) == len(clients) else node
