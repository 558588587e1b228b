"""fio's targets: a file or block device through the kernel, or an RBD image through librbd."""

from collections.abc import Iterator, Mapping

from plimsoll.api.names import Operation
from plimsoll.tools.base import StepContext
from plimsoll.tools.fio.choices import Engine
from plimsoll.tools.fio.parameters import FioParameters
from plimsoll.tools.fio.rules import NEEDS_SHARING, NO_ARRIVALS_OF_IMAGE
from plimsoll.tools.target import DataSet, ImageTarget, VolumeKind, VolumeTarget


def data_set(context: StepContext) -> DataSet:
    """Return the target of a step; TypeError if it is neither a volume nor an image."""
    if isinstance(context.target, ImageTarget):
        return context.target
    return context.target_of(VolumeTarget)


def check_supported(parameters: FioParameters, target: DataSet) -> None:
    """Check that the target supports the parameters, whatever its size.

    Raises:
        ValueError: with the remedy.

    """
    field = _field_for_shared_volumes(parameters)
    if field and not (isinstance(target, VolumeTarget) and target.shared):
        raise ValueError(f"{field} {NEEDS_SHARING}")
    if isinstance(target, ImageTarget):
        _check_supported_by_image(parameters)
    elif parameters.engine is Engine.RBD:
        raise ValueError("engine rbd needs an image: use volume.access LibRBD, or leave engine out")
    elif Operation.TRIM in parameters.pattern.operations and target.kind is not VolumeKind.DEVICE:
        raise ValueError(f"{parameters.pattern} needs a block device: use a volume of mode Block")


def target_arguments(target: DataSet, engine: Engine | None = None, *, direct: bool = True) -> Iterator[str]:
    """Yield the file, device or image, and whether its cache is bypassed.

    With `direct`, fio 3.39 always turns librbd's cache off; without, Ceph's configuration decides: see
    `cache_environment`.
    """
    if isinstance(target, ImageTarget):
        yield f"--ioengine={Engine.RBD}"
        yield f"--pool={target.pool}"
        yield f"--rbdname={target.image}"
        yield f"--clientname={target.user}"
        yield f"--direct={int(not target.cache)}"
        return
    # A colon separates two file names.
    escaped = target.path.replace(":", "\\:")
    yield f"--filename={escaped}"
    yield f"--ioengine={engine or Engine.LIBAIO}"
    yield f"--direct={int(direct)}"


def cache_environment(target: DataSet) -> Mapping[str, str]:
    """Return the environment that turns librbd's cache on or off.

    It overrides the configuration file and the monitors, but not `rbd config` of the image or its pool (observed with
    18.2).
    """
    return {"CEPH_ARGS": f"--rbd_cache={str(target.cache).lower()}"} if isinstance(target, ImageTarget) else {}


def offset_of(target: DataSet) -> int:
    """Return the byte at which the data set begins."""
    return target.offset if isinstance(target, VolumeTarget) else 0


def bypasses_cache(parameters: FioParameters, target: DataSet) -> bool:
    """Whether the I/O bypasses the client's cache."""
    return not target.cache if isinstance(target, ImageTarget) else parameters.direct_io


def _field_for_shared_volumes(parameters: FioParameters) -> str:
    """Return the first field that only a shared volume supports; empty if there is none."""
    if parameters.shares_file:
        return f"files {parameters.files}"
    return f"readBack {parameters.read_back}" if parameters.reads_next_client else ""


def _check_supported_by_image(parameters: FioParameters) -> None:
    if parameters.engine not in (None, Engine.RBD):
        raise ValueError(f"engine {parameters.engine} needs a volume, but an image is reached by rbd: leave engine out")
    if parameters.is_open_loop:
        raise ValueError(NO_ARRIVALS_OF_IMAGE)
    if not parameters.direct_io:
        raise ValueError("directIo does not apply to an image: leave it out, or set volume.rbdCache: true")
    if parameters.jobs > 1 and not set(parameters.pattern.operations) <= {Operation.READ}:
        # Each job is a separate client, and only the holder of the image's exclusive lock can write. With two jobs, a
        # write took 22 ms instead of 3.
        raise ValueError(
            f"{parameters.jobs} jobs that write one image take its exclusive lock from each other: "
            "use 1 and raise ioDepth, or use more clients"
        )
