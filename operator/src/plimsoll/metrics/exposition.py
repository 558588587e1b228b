"""One scrape of the operator: its current results, runs and suites, and its own instruments."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import AbstractContextManager, asynccontextmanager
from itertools import chain
from typing import Literal, get_args

import prometheus_client
from aiohttp import hdrs, web
from prometheus_client import CollectorRegistry, Counter, Histogram, PlatformCollector, ProcessCollector
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from plimsoll import __version__
from plimsoll.metrics import catalogue
from plimsoll.metrics.catalogue import MetricFamily, Sample
from plimsoll.metrics.objects import Exposed, result_samples, run_samples, suite_samples
from plimsoll.net.listener import serving_address


def families(samples: Iterable[Sample]) -> Iterator[prometheus_client.Metric]:
    """Yield a family for every metric with samples; the last value of a series counts, as two invalidate a scrape."""
    by_metric: dict[MetricFamily, dict[tuple[str, ...], float]] = {}
    for sample in samples:
        by_metric.setdefault(sample.metric, {})[sample.labels] = sample.value
    for metric, values in by_metric.items():
        family = prometheus_client.Metric(metric.name.removesuffix("_total"), metric.help, metric.kind.value)
        for labels, value in values.items():
            family.add_sample(metric.name, dict(zip(metric.labels, labels, strict=True)), value)
        yield family


StepName = Literal["observe", "decide", "say", "act", "remove"]

UNEXPECTED = "Unexpected"  # the reason of a failure that the API did not cause
STEP_ERRORS = (
    "Api",
    "Conflict",
    "Credentials",
    "Forbidden",
    "Invalid",
    "Keyring",
    "KeyringRefused",
    "NotFound",
    "Taken",
    "Terminating",
    "TooLarge",
    "Transient",
    "Unauthorized",
    "UnknownKind",
    UNEXPECTED,
)
"""Why a step may fail: the errors of `plimsoll.kube.port` and `plimsoll.operator.execute`, without their suffix."""

_LAG_SECONDS = 1.0


class Instruments:
    """Counters and histograms in a separate registry, with the library's process metrics."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        self._steps = self._histogram(catalogue.OPERATOR_STEP)
        self._step_errors = self._counter(catalogue.OPERATOR_STEP_ERRORS)
        self._requests = self._histogram(catalogue.OPERATOR_REQUESTS)
        self._request_errors = self._counter(catalogue.OPERATOR_REQUEST_ERRORS)
        self._ended = self._counter(catalogue.OPERATOR_ENDED)
        self._lag = self._histogram(catalogue.OPERATOR_LAG)
        # `increase` misses the first event of a series that only appears with it.
        for step in get_args(StepName):
            self._steps.labels(step)
        for reason in STEP_ERRORS:
            self._step_errors.labels(reason)

    def step(self, name: StepName) -> AbstractContextManager[object]:
        return self._steps.labels(name).time()

    def step_failed(self, reason: str) -> None:
        self._step_errors.labels(reason).inc()

    def answered(self, verb: str, seconds: float, refusal: str | None) -> None:
        """Count a request to the API server; see `plimsoll.kube.client.Observer`."""
        self._requests.labels(verb).observe(seconds)
        if refusal is not None:
            self._request_errors.labels(verb, refusal).inc()

    def ended(self, reason: str) -> None:
        self._ended.labels(reason).inc()

    async def watch_loop(self, pause: float = _LAG_SECONDS) -> None:
        """Measure forever how much later than `pause` seconds the event loop wakes up."""
        loop = asyncio.get_running_loop()
        while True:
            wanted = loop.time() + pause
            await asyncio.sleep(pause)
            # The loop's clock is coarser than its timers.
            self._lag.observe(max(0.0, loop.time() - wanted))

    def _histogram(self, metric: MetricFamily) -> Histogram:
        return Histogram(metric.name, metric.help, metric.labels, buckets=metric.buckets, registry=self.registry)

    def _counter(self, metric: MetricFamily) -> Counter:
        return Counter(metric.name, metric.help, metric.labels, registry=self.registry)


class Snapshot(Collector):
    """Samples and the metrics of a registry, which another thread may collect."""

    def __init__(self, samples: Callable[[], Iterable[Sample]], registry: CollectorRegistry | None = None) -> None:
        self._samples, self._registry = samples, registry

    def collect(self) -> Iterator[prometheus_client.Metric]:
        yield from families(self._samples())
        for family in self._registry.collect() if self._registry is not None else ():
            # Creation times of counters would double the number of their series.
            family.samples = [sample for sample in family.samples if not sample.name.endswith("_created")]
            yield family


def operator_snapshot(
    results: Iterable[Exposed | None], runs: Iterable[Exposed], instruments: Instruments, suites: Iterable[Exposed] = ()
) -> Snapshot:
    """Return all metrics of the leading operator; None is an unreadable result."""
    own = [Sample(catalogue.OPERATOR_INFO, (__version__,), 1), Sample(catalogue.OPERATOR_LEADER, (), 1)]
    shown = tuple(results), tuple(runs), tuple(suites)

    def samples() -> Iterator[Sample]:
        return chain(result_samples(shown[0]), run_samples(shown[1]), suite_samples(shown[2]), own)

    return Snapshot(samples, instruments.registry)


_COMPRESS_IN_THREAD_BYTES = 4096


@asynccontextmanager
async def serving(address: str, snapshot: Callable[[], Collector]) -> AsyncIterator[int]:
    """Serve at an address such as `http://0.0.0.0:8081/metrics`, and yield the port: with port 0 a free one.

    `snapshot` is called in the event loop and must be quick. A thread collects and writes its result, since thousands
    of results would block the loop, so the result must not change meanwhile. AddressError: the address is invalid or in
    use.
    """
    turn = asyncio.Lock()

    async def answer(request: web.Request) -> web.Response:
        """Return all metrics in the requested format, one scrape at a time: two need more memory and are no faster."""
        write, content_type = choose_encoder(",".join(request.headers.getall(hdrs.ACCEPT, [])))
        async with turn:
            body = await asyncio.to_thread(write, snapshot())
        response = web.Response(
            body=body, headers={hdrs.CONTENT_TYPE: content_type}, zlib_executor_size=_COMPRESS_IN_THREAD_BYTES
        )
        response.enable_compression()
        response.force_close()
        return response

    async with serving_address(address, answer, example="http://0.0.0.0:8081/metrics") as port:
        yield port
