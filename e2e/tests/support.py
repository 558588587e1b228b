"""The cluster for tests: kubectl, waits with deadlines, and the faults that tests inject."""

import fcntl
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from api import Api
from runs import CLEAN, LATE, MEASURED, STANDARD, STORAGE_CLASS, invalid_for_load

ROOT = Path(__file__).parents[2]
CLUSTER = ROOT / "e2e" / "cluster" / "cluster"
OPERATOR_NAMESPACE = "plimsoll-system"
TEARDOWN_NAMESPACE = "plimsoll-teardown"
OPERATOR = "app.kubernetes.io/component=operator"
OPERATOR_LOCK = Path(tempfile.gettempdir()) / "plimsoll-e2e-operator.lock"
"""Held by a test process while no other one may kill the operator."""
ANYWHERE = "0.0.0.0/0"
PATIENCE = 2
"""How many times as long as on an idle machine a wait may take."""

T = TypeVar("T")


class Cluster:
    """One cluster: read over one connection, changed through kubectl.

    Attributes:
        namespaces: all namespaces that this session has created, including deleted ones.

    """

    def __init__(self) -> None:
        self.namespaces: list[str] = []
        self._keeps_operator = False
        self.environment = dict(os.environ)
        for line in self._script("env").splitlines():
            name, _, value = line.removeprefix("export ").partition("=")
            if name:
                self.environment[name] = os.path.expandvars(value.strip("'\""))
        self.api = Api(self.environment["KUBECONFIG"])

    def kubectl(self, *arguments: str, text: str | None = None, check: bool = True) -> str:
        """Return the output of kubectl; fail with its error message."""
        done = subprocess.run(
            ["kubectl", *arguments], input=text, capture_output=True, text=True, env=self.environment, check=False
        )
        if check and done.returncode != 0:
            message = f"kubectl {' '.join(arguments)}: {done.stderr.strip()}"
            raise AssertionError(message)
        return done.stdout if done.returncode == 0 else done.stderr

    def object(self, kind: str, name: str, namespace: str | None = None) -> dict[str, Any]:
        """Return an object; fail if it does not exist."""
        found = self.api.object(kind, name, namespace)
        assert found is not None, f"{kind} {namespace or ''}/{name} does not exist"
        return found

    def items(self, kind: str, namespace: str, **labels: str) -> list[dict[str, Any]]:
        """Return the objects of kinds with these labels (underscores stand for dashes, in plimsoll.dev/...)."""
        selector = ",".join(f"plimsoll.dev/{key.replace('_', '-')}={value}" for key, value in labels.items())
        return self.api.objects(kind, namespace, selector)

    def exists(self, kind: str, name: str, namespace: str | None = None) -> bool:
        return self.api.object(kind, name, namespace) is not None

    def apply(self, manifest: Mapping[str, Any]) -> None:
        self.kubectl("apply", "-f", "-", text=json.dumps(manifest))

    def allow_root(self, namespace: str) -> None:
        """Let a namespace admit clients of raw devices, which are root."""
        label = "pod-security.kubernetes.io/enforce=baseline"
        self.kubectl("label", "namespace", namespace, label, "--overwrite")

    def refusal(self, manifest: Mapping[str, Any]) -> str:
        """Return the API server's error message for a manifest; fail if it is accepted."""
        done = subprocess.run(
            ["kubectl", "apply", "-f", "-"],
            input=json.dumps(manifest),
            capture_output=True,
            text=True,
            env=self.environment,
            check=False,
        )
        assert done.returncode != 0, "the API server accepted the manifest"
        return done.stderr

    def until(self, condition: Callable[[], T | None], *, seconds: float, what: str) -> T:
        """Return the first true value; fail after the timeout, which is for an idle machine."""
        limit = PATIENCE * seconds
        deadline = time.monotonic() + limit
        while time.monotonic() < deadline:
            value = condition()
            if value:
                return value
            time.sleep(1)
        message = f"not within {limit:g} s: {what}"
        raise AssertionError(message)

    def until_gone(self, namespace: str) -> None:
        what = f"namespace {namespace} is gone"
        self.until(lambda: not self.exists("namespaces", namespace), seconds=180, what=what)

    def make_namespace(self, name: str, *, enforce: str = "restricted") -> None:
        """Create a namespace that enforces a profile of Pod Security."""
        labels = {"pod-security.kubernetes.io/enforce": enforce}
        self.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})
        self.namespaces.append(name)

    @contextmanager
    def with_namespace(self, name: str, *, enforce: str = "restricted") -> Iterator[str]:
        """Create a namespace whose name the operator's settings list, and delete it in the end."""
        self.until_gone(name)
        self.make_namespace(name, enforce=enforce)
        yield name
        self.kubectl("delete", "namespace", name, "--ignore-not-found", "--wait=false")
        self.until_gone(name)

    def make_storage_class(self) -> None:
        """Create this process's StorageClass as a copy of the cluster's `standard`."""
        standard = self.object("storageclasses", STANDARD)
        kept = ("apiVersion", "kind", "provisioner", "volumeBindingMode", "reclaimPolicy")
        self.apply({**{key: standard[key] for key in kept}, "metadata": {"name": STORAGE_CLASS}})

    # -- runs

    def run(self, name: str, namespace: str) -> dict[str, Any]:
        return self.object("benchmarkruns", name, namespace)

    def condition(self, name: str, namespace: str, kind: str) -> dict[str, str] | None:
        conditions = self.run(name, namespace).get("status", {}).get("conditions", [])
        return next((condition for condition in conditions if condition["type"] == kind), None)

    def until_condition(
        self,
        name: str,
        namespace: str,
        kind: str,
        *,
        status: str | None = None,
        reason: str | None = None,
        seconds: float = 240,
    ) -> dict[str, str]:
        """Return a condition once it has that status and reason."""

        def holds() -> dict[str, str] | None:
            found = self.condition(name, namespace, kind)
            if found is None or (status and found["status"] != status) or (reason and found["reason"] != reason):
                return None
            return found

        try:
            return self.until(holds, seconds=seconds, what=f"{kind} {status or ''} {reason or ''}")
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.diagnosis(name, namespace)}") from None

    def until_over(self, name: str, namespace: str, *, seconds: float = 300) -> dict[str, str]:
        """Return Succeeded once the run is terminal and clean, or keeps its volumes as specified."""
        self.until_condition(name, namespace, "Succeeded", seconds=90)

        def over() -> dict[str, str] | None:
            ended = self.condition(name, namespace, "Succeeded")
            cleaned = self.condition(name, namespace, "CleanedUp")
            terminal = ended is not None and ended["status"] != "Unknown"
            return ended if terminal and cleaned and cleaned["reason"] in CLEAN else None

        try:
            return self.until(over, seconds=seconds, what=f"{name} is terminal and clean")
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.diagnosis(name, namespace)}") from None

    def until_measured(self, name: str, namespace: str, *, seconds: float = 300) -> None:
        """Return once a run is clean and completely measured; a busy machine may have made it Invalid."""
        ended = self.until_over(name, namespace, seconds=seconds)
        assert ended["reason"] in MEASURED, f"{name}: {ended}\n{self.diagnosis(name, namespace)}"

    def until_measured_in_turn(self, first: str, second: str, namespace: str) -> None:
        """Return once two runs are measured, and check that the second started after the last attempt of the first."""
        for name in (first, second):
            self.until_measured(name, namespace)
        finished = max(trial["finishedAt"] for trial in self.trials(first, namespace))
        assert finished < min(trial["startedAt"] for trial in self.trials(second, namespace))

    def until_succeeded(self, name: str, namespace: str, *, seconds: float = 300) -> dict[str, str]:
        """Return Succeeded once the run has succeeded and is clean.

        A point may be Invalid because the machine is busy, and for no other reason.
        """
        ended = self.until_over(name, namespace, seconds=seconds)
        overloaded = ended["reason"] == "InvalidResults" and self._overloaded(name, namespace)
        assert overloaded or ended["status"] == "True", f"{name}: {ended}\n{self.diagnosis(name, namespace)}"
        return ended

    def _overloaded(self, name: str, namespace: str) -> bool:
        """Whether only the machine's load made points of a run Invalid."""
        invalid = [one["status"] for one in self.results(name, namespace) if one["status"]["verdict"] == "Invalid"]
        return bool(invalid) and all(invalid_for_load(status["trials"]) for status in invalid)

    def results(self, name: str, namespace: str) -> list[dict[str, Any]]:
        return self.items("benchmarkresults", namespace, run=name)

    def trials(self, name: str, namespace: str) -> list[dict[str, Any]]:
        return [
            trial for result in self.results(name, namespace) for trial in result.get("status", {}).get("trials", [])
        ]

    def interruptions(self, name: str, namespace: str) -> list[str]:
        """Return the abort reasons of a run's trials, except late clients, since the machine may be busy."""
        reasons = [trial["abort"]["reason"] for trial in self.trials(name, namespace) if "abort" in trial]
        return [reason for reason in reasons if reason not in LATE]

    def state(self, name: str, namespace: str) -> dict[str, Any]:
        """Return the conductor's state document."""
        state = self.api.object("configmaps", f"{name}-state", namespace) or {}
        found: dict[str, Any] = json.loads(state.get("data", {}).get("state.json") or "{}")
        return found

    def warnings(self, name: str, namespace: str) -> list[str]:
        """Return the Warning events of a run; a successful run has none."""
        found = self.api.objects("events", namespace)
        return [
            f"{event['reason']}: {event['message']}"
            for event in found
            if event["type"] == "Warning"
            and (event["involvedObject"]["kind"], event["involvedObject"]["name"]) == ("BenchmarkRun", name)
        ]

    def measuring(self, name: str, namespace: str) -> dict[str, Any] | None:
        """Return the current trial if its tools run and the usual ramp of 2 s is over."""
        trial: dict[str, Any] | None = self.state(name, namespace).get("current")
        return None if trial is None or time.time() <= trial["startsAt"] + 3 else trial

    def until_measuring(
        self, name: str, namespace: str, *, attempt: int | None = None, seconds: float = 300
    ) -> dict[str, Any]:
        """Return the current trial, or that attempt, once it is `measuring`."""

        def current() -> dict[str, Any] | None:
            ended = self.condition(name, namespace, "Succeeded")
            assert ended is None or ended["status"] == "Unknown", f"{name} ended before that: {ended}"
            trial = self.measuring(name, namespace)
            return None if trial is None or attempt not in {None, trial["key"]["attempt"]} else trial

        try:
            return self.until(current, seconds=seconds, what="a trial is running")
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.diagnosis(name, namespace)}") from None

    def client_pod(self, name: str, namespace: str, client: int) -> dict[str, Any]:
        """Return the pod of a client's latest attempt."""
        pods = self.items("pods", namespace, run=name, client=str(client))
        return max(pods, key=lambda pod: int(pod["metadata"]["labels"]["plimsoll.dev/attempt"]))

    def conductor_pod(self, name: str, namespace: str) -> str:
        selector = f"plimsoll.dev/run={name},app.kubernetes.io/component=conductor"
        pods = self.api.objects("pods", namespace, selector)
        return str(next(pod for pod in pods if pod["status"]["phase"] == "Running")["metadata"]["name"])

    def kill_pod(self, name: str, namespace: str) -> None:
        """Delete a pod without a grace period."""
        self.kubectl("delete", "pod", name, "-n", namespace, "--grace-period=0", "--force")

    def signal_pod(self, pod: Mapping[str, Any], signal: str) -> float:
        """Send a signal to the processes of a pod, from its node; return when, in Unix seconds."""
        return float(self._on_node(pod, "signal.sh", signal))

    def cut_off(self, pod: Mapping[str, Any]) -> float:
        """Drop what a pod sends to the API server; return since when, in Unix seconds."""
        return self._filter(pod, "--insert", self._api_server())

    def connect(self, pod: Mapping[str, Any]) -> None:
        """End what `cut_off` has begun."""
        self._filter(pod, "--delete", self._api_server())

    @contextmanager
    def without_network(self, pod: Mapping[str, Any]) -> Iterator[None]:
        """Drop all that a pod sends."""
        self._filter(pod, "--insert", ANYWHERE)
        try:
            yield
        finally:
            self._filter(pod, "--delete", ANYWHERE)

    def _api_server(self) -> str:
        return str(self.object("services", "kubernetes", "default")["spec"]["clusterIP"])

    def _filter(self, pod: Mapping[str, Any], change: str, to: str) -> float:
        return float(self._on_node(pod, "cut.sh", change, to))

    @contextmanager
    def keeping_operator(self) -> Iterator[None]:
        """Keep other test processes from killing the operator; wait until none is about to."""
        with OPERATOR_LOCK.open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            self._keeps_operator = True
            try:
                yield
            finally:
                self._keeps_operator = False

    def operators(self) -> dict[str, dict[str, Any]]:
        """Return the operator's pods by name."""
        return {pod["metadata"]["name"]: pod for pod in self.api.objects("pods", OPERATOR_NAMESPACE, OPERATOR)}

    def lease(self) -> dict[str, Any]:
        """Return the content of the Lease that the leading operator holds."""
        lease = self.api.object("leases", "plimsoll", OPERATOR_NAMESPACE) or {}
        spec: dict[str, Any] = lease.get("spec", {})
        return spec

    def leader(self) -> dict[str, Any] | None:
        """Return the pod of the operator that leads; None if no existing one does."""
        return self.operators().get((self.lease().get("holderIdentity") or "").rpartition("_")[0])

    def take_over(self, way: str, meanwhile: Callable[[], Any] = lambda: None) -> tuple[dict[str, Any], float]:
        """Cut off the operator that leads, or send it a signal; return it, and after how many seconds another led.

        `meanwhile` is called when the operator is out of service.
        """
        leader = self.until(self.leader, seconds=60, what="an operator leads")
        before = self.lease()["holderIdentity"]
        begun = self.cut_off(leader) if way == "cut off" else self.signal_pod(leader, way)
        meanwhile()
        self.until(
            lambda: self.lease().get("holderIdentity") not in {None, "", before},
            seconds=60,
            what="another operator leads",
        )
        return leader, datetime.fromisoformat(self.lease()["acquireTime"]).timestamp() - begun

    def scale_operator(self, replicas: int, *, without: Sequence[str] = ()) -> None:
        """Return once so many operators are ready, and all others gone; `without` are pods to kill."""
        self.kubectl("scale", "deployment/plimsoll", "-n", OPERATOR_NAMESPACE, f"--replicas={replicas}")
        if without:
            force = ("--grace-period=0", "--force", "--ignore-not-found")
            self.kubectl("delete", "pod", *without, "-n", OPERATOR_NAMESPACE, *force)

        def scaled() -> bool:
            conditions = [pod["status"].get("conditions", []) for pod in self.operators().values()]
            ready = [any((one["type"], one["status"]) == ("Ready", "True") for one in each) for each in conditions]
            return all(ready) and len(ready) == replicas

        self.until(scaled, seconds=120, what=f"{replicas} operators")

    def kill_operator(self) -> None:
        """Kill all operators, once no other test process keeps them."""
        if not self._keeps_operator:
            with self.keeping_operator():
                self.kill_operator()
            return
        self.kubectl(
            "delete",
            "pod",
            "-n",
            OPERATOR_NAMESPACE,
            "-l",
            OPERATOR,
            "--grace-period=0",
            "--force",
        )

    def suspend(self, name: str, namespace: str, *, suspend: bool) -> None:
        patch = json.dumps({"spec": {"suspend": suspend}})
        self.kubectl("patch", "benchmarkrun", name, "-n", namespace, "--type=merge", "-p", patch)

    def stall(self, namespace: str, pod: str, claim: str, *seconds: float) -> None:
        """Block a pod's reads from the device below its volume for a time.

        With a second duration, block them repeatedly, with pauses of that length, until the pod is gone.
        """
        found = self.object("pods", pod, namespace)
        self._on_device(found, self._path(namespace, claim), "stall.sh", *seconds)

    def throttle(self, pod: Mapping[str, Any], operations: int) -> None:
        """Limit the reads of a client's pod from the device below its volume, per second, until it is gone."""
        volumes = pod["spec"]["volumes"]
        claim = next(one["persistentVolumeClaim"]["claimName"] for one in volumes if "persistentVolumeClaim" in one)
        self._on_device(pod, self._path(pod["metadata"]["namespace"], claim), "throttle.sh", operations)

    def _path(self, namespace: str, claim: str) -> str:
        """Return the path of a claim's volume on its node."""
        bound = self.object("persistentvolumeclaims", claim, namespace)["spec"]["volumeName"]
        volume = self.object("persistentvolumes", bound)
        return str((volume["spec"].get("hostPath") or volume["spec"]["local"])["path"])

    def _on_device(self, pod: Mapping[str, Any], path: str, program: str, *arguments: float) -> None:
        """Run a script of this directory on the node of a pod, for that pod and the device of a path."""
        self._on_node(pod, program, path, *map(str, arguments))

    def _on_node(self, pod: Mapping[str, Any], program: str, *arguments: str) -> str:
        """Run a script of this directory on the node of a pod, for that pod; return its output."""
        text = (Path(__file__).parent / program).read_text()
        uid, node = pod["metadata"]["uid"], pod["spec"]["nodeName"]
        return self.docker("exec", node, "sh", "-c", text, program, uid, *arguments)

    @contextmanager
    def inside(self, namespace: str, pod: str, program: str, *arguments: str) -> Iterator[None]:
        """Run a program of this directory in a pod until the context or the pod ends."""
        text = (Path(__file__).parent / program).read_text()
        process = subprocess.Popen(
            ["kubectl", "exec", "-n", namespace, pod, "--", "python3", "-c", text, *arguments], env=self.environment
        )
        try:
            yield
        finally:
            process.kill()
            process.wait()

    def leftovers(self, namespace: str) -> list[str]:
        """Return the names of a run's objects in a namespace, except results."""
        kinds = "jobs,pods,persistentvolumeclaims,services,networkpolicies,roles,rolebindings"
        found = self.api.objects(kinds, namespace, "app.kubernetes.io/managed-by=plimsoll")
        return [each["metadata"]["name"] for each in found]

    def diagnosis(self, name: str, namespace: str) -> str:
        """Return what helps to diagnose a failure."""
        parts = [
            self.kubectl("get", "benchmarkrun", name, "-n", namespace, "-o", "jsonpath={.status}", check=False),
            self.kubectl("get", "pods,pvc,jobs", "-n", namespace, "-o", "wide", check=False),
            json.dumps(self.state(name, namespace)),
            json.dumps([trial.get("abort") or trial.get("findings") for trial in self.trials(name, namespace)]),
            self.kubectl("logs", "-n", OPERATOR_NAMESPACE, "-l", OPERATOR, "--tail=30", "--prefix", check=False),
            self.kubectl(
                "logs",
                "-n",
                namespace,
                "-l",
                "app.kubernetes.io/managed-by=plimsoll",
                "--tail=10",
                "--prefix",
                check=False,
            ),
        ]
        return "\n---\n".join(parts)

    # -- the machine

    def recycle(self) -> None:
        """Make used block volumes available again."""
        self._script("recycle")

    def repair(self) -> None:
        """Restore the names of a node's block devices, which a restart loses."""
        self._script("up")

    def docker(self, *arguments: str) -> str:
        return self._script("docker", *arguments)

    def _script(self, *arguments: str) -> str:
        done = subprocess.run([CLUSTER, *arguments], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout
