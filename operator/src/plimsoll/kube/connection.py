"""Which API server to use, and with which credentials."""

import os
import re
import time
from types import SimpleNamespace

import aiohttp
from kubernetes.aio.client import ApiClient, Configuration
from kubernetes.aio.config import ConfigException, load_incluster_config, load_kube_config

from plimsoll.kube.clock import ApiClock
from plimsoll.kube.errors import CredentialsError


def _tracing(clock: ApiClock) -> aiohttp.TraceConfig:
    """Return a tracing configuration that passes every answer to a clock."""

    async def begin(_session: object, request: SimpleNamespace, _parameters: object) -> None:
        request.asked = time.monotonic()

    async def end(_session: object, request: SimpleNamespace, answer: aiohttp.TraceRequestEndParams) -> None:
        clock.read(answer.response.headers.get("Date", ""), request.asked, time.monotonic())

    tracing = aiohttp.TraceConfig()
    tracing.on_request_start.append(begin)
    tracing.on_request_end.append(end)
    return tracing


async def connect(kubeconfig: str | None, context: str | None, clock: ApiClock) -> ApiClient:
    """Return a connection that passes every answer to the clock; see `plimsoll.kube.client.AioKube`.

    Raises:
        CredentialsError: without a configured API server or credentials.

    """
    configuration = Configuration(trace_configs=[_tracing(clock)])
    try:
        if kubeconfig is None and "KUBERNETES_SERVICE_HOST" in os.environ:
            load_incluster_config(configuration)  # type: ignore[no-untyped-call]
        else:
            await load_kube_config(kubeconfig, context, configuration, persist_config=False)  # type: ignore[no-untyped-call]
        return ApiClient(configuration)
    except (ConfigException, OSError) as error:
        # The library quotes whole entries, including keys.
        words = re.sub(r"\{.*\}", "...", str(error), flags=re.DOTALL)
    except (AttributeError, KeyError, TypeError, ValueError):
        words = "the kubeconfig is invalid; check it with `kubectl config view`"
    # Without the cause, whose message would be shown too.
    raise CredentialsError("find an API server", f"{words}; set KUBECONFIG, or run in a pod") from None
