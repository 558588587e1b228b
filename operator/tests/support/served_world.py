"""The pretended players on a real API server, with real controllers and a real operator process. Time is real."""

import json
import re
import subprocess
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast

from plimsoll.api.names import RunPhase
from plimsoll.api.status import STATE_FILE, RunState
from plimsoll.lifecycle import naming
from support.apiserver import (
    CRDS,
    Answer,
    ApiServer,
    kube_program,
    read_yamls,
    running_apiserver,
    running_program,
    token_of,
)
from support.fake_kube import KINDS, FakeKube, copy_of, is_going
from support.pretend_cluster import KUBELET, STORAGE_CLASS, Document, Faults, PretendCluster, label, pool_of, volume_of
from support.pretend_conductor import PretendConductors
from support.pretend_rook import ROOK_NAMESPACE, PretendRook, RookKnobs

_PLURALS = {"NetworkPolicy": "networkpolicies", "StorageClass": "storageclasses"}
_KINDS = {kind.kind: kind for kind in KINDS}
_MERGE = "application/merge-patch+json"
_FILLED_IN = {"CephBlockPool": "statusCheck", "CephClient": "security"}
"""What Rook writes into a specification, so that its generation is the second one."""

_DELETION = timedelta(seconds=2)
"""How long provisioner and Rook take, so that whoever does not wait for them is noticed."""

_LATE = (404, 409)
"""Somebody else has deleted or changed the object: its player looks again in the next round."""


def path_of(kind: str, namespace: str | None = None, name: str = "") -> str:
    """Return the path of an object, or of all objects of a kind, in a namespace or in all."""
    api_version = _KINDS[kind].api_version
    root = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
    place = f"/namespaces/{namespace}" if namespace else ""
    return f"{root}{place}/{_PLURALS.get(kind, f'{kind.lower()}s')}/{name}".rstrip("/")


class ServedObjects:
    """The objects of an API server; those of a kind are listed once in a round, unless a player changes one.

    With a namespace, only its objects and those that are in none exist.
    """

    def __init__(self, api: ApiServer, namespace: str | None) -> None:
        self._api = api
        self._namespace = namespace
        self._listed: dict[str, list[Document]] = {}

    def begin_round(self) -> None:
        self._listed.clear()

    def objects(self, kind: str, is_meant: Callable[[Document], bool] = lambda _: True) -> Sequence[Document]:
        if kind not in self._listed:
            place = self._namespace if KINDS[_KINDS[kind]].namespaced else None
            found = self._api.request("GET", path_of(kind, place)).expect(200)["items"]
            named = {"apiVersion": _KINDS[kind].api_version, "kind": kind}
            self._listed[kind] = [{**obj, **named} for obj in found]
        return [copy_of(obj) for obj in self._listed[kind] if is_meant(obj)]

    def put(self, obj: Document) -> Document:
        place, name = obj["metadata"].get("namespace"), obj["metadata"]["name"]
        created = self._request("POST", obj["kind"], path_of(obj["kind"], place), obj).expect(201)
        if "status" not in obj:
            return created
        path = f"{path_of(obj['kind'], place, name)}/status"
        return self._request("PATCH", obj["kind"], path, {"status": obj["status"]}, content=_MERGE).expect(200)

    def edit(self, obj: Document, change: Callable[[Document], None]) -> None:
        """Change an object and its status as they are now, unless it has been deleted since the round began."""
        path = _path(obj)
        answer = self._api.request("GET", path)
        old = answer.body
        if not answer.accepted or old["metadata"]["uid"] != obj["metadata"]["uid"] or is_going(old) != is_going(obj):
            return
        new = copy_of(old)
        change(new)
        status = new.get("status")
        if new | {"status": None} != old | {"status": None}:
            answer = self._request("PUT", obj["kind"], path, new)
            assert answer.accepted or answer.code in _LATE, answer.message
        if answer.accepted and status != old.get("status"):
            answer = self._request("PUT", obj["kind"], f"{path}/status", answer.body | {"status": status})
            assert answer.accepted or answer.code in _LATE, answer.message

    def delete(self, obj: Document, *, at_once: bool = False) -> None:
        self._request("DELETE", obj["kind"], f"{_path(obj)}{'?gracePeriodSeconds=0' if at_once else ''}")

    def bind(self, pod: Document, node: str) -> None:
        binding = {"metadata": {"name": pod["metadata"]["name"]}, "target": {"kind": "Node", "name": node}}
        self._request("POST", "Pod", f"{_path(pod)}/binding", binding)

    def _request(self, method: str, kind: str, path: str, body: Any = None, **options: str) -> Answer:
        self._listed.pop(kind, None)
        return self._api.request(method, path, body, **options)


class ServedCluster(PretendCluster):
    """Scheduler, kubelets and the provisioner of all volumes.

    Attributes:
        served: what `kube` is here.
        images: pool -> what the provisioner, or somebody else, has made there.
        early: StorageClasses and pools that were deleted before what was made from them.

    """

    def __init__(self, api: ApiServer, namespace: str | None = None) -> None:
        self.served = ServedObjects(api, namespace)
        # Players only ask it for `objects`, and `put` some.
        self.kube = cast("FakeKube", self.served)
        self.faults = Faults()
        self.images: defaultdict[str, set[str]] = defaultdict(set)
        self.early: set[str] = set()
        self.away: set[str] = set()
        self._begun: dict[str, datetime] = {}
        self.begin_round()

    def begin_round(self) -> None:
        self.now = datetime.now(UTC)
        self.served.begin_round()

    def step(self) -> None:
        """Let each of them look once; the controllers of Jobs, claims and namespaces are real."""
        self.provision()
        self.run_pods()

    def edit(self, obj: Document, change: Callable[[Document], None]) -> None:
        self.served.edit(obj, change)

    def delete(self, obj: Document, *, foreground: bool = False) -> None:
        assert not foreground
        self.served.delete(obj)

    def let_go(self, obj: Document, finalizer: str) -> None:
        """Remove a finalizer; a kubelet, which has none, says that the pod has ended."""
        if finalizer == KUBELET:
            self.served.delete(obj, at_once=True)
        else:
            super().let_go(obj, finalizer)

    def set_status(self, obj: Document, **status: Any) -> None:
        self.edit(obj, lambda new: new.setdefault("status", {}).update(status))

    def schedule(self, pod: Document, node: str) -> None:
        self.served.bind(pod, node)

    def is_deleted(self, obj: Document) -> bool:
        """Tell whether the deletion of what an object stands for, which begins with the first call, is done."""
        return self.now - self._begun.setdefault(obj["metadata"]["uid"], self.now) >= _DELETION

    def provision(self) -> None:
        """Make volumes for the claims that need one, and delete those whose claims are gone."""
        classes = {obj["metadata"]["name"]: obj for obj in self.kube.objects("StorageClass")}
        volumes = self.kube.objects("PersistentVolume")
        made = {volume["metadata"]["name"] for volume in volumes}
        for claim in self.kube.objects("PersistentVolumeClaim"):
            found = classes.get(claim["spec"].get("storageClassName", ""))
            if found is None or is_going(claim) or f"pvc-{claim['metadata']['uid']}" in made:
                continue
            if found.get("volumeBindingMode") != "WaitForFirstConsumer" or self._users(claim):
                volume = volume_of(claim, found)
                self.images[pool_of(volume)].add(volume["metadata"]["name"])
                self.kube.put(volume)
        for volume in volumes:
            if volume["spec"]["storageClassName"] not in classes:
                self.early.add(f"StorageClass {volume['spec']['storageClassName']}")
            is_unused = volume["status"].get("phase") == "Released" and not is_going(volume)
            if is_unused and self.is_deleted(volume):
                self.images[pool_of(volume)].discard(volume["metadata"]["name"])
                self.delete(volume)


class ServedRook(PretendRook):
    """Rook, with what it has made in Ceph.

    Attributes:
        made: the names of pools and users that exist in Ceph, whatever the API server has.

    """

    def __init__(self, cluster: ServedCluster) -> None:
        super().__init__(cluster, images=cluster.images)
        self._served = cluster
        self.made: set[str] = set()

    def contents(self) -> set[str]:
        """Return all that is in Ceph: pools, users, and images and notes, wherever their pools are."""
        inside = {f"{pool}/{name}" for there in (self.images, self.notes) for pool in there for name in there[pool]}
        return self.made | {name for name in inside if not name.startswith("/")}

    def _bind_volumes(self) -> None:
        """Leave volumes to the provisioner of the cluster."""

    def _play(self, obj: Document, story: str) -> bool:
        self.made.add(_name(obj))
        self.cluster.edit(obj, lambda new: new["spec"].setdefault(_FILLED_IN[obj["kind"]], {}))
        return super()._play(obj, story)

    def _delete_pool(self, pool: Document) -> None:
        if self.images[pool["metadata"]["name"]]:
            self._served.early.add(_name(pool))
        if not self._served.is_deleted(pool):
            return
        super()._delete_pool(pool)
        if not self.images[pool["metadata"]["name"]]:
            self.made.discard(_name(pool))

    def _see_to_users(self) -> None:
        going = [_name(user) for user in self.cluster.kube.objects("CephClient", is_going)]
        super()._see_to_users()
        self.made -= {*going}


def _path(obj: Document) -> str:
    return path_of(obj["kind"], obj["metadata"].get("namespace"), obj["metadata"]["name"])


def _name(obj: Document) -> str:
    return f"{obj['kind']} {obj['metadata']['name']}"


CONTROLLERS = (
    "garbage-collector-controller",
    "job-controller",
    "namespace-controller",
    "persistentvolume-binder-controller",
    "persistentvolume-protection-controller",
    "persistentvolumeclaim-protection-controller",
)


@contextmanager
def controller_manager(api: ApiServer, directory: Path) -> Iterator[None]:
    """Run one with all kinds that the server has by now: the garbage collector looks for new ones every 30 s only."""
    config = directory / "controller-manager.kubeconfig"
    config.write_text(json.dumps(api.kubeconfig()))
    arguments = [
        kube_program("kube-controller-manager"),
        f"--kubeconfig={config}",
        f"--controllers={','.join(CONTROLLERS)}",
        "--leader-elect=false",
        # As in most clusters: the Job controller creates pods as itself, which the admission policies know.
        "--use-service-account-credentials",
        "--secure-port=0",
    ]
    with running_program(arguments, directory / "controller-manager.log"):
        yield


ROOT = Path(__file__).parents[3]
OPERATOR_NAMESPACE = "plimsoll-system"
MANIFESTS = (ROOT / "manifests" / "install.yaml", ROOT / "manifests" / "rook" / "rook.yaml")
ROOK_KINDS = ROOT / "e2e" / "rook" / "crds.yaml"


@dataclass(frozen=True, slots=True)
class Installed:
    """The operator as its manifests install it, without a process: its world, credentials and environment."""

    world: "ServedWorld"
    directory: Path
    environment: Mapping[str, str]

    def kubeconfig(self, path: Path, port: int | None = None) -> str:
        """Write the credentials of the operator, for that port instead of the API server's."""
        config = json.loads(json.dumps(self.world.api.kubeconfig()))
        config["users"][0]["user"] = {"token": token_of(self.world.api, OPERATOR_NAMESPACE, account="plimsoll")}
        if port is not None:
            config["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{port}"
        path.write_text(json.dumps(config))
        return str(path)


@contextmanager
def installed_world(directory: Path, *options: str) -> Iterator[Installed]:
    """Install the operator as its manifests say, on a server without anything else, and run the controllers.

    So are the admission policies, which refuse no request of the operator and no pod of the Job controller.
    """
    with running_apiserver(directory, *options) as api:
        for path in (*sorted(CRDS.glob("*.yaml")), ROOK_KINDS):
            for definition in read_yamls(path.read_text()):
                api.define(definition)
        world = ServedWorld(api, directory / "operator.log")
        kubeconfig = directory / "kubeconfig"
        kubeconfig.write_text(json.dumps(api.kubeconfig()))
        files = [argument for path in MANIFESTS for argument in ("-f", str(path))]
        kubectl = [kube_program("kubectl"), f"--kubeconfig={kubeconfig}"]
        command = [*kubectl, f"--cache-dir={directory / 'kinds'}", "apply", "--server-side", *files]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        environment = {
            "PLIMSOLL_ROOK_CLUSTERS": json.dumps({f"{ROOK_NAMESPACE}/rook-ceph": ["*"]}),
            "PLIMSOLL_RUNNER_IMAGE": "plimsoll-runner:0.1.0",
        }
        with controller_manager(api, directory):
            yield Installed(world, directory, environment)


_ROUND_SECONDS = 0.2
_DEADLINE_SECONDS = 180


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

    def round(self) -> None:
        self.cluster.begin_round()
        self.cluster.step()
        self.rook.step()
        self.conductors.step()

    def until(self, holds: Callable[[], object], what: str) -> None:
        """Let rounds pass until something holds; fail after a deadline."""
        deadline = time.monotonic() + _DEADLINE_SECONDS
        self.cluster.begin_round()
        while not holds():
            if time.monotonic() > deadline:
                statuses = [run.get("status") for run in self.cluster.kube.objects("BenchmarkRun")]
                message = f"not within {_DEADLINE_SECONDS} s: {what}; {json.dumps(statuses, indent=1)}"
                raise AssertionError(message)
            time.sleep(_ROUND_SECONDS)
            self.round()

    def complaints(self) -> list[str]:
        """Return what the operator logged that it never should: rights that it does not have, refusals, and crashes.

        Nobody may write into a namespace that is being deleted; that is refused in other words.
        """
        return re.findall(r"cannot \w+ resource.*|.*denied request.*|Traceback.*(?:\n.*){0,30}", self._log.read_text())

    # -- what users do

    def make_storage_class(self, name: str) -> Document:
        """Create a StorageClass whose volumes are made when a pod has a node."""
        return self.cluster.kube.put(STORAGE_CLASS | {"metadata": {"name": name}})

    def create(self, run: Mapping[str, Any]) -> None:
        self.cluster.kube.put(dict(run))

    def suspend(self, namespace: str, name: str) -> None:
        change = {"spec": {"suspend": True}}
        self.api.request("PATCH", path_of("BenchmarkRun", namespace, name), change, content=_MERGE).expect(200)

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
        run = self.api.request("GET", path_of("BenchmarkRun", namespace, name)).expect(200)
        return next((entry for entry in run["status"].get("conditions", []) if entry["type"] == kind), {})

    def until_condition(self, namespace: str, name: str, kind: str, **fields: str) -> None:
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
        for kind in _KINDS:
            for obj in self.cluster.kube.objects(kind):
                if _is_of_run(obj, namespace):
                    yield kind, obj["metadata"]["name"]


def _is_of_run(obj: Document, namespace: str) -> bool:
    """Tell whether an object is of a run in a namespace, wherever it is."""
    if label(obj, naming.LABEL_MANAGED_BY) != naming.MANAGED_BY:
        return False
    return namespace in {obj["metadata"].get("namespace"), label(obj, naming.LABEL_RUN_NAMESPACE)}
