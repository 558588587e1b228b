"""The clients of a run: whether they are alive, their current orders, messages about them, and their environment."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from pydantic import JsonValue

from plimsoll.api.environment import Environment, Extremes
from plimsoll.api.status import LiveRate
from plimsoll.measure.sample import Clock
from plimsoll.measure.text import numbered
from plimsoll.protocol import messages
from plimsoll.protocol.helpers import CacheDrop

MAX_FACTS = 16  # values of one fact that are kept, if the clients differ


@dataclass(slots=True, kw_only=True)
class Client:
    """One client as the conductor knows it."""

    number: int
    instance: str
    attempt: int
    node: str
    last_contact: float  # time of its last request; see `Moment.seconds`
    prepared_bytes: int = 0
    data_set_used: bool = False  # whether a tool may have worked since its data set was prepared
    facts: dict[str, JsonValue] = field(default_factory=dict)
    order: messages.Order = field(default_factory=messages.WaitOrder)
    sequence: int = 0  # number of its current order
    answered: int = -1  # number of the order that `state` belongs to
    state: messages.AgentState = messages.AgentState.IDLE
    message: str = ""
    done_bytes: int = 0
    total_bytes: int = 0
    clock: Clock | None = None
    rates: tuple[LiveRate, ...] = ()  # the latest rates of its tool under the current order
    rated_at: float = 0.0  # time of these rates; see `Moment.seconds`
    address: str = ""  # the address of its registration, where other clients reach it
    caches: CacheDrop | None = None  # what it dropped under its current order
    serves: bool = False  # whether it is one of the run's servers, which never load

    def give(self, order: messages.Order) -> None:
        self.order = order
        self.sequence += 1
        self.rates = ()
        self.data_set_used |= isinstance(order, messages.StageOrder | messages.GoOrder)
        self.caches = None

    def is_in(self, state: messages.AgentState) -> bool:
        """Whether it has reached a state under its current order."""
        return self.answered == self.sequence and self.state is state

    @property
    def written(self) -> tuple[int, int]:
        """How many bytes of its data set it has written, and its size; one that prepares again begins at 0."""
        prepares = isinstance(self.order, messages.PrepareOrder) and not self.is_in(messages.AgentState.PREPARED)
        if self.prepared_bytes and not prepares:
            return self.prepared_bytes, self.prepared_bytes
        done, total = (self.done_bytes, self.total_bytes) if self.is_in(messages.AgentState.PREPARING) else (0, 0)
        return done, total or self.prepared_bytes

    @property
    def is_quiet(self) -> bool:
        """Whether it has confirmed that nothing of an earlier order runs any more."""
        return self.answered == self.sequence and self.state in {messages.AgentState.IDLE, messages.AgentState.PREPARED}


class Roster:
    """The clients of a run, numbered from 0."""

    def __init__(self, clients: int, *, servers: int = 0, lost_after: float) -> None:
        """Expect clients and then servers; one without a request for `lost_after` seconds is lost."""
        self._loading = clients
        self._count = clients + servers
        self._lost_after = lost_after
        self._clients: dict[int, Client] = {}

    def __iter__(self) -> Iterator[Client]:
        return iter([self._clients[number] for number in sorted(self._clients)])

    def register(self, registration: messages.Registration, now: float, address: str = "") -> Client:
        """Register an agent process, which replaces an older process of the same client, and any that is lost.

        RefusedError: the plan has no such client, or a newer process has replaced this one.
        """
        number = registration.client
        if number >= self._count:
            raise messages.RefusedError("UnknownClient", f"client {number} is not one of the plan's {self._count}")
        before = self._clients.get(number)
        if before is not None and before.instance == registration.instance:
            before.last_contact = now
            return before
        if before is not None and before.attempt > registration.attempt and self._is_present(number, now):
            raise messages.RefusedError("Superseded", f"client {number} has been replaced by attempt {before.attempt}")
        client = Client(
            number=number,
            instance=registration.instance,
            attempt=registration.attempt,
            node=registration.node,
            last_contact=now,
            prepared_bytes=registration.prepared_bytes,
            data_set_used=registration.data_set_used,
            facts=registration.facts,
            address=address,
            serves=number >= self._loading,
        )
        self._clients[number] = client
        return client

    def registered(self, number: int, instance: str, now: float) -> Client:
        """Return a client and update its last contact; RefusedError if it is not registered or was replaced."""
        client = self._clients.get(number)
        if client is None:
            raise messages.RefusedError("UnknownClient", f"client {number} has not registered with this conductor")
        if client.instance != instance:
            raise messages.RefusedError("Superseded", f"another process has replaced this one of client {number}")
        client.last_contact = now
        return client

    def report(self, client: Client, report: messages.Report, now: float) -> None:
        """Update a client's progress with its order; a report on an earlier order is ignored."""
        client.clock = report.clock or client.clock
        if report.sequence != client.sequence:
            return
        client.answered, client.state, client.message = report.sequence, report.state, report.message
        client.done_bytes, client.total_bytes = report.done_bytes, report.total_bytes
        client.rates, client.rated_at = report.rates, now
        client.caches = report.caches
        if report.state is messages.AgentState.PREPARED:
            client.prepared_bytes, client.data_set_used = report.done_bytes, False

    def get(self, numbers: Iterable[int]) -> list[Client]:
        """Return the registered clients among these."""
        return [self._clients[number] for number in numbers if number in self._clients]

    def give(self, numbers: Iterable[int], order: messages.Order) -> None:
        """Give a new order to the registered clients among these."""
        for client in self.get(numbers):
            client.give(order)

    def missing(self, now: float) -> tuple[int, ...]:
        """Return the numbers of the clients that have not registered or are lost."""
        return tuple(number for number in range(self._count) if not self._is_present(number, now))

    def has_left(self, now: float) -> bool:
        """Whether every client is quiet, leaving or missing."""
        done = {client.number for client in self if client.is_quiet or client.is_in(messages.AgentState.LEAVING)}
        return done | set(self.missing(now)) >= set(range(self._count))

    def _is_present(self, number: int, now: float) -> bool:
        client = self._clients.get(number)
        return client is not None and now - client.last_contact <= self._lost_after


def timestamp(wall: int) -> str:
    """Format Unix nanoseconds as RFC 3339 in UTC, with milliseconds."""
    text = datetime.fromtimestamp(wall / 1e9, tz=UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")


def names_of(clients: Iterable[Client]) -> str:
    return numbered("client", [client.number for client in clients])


def failures(clients: Iterable[Client]) -> str:
    """Return the messages of the clients that failed; empty if none did."""
    failed = [client for client in clients if client.is_in(messages.AgentState.FAILED)]
    return "; ".join(f"client {client.number} on {client.node}: {client.message}" for client in failed)


def why_not_ready(roster: Roster, missing: Sequence[int], ready_seconds: int) -> str:
    if missing:
        who = numbered("client", missing)
        return f"{who} did not register or reconnect within timeouts.readySeconds ({ready_seconds} s)"
    busy = [client for client in roster if not client.is_quiet]
    who, why = names_of(busy), failures(busy)
    return f"{who} did not confirm within {ready_seconds} s that the last tool has stopped{why and f': {why}'}"


def environment(roster: Roster, storage: Environment) -> Environment | None:
    """Return the environment of the results: nodes, facts of the clients, and the storage; None without clients."""
    nodes = sorted({client.node for client in roster if not client.serves})
    if not nodes:
        return None
    sizes = [client.prepared_bytes for client in roster if client.prepared_bytes]
    observed = Environment(
        nodes=tuple(nodes[:64]),
        node_count=len(nodes),
        data_set_bytes=Extremes(min=min(sizes, default=0), max=max(sizes, default=0)),
    )
    facts: dict[str, list[JsonValue]] = {}
    for client in roster:
        for name, value in client.facts.items():
            values = facts.setdefault(name, [])
            if value not in values and len(values) < MAX_FACTS:
                values.append(value)
    agreed = {name: values[0] if len(values) == 1 else values for name, values in facts.items()}
    # The clients' facts come first, so that they do not replace what the conductor knows.
    return Environment.model_validate(agreed).merged(observed).merged(storage)
