"""Prepares a cluster for a run. Every step detects what an earlier conductor has already done."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from plimsoll.api.ceph_options import CephOption
from plimsoll.api.pools import Pool
from plimsoll.ceph.document import Node
from plimsoll.ceph.file_systems import parse_file_system, wrong_pools
from plimsoll.ceph.gate import gate_problems, unclean_states
from plimsoll.ceph.options import reading_problems
from plimsoll.ceph.pools import PoolDetail, parse_pools
from plimsoll.ceph.status import parse_status
from plimsoll.ceph.watch import FileSystemDetail
from plimsoll.conductor.ceph.cli import CommandError, Commands
from plimsoll.conductor.ceph.environment import has_images
from plimsoll.conductor.ceph.flags import pause_scrubs
from plimsoll.conductor.ceph.images import create_images
from plimsoll.conductor.ceph.options import OptionsSet, options_of_others, read_options, set_options
from plimsoll.plan.ceph import flags_object, options_key
from plimsoll.plan.document import CephTarget, Plan

_CLEAN = {"active", "clean"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """The result of one pass over the preparation.

    Attributes:
        problems: what is still missing; empty when the cluster is prepared.
        pools: the run's pools.
        osds: number of the cluster's OSDs.
        file_system: the file system of the pools, if the run measures one.
        options: the options that are set for the run, with their values as Ceph stores them.
        refused: whether the problems would remain, however long one waits.

    """

    problems: tuple[str, ...]
    pools: tuple[PoolDetail, ...] = ()
    osds: int = 0
    file_system: FileSystemDetail | None = None
    options: tuple[CephOption, ...] = ()
    refused: bool = False


async def prepare(commands: Commands, plan: Plan, target: CephTarget, *, report: Callable[[str], None]) -> Prepared:
    """Check the pools, pause scrubs, set options and create images as far as possible; `report` the progress."""
    try:
        if target.rook is not None and (problems := await options_of_others(commands, uid=plan.run.uid)):
            return Prepared(problems=problems)
        return await _prepare(commands, plan, target, report)
    except (CommandError, ValueError) as error:
        return Prepared(problems=(str(error),))


async def _prepare(commands: Commands, plan: Plan, target: CephTarget, report: Callable[[str], None]) -> Prepared:
    found = parse_pools(await commands.ceph("osd", "pool", "ls", "detail"))
    problems = _pool_problems(target, found)
    if problems:
        return Prepared(problems=problems)
    pools = tuple(found[name] for name in target.pools)
    file_system = await _file_system(commands, target)
    if file_system is not None and (problems := _file_system_problems(target, file_system, pools)):
        return Prepared(problems=problems)
    # A command on an object of an inactive placement group hangs.
    problems = await _unclean_groups(commands, plan, pools)
    if problems:
        return Prepared(problems=problems)
    if plan.gates.pause_scrub:
        report("pausing scrubs of the run's pools")
        await pause_scrubs(
            commands, note=flags_object(plan.run.uid), pools=[found[name] for name in target.pools_by_note]
        )
    setting = OptionsSet()
    if target.options:
        report("setting options of the OSDs")
        setting = await set_options(commands, target.options, key=options_key(plan.run.uid))
        if setting.problems:
            return Prepared(problems=setting.problems, refused=setting.refused)
    status = parse_status(await commands.ceph("status"))
    if plan.gates.ceph_health == "Required":
        accepted = frozenset(plan.gates.accepted_health_checks)
        problems = gate_problems(status, accepted=accepted, file_system=file_system)
    if setting.options:
        problems = (*problems, *reading_problems(await read_options(commands, setting.options)))
    if not problems and has_images(plan) and plan.volume is not None:
        problems = tuple(
            await create_images(commands, target, plan.volume, uid=plan.run.uid, clients=plan.clients, report=report)
        )
    return Prepared(
        problems=problems,
        pools=pools,
        osds=status.osds,
        file_system=file_system,
        options=setting.options,
    )


async def _file_system(commands: Commands, target: CephTarget) -> FileSystemDetail | None:
    if target.file_system is None:
        return None
    return parse_file_system(await commands.ceph("fs", "get", target.file_system.name))


def _file_system_problems(target: CephTarget, found: FileSystemDetail, pools: Sequence[PoolDetail]) -> tuple[str, ...]:
    """Return how the file system differs from the plan."""
    made = target.file_system.made if target.file_system else None
    problems = [*wrong_pools(found, pools)]
    if made is not None and found.servers != made.metadata_servers:
        wanted = made.metadata_servers
        problems.append(f"file system {found.name} is set to {found.servers} active metadata servers, not {wanted}")
    return tuple(problems)


def _pool_problems(target: CephTarget, found: Mapping[str, PoolDetail]) -> tuple[str, ...]:
    """Return how the pools differ from the plan: Rook calls a pool ready even if a part of its setup failed."""
    missing = [name for name in target.pools if name not in found]
    if missing:
        return tuple(f"pool {name} does not exist" for name in missing)
    pools = [found[name] for name in target.pools]
    problems = [
        f"pool {pool.name} is changing from {pool.pg_num} to {pool.pg_num_target} placement groups; wait, or switch "
        "off its autoscaler"
        for pool in pools
        if not pool.is_settled
    ]
    for name, wanted in target.made_pools.items():
        problems += _differences(wanted, found[name])
    return tuple(problems)


def _differences(wanted: Pool, pool: PoolDetail) -> Iterator[str]:
    coded = wanted.erasure_coded
    kind = "erasure" if coded else "replicated"
    size = coded.data_chunks + coded.coding_chunks if coded else wanted.replicated.size if wanted.replicated else 0
    if (pool.type, pool.size) != (kind, size):
        yield f"pool {pool.name} is {pool.type} with size {pool.size}, not {kind} with size {size}"
    groups = wanted.placement_groups
    if groups is not None and pool.pg_num_target != groups:
        yield f"pool {pool.name} has {pool.pg_num_target} placement groups, not {groups}"
    if groups is not None and pool.autoscale_mode != "off":
        scaling = pool.autoscale_mode
        yield f"the autoscaler of pool {pool.name} is {scaling}, and may split placement groups during the run"
    mode, found = wanted.compression_mode, pool.options.get("compression_mode", "none")
    if mode is not None and found != mode:
        yield f"pool {pool.name} has compression {found}, not {mode}"


async def _unclean_groups(commands: Commands, plan: Plan, pools: Sequence[PoolDetail]) -> tuple[str, ...]:
    """Return the problems of the cluster's placement groups, or only of the run's if the plan ignores the health."""
    if plan.gates.ceph_health == "Required":
        accepted = frozenset(plan.gates.accepted_health_checks)
        status = parse_status(await commands.ceph("status"))
        return () if not unclean_states(status) else gate_problems(status, accepted=accepted)
    groups = Node.parse(await commands.ceph("pg", "dump", "pgs_brief"))
    names = {str(pool.number): pool.name for pool in pools}
    unclean: Counter[str] = Counter()
    for group in groups["pg_stats"].elements():
        pool = names.get(group["pgid"].text().partition(".")[0])
        if pool is not None and not set(group["state"].text().split("+")) >= _CLEAN:
            unclean[pool] += 1
    return tuple(
        f"{count} placement groups of pool {pool} are not active+clean; see `ceph pg ls-by-pool {pool}`"
        for pool, count in sorted(unclean.items())
    )
