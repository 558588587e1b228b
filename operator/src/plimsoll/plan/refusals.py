"""Combinations of valid fields that cannot be measured, with their remedies."""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import ceil

from plimsoll.api.errors import Problem, field_path
from plimsoll.api.line import LineSearch, Vary
from plimsoll.api.quantity import format_quantity
from plimsoll.api.run import RunSpec
from plimsoll.api.storage import KeyringReference, Storage, Volume
from plimsoll.measure.histogram import MINIMUM_BEYOND
from plimsoll.measure.intake import Offer
from plimsoll.measure.line.model import Settings
from plimsoll.plan.document import Point
from plimsoll.plan.rules import NO_USE_OF_SERVERS, cannot_vary
from plimsoll.plan.sweep import Sweep
from plimsoll.tools.base import AnyTool, StepContext, StepKind, Timing, ToolParameters
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
    """Yield what makes the search of a workload impossible, each problem once; nothing without a search."""
    search = sweep.workload.line
    if search is None:
        return
    if search.vary not in sweep.tool.parameters.load_fields:
        yield _problem(sweep, "line.vary", search.vary, cannot_vary(TOOLS, search.vary))
        return
    problems = [problem for parameters in points for problem in _conflicts(sweep, search, parameters)]
    if not problems:
        problems = [
            problem
            for clients in sweep.clients
            for parameters in points
            for problem in _loads(sweep, search, parameters, clients)
        ]
    yield from dict.fromkeys(problems)


def with_a_load(sweep: Sweep, parameters: ToolParameters) -> ToolParameters:
    """Return the parameters of a probe with some load; the same ones without a search, or if it has conflicts."""
    search = sweep.workload.line
    if search is None or search.vary not in parameters.load_fields or any(_conflicts(sweep, search, parameters)):
        return parameters
    return parameters.at_load(search.vary, parameters.load_step(search.vary))


def _conflicts(sweep: Sweep, search: LineSearch, parameters: ToolParameters) -> Iterator[Problem]:
    """Yield parameters that hold the load themselves, or that do not go with a varied load."""
    fixed = parameters.model_dump(mode="json")
    defaults = {str(field.alias): field.default for field in type(parameters).model_fields.values()}
    for name in parameters.load_fields[search.vary]:
        if fixed[name] != defaults[name]:
            remedy = (
                f"must be absent, because line varies it; remove it, or remove line to measure at {name} {fixed[name]} "
                "only"
            )
            yield _problem(sweep, f"{sweep.tool.key}.{name}", None, remedy)
    for name, remedy in parameters.search_conflicts(search.vary):
        yield _problem(sweep, f"{sweep.tool.key}.{name}", None, remedy)


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
    workload = sweep.workload
    timing = Timing(ramp_seconds=workload.ramp_seconds, runtime_seconds=workload.runtime_seconds)
    most = clients * parameters.most_load(search.vary, timing)
    if settings.highest > most:
        remedy = (
            f"is more than {clients} clients with {parameters.search_label(search.vary)} can offer, which is {most} "
            f"{unit}; lower it, or raise jobs or clients"
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
        remedy = (
            f"offers {first * runtime:.0f} operations in {runtime} s, but percentile {percentile} needs {needed}, so "
            f"that {MINIMUM_BEYOND} are beyond it; raise it to at least {-(-needed // runtime)}, or runtimeSeconds to "
            f"at least {ceil(needed / first)}, or choose a lower percentile"
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
    return Problem(field=place, value="" if value is None else str(value), remedy=remedy)


def missing_storage(sweep: Sweep, spec: RunSpec) -> Iterator[Problem]:
    """Yield the storage that a workload's tool needs and the run does not have."""
    storage, target = spec.storage, sweep.tool.target
    runs = f"because workload {sweep.workload.name} runs {sweep.tool.key}"
    if target.is_of_ceph and (storage is None or (storage.rook is None and storage.ceph is None)):
        remedy = f"must have rook or ceph, {runs}, which connects to Ceph directly; name the cluster"
        yield Problem(field="spec.storage", remedy=remedy)
    elif target.is_data_set and (storage is None or storage.volume is None):
        field = "spec.storage" if storage is None else "spec.storage.volume"
        yield Problem(field=field, remedy=f"is required, {runs} on a volume; add storage with a volume")
    elif target is TargetKind.IMAGE and storage and storage.volume and storage.volume.access != "LibRBD":
        remedy = f"must be LibRBD, {runs} on an RBD image; set it to LibRBD"
        yield Problem(field="spec.storage.volume.access", value=storage.volume.access, remedy=remedy)
    elif sweep.tool.creates_claims and not _has_storage_class(storage):
        remedy = (
            f"must have a StorageClass, {runs}, which creates PVCs; set storageClass, or rook with a volume that has "
            "access PVC"
        )
        yield Problem(field="spec.storage", remedy=remedy)


def _has_storage_class(storage: Storage | None) -> bool:
    """Whether a run names a StorageClass, or gets one of its own."""
    if storage is None or storage.ceph is not None:
        return False
    return storage.rook is None or (storage.volume is not None and storage.volume.access == "PVC")


def contradictions(spec: RunSpec, expanded: Expanded) -> Iterator[Problem]:
    """Yield the fields of a run that contradict each other."""
    yield from _different_keyrings(expanded)
    yield from _different_accounts(expanded)
    yield from _impossible_rounds(spec, expanded)
    if spec.servers is not None and not any(sweep.tool.target is TargetKind.PEER for sweep, _ in expanded):
        yield Problem(field="spec.servers", remedy=NO_USE_OF_SERVERS)
    yield from _different_files(expanded)
    yield from _contested_space(spec, expanded)
    yield from _lonely_readers(expanded)
    yield from _unwritten_reads(spec, expanded)
    if spec.prepare.per_trial and not any(sweep.tool.target.is_data_set for sweep, _ in expanded):
        remedy = "has no effect, because no workload uses a volume; remove it"
        yield Problem(field="spec.prepare.perTrial", value=spec.prepare.per_trial, remedy=remedy)
    yield from _large_overwrites(spec)
    yield from _unfit_parameters(spec, expanded)
    for sweep, points in expanded:
        yield from impossible_searches(sweep, points)


def _different_keyrings(expanded: Expanded) -> Iterator[Problem]:
    """Yield workloads whose administrator's key differs from that of the first: clients get only one key."""
    first: tuple[str, KeyringReference] | None = None
    for sweep, points in expanded:
        keyring = points[0].administrator_keyring
        if keyring is None:
            continue
        first = first or (sweep.workload.name, keyring)
        if keyring != first[1]:
            remedy = (
                f"is not that of workload {first[0]}; clients get one key, so name the same Secret, or split the run"
            )
            yield Problem(field=field_path((*sweep.place, "keyringSecret")), remedy=remedy)


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


def _different_files(expanded: Expanded) -> Iterator[Problem]:
    """Yield workloads whose files differ from those of the first: clients prefill one kind."""
    first: tuple[str, bool] | None = None
    for sweep, points in expanded:
        if not sweep.tool.target.is_data_set:
            continue
        first = first or (sweep.workload.name, points[0].shares_file)
        if points[0].shares_file != first[1]:
            remedy = f"differ from those of workload {first[0]}; clients prefill one kind of files, so split the run"
            yield Problem(field=field_path((*sweep.place, "files")), remedy=remedy)


def _contested_space(spec: RunSpec, expanded: Expanded) -> Iterator[Problem]:
    """Yield what needs a data set in a run with a tool that needs its space."""
    tools = [sweep.tool for sweep, _ in expanded if sweep.tool.own_files]
    if not tools:
        return
    for sweep, _ in expanded:
        if sweep.tool.target.is_data_set and not sweep.tool.own_files:
            remedy = f"needs the data set, whose space {tools[0].key} of another workload uses; split the run"
            yield Problem(field=field_path(sweep.place), remedy=remedy)
    if spec.prepare.precondition is not None:
        remedy = f"must be absent, because {tools[0].key} writes files of its own; remove it"
        yield Problem(field="spec.prepare.precondition", remedy=remedy)


def _lonely_readers(expanded: Expanded) -> Iterator[Problem]:
    """Yield numbers of clients with which no client could read the data of another one."""
    for sweep, points in expanded:
        for clients in sweep.clients:
            if clients == 1 and points[0].reads_next_client:
                place = (*sweep.place[:-1], "clients") if sweep.workload.clients else ("spec", "clients", "count")
                remedy = (
                    f"must be at least 2 for workload {sweep.workload.name}, in which each client reads what another "
                    "one wrote; raise it, or remove readBack"
                )
                yield Problem(field=field_path(place), value=str(clients), remedy=remedy)


def _unwritten_reads(spec: RunSpec, expanded: Expanded) -> Iterator[Problem]:
    """Yield a disabled prefill if a workload reads: unwritten extents are answered without any I/O."""
    reading = [
        sweep.workload.name
        for sweep, points in expanded
        if sweep.tool.target.is_data_set and any(parameters.reads_data for parameters in points)
    ]
    if reading and not spec.prepare.prefill:
        remedy = (
            f"must be true, because {', '.join(reading)} would read unwritten extents, which are answered without "
            "access to the storage; set it to true, or leave out the workloads that read"
        )
        yield Problem(field="spec.prepare.prefill", value="false", remedy=remedy)


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


def _unfit_parameters(spec: RunSpec, expanded: Expanded) -> Iterator[Problem]:
    """Yield parameters that the planned target does not support, such as a trim in a file system."""
    for sweep, points in expanded:
        target = _planned_target(spec, sweep.tool.target)
        if target is None:
            continue
        workload = sweep.workload
        context = StepContext(
            step=StepKind.MEASURE,
            target=target,
            timing=Timing(ramp_seconds=workload.ramp_seconds, runtime_seconds=workload.runtime_seconds),
            seed=1,
            work_directory="planned",
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
    if volume is None or not kind.is_data_set:
        return None
    size = _planned_size(volume, spec.prepare.fill_percent)
    if volume.access == "LibRBD":
        return ImageTarget(pool="planned", image="planned", user="planned", size=size, cache=volume.rbd_cache)
    volume_kind = VolumeKind.DEVICE if volume.mode == "Block" else VolumeKind.FILE
    return VolumeTarget(kind=volume_kind, path="planned", size=size, shared=volume.is_shared)
