"""For tools that reach their data set through the kernel: a file or a block device, and no RBD image of librbd."""

from plimsoll.api.schema import Rule
from plimsoll.tools.base import StepContext
from plimsoll.tools.target import VolumeTarget


def kernel_volume(key: str, context: StepContext) -> VolumeTarget:
    """Return the target of the tool with that key.

    Raises:
        ValueError: it is an RBD image accessed through librbd.

    """
    if not isinstance(context.target, VolumeTarget):
        raise ValueError(f"{key} cannot access an image through librbd: leave volume.access out, or use fio")  # noqa: TRY004 - a user's choice
    return context.target


def needs_kernel_volume(key: str) -> Rule:
    """Return the rule that a run with the tool does not access its volume through librbd."""
    return Rule(
        rule=(
            "!has(self.storage) || !has(self.storage.volume) || self.storage.volume.access != 'LibRBD' || "
            f"!self.workloads.exists(w, has(w.{key}))"
        ),
        message=f"cannot be LibRBD, because {key} needs a file or a block device; remove it, or use fio",
        field_path=".storage.volume.access",
    )
