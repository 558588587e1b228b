"""What kube-burner leaves -> a measurement.

Its `local` indexer writes one document per object to `pvcLatencyMeasurement-<job>.json` and
`podLatencyMeasurement-<job>.json`, times in milliseconds, and `jobSummary.json`. An object that did not become bound or
ready has no document. The quantiles beside them are not read: kube-burner takes them from few samples by another rule.

A claim is timed by kube-burner's own clock. Of a pod, only `containersStartedLatency` has milliseconds; without a
readiness probe, a pod is ready as soon as its containers have started. It begins at the creation in whole seconds, so
it may be up to one second too long, and never too short. All other times of a pod also end in whole seconds. The starts
that kube-burner has missed come from the cluster (`pods.py`).

Source: kube-burner 2.7.3; `tests/golden/kube-burner-2.7.3`.
"""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from plimsoll.api.names import Operation
from plimsoll.api.quantity import format_quantity, parse_quantity
from plimsoll.measure.histogram import sample_of
from plimsoll.measure.sample import Measurement, OperationSample
from plimsoll.tools.command import Output, OutputError
from plimsoll.tools.kube_burner.documents import documents_of
from plimsoll.tools.kube_burner.log import Log
from plimsoll.tools.kube_burner.parameters import KubeBurnerParameters
from plimsoll.tools.kube_burner.pods import StartedPod, started_pods
from plimsoll.tools.reading import JsonObject, bounded, excerpt, nanoseconds_of, printable

_MILLISECOND = 10**6
_SECOND = 10**9
_MAX_MILLISECONDS = 10**9
"""Eleven days."""

_SUMMARY = "jobSummary.json"
PROBLEMS_FILE = "problems.txt"
"""Written by the helper beside kube-burner's files: why PVCs and pods are not ready, one per line."""

_COMMON = frozenset(
    {"timestamp", "uuid", "jobName", "namespace", "metricName", "jobIteration", "replica", "metadata", "churnMetric"}
)
_MAX_LISTED = 5
_COARSE = 5 * _SECOND
"""Below this mean, the second by which a pod's time may be too long is more than a fifth of it."""

_SLACK_SECONDS = 1.0
"""Creating the first objects takes some time, whatever the rate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kind:
    """What kube-burner measures of one kind of object.

    Attributes:
        prefix: of the file with its documents.
        latency: field with the time from its creation until it is usable.
        others: further fields of a document.

    """

    operation: Operation
    prefix: str
    name: str
    latency: str
    others: frozenset[str]
    noun: str
    done: str


_CLAIM = _Kind(
    operation=Operation.BIND_CLAIM,
    prefix="pvcLatencyMeasurement-",
    name="pvcName",
    latency="bindingLatency",
    others=frozenset({"pendingLatency", "lostLatency", "resizeLatency", "resizedCapacity", "size", "storageClass"}),
    noun="PVC",
    done="bound",
)
_POD = _Kind(
    operation=Operation.START_POD,
    prefix="podLatencyMeasurement-",
    name="podName",
    latency="containersStartedLatency",
    others=frozenset(
        {
            "schedulingLatency",
            "initializedLatency",
            "containersReadyLatency",
            "podReadyLatency",
            "readyToStartContainersLatency",
            "nodeName",
        }
    ),
    noun="pod",
    done="ready",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Timed:
    """One object.

    Attributes:
        created: Unix nanoseconds.
        latency: nanoseconds until it was usable, 0 if it never was.
        exact: whether the end of that time is known to more than its second.

    """

    name: str
    iteration: int
    created: int
    latency: int
    exact: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class _Timings:
    """The objects of one kind."""

    kind: _Kind
    usable: Sequence[_Timed]
    errors: Sequence[str]
    warnings: Sequence[str]


def parse_measurement(parameters: KubeBurnerParameters, output: Output) -> Measurement:
    """Read what a measurement left; it lasted from the first creation until the last object was usable.

    Raises:
        OutputError: a file is missing or malformed, or does not belong to this measurement.

    """
    summary = _summary(output)
    kinds = (_CLAIM, _POD) if parameters.pods else (_CLAIM,)
    documents = {kind: _documents(kind, output) for kind in kinds}
    found = {kind: [_timed(kind, parameters, summary, one) for one in documents[kind]] for kind in kinds}
    pods = started_pods(output) if parameters.pods else []
    limit = _limit(parameters, [*(one.created for many in found.values() for one in many), *(p.created for p in pods)])
    timed = [_timings(kind, parameters, documents[kind], found[kind], limit, pods) for kind in kinds]
    usable = [one for timings in timed for one in timings.usable]
    start = min((one.created for one in usable), default=0)
    log = Log.of(output)
    missing = [message for timings in timed for message in timings.errors]
    reasons = [*(_problems(output) if missing or parameters.churn else ()), *(log.errors if missing else ())]
    errors = [*missing, *reasons, *_failures(summary, output, log)]
    return Measurement(
        tool="kubeBurner",
        tool_version=_version(summary),
        started_at=output.launched_at,
        runtime=max((one.created + one.latency for one in usable), default=start) - start,
        operations=tuple(_sample(timings) for timings in timed),
        pace=_pace(parameters, timed[0].usable),
        inexact=_inexact(timed),
        errors=bounded(errors),
        warnings=bounded(
            [
                *(warning for timings in timed for warning in (*timings.warnings, *_coarse(timings))),
                *log.throttling(),
                *(() if errors else log.errors),
            ]
        ),
    )


def _summary(output: Output) -> JsonObject:
    """Return the summary of the only job."""
    jobs = documents_of(output, _SUMMARY)
    if len(jobs) != 1:
        raise OutputError(f"{_SUMMARY} has {len(jobs)} jobs instead of one")
    return jobs[0]


def _documents(kind: _Kind, output: Output) -> list[JsonObject]:
    names = [name for name in output.files if name.startswith(kind.prefix)]
    if len(names) > 1:
        raise OutputError(f"there are several files {kind.prefix}*.json: {', '.join(sorted(map(printable, names)))}")
    # Without any usable object, kube-burner writes no file.
    return documents_of(output, names[0]) if names else []


def _limit(parameters: KubeBurnerParameters, created: Sequence[int]) -> int:
    """Return until when an object has to be usable, in Unix nanoseconds, whoever has timed it.

    kube-burner waits from the last creation, of which only the second may be known. But it waits for one kind of object
    after the other, and goes on watching afterwards; and the helper looks later than that.
    """
    return max(created, default=0) + _SECOND + parameters.ready_seconds * _SECOND


def _timings(
    kind: _Kind,
    parameters: KubeBurnerParameters,
    documents: Sequence[JsonObject],
    found: Sequence[_Timed],
    limit: int,
    pods: Sequence[StartedPod],
) -> _Timings:
    _check_names(kind, parameters, found)
    seen = [one for one in found if one.latency]
    missed = [*_missed(parameters, seen, pods, limit)] if kind is _POD else []
    usable = [one for one in (*seen, *missed) if one.created + one.latency <= limit]
    _check_names(kind, parameters, usable)
    return _Timings(
        kind=kind,
        usable=usable,
        errors=[*_missing(kind, parameters, usable)],
        warnings=[
            *(f"unknown field: {path}" for document in documents for path in document.unknown(_COMMON | _fields(kind))),
            *_untimed(kind, parameters, usable),
            *_sources(missed, parameters.claims),
        ],
    )


def _missed(
    parameters: KubeBurnerParameters, timed: Sequence[_Timed], pods: Sequence[StartedPod], limit: int
) -> Iterator[_Timed]:
    """Yield the pods in time that kube-burner has not timed.

    Raises:
        OutputError: one of them was not requested, or started before it was created.

    """
    seen = {(one.name, one.created) for one in timed}
    for pod in pods:
        if (pod.name, pod.created) in seen or pod.started > limit:
            continue
        if pod.iteration >= parameters.objects:
            raise OutputError(f"there are more pods than the {parameters.objects} that were requested")
        if pod.started <= pod.created:
            raise OutputError(f"{pod.name} started before it was created; synchronise the nodes' clocks")
        latency = pod.started - pod.created
        yield _Timed(name=pod.name, iteration=pod.iteration, created=pod.created, latency=latency, exact=pod.exact)


def _sources(missed: Sequence[_Timed], wanted: int) -> Iterator[str]:
    """Yield of how many pods the cluster has the times, and of how many it has no exact ones."""
    if missed:
        yield (
            f"kube-burner missed the start of {len(missed)} of {wanted} pods; their times are from the cluster's own "
            "events"
        )
    if inexact := sum(not one.exact for one in missed):
        yield f"{inexact} of {wanted} pods have no event of their start; their times may be up to 2 s too long"


def _inexact(timed: Sequence[_Timings]) -> float | None:
    """Return the part of the pods whose start is known to its second only; None without pods."""
    pods = [one for timings in timed if timings.kind is _POD for one in timings.usable]
    return sum(not one.exact for one in pods) / len(pods) if pods else None


def _fields(kind: _Kind) -> frozenset[str]:
    return kind.others | {kind.name, kind.latency}


def _timed(kind: _Kind, parameters: KubeBurnerParameters, summary: JsonObject, document: JsonObject) -> _Timed:
    if document.text("uuid") != summary.text("uuid"):
        raise OutputError(f"{document.path}.uuid is not that of {_SUMMARY}")
    if kind is _CLAIM:
        _check_size(document, parameters.volume_size)
    iteration = document.count("jobIteration")
    if iteration >= parameters.objects:
        raise OutputError(f"{document.path}.jobIteration is {iteration}, but there are only {parameters.objects}")
    return _Timed(
        name=document.text(kind.name),
        iteration=iteration,
        created=nanoseconds_of(document.text("timestamp")),
        latency=document.count(kind.latency, at_most=_MAX_MILLISECONDS) * _MILLISECOND,
    )


def _check_size(document: JsonObject, wanted: int) -> None:
    text = document.text("size")
    try:
        size = parse_quantity(text)
    except ValueError as error:
        raise OutputError(f"{document.path}.size {error}: {text}") from error
    if size != wanted:
        raise OutputError(f"{document.path}.size is {text} instead of {format_quantity(wanted)}")


def _check_names(kind: _Kind, parameters: KubeBurnerParameters, found: Sequence[_Timed]) -> None:
    """Refuse an object that occurs twice; only a churn creates one again."""
    repeated = [name for name, count in Counter(one.iteration for one in found).items() if count > 1]
    if repeated and parameters.churn is None:
        raise OutputError(f"{kind.noun} {repeated[0]} occurs twice")
    if len(found) > parameters.claims:
        raise OutputError(f"{len(found)} {kind.noun}s were timed, but only {parameters.claims} were requested")


def _missing(kind: _Kind, parameters: KubeBurnerParameters, usable: Sequence[_Timed]) -> Iterator[str]:
    """Yield how many objects never became usable, and the first of them."""
    wanted = parameters.claims
    seen = {one.iteration for one in usable}
    absent = [number for number in range(parameters.objects) if number not in seen]
    if len(usable) == wanted or (kind is _POD and parameters.churn and not absent):
        return
    listed = ", ".join(map(str, absent[:_MAX_LISTED])) + (" ..." if len(absent) > _MAX_LISTED else "")
    which = f"; not {kind.done}: number {listed}" if absent else ""
    yield f"{len(usable)} of {wanted} {kind.noun}s were {kind.done} within {parameters.ready_seconds} s{which}"


def _untimed(kind: _Kind, parameters: KubeBurnerParameters, usable: Sequence[_Timed]) -> Iterator[str]:
    """Yield how many pods a churn has deleted before kube-burner timed them: it times one after the other."""
    lost = parameters.claims - len(usable)
    if kind is _POD and parameters.churn and lost > 0:
        yield f"{lost} of {parameters.claims} pods were deleted by the churn before kube-burner had timed them"


def _problems(output: Output) -> list[str]:
    """Return why objects are not usable, as their events say."""
    return excerpt(output.files.get(PROBLEMS_FILE, ""))


def _failures(summary: JsonObject, output: Output, log: Log) -> Iterator[str]:
    passed = summary.flag("passed")
    if passed and not output.exit_code:
        return
    written = summary.text("executionErrors") if "executionErrors" in summary.fields else ""
    yield from filter(None, (written, *(log.errors or excerpt(output.stderr)[-1:])))
    yield f"kube-burner ended with exit code {output.exit_code}{'' if passed else ' and did not pass'}"


def _coarse(timings: _Timings) -> Iterator[str]:
    """Yield that the times of pods are too coarse for their mean, if they are."""
    latencies = [one.latency for one in timings.usable]
    if timings.kind is _POD and latencies and (mean := math.fsum(latencies) / len(latencies)) < _COARSE:
        yield (
            f"pods started after {mean / _SECOND:.1f} s on average; each of their times may be up to 1 s too long, "
            "because only the second of a pod's creation is known"
        )


def _version(summary: JsonObject) -> str:
    """Return the version, which is `VERSION@COMMIT`, or `@` in a program that was built without."""
    return summary.text("version").partition("@")[0] if "version" in summary.fields else ""


def _sample(timings: _Timings) -> OperationSample:
    latencies = [one.latency for one in timings.usable]
    return OperationSample(operation=timings.kind.operation, ios=len(latencies), bytes=0, latency=sample_of(latencies))


def _pace(parameters: KubeBurnerParameters, claims: Sequence[_Timed]) -> float | None:
    """Return the rate at which objects were created, as a part of the requested one; None if it cannot be known."""
    if parameters.churn is not None or len(claims) != parameters.objects:
        return None
    taken = (max(one.created for one in claims) - min(one.created for one in claims)) / _SECOND
    requests = parameters.objects * (2 if parameters.pods else 1)
    planned = max(0, requests - parameters.burst_requests) / parameters.qps
    return min(1.0, (planned + _SLACK_SECONDS) / max(taken, _SLACK_SECONDS))
