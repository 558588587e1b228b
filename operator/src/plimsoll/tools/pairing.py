"""Which clients send to which, and in which rounds, for tools between two clients."""

from collections.abc import Iterator, Sequence
from enum import StrEnum

from plimsoll.tools.cast import Cast, RosterMember, Round, choose_clients


class Pairing(StrEnum):
    """The pairs that are active at the same time.

    `EachPair`: one pair at a time, until every client has loaded every server: the cells of a matrix. `OneToAll`: one
    client at a time loads all servers at once. `AllAtOnce`: all clients load at the same time, each one server; without
    servers, every second client serves the one before it, because a client never does both in one round.
    """

    EACH_PAIR = "EachPair"
    ONE_TO_ALL = "OneToAll"
    ALL_AT_ONCE = "AllAtOnce"


def paired(pairing: Pairing, roster: Sequence[RosterMember], clients: int) -> Cast:
    """Return the rounds of that number of clients with the run's servers, or with each other if it has none."""
    loading = choose_clients(roster, clients)
    servers = tuple(sorted(member.number for member in roster if member.serves))
    return Cast(rounds=tuple(_rounds(pairing, loading, servers)))


def round_count(pairing: Pairing, clients: int, servers: int) -> int:
    """Return the number of rounds of that cast; 0 if no client has a server."""
    partners = servers or clients - 1
    if partners < 1:
        return 0
    return {Pairing.EACH_PAIR: clients * partners, Pairing.ONE_TO_ALL: clients, Pairing.ALL_AT_ONCE: 1}[pairing]


def _rounds(pairing: Pairing, loading: Sequence[int], servers: Sequence[int]) -> Iterator[Round]:
    served_by = {client: _partners(client, loading, servers) for client in loading}
    if not any(served_by.values()):
        return
    match pairing:
        case Pairing.EACH_PAIR:
            for client, partners in served_by.items():
                yield from (Round(servers={client: (server,)}) for server in partners)
        case Pairing.ONE_TO_ALL:
            for client, partners in served_by.items():
                yield Round(servers={client: tuple(partners)})
        case Pairing.ALL_AT_ONCE:
            if servers:
                yield Round(servers={client: (servers[place % len(servers)],) for place, client in enumerate(loading)})
            else:
                yield Round(
                    servers={client: (server,) for client, server in zip(loading[::2], loading[1::2], strict=False)}
                )


def _partners(client: int, loading: Sequence[int], servers: Sequence[int]) -> Sequence[int]:
    return servers or [other for other in loading if other != client]
