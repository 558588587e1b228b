"""A search for the line in a conductor's session, whose clients' storage breaks at a load that the test sets."""

from collections.abc import Callable
from functools import cache

from plimsoll.api.line import LineSearch, Objective
from plimsoll.api.names import Operation
from plimsoll.api.result import Trial
from plimsoll.measure.histogram import sample_of
from plimsoll.measure.sample import Cells, ClientDocument, LatencySample, OperationSample
from plimsoll.plan.document import Plan
from plimsoll.protocol import messages
from support.simulated_plan import SECOND, make_document, make_plan
from support.simulation import Simulation

ROUGH_SEARCH = LineSearch(
    start=400,
    limit=20_000,
    precision_percent=20,
    objectives=(Objective(percentile="99", latency_microseconds=5_000),),
)
SECONDS = 4
FAST, SLOW = 1_000_000, 9_000_000


def search_plan(*, points: int = 1, searches: int = 1, repetitions: int = 2, clients: int = 2) -> Plan:
    """Return a plan whose first points are searches."""
    plan = make_plan(points=points, clients=clients, repetitions=repetitions)
    searched = [
        point.model_copy(update={"line": ROUGH_SEARCH if number < searches else None})
        for number, point in enumerate(plan.points)
    ]
    return plan.model_copy(update={"points": tuple(searched)})


def offered_document(client: int, t0: int, rate: int, *, latency: int, full: float = 0.0) -> ClientDocument:
    """Return what a client sends that completed all operations that arrived, each with this latency."""
    document = make_document(client, t0)
    assert document.measurement is not None
    read = OperationSample(
        operation=Operation.READ,
        ios=rate * SECONDS,
        bytes=rate * SECONDS * 4096,
        latency=_same(latency, rate * SECONDS),
        cells=Cells(width_nanoseconds=SECOND, ios=(float(rate),) * SECONDS, bytes=(4096.0 * rate,) * SECONDS),
    )
    measurement = document.measurement.model_copy(update={"operations": (read,), "depth_full_share": full})
    return document.model_copy(update={"measurement": measurement})


@cache
def _same(latency: int, count: int) -> LatencySample:
    """Return the latency of operations that all took the same time."""
    return sample_of([latency] * count)


class SearchSimulation(Simulation):
    """A run whose storage is slow where `breaks` says so of the load of all clients."""

    def __init__(self, plan: Plan, breaks: Callable[[int], bool] = lambda load: load > 3_000) -> None:
        self.breaks = breaks
        super().__init__(plan)

    def document(self, client: int, armed: messages.ArmOrder) -> ClientDocument:
        """Return what a client sends: of a search, with the offered rate."""
        rate = armed.parameters.get("rateIops")
        if not isinstance(rate, int) or client in self.failing:
            return super().document(client, armed)
        latency = SLOW if self.breaks(rate * self.plan.clients) else FAST
        return offered_document(client, armed.t0_nanoseconds, rate, latency=latency)

    def loads(self, point: str = "w-000") -> list[float]:
        """Return the load of every measured probe of a search."""
        return [trial.probe.offered for trial in self.measured(point) if trial.probe]

    def measured(self, point: str = "w-000") -> list[Trial]:
        """Return the trials of a search with numbers."""
        return [trial for trial in self.stored[point] if trial.abort is None]
