"""`plimsoll burner`: the helper that runs kube-burner. Started by the chart's Deployment."""

import asyncio
import logging
from pathlib import Path

import click

from plimsoll.api.quantity import parse_quantity
from plimsoll.programs.termination import run_until_stopped
from plimsoll.protocol.helpers import BURNER_AUDIENCE, PORT


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
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")

    async def serve() -> None:
        # Imported here because they take longer than everything else.
        from plimsoll.helpers.authority import Limits  # noqa: PLC0415
        from plimsoll.helpers.burner import Helper, Means, knower  # noqa: PLC0415
        from plimsoll.helpers.server import TokenReviews  # noqa: PLC0415
        from plimsoll.programs.serving import helper_listener, serve_forever  # noqa: PLC0415

        async with TokenReviews(BURNER_AUDIENCE) as api, asyncio.TaskGroup() as group:
            means = Means(
                namespace=namespace,
                program=program,
                pod_image=pod_image,
                directory=work,
                username=api.username,
                api=api,
            )
            limits = Limits(allowed=allow, max_objects=max_objects, max_qps=max_qps, max_volume_size=max_volume_size)
            listener = helper_listener()
            helper = Helper(means, limits, know=knower(listener))
            # What an earlier process left. If this fails, so does the program.
            group.create_task(helper.clean())
            group.create_task(serve_forever(helper.application(), listener, host, port))

    run_until_stopped(serve())
