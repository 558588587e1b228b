"""Everything that Plimsoll exposes of a small world.

Two runs with results, a third one under way, two suites, and the operator.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from plimsoll.api.line import Vary
from plimsoll.api.names import Verdict
from plimsoll.api.suite_status import Cause, RoundVerdict
from plimsoll.metrics import catalogue
from plimsoll.metrics.catalogue import METRICS, MetricFamily, MetricType, Sample, Source
from plimsoll.metrics.results import LineRecord, Numbers, OperationRecord, ResultRecord
from plimsoll.metrics.results import samples_of as samples_of_results
from plimsoll.metrics.statuses import ActiveRecord, OutcomeRecord, RoundRecord, RunRecord, SuiteRecord
from plimsoll.metrics.statuses import run_samples_of as samples_of_runs
from plimsoll.metrics.statuses import suite_samples_of as samples_of_suites

NAMESPACE, BASELINE, RUN, LIVE = "bench", "before", "after", "under-way"
WEEKLY, IDLE = "weekly", "layouts"
"""Suites: one that regressed and measures its next round, and one without a schedule that waits for a change."""

NOW = 1800
"""Seconds since the first sample, at which expressions are evaluated."""

_TARGET = 'job="plimsoll",instance="10.0.0.1:8081",pod="plimsoll-0"'
_STEPS = 40


def series() -> dict[str, str]:
    """Return series -> values in promtool's notation. Gauges stay, counters and histograms grow with every minute."""
    found = {_name(sample.metric.name, sample): _values(sample) for sample in _gauges()}
    for metric in METRICS:
        if metric.kind is MetricType.COUNTER and metric is not catalogue.LIVE_ATTEMPTS:
            found[_name(metric.name, Sample(metric, _some(metric), 0))] = f"0+1x{_STEPS}"
        if metric.kind is MetricType.HISTOGRAM:
            found |= _histogram(metric)
    found[f"process_resident_memory_bytes{{{_TARGET}}}"] = f"1e8x{_STEPS}"
    found[f"process_cpu_seconds_total{{{_TARGET}}}"] = f"0+3x{_STEPS}"
    alert = 'alertname="PlimsollRunStuck",alertstate="firing",severity="warning",namespace="bench",run="under-way"'
    return found | {f"ALERTS{{{alert}}}": f"1x{_STEPS}"}


def _values(sample: Sample) -> str:
    """Return a value for every minute: from the beginning; of the newer run from when it was measured."""
    is_new = sample.metric.source is Source.RESULTS and RUN in sample.labels
    return f"{f'_x{NOW // 60 - 1} ' if is_new else ''}{float(sample.value)!r}x{_STEPS}"


def result(run: str, verdict: Verdict, iops: float, *, finished: float) -> ResultRecord:
    """Return the result of a point with one operation; its name says its place in a plan, and so differs over runs."""
    operation = OperationRecord(
        operation="write",
        iops=iops,
        low=iops * 0.9,
        high=iops * 1.1,
        bytes_per_second=iops * 4096,
        quantiles=(("0.5", 0.001), ("0.95", 0.002), ("0.99", 0.004), ("0.999", 0.02)),
        mean_latency=0.001,
    )
    numbers = Numbers(
        trials=3,
        operations=(operation,),
        finished=finished,
        stall=1.0,
        overlap=0.99,
        spread=0.002,
        median_link=None,
        least_link=None,
        line=None,
    )
    return ResultRecord(
        namespace=NAMESPACE,
        run=run,
        workload="random-write",
        point=f"random-write-00{len(run)}",
        tool="fio",
        parameters="randwrite 4Ki qd16",
        clients=4,
        verdict=verdict,
        finished=finished,
        numbers=None if verdict is Verdict.INVALID else numbers,
    )


def search(run: str, vary: Vary, estimate: float, *, finished: float) -> ResultRecord:
    """Return the result of a search for the line."""
    point = result(run, Verdict.VALID, estimate, finished=finished)
    assert point.numbers is not None
    line = LineRecord(
        vary=vary,
        ending="Precise",
        objectives="p99 <= 5 ms",
        probes=21,
        estimate=estimate,
        low=estimate * 0.95,
        high=estimate * 1.05,
    )
    return replace(
        point,
        workload=f"line-{vary}",
        point=f"line-{vary}-000",
        parameters="randwrite 4Ki up to qd64",
        numbers=replace(point.numbers, trials=20, operations=(), line=line),
    )


def _gauges() -> Iterator[Sample]:
    believed = result(BASELINE, Verdict.VALID, 1000, finished=60), result(RUN, Verdict.SUSPECT, 1200, finished=NOW - 70)
    searches = [search(RUN, vary, 900, finished=NOW - 70) for vary in Vary]
    yield from samples_of_results((*believed, *searches, result("wrong", Verdict.INVALID, 9e9, finished=90)))
    ended = RunRecord(namespace=NAMESPACE, name=RUN, status="Valid", completion=NOW - 20.0)
    conditions = (("Reconciling", "Measuring", 1), ("StorageReady", "Bound", 1), ("Succeeded", "Measuring", -1))
    goes_on = RunRecord(
        namespace=NAMESPACE, name=LIVE, status="Measuring", conditions=conditions, start=60.0, estimate=NOW + 600.0
    )
    yield from samples_of_runs((ended, goes_on))
    yield from samples_of_suites(_suites())
    yield Sample(catalogue.OPERATOR_INFO, ("0.1.0",), 1)
    yield from _conductor()


def _suites() -> Sequence[SuiteRecord]:
    weekly = SuiteRecord(
        namespace=NAMESPACE,
        name=WEEKLY,
        status="Measuring",
        verdict="Regressed",
        conditions=(("Ready", "Measuring", 1), ("Regressed", "Regressed", 1)),
        next_schedule=NOW + 3600.0,
        last_schedule=1200.0,
        active=ActiveRecord(cause=Cause.SCHEDULED, start=1200.0, planned=6, done=2),
        rounds=(
            RoundRecord(verdict=RoundVerdict.FAILED, completion=900.0, accepted=False),
            RoundRecord(verdict=RoundVerdict.REGRESSED, completion=600.0, accepted=False),
            RoundRecord(verdict=RoundVerdict.INCONCLUSIVE, completion=300.0, accepted=True),
        ),
        comparisons=(
            OutcomeRecord(name="upgrade", variant="a", verdict="Regression", estimate=-0.12, low=-0.15, high=-0.09),
            OutcomeRecord(name="upgrade", variant="b", verdict="Inconclusive", estimate=None, low=None, high=None),
        ),
        hypotheses=(OutcomeRecord(name="fast", variant="", verdict="Held", estimate=0.95, low=0.93, high=0.97),),
    )
    return (weekly, SuiteRecord(namespace=NAMESPACE, name=IDLE, created=1.0, status="Idle"))


def _conductor() -> Iterator[Sample]:
    run = (NAMESPACE, LIVE)
    point = (*run, "random-write", "random-write-002")
    for phase, value in (("Gathering", 0), ("Measuring", 1)):
        yield Sample(catalogue.LIVE_PHASE, (*run, phase), value)
    for state, value in (("planned", 4), ("registered", 4), ("missing", 0), ("armed", 0), ("measuring", 4)):
        yield Sample(catalogue.LIVE_CLIENTS, (*run, state), value)
    for metric, done, whole in (
        (catalogue.LIVE_TRIALS, ("done", 3), ("planned", 12)),
        (catalogue.LIVE_PREFILL, ("done", 2**30), ("total", 2**32)),
    ):
        for state, value in (done, whole):
            yield Sample(metric, (*run, state), value)
    yield Sample(catalogue.LIVE_ATTEMPTS, (*run, "Measured", "Valid"), 3)
    yield Sample(catalogue.LIVE_TRIAL_INFO, (*point, "randwrite 4Ki qd16", "0", "0"), 1)
    yield Sample(catalogue.LIVE_TRIAL_ELAPSED, run, 0.5)
    yield Sample(catalogue.LIVE_IOPS, (*point, "write"), 1100)
    yield Sample(catalogue.LIVE_BYTES, (*point, "write"), 1100 * 4096)
    yield Sample(catalogue.LIVE_REPORTING, run, 4)
    yield Sample(catalogue.LIVE_LATENCY, (*point, "write", "0.99"), 0.004)
    yield Sample(catalogue.LIVE_GATE, run, 1)


def _histogram(metric: MetricFamily) -> Mapping[str, str]:
    """Return a histogram of which every observation is in its third bucket."""
    sample = Sample(metric, _some(metric), 0)
    edges = (*map(str, metric.buckets), "+Inf")
    found = {
        _name(f"{metric.name}_bucket", sample, f'le="{edge}"'): f"0+{30 if place >= 2 else 0}x{_STEPS}"
        for place, edge in enumerate(edges)
    }
    return found | {_name(f"{metric.name}_count", sample): f"0+30x{_STEPS}"}


def _some(metric: MetricFamily) -> tuple[str, ...]:
    return tuple(f"a-{label}" for label in metric.labels)


def _name(name: str, sample: Sample, more: str = "") -> str:
    own = [f'{label}="{value}"' for label, value in zip(sample.metric.labels, sample.labels, strict=True)]
    return f"{name}{{{','.join([*own, *filter(None, [more]), _TARGET])}}}"
