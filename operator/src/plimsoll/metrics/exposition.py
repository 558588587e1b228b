"""One scrape of the operator: the results and runs that there are at this instant, and its own instruments."""

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


class Snapshot(Collector):
    """What was there when it was taken; may be collected in another thread."""

    def __init__(
        self, found: Iterable[ResultRecord | None], going: Iterable[RunRecord], instruments: Instruments
    ) -> None:
        """Take results, None for one that could not be read, and runs."""
        self._results = tuple(found)
        self._runs = tuple(going)
        self._instruments = instruments

    def collect(self) -> Iterator[prometheus_client.Metric]:
        """Yield all families."""
        own = Sample(catalogue.OPERATOR_INFO, (__version__,), 1)
        yield from families(chain(results.samples_of(self._results), runs.samples_of(self._runs), [own]))
        yield from map(_without_created, self._instruments.registry.collect())


def _without_created(family: prometheus_client.Metric) -> prometheus_client.Metric:
    """Leave out when each counter began, which nobody asks for and which doubles the number of their series."""
    family.samples = [sample for sample in family.samples if not sample.name.endswith("_created")]
    return family
