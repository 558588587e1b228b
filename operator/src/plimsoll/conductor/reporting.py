"""A session in words: the environment of its results, who is missing and why."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime

from pydantic import JsonValue

from plimsoll.conductor.roster import Client, Roster
from plimsoll.protocol.messages import AgentState

_SHOWN_CLIENTS = 12
_SHOWN_NODES = 64
_SHOWN_FACTS = 16
_SHOWN_PROBLEMS = 6


def timestamp(wall: int) -> str:
    """Write Unix nanoseconds as RFC 3339 in UTC, to the millisecond."""
    text = datetime.fromtimestamp(wall / 1e9, tz=UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")


def names(clients: Sequence[int]) -> str:
    """Write `client 3` or `clients 1, 2, 5`, shortened if there are many."""
    shown = ", ".join(map(str, clients[:_SHOWN_CLIENTS]))
    more = f" and {len(clients) - _SHOWN_CLIENTS} more" if len(clients) > _SHOWN_CLIENTS else ""
    return f"client{'s' if len(clients) > 1 else ''} {shown}{more}"


def failures(clients: Iterable[Client]) -> str:
    """Return who of them could not do as ordered, each in its own words; empty if all could."""
    failed = [client for client in clients if client.is_in(AgentState.FAILED)]
    return "; ".join(f"client {client.number} on {client.node}: {client.message}" for client in failed)


def why_not_ready(roster: Roster, missing: Sequence[int], ready_seconds: int) -> str:
    """Return why the clients did not come together within their deadline."""
    if missing:
        return f"{names(missing)} did not register, or was lost, and did not come back within {ready_seconds} s"
    busy = [client.number for client in roster if not client.is_quiet]
    return f"{names(busy)} did not confirm within {ready_seconds} s that the last tool has stopped"


def why_closed(problems: Sequence[str], ready_seconds: int) -> str:
    """Return why the cluster did not become what it has to be within its deadline, and what to do."""
    limit = f"timeouts.readySeconds ({ready_seconds} s)"
    return f"the cluster was not ready within {limit}: {shortened(problems)}; mend it, or raise the limit"


def shortened(problems: Sequence[str]) -> str:
    """Write problems one after the other, shortened if there are many."""
    more = f"; and {len(problems) - _SHOWN_PROBLEMS} more" if len(problems) > _SHOWN_PROBLEMS else ""
    return "; ".join(problems[:_SHOWN_PROBLEMS]) + more


Describe = Callable[[frozenset[str]], Mapping[str, JsonValue]]
"""Returns what is known of the storage that clients on those nodes use."""


def no_description(_: frozenset[str]) -> Mapping[str, JsonValue]:
    """Return that nothing is known of the storage."""
    return {}


def environment(roster: Roster, describe: Describe = no_description) -> dict[str, JsonValue]:
    """Return what is known of where the numbers come from: nodes, each distinct fact of the clients, and the storage.

    Empty before any client has registered. A client that has nothing prepared yet does not count for the data set.
    """
    nodes = sorted({client.node for client in roster})
    if not nodes:
        return {}
    facts: dict[str, list[JsonValue]] = {}
    for client in roster:
        for name, value in client.facts.items():
            known = facts.setdefault(name, [])
            if value not in known and len(known) < _SHOWN_FACTS:
                known.append(value)
    sizes = [client.prepared_bytes for client in roster if client.prepared_bytes]
    return {
        # First: what a client says of itself does not replace what is known without it.
        **{name: values[0] if len(values) == 1 else values for name, values in sorted(facts.items())},
        "nodes": [*nodes[:_SHOWN_NODES]],
        "nodeCount": len(nodes),
        "dataSetBytes": {"min": min(sizes, default=0), "max": max(sizes, default=0)},
        **describe(frozenset(nodes)),
    }
