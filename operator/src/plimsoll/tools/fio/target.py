"""What fio does its I/O against: a file or block device through the kernel, or an RBD image through librbd."""

from collections.abc import Iterator, Mapping

from plimsoll.api.names import Operation
from plimsoll.tools.base import DataSet, ImageTarget, StepContext, VolumeKind, VolumeTarget
from plimsoll.tools.fio.parameters import Engine, FioParameters


def data_set(context: StepContext) -> DataSet:
    """Return the target of a step.

    Raises:
        TypeError: it is neither a volume nor an image, which is an error of who planned the step.

    """
    if not isinstance(context.target, VolumeTarget | ImageTarget):
        raise TypeError(f"fio cannot use a {type(context.target).__name__}")
    return context.target


def refuse_unfit(parameters: FioParameters, target: DataSet) -> None:
    """Refuse what cannot be done to the target, whatever its size.

    Raises:
        ValueError: naming the remedy.

    """
    if isinstance(target, ImageTarget):
        _refuse_unfit_for_image(parameters)
    elif parameters.engine is Engine.RBD:
        raise ValueError("engine rbd needs an image: use volume.access LibRBD, or leave engine out")
    elif Operation.TRIM in parameters.pattern.operations and target.kind is not VolumeKind.DEVICE:
        raise ValueError(f"{parameters.pattern} needs a block device: use a volume of mode Block")


def target_arguments(target: DataSet, engine: Engine | None = None, *, direct: bool = True) -> Iterator[str]:
    """Yield which file, device or image is used, and past which cache; not which part of it.

    Through librbd, fio 3.39 turns librbd's cache off whenever `direct` is on, whatever Ceph's configuration says; off,
    it leaves the cache to the configuration, see `environment`.
    """
    if isinstance(target, ImageTarget):
        yield f"--ioengine={Engine.RBD}"
        yield f"--pool={target.pool}"
        yield f"--rbdname={target.image}"
        yield f"--clientname={target.user}"
        yield f"--direct={int(not target.cache)}"
        return
    # A colon would separate two file names.
    escaped = target.path.replace(":", "\\:")
    yield f"--filename={escaped}"
    yield f"--ioengine={engine or Engine.LIBAIO}"
    yield f"--direct={int(direct)}"


def environment(target: DataSet) -> Mapping[str, str]:
    """Return what makes librbd's cache what it should be, whatever the configuration file and the monitors say.

    Only a setting of the image itself, or else of its pool (`rbd config`), comes before it: seen with 18.2.
    """
    return {"CEPH_ARGS": f"--rbd_cache={str(target.cache).lower()}"} if isinstance(target, ImageTarget) else {}


def offset_of(target: DataSet) -> int:
    """Return where in it the data set begins, in bytes."""
    return target.offset if isinstance(target, VolumeTarget) else 0


def bypasses_cache(parameters: FioParameters, target: DataSet) -> bool:
    """Return whether the I/O goes past the client's cache."""
    return not target.cache if isinstance(target, ImageTarget) else parameters.direct_io


def _refuse_unfit_for_image(parameters: FioParameters) -> None:
    if parameters.engine not in (None, Engine.RBD):
        raise ValueError(f"engine {parameters.engine} needs a volume, but an image is reached by rbd: leave engine out")
    if not parameters.direct_io:
        raise ValueError("directIo has no meaning for an image: leave it out, and say volume.rbdCache: true if wanted")
    if parameters.jobs > 1 and not set(parameters.pattern.operations) <= {Operation.READ}:
        # Every job is a client of its own, and only the one that holds the image's exclusive lock may write. With two
        # jobs a write took 22 ms in place of 3.
        raise ValueError(
            f"{parameters.jobs} jobs that write one image take its exclusive lock from each other: "
            "use 1 and raise ioDepth, or use more clients"
        )
