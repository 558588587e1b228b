"""What Prometheus is told of results, kept up to date.

Not by kopf, which would list all of them as a whole, thousands of 256 KiB each, at every start.
"""

import asyncio
import logging
from itertools import chain
from typing import NoReturn

from plimsoll.kube.errors import ApiError
from plimsoll.kube.port import Kube, Object
from plimsoll.kube.results import Digests
from plimsoll.metrics.document import UnreadableError
from plimsoll.metrics.results import ResultRecord, record_of

_PAUSE_SECONDS = 1.0
_PAUSE_AFTER_ERROR_SECONDS = 10.0

_log = logging.getLogger(__name__)


class KnownResults:
    """What Prometheus is told of the results of a namespace, or of all."""

    def __init__(self, namespace: str | None = None) -> None:
        """Know nothing yet."""
        self._namespace = namespace
        self._digests = Digests(_records)

    def records(self) -> list[ResultRecord | None]:
        """Return the record of each result that has a verdict; None stands for one that cannot be read."""
        return [*chain.from_iterable(self._digests)]

    async def follow(self, kube: Kube, *, pause: float = _PAUSE_SECONDS) -> NoReturn:
        """Keep up with what is there for ever."""
        while True:
            try:
                await self._digests.follow(kube, namespace=self._namespace)
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
