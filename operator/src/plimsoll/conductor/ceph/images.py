"""The RBD images of a run, one for each client."""

import asyncio
from collections.abc import Callable

from plimsoll.api.quantity import format_quantity
from plimsoll.api.storage import Volume
from plimsoll.ceph.document import Node
from plimsoll.conductor.ceph.cli import CommandError, Commands
from plimsoll.plan.ceph import image_name
from plimsoll.plan.document import CephTarget

_FEATURES = "layering,exclusive-lock"
"""What librbd needs to write. Others, such as object-map, cost operations of their own."""

_AT_ONCE = 4


async def make_images(
    commands: Commands, target: CephTarget, volume: Volume, *, uid: str, clients: int, say: Callable[[str], None]
) -> list[str]:
    """Make the images that are missing, each as large as `volume`, and return what hinders; `say` is told the progress.

    An image that is there already, and is as it has to be, is kept.
    """
    names = [image_name(uid, client) for client in range(clients)]
    turn = asyncio.Semaphore(_AT_ONCE)
    made = 0

    async def make(name: str) -> str:
        nonlocal made
        async with turn:
            try:
                return await _make(commands, target, volume, name)
            except CommandError as error:
                return str(error)
            finally:
                made += 1
                say(f"{made} of {clients} images are made")

    return [problem for problem in await asyncio.gather(*map(make, names)) if problem]


async def _make(commands: Commands, target: CephTarget, volume: Volume, name: str) -> str:
    """Make one image; return why it is not as it has to be, empty if it is."""
    image, size = f"{target.pool}/{name}", volume.size
    data_pool = [] if target.data_pool is None else ["--data-pool", target.data_pool]
    try:
        await commands.rbd("create", "--size", f"{size}B", "--image-feature", _FEATURES, *data_pool, image)
    except CommandError as error:
        if not error.is_present:
            raise
        if problem := _difference(await commands.rbd("info", image, "--format", "json"), target, image, size):
            return problem
    # What is set for a pool or an image goes before what a client asks for.
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
        wanted = format_quantity(size)
        return f"image {image} is there with {format_quantity(found)} in place of {wanted}; remove it"
    if pool != target.data_pool:
        return f"image {image} is there with its data in pool {pool}; remove it"
    return ""
