"""Preparing a data set: discard it, write every byte of it, check that, and overwrite it at random."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from plimsoll.agent.host.open_files import DataSetIdentity, identify
from plimsoll.agent.image import LOOK_UP_SECONDS, ImageVolume
from plimsoll.agent.process import OverdueError, written_bytes
from plimsoll.agent.programs import PreparationError, Programs, Progress, check_step, in_time, output_of
from plimsoll.agent.stall import StalledError, StallWatch
from plimsoll.agent.volume import LocalVolume, VolumeError, discard_is_unsupported
from plimsoll.api.run import Precondition
from plimsoll.protocol.messages import Prepare
from plimsoll.tools.base import Command, ImageTarget, Output, VolumeTarget
from plimsoll.tools.base import DataSet as Target
from plimsoll.tools.fio import (
    discard_command,
    parse_discard,
    parse_precondition,
    parse_prefill,
    precondition_command,
    prefill_command,
)

Volume = LocalVolume | ImageVolume
"""Whatever a client's data set is in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSet:
    """What has been prepared.

    Attributes:
        identity: what the kernel knows it by; None of an image, which the kernel knows nothing of.
        prefilled: whether every byte was written.

    """

    target: Target
    identity: DataSetIdentity | None
    prefilled: bool


async def prepare(volume: Volume, order: Prepare, programs: Programs, progress: Progress) -> DataSet:
    """Prepare a volume as ordered.

    Raises:
        PreparationError: saying what went wrong, in the tool's own words where it has some.

    """
    try:
        if isinstance(volume, ImageVolume):
            return await _prepare_image(volume, order, programs, progress)
        return await _prepare_local(volume, order, programs, progress)
    except (VolumeError, ValueError, OSError) as error:
        raise PreparationError(str(error)) from error


async def _prepare_local(volume: LocalVolume, order: Prepare, programs: Programs, progress: Progress) -> DataSet:
    target = volume.target(order.fill_percent)
    write = _Writing(programs, progress, target)
    if order.discard:
        await _discard(volume, target, programs, progress)
    if order.prefill:
        progress(0, target.size)
        await write.prefill(order.seed, lambda pid: progress(min(written_bytes(pid), target.size), target.size))
        volume.check_written(target)
    else:
        volume.lay_out(target)
    if order.precondition is not None:
        await write.precondition(order.precondition, order.seed)
    return DataSet(target=target, identity=identify(target), prefilled=order.prefill)


async def _discard(volume: LocalVolume, target: VolumeTarget, programs: Programs, progress: Progress) -> None:
    """Give the storage back what the volume holds.

    Not all storage can: that is told and no error, and the fact `volumeDiscards` of this client says so.
    """
    volume.clear()
    argv = volume.discard_command(target)
    if argv is None:
        return
    directory = programs.fresh_directory("discard")
    # Its words are read, so they must not be translated.
    finished = await programs.run(Command(argv=argv, environment={"LC_ALL": "C"}), directory)
    if discard_is_unsupported(finished.exit_code, finished.stderr):
        progress(0, target.size, f"{target.path} cannot discard, and is overwritten as it is")
    else:
        check_step(finished, directory.name, of=target.name, remedy="; prepare.discard: false leaves it out")


async def _prepare_image(volume: ImageVolume, order: Prepare, programs: Programs, progress: Progress) -> DataSet:
    target = volume.target()
    await _look_up(volume, programs)
    write = _Writing(programs, progress, target, volume)
    if order.discard:
        await write.discard(target, limit_seconds=volume.discard_seconds)
    if order.prefill:
        await write.prefill(order.seed, write.told_in_time("prefilling through librbd"))
    if order.precondition is not None:
        await write.precondition(order.precondition, order.seed)
    return DataSet(target=target, identity=None, prefilled=order.prefill)


async def _look_up(volume: ImageVolume, programs: Programs) -> None:
    """Check that the image is there and can be reached: what does I/O says little when it is not, and may never end.

    Raises:
        VolumeError: it is not.

    """
    directory = programs.fresh_directory("look-up")
    try:
        finished = await programs.run(volume.look_up_command(), directory, limit_seconds=LOOK_UP_SECONDS)
    except OverdueError as error:
        message = f"{volume.unreachable} (rbd info {error})"
        raise VolumeError(message) from error
    volume.check_found(finished.exit_code, finished.stdout, finished.stderr)


class _Writing:
    """The steps of a preparation that are fio's."""

    def __init__(
        self, programs: Programs, progress: Progress, target: Target, image: ImageVolume | None = None
    ) -> None:
        self._programs = programs
        self._progress = progress
        self._target = target
        self._image = image

    async def discard(self, target: ImageTarget, *, limit_seconds: float) -> None:
        """Give the storage back what the image holds."""
        directory = self._programs.fresh_directory("discard")
        command = discard_command(target, work_directory=str(directory))
        tell = self.told_in_time("discarding through librbd")
        parse_discard(await self._run(command, directory, tell, limit_seconds=limit_seconds), target)

    async def prefill(self, seed: int, tell: Callable[[int], None]) -> None:
        """Write every byte."""
        directory = self._programs.fresh_directory("prefill")
        command = prefill_command(self._target, seed=seed, work_directory=str(directory))
        parse_prefill(await self._run(command, directory, self._unless_stuck(tell)), self._target)

    async def precondition(self, precondition: Precondition, seed: int) -> None:
        """Overwrite at random."""
        directory = self._programs.fresh_directory("precondition")
        command = precondition_command(self._target, precondition, seed=seed, work_directory=str(directory))
        started, seconds, size = time.monotonic(), precondition.seconds, self._target.size

        def tell(_: int) -> None:
            elapsed = min(int(time.monotonic() - started), seconds)
            self._progress(size, size, f"overwriting at random, {elapsed} of {seconds} s")

        parse_precondition(await self._run(command, directory, self._unless_stuck(tell)), self._target)

    def told_in_time(self, words: str) -> Callable[[int], None]:
        """Return a watch that tells how long something has gone on.

        The kernel does not count what a process writes through librbd, so nobody knows how many bytes are done.
        """
        return in_time(words, self._progress, total=self._target.size)

    def _unless_stuck(self, tell: Callable[[int], None]) -> Callable[[int], None]:
        """Return a watch that also kills what writes to an image and has come to a stop."""
        if self._image is None:
            return tell
        stall = StallWatch()

        def look(pid: int) -> None:
            tell(pid)
            stall.look(pid)

        return look

    async def _run(
        self, command: Command, directory: Path, watch: Callable[[int], None], *, limit_seconds: float | None = None
    ) -> Output:
        """Run the step that a directory is named after, and return its output.

        Raises:
            PreparationError: it failed or did not come to an end.

        """
        step, advice = directory.name, f"; {self._image.stuck}" if self._image else ""
        try:
            finished = await self._programs.run(command, directory, watch=watch, limit_seconds=limit_seconds)
        except (OverdueError, StalledError) as error:
            message = f"{step} of {self._target.name} {error}{advice}"
            raise PreparationError(message) from error
        check_step(finished, step, of=self._target.name, remedy=advice)
        return output_of(finished)
