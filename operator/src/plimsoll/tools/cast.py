"""Who takes part in a trial: which clients load, which serve them, in which rounds and on which ports."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from itertools import cycle
from typing import NamedTuple, Protocol

MAX_ROUNDS = 4096  # maximum rounds of a trial: the cells of a matrix of 64 by 64 clients
MAX_CELLS = 4096  # maximum pairs that a point measures, because its result lists them
ACTOR_CLIENT = 0  # the client that runs a tool alone: only it gets what that tool needs, such as an administrator's key


class RosterMember(Protocol):
    """A registered client."""

    number: int  # as in the plan
    node: str  # that it runs on
    serves: bool  # whether it is one of the run's servers, which never load


@dataclass(frozen=True, kw_only=True)
class Round:
    """The clients that are active at the same time."""

    servers: Mapping[int, tuple[int, ...]] = field(default_factory=dict)  # loading client -> those that serve it

    @cached_property
    def loading(self) -> tuple[int, ...]:
        """Clients that load; each sends a document."""
        return tuple(sorted(self.servers))

    @cached_property
    def serving(self) -> tuple[int, ...]:
        return tuple(sorted({server for servers in self.servers.values() for server in servers}))

    @cached_property
    def members(self) -> tuple[int, ...]:
        return tuple(sorted({*self.loading, *self.serving}))

    def next_after(self, client: int) -> int:
        """Return the next loading client by number; after the last, the first."""
        return next((other for other in self.loading if other > client), self.loading[0])

    def peers(self, client: int) -> tuple[int, ...]:
        """Return the clients that serve a client, and those that it serves."""
        served = {loader for loader, servers in self.servers.items() if client in servers}
        return tuple(sorted({*self.servers.get(client, ()), *served}))


@dataclass(frozen=True, kw_only=True)
class Cast:
    """The consecutive rounds of a trial."""

    rounds: tuple[Round, ...]

    @cached_property
    def members(self) -> tuple[int, ...]:
        return tuple(sorted({client for active in self.rounds for client in active.members}))


def all_at_once(clients: Iterable[int]) -> Cast:
    """Return one round in which all clients load, without servers."""
    return Cast(rounds=(Round(servers=dict.fromkeys(clients, ())),))


def choose_clients(roster: Iterable[RosterMember], count: int) -> tuple[int, ...]:
    """Choose `count` clients round-robin over the nodes, so that few clients still use many nodes."""
    by_node: dict[str, list[int]] = {}
    for member in roster:
        if not member.serves:
            by_node.setdefault(member.node, []).append(member.number)
    ranked = [(rank, node, number) for node, numbers in by_node.items() for rank, number in enumerate(sorted(numbers))]
    return tuple(sorted(number for _, _, number in sorted(ranked)[:count]))


class Pairing(StrEnum):
    """The pairs that are active at the same time."""

    EACH_PAIR = "EachPair"  # one pair at a time, until every client has loaded every server: the cells of a matrix
    ONE_TO_ALL = "OneToAll"  # one client at a time loads all servers
    # All clients load, each one server; without servers, every second one serves the one before it, and does not load
    ALL_AT_ONCE = "AllAtOnce"


def paired(pairing: Pairing, roster: Sequence[RosterMember], clients: int) -> Cast:
    """Return the rounds of that number of clients with the run's servers, or with each other if it has none."""
    loading = choose_clients(roster, clients)
    servers = tuple(sorted(member.number for member in roster if member.serves))
    served_by = {client: servers or [other for other in loading if other != client] for client in loading}
    if not any(served_by.values()):
        return Cast(rounds=())
    rounds: list[dict[int, tuple[int, ...]]]
    match pairing:
        case Pairing.EACH_PAIR:
            rounds = [{client: (server,)} for client, partners in served_by.items() for server in partners]
        case Pairing.ONE_TO_ALL:
            rounds = [{client: tuple(partners)} for client, partners in served_by.items()]
        case Pairing.ALL_AT_ONCE:
            pairs = zip(loading, cycle(servers)) if servers else zip(loading[::2], loading[1::2], strict=False)
            rounds = [{client: (server,) for client, server in pairs}]
    return Cast(rounds=tuple(Round(servers=served) for served in rounds))


class CastSize(NamedTuple):
    """The size of a cast of which only the numbers of clients and of servers are known."""

    rounds: int
    pairs: int  # of a client and one that serves it, over all rounds
    loading: int  # clients that load at the same time, at most


def paired_size(pairing: Pairing, clients: int, servers: int) -> CastSize:
    """Return the size of `paired`, without rounds if no client has a server."""
    partners = servers or clients - 1
    at_once = clients if servers else clients // 2
    sizes = {
        Pairing.EACH_PAIR: CastSize(clients * partners, clients * partners, 1),
        Pairing.ONE_TO_ALL: CastSize(clients, clients * partners, 1),
        Pairing.ALL_AT_ONCE: CastSize(1, at_once, at_once),
    }
    return sizes[pairing] if partners else CastSize(0, 0, 1)


SERVING_PORTS = range(20_480, 24_576)  # above the ports of Ceph's daemons, below those that Linux assigns


def serving_port(server: int, client: int) -> int:
    """Return the port on which `server` serves `client`; no two pairs of up to 64 clients have the same one."""
    return SERVING_PORTS[(server * 64 + client) % len(SERVING_PORTS)]
