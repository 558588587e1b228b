"""Making what a run needs of a cluster. Every step finds out what an earlier conductor has done already."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from plimsoll.ceph.document import Node
from plimsoll.ceph.gate import gate_problems, unclean_states
from plimsoll.ceph.pools import PoolDetail, parse_pools
from plimsoll.ceph.status import parse_status
from plimsoll.conductor.ceph.cli import CommandError, Commands
from plimsoll.conductor.ceph.environment import has_images
from plimsoll.conductor.ceph.flags import pause_scrubs
from plimsoll.conductor.ceph.images import make_images
from plimsoll.conductor.ceph.pools import pool_problems
from plimsoll.plan.ceph import flags_object
from plimsoll.plan.document import CephTarget, Plan

_CLEAN = {"active", "clean"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """How far a pass came.

    Attributes:
        problems: in words, what is still missing; empty if nothing is.
        pools: those of the run, as they were found.
        osds: how many the cluster has.

    """

    problems: tuple[str, ...]
    pools: tuple[PoolDetail, ...] = ()
    osds: int = 0


async def prepare(commands: Commands, plan: Plan, target: CephTarget, *, say: Callable[[str], None]) -> Prepared:
    """Do what can be done now: look at the pools, pause scrubs, make images; `say` is told the progress."""
    try:
        return await _prepare(commands, plan, target, say)
    except (CommandError, ValueError) as error:
        return Prepared(problems=(str(error),))


async def _prepare(commands: Commands, plan: Plan, target: CephTarget, say: Callable[[str], None]) -> Prepared:
    found = parse_pools(await commands.ceph("osd", "pool", "ls", "detail"))
    problems = pool_problems(target, found)
    if problems:
        return Prepared(problems=problems)
    pools = tuple(found[name] for name in target.pools)
    # A command on an object of an inactive placement group hangs.
    problems = await _unclean_groups(commands, plan, pools)
    if problems:
        return Prepared(problems=problems)
    if plan.gates.pause_scrub:
        say("pausing scrubs of the run's pools")
        await pause_scrubs(commands, note=flags_object(plan.run.uid), pools=pools)
    status = parse_status(await commands.ceph("status"))
    if plan.gates.ceph_health == "Required":
        problems = gate_problems(status, accepted=frozenset(plan.gates.accepted_health_checks))
    if not problems and has_images(plan) and plan.volume is not None:
        made = await make_images(commands, target, plan.volume, uid=plan.run.uid, clients=plan.clients, say=say)
        problems = tuple(made)
    return Prepared(problems=problems, pools=pools, osds=status.osds)


async def _unclean_groups(commands: Commands, plan: Plan, pools: Sequence[PoolDetail]) -> tuple[str, ...]:
    """Return what is wrong with placement groups: with all of the cluster, or with the run's if that is all it asks."""
    if plan.gates.ceph_health == "Required":
        accepted = frozenset(plan.gates.accepted_health_checks)
        status = parse_status(await commands.ceph("status"))
        return () if not unclean_states(status) else gate_problems(status, accepted=accepted)
    groups = Node.parse(await commands.ceph("pg", "dump", "pgs_brief"))
    names = {str(pool.number): pool.name for pool in pools}
    bad: dict[str, int] = {}
    for group in groups["pg_stats"].elements():
        pool = names.get(group["pgid"].text().partition(".")[0])
        if pool is not None and not set(group["state"].text().split("+")) >= _CLEAN:
            bad[pool] = bad.get(pool, 0) + 1
    return tuple(
        f"{count} placement groups of pool {pool} are not active+clean; see `ceph pg ls-by-pool {pool}`"
        for pool, count in sorted(bad.items())
    )
