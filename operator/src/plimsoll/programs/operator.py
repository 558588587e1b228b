"""`plimsoll operator`: the control plane."""

import asyncio

import click
import kopf

import plimsoll.operator.main  # noqa: F401 - registers the handlers


@click.command(hidden=True)
@click.option("--liveness", default="http://0.0.0.0:8080/healthz", show_default=True, help="Address of the probes.")
@click.option(
    "--metrics", default="", help="Address of the metrics, such as http://0.0.0.0:8081/metrics; off by default."
)
@click.option(
    "--namespace", "namespaces", multiple=True, help="Namespace to watch; may be repeated. All namespaces by default."
)
@click.option("--log-format", type=click.Choice(["json", "plain"]), default="json", show_default=True)
def command(*, liveness: str, metrics: str, namespaces: tuple[str, ...], log_format: str) -> None:
    """Reconcile BenchmarkRuns and BenchmarkSuites, in the cluster of the pod or of KUBECONFIG."""
    formats = {"json": kopf.LogFormat.JSON, "plain": kopf.LogFormat.PLAIN}
    kopf.configure(verbose=False, log_format=formats[log_format])

    async def operate() -> None:
        memo = kopf.Memo(metrics=metrics, namespaces=namespaces, stop=asyncio.Event())
        await kopf.operator(
            clusterwide=not namespaces,
            namespaces=namespaces,
            liveness_endpoint=liveness,
            standalone=True,
            memo=memo,
            stop_flag=memo.stop,
        )
        if "failure" in memo:
            raise click.ClickException(memo.failure)

    asyncio.run(operate())
