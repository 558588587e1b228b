"""What cannot be measured although every field by itself is possible, and what to change about it."""

from collections.abc import Iterator, Sequence

from plimsoll.api.errors import Problem, field_path
from plimsoll.api.quantity import format_quantity
from plimsoll.api.run import RunSpec, Workload
from plimsoll.api.storage import KeyringReference, Volume
from plimsoll.plan.sweep import Sweep
from plimsoll.tools.base import (
    DataSet,
    ImageTarget,
    StepContext,
    StepKind,
    TargetKind,
    Timing,
    ToolParameters,
    VolumeKind,
    VolumeTarget,
)
from plimsoll.tools.osd_bench import OsdBenchParameters

PREFILLED = frozenset({TargetKind.VOLUME, TargetKind.IMAGE})
"""Targets that hold nothing before somebody writes to them: each client's data set."""

OF_CEPH = frozenset({TargetKind.IMAGE, TargetKind.POOL, TargetKind.OSDS})
"""Targets that only a Ceph cluster has."""

_MIB = 2**20

Expanded = Sequence[tuple[Sweep, Sequence[ToolParameters]]]
"""Every workload with the parameters of its points."""


def missing_storage(sweep: Sweep, spec: RunSpec) -> Iterator[Problem]:
    """Yield why a tool has nothing to work on."""
    storage, target = spec.storage, sweep.tool.target
    runs = f"because workload {sweep.workload.name} runs {sweep.tool.key}"
    if target in OF_CEPH and (storage is None or (storage.rook is None and storage.ceph is None)):
        remedy = f"must have rook or ceph, {runs}, which talks to Ceph itself; name the cluster"
        yield Problem(field="spec.storage", remedy=remedy)
    elif target in PREFILLED and (storage is None or storage.volume is None):
        field = "spec.storage" if storage is None else "spec.storage.volume"
        yield Problem(field=field, remedy=f"is required, {runs} on a volume; add storage with a volume")
    elif target is TargetKind.IMAGE and storage and storage.volume and storage.volume.access != "LibRBD":
        remedy = f"must be LibRBD, {runs} on an RBD image; set it to LibRBD"
        yield Problem(field="spec.storage.volume.access", value=storage.volume.access, remedy=remedy)


def impossible(spec: RunSpec, expanded: Expanded) -> Iterator[Problem]:
    """Yield what of a run does not fit together."""
    yield from _different_keyrings(expanded)
    yield from _unwritten_reads(spec, expanded)
    yield from _large_overwrites(spec)
    yield from _unfit_parameters(spec, expanded)


def _different_keyrings(expanded: Expanded) -> Iterator[Problem]:
    """Yield what names another administrator's key than the first that does: clients are given one."""
    first: tuple[str, KeyringReference] | None = None
    for sweep, points in expanded:
        if not isinstance(points[0], OsdBenchParameters):
            continue
        keyring = points[0].keyring_secret
        first = first or (sweep.workload.name, keyring)
        if keyring != first[1]:
            remedy = (
                f"is not that of workload {first[0]}; clients get one key, so name the same Secret, or split the run"
            )
            yield Problem(field=field_path((*sweep.place, "keyringSecret")), remedy=remedy)


def _unwritten_reads(spec: RunSpec, expanded: Expanded) -> Iterator[Problem]:
    """Yield that something reads what nobody wrote; the numbers would be those of the client's memory."""
    reading = [
        sweep.workload.name
        for sweep, points in expanded
        if sweep.tool.target in PREFILLED and any(one.reads_data for one in points)
    ]
    if reading and not spec.prepare.prefill:
        remedy = (
            f"must be true, because {', '.join(reading)} would read extents that nobody wrote, and such reads are "
            "answered without touching the storage; set it to true, or leave out the workloads that read"
        )
        yield Problem(field="spec.prepare.prefill", value="false", remedy=remedy)


def _large_overwrites(spec: RunSpec) -> Iterator[Problem]:
    """Yield that the data set is overwritten in blocks of which not one fits into it."""
    precondition = spec.prepare.precondition
    if spec.storage is None or spec.storage.volume is None or precondition is None:
        return
    size = _planned_size(spec.storage.volume, spec.prepare.fill_percent)
    if precondition.block_size > size:
        remedy = f"is more than the data set of {format_quantity(size)}; lower it, or enlarge spec.storage.volume.size"
        value = format_quantity(precondition.block_size)
        yield Problem(field="spec.prepare.precondition.blockSize", value=value, remedy=remedy)


def _unfit_parameters(spec: RunSpec, expanded: Expanded) -> Iterator[Problem]:
    """Yield what a tool cannot do on the planned volume: blocks larger than it, a trim in a file system."""
    volume = spec.storage.volume if spec.storage else None
    for sweep, points in expanded:
        if volume is None or sweep.tool.target not in PREFILLED:
            continue
        context = _planned_context(volume, spec.prepare.fill_percent, sweep.workload)
        for parameters in points:
            try:
                sweep.tool.command(parameters, context)
            except ValueError as error:
                yield Problem(field=field_path(sweep.place), remedy=f"{parameters.label()}: {error}")


def _planned_size(volume: Volume, fill_percent: int) -> int:
    """Return the bytes of one client's data set: whole MiB."""
    size = volume.size if volume.mode == "Block" else volume.size * fill_percent // 100
    return max(1, size // _MIB) * _MIB


def _planned_context(volume: Volume, fill_percent: int, workload: Workload) -> StepContext:
    return StepContext(
        step=StepKind.MEASURE,
        target=_planned_target(volume, _planned_size(volume, fill_percent)),
        timing=Timing(ramp_seconds=workload.ramp_seconds, runtime_seconds=workload.runtime_seconds),
        seed=1,
        work_directory="planned",
    )


def _planned_target(volume: Volume, size: int) -> DataSet:
    if volume.access == "LibRBD":
        return ImageTarget(pool="planned", image="planned", user="planned", size=size, cache=volume.rbd_cache)
    kind = VolumeKind.DEVICE if volume.mode == "Block" else VolumeKind.FILE
    return VolumeTarget(kind=kind, path="planned", size=size)
