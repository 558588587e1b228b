"""Which API server to use, and with which credentials."""

import os
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from types import SimpleNamespace
from urllib.parse import quote

import aiohttp
from kubernetes.aio.client import ApiClient, Configuration
from kubernetes.aio.config import ConfigException, load_incluster_config, load_kube_config

from plimsoll.kube.port import CredentialsError, InvalidError

_RESOLUTION_SECONDS = 1.0  # resolution of the `Date` header
_NO_NAMES = {"", ".", ".."}

Guard = Callable[[], object]  # called before a request is sent; the request raises the same errors


class ApiClock:
    """The API server's time, bounded by all answers; one that contradicts them shows that a clock was set."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._ahead: tuple[float, float] | None = None

    def read(self, date: str, asked: float, answered: float) -> None:
        """Read the `Date` of an answer, given the monotonic times of its request and its arrival."""
        try:
            server = parsedate_to_datetime(date).timestamp()
        except ValueError:
            return
        least, most = server - answered, server + _RESOLUTION_SECONDS - asked
        if self._ahead is not None and max(least, self._ahead[0]) <= min(most, self._ahead[1]):
            least, most = max(least, self._ahead[0]), min(most, self._ahead[1])
        self._ahead = least, most

    def now(self) -> datetime:
        """Return the API server's time; this machine's before the first answer."""
        if self._ahead is None:
            return datetime.now(UTC)
        return datetime.fromtimestamp(self._monotonic() + sum(self._ahead) / 2, UTC)


def guarding(guard: Guard) -> aiohttp.TraceConfig:
    """Return what makes a session call `guard` before each request, and again once that has a connection."""

    async def check(*_: object) -> None:
        guard()

    tracing = aiohttp.TraceConfig()
    for moment in (tracing.on_request_start, tracing.on_connection_create_end, tracing.on_connection_reuseconn):
        moment.append(check)
    return tracing


async def connect(
    kubeconfig: str | None, context: str | None, clock: ApiClock, guard: Guard | None = None
) -> ApiClient:
    """Return a connection; `clock` reads every answer. CredentialsError: no API server or credentials."""

    async def begin(_session: object, request: SimpleNamespace, _parameters: object) -> None:
        request.asked = time.monotonic()

    async def end(_session: object, request: SimpleNamespace, answer: aiohttp.TraceRequestEndParams) -> None:
        clock.read(answer.response.headers.get("Date", ""), request.asked, time.monotonic())

    tracing = aiohttp.TraceConfig()
    tracing.on_request_start.append(begin)
    tracing.on_request_end.append(end)
    configuration = Configuration(trace_configs=[tracing] if guard is None else [guarding(guard), tracing])
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """The paths of a kind. `root` is `/api/v1` or `/apis/<group>/<version>`."""

    root: str
    plural: str
    namespaced: bool

    def collection(self, namespace: str | None) -> str:
        inside = f"/namespaces/{quote(namespace, safe='')}" if self.namespaced and namespace else ""
        return f"{self.root}{inside}/{self.plural}"

    def single(self, name: str, namespace: str | None) -> str:
        """Return the path of one object. Raises InvalidError if the name or a required namespace is missing."""
        # In a path, `.` and `..` would lead to another object.
        if name in _NO_NAMES or (self.namespaced and (namespace or "") in _NO_NAMES):
            raise InvalidError(f"{self.plural} {namespace or ''}/{name}", "needs a name and a namespace")
        return f"{self.collection(namespace)}/{quote(name, safe='')}"
