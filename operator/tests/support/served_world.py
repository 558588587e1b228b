"""A real operator process on a real API server with real controllers, and those who play the rest of a cluster."""

import json
import re
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from plimsoll.api.names import RunPhase
from plimsoll.api.status import RunState
from plimsoll.lifecycle import naming
from plimsoll.lifecycle.render.common import STATE_FILE
from support.accounts import account_config
from support.apiserver import CRDS, ApiServer, Binaries
from support.controller_manager import controller_manager
from support.operator_process import operator_process
from support.pretend_cluster import STORAGE_CLASS, Document, label
from support.pretend_conductor import Knobs, PretendConductors
from support.pretend_rook import OPERATOR_NAMESPACE, ROOK_NAMESPACE, RookKnobs
from support.served_cluster import ServedCluster, ServedRook, path_of
from support.yaml_documents import read_yamls

_ROOT = Path(__file__).parents[3]
_MANIFESTS = (_ROOT / "manifests" / "install.yaml", _ROOT / "manifests" / "rook" / "rook.yaml")
_ROOK_KINDS = _ROOT / "e2e" / "rook" / "crds.yaml"
_ROUND_SECONDS = 0.2
_DEADLINE_SECONDS = 180
_IN_NAMESPACE = (
    "BenchmarkResult",
    "ConfigMap",
    "Job",
    "NetworkPolicy",
    "PersistentVolumeClaim",
    "Pod",
    "Role",
    "RoleBinding",
    "Secret",
    "Service",
    "ServiceAccount",
)
_ELSEWHERE = ("CephBlockPool", "CephClient", "CephFilesystem", "StorageClass")


class ServedWorld:
    """Everybody but operator and controllers, who are processes of their own: they work while the world waits."""

    def __init__(self, api: ApiServer, log: Path) -> None:
        self.api = api
        self._log = log
        self.cluster = ServedCluster(api)
        self.rook = ServedRook(self.cluster)
        self.rook.knobs = RookKnobs(haste=20)
        self.conductors = PretendConductors(self.cluster)
        self.rook.install()

    @property
    def knobs(self) -> Knobs:
        """Return those of the conductors."""
        return self.conductors.knobs

    def round(self) -> None:
        """Let everybody do what is to be done now."""
        self.cluster.begin_round()
        self.cluster.step()
        self.rook.step()
        self.conductors.step()

    def until(self, holds: Callable[[], object], what: str) -> None:
        """Let rounds pass until something holds; fail after a deadline."""
        deadline = time.monotonic() + _DEADLINE_SECONDS
        self.cluster.begin_round()
        while not holds():
            assert time.monotonic() < deadline, f"not within {_DEADLINE_SECONDS} s: {what}; {self._statuses()}"
            time.sleep(_ROUND_SECONDS)
            self.round()

    def _statuses(self) -> str:
        return json.dumps([run.get("status") for run in self.cluster.kube.objects("BenchmarkRun")], indent=1)

    def complaints(self) -> list[str]:
        """Return what the operator logged that it never should: rights that it does not have, and crashes.

        Nobody may write into a namespace that is being deleted; that is refused in other words.
        """
        return re.findall(r"cannot \w+ resource.*|Traceback.*(?:\n.*){0,30}", self._log.read_text())

    # -- what users do

    def make_namespace(self, name: str) -> None:
        self.cluster.kube.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})

    def make_storage_class(self, name: str) -> Document:
        """Create a StorageClass whose volumes are made when a pod has a node."""
        return self.cluster.kube.put(STORAGE_CLASS | {"metadata": {"name": name}})

    def create(self, run: Mapping[str, Any]) -> None:
        self.cluster.kube.put(dict(run))

    def suspend(self, namespace: str, name: str) -> None:
        path = path_of("BenchmarkRun", namespace, name)
        change = {"spec": {"suspend": True}}
        self.api.request("PATCH", path, change, content="application/merge-patch+json").expect(200)

    def delete(self, namespace: str, name: str, *, way: str) -> None:
        """Delete a run, with that propagation policy, or its whole namespace, and wait until it is gone."""
        kind, place = ("Namespace", None) if way == "namespace" else ("BenchmarkRun", namespace)
        path = path_of(kind, place, namespace if way == "namespace" else name)
        policy = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": way.capitalize()}
        answer = self.api.request("DELETE", path, None if way == "namespace" else policy)
        assert answer.accepted, answer.message
        self.until(lambda: self.api.request("GET", path).code == 404, f"{path} is gone")

    # -- what they see

    def condition(self, namespace: str, name: str, kind: str) -> Document:
        """Return a condition of a run; empty if there is none yet."""
        run = self.api.request("GET", path_of("BenchmarkRun", namespace, name)).expect(200)
        found = run["status"].get("conditions", [])
        return next((entry for entry in found if entry["type"] == kind), {})

    def until_condition(self, namespace: str, name: str, kind: str, **fields: str) -> None:
        """Wait for a condition of a run with such fields."""
        what = f"{kind} of {name} is {fields}"
        self.until(lambda: fields.items() <= self.condition(namespace, name, kind).items(), what)

    def until_phase(self, namespace: str, name: str, phase: RunPhase) -> None:
        """Wait until a run's conductor is in a phase, and in a trial if it measures."""
        path = path_of("ConfigMap", namespace, naming.state_config_map(name))

        def is_there() -> bool:
            text = self.api.request("GET", path).body.get("data", {}).get(STATE_FILE)
            state = RunState.model_validate_json(text) if text else RunState(epoch="")
            return state.phase is phase and (state.current is not None or phase is not RunPhase.MEASURING)

        self.until(is_there, f"{name} is {phase}")

    def exist(self, kind: str, namespace: str) -> bool:
        """Tell whether the runs of a namespace have objects of a kind."""
        return any(_is_of_run(obj, namespace) for obj in self.cluster.kube.objects(kind))

    def volumes(self, namespace: str) -> list[str]:
        """Return the PersistentVolumes of a namespace's claims, also after these are gone."""
        found = self.api.request("GET", path_of("PersistentVolume")).expect(200)["items"]
        return [one["metadata"]["name"] for one in found if one["spec"]["claimRef"]["namespace"] == namespace]

    def leftovers(self, namespace: str) -> list[str]:
        """Return what the runs of a namespace have there and elsewhere, without results and volumes."""
        return [f"{kind} {name}" for kind, name in self._found(namespace) if kind != "BenchmarkResult"]

    def in_use(self, namespace: str) -> list[str]:
        """Return the leftovers without the documents, which the garbage collector removes after the run is gone."""
        return [one for one in self.leftovers(namespace) if one.split()[0] not in {"ConfigMap", "Secret"}]

    def results(self, namespace: str) -> list[str]:
        return [name for kind, name in self._found(namespace) if kind == "BenchmarkResult"]

    def _found(self, namespace: str) -> Iterator[tuple[str, str]]:
        self.cluster.begin_round()
        for kind in (*_IN_NAMESPACE, *_ELSEWHERE):
            for obj in self.cluster.kube.objects(kind):
                if _is_of_run(obj, namespace):
                    yield kind, obj["metadata"]["name"]


def _is_of_run(obj: Document, namespace: str) -> bool:
    """Tell whether an object is of a run in a namespace, wherever it is."""
    if label(obj, naming.LABEL_MANAGED_BY) != naming.MANAGED_BY:
        return False
    return namespace in {obj["metadata"].get("namespace"), label(obj, naming.LABEL_RUN_NAMESPACE)}


@contextmanager
def served_world(api: ApiServer, binaries: Binaries, directory: Path) -> Iterator[ServedWorld]:
    """Install the operator as its manifests say, on a server without anything, and run it with the controllers."""
    for path in (*sorted(CRDS.glob("*.yaml")), _ROOK_KINDS):
        for definition in read_yamls(path.read_text()):
            api.define(definition)
    log = directory / "operator.log"
    world = ServedWorld(api, log)
    _apply(api, binaries, directory)
    config = account_config(api, directory, OPERATOR_NAMESPACE, "plimsoll")
    clusters = json.dumps({f"{ROOK_NAMESPACE}/rook-ceph": ["*"]})
    with controller_manager(api, directory), operator_process(config, log, PLIMSOLL_ROOK_CLUSTERS=clusters):
        yield world
    assert world.complaints() == []


def _apply(api: ApiServer, binaries: Binaries, directory: Path) -> None:
    """Apply the operator's manifests. Nobody starts its Deployment here."""
    config = directory / "kubeconfig"
    config.write_text(json.dumps(api.kubeconfig()))
    files = [argument for path in _MANIFESTS for argument in ("-f", str(path))]
    program = binaries.etcd.with_name("kubectl")
    command = [str(program), f"--kubeconfig={config}", f"--cache-dir={directory / 'kinds'}", "apply", "--server-side"]
    done = subprocess.run([*command, *files], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
