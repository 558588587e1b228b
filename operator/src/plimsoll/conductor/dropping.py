"""Dropping the caches of all nodes, and then of the OSDs, before an attempt."""

from collections.abc import Mapping

from plimsoll.api.names import AbortReason
from plimsoll.api.surroundings import MAX_LISTED, DroppedCaches, NodeCaches
from plimsoll.conductor import reporting
from plimsoll.conductor.attempt import Attempt, Fault, Moment, Timings, needs_staging
from plimsoll.conductor.phases import Dropping
from plimsoll.conductor.roster import Client, Roster
from plimsoll.protocol.helpers import CacheDrop
from plimsoll.protocol.messages import (
    AgentState,
    DropCachesOrder,
)


def begin_dropping(attempt: Attempt, timings: Timings, moment: Moment) -> Dropping:
    """Return the phase in which the caches are dropped, without orders yet."""
    deadline = moment.seconds + timings.dropping + timings.dropping_grace
    return Dropping(attempt=attempt, deadline=deadline, is_staged=needs_staging(attempt))


def undropped_nodes(phase: Dropping, roster: Roster) -> tuple[str, ...]:
    """Return the nodes of the clients that generate load, unless their caches are dropped."""
    nodes = {client.node for client in roster.get(phase.attempt.round.loading)}
    return tuple(sorted(nodes - {client.node for client in _droppers(phase, roster) if _drop_of(client)}))


def is_dropped(phase: Dropping, roster: Roster, describe: reporting.Describe) -> bool:
    """Whether all caches are dropped: those of the nodes and, of a run on Ceph, those of the OSDs."""
    if phase.token is None or undropped_nodes(phase, roster):
        return False
    return phase.has_reached_osds or _fsid(roster, describe) is None


def give_dropping(phase: Dropping, roster: Roster, timings: Timings, describe: reporting.Describe) -> None:
    """Order one client on each node that has no order yet; when all nodes are done, one of them for the OSDs.

    A node first writes its dirty data, which would warm up the caches of the OSDs again.
    """
    if phase.token is None:
        return
    order = DropCachesOrder(trial=phase.attempt.key, token=phase.token, limit_seconds=timings.dropping)
    for client in roster.get(phase.attempt.round.loading):
        if client.node not in phase.chosen:
            client.give(order)
            phase.chosen[client.node] = client.number
    fsid = _fsid(roster, describe)
    if fsid is not None and not phase.has_reached_osds and not undropped_nodes(phase, roster):
        (last,) = roster.get([max(phase.chosen.values())])
        last.give(order.model_copy(update={"fsid": fsid}))
        phase.has_reached_osds = True


def dropping_fault(phase: Dropping, roster: Roster, timings: Timings, moment: Moment) -> Fault | None:
    """Return why the caches cannot be dropped, or were not in time; None if neither is the case."""
    droppers = _droppers(phase, roster)
    message = reporting.failures(droppers) or "; ".join(filter(None, map(_mismatch, droppers)))
    if not message and moment.seconds >= phase.deadline:
        nodes = reporting.shortened(undropped_nodes(phase, roster))
        limit = timings.dropping + timings.dropping_grace
        message = f"the caches of {nodes} were not dropped within {limit:g} s; check the helper's pod there"
    return Fault(reason=AbortReason.CACHES_NOT_DROPPED, message=message) if message else None


def dropped_caches(phase: Dropping, roster: Roster) -> DroppedCaches:
    """Return what was dropped, for the trial's record."""
    drops = [drop for client in _droppers(phase, roster) if (drop := _drop_of(client))]
    nodes: Mapping[str, NodeCaches] = {drop.node.node: drop.node for drop in drops}
    listed = tuple(nodes[name] for name in sorted(nodes))
    osds = next((drop.osds for drop in drops if drop.osds is not None), None)
    return DroppedCaches(node_count=len(listed), nodes=listed[:MAX_LISTED], osds=osds)


def _fsid(roster: Roster, describe: reporting.Describe) -> str | None:
    ceph = describe(roster.client_nodes).ceph
    return ceph.fsid if ceph else None


def _droppers(phase: Dropping, roster: Roster) -> list[Client]:
    return roster.get(phase.chosen.values())


def _drop_of(client: Client) -> CacheDrop | None:
    return client.caches if client.is_in(AgentState.DROPPED) else None


def _mismatch(client: Client) -> str:
    """Return a message if the helper of another node answered; empty otherwise."""
    drop = _drop_of(client)
    if drop is None or drop.node.node == client.node:
        return ""
    return (
        f"client {client.number} on {client.node}: the helper of node {drop.node.node} answered; "
        "the cluster's network must support internalTrafficPolicy: Local"
    )
