"""What a real API server with real controllers lacks for a run: scheduler, kubelets, provisioner, Rook, conductors.

The pretended ones play their parts here too, on objects that the API server keeps. Time is real.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from support.apiserver import Answer, ApiServer
from support.copies import copy_of
from support.fake_kube import KINDS, FakeKube
from support.pretend_cluster import KUBELET, Document, Faults, PretendCluster, is_going
from support.pretend_rook import PretendRook

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
    """The objects of an API server; those of a kind are listed once in a round, unless a player changes one."""

    def __init__(self, api: ApiServer) -> None:
        self._api = api
        self._listed: dict[str, list[Document]] = {}

    def begin_round(self) -> None:
        self._listed.clear()

    def objects(self, kind: str, is_meant: Callable[[Document], bool] = lambda _: True) -> Sequence[Document]:
        """Return copies of the objects of a kind."""
        if kind not in self._listed:
            found = self._api.request("GET", path_of(kind)).expect(200)["items"]
            named = {"apiVersion": _KINDS[kind].api_version, "kind": kind}
            self._listed[kind] = [{**obj, **named} for obj in found]
        return [copy_of(obj) for obj in self._listed[kind] if is_meant(obj)]

    def put(self, obj: Document) -> Document:
        """Create an object with its status."""
        place, name = obj["metadata"].get("namespace"), obj["metadata"]["name"]
        created = self._request("POST", obj["kind"], path_of(obj["kind"], place), obj).expect(201)
        if "status" not in obj:
            return created
        path = f"{path_of(obj['kind'], place, name)}/status"
        change = {"status": obj["status"]}
        return self._request("PATCH", obj["kind"], path, change, content=_MERGE).expect(200)

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
        """Write where a pod is scheduled."""
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

    def __init__(self, api: ApiServer) -> None:
        self.served = ServedObjects(api)
        # Players only ask it for `objects`, and `put` some.
        self.kube = cast("FakeKube", self.served)
        self.faults = Faults()
        self.images: defaultdict[str, set[str]] = defaultdict(set)
        self.early: set[str] = set()
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
                volume = _volume(claim, found)
                self.images[_pool(volume)].add(volume["metadata"]["name"])
                self.kube.put(volume)
        for volume in volumes:
            if volume["spec"]["storageClassName"] not in classes:
                self.early.add(f"StorageClass {volume['spec']['storageClassName']}")
            is_unused = volume["status"].get("phase") == "Released" and not is_going(volume)
            if is_unused and self.is_deleted(volume):
                self.images[_pool(volume)].discard(volume["metadata"]["name"])
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


def _pool(volume: Document) -> str:
    """Return the pool of a volume; empty if it is not in Ceph."""
    return str(volume["spec"]["csi"].get("volumeAttributes", {}).get("pool", ""))


def _volume(claim: Document, storage_class: Document) -> Document:
    name, driver = f"pvc-{claim['metadata']['uid']}", storage_class["provisioner"]
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        # Without this note, the binder would try to delete the volume itself.
        "metadata": {"name": name, "annotations": {"pv.kubernetes.io/provisioned-by": driver}},
        "spec": {
            "accessModes": claim["spec"]["accessModes"],
            "capacity": claim["spec"]["resources"]["requests"],
            "claimRef": {key: claim["metadata"][key] for key in ("namespace", "name", "uid")},
            "csi": {"driver": driver, "volumeHandle": name, "volumeAttributes": storage_class.get("parameters", {})},
            "persistentVolumeReclaimPolicy": storage_class["reclaimPolicy"],
            "storageClassName": storage_class["metadata"]["name"],
            "volumeMode": claim["spec"].get("volumeMode", "Filesystem"),
        },
    }
