"""What Prometheus is told of results, kept up to date.

Not by kopf, which would list all of them as a whole, thousands of 256 KiB each, at every start.
"""

import asyncio
import logging
from collections.abc import Sequence
from typing import NoReturn

from plimsoll.kube.digests import RESULT, RESULTS_PAGE_SIZE, Digests
from plimsoll.kube.errors import ApiError
from plimsoll.kube.port import Kube, Object
from plimsoll.metrics.document import UnreadableError
from plimsoll.metrics.results import ResultRecord, record_of

_PAUSE_SECONDS = 1.0
_PAUSE_AFTER_ERROR_SECONDS = 10.0

_log = logging.getLogger(__name__)


class KnownResults:
    """What Prometheus is told of the results of some namespaces, or of all."""

    def __init__(self, namespaces: Sequence[str] = ()) -> None:
        """Know nothing yet; without `namespaces` all are followed."""
        self._digests: dict[str | None, Digests[tuple[ResultRecord | None, ...]]] = {
            namespace: Digests(RESULT, _records, page_size=RESULTS_PAGE_SIZE) for namespace in namespaces or (None,)
        }

    def records(self) -> list[ResultRecord | None]:
        """Return the record of each result that has a verdict; None stands for one that cannot be read."""
        return [record for digests in self._digests.values() for records in digests for record in records]

    async def follow(self, kube: Kube, *, pause: float = _PAUSE_SECONDS) -> None:
        """Keep up with what is there for ever."""
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
            _log.warning("metrics of results are not up to date: %s", error)
            await asyncio.sleep(_PAUSE_AFTER_ERROR_SECONDS)
        await asyncio.sleep(pause)


def _records(obj: Object) -> tuple[ResultRecord | None, ...]:
    """Return what Prometheus is told of a result; nothing before anything is measured."""
    try:
        record = record_of(obj)
    except UnreadableError as error:
        place = f"{obj['metadata']['namespace']}/{obj['metadata']['name']}"
        _log.warning("Prometheus is not told of result %s, which this operator cannot read: %s", place, error)
        return (None,)
    return () if record is None else (record,)
