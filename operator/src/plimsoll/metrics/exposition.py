"""One scrape of the operator: its current results, runs and suites, and its own instruments."""

from collections.abc import Iterable, Iterator
from itertools import chain

import prometheus_client
from prometheus_client.registry import Collector

from plimsoll import __version__
from plimsoll.metrics import catalogue, results, runs, suites
from plimsoll.metrics.families import families
from plimsoll.metrics.instruments import Instruments
from plimsoll.metrics.results import ResultRecord
from plimsoll.metrics.runs import RunRecord
from plimsoll.metrics.sample import Sample
from plimsoll.metrics.suites import SuiteRecord


class OperatorScrape(Collector):
    """A snapshot of all metrics, which another thread may collect."""

    def __init__(
        self,
        found: Iterable[ResultRecord | None],
        running: Iterable[RunRecord],
        instruments: Instruments,
        repeating: Iterable[SuiteRecord] = (),
    ) -> None:
        """Take a snapshot of results (None for an unreadable one), runs and suites."""
        self._results = tuple(found)
        self._runs = tuple(running)
        self._suites = tuple(repeating)
        self._instruments = instruments

    def collect(self) -> Iterator[prometheus_client.Metric]:
        """Yield all families."""
        own = Sample(catalogue.OPERATOR_INFO, (__version__,), 1)
        samples = (results.samples_of(self._results), runs.samples_of(self._runs), suites.samples_of(self._suites))
        yield from families(chain(*samples, [own]))
        yield from map(_without_created, self._instruments.registry.collect())


def _without_created(family: prometheus_client.Metric) -> prometheus_client.Metric:
    """Remove the creation times of counters, which would double the number of their series."""
    family.samples = [sample for sample in family.samples if not sample.name.endswith("_created")]
    return family
