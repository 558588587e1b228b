"""What prefilling and preconditioning share: writing a data set before anything is measured."""

from collections.abc import Iterator

from plimsoll.tools.base import Output, OutputError, VolumeTarget
from plimsoll.tools.fio.command import output_arguments, seed_arguments, target_arguments
from plimsoll.tools.fio.document import Node
from plimsoll.tools.fio.output import complaints, jobs_named, read_output


def writing_arguments(job: str, target: VolumeTarget, seed: int, work_directory: str) -> Iterator[str]:
    """Yield what writes past the page cache, with data that does not compress, and ends at the first error."""
    yield from output_arguments(work_directory)
    yield f"--name={job}"
    yield from target_arguments(target)
    yield f"--offset={target.offset}"
    yield "--ioengine=libaio"
    yield "--direct=1"
    yield "--thread=1"
    yield "--refill_buffers=1"
    yield "--end_fsync=1"
    yield "--continue_on_error=none"
    yield from seed_arguments(seed)


def read_writes(job: str, output: Output) -> Node:
    """Return the `write` section of the one job of that name.

    Raises:
        OutputError: fio failed, its document cannot be read, or writes were short or dropped.

    """
    found = read_output(output)
    (node,) = jobs_named(found.root, job, count=1)
    problems = complaints([node], output, found.noise)
    if problems or output.exit_code:
        raise OutputError(f"{job} failed with exit code {output.exit_code}: {'; '.join(problems) or 'no message'}")
    write = node.child("write")
    if incomplete := write.count("short_ios") + write.count("drop_ios"):
        raise OutputError(
            f"{job} wrote {write.count('io_bytes')} bytes with {incomplete} operations that were short or dropped"
        )
    return write
