"""The Ceph of e2e/ceph and the stand-in for Rook of e2e/rook, and runs on them."""

import json
import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from plimsoll.ceph.rights import COMMANDS, Rights
from plimsoll.ceph.versions import gives_map_alone

from runs import run, workload
from support import ROOT, TEARDOWN_NAMESPACE, Cluster

NAMESPACE = os.environ.get("PLIMSOLL_CEPH_NAMESPACE", "rook-ceph")

OURS = "plimsoll-"
OPTION_RECORDS = "plimsoll/"
POOL = "e2e-existing"
USER = "e2e-bench"
FOREIGN = "foreign"
KEYRING = "plimsoll-keyring"
ALLOW_BENCHMARKS = "plimsoll.dev/allow-benchmarks"
ADMINISTRATOR = "e2e-osd-bench"
ADMINISTRATOR_KEYRING = "plimsoll-osd-bench"
FOREIGN_KEY = "mgr/dashboard/E2E_SECRET"

SECRETS: Mapping[str, Mapping[str, Any]] = {
    "config dump": {},
    "config-key dump": {},
    "config log": {},
    "log last": {},
    "report": {},
    "auth ls": {},
    "crash ls": {},
    "auth get": {"entity": "client.admin"},
    "config get": {"who": "mgr", "key": FOREIGN_KEY},
    "config-key get": {"key": FOREIGN_KEY},
    "config show": {"who": "mgr.a", "key": FOREIGN_KEY},
    "config show-with-defaults": {"who": "osd.0"},
    "mgr module ls": {},
}
"""Commands that show what is not a run's: prefix -> arguments."""
OPEN_TO_READERS = {"config dump", "log last", "report"}
"""Those of `SECRETS` that monitors before 20.2.4 let everybody run who may do I/O."""
DISTURBING: Mapping[str, Mapping[str, Any]] = {
    "osd reweight": {"id": 0, "weight": 1.0},
    "osd down": {"ids": ["0"]},
    "osd set-group": {"flags": "noup", "who": ["osd.0"]},
    "osd unset-group": {"flags": "noup", "who": ["osd.0"]},
}
"""Commands that take an OSD away or give it back, which only runs with `disturb` may run."""
OSDS = 3
PLACEMENT_GROUPS = 8

_PROFILES = (
    "ceph osd erasure-code-profile ls | grep '^plimsoll-.*_ecprofile$' | xargs -r -n 1 ceph osd erasure-code-profile rm"
)
_SERVERS = (
    "ceph config dump | awk '$1 ~ /^mds[.]plimsoll-/ && / mds_join_fs / { print $1 }'"
    " | xargs -r -I WHO ceph config rm WHO mds_join_fs"
)

_REMOVE_POOL = """
ceph config rm mgr "$3"
ceph config-key rm "$3"
ceph osd pool rm "$1" "$1" --yes-i-really-really-mean-it
ceph auth rm "client.$2"
"""
_MAKE_POOL = """
ceph osd pool rm "$1" "$1" --yes-i-really-really-mean-it
ceph auth rm "client.$4"
ceph osd pool create "$1" "$2" "$2" replicated --autoscale-mode off
rbd pool init "$1"
rbd create --size 4M "$1/$3"
rados -p "$1" put foreign-object /etc/hostname
ceph osd pool set "$1" noscrub 1
ceph auth get-or-create "client.$4" mon "$5" osd "$6"
ceph config set mgr "$7" secret --force
ceph config-key set "$7" secret
"""

_LEAVE_OBJECTS = """
for name in -h --help --pool -- "a b"; do
    printf %s "$name" > /tmp/name
    rados -p "$1" -N "$2" --obj-name-file /tmp/name put /etc/hostname
done
rados -p "$1" -N "$2" --object-locator elsewhere put located /etc/hostname
"""
# PREFIX...: print the document of each command of the monitors in a line; a program for each would cost more.
_DOCUMENTS = """
import json, rados, sys
timeouts = {"rados_mon_op_timeout": "60", "client_mount_timeout": "60"}
cluster = rados.Rados(conffile="/etc/ceph/ceph.conf", conf=timeouts)
cluster.connect()
for prefix in sys.argv[1:]:
    code, output, complaint = cluster.mon_command(json.dumps({"prefix": prefix, "format": "json"}), b"")
    if code:
        sys.exit(f"{prefix}: {complaint}")
    print(json.dumps(json.loads(output)))
cluster.shutdown()
"""
# Print the time, the OSDs, the placement groups that are not clean and the writes until then, about once a second.
_POLL = """
import json, rados, time
cluster = rados.Rados(conffile="/etc/ceph/ceph.conf", conf={"rados_mon_op_timeout": "60"})
cluster.connect()

def ask(prefix, **given):
    return json.loads(cluster.mon_command(json.dumps({"prefix": prefix, "format": "json", **given}), b"")[1])

end = time.time() + 900
while time.time() < end:
    osds = {each["osd"]: [each["up"], each["weight"], "noup" in each["state"]] for each in ask("osd dump")["osds"]}
    groups = ask("status")["pgmap"]["pgs_by_state"]
    unclean = sum(each["count"] for each in groups if not each["state_name"].startswith("active+clean"))
    writes = sum(pool["stats"]["wr"] for pool in ask("df", detail="detail")["pools"])
    print(json.dumps({"at": time.time(), "osds": osds, "unclean": unclean, "writes": writes}), flush=True)
    time.sleep(1)
"""
# USER REQUEST...: print for each request to the monitors, in a line, whether they let the user run it. No request may
# lack an argument, since the monitors refuse that too.
_PERMITTED = """
import errno, rados, sys
timeouts = {"rados_mon_op_timeout": "60", "client_mount_timeout": "60"}
administrator = rados.Rados(conffile="/etc/ceph/ceph.conf", conf=timeouts)
administrator.connect()
user, *requests = sys.argv[1:]
code, key, complaint = administrator.mon_command('{"prefix": "auth get-key", "entity": "client.%s"}' % user, b"")
if code:
    sys.exit(complaint)
key = {"key": key.decode(), "keyring": "/dev/null"}
cluster = rados.Rados(rados_id=user, conffile="/etc/ceph/ceph.conf", conf=timeouts | key)
cluster.connect()
for request in requests:
    code, output, complaint = cluster.mon_command(request, b"")
    if code not in (0, -errno.EACCES):
        sys.exit(f"{request}: {code} {complaint}")
    print("refused" if code else "permitted")
"""
# NAME: join the monitors under that name, and become the monitor.
_MONITOR = """
set -eu
ceph mon getmap -o /tmp/monmap
ceph auth get mon. -o /tmp/keyring
mkdir /data/mon
ceph-mon --mkfs --id "$0" --mon-data /data/mon --monmap /tmp/monmap --keyring /tmp/keyring
exec ceph-mon --foreground --id "$0" --mon-data /data/mon --public-addr="$POD_ADDRESS"
"""
_ADDED_GRACE = "mon_down_added_grace"
"""How long Ceph does not report a new monitor as down; only some versions have it."""
_CONTENTS = """
rados -p "$1" ls --all
rbd trash ls "$1"
"""


def replicated(size: int = 3) -> dict[str, Any]:
    return {"replicated": {"size": size}, "placementGroups": PLACEMENT_GROUPS}


def erasure_coded(**fields: Any) -> dict[str, Any]:
    return {"erasureCoded": {"dataChunks": 2, "codingChunks": 1} | fields, "placementGroups": PLACEMENT_GROUPS}


LONG = workload(runtimeSeconds=12)
"""Long enough to overlap: on a busy machine, clients need different times to connect to Ceph."""


def rook_run(name: str, namespace: str, pool: Mapping[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    """Return a run of two clients, each with an RBD image, in a pool that Rook creates; one point, one repetition."""
    rook = {"cluster": {"namespace": NAMESPACE, "name": "rook-ceph"}, "pool": pool or replicated()}
    storage = {"rook": rook, "volume": {"size": "64Mi", "access": "LibRBD"}}
    return run(name, namespace, **{"storage": storage, "repetitions": 1, "workloads": [LONG]} | changes)


def files_run(name: str, namespace: str, **changes: Any) -> dict[str, Any]:
    """Return a run of two clients that share a volume in a file system that Rook creates; one repetition."""
    file_system = {"metadataPool": replicated(), "dataPools": [replicated()], "metadataServers": 1}
    rook = {"cluster": {"namespace": NAMESPACE, "name": "rook-ceph"}, "fileSystem": file_system}
    storage = {"rook": rook, "volume": {"size": "16Mi", "sharing": "Shared"}}
    clients = {"count": 2, "spread": "Required"}
    return run(name, namespace, **{"storage": storage, "clients": clients, "repetitions": 1} | changes)


OsdStates = Mapping[str, tuple[int, float, bool]]
"""Number of an OSD -> whether it is up, its reweight, and whether it may not come up."""


@dataclass(frozen=True, kw_only=True)
class Poll:
    """What Ceph said at a time."""

    at: float
    osds: OsdStates
    unclean: int  # placement groups
    writes: int  # of all clients since the pools exist

    def is_given_back(self, before: OsdStates) -> bool:
        """Whether all OSDs may be up and in again, as they were before; one that comes up takes a moment longer."""
        return {number: osd[1:] for number, osd in self.osds.items()} == {
            number: osd[1:] for number, osd in before.items()
        }


class Ceph:
    """One Ceph, through the administrator's toolbox."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def up(self) -> None:
        """Start Ceph and the stand-in for Rook."""
        self._script("ceph/ceph", "up")
        self._script("rook/rook", "up")

    def until_healthy(self) -> None:
        self._script("ceph/ceph", "wait")

    def until_rook_is_healthy(self) -> None:
        """Wait until Rook reports a healthy cluster; it polls Ceph every 15 s, and runs wait for it."""
        self._cluster.until(lambda: self._health() == "HEALTH_OK", seconds=60, what="the CephCluster is HEALTH_OK")

    def _health(self) -> str:
        status = self._cluster.object("cephclusters", "rook-ceph", NAMESPACE).get("status", {})
        return str(status.get("ceph", {}).get("health", ""))

    def admin(self, *command: str, text: str | None = None) -> str:
        """Return the output of a command with the administrator's key.

        Like `e2e/ceph/ceph admin`, but without looking up the cluster on each call.
        """
        return self._cluster.kubectl(
            "exec",
            "--stdin",
            "deployment/rook-ceph-tools",
            "-n",
            NAMESPACE,
            "--",
            "timeout",
            "--kill-after=5",
            "300",
            *command,
            text=text or "",
        )

    def json(self, *command: str) -> Any:
        return json.loads(self.admin(*command, "--format", "json"))

    # -- preparation

    def monitors(self) -> list[str]:
        """Return the monitors' addresses from Rook's ConfigMap."""
        endpoints = self._cluster.object("configmaps", "rook-ceph-mon-endpoints", NAMESPACE)["data"]["data"]
        return [each.partition("=")[2] for each in endpoints.split(",")]

    def make_pool(self) -> None:
        """Create a pool of size 3 with a foreign image, one scrub flag, and a user for runs."""
        caps = Rights(pools=(POOL,), version=self.version()).conductor()
        arguments = (POOL, str(PLACEMENT_GROUPS), FOREIGN, USER, caps["mon"], caps["osd"], FOREIGN_KEY)
        self.admin("sh", "-ec", _MAKE_POOL, "make", *arguments)

    def allow(self, capabilities: str) -> None:
        """Give the user of `make_pool` more capabilities of the monitors."""
        (user,) = self.json("ceph", "auth", "get", f"client.{USER}")
        caps = user["caps"]
        # With line breaks, Ceph could not read the keyring that it prints.
        mon = " ".join(f"{caps['mon']}, {capabilities}".split())
        self.admin("ceph", "auth", "caps", f"client.{USER}", "mon", mon, "osd", caps["osd"])

    @contextmanager
    def active_with(self, copies: int) -> Iterator[None]:
        """Have all pools be active with that many copies, and as before afterwards."""
        before = {pool["pool_name"]: pool["min_size"] for pool in self.json("ceph", "osd", "pool", "ls", "detail")}
        for pool in before:
            self.admin("ceph", "osd", "pool", "set", pool, "min_size", str(copies))
        try:
            yield
        finally:
            for pool, size in before.items():
                self.admin("ceph", "osd", "pool", "set", pool, "min_size", str(size))

    def remove_pool(self) -> None:
        """Remove the pool and the user, if they exist."""
        self.admin("sh", "-ec", _REMOVE_POOL, "remove", POOL, USER, FOREIGN_KEY)

    def version(self) -> str:
        """Return the version of Ceph, as `ceph version` prints it."""
        return self.admin("ceph", "version").strip()

    def users(self) -> list[str]:
        """Return the users that runs created, conductors' before agents'."""
        entities = [each["entity"].removeprefix("client.") for each in self.json("ceph", "auth", "ls")["auth_dump"]]
        return sorted(self._ours(entities), key=lambda name: name.endswith("agent"))

    def permitted(self, user: str, commands: Mapping[str, Mapping[str, Any]]) -> set[str]:
        """Return which commands the monitors let a user run: prefix -> arguments."""
        requests = [json.dumps({"prefix": prefix, "format": "json", **given}) for prefix, given in commands.items()]
        answers = self.admin("python3", "-c", _PERMITTED, user, *requests).split()
        return {prefix for prefix, answer in zip(commands, answers, strict=True) if answer == "permitted"}

    def check_rights(self, conductor: str, *others: str, pool: str = POOL, file_system: str = "") -> None:
        """Check that a conductor's user may run its commands, and that neither it nor the others see any secret."""
        commands: dict[str, Mapping[str, Any]] = {
            **{prefix: {} for prefix in ("status", "versions", "osd metadata", "osd tree", "osd dump", "osd df")},
            **{prefix: {"detail": "detail"} for prefix in ("df", "osd pool ls")},
            "osd crush rule dump": {},
            "osd erasure-code-profile get": {"name": "default"},
            "osd pool set": {"pool": pool, "var": "noscrub", "val": "1"},
            "pg dump": {"dumpcontents": ["pgs_brief"]},
            "config show": {"who": "osd.0", "key": "osd_memory_target"},
        }
        if file_system:
            commands |= {"fs get": {"fs_name": file_system}, "fs volume info": {"vol_name": file_system}}
        quota = {"osd pool set-quota": {"pool": pool, "field": "max_bytes", "val": str(2**40)}}
        if pool != POOL:
            commands |= quota
        # Of the others, runs that set options show that they are permitted.
        shown = commands.keys() | quota.keys() | DISTURBING.keys()
        assert {prefix for prefix in COMMANDS if not prefix.startswith(("config", "fs"))} <= shown
        of_others = {"osd pool set-quota": {**quota["osd pool set-quota"], "pool": ".mgr"}, **DISTURBING}
        assert self.permitted(conductor, of_others) == set()
        assert self.permitted(conductor, commands) == commands.keys()
        open_to_readers = OPEN_TO_READERS if not gives_map_alone(self.version()) else set()
        for user in (conductor, *others):
            assert self.permitted(user, SECRETS) == open_to_readers, user
        # The monitors pass the answers of the manager's modules, as `dashboard get-...`, to users who may run them.
        assert self.permitted("admin", {"crash ls": {}}) == {"crash ls"}

    def give_keyring(self, namespace: str) -> None:
        """Create the keyring Secret of the runs' user in a namespace, and let the operator read it."""
        self._write_keyring(namespace, KEYRING, self.admin("ceph", "auth", "get", f"client.{USER}"))
        self.give_rights(namespace)

    def give_rights(self, namespace: str) -> None:
        """Let the operator read the keyring Secrets that runs name."""
        self._cluster.kubectl("apply", "-n", namespace, "-k", str(ROOT / "manifests" / "ceph"))

    def give_administration(self, namespace: str) -> None:
        """Create the keyring Secret of a user with all rights on OSDs in a namespace."""
        caps = ("mon", "allow service osd r", "osd", "allow *")
        keyring = self.admin("ceph", "auth", "get-or-create", f"client.{ADMINISTRATOR}", *caps)
        self._write_keyring(namespace, ADMINISTRATOR_KEYRING, keyring)
        self.give_rights(namespace)

    def leave_objects(self, uid: str) -> None:
        """Leave objects of a run's first client whose names and locators look like options of `rados`."""
        self.admin("sh", "-ec", _LEAVE_OBJECTS, "leave", POOL, f"plimsoll-{uid}-0")

    def _write_keyring(self, namespace: str, secret: str, keyring: str) -> None:
        manifest = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": secret, "namespace": namespace, "annotations": {ALLOW_BENCHMARKS: "true"}},
            "stringData": {"keyring": keyring},
        }
        self._cluster.apply(manifest)

    def run(self, name: str, namespace: str, **changes: Any) -> dict[str, Any]:
        """Return a run of two clients on images in the pool of `make_pool`, without Rook."""
        source = {
            "monitors": self.monitors(),
            "user": USER,
            "keyringSecret": {"name": KEYRING},
            "pool": {"name": POOL},
        }
        storage = {"ceph": source, "volume": {"size": "64Mi", "access": "LibRBD"}}
        return run(name, namespace, **{"storage": storage, "repetitions": 1, "workloads": [LONG]} | changes)

    # -- content

    def flags(self, pool: str = POOL) -> set[str]:
        """Return the scrub flags of a pool."""
        pools = self.json("ceph", "osd", "pool", "ls", "detail")
        (names,) = (each["flags_names"].split(",") for each in pools if each["pool_name"] == pool)
        return set(names) & {"noscrub", "nodeep-scrub"}

    def quota(self, pool: str) -> int:
        """Return the quota of a pool in bytes; 0 if it has none."""
        pools = self.json("ceph", "osd", "pool", "ls", "detail")
        return next(int(each["quota_max_bytes"]) for each in pools if each["pool_name"] == pool)

    def options(self, name: str) -> dict[str, str]:
        """Return the values of an option in the configuration database, by whose they are."""
        found = [each for each in self.json("ceph", "config", "dump") if each["name"] == name]
        return {"/".join(filter(None, (each["section"], each["mask"]))): each["value"] for each in found}

    def used_option(self, osd: int, name: str) -> str:
        """Return the value that an OSD uses, as it last reported it to the manager."""
        return self.admin("ceph", "config", "show", f"osd.{osd}", name).strip()

    def set_option(self, who: str, name: str, value: str) -> None:
        self.admin("ceph", "config", "set", who, name, value)

    def remove_option(self, who: str, name: str) -> None:
        self.admin("ceph", "config", "rm", who, name)

    def pools(self) -> list[str]:
        """Return the pools that runs created."""
        return self._ours(self.json("ceph", "osd", "pool", "ls"))

    def contents(self, pool: str = POOL) -> list[str]:
        """Return all RADOS objects of a pool in all namespaces, and the images in its trash."""
        return sorted(self.admin("sh", "-ec", _CONTENTS, "contents", pool).splitlines())

    def leftovers(self) -> list[str]:
        """Return leaks of this session's runs in Ceph, Rook's and the teardowns' namespaces, and outside namespaces."""
        pools, users, rules, file_systems, keys = self._listed(
            "osd pool ls", "auth ls", "osd crush rule ls", "fs ls", "config-key ls"
        )
        kinds = "secrets,configmaps,jobs,pods,networkpolicies"
        elsewhere = [
            *self._cluster.api.objects(kinds, TEARDOWN_NAMESPACE, "plimsoll.dev/run-namespace"),
            *self._cluster.api.objects("storageclasses", None, "plimsoll.dev/run-namespace"),
        ]
        return [
            *self._ours(pools),
            *self._ours([each["entity"].removeprefix("client.") for each in users["auth_dump"]]),
            *self._ours(rules),
            *self._ours([each["name"] for each in file_systems]),
            *(key for key in keys if key.startswith(OPTION_RECORDS)),
            *self._named(f"cephblockpools,cephfilesystems,cephclients,{kinds}", NAMESPACE),
            *(each["metadata"]["name"] for each in elsewhere if self._is_of_this_session(each)),
            *self._volumes(),
        ]

    def _volumes(self) -> list[str]:
        """Return the PersistentVolumes of this session's runs."""
        found = [volume["spec"] for volume in self._cluster.api.objects("persistentvolumes")]
        ours = [spec for spec in found if (spec.get("claimRef") or {}).get("namespace") in self._cluster.namespaces]
        return self._ours([spec.get("storageClassName", "") for spec in ours])

    def _is_of_this_session(self, found: dict[str, Any]) -> bool:
        return found["metadata"]["labels"]["plimsoll.dev/run-namespace"] in self._cluster.namespaces

    def _listed(self, *commands: str) -> list[Any]:
        """Return the documents of several commands without arguments."""
        return [json.loads(line) for line in self.admin("python3", "-c", _DOCUMENTS, *commands).splitlines()]

    def forget_runs(self) -> None:
        """Remove the erasure-code profiles and options of metadata servers that Rook and its stand-in leave behind."""
        for command in (_PROFILES, _SERVERS):
            self.admin("sh", "-c", command)

    def _named(self, kinds: str, namespace: str) -> list[str]:
        return self._ours([each["metadata"]["name"] for each in self._cluster.api.objects(kinds, namespace)])

    @staticmethod
    def _ours(names: list[str]) -> list[str]:
        return [name for name in names if name.startswith(OURS)]

    # -- another user of Rook

    @contextmanager
    def external(self) -> Iterator[None]:
        """Have Rook treat the cluster as an external one, to which it only connects."""
        self._set_external("true", phase="Connected")
        try:
            yield
        finally:
            self._set_external("null", phase="Ready")

    def _set_external(self, enable: str, *, phase: str) -> None:
        patch = f'{{"spec": {{"external": {{"enable": {enable}}}}}}}'
        self._cluster.kubectl("patch", "cephcluster", "rook-ceph", "-n", NAMESPACE, "--type=merge", "-p", patch)

        def reported() -> bool:
            return bool(self._cluster.object("cephclusters", "rook-ceph", NAMESPACE)["status"]["phase"] == phase)

        self._cluster.until(reported, seconds=60, what=f"the CephCluster is {phase}")

    def make_rook_pool(self, name: str, **fields: Any) -> None:
        """Create a CephBlockPool that does not belong to a run, and that runs may use."""
        kind = {"apiVersion": "ceph.rook.io/v1", "kind": "CephBlockPool"}
        metadata = {"name": name, "namespace": NAMESPACE, "annotations": {ALLOW_BENCHMARKS: "true"}}
        groups = str(PLACEMENT_GROUPS)
        parameters = {"pg_num": groups, "pgp_num": groups, "pg_autoscale_mode": "off"}
        spec = {"replicated": {"size": OSDS}, "parameters": parameters} | fields
        self._cluster.apply({**kind, "metadata": metadata, "spec": spec})

    def rook_pools(self) -> list[str]:
        """Return the names of the CephBlockPools that runs created."""
        return self._named("cephblockpools", NAMESPACE)

    def is_being_deleted(self, pool: str) -> bool:
        return "deletionTimestamp" in self._cluster.object("cephblockpools", pool, NAMESPACE)["metadata"]

    def phase(self, pool: str) -> str:
        """Return the phase of a CephBlockPool; empty if it has none yet."""
        status = self._cluster.object("cephblockpools", pool, NAMESPACE).get("status", {})
        return str(status.get("phase", ""))

    def until_rook_pool_is_ready(self, name: str) -> None:
        self._cluster.until(lambda: self.phase(name) == "Ready", seconds=90, what=f"CephBlockPool {name} is Ready")

    def remove_rook_pool(self, name: str) -> None:
        """Delete that CephBlockPool, and wait until it is gone."""
        self._cluster.kubectl("delete", "cephblockpool", name, "-n", NAMESPACE, "--ignore-not-found", "--timeout=240s")

    def file_systems(self) -> list[str]:
        """Return the names of the CephFilesystems that runs created."""
        return self._named("cephfilesystems", NAMESPACE)

    def active_metadata_server(self, file_system: str) -> str:
        """Return the name of the active metadata server of a file system with one; empty if there is none."""
        servers = self.json("ceph", "fs", "get", file_system)["mdsmap"]["info"].values()
        return next((str(each["name"]) for each in servers if each["state"] == "up:active"), "")

    def make_file_system(self, name: str) -> None:
        """Create a CephFilesystem that does not belong to a run, and that runs may use."""
        pool = {"replicated": {"size": OSDS}, "parameters": {"pg_num": str(PLACEMENT_GROUPS)}}
        metadata = {"name": name, "namespace": NAMESPACE, "annotations": {ALLOW_BENCHMARKS: "true"}}
        spec = {"metadataPool": pool, "dataPools": [pool], "metadataServer": {"activeCount": 1}}
        kind = {"apiVersion": "ceph.rook.io/v1", "kind": "CephFilesystem"}
        self._cluster.apply({**kind, "metadata": metadata, "spec": spec})
        self._cluster.until(lambda: self._is_ready(name), seconds=90, what=f"CephFilesystem {name} is Ready")

    def rotate_key(self) -> None:
        """Have Rook replace the key of the only run's conductor by another one, and wait until it has."""
        (user,) = (name for name in self._named("cephclients", NAMESPACE) if name.endswith("-conductor"))
        cephx = {"keyRotationPolicy": "KeyGeneration", "keyGeneration": 2}
        change = json.dumps({"spec": {"security": {"cephx": cephx}}})
        self._cluster.kubectl("patch", "cephclient", user, "-n", NAMESPACE, "--type=merge", "-p", change)

        def rotated() -> bool:
            status = self._cluster.object("cephclients", user, NAMESPACE)["status"]
            return bool(status["cephx"].get("keyGeneration") == 2)

        self._cluster.until(rotated, seconds=30, what=f"the key of CephClient {user} is replaced")

    def _is_ready(self, file_system: str) -> bool:
        found = self._cluster.object("cephfilesystems", file_system, NAMESPACE)
        return bool(found.get("status", {}).get("phase") == "Ready")

    def subvolumes(self, file_system: str) -> list[str]:
        """Return the volumes of Rook's CSI driver in a file system."""
        listed = self.json("ceph", "fs", "subvolume", "ls", file_system, "csi")
        return [str(each["name"]) for each in listed]

    def remove_file_system(self, name: str) -> None:
        """Delete that CephFilesystem with its pools once Ceph has purged its volumes, and wait until it is gone."""
        self._cluster.until(lambda: self._is_purged(name), seconds=60, what="the deleted volumes are purged")
        self._cluster.kubectl("delete", "cephfilesystem", name, "-n", NAMESPACE, "--timeout=240s")

    def _is_purged(self, file_system: str) -> bool:
        """Return whether the manager has purged all deleted volumes; interrupted, it could never delete one again."""
        return not self.json("ceph", "fs", "volume", "info", file_system).get("pending_subvolume_deletions")

    # -- OSDs

    def osds(self) -> OsdStates:
        dumped = self.json("ceph", "osd", "dump")["osds"]
        return {str(each["osd"]): (each["up"], each["weight"], "noup" in each["state"]) for each in dumped}

    @contextmanager
    def polled(self) -> Iterator[list[Poll]]:
        """Poll Ceph about once a second; the list has the polls when the context has ended."""
        polls: list[Poll] = []
        toolbox = ("deployment/rook-ceph-tools", "-n", NAMESPACE)
        with tempfile.TemporaryFile("w+") as output:
            command = ["kubectl", "exec", *toolbox, "--", "python3", "-c", _POLL]
            process = subprocess.Popen(command, stdout=output, env=self._cluster.environment)
            try:
                yield polls
            finally:
                process.kill()
                process.wait()
                output.seek(0)
                for line in output.read().splitlines():
                    found = json.loads(line)
                    osds = {number: tuple(osd) for number, osd in found["osds"].items()}
                    polls.append(Poll(**found | {"osds": osds}))

    # -- faults

    def fail_metadata_server(self, name: str) -> None:
        """Have a standby take over from a metadata server."""
        self.admin("ceph", "mds", "fail", name)

    def stop_osd(self, osd: int) -> None:
        self._scale(f"osd-{osd}", 0)

    def start_osd(self, osd: int) -> None:
        self._scale(f"osd-{osd}", 1)

    @contextmanager
    def three_monitors(self) -> Iterator[None]:
        """Have three monitors, so that `stop_monitor` may stop one, and afterwards one as before."""
        names = ("b", "c")
        self.admin("ceph", "config", "set", "mon", _ADDED_GRACE, "0", "--force")
        try:
            for name in names:
                self._add_monitor(name)
            yield
        finally:
            # The other two are a majority until the last one is removed.
            for name in reversed(names):
                self.admin("ceph", "mon", "rm", name)
                self.stop_monitor(name)
            self.remove_option("mon", _ADDED_GRACE)

    def stop_monitor(self, name: str = "c") -> None:
        """Stop an added monitor for good."""
        pod = f"e2e-mon-{name}"
        self._cluster.kubectl("delete", "pod", pod, "-n", NAMESPACE, "--ignore-not-found", "--timeout=240s")

    def _add_monitor(self, name: str) -> None:
        """Start another monitor, in a pod like the first one's with data of its own; wait for the quorum."""
        (first,) = self._cluster.api.objects("pods", NAMESPACE, "app=rook-ceph-mon")
        (container,) = first["spec"]["containers"]
        volumes = [volume for volume in first["spec"]["volumes"] if volume["name"] != "data"]
        spec = {
            "nodeName": first["spec"]["nodeName"],
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 5,
            "containers": [container | {"command": ["/bin/bash", "-c", _MONITOR, name]}],
            "volumes": [*volumes, {"name": "data", "emptyDir": {}}],
        }
        metadata = {"name": f"e2e-mon-{name}", "namespace": NAMESPACE}
        self._cluster.apply({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})

        def joined() -> bool:
            return name in self.json("ceph", "quorum_status")["quorum_names"]

        self._cluster.until(joined, seconds=90, what=f"monitor {name} is in the quorum")

    def until_osds_down(self, count: int) -> None:
        """Wait until Ceph has noticed that so many OSDs are down."""

        def down() -> bool:
            osds = self.json("ceph", "osd", "stat")
            return bool(osds["num_osds"] - osds["num_up_osds"] == count)

        self._cluster.until(down, seconds=60, what=f"{count} OSDs are down")

    @contextmanager
    def while_rook_is_stopped(self) -> Iterator[None]:
        """Stop the stand-in for Rook, and start it again at the end."""
        self._scale("operator", 0)
        self._cluster.kubectl(
            "wait", "pod", "-l", "app=rook-ceph-operator", "-n", NAMESPACE, "--for=delete", "--timeout=240s"
        )
        try:
            yield
        finally:
            self._scale("operator", 1)

    def _scale(self, daemon: str, replicas: int) -> None:
        self._cluster.kubectl("scale", f"deployment/rook-ceph-{daemon}", "-n", NAMESPACE, f"--replicas={replicas}")

    def _script(self, script: str, *arguments: str) -> str:
        done = subprocess.run(
            [ROOT / "e2e" / script, *arguments], capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout
