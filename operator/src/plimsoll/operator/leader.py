"""Leadership: takes the Lease, keeps it, releases it; and ends the process once it no longer has it."""

import asyncio
import logging
import os
import random
import re
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from secrets import token_hex
from typing import NoReturn

from plimsoll.kube.port import ApiError, ConflictError, ForbiddenError, Kind, Kube, NotFoundError, Object
from plimsoll.operator.lease import Sighting, Spec, Terms, renewed, seconds_to_wait, sight, taken
from plimsoll.operator.loop import in_background, wait_for_first

LEASE = Kind(api_version="coordination.k8s.io/v1", kind="Lease")

_JITTER = 0.2  # of the pause, so that operators that wait do not ask at the same moment
_RELEASE_SECONDS = 5.0
_SHORTEST_SECONDS = 1

_log = logging.getLogger(__name__)


class LeaseSettingError(ValueError):
    """A setting of the Lease is invalid; the message names the variable and the remedy."""


def lease_of(environment: Mapping[str, str]) -> tuple[str, str, Terms] | None:
    """Return namespace, name and terms of the Lease; None if there is none. LeaseSettingError: invalid variable."""
    place, seconds = environment.get("PLIMSOLL_LEASE", ""), environment.get("PLIMSOLL_LEASE_SECONDS", "") or "15"
    if not seconds.isdecimal() or int(seconds) < _SHORTEST_SECONDS:
        raise LeaseSettingError(f"PLIMSOLL_LEASE_SECONDS is {seconds!r}: write whole seconds, 1 or more")
    if not place:
        return None
    if not re.fullmatch(r"[-a-z0-9]+/[-.a-z0-9]+", place):
        raise LeaseSettingError(f"PLIMSOLL_LEASE is {place!r}: write namespace/name of the Lease")
    namespace, _, name = place.partition("/")
    return namespace, name, Terms(float(seconds))


def new_identity(environment: Mapping[str, str]) -> str:
    """Return an identity that no other process has, including earlier ones of this pod."""
    return f"{environment.get('POD_NAME') or socket.gethostname()}_{token_hex(4)}"


def exit_at_once(reason: str) -> NoReturn:
    """End the process without any further request: another operator may lead already."""
    _log.critical("%s; the operator exits at once", reason)
    os._exit(1)


class Leadership:
    """The leadership of this process. Its requests for the Lease are not guarded; all others call `check` first."""

    def __init__(
        self,
        kube: Kube,
        namespace: str,
        name: str,
        terms: Terms,
        *,
        identity: str,
        monotonic: Callable[[], float] = time.monotonic,
        lose: Callable[[str], object] = exit_at_once,
    ) -> None:
        """Prepare to wait for the Lease with that name. `lose` ends the process."""
        self.leads = False  # whether this process has ever held the Lease, and has not released it
        self._kube = kube
        self._namespace, self._name, self._place = namespace, name, f"{namespace}/{name}"
        self._terms = terms
        self._identity = identity
        self._monotonic = monotonic
        self._lose = lose
        self._sighting: Sighting | None = None
        self._version = ""
        self._deadline = float("-inf")  # until then this process leads
        self._answered_at = float("-inf")
        self._warning = ""

    @property
    def sees_lease(self) -> bool:
        """Whether the API server has answered lately, so that this process would take a free Lease."""
        return self._monotonic() < self._answered_at + self._terms.seconds

    def check(self) -> None:
        """End the process if it no longer leads. Called before every request."""
        if self._monotonic() >= self._deadline:
            self._lose(f"Lease {self._place} was not renewed for {self._terms.lead_seconds:.0f} s")

    async def acquire(self, stop: asyncio.Event) -> bool:
        while not stop.is_set():
            if await self._try(self._take):
                self.leads = True
                _log.info("Lease %s is taken: this operator leads as %s", self._place, self._identity)
                return True
            pause = self._terms.pause_seconds * (1 + _JITTER * random.random())  # noqa: S311 - no secret
            await wait_for_first(pause, stop.wait())
        return False

    @asynccontextmanager
    async def kept(self) -> AsyncIterator[None]:

        def ended(error: BaseException | None) -> None:
            self._lose(f"the task that renews Lease {self._place} ended: {error!r}")

        try:
            async with in_background(self._keep(), "lease", ended):
                yield
        finally:
            await self._release()

    async def _keep(self) -> NoReturn:
        while True:
            await asyncio.sleep(min(self._terms.pause_seconds, max(0.0, self._deadline - self._monotonic())))
            self.check()
            await self._try(self._renew)

    async def _try(self, request: Callable[[], Awaitable[bool]]) -> bool:
        """Take or renew the Lease, and lead from the beginning of the request on; return false if that failed."""
        begun = self._monotonic()
        try:
            # Half of the time, so that a connection that is dead leaves time for another one.
            async with asyncio.timeout(self._terms.lead_seconds / 2):
                is_held = await request()
        except ConflictError as error:
            self._log_once(logging.INFO, f"{error}; somebody else has changed it")
            return False
        except (ApiError, TimeoutError) as error:
            remedy = ""
            if isinstance(error, ForbiddenError):
                rights = f"create leases, and get and patch Lease {self._name}, in namespace {self._namespace}"
                remedy = f"; bind a Role that may {rights} to the operator's ServiceAccount"
            self._log_once(logging.WARNING, f"{str(error) or 'the API server does not respond'}{remedy}")
            return False
        if is_held:
            self._deadline = begun + self._terms.lead_seconds
            self._warning = ""
        return is_held

    def _log_once(self, level: int, message: str) -> None:
        if message != self._warning:
            waits = "it keeps trying" if self.leads else "this operator waits"
            _log.log(level, "Lease %s: %s; %s", self._place, message, waits)
        self._warning = message

    async def _get(self) -> Object | None:
        lease = await self._kube.get(LEASE, self._name, self._namespace)
        self._answered_at = self._monotonic()
        if lease is not None:
            self._version = lease["metadata"]["resourceVersion"]
        return lease

    async def _take(self) -> bool:
        lease = await self._get()
        self._sighting = sight(lease, self._sighting, self._monotonic())
        if seconds_to_wait(self._sighting, self._identity, self._terms, self._monotonic()):
            self._log_once(logging.INFO, f"{self._sighting.holder} leads")
            return False
        if lease is None:
            metadata = {"name": self._name, "namespace": self._namespace}
            await self._kube.create({"apiVersion": LEASE.api_version, "kind": LEASE.kind, "metadata": metadata})
            return await self._take()
        await self._patch(taken(self._sighting, self._identity, self._terms, datetime.now(UTC)))
        return True

    async def _renew(self) -> bool:
        spec = renewed(self._identity, datetime.now(UTC))
        try:
            await self._patch(spec)
        except (ConflictError, NotFoundError):
            lease = await self._get()
            holder = "" if lease is None else sight(lease, None, 0.0).holder
            if holder != self._identity:
                self._lose(f"Lease {self._place} {f'is held by {holder}' if holder else 'has no holder'}")
            await self._patch(spec)
        return True

    async def _patch(self, spec: Spec) -> None:
        change = {"metadata": {"resourceVersion": self._version}, "spec": spec}
        lease = await self._kube.patch(LEASE, self._name, self._namespace, change)
        self._version = lease["metadata"]["resourceVersion"]

    async def _release(self) -> None:
        self.leads, self._deadline = False, float("-inf")
        try:
            async with asyncio.timeout(_RELEASE_SECONDS):
                await self._patch(renewed(None, datetime.now(UTC)))
        except (ApiError, TimeoutError) as error:
            _log.warning("Lease %s is not released, so another operator waits until it expires: %s", self._place, error)
