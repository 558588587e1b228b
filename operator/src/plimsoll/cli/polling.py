"""Polling an object in a cluster until it has reached an end, with new connections after failures."""

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import click

from plimsoll.cli.source import InCluster, no_such_object
from plimsoll.kube.errors import ApiError, UnauthorizedError

if TYPE_CHECKING:
    from plimsoll.kube.client import AioKube

POLL_SECONDS = 2.0
SILENCE_SECONDS = 300.0
"""How long the API server may be unavailable before polling ends."""

Seen = TypeVar("Seen")
Shown_contra = TypeVar("Shown_contra", contravariant=True)


class Display(Protocol[Shown_contra]):
    """Shows an object."""

    def show(self, seen: Shown_contra, /) -> None:
        """Show the current state."""
        ...

    def trouble(self, problem: str, /) -> None:
        """Show why the object cannot be read now."""
        ...


class Polling(ABC, Generic[Seen]):
    """Polls one object."""

    def __init__(
        self,
        place: InCluster,
        view: Display[Seen],
        *,
        pause: float = POLL_SECONDS,
        silence: float = SILENCE_SECONDS,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """Poll an object every `pause` seconds, and tolerate `silence` seconds without an answer."""
        self._place = place
        self._view = view
        self._pause = pause
        self._silence = silence
        self._now = now
        self._uid: str | None = None
        self._answered_at = 0.0
        self._is_new_connection = True

    @abstractmethod
    async def _look(self, kube: "AioKube") -> Seen:
        """Return the current state."""

    @abstractmethod
    def _has_ended(self, seen: Seen) -> bool:
        """Whether polling is over."""

    async def to_the_end(self) -> Seen:
        """Return the last state.

        Raises:
            ApiError: if the cluster does not answer, or stops answering.
            click.ClickException: if the object does not exist, or was deleted.

        """
        while True:
            try:
                return await self._while_connected()
            except ApiError as error:
                # An API server that is starting may not know kinds or rights yet. A new connection replaces an expired
                # token; an error right after that is final.
                is_refused = self._is_new_connection and isinstance(error, UnauthorizedError)
                if self._uid is None or is_refused or self._now() - self._answered_at > self._silence:
                    raise
                self._view.trouble(str(error))
            await asyncio.sleep(self._pause)

    async def _while_connected(self) -> Seen:
        self._is_new_connection = True
        async with self._place.access.connect() as kube:
            while True:
                seen = await self._look(kube)
                self._answered_at = self._now()
                self._view.show(seen)
                self._is_new_connection = False
                if self._has_ended(seen):
                    return seen
                await asyncio.sleep(self._pause)

    async def _document(self, kube: "AioKube") -> dict[str, Any]:
        """Return the object.

        Raises:
            click.ClickException: if it does not exist, or is not the one that was there before.

        """
        place, word = self._place, self._place.word
        document = await kube.get(place.kind, place.name, place.namespace)
        if document is None:
            if self._uid is None:
                raise await no_such_object(kube, place)
            raise click.ClickException(f"{word} {place} was deleted before it ended")
        uid = str(document["metadata"]["uid"])
        if self._uid not in {None, uid}:
            message = f"{word} {place} was deleted, and another {word} with this name was created"
            raise click.ClickException(message)
        self._uid = uid
        return dict(document)
