"""One scrape of the operator: its current results and runs, and its own instruments."""

from collections.abc import Iterable, Iterator
from itertools import chain

import prometheus_client
from prometheus_client.registry import Collector

from plimsoll import __version__
from plimsoll.metrics import catalogue, results, runs
from plimsoll.metrics.families import families
from plimsoll.metrics.instruments import Instruments
from plimsoll.metrics.results import ResultRecord
from plimsoll.metrics.runs import RunRecord
from plimsoll.metrics.sample import Sample


class OperatorScrape(Collector):
    """A snapshot of all metrics, which another thread may collect."""

    def __init__(
        self, found: Iterable[ResultRecord | None], running: Iterable[RunRecord], instruments: Instruments
    ) -> None:
        """Take a snapshot of results (None for an unreadable one) and runs."""
        self._results = tuple(found)
        self._runs = tuple(running)
        self._instruments = instruments

    def collect(self) -> Iterator[prometheus_client.Metric]:
        """Yield all families."""
        own = Sample(catalogue.OPERATOR_INFO, (__version__,), 1)
        yield from families(chain(results.samples_of(self._results), runs.samples_of(self._runs), [own]))
        yield from map(_without_created, self._instruments.registry.collect())


def _without_created(family: prometheus_client.Metric) -> prometheus_client.Metric:
    """Remove the creation times of counters, which would double the number of their series."""
    family.samples = [sample for sample in family.samples if not sample.name.endswith("_created")]
    return family
