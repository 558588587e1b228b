"""`plimsoll burner`: the helper that runs kube-burner. Started by the chart's Deployment."""

import asyncio
import logging
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import click

from plimsoll.api.quantity import parse_quantity
from plimsoll.protocol.helpers import BURNER_AUDIENCE, PORT

if TYPE_CHECKING:
    from plimsoll.helpers.authority import Limits
    from plimsoll.helpers.burner import Means


_LIMITED_CONNECTIONS = 64
_STRANGER_SECONDS = 15.0
_IDLE_SECONDS = 5.0


def _bytes(_context: click.Context, _parameter: click.Parameter, value: str) -> int:
    try:
        return parse_quantity(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


@click.command(hidden=True, context_settings={"auto_envvar_prefix": "PLIMSOLL"})
@click.option("--namespace", required=True, help="Namespace of this helper.")
@click.option("--allow", multiple=True, required=True, help="Namespace whose runs may use it; * for all.")
@click.option("--max-objects", type=click.IntRange(min=1), required=True, help="PVCs at the same time.")
@click.option("--max-qps", type=click.IntRange(min=1), required=True, help="Requests per second.")
@click.option("--max-volume-size", callback=_bytes, required=True, help="Size of a PVC, such as 1Gi.")
@click.option("--pod-image", required=True, help="Image of the pods that mount the PVCs.")
@click.option("--program", default="kube-burner", show_default=True, help="Path of kube-burner.")
@click.option("--work", type=click.Path(file_okay=False, path_type=Path), default="/tmp", show_default=True)  # noqa: S108  # an emptyDir
@click.option("--host", default="", help="Address to listen on; empty for all.")
@click.option("--port", type=int, default=PORT, show_default=True)
def command(
    *,
    namespace: str,
    allow: tuple[str, ...],
    max_objects: int,
    max_qps: int,
    max_volume_size: int,
    pod_image: str,
    program: str,
    work: Path,
    host: str,
    port: int,
) -> None:
    """Run kube-burner on request, and remove everything that it creates."""
    # Imported here because they take longer than everything else.
    from plimsoll.helpers.authority import Limits  # noqa: PLC0415
    from plimsoll.helpers.burner import Means  # noqa: PLC0415
    from plimsoll.helpers.server import TokenReviews  # noqa: PLC0415

    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    api = TokenReviews(BURNER_AUDIENCE)
    means = Means(
        namespace=namespace, program=program, pod_image=pod_image, directory=work, username=api.username, api=api
    )
    limits = Limits(allowed=allow, max_objects=max_objects, max_qps=max_qps, max_volume_size=max_volume_size)

    async def serve() -> None:
        async with api:
            await _serve(means, limits, host, port)

    asyncio.run(serve())


async def _serve(means: "Means", limits: "Limits", host: str, port: int) -> None:
    """Remove what an earlier process left, then serve until SIGTERM."""
    from plimsoll.helpers.burner import Helper, knower  # noqa: PLC0415
    from plimsoll.net.listener import (  # noqa: PLC0415
        Listener,
        ListenerLimits,
        serving_requests,
    )

    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopped.set)
    listener = Listener(
        ListenerLimits(
            strangers=_LIMITED_CONNECTIONS, stranger_seconds=_STRANGER_SECONDS, connections=_LIMITED_CONNECTIONS
        )
    )
    helper = Helper(means, limits, know=knower(listener))
    cleaning = asyncio.create_task(helper.clean())
    async with serving_requests(helper.application(), listener, host, port, idle_seconds=_IDLE_SECONDS):
        await stopped.wait()
    cleaning.cancel()
    await asyncio.wait({cleaning})
