"""kube-burner: how fast a cluster binds PVCs and starts the pods that mount them."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Annotated, Any, ClassVar, NamedTuple, Self

from pydantic import Field, model_validator

from plimsoll.api.errors import Problem, SpecError
from plimsoll.api.json_reader import JsonNode, OutputError, printable
from plimsoll.api.model import Flag, Integer, Model, Size
from plimsoll.api.names import Layer, Operation
from plimsoll.api.quantity import format_quantity, parse_quantity
from plimsoll.measure.histogram import sample_of
from plimsoll.measure.sample import Measurement, OperationSample
from plimsoll.tools.base import Command, Output, StepContext, Tool, ToolParameters
from plimsoll.tools.reading import MILLISECOND, SECOND, bounded, excerpt, failure, nanoseconds_of
from plimsoll.tools.target import ApiTarget, TargetKind

_MAX_OBJECTS = 5000
_DEFAULT_VOLUME = 64 * 2**20

MAX_SECONDS = 4 * 3600  # how long one measurement may take, during which no other run can use kube-burner


class Churn(Model):
    """Deletes a part of the claims and pods, with their namespaces, and creates them again."""

    percent: Annotated[Integer, Field(ge=1, le=100)] = 10
    """Part of the claims that each cycle deletes and creates again, at least one claim."""
    cycles: Annotated[Integer, Field(ge=1, le=20)] = 1
    """Number of cycles."""


class KubeBurnerParameters(ToolParameters):
    """kube-burner: creates PVCs of the run's StorageClass, and pods that mount them, and times them.

    Runs outside the run's namespace, and needs the administrator's permission. runtimeSeconds does not end it, but a
    trial that takes more than eleven times rampSeconds plus runtimeSeconds is aborted.
    """

    axes: ClassVar[frozenset[str]] = frozenset({"objects", "qps"})
    objects: Annotated[Integer, Field(ge=1, le=_MAX_OBJECTS, description="Number of PVCs.")] = 10
    """Axis: number of PVCs to create. The administrator limits it."""
    qps: Annotated[Integer, Field(ge=1, le=1000, description="PVCs and pods per second.")] = 20
    """Axis: PVCs and pods to create per second, together. The administrator limits it."""
    burst: Annotated[Integer, Field(ge=1, le=_MAX_OBJECTS)] | None = None
    """How many may be created at once before that rate applies; as many as qps if absent."""
    churn: Churn | None = None
    """Deletes a part of them afterwards and creates it again; such PVCs are timed like all others."""
    volume_size: Annotated[Size, Field(ge=2**20, le=2**40)] = _DEFAULT_VOLUME
    """Size of each PVC, from 1Mi to 1Ti. The administrator limits it."""
    pods: Flag = True
    """Whether each PVC gets a pod that mounts it. With false, the StorageClass must bind immediately."""
    ready_seconds: Annotated[Integer, Field(ge=1, le=3600)] = 300
    """How long to wait for all PVCs to be bound and all pods to be ready, once they are created. With some that are
    not, the result is Invalid."""

    @model_validator(mode="after")
    def _check_time(self) -> Self:
        if (seconds := self.limit_seconds) > MAX_SECONDS:
            remedy = f"may take {seconds} s, more than {MAX_SECONDS} s; lower it, objects or churn.cycles, or raise qps"
            raise SpecError([Problem(field="readySeconds", value=str(self.ready_seconds), remedy=remedy)])
        return self

    @property
    def limit_seconds(self) -> int:
        """How long kube-burner may take: to create everything, and to wait after each creation."""
        cycles, kinds = (self.churn.cycles if self.churn else 0), (2 if self.pods else 1)
        return self.claims * kinds // self.qps + (1 + cycles) * (self.ready_seconds + 120) + self.pause_seconds

    @property
    def pause_seconds(self) -> int:
        """How long kube-burner waits for late events of pods, unmeasured."""
        return 10 if self.pods else 0

    @property
    def claims(self) -> int:
        """Claims that are created and timed, also by the churn. Source: kube-burner 2.7, `churnNamespaces`."""
        churn = self.churn
        return self.objects + (churn.cycles * max(1, churn.percent * self.objects // 100) if churn else 0)

    @property
    def limited(self) -> Mapping[str, int]:
        """PVCs that exist at the same time, requests per second and at once, and bytes of a PVC."""
        burst = self.burst or self.qps
        return {"objects": self.objects, "qps": self.qps, "burst": burst, "volumeSize": self.volume_size}

    def label(self) -> str:
        pods = " with pods" if self.pods else ""
        size = "" if self.volume_size == _DEFAULT_VOLUME else f" of {format_quantity(self.volume_size)}"
        churn = f", churn {self.churn.percent} % x {self.churn.cycles}" if self.churn else ""
        return f"{self.objects} PVCs{pods}{size}, {self.qps}/s{churn}"


CONFIG_FILE = "config.yml"
COLLECTED = "collected"  # directory with the files of the indexer
_CLAIM_FILE = "pvc.yml"
_POD_FILE = "pod.yml"
_NUMBER = "{{.Iteration}}-{{.Replica}}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where kube-burner creates its objects, and with what."""

    namespace: str  # name of the namespace, followed by a number with a churn, and of the job
    storage_class: str
    pod_image: str  # of the pods, which only sleep
    labels: Mapping[str, str] = field(default_factory=dict)  # of namespaces, PVCs and pods


def files_of(parameters: KubeBurnerParameters, place: Place) -> Mapping[str, str]:
    """Return the files of a job by name."""
    claim = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": place.storage_class,
        "resources": {"requests": {"storage": format_quantity(parameters.volume_size)}},
    }
    container = {
        "name": "sleep",
        "image": place.pod_image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["sleep", "86400"],
        "resources": {"requests": {"cpu": "1m", "memory": "8Mi"}, "limits": {"memory": "32Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
    }
    pod = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 1,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "nodeSelector": {"kubernetes.io/os": "linux"},
        # With the image's user, or the user that the platform assigns.
        "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [container],
        "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": f"pvc-{_NUMBER}"}}],
    }
    files = {_CLAIM_FILE: _object("PersistentVolumeClaim", f"pvc-{_NUMBER}", place, claim)}
    if parameters.pods:
        files[_POD_FILE] = _object("Pod", f"pod-{_NUMBER}", place, pod)
    files[CONFIG_FILE] = _config(parameters, place, [*files])
    return {name: f"{json.dumps(content, indent=1)}\n" for name, content in files.items()}


def _config(parameters: KubeBurnerParameters, place: Place, templates: Sequence[str]) -> Mapping[str, object]:
    job: dict[str, object] = {
        "name": place.namespace,
        "jobType": "create",
        "jobIterations": parameters.objects,
        "qps": parameters.qps,
        "burst": parameters.burst or parameters.qps,
        "namespace": place.namespace,
        # The chart's admission policy requires the last one.
        "namespaceLabels": {**place.labels, "pod-security.kubernetes.io/enforce": "restricted"},
        # A churn deletes and creates whole namespaces, so that a pod and its PVC go together.
        "namespacedIterations": parameters.churn is not None,
        "podWait": False,
        "waitWhenFinished": True,
        # It would start a DaemonSet that pulls images, which are on the nodes already.
        "preLoadImages": False,
        "maxWaitTimeout": f"{parameters.ready_seconds}s",
        "jobPause": f"{parameters.pause_seconds}s",
        "objects": [{"objectTemplate": name, "replicas": 1} for name in templates],
    }
    if churn := parameters.churn:
        job["churnConfig"] = {"mode": "namespaces", **churn.model_dump(), "duration": "0s", "delay": "0s"}
    measurements = ["pvcLatency", *(["podLatency"] if parameters.pods else [])]
    return {
        # The helper deletes the namespaces, after it has recorded what is not ready.
        "global": {"gc": False, "measurements": [{"name": name} for name in measurements]},
        "metricsEndpoints": [{"indexer": {"type": "local", "metricsDirectory": COLLECTED}}],
        "jobs": [job],
    }


def _object(kind: str, name: str, place: Place, spec: Mapping[str, object]) -> Mapping[str, object]:
    metadata = {"name": name, "labels": dict(place.labels)}
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata, "spec": spec}


# Written by the helper next to the others: a list with `name`, `created` and `started` in Unix nanoseconds, and
# `exact`, which is false if only the second of the start is known; and why PVCs and pods are not ready, one per line.
PODS_FILE = "pods.json"
PROBLEMS_FILE = "problems.txt"
_SUMMARY = "jobSummary.json"
STARTED = "Started"  # reason of the event of a container's start
_LINE = re.compile(r'level=(?P<level>\w+) msg="(?P<message>(?:[^"\\]|\\.)*)"', re.ASCII)
_THROTTLED = re.compile(r"Waited for [\d.]{1,20}m?s due to (client|server)-side throttling", re.ASCII)
_NAME = re.compile(r"pod-(?P<iteration>\d{1,6})-\d{1,6}", re.ASCII)
# The name of an event ends with its time in hexadecimal nanoseconds. Source: client-go 0.34, `makeEvent`.
_EVENT = re.compile(r".+\.(?P<time>[0-9a-f]{15,16})", re.ASCII)


def read_log(output: Output) -> tuple[list[str], list[str]]:
    """Return kube-burner's messages of the level `error` and above, and how often who slowed requests down."""
    text = f"{output.stdout}\n{output.stderr}"
    lines = [(match["level"], printable(match["message"])) for match in _LINE.finditer(text)]
    errors = dict.fromkeys(message for level, message in lines if level in {"error", "fatal", "panic"})
    waits = Counter(_THROTTLED.findall(text))
    throttling = [f"{count} API requests waited for {side}-side throttling" for side, count in sorted(waits.items())]
    if refused := text.lower().count("too many requests"):
        throttling.append(f"the API server refused {refused} requests as too many")
    return [*errors], throttling


class _Kind(NamedTuple):
    """What kube-burner measures of one kind of object."""

    operation: Operation
    key: str  # begins the name of the file with its documents, and of the field with its name
    latency: str  # field with the time from its creation until it is usable
    noun: str
    done: str


_CLAIM = _Kind(Operation.BIND_CLAIM, "pvc", "bindingLatency", "PVC", "bound")
_POD = _Kind(Operation.START_POD, "pod", "containersStartedLatency", "pod", "ready")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Timed:
    name: str
    iteration: int
    created: int  # Unix nanoseconds
    latency: int  # nanoseconds until it was usable; 0 if it never was, negative if the kubelet's clock is behind
    exact: bool = True  # whether the end of that time is known to more than its second
    missed: bool = False  # whether it is from PODS_FILE

    @property
    def usable_at(self) -> int:
        return self.created + self.latency


class KubeBurner(Tool[KubeBurnerParameters]):
    """One client has the helper run kube-burner, and gets its files and output; see `plimsoll.programs.burn`."""

    key: ClassVar[str] = "kubeBurner"
    program: ClassVar[str] = "plimsoll"
    parameters = KubeBurnerParameters
    layer: ClassVar[Layer] = Layer.CONTROL_PLANE
    target: ClassVar[TargetKind] = TargetKind.API
    runs_alone: ClassVar[bool] = True
    windowed: ClassVar[bool] = False
    creates_claims: ClassVar[bool] = True

    def command(self, parameters: KubeBurnerParameters, context: StepContext) -> Command:
        """Return the command, which gets the helper's address and the StorageClass from the pod's environment."""
        context.target_of(ApiTarget)
        return Command(argv=(self.program, "burn", parameters.model_dump_json(exclude_none=True)))

    def parse(self, parameters: KubeBurnerParameters, context: StepContext, output: Output) -> Measurement:
        """Read what a measurement left; it lasted from the first creation until the last object was usable."""
        summaries = _documents_of(output, _SUMMARY)
        if len(summaries) != 1:
            raise OutputError(f"{_SUMMARY} has {len(summaries)} jobs instead of one")
        summary = summaries[0]
        timed = _all_timed(parameters, summary, output)
        usable = [item for items in timed.values() for item in items]
        start = min((item.created for item in usable), default=0)
        logged, throttling = read_log(output)
        errors = [message for kind, items in timed.items() for message in _missing(kind, parameters, items)]
        # Why objects are not usable, as their events say.
        reasons = excerpt(output.files.get(PROBLEMS_FILE, "")) if errors or parameters.churn else []
        errors += [*reasons, *(logged if errors else ())]
        passed = summary["passed"].flag()
        if output.exit_code or not passed:
            written = summary["executionErrors"].line() if "executionErrors" in summary else ""
            last_line = [printable(line) for line in output.stderr.rstrip().splitlines()[-1:]]
            errors += filter(None, (written, *(logged or last_line)))
            errors.append(f"kube-burner ended with exit code {output.exit_code}{'' if passed else ' and did not pass'}")
        pods = timed.get(_POD, [])
        return Measurement(
            # `VERSION@COMMIT`, or `@` in a program that was built without.
            tool_version=summary["version"].line().partition("@")[0] if "version" in summary else "",
            started_at=output.launched_at,
            runtime=max((item.usable_at for item in usable), default=start) - start,
            operations=tuple(
                OperationSample(operation=kind.operation, ios=len(items), bytes=0, latency=sample_of(latencies))
                for kind, items in timed.items()
                for latencies in ([item.latency for item in items],)
            ),
            pace=_pace(parameters, timed[_CLAIM]),
            inexact=sum(not pod.exact for pod in pods) / len(pods) if pods else None,
            errors=bounded(errors),
            warnings=bounded([*_remarks(parameters, pods), *throttling, *(() if errors else logged)]),
        )


def pods_text(pods: Sequence[Mapping[str, Any]], events: Sequence[Mapping[str, Any]]) -> str:
    """Return the content of PODS_FILE from pods and events of the API server; empty without ready pods."""
    # When containers last started, by the UID of the pod and the path in it.
    times: dict[tuple[str, str], int] = {}
    for event in events:
        if event.get("reason") == STARTED and (match := _EVENT.fullmatch(event["metadata"]["name"])):
            about = event.get("involvedObject", {})
            container = about.get("uid", ""), about.get("fieldPath", "")
            times[container] = max(times.get(container, 0), int(match["time"], 16))
    # Only pods of kube-burner's template, and none that is being deleted: a churn may create it again.
    ready = (pod for pod in pods if _NAME.fullmatch(pod["metadata"]["name"]) and not is_going(pod) and is_ready(pod))
    entries = [entry for pod in ready if (entry := _entry(pod, times))]
    return json.dumps(entries) if entries else ""


def is_going(obj: Mapping[str, Any]) -> bool:
    return "deletionTimestamp" in obj["metadata"]


def is_ready(pod: Mapping[str, Any]) -> bool:
    conditions = pod.get("status", {}).get("conditions") or ()
    return any(condition.get("type") == "Ready" and condition.get("status") == "True" for condition in conditions)


def started_pods(output: Output) -> list[_Timed]:
    """Return the pods of PODS_FILE, which is missing if none was ready; OutputError if it is malformed."""
    pods = []
    for document in _documents_of(output, PODS_FILE) if PODS_FILE in output.files else []:
        match = _NAME.fullmatch(name := document["name"].line())
        if match is None:
            raise OutputError(f"{document.path}.name is not the name of a pod of kube-burner: {name}")
        iteration, created, exact = int(match["iteration"]), document["created"].count(), document["exact"].flag()
        latency = document["started"].count() - created
        pods.append(_Timed(name=name, iteration=iteration, created=created, latency=latency, exact=exact, missed=True))
    return pods


def _documents_of(output: Output, name: str) -> list[JsonNode]:
    """Return the list of objects in a file; OutputError if it is missing or malformed."""
    if name not in output.files:
        raise OutputError(f"kube-burner wrote no {name}, {failure(output, *read_log(output)[0])}")
    return JsonNode.parse(output.files[name], path=name).elements()


def _entry(pod: Mapping[str, Any], times: Mapping[tuple[str, str], int]) -> Mapping[str, object] | None:
    """Return the entry of a pod in PODS_FILE; None if it is unknown when its last container started."""
    metadata = pod["metadata"]
    states = [status.get("state", {}).get("running") or {} for status in pod["status"].get("containerStatuses") or ()]
    second = max((nanoseconds_of(state["startedAt"]) for state in states if state.get("startedAt")), default=0)
    # Init containers do not count.
    names = [container["name"] for container in pod.get("spec", {}).get("containers") or ()]
    events = [times.get((metadata["uid"], f"spec.containers{{{name}}}"), 0) for name in names]
    last = max(events, default=0) if all(events) else 0
    # Otherwise events of the last container's start are missing.
    is_exact = last >= max(second, 1)
    if not (second or is_exact):
        return None
    # The end of the second: a pod's time is never too short.
    started, created = last if is_exact else second + SECOND, nanoseconds_of(metadata["creationTimestamp"])
    return {"name": metadata["name"], "created": created, "started": started, "exact": is_exact}


def _all_timed(parameters: KubeBurnerParameters, summary: JsonNode, output: Output) -> dict[_Kind, list[_Timed]]:
    """Return the objects of each kind that were usable in time; OutputError if some cannot be of this job."""
    timed: dict[_Kind, list[_Timed]] = {}
    for kind in (_CLAIM, _POD) if parameters.pods else (_CLAIM,):
        prefix = f"{kind.key}LatencyMeasurement-"
        names = [name for name in output.files if name.startswith(prefix)]
        if len(names) > 1:
            raise OutputError(f"there are several files {prefix}*.json: {', '.join(sorted(map(printable, names)))}")
        # Without any usable object, kube-burner writes no file.
        documents = _documents_of(output, names[0]) if names else []
        timed[kind] = [_timed(kind, parameters, summary, document) for document in documents]
    pods = started_pods(output) if parameters.pods else []
    # kube-burner waits for one kind of object after the other, and the helper looks later than that. So all objects
    # have to be usable in the same time from the last creation, which may be known only to the second.
    created = [item.created for items in (*timed.values(), pods) for item in items]
    last = max(created, default=0)
    if (apart := (last - min(created, default=0)) / SECOND) > parameters.limit_seconds:
        most = parameters.limit_seconds
        raise OutputError(f"objects have a timestamp, or were created, {apart:.0f} s apart, but the job has {most} s")
    limit = last + SECOND + parameters.ready_seconds * SECOND
    for kind, items in timed.items():
        seen = [item for item in items if item.latency]
        known = {(item.name, item.created) for item in seen}
        missed = [pod for pod in pods if (pod.name, pod.created) not in known and pod.usable_at <= limit]
        all_items = [*seen, *(missed if kind is _POD else ())]
        _check_items(kind, parameters, all_items)
        timed[kind] = [item for item in all_items if item.usable_at <= limit]
    return timed


def _timed(kind: _Kind, parameters: KubeBurnerParameters, summary: JsonNode, document: JsonNode) -> _Timed:
    if document["uuid"].line() != summary["uuid"].line():
        raise OutputError(f"{document.path}.uuid differs from the one in {_SUMMARY}")
    if kind is _CLAIM and _converted(document["size"], parse_quantity, "a quantity") != parameters.volume_size:
        size, requested = document["size"].line(), format_quantity(parameters.volume_size)
        raise OutputError(f"{document.path}.size is {size} instead of {requested}")
    iteration = document["jobIteration"].count()
    if iteration >= parameters.objects:
        raise OutputError(f"{document.path}.jobIteration is {iteration}, but there are only {parameters.objects}")
    return _Timed(
        name=document[f"{kind.key}Name"].line(),
        iteration=iteration,
        created=_converted(document["timestamp"], nanoseconds_of, "a time"),
        latency=document[kind.latency].count(at_most=10**9) * MILLISECOND,
    )


def _converted(node: JsonNode, convert: Callable[[str], int], what: str) -> int:
    try:
        return convert(node.line())
    except ValueError as error:
        raise node.error(f"is not {what}: {printable(node.value)}") from error


def _check_items(kind: _Kind, parameters: KubeBurnerParameters, items: Sequence[_Timed]) -> None:
    """Refuse an object that occurs twice, which only a churn creates again, and those of another job."""
    repeated = [number for number, count in Counter(item.iteration for item in items).items() if count > 1]
    if repeated and parameters.churn is None:
        raise OutputError(f"{kind.noun} {repeated[0]} occurs twice")
    if len(items) > parameters.claims or any(item.iteration >= parameters.objects for item in items):
        raise OutputError(f"there are more {kind.noun}s than the {parameters.claims} that were requested")
    if early := [item.name for item in items if item.latency <= 0]:
        raise OutputError(f"{early[0]} started before it was created; synchronise the nodes' clocks")


def _missing(kind: _Kind, parameters: KubeBurnerParameters, usable: Sequence[_Timed]) -> Iterator[str]:
    """Yield the error that objects were not usable in time, if so."""
    absent = sorted({*range(parameters.objects)} - {item.iteration for item in usable})
    if len(usable) != parameters.claims and not (kind is _POD and parameters.churn and not absent):
        listed = ", ".join(map(str, absent[:5])) + (" ..." if absent[5:] else "")
        which = f"; not {kind.done}: number {listed}" if absent else ""
        number = f"{len(usable)} of {parameters.claims} {kind.noun}s"
        yield f"{number} were {kind.done} within {parameters.ready_seconds} s{which}"


def _remarks(parameters: KubeBurnerParameters, pods: Sequence[_Timed]) -> Iterator[str]:
    """Yield how many pods have no time, or only one from the cluster, and whether their times are exact."""
    wanted, missed = parameters.claims, [pod for pod in pods if pod.missed]
    if parameters.pods and parameters.churn and len(pods) < wanted:
        # It times one after the other.
        yield f"{wanted - len(pods)} of {wanted} pods were deleted by the churn before kube-burner had timed them"
    if missed:
        number = f"{len(missed)} of {wanted} pods"
        yield f"kube-burner missed the start of {number}; their times are from the cluster's own events"
    if inexact := sum(not pod.exact for pod in missed):
        yield f"{inexact} of {wanted} pods have no event of their start; their times may be up to 2 s too long"
    # Otherwise a second is less than a fifth of it.
    if pods and (mean := fmean(pod.latency for pod in pods)) < 5 * SECOND:
        yield (
            f"pods started after {mean / SECOND:.1f} s on average; each of their times may be up to 1 s too long, "
            "because only the second of a pod's creation is known"
        )


def _pace(parameters: KubeBurnerParameters, claims: Sequence[_Timed]) -> float | None:
    if parameters.churn is not None or len(claims) != parameters.objects:
        return None
    taken = (max(claim.created for claim in claims) - min(claim.created for claim in claims)) / SECOND
    requests = parameters.objects * (2 if parameters.pods else 1)
    # Creating the first objects takes up to a second at any rate.
    planned = 1 + max(0, requests - (parameters.burst or parameters.qps)) / parameters.qps
    return min(1.0, planned / max(taken, 1))
