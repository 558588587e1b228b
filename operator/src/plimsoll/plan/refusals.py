"""Combinations of valid fields that cannot be measured, with their remedies."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from math import ceil
from typing import get_args

from pydantic import JsonValue

from plimsoll.api.errors import Problem, field_path
from plimsoll.api.line import LineSearch, Percentile, Vary
from plimsoll.api.model import Rule
from plimsoll.api.quantity import format_quantity
from plimsoll.api.run import MAX_RUNTIME_SECONDS, RunSpec
from plimsoll.api.storage import Volume
from plimsoll.measure.histogram import MINIMUM_BEYOND
from plimsoll.measure.intake import Offer
from plimsoll.measure.line.search import Settings
from plimsoll.plan.document import Point
from plimsoll.plan.rules import cannot_vary, rules_of_workload, run_rules
from plimsoll.plan.sweep import Sweep
from plimsoll.tools.base import AnyTool, ExpandedRun, StepContext, StepKind, ToolParameters, WorkloadPoint
from plimsoll.tools.cast import MAX_CELLS, MAX_ROUNDS
from plimsoll.tools.registry import TOOLS, cell_count
from plimsoll.tools.target import DataSet, ImageTarget, PeerTarget, TargetKind, VolumeKind, VolumeTarget


def search_settings(point: Point, search: LineSearch) -> Settings:
    """Return the settings of a point's search, as `settings_of` does."""
    return settings_of(search, _parameters(point), point.clients)


def settings_of(search: LineSearch, parameters: ToolParameters, clients: int) -> Settings:
    """Return the settings of a search of that number of clients, which share every load evenly.

    ValueError if they cannot share any load between start and limit.
    """
    return Settings(
        start=search.start,
        limit=search.limit,
        precision_percent=search.precision_percent,
        step=clients * parameters.load_step(search.vary),
    )


def at_load(point: Point, search: LineSearch, load: float) -> Point:
    """Return the point whose clients offer this load together, a multiple of the step of `search_settings`."""
    parameters = _parameters(point).at_load(search.vary, round(load) // point.clients)
    return point.model_copy(update={"parameters": parameters.model_dump(mode="json"), "label": parameters.label()})


def offer_at(point: Point, search: LineSearch, load: float) -> Offer:
    """Return the offer of this load at a point."""
    parameters = _parameters(point)
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


def _parameters(point: Point) -> ToolParameters:
    parameters: ToolParameters = TOOLS[point.tool].parameters.model_validate(point.parameters)
    return parameters


_LATENCIES_OF_A_TRIAL = 10
"""In an open loop, a trial lasts at least so many times as long as the highest latency that meets an objective.

A storage that completes less than arrives falls behind ever further; in a short trial no operation would be late yet.
"""

_MIB = 2**20

Expanded = Sequence[tuple[Sweep, Sequence[ToolParameters]]]
"""Every workload with the parameters of its points."""


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


def with_a_load(sweep: Sweep, parameters: ToolParameters) -> ToolParameters:
    """Return the parameters of a probe with some load; the same ones without a search, or if a rule forbids it."""
    search = sweep.workload.line
    if search is None or search.vary not in parameters.load_fields or any(_broken_rules(sweep, [parameters])):
        return parameters
    return parameters.at_load(search.vary, parameters.load_step(search.vary))


def _loads(sweep: Sweep, search: LineSearch, parameters: ToolParameters, clients: int) -> Iterator[Problem]:
    """Yield bounds between which no load can be offered, and a first load that is too low or a limit too high."""
    step = clients * parameters.load_step(search.vary)
    unit = "operations per second" if search.vary is Vary.RATE else "operations in flight"
    try:
        settings = settings_of(search, parameters, clients)
    except ValueError:
        remedy = (
            f"is lower than every load that {clients} clients and their jobs can share evenly, which are multiples of "
            f"{step} {unit}; raise it to at least {step}"
        )
        yield _problem(sweep, "line.limit", search.limit, remedy)
        return
    most = clients * parameters.most_load(search.vary, sweep.timing)
    if settings.highest > most:
        lower = "start and limit" if search.start > most else "it"
        # An open loop has one job.
        more = "clients" if search.vary is Vary.RATE else "jobs or clients"
        remedy = (
            f"is more than {clients} clients with {parameters.search_label(search.vary)} can offer, which is {most} "
            f"{unit}; lower {lower} to at most {most}, or raise {more}"
        )
        yield _problem(sweep, "line.limit", search.limit, remedy)
    if search.vary is Vary.RATE:
        yield from _unknown_percentiles(sweep, search, settings, parameters.least_percent)
        yield from _hidden_backlogs(sweep, search)


def _unknown_percentiles(sweep: Sweep, search: LineSearch, settings: Settings, least_percent: int) -> Iterator[Problem]:
    """Yield a first load whose trials have too few operations for a percentile: none of them would count.

    `least_percent` are those of the rarest kind of operation in percent of all.
    """
    runtime = sweep.workload.runtime_seconds
    percentile = max((objective.percentile for objective in search.objectives), key=Fraction)
    needed = ceil(MINIMUM_BEYOND / (1 - Fraction(percentile) / 100) * 100 / least_percent)
    first = settings.offered(search.start)
    if first * runtime < needed:
        # A load between two multiples of the step may be rounded down.
        start, seconds = ceil(needed / runtime / settings.step) * settings.step, ceil(needed / first)
        remedies = [f"raise {'it' if start <= search.limit else 'start and limit'} to at least {start:g}"]
        if seconds <= MAX_RUNTIME_SECONDS:
            remedies.append(f"runtimeSeconds to at least {seconds}")
        if Fraction(percentile) > min(map(Fraction, get_args(Percentile))):
            remedies.append("choose a lower percentile")
        remedy = (
            f"offers {first * runtime:.0f} operations in {runtime} s, but percentile {percentile} needs {needed}, so "
            f"that {MINIMUM_BEYOND} are beyond it; {', or '.join(remedies)}"
        )
        yield _problem(sweep, "line.start", search.start, remedy)


def _hidden_backlogs(sweep: Sweep, search: LineSearch) -> Iterator[Problem]:
    """Yield a runtime in which a storage that carries clearly less than the line would not be late yet."""
    runtime = sweep.workload.runtime_seconds
    longest = max(objective.latency_microseconds for objective in search.objectives)
    needed = ceil(Fraction(_LATENCIES_OF_A_TRIAL * longest, 10**6))
    if runtime < needed:
        remedy = (
            f"is less than {_LATENCIES_OF_A_TRIAL} times the {longest / 10**6:.3g} s that operations may take, so "
            f"that a backlog which grows until the end would not be late; raise it to at least {needed}, or lower "
            "latencyMicroseconds"
        )
        yield _problem(sweep, "runtimeSeconds", runtime, remedy)


def _problem(sweep: Sweep, field: str, value: object, remedy: str) -> Problem:
    place = field_path((*sweep.place[:-1], *field.split(".")))
    return Problem(field=place, value=str(value), remedy=remedy)


def contradictions(spec: RunSpec, expanded: Expanded) -> Iterator[Problem]:
    """Yield the fields of a run that contradict each other."""
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
    yield from _different_accounts(expanded)
    yield from _impossible_rounds(spec, expanded)
    if spec.prepare.per_trial and not any(sweep.tool.target.is_data_set for sweep, _ in expanded):
        remedy = "has no effect, because no workload uses a volume; remove it"
        yield Problem(field="spec.prepare.perTrial", value=spec.prepare.per_trial, remedy=remedy)
    yield from _large_overwrites(spec)
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
    """Yield the violations of the rules for workloads with a tool."""
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


def _different_accounts(expanded: Expanded) -> Iterator[Problem]:
    """Yield workloads whose ServiceAccount differs from that of the first: a pod has only one."""
    first: Sweep | None = None
    for sweep, _ in expanded:
        if not sweep.tool.executor.service_account:
            continue
        first = first or sweep
        if sweep.tool.executor != first.tool.executor:
            remedy = f"needs other rights than {first.tool.key} of workload {first.workload.name}; split the run"
            yield Problem(field=field_path(sweep.place), remedy=remedy)


def _impossible_rounds(spec: RunSpec, expanded: Expanded) -> Iterator[Problem]:
    """Yield the numbers of clients with which a tool has no round, or too many rounds or cells of its matrix."""
    servers = spec.servers.count if spec.servers else 0
    for sweep, points in expanded:
        for clients in sweep.clients:
            texts = (_impossible_cast(sweep.tool, parameters, clients, servers) for parameters in points)
            if remedy := next(filter(None, texts), ""):
                yield Problem(field=field_path(sweep.place), remedy=remedy)


def _impossible_cast(tool: AnyTool, parameters: ToolParameters, clients: int, servers: int) -> str:
    """Return what is wrong with a number of clients, and the remedy; empty if nothing is."""
    rounds = tool.rounds(parameters, clients, servers)
    members = f"{clients} clients{f' and {servers} servers' if servers else ''}"
    if not 1 <= rounds <= MAX_ROUNDS:
        remedy = "choose fewer" if rounds else "choose at least 2 clients, or add spec.servers"
        return f"takes {rounds} rounds with {members}, but 1 to {MAX_ROUNDS} are possible; {remedy}"
    cells = cell_count(tool, parameters, clients, servers) if tool.quantities.cells else 0
    if cells > MAX_CELLS:
        return f"measures {cells} pairs with {members}, but at most {MAX_CELLS} are possible; choose fewer"
    return ""


def _large_overwrites(spec: RunSpec) -> Iterator[Problem]:
    """Yield a precondition with blocks larger than the data set."""
    precondition = spec.prepare.precondition
    if spec.storage is None or spec.storage.volume is None or precondition is None:
        return
    size = _planned_size(spec.storage.volume, spec.prepare.fill_percent)
    if precondition.block_size > size:
        remedy = f"exceeds the data set of {format_quantity(size)}; lower it, or raise spec.storage.volume.size"
        value = format_quantity(precondition.block_size)
        yield Problem(field="spec.prepare.precondition.blockSize", value=value, remedy=remedy)


def _unfit_parameters(spec: RunSpec, expanded: Expanded, broken: Collection[Rule]) -> Iterator[Problem]:
    """Yield parameters that do not fit the planned target, such as a block larger than the data set."""
    for sweep, points in expanded:
        target = _planned_target(spec, sweep.tool.target)
        # A command relies on the rules of its tool.
        if target is None or any(rule in broken for rule in sweep.tool.parameters.run_rules):
            continue
        context = StepContext(
            step=StepKind.MEASURE, target=target, timing=sweep.timing, seed=1, work_directory="planned"
        )
        for parameters in points:
            try:
                sweep.tool.command(with_a_load(sweep, parameters), context)
            except ValueError as error:
                yield Problem(field=field_path(sweep.place), remedy=f"{parameters.label()}: {error}")


def _planned_size(volume: Volume, fill_percent: int) -> int:
    """Return the size of one client's data set, in whole MiB."""
    size = volume.size if volume.mode == "Block" else volume.size * fill_percent // 100
    return max(1, size // _MIB) * _MIB


def _planned_target(spec: RunSpec, kind: TargetKind) -> DataSet | PeerTarget | None:
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
