"""Combinations of valid fields that cannot be measured, with their remedies; the tools have rules for parameters."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache
from math import ceil
from typing import get_args

from pydantic import JsonValue

from plimsoll.api.errors import Problem, field_path
from plimsoll.api.line import MOST_STORM_PROBES, LineSearch, Percentile, Vary
from plimsoll.api.model import Rule
from plimsoll.api.quantity import format_quantity
from plimsoll.api.run import MAX_RUNTIME_SECONDS, RunSpec
from plimsoll.api.storage import OsdsAway, Volume
from plimsoll.measure.histogram import MINIMUM_BEYOND
from plimsoll.measure.intake import Offer
from plimsoll.measure.line.search import Settings
from plimsoll.measure.text import listed
from plimsoll.plan.document import Point
from plimsoll.plan.sweep import Sweep
from plimsoll.tools.base import AnyTool, ExpandedRun, StepContext, StepKind, Timing, ToolParameters, WorkloadPoint
from plimsoll.tools.cast import MAX_CELLS, MAX_ROUNDS
from plimsoll.tools.registry import TOOLS
from plimsoll.tools.target import IS_BLOCK, NO_VOLUME, ImageTarget, PeerTarget, TargetKind, VolumeKind, VolumeTarget

_LATENCIES_OF_A_TRIAL = 10
"""In an open loop, a trial lasts at least so many times as long as the highest latency that meets an objective.

A storage that completes less than arrives falls behind ever further; in a short trial no operation would be late yet.
"""

_STORED = (TargetKind.VOLUME, TargetKind.IMAGE, TargetKind.POOL)  # targets whose data is in a pool
Expanded = Sequence[tuple[Sweep, Sequence[ToolParameters]]]  # workloads with the parameters of their points


def search_settings(point: Point, search: LineSearch) -> Settings:
    settings = settings_of(search, point.typed_parameters, point.clients)
    if point.calm and point.disturb:
        osds = point.disturb.osds
        away = OsdsAway(count=osds.count, action=osds.action)
        return replace(settings, storm=away, most_probes=MOST_STORM_PROBES)
    return settings


def limited(search: LineSearch, parameters: ToolParameters, clients: int, timing: Timing) -> LineSearch:
    """Return the search with a limit: what that number of clients can offer, unless it has one."""
    if search.limit is not None or search.vary not in parameters.load_fields:
        return search
    return search.model_copy(update={"limit": clients * parameters.most_load(search.vary, timing)})


def settings_of(search: LineSearch, parameters: ToolParameters, clients: int) -> Settings:
    """Return the settings of a search; ValueError if the clients can share no load from start to limit evenly."""
    return Settings(
        start=search.start,
        limit=search.highest_load,
        precision_percent=search.precision_percent,
        step=clients * parameters.load_step(search.vary),
    )


def at_load(point: Point, search: LineSearch, load: float) -> Point:
    """Return the point whose clients offer this load together, a multiple of the step of `search_settings`."""
    parameters = point.typed_parameters.at_load(search.vary, round(load) // point.clients)
    return point.model_copy(update={"parameters": parameters.model_dump(mode="json"), "label": parameters.label()})


def offer_at(point: Point, search: LineSearch, load: float) -> Offer:
    parameters = point.typed_parameters
    shares = {operation: percent / 100 for operation, percent in parameters.shares.items()}
    return Offer(search=search, load=load, depth=parameters.most_in_flight, shares=shares)


def offer_of(parameters: ToolParameters, clients: int) -> Offer | None:
    """Return the offer of the rate that is due on each of that number of clients; None if nothing limits the rate."""
    rates = parameters.offered_rates
    total = sum(rates.values())
    if not total:
        return None
    return Offer(
        load=clients * total,
        at_random=parameters.is_open_loop,
        depth=parameters.most_in_flight,
        shares={operation: rate / total for operation, rate in rates.items()},
    )


def impossible_searches(sweep: Sweep, points: Sequence[ToolParameters]) -> Iterator[Problem]:
    """Yield why no load of a workload's search could be measured, each problem once; nothing without a search."""
    search = sweep.workload.line
    if search is None:
        return
    if search.vary not in sweep.tool.parameters.load_fields:
        yield _problem(sweep, "line.vary", search.vary, cannot_vary(TOOLS, search.vary))
    elif not any(_broken_rules(sweep, points)):
        yield from dict.fromkeys(
            problem
            for clients in sweep.clients
            for parameters in points
            for problem in _loads(sweep, search, parameters, clients)
        )


def _loads(sweep: Sweep, search: LineSearch, parameters: ToolParameters, clients: int) -> Iterator[Problem]:
    """Yield bounds between which no load can be offered, and a first load that is too low or a limit too high."""
    step, most = clients * parameters.load_step(search.vary), clients * parameters.most_load(search.vary, sweep.timing)
    unit = "operations per second" if search.vary is Vary.RATE else "operations in flight"
    # An open loop has one job.
    more = "clients" if search.vary is Vary.RATE else "jobs or clients"
    label = parameters.search_label(search.vary)
    beyond = f"is more than {clients} clients with {label} can offer, which is {most} {unit}"
    if search.limit is None and search.start > most:
        yield _problem(sweep, "line.start", search.start, f"{beyond}; lower it to at most {most}, or raise {more}")
        return
    search = limited(search, parameters, clients, sweep.timing)
    try:
        settings = settings_of(search, parameters, clients)
    except ValueError:
        remedy = (
            f"is lower than every load that {clients} clients and their jobs can share evenly, which are multiples of "
            f"{step} {unit}; raise it to at least {step}"
        )
        yield _problem(sweep, "line.limit", search.limit, remedy)
        return
    if settings.highest > most:
        lower = "start and limit" if search.start > most else "it"
        remedy = f"{beyond}; lower {lower} to at most {most}, or raise {more}"
        yield _problem(sweep, "line.limit", search.limit, remedy)
    if search.vary is Vary.RATE:
        rarest = min(parameters.shares.values(), default=100)
        yield from _unknown_percentiles(sweep, search, settings, rarest)
        field, runtime = _shortest_judged(sweep)
        longest = max(objective.latency_microseconds for objective in search.objectives)
        needed = ceil(Fraction(_LATENCIES_OF_A_TRIAL * longest, 10**6))
        if runtime < needed:
            remedy = (
                f"is less than {_LATENCIES_OF_A_TRIAL} times the {longest / 10**6:.3g} s that operations may take, so "
                f"that a backlog which grows until the end would not be late; raise it to at least {needed}, or lower "
                "latency"
            )
            yield _problem(sweep, field, runtime, remedy)


def _shortest_judged(sweep: Sweep) -> tuple[str, int]:
    disturb = sweep.workload.disturb
    if disturb is None:
        return "runtimeSeconds", sweep.workload.runtime_seconds
    seconds = {"disturb.afterSeconds": disturb.after_seconds, "disturb.forSeconds": disturb.for_seconds}
    return min(seconds.items(), key=lambda item: item[1])


def _unknown_percentiles(sweep: Sweep, search: LineSearch, settings: Settings, rarest: int) -> Iterator[Problem]:
    """Yield a first load with too few operations for a percentile; `rarest`: percentage of the rarest operation."""
    field, runtime = _shortest_judged(sweep)
    percentile = max((objective.percentile for objective in search.objectives), key=Fraction)
    needed = ceil(MINIMUM_BEYOND / (1 - Fraction(percentile) / 100) * 100 / rarest)
    first = settings.offered(search.start)
    if first * runtime < needed:
        # A load between two multiples of the step may be rounded down.
        start, seconds = ceil(needed / runtime / settings.step) * settings.step, ceil(needed / first)
        remedies = [f"raise {'it' if start <= search.highest_load else 'start and limit'} to at least {start:g}"]
        if seconds <= MAX_RUNTIME_SECONDS:
            remedies.append(f"{field} to at least {seconds}")
        if Fraction(percentile) > min(map(Fraction, get_args(Percentile))):
            remedies.append("choose a lower percentile")
        remedy = (
            f"offers {first * runtime:.0f} operations in {runtime} s, but percentile {percentile} needs {needed}, so "
            f"that {MINIMUM_BEYOND} are beyond it; {', or '.join(remedies)}"
        )
        yield _problem(sweep, "line.start", search.start, remedy)


def _problem(sweep: Sweep, field: str, value: object, remedy: str) -> Problem:
    place = field_path((*sweep.place[:-1], *field.split(".")))
    return Problem(field=place, value=str(value), remedy=remedy)


def contradictions(spec: RunSpec, expanded: Expanded) -> Iterator[Problem]:
    points = [
        WorkloadPoint(workload=sweep.workload, parameters=parameters)
        for sweep, combined in expanded
        for parameters in combined
    ]
    run = ExpandedRun(spec=spec, points=points)
    broken = [rule for rule in run_rules(TOOLS) if rule.holds and not rule.holds(run)]
    yield from (_problem_of_run(rule, run) for rule in broken)
    storage = spec.storage
    # A run on Ceph without Rook has none, and with Rook only one for PVCs.
    has_storage_class = storage is not None and (
        storage.storage_class is not None
        or (storage.rook is not None and storage.volume is not None and storage.volume.access == "PVC")
    )
    for sweep, combined in expanded:
        yield from dict.fromkeys(_broken_rules(sweep, combined))
        if sweep.tool.creates_claims and not has_storage_class:
            remedy = (
                f"must have a StorageClass, because workload {sweep.workload.name} runs {sweep.tool.key}, which "
                "creates PVCs; set storageClass, or rook with a volume that has access PVC"
            )
            yield Problem(field="spec.storage", remedy=remedy)
    yield from _impossible_rounds(spec, expanded)
    if spec.prepare.per_trial and not any(sweep.tool.target.is_data_set for sweep, _ in expanded):
        remedy = "has no effect, because no workload uses a volume; remove it"
        yield Problem(field="spec.prepare.perTrial", value=spec.prepare.per_trial, remedy=remedy)
    precondition, volume = spec.prepare.precondition, run.volume
    if precondition and volume and precondition.block_size > (size := _planned_size(volume, spec.prepare.fill_percent)):
        remedy = f"exceeds the data set of {format_quantity(size)}; lower it, or raise spec.storage.volume.size"
        value = format_quantity(precondition.block_size)
        yield Problem(field="spec.prepare.precondition.blockSize", value=value, remedy=remedy)
    yield from _unfit_parameters(spec, expanded, broken)
    for sweep, combined in expanded:
        yield from impossible_searches(sweep, combined)


def _problem_of_run(rule: Rule, run: ExpandedRun) -> Problem:
    """Return the violation of a rule; one about workloads names the first workload that violates it alone."""
    problem = rule.problem(run, run.spec.model_dump(mode="json"), "spec")
    if rule.field_path == ".workloads" and rule.holds:
        for index, workload in enumerate(run.spec.workloads):
            alone = replace(run, points=[point for point in run.points if point.workload == workload])
            if not rule.holds(alone):
                return replace(problem, field=f"{problem.field}[{index}]")
    return problem


def _broken_rules(sweep: Sweep, combined: Sequence[ToolParameters]) -> Iterator[Problem]:
    place = field_path(sweep.place[:-1])
    for parameters in combined:
        point = WorkloadPoint(workload=sweep.workload, parameters=parameters)
        document: JsonValue = {
            **sweep.workload.model_dump(mode="json", exclude={"parameters"}),
            sweep.tool.key: parameters.model_dump(mode="json"),
        }
        for rule in rules_of_workload(sweep.tool):
            if rule.holds and not rule.holds(point):
                yield rule.problem(point, document, place)


def _impossible_rounds(spec: RunSpec, expanded: Expanded) -> Iterator[Problem]:
    """Yield the numbers of clients with which a tool has no round, or too many rounds or cells of its matrix."""
    servers = spec.servers.count if spec.servers else 0
    for sweep, points in expanded:
        for clients in sweep.clients:
            members = f"{clients} clients{f' and {servers} servers' if servers else ''}"
            for parameters in points:
                rounds, pairs, _ = sweep.tool.cast_size(parameters, clients, servers)
                if not 1 <= rounds <= MAX_ROUNDS:
                    remedy = "choose fewer" if rounds else "choose at least 2 clients, or add spec.servers"
                    remedy = f"takes {rounds} rounds with {members}, but 1 to {MAX_ROUNDS} are possible; {remedy}"
                elif pairs > MAX_CELLS:
                    remedy = f"measures {pairs} pairs with {members}, but at most {MAX_CELLS} are possible"
                    remedy = f"{remedy}; choose fewer"
                else:
                    continue
                yield Problem(field=field_path(sweep.place), remedy=remedy)
                break


def _unfit_parameters(spec: RunSpec, expanded: Expanded, broken: Collection[Rule]) -> Iterator[Problem]:
    """Yield parameters that do not fit the planned target, such as a block larger than the data set."""
    for sweep, points in expanded:
        target = _planned_target(spec, sweep.tool.target)
        # A command relies on the rules of its tool.
        if target is None or any(rule in broken for rule in _rules_of_tool(sweep.tool)):
            continue
        timing = sweep.timing
        context = StepContext(step=StepKind.MEASURE, target=target, timing=timing, seed=1, work_directory="planned")
        search = sweep.workload.line
        for parameters in points:
            probe = parameters
            if search and search.vary in parameters.load_fields and not any(_broken_rules(sweep, [parameters])):
                probe = parameters.at_load(search.vary, parameters.load_step(search.vary))
            try:
                sweep.tool.command(probe, context)
            except ValueError as error:
                yield Problem(field=field_path(sweep.place), remedy=f"{parameters.label()}: {error}")


def _planned_size(volume: Volume, fill_percent: int) -> int:
    """Return the size of one client's data set, in whole MiB."""
    size = volume.size if volume.mode == "Block" else volume.size * fill_percent // 100
    return max(1, size // 2**20) * 2**20


def _planned_target(spec: RunSpec, kind: TargetKind) -> ImageTarget | VolumeTarget | PeerTarget | None:
    """Return the target of one client; None if it is known only in the cluster."""
    if kind is TargetKind.PEER:
        return PeerTarget(addresses={1: "planned"})
    volume = spec.storage.volume if spec.storage else None
    if volume is None or not kind.is_data_set or (kind is TargetKind.IMAGE and volume.access != "LibRBD"):
        return None
    size = _planned_size(volume, spec.prepare.fill_percent)
    if volume.access == "LibRBD":
        return ImageTarget(pool="planned", image="planned", user="planned", size=size, cache=volume.rbd_cache)
    volume_kind = VolumeKind.DEVICE if volume.mode == "Block" else VolumeKind.FILE
    return VolumeTarget(kind=volume_kind, path="planned", size=size, shared=volume.is_shared)


def workload_rules(tools: Mapping[str, AnyTool]) -> tuple[Rule, ...]:
    present = ", ".join(f"has(self.{key})" for key in tools)
    one_tool = Rule(
        rule=f"[{present}].filter(present, present).size() == 1",
        message=(
            f"must have exactly one tool: {listed(tuple(tools), 'or', len(tools))}; write `{next(iter(tools))}: {{}}` "
            "for its defaults"
        ),
    )
    able = {vary: [key for key, tool in tools.items() if vary in tool.parameters.load_fields] for vary in Vary}
    varies = [
        Rule(
            rule=f"!has(self.line) || self.line.vary != '{vary}' || {' || '.join(f'has(self.{key})' for key in keys)}",
            message=cannot_vary(tools, vary),
            field_path=".line.vary",
        )
        for vary, keys in able.items()
        if keys
    ]
    return (one_tool, *varies, *(rule for tool in tools.values() for rule in rules_of_workload(tool)))


def rules_of_workload(tool: AnyTool) -> Iterator[Rule]:
    """Yield the rules for a workload with this tool, which ask about a `WorkloadPoint`."""
    if tool.runs_alone:
        yield Rule(
            rule=f"!has(self.{tool.key}) || !has(self.clients) || self.clients == [1]",
            holds=lambda point: point.workload.clients in {None, (1,)},
            message=f"does not apply to {tool.key}, which one client runs for all; leave it out",
            field_path=".clients",
        )
    yield from tool.parameters.workload_rules


def cannot_vary(tools: Mapping[str, AnyTool], vary: Vary) -> str:
    able = [key for key, tool in tools.items() if vary in tool.parameters.load_fields]
    return f"applies only to {listed(able, 'and')}; use it, or remove line"


def run_rules(tools: Mapping[str, AnyTool]) -> tuple[Rule, ...]:
    """Return the rules for a specification whose workloads have these tools, which ask about an `ExpandedRun`."""
    peers = [key for key, tool in tools.items() if tool.target is TargetKind.PEER]
    of_ceph = [key for key, tool in tools.items() if tool.target.is_of_ceph]
    with_data_set = [key for key, tool in tools.items() if tool.target.is_data_set]
    timed = [key for key, tool in tools.items() if tool.windowed and tool.target in _STORED]
    no_data_set = f"!{_some_workload(with_data_set)}"
    because = f"because {listed(with_data_set, 'and')} run on a volume"
    return (
        Rule(
            rule=f"has(self.storage) || {no_data_set}",
            holds=lambda run: run.spec.storage is not None or not run.points_of(*with_data_set),
            message=f"must be set with a volume, {because}",
            reason="FieldValueRequired",
            field_path=".storage",
        ),
        Rule(
            rule=f"!has(self.storage) || has(self.storage.volume) || {no_data_set}",
            holds=lambda run: run.spec.storage is None or run.volume is not None or not run.points_of(*with_data_set),
            message=f"must be set, {because}",
            reason="FieldValueRequired",
            field_path=".storage.volume",
        ),
        Rule(
            rule="has(self.storage) && (has(self.storage.rook) || has(self.storage.ceph)) || "
            f"!{_some_workload(of_ceph)}",
            holds=lambda run: (
                not run.points_of(*of_ceph) or (run.spec.storage and (run.spec.storage.rook or run.spec.storage.ceph))
            ),
            message=f"must have rook or ceph, because {listed(of_ceph, 'and')} connect to Ceph directly; name the "
            "cluster",
            field_path=".storage",
        ),
        _needs_prefill(tools),
        Rule(
            rule=f"!has(self.servers) || {_some_workload(peers)}",
            holds=lambda run: run.spec.servers is None or run.points_of(*peers),
            message="has no effect, because no workload has a tool whose clients connect to servers; remove it, or add "
            "such a workload",
            field_path=".servers",
        ),
        Rule(
            rule=f"self.workloads.all(w, !has(w.disturb) || {' || '.join(f'has(w.{key})' for key in timed)})",
            holds=lambda run: all(not point.workload.disturb or point.workload.tool in timed for point in run.points),
            message=f"disturb applies only to {listed(timed)}, which load a pool for a given time; use one of them, or "
            "remove disturb",
            field_path=".workloads",
        ),
        *_contested_space(tools),
        *(rule for tool in tools.values() for rule in _rules_of_tool(tool)),
    )


@cache
def _rules_of_tool(tool: AnyTool) -> tuple[Rule, ...]:
    def on_volume(field: str, condition: str, holds: Callable[[Volume], bool], message: str) -> Rule:
        return Rule(
            rule=f"{NO_VOLUME} || {condition} || !{_some_workload([tool.key])}",
            holds=lambda run: not run.volume or holds(run.volume) or not run.points_of(tool.key),
            message=message,
            field_path=f".storage.volume.{field}",
        )

    rules = [*tool.parameters.run_rules]
    if tool.own_files:
        message = (
            f"must be Filesystem, because {tool.key} works on files and directories; set it to Filesystem, with access "
            f"PVC, which storage.ceph does not have, or leave out the workloads with {tool.key}"
        )
        rules.append(on_volume("mode", f"!{IS_BLOCK}", lambda volume: volume.mode == "Filesystem", message))
    elif tool.target is TargetKind.VOLUME and not tool.opens_images:
        message = (
            f"cannot be LibRBD, because {tool.key} needs a file or a block device; use access PVC, which storage.ceph "
            "does not have, or use fio"
        )
        is_kernel = "self.storage.volume.access != 'LibRBD'"
        rules.append(on_volume("access", is_kernel, lambda volume: volume.access != "LibRBD", message))
    elif tool.target is TargetKind.IMAGE:
        message = f"must be LibRBD, because {tool.key} runs on an RBD image; set it to LibRBD, on a pool"
        is_image = "self.storage.volume.access == 'LibRBD'"
        rules.append(on_volume("access", is_image, lambda volume: volume.access == "LibRBD", message))
    return tuple(rules)


def _needs_prefill(tools: Mapping[str, AnyTool]) -> Rule:
    conditions = {key: tool.parameters.reads_when for key, tool in tools.items() if tool.parameters.reads_when}
    reading = " || ".join(f"has(w.{key}) && {it.replace('self.', f'w.{key}.')}" for key, it in conditions.items())
    message = (
        "must be true, because {} would read unwritten extents, which are answered without access to the storage; set "
        "it to true, or leave out the workloads that read"
    )

    def readers(run: ExpandedRun) -> list[str]:
        names = (point.workload.name for point in run.points_of(*conditions) if point.parameters.reads_data)
        return list(dict.fromkeys(names))

    return Rule(
        rule=f"self.prepare.prefill || !self.workloads.exists(w, {reading})",
        holds=lambda run: run.spec.prepare.prefill or not readers(run),
        message=message.format("a workload"),
        remedy=lambda run: message.format(", ".join(readers(run))),
        field_path=".prepare.prefill",
    )


def _contested_space(tools: Mapping[str, AnyTool]) -> Iterator[Rule]:
    with_files = [key for key, tool in tools.items() if tool.own_files]
    others = [key for key, tool in tools.items() if tool.target.is_data_set and not tool.own_files]
    if not with_files:
        return
    yield Rule(
        rule=f"!{_some_workload(with_files)} || !{_some_workload(others)}",
        holds=lambda run: not run.points_of(*with_files) or not run.points_of(*others),
        message=(
            f"cannot have both {listed(with_files, 'or')} and {listed(others, 'or')}, because the former uses the "
            "space of the data set; split the run"
        ),
        field_path=".workloads",
    )
    yield Rule(
        rule=f"!has(self.prepare.precondition) || !{_some_workload(with_files)}",
        holds=lambda run: run.spec.prepare.precondition is None or not run.points_of(*with_files),
        message=f"must be absent, because {listed(with_files, 'or')} writes files of its own; remove it",
        field_path=".prepare.precondition",
    )


def _some_workload(keys: Sequence[str]) -> str:
    if not keys:
        return "false"
    return f"self.workloads.exists(w, {' || '.join(f'has(w.{key})' for key in keys)})"
