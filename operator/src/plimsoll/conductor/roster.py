"""Who the clients are, whether they are alive, and which order each of them is under."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from pydantic import JsonValue

from plimsoll.api.state import LiveRate
from plimsoll.measure.sample import Clock
from plimsoll.protocol.messages import AgentState, Order, Registration, Report, Wait

_QUIET_STATES = {AgentState.IDLE, AgentState.PREPARED}


class RefusedError(Exception):
    """A request cannot be served; `code` is one of the protocol's refusal codes."""

    def __init__(self, code: str, message: str) -> None:
        """Keep code and message."""
        self.code = code
        super().__init__(message)


@dataclass(slots=True, kw_only=True)
class Client:
    """One client as the conductor knows it.

    Attributes:
        sequence: number of the order it is under.
        answered: number of the order its `state` belongs to.
        last_contact: on the clock of `Moment.seconds`.
        rates: what its tool last said under the present order.
        rated_at: when it said so, on that clock.

    """

    number: int
    instance: str
    attempt: int
    node: str
    last_contact: float
    prepared_bytes: int = 0
    facts: dict[str, JsonValue] = field(default_factory=dict)
    order: Order = field(default_factory=Wait)
    sequence: int = 0
    answered: int = -1
    state: AgentState = AgentState.IDLE
    message: str = ""
    done_bytes: int = 0
    total_bytes: int = 0
    clock: Clock | None = None
    rates: tuple[LiveRate, ...] = ()
    rated_at: float = 0.0

    def give(self, order: Order) -> None:
        """Put the client under another order."""
        self.order = order
        self.sequence += 1
        self.rates = ()

    def is_in(self, state: AgentState) -> bool:
        """Tell whether it has reached a state under its present order."""
        return self.answered == self.sequence and self.state is state

    @property
    def is_quiet(self) -> bool:
        """Whether it has confirmed that nothing of an earlier order still runs."""
        return self.answered == self.sequence and self.state in _QUIET_STATES


class Roster:
    """The clients of a run, numbered from 0."""

    def __init__(self, count: int, *, lost_after: float) -> None:
        """Expect `count` clients, each lost after that many seconds of silence."""
        self._count = count
        self._lost_after = lost_after
        self._clients: dict[int, Client] = {}

    def __iter__(self) -> Iterator[Client]:
        """Go over the registered clients, in order of their numbers."""
        return iter([self._clients[number] for number in sorted(self._clients)])

    def register(self, registration: Registration, now: float) -> Client:
        """Take in an agent process; a newer one takes the place of an older one of the same client.

        Any takes that of a lost one: whoever claimed to be the newest and is gone shall not shut out its successor.

        Raises:
            RefusedError: for a number that the plan does not have, and for a process that has been replaced.

        """
        number = registration.client
        if number >= self._count:
            raise RefusedError("UnknownClient", f"client {number} is not one of the plan's {self._count}")
        known = self._clients.get(number)
        if known is not None and known.instance == registration.instance:
            known.last_contact = now
            return known
        if known is not None and known.attempt > registration.attempt and self._is_present(number, now):
            raise RefusedError("Superseded", f"client {number} has been replaced by attempt {known.attempt}")
        client = Client(
            number=number,
            instance=registration.instance,
            attempt=registration.attempt,
            node=registration.node,
            last_contact=now,
            prepared_bytes=registration.prepared_bytes,
            facts=registration.facts,
        )
        self._clients[number] = client
        return client

    def known(self, number: int, instance: str, now: float) -> Client:
        """Return a registered client and note that it was heard of.

        Raises:
            RefusedError: if it has not registered, or another process has taken its place.

        """
        client = self._clients.get(number)
        if client is None:
            raise RefusedError("UnknownClient", f"client {number} has not registered with this conductor")
        if client.instance != instance:
            raise RefusedError("Superseded", f"client {number} is another process by now")
        client.last_contact = now
        return client

    def report(self, client: Client, report: Report, now: float) -> None:
        """Note what a client says of its order; word of an earlier order is ignored."""
        client.clock = report.clock or client.clock
        if report.sequence != client.sequence:
            return
        client.answered, client.state, client.message = report.sequence, report.state, report.message
        client.done_bytes, client.total_bytes = report.done_bytes, report.total_bytes
        client.rates, client.rated_at = report.rates, now
        if report.state is AgentState.PREPARED:
            client.prepared_bytes = report.done_bytes

    def get(self, numbers: Iterable[int]) -> list[Client]:
        """Return those clients that are registered."""
        return [self._clients[number] for number in numbers if number in self._clients]

    def missing(self, now: float) -> tuple[int, ...]:
        """Return the numbers of the clients that have not registered, or are lost."""
        return tuple(number for number in range(self._count) if not self._is_present(number, now))

    def _is_present(self, number: int, now: float) -> bool:
        client = self._clients.get(number)
        return client is not None and now - client.last_contact <= self._lost_after


def choose(clients: Iterable[Client], count: int) -> tuple[int, ...]:
    """Choose `count` clients round-robin over the nodes, so that few clients still use many nodes."""
    by_node: dict[str, list[int]] = {}
    for client in clients:
        by_node.setdefault(client.node, []).append(client.number)
    ranked = [(rank, node, number) for node, numbers in by_node.items() for rank, number in enumerate(sorted(numbers))]
    return tuple(sorted(number for _, _, number in sorted(ranked)[:count]))
