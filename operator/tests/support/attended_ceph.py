"""A pretended Ceph cluster and a conductor that attends to it."""

import asyncio
from collections.abc import Callable

from plimsoll.api.run import Gates, Timeouts
from plimsoll.api.storage import Volume
from plimsoll.conductor.ceph.commands import Commands
from plimsoll.conductor.ceph.watch import CephCluster
from plimsoll.conductor.faults import ClusterView
from plimsoll.plan.document import CephTarget, Plan, flags_object
from support.simulated_plan import make_plan

EXIT_CLUSTER_NOT_READY = 13
SIZE = 2**26
BOTH = {"noscrub", "nodeep-scrub"}
TARGET = CephTarget(pool="golden", data_pool="golden-data", conductor_user="conductor", agent_user="agent")
NOTE = flags_object("u")


def plan_of(
    target: CephTarget = TARGET, *, gates: Gates | None = None, clients: int = 2, ready_seconds: int = 60
) -> Plan:
    return make_plan(points=1, clients=clients, repetitions=1).model_copy(
        update={
            "ceph": target,
            "volume": Volume(size=SIZE, access="LibRBD"),
            "gates": gates or Gates(),
            "timeouts": Timeouts(ready_seconds=ready_seconds),
        }
    )


def cluster_of(plan: Plan, *, limit_seconds: float = 20.0) -> CephCluster:
    assert plan.ceph is not None
    commands = Commands(plan.ceph.conductor_user, limit_seconds=limit_seconds)
    return CephCluster(
        plan, plan.ceph, commands, pause_seconds=0.05, period_seconds=0.05, release_seconds=limit_seconds
    )


async def attend_until(cluster: CephCluster, enough: Callable[[ClusterView], bool]) -> list[ClusterView]:
    """Attend to a cluster until one of its views is enough; return all views."""
    seen: list[ClusterView] = []
    found = asyncio.Event()

    def see(view: ClusterView) -> None:
        seen.append(view)
        if enough(view):
            found.set()

    task = asyncio.create_task(cluster.attend(see))
    try:
        async with asyncio.timeout(60):
            await found.wait()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    return seen


def is_prepared(view: ClusterView) -> bool:
    return view.prepared


def mentions(words: str) -> Callable[[ClusterView], bool]:
    return lambda view: any(words in problem for problem in view.problems)
