"""The operator's metrics about itself, lost at a restart."""

import asyncio
from contextlib import AbstractContextManager
from typing import Literal, get_args

from prometheus_client import CollectorRegistry, Counter, Histogram, PlatformCollector, ProcessCollector

from plimsoll.metrics import catalogue
from plimsoll.metrics.family import MetricFamily

StepName = Literal["observe", "decide", "say", "act", "remove"]

UNEXPECTED = "Unexpected"
"""The reason of a failure that the API did not cause."""

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
    "Transient",
    "Unauthorized",
    "UnknownKind",
    UNEXPECTED,
)
"""Why a step may fail: the errors of `plimsoll.kube.errors` and `plimsoll.reconcile.refusals`, without their suffix."""

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
        """Return a context manager that measures a step, even if it fails."""
        return self._steps.labels(name).time()

    def step_failed(self, reason: str) -> None:
        """Count a failed step."""
        self._step_errors.labels(reason).inc()

    def answered(self, verb: str, seconds: float, refusal: str | None) -> None:
        """Count a request to the API server; see `plimsoll.kube.client.Observer`."""
        self._requests.labels(verb).observe(seconds)
        if refusal is not None:
            self._request_errors.labels(verb, refusal).inc()

    def ended(self, reason: str) -> None:
        """Count a finished run."""
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
