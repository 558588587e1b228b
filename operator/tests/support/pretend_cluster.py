"""What a cluster does with a run's objects, step by step as a test wants it: scheduler, kubelet, Jobs, volumes.

The garbage collector is FakeKube's. The conductor is in support/pretend_conductor.py, the operator in
support/pretend_world.py.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from plimsoll.api.status import format_time
from plimsoll.kube.port import Kind
from plimsoll.lifecycle import naming
from support.fake_kube import FakeKube, copy_of, is_going

Document = dict[str, Any]

KUBELET = "pretend/kubelet"
PROTECTION = "kubernetes.io/pvc-protection"
NOBODY = -1
NODES = ("node-0", "node-1")
NAMESPACE = "bench"
STORAGE_CLASS = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {"name": "fast"},
    "provisioner": "csi.example.com",
    "parameters": {"tier": "ssd"},
    "reclaimPolicy": "Delete",
    "volumeBindingMode": "WaitForFirstConsumer",
    "allowVolumeExpansion": True,
}
START = datetime(2026, 1, 1, 12, tzinfo=UTC)


@dataclass
class Faults:
    """What does not work at present; clients by number, None for the conductor.

    Attributes:
        silent: their containers do not start, and the pod does not say why.
        unmounted: their volumes cannot be mounted.
        unusable: their containers cannot be made.
        over_quota: their Jobs may make no pods.
        nodes_ahead: how far the clocks of all nodes are ahead of the API server's.
        no_driver: no CSI driver makes volumes, and so nobody warns.
        sidecars: pods have a second container, which ends only when they are deleted.

    """

    unschedulable: set[int | None] = field(default_factory=set)
    unpullable: set[int | None] = field(default_factory=set)
    unmounted: set[int | None] = field(default_factory=set)
    unusable: set[int | None] = field(default_factory=set)
    silent: set[int | None] = field(default_factory=set)
    over_quota: set[int | None] = field(default_factory=set)
    no_volumes: bool = False
    no_driver: bool = False
    sidecars: bool = False
    dead_nodes: set[str] = field(default_factory=set)
    nodes_ahead: timedelta = timedelta()


class PretendCluster:
    """The controllers over one API in memory, and a clock that the test holds in its hands.

    Attributes:
        away: runs by UID that have taken OSDs away and not given them back.

    """

    def __init__(self) -> None:
        self.now = START
        self.faults = Faults()
        self.kube = FakeKube(namespaces=[NAMESPACE], now=lambda: self.now)
        self.kube.put(STORAGE_CLASS)
        self.away: set[str] = set()
        self._pods_of: dict[str, set[str]] = {}
        self._failed: dict[str, set[str]] = {}
        self._ignored: set[str] = set()
        self._numbers = 0

    def pass_time(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)

    # -- objects

    def find(self, kind: str, name: str) -> Document | None:
        return next(iter(self.kube.objects(kind, lambda obj: obj["metadata"]["name"] == name)), None)

    def of_run(self, kind: str, uid: str) -> list[Document]:
        return list(self.kube.objects(kind, lambda obj: label(obj, naming.LABEL_RUN_UID) == uid))

    def edit(self, obj: Document, change: Callable[[Document], None]) -> None:
        """Change an object as it is now, if it is still there."""
        key = self.kube._key(Kind.of(obj), obj["metadata"].get("namespace"), obj["metadata"]["name"])
        known = self.kube._objects.get(key)
        if known is None or known["metadata"]["uid"] != obj["metadata"]["uid"]:
            return
        new = copy_of(known)
        change(new)
        self.kube._replace(key, new)

    def delete(self, obj: Document, *, foreground: bool = False) -> None:
        """Delete an object as a user, not as the operator."""
        key = self.kube._key(Kind.of(obj), obj["metadata"].get("namespace"), obj["metadata"]["name"])
        if key in self.kube._objects:
            self.kube._delete(key, foreground=foreground)

    def let_go(self, obj: Document, finalizer: str) -> None:
        def change(new: Document) -> None:
            kept = [name for name in new["metadata"].get("finalizers", []) if name != finalizer]
            new["metadata"]["finalizers"] = kept

        self.edit(obj, change)

    def set_status(self, obj: Document, **status: Any) -> None:
        """Change a status; the API server keeps when."""

        def change(new: Document) -> None:
            before = copy_of(new.get("status"))
            new.setdefault("status", {}).update(status)
            if new["status"] != before:
                entry = {"manager": "pretended", "subresource": "status", "time": format_time(self.now)}
                new["metadata"]["managedFields"] = [entry]

        self.edit(obj, change)

    # -- all of them, once

    def step(self) -> None:
        self.bind_claims()
        self.run_jobs()
        self.run_pods()

    # -- volumes

    def bind_claims(self) -> None:
        """Bind claims that a scheduled pod waits for, and let unused ones go."""
        for claim in self.kube.objects("PersistentVolumeClaim"):
            users = self._users(claim)
            if is_going(claim):
                if not users:
                    self.let_go(claim, PROTECTION)
                continue
            if PROTECTION not in claim["metadata"].get("finalizers", []):
                self.edit(claim, lambda new: new["metadata"].setdefault("finalizers", []).append(PROTECTION))
            if claim.get("status", {}).get("phase") == "Bound":
                continue
            if self.faults.no_driver:
                words = "Waiting for a volume to be created either by the external provisioner 'absent' or manually"
                self._complain(claim, "ExternalProvisioning", words, kind="Normal")
            elif self.faults.no_volumes:
                self._complain(claim, "ProvisioningFailed", 'storageclass.storage.k8s.io "absent" not found')
            elif users or self._binds_immediately(claim):
                self.set_status(claim, phase="Bound")

    def _binds_immediately(self, claim: Document) -> bool:
        storage_class = self.find("StorageClass", claim.get("spec", {}).get("storageClassName", ""))
        return storage_class is not None and storage_class.get("volumeBindingMode") != "WaitForFirstConsumer"

    def _users(self, claim: Document) -> Sequence[Document]:
        def is_user(pod: Document) -> bool:
            claims = (v.get("persistentVolumeClaim", {}).get("claimName") for v in pod["spec"]["volumes"])
            return claim["metadata"]["name"] in claims and phase(pod) not in {"Succeeded", "Failed"}

        return self.kube.objects("Pod", is_user)

    def _complain(self, obj: Document, reason: str, message: str, *, kind: str = "Warning") -> None:
        event = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": f"{obj['metadata']['name']}.1", "namespace": obj["metadata"]["namespace"]},
            "type": kind,
            "reason": reason,
            "message": message,
            "lastTimestamp": format_time(self.now),
            "involvedObject": {"kind": obj["kind"], "uid": obj["metadata"]["uid"]},
        }
        self.kube.put(event)

    # -- Jobs

    def run_jobs(self) -> None:
        for job in self.kube.objects("Job"):
            if not is_going(job) and not condition(job, "Complete") and not condition(job, "Failed"):
                self._run_job(job)

    def _run_job(self, job: Document) -> None:
        uid = job["metadata"]["uid"]

        def is_owned(pod: Document) -> bool:
            return any(owner["uid"] == uid for owner in pod["metadata"].get("ownerReferences", []))

        pods = {pod["metadata"]["uid"]: pod for pod in self.kube.objects("Pod", is_owned)}
        self._pods_of.setdefault(uid, set()).update(pods)
        active = [pod for pod in pods.values() if phase(pod) in {"Pending", "Running"}]
        if any(phase(pod) == "Succeeded" for pod in pods.values()):
            self._conclude(job, "Complete", "CompletionsReached", "")
        elif reason := self._failure(job, pods):
            for pod in active:
                self.delete(pod)
            self._conclude(job, "FailureTarget" if active else "Failed", *reason)
        elif not active and role_of(job) in self.faults.over_quota:
            words = f'pods "{job["metadata"]["name"]}" is forbidden: exceeded quota: few, limited: pods=1'
            self._complain(job, "FailedCreate", f"Error creating: {words}")
        elif not active:
            self._make_pod(job)

    def _failure(self, job: Document, pods: dict[str, Document]) -> tuple[str, str] | None:
        uid, spec = job["metadata"]["uid"], job["spec"]
        failed = self._failed.setdefault(uid, set())
        waits_for_end = spec.get("podReplacementPolicy") == "Failed"
        for known in sorted(self._pods_of[uid]):
            pod = pods.get(known)
            rules = spec.get("podFailurePolicy", {}).get("rules", [])
            code = exit_code(pod) if pod is not None and phase(pod) == "Failed" else None
            matching = (rule for rule in rules if code in rule.get("onExitCodes", {}).get("values", []))
            action = next((rule["action"] for rule in matching), "")
            if action == "FailJob":
                return "PodFailurePolicy", f"Container failed with exit code {code}"
            if action == "Ignore":
                self._ignored.add(known)
            gone = pod is None or phase(pod) == "Failed" or (is_going(pod) and not waits_for_end)
            if gone and known not in self._ignored:
                failed.add(known)
        if len(failed) > spec["backoffLimit"]:
            return "BackoffLimitExceeded", "Job has reached the specified backoff limit"
        age = (self.now - datetime.fromisoformat(job["metadata"]["creationTimestamp"])).total_seconds()
        if age > spec.get("activeDeadlineSeconds", age):
            return "DeadlineExceeded", "Job was active longer than specified deadline"
        return None

    def _conclude(self, job: Document, kind: str, reason: str, message: str) -> None:
        self.set_status(job, conditions=[{"type": kind, "status": "True", "reason": reason, "message": message}])
        if kind == "Failed":
            self._complain(job, reason, message)

    def _make_pod(self, job: Document) -> None:
        self._numbers += 1
        template, metadata = job["spec"]["template"], job["metadata"]
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": metadata["name"], "uid": metadata["uid"]}
        of_pod = {
            "name": f"{metadata['name']}-{self._numbers:05d}",
            "namespace": metadata["namespace"],
            "labels": copy_of(template["metadata"]["labels"]),
            "ownerReferences": [owner | {"controller": True, "blockOwnerDeletion": True}],
            "finalizers": [KUBELET],
        }
        parts = {"spec": copy_of(template["spec"]), "status": {"phase": "Pending"}}
        self.kube.put({"apiVersion": "v1", "kind": "Pod", "metadata": of_pod, **parts})

    # -- pods

    def run_pods(self) -> None:
        """Schedule and start what can be, and let go what is being deleted; nothing happens on a dead node."""
        for pod in self.kube.objects("Pod"):
            node = pod["spec"].get("nodeName", "")
            if node in self.faults.dead_nodes:
                continue
            if is_going(pod) and self.faults.sidecars and phase(pod) == "Running" and exit_code(pod) is not None:
                self.set_status(pod, phase="Failed")
            elif is_going(pod):
                # A conductor hears of it and has a last word: see PretendConductor.stop.
                if client_of(pod) is not None or phase(pod) != "Running":
                    self.let_go(pod, KUBELET)
            elif phase(pod) == "Pending":
                self._start(pod)

    def _start(self, pod: Document) -> None:
        client = role_of(pod)
        nodes = [node for node in NODES if node not in self.faults.dead_nodes]
        words = ""
        if not nodes or client in self.faults.unschedulable:
            words = "0/2 nodes are available: 2 Insufficient memory."
        elif (self.faults.no_volumes or self.faults.no_driver) and client not in {None, NOBODY}:
            words = "0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims."
        if words:
            entry = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": words}
            self.set_status(pod, conditions=[entry])
            return
        if not pod["spec"].get("nodeName"):
            self.schedule(pod, nodes[(client or 0) % len(nodes)])
        if client in self.faults.unpullable:
            self._hold(pod, "ImagePullBackOff", 'Back-off pulling image "runner:1"')
        elif client in self.faults.unusable:
            self._hold(pod, "CreateContainerConfigError", "secret not found")
        elif client in self.faults.unmounted:
            self._hold(pod, "ContainerCreating", "")
            self._complain(pod, "FailedMapVolume", "MapVolume.SetUpDevice failed: rpc error: image not found")
        elif client in self.faults.silent:
            self._hold(pod, "ContainerCreating", "")
        elif self._has_volumes(pod):
            running = {"startedAt": format_time(self.now + self.faults.nodes_ahead)}
            self.set_status(pod, phase="Running", conditions=[], containerStatuses=container_of(pod, running=running))

    def schedule(self, pod: Document, node: str) -> None:
        self.edit(pod, lambda new: new["spec"].update(nodeName=node))

    def _hold(self, pod: Document, reason: str, message: str) -> None:
        waiting = {"reason": reason, "message": message}
        self.set_status(pod, conditions=[], containerStatuses=container_of(pod, waiting=waiting))

    def _has_volumes(self, pod: Document) -> bool:
        """Whether all claims of a pod are bound, and all keys of ConfigMaps and Secrets exist that it needs."""
        for volume in pod["spec"]["volumes"]:
            if "persistentVolumeClaim" in volume:
                claim = self.find("PersistentVolumeClaim", volume["persistentVolumeClaim"]["claimName"])
                if claim is None or claim.get("status", {}).get("phase") != "Bound":
                    return False
            for source in volume.get("projected", {}).get("sources", []):
                for kind, field_name in (("ConfigMap", "configMap"), ("Secret", "secret")):
                    if field_name in source:
                        place = {"namespace": pod["metadata"]["namespace"], "name": source[field_name]["name"]}
                        there = (obj for obj in self.kube.objects(kind) if place.items() <= obj["metadata"].items())
                        keys = {key for obj in there for key in obj.get("data", {})}
                        if not keys >= {item["key"] for item in source[field_name]["items"]}:
                            return False
        return True

    def end(self, pod: Document, code: int, words: str = "") -> None:
        reason = "Completed" if code == 0 else "Error"
        finished = format_time(self.now + self.faults.nodes_ahead)
        ended = {"exitCode": code, "reason": reason, "message": words, "finishedAt": finished}
        statuses = container_of(pod, terminated=ended)
        if self.faults.sidecars:
            self.set_status(pod, containerStatuses=[*statuses, {"name": "sidecar", "state": {"running": {}}}])
        else:
            self.set_status(pod, phase="Failed" if code else "Succeeded", containerStatuses=statuses)

    def lose_node(self, node: str) -> None:
        """Lose a node: its pods are marked for deletion, but keep running."""
        self.faults.dead_nodes.add(node)
        for pod in self.kube.objects("Pod"):
            if pod["spec"].get("nodeName") == node:
                self.delete(pod)


def label(obj: Document, name: str) -> str:
    return str(obj["metadata"].get("labels", {}).get(name, ""))


def client_of(obj: Document) -> int | None:
    text = label(obj, naming.LABEL_CLIENT)
    return int(text) if text else None


def role_of(obj: Document) -> int | None:
    """Return a client's number, None for a conductor, and `NOBODY` for what is neither."""
    return NOBODY if label(obj, naming.LABEL_COMPONENT) == naming.TEARDOWN else client_of(obj)


def phase(pod: Document) -> str:
    return str(pod["status"]["phase"])


def condition(obj: Document, kind: str) -> Document | None:
    found = obj.get("status", {}).get("conditions", [])
    return next((entry for entry in found if entry["type"] == kind and entry["status"] == "True"), None)


def container_of(pod: Document, **state: Document) -> list[Document]:
    return [{"name": pod["spec"]["containers"][0]["name"], "state": state}]


def exit_code(pod: Document | None) -> int | None:
    for container in (pod or {"status": {}})["status"].get("containerStatuses", []):
        ended = container["state"].get("terminated")
        if ended:
            return int(ended["exitCode"])
    return None


def pool_of(volume: Document) -> str:
    """Return the pool of a volume; empty if it is not in Ceph."""
    return str(volume["spec"]["csi"].get("volumeAttributes", {}).get("pool", ""))


def volume_of(claim: Document, storage_class: Document) -> Document:
    name, driver = f"pvc-{claim['metadata']['uid']}", storage_class["provisioner"]
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        # Without this note, the binder would try to delete the volume itself.
        "metadata": {"name": name, "annotations": {"pv.kubernetes.io/provisioned-by": driver}},
        "spec": {
            "accessModes": claim["spec"].get("accessModes", []),
            "capacity": claim["spec"].get("resources", {}).get("requests", {}),
            "claimRef": {key: claim["metadata"][key] for key in ("namespace", "name", "uid")},
            "csi": {"driver": driver, "volumeHandle": name, "volumeAttributes": storage_class.get("parameters", {})},
            "persistentVolumeReclaimPolicy": storage_class["reclaimPolicy"],
            "storageClassName": storage_class["metadata"]["name"],
            "volumeMode": claim["spec"].get("volumeMode", "Filesystem"),
        },
    }
