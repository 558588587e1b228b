"""Messages about clients and cluster, and the environment of the results."""

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime

from pydantic import JsonValue

from plimsoll.api.environment import Environment, Extremes
from plimsoll.api.names import FailureReason
from plimsoll.conductor.roster import Client, Roster
from plimsoll.protocol.messages import AgentState

_SHOWN_CLIENTS = 12
_SHOWN_NODES = 64
_SHOWN_PROBLEMS = 6

MAX_FACTS = 16
"""Values of one fact that are kept, if the clients differ."""


def timestamp(wall: int) -> str:
    """Format Unix nanoseconds as RFC 3339 in UTC, with milliseconds."""
    text = datetime.fromtimestamp(wall / 1e9, tz=UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")


def names(clients: Sequence[int]) -> str:
    """Return `client 3` or `clients 1, 2, 5`; of many clients, the first and the number of others."""
    plural = "s" if len(clients) > 1 else ""
    return f"client{plural} {_first([str(client) for client in clients], _SHOWN_CLIENTS, ', ', ' and ')}"


def failures(clients: Iterable[Client]) -> str:
    """Return the messages of the clients that failed; empty if none did."""
    failed = [client for client in clients if client.is_in(AgentState.FAILED)]
    return "; ".join(f"client {client.number} on {client.node}: {client.message}" for client in failed)


def why_not_ready(roster: Roster, missing: Sequence[int], ready_seconds: int) -> str:
    """Return why the clients were not ready in time."""
    if missing:
        return f"{names(missing)} did not register or reconnect within timeouts.readySeconds ({ready_seconds} s)"
    busy = [client.number for client in roster if not client.is_quiet]
    return f"{names(busy)} did not confirm within {ready_seconds} s that the last tool has stopped"


def why_closed(problems: Sequence[str], ready_seconds: int, *, refused: bool) -> tuple[FailureReason, str]:
    """Return why the gate did not open in time, or never will because Ceph refuses something, and the remedy."""
    if refused:
        return FailureReason.CEPH_OPTION_REFUSED, shortened(problems)
    limit = f"timeouts.readySeconds ({ready_seconds} s)"
    message = f"the cluster was not ready within {limit}: {shortened(problems)}; fix this or raise the limit"
    return FailureReason.CLUSTER_NOT_READY, message


def shortened(problems: Sequence[str]) -> str:
    """Return the problems as one text; of many problems, the first and the number of others."""
    return _first(problems, _SHOWN_PROBLEMS, "; ", "; and ")


def _first(texts: Sequence[str], limit: int, separator: str, before_more: str) -> str:
    more = f"{before_more}{len(texts) - limit} more" if len(texts) > limit else ""
    return separator.join(texts[:limit]) + more


Describe = Callable[[frozenset[str]], Environment]
"""Returns the description of the storage that clients on some nodes use."""


def no_description(_: frozenset[str]) -> Environment:
    """Return an empty description of the storage."""
    return Environment()


def environment(roster: Roster, describe: Describe = no_description) -> Environment | None:
    """Return the environment of the results: nodes, each distinct fact of the clients, and the storage.

    None before a client has registered. Clients without a prepared data set do not count for its size.
    """
    nodes = sorted(roster.client_nodes)
    if not nodes:
        return None
    sizes = [client.prepared_bytes for client in roster if client.prepared_bytes]
    known = Environment(
        nodes=tuple(nodes[:_SHOWN_NODES]),
        node_count=len(nodes),
        data_set_bytes=Extremes(min=min(sizes, default=0), max=max(sizes, default=0)),
    )
    # The clients' facts come first, so that they do not replace what the conductor knows.
    return Environment.model_validate(_facts(roster)).merged(known).merged(describe(roster.client_nodes))


def _facts(roster: Roster) -> dict[str, JsonValue]:
    """Return the clients' facts: one value if they agree, otherwise all values."""
    facts: dict[str, list[JsonValue]] = {}
    for client in roster:
        for name, value in client.facts.items():
            known = facts.setdefault(name, [])
            if value not in known and len(known) < MAX_FACTS:
                known.append(value)
    return {name: values[0] if len(values) == 1 else values for name, values in facts.items()}
