"""What prefilling, preconditioning and discarding share: changing a data set while nothing is measured."""

from collections.abc import Iterator

from plimsoll.api.names import Operation
from plimsoll.tools.base import DataSet, Output, OutputError
from plimsoll.tools.fio.command import output_arguments, seed_arguments
from plimsoll.tools.fio.output import complaints, jobs_named, read_output
from plimsoll.tools.fio.target import offset_of, target_arguments
from plimsoll.tools.reading import Node


def writing_arguments(job: str, target: DataSet, seed: int, work_directory: str) -> Iterator[str]:
    """Yield what writes past the page cache, with data that does not compress, and ends at the first error."""
    yield from changing_arguments(job, target, work_directory)
    yield "--refill_buffers=1"
    yield "--end_fsync=1"
    yield from seed_arguments(seed)


def changing_arguments(job: str, target: DataSet, work_directory: str) -> Iterator[str]:
    """Yield what does the I/O of one job past the page cache, and ends at the first error."""
    yield from output_arguments(work_directory)
    yield "--eta=never"
    yield f"--name={job}"
    yield from target_arguments(target)
    yield f"--offset={offset_of(target)}"
    yield "--thread=1"
    yield "--continue_on_error=none"


def read_changes(job: str, output: Output, operation: Operation = Operation.WRITE) -> Node:
    """Return what the one job of that name did of an operation.

    Raises:
        OutputError: fio failed, its document cannot be read, or operations were short or dropped.

    """
    found = read_output(output)
    (node,) = jobs_named(found.root, job, count=1)
    problems = complaints([node], output, found.noise)
    if problems or output.exit_code:
        raise OutputError(f"{job} failed with exit code {output.exit_code}: {'; '.join(problems) or 'no message'}")
    done = node.child(operation)
    if incomplete := done.count("short_ios") + done.count("drop_ios"):
        did = "trimmed" if operation is Operation.TRIM else "wrote"
        raise OutputError(
            f"{job} {did} {done.count('io_bytes')} bytes with {incomplete} operations that were short or dropped"
        )
    return done
