"""The helper that runs kube-burner. Its one request is `POST /burn` with the token of a run's client.

It runs one order at a time: two would measure each other. Nothing that kube-burner creates outlives its order: the
namespaces are deleted when it ends, when its client is gone, and when the helper starts.
"""

import asyncio
import json
import logging
import ssl
import tempfile
import time
from base64 import b64decode, b64encode
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar
from uuid import uuid4

from aiohttp import web

from plimsoll.agent import process
from plimsoll.conductor.secret import new_certificate, server_context, write_secret
from plimsoll.helpers.authority import BURNING, Limits, class_refusal, namespace_of
from plimsoll.helpers.server import RefusedError, Username, authorized_user, read_body, refuse
from plimsoll.kube.port import ApiError, Kind, Kube, Object
from plimsoll.lifecycle.children import last_seen
from plimsoll.net.listener import Listener
from plimsoll.protocol import helpers as protocol
from plimsoll.protocol.assignment import CERTIFICATE_FILE, KEY_FILE
from plimsoll.tools import kube_burner
from plimsoll.tools.base import Command, Output

_KINDS = ("Namespace", "PersistentVolumeClaim", "PersistentVolume", "Pod", "Event", "Secret", "ConfigMap")
_NAMESPACE, _CLAIM, _VOLUME, _POD, _EVENT, _SECRET, _CONFIG_MAP = (Kind(api_version="v1", kind=it) for it in _KINDS)
_CLASS = Kind(api_version="storage.k8s.io/v1", kind="StorageClass")

_POLL_SECONDS = 1.0
_MAX_PROBLEMS = 10
_MAX_CHARACTERS = 300
_MAX_LOG_CHARACTERS = 1000
_GRACE_SECONDS = 60
_PART_BYTES = 2**16
_RETAINED = "is kept by its reclaim policy"
_DAYS = 3650  # clients trust this certificate alone; deleting the Secret replaces it
T = TypeVar("T")

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Namespaces:
    """All namespaces with certain labels, or only those called `base`, or `base` and a number."""

    api: Kube
    labels: Mapping[str, str]
    base: str = field(default="", kw_only=True)
    poll_seconds: float = field(default=_POLL_SECONDS, kw_only=True)

    async def names(self) -> list[str]:
        return [namespace["metadata"]["name"] for namespace in await self._existing()]

    async def problems(self) -> list[str]:
        """Return why PVCs are not bound and pods not ready, according to their newest events."""
        problems: list[str] = []
        for name in await self.names():
            waiting = [obj for obj in await self.api.list(_CLAIM, namespace=name) if _phase(obj) != "Bound"]
            waiting += [obj for obj in await self.api.list(_POD, namespace=name) if not kube_burner.is_ready(obj)]
            events = await self.api.list(_EVENT, namespace=name) if waiting else ()
            for obj in waiting:
                uid = obj["metadata"]["uid"]
                about = [event for event in events if event.get("involvedObject", {}).get("uid") == uid]
                newest = max(about, key=last_seen, default=None)
                words = f": {' '.join(str(newest.get('message', '')).split())[:_MAX_CHARACTERS]}" if newest else ""
                problems.append(f"{obj['kind']} {obj['metadata']['name']} is {_phase(obj) or 'new'}{words}")
            if len(problems) >= _MAX_PROBLEMS:
                break
        return problems[:_MAX_PROBLEMS]

    async def started(self) -> tuple[str, str]:
        """Return the content of PODS_FILE, and what could not be read, and why; both may be empty."""
        pods, events, which = list[Object](), list[Object](), ""
        try:
            names = [obj["metadata"]["name"] for obj in await self._existing() if not kube_burner.is_going(obj)]
            for number, name in enumerate(names):
                which = f" in {len(names) - number} of {len(names)} namespaces"
                found = await self.api.list(_POD, namespace=name)
                events += await self.api.list(_EVENT, namespace=name, fields={"reason": kube_burner.STARTED})
                pods += found
        except ApiError as error:
            # Later requests would share the failure.
            return kube_burner.pods_text(pods, events), f"when pods started is unknown{which}: {error}"
        return kube_burner.pods_text(pods, events), ""

    async def remove(self, *, limit_seconds: float) -> list[str]:
        """Delete them and wait until they and their volumes are gone; return what is left after the limit."""
        deadline = time.monotonic() + limit_seconds
        removed: set[str] = set()
        while left := await self._remove_once(removed):
            # Nothing will delete a volume whose reclaim policy is Retain.
            if time.monotonic() > deadline or all(text.endswith(_RETAINED) for text in left):
                return left
            await asyncio.sleep(self.poll_seconds)
        return []

    async def _remove_once(self, removed: set[str]) -> list[str]:
        try:
            namespaces = await self._existing()
            for obj in namespaces:
                removed.add(obj["metadata"]["name"])
                if not kube_burner.is_going(obj):
                    await self.api.delete(_NAMESPACE, obj["metadata"]["name"], uid=obj["metadata"]["uid"])
            if namespaces:
                return [f"namespace {obj['metadata']['name']}{_blocker(obj)}" for obj in namespaces]
            volumes = await self.api.list(_VOLUME) if removed else ()
            return [
                f"PersistentVolume {obj['metadata']['name']}{suffix}"
                for obj in volumes
                if (obj.get("spec", {}).get("claimRef") or {}).get("namespace") in removed
                for suffix in (f" {_RETAINED}" if obj["spec"].get("persistentVolumeReclaimPolicy") == "Retain" else "",)
            ]
        except ApiError as error:
            return [str(error)]

    async def _existing(self) -> Sequence[Object]:
        found = await self.api.list(_NAMESPACE, labels=self.labels)
        if not self.base:
            return found
        return [obj for obj in found if f"{obj['metadata']['name']}-".startswith(f"{self.base}-")]


def _blocker(namespace: Object) -> str:
    """Return why a namespace is not gone, in the words of its conditions, in parentheses; empty if they say nothing."""
    conditions = namespace.get("status", {}).get("conditions") or ()
    message = next((condition.get("message", "") for condition in conditions if condition.get("status") == "True"), "")
    return f" ({message[:_MAX_CHARACTERS]})" if message else ""


def _phase(obj: Object) -> str:
    return str(obj.get("status", {}).get("phase", ""))


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """What a helper works with."""

    namespace: str  # the helper's own
    program: str  # kube-burner
    pod_image: str  # of the pods that kube-burner creates
    directory: Path  # for kube-burner's files
    username: Username
    api: Kube  # with the helper's rights
    beat_seconds: float = protocol.BEAT_SECONDS  # between two lines of an answer
    poll_seconds: float = 1.0  # between two looks at a removal
    clean_seconds: float = 900.0  # limit of a removal; the rest is removed after the next order
    send_seconds: float = protocol.SILENCE_SECONDS  # in which a client has to read a part of its answer


class Helper:
    """Runs kube-burner. `know` is called with each connection that has authenticated, and the namespace of its user."""

    def __init__(self, means: Means, limits: Limits, *, know: Callable[[web.RequestHandler, str], None]) -> None:
        self._means = means
        self._limits = limits
        self._know = know
        self._own = {protocol.LABEL_HELPER: means.namespace}
        self._turn = asyncio.Lock()
        self._served = ""
        self._refused: dict[str, float] = {}

    def application(self) -> web.Application:
        application = web.Application(client_max_size=protocol.MAX_BURN_REQUEST_BYTES)
        application.router.add_post(protocol.BURN_PATH, self._answer)
        return application

    async def clean(self) -> list[str]:
        """Remove the leftovers of an earlier process of the helper; return what remains."""
        async with self._turn:
            return await self._remove_all()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        try:
            namespace, order = await self._accepted(request)
        except RefusedError as refused:
            return refuse(refused)
        response = web.StreamResponse()
        async with self._turn:
            await response.prepare(request)
            line = await self._serve(response, namespace, order)
        # The turn is over: a client that does not read its answer must not keep it.
        if line:
            await self._send_last(request, response, line)
        return response

    async def _accepted(self, request: web.Request) -> tuple[str, protocol.BurnOrder]:
        """Return an order whose turn it is, and the namespace of its client."""
        user = await authorized_user(request, self._means.username, BURNING, self._limits.allowed)
        namespace = namespace_of(user) or ""
        self._know(request.protocol, namespace)
        order = await read_body(request, protocol.BurnOrder)
        limits = self._limits
        problem = protocol.excess_of(
            order.parameters.limited,
            max_objects=limits.max_objects,
            max_qps=limits.max_qps,
            max_volume_size=limits.max_volume_size,
        )
        if not problem:
            try:
                classes = await self._means.api.list(_CLASS, fields={"metadata.name": order.storage_class})
            except ApiError as error:
                raise RefusedError(503, f"the StorageClass could not be read: {error}") from error
            problem = class_refusal(next(iter(classes), None), order, namespace)
        if problem:
            raise RefusedError(403, problem)
        # Not while another order is in progress, and not in the turn of another namespace that waits.
        now = time.monotonic()
        waiting = {name for name, since in self._refused.items() if now - since < 2 * protocol.RETRY_SECONDS}
        if self._turn.locked() or (waiting - {namespace} and namespace == self._served):
            self._refused[namespace] = now
            raise RefusedError(429, "kube-burner runs for another run, or what it created is being removed")
        self._refused.pop(namespace, None)
        self._served = namespace
        return namespace, order

    async def _serve(self, response: web.StreamResponse, namespace: str, order: protocol.BurnOrder) -> bytes:
        """Run an order while its client listens, and remove everything; return the last line, if there is one."""
        labels = {**self._own, protocol.LABEL_RUN_UID: order.run_uid, protocol.LABEL_RUN_NAMESPACE: namespace}
        _log.info("a run in namespace %s orders %s", namespace, order.parameters.label())
        is_clean = False
        try:
            earlier = await self._beating(response, self._left_before())
            outcome = await self._beating(response, self._burn(order, labels))
            left = await self._beating(response, self._remove_all())
            is_clean = True
            texts = [("still being removed when kube-burner started", earlier), ("not removed", left)]
            stderr = _with_errors(outcome.stderr, [f"{what}: {'; '.join(names)}" for what, names in texts if names])
            return outcome.model_copy(update={"stderr": stderr}).model_dump_json().encode() + b"\n"
        except ConnectionError:
            _log.warning("the client in namespace %s is gone", namespace)
            return b""
        finally:
            if not is_clean:
                await asyncio.shield(self._remove_all())

    async def _send_last(self, request: web.Request, response: web.StreamResponse, line: bytes) -> None:
        try:
            async with asyncio.timeout(self._means.send_seconds):
                # In parts: a TLS connection takes any text at once, and only then tells that the client does not read.
                for start in range(0, len(line), _PART_BYTES):
                    await response.write(line[start : start + _PART_BYTES])
                await response.write_eof()
        except (ConnectionError, TimeoutError) as error:
            _log.warning("a client did not read its answer: %s", type(error).__name__)
            if request.transport is not None:
                request.transport.abort()

    async def _beating(self, response: web.StreamResponse, work: Awaitable[T]) -> T:
        """Send empty lines until the work is done. ConnectionError: the client is gone, and the work ends."""
        task = asyncio.ensure_future(work)
        try:
            while not task.done():
                await asyncio.wait({task}, timeout=self._means.beat_seconds)
                await response.write(b"\n")
            return await task
        finally:
            task.cancel()
            await asyncio.wait({task})

    async def _burn(self, order: protocol.BurnOrder, labels: Mapping[str, str]) -> protocol.BurnOutcome:
        uuid = str(uuid4())
        place = kube_burner.Place(
            namespace=f"{protocol.namespace_base(labels[protocol.LABEL_RUN_NAMESPACE], order.run_uid)}{uuid[:4]}",
            storage_class=order.storage_class,
            pod_image=self._means.pod_image,
            labels=labels,
        )
        with tempfile.TemporaryDirectory(dir=self._means.directory) as name:
            directory = Path(name)
            for file, text in kube_burner.files_of(order.parameters, place).items():
                (directory / file).write_text(text)
            seconds = order.parameters.limit_seconds
            argv = (
                self._means.program,
                "init",
                f"--config={kube_burner.CONFIG_FILE}",
                f"--uuid={uuid}",
                f"--timeout={seconds}s",
            )
            try:
                command, limit = Command(argv=argv), seconds + _GRACE_SECONDS
                output = await process.run(command, directory=directory, limit_seconds=limit)
            except process.OverdueError as error:
                output = Output(exit_code=-9, stdout="", stderr=f"kube-burner {error}", files={})
            collected = directory / kube_burner.COLLECTED
            # None if kube-burner did not get that far.
            paths = sorted(collected.iterdir()) if collected.is_dir() else []
            files = {path.name: path.read_text(errors="replace") for path in paths if path.is_file()}
        namespaces = Namespaces(self._means.api, labels, base=place.namespace)
        started, lost = await namespaces.started() if order.parameters.pods else ("", "")
        if lost:
            _log.warning("%s", lost)
        try:
            problems = await namespaces.problems()
        except ApiError as error:
            problems = [f"why objects are not ready is unknown: {error}"]
        looked = {kube_burner.PODS_FILE: started, kube_burner.PROBLEMS_FILE: "\n".join(problems)}
        return protocol.BurnOutcome(
            exit_code=output.exit_code,
            stdout=output.stdout,
            stderr=_with_errors(output.stderr, [lost]),
            files={**files, **{name: text for name, text in looked.items() if text}},
        )

    async def _left_before(self) -> list[str]:
        """Return the namespaces that could not be removed in time, and may disturb the next order."""
        try:
            return await Namespaces(self._means.api, self._own).names()
        except ApiError as error:
            return [str(error)]

    async def _remove_all(self) -> list[str]:
        namespaces = Namespaces(self._means.api, self._own, poll_seconds=self._means.poll_seconds)
        left = await namespaces.remove(limit_seconds=self._means.clean_seconds)
        if left:
            _log.error("not removed: %s", "; ".join(left))
        return left


def knower(listener: Listener) -> Callable[[web.RequestHandler, str], None]:
    """Return a function that keeps a connection, and closes only older ones of the same namespace for it."""
    numbers: dict[str, int] = {}

    def know(connection: web.RequestHandler, namespace: str) -> None:
        listener.know(connection, numbers.setdefault(namespace, len(numbers)))

    return know


def _with_errors(stderr: str, messages: Iterable[str]) -> str:
    """Return kube-burner's log with further errors, in its format; empty messages are none."""
    lines = [f"level=error msg={json.dumps(message[:_MAX_LOG_CHARACTERS])}\n" for message in messages if message]
    separator = "\n" if lines and stderr and not stderr.endswith("\n") else ""
    return f"{stderr}{separator}{''.join(lines)}"


async def identity(kube: Kube, namespace: str, directory: Path) -> ssl.SSLContext:
    """Return the TLS context of the helper in a namespace, after its certificate is published there.

    A Secret keeps it; `directory` gets a copy. Raises ApiError, and ValueError if the Secret is damaged.
    """
    stored = await kube.get(_SECRET, protocol.BURNER_CERTIFICATE, namespace)
    if stored is None:
        new, key = new_certificate(days=_DAYS)
        encoded = {CERTIFICATE_FILE: b64encode(new).decode(), KEY_FILE: b64encode(key).decode()}
        made = _object(_SECRET, namespace, type="Opaque", data=encoded)
        # False if an earlier process of the helper, which is ending, has made it meanwhile.
        stored = made if await kube.create(made) else await kube.get(_SECRET, protocol.BURNER_CERTIFICATE, namespace)
    data = (stored or {}).get("data") or {}
    missing = [name for name in (CERTIFICATE_FILE, KEY_FILE) if name not in data]
    if missing:
        raise ValueError(f"Secret {namespace}/{protocol.BURNER_CERTIFICATE} has no {', '.join(missing)}; delete it")
    secret = {name: b64decode(data[name]) for name in (CERTIFICATE_FILE, KEY_FILE)}
    write_secret(directory, secret)
    certificate = {CERTIFICATE_FILE: secret[CERTIFICATE_FILE].decode()}
    published = await kube.get(_CONFIG_MAP, protocol.BURNER_CERTIFICATE, namespace)
    if published is None:
        await kube.create(_object(_CONFIG_MAP, namespace, data=certificate))
    elif published.get("data") != certificate:
        await kube.patch(_CONFIG_MAP, protocol.BURNER_CERTIFICATE, namespace, {"data": certificate})
    return server_context(directory)


def _object(kind: Kind, namespace: str, **content: object) -> Object:
    metadata = {"name": protocol.BURNER_CERTIFICATE, "namespace": namespace}
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, **content}
