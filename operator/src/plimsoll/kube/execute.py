"""Doing what was decided. Every action may be repeated: a later pass finds done what an earlier one did.

What stands under the name of an object to be created has to be the run's own: strangers' objects are never adopted.
"""

import asyncio
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby

from plimsoll.kube.errors import ConflictError, TakenError
from plimsoll.kube.keyring import check_secret, copy_keyring
from plimsoll.kube.port import Kind, Kube, Object
from plimsoll.kube.retry import persist
from plimsoll.lifecycle.actions import Action, CheckSecret, CopyKeyring, Create, CreateSecret, Delete
from plimsoll.lifecycle.children import label
from plimsoll.lifecycle.naming import LABEL_RUN_UID
from plimsoll.lifecycle.ownership import is_departing, is_what_was_made

CONCURRENCY = 8
"""Requests at a time: a run of 500 clients is made in seconds, and the API server serves others meanwhile."""

_RETRY_SECONDS = 20.0

MakeSecret = Callable[[int | None], Mapping[str, bytes]]
"""Return a new session secret, key -> content, with tokens for so many clients or one for all."""


async def execute(
    actions: Sequence[Action], kube: Kube, *, make_secret: MakeSecret, retry_seconds: float = _RETRY_SECONDS
) -> None:
    """Perform actions, a few at a time. Runs of one type are waited for before the next type is begun.

    So a Secret is there before what comes after it in the given order, and creations never mix with deletions.

    Raises:
        ApiError: naming the object, at the first failure that does not pass; the actions after it were not begun.

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
        # They are of one outage or one refusal: the first says it.
        raise failures.exceptions[0] from None


async def _work(waiting: Iterator[Action], kube: Kube, make_secret: MakeSecret, retry_seconds: float) -> None:
    for action in waiting:
        await persist(partial(_perform, action, kube, make_secret), seconds=retry_seconds)


async def _create(obj: Object, kube: Kube) -> None:
    """Create an object; one that is there is kept if it is of the same run, and refused if it is not.

    Raises:
        TakenError: naming the stranger's object.

    """
    if await kube.create(obj):
        return
    kind, metadata = Kind.of(obj), obj["metadata"]
    name, namespace, uid = metadata["name"], metadata.get("namespace"), label(obj, LABEL_RUN_UID)
    found = await kube.get(kind, name, namespace)
    asked = f"create {kind.kind} {f'{namespace}/{name}' if namespace else name}"
    if found is None:
        raise ConflictError(asked, "one of that name was there and is gone")
    if uid and not is_what_was_made(found, obj):
        words = f"{kind.kind} {name} is there already and is not this run's"
        raise TakenError(asked, words, departing=is_departing(found))


async def _perform(action: Action, kube: Kube, make_secret: MakeSecret) -> None:
    match action:
        case Create(obj=obj):
            await _create(obj, kube)
        case CreateSecret(obj=obj, clients=clients):
            # One that is there cannot be looked at. Its name, of which the UID is a part, says whose it is.
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
