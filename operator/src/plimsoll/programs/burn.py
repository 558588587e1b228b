"""`plimsoll burn`: has the helper run kube-burner, and writes its output and files. Started by a run's first client."""

import asyncio
import ssl
import sys
from pathlib import Path

import aiohttp
import click
from pydantic import ValidationError

from plimsoll.api.json_reader import printable
from plimsoll.protocol import helpers as protocol
from plimsoll.protocol.messages import SERVER_NAME
from plimsoll.tools.kube_burner import KubeBurnerParameters

_OK = 200
_TRANSIENT = frozenset({429, 503})  # it is another run's turn, or the API server does not answer just now
_PATIENCE_SECONDS = 1800.0
_CANNOT_RUN = 126


class _HelperError(click.ClickException):
    """The helper did not run kube-burner; the message is for the user."""

    exit_code = _CANNOT_RUN


@click.command(hidden=True, context_settings={"auto_envvar_prefix": "PLIMSOLL_BURN"})
@click.argument("parameters")
@click.option("--helper", required=True, help="URL of the helper.")
@click.option("--certificate", required=True, help="The helper's certificate, PEM; no other is trusted.")
@click.option("--token", type=click.Path(path_type=Path), required=True, help="File with the token for the helper.")
@click.option("--storage-class", required=True, help="StorageClass of the PVCs.")
@click.option("--run-uid", required=True, help="UID of the run.")
def command(*, parameters: str, helper: str, certificate: str, token: Path, storage_class: str, run_uid: str) -> None:
    """Run kube-burner with PARAMETERS, a JSON document, and write its output and files here as if it had run here."""
    order = protocol.BurnOrder(
        parameters=KubeBurnerParameters.model_validate_json(parameters), storage_class=storage_class, run_uid=run_uid
    )
    outcome = asyncio.run(_ordered(helper, certificate, token, order))
    for name, text in outcome.files.items():
        Path(Path(name).name).write_text(text)
    click.echo(outcome.stdout, nl=False)
    click.echo(outcome.stderr, nl=False, err=True)
    sys.exit(outcome.exit_code if outcome.exit_code >= 0 else 128 - outcome.exit_code)


async def _ordered(url: str, certificate: str, token: Path, order: protocol.BurnOrder) -> protocol.BurnOutcome:
    """Have the helper run kube-burner, and return the outcome; waits while the helper works for another run."""
    problem = "no answer"
    # Without a limit in all: the conductor has one, and the helper's lines show that it works.
    limits = aiohttp.ClientTimeout(total=None, connect=protocol.SILENCE_SECONDS, sock_read=protocol.SILENCE_SECONDS)
    # Each attempt has its own connection: the helper closes an idle one, perhaps just when it is used again.
    context = ssl.create_default_context(cadata=certificate)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    connector = aiohttp.TCPConnector(force_close=True, ssl=context)
    try:
        async with (
            asyncio.timeout(_PATIENCE_SECONDS) as patience,
            aiohttp.ClientSession(url, timeout=limits, connector=connector) as session,
        ):
            while True:
                authorization = f"Bearer {token.read_text().strip()}"  # noqa: ASYNC240 - a small file in memory
                headers = {"Authorization": authorization, "Content-Type": "application/json"}
                try:
                    response = await session.post(
                        protocol.BURN_PATH, data=order.model_dump_json(), headers=headers, server_hostname=SERVER_NAME
                    )
                except aiohttp.ClientError as error:
                    # Its pod may be starting, be replaced, or have too many connections; nothing has been run.
                    problem = _problem_of(error)
                else:
                    async with response:
                        if response.status == _OK:
                            patience.reschedule(None)
                            return await _outcome(response)
                        text = await response.text()
                        try:
                            problem = printable(protocol.HelperRefusal.model_validate_json(text).message)
                        except ValidationError:
                            problem = printable(text) or "no message"
                        if response.status not in _TRANSIENT:
                            raise _HelperError(f"the helper did not run kube-burner: {problem}")
                await asyncio.sleep(protocol.RETRY_SECONDS)
    except aiohttp.ClientError as error:
        what = str(error) or type(error).__name__
        raise _HelperError(f"the helper stopped while kube-burner ran ({what}); check its pod") from error
    except TimeoutError:
        raise _HelperError(f"the helper did not run kube-burner within {_PATIENCE_SECONDS:g} s: {problem}") from None
    except OSError as error:
        raise _HelperError(f"the token for the helper cannot be read: {error}") from error


def _problem_of(error: aiohttp.ClientError) -> str:
    """Return why the helper did not answer, if it may answer later; _HelperError if it has another certificate."""
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        message = "its certificate is not the one that the run trusts; if it was replaced, create the run again"
        raise _HelperError(f"the helper did not run kube-burner: {message}") from error
    return f"{str(error) or type(error).__name__}; check its pod"


async def _outcome(response: aiohttp.ClientResponse) -> protocol.BurnOutcome:
    content = bytearray()
    async for part in response.content.iter_any():
        content += part.strip(b"\n") if not content else part
        if len(content) > protocol.MAX_OUTCOME_BYTES:
            raise _HelperError(f"the helper's answer has more than {protocol.MAX_OUTCOME_BYTES} bytes")
    try:
        return protocol.BurnOutcome.model_validate_json(bytes(content))
    except ValidationError as error:
        message = "the helper's answer is not complete; check its pod, and use the same version for it and the run"
        raise _HelperError(message) from error
