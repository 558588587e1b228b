"""Creates the RBD images of a run, one per client."""

import asyncio
from collections.abc import Callable

from plimsoll.api.quantity import format_quantity
from plimsoll.api.volume import Volume
from plimsoll.ceph.document import Node
from plimsoll.conductor.ceph.cli import CommandError, Commands
from plimsoll.plan.ceph import image_name
from plimsoll.plan.document import CephTarget

_FEATURES = "layering,exclusive-lock"
"""The features that librbd needs to write. Others, such as object-map, cost additional operations."""

_AT_ONCE = 4


async def create_images(
    commands: Commands, target: CephTarget, volume: Volume, *, uid: str, clients: int, report: Callable[[str], None]
) -> list[str]:
    """Create the missing images and return the problems; call `report` with the progress.

    An existing image with the right size and data pool is kept.
    """
    names = [image_name(uid, client) for client in range(clients)]
    turn = asyncio.Semaphore(_AT_ONCE)
    done = 0

    async def create(name: str) -> str:
        nonlocal done
        async with turn:
            try:
                return await _create(commands, target, volume, name)
            except CommandError as error:
                return str(error)
            finally:
                done += 1
                report(f"{done} of {clients} images are created")

    return [problem for problem in await asyncio.gather(*map(create, names)) if problem]


async def _create(commands: Commands, target: CephTarget, volume: Volume, name: str) -> str:
    """Create one image; return a problem with an existing one, empty if there is none."""
    image, size = f"{target.pool}/{name}", volume.size
    data_pool = [] if target.data_pool is None else ["--data-pool", target.data_pool]
    try:
        await commands.rbd("create", "--size", f"{size}B", "--image-feature", _FEATURES, *data_pool, image)
    except CommandError as error:
        if not error.is_present:
            raise
        if problem := _difference(await commands.rbd("info", image, "--format", "json"), target, image, size):
            return problem
    # A setting of the pool or image takes precedence over the client's.
    await commands.rbd("config", "image", "set", image, "rbd_cache", str(volume.rbd_cache).lower())
    return ""


def _difference(info: str, target: CephTarget, image: str, size: int) -> str:
    try:
        document = Node.parse(info)
        found = document["size"].count()
        data_pool = document.get("data_pool")
        pool = data_pool.text() if data_pool else None
    except ValueError as error:
        return f"image {image}: {error}"
    if found != size:
        return (
            f"image {image} already exists with {format_quantity(found)} instead of {format_quantity(size)}; remove it"
        )
    if pool != target.data_pool:
        return f"image {image} already exists with its data in pool {pool}; remove it"
    return ""
