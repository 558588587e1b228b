"""An API server as far as an operator's look needs one: `apiserver.py POINTS PASSES CLIENTS`; prints its port.

It holds one run that measures, with the objects that the operator makes of it, and results with that many passes.
"""

import asyncio
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

from aiohttp import web

from plimsoll.api.environment import Environment
from plimsoll.api.names import Outcome, RunPhase
from plimsoll.api.result import ResultStatus, Trial
from plimsoll.api.status import STATE_FILE, RunState, TrialKey
from plimsoll.conductor.size import fit
from plimsoll.lifecycle import naming
from plimsoll.lifecycle.children import Members, child_of, claim_fact, job_fact, pod_fact, result_fact
from plimsoll.lifecycle.decision import Create, CreateSecret
from plimsoll.lifecycle.observed import Observed, observe
from plimsoll.lifecycle.run import Settings, platform_of, run_of
from plimsoll.lifecycle.step import needs_platform, step
from plimsoll.measure.intake import TrialFacts
from plimsoll.measure.summary import summarise
from plimsoll.measure.trial import measure_round
from plimsoll.plan.document import Plan, RunIdentity
from synthetic import document
from written import bound_claim, managed, running_job, running_pod

Document = dict[str, Any]

NAMESPACE, NAME, UID = "bench", "scale", "00000000-0000-4000-8000-000000000000"
SETTINGS = Settings(runner_image="runner:1")
MEMBERS = ("Job", "Pod", "PersistentVolumeClaim")
PLURALS = {
    "/api/v1": ("ConfigMap", "Secret", "Service", "ServiceAccount", "Pod", "PersistentVolumeClaim", "Event"),
    "/apis/apps/v1": ("Deployment",),
    "/apis/batch/v1": ("Job",),
    "/apis/networking.k8s.io/v1": ("NetworkPolicy",),
    "/apis/rbac.authorization.k8s.io/v1": ("Role", "RoleBinding"),
    "/apis/plimsoll.dev/v1alpha1": ("BenchmarkRun", "BenchmarkResult"),
}
_STORAGE_CLASS = {"metadata": {"name": "any"}, "provisioner": "csi.example.com", "reclaimPolicy": "Delete"}
_T0 = 10**18
_RUNTIME_SECONDS = 300
_MEASURED_CLIENTS = 8
_VALUES = 8
"""Block sizes and depths of one workload; a run has as many workloads as its points need."""


def run_document(points: int, passes: int, clients: int) -> Document:
    """Return a run as the API server stores it."""
    sizes = [f"{4 * 2**number}Ki" for number in range(_VALUES)]
    fio = {"pattern": "randrw", "blockSize": sizes, "ioDepth": [2**number for number in range(_VALUES)]}
    workloads = [
        {"name": f"w{number}", "fio": fio, "runtimeSeconds": _RUNTIME_SECONDS, "rampSeconds": 10}
        for number in range(points // _VALUES**2)
    ]
    return {
        "apiVersion": "plimsoll.dev/v1alpha1",
        "kind": "BenchmarkRun",
        "metadata": {"name": NAME, "namespace": NAMESPACE, "uid": UID, "creationTimestamp": _now()},
        "spec": {
            "storage": {"storageClass": {"name": "any"}, "volume": {"size": "10Gi", "mode": "Filesystem"}},
            "clients": {"count": clients},
            "workloads": workloads,
            "repetitions": passes,
            "timeouts": {"totalSeconds": 30 * 86400},
        },
    }


class World:
    """The objects of the run, made by the operator's own decisions."""

    def __init__(self, points: int, passes: int, clients: int) -> None:
        self.body = run_document(points, passes, clients)
        self.objects: dict[tuple[str, str], Document] = {}
        self._made = 0
        while not self._conductor_pods():
            self._look()
            self._play()
        plan = self._observed().plan
        assert plan is not None
        self._measure(plan)
        self._play()

    def of(self, kind: str) -> list[Document]:
        return [obj for (found, _), obj in self.objects.items() if found == kind]

    def add(self, obj: Mapping[str, Any]) -> Document:
        """Store an object with what an API server adds to it."""
        self._made += 1
        metadata = {
            **obj["metadata"],
            "uid": f"00000000-0000-4000-8000-{self._made:012}",
            "resourceVersion": str(self._made),
            "creationTimestamp": _now(),
        }
        new = {**obj, "metadata": metadata}
        metadata["managedFields"] = managed(new, _now())
        self.objects[obj["kind"], metadata["name"]] = new
        return new

    def _observed(self) -> Observed:
        identity = RunIdentity(name=NAME, namespace=NAMESPACE, uid=UID)
        apart = {"BenchmarkResult", "ConfigMap", *MEMBERS}
        fixed = [child_of(obj) for (kind, _), obj in self.objects.items() if kind not in apart]
        members = Members(
            jobs=[job_fact(UID, obj) for obj in self.of("Job")],
            pods=[pod_fact(UID, obj) for obj in self.of("Pod")],
            claims=[claim_fact(UID, obj) for obj in self.of("PersistentVolumeClaim")],
        )
        results = [*map(partial(result_fact, UID), self.of("BenchmarkResult"))]
        return observe(self.of("ConfigMap"), run=identity, members=members, fixed=fixed, results=results)

    def _look(self) -> None:
        run, seen = run_of(self.body, SETTINGS), self._observed()
        if needs_platform(run, seen, SETTINGS):
            seen = replace(seen, platform=platform_of("v1.34.0", [_STORAGE_CLASS], None))
        decision = step(run, seen, SETTINGS, datetime.now(UTC))
        self.body["status"] = decision.status
        for action in decision.actions:
            assert isinstance(action, Create | CreateSecret), action
            self.add(action.obj)

    def _play(self) -> None:
        """Bind all claims and run all Jobs, as a cluster would that has room for them."""
        for claim in self.of("PersistentVolumeClaim"):
            if "status" not in claim:
                bound_claim(claim)
                self._note_writers(claim)
        for job in self.of("Job"):
            name = job["metadata"]["name"]
            if "status" not in job:
                job["status"] = running_job(_now())
                self._note_writers(job)
            if ("Pod", f"{name}-x") not in self.objects:
                self.add(_pod(job, f"{name}-x"))

    def change(self) -> None:
        """Change all Jobs, pods and claims: give each another version."""
        for kind in MEMBERS:
            for obj in self.of(kind):
                self._made += 1
                obj["metadata"]["resourceVersion"] = str(self._made)

    def _note_writers(self, obj: Document) -> None:
        obj["metadata"] |= {"managedFields": []}
        obj["metadata"]["managedFields"] = managed(obj, _now())

    def _conductor_pods(self) -> list[Document]:
        return [pod for pod in self.of("Pod") if naming.LABEL_CLIENT not in pod["metadata"]["labels"]]

    def _measure(self, plan: Plan) -> None:
        """Record all passes but the last one."""
        status = json.loads(_status(plan.repetitions).model_dump_json(exclude_none=True))
        for number, result in enumerate(self.of("BenchmarkResult")):
            shifted = {**status, "display": {"iops": str(number)}}
            self.add({**result, "status": shifted})
        (pod,) = self._conductor_pods()
        state = RunState(
            epoch=pod["metadata"]["uid"],
            phase=RunPhase.MEASURING,
            registered=tuple(range(plan.clients)),
            in_flight=TrialKey(point=plan.points[plan.order[-1][0]].name, pass_number=plan.repetitions - 1, attempt=0),
            in_flight_since=_now(),
            trials_done=len(plan.points) * (plan.repetitions - 1),
            trials_total=len(plan.points) * plan.repetitions,
        )
        place = self.objects["ConfigMap", naming.state_config_map(NAME)]
        place["data"] = {STATE_FILE: state.model_dump_json()}


def _status(passes: int) -> ResultStatus:
    """Return what is recorded of a point; all passes are alike."""
    documents = {n: document(n, _T0, ramp=10, runtime=_RUNTIME_SECONDS) for n in range(_MEASURED_CLIENTS)}
    facts = TrialFacts(clients=tuple(documents), runtime_seconds=_RUNTIME_SECONDS, ramp_seconds=10, t0_nanoseconds=_T0)
    numbers = measure_round(facts, documents)
    trials = tuple(
        Trial(
            pass_number=number,
            attempt=0,
            epoch="e",
            clients=facts.clients,
            outcome=Outcome.MEASURED,
            started_at=_now(),
            finished_at=_now(),
            verdict=numbers.verdict,
            findings=numbers.findings,
            window=numbers.window,
            stalls=numbers.stalls,
            operations=numbers.operations,
            slowest=numbers.slowest,
        )
        for number in range(passes)
    )
    point = summarise(trials, passes)
    environment = Environment.model_validate({f"key{number}": "v" * 64 for number in range(40)})
    return fit(ResultStatus(trials=trials, summary=point.summary, verdict=point.verdict, environment=environment))


def _pod(job: Document, name: str) -> Document:
    template, metadata = job["spec"]["template"], job["metadata"]
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": metadata["name"], "uid": metadata["uid"]}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "generateName": f"{metadata['name']}-",
            "namespace": NAMESPACE,
            "labels": {**template["metadata"]["labels"], **_job_labels(metadata)},
            "annotations": template["metadata"].get("annotations", {}),
            "finalizers": ["batch.kubernetes.io/job-tracking"],
            "ownerReferences": [owner],
        },
        "spec": {**template["spec"], "nodeName": "node-0"},
        "status": running_pod("10.244.1.17", _now(), SETTINGS.runner_image),
    }


def _job_labels(job: Document) -> Document:
    """Return the labels that Kubernetes gives the pods of a Job."""
    named, uid = dict.fromkeys(("batch.kubernetes.io/job-name", "job-name"), job["name"]), job["uid"]
    return named | dict.fromkeys(("batch.kubernetes.io/controller-uid", "controller-uid"), uid)


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class Server:
    """Answers lists, with labels and in pages, and single objects."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._kinds = {
            (root, f"{kind.lower().removesuffix('y')}{'ies' if kind.endswith('y') else 's'}"): kind
            for root, kinds in PLURALS.items()
            for kind in kinds
        }

    async def answer(self, request: web.Request) -> web.Response:
        if request.path == "/version":
            return _json({"gitVersion": "v1.34.0"})
        if request.path == "/run":
            return _json(self._world.body)
        if request.path == "/change":
            self._world.change()
            return web.Response()
        if request.path in PLURALS:
            return _json({"resources": [*self._resources(request.path)]})
        root, _, rest = request.path.partition("/namespaces/")
        plural, _, name = rest.partition("/")[2].partition("/")
        kind = self._kinds[root, plural]
        if not name:
            return _json(self._list(kind, request))
        found = self._world.objects.get((kind, name))
        return _json(found or {"details": {"name": name}}, status=200 if found else 404)

    def _resources(self, root: str) -> Iterator[Document]:
        for (found, plural), kind in self._kinds.items():
            if found == root:
                yield {"name": plural, "kind": kind, "namespaced": True}

    def _list(self, kind: str, request: web.Request) -> Document:
        wanted = [pair.split("=") for pair in request.query.get("labelSelector", "").split(",") if pair]
        found = [obj for obj in self._world.of(kind) if _has(obj, wanted)]
        begin = int(request.query.get("continue", 0))
        end = begin + int(request.query.get("limit", len(found)))
        items = found[begin:end]
        if "PartialObjectMetadataList" in request.headers["Accept"]:
            items = [{"metadata": obj["metadata"]} for obj in items]
        return {"metadata": {"resourceVersion": "1", "continue": str(end) if end < len(found) else ""}, "items": items}


def _json(document: object, status: int = 200) -> web.Response:
    """Return a document without spaces, as a real API server does."""
    return web.json_response(document, status=status, dumps=partial(json.dumps, separators=(",", ":")))


def _has(obj: Document, wanted: Sequence[Sequence[str]]) -> bool:
    labels = obj["metadata"].get("labels", {})
    return all(labels.get(name) == value for name, value in wanted)


async def main() -> None:
    points, passes, clients = map(int, sys.argv[1:4])
    server = Server(World(points, passes, clients))
    application = web.Application()
    application.router.add_route("*", "/{path:.*}", server.answer)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    print(runner.addresses[0][1], flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
