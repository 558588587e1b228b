"""Prepares a data set: discards it, writes every byte, verifies that, and overwrites it at random."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from plimsoll.agent import process
from plimsoll.agent.observation import DataSetIdentity, identify
from plimsoll.agent.readings import process_io
from plimsoll.agent.volume import LOOK_UP_SECONDS, ImageVolume, LocalVolume, VolumeError, discard_is_unsupported
from plimsoll.protocol.messages import PrepareOrder
from plimsoll.tools.base import Command
from plimsoll.tools.fio.preparation import changed_bytes, discard_command, precondition_command, prefill_command
from plimsoll.tools.target import DataSet, VolumeTarget

Volume = LocalVolume | ImageVolume  # any volume that can contain a client's data set


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedDataSet:
    """A data set after preparation."""

    target: DataSet
    identity: DataSetIdentity | None  # how the kernel identifies it; None for an image, which the kernel does not know
    prefilled: bool  # whether every byte was written


async def prepare(
    volume: Volume,
    order: PrepareOrder,
    programs: process.Programs,
    progress: process.Progress,
    *,
    size: int | None = None,
) -> PreparedDataSet:
    """Prepare a volume, with the `size` of an earlier preparation if any; PreparationError with the tool's output."""
    try:
        if isinstance(volume, ImageVolume):
            return await _prepare_image(volume, order, programs, progress)
        target = await programs.in_thread("the check of the volume", partial(volume.target, order.fill_percent))
        target = target if size is None else replace(target, size=size)
        return await _prepare_local(volume, target, order, programs, progress)
    except (VolumeError, ValueError, OSError) as error:
        raise process.PreparationError(str(error)) from error


async def _prepare_local(
    volume: LocalVolume,
    target: VolumeTarget,
    order: PrepareOrder,
    programs: process.Programs,
    progress: process.Progress,
) -> PreparedDataSet:
    fio = _Fio(programs, order, progress, target)
    await programs.in_thread(f"the creation of {target.path}", partial(volume.create, target))
    if order.discard:
        await _discard(volume, target, programs, progress, required=order.must_discard)
    # Also before a prefill: file systems do one write at a time that extends a file.
    await programs.in_thread(f"the creation of {target.path}", partial(volume.lay_out, target))
    if order.prefill:
        progress(0, target.size, "")

        def report_written(pid: int) -> None:
            counters = process_io(pid) or {"write_bytes": 0}
            progress(min(counters["write_bytes"], target.size), target.size, "")

        await fio.prefill(report_written)
        await programs.in_thread(f"the check of {target.path}", partial(volume.check_written, target))
    await fio.precondition()
    identity = await programs.in_thread(f"the check of {target.path}", partial(identify, target))
    return PreparedDataSet(target=target, identity=identity, prefilled=order.prefill)


async def _discard(
    volume: LocalVolume, target: VolumeTarget, programs: process.Programs, progress: process.Progress, *, required: bool
) -> None:
    """Discard the volume's content; storage without discard is reported, or if `required` a VolumeError."""
    await programs.in_thread(f"the removal of {target.path}", partial(volume.clear, target))
    argv = volume.discard_command(target)
    if argv is None:
        return
    directory = programs.fresh_directory("discard")
    # Untranslated, because its messages are parsed.
    output = await programs.run(Command(argv=argv, environment={"LC_ALL": "C"}), directory)
    unsupported = discard_is_unsupported(output.exit_code, output.stderr)
    if unsupported and required:
        raise VolumeError(
            f"{target.path} does not support discard, so without prefill no trial can have a new data set "
            "(prepare.perTrial: NewDataSet); set prepare.prefill: true, or use storage that supports discard"
        )
    if unsupported:
        progress(0, target.size, f"{target.path} does not support discard; overwriting it as it is")
    else:
        process.check_step(output, directory.name, of=target.name, remedy="; prepare.discard: false skips this step")


async def _prepare_image(
    volume: ImageVolume, order: PrepareOrder, programs: process.Programs, progress: process.Progress
) -> PreparedDataSet:
    target = volume.target()
    # I/O on an image that cannot be opened might hang, or fail without saying why.
    directory = programs.fresh_directory("look-up")
    try:
        output = await programs.run(volume.look_up_command(), directory, limit_seconds=LOOK_UP_SECONDS)
    except process.OverdueError as error:
        raise VolumeError(f"{volume.unreachable} (rbd info {error})") from error
    volume.check_found(output.exit_code, output.stdout, output.stderr)
    fio = _Fio(programs, order, progress, target, volume)
    if order.discard:
        # The kernel does not count what a process writes through librbd.
        watch = process.report_elapsed("discarding through librbd", progress, total=target.size)
        await fio.run("discard", partial(discard_command, target), watch, limit_seconds=volume.discard_seconds)
    if order.prefill:
        await fio.prefill(process.report_elapsed("prefilling through librbd", progress, total=target.size))
    await fio.precondition()
    return PreparedDataSet(target=target, identity=None, prefilled=order.prefill)


@dataclass(frozen=True, slots=True)
class _Fio:
    programs: process.Programs
    order: PrepareOrder
    progress: process.Progress
    target: DataSet
    image: ImageVolume | None = None

    async def prefill(self, watch: process.Watch) -> None:
        command = partial(prefill_command, self.target, self.order.seed, content=self.order.content)
        await self.run("prefill", command, watch)

    async def precondition(self) -> None:
        """Overwrite the data set at random, if ordered."""
        precondition, started, size = self.order.precondition, time.monotonic(), self.target.size
        if precondition is None:
            return
        seconds = precondition.seconds

        def report(_: int) -> None:
            elapsed = min(int(time.monotonic() - started), seconds)
            self.progress(size, size, f"overwriting at random, {elapsed} of {seconds} s")

        order = self.order
        command = partial(precondition_command, self.target, precondition, order.seed, content=order.content)
        await self.run("precondition", command, report)

    async def run(
        self, step: str, command: Callable[..., Command], watch: process.Watch, *, limit_seconds: float | None = None
    ) -> None:
        """Run a step; PreparationError if it fails, or without a time limit stops writing to an image."""
        directory, remedy = self.programs.fresh_directory(step), f"; {self.image.stuck}" if self.image else ""
        stall = [process.StallWatch().look] if self.image and limit_seconds is None else []
        try:
            output = await self.programs.run(
                command(work_directory=str(directory)), directory, watches=[watch, *stall], limit_seconds=limit_seconds
            )
        except (process.OverdueError, process.StalledError) as error:
            raise process.PreparationError(f"{step} of {self.target.name} {error}{remedy}") from error
        process.check_step(output, step, of=self.target.name, remedy=remedy)
        changed_bytes(step, output, self.target)
