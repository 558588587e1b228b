"""kube-burner as a tool: what it leaves -> a measurement."""

import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self, TypeAlias

from plimsoll.api.names import LatencyKind, Layer, Operation
from plimsoll.api.quantity import format_quantity, parse_quantity
from plimsoll.measure.histogram import sample_of
from plimsoll.measure.rates import Quantities
from plimsoll.measure.sample import Measurement, OperationSample
from plimsoll.tools.base import Command, Output, OutputError, StepContext, Tool
from plimsoll.tools.cast import ACTOR, Executor
from plimsoll.tools.kube_burner.job import KubeBurnerParameters
from plimsoll.tools.reading import JsonObject, bounded, excerpt, failure, nanoseconds_of, printable
from plimsoll.tools.target import ApiTarget, TargetKind

_LINE = re.compile(r'level=(?P<level>\w+) msg="(?P<message>(?:[^"\\]|\\.)*)"', re.ASCII)
_THROTTLED = re.compile(r"Waited for (?P<time>[\d.]+m?s) due to (?P<side>client|server)-side throttling", re.ASCII)
_REFUSED = "too many requests"
_FAILURES = frozenset({"error", "fatal", "panic"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Log:
    """What kube-burner printed.

    Attributes:
        errors: its messages of the level `error` and above.
        throttled: for each request that had to wait: for which side, and how long.
        refused: requests that the API server refused as too many.

    """

    errors: Sequence[str]
    throttled: Sequence[tuple[str, str]]
    refused: int

    @classmethod
    def of(cls, output: Output) -> Self:
        """Read the log, which is on one of the two outputs."""
        text = f"{output.stdout}\n{output.stderr}"
        lines = [(match["level"], printable(match["message"])) for match in _LINE.finditer(text)]
        return cls(
            errors=[*dict.fromkeys(message for level, message in lines if level in _FAILURES)],
            throttled=[(match["side"], match["time"]) for match in _THROTTLED.finditer(text)],
            refused=text.lower().count(_REFUSED),
        )

    def throttling(self) -> Iterator[str]:
        """Yield how often requests were slowed down, and by whom."""
        for side, count in sorted(Counter(side for side, _ in self.throttled).items()):
            longest = max((time for one, time in self.throttled if one == side), key=_seconds)
            yield f"{count} API requests waited for {side}-side throttling, one of them {longest}"
        if self.refused:
            yield f"the API server refused {self.refused} requests as too many"


def _seconds(time: str) -> float:
    """Return the seconds of `1.5s` or `800ms`; 0 of another text."""
    number, factor = (time[:-2], 1e-3) if time.endswith("ms") else (time[:-1], 1.0)
    try:
        return float(number) * factor
    except ValueError:
        return 0.0


def documents_of(output: Output, name: str) -> list[JsonObject]:
    """Return the list of objects in a file.

    Raises:
        OutputError: the file is missing or malformed.

    """
    if name not in output.files:
        raise OutputError(f"kube-burner wrote no {name}, {failure(output, *Log.of(output).errors)}")
    try:
        found = json.loads(output.files[name], object_pairs_hook=_without_duplicates)
    except (ValueError, RecursionError) as error:
        raise OutputError(f"{name} is no JSON document: {printable(str(error))}") from error
    return JsonObject(path="", fields={name: found}).children(name)


def _without_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise ValueError("a field occurs twice")
    return fields


PODS_FILE = "pods.json"
"""Written by the helper beside kube-burner's files: a list with `name`, `created` and, of a pod that has started,
`started` in Unix nanoseconds and `exact`, which is false if only its second is known."""

STARTED = "Started"
"""Reason of the event of a container's start."""

_SECOND = 10**9
_NAME = re.compile(r"pod-(?P<iteration>\d{1,6})-\d{1,6}", re.ASCII)
_EVENT = re.compile(r".+\.(?P<time>[0-9a-f]{15,16})", re.ASCII)

_Times: TypeAlias = Mapping[tuple[str, str], int]
"""When a container started, in Unix nanoseconds, by the UID of its pod and its path there: `spec.containers{NAME}`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StartedPod:
    """A ready pod; times in Unix nanoseconds, its creation in whole seconds.

    With a kubelet whose clock is behind that of the API server, `started` may be before `created`.
    """

    name: str
    iteration: int
    created: int
    started: int
    exact: bool


def pods_text(pods: Sequence[Mapping[str, Any]], events: Sequence[Mapping[str, Any]]) -> str:
    """Return the content of PODS_FILE from pods and events as the API server returns them; empty without ready pods.

    Others may create pods in every namespace of a cluster: only those with names of kube-burner's template count. A pod
    that is being deleted does not: a churn may have created it again.
    """
    times = _event_times(events)
    own = [pod for pod in pods if _NAME.fullmatch(pod["metadata"]["name"]) and not is_going(pod)]
    entries = [entry for pod in own if is_ready(pod) and (entry := _entry(pod, times))]
    return json.dumps(entries) if entries else ""


def is_going(obj: Mapping[str, Any]) -> bool:
    """Return whether an object is being deleted."""
    return "deletionTimestamp" in obj["metadata"]


def is_ready(pod: Mapping[str, Any]) -> bool:
    """Return whether a pod is ready."""
    conditions = pod.get("status", {}).get("conditions") or ()
    return any(one.get("type") == "Ready" and one.get("status") == "True" for one in conditions)


def started_pods(output: Output) -> list[StartedPod]:
    """Read PODS_FILE, which is missing if no pod was ready.

    Raises:
        OutputError: the file is malformed.

    """
    documents = documents_of(output, PODS_FILE) if PODS_FILE in output.files else []
    return [_pod(document) for document in documents]


def _entry(pod: Mapping[str, Any], times: _Times) -> Mapping[str, object] | None:
    metadata, second = pod["metadata"], _last_second(pod)
    exact = _exact(pod, times)
    if exact is not None and second is not None and exact < second:
        # Events of the last container's start are missing.
        exact = None
    # The end of the second: a pod's time is never too short.
    started = exact if exact is not None else second and second + _SECOND
    if started is None:
        return None
    created = nanoseconds_of(metadata["creationTimestamp"])
    return {"name": metadata["name"], "created": created, "started": started, "exact": exact is not None}


def _last_second(pod: Mapping[str, Any]) -> int | None:
    """Return the beginning of the second in which the last container started; None if that is unknown."""
    states = [one.get("state", {}).get("running") or {} for one in pod["status"].get("containerStatuses") or ()]
    stamps = [state["startedAt"] for state in states if state.get("startedAt")]
    return max(map(nanoseconds_of, stamps)) if stamps else None


def _exact(pod: Mapping[str, Any], times: _Times) -> int | None:
    """Return when the last container of a pod started; None without an event of each. Init containers do not count."""
    names = [container["name"] for container in pod.get("spec", {}).get("containers") or ()]
    found = [times.get((pod["metadata"]["uid"], f"spec.containers{{{name}}}")) for name in names]
    known = [time for time in found if time is not None]
    return max(known) if known and len(known) == len(names) else None


def _event_times(events: Sequence[Mapping[str, Any]]) -> _Times:
    """Return when each container last started, by its pod's UID and its path in the pod.

    The name of an event ends with its time in hexadecimal nanoseconds. Source: client-go 0.34, `makeEvent`.
    """
    return dict(sorted(_started_events(events), key=lambda one: one[1]))


def _started_events(events: Sequence[Mapping[str, Any]]) -> Iterator[tuple[tuple[str, str], int]]:
    for event in events:
        if event.get("reason") == STARTED and (found := _EVENT.fullmatch(event["metadata"]["name"])):
            about = event.get("involvedObject", {})
            yield (about.get("uid", ""), about.get("fieldPath", "")), int(found["time"], 16)


def _pod(document: JsonObject) -> StartedPod:
    name = document.text("name")
    found = _NAME.fullmatch(name)
    if found is None:
        raise OutputError(f"{document.path}.name is not that of a pod of kube-burner: {printable(name)}")
    return StartedPod(
        name=name,
        iteration=int(found["iteration"]),
        created=document.count("created"),
        started=document.count("started"),
        exact=document.flag("exact"),
    )


_MILLISECOND = 10**6

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


class KubeBurner(Tool[KubeBurnerParameters]):
    """One client has the helper run kube-burner, which alone has the rights that it needs.

    The command writes kube-burner's files and output as if it had run there; see `plimsoll.cli.burn`.
    """

    key: ClassVar[str] = "kubeBurner"
    program: ClassVar[str] = "plimsoll"
    parameters = KubeBurnerParameters
    layer: ClassVar[Layer] = Layer.CONTROL_PLANE
    quantities: ClassVar[Quantities] = Quantities(latency=LatencyKind.FULL, bytes=False)
    target: ClassVar[TargetKind] = TargetKind.API
    executor: ClassVar[Executor] = ACTOR
    windowed: ClassVar[bool] = False
    creates_claims: ClassVar[bool] = True

    def command(self, parameters: KubeBurnerParameters, context: StepContext) -> Command:
        """Return the command, which gets the helper's address and the StorageClass from the pod's environment."""
        context.target_of(ApiTarget)
        return Command(argv=(self.program, "burn", parameters.model_dump_json(exclude_none=True)))

    def parse(self, parameters: KubeBurnerParameters, context: StepContext, output: Output) -> Measurement:
        """Read the output of the measuring step."""
        context.target_of(ApiTarget)
        return parse_measurement(parameters, output)


KUBE_BURNER = KubeBurner()
