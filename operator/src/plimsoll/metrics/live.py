"""The metrics of the run that a conductor measures: its progress, and the live rates of its tools."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from plimsoll.api.names import Outcome, RunPhase, Verdict
from plimsoll.api.result import Trial
from plimsoll.api.status import RunState, TrialKey
from plimsoll.measure.timeline import NANOSECONDS
from plimsoll.metrics import catalogue
from plimsoll.metrics.catalogue import Sample, labelled_samples
from plimsoll.metrics.exposition import Snapshot
from plimsoll.plan.document import Point

_OUTCOMES = (*((Outcome.MEASURED, verdict) for verdict in Verdict), (Outcome.ABORTED, Verdict.INVALID))
"""How attempts end. Each exists from the start: `increase` misses the first event of a series that appears with it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveView:
    """The state of a conductor at one moment."""

    namespace: str
    run: str
    now: float  # Unix seconds
    state: RunState
    planned: int  # number of clients of the run
    armed: int  # the clients that wait for `Go` or T0
    measuring: int  # the clients that run a tool
    # The number of attempts that this conductor recorded, by outcome and verdict.
    attempts: Mapping[tuple[Outcome, Verdict], int]
    trial: tuple[Point, TrialKey] | None  # the current trial; absent between trials
    is_running: bool  # whether all its clients agreed on T0, so that tools run or are about to
    last: tuple[Point, Trial] | None  # the newest trial that is not Invalid; absent before the first
    gate_open: bool | None  # absent if the run watches no cluster


def live_snapshot(view: LiveView) -> Snapshot:
    samples = tuple(samples_of(view))
    return Snapshot(lambda: samples)


def samples_of(view: LiveView) -> Iterator[Sample]:
    run, state = (view.namespace, view.run), view.state
    for phase in RunPhase:
        yield Sample(catalogue.LIVE_PHASE, (*run, phase.value), float(state.phase is phase))
    yield from labelled_samples(
        catalogue.LIVE_CLIENTS,
        run,
        planned=view.planned,
        registered=len(state.registered),
        missing=len(state.missing),
        armed=view.armed,
        measuring=view.measuring,
    )
    yield from labelled_samples(catalogue.LIVE_TRIALS, run, planned=state.trials_total, done=state.trials_done)
    for outcome, verdict in dict.fromkeys((*_OUTCOMES, *view.attempts)):
        count = view.attempts.get((outcome, verdict), 0)
        yield Sample(catalogue.LIVE_ATTEMPTS, (*run, outcome.value, verdict.value), count)
    if state.prefill.total_bytes:
        prefill = state.prefill
        yield from labelled_samples(catalogue.LIVE_PREFILL, run, total=prefill.total_bytes, done=prefill.done_bytes)
    if view.gate_open is not None:
        yield Sample(catalogue.LIVE_GATE, run, float(view.gate_open))
    if view.trial is not None:
        yield from _samples_of_trial(view, *view.trial)
    if view.last is not None:
        point, trial = view.last
        for operation in trial.operations:
            labels = (*run, point.workload, point.name, operation.operation.value)
            for percentile, quantile in catalogue.QUANTILES.items():
                nanoseconds = operation.latency.percentiles.get(percentile)
                if nanoseconds is not None:
                    yield Sample(catalogue.LIVE_LATENCY, (*labels, quantile), nanoseconds / NANOSECONDS)


def _samples_of_trial(view: LiveView, point: Point, key: TrialKey) -> Iterator[Sample]:
    run = (view.namespace, view.run)
    place = (*run, point.workload, point.name)
    yield Sample(catalogue.LIVE_TRIAL_INFO, (*place, point.label, str(key.pass_number), str(key.attempt)), 1)
    current, elapsed = view.state.current, 0.0
    # A trial without a T0 has not begun.
    if current is not None and current.ends_at > current.starts_at:
        elapsed = min(1.0, max(0.0, (view.now - current.starts_at) / (current.ends_at - current.starts_at)))
    yield Sample(catalogue.LIVE_TRIAL_ELAPSED, run, elapsed)
    live = view.state.live
    if view.is_running:
        yield Sample(catalogue.LIVE_REPORTING, run, live.clients if live else 0)
    for rate in live.rates if live else ():
        labels = (*place, rate.operation.value)
        yield Sample(catalogue.LIVE_IOPS, labels, rate.iops)
        yield Sample(catalogue.LIVE_BYTES, labels, rate.bytes_per_second)
