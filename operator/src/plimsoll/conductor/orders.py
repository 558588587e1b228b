"""The orders for the steps of a plan."""

from collections.abc import Iterable
from typing import Any

from plimsoll.conductor.phases import Attempt
from plimsoll.conductor.roster import Client, Roster
from plimsoll.conductor.timings import Timings
from plimsoll.plan.document import Plan
from plimsoll.plan.order import client_seed
from plimsoll.protocol.messages import (
    ArmOrder,
    DropCachesOrder,
    GoOrder,
    Order,
    PrepareOrder,
    ServeOrder,
    StageOrder,
    ToolOrder,
)


def prepare(plan: Plan, client: int) -> PrepareOrder:
    """Return the order to discard, prefill and overwrite."""
    return PrepareOrder(
        discard=plan.prepare.discard,
        # Nothing else would make the data set new.
        must_discard=plan.renews_data_sets and not plan.prepare.prefill,
        prefill=plan.prepare.prefill,
        precondition=plan.prepare.precondition,
        fill_percent=plan.prepare.fill_percent,
        seed=client_seed(plan.seed, point="prefill", pass_number=0, client=client),
    )


def give_preparation(plan: Plan, unprepared: Iterable[Client]) -> None:
    """Order those clients to prepare that have confirmed that nothing else runs."""
    for client in unprepared:
        if client.is_quiet:
            client.give(prepare(plan, client.number))


def stage(plan: Plan, attempt: Attempt, client: int) -> StageOrder:
    """Return the order to write the data that the attempt reads, with the same seed as `arm`."""
    return StageOrder(**_tool_fields(plan, attempt, client))


def serve(plan: Plan, attempt: Attempt, client: int, roster: Roster) -> ServeOrder:
    """Return the order to serve the clients that generate load."""
    return ServeOrder(**_tool_fields(plan, attempt, client), peers=_peers(attempt, client, roster))


def give_staging(plan: Plan, attempt: Attempt, roster: Roster) -> None:
    """Order the clients of the current round to get ready for arming."""
    for client in roster.get(attempt.round.serving):
        client.give(serve(plan, attempt, client.number, roster))
    for client in roster.get(attempt.round.loading):
        client.give(stage(plan, attempt, client.number))


def drop_caches(attempt: Attempt, timings: Timings, *, token: str, fsid: str | None) -> DropCachesOrder:
    """Return the order to drop the caches of a node, and of the OSDs of a cluster if one is given."""
    return DropCachesOrder(trial=attempt.key, token=token, fsid=fsid, limit_seconds=timings.dropping)


def arm(plan: Plan, attempt: Attempt, client: int, roster: Roster) -> ArmOrder:
    """Return the order to get ready for T0."""
    return ArmOrder(
        **_tool_fields(plan, attempt, client),
        peers=_peers(attempt, client, roster),
        data_of=attempt.round.next_after(client) if attempt.point.reads_next_client else None,
        t0_nanoseconds=attempt.t0,
    )


def give_arming(plan: Plan, attempt: Attempt, roster: Roster) -> None:
    """Order the clients that generate load in the current round to arm."""
    for client in roster.get(attempt.round.loading):
        client.give(arm(plan, attempt, client.number, roster))


def go(attempt: Attempt) -> GoOrder:
    """Return the order to run at T0."""
    return GoOrder(trial=attempt.key)


def belongs_to(order: Order, attempt: Attempt) -> bool:
    """Whether an order belongs to an attempt."""
    return isinstance(order, ToolOrder | DropCachesOrder | GoOrder) and order.trial == attempt.key


def _tool_fields(plan: Plan, attempt: Attempt, client: int) -> dict[str, Any]:
    """Return the fields of every order for a tool."""
    point = attempt.point
    return {
        "trial": attempt.key,
        "round_number": attempt.round_number,
        "tool": point.tool,
        "parameters": point.parameters,
        "ramp_seconds": point.ramp_seconds,
        "runtime_seconds": point.runtime_seconds,
        "seed": _seed(plan, attempt, client),
    }


def _peers(attempt: Attempt, client: int, roster: Roster) -> dict[int, str]:
    return {peer.number: peer.address for peer in roster.get(attempt.round.peers(client))}


def _seed(plan: Plan, attempt: Attempt, client: int) -> int:
    return client_seed(plan.seed, point=attempt.point.name, pass_number=attempt.key.pass_number, client=client)
