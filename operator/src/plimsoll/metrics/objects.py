"""The metrics of results, runs and suites: read from an object when it changes, and kept small for every scrape."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain, takewhile, zip_longest
from statistics import fmean, median
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from plimsoll.api import suite_status
from plimsoll.api.line import LineSearch, ProbeOutcome, Vary
from plimsoll.api.names import ConditionStatus, Verdict
from plimsoll.api.result import BenchmarkResult, ResultStatus, Trial
from plimsoll.api.status import AnyCondition, BenchmarkRunStatus
from plimsoll.measure.attempts import counted
from plimsoll.measure.line.summary import UNKNOWN, objectives_text
from plimsoll.measure.timeline import NANOSECONDS
from plimsoll.metrics import catalogue
from plimsoll.metrics.catalogue import MetricFamily, Sample, known_samples, labelled_samples

UNREADABLE = "Unreadable"  # the status of a run or a suite that this version cannot read
MAX_RESULTS = 2000
"""The most results to expose, the newest ones of each namespace: 18 series with one operation, 9 more for each further
one, 2 more for pairs of clients; 14 of a search for the line."""

MAX_RUNS = 2000  # the most runs to expose, of each namespace unfinished ones first: about 16 series each
MAX_SUITES = 200
"""The most suites to expose, the oldest of each namespace first, so that new ones hide no regression of these: about 25
series each, and 6 for each comparison and hypothesis."""

_CONDITION_VALUES = {ConditionStatus.TRUE: 1, ConditionStatus.FALSE: 0, ConditionStatus.UNKNOWN: -1}
_NOT_EVALUATED = frozenset({suite_status.RoundVerdict.FAILED, suite_status.RoundVerdict.SUPERSEDED})

M = TypeVar("M", bound=BaseModel)


class UnreadableError(ValueError):
    """A document is invalid; the message names the field."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exposed:
    """The exposed metrics of one object."""

    labels: tuple[str, ...]  # common to all its samples; the first one is its namespace
    age: float  # Unix seconds: of two objects with the same labels, only the later one is exposed
    rank: tuple[Any, ...]  # order in which the objects of a namespace are exposed if there are too many
    status: str = ""  # of a run or a suite, as `kubectl get` shows it; empty before the operator has seen it
    samples: Sequence[Sample]


def result_metrics(body: Mapping[str, Any], now: float) -> Exposed | None:
    """Return the metrics of a result, up to `now` in Unix seconds; None without a verdict. UnreadableError: invalid."""
    result = _read(BenchmarkResult, body)
    spec, status = result.spec, result.status
    if status.verdict is None:
        return None
    labels = (result.metadata.namespace, spec.run, spec.workload, spec.point)
    finished = _latest(status.trials, now) or 0.0
    samples = [
        Sample(catalogue.RESULT_INFO, (*labels, spec.tool, spec.label, str(spec.clients)), 1),
        *(Sample(catalogue.RESULT_VERDICT, (*labels, verdict), verdict is status.verdict) for verdict in Verdict),
    ]
    if status.verdict is not Verdict.INVALID:
        samples += _numbers(labels, status, spec.line, now)
    return Exposed(labels=labels, samples=samples, age=finished, rank=(-finished, *labels))


def result_samples(results: Sequence[Exposed | None], limit: int = MAX_RESULTS) -> Iterator[Sample]:
    """Yield the samples of the newest results of each namespace; None is an unreadable one."""
    readable = [result for result in results if result is not None]
    yield from _shown(readable, limit, catalogue.RESULTS_OMITTED)
    yield Sample(catalogue.RESULTS_UNREADABLE, (), len(results) - len(readable))


def run_metrics(body: Mapping[str, Any]) -> Exposed:
    """Return the metrics of a run as the API server stores it; an unreadable status raises no error."""
    labels, created = _identity(body)
    try:
        status = _read(BenchmarkRunStatus, body.get("status") or {})
        start, completion = _seconds(status.start_time), _seconds(status.completion_time)
        estimate = _seconds(status.estimated_completion_time)
    except UnreadableError:
        samples = [Sample(catalogue.RUN_INFO, (*labels, UNREADABLE, ""), 1)]
        return Exposed(labels=labels, samples=samples, age=created, rank=(False, 0.0, *labels), status=UNREADABLE)
    shown, verdict = _display(status)
    samples = [
        Sample(catalogue.RUN_INFO, (*labels, shown, verdict), 1),
        *_conditions(catalogue.RUN_CONDITION, labels, status.conditions),
    ]
    if status.points is not None:
        planned, completed, invalid = status.points.total, status.points.completed, status.points.invalid
        samples += labelled_samples(catalogue.RUN_POINTS, labels, planned=planned, completed=completed, invalid=invalid)
    samples += known_samples(
        labels,
        (catalogue.RUN_START, start),
        (catalogue.RUN_COMPLETION, completion),
        (catalogue.RUN_ESTIMATE, estimate),
    )
    # Unfinished runs come first, then finished ones from the newest on.
    rank = (completion is not None, -(completion or 0.0), *labels)
    return Exposed(labels=labels, samples=samples, age=created, rank=rank, status=shown)


def run_samples(runs: Sequence[Exposed], limit: int = MAX_RUNS) -> Iterator[Sample]:
    yield from _shown(runs, limit, catalogue.RUNS_OMITTED)
    yield from _by_status(runs, catalogue.OPERATOR_RUNS)


def suite_metrics(body: Mapping[str, Any]) -> Exposed:
    """Return the metrics of a suite as the API server stores it; an unreadable status raises no error."""
    labels, created = _identity(body)
    rank = (created, *labels)
    try:
        status = _read(suite_status.BenchmarkSuiteStatus, body.get("status") or {})
        samples = [*_suite_samples(labels, status)]
    except UnreadableError:
        samples = [Sample(catalogue.SUITE_INFO, (*labels, UNREADABLE, ""), 1)]
        return Exposed(labels=labels, samples=samples, age=created, rank=rank, status=UNREADABLE)
    return Exposed(labels=labels, samples=samples, age=created, rank=rank, status=_display(status)[0])


def suite_samples(suites: Sequence[Exposed], limit: int = MAX_SUITES) -> Iterator[Sample]:
    yield from _shown(suites, limit, catalogue.SUITES_OMITTED)
    yield from _by_status(suites, catalogue.OPERATOR_SUITES)


def _read(model: type[M], body: Mapping[str, Any]) -> M:
    """Return a document, without fields that this version does not know; UnreadableError if it is invalid."""
    try:
        return model.model_validate(dict(body), extra="ignore")
    except ValidationError as error:
        problem = error.errors(include_url=False, include_input=False)[0]
        raise UnreadableError(f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}") from error


def _identity(body: Mapping[str, Any]) -> tuple[tuple[str, str], float]:
    metadata = body["metadata"]
    created = datetime.fromisoformat(metadata["creationTimestamp"]).timestamp()
    return (str(metadata["namespace"]), str(metadata["name"])), created


def _display(status: BenchmarkRunStatus | suite_status.BenchmarkSuiteStatus) -> tuple[str, str]:
    return ("", "") if status.display is None else (status.display.status or "", status.display.verdict or "")


def _shown(objects: Sequence[Exposed], limit: int, omitted: MetricFamily) -> Iterator[Sample]:
    """Yield the samples of as many objects as may be exposed, and the number of others.

    Namespaces take turns, so that none hides the objects of another. A recreated object may appear together with its
    deleted namesake: two values of one series would invalidate the whole scrape.
    """
    latest = {obj.labels: obj for obj in sorted(objects, key=lambda obj: obj.age)}
    ranked = sorted(latest.values(), key=lambda obj: obj.rank)
    by_namespace: dict[str, list[Exposed]] = defaultdict(list)
    for obj in ranked:
        by_namespace[obj.labels[0]].append(obj)
    turns = chain.from_iterable(zip_longest(*by_namespace.values()))
    shown = [obj for obj in turns if obj is not None][:limit]
    for obj in shown:
        yield from obj.samples
    yield Sample(omitted, (), len(objects) - len(shown))


def _by_status(objects: Sequence[Exposed], metric: MetricFamily) -> Iterator[Sample]:
    for status, count in sorted(Counter(obj.status for obj in objects).items()):
        yield Sample(metric, (status,), count)


def _conditions(metric: MetricFamily, labels: tuple[str, ...], conditions: Sequence[AnyCondition]) -> Iterator[Sample]:
    for condition in {str(condition.type): condition for condition in conditions}.values():
        yield Sample(metric, (*labels, condition.type, condition.reason), _CONDITION_VALUES[condition.status])


def _seconds(text: str | None) -> float | None:
    """Return a time in Unix seconds; UnreadableError if the text has none, or no time zone."""
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise UnreadableError(f"status: {error}") from error
    if moment.tzinfo is None:
        raise UnreadableError(f"status: {text} has no time zone")
    return moment.timestamp()


def _recovery(trials: Sequence[Trial]) -> float | None:
    """Return the longest time until the cluster was clean, without probes that missed objectives; None if it is not."""
    met = [trial for trial in trials if trial.probe is None or trial.probe.outcome is ProbeOutcome.MET]
    seconds = [trial.disturbance.clean_seconds for trial in met if trial.disturbance]
    return None if None in seconds else max((each for each in seconds if each is not None), default=None)


def _latest(trials: Iterable[Trial], now: float) -> float | None:
    return max((min(_seconds(trial.finished_at) or 0.0, now) for trial in trials), default=None)


def _numbers(labels: tuple[str, ...], status: ResultStatus, search: LineSearch | None, now: float) -> Iterator[Sample]:
    summary, line = status.summary, status.line
    # A search has no operations of its own, because its trials had different loads.
    if summary is not None:
        trials_counted, operations = summary.trials, summary.operations
    elif line is not None:
        trials_counted, operations = line.counted, ()
    else:
        return
    trials = counted(status.trials)
    windows = [trial.window for trial in trials if trial.window is not None]
    links = summary.matrix.bytes_per_second if summary is not None and summary.matrix is not None else ()
    yield Sample(catalogue.RESULT_TRIALS, labels, trials_counted)
    yield from known_samples(
        labels,
        (
            catalogue.RESULT_STALL,
            max((trial.stalls.seconds for trial in trials if trial.stalls is not None), default=None),
        ),
        (catalogue.RESULT_RECOVERY, _recovery(trials)),
        (catalogue.RESULT_OVERLAP, min((window.overlap for window in windows), default=None)),
        (catalogue.RESULT_SPREAD, max((window.spread_seconds for window in windows), default=None)),
        (catalogue.RESULT_LINK_MEDIAN, median(links) if links else None),
        (catalogue.RESULT_LINK_LEAST, min(links, default=None)),
        (catalogue.RESULT_TIME, _latest(trials, now)),
    )
    during = [phase for trial in trials if (it := trial.disturbance) and (phase := it.phase("During"))]
    for operation in operations:
        rates = [each.iops for phase in during for each in phase.operations if each.operation is operation.operation]
        if rates:
            yield Sample(catalogue.RESULT_DISTURBED_IOPS, (*labels, operation.operation), fmean(rates))
        iops, latency, kind = operation.iops, operation.latency, (*labels, operation.operation)
        yield Sample(catalogue.RESULT_IOPS, kind, iops.mean)
        yield Sample(catalogue.RESULT_BYTES, kind, operation.bytes_per_second.mean)
        yield from labelled_samples(catalogue.RESULT_IOPS_BOUND, kind, low=iops.low, high=iops.high)
        for percentile, quantile in catalogue.QUANTILES.items():
            if percentile in latency.percentiles:
                seconds = latency.percentiles[percentile] / NANOSECONDS
                yield Sample(catalogue.RESULT_LATENCY, (*kind, quantile), seconds)
        if latency.mean_nanoseconds is not None:
            yield Sample(catalogue.RESULT_LATENCY_MEAN, kind, latency.mean_nanoseconds / NANOSECONDS)
    if search is not None and line is not None:
        metric, bound_metric = {
            Vary.RATE: (catalogue.RESULT_LINE_RATE, catalogue.RESULT_LINE_RATE_BOUND),
            Vary.DEPTH: (catalogue.RESULT_LINE_DEPTH, catalogue.RESULT_LINE_DEPTH_BOUND),
        }[search.vary]
        objectives, labels = objectives_text(search.objectives), (*labels, line.storm.text if line.storm else "")
        yield Sample(catalogue.RESULT_LINE_INFO, (*labels, line.ending or UNKNOWN, objectives), 1)
        yield Sample(catalogue.RESULT_LINE_PROBES, labels, line.probes)
        yield from known_samples(labels, (metric, line.estimate))
        low = None if line.low is None else min(line.low, search.highest_load)  # no higher load was tried
        yield from labelled_samples(bound_metric, labels, low=low, high=line.high)


def _suite_samples(labels: tuple[str, str], status: suite_status.BenchmarkSuiteStatus) -> Iterator[Sample]:
    yield Sample(catalogue.SUITE_INFO, (*labels, *_display(status)), 1)
    yield from _conditions(catalogue.SUITE_CONDITION, labels, status.conditions)
    yield from known_samples(
        labels,
        (catalogue.SUITE_NEXT_SCHEDULE, _seconds(status.next_schedule_time)),
        (catalogue.SUITE_LAST_SCHEDULE, _seconds(status.last_schedule_time)),
    )
    if (active := status.round) is not None:
        start = (catalogue.SUITE_ROUND_START, _seconds(active.start_time))
        yield from known_samples((*labels, active.cause), start)
        runs = active.children
        yield from labelled_samples(catalogue.SUITE_ROUND_RUNS, labels, planned=runs.total, done=runs.done)
    # The former rounds, newest first.
    rounds = status.rounds
    counts = Counter(ended.verdict for ended in rounds)
    for verdict in suite_status.RoundVerdict:
        yield Sample(catalogue.SUITE_ROUNDS, (*labels, verdict), counts[verdict])
        if rounds:
            yield Sample(catalogue.SUITE_ROUND_VERDICT, (*labels, verdict), verdict is rounds[0].verdict)
    since_evaluated = list(takewhile(lambda ended: ended.verdict in _NOT_EVALUATED, rounds))
    if len(since_evaluated) < len(rounds):
        completion = _seconds(rounds[len(since_evaluated)].completion_time)
        yield from known_samples(labels, (catalogue.SUITE_ROUND_COMPLETION, completion))
    failed = sum(ended.verdict is suite_status.RoundVerdict.FAILED for ended in since_evaluated)
    yield Sample(catalogue.SUITE_ROUNDS_FAILED, labels, failed)
    yield Sample(catalogue.SUITE_ROUNDS_ACCEPTED, labels, sum(ended.accepted for ended in rounds))
    for comparison in status.comparisons:
        yield from _outcome_samples(labels, comparison, suite_status.Conclusion, _COMPARISON_METRICS)
    for hypothesis in status.hypotheses:
        yield from _outcome_samples(labels, hypothesis, suite_status.HypothesisVerdict, _HYPOTHESIS_METRICS)


_Metrics = tuple[MetricFamily, MetricFamily, MetricFamily]  # of the verdict, the estimate and its bounds
_COMPARISON_METRICS: _Metrics = (
    catalogue.SUITE_COMPARISON_VERDICT,
    catalogue.SUITE_COMPARISON_CHANGE,
    catalogue.SUITE_COMPARISON_BOUND,
)
_HYPOTHESIS_METRICS: _Metrics = (
    catalogue.SUITE_HYPOTHESIS_VERDICT,
    catalogue.SUITE_HYPOTHESIS_ESTIMATE,
    catalogue.SUITE_HYPOTHESIS_BOUND,
)


def _outcome_samples(
    suite: tuple[str, str],
    outcome: suite_status.ComparisonOutcome | suite_status.HypothesisResult,
    verdicts: Iterable[str],
    metrics: _Metrics,
) -> Iterator[Sample]:
    verdict_metric, estimate_metric, bound_metric = metrics
    labels = (*suite, outcome.name, outcome.variant or "")
    for verdict in verdicts:
        yield Sample(verdict_metric, (*labels, verdict), verdict == outcome.verdict)
    yield from known_samples(labels, (estimate_metric, outcome.estimate))
    yield from labelled_samples(bound_metric, labels, low=outcome.low, high=outcome.high)
