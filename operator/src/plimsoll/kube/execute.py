"""Doing what was decided. Every action may be repeated: a later pass finds done what an earlier one did."""

import asyncio
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby

from plimsoll.kube.port import Kind, Kube
from plimsoll.kube.retry import persist
from plimsoll.lifecycle.actions import Action, Create, CreateSecret, Delete

CONCURRENCY = 8
"""Requests at a time: a run of 500 clients is made in seconds, and the API server serves others meanwhile."""

_RETRY_SECONDS = 20.0

MakeSecret = Callable[[], Mapping[str, bytes]]
"""Return a new session secret: key -> content."""


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


async def _perform(action: Action, kube: Kube, make_secret: MakeSecret) -> None:
    match action:
        case Create(obj=obj):
            await kube.create(obj)
        case CreateSecret(obj=obj):
            data = {key: b64encode(content).decode() for key, content in make_secret().items()}
            await kube.create({**obj, "data": data})
        case Delete():
            await kube.delete(
                Kind(api_version=action.api_version, kind=action.kind),
                action.name,
                action.namespace or None,
                uid=action.uid,
                foreground=action.foreground,
            )
