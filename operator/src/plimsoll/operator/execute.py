"""Performs actions. Every action is idempotent.

An existing object with the name of one to be created must belong to the run: other owners' objects are never adopted.
"""

import asyncio
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby

from plimsoll.ceph.document import KEYRING_FILE, keyring
from plimsoll.kube.errors import ConflictError, ForbiddenError, persist
from plimsoll.kube.port import Kind, Kube, Object
from plimsoll.lifecycle.children import belongs_to_same_run, is_departing, label
from plimsoll.lifecycle.decision import Action, CheckSecret, CopyKeyring, Create, CreateSecret, Delete
from plimsoll.lifecycle.naming import ALLOW_BENCHMARKS, LABEL_RUN_UID
from plimsoll.operator.loop import KeyringError, KeyringRefusedError, TakenError

_SECRET = Kind(api_version="v1", kind="Secret")


async def copy_keyring(action: CopyKeyring, kube: Kube) -> None:
    """Create the Secret; keep an existing one: its name contains a digest of the run's UID, so it is the run's.

    Raises:
        KeyringError: if the key is missing, or not annotated as being for benchmarks.
        ForbiddenError: naming the missing permission.

    """
    asked = f"copy the key of client.{action.user} from Secret {action.namespace}/{action.secret}"
    found = await _get(kube, action.secret, action.namespace, asked)
    if action.is_keyring:
        _check_allowed(found, asked)
    text = _text(found, action, asked)
    content = text if action.is_keyring else keyring(action.user, text)
    await kube.create({**action.obj, "data": {KEYRING_FILE: b64encode(content.encode()).decode()}})


async def check_secret(action: CheckSecret, kube: Kube) -> None:
    """Check that a Secret exists and is annotated as being for benchmarks.

    Raises:
        KeyringError: if it does not exist, or has no such annotation.
        ForbiddenError: naming the missing permission.

    """
    asked = f"use Secret {action.namespace}/{action.secret}"
    _check_allowed(await _get(kube, action.secret, action.namespace, asked), asked)


async def _get(kube: Kube, name: str, namespace: str, asked: str) -> Object:
    try:
        found = await kube.get(_SECRET, name, namespace)
    except ForbiddenError as error:
        words = f"{error.reason}; bind a Role that may get this Secret to the operator's ServiceAccount"
        raise ForbiddenError(asked, words) from error
    if found is None:
        raise KeyringError(asked, "the Secret does not exist")
    return found


def _check_allowed(secret: Object, asked: str) -> None:
    """Check the annotation: users who may create runs must not get access to other Secrets."""
    annotations = secret["metadata"].get("annotations") or {}
    if annotations.get(ALLOW_BENCHMARKS) != "true":
        raise KeyringRefusedError(asked, f'it has no annotation {ALLOW_BENCHMARKS}: "true"')


def _text(found: Object, action: CopyKeyring, asked: str) -> str:
    """Return the content of the field, which no error message quotes."""
    encoded = (found.get("data") or {}).get(action.field)
    if not encoded:
        raise KeyringError(asked, f"it has no field {action.field}")
    try:
        text = b64decode(encoded).decode().strip()
    except (Base64Error, UnicodeDecodeError):
        raise KeyringError(asked, f"its field {action.field} is not text") from None
    if action.is_keyring and f"[client.{action.user}]" not in text:
        words = f"its field {action.field} is not a keyring file with a section [client.{action.user}]"
        raise KeyringError(asked, words)
    return f"{text}\n" if action.is_keyring else text


CONCURRENCY = 8
"""Concurrent requests: enough to create a run of 500 clients in seconds without overloading the API server."""

_RETRY_SECONDS = 20.0

MakeSecret = Callable[[int], Mapping[str, bytes]]
"""Return a new session secret, key -> content, with tokens for that many clients."""


async def execute(
    actions: Sequence[Action], kube: Kube, *, make_secret: MakeSecret, retry_seconds: float = _RETRY_SECONDS
) -> None:
    """Perform actions, a few at a time. Consecutive actions of one type finish before the next type starts.

    So a Secret exists before what follows it in the given order, and creations never mix with deletions.

    Raises:
        ApiError: naming the object, at the first failure that retries do not fix; later actions were not started.

    """
    for _, group in groupby(actions, key=type):
        await _perform_all(list(group), kube, make_secret, retry_seconds)


async def _perform_all(actions: Sequence[Action], kube: Kube, make_secret: MakeSecret, retry_seconds: float) -> None:
    waiting = iter(actions)
    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(min(CONCURRENCY, len(actions))):
                group.create_task(_work(waiting, kube, make_secret, retry_seconds))
    except ExceptionGroup as failures:
        # They have one cause, an outage or a refusal: the first one names it.
        raise failures.exceptions[0] from None


async def _work(waiting: Iterator[Action], kube: Kube, make_secret: MakeSecret, retry_seconds: float) -> None:
    for action in waiting:
        await persist(partial(_perform, action, kube, make_secret), seconds=retry_seconds)


async def _create(obj: Object, kube: Kube) -> None:
    """Create an object; keep an existing one of the same run.

    Raises:
        TakenError: if an existing one does not belong to the run.

    """
    if await kube.create(obj):
        return
    kind, metadata = Kind.of(obj), obj["metadata"]
    name, namespace, uid = metadata["name"], metadata.get("namespace"), label(obj, LABEL_RUN_UID)
    found = await kube.get(kind, name, namespace)
    asked = f"create {kind.kind} {f'{namespace}/{name}' if namespace else name}"
    if found is None:
        raise ConflictError(asked, "an object of that name existed and was deleted meanwhile")
    if uid and not belongs_to_same_run(found, obj):
        words = f"{kind.kind} {name} exists and does not belong to this run"
        raise TakenError(asked, words, departing=is_departing(found))


async def _perform(action: Action, kube: Kube, make_secret: MakeSecret) -> None:
    match action:
        case Create(obj=obj):
            await _create(obj, kube)
        case CreateSecret(obj=obj, clients=clients):
            # The operator cannot read an existing one. Its name contains a digest of the UID, so it is the run's.
            data = {key: b64encode(content).decode() for key, content in make_secret(clients).items()}
            await kube.create({**obj, "data": data})
        case CopyKeyring():
            await copy_keyring(action, kube)
        case CheckSecret():
            await check_secret(action, kube)
        case Delete():
            await kube.delete(
                Kind(api_version=action.api_version, kind=action.kind),
                action.name,
                action.namespace or None,
                uid=action.uid,
                foreground=action.foreground,
            )
