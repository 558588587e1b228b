"""An assignment as command line options, for runner images of earlier versions."""

from collections.abc import Iterator

from plimsoll.protocol.assignment import AssignedVolume, Assignment, BlockDevice, DirectoryVolume, RbdImage


def agent_options(assigned: Assignment) -> Iterator[str]:
    """Yield the options of an agent that predates the assignment document."""
    yield f"--conductor={assigned.conductor}"
    yield f"--secret={assigned.secret}"
    yield f"--client={assigned.client}"
    yield f"--attempt={assigned.attempt}"
    yield f"--work={assigned.work}"
    yield f"--silence={assigned.silence_seconds:.0f}"
    yield f"--termination-log={assigned.termination_log}"
    yield from (f"--tool={tool}" for tool in assigned.tools)
    yield from _volume(assigned.volume)
    yield from _ceph(assigned)


def _volume(assigned: AssignedVolume | None) -> Iterator[str]:
    match assigned:
        case DirectoryVolume(path=path, capacity=capacity):
            yield from (f"--directory={path}", "--mounted", f"--capacity={capacity}")
        case BlockDevice(path=path):
            yield f"--device={path}"
        case RbdImage(pool=pool, image=image, size=size, cache=cache):
            yield from (f"--image={pool}/{image}", f"--size={size}")
            if cache:
                yield "--rbd-cache"


def _ceph(assigned: Assignment) -> Iterator[str]:
    user = assigned.rados or (assigned.volume if isinstance(assigned.volume, RbdImage) else None)
    if user is not None:
        yield f"--ceph-user={user.user}"
    if assigned.rados is not None:
        yield from (f"--rados-pool={assigned.rados.pool}", f"--rados-namespace={assigned.rados.namespace}")
    if assigned.osd_keyring is not None:
        yield f"--osd-keyring={assigned.osd_keyring}"
