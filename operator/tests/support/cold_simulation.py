"""A simulation whose agents drop the caches of their nodes, as far as the test lets them."""

from plimsoll.api.status import TrialKey
from plimsoll.api.surroundings import NodeCaches, OsdCaches
from plimsoll.conductor.phases import Effect, ReadToken, Timings
from plimsoll.plan.document import Plan
from plimsoll.protocol import messages
from plimsoll.protocol.helpers import CacheDrop
from plimsoll.protocol.messages import AgentState
from support.simulation import SimulatedAgent, Simulation

TOKEN = "the conductor's token"


def node_of(client: int) -> str:
    """Return the node of a simulated client."""
    return f"node-{client % 2}"


def drop_on(node: str, osds: OsdCaches | None = None) -> CacheDrop:
    """Return what an agent sends after the caches of a node were dropped."""
    caches = NodeCaches(node=node, dropped_at="2026-11-21T12:00:00Z", before_bytes=2**30, after_bytes=2**20)
    return CacheDrop(node=caches, osds=osds)


class ColdSimulation(Simulation):
    """See `Simulation`.

    Attributes:
        drops: the nodes whose caches were dropped, in order, with the trial and the order.
        behaviour: clients that fail (Failed), never answer (Idle), or reach the helper of the node with that name.

    """

    def __init__(self, plan: Plan, timings: Timings | None = None) -> None:
        self.drops: list[tuple[TrialKey, str, messages.DropCachesOrder]] = []
        self.behaviour: dict[int, AgentState | str] = {}
        super().__init__(plan, timings)

    def _acknowledge(self, effect: Effect) -> None:
        if isinstance(effect, ReadToken):
            self.session.authorized(TOKEN)
        else:
            super()._acknowledge(effect)

    def _obey(self, agent: SimulatedAgent) -> None:
        if isinstance(agent.order, messages.DropCachesOrder):
            self._drop(agent, agent.order)
        else:
            super()._obey(agent)

    def _drop(self, agent: SimulatedAgent, order: messages.DropCachesOrder) -> None:
        behaviour = self.behaviour.get(agent.client, node_of(agent.client))
        if behaviour == AgentState.FAILED:
            self.report(agent.client, AgentState.FAILED, "the helper did not drop the caches (status 500): no")
        elif behaviour != AgentState.IDLE:
            self.drops.append((order.trial, behaviour, order))
            osds = OsdCaches(count=3, osds=(0, 1, 2)) if order.fsid else None
            self._report_drop(agent, drop_on(behaviour, osds))

    def _report_drop(self, agent: SimulatedAgent, caches: CacheDrop) -> None:
        report = messages.Report(
            epoch=agent.epoch,
            client=agent.client,
            instance=agent.instance,
            sequence=agent.after,
            state=AgentState.DROPPED,
            caches=caches,
        )
        self.session.report(report, self.moment)
        self.session.advance(self.moment)
