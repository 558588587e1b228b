"""Prepares a cluster for a run. Every step detects what an earlier conductor has already done."""

import asyncio
import json
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from plimsoll.api.environment import CephOption
from plimsoll.api.names import FailureReason
from plimsoll.api.quantity import format_quantity
from plimsoll.api.storage import ErasureCoded, Pool, Volume
from plimsoll.ceph.document import parse_answer
from plimsoll.ceph.environment import Outputs, fill_of
from plimsoll.ceph.gate import gate_problems, unclean_states
from plimsoll.ceph.options import reading_problems
from plimsoll.ceph.osds import SETTINGS, parse_osd_tree
from plimsoll.ceph.pools import EC_OPTIMIZATIONS, SCRUB_FLAGS, PoolDetail, parse_file_system, parse_pools, wrong_pools
from plimsoll.ceph.safety import fill_problem, quota_bytes
from plimsoll.ceph.versions import age_problem, mixture_problem, parse_versions
from plimsoll.ceph.watch import FileSystemDetail, parse_status
from plimsoll.conductor.ceph import options as osd_options
from plimsoll.conductor.ceph.commands import FORCE_FULL, CommandError, Commands, UnresponsiveError, if_present
from plimsoll.conductor.ceph.options import show_option
from plimsoll.plan.document import CephTarget, Plan, flags_object, image_name, options_key
from plimsoll.plan.expand import estimate

_FEATURES = "layering,exclusive-lock"  # what librbd needs to write; others, such as object-map, cost operations
_AT_ONCE = 4

_log = logging.getLogger(__name__)

Noted = Mapping[str, Sequence[str]]  # the flags that the run sets, by pool: those that were not set before
# Field of `Outputs` -> arguments of `ceph` for the monitors. The manager may hang alone, so it is asked last.
_QUESTIONS = {
    "versions": ("versions",),
    "status": ("status",),
    "osd_metadata": ("osd", "metadata"),
    "osd_tree": ("osd", "tree"),
    "osd_dump": ("osd", "dump"),
    "df_detail": ("df", "detail"),
    "pools": ("osd", "pool", "ls", "detail"),
    "crush_rules": ("osd", "crush", "rule", "dump"),
}
_ASKED_OSDS = 64  # each of their settings takes a command; of a larger cluster they show what is usual


async def create_images(
    commands: Commands, target: CephTarget, volume: Volume, *, uid: str, clients: int, report: Callable[[str], None]
) -> list[str]:
    """Create the missing images, `report` the progress, and return the problems with existing ones."""
    names = [image_name(uid, client) for client in range(clients)]
    turn = asyncio.Semaphore(_AT_ONCE)
    done = 0

    async def create(name: str) -> str:
        nonlocal done
        async with turn:
            try:
                await _create(commands, target, volume, f"{target.pool}/{name}")
            except CommandError as error:
                return str(error)
            except ValueError as error:
                return f"image {target.pool}/{name} {error}"
            finally:
                done += 1
                report(f"{done} of {clients} images are created")
        return ""

    return [problem for problem in await asyncio.gather(*map(create, names)) if problem]


async def _create(commands: Commands, target: CephTarget, volume: Volume, image: str) -> None:
    """Create one image; ValueError with the problem of an existing one."""
    data_pool = [] if target.data_pool is None else ["--data-pool", target.data_pool]
    try:
        await commands.rbd("create", "--size", f"{volume.size}B", "--image-feature", _FEATURES, *data_pool, image)
    except CommandError as error:
        if not error.is_present:
            raise
        document = parse_answer(await commands.rbd("info", image, "--format", "json"))
        size, pool = document["size"].count(), document.get("data_pool")
        if size != volume.size:
            sizes = f"{format_quantity(size)} instead of {format_quantity(volume.size)}"
            raise ValueError(f"already exists with {sizes}; remove it") from error
        if (data := pool.text() if pool else None) != target.data_pool:
            raise ValueError(f"already exists with its data in pool {data}; remove it") from error
    # A setting of the pool or image takes precedence over the client's.
    await commands.rbd("config", "image", "set", image, "rbd_cache", str(volume.rbd_cache).lower())


async def pause_scrubs(commands: Commands, *, note: str, pools: Sequence[PoolDetail]) -> None:
    """Set the flags that pause scrubs, after noting in object `note` of the first pool which were not set."""
    noted_in = pools[0].name
    noted = await read_note(commands, noted_in, note)
    if noted is None:
        # An existing note is kept: it was written before the flags were set.
        noted = {pool.name: [flag for flag in SCRUB_FLAGS if flag not in pool.flags] for pool in pools}
        await commands.rados("--pool", noted_in, "put", note, "-", standard_input=json.dumps(noted))
    for pool in pools:
        for flag in SCRUB_FLAGS:
            if flag not in pool.flags:
                await commands.ceph("osd", "pool", "set", pool.name, flag, "1")


async def restore_scrubs(commands: Commands, *, note: str, pools: Sequence[PoolDetail]) -> None:
    """Unset the noted flags on the pools that still exist, then remove the note; see `Commands.ceph` for errors."""
    noted_in = pools[0].name
    noted = await read_note(commands, noted_in, note)
    if noted is None:
        return
    for pool in pools:
        for flag in noted.get(pool.name, ()):
            # Even if it is not set: a command that was just killed may still set it.
            await commands.ceph("osd", "pool", "set", pool.name, flag, "0")
    await commands.rados("--pool", noted_in, FORCE_FULL, "rm", note)


async def read_note(commands: Commands, pool: str, note: str) -> Noted | None:
    """Return the noted flags; None without a note. CommandError if it cannot be read or is malformed."""
    text = await if_present(commands.rados("--pool", pool, "get", note, "-"))
    if text is None:
        return None
    try:
        document = json.loads(text)
        return {str(name): [flag for flag in SCRUB_FLAGS if flag in flags] for name, flags in document.items()}
    except (ValueError, AttributeError, TypeError) as error:
        command = f"rados --pool {pool} get {note}"
        reason = f"printed {text[:40]!r}, which is no note of flags; remove the object and check the pools' flags"
        raise CommandError(command, reason) from error


async def ask(commands: Commands, plan: Plan, pools: Iterable[PoolDetail]) -> Outputs:
    """Return Ceph's description of daemons, settings and the run's pools; empty where it refuses or hangs."""
    is_answering = True

    async def answer(command: Callable[..., Awaitable[str]], *arguments: object) -> str:
        nonlocal is_answering
        try:
            return await command(*arguments) if is_answering else ""
        except UnresponsiveError:
            is_answering = False
        except CommandError:
            pass
        return ""

    file_system = plan.ceph.file_system if plan.ceph else None
    # All of the run's images are alike.
    image = f"{plan.ceph.pool}/{image_name(plan.run.uid, 0)}" if plan.ceph and plan.has_images else ""
    profiles = sorted({pool.erasure_code_profile for pool in pools} - {""})
    known = {field: await answer(commands.ceph, *question) for field, question in _QUESTIONS.items()}
    up: list[int] = []
    with suppress(ValueError):
        up = [number for number, osd in parse_osd_tree(known["osd_tree"]).items() if osd.is_up]
    # Of a large cluster some, from all of its parts.
    asked_osds = up[:: -(-len(up) // _ASKED_OSDS) or 1]
    return Outputs(
        **known,
        profiles={name: await answer(commands.ceph, "osd", "erasure-code-profile", "get", name) for name in profiles},
        image=await answer(commands.rbd, "info", image, "--format", "json") if image else "",
        file_system=await answer(commands.ceph, "fs", "get", file_system.name) if file_system else "",
        osd_df=await answer(commands.ceph, "osd", "df"),
        groups=await answer(commands.ceph, "pg", "dump", "pgs_brief") if plan.ceph and plan.ceph.actions else "",
        settings={
            osd: {name: text for name in SETTINGS if (text := await answer(show_option, commands, osd, name))}
            for osd in asked_osds
        },
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """What the preparation found."""

    pools: tuple[PoolDetail, ...] = ()  # the run's pools
    widest: int = 3  # OSDs that a placement group is on, in the pool with the most
    file_system: FileSystemDetail | None = None  # the file system of the pools, if the run measures one
    options: tuple[CephOption, ...] = ()  # the options that are set for the run, with their values as Ceph stores them


async def prepare(commands: Commands, plan: Plan, target: CephTarget, *, report: Callable[[str], None]) -> Prepared:
    """Prepare the cluster as far as possible, and `report` progress; NotPreparedError says what is still missing."""
    if target.actions:
        await osd_options.give_back(commands, key=options_key(plan.run.uid))
    if target.rook is not None or target.has_record:
        _require_none(await osd_options.options_of_others(commands, uid=plan.run.uid))
    versions = parse_versions(await commands.ceph("versions"), file_system=target.file_system is not None)
    if problem := mixture_problem("the cluster", versions):
        raise osd_options.NotPreparedError([problem])
    if versions and (problem := age_problem("the cluster", versions[0])):
        raise osd_options.NotPreparedError([problem], FailureReason.CEPH_TOO_OLD)
    existing = parse_pools(await commands.ceph("osd", "pool", "ls", "detail"))
    _require_none(_pool_problems(target, existing))
    pools = tuple(existing[name] for name in target.pools)
    file_system = await _file_system(commands, target, pools)
    # A command on an object of an inactive placement group hangs.
    _require_none(await _unclean_groups(commands, plan, pools))
    if plan.gates.pause_scrub:
        report("pausing scrubs of the run's pools")
        noted = [existing[name] for name in target.pools_by_note]
        await pause_scrubs(commands, note=flags_object(plan.run.uid), pools=noted)
    options: tuple[CephOption, ...] = ()
    if target.options:
        report("setting options of the OSDs")
        options = await osd_options.set_options(commands, target.options, key=options_key(plan.run.uid))
    status, problems = parse_status(await commands.ceph("status")), list[str]()
    if plan.gates.ceph_health == "Required":
        accepted = frozenset(plan.gates.accepted_health_checks)
        problems += gate_problems(status, accepted=accepted, file_system=file_system)
    if options:
        problems += reading_problems(await osd_options.read_options(commands, options))
    _require_none(problems)
    if plan.has_images and plan.volume is not None:
        created = create_images(commands, target, plan.volume, uid=plan.run.uid, clients=plan.clients, report=report)
        _require_none(await created)
    widest = max(pool.size for pool in existing.values())
    return Prepared(pools=pools, widest=widest, file_system=file_system, options=options)


def _require_none(problems: Collection[str]) -> None:
    if problems:
        raise osd_options.NotPreparedError(problems)


async def limit_fill(commands: Commands, plan: Plan, target: CephTarget, outputs: Outputs) -> None:
    """Refuse data that does not fit, and set the quota of a run's own pool, which alone bounds rados bench."""
    pool, percent = target.pools[-1], plan.limits.fill_percent
    if (fill := fill_of(outputs, pool)) is None:
        unchecked = "Ceph does not show how full the OSDs of pool %s are: spec.limits.fillPercent is not checked"
        _log.warning(unchecked, pool)
        return
    if problem := fill_problem(fill, estimate(plan).data_bytes, percent=percent):
        raise osd_options.NotPreparedError([problem], FailureReason.CLUSTER_TOO_FULL)
    if target.made is not None:
        quota = quota_bytes(fill, plan.clients * plan.volume.size if plan.volume else 0, percent=percent)
        await commands.ceph("osd", "pool", "set-quota", pool, "max_bytes", str(quota))


async def _file_system(commands: Commands, target: CephTarget, pools: Sequence[PoolDetail]) -> FileSystemDetail | None:
    if target.file_system is None:
        return None
    made = target.file_system.made
    detail = parse_file_system(await commands.ceph("fs", "get", target.file_system.name))
    problems = [*wrong_pools(detail, pools)]
    if made is not None and detail.servers != made.metadata_servers:
        servers = f"{detail.servers} active metadata servers, not {made.metadata_servers}"
        problems.append(f"file system {detail.name} is set to {servers}")
    _require_none(problems)
    return detail


def _pool_problems(target: CephTarget, existing: Mapping[str, PoolDetail]) -> list[str]:
    """Return how the pools differ from the plan: Rook calls a pool ready even if a part of its setup failed."""
    if missing := [name for name in target.pools if name not in existing]:
        return [f"pool {name} does not exist" for name in missing]
    unsettled = (pool for name in target.pools if not (pool := existing[name]).is_settled)
    problems = [
        f"pool {pool.name} is changing from {pool.pg_num} to {pool.pg_num_target} placement groups; wait, or switch "
        "off its autoscaler"
        for pool in unsettled
    ]
    made = ((wanted, existing[name]) for name, wanted in target.made_pools.items())
    return problems + [difference for wanted, pool in made for difference in _differences(wanted, pool)]


def _differences(wanted: Pool, pool: PoolDetail) -> Iterator[str]:
    coded = wanted.erasure_coded
    kind = "erasure" if coded else "replicated"
    size = coded.data_chunks + coded.coding_chunks if coded else wanted.replicated.size if wanted.replicated else 0
    if (pool.type, pool.size) != (kind, size):
        yield f"pool {pool.name} is {pool.type} with size {pool.size}, not {kind} with size {size}"
    if coded and (pool.type, pool.size) == (kind, size):
        yield from _coding_differences(coded, pool)
    groups = wanted.placement_groups
    if groups is not None and pool.pg_num_target != groups:
        yield f"pool {pool.name} has {pool.pg_num_target} placement groups, not {groups}"
    if groups is not None and pool.autoscale_mode != "off":
        scaling = pool.autoscale_mode
        yield f"the autoscaler of pool {pool.name} is {scaling}, and may split placement groups during the run"
    mode, compression = wanted.compression_mode, pool.options.get("compression_mode", "none")
    if mode is not None and compression != mode:
        yield f"pool {pool.name} has compression {compression}, not {mode}"


def _coding_differences(wanted: ErasureCoded, pool: PoolDetail) -> Iterator[str]:
    unit, wanted_unit = pool.stripe_width // wanted.data_chunks, wanted.stripe_unit_bytes
    if wanted_unit is not None and unit != wanted_unit:
        yield f"pool {pool.name} has stripe unit {format_quantity(unit)}, not {wanted.stripe_unit}"
    is_optimized = EC_OPTIMIZATIONS in pool.flags
    if wanted.optimizations and not is_optimized:
        yield (
            f"pool {pool.name} has no optimizations of erasure coding: Ceph has refused allow_ec_optimizations, which "
            "needs Ceph 20 on all daemons (`ceph osd require-osd-release`) and the plugin isa or jerasure"
        )
    if wanted.optimizations is False and is_optimized:
        yield (
            f"pool {pool.name} has optimizations of erasure coding, which Ceph cannot turn off again; set "
            "osd_pool_default_flag_ec_optimizations to false, or remove optimizations from the run"
        )


async def _unclean_groups(commands: Commands, plan: Plan, pools: Sequence[PoolDetail]) -> tuple[str, ...]:
    """Return the problems of the cluster's placement groups, or only of the run's if the plan ignores the health."""
    if plan.gates.ceph_health == "Required":
        accepted = frozenset(plan.gates.accepted_health_checks)
        status = parse_status(await commands.ceph("status"))
        return () if not unclean_states(status) else gate_problems(status, accepted=accepted)
    groups = parse_answer(await commands.ceph("pg", "dump", "pgs_brief"))
    names = {str(pool.number): pool.name for pool in pools}
    unclean: Counter[str] = Counter()
    for group in groups["pg_stats"].elements():
        pool = names.get(group["pgid"].text().partition(".")[0])
        if pool is not None and not set(group["state"].text().split("+")) >= {"active", "clean"}:
            unclean[pool] += 1
    return tuple(
        f"{count} placement groups of pool {pool} are not active+clean; see `ceph pg ls-by-pool {pool}`"
        for pool, count in sorted(unclean.items())
    )
