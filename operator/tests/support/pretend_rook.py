"""A Rook cluster in a pretended cluster: it plays what a real one was recorded doing, and keeps what is in its pools.

The statuses and their times are those of Rook 1.18.11 (tests/golden/rook-1.18.11/watch.json). One worker sees to all
pools, one after the other, as Rook's does. The provisioner of RBD volumes and the teardown Job are played here too.
"""

import json
from base64 import b64encode
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

from plimsoll.api.status import format_time
from plimsoll.ceph.pools import EXIT_PURGING
from plimsoll.lifecycle import naming
from plimsoll.plan.document import image_prefix
from support.apiserver import read_yaml
from support.fake_kube import copy_of, is_going
from support.pretend_cluster import KUBELET, Document, PretendCluster, label, phase, pool_of, volume_of

TEARDOWN_NAMESPACE = "plimsoll-teardown"
ROOK_NAMESPACE = "rook-ceph"
ROOK = {"cluster": {"namespace": ROOK_NAMESPACE, "name": "rook-ceph"}, "pool": {"replicated": {"size": 3}}}
KEY = "AQBsecretsecretsecretsecretsecretsecret=="
ADMIN_KEY = "AQBadminadminadminadminadminadminadminad=="
ROOK_API = "ceph.rook.io/v1"

_DOWN, _INACTIVE = "OSD_DOWN", "PG_AVAILABILITY"
_INTERVAL_SECONDS = _STUCK_SECONDS = 60.0

_GOLDEN = Path(__file__).parents[1] / "golden" / "rook-1.18.11"
_READY_SECONDS = 20.0
"""A real file system was ready that long after it was created."""

_RECORDED = json.loads((_GOLDEN / "watch.json").read_text())
_VERSION = "ceph version 18.2.7 (6b0e988052ec84cf2d4a54ff9bbbc5e720b621ad) reef (stable)"


@dataclass
class RookKnobs:
    """How Rook and Ceph behave.

    Attributes:
        down: Rook's operator does not run.
        pools: which recorded story new pools play.
        silent: the monitors do not answer the teardown Job; its words.
        unclean: the teardown Job cannot remove what is in Ceph; its words.
        purging: Ceph has not purged deleted volumes when the teardown Job's program ends; its words.
        foreign_images: somebody else has images in all pools.
        slow_volumes: the provisioner does not remove volumes.
        inactive: OSDs are down, so placement groups are inactive: commands on objects of any pool hang.
        haste: how many times faster than the real one Rook works.

    """

    down: bool = False
    pools: str = ""
    silent: str = ""
    unclean: str = ""
    purging: str = ""
    foreign_images: bool = False
    slow_volumes: bool = False
    inactive: bool = False
    haste: float = 1.0


@dataclass
class PretendRook:
    """Rook, and Ceph behind it.

    Attributes:
        images: pool that has the headers -> images.
        notes: pool -> runs whose conductor has noted flags or written objects there, by UID.
        purging: pools of deleted volumes that nobody has seen to be purged.
        key_generations: UID of a CephClient -> the generation of its rotated key.

    """

    cluster: PretendCluster
    knobs: RookKnobs = field(default_factory=RookKnobs)
    images: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    notes: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    purging: set[str] = field(default_factory=set)
    key_generations: dict[str, int] = field(default_factory=dict)
    _since: dict[str, datetime] = field(default_factory=dict)

    def install(self) -> None:
        """Create a healthy cluster of three hosts, with keys that the operator must not read."""
        put = self.cluster.kube.put
        for name in (TEARDOWN_NAMESPACE, ROOK_NAMESPACE):
            put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        ready = {"type": "Ready", "status": "True", "reason": "ClusterCreated"}
        conditions = [ready | {"message": "Cluster created successfully"}]
        ceph = {"health": "HEALTH_OK", "versions": {"osd": {_VERSION: 3}, "overall": {_VERSION: 7}}}
        status = {"ceph": ceph, "conditions": conditions, "phase": "Ready", "version": {"version": "18.2.7-0"}}
        put(_object(ROOK_API, "CephCluster", "rook-ceph", spec={}, status=status))
        endpoints = {"data": "c=10.240.0.12:6789,a=10.240.0.11:6789,b=10.240.0.13:6789"}
        put(_object("v1", "ConfigMap", "rook-ceph-mon-endpoints", data=endpoints))
        put(_object("v1", "Secret", "rook-ceph-mon", data={"ceph-secret": b64encode(ADMIN_KEY.encode()).decode()}))
        for number in range(3):
            put(_osd(number))
        for driver in ("rbd", "cephfs"):
            metadata = {"name": f"{ROOK_NAMESPACE}.{driver}.csi.ceph.com"}
            put({"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": metadata, "spec": {}})

    def rotate_key(self, user: Document) -> str:
        """Give a user another key, and return that."""
        uid, name = user["metadata"]["uid"], user["metadata"]["name"]
        generation = self.key_generations[uid] = self.key_generations.get(uid, 1) + 1
        key = f"AQB{generation}rotatedrotatedrotatedrotatedrotated=="
        secret = self.cluster.find("Secret", user["spec"]["secretName"])
        if secret is not None:
            data = {**secret["data"], name: b64encode(key.encode()).decode()}
            self.cluster.kube.put({**secret, "data": data})
        return key

    def step(self) -> None:
        if self.knobs.inactive:
            self._since.setdefault(_INACTIVE, self.cluster.now)
        self._bind_volumes()
        self._use_pools()
        self._run_teardown()
        if not self.knobs.down:
            self._see_to_cluster()
            self._see_to_pools()
            self._see_to_file_systems()
            self._see_to_users()

    # -- Rook

    def _see_to_cluster(self) -> None:
        """Ask Ceph how it is, once a minute."""
        for found in self.cluster.kube.objects("CephCluster"):
            ceph = found["status"]["ceph"]
            checked = datetime.fromisoformat(ceph["lastChecked"]) if "lastChecked" in ceph else None
            if checked is not None and self._age(checked) < _INTERVAL_SECONDS:
                continue
            own = {_DOWN, _INACTIVE} if self.knobs.inactive or _INACTIVE in self._since else set()
            details = {name: check for name, check in ceph.get("details", {}).items() if name not in own}
            complaints = {_DOWN: "2 osds down"} if self.knobs.inactive else {}
            if not self.knobs.inactive:
                self._since.pop(_INACTIVE, None)
            elif (self.cluster.now - self._since[_INACTIVE]).total_seconds() >= _STUCK_SECONDS:
                # Ceph waits a minute before it complains of inactive groups.
                complaints[_INACTIVE] = "Reduced data availability: 8 pgs inactive"
            details |= {name: {"message": words, "severity": "HEALTH_WARN"} for name, words in complaints.items()}
            health = "HEALTH_ERR" if ceph["health"] == "HEALTH_ERR" else "HEALTH_WARN" if details else "HEALTH_OK"
            said = {"health": health, "details": details, "lastChecked": format_time(self.cluster.now)}
            self.cluster.set_status(found, ceph=ceph | said)

    def _see_to_pools(self) -> None:
        """Work on the first pool that needs work; the others wait."""
        for pool in self.cluster.kube.objects("CephBlockPool"):
            if is_going(pool):
                # Rook lists the content only of a pool that it has created, without a timeout.
                if self.knobs.inactive and "phase" in pool.get("status", {}):
                    return
                self._delete_pool(pool)
            elif not self._play(pool, self.knobs.pools or "CephBlockPool ready"):
                return

    def _see_to_file_systems(self) -> None:
        """Work on all file systems; one with subvolumes is not deleted."""
        for system in self.cluster.kube.objects("CephFilesystem"):
            pools = f"{system['metadata']['name']}-"
            if not is_going(system):
                since = self._since.setdefault(system["metadata"]["uid"], self.cluster.now)
                self._be_as_recorded(system, "ready" if self._age(since) >= _READY_SECONDS else "progressing")
            elif self.knobs.inactive:
                continue
            elif any(images for pool, images in self.images.items() if pool.startswith(pools)):
                self._be_as_recorded(system, "deleting-blocked")
            else:
                assert not any(pool.startswith(pools) for pool in self.purging), "Ceph's manager hangs"
                for pool in [pool for pool in self.notes if pool.startswith(pools)]:
                    self.notes.pop(pool)
                self.cluster.let_go(system, "cephfilesystem.ceph.rook.io")

    def _be_as_recorded(self, found: Document, story: str) -> None:
        recorded = copy_of(_recorded_file_system(story, found["metadata"]["name"]))

        def change(new: Document) -> None:
            new["metadata"] |= {key: recorded["metadata"][key] for key in ("generation", "finalizers")}
            new["status"] = recorded["status"]

        self.cluster.edit(found, change)

    def _see_to_users(self) -> None:
        for user in self.cluster.kube.objects("CephClient"):
            if is_going(user):
                secret = self.cluster.find("Secret", user["spec"]["secretName"])
                if secret is not None:
                    self.cluster.delete(secret)
                self.cluster.let_go(user, "cephclient.ceph.rook.io")
            elif self._play(user, "CephClient ready") and not self.cluster.find("Secret", user["spec"]["secretName"]):
                key = b64encode(KEY.encode()).decode()
                data = {user["metadata"]["name"]: key, "userID": "", "userKey": key}
                self.cluster.kube.put(_object("v1", "Secret", user["spec"]["secretName"], data=data))

    def _play(self, obj: Document, story: str) -> bool:
        """Bring an object to where its story is by now; tell whether that is the story's end."""
        age = self._age(self._since.setdefault(obj["metadata"]["uid"], self.cluster.now))
        states = [state for state in _RECORDED["stories"][story] if state["seconds"] <= age]
        if states:
            status = json.loads(json.dumps(states[-1]["status"]).replace("NAME", obj["metadata"]["name"]))
            if "info" in status and "secretName" in status["info"]:
                status["info"]["secretName"] = obj["spec"]["secretName"]
                status["cephx"]["keyGeneration"] = self.key_generations.get(obj["metadata"]["uid"], 1)

            def change(new: Document) -> None:
                new["metadata"] |= {"generation": states[-1]["generation"], "finalizers": states[-1]["finalizers"]}
                new["status"] = status

            self.cluster.edit(obj, change)
            if status.get("phase") == "Failure" or "stuck" in story:
                self._complain(obj, "failed to initialize pool for RBD use. : signal: interrupt")
        return len(states) == len(_RECORDED["stories"][story])

    def _age(self, since: datetime) -> float:
        """Return how long ago a moment is for Rook, in seconds."""
        return (self.cluster.now - since).total_seconds() * self.knobs.haste

    def _delete_pool(self, pool: Document) -> None:
        """Let a pool go that has no images; Rook does not look whether it has the data of another's."""
        name = pool["metadata"]["name"]
        held = self.images[name] or self.knobs.foreign_images
        conditions = json.dumps(_RECORDED["deletion"]["not empty" if held else "empty"]).replace("NAME", name)
        self.cluster.set_status(pool, conditions=json.loads(conditions))
        if not held:
            assert not name.endswith("-data") or not self.images[name.removesuffix("-data")], "data is lost"
            self.notes.pop(name, None)
            self.cluster.let_go(pool, "cephblockpool.ceph.rook.io")

    def _complain(self, obj: Document, words: str) -> None:
        where = f"{obj['metadata']['namespace']}/{obj['metadata']['name']}"
        message = f'failed to reconcile {obj["kind"]} "{where}". {words}'
        self.cluster._complain(obj, "ReconcileFailed", message)

    # -- the provisioner, and the load

    def _bind_volumes(self) -> None:
        """Make an image for every claim of a pool that is bound, and take those away whose claim is gone."""
        classes = {obj["metadata"]["name"]: obj for obj in self.cluster.kube.objects("StorageClass")}
        claims = {obj["metadata"]["uid"]: obj for obj in self.cluster.kube.objects("PersistentVolumeClaim")}
        volumes = {obj["metadata"]["name"]: obj for obj in self.cluster.kube.objects("PersistentVolume")}
        for uid, claim in claims.items():
            found = classes.get(claim.get("spec", {}).get("storageClassName", ""), {})
            pool, is_bound = found.get("parameters", {}).get("pool"), claim.get("status", {}).get("phase") == "Bound"
            if pool and is_bound and f"pvc-{uid}" not in volumes:
                self.cluster.kube.put({**volume_of(claim, found), "status": {"phase": "Bound"}})
                self.images[pool].add(f"csi-vol-{uid}")
        for volume in volumes.values():
            uid = volume["spec"]["claimRef"]["uid"]
            if uid not in claims and not self.knobs.slow_volumes:
                self.images[pool_of(volume)].discard(f"csi-vol-{uid}")
                self.purging.add(pool_of(volume))
                self.cluster.delete(volume)

    def _use_pools(self) -> None:
        """Have every conductor that runs make the images of its clients, and note flags."""
        for pod in self.cluster.kube.objects("Pod"):
            uid = label(pod, naming.LABEL_RUN_UID)
            if label(pod, naming.LABEL_COMPONENT) != naming.CONDUCTOR or phase(pod) != "Running":
                continue
            plan = self.cluster.find("ConfigMap", naming.plan_config_map(label(pod, naming.LABEL_RUN)))
            ceph = json.loads(plan["data"]["plan.json"]).get("ceph") if plan is not None else None
            if ceph and ceph["fileSystem"]:
                self.notes[ceph["dataPool"]].add(uid)
            elif ceph:
                self.notes[ceph["pool"]].add(uid)
                self.images[ceph["pool"]] |= {f"{image_prefix(uid)}{client}" for client in range(2)}

    def _run_teardown(self) -> None:
        """Have the pods of teardown Jobs do what they do, or fail."""
        for pod in self.cluster.kube.objects("Pod"):
            if label(pod, naming.LABEL_COMPONENT) != naming.TEARDOWN:
                continue
            if is_going(pod):
                self.cluster.let_go(pod, KUBELET)
            elif phase(pod) == "Running":
                self._tear_down(pod)

    def _tear_down(self, pod: Document) -> None:
        arguments = dict(text.partition("=")[::2] for text in pod["spec"]["containers"][0]["args"][1:])
        uid, pool = arguments["--uid"], arguments["--pool"]
        assert uid == label(pod, naming.LABEL_RUN_UID)
        if self.knobs.silent:
            self.cluster.end(pod, 1, self.knobs.silent)
            return
        if "--options" in arguments:
            self.cluster.away.discard(uid)
        if "--only-restore" in arguments:
            self.cluster.end(pod, 0)
            return
        if self.knobs.inactive:
            return
        if self.knobs.unclean:
            self.cluster.end(pod, 1, self.knobs.unclean)
            return
        self.notes[pool].discard(uid)
        self.images[pool] = {image for image in self.images[pool] if not image.startswith(image_prefix(uid))}
        if name := arguments.get("--file-system"):
            if self.knobs.purging:
                self.cluster.end(pod, EXIT_PURGING, self.knobs.purging)
                return
            self.purging = {pool for pool in self.purging if not pool.startswith(f"{name}-")}
        self.cluster.end(pod, 0)


@cache
def _recorded_file_system(story: str, name: str) -> Document:
    text = (_GOLDEN / f"cephfilesystem-{story}.yaml").read_text().replace("bench-fs", name)
    recorded: Document = read_yaml(text)
    return recorded


def _object(api_version: str, kind: str, name: str, **content: Any) -> Document:
    metadata = {"name": name, "namespace": ROOK_NAMESPACE}
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata, **content}


def _osd(number: int) -> Document:
    labels = {
        "app": "rook-ceph-osd",
        "ceph-osd-id": str(number),
        "device-class": "hdd",
        "rook-version": "v1.18.11",
        "rook.io/operator-namespace": ROOK_NAMESPACE,
        "topology-location-host": f"node{number}",
        "topology-location-root": "default",
    }
    chosen = {"ceph-osd-id": str(number)}
    pod = {"metadata": {"labels": chosen}, "spec": {"containers": [{"name": "osd", "image": "ceph:1"}]}}
    spec = {"selector": {"matchLabels": chosen}, "template": pod}
    status = {"replicas": 1, "readyReplicas": 1, "availableReplicas": 1}
    obj = _object("apps/v1", "Deployment", f"rook-ceph-osd-{number}", spec=spec, status=status)
    obj["metadata"]["labels"] = labels
    return obj
