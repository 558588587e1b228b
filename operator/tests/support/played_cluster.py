"""What the controllers of a cluster write to an API server that has none, in as many writes as theirs.

Scheduler, kubelet, Job controller, garbage collector and a CSI driver for the objects of one namespace; and a conductor
that reports what a real one does, without measuring anything.
"""

import json
from collections.abc import Iterator
from typing import Any

from plimsoll.api.names import RunPhase
from plimsoll.api.result import ResultStatus
from plimsoll.api.status import CurrentTrial, Live, RunState, TrialKey
from plimsoll.lifecycle import naming
from plimsoll.lifecycle.render.common import PLAN_FILE, STATE_FILE
from plimsoll.plan.document import Plan, load_plan
from support.apiserver import ApiServer, Document
from support.pretend_cluster import label

_MERGE = "application/merge-patch+json"
_TIME = "2026-01-01T12:00:00Z"
_CONCLUSIONS = ("SuccessCriteriaMet", "Complete")


class PlayedCluster:
    """The controllers, which do their next write to every object when they are asked to."""

    def __init__(self, api: ApiServer, namespace: str) -> None:
        self._api = api
        self._namespace = namespace
        self._done: set[str] = set()

    def step(self) -> None:
        """Do the next write to every object that needs one."""
        for job in self.objects("jobs"):
            self._control(job)
        for claim in self.objects("persistentvolumeclaims"):
            self._provision(claim)
        for pod in self.objects("pods"):
            self._run(pod)

    def objects(self, plural: str) -> list[Document]:
        found: list[Document] = self._api.request("GET", self.path(plural)).expect(200)["items"]
        return found

    def conductor(self) -> Document | None:
        """Return the conductor's pod if it runs."""
        pods = (pod for pod in self.objects("pods") if label(pod, naming.LABEL_COMPONENT) == naming.CONDUCTOR)
        return next((pod for pod in pods if pod["status"].get("phase") == "Running"), None)

    def finish(self) -> None:
        """Have all containers end well."""
        self._done |= {pod["metadata"]["uid"] for pod in self.objects("pods")}

    def path(self, plural: str, name: str = "") -> str:
        groups = {"jobs": "/apis/batch/v1", "benchmarkresults": "/apis/plimsoll.dev/v1alpha1"}
        return f"{groups.get(plural, '/api/v1')}/namespaces/{self._namespace}/{plural}/{name}".rstrip("/")

    def patch(self, plural: str, name: str, change: Document, part: str = "") -> None:
        path = f"{self.path(plural, name)}/{part}".rstrip("/")
        self._api.request("PATCH", path, change, content=_MERGE).expect(200)

    # -- Jobs

    def _control(self, job: Document) -> None:
        name, status = job["metadata"]["name"], job.get("status", {})
        pods = [pod for pod in self.objects("pods") if _is_owned(pod, job)]
        if "deletionTimestamp" in job["metadata"]:
            for pod in pods:
                self._api.request("DELETE", self.path("pods", pod["metadata"]["name"]))
            if not pods:
                self.patch("jobs", name, {"metadata": {"finalizers": None}})
        elif not pods:
            self._api.request("POST", self.path("pods"), _pod_of(job)).expect(201)
        elif not status.get("active") and not status.get("succeeded"):
            self._say(job, active=1, ready=0, terminating=0, startTime=_TIME, uncountedTerminatedPods={})
        elif pods[0]["status"].get("phase") == "Running" and not status.get("ready"):
            self._say(job, ready=1)
        elif pods[0]["status"].get("phase") == "Succeeded" and len(status.get("conditions", [])) < len(_CONCLUSIONS):
            self._conclude(job)

    def _conclude(self, job: Document) -> None:
        """Count the pod, and say that the Job is complete, in three writes."""
        if not job["status"].get("succeeded"):
            self._say(job, active=0, ready=0, succeeded=1)
            return
        known = job["status"].get("conditions", [])
        new = {"type": _CONCLUSIONS[len(known)], "status": "True", "reason": "CompletionsReached"}
        ended = {"completionTime": _TIME} if known else {}
        self._say(job, conditions=[*known, new], **ended)

    def _say(self, job: Document, **status: Any) -> None:
        self.patch("jobs", job["metadata"]["name"], {"status": status}, "status")

    # -- volumes

    def _provision(self, claim: Document) -> None:
        metadata, name = claim["metadata"], claim["metadata"]["name"]
        notes = metadata.get("annotations", {})
        if "deletionTimestamp" in metadata:
            self.patch("persistentvolumeclaims", name, {"metadata": {"finalizers": None}})
        elif "volume.kubernetes.io/selected-node" not in notes:
            self._note(name, "volume.kubernetes.io/selected-node", "node-0")
        elif "volume.kubernetes.io/storage-provisioner" not in notes:
            self._note(name, "volume.kubernetes.io/storage-provisioner", "csi.example.com")
        elif not claim["spec"].get("volumeName"):
            self.patch("persistentvolumeclaims", name, {"spec": {"volumeName": f"pvc-{metadata['uid']}"}})
        elif claim["status"].get("phase") != "Bound":
            status = {"phase": "Bound", "accessModes": claim["spec"]["accessModes"], "capacity": {"storage": "1Gi"}}
            self.patch("persistentvolumeclaims", name, {"status": status}, "status")

    def _note(self, claim: str, annotation: str, value: str) -> None:
        self.patch("persistentvolumeclaims", claim, {"metadata": {"annotations": {annotation: value}}})

    # -- pods

    def _run(self, pod: Document) -> None:
        name, status = pod["metadata"]["name"], pod["status"]
        if "deletionTimestamp" in pod["metadata"]:
            self._api.request("DELETE", f"{self.path('pods', name)}?gracePeriodSeconds=0")
        elif not pod["spec"].get("nodeName"):
            binding = {"metadata": {"name": name}, "target": {"kind": "Node", "name": "node-0"}}
            self._api.request("POST", f"{self.path('pods', name)}/binding", binding).expect(201)
        elif "containerStatuses" not in status:
            self._observe(pod, "Pending", {"waiting": {"reason": "ContainerCreating"}}, startTime=_TIME)
        elif status.get("hostIP") is None:
            self._observe(pod, "Pending", {"waiting": {"reason": "ContainerCreating"}}, hostIP="192.0.2.1")
        elif status["phase"] == "Pending" and self._has_volumes():
            self._observe(pod, "Running", {"running": {"startedAt": _TIME}}, podIP="10.0.0.1")
        elif status["phase"] == "Running" and pod["metadata"]["uid"] in self._done:
            self._observe(pod, "Succeeded", {"terminated": {"exitCode": 0, "reason": "Completed"}})

    def _has_volumes(self) -> bool:
        return all(one["status"].get("phase") == "Bound" for one in self.objects("persistentvolumeclaims"))

    def _observe(self, pod: Document, phase: str, state: Document, **more: Any) -> None:
        container = {"name": pod["spec"]["containers"][0]["name"], "state": state, "image": "runner:1", "imageID": ""}
        ready = {"type": "Ready", "status": str(phase == "Running")}
        status = {"phase": phase, "containerStatuses": [{**container, "ready": phase == "Running", "restartCount": 0}]}
        self.patch("pods", pod["metadata"]["name"], {"status": {**status, "conditions": [ready], **more}}, "status")


class PlayedConductor:
    """A conductor, whose pod runs."""

    def __init__(self, cluster: PlayedCluster, run: str, pod: Document) -> None:
        self._cluster = cluster
        self._run = run
        self._job = pod["metadata"]["ownerReferences"][0]["uid"]
        self._state = RunState(epoch=pod["metadata"]["uid"])
        maps = {one["metadata"]["name"]: one for one in cluster.objects("configmaps")}
        self.plan: Plan = load_plan(maps[naming.plan_config_map(run)]["data"][PLAN_FILE])

    def gather(self) -> Iterator[None]:
        """Report that one client after the other registers; yield after each write."""
        everybody = tuple(range(self.plan.members))
        for number in range(len(everybody) + 1):
            missing = everybody[number:]
            message = f"waiting for {len(missing)} clients" if missing else ""
            self._say(registered=everybody[:number], missing=missing, message=message)
            yield
        self._say(gathered=self._job)

    def measure(self, pulses: int) -> Iterator[bool]:
        """Report every trial, so often with its rates; yield after each write whether a status shows it."""
        self._say(phase=RunPhase.MEASURING, trials_total=len(self.plan.pairs), message="")
        for done, (number, point) in enumerate(self.plan.pairs):
            key = TrialKey(point=point.name, pass_number=number, attempt=0)
            self._say(in_flight=key, in_flight_since=_TIME, message="", trials_done=done)
            yield True
            self._say(current=CurrentTrial(key=key, label=point.label, clients=(0,), starts_at=1.0, ends_at=2.0))
            yield True
            for _ in range(pulses):
                self._say(live=Live(clients=1, rates=()))
                yield False
            self._say(current=None, live=None, message=f"recording {key}")
            yield True
            self._record(point.name, is_last=number == self.plan.repetitions - 1)
        self._say(phase=RunPhase.COMPLETE, in_flight=None, trials_done=len(self.plan.pairs), message="")

    def _record(self, point: str, *, is_last: bool) -> None:
        status = ResultStatus(final=is_last).model_dump(mode="json", exclude_none=True)
        self._cluster.patch("benchmarkresults", naming.result(self._run, point), {"status": status}, "status")

    def _say(self, **changes: Any) -> None:
        elapsed = self._state.elapsed_seconds + 1
        self._state = self._state.model_copy(update={"elapsed_seconds": elapsed, **changes})
        data = {STATE_FILE: self._state.model_dump_json()}
        self._cluster.patch("configmaps", naming.state_config_map(self._run), {"data": data})


def _is_owned(pod: Document, job: Document) -> bool:
    return any(owner["uid"] == job["metadata"]["uid"] for owner in pod["metadata"].get("ownerReferences", ()))


def _pod_of(job: Document) -> Document:
    metadata, template = job["metadata"], json.loads(json.dumps(job["spec"]["template"]))
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": metadata["name"], "uid": metadata["uid"]}
    named = {"name": f"{metadata['name']}-0", "ownerReferences": [{**owner, "controller": True}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": template["metadata"] | named, "spec": template["spec"]}
