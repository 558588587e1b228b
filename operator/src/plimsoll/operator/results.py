"""The metrics of results, kept up to date without kopf.

kopf would list all results in full at every start: thousands of up to 256 KiB each.
"""

import asyncio
import logging
from collections.abc import Sequence
from typing import NoReturn

from plimsoll.kube.errors import ApiError
from plimsoll.kube.port import Kube, Object
from plimsoll.metrics.results import ResultRecord, UnreadableError, record_of
from plimsoll.operator.gather import RESULT, RESULTS_PAGE_SIZE, Digests

_PAUSE_SECONDS = 1.0
_PAUSE_AFTER_ERROR_SECONDS = 10.0

_log = logging.getLogger(__name__)


class KnownResults:
    """The metrics of the results in some namespaces, or in all."""

    def __init__(self, namespaces: Sequence[str] = ()) -> None:
        """Start empty; without `namespaces`, watch all of them."""
        self._digests: dict[str | None, Digests[tuple[ResultRecord | None, ...]]] = {
            namespace: Digests(RESULT, _records, page_size=RESULTS_PAGE_SIZE) for namespace in namespaces or (None,)
        }

    def records(self) -> list[ResultRecord | None]:
        """Return the record of each result with a verdict; None for one that cannot be read."""
        return [record for digests in self._digests.values() for records in digests for record in records]

    async def follow(self, kube: Kube, *, pause: float = _PAUSE_SECONDS) -> None:
        """Watch the results forever."""
        async with asyncio.TaskGroup() as group:
            for namespace, digests in self._digests.items():
                group.create_task(_follow(kube, namespace, digests, pause))


async def _follow(
    kube: Kube, namespace: str | None, digests: Digests[tuple[ResultRecord | None, ...]], pause: float
) -> NoReturn:
    while True:
        try:
            await digests.follow(kube, namespace=namespace)
        except ApiError as error:
            _log.warning("API request failed, the metrics of results are outdated: %s", error)
            await asyncio.sleep(_PAUSE_AFTER_ERROR_SECONDS)
        await asyncio.sleep(pause)


def _records(obj: Object) -> tuple[ResultRecord | None, ...]:
    try:
        record = record_of(obj)
    except UnreadableError as error:
        place = f"{obj['metadata']['namespace']}/{obj['metadata']['name']}"
        _log.warning("no metrics of result %s, which this version cannot read: %s", place, error)
        return (None,)
    return () if record is None else (record,)
