"""What the programs of the helpers share: limits for strangers, and serving until they are stopped."""

import asyncio

from aiohttp import web

from plimsoll.net.listener import Listener, ListenerLimits, serving_requests

_LIMITED_CONNECTIONS = 64


def helper_listener() -> Listener:
    """Return the listener of a helper."""
    return Listener(
        ListenerLimits(strangers=_LIMITED_CONNECTIONS, stranger_seconds=15.0, connections=_LIMITED_CONNECTIONS)
    )


async def serve_forever(application: web.Application, listener: Listener, host: str, port: int) -> None:
    """Answer requests until the task is cancelled."""
    async with serving_requests(application, listener, host, port, idle_seconds=5.0):
        await asyncio.Event().wait()
